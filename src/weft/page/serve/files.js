/* Files. One of text is translated a few texts at a time: it can be stopped, and goes on where it stopped. Any other the
   server translates as a whole. */

import { button, make } from "./element.js";
import { reportLines, reportOf } from "./report.js";
import { count, listed, say } from "./say.js";
import { ask, Refused, request } from "./server.js";

const TOGETHER = 16; // texts of a request
const LETTERS = 3000; // of a request, where it has more than one text
const MEBI = 2 ** 20;
// What a word processor and its like can open and save as something that is translated.
const SAVED_AS = Object.entries({ ".pdf": ".docx", ".doc": ".docx", ".rtf": ".docx", ".xls": ".xlsx", ".ppt": ".pptx" });
const NEVER = [400, 413]; // what is wrong with a file does not change

let jobs = []; // of this page, also while another view is shown
let home; // where they are drawn

const mebis = (bytes) => (bytes / MEBI).toFixed(1);

const hasEnding = (name, endings) => endings.some((ending) => name.toLowerCase().endsWith(ending));

// Why a file is not even sent; an empty string where it is.
function reasonAgainst({ name, size }, { formats, limits }) {
  const [kind, ending] = SAVED_AS.find(([kind]) => hasEnding(name, [kind])) ?? [];
  if (!hasEnding(name, formats) && hasEnding(`x${ending}`, formats)) return say("file-save-as", { kind, ending });
  if (!hasEnding(name, formats)) return say("file-kind", { endings: listed(formats) });
  return size > limits.max_file ? say("file-large", { size: mebis(size), limit: mebis(limits.max_file) }) : "";
}

export function takeFiles(files, server, findRoute) {
  for (const file of files) {
    const reason = reasonAgainst(file, server);
    const isWhole = !hasEnding(file.name, server.text_formats);
    const job = { name: file.name, file, isWhole, findRoute, texts: null, done: [], rows: [], report: null, before: 0, reason, status: reason ? "refused" : "stopped" };
    jobs.push(job);
    home.append(drawn(job));
    if (reason) update(job);
    else run(job);
  }
}

// The server divides a file into the texts to translate and what is between them, which stays as it is.
async function divide(job, signal) {
  const form = new FormData();
  form.append("file", job.file);
  const parts = await ask("v1/segments", form, signal);
  if (parts.texts.length === 0) throw new Refused(say("file-empty"), { status: 400 });
  Object.assign(job, parts);
  job.parts.bar.max = job.texts.length;
}

async function translate({ format, route }, texts, signal) {
  const { source, target, model, glossary } = route;
  const { translations } = await ask("v1/translate", { texts, source, target, format, glossary, memory: true, ...(model && { model }) }, signal);
  return translations;
}

async function translateTexts(job, signal) {
  if (!job.texts) await divide(job, signal);
  job.route ??= await job.findRoute(job.texts.join("\n"), signal);
  while (job.done.length < job.texts.length) {
    const translations = await translate(job, nextPart(job), signal);
    for (const { text, marks, numbers, terms, memory, from_memory } of translations) {
      job.done.push(text);
      job.rows.push({ marks, numbers, terms, memory, from_memory });
    }
    update(job);
  }
  job.report = reportOf(job.texts, job.rows);
}

// The server finds out the language of such a file where it is not chosen.
async function translateWhole(job, signal) {
  job.route = await job.findRoute(null, signal);
  const form = new FormData();
  const { glossary, ...where } = job.route;
  for (const [name, value] of Object.entries(where)) if (value) form.append(name, value);
  if (glossary !== undefined) form.append("glossary", asTable(glossary));
  form.append("file", job.file);
  const { translatedFileUrl, report } = await ask("translate_file", form, signal);
  const answer = await request(`download_file/${translatedFileUrl.split("/").pop()}`, undefined, signal);
  offer(job, await answer.blob());
  job.report = report;
}

// A name, or terms with a TAB in each line.
const asTable = (glossary) => (typeof glossary === "string" ? glossary : glossary.map(([source, target = "", ...rules]) => [source, target, ...rules].join("\t")).join("\n"));

// The texts of the next request.
function nextPart({ texts, done }) {
  let [end, letters] = [done.length, 0];
  while (end < texts.length && end - done.length < TOGETHER && (letters === 0 || letters + texts[end].length <= LETTERS)) {
    letters += texts[end].length;
    end += 1;
  }
  return texts.slice(done.length, end);
}

async function run(job) {
  job.left = new AbortController();
  const { signal } = job.left;
  Object.assign(job, { status: "running", began: performance.now(), before: job.done.length, reason: "" });
  update(job);
  const clock = job.isWhole && setInterval(() => update(job), 1000);
  try {
    await (job.isWhole ? translateWhole : translateTexts)(job, signal);
    job.status = "done";
  } catch (error) {
    const isForever = !job.isWhole && !job.texts && NEVER.includes(error.status);
    job.status = signal.aborted ? "stopped" : isForever ? "refused" : "failed";
    job.reason = error.message;
  }
  clearInterval(clock);
  if (job.done.length > 0 && jobs.includes(job)) keep(job);
  update(job);
}

const asReferences = (text) => text.replace(/[^\0-\x7f]/gu, (letter) => `&#${letter.codePointAt(0)};`);

// The head of a web page that says its language says the new one.
function headOf({ between, format, route }) {
  if (format !== "html" || route.target === "und") return between[0];
  const retold = (tag) => tag.replace(/(\s(?:xml:)?lang\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s"'>]+)/gi, `$1"${route.target}"`);
  return between[0].replace(/<html\b[^>]*>/gi, retold);
}

// The file so far: what is not translated yet stands as it was.
function keep(job) {
  const between = [headOf(job), ...job.between.slice(1)];
  const text = between.map((part, i) => part + (job.done[i] ?? job.texts[i] ?? "")).join("");
  offer(job, job.ascii ? asReferences(text) : text);
}

function offer(job, content) {
  if (job.address) URL.revokeObjectURL(job.address);
  job.address = URL.createObjectURL(new Blob([content], { type: job.file.type }));
  job.saved = job.name.replace(/\.([^.]+)$/, `.${job.route.target}.$1`);
}

function remove(job) {
  job.left?.abort();
  if (job.address) URL.revokeObjectURL(job.address);
  jobs = jobs.filter((other) => other !== job);
  job.element.remove();
}

function timeLeft({ done, texts, began, before }) {
  const each = (performance.now() - began) / (done.length - before);
  return timeOf(each * (texts.length - done.length));
}

function timeOf(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000);
  return seconds < 90 ? say("seconds", { count: seconds }) : say("minutes", { count: Math.round(seconds / 60) });
}

function stateOf(job) {
  if (job.status === "refused") return job.reason;
  if (job.status === "failed") return say("file-failed", { reason: job.reason });
  if (job.status !== "running") return say(`file-${job.status}`);
  if (job.isWhole) return say("file-whole", { time: timeOf(performance.now() - job.began) });
  if (!job.texts) return say("loading");
  const progress = say("file-progress", { done: count(job.done.length), all: count(job.texts.length) });
  return job.done.length > job.before ? `${progress} · ${say("file-left", { time: timeLeft(job) })}` : progress;
}

function toolsOf(job) {
  const plain = (text, click, kind = "plain") => make("button", { type: "button", class: kind, click }, text);
  const away = button("clear", say("remove"), () => remove(job), { "aria-label": `${say("remove")}: ${job.name}` });
  if (job.status === "running") return [plain(say("stop"), () => job.left.abort())];
  if (job.status === "done") return [make("a", { class: "main", href: job.address, download: job.saved }, say("download")), away];
  const some = job.done.length > 0 && make("a", { class: "plain", href: job.address, download: job.saved }, say("download-some"));
  return job.status === "refused" ? [away] : [plain(say("resume"), () => run(job), "main"), ...(some ? [some] : []), away];
}

// Tools are drawn anew only where they change, so that the one with the focus stays.
function update(job) {
  if (!job.element?.isConnected) return;
  const { bar, text, tools, report } = job.parts;
  bar.hidden = job.status === "refused";
  if (!job.isWhole) bar.value = job.done.length;
  else if (job.status === "running") bar.removeAttribute("value");
  else bar.value = job.status === "done" ? 1 : 0;
  text.textContent = stateOf(job);
  text.classList.toggle("refused", ["refused", "failed"].includes(job.status));
  if (job.shown === job.status) return;
  job.shown = job.status;
  if (job.status === "done" && job.report) report.replaceChildren(...reportLines(job.report));
  const had = tools.contains(document.activeElement);
  tools.replaceChildren(...toolsOf(job));
  if (had) tools.firstChild.focus();
}

function drawn(job) {
  const bar = make("progress", { max: job.texts?.length ?? 1, value: "0", "aria-label": job.name });
  job.parts = { bar, text: make("p", { role: "status" }), tools: make("div", { class: "row" }), report: make("ul", { class: "notes", "aria-live": "polite" }) };
  job.element = make("div", { class: "job" }, make("b", {}, job.name), bar, job.parts.text, job.parts.tools, job.parts.report);
  job.shown = null;
  return job.element;
}

export function drawFiles(place) {
  home = place;
  home.replaceChildren(...jobs.map(drawn));
  for (const job of jobs) update(job);
}
