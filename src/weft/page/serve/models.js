/* The view of the models: what each is, how good, and how it learned. */

import { drawCurves } from "./curve.js";
import { make } from "./element.js";
import { count, languageName, listed, say, told } from "./say.js";
import { ask } from "./server.js";

const FACTS = [
  ["shape", "shape"],
  ["weights", "weights"],
  ["computed_by", "computed-by"],
  ["license", "licence"],
  ["weft_version", "weft-version"],
];

function languagesOf({ source, target, card }) {
  if (source && target) return `${languageName(source)} → ${languageName(target)}`;
  return card.language && card.language !== "und" ? languageName(card.language) : null;
}

// The card, with what can be said in the language of the page.
function cardOf({ card }) {
  const { shape, sizes, computed_by: computed, computer } = card;
  return { ...card, shape: told(`shape-${sizes?.kind}`, shape, sizes), computed_by: told(`computer-${computer}`, computed) };
}

// Names and what they are, as far as they are known.
function facts(model) {
  const { task } = model;
  const card = cardOf(model);
  const rows = [[say("task"), say(`task-${task}`)], [say("languages"), languagesOf(model)], ...FACTS.map(([key, name]) => [say(name), card[key]])];
  if (card.labels) rows.push([say("label-names"), listed(card.labels)]);
  return make("dl", {}, ...rows.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

const number = (value) => (Number.isInteger(value) ? count(value) : value.toFixed(2));

// The verdict, and the figures behind it, in the language of the page; nothing where the server's words are in it.
function verdictOf({ verdict = "", figures = {} }) {
  const says = told(`verdict-${verdict}`, "");
  const lines = Object.entries(figures).map(([name, value]) => told(`figure-${name}`, "", { value: number(value) }));
  return says ? [says, ...lines.filter(Boolean)] : [];
}

// What the model is good for; in another language the server's own words lie beneath.
function drawVerdict(history) {
  const listOf = (lines, more) => make("ul", more, ...lines.map((one) => make("li", {}, one)));
  const own = verdictOf(history);
  const original = history.good_for;
  if (own.length === 0) return [listOf(original)];
  return [listOf(own), make("details", {}, make("summary", {}, say("in-english")), listOf(original, { lang: "en" }))];
}

function drawScores(history) {
  const { scores = [], good_for: goodFor = [] } = history;
  return [
    scores.length > 0 && make("h3", {}, say("scores")),
    scores.length > 0 && make("pre", { tabindex: "0", "aria-label": say("scores") }, scores.join("\n")),
    goodFor.length > 0 && make("h3", {}, say("good-for")),
    ...(goodFor.length > 0 ? drawVerdict(history) : []),
  ];
}

// A text, and what became of it at some steps.
function sample({ text, steps }) {
  const rows = steps.map((one) => make("li", {}, make("small", {}, say("at-step", { step: count(one.step) })), make("span", { dir: "auto" }, one.text)));
  return make("div", { class: "sample" }, make("p", { dir: "auto" }, text), make("ol", {}, ...rows));
}

function drawSamples({ samples = [] }) {
  if (samples.length === 0) return null;
  return make("details", {}, make("summary", {}, say("samples")), ...samples.map(sample));
}

async function drawHistory(place, id) {
  try {
    const history = await ask(`v1/history/${id.split("/").map(encodeURIComponent).join("/")}`);
    const parts = [...drawScores(history), make("h3", {}, say("curves")), drawCurves(history), drawSamples(history)];
    place.replaceChildren(...parts.filter(Boolean));
  } catch (error) {
    place.replaceChildren(make("p", { class: "refused" }, error.message));
  }
}

export function show(place, server) {
  for (const model of server.models) {
    const history = make("div", { class: "history" });
    place.append(make("article", { class: "card model" }, make("h2", {}, model.id), facts(model), history));
    drawHistory(history, model.id);
  }
}
