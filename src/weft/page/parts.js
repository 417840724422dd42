/* The parts of a model by name, and the hue of each: what it reads. */

speak({
  en: {
    "named-of-layer": "{layer} · {part}",
    "named-layer": "layer {layer}",
    "named-embedding": "what was just written",
    "named-read": "the token just read",
    "named-vector": "its vector",
    "named-words": "the tokens alone",
    "named-self": "looks back",
    "named-around": "looks around",
    "named-cross": "looks at the source",
    "named-feed-forward": "feed-forward",
    "named-recurrent": "recurrent",
    "named-output": "output",
    "named-pooling": "pooling",
    "named-bag": "bag of n-grams",
    "named-bag-of": "groups of {n} tokens",
    "named-bag-1": "single tokens",
    "named-bag-2": "pairs of tokens",
    "named-norm": "norm",
    "named-token": "the token itself, {piece}",
    "named-tokens": "the tokens themselves",
    "named-positions": "its position",
    "named-ngrams-of": "the last {n} tokens together",
    "named-matches-of": "seen before: the last {n} tokens",
    "named-ngrams": "n-grams",
    "named-matches": "copied match",
    "named-biases": "biases",
  },
  zh: {
    "named-of-layer": "{layer} · {part}",
    "named-layer": "第 {layer} 层",
    "named-embedding": "刚写下的词元",
    "named-read": "刚读到的词元",
    "named-vector": "它的向量",
    "named-words": "仅词元本身",
    "named-self": "回看",
    "named-around": "环顾",
    "named-cross": "看源文",
    "named-feed-forward": "前馈",
    "named-recurrent": "循环",
    "named-output": "输出",
    "named-pooling": "汇总",
    "named-bag": "n 元组袋",
    "named-bag-of": "{n} 个词元的组合",
    "named-bag-1": "单个词元",
    "named-bag-2": "两个词元的组合",
    "named-norm": "归一化",
    "named-token": "词元本身 {piece}",
    "named-tokens": "词元本身",
    "named-positions": "它的位置",
    "named-ngrams-of": "最后 {n} 个词元合在一起",
    "named-matches-of": "前文出现过：最后 {n} 个词元",
    "named-ngrams": "n 元组",
    "named-matches": "照抄的匹配",
    "named-biases": "偏置",
  },
});

// Whether a vector that enters is read as its own token at once: where the output has the matrix of the vectors.
function isTied() {
  const { tied = [] } = (data.model ? data : (whole.inspections ?? []).find(({ model }) => model))?.model ?? {};
  return tied.some((names) => names.some((name) => name.includes("output")));
}

// The hue of a side: what is written, a language model's text too, has that of the target.
const roleOfSide = (side) => (side === WRITTEN ? "target" : "source");

const isRead = () => data.task === "classification"; // the layers of a classifier read, and see both ways

const roleOf = ({ part }) =>
  ({ cross: "source", self: isRead() ? "source" : "target", "feed-forward": "feed", recurrent: "target", bag: "source" })[part] ?? "given";

// What a part is called where it is chosen, and in the address: cross-0.
const keyOfPart = ({ part, layer, n }) => [part, layer ?? n].filter((each) => each !== null && each !== undefined).join("-");

function nameOfPart(row, piece = "") {
  const { part, layer, n } = row;
  if (part === "embedding") return say(nameOfFirst());
  if (part === "recurrent") return say("named-layer", { layer: layer + 1 });
  if (n) return say(hasWord(`named-${part}-${n}`) ? `named-${part}-${n}` : `named-${part}-of`, { n });
  const own = isRead() ? { self: "around", token: "tokens" }[part] : null; // a classifier reads all of them at once
  const name = say(`named-${own ?? part}`, { piece });
  return layer === null || layer === undefined ? name : say("named-of-layer", { layer: layer + 1, part: name });
}

// The first row: its token, where that can be read from it; else what enters is but a vector.
function nameOfFirst() {
  if (isRead()) return "named-words";
  return isTied() ? { translation: "named-embedding", "language-modelling": "named-read" }[data.task] : "named-vector";
}

// A token of the written side by its number.
const pieceOf = (id) => data.pieces[WRITTEN][id];

/* Amounts with a sign, as bars to both sides of a line */

// `rows` are {key, name, value, role, digits?, title?, chosen?}; with `choose` one of them can be chosen, by pointer or arrows.
function drawAmounts(list, rows, { name, choose = null, largest = 0 }) {
  const values = rows.map((row) => row.value).filter(Number.isFinite);
  const above = Math.max(...values, 0, largest);
  const below = Math.max(...values.map((value) => -value), 0);
  const span = above + below || 1;
  const focused = list.contains(root.activeElement) ? root.activeElement.dataset.key : null;
  list.classList.add("amounts");
  list.setAttribute("role", choose ? "radiogroup" : "list");
  list.setAttribute("aria-label", name);
  list.replaceChildren(...rows.map((row) => amountRow(row, below / span, span, choose)));
  if (choose) keepAmountFocus(list, rows, focused, choose);
}

function amountRow({ key, name, lang, value, role = "given", digits = 2, chosen = false, title = null }, zero, span, choose) {
  const filled = make("i", { class: `of-${role}` });
  filled.style.setProperty("--from", zero + Math.min(value, 0) / span);
  filled.style.setProperty("--size", Math.abs(value) / span);
  const axis = make("span", { class: "axis", "aria-hidden": "true" }, filled);
  axis.style.setProperty("--zero", zero);
  const said = signed(value, digits);
  const parts = [make("span", { class: "amount-name", lang }, name), axis, make("span", { class: said.startsWith("−") ? "amount-value below" : "amount-value" }, said)];
  if (!choose) return make("div", { class: "amount", role: "listitem", title }, ...parts);
  const state = { role: "radio", "aria-checked": `${chosen}`, tabindex: chosen ? "0" : "-1", "data-key": key };
  return make("button", { type: "button", class: "amount", title, click: () => choose(key), ...state }, ...parts);
}

function keepAmountFocus(list, rows, focused, choose) {
  if (!rows.some((row) => row.chosen) && list.firstChild) list.firstChild.tabIndex = 0;
  if (focused !== null) list.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  list.onkeydown = (event) => {
    const at = rows.findIndex(({ key }) => `${key}` === event.target.dataset.key);
    const by = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const { key } = rows[clamped(at + by, rows.length)];
    choose(key);
    list.querySelector(`[data-key="${key}"]`)?.focus();
  };
}

// As many digits as it takes to tell numbers of this size apart.
const digitsFor = (largest) => (largest >= 1 ? 2 : largest >= 0.1 ? 3 : 4);

// A number with the sign that mathematics has.
const minus = (text) => text.replace("-", "−");

// A small difference: as many digits as it takes to see it.
const small = (value) => (value === 0 ? "0" : value < 1e-4 ? value.toExponential(0).replace("e-", " × 10⁻").replace(/(?<=⁻)\d+/, raised) : value.toFixed(4));
const raised = (digits) => [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
