/* Which words of a translation belong to which words of its source, as weft.predict.alignment has it: by what each source
   token has written into the logits. Shapes: T target tokens, S source tokens, end symbols included. */

const LEAST_SHARE = 0.25; // in nats: of whose logit no source token wrote so much, that comes from none
const FLAT_LOOKS = 0.97; // of the most possible entropy
const LEAST_OF_WORD = 0.5; // of what a word's main source wrote, so much makes another one

/* Support */

// How much each source token supports each target token, (T, S): its share, where the looks at the source say something.
function supportOf(maps, written, { values: shares }) {
  const [, , rows, keys] = maps.shape;
  const support = Float64Array.from(shares);
  for (let row = 0; row < rows; row++) {
    const own = support.subarray(row * keys, (row + 1) * keys);
    const isWeak = own.every((share) => share < LEAST_SHARE);
    if (isWeak || evennessAt(maps, written, row) > FLAT_LOOKS) own.fill(0);
  }
  return { keys, values: support };
}

// How even the looks at the source were at a target token: the entropy of each, counted by what it carried.
function evennessAt({ shape: [layers, heads, rows, keys], values: weights }, { values: written }, row) {
  if (keys === 1) return 0;
  let even = 0;
  let inAll = 0;
  for (let map = 0; map < layers * heads; map++) {
    const from = (map * rows + row) * keys;
    let entropy = 0;
    let size = 0;
    for (let at = from; at < from + keys; at++) {
      if (weights[at] > 0) entropy -= weights[at] * Math.log(weights[at]);
      size += Math.abs(written[at]);
    }
    even += size * entropy;
    inAll += size;
  }
  return inAll ? even / (inAll * Math.log(keys)) : 0;
}

/* Words */

const SPACE = "[\\p{White_Space}\\x1c-\\x1f]";
const EDGES = new RegExp(`^${SPACE}+|${SPACE}+$`, "gu");
const BEGINS_WITH_SPACE = new RegExp(`^${SPACE}`, "u");
const ENDS_WITH_SPACE = new RegExp(`${SPACE}$`, "u");
const IS_MARKS = /^[\p{P}\p{S}]+$/u;
const LETTERS = /\p{L}/gu;
// Letters of scripts that write no space between words, by their names as weft.data.scripts tells them apart.
const ALONE =
  /(?![\u303b\uff66-\uff9f\u{16fe3}\u{1b002}-\u{1b11e}])(?=\p{L})[\u{1aff0}-\u{1affe}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc\u3006\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;

const matchesIn = (text, pattern) => (text.match(pattern) ?? []).length;

// The text that some tokens spell: that without the space around it, where space is, and what letters it has.
function pieceThatSpells(text) {
  const stripped = text.replace(EDGES, "");
  return {
    text: stripped,
    isSpaced: [BEGINS_WITH_SPACE.test(text), ENDS_WITH_SPACE.test(text)],
    isAlone: 2 * matchesIn(text, ALONE) > matchesIn(text, LETTERS),
    isMark: IS_MARKS.test(stripped),
  };
}

// How many bytes at the end are the beginning of a character of UTF-8.
function bytesBegun(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes.at(-back);
    if (byte >= 0xc2 && byte <= 0xf4) {
      const need = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      return back < need && (back === 1 || canFollow(byte, bytes.at(1 - back))) ? back : 0;
    }
    if ((byte & 0xc0) !== 0x80) return 0;
  }
  return 0;
}

// The second byte of a character has bounds of its own after some first ones (RFC 3629, section 4).
function canFollow(first, second) {
  const [least, most] = { 0xe0: [0xa0, 0xbf], 0xed: [0x80, 0x9f], 0xf0: [0x90, 0xbf], 0xf4: [0x80, 0x8f] }[first] ?? [0x80, 0xbf];
  return second >= least && second <= most;
}

// The text of tokens and their number: one, or as many as end with a whole character.
function* wholeCharacters(spelled) {
  let bytes = [];
  let count = 0;
  for (const [i, piece] of spelled.entries()) {
    bytes.push(...piece);
    count++;
    if (bytesBegun(bytes) && i < spelled.length - 1) continue;
    yield [fromUtf8(Uint8Array.from(bytes)), count];
    bytes = [];
    count = 0;
  }
}

// The pieces of each word, marks at its edges included, each with the number of its tokens; white space is counted with
// the piece after it, at the end left out.
function* runsOf(spelled) {
  let run = [];
  let spaces = 0;
  let before = { isAlone: false, isInBytes: false, hasSpace: false };
  for (const [text, count] of wholeCharacters(spelled)) {
    const piece = pieceThatSpells(text);
    if (!piece.text) {
      spaces += count;
      continue;
    }
    const isInBytes = count > 1;
    const isOneSpelling = before.isAlone && before.isInBytes && isInBytes;
    const isApart = isOneSpelling ? !piece.isAlone : piece.isAlone || before.isAlone;
    if (run.length && (spaces || before.hasSpace || piece.isSpaced[0] || isApart)) {
      yield run;
      run = [];
    }
    run.push([piece, spaces + count]);
    spaces = 0;
    before = { isAlone: piece.isAlone, isInBytes, hasSpace: piece.isSpaced[1] };
  }
  if (run.length) yield run;
}

// A run as the marks before a word, the word, and the marks behind it.
function withoutMarks(run) {
  const isWord = ([piece]) => !piece.isMark;
  const first = run.findIndex(isWord);
  if (run.length === 1 || first < 0) return [run];
  const last = run.findLastIndex(isWord) + 1;
  return [run.slice(0, first), run.slice(first, last), run.slice(last)].filter((part) => part.length);
}

// The words, without the space around them, and for each token, given as its bytes, the number of its word.
function wordsOf(spelled) {
  const words = [];
  const wordOf = [];
  for (const run of runsOf(spelled)) {
    for (const word of withoutMarks(run)) {
      for (const [, count] of word) wordOf.push(...Array(count).fill(words.length));
      words.push(word.map(([piece]) => piece.text).join(""));
    }
  }
  if (words.length) while (wordOf.length < spelled.length) wordOf.push(words.length - 1);
  return { words, wordOf };
}

/* Pairs */

const largestAt = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

// A word comes from the source word that supports all of its tokens together most, and from one that does so for a single
// token, if it has at least half as much in all. Pairs of a source and a target word, in the target's order.
function wordPairs({ keys, values }, tgt, src) {
  if (!tgt.words.length || !src.words.length) return [];
  const byToken = tgt.wordOf.map((_, t) => {
    const sums = new Float64Array(src.words.length);
    src.wordOf.forEach((word, s) => (sums[word] += values[t * keys + s]));
    return sums;
  });
  const byWord = tgt.words.map(() => new Float64Array(src.words.length));
  byToken.forEach((sums, t) => addInto(byWord[tgt.wordOf[t]], sums));
  const main = byWord.map(largestAt);
  const found = new Set();
  byWord.forEach((sums, word) => sums[main[word]] > 0 && found.add(word * src.words.length + main[word]));
  byToken.forEach((sums, t) => {
    const word = tgt.wordOf[t];
    const best = largestAt(sums);
    const inAll = byWord[word][best];
    if (sums[best] > 0 && inAll > 0 && inAll >= LEAST_OF_WORD * byWord[word][main[word]]) found.add(word * src.words.length + best);
  });
  return [...found].sort((a, b) => a - b).map((pair) => [pair % src.words.length, Math.floor(pair / src.words.length)]);
}

// The words of both sides and their pairs; `isEnded` says whether the target ends with its symbol, as the source does.
function alignmentOf(support, tgt, src, isEnded) {
  const target = wordsOf(isEnded ? tgt.slice(0, -1) : tgt);
  const source = wordsOf(src.slice(0, -1));
  const pairs = wordPairs(support, target, source);
  return { source: source.words, target: target.words, pairs, pharaoh: pairs.map((pair) => pair.join("-")).join(" ") };
}
