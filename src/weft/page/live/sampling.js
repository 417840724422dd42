/* Drawing the next token, as weft.decoding.sampling and weft.decoding.draws have it: the same seed draws the same. */

// Rotations and constants of SHA-256 (FIPS 180-4): the fractions of roots of the first primes.
const PRIMES = (() => {
  const found = [];
  for (let n = 2; found.length < 64; n++) if (found.every((prime) => n % prime)) found.push(n);
  return found;
})();
const fractionOf = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32);
const ROUNDS = PRIMES.map((prime) => fractionOf(Math.cbrt(prime)));
const BEGINNING = PRIMES.slice(0, 8).map((prime) => fractionOf(Math.sqrt(prime)));

const turned = (word, by) => (word >>> by) | (word << (32 - by));

// The first 64 bits of the SHA-256 of ASCII text, as two numbers of 32.
function firstBits(text) {
  const length = text.length;
  const words = new Int32Array(((length + 8) >> 6) * 16 + 16);
  for (let i = 0; i < length; i++) words[i >> 2] |= text.charCodeAt(i) << (24 - 8 * (i % 4));
  words[length >> 2] |= 0x80 << (24 - 8 * (length % 4));
  words[words.length - 2] = Math.floor(length / 2 ** 29);
  words[words.length - 1] = length << 3;
  const state = Int32Array.from(BEGINNING);
  const schedule = new Int32Array(64);
  for (let from = 0; from < words.length; from += 16) {
    schedule.set(words.subarray(from, from + 16));
    for (let i = 16; i < 64; i++) {
      const [a, b] = [schedule[i - 15], schedule[i - 2]];
      const low = turned(a, 7) ^ turned(a, 18) ^ (a >>> 3);
      const high = turned(b, 17) ^ turned(b, 19) ^ (b >>> 10);
      schedule[i] = schedule[i - 16] + low + schedule[i - 7] + high;
    }
    mix(state, schedule);
  }
  return [state[0] >>> 0, state[1] >>> 0];
}

function mix(state, schedule) {
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + schedule[i]) | 0;
    const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] += word));
}

// The number of a place, from [0, 1).
function drawAt(seed, ids, place) {
  const [high, low] = firstBits(`${seed} 0 ${place} ${ids.join(" ")}`);
  return (high * 2 ** 21 + (low >>> 11)) / 2 ** 53;
}

// `settings`: temperature, topK, topP, minP, repetitionPenalty; `sight` are the ids that the model sees.
function nextToken(logits, settings, sight, banned, draw) {
  const scores = Float64Array.from(logits);
  for (const id of banned) scores[id] = -Infinity;
  const { temperature, topK, topP, minP, repetitionPenalty = 1 } = settings;
  if (repetitionPenalty !== 1) {
    for (const id of new Set(sight)) scores[id] = scores[id] > 0 ? scores[id] / repetitionPenalty : scores[id] * repetitionPenalty;
  }
  const [best] = bestOf(scores, 1);
  if (!Number.isFinite(scores[best]) || scores.some(Number.isNaN)) throw new Diverged();
  if (temperature === 0) return best;
  const largest = scores[best];
  let logProbs = logSoftmax(scores.map((score) => (score - largest) / temperature));
  if (topK && topK < logProbs.length) logProbs = only(logProbs, ranked(logProbs).slice(0, topK));
  if (topP && topP < 1) logProbs = only(logProbs, nucleus(logProbs, topP));
  if (minP) {
    const least = logProbs[bestOf(logProbs, 1)[0]] + Math.log(minP);
    logProbs = only(logProbs, ranked(logProbs).filter((id) => logProbs[id] >= least));
  }
  return drawn(logProbs, draw());
}

function logSoftmax(scores) {
  let largest = -Infinity;
  for (const score of scores) if (score > largest) largest = score;
  let total = 0;
  for (const score of scores) total += Math.exp(score - largest);
  const logTotal = Math.log(total);
  return scores.map((score) => score - largest - logTotal);
}

// Ids by falling probability, of equal ones the lower first.
const ranked = (logProbs) => Array.from(logProbs.keys()).sort((a, b) => logProbs[b] - logProbs[a] || a - b);

function only(logProbs, ids) {
  const kept = new Float64Array(logProbs.length).fill(-Infinity);
  for (const id of ids) kept[id] = logProbs[id];
  return logSoftmax(kept);
}

// The tokens before which, from the most probable on, the mass has not yet reached p.
function nucleus(logProbs, p) {
  let mass = 0;
  return ranked(logProbs).filter((id) => {
    const isIn = mass < p;
    mass += Math.exp(logProbs[id]);
    return isIn;
  });
}

// The first id whose cumulative probability is above a number from [0, 1).
function drawn(logProbs, number) {
  const sums = new Float64Array(logProbs.length);
  let sum = 0;
  logProbs.forEach((logProb, id) => {
    sum += Math.exp(logProb);
    sums[id] = sum;
  });
  return logProbs.findIndex((logProb, id) => logProb > -Infinity && sums[id] > number * sum);
}
