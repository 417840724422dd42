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
    "live-paper": "Switched off: {names}.",
    "live-between": "; ",
    "live-part-self": "layer {layer} · looks back (self-attention)",
    "live-part-around": "layer {layer} · looks around (self-attention)",
    "live-part-cross": "layer {layer} · looks at the source (cross-attention)",
    "live-part-feed-forward": "layer {layer} · feed-forward",
    "live-tower-encoder": "encoder, ",
    "live-tower-decoder": "",
    "live-whole": "with all of it: {text}",
    "live-proof": "This browser computes what Weft computed of “{text}”: {count} numbers are apart by at most {most}.",
    "live-no-proof": "This browser does not compute what Weft computed of “{text}”: numbers are apart by up to {most}.",
    "live-rounding":
      "The weights are rounded to 16 bits. On “{text}” that changes a logit by {logit} at most; {answers}.",
    "live-answers-same": "its answer stays the same",
    "live-answers-other": "its answer is another one",
    "live-answers-one": "of {count} sentences one has another answer",
    "live-answers": "of {count} sentences {changed} have another answer",
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
    "live-paper": "已关掉：{names}。",
    "live-between": "；",
    "live-part-self": "第 {layer} 层 · 回看（自注意力）",
    "live-part-around": "第 {layer} 层 · 环顾（自注意力）",
    "live-part-cross": "第 {layer} 层 · 看源文（交叉注意力）",
    "live-part-feed-forward": "第 {layer} 层 · 前馈",
    "live-tower-encoder": "编码器，",
    "live-tower-decoder": "",
    "live-whole": "全部打开时：{text}",
    "live-proof": "对“{text}”，此浏览器算出的与 Weft 算出的相同：{count} 个数相差至多 {most}。",
    "live-no-proof": "对“{text}”，此浏览器算出的与 Weft 不同：相差达 {most}。",
    "live-rounding": "权重舍入到 16 位。在“{text}”上，一个 logit 至多因此改变 {logit}；{answers}。",
    "live-answers-same": "答案不变",
    "live-answers-other": "答案不同",
    "live-answers-one": "{count} 句话中有一句的答案不同",
    "live-answers": "{count} 句话中有 {changed} 句的答案不同",
  },
});

{
const stored = (id) => document.getElementById(id);
const recordedData = whole;
const settings = JSON.parse(stored("live-settings").textContent); // card, asked, proof, rounding, constant
const live = { text: recordedData.text, off: { parts: [], heads: [], source: [] }, beamSize: settings.beamSize, isProven: null, whole: null };

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
  drawWhole();
  if (!live.text.trim()) {
    lastAsked += 1; // what is on its way is of no use
    showAgain();
    return sayLive("live-empty");
  }
  const began = performance.now();
  sayLive("live-busy");
  const off = structuredClone(live.off);
  let early = {};
  askThread({ kind: "inside", text: live.text, asked: askedOf() }, (answer) => {
    if (answer.error) return sayError(answer.error);
    if (answer.said !== undefined) return sayTranslation(answer.said);
    if (answer.early) {
      early = { ...answer.early, off };
      return drawLooks(early);
    }
    sayLive("live-took", { time: ((performance.now() - began) / 1000).toFixed(2) });
    drawRest({ ...early, ...answer.data, off });
  });
}

function sayError(error) {
  showAgain();
  sayLive(error === "diverged" ? "live-diverged" : "live-error", { error });
}

// The translation is there before the pictures are.
function sayTranslation(text) {
  const [target] = [...stored("texts").querySelectorAll("dd")].slice(-1);
  target.textContent = text;
  happen("said");
}

// Say so to who waits for it.
const happen = (detail) => document.dispatchEvent(new CustomEvent("weft-live", { detail }));

/* Drawing: the looks as soon as the maps of attention are there, all else after that, each section in a turn of its own,
   so that what is typed meanwhile is heard. What is not drawn yet stands there as it was and cannot be used. */

const FIRST = "looks";
const SOON = ["loom", "wrote"];
let shown = recordedData; // the last data that were whole

function drawLooks(found) {
  const one = shownSections.find(({ id }) => id === FIRST);
  if (!one || !one.applies(found)) return;
  drawNew(found);
  drawSection(one);
  isHeld = true;
  happen("looks");
}

// The head of the page is drawn at once; of the sections none.
function drawNew(found) {
  isHeld = false;
  whole = data = found;
  findPlace();
  if (!isHeadChosen()) place.tint = "shares"; // as soon as they are there
  drawHead();
  forgetGone();
  undrawn.clear();
  for (const one of shownSections) {
    undrawn.add(one);
    byId(one.id).inert = true;
  }
  byId(FIRST)?.toggleAttribute("inert", false);
}

// Whether the reader chose a head, whose looks the ribbon then has in another text too.
const isHeadChosen = () => ["tint", "kind", "layer", "head"].some((name) => name in readFragment());

async function drawRest(found) {
  shown = found;
  const { text, beamSize } = live;
  if (!hasOff()) live.whole = { text, beamSize, said: found.translation ?? found.next?.[0].piece ?? found.labels?.[0].label };
  live.off.source = live.off.source.filter((index) => index < (found.source?.ids.length ?? 0));
  const own = lastAsked;
  if (!isHeld) drawNew(found);
  isHeld = false;
  whole = data = found;
  readText();
  placeRibbon();
  const names = (sections) => sections.map(({ id }) => id).join();
  if (names(sectionsOf(found)) !== names(shownSections)) begin(found, document);
  const first = shownSections.find((one) => one.id === FIRST && !undrawn.has(one));
  first?.place(new Set(["head"])); // what is known of the shares by now
  const isSoon = ({ id }) => SOON.includes(id);
  for (const some of [shownSections.filter(isSoon), shownSections]) {
    for (const one of some) {
      if (!undrawn.has(one)) continue;
      await new Promise((done) => setTimeout(done));
      if (own !== lastAsked) return;
      drawSection(one);
    }
    happen(some === shownSections ? "drawn" : "shares");
  }
  nameDocument();
  writeFragment();
  askMore();
}

// The last data once more, where those of another text did not come, or are not all drawn: of these a translation may stand
// there already.
function showAgain() {
  if (!isHeld && !undrawn.size) return drawTexts();
  isHeld = false;
  begin(shown, document);
}

// What is asked when all is drawn: what the model answers with all of it, and the proof where it was given up.
function askMore() {
  const { text, beamSize } = live;
  if (isWholeKnown()) return live.isProven ?? prove();
  askThread({ kind: "whole", text, asked: askedOf() }, (answer) => {
    if (answer.error) return;
    live.whole = { text, beamSize, said: answer.said };
    drawWhole();
    live.isProven ?? prove();
  });
}

const isWholeKnown = () => live.whole?.text === live.text && live.whole.beamSize === live.beamSize;

function drawWhole() {
  const said = recordedData.task === "language-modelling" ? (piece) => quoted(piece) : (text) => text;
  stored("live-whole").textContent = hasOff() && isWholeKnown() ? say("live-whole", { text: said(live.whole.said) }) : "";
}

/* The proof: the recorded numbers, computed again */

function prove() {
  const asked = { ...settings.asked, constant: settings.constant, beamSize: settings.proof.beamSize, off: {} };
  let early = {};
  askThread({ kind: "inside", text: settings.proof.text, asked }, (answer) => {
    if (answer.early) early = answer.early;
    if (!answer.done) return;
    live.isProven = answer.error ? { most: Infinity, count: 0 } : differenceOf({ ...early, ...answer.data });
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

// What is being done; in another language it is said again.
function sayLive(...said) {
  live.status = said;
  stored("live-said").textContent = say(...said);
}

function panel() {
  const area = make("textarea", { id: "live-text", rows: 2, spellcheck: "false", dir: "auto", "aria-describedby": "live-said", input: () => {
    live.text = area.value;
    live.off.source = []; // another text has other tokens
    compute();
  } });
  area.value = live.text;
  return make(
    "div", { class: "live", id: "live" },
    make("label", { for: "live-text", id: "live-label" }), area,
    make("p", { class: "caption", id: "live-said", role: "status" }),
    make("div", { class: "controls", id: "live-search" }),
    make("div", { class: "live-switches", id: "live-switches", role: "group" }),
    make("p", { class: "live-paper", id: "live-paper" }),
    make("p", { class: "caption", id: "live-whole" }),
    make("p", { class: "caption", id: "live-proof" }),
  );
}

function drawLive() {
  stored("live-label").textContent = say("live-text");
  stored("live-text").lang = recordedData.src_lang ?? recordedData.lang;
  drawSearch();
  drawSwitches();
  drawWhole();
  if (live.status) sayLive(...live.status);
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
  const ofOne = changed ? "live-answers-other" : "live-answers-same";
  const ofMany = changed === 1 ? "live-answers-one" : "live-answers";
  const answers = say(count === 1 ? ofOne : ofMany, { count: grouped(count), changed: grouped(changed) });
  said.push(say("live-rounding", { text: settings.proof.text, logit: amount(logit), answers }));
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
  return say("live-off-head", { layer: Number(layer) + 1, head: Number(head) + 1, kind: say(`kind-${kind}`).toLowerCase() });
}

function partName(key) {
  const [tower, layer, part] = key.split(".");
  return say(`live-tower-${tower}`) + say(`live-part-${tower === "encoder" && part === "self" ? "around" : part}`, { layer: Number(layer) + 1 });
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
  stored("live-paper").textContent = hasOff() ? say("live-paper", { names: namesOfOff().join(say("live-between")) }) : "";
  box.setAttribute("aria-label", say("live-off"));
  box.replaceChildren(make("span", {}, say("live-off")), ...found);
  if (hadFocus) box.querySelector("button")?.focus({ preventScroll: true });
}

const namesOfOff = () => [...live.off.heads.map(headName), ...live.off.parts.map(partName), ...live.off.source.map(tokenName)];

function partChoice(parts) {
  const options = [["", say("live-off-part")], ...parts.map((key) => [key, partName(key)])];
  const list = make("select", { "aria-label": say("live-off-part"), change: () => list.value && toggle("parts", list.value) });
  list.append(...options.map(([value, text]) => make("option", { value }, text)));
  return list;
}

/* The address keeps the text and what is switched off, so that they are there when the page is loaded again. It never
   leaves the browser: what stands behind # is sent to no server. Layers, heads and tokens are counted from 1 in it. */

const countedFromOne = (key) => key.replace(/\d+/g, (count) => Number(count) + 1);
const countedFromZero = (key) => key.replace(/\d+/g, (count) => Number(count) - 1);

const fieldsOfPlace = fieldsOfAddress;
fieldsOfAddress = function fieldsOfPlaceAndText() {
  const fields = fieldsOfPlace();
  const { parts, heads, source } = live.off;
  const off = [...parts, ...heads, ...source.map((index) => `token.${index}`)].map(countedFromOne);
  if (live.text !== recordedData.text) fields.set("text", live.text);
  if (off.length) fields.set("off", off.join(" "));
  if (live.beamSize !== settings.beamSize) fields.set("beam", live.beamSize);
  return fields;
};

// Take from an address what it says of these; return whether that is something else than before.
function takeAddress(hash) {
  const fields = new URLSearchParams(hash.slice(1));
  const before = JSON.stringify([live.text, live.off, live.beamSize]);
  live.text = fields.get("text") ?? recordedData.text;
  live.beamSize = fields.get("beam") === "1" ? 1 : settings.beamSize;
  live.off = offOf((fields.get("off") ?? "").split(" ").filter(Boolean).map(countedFromZero));
  return JSON.stringify([live.text, live.off, live.beamSize]) !== before;
}

const headKeys = () =>
  Object.entries(KINDS).flatMap(([kind, { layers, heads }]) => Array.from({ length: layers * heads }, (_, i) => `${kind}.${Math.floor(i / heads)}.${i % heads}`));

// What this model does not have is left out, and what is named twice is there once.
function offOf(named) {
  const keys = [...new Set(named)];
  const among = (known) => keys.filter((key) => known.includes(key));
  const source = keys.filter((key) => /^token\.\d+$/.test(key)).map((key) => Number(key.slice("token.".length)));
  return { parts: among(partKeys()), heads: among(headKeys()), source: READ === "source" ? source : [] };
}

addEventListener("hashchange", ({ newURL }) => {
  if (!takeAddress(new URL(newURL).hash)) return;
  stored("live-text").value = live.text;
  compute();
  drawLive();
});

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

const isOther = takeAddress(location.hash);
stored("texts").before(panel());
drawLive();
const weightBytes = bytesOf(stored("weights").textContent.trim());
askThread({ kind: "load", card: settings.card, buffer: weightBytes.buffer }, isOther ? compute : prove, [weightBytes.buffer]);
}
