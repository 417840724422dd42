/* Choosing: from logits to probabilities, and what sampling would leave of them. */

speak({
  en: {
    "choosing-title": "Choosing",
    "choosing-title-of": "Choosing {token}",
    "choosing-title-labels": "The labels",
    "choosing-prose":
      "Every one of the model’s {count} tokens has a logit; its exponential, divided by all of them together, is its probability. {first} has the " +
      "largest, {value}.",
    "choosing-second": "{second} is {less} behind: e to the power of {less} makes it {times} times less probable.",
    "choosing-stands": "What stands there, {token}, is number {rank}.",
    "choosing-stands-far": "What stands there, {token}, is not among the {listed} that are listed: its probability is {value}.",
    "choosing-prose-labels": "The most probable label is {first}, {value}.",
    "choosing-token": "Token",
    "choosing-label": "Label",
    "choosing-logit": "Logit",
    "choosing-probability": "Probability",
    "choosing-changed": "As set",
    "choosing-scale": "Bars",
    "choosing-linear": "linear",
    "choosing-log": "logarithmic",
    "choosing-temperature": "Temperature",
    "choosing-top-k": "Top-k",
    "choosing-top-p": "Top-p",
    "choosing-all": "all",
    "choosing-back": "As the model has it",
    "choosing-others": "the other {count}",
    "choosing-cut": "cut",
    "choosing-kept": "Kept: {count} tokens.",
    "choosing-kept-more": "It takes more than the {count} tokens recorded here to reach {p}: shown without that cut.",
    "choosing-caption":
      "The temperature divides the logits; then top-k keeps the k most probable tokens (Fan et al. 2018), and top-p the smallest set whose " +
      "probabilities reach p (nucleus sampling: Holtzman et al. 2020).",
    "choosing-smoothed":
      "A model that is right need not be sure: with label smoothing (training.label_smoothing, usually 0.1) it was taught to give the right token " +
      "0.9 and the others the rest (Szegedy et al. 2016).",
    "choosing-search": "This translation was not drawn at random, but searched for: the section on the search shows how.",
  },
  zh: {
    "choosing-title": "选择",
    "choosing-title-of": "选择{token}",
    "choosing-title-labels": "标签",
    "choosing-prose": "模型的 {count} 个词元各有一个 logit；它的指数除以所有指数之和就是概率。最大的是 {first}，{value}。",
    "choosing-second": "{second} 落后 {less}：概率只有它的 e 的 {less} 次方分之一，即 {times} 分之一。",
    "choosing-stands": "写在那里的 {token} 排第 {rank}。",
    "choosing-stands-far": "写在那里的 {token} 不在列出的 {listed} 个之中：它的概率是 {value}。",
    "choosing-prose-labels": "最可能的标签是 {first}，{value}。",
    "choosing-token": "词元",
    "choosing-label": "标签",
    "choosing-logit": "logit",
    "choosing-probability": "概率",
    "choosing-changed": "按设置",
    "choosing-scale": "条形",
    "choosing-linear": "线性",
    "choosing-log": "对数",
    "choosing-temperature": "温度",
    "choosing-top-k": "top-k",
    "choosing-top-p": "top-p",
    "choosing-all": "全部",
    "choosing-back": "恢复模型原样",
    "choosing-others": "其余 {count} 个",
    "choosing-cut": "去掉",
    "choosing-kept": "保留 {count} 个词元。",
    "choosing-kept-more": "要达到 {p}，需要的词元比这里记录的 {count} 个还多：这里不作这一截取。",
    "choosing-caption": "温度去除 logit；然后 top-k 保留最可能的 k 个词元（Fan 等 2018），top-p 保留概率达到 p 的最小集合（核采样：Holtzman 等 2020）。",
    "choosing-smoothed":
      "模型对了也不一定十分确信：如果用了标签平滑（training.label_smoothing，通常为 0.1），它学到的是给正确的词元 0.9，其余分给别的（Szegedy 等 2016）。",
    "choosing-search": "这个译文不是随机抽取的，而是搜索得到的：见“搜索”一节。",
  },
});

const LISTED = 20;
const LEAST_SHOWN = 1e-6; // where the logarithmic bars begin
const choosing = { isLog: false, temperature: 1, k: null, p: 1 };

section({
  id: "choosing",
  order: 7,
  applies: ({ choices: recorded, task }) => (recorded?.count ?? 0) > 0 || task === "classification",
  draw: drawChoosing,
  place: placeChoosing,
});

function drawChoosing(box) {
  choosing.controls = make("div", { class: "controls dials" });
  choosing.table = make("table", { id: "choosing-table" });
  choosing.said = make("p", { class: "small", id: "choosing-said", "aria-live": "polite" });
  const caption = WRITTEN ? [say("choosing-smoothed"), ...(data.task === "translation" ? [say("choosing-search")] : [])] : [];
  box.append(choosing.controls, choosing.table, choosing.said, make("p", { class: "caption" }, joined(caption), ...(WRITTEN ? [hint(say("choosing-caption"))] : [])));
  drawChoosingControls();
}

function placeChoosing(changed) {
  if (!(changed.has("step") || changed.has("label"))) return;
  sayChoosing();
  drawChoosingTable();
}

function drawChoosingControls() {
  const scales = [[false, say("choosing-linear")], [true, say("choosing-log")]];
  const setScale = (isLog) => {
    choosing.isLog = isLog;
    drawChoosingTable();
  };
  choosing.controls.replaceChildren(choices(say("choosing-scale"), "choosing-scale", scales, choosing.isLog, setScale));
  if (!WRITTEN) return;
  const { count } = data.choices;
  const temperatures = [...arrayOf(data.choices.temperatures).values];
  const most = Math.min(arrayOf(data.choices.ids).shape[1], count);
  const dials = [
    choosingDial("temperature", { min: 0, max: temperatures.length - 1, step: 1 }, temperatures.indexOf(choosing.temperature), (at) => (choosing.temperature = temperatures[at]), () => choosing.temperature.toFixed(2)),
    choosingDial("top-k", { min: 1, max: most + 1, step: 1 }, choosing.k ?? most + 1, (at) => (choosing.k = at > most ? null : at), () => choosing.k ?? say("choosing-all")),
    choosingDial("top-p", { min: 0.05, max: 1, step: 0.05 }, choosing.p, (at) => (choosing.p = at), () => (choosing.p < 1 ? choosing.p.toFixed(2) : say("choosing-all"))),
  ];
  const reset = () => {
    Object.assign(choosing, { temperature: 1, k: null, p: 1 });
    drawChoosingControls();
    drawChoosingTable();
    byId("choosing-temperature").focus();
  };
  choosing.controls.append(...dials, make("button", { type: "button", class: "quiet", id: "choosing-back", click: reset }, say("choosing-back")));
}

function choosingDial(name, range, value, set, read) {
  const id = `choosing-${name}`;
  const output = make("output", { for: id }, `${read()}`);
  const slider = make("input", { type: "range", id, ...range, value, autocomplete: "off" });
  slider.addEventListener("input", () => {
    set(Number(slider.value));
    output.textContent = read();
    drawChoosingTable();
  });
  return make("div", { class: "dial" }, make("label", { for: id }, say(id)), slider, output);
}

/* The arithmetic: what the settings make of the recorded logits, exactly */

// The listed tokens at a step; `rests` are the logarithms of the sums of all others' exponentials, one for each temperature.
function recordedChoices(step) {
  const { ids, logits, rests, temperatures, count } = data.choices;
  const listed = within(arrayOf(ids), step).values;
  const list = { ids: listed, logits: within(arrayOf(logits), step).values, others: count - listed.length };
  return { ...list, rests: within(arrayOf(rests), step).values, temperatures: [...arrayOf(temperatures).values] };
}

// The exponentials of the listed ones and of all others together, divided by that of the first.
function exponentials({ logits, rests, others, temperatures }, temperature) {
  const first = logits[0] / temperature;
  const rest = others > 0 ? Math.exp(rests[temperatures.indexOf(temperature)] - first) : 0;
  return { listed: Array.from(logits, (logit) => Math.exp(logit / temperature - first)), rest };
}

// Each listed token's probability as the settings leave it, null where it is cut; and that of all others together.
function chosenBy(recorded, { temperature, k, p }) {
  const { listed, rest } = exponentials(recorded, temperature);
  const cutByK = k !== null && k < listed.length + recorded.others;
  const kept = cutByK ? listed.slice(0, k) : listed;
  const beside = cutByK ? 0 : rest;
  const count = nucleusOf(kept, beside, p);
  const isBeyond = count > kept.length; // what it takes is not all recorded, so that nothing is cut
  const others = cutByK || (p < 1 && !isBeyond) ? null : beside;
  const left = kept.slice(0, count);
  const total = left.reduce((sum, value) => sum + value, others ?? 0);
  const probabilities = listed.map((value, i) => (i < left.length ? value / total : null));
  return { probabilities, others: others === null ? null : others / total, count: left.length, isBeyond };
}

// How many of the kept tokens it takes to reach p; one more than there are where they do not reach it.
function nucleusOf(kept, rest, p) {
  if (p >= 1) return kept.length;
  const total = kept.reduce((sum, value) => sum + value, rest);
  let reached = 0;
  for (let i = 0; i < kept.length; i++) {
    reached += kept[i];
    if (reached >= p * total - 1e-9) return i + 1;
  }
  return kept.length + 1;
}

const isAsIs = ({ temperature, k, p }) => temperature === 1 && k === null && p >= 1;

/* Words and bars */

function sayChoosing() {
  if (!WRITTEN) {
    title("choosing", say("choosing-title-labels"));
    const [first] = data.labels;
    return prose("choosing", say("choosing-prose-labels", { first: `“${first.label}”`, value: likely(first.probability) }));
  }
  const { ids, logits } = recordedChoices(place.step);
  const { probabilities } = chosenBy(recordedChoices(place.step), { temperature: 1, k: null, p: 1 });
  const { piece, id } = writtenAt(place.step);
  title("choosing", say("choosing-title-of", { token: quoted(piece) }));
  const values = { count: grouped(data.choices.count), first: quoted(pieceOf(ids[0])), value: likely(probabilities[0]) };
  const sentences = [say("choosing-prose", values)];
  const less = (logits[0] - logits[1]).toFixed(2);
  const times = Math.exp(less); // of the number that is shown, so that it can be computed again
  if (ids.length > 1) sentences.push(say("choosing-second", { second: quoted(pieceOf(ids[1])), less, times: times < 10 ? times.toFixed(1) : grouped(Math.round(times)) }));
  const rank = ids.indexOf(id);
  if (rank > 0) sentences.push(say("choosing-stands", { token: quoted(piece), rank: rank + 1 }));
  if (rank < 0) sentences.push(say("choosing-stands-far", { token: quoted(piece), listed: ids.length, value: likely(probabilityAt(place.step)) }));
  prose("choosing", joined(sentences));
}

function drawChoosingTable() {
  const { heads, rows } = WRITTEN ? tokenRows() : labelRows();
  const head = make("tr", {}, ...heads.map((key) => make("th", { scope: "col" }, say(`choosing-${key}`))));
  choosing.table.classList.toggle("is-set", heads.includes("changed"));
  choosing.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

function tokenRows() {
  const recorded = recordedChoices(place.step);
  const asIs = chosenBy(recorded, { temperature: 1, k: null, p: 1 });
  const now = chosenBy(recorded, choosing);
  const { id } = writtenAt(place.step);
  const isSet = !isAsIs(choosing);
  const shown = Array.from(recorded.ids.slice(0, LISTED), (_, i) => i);
  const rank = recorded.ids.indexOf(id);
  if (rank >= LISTED) shown.push(rank);
  const rows = shown.map((i) => {
    const name = label(pieceOf(recorded.ids[i]));
    return choiceRow(name, recorded.logits[i].toFixed(2), asIs.probabilities[i], isSet ? now.probabilities[i] : undefined, recorded.ids[i] === id);
  });
  if (recorded.ids.length + recorded.others > shown.length) rows.push(othersRow(recorded, shown, asIs, isSet ? now : null));
  sayKept(now, recorded);
  return { heads: ["token", "logit", "probability", ...(isSet ? ["changed"] : [])], rows };
}

// All that has no row of its own.
function othersRow(recorded, shown, asIs, now) {
  const unlisted = [...recorded.ids.keys()].filter((i) => !shown.includes(i));
  const sum = ({ probabilities, others }) => {
    const left = [...unlisted.map((i) => probabilities[i]), others].filter((each) => each !== null);
    return left.length ? left.reduce((total, each) => total + each, 0) : null;
  };
  const count = unlisted.length + recorded.others;
  return choiceRow(say("choosing-others", { count: grouped(count) }), "", sum(asIs), now ? sum(now) : undefined, false, "others");
}

function labelRows() {
  choosing.said.textContent = "";
  const rows = data.labels.map(({ label: name, probability }, i) => choiceRow(name, null, probability, undefined, i === place.label));
  return { heads: ["label", "probability"], rows };
}

function choiceRow(name, logit, probability, changed, isChosen, kind = "") {
  const cut = changed === null;
  const row = make("tr", { class: `${kind}${isChosen ? " chosen" : ""}${cut ? " cut" : ""}` });
  row.append(make("th", { scope: "row", lang: WRITTEN && !kind ? SIDES[WRITTEN].lang : null }, name));
  if (logit !== null) row.append(make("td", { class: "number" }, minus(logit)));
  row.append(chanceCell(probability, "as-is"));
  if (changed !== undefined) row.append(cut ? make("td", { class: "chance" }, say("choosing-cut")) : chanceCell(changed, "set"));
  return row;
}

function chanceCell(probability, kind) {
  const filled = make("i");
  filled.style.setProperty("--size", choosing.isLog ? Math.max(1 - Math.log(Math.max(probability, LEAST_SHOWN)) / Math.log(LEAST_SHOWN), 0) : probability);
  return make("td", { class: `chance ${kind}` }, make("span", { class: "meter", "aria-hidden": "true" }, filled), make("span", {}, likely(probability)));
}

function sayKept({ count, isBeyond }, { ids }) {
  const isCut = choosing.k !== null || choosing.p < 1;
  const values = { count: isBeyond ? ids.length : count, p: choosing.p.toFixed(2) };
  choosing.said.textContent = isCut ? say(isBeyond ? "choosing-kept-more" : "choosing-kept", values) : "";
}
