/* A page for one model alone: its weights come in files of their own, a worker computes. */

const card = weftModel.card;
let language = (navigator.language ?? "en").startsWith("zh") ? "zh" : "en";

const byId = (id) => document.getElementById(id);
const say = (key, values = {}) => WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// The name of a language; its code where the browser knows none.
function nameOf(code) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

/* The worker */

// The script that a worker runs is this page’s own: a worker may load no file where the page is one.
const source = `"use strict";\nconst engine = (${weftEngine})();\nengine.serveModel(self);`;
const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
let last = 0;
let hear = null;

worker.onmessage = ({ data: answer }) => {
  if (answer.id === last) hear(answer);
};

// Ask the worker; what was asked before is not heard any more.
function ask(request, heard, transfer = []) {
  last += 1;
  hear = heard;
  worker.postMessage({ id: last, ...request }, transfer);
}

/* The weights */

const waiting = new Map(); // what takes a file’s bytes, by its number

// A file of weights calls this with what it holds.
function weftWeights(number, base64) {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  waiting.get(number)(bytes);
}

function fileOf(number, name) {
  return new Promise((done, failed) => {
    waiting.set(number, done);
    document.head.append(make("script", { src: name, error: () => failed(name) }));
  });
}

async function load() {
  const whole = new Uint8Array(weftModel.size);
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  let done = 0;
  for (const [number, name] of weftModel.files.entries()) {
    byId("status").textContent = say("loading", { done: megabytes(done), size: megabytes(whole.length) });
    const bytes = await fileOf(number, name);
    whole.set(bytes, done);
    done += bytes.length;
  }
  await new Promise((heard) => ask({ kind: "load", card, buffer: whole.buffer }, heard, [whole.buffer]));
}

/* What every task has */

const state = { text: "", answer: "", isBusy: false, unknown: ["none", []] };
const isRightToLeft = (code) => /^(ar|he|fa|ur|yi|ps|sd|ug)\b/.test(code);

function field(changed) {
  const code = card.src_lang ?? card.lang;
  const area = make("textarea", {
    id: "text", "aria-label": say("text"), placeholder: say(`placeholder-${card.task}`), lang: code,
    dir: isRightToLeft(code) ? "rtl" : "auto", spellcheck: "false",
    input: () => { state.text = area.value; changed(); },
  });
  area.value = state.text;
  return area;
}

const tool = (key, click, more = {}) => make("button", { type: "button", class: "tool", click, ...more }, say(key));

function clearTool(changed) {
  return tool("clear", () => {
    state.text = byId("text").value = "";
    changed();
    byId("text").focus();
  });
}

function copyTool() {
  const button = tool("copy", async () => {
    await navigator.clipboard.writeText(state.answer);
    button.textContent = say("copied");
    setTimeout(() => (button.textContent = say("copy")), 1500);
  });
  return button;
}

function tellProblem(answer, isWhole = true, key = "cut") {
  const problem = answer?.error ? (answer.error === "diverged" ? say("diverged") : say("error", answer)) : isWhole ? "" : say(key);
  byId("problem").textContent = problem;
  byId("problem").hidden = !problem;
}

// The words that training never had; of many the first ones. `extent` says what to say of them.
const MOST_UNKNOWN = 10;
function tellUnknown(extent, words) {
  state.unknown = [extent, words];
  const isSilent = extent === "none";
  const named = words.slice(0, MOST_UNKNOWN).map((word) => `“${word}”`).join(language === "zh" ? "、" : ", ");
  const more = words.length - MOST_UNKNOWN;
  byId("unknown").textContent = isSilent ? "" : say(`unknown-${extent}`, { words: named + (more > 0 ? say("unknown-more", { more }) : "") });
}

const unknownBox = () => make("p", { id: "unknown", class: "notice", role: "status" });
const problemBox = () => make("p", { id: "problem", class: "notice", role: "alert", hidden: true });

// What is typed is answered a moment later, and what was asked before given up.
let timer;
function soon(work) {
  clearTimeout(timer);
  timer = setTimeout(work, 120);
}

/* Tasks */

function drawTranslation() {
  const output = make("output", { id: "answer", class: "result", for: "text", lang: card.tgt_lang, dir: isRightToLeft(card.tgt_lang) ? "rtl" : "auto", "aria-label": say("translation") });
  output.textContent = state.answer;
  const source = make("div", { class: "side" }, field(() => soon(translate)), make("div", { class: "foot" }, clearTool(translate)));
  const target = make("div", { class: "side" }, output, make("div", { class: "foot" }, copyTool(), make("span", { id: "took", class: "took" })));
  byId("view").replaceChildren(make("div", { class: "sheet pair" }, source, target), unknownBox(), problemBox());
  tellUnknown(...state.unknown);
}

function translate() {
  const began = performance.now();
  byId("answer").classList.add("stale");
  ask({ kind: "translate", text: state.text }, (answer) => {
    if (answer.text !== undefined) byId("answer").textContent = state.answer = answer.text;
    if (!answer.done) return;
    byId("answer").classList.remove("stale");
    byId("took").textContent = state.answer ? say("took", { time: ((performance.now() - began) / 1000).toFixed(2) }) : "";
    tellUnknown(answer.unknown?.length ? "translation" : "none", answer.unknown ?? []);
    tellProblem(answer, answer.isWhole ?? true);
  });
}

const settings = {
  temperature: card.decoding?.temperature ?? 1,
  limit: card.decoding?.max_new_tokens ?? 100,
  seed: 1,
};

function settingField(name, least, step) {
  const hint = `${name}-hint`;
  const input = make("input", { id: name, type: "number", min: least, step, value: settings[name], "aria-describedby": hint, input: () => {
    if (input.checkValidity() && input.value !== "") settings[name] = Number(input.value);
  } });
  return make("label", {}, make("span", {}, say(name)), input, make("small", { id: hint }, WORDS[language][hint] ?? ""));
}

function drawGeneration() {
  const write = make("button", { type: "button", class: "main", id: "write", click: toggleWriting }, say(state.isBusy ? "stop" : "write"));
  const area = field(() => {});
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    toggleWriting();
  });
  const controls = make("div", { class: "settings" }, settingField("temperature", 0, 0.1), settingField("limit", 1, 1), settingField("seed", 0, 1));
  const output = make("output", { id: "answer", class: "written", for: "text", lang: card.lang, dir: "auto", "aria-label": say("written") });
  byId("view").replaceChildren(
    make("div", { class: "sheet" }, area, controls, make("div", { class: "foot" }, write, clearTool(() => {}))),
    problemBox(),
    make("div", { class: "sheet paper" }, output, make("div", { class: "foot" }, copyTool())),
  );
  drawWritten();
}

let given = "";

function drawWritten() {
  byId("answer").replaceChildren(make("span", { class: "given" }, given), state.answer.slice(given.length));
}

function toggleWriting() {
  if (state.isBusy) return ask({ kind: "stop" }, endWriting);
  given = state.answer = state.text;
  state.isBusy = true;
  byId("write").textContent = say("stop");
  const { decoding } = card;
  const all = { ...settings, topK: decoding.top_k, topP: decoding.top_p, minP: decoding.min_p, repetitionPenalty: decoding.repetition_penalty };
  ask({ kind: "generate", prompt: given, settings: all }, (answer) => {
    state.answer += answer.text ?? "";
    drawWritten();
    if (answer.done) endWriting(answer);
  });
}

function endWriting(answer) {
  state.isBusy = false;
  byId("write").textContent = say("write");
  tellProblem(answer);
}

function drawClassification() {
  const list = make("ol", { id: "answer", class: "labels", "aria-label": say("labels"), "aria-live": "polite" });
  byId("view").replaceChildren(
    make("div", { class: "sheet" }, field(() => soon(classify)), make("div", { class: "foot" }, clearTool(classify))),
    problemBox(),
    make("div", { class: "sheet paper" }, list),
    unknownBox(),
  );
  if (state.answer) drawLabels(state.answer);
  tellUnknown(...state.unknown);
}

function classify() {
  if (!state.text.trim()) {
    state.answer = "";
    byId("answer").replaceChildren();
    tellUnknown("none", []);
    return;
  }
  ask({ kind: "classify", text: state.text }, (answer) => {
    if (answer.probabilities) drawLabels((state.answer = answer.probabilities));
    tellUnknown(answer.extent ?? "none", answer.unknown ?? []);
    tellProblem(answer, !answer.cut, "cut-text");
  });
}

function drawLabels(probabilities) {
  const order = probabilities.map((_, i) => i).sort((a, b) => probabilities[b] - probabilities[a]);
  const rows = order.slice(0, 50).map((i) => {
    const bar = make("i");
    bar.style.setProperty("--share", probabilities[i]);
    const isChosen = card.multi_label ? probabilities[i] >= 0.5 : i === order[0];
    return make("li", { class: isChosen ? "chosen" : "" }, make("span", {}, card.labels[i]), make("span", { class: "bar", "aria-hidden": "true" }, bar), make("span", { class: "number" }, probabilities[i].toFixed(3)));
  });
  byId("answer").replaceChildren(...rows);
}

/* The page */

const TASKS = { translation: drawTranslation, "language-modelling": drawGeneration, classification: drawClassification };

function draw() {
  document.documentElement.lang = language;
  const names = card.src_lang ? { from: nameOf(card.src_lang), to: nameOf(card.tgt_lang) } : {};
  byId("title").textContent = document.title = weftModel.title || say(`title-${card.task}`, names);
  const about = [say("about", { model: weftModel.about[language] })];
  if (weftModel.licence) about.push(say("licence", weftModel));
  byId("about").textContent = [...about, say("made")].join(language === "zh" ? "" : " ");
  const choose = (chosen) => () => { language = chosen; draw(); };
  byId("languages").replaceChildren(
    ...[["en", "English"], ["zh", "中文"]].map(([code, name]) => make("button", { type: "button", class: "tool", lang: code, "aria-pressed": `${code === language}`, click: choose(code) }, name)),
  );
  if (isReady) TASKS[card.task]();
}

let isReady = false;
draw();
load().then(
  () => { isReady = true; draw(); byId("text").focus(); },
  (file) => { byId("status").textContent = say("failed", { file }); byId("status").classList.add("refused"); },
);
