/* What a head does, in a few words: found by rule, with the number that was measured. */

const FLAT = 0.97; // of the most possible entropy: from there a head looks at everything alike
const ENOUGH = 0.4; // of the weight, on average over the queries, for a rule to be said
const RECENT = 0.7; // of the weight on the last tokens, of a long text
const LAST = 4;
const SHARP = 0.5; // the mean largest weight of a head that picks one token, wherever it stands

const knownRules = new WeakMap(); // by the maps of a kind

// The rule of a head: {rule, value, key}; `key` is the column that is looked at most on average.
function ruleOf(kind, layer, head) {
  const leaf = data.attention[kind];
  if (!knownRules.has(leaf)) knownRules.set(leaf, new Map());
  const rules = knownRules.get(leaf);
  const name = `${layer} ${head}`;
  if (!rules.has(name)) rules.set(name, findRule(kind, mapOf(kind, layer, head)));
  return rules.get(name);
}

const isFlat = (kind, layer, head) => ruleOf(kind, layer, head).rule === "flat";

function findRule(kind, map) {
  const evenness = evennessOf(kind, map);
  if (evenness > FLAT) return { rule: "flat", value: evenness, key: null };
  const measured = Object.entries(lookingRules(kind)).map(([rule, chooses]) => ({ rule, value: meanWeight(kind, map, chooses), key: null }));
  const best = measured.reduce((one, other) => (other.value > one.value ? other : one), { rule: null, value: 0 });
  if (best.value >= ENOUGH) return best;
  const recent = recentWeight(kind, map);
  if (recent >= RECENT) return { rule: "recent", value: recent, key: null };
  const sharp = meanOf(rowsOf(kind, map).map(({ weights }) => Math.max(...weights)));
  const key = mostLookedAt(map);
  if (sharp >= SHARP) return { rule: "sharp", value: sharp, key };
  return { rule: "mixed", value: meanWeight(kind, map, (_, column) => column === key), key };
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

// How even the weights are: the mean over the queries of entropy / log(number of visible keys).
function evennessOf(kind, map) {
  const entropy = (weights) => weights.reduce((sum, w) => (w > 0 ? sum - w * Math.log(w) : sum), 0);
  const rows = rowsOf(kind, map);
  if (!rows.length) return 0; // one key alone is no choice
  return meanOf(rows.map(({ weights }) => entropy(weights) / Math.log(weights.length)));
}

// The mean over the queries of the weight on the keys that a rule chooses; of queries without such a key 0.
function meanWeight(kind, map, chooses) {
  return meanOf(rowsOf(kind, map).map(({ row, weights }) => weights.reduce((sum, w, key) => (chooses(row, key) ? sum + w : sum), 0)));
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
    return rules;
  }
  // a decoder stands at what it has read last: in a translator that is what was just written, whose column is the row's
  rules.itself = (row, key) => key === row;
  rules.previous = (row, key) => key === row - 1;
  rules["before-previous"] = (row, key) => key === row - 2;
  if (kind === "encoder") rules.next = (row, key) => key === row + 1;
  if (!offset) rules.same = (row, key) => key !== row && keys[key] === queries[row];
  return rules;
}

// The rule in words, with its number.
function sayRule({ rule, value, key }, kind) {
  const named = key === null ? "" : quoted(KINDS[kind].keys[key]);
  return say(`heads-${rule}`, { value: value.toFixed(2), key: named });
}

speak({
  en: {
    "heads-flat": "flat: everything alike, {value} of the most even",
    "heads-first": "first token, {value}",
    "heads-punctuation": "punctuation, {value}",
    "heads-end": "the end symbol, {value}",
    "heads-diagonal": "the diagonal, {value}",
    "heads-itself": "itself, {value}",
    "heads-previous": "previous token, {value}",
    "heads-before-previous": "two tokens before, {value}",
    "heads-next": "next token, {value}",
    "heads-same": "the same token elsewhere, {value}",
    "heads-recent": "the last four tokens, {value}",
    "heads-sharp": "one token at a time, {value}",
    "heads-mixed": "mixed; most at {key}, {value}",
  },
  zh: {
    "heads-flat": "平坦：对一切同等看待，为最均匀的 {value}",
    "heads-first": "第一个词元，{value}",
    "heads-punctuation": "标点，{value}",
    "heads-end": "结尾符号，{value}",
    "heads-diagonal": "对角线，{value}",
    "heads-itself": "自身，{value}",
    "heads-previous": "前一个词元，{value}",
    "heads-before-previous": "前面第二个词元，{value}",
    "heads-next": "后一个词元，{value}",
    "heads-same": "别处的相同词元，{value}",
    "heads-recent": "最近四个词元，{value}",
    "heads-sharp": "每次一个词元，{value}",
    "heads-mixed": "混合；最关注 {key}，{value}",
  },
});
