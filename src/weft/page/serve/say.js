/* What the page says, in the language that is chosen. */

import { settings } from "./settings.js";

let words = {};

export async function learn() {
  words = (await import(`./${settings.language}.js`)).default;
  names = new Intl.DisplayNames([settings.language], { type: "language" });
  numbers = new Intl.NumberFormat(settings.language);
}

// A sentence with its values filled in.
export const say = (key, values = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

export const listed = (parts) => parts.join(say("comma"));

export const quoted = (text) => `“${text}”`;

let names; // of languages
let numbers;

export function languageName(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code; // no code that the browser knows
  }
}

export const count = (number) => numbers.format(number);

// A softmax gives nothing 0: what reads so was rounded.
export const probability = (value) => (value < 0.005 ? "< 0.01" : value.toFixed(2));

