/* What may be wrong with a translation, in words. */

import { make } from "./element.js";
import { narrowNote } from "./examples.js";
import { count, languageName, listed, quoted, say } from "./say.js";

const MARKS = ["cut", "repetition", "short", "unsure", "empty", "omission", "doubled"];
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
  return translations.flatMap((translation, i) =>
    Object.entries(translation?.numbers ?? {})
      .filter(([, numbers]) => numbers.length > 0)
      .map(([how, numbers]) => make("li", { class: "doubt" }, say(`numbers-${how}`, { where: where([i + 1], translations.length), numbers: listed(numbers) }))),
  ).slice(0, MOST);
}

function unknownNote(translations) {
  const words = [...new Set(translations.flatMap((translation) => translation?.unknown_words ?? []))];
  const named = listed(words.slice(0, MOST).map(quoted)) + (words.length > MOST ? " …" : "");
  return words.length > 0 && make("li", { class: "doubt" }, say("unknown-words", { words: named }));
}

// How many terms are as a glossary demands, and what became of each other one.
function termNotes(translations) {
  const terms = translations.flatMap((translation) => translation?.terms ?? []);
  if (terms.length === 0) return [];
  const amiss = terms.filter(({ status }) => status !== "used");
  const numbers = { count: count(terms.length - amiss.length), all: count(terms.length) };
  const said = amiss.map(({ source, wanted, used, status }) => say(`term-${status}`, { source: quoted(source), used: quoted(used), wanted: wanted.map(quoted).join(" / ") }));
  const lines = [...new Set(said)].slice(0, MOST);
  return [make("li", { id: "terms-used" }, say("terms-used", numbers)), ...lines.map((line) => make("li", { class: "doubt" }, line))];
}

// What a memory has.
function memoryNotes(translations) {
  const units = translations.map((translation) => translation?.memory?.[0] ?? {});
  const exact = units.flatMap(({ kind }, i) => (kind === "exact" ? [i + 1] : []));
  const said = units.map((unit, i) => unit.score < 1 && say(`memory-${unit.kind}`, { ...unit, where: where([i + 1], units.length), score: Math.round(100 * unit.score) }));
  if (exact[0]) said.unshift(say("memory-exact", { where: where(exact, units.length) }));
  return said.filter(Boolean).slice(0, MOST).map((line) => make("li", {}, line));
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
