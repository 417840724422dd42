/* An HTML file as stretches of text with the tags inside them, which the server puts back in their places. What is
   between them, such as tags that begin a paragraph, stays as it is, letter for letter. */

import { ask } from "./server.js";

const BLOCKS = new Set(
  ("address article aside blockquote body button caption col colgroup dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 " +
    "h4 h5 h6 head header hgroup hr html legend li link main menu meta nav ol optgroup option p search section select source summary table tbody td " +
    "tfoot th thead title tr ul").split(" "),
);
const LEFT_ALONE = new Set("audio canvas iframe math noscript object pre script style svg template textarea video".split(" "));
const NOT_TRANSLATED = /\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate\b)/i;
const TAG = /<(\/?)([a-z][^\s/>]*)/iy;

// Where a tag ends that begins at a place: a > in quotes does not end it.
function endOfTag(text, start) {
  let quote = "";
  for (let at = start; at < text.length; at += 1) {
    const letter = text[at];
    if (quote) quote = letter === quote ? "" : quote;
    else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === ">") return at + 1;
  }
  return text.length;
}

function after(text, mark, start) {
  const at = text.indexOf(mark, start);
  return at < 0 ? text.length : at + mark.length;
}

// Where an element ends, whose start tag ends at a place; the same element may be inside of it.
function endOfElement(text, name, start) {
  const ends = new RegExp(`<(/?)${name.replace(/\W/g, "\\$&")}(?=[\\s/>])`, "gi");
  ends.lastIndex = start;
  let depth = 1;
  for (let found = ends.exec(text); found; found = ends.exec(text)) {
    depth += found[1] ? -1 : 1;
    if (depth === 0) return endOfTag(text, found.index);
  }
  return text.length;
}

// What begins with a < and cuts the text: its end; null where it is inside a stretch.
function endOfCut(text, start) {
  if (text.startsWith("<!--", start)) return after(text, "-->", start + 4);
  if ("!?".includes(text[start + 1] ?? " ")) return after(text, ">", start);
  TAG.lastIndex = start;
  const tag = TAG.exec(text);
  if (!tag) return null;
  const end = endOfTag(text, start);
  const name = tag[2].toLowerCase();
  const isLeftAlone = LEFT_ALONE.has(name) || NOT_TRANSLATED.test(text.slice(start, end));
  if (isLeftAlone && !tag[1] && text[end - 2] !== "/") return endOfElement(text, name, end);
  return BLOCKS.has(name) ? end : null;
}

// The whole file in parts: stretches of text, and what is between them, in turns.
function cut(text) {
  const parts = [];
  let begin = 0;
  for (let at = text.indexOf("<"); at >= 0; ) {
    const end = endOfCut(text, at);
    if (end !== null) {
      parts.push(text.slice(begin, at), text.slice(at, end));
      begin = end;
    }
    at = text.indexOf("<", end ?? endOfInline(text, at));
  }
  return [...parts, text.slice(begin)];
}

function endOfInline(text, at) {
  TAG.lastIndex = at;
  return TAG.test(text) ? endOfTag(text, at) : at + 1;
}

const hasWords = (part) => /\p{L}/u.test(part.replace(/<[^>]*>|&\w+;/g, ""));

export function readHtml(text) {
  const parts = cut(text);
  const isSegment = parts.map((part, i) => i % 2 === 0 && hasWords(part));
  const write = (translations) => {
    let next = 0;
    return parts.map((part, i) => (isSegment[i] ? part.replace(/\S[^]*\S|\S/, () => translations[next++]) : part)).join("");
  };
  return { segments: parts.filter((_, i) => isSegment[i]).map((part) => part.trim()), write, translate: translateHtml };
}

async function translateHtml(texts, { source, target, model }, signal) {
  const answer = await ask("v1/translate", { texts, source, target, format: "html", ...(model && { model }) }, signal);
  return answer.translations.map(({ text }) => text);
}
