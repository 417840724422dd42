/* The view that classifies as one types. */

import { bar, make, select } from "./element.js";
import { probability, quoted, say } from "./say.js";
import { ask } from "./server.js";
import { state } from "./text.js";

const PAUSE = 150; // ms without a key, after which what was typed is classified
const LONGER = 450; // after which it is said why

const form = state.sample;

let parts;
let timer;
let left = new AbortController();
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
  if (unknown.length > 0) notes.push(say("unknown-words", { words: unknown.map(quoted).join(", ") }));
  parts.notes.replaceChildren(...notes.map((note) => make("li", { class: "doubt" }, note)));
}

// The text, each token tinted by what it adds to the label.
function drawReasons({ tokens, contributions }) {
  const chosen = contributions.find(({ label }) => label === asked) ?? contributions[0];
  const largest = Math.max(...chosen.gradient.map(Math.abs), 1e-9);
  const pieces = tokens.pieces.map((piece, i) => {
    const value = chosen.gradient[i];
    const [size, sign] = [Math.abs(value).toFixed(2), value < 0 ? "−" : "+"];
    const signed = size === "0.00" ? size : sign + size;
    const shown = piece === "▁" ? "␣" : piece.replace(/^▁/u, "");
    const token = make("span", { class: value < 0 ? "reason below" : "reason above", title: signed }, shown, make("small", {}, signed));
    token.style.setProperty("--share", (Math.abs(value) / largest).toFixed(3));
    return token;
  });
  const options = contributions.map(({ label }) => [label, label]);
  const choose = (label) => {
    asked = label;
    drawReasons({ tokens, contributions });
    parts.reasons.querySelector("select")?.focus();
  };
  parts.reasons.replaceChildren(
    make("h2", {}, say("reasons", { label: chosen.label })),
    options.length > 1 ? select(say("labels"), options, chosen.label, choose) : "",
    make("p", { class: "reason-tokens", dir: "auto" }, ...pieces),
    make("p", { class: "legend" }, say("reasons-hint")),
  );
  parts.reasons.classList.remove("stale");
}

async function explain(signal) {
  try {
    drawReasons(await ask("v1/inspect", { model: form.model, text: form.text }, signal));
  } catch (error) {
    if (!signal.aborted) parts.reasons.replaceChildren(make("p", { class: "legend" }, say("no-reasons", { reason: error.message })));
  }
}

async function classify() {
  left = new AbortController();
  const { signal } = left;
  parts.complaint.hidden = true;
  try {
    const { data } = await ask("classify", { model: form.model, input: form.text }, signal);
    drawLabels(data[0].scores);
    drawNotes(data[0]);
    parts.empty.hidden = true;
    timer = setTimeout(() => explain(signal), LONGER - PAUSE);
  } catch (error) {
    if (signal.aborted) return;
    parts.complaint.textContent = error.message;
    parts.complaint.hidden = false;
  }
}

function again(wait = PAUSE) {
  left.abort();
  clearTimeout(timer);
  asked = null;
  parts.reasons.classList.add("stale");
  if (form.text.trim()) timer = setTimeout(classify, wait);
  else clear();
}

function clear() {
  for (const part of [parts.labels, parts.notes, parts.reasons]) part.replaceChildren();
  parts.empty.hidden = false;
}

function typed(event) {
  form.text = event.target.value;
  again();
}

function chooseModel(model) {
  form.model = model;
  again(0);
}

export function show(place, server) {
  const models = server.models.filter((model) => model.task === "classification").map(({ id }) => [id, id]);
  if (!models.some(([id]) => id === form.model)) [[form.model]] = models;
  const text = make("textarea", { id: "sample", rows: "4", "aria-label": say("text-to-classify"), placeholder: say("classify-hint"), input: typed });
  text.value = form.text;
  parts = {
    empty: make("p", { class: "empty" }, say("labels-empty")),
    labels: make("ol", { class: "labels", id: "labels", "aria-label": say("labels"), "aria-live": "polite" }),
    notes: make("ul", { class: "notes", id: "notes" }),
    reasons: make("div", { class: "reasons", id: "reasons" }),
    complaint: make("p", { class: "notice refused", id: "complaint", role: "alert", hidden: true }),
  };
  const pick = models.length > 1 && make("div", { class: "pick" }, select(say("model"), models, form.model, chooseModel, { id: "model" }));
  place.append(make("div", { class: "card pair" }, make("div", { class: "side" }, pick, text), make("div", { class: "side" }, parts.empty, parts.labels)));
  place.append(parts.complaint, parts.notes, parts.reasons);
  if (form.text) again(0);
  if (!matchMedia("(pointer: coarse)").matches) text.focus();
}
