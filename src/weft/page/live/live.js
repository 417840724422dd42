/* A page whose model is inside of it: what is typed is computed here, and every picture follows. */

speak({
  en: {
    "live-text": "Type a sentence: the model in this page reads it, and all pictures follow",
    "live-busy": "computing …",
    "live-took": "computed here in {time} s",
    "live-empty": "There is no text to look at.",
    "live-diverged": "The model’s numbers are not finite: it cannot be used.",
    "live-error": "This went wrong: {error}",
    "live-greedy": "greedy",
    "live-beam": "beam of {size}",
    "live-search": "Search",
    "live-off": "Switch off and see what changes:",
    "live-off-head": "head {head} of layer {layer}, {kind}",
    "live-off-part": "a part …",
    "live-off-token": "the token {piece}",
    "live-on": "Switch on again: {name}",
    "live-part-self": "layer {layer} · self-attention",
    "live-part-cross": "layer {layer} · look at the source",
    "live-part-feed-forward": "layer {layer} · feed-forward",
    "live-tower-encoder": "encoder, ",
    "live-tower-decoder": "",
    "live-whole": "with all of it: {text}",
    "live-proof": "This browser computes what Weft computed of “{text}”: {count} numbers are apart by at most {most}.",
    "live-no-proof": "This browser does not compute what Weft computed of “{text}”: numbers are apart by up to {most}.",
    "live-rounding":
      "The weights are rounded to 16 bits. On this sentence that changes a logit by {logit} at most; of {count} sentences {changed} have another answer.",
  },
  zh: {
    "live-text": "输入一句话：此页中的模型会读它，所有图都随之改变",
    "live-busy": "正在计算……",
    "live-took": "在本机用 {time} 秒算出",
    "live-empty": "没有可看的文字。",
    "live-diverged": "模型的数值不是有限数：无法使用。",
    "live-error": "出错了：{error}",
    "live-greedy": "贪心",
    "live-beam": "束宽 {size}",
    "live-search": "搜索",
    "live-off": "关掉一部分，看看有什么变化：",
    "live-off-head": "第 {layer} 层第 {head} 个头，{kind}",
    "live-off-part": "一个部件……",
    "live-off-token": "词元{piece}",
    "live-on": "重新打开：{name}",
    "live-part-self": "第 {layer} 层 · 自注意力",
    "live-part-cross": "第 {layer} 层 · 看源文",
    "live-part-feed-forward": "第 {layer} 层 · 前馈",
    "live-tower-encoder": "编码器，",
    "live-tower-decoder": "",
    "live-whole": "全部打开时：{text}",
    "live-proof": "对“{text}”，此浏览器算出的与 Weft 算出的相同：{count} 个数相差至多 {most}。",
    "live-no-proof": "对“{text}”，此浏览器算出的与 Weft 不同：相差达 {most}。",
    "live-rounding": "权重舍入到 16 位。在这句话上，一个 logit 至多因此改变 {logit}；{count} 句话中有 {changed} 句的答案不同。",
  },
});

{
const stored = (id) => document.getElementById(id);
const recordedData = whole;
const settings = JSON.parse(stored("live-settings").textContent); // card, asked, proof, rounding, constant
const live = { text: recordedData.text, off: { parts: [], heads: [], source: [] }, beamSize: settings.beamSize, isProven: null, whole: "" };

/* The worker */

const thread = new Worker(URL.createObjectURL(new Blob([`"use strict";\nconst engine = (${weftEngine})();\nengine.serveModel(self);`], { type: "text/javascript" })));
let lastAsked = 0;
let hearAnswer = null;
thread.onmessage = ({ data: answer }) => {
  if (answer.id === lastAsked) hearAnswer(answer);
};

function askThread(request, heard, transfer = []) {
  lastAsked += 1;
  hearAnswer = heard;
  thread.postMessage({ id: lastAsked, ...request }, transfer);
}

const askedOf = () => ({ ...settings.asked, constant: settings.constant, beamSize: live.beamSize, off: live.off });
const hasOff = () => Object.values(live.off).some((list) => list.length);

function compute() {
  if (!live.text.trim()) return sayLive(say("live-empty"));
  const began = performance.now();
  sayLive(say("live-busy"));
  askThread({ kind: "inside", text: live.text, asked: askedOf() }, (answer) => {
    if (answer.error) return sayLive(answer.error === "diverged" ? say("live-diverged") : say("live-error", answer));
    if (answer.said !== undefined) return sayTranslation(answer.said);
    const said = answer.data.translation ?? answer.data.labels?.[0].label;
    if (!hasOff()) live.whole = said;
    show(answer.data);
    sayLive(say("live-took", { time: ((performance.now() - began) / 1000).toFixed(2) }));
    happen("drawn");
  });
}

// The translation is there before the pictures are.
function sayTranslation(text) {
  const [target] = [...stored("texts").querySelectorAll("dd")].slice(-1);
  target.textContent = text;
  happen("said");
}

// Say so to who waits for it.
const happen = (detail) => document.dispatchEvent(new CustomEvent("weft-live", { detail }));

// Draw the data; what is being typed in stays where it is.
function show(found) {
  const area = stored("live-text");
  const isTyping = document.activeElement === area;
  begin(found, document);
  if (isTyping) area.focus({ preventScroll: true });
}

let waiting;
function computeSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(compute, 60);
}

/* The proof: the recorded numbers, computed again */

function prove() {
  const asked = { ...settings.asked, constant: settings.constant, beamSize: settings.proof.beamSize, off: {} };
  askThread({ kind: "inside", text: settings.proof.text, asked }, (answer) => {
    if (!answer.done) return;
    live.isProven = answer.error ? { most: Infinity, count: 0 } : differenceOf(answer.data);
    drawLive();
  });
}

// The largest difference of the recorded numbers from those that were computed here, and how many there are.
function differenceOf(found) {
  let most = 0;
  let count = 0;
  for (const [path, leaf] of Object.entries(settings.proof.numbers)) {
    const expected = arrayOf(leaf).values;
    const own = path.split(".").reduce((inner, key) => inner?.[key], found)?.values;
    if (own?.length !== expected.length) return { most: Infinity, count };
    expected.forEach((value, i) => (most = Math.max(most, Math.abs(value - own[i]))));
    count += expected.length;
  }
  return { most, count };
}

/* The panel: the sentence as a field, and what is switched off */

const sayLive = (text) => (stored("live-said").textContent = text);

function panel() {
  const area = make("textarea", { id: "live-text", rows: 2, spellcheck: "false", dir: "auto", "aria-describedby": "live-said", input: () => {
    live.text = area.value;
    live.off.source = [];
    computeSoon();
  } });
  area.value = live.text;
  return make(
    "div", { class: "live", id: "live" },
    make("label", { for: "live-text", id: "live-label" }), area,
    make("p", { class: "caption", id: "live-said", role: "status" }),
    make("div", { class: "controls", id: "live-search" }),
    make("div", { class: "live-switches", id: "live-switches", role: "group" }),
    make("p", { class: "caption", id: "live-whole" }),
    make("p", { class: "caption", id: "live-proof" }),
  );
}

function drawLive() {
  stored("live-label").textContent = say("live-text");
  stored("live-text").lang = recordedData.src_lang ?? recordedData.lang;
  drawSearch();
  drawSwitches();
  stored("live-whole").textContent = hasOff() && live.whole ? say("live-whole", { text: live.whole }) : "";
  stored("live-proof").textContent = proofSaid();
}

function drawSearch() {
  if (recordedData.task !== "translation") return;
  const sizes = [...new Set([1, settings.beamSize])];
  const named = sizes.map((size) => [size, size === 1 ? say("live-greedy") : say("live-beam", { size })]);
  const choose = (size) => {
    live.beamSize = Number(size);
    compute();
  };
  if (sizes.length > 1) stored("live-search").replaceChildren(choices(say("live-search"), "live-search", named, live.beamSize, choose));
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

// A small number as people write it: 2.9 × 10⁻⁶.
function amount(value) {
  if (value === Infinity) return "∞";
  if (value === 0 || value >= 0.01) return value.toFixed(3).replace(/\.?0+$/, "");
  const [digits, power] = value.toExponential(1).split("e-");
  return `${digits} × 10⁻${Array.from(power, (digit) => SUPERSCRIPTS[digit]).join("")}`;
}

function proofSaid() {
  const said = [];
  if (live.isProven) {
    const holds = live.isProven.most < 1e-4;
    said.push(say(holds ? "live-proof" : "live-no-proof", { text: settings.proof.text, most: amount(live.isProven.most), count: grouped(live.isProven.count) }));
  }
  const { logit, count, changed } = settings.rounding;
  said.push(say("live-rounding", { logit: amount(logit), count: grouped(count), changed: grouped(changed) }));
  return joined(said);
}

/* What can be switched off: the head and the token that the place is at, and any part */

const toggled = (list, item) => (list.includes(item) ? list.filter((one) => one !== item) : [...list, item]);

function toggle(kind, item) {
  live.off[kind] = toggled(live.off[kind], item);
  compute();
  drawLive();
}

function headName(key) {
  const [kind, layer, head] = key.split(".");
  return say("live-off-head", { layer: Number(layer) + 1, head: Number(head) + 1, kind: say(`kind-${kind}`) });
}

function partName(key) {
  const [tower, layer, part] = key.split(".");
  return say(`live-tower-${tower}`) + say(`live-part-${part}`, { layer: Number(layer) + 1 });
}

const tokenName = (index) => say("live-off-token", { piece: quoted(SIDES[READ].pieces[index] ?? "") });

function partKeys() {
  const { encoder_layers: encoder, decoder_layers: decoder } = settings.card.shape ?? { encoder_layers: 0, decoder_layers: 0 };
  const keys = (tower, count, parts) => Array.from({ length: count }, (_, layer) => parts.map((part) => `${tower}.${layer}.${part}`)).flat();
  const inDecoder = recordedData.task === "translation" ? ["self", "cross", "feed-forward"] : ["self", "feed-forward"];
  return [...keys("encoder", encoder, ["self", "feed-forward"]), ...keys("decoder", decoder, inDecoder)];
}

function drawSwitches() {
  const box = stored("live-switches");
  const hadFocus = box.contains(document.activeElement);
  const chip = (kind, item, name) =>
    make("button", { type: "button", class: "quiet off", "aria-pressed": "true", title: say("live-on", { name }), click: () => toggle(kind, item) }, `${name} ×`);
  const offer = (kind, item, name) => make("button", { type: "button", class: "quiet", "aria-pressed": "false", click: () => toggle(kind, item) }, name);
  const found = [
    ...live.off.heads.map((key) => chip("heads", key, headName(key))),
    ...live.off.parts.map((key) => chip("parts", key, partName(key))),
    ...live.off.source.map((index) => chip("source", index, tokenName(index))),
  ];
  if (place.kind && place.head !== MEAN) {
    const key = `${place.kind}.${place.layer}.${place.head}`;
    if (!live.off.heads.includes(key)) found.push(offer("heads", key, headName(key)));
  }
  const index = READ === "source" ? (place.side === READ ? place.token : place.kind === "cross" ? place.key : null) : null;
  if (index !== null && !live.off.source.includes(index)) found.push(offer("source", index, tokenName(index)));
  const parts = partKeys().filter((key) => !live.off.parts.includes(key));
  if (parts.length) found.push(partChoice(parts));
  stored("live-switches").hidden = !found.length;
  box.setAttribute("aria-label", say("live-off"));
  box.replaceChildren(make("span", {}, say("live-off")), ...found);
  if (hadFocus) box.querySelector("button")?.focus({ preventScroll: true });
}

function partChoice(parts) {
  const options = [["", say("live-off-part")], ...parts.map((key) => [key, partName(key)])];
  const list = make("select", { "aria-label": say("live-off-part"), change: () => list.value && toggle("parts", list.value) });
  list.append(...options.map(([value, text]) => make("option", { value }, text)));
  return list;
}

/* The page */

// Where the place is decides what can be switched off.
const goBefore = placeRibbon;
placeRibbon = function placeRibbonAndSwitches() {
  goBefore();
  if (stored("live-switches")) drawSwitches();
};

// In another language the panel says so too.
const drawBefore = draw;
draw = function drawPageAndPanel() {
  drawBefore();
  if (stored("live-switches")) drawLive();
};

stored("texts").before(panel());
drawLive();
const weightBytes = bytesOf(stored("weights").textContent.trim());
askThread({ kind: "load", card: settings.card, buffer: weightBytes.buffer }, prove, [weightBytes.buffer]);
}
