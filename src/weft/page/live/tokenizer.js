/* A tokenizer: text to ids and back, as Weft’s own does it. */

const [PAD_ID, UNK_ID, BOS_ID, EOS_ID] = [0, 1, 2, 3];
const SPECIAL_LABELS = ["<pad>", "<unk>", "<bos>", "<eos>"];

const isByteLevel = (kind) => ["bpe", "unigram", "byte"].includes(kind);

// Letters for bytes (Radford et al. 2019, section 2.2): printable bytes of Latin-1 stand for themselves, the others in
// their order for the letters from U+0100 on.
const isPrintable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);

const BYTE_LETTERS = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
})();

const BYTE_OF_LETTER = new Map(BYTE_LETTERS.map((letter, byte) => [letter, byte]));

const utf8 = new TextEncoder();
const fromUtf8 = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

const byteLetters = (text) => Array.from(utf8.encode(text), (byte) => BYTE_LETTERS[byte]).join("");

// Half a character, which UTF-8 cannot hold, becomes U+FFFD.
const withoutHalves = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

/* Normalization and words */

// What the tokenizers library leaves as it is in NFKC: its tables are older than these characters.
const NEWER = /([\u32ff\ua7f1-\ua7f4\uab69\u{10780}-\u{107bf}\u{1ccd6}-\u{1ccf9}\u{1e030}-\u{1e06d}\u{1f16c}\u{1fbf0}-\u{1fbf9}])/u;

function formed(text, form) {
  if (form === "raw") return text;
  const parts = form === "NFKC" ? text.split(NEWER) : [text];
  return parts.map((part, i) => (i % 2 ? part : part.normalize(form))).join("");
}

const lowered = (text) => Array.from(text, (character) => character.toLowerCase()).join("");

const SPACELESS = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"].map((name) => `\\p{Script=${name}}`).join("");
const WHITE_SPACE = "\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+";
const notSpaceless = (set) => `(?:(?![${SPACELESS}])[${set}])+`;

// What a text is cut into before its pieces are found: runs of letters, up to three digits, runs of marks, each with a
// space before it; or words by scripts; or runs between white space.
const PATTERNS = {
  pieces: ` ?[\\p{L}\\p{M}]+| ?\\p{N}{1,3}| ?[^\\p{White_Space}\\p{L}\\p{M}\\p{N}]+|${WHITE_SPACE}`,
  unicode:
    `[${SPACELESS}]\\p{M}*| ?${notSpaceless("\\p{L}\\p{M}")}| ?${notSpaceless("\\p{N}")}` +
    `| ?[^\\p{White_Space}\\p{L}\\p{M}\\p{N}${SPACELESS}]|${WHITE_SPACE}`,
  whitespace: " ?\\n|<(?=0x)| ?\\P{White_Space}+|(?:(?!\\n)\\p{White_Space})+(?![\\P{White_Space}\\n])|(?:(?!\\n)\\p{White_Space})+",
};

// The matches of a pattern, and what stands between them.
function cutBy(text, pattern) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push(match[0]);
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/* Byte pair encoding */

// A heap of pairs [rank, place]; the lowest rank comes first, of equal ones the place further left.
class Heap {
  constructor() {
    this.items = [];
  }

  static isBefore(a, b) {
    return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
  }

  push(item) {
    const { items } = this;
    let at = items.length;
    items.push(item);
    while (at) {
      const above = (at - 1) >> 1;
      if (!Heap.isBefore(item, items[above])) break;
      items[at] = items[above];
      at = above;
    }
    items[at] = item;
  }

  pop() {
    const { items } = this;
    const first = items[0];
    const last = items.pop();
    if (!items.length) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && Heap.isBefore(items[below + 1], items[below])) below++;
      if (!Heap.isBefore(items[below], last)) break;
      items[at] = items[below];
      at = below;
    }
    items[at] = last;
    return first;
  }
}

// Merges of ids: a pair’s rank, and the id that it becomes.
class Merges {
  constructor(pairs, pieces, idOf) {
    this.size = pieces.length;
    this.ranks = new Map();
    this.results = [];
    for (let rank = 0; rank < pairs.length / 2; rank++) {
      const [left, right] = [pairs[2 * rank], pairs[2 * rank + 1]];
      this.ranks.set(left * this.size + right, rank);
      this.results.push(idOf.get(pieces[left] + pieces[right]));
    }
  }

  rank(left, right) {
    return this.ranks.get(left * this.size + right);
  }

  // Merge the pair of the lowest rank, the leftmost of equal ones, until there is none; `told` hears of each merge.
  apply(ids, told = () => {}) {
    const symbols = [...ids];
    const next = symbols.map((_, i) => i + 1);
    const before = symbols.map((_, i) => i - 1);
    const heap = new Heap();
    const offer = (at) => {
      const rank = at >= 0 && next[at] < symbols.length ? this.rank(symbols[at], symbols[next[at]]) : undefined;
      if (rank !== undefined) heap.push([rank, at]);
    };
    symbols.forEach((_, i) => offer(i));
    while (heap.items.length) {
      const [rank, at] = heap.pop();
      const right = next[at];
      if (symbols[at] === null || right >= symbols.length || this.rank(symbols[at], symbols[right]) !== rank) continue;
      told(symbols[at], symbols[right]);
      symbols[at] = this.results[rank];
      symbols[right] = null;
      next[at] = next[right];
      if (next[at] < symbols.length) before[next[at]] = at;
      offer(before[at]);
      offer(at);
    }
    return symbols.filter((id) => id !== null);
  }
}

/* The tokenizer */

class Tokenizer {
  // `data`: kind, words, unicode, lowercase, leadingSpace, pieces in the order of their ids, merges as pairs of ids, or scores.
  constructor(data) {
    Object.assign(this, data);
    this.idOf = new Map(this.pieces.map((piece, id) => [piece, id]));
    this.merging = new Merges(this.merges ?? [], this.pieces, this.idOf);
    this.longest = this.scores ? this.pieces.reduce((most, piece) => Math.max(most, piece.length), 1) : 0;
    this.pattern = new RegExp(PATTERNS[this.kind === "word" ? this.words : "pieces"], "gu");
    this.known = new Map(); // ids of words that were met
  }

  // The text as the model knows it, with the space that may stand before it.
  prepared(text) {
    let normal = formed(withoutHalves(text), this.unicode);
    if (this.lowercase) normal = lowered(normal);
    return normal && this.leadingSpace ? ` ${normal}` : normal;
  }

  // The words that the pieces are found in, each by itself.
  wordsOf(text) {
    const prepared = this.prepared(text);
    return this.kind === "character" ? Array.from(prepared) : cutBy(prepared, this.pattern);
  }

  encode(text) {
    return this.wordsOf(text).flatMap((word) => this.idsOf(word));
  }

  idsOf(word) {
    let ids = this.known.get(word);
    if (!ids) {
      ids = this.cut(word);
      if (this.known.size > 20000) this.known.clear();
      this.known.set(word, ids);
    }
    return ids;
  }

  cut(word) {
    if (!isByteLevel(this.kind)) return this.spelled(word);
    const letters = byteLetters(word);
    return this.scores ? this.mostProbable(letters) : this.merging.apply(Array.from(letters, (letter) => this.idOf.get(letter)));
  }

  // A word that is a piece; else its characters, those that are none by their bytes.
  spelled(word) {
    const whole = this.idOf.get(word);
    if (whole !== undefined) return [whole];
    return Array.from(word).flatMap((character) => {
      const id = this.idOf.get(character);
      if (id !== undefined) return [id];
      const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
      return Array.from(utf8.encode(character), (byte) => this.idOf.get(`<0x${hex(byte)}>`));
    });
  }

  // The most probable way to cut a word into pieces (Kudo 2018, section 3.2); of equal ones the first that is found.
  mostProbable(letters) {
    const best = new Float64Array(letters.length + 1).fill(-Infinity);
    const from = new Int32Array(letters.length + 1);
    const piece = new Int32Array(letters.length + 1);
    best[0] = 0;
    for (let start = 0; start < letters.length; start++) {
      const last = Math.min(letters.length, start + this.longest);
      for (let end = start + 1; end <= last; end++) {
        const id = this.idOf.get(letters.slice(start, end));
        if (id === undefined || id <= EOS_ID) continue;
        const score = best[start] + this.scores[id];
        if (score <= best[end]) continue;
        best[end] = score;
        from[end] = start;
        piece[end] = id;
      }
    }
    const ids = [];
    for (let end = letters.length; end; end = from[end]) ids.unshift(piece[end]);
    return ids;
  }

  // The bytes that an id stands for, which need not be whole characters; none for a special one.
  bytes(id) {
    const piece = this.pieces[id];
    if (id <= EOS_ID) return [];
    if (isByteLevel(this.kind)) return Array.from(piece, (letter) => BYTE_OF_LETTER.get(letter));
    const byte = this.byteOf(id);
    return byte === null ? Array.from(utf8.encode(piece)) : [byte];
  }

  // The byte that a piece of the kinds without byte letters spells; null for any other.
  byteOf(id) {
    if (isByteLevel(this.kind) || id <= EOS_ID || id > EOS_ID + 256) return null;
    return parseInt(this.pieces[id].slice(3, 5), 16);
  }

  decode(ids) {
    const ordinary = ids.filter((id) => id > EOS_ID);
    const text = isByteLevel(this.kind) ? fromUtf8(Uint8Array.from(ordinary.flatMap((id) => this.bytes(id)))) : this.fallenBack(ordinary);
    return this.leadingSpace && text.startsWith(" ") ? text.slice(1) : text;
  }

  // Runs of bytes are one text where they are UTF-8, else each of them is U+FFFD.
  fallenBack(ids) {
    let text = "";
    let run = [];
    const close = () => {
      try {
        text += new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(Uint8Array.from(run));
      } catch {
        text += "\ufffd".repeat(run.length);
      }
      run = [];
    };
    for (const id of ids) {
      const byte = this.byteOf(id);
      if (byte === null) {
        close();
        text += this.pieces[id];
      } else run.push(byte);
    }
    close();
    return text;
  }

  // The labels of ids for people to read: a space is ▁, bytes that only together are a character have their part of it.
  labels(ids) {
    const labels = [];
    while (labels.length < ids.length) {
      const some = ids.slice(labels.length, labels.length + 8);
      labels.push(...this.nextLabels(some));
    }
    return labels;
  }

  nextLabels(ids) {
    if (ids[0] <= EOS_ID) return [SPECIAL_LABELS[ids[0]]];
    const spelled = [];
    for (const [i, id] of ids.entries()) {
      if (id <= EOS_ID) break;
      spelled.push(...this.bytes(id));
      const text = whole(spelled);
      if (text === null) continue;
      return i ? ids.slice(0, i + 1).map((_, part) => `${text}[${part + 1}/${i + 1}]`) : [text];
    }
    return [inHexadecimal(this.bytes(ids[0]))];
  }
}

// The text of bytes, its spaces as ▁; null where they are no UTF-8.
function whole(bytes) {
  try {
    return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(Uint8Array.from(bytes)).replaceAll(" ", "▁");
  } catch {
    return null;
  }
}

// Bytes of which not all are UTF-8: what is no character in hexadecimal.
function inHexadecimal(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const sizes = [1, 2, 3, 4].filter((size) => at + size <= bytes.length && whole(bytes.slice(at, at + size)) !== null);
    text += sizes.length ? whole(bytes.slice(at, at + sizes[0])) : `\\x${bytes[at].toString(16).padStart(2, "0")}`;
    at += sizes[0] ?? 1;
  }
  return text;
}
