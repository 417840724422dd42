/* A translation as words: how doubtful each is, and what it comes from. */

import { make } from "./element.js";
import { lengthOf, overlaps, pieces } from "./letters.js";
import { probability, say } from "./say.js";
import { hideTip, showTip } from "./tip.js";

// How sure a word is: that it is right, where a model has learned to say so, else its probability.
const surenessOf = ({ quality, probability: value }) => quality ?? value;
const sayHowSure = (word) => say(word.quality === undefined ? "probability" : "word-quality", { value: probability(surenessOf(word)) });

function wordOf(text, word) {
  const name = say("word-said", { word: text, said: sayHowSure(word) });
  const element = make("span", { class: "word", role: "button", tabindex: "-1", "aria-haspopup": "listbox", "aria-label": name }, text);
  element.style.setProperty("--doubt", (1 - surenessOf(word)).toFixed(3));
  element.word = word;
  return element;
}

// Where terms of a glossary stand in a translation: the first place of each that no other one has.
function termPlaces({ text, terms = [] }) {
  const at = new Map(); // where to look for the next one of the same
  return terms.filter(({ used }) => used).flatMap((term) => {
    const place = text.indexOf(term.used, at.get(term.used) ?? 0);
    if (place < 0) return [];
    at.set(term.used, place + term.used.length);
    const start = lengthOf(text.slice(0, place));
    return [{ term, range: [start, start + lengthOf(term.used)] }];
  });
}

function markTerm(element, places) {
  const { start, end } = element.word;
  const found = places.find(({ range }) => overlaps(range, [start, end]));
  if (!found) return;
  const { source, status } = found.term;
  element.classList.add("term");
  element.classList.toggle("amiss", status !== "used");
  element.setAttribute("aria-label", `${element.getAttribute("aria-label")}, ${say("term-of", { source })}`);
}

function drawn(translation, lang) {
  const row = make("div", { class: "line", lang, dir: "auto" });
  if (!translation) return row;
  const places = translation.words ?? [];
  row.append(...pieces(translation.text, places).map(({ text, place }) => (place ? wordOf(text, place) : text)));
  const terms = termPlaces(translation);
  for (const element of row.children) markTerm(element, terms);
  return row;
}

export class Result {
  // `point` is told the line and the word that are pointed at, null for none; `open` those that are chosen.
  constructor(element, { point, open }) {
    this.element = element;
    this.rows = []; // the translation of each line, and its element
    this.point = point;
    this.open = open;
    element.addEventListener("pointerover", (event) => this.at(event.target));
    element.addEventListener("pointerleave", () => this.at(document.activeElement));
    element.addEventListener("focusin", (event) => this.come(event.target));
    element.addEventListener("focusout", () => this.at(null));
    element.addEventListener("keydown", (event) => this.move(event));
    element.addEventListener("click", (event) => getSelection().isCollapsed && this.choose(event.target));
  }

  // A line that has no translation yet keeps the one before, paler.
  draw(translations, blank, lang) {
    const rows = this.rows;
    this.rows = translations.map((translation, i) => {
      const before = rows[i];
      const waits = !translation && !blank[i];
      if (before && (before.translation === translation || waits)) {
        before.element.classList.toggle("stale", waits);
        return waits ? { ...before, translation: undefined } : before;
      }
      const element = drawn(translation, lang);
      if (before) before.element.replaceWith(element);
      else this.element.append(element);
      return { translation, element };
    });
    // only lines: a list of other words may stand behind them
    for (const { element } of rows.slice(translations.length)) element.remove();
    this.words()[0]?.setAttribute("tabindex", "0");
  }

  words = () => [...this.element.querySelectorAll(".word")];

  placeOf(element) {
    return { number: this.rows.findIndex((row) => row.element === element.parentNode), word: element.word };
  }

  at(element) {
    const word = element?.word ? element : null;
    if (word) showTip(word, sayHowSure(word.word));
    else hideTip();
    this.point(word && this.placeOf(word));
  }

  come(element) {
    if (!element.word) return;
    for (const word of this.words()) word.tabIndex = word === element ? 0 : -1;
    this.at(element);
  }

  move(event) {
    if (!event.target.word) return;
    const words = this.words();
    const here = words.indexOf(event.target);
    const next = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0, End: words.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(event.target);
    else if (next === undefined) return;
    else words[next]?.focus();
    event.preventDefault();
  }

  choose(element) {
    if (element.word) this.open(element, this.placeOf(element));
  }

  dark() {
    for (const word of this.element.querySelectorAll(".lit")) word.classList.remove("lit");
  }

  // Light up the words of a line that come from a place of its source.
  light(number, place) {
    this.dark();
    for (const element of this.rows[number]?.element.querySelectorAll(".word") ?? []) {
      if (element.word.source.some((range) => overlaps(range, place))) element.classList.add("lit");
    }
  }
}
