/* What came of a file: how much is from a memory, how terms and numbers fared, and the first places to look at. The server
   counts where it translates the whole file; where the page does that text by text, it counts in the same way. */

import { make } from "./element.js";
import { MARKS, ofNumbers, ofTerm, ofUnit } from "./notes.js";
import { count, quoted, say } from "./say.js";

const MOST = 5; // places that are named
const LETTERS = 80; // of a text that is one

const beginOf = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS).trimEnd()}…` : text);
const takenOf = ({ memory = [] }) => memory.filter(({ taken }) => taken);

// What to look at in a translation, as the server says it of a whole file.
function placeOf(text, row) {
  return {
    text: beginOf(text),
    marks: row.marks ?? [],
    numbers: row.numbers,
    terms: (row.terms ?? []).filter(({ status }) => status !== "used"),
    memory: takenOf(row).filter(({ kind }) => kind === "repaired"),
  };
}

const isNotable = ({ marks, numbers, terms, memory }) => Boolean(marks.length || numbers || terms.length || memory.length);

function tally(keys) {
  const counts = {};
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1;
  return counts;
}

function memoryOf(rows) {
  const states = rows.flatMap((row) => {
    const taken = takenOf(row);
    const state = { all: "whole", part: "part" }[row.from_memory] ?? (row.memory.length > 0 ? "near" : "none");
    return taken.some(({ kind }) => kind === "repaired") ? [state, "repaired"] : [state];
  });
  return { whole: 0, part: 0, repaired: 0, near: 0, ...tally(states) };
}

function numbersOf(rows) {
  const sum = (name) => rows.reduce((total, { numbers }) => total + (numbers?.[name].length ?? 0), 0);
  return { put_back: sum("put_back"), missing: sum("missing"), added: sum("added") };
}

// The report on a file from the translations of its texts, of which each counts once.
export function reportOf(texts, rows) {
  const of = new Map(texts.map((text, i) => [text, rows[i]]));
  const each = [...of.values()];
  const doubtful = [...of].map(([text, row]) => placeOf(text, row)).filter(isNotable);
  const hasMemory = each.some(({ memory }) => memory?.length > 0);
  const terms = each.some((row) => row.terms) && { terms: tally(each.flatMap((row) => row.terms ?? []).map(({ status }) => status)) };
  return { texts: texts.length, numbers: numbersOf(each), doubtful: doubtful.length, first: doubtful.slice(0, MOST), ...(hasMemory && { memory: memoryOf(each) }), ...terms };
}

function termsLine({ used = 0, ...others }) {
  const all = Object.values(others).reduce((total, number) => total + number, used);
  return all > 0 ? say("terms-used", { count: count(used), all: count(all) }) : say("report-no-terms");
}

function counted({ texts, memory, terms, numbers, doubtful }) {
  const shown = (counts) => Object.fromEntries(Object.entries(counts).map(([name, number]) => [name, count(number)]));
  return [
    say("report-texts", { count: count(texts) }),
    memory && say("report-memory", shown(memory)),
    terms && termsLine(terms),
    Object.values(numbers).some(Boolean) && say("report-numbers", shown(numbers)),
    doubtful > 0 ? say("report-doubtful", { count: count(doubtful) }) : say("report-clear"),
  ].filter(Boolean);
}

// What is said of one place.
function placeLines({ text, marks = [], numbers, terms = [], memory = [] }) {
  const where = quoted(text);
  return [
    ...memory.map((unit) => ofUnit(unit, where)),
    ...terms.map((term) => say("report-where", { where, said: ofTerm(term) })),
    ...ofNumbers(numbers, where),
    ...MARKS.filter((mark) => marks.includes(mark)).map((mark) => say(`mark-${mark}`, { where })),
  ];
}

export function reportLines(report) {
  const { doubtful, first } = report;
  const lines = first.flatMap(placeLines).map((line) => make("li", { class: "doubt" }, line));
  if (doubtful > first.length) lines.push(make("li", {}, say("report-more", { count: count(doubtful - first.length) })));
  return [make("li", {}, counted(report).join(" ")), ...lines];
}
