/* The view that translates as one types. */

import { closeAlternatives, closeUnanchored, openAlternatives } from "./alternatives.js";
import { button, complain, complaint, icon, make, select } from "./element.js";
import { drawExamples } from "./examples.js";
import { lengthOf } from "./letters.js";
import { choose, isBlank, recall, translateLines, undo, wayOf } from "./lines.js";
import { Mirror } from "./mirror.js";
import { drawNotes } from "./notes.js";
import { Result } from "./result.js";
import { count, languageName, listed, say } from "./say.js";
import { ask } from "./server.js";
import { settings } from "./settings.js";
import { glossary, state } from "./text.js";

const AUTO = "auto";
// ms without a key, after which what was typed is sent; the first key after a pause is sent at once. A server that answers
// soon is asked soon again, and one that is busy is left in peace.
const LEAST_PAUSE = 60;
const MOST_PAUSE = 400;
const SAMPLE = 2000; // letters that a language is detected by
const SURE = 0.5; // a language below this is called a guess
const CERTAIN = 0.9; // from which on a text is said to look like another language than it is read as

let server;
let parts; // the elements of the view
let mirror;
let result;
let timer;
let current = new AbortController(); // of the request under way
let pause = 150; // as long as the last answer took, within these two
let lastKey = -MOST_PAUSE;
let filing = null; // the module for files, as a promise, once there were some

/* The pair of languages */

const languages = () => server.languages.filter(({ targets }) => targets.length > 0);
const targetsOf = (source) => server.languages.find(({ code }) => code === source)?.targets ?? [];
const allTargets = () => server.languages.map(({ code }) => code).filter((code) => languages().some(({ targets }) => targets.includes(code)));
const sourceNow = () => (state.source === AUTO ? state.detected?.language : state.source);
const UNKNOWN = "und"; // a language that a model's training did not name

// A language as the pickers show it; one that is not known by the models that have it.
function shownName(code) {
  if (code !== UNKNOWN) return languageName(code);
  const models = server.models.filter(({ source, target }) => [source, target].includes(code)).map(({ id }) => id);
  return say("unknown-of", { models: listed(models) });
}

const named = (codes) => codes.map((code) => [code, shownName(code)]);

function modelsOf(source, target) {
  return server.models.filter((model) => model.task === "translation" && model.source === source && model.target === target);
}

// The language of the reader, else the first.
const firstTarget = (targets) => targets.find((code) => code === settings.language) ?? targets[0];

// Languages that the server does not have, or not together, give way to ones that it has.
function settle() {
  const sources = languages().map(({ code }) => code);
  if (![AUTO, ...sources].includes(state.source)) state.source = AUTO;
  if (sources.length === 1) [state.source] = sources;
  const targets = sourceNow() ? targetsOf(sourceNow()) : allTargets();
  if (!targets.includes(state.target)) state.target = firstTarget(targets);
  if (!modelsOf(sourceNow(), state.target).some(({ id }) => id === state.model)) state.model = "";
  if (state.terms.name && !server.glossaries.some(isNamed)) state.terms.name = null;
}

const isNamed = ({ name, pairs }) => name === state.terms.name && pairs.some(([source, target]) => source === sourceNow() && target === state.target);

const route = () => ({ source: sourceNow(), target: state.target, model: state.model, glossary: glossary() });

// What the pickers show is drawn anew only where it changed.
function drawPickers() {
  const seen = JSON.stringify([state.source, state.target, state.model, state.detected, isBlank(state.text)]);
  if (parts.seen === seen) return;
  parts.seen = seen;
  const focused = document.activeElement?.id;
  const sources = named(languages().map(({ code }) => code));
  if (sources.length > 1) sources.unshift([AUTO, say("detect")]);
  const targets = named(state.source === AUTO ? allTargets() : targetsOf(state.source));
  const models = modelsOf(sourceNow(), state.target).map(({ id }) => [id, id]);
  parts.source.replaceChildren(select(say("from"), sources, state.source, chooseSource, { id: "source" }), drawDetected());
  parts.target.replaceChildren(select(say("to"), targets, state.target, chooseTarget, { id: "target" }));
  if (models.length > 1) {
    parts.target.append(select(say("model"), [["", say("first-model")], ...models], state.model, chooseModel, { id: "model" }));
  }
  drawSwap();
  drawTerms();
  document.getElementById(focused)?.focus();
}

function drawDetected() {
  const { detected } = state;
  if (state.source !== AUTO || !detected || isBlank(state.text)) return "";
  const key = detected.confidence < SURE ? "detected-unsure" : "detected";
  return make("span", { class: "detected", id: "detected" }, say(key, { language: languageName(detected.language) }));
}

function chooseSource(source) {
  state.source = source;
  again();
}

function chooseTarget(target) {
  state.target = target;
  again();
}

function chooseModel(model) {
  state.model = model;
  again();
}

const canSwap = () => Boolean(sourceNow()) && sourceNow() !== state.target && targetsOf(state.target).includes(sourceNow());

// The button, which says why it is off.
function drawSwap() {
  const [first] = modelsOf(sourceNow(), state.target);
  const model = server.models.find(({ id }) => id === state.model) ?? first;
  parts.examples.replaceChildren(...drawExamples(model, replaceText));
  parts.swap.disabled = !canSwap();
  const [source, target] = [state.target, sourceNow()].map((code) => code && languageName(code));
  const says = target ? say("no-swap", { source, target }) : say("no-swap-yet");
  parts.swap.title = canSwap() ? say("swap") : says;
  parts.swap.setAttribute("aria-label", parts.swap.title);
}

// The translation becomes the text.
function swap() {
  const text = translations().map((translation) => translation?.text ?? "").join("\n");
  [state.source, state.target] = [state.target, sourceNow()];
  if (!isBlank(text)) parts.text.value = state.text = text;
  again();
}

/* The text and its translation */

const lines = () => state.text.split("\n");
const translations = () => lines().map((line) => (isBlank(line) ? null : recall(line, route())));

function drawText() {
  const found = translations();
  mirror.draw(lines(), found);
  result.draw(found, lines().map(isBlank), state.target);
  closeUnanchored();
  const isEmpty = isBlank(state.text);
  parts.empty.hidden = parts.examples.hidden = !isEmpty;
  parts.result.hidden = isEmpty;
  parts.legend.hidden = !found.some((translation) => translation?.words?.length);
  parts.copy.disabled = parts.look.disabled = isEmpty || !found.some(Boolean);
  parts.clear.hidden = state.text === "";
  parts.undo.hidden = !found.some((translation) => translation?.own);
  parts.notes.replaceChildren(...[isEmpty ? "" : drawLooks(), ...drawNotes(found, server.models)].filter(Boolean));
  drawCount();
}

function drawCount() {
  const [letters, limit] = [lengthOf(state.text), server.limits.max_text];
  parts.count.textContent = letters === 0 ? "" : say("characters", { count: count(letters), limit: count(limit) });
  parts.count.classList.toggle("over", letters > limit);
  return letters <= limit;
}

// The likeliest language that can be translated, before one that nobody can tell.
function knownAmong(guesses) {
  const able = guesses.filter(({ language }) => targetsOf(language).length > 0);
  return able.find(({ language }) => language !== UNKNOWN) ?? able[0] ?? { language: languages()[0]?.code ?? UNKNOWN, confidence: 0 };
}

// What languages the text may be in; the likeliest is kept where there is hardly a doubt.
async function guess(signal) {
  const { languages: guesses } = await ask("v1/detect", { text: state.text.slice(0, SAMPLE) }, signal);
  const [{ language, confidence }] = guesses;
  Object.assign(state, { looks: confidence < CERTAIN ? null : language, lookedAt: state.text });
  return guesses;
}

// That the text looks like another language than it is read as.
function drawLooks() {
  const source = sourceNow();
  if (!state.looks || !source || [source, UNKNOWN].includes(state.looks) || source === UNKNOWN) return "";
  return make("li", { class: "doubt", id: "looks" }, say("looks-like", { language: languageName(state.looks), source: languageName(source) }));
}

// Where the language was chosen, or is the only one, the text is looked at once it is translated.
async function lookAgain(signal) {
  if (state.source === AUTO || state.lookedAt === state.text || server.languages.length < 2) return;
  await guess(signal);
  drawText();
}

// The language of the text, and a target that it can be translated to.
async function settleLanguage(signal) {
  if (state.source === AUTO) state.detected = knownAmong(await guess(signal));
  settle();
  drawPickers();
}

// Most texts stay in their language: they are translated from it while it is looked at again.
async function translateFrom(texts, signal) {
  const before = route();
  const early = before.source ? translateLines(texts, before, signal, drawText) : null;
  early?.catch(() => {}); // it counts only where the language is the same
  await settleLanguage(signal);
  drawText();
  if (JSON.stringify(route()) === JSON.stringify(before)) await early;
  else await translateLines(texts, route(), signal, drawText);
}

async function translate() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  complain(parts.complaint, "");
  parts.side.classList.toggle("busy", !isBlank(state.text));
  try {
    const { text } = state;
    if (isBlank(text)) drawPickers();
    else if (!drawCount()) complain(parts.complaint, say("too-long", { count: count(lengthOf(text)), limit: count(server.limits.max_text) }));
    else {
      await timed(translateFrom(lines(), signal));
      await lookAgain(signal);
    }
  } catch (error) {
    if (signal.aborted) return;
    complain(parts.complaint, error.message);
  }
  if (!signal.aborted) parts.side.classList.remove("busy");
}

async function timed(answer) {
  const began = performance.now();
  await answer;
  pause = Math.min(Math.max(performance.now() - began, LEAST_PAUSE), MOST_PAUSE);
}

// After a key: at once where it is the first after a pause, else when no other one comes.
function typed() {
  state.text = parts.text.value;
  const since = performance.now() - lastKey;
  lastKey = performance.now();
  current.abort();
  clearTimeout(timer);
  closeAlternatives();
  Object.assign(state, { looks: null, lookedAt: null });
  drawText();
  timer = setTimeout(translate, since > pause ? 0 : pause);
}

function again() {
  closeAlternatives();
  settle();
  drawPickers();
  drawText();
  translate();
}

/* Words: what belongs together, and what else could stand there */

function pointAtWord(place) {
  result.dark();
  if (place) mirror.light(place.number, place.word.source);
  else mirror.dark();
}

function pointAtSource(event) {
  const found = mirror.at(event.clientX, event.clientY);
  if (found) {
    mirror.light(found.number, [found.place]);
    result.light(found.number, found.place);
  } else forget();
}

// The word that the caret stands in.
function pointAtCaret() {
  if (document.activeElement !== parts.text) return;
  const before = state.text.slice(0, parts.text.selectionStart);
  const number = before.split("\n").length - 1;
  const at = lengthOf(before.slice(before.lastIndexOf("\n") + 1));
  result.light(number, [at - 0.5, at + 0.5]);
  mirror.dark();
}

function forget() {
  mirror.dark();
  result.dark();
}

function openOthers(element, { number }) {
  const line = lines()[number];
  const chosenRoute = route();
  openAlternatives(element, line, recall(line, chosenRoute), chosenRoute, {
    chosen: (translation, start) => {
      choose(line, chosenRoute, translation);
      drawText();
      if (start !== null) wordAt(number, start)?.focus();
    },
    failed: (error) => complain(parts.complaint, error.message),
  });
}

const wordAt = (number, start) => result.words().find((element) => result.placeOf(element).number === number && element.word.start === start);

function undoChoices() {
  for (const line of lines()) undo(line, route());
  drawText();
  parts.text.focus();
}

async function copy() {
  const text = translations().map((translation) => translation?.text ?? "").join("\n");
  await copied(text);
  const label = parts.copy.querySelector("span");
  label.textContent = say("copied");
  setTimeout(() => (label.textContent = say("copy")), 1500);
}

// Browsers give the clipboard to secure pages alone; a server in one's own network is none.
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = make("textarea", { class: "aside", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function lookInside() {
  const line = lines().find((one) => recall(one, route()));
  const way = wayOf(line, route());
  Object.assign(state.look, { model: way.models[0], text: line, way });
  location.hash = "inside";
}

function replaceText(text) {
  parts.text.value = text;
  typed();
  parts.text.focus();
}

const clear = () => replaceText("");

// A text that is too long for the window scrolls in its pane. A shorter one does not, so that a list of words may stand
// over the pane's edge.
function capPanes(card) {
  const most = Math.max(24 * parseFloat(getComputedStyle(document.documentElement).fontSize), 0.7 * innerHeight);
  card.classList.toggle("tall", Math.max(parts.mirror.scrollHeight, parts.result.scrollHeight) > most);
}

function keepInWindow(card) {
  const observer = new ResizeObserver(() => card.isConnected && capPanes(card));
  observer.observe(parts.mirror);
  observer.observe(parts.result);
}

/* The glossary */

async function openTerms() {
  const isOpen = parts.terms.hidden;
  parts.terms.hidden = !isOpen;
  parts.book.setAttribute("aria-expanded", `${isOpen}`);
  await drawTerms();
  if (isOpen) document.getElementById("terms").focus();
}

async function drawTerms() {
  if (parts.terms.hidden) return;
  const panel = await import("./terms.js");
  panel.drawTerms(parts.terms, server, route(), again);
}

/* The elements */

// What translates files, loaded with the first ones.
async function take(files) {
  if (!filing) {
    filing = import("./files.js");
    (await filing).drawFiles(parts.files);
  }
  (await filing).takeFiles(files, server, fileRoute);
}

function fileButton() {
  const accept = server.formats.join(",");
  const input = make("input", { type: "file", accept, multiple: true, class: "aside", "aria-label": say("a-file"), change: () => take([...input.files]) });
  return make("label", { class: "tool", title: say("drop-here", { endings: listed(server.formats) }) }, icon("file"), make("span", {}, say("a-file")), input);
}

// The languages for a file: those that are chosen, its own where that is to be detected; without a sample the server does.
async function fileRoute(sample, signal) {
  if (state.source !== AUTO) return route();
  if (sample === null) return { source: AUTO, target: state.target, model: "", glossary: glossary() };
  const { languages: guesses } = await ask("v1/detect", { text: sample.slice(0, SAMPLE) }, signal);
  const source = knownAmong(guesses).language;
  const targets = targetsOf(source);
  return { source, target: targets.includes(state.target) ? state.target : firstTarget(targets), model: "", glossary: glossary() };
}

function listenToFiles(card) {
  const holds = (event) => event.dataTransfer?.types.includes("Files");
  card.addEventListener("dragover", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    card.classList.add("dropping");
  });
  card.addEventListener("dragleave", (event) => card.contains(event.relatedTarget) || card.classList.remove("dropping"));
  card.addEventListener("drop", (event) => {
    card.classList.remove("dropping");
    if (!holds(event)) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
}

function makeParts() {
  const text = make("textarea", {
    id: "text", rows: "1", spellcheck: "false", autocapitalize: "none", "aria-label": say("text-to-translate"), placeholder: say("type-text"),
    input: typed, pointermove: pointAtSource, pointerleave: forget, keyup: pointAtCaret,
  });
  text.value = state.text;
  return {
    text,
    mirror: make("div", { class: "mirror", "aria-hidden": "true" }),
    source: make("div", { class: "pick" }),
    target: make("div", { class: "pick" }),
    swap: make("button", { type: "button", class: "swap", title: say("swap"), "aria-label": say("swap"), click: swap }, icon("swap")),
    result: make("div", { class: "result", id: "result", role: "group", "aria-label": say("translation") }),
    empty: make("p", { class: "empty" }, say("translation-empty")),
    examples: make("div", { class: "examples", id: "examples" }),
    count: make("span", { class: "count", id: "count" }),
    clear: button("clear", say("clear"), clear),
    file: fileButton(),
    terms: make("div", { class: "card terms", id: "terms-panel", hidden: true }),
    book: button("terms", say("terms"), openTerms, { id: "book", "aria-expanded": "false", "aria-controls": "terms-panel" }),
    copy: button("copy", say("copy"), copy, { id: "copy" }),
    undo: button("undo", say("undo-choices"), undoChoices, { id: "undo" }),
    look: button("look", say("look-inside"), lookInside, { id: "look" }),
    files: make("div", { class: "files", id: "files" }),
    complaint: complaint(),
    notes: make("ul", { class: "notes", id: "notes", "aria-live": "polite" }),
    legend: make("p", { class: "legend", id: "legend" }, make("span", { class: "scale", "aria-hidden": "true" }, ...[0.15, 0.5, 0.9].map(sampleWord)), say("scale")),
  };
}

function sampleWord(doubt) {
  const word = make("span", { class: "word" }, "abc");
  word.style.setProperty("--doubt", doubt);
  return word;
}

export function show(place, given) {
  server = given;
  parts = makeParts();
  mirror = new Mirror(parts.mirror);
  result = new Result(parts.result, { point: pointAtWord, open: openOthers });
  const source = make("div", { class: "side" }, parts.source, make("div", { class: "stack" }, parts.mirror, parts.text), parts.examples, make("div", { class: "foot" }, parts.file, parts.book, parts.clear, parts.count));
  parts.side = make("div", { class: "side" }, parts.target, make("div", { class: "stack" }, parts.empty, parts.result), make("div", { class: "foot" }, parts.copy, parts.look, parts.undo));
  const card = make("div", { class: "card pair" }, source, parts.swap, parts.side);
  listenToFiles(card);
  keepInWindow(card);
  place.append(parts.complaint, card, parts.terms, parts.notes, parts.legend, parts.files);
  filing?.then(({ drawFiles }) => drawFiles(parts.files));
  settle();
  drawPickers();
  drawText();
  if (!matchMedia("(pointer: coarse)").matches) parts.text.focus();
  if (!isBlank(state.text)) translate();
}
