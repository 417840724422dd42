/* The view that classifies as one types. */

import { asker } from "./asker.js";
import { bar, make, modelsOf, select } from "./element.js";
import { count, listed, probability, quoted, say } from "./say.js";
import { ask, pause } from "./server.js";
import { state } from "./text.js";

const PAUSE = 150; // ms without a key, after which what was typed is classified
const LONGER = 300; // more ms, after which it is said why
const LEAST = 0.001; // what is added to a label, below which no number is shown

const form = state.sample;

let parts;
let asked = null; // the label that reasons are shown for; null is the most probable

function drawLabels(scores) {
  parts.labels.replaceChildren(
    ...scores.map(({ label, score }, i) =>
      make("li", { class: i === 0 ? "first" : "" }, make("span", {}, label), make("span", { class: "number" }, probability(score)), bar(score)),
    ),
  );
}

function drawNotes({ truncated, labels, unknown_words: unknown = [] }) {
  const notes = [];
  if (truncated) notes.push(say("mark-truncated"));
  if (labels?.length === 0) notes.push(say("mark-no-label"));
  if (unknown.length > 0) notes.push(say("unknown-words", { words: listed(unknown.map(quoted)) }));
  parts.notes.replaceChildren(...notes.map((note) => make("li", { class: "doubt" }, note)));
}

// A number that is not 0 does not read so.
function signed(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  const sign = value < 0 ? "−" : "+";
  if (size < LEAST) return value < 0 ? `> −${LEAST}` : `< ${LEAST}`;
  return sign + (size < 0.1 ? size.toPrecision(2) : size.toFixed(2));
}

// The text, each token tinted by what it adds to the label.
function drawReasons({ tokens, contributions, cut }) {
  const chosen = contributions.find(({ label }) => label === asked) ?? contributions[0];
  const largest = Math.max(...chosen.left_out.map(Math.abs), LEAST);
  const pieces = tokens.pieces.map((piece, i) => {
    const value = chosen.left_out[i];
    const number = signed(value);
    const shown = piece === "▁" ? "␣" : piece.replace(/^▁/u, "");
    const token = make("span", { class: value < 0 ? "reason below" : "reason above", title: number }, shown, make("small", {}, number));
    token.style.setProperty("--share", (Math.abs(value) / largest).toFixed(3));
    return token;
  });
  const options = contributions.map(({ label }) => [label, label]);
  const choose = (label) => {
    asked = label;
    drawReasons({ tokens, contributions, cut });
    parts.reasons.querySelector("select")?.focus();
  };
  parts.reasons.replaceChildren(
    make("h2", {}, say("reasons", { label: chosen.label })),
    options.length > 1 ? select(say("labels"), options, chosen.label, choose) : "",
    make("p", { class: "reason-tokens", dir: "auto" }, ...pieces),
    make("p", { class: "legend" }, say("reasons-hint")),
    cut ? make("p", { class: "legend", id: "cut" }, say("reasons-cut", { count: count(tokens.pieces.length) })) : "",
  );
}

async function explain(signal) {
  try {
    drawReasons(await ask("v1/inspect", { model: form.model, text: form.text, parts: ["left_out"] }, signal));
  } catch (error) {
    if (!signal.aborted) parts.reasons.replaceChildren(make("p", { class: "legend" }, say("no-reasons", { reason: error.message })));
  }
}

async function classify(signal) {
  const { data } = await ask("classify", { model: form.model, input: form.text }, signal);
  drawLabels(data[0].scores);
  drawNotes(data[0]);
  parts.empty.hidden = true;
  await pause(LONGER, signal);
  parts.reasons.replaceChildren(make("p", { class: "legend", role: "status" }, say("computing-reasons")));
  await explain(signal);
}

function forget() {
  asked = null;
  parts.reasons.replaceChildren(); // those of another text
}

function clear() {
  for (const part of [parts.labels, parts.notes, parts.reasons]) part.replaceChildren();
  parts.empty.hidden = false;
}

export function show(place, server) {
  const field = { id: "sample", rows: "4", "aria-label": say("text-to-classify"), placeholder: say("classify-hint") };
  parts = {
    empty: make("p", { class: "empty" }, say("labels-empty")),
    labels: make("ol", { class: "labels", id: "labels", "aria-label": say("labels"), "aria-live": "polite" }),
    notes: make("ul", { class: "notes", id: "notes" }),
    reasons: make("div", { class: "reasons", id: "reasons" }),
  };
  const { pick, text, wrong, begin } = asker(form, modelsOf(server, "classification"), field, { wait: PAUSE, ask: classify, changed: forget, cleared: clear });
  const card = make("div", { class: "card pair" }, make("div", { class: "side" }, pick, text), make("div", { class: "side" }, parts.empty, parts.labels));
  place.append(wrong, card, parts.notes, parts.reasons);
  begin();
}
