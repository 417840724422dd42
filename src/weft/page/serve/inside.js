/* The view that looks inside: the page of `weft inspect`, of what was just typed. */

import { asker } from "./asker.js";
import { make } from "./element.js";
import { wayOf } from "./lines.js";
import { listed, say } from "./say.js";
import { ask } from "./server.js";
import { settings } from "./settings.js";
import { state } from "./text.js";

const PAUSE = 400; // ms without a key, after which what was typed is looked at
const PAGE = new URL("../", import.meta.url);

const form = state.look;

let parts;
let pictures = null; // the script that draws them
let shown = null; // the last inspection
let drawnTask = null; // the task of the model whose pictures stand there

// The elements of the page of `weft inspect`, apart from ours: its style and ours do not know each other.
async function frame() {
  const [script, page] = await Promise.all([import("../inspect/pictures.js"), fetch(new URL("inspect/pictures.html", PAGE)).then((answer) => answer.text())]);
  pictures ??= script;
  const template = make("template");
  template.innerHTML = page;
  return template.content;
}

async function draw(inspection) {
  const root = parts.pictures.shadowRoot;
  const isNew = drawnTask !== inspection.task;
  if (isNew) {
    const styles = ["base.css", "inspect.css", "sections.css", "serve/inside.css"];
    const links = styles.map((name) => make("link", { rel: "stylesheet", href: new URL(name, PAGE) }));
    const loaded = links.map((link) => new Promise((resolve) => (link.onload = link.onerror = resolve)));
    root.replaceChildren(...links, await frame());
    await Promise.all(loaded);
  }
  drawnTask = inspection.task;
  pictures.begin(inspection, root, settings.language);
  if (isNew) pictures.listen();
}

async function look(signal) {
  const { model, text } = form;
  const inspection = await ask("v1/inspect", { model, text, packed: true }, signal);
  signal.throwIfAborted();
  shown = inspection;
  parts.empty.hidden = true;
  parts.pictures.hidden = false;
  await draw(inspection);
  parts.pictures.classList.remove("stale");
}

// Of a translation over a third language only the first model has read what was typed; and the words that a person chose are
// not the model's.
function drawWay() {
  const { model, text, way } = form;
  const isOurs = way?.text === text && way.models[0] === model;
  const says = [];
  if (isOurs && way.models.length > 1) says.push(say("first-of-way", { model, models: listed(way.models) }));
  if (isOurs && way.isChosen) says.push(say("own-translation"));
  parts.way.hidden = says.length === 0;
  parts.way.textContent = says.join(" ");
}

function clear() {
  drawWay();
  parts.pictures.hidden = true;
  parts.empty.hidden = false;
}

// Where nothing was looked at yet, what stands under Translate.
function takeTyped(server) {
  const line = state.text.split("\n").find((one) => one.trim());
  if (form.text || !line) return;
  const { source, target, model, detected } = state;
  const src = source === "auto" ? detected?.language : source;
  const served = server.models.find((one) => one.id === model) ?? server.models.find((one) => one.source === src && one.target === target);
  const way = wayOf(line, { source: src, target, model });
  Object.assign(form, { model: served?.id ?? form.model, text: line, way });
}

export function show(place, server) {
  takeTyped(server);
  const models = server.models.map(({ id, task }) => [id, `${id} · ${say(`task-${task}`)}`]);
  const field = { id: "look-text", rows: "2", "aria-label": say("text-to-inspect"), placeholder: say("inspect-hint") };
  parts = {
    empty: make("p", { class: "empty" }, say("inside-empty")),
    way: make("p", { class: "notice", id: "way", role: "status", hidden: true }),
    pictures: make("div", { class: "pictures-host", id: "pictures", hidden: true }),
  };
  parts.pictures.attachShadow({ mode: "open" });
  drawnTask = null;
  const { pick, text, wrong, begin } = asker(form, models, field, {
    wait: PAUSE,
    ask: look,
    changed: () => {
      drawWay();
      parts.pictures.classList.add("stale");
    },
    cleared: clear,
  });
  place.append(wrong, make("div", { class: "card" }, pick, text), parts.way, parts.empty, parts.pictures);
  begin();
}

document.addEventListener("repaint", () => shown && parts?.pictures.isConnected && pictures?.repaint());
