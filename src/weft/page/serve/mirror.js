/* The words of the source, lit up behind the letters that are typed. */

import { make } from "./element.js";
import { lengthOf, overlaps, pieces } from "./letters.js";

// Where the words of a line are that its translation comes from, and those that the model never saw.
function placesIn(line, translation) {
  const found = new Map();
  for (const word of translation.words ?? []) {
    for (const [start, end] of word.source) found.set(start, { start, end, unknown: false });
  }
  for (const word of translation.unknown_words ?? []) markUnknown(line, word, found);
  let last = 0;
  const isApart = ({ start, end }) => start >= last && end > start && ((last = end), true);
  return [...found.values()].sort((a, b) => a.start - b.start).filter(isApart);
}

const isLetter = (letter) => /[\p{L}\p{M}]/u.test(letter ?? "") && !/\p{Script=Han}/u.test(letter);

// Mark a word wherever it stands, in whatever case, but not inside of another.
function markUnknown(line, word, found) {
  const [low, wanted] = [line.toLowerCase(), word.toLowerCase()];
  if (!wanted || low.length !== line.length) return;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + wanted.length)) {
    if (isLetter(line[at - 1]) || isLetter(line[at + wanted.length])) continue;
    const start = lengthOf(line.slice(0, at));
    const place = { start, end: start + lengthOf(wanted), unknown: true };
    const over = [...found.values()].filter((other) => overlaps([place.start, place.end], [other.start, other.end]));
    if (over.length === 0) found.set(start, place);
    for (const other of over) other.unknown = true;
  }
}

function drawn(line, translation) {
  const row = make("div", { class: "mirror-line" });
  if (!translation) row.append(line || make("br"));
  else row.append(...pieces(line, placesIn(line, translation)).map(({ text, place }) => (place ? wordOf(text, place) : text)));
  return row;
}

function wordOf(text, place) {
  const word = make("span", { class: place.unknown ? "source-word unknown" : "source-word" }, text);
  word.place = [place.start, place.end];
  return word;
}

export class Mirror {
  constructor(element) {
    this.element = element;
    this.rows = []; // each with its line and the translation that it was drawn with
  }

  // Lines that stayed as they were are not drawn again.
  draw(lines, translations) {
    this.rows = lines.map((line, i) => {
      const before = this.rows[i];
      const translation = translations[i];
      if (before?.line === line && before.translation === translation) return before;
      const element = drawn(line, translation);
      if (before) before.element.replaceWith(element);
      else this.element.append(element);
      return { line, translation, element };
    });
    while (this.element.children.length > lines.length) this.element.lastChild.remove();
  }

  dark() {
    for (const word of this.element.querySelectorAll(".lit")) word.classList.remove("lit");
  }

  light(number, ranges) {
    this.dark();
    for (const word of this.rows[number]?.element.querySelectorAll(".source-word") ?? []) {
      if (ranges.some((range) => overlaps(range, word.place))) word.classList.add("lit");
    }
  }

  // The line and place of the word under a point of the window; null where there is none.
  at(x, y) {
    const word = document.elementsFromPoint(x, y).find((element) => element.classList.contains("source-word"));
    if (!word) return null;
    return { number: this.rows.findIndex(({ element }) => element === word.parentNode), place: word.place };
  }
}
