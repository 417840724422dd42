/* The parts of a model by name, and the hue of each: what it reads. */

speak({
  en: {
    "part-of-layer": "{layer} · {part}",
    "part-layer": "layer {layer}",
    "part-embedding": "what was just written",
    "part-read": "the token just read",
    "part-words": "the tokens alone",
    "part-self": "looks back",
    "part-around": "looks around",
    "part-cross": "looks at source",
    "part-feed-forward": "feed-forward",
    "part-recurrent": "recurrent",
    "part-output": "output",
    "part-pooling": "pooling",
    "part-bag": "bag of n-grams",
    "part-bag-of": "groups of {n} tokens",
    "part-bag-1": "single tokens",
    "part-bag-2": "pairs of tokens",
    "part-norm": "norm",
    "part-token": "the token itself, {piece}",
    "part-positions": "its position",
    "part-ngrams-of": "the last {n} tokens together",
    "part-matches-of": "seen before: the last {n} tokens",
    "part-ngrams": "n-grams",
    "part-matches": "copied match",
    "part-biases": "biases",
  },
  zh: {
    "part-of-layer": "{layer} · {part}",
    "part-layer": "第 {layer} 层",
    "part-embedding": "刚写下的词元",
    "part-read": "刚读到的词元",
    "part-words": "仅词元本身",
    "part-self": "回看",
    "part-around": "环顾",
    "part-cross": "看源文",
    "part-feed-forward": "前馈",
    "part-recurrent": "循环",
    "part-output": "输出",
    "part-pooling": "汇总",
    "part-bag": "n 元组袋",
    "part-bag-of": "{n} 个词元的组合",
    "part-bag-1": "单个词元",
    "part-bag-2": "两个词元的组合",
    "part-norm": "归一化",
    "part-token": "词元本身 {piece}",
    "part-positions": "它的位置",
    "part-ngrams-of": "最后 {n} 个词元合在一起",
    "part-matches-of": "前文出现过：最后 {n} 个词元",
    "part-ngrams": "n 元组",
    "part-matches": "照抄的匹配",
    "part-biases": "偏置",
  },
});

const isRead = () => data.task === "classification"; // the layers of a classifier read, and see both ways

const roleOf = ({ part }) =>
  ({ cross: "source", self: isRead() ? "source" : "target", "feed-forward": "feed", recurrent: "target", bag: "source" })[part] ?? "given";

// What a part is called where it is chosen, and in the address: cross-0.
const keyOfPart = ({ part, layer, n }) => [part, layer ?? n].filter((each) => each !== null && each !== undefined).join("-");

function nameOfPart(row, piece = "") {
  const { part, layer, n } = row;
  if (part === "embedding") return say({ translation: "part-embedding", "language-modelling": "part-read", classification: "part-words" }[data.task]);
  if (part === "recurrent") return say("part-layer", { layer: layer + 1 });
  if (n) return say(hasWord(`part-${part}-${n}`) ? `part-${part}-${n}` : `part-${part}-of`, { n });
  const name = say(part === "self" && isRead() ? "part-around" : `part-${part}`, { piece });
  return layer === null || layer === undefined ? name : say("part-of-layer", { layer: layer + 1, part: name });
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
  const parts = [make("span", { class: "amount-name", lang }, name), axis, make("span", { class: value < 0 ? "amount-value below" : "amount-value" }, signed(value, digits))];
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
