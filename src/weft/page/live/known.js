/* The words that training had, as weft.data.known keeps them: 32 bits of a hash for each. */

const DIGITS_AND_CIRCLED =
  "\\p{Nd}\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea" +
  "\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}";
const HAS_DIGIT = new RegExp(`[${DIGITS_AND_CIRCLED}]`, "u");
const BEGINS_WORD = /[\p{L}\p{N}]/u;
const ENDS_WORD = /[\p{L}\p{N}\p{M}]/u;
// scripts that put no space between words: each character is one
const WORDS_ALONE =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]/gu;
// a Latin letter in any case, as Python finds it in any case: with İ, ı, ſ and the sign of Kelvin
const TAG = /<\/?[a-zA-Z\u0130\u0131\u017f\u212a][^<>]{0,200}>/gu;
const BETWEEN = new RegExp(`[${SPACES}\\-‐–—/'’.]+`, "u");

// A text without case, as Unicode folds it (CaseFolding.txt, C and F): what is written alike in capitals is alike. Of
// Cherokee the capitals stay; ı is no i.
function foldCharacter(character) {
  if (character === "ı") return character;
  if (/[\u13a0-\u13fd\uab70-\uabbf]/u.test(character)) return character.toUpperCase();
  return character.toLowerCase().toUpperCase().toLowerCase();
}

const foldCase = (text) => text.replace(/[A-Z\x80-\u{10ffff}]/gu, foldCharacter);

// Where words end a text is divided, its tags are left out; marks around words are still there.
const wordParts = (text) => text.replace(TAG, " ").normalize("NFC").replace(WORDS_ALONE, " $& ").split(BETWEEN);

// What is left of a part without the marks at its ends.
function bareWord(part) {
  const letters = Array.from(part);
  let start = 0;
  let end = letters.length;
  while (start < end && !BEGINS_WORD.test(letters[start])) start++;
  while (end > start && !ENDS_WORD.test(letters[end - 1])) end--;
  return letters.slice(start, end).join("");
}

// The words of a text without case; what has a digit is none.
const foldedWords = (text) => wordParts(foldCase(text)).map(bareWord).filter((word) => word && !HAS_DIGIT.test(word));

// What each byte adds to a CRC (ISO 3309: the polynomial 0x04c11db7, the lowest bit first).
const CRC_OF_BYTE = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

const hashOfWord = (word) => ~utf8.encode(word).reduce((rest, byte) => CRC_OF_BYTE[(rest ^ byte) & 255] ^ (rest >>> 8), -1);

class KnownWords {
  // Sorted hashes.
  constructor(hashes) {
    this.hashes = hashes;
  }

  knows(word) {
    const hash = hashOfWord(word);
    let low = 0;
    for (let high = this.hashes.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (this.hashes[middle] < hash) low = middle + 1;
      else high = middle;
    }
    return this.hashes[low] === hash;
  }

  // The words of a text that are not among them, each once and as the text first writes it.
  unknown(text) {
    const unknown = new Set(foldedWords(text).filter((word) => !this.knows(word)));
    const found = new Map();
    for (const part of unknown.size ? wordParts(text) : []) {
      for (const word of foldedWords(part)) {
        if (unknown.has(word) && !found.has(word)) found.set(word, bareWord(part));
      }
    }
    return [...found.values()];
  }

  // How much of a text the words are that are not among them: "none", "some", "most" or "all", also where it has no word.
  extentOf(text) {
    const words = new Set(foldedWords(text));
    const count = [...words].filter((word) => !this.knows(word)).length;
    if (count === words.size) return "all";
    return count === 0 ? "none" : 2 * count > words.size ? "most" : "some";
  }
}

// The words of a model's training; null where they are not kept.
const knownWordsOf = (card, buffer) => (card.known ? new KnownWords(viewOf(buffer, card.known)) : null);

const unknownWordsOf = (model, text) => model.known?.unknown(text) ?? null;
