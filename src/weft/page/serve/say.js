/* What the page says, in the language that is chosen. */

import { settings } from "./settings.js";

let words = {};
let heard = {}; // what the server says, which says it in English

export async function learn() {
  words = (await import(`./${settings.language}.js`)).default;
  heard = settings.language === "zh" ? (await import("./said.zh.js")).default : {};
  names = new Intl.DisplayNames([settings.language], { type: "language" });
  numbers = new Intl.NumberFormat(settings.language);
}

const filled = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);

// A sentence with its values filled in.
export const say = (key, values = {}) => filled(words[key], values);

// What the server said, in the language that is chosen, by the code that came with it; else as it was said.
export const told = (code, said, values = {}) => (Object.hasOwn(heard, code) ? filled(heard[code], { ...values, said }) : said);

export const listed = (parts) => parts.join(say("comma"));

export const quoted = (text) => `“${text}”`;

let names; // of languages
let numbers;

export function languageName(code) {
  if (code === "und") return say("unknown-language");
  try {
    return names.of(code) ?? code;
  } catch {
    return code; // no code that the browser knows
  }
}

export const count = (number) => numbers.format(number);

// A softmax gives nothing 0: what reads so was rounded.
export const probability = (value) => (value < 0.005 ? "< 0.01" : value.toFixed(2));

