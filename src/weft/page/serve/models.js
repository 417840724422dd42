/* The view of the models: what each is, how good, and how it learned. */

import { drawCurves } from "./curve.js";
import { make } from "./element.js";
import { count, languageName, listed, say } from "./say.js";
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

// Names and what they are, as far as they are known.
function facts(model) {
  const { card, task } = model;
  const rows = [[say("task"), say(`task-${task}`)], [say("languages"), languagesOf(model)], ...FACTS.map(([key, name]) => [say(name), card[key]])];
  if (card.labels) rows.push([say("label-names"), listed(card.labels)]);
  return make("dl", {}, ...rows.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function drawScores({ scores = [], good_for: goodFor = [] }) {
  return [
    scores.length > 0 && make("h3", {}, say("scores")),
    scores.length > 0 && make("pre", { tabindex: "0", "aria-label": say("scores") }, scores.join("\n")),
    goodFor.length > 0 && make("h3", {}, say("good-for")),
    goodFor.length > 0 && make("ul", {}, ...goodFor.map((one) => make("li", {}, one))),
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
