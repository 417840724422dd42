/* What a head does, in a few words: found by rule, with the number that was measured. */

const FLAT = 0.97; // of the most possible entropy: from there a head looks at everything alike
const ENOUGH = 0.4; // of the weight that flat rows do not have there, on average over the queries, for a rule to be said
const RECENT = 0.7; // of the weight on the last tokens, of a long text
const LAST = 4;
const SHARP = 0.5; // the mean largest weight of a head that picks one token, wherever it stands

const known = new WeakMap(); // by the maps of a kind: their rules, and what was found by them

// The rule of a head: {rule, value, key}; `key` is the column that is looked at most on average.
function ruleOf(kind, layer, head) {
  const { found, rules } = rulesOf(kind);
  const name = `${layer} ${head}`;
  if (!found.has(name)) found.set(name, findRule(kind, mapOf(kind, layer, head), rules));
  return found.get(name);
}

// In a page that computes, the words that belong to each other are found after the maps.
function rulesOf(kind) {
  const leaf = data.attention[kind];
  const pairs = pairsNow();
  if (known.get(leaf)?.pairs !== pairs) known.set(leaf, { pairs, rules: measurable(kind), found: new Map() });
  return known.get(leaf);
}

const isFlat = (kind, layer, head) => ruleOf(kind, layer, head).rule === "flat";

// A rule must have more of the weight than is there anyway: what a flat row has is taken off, and off the whole too.
function findRule(kind, map, rules) {
  const evenness = evennessOf(kind, map);
  if (evenness > FLAT) return { rule: "flat", value: evenness, key: null };
  const measured = rules.map(({ rule, places, rows, chance }) => {
    const value = places.reduce((sum, at) => sum + map.values[at], 0) / Math.max(rows, 1);
    return { rule, value, key: null, gain: chance < 1 ? (value - chance) / (1 - chance) : 0 };
  });
  const { gain, ...best } = measured.reduce((one, other) => (other.gain > one.gain ? other : one), { gain: 0 });
  if (gain >= ENOUGH) return best;
  const recent = recentWeight(kind, map);
  if (recent >= RECENT) return { rule: "recent", value: recent, key: null };
  const sharp = meanOf(rowsOf(kind, map).map(({ weights }) => Math.max(...weights)));
  const key = mostLookedAt(map);
  if (sharp >= SHARP) return { rule: "sharp", value: sharp, key };
  return { rule: "mixed", value: meanOf(rowsOf(kind, map).map(({ weights }) => weights[key] ?? 0)), key };
}

const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);

// The queries that see more than one key, each with the weights of those it sees.
function rowsOf(kind, map) {
  const [queries, keys] = map.shape;
  const rows = [];
  for (let row = 0; row < queries; row++) {
    const seen = kind === "decoder" ? Math.min(row + 1, keys) : keys;
    if (seen > 1) rows.push({ row, weights: within(map, row).values.subarray(0, seen) });
  }
  return rows;
}

// How even the weights of a row are: entropy / log(number of visible keys).
const evennessOfRow = (weights) => weights.reduce((sum, w) => (w > 0 ? sum - w * Math.log(w) : sum), 0) / Math.log(weights.length);

// The mean of it over the queries; one key alone is no choice.
const evennessOf = (kind, map) => meanOf(rowsOf(kind, map).map(({ weights }) => evennessOfRow(weights)));

function isRowFlat(kind, map, row) {
  const found = rowsOf(kind, map).find((one) => one.row === row);
  return Boolean(found) && evennessOfRow(found.weights) > FLAT;
}

// The rules of a kind with the places in a map that each names, the number of rows, and the mean weight of flat rows there.
function measurable(kind) {
  const { queries, keys } = KINDS[kind];
  const rows = rowsOf(kind, { shape: [queries.length, keys.length], values: new Float32Array(queries.length * keys.length) });
  return Object.entries(lookingRules(kind)).map(([rule, chooses]) => {
    const chosen = rows.map(({ row, weights }) => [...weights.keys()].filter((key) => chooses(row, key)));
    const chance = meanOf(rows.map(({ weights }, i) => chosen[i].length / weights.length));
    return { rule, chance, rows: rows.length, places: rows.flatMap(({ row }, i) => chosen[i].map((key) => row * keys.length + key)) };
  });
}

// Of a decoder of a long text, the mean weight on the last tokens before each query.
function recentWeight(kind, map) {
  if (kind !== "decoder" || map.shape[1] < 4 * LAST) return 0;
  const rows = rowsOf(kind, map).filter(({ weights }) => weights.length > 2 * LAST);
  return meanOf(rows.map(({ weights }) => weights.slice(-LAST).reduce((sum, w) => sum + w, 0)));
}

function mostLookedAt({ shape: [queries, keys], values }) {
  const sums = new Array(keys).fill(0);
  for (let i = 0; i < queries * keys; i++) sums[i % keys] += values[i];
  return sums.indexOf(Math.max(...sums));
}

// The rules of a kind of map: whether a query of that rule looks at a key.
function lookingRules(kind) {
  const { keys, queries, offset } = KINDS[kind];
  const last = keys.length - 1;
  const isPunctuation = keys.map((piece) => !isSymbol(piece) && /^[\p{P}\p{S}]+$/u.test(piece.replace(/^▁/u, "")));
  const rules = { first: (_, key) => key === 0 };
  if (isPunctuation.includes(true)) rules.punctuation = (_, key) => isPunctuation[key];
  if (keys[last] === "<eos>") rules.end = (_, key) => key === last;
  if (kind === "cross") {
    const slope = last / Math.max(queries.length - 1, 1);
    rules.diagonal = (row, key) => keys.length > 4 && Math.abs(key - row * slope) <= 1;
    const [from, to] = [keys, queries].map((pieces, side) => wordsOfPieces(pieces, pairsNow()?.[side ? "target" : "source"]));
    if (from && to) rules.translated = (row, key) => sourcesOf(to[row]).includes(from[key]);
    return rules;
  }
  rules.itself = (row, key) => key === row;
  rules.previous = (row, key) => key === row - 1;
  rules["before-previous"] = (row, key) => key === row - 2;
  if (kind === "encoder") rules.next = (row, key) => key === row + 1;
  if (!offset) rules.same = (row, key) => key !== row && keys[key] === queries[row];
  return rules;
}

/* The words that belong to each other, as the page's list of them has it */

// Of a run's earlier steps, which write the same, those of the finished model.
function pairsNow() {
  const found = data.alignment ?? whole.inspections?.[whole.finished]?.alignment;
  return found?.pairs.length ? found : null;
}

const sourcesOf = (word) => pairsNow().pairs.filter(([, target]) => target === word).map(([source]) => source);

// The word of each piece, null of a symbol; nothing where the pieces do not spell the words.
function wordsOfPieces(pieces, words) {
  const texts = pieces.map((piece) => (isSymbol(piece) ? "" : piece.replaceAll("▁", "")));
  if (!words || texts.join("") !== words.join("").replaceAll(" ", "")) return null;
  const wordOf = words.flatMap((word, i) => Array(word.replaceAll(" ", "").length).fill(i)); // of each letter
  let at = 0;
  return texts.map((text) => {
    at += text.length;
    return text ? wordOf[at - text.length] : null;
  });
}

/* In words */

// The rule in words, with its number. A translator's decoder is at what it has written last: its column is the row's.
function sayRule({ rule, value, key }, kind) {
  const named = key === null ? "" : quoted(KINDS[kind].keys[key]);
  const own = KINDS[kind].offset && hasWord(`heads-${rule}-written`) ? `${rule}-written` : rule;
  return say(`heads-${own}`, { value: value.toFixed(2), key: named });
}

speak({
  en: {
    "heads-flat": "flat: everything alike, {value} of the most even",
    "heads-first": "first token, {value}",
    "heads-first-written": "the start, {value}",
    "heads-punctuation": "punctuation, {value}",
    "heads-end": "the end symbol, {value}",
    "heads-diagonal": "the diagonal, {value}",
    "heads-translated": "the word it translates, {value}",
    "heads-itself": "itself, {value}",
    "heads-itself-written": "what was just written, {value}",
    "heads-previous": "previous token, {value}",
    "heads-previous-written": "the one before what was just written, {value}",
    "heads-before-previous": "two tokens before, {value}",
    "heads-before-previous-written": "two before what was just written, {value}",
    "heads-next": "next token, {value}",
    "heads-same": "the same token elsewhere, {value}",
    "heads-recent": "the last four tokens, {value}",
    "heads-sharp": "one token at a time, {value}",
    "heads-mixed": "mixed; most at {key}, {value}",
  },
  zh: {
    "heads-flat": "平坦：对一切同等看待，为最均匀的 {value}",
    "heads-first": "第一个词元，{value}",
    "heads-first-written": "开头，{value}",
    "heads-punctuation": "标点，{value}",
    "heads-end": "结尾符号，{value}",
    "heads-diagonal": "对角线，{value}",
    "heads-translated": "它所译的词，{value}",
    "heads-itself": "自身，{value}",
    "heads-itself-written": "刚写下的词元，{value}",
    "heads-previous": "前一个词元，{value}",
    "heads-previous-written": "刚写下的词元的前一个，{value}",
    "heads-before-previous": "前面第二个词元，{value}",
    "heads-before-previous-written": "刚写下的词元前面第二个，{value}",
    "heads-next": "后一个词元，{value}",
    "heads-same": "别处的相同词元，{value}",
    "heads-recent": "最近四个词元，{value}",
    "heads-sharp": "每次一个词元，{value}",
    "heads-mixed": "混合；最关注 {key}，{value}",
  },
});
