/* A text file as lines, each translated as in the text box; what is between them stays as it is. */

import { isBlank, recall, translateLines } from "./lines.js";

const MARK = "\ufeff"; // some files begin with it

export function readPlain(text) {
  const mark = text.startsWith(MARK) ? MARK : "";
  const parts = text.slice(mark.length).split(/(\r?\n)/); // lines, and the breaks between them
  const lines = parts.filter((part, i) => i % 2 === 0 && !isBlank(part));
  const write = (translations) => {
    let next = 0;
    const written = parts.map((part, i) => (i % 2 === 0 && !isBlank(part) ? translations[next++] : part));
    return mark + written.join("");
  };
  return { segments: lines, write, translate: translatePlain };
}

async function translatePlain(lines, route, signal) {
  const found = new Map(lines.map((line) => [line, recall(line, route)]));
  await translateLines(lines, route, signal);
  return lines.map((line) => (found.get(line) ?? recall(line, route)).text);
}
