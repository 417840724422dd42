/* Translations line by line: each is asked for once, a few together. */

import { ask } from "./server.js";

const TOGETHER = 16; // lines of a request
const LETTERS = 3000; // of a request, where it has more than one line
const MOST = 3000; // lines that are remembered

const known = new Map();
const wordless = new Set(); // models and pairs that cannot tell which words belong together

const nameOf = ({ source, target, model }) => `${source} ${target} ${model ?? ""}`;
const keyOf = (line, route) => `${nameOf(route)} ${JSON.stringify(route.glossary)}\n${line}`;

export const isBlank = (line) => line.trim() === "";
export const recall = (line, route) => known.get(keyOf(line, route));

// How a line came to its translation: the models, and whether words of it were chosen by a person.
export function wayOf(line, route) {
  const { models = [], own } = recall(line, route) ?? {};
  return { models, text: line, isChosen: Boolean(own) };
}

function remember(line, route, translation) {
  known.set(keyOf(line, route), translation);
  if (known.size > MOST) known.delete(known.keys().next().value);
}

// A translation that a person has made from one of the model's takes its place, until that is wanted again.
export function choose(line, route, translation) {
  const before = recall(line, route);
  remember(line, route, { ...before, ...translation, own: before?.own ?? before });
}

export function undo(line, route) {
  const own = recall(line, route)?.own;
  if (own) remember(line, route, own);
}

// Lists of lines, none too long for one request.
function* parts(lines) {
  let [part, letters] = [[], 0];
  for (const line of lines) {
    if (part.length > 0 && (part.length === TOGETHER || letters + line.length > LETTERS)) {
      yield part;
      [part, letters] = [[], 0];
    }
    part.push(line);
    letters += line.length;
  }
  if (part.length > 0) yield part;
}

async function translated(texts, route, signal) {
  const { source, target, model, glossary } = route;
  const words = !wordless.has(nameOf(route));
  try {
    const answer = await ask("v1/translate", { texts, source, target, words, memory: true, n_best: 1, glossary, ...(model && { model }) }, signal);
    return answer.translations;
  } catch (error) {
    if (error.code !== "unsupported" || !words) throw error;
    wordless.add(nameOf(route));
    return translated(texts, route, signal);
  }
}

// Ask for the lines that are not known yet, and call `received` whenever some came.
export async function translateLines(lines, route, signal, received) {
  const missing = [...new Set(lines)].filter((line) => !isBlank(line) && !recall(line, route));
  for (const part of parts(missing)) {
    const translations = await translated(part, route, signal);
    part.forEach((line, i) => remember(line, route, translations[i]));
    received();
  }
}
