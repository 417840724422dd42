/* Greedy and beam search, as weft.decoding.reference has them. Numbers are rounded to 32 bits where theirs are. */

// log softmax(logits) of a row that begins at `from`.
function logProbsOf(logits, from, count) {
  let largest = -Infinity;
  for (let i = from; i < from + count; i++) if (logits[i] > largest) largest = logits[i];
  let total = 0;
  for (let i = from; i < from + count; i++) total += Math.exp(logits[i] - largest);
  const logTotal = Math.fround(Math.log(total));
  const logProbs = new Float32Array(count);
  for (let i = 0; i < count; i++) logProbs[i] = Math.fround(logits[from + i] - largest) - logTotal;
  return logProbs;
}

// The `count` largest of an array, the largest first, of equal ones the lower id first.
function bestOf(values, count) {
  const best = [];
  for (let id = 0; id < values.length; id++) {
    const value = values[id];
    if (best.length === count && value <= values[best[count - 1]]) continue;
    let at = best.length;
    while (at && value > values[best[at - 1]]) at--;
    best.splice(at, 0, id);
    if (best.length > count) best.pop();
  }
  return best;
}

// The end of a search whose model gives no numbers.
class Diverged extends Error {}

// A translation that is being written: its ids, log-probability, score, each token’s log-probability, whether it ended.
const NOTHING = { ids: [], logProb: 0, score: 0, logProbs: [], finished: false, node: null };

// What a generator returns in the end.
function endOf(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

class Search {
  // `settings`: beamSize, lengthPenalty, banned; `limit` counts new tokens with eos; `watch` is told of each step.
  constructor(model, settings, limit, watch = null) {
    this.model = model;
    this.settings = settings;
    this.limit = limit;
    this.watch = watch;
    this.penalties = Float32Array.from({ length: limit + 2 }, (_, n) => ((5 + n) / 6) ** settings.lengthPenalty);
  }

  run(past) {
    return endOf(this.steps(past));
  }

  // The best hypothesis, greedy where the beam has one; gives way after each token.
  *steps(past) {
    let live = [{ ...NOTHING, past }];
    let pool = [];
    const { beamSize } = this.settings;
    for (let length = 1; length <= this.limit; length++) {
      const kept = this.extended(live, beamSize);
      const ended = byScore(kept.filter((one) => one.finished));
      this.watch?.(kept, length);
      live = kept.filter((one) => !one.finished);
      pool = byScore([...pool, ...ended]).slice(0, 1);
      if (!live.length || (pool.length && this.bound(live[0], length) <= pool[0].score)) break;
      if (length < this.limit) this.part(live);
      yield;
    }
    return [...pool, ...byScore(live)][0];
  }

  // The most probable extensions of live hypotheses; of equal ones that of the earlier hypothesis, then the lower id.
  extended(live, count) {
    const newest = live.map(({ ids }) => ids.at(-1) ?? BOS_ID);
    const states = this.model.decode(newest, live.map(({ past }) => past));
    const logits = this.model.output(states, live.length);
    const size = logits.length / live.length;
    const extensions = live.flatMap((hypothesis, row) => {
      const logProbs = logProbsOf(logits, row * size, size);
      for (const id of this.settings.banned) logProbs[id] = -Infinity;
      const best = bestOf(logProbs, count);
      if (!Number.isFinite(logProbs[best[0]]) || logProbs.some(Number.isNaN)) throw new Diverged();
      return best.map((id) => this.extension(hypothesis, id, logProbs[id]));
    });
    // a sort keeps the order of equals
    extensions.sort((a, b) => b.logProb - a.logProb);
    return extensions.slice(0, count).filter(({ logProb }) => Number.isFinite(logProb));
  }

  extension(before, id, logProb) {
    const finished = id === EOS_ID;
    const total = Math.fround(before.logProb + logProb);
    const logProbs = [...before.logProbs, logProb];
    const score = Math.fround(total / this.penalties[logProbs.length]);
    return { ids: finished ? before.ids : [...before.ids, id], logProb: total, score, logProbs, finished, past: before.past, parent: before, id };
  }

  // Give each hypothesis a past of its own: the first that extends another takes its past, the others copies.
  part(live) {
    const taken = new Set();
    const copies = live.map(({ past }) => {
      const copy = taken.has(past) ? Transformer.fork(past) : past;
      taken.add(past);
      return copy;
    });
    live.forEach((one, i) => (one.past = copies[i]));
  }

  // What no extension of a live hypothesis can score above.
  bound(best, length) {
    const largest = Math.max(this.penalties[this.limit], this.penalties[length + 1]);
    return Math.fround(best.logProb / largest);
  }
}

const byScore = (hypotheses) => [...hypotheses].sort((a, b) => b.score - a.score);
