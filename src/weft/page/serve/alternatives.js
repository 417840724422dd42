/* Other words at a place of a translation, to choose from. */

import { make } from "./element.js";
import { lengthOf, slicer } from "./letters.js";
import { probability, quoted, say } from "./say.js";
import { ask } from "./server.js";
import { hideTip } from "./tip.js";

const MOST = 5;

let close = () => {};
let isAnchored = () => true; // whether the word still stands in the page

const query = (line, route, prefix, alternatives) => {
  const { source, target, model, glossary } = route;
  return { text: line, prefix, source, target, alternatives, glossary, ...(model && { model }) };
};

// What follows the next word in a translation that begins with `prefix`.
function restAfter(prefix, next, translation) {
  return translation.slice(translation.indexOf(next.trim(), prefix.length) + next.trim().length);
}

// The words of a text that another may go on with.
function wordsOf(text, words) {
  const length = lengthOf(text);
  const inside = words.filter(({ start }) => start < length);
  return inside.map((word) => ({ ...word, end: Math.min(word.end, length) }));
}

function option({ text, translation, probability: value }, number, prefix) {
  const rest = restAfter(prefix, text, translation);
  const attributes = { role: "option", id: `other-${number}`, "aria-selected": "false", class: number === 0 ? "current" : "" };
  const shown = Number.isFinite(value) && make("small", {}, probability(value));
  return make("li", attributes, make("b", {}, text.trim()), make("span", {}, rest), shown);
}

// Below its anchor, and inside of what it stands in.
function place(popup, anchor) {
  if (!popup.isConnected) return; // it was closed while its words were on their way
  const inside = popup.parentNode.clientWidth - popup.offsetWidth;
  const left = anchor.offsetLeft - 12;
  popup.style.setProperty("left", `${Math.max(Math.min(left, inside), 0)}px`);
  popup.style.setProperty("top", `${anchor.offsetTop + anchor.offsetHeight + 4}px`);
}

// Show other words in the place of one; `chosen` gets the translation with the one that is taken, first its text and
// then its words too, `failed` the reason where there are none.
export async function openAlternatives(anchor, line, translation, route, { chosen, failed }) {
  close();
  hideTip();
  const { word } = anchor;
  const left = new AbortController();
  const prefix = slicer(translation.text)(0, word.start);
  const title = say("instead-of", { word: quoted(word.text) });
  const list = make("ul", { role: "listbox", tabindex: "0", "aria-label": title, "aria-busy": "true" });
  const popup = make("div", { class: "popup" }, make("p", {}, title), list);
  close = shut;
  isAnchored = () => anchor.isConnected;
  anchor.parentNode.parentNode.append(popup);
  anchor.setAttribute("aria-expanded", "true");
  place(popup, anchor);
  list.focus();
  popup.addEventListener("focusout", (event) => popup.contains(event.relatedTarget) || shut());

  function shut(back = false) {
    left.abort();
    anchor.removeAttribute("aria-expanded");
    close = () => {};
    isAnchored = () => true;
    if (back) anchor.focus();
    popup.remove();
  }

  let others = [];
  let at = 0;
  const mark = (next) => {
    at = (next + others.length) % others.length;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", `${i === at}`));
    list.setAttribute("aria-activedescendant", `other-${at}`);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const take = async () => {
    const other = others[at];
    shut(true);
    if (at === 0) return; // it stands there already
    const text = other.translation; // what was shown is what is got
    chosen({ text, words: undefined, terms: undefined, quality: undefined }, null);
    try {
      const { words, terms } = await ask("v1/complete", { ...query(line, route, text, 0), beam_size: 1 });
      chosen({ text, words: wordsOf(text, words), terms }, word.start);
    } catch (error) {
      failed(error);
    }
  };
  list.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: others.length - 1 };
    if (event.key === "Escape" || event.key === "Tab") shut(event.key === "Escape");
    else if (others.length > 0 && event.key in moves) mark(moves[event.key]);
    else if (others.length > 0 && (event.key === "Enter" || event.key === " ")) take();
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("pointerover", (event) => {
    const item = event.target.closest("li[role]");
    if (item) mark([...list.children].indexOf(item));
  });
  list.addEventListener("click", (event) => event.target.closest("li[role]") && take());

  try {
    const answer = await ask("v1/complete", query(line, route, prefix, MOST), left.signal);
    const isOther = ({ text }) => text.trim() !== word.text;
    const current = { text: word.text, translation: translation.text, probability: word.probability };
    others = [current, ...answer.alternatives.filter(isOther)];
    list.replaceChildren(...others.map((other, i) => option(other, i, prefix)));
    mark(Math.min(1, others.length - 1));
    if (others.length === 1) popup.append(make("p", { role: "status" }, say("no-others")));
  } catch (error) {
    if (!left.signal.aborted) popup.append(make("p", { role: "status", class: "refused" }, error.message));
  } finally {
    list.removeAttribute("aria-busy");
    place(popup, anchor);
    popup.scrollIntoView({ block: "nearest" });
  }
}

export const closeAlternatives = () => close();

// Close the list of a word whose line was drawn anew.
export const closeUnanchored = () => isAnchored() || close();
