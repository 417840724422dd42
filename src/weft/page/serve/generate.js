/* The view in which a language model writes on. */

import { complain, complaint, make, modelsOf, select } from "./element.js";
import { slicer } from "./letters.js";
import { probability, say } from "./say.js";
import { request } from "./server.js";
import { state } from "./text.js";
import { hideTip, showTip } from "./tip.js";

const SEEDS = 2 ** 31;

let parts;
let limits;
let left = null; // of what is being written

const form = state.prompt;

// The data of a stream of events, one after the other.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data:")) yield line.slice(5).trim();
  }
}

// The pieces of a chunk with their probabilities: a token each, or several where they are the bytes of one character.
function piecesOf({ text, logprobs }) {
  if (!logprobs?.text_offset?.length) return [{ text, probability: null }];
  const { text_offset: offsets, token_logprobs: scores } = logprobs;
  const slice = slicer(text);
  const pieces = [];
  let [start, score] = [0, 0];
  offsets.forEach((_, i) => {
    score += scores[i];
    const end = i + 1 < offsets.length ? offsets[i + 1] - offsets[0] : undefined;
    if (end === start) return;
    pieces.push({ text: slice(start, end), probability: Math.exp(score) });
    [start, score] = [end, 0];
  });
  return pieces;
}

// A token as text, shaded by its probability but for the space before it.
function tokenOf({ text, probability: value }) {
  if (value === null) return [text];
  const [, space, letters] = /^([ \n]*)(.*)$/s.exec(text);
  const element = make("span", { class: "written-token" }, letters || space);
  element.style.setProperty("--doubt", (1 - value).toFixed(3));
  element.says = say("probability", { value: probability(value) });
  return letters ? [space, element] : [element];
}

// Ask for a text, and show it as it comes; why it ended is returned.
async function stream(body, signal) {
  let end = "broken";
  for await (const line of events(await request("v1/completions", body, signal))) {
    if (line === "[DONE]") return end === "broken" ? "stop" : end;
    const chunk = JSON.parse(line);
    if (chunk.error) throw new Error(chunk.error.message);
    for (const choice of chunk.choices) {
      if (choice.text) parts.written.append(...piecesOf(choice).flatMap(tokenOf));
      end = choice.finish_reason ?? end;
    }
  }
  return "broken";
}

function body(seed) {
  const { model, text, temperature, top_p, max_tokens } = form;
  return { model, prompt: text, temperature: Number(temperature), top_p: Number(top_p), max_tokens: Number(max_tokens), seed, logprobs: 1, stream: true };
}

function working(is) {
  parts.write.hidden = is;
  parts.stop.hidden = !is;
  parts.written.setAttribute("aria-busy", `${is}`);
  (is ? parts.stop : parts.write).focus();
}

async function write(event) {
  event?.preventDefault();
  if (left || !parts.form.reportValidity()) return;
  left = new AbortController();
  const seed = form.seed === "" ? Math.floor(Math.random() * SEEDS) : Number(form.seed);
  parts.written.replaceChildren(make("span", { class: "given" }, form.text));
  parts.written.hidden = parts.legend.hidden = false;
  parts.empty.hidden = parts.complaint.hidden = true;
  parts.ended.textContent = "";
  working(true);
  try {
    const end = await stream(body(seed), left.signal);
    tellEnd(end, seed);
  } catch (error) {
    if (left.signal.aborted) tellEnd("stopped", seed);
    else if (error instanceof TypeError) tellEnd("broken", seed);
    else complain(parts.complaint, error.message);
  }
  left = null;
  keep();
  working(false);
}

const tellEnd = (end, seed) => (parts.ended.textContent = say(`end-${end}`) + say("written-seed", { seed }));

const keep = () => (state.written = { nodes: [...parts.written.childNodes], ended: parts.ended.textContent });

/* The elements */

// A number with its name, and what it does.
function number(name, key, more) {
  const id = `set-${key}`;
  const input = make("input", {
    id, type: "number", value: form[key], inputmode: "decimal", "aria-describedby": `${id}-says`, input: (event) => (form[key] = event.target.value), ...more,
  });
  return make("div", { class: "setting" }, make("label", { for: id }, say(name)), input, make("small", { id: `${id}-says` }, say(`${name}-hint`)));
}

function settings() {
  return make(
    "div",
    { class: "settings" },
    number("temperature", "temperature", { min: 0, max: 10, step: "any", required: true }),
    number("top-p", "top_p", { min: 0.01, max: 1, step: "any", required: true }),
    number("length", "max_tokens", { min: 1, max: limits.max_new_tokens, step: 1, required: true }),
    number("seed", "seed", { min: 0, max: 2 ** 53 - 1, step: 1 }),
  );
}

function listenToTokens(written) {
  written.addEventListener("pointerover", ({ target }) => (target.says ? showTip(target, target.says) : hideTip()));
  written.addEventListener("pointerleave", hideTip);
}

function makeParts() {
  const text = make("textarea", { id: "prompt", rows: "3", "aria-label": say("prompt"), placeholder: say("prompt-hint"), input: (event) => (form.text = event.target.value) });
  text.value = form.text;
  text.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && write(event));
  return {
    text,
    write: make("button", { class: "main", id: "write", title: "Ctrl+Enter" }, say("write")),
    stop: make("button", { class: "main", id: "stop", type: "button", hidden: true, click: () => left?.abort() }, say("stop")),
    written: make("div", { class: "written", id: "written", role: "log", "aria-label": say("written"), hidden: true }),
    empty: make("p", { class: "empty" }, say("written-empty")),
    ended: make("p", { class: "ended", id: "ended", role: "status" }),
    complaint: complaint(),
    legend: make("p", { class: "legend", hidden: true }, make("span", { class: "scale", "aria-hidden": "true" }, ...[0.1, 0.5, 0.9].map(sampleToken)), say("written-scale")),
  };
}

function sampleToken(doubt) {
  const token = make("span", { class: "written-token" }, "abc");
  token.style.setProperty("--doubt", doubt);
  return token;
}

export function show(place, server) {
  const models = modelsOf(server, "language-modelling");
  limits = server.limits;
  left?.abort();
  if (!models.some(([id]) => id === form.model)) [[form.model]] = models;
  parts = makeParts();
  const pick = models.length > 1 && make("div", { class: "pick" }, select(say("model"), models, form.model, (model) => (form.model = model), { id: "model" }));
  parts.form = make("form", { class: "card", submit: write }, pick, parts.text, settings(), make("div", { class: "foot" }, parts.write, parts.stop));
  place.append(parts.form, parts.complaint, make("div", { class: "card paper" }, parts.empty, parts.written, parts.ended), parts.legend);
  listenToTokens(parts.written);
  if (state.written) showAgain();
}

function showAgain() {
  parts.written.append(...state.written.nodes);
  parts.ended.textContent = state.written.ended;
  parts.written.hidden = parts.legend.hidden = false;
  parts.empty.hidden = true;
}
