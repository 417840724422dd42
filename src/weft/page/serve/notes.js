/* What may be wrong with a translation, in words. */

import { make } from "./element.js";
import { narrowNote } from "./examples.js";
import { count, languageName, listed, quoted, say } from "./say.js";

export const MARKS = ["cut", "repetition", "short", "unsure", "empty", "omission", "doubled"];
const MOST = 12; // words that are named

// "Line 3" and so on; a text of one line is the translation.
function where(numbers, lines) {
  if (lines === 1) return say("mark-text");
  return numbers.length === 1 ? say("mark-line", { line: numbers[0] }) : say("mark-lines", { lines: listed(numbers) });
}

function markNote(mark, translations) {
  const numbers = translations.flatMap((translation, i) => (translation?.marks?.includes(mark) ? [i + 1] : []));
  return numbers.length > 0 && make("li", { class: "doubt" }, say(`mark-${mark}`, { where: where(numbers, translations.length) }));
}

// Numbers that one side has and the other has not, and those that were put back.
function numberNotes(translations) {
  const said = translations.flatMap((translation, i) => ofNumbers(translation?.numbers, where([i + 1], translations.length)));
  return said.slice(0, MOST).map((line) => make("li", { class: "doubt" }, line));
}

function unknownNote(translations) {
  const words = [...new Set(translations.flatMap((translation) => translation?.unknown_words ?? []))];
  const named = listed(words.slice(0, MOST).map(quoted)) + (words.length > MOST ? " …" : "");
  return words.length > 0 && make("li", { class: "doubt" }, say("unknown-words", { words: named }));
}

export const ofTerm = ({ source, wanted, used, status }) => say(`term-${status}`, { source: quoted(source), used: quoted(used), wanted: wanted.map(quoted).join(" / ") });
export const ofUnit = (unit, where) => say(`memory-${unit.kind}`, { ...unit, where, score: Math.round(100 * unit.score) });
export const ofNumbers = (numbers, where) =>
  Object.entries(numbers ?? {})
    .filter(([, some]) => some.length > 0)
    .map(([how, some]) => say(`numbers-${how}`, { where, numbers: listed(some) }));

// How many terms are as a glossary demands, and what became of each other one.
function termNotes(translations) {
  const terms = translations.flatMap((translation) => translation?.terms ?? []);
  if (terms.length === 0) return [];
  const amiss = terms.filter(({ status }) => status !== "used");
  const numbers = { count: count(terms.length - amiss.length), all: count(terms.length) };
  const lines = [...new Set(amiss.map(ofTerm))].slice(0, MOST);
  return [make("li", { id: "terms-used" }, say("terms-used", numbers)), ...lines.map((line) => make("li", { class: "doubt" }, line))];
}

// What a memory has: lines that it has whole, those of which it has a part, and each unit that is not the text itself.
function memoryNotes(translations) {
  const lines = (share) => translations.flatMap((translation, i) => (translation?.from_memory === share ? [i + 1] : []));
  const isWhole = (i) => translations[i].memory.every(({ kind }) => kind === "exact");
  const all = lines("all").filter((number) => isWhole(number - 1));
  const said = [["exact", all], ["part", lines("part")]].filter(([, numbers]) => numbers[0]).map(([how, numbers]) => say(`memory-${how}`, { where: where(numbers, translations.length) }));
  const units = translations.flatMap((translation, i) => notable(translation?.memory ?? []).map((unit) => ofUnit(unit, where([i + 1], translations.length))));
  return [...said, ...new Set(units)].slice(0, MOST).map((line) => make("li", {}, line));
}

// The units with other numbers; where nothing was taken, the nearest one.
function notable(units) {
  if (units.some(({ taken }) => taken)) return units.filter(({ kind }) => kind === "repaired");
  return units.slice(0, 1);
}

// The share of the words that is expected to be right, where the models have learned to doubt.
function qualityNote(translations) {
  const known = translations.filter((translation) => translation?.quality !== undefined);
  const words = known.map((translation) => translation.words?.length || 1);
  const right = known.reduce((sum, { quality }, i) => sum + quality * words[i], 0);
  const all = words.reduce((sum, number) => sum + number, 0);
  return all > 0 && make("li", { id: "quality" }, say("quality", { share: Math.round((100 * right) / all) }));
}

// The models that translated, and the languages between them where it took two.
function modelNote(translations, served) {
  const routes = translations.flatMap((translation) => (translation?.models ? [translation.models] : []));
  const models = [...new Set(routes.flat())];
  if (models.length === 0) return false;
  const targetOf = (id) => served.find((model) => model.id === id)?.target;
  const bridges = [...new Set(routes.flatMap((ids) => ids.slice(0, -1).map(targetOf)))].filter(Boolean);
  const names = listed(models);
  if (bridges.length === 0) return make("li", {}, say("by-model", { models: names }));
  return make("li", {}, say("by-way-of", { languages: listed(bridges.map(languageName)), models: names }));
}

export function drawNotes(translations, served) {
  const marks = MARKS.map((mark) => markNote(mark, translations));
  return [...memoryNotes(translations), ...termNotes(translations), qualityNote(translations), ...marks, ...numberNotes(translations), unknownNote(translations), narrowNote(translations, served), modelNote(translations, served)].filter(Boolean);
}
