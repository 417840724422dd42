/* Files, translated a few segments at a time: they can be stopped, and go on where they stopped. */

import { button, make } from "./element.js";
import { readHtml } from "./html.js";
import { readPlain } from "./plain.js";
import { count, say } from "./say.js";

const READERS = { txt: readPlain, html: readHtml, htm: readHtml };
const TOGETHER = 16; // segments of a request
const LETTERS = 3000; // of a request, where it has more than one segment
const MEGA = 2 ** 20;

let jobs = []; // of this page, also while another view is shown
let home; // where they are drawn

const endingOf = (name) => /\.([^.]+)$/.exec(name)?.[1].toLowerCase() ?? "";
const megas = (bytes) => (bytes / MEGA).toFixed(1);

// What a file holds, or the reason why it is not taken.
async function read(file, limits) {
  const { name, size } = file;
  const reader = READERS[endingOf(name)];
  if (!reader) return { reason: say("file-kind", { name }) };
  if (size > limits.max_file) return { reason: say("file-large", { name, size: megas(size), limit: megas(limits.max_file) }) };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
    const content = reader(text);
    return content.segments.length > 0 ? content : { reason: say("file-empty", { name }) };
  } catch {
    return { reason: say("file-encoding", { name }) };
  }
}

export async function takeFiles(place, files, { route, limits }) {
  for (const file of files) {
    const content = await read(file, limits);
    const job = { name: file.name, type: file.type || "text/plain", ...content, findRoute: route, done: [], status: content.reason ? "refused" : "stopped" };
    jobs.push(job);
    drawFiles(place);
    if (!content.reason) run(job);
  }
}

// The segments of the next request.
function nextPart({ segments, done }) {
  let [end, letters] = [done.length, 0];
  while (end < segments.length && end - done.length < TOGETHER && (letters === 0 || letters + segments[end].length <= LETTERS)) {
    letters += segments[end].length;
    end += 1;
  }
  return segments.slice(done.length, end);
}

async function run(job) {
  job.left = new AbortController();
  const { signal } = job.left;
  Object.assign(job, { status: "running", began: performance.now(), before: job.done.length, reason: "" });
  update(job);
  try {
    job.route ??= await job.findRoute(job.segments.join("\n"), signal);
    while (job.done.length < job.segments.length) {
      job.done.push(...(await job.translate(nextPart(job), job.route, signal)));
      update(job);
    }
    finish(job);
  } catch (error) {
    job.status = signal.aborted ? "stopped" : "failed";
    job.reason = error.message;
  }
  update(job);
}

function finish(job) {
  job.status = "done";
  job.address = URL.createObjectURL(new Blob([job.write(job.done)], { type: job.type }));
  job.saved = job.name.replace(/\.([^.]+)$/, `.${job.route.target}.$1`);
}

function remove(job) {
  job.left?.abort();
  if (job.address) URL.revokeObjectURL(job.address);
  jobs = jobs.filter((other) => other !== job);
  drawFiles(home);
}

function timeLeft({ done, segments, began, before }) {
  const each = (performance.now() - began) / (done.length - before);
  const seconds = Math.ceil((each * (segments.length - done.length)) / 1000);
  return seconds < 90 ? say("seconds", { count: seconds }) : say("minutes", { count: Math.round(seconds / 60) });
}

function stateOf(job) {
  if (job.status === "refused") return job.reason;
  if (job.status === "failed") return say("file-failed", { reason: job.reason });
  if (job.status !== "running") return say(`file-${job.status}`);
  const progress = say("file-progress", { done: count(job.done.length), all: count(job.segments.length) });
  return job.done.length > job.before ? `${progress} · ${say("file-left", { time: timeLeft(job) })}` : progress;
}

function toolsOf(job) {
  const plain = (text, click, kind = "plain") => make("button", { type: "button", class: kind, click }, text);
  const away = button("clear", say("remove"), () => remove(job), { "aria-label": `${say("remove")}: ${job.name}` });
  if (job.status === "running") return [plain(say("stop"), () => job.left.abort())];
  if (job.status === "done") return [make("a", { class: "main", href: job.address, download: job.saved }, say("download")), away];
  return job.status === "refused" ? [away] : [plain(say("resume"), () => run(job), "main"), away];
}

// Tools are drawn anew only where they change, so that the one with the focus stays.
function update(job) {
  if (!job.element?.isConnected) return;
  const { bar, text, tools } = job.parts;
  bar.value = job.done.length;
  text.textContent = stateOf(job);
  text.classList.toggle("refused", ["refused", "failed"].includes(job.status));
  if (job.shown === job.status) return;
  job.shown = job.status;
  const had = tools.contains(document.activeElement);
  tools.replaceChildren(...toolsOf(job));
  if (had) tools.firstChild.focus();
}

function drawn(job) {
  const bar = make("progress", { max: job.segments?.length ?? 1, value: "0", "aria-label": job.name });
  job.parts = { bar, text: make("p", { role: "status" }), tools: make("div", { class: "row" }) };
  job.element = make("div", { class: "job" }, make("b", {}, job.name), job.status === "refused" ? "" : bar, job.parts.text, job.parts.tools);
  job.shown = null;
  return job.element;
}

export function drawFiles(place) {
  home = place;
  home.replaceChildren(...jobs.map(drawn));
  for (const job of jobs) update(job);
}
