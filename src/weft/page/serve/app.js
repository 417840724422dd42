/* The page as a whole: its header, and the view that the address names. */

import { button, byId, make } from "./element.js";
import { learn, say } from "./say.js";
import { ask, connection } from "./server.js";
import { chooseLanguage, chooseTheme, isDark, onSystemTheme, settings } from "./settings.js";

const VIEWS = { translate: "translation", generate: "language-modelling", classify: "classification", inside: null, models: null };

let server = null; // what it has: models, limits, languages
let drawn = 0; // how often a view was asked for: only the last one is drawn

// The views that a model of this server can fill.
function open() {
  const tasks = new Set(server.models.map((model) => model.task));
  return Object.keys(VIEWS).filter((view) => (VIEWS[view] ? tasks.has(VIEWS[view]) : tasks.size > 0));
}

function chosen() {
  const named = location.hash.slice(1);
  return open().includes(named) ? named : open()[0];
}

function drawHeader() {
  document.documentElement.lang = settings.language === "zh" ? "zh-CN" : "en";
  byId("skip").textContent = say("skip");
  byId("nav").setAttribute("aria-label", say("views"));
  const links = server ? open().map((view) => make("a", { href: `#${view}`, "aria-current": view === chosen() ? "page" : null }, say(view))) : [];
  byId("nav").replaceChildren(...links);
  drawSwitches();
}

function drawSwitches() {
  const [other, name] = settings.language === "zh" ? ["en", "English"] : ["zh", "中文"];
  const theme = isDark() ? "light" : "dark";
  byId("switches").replaceChildren(
    make("button", { type: "button", id: "speak", class: "tool", lang: other, click: () => speak(other) }, name),
    button(theme, say(`go-${theme}`), () => paint(theme), { id: "theme", "aria-label": say(`go-${theme}`) }),
  );
}

async function speak(language) {
  chooseLanguage(language);
  await learn();
  await draw();
  byId("speak").focus();
}

function paint(theme) {
  chooseTheme(theme);
  drawSwitches();
  byId("theme").focus();
  document.dispatchEvent(new Event("repaint"));
}

async function draw() {
  drawHeader();
  const turn = ++drawn;
  const view = chosen();
  if (!view) return byId("view").replaceChildren(make("p", { class: "notice" }, say("no-models")));
  const { show } = await import(`./${view}.js`);
  if (turn !== drawn) return;
  document.title = `${say(view)} · Weft`;
  const place = make("section", { class: view, "aria-label": say(view) });
  place.append(make("h1", { class: "aside" }, say(view)));
  byId("view").replaceChildren(place);
  show(place, server);
}

async function load() {
  const info = await ask("info");
  const translates = info.models.some((model) => model.task === "translation");
  server = { ...info, languages: translates ? await ask("languages") : [] };
}

async function start() {
  await learn();
  drawHeader();
  const waiting = setTimeout(() => byId("view").replaceChildren(make("p", { class: "notice" }, say("loading"))), 200);
  try {
    await load();
    await draw();
  } catch (error) {
    byId("view").replaceChildren(make("p", { class: "notice refused", role: "alert" }, error.message));
  } finally {
    clearTimeout(waiting);
  }
}

addEventListener("hashchange", async () => {
  if (!server) return;
  await draw();
  byId("view").focus({ preventScroll: true });
});
onSystemTheme(() => {
  drawSwitches();
  document.dispatchEvent(new Event("repaint"));
});
// A server that comes back may have other models.
connection.addEventListener("back", async () => {
  if (!server) return;
  const before = JSON.stringify(server);
  try {
    await load();
  } catch {
    return; // what waited for the server says why
  }
  if (JSON.stringify(server) !== before) await draw();
});
// What could not be asked without a key.
connection.addEventListener("key", () => (server ? draw() : start()));
start();
