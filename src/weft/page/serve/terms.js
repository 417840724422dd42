/* The panel for a glossary: one of the server's, or terms that are typed, pasted or dropped. The server reads files, and
   what is pasted from one. */

import { button, make, select } from "./element.js";
import { count, listed, quoted, say } from "./say.js";
import { ask } from "./server.js";
import { ownRows, state, unreadLines } from "./text.js";

const PAUSE = 700; // ms without a key, after which typed terms count
const MOST = 8; // terms or lines that are named
const PASTED = "terms.csv"; // how a table in the panel is named
const COLUMNS = ["source", "target", "case", "inflection", "avoid"];

// The glossaries of the server for a pair of languages; the first one is used unless another is chosen.
export const servedFor = ({ glossaries = [] }, { source, target }) =>
  glossaries.filter(({ pairs }) => pairs.some(([src, tgt]) => src === source && tgt === target)).map(({ name }) => name);

function drawChoice(names, changed) {
  if (names.length === 0) return "";
  const [usual, ...others] = names;
  const options = [["", say("terms-usual", { name: usual })], ...others.map((name) => [name, name]), ["-", say("terms-none")]];
  const chosen = state.terms.name === null ? "" : state.terms.name || "-";
  const choose = (name) => {
    state.terms.name = name === "" ? null : name === "-" ? "" : name;
    changed();
  };
  return select(say("terms-of-server"), options, chosen, choose, { id: "served-terms" });
}

const linesOf = (table) => table.split(/\r?\n/).filter((line) => line.trim() !== "");

// Whether a text is a table that commas or semicolons divide.
function isDivided(table) {
  const lines = linesOf(table);
  return lines.length > 1 && !/[=\t]/.test(table) && [",", ";"].some((mark) => lines.every((line) => line.includes(mark)));
}

// The terms of a file as they could be typed; as a table where they have rules.
function asTyped(terms) {
  const hasRules = terms.some((term) => term.case || term.inflection || term.avoid);
  const cell = (value) => (typeof value === "boolean" ? (value ? "yes" : "") : value);
  if (hasRules) return [COLUMNS, ...terms.map((term) => COLUMNS.map((name) => cell(term[name])))].map((row) => row.join("\t")).join("\n");
  const mark = terms.some(({ source, target }) => `${source}${target}`.includes("=")) ? "\t" : " = ";
  return terms.map(({ source, target }) => (target || mark === "\t" ? `${source}${mark}${target}` : source)).join("\n");
}

const named = (words) => listed(words.slice(0, MOST)) + (words.length > MOST ? " …" : "");

const isHeader = ([source, target]) => source.toLowerCase() === "source" && target?.toLowerCase() === "target";

// Draw the panel; `changed` is called where other terms count from now on.
export function drawTerms(place, server, route, changed) {
  let timer;
  const status = make("p", { role: "status", id: "terms-count" });
  const table = make("textarea", { id: "terms", rows: "5", spellcheck: "false", autocapitalize: "none", "aria-label": say("terms-own"), placeholder: say("terms-example"), input: typed, change: settled });
  const file = make("input", { type: "file", accept: ".tsv,.csv,.tbx,.txt", class: "aside", "aria-label": say("terms-file"), change: () => read(file.files[0]) });
  table.value = place.querySelector("textarea")?.value ?? state.terms.table;

  function settled() {
    clearTimeout(timer);
    if (state.terms.table === table.value) return;
    if (isDivided(table.value)) return read(new File([table.value], PASTED));
    state.terms.table = table.value;
    told();
    changed();
  }

  function typed() {
    clearTimeout(timer);
    timer = setTimeout(settled, PAUSE);
  }

  // How many terms there are, and which have no translation: a line that was meant otherwise is seen there.
  function told(notes = []) {
    const terms = ownRows().filter((row) => !isHeader(row));
    const kept = terms.filter(([, target]) => !target).map(([source]) => quoted(source));
    if (choice) choice.disabled = terms.length > 0; // one's own are in its place
    const unread = unreadLines().map((line) => quoted(line.trim()));
    const usual = state.terms.name ?? servedFor(server, route)[0]; // "" for none
    const most = server.limits.max_terms;
    const said = [...notes];
    if (terms.length > most) said.unshift(say("terms-many", { count: count(terms.length), limit: count(most) }));
    else if (terms.length > 0) said.unshift(say("terms-count", { count: count(terms.length) }));
    if (kept.length > 0) said.push(say("terms-kept", { terms: named(kept) }));
    if (unread.length > 0) said.push(say("terms-unread", { lines: named(unread) }));
    if (terms.length > 0 && usual) said.push(say("terms-instead", { name: usual }));
    tell(said.join(" "), terms.length > most || unread.length > 0);
  }

  function tell(text, isRefused) {
    status.textContent = text;
    status.classList.toggle("refused", isRefused);
  }

  async function read(dropped) {
    if (!dropped) return;
    const form = new FormData();
    form.append("file", dropped);
    for (const name of ["source", "target"]) if (route[name]) form.append(name, route[name]);
    try {
      const { terms, notes } = await ask("v1/terms", form);
      state.terms.table = table.value = asTyped(terms);
      told(notes);
      changed();
    } catch (error) {
      refuse(error.message, dropped);
    }
  }

  // What stands in the panel is what counts: of a table that stands there and cannot be read, nothing.
  function refuse(reason, { name }) {
    if (name !== PASTED) return tell(reason, true);
    state.terms.table = "";
    told();
    tell(`${reason} ${say("terms-unused")}`, true);
    changed();
  }

  const holds = (event) => event.dataTransfer?.types.includes("Files");
  place.ondragover = (event) => holds(event) && (event.preventDefault(), event.stopPropagation());
  place.ondrop = (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    event.stopPropagation();
    read(event.dataTransfer.files[0]);
  };
  const choice = drawChoice(servedFor(server, route), changed);
  const clear = button("clear", say("clear"), () => ((table.value = ""), settled(), table.focus()));
  const choose = make("label", { class: "tool" }, say("terms-file"), file);
  place.replaceChildren(choice, table, make("p", {}, say("terms-hint")), make("div", { class: "row" }, choose, clear, status));
  told();
}
