/* A model at work on a text, as the data of an inspection: what weft.inspection writes, computed here. */

const TEMPERATURES = [0.25, 0.354, 0.5, 0.707, 1, 1.414, 2, 2.828, 4];
const MOST_CHOICES = 50;
const MOST_NEAREST = 5;

// Compute with parts, heads or source tokens switched off: {parts: ["decoder.0.cross"], heads: ["cross.0.3"], source: [2]}.
function switchOff(transformer, { parts = [], heads = [], source = [] } = {}) {
  transformer.off = { parts: new Set(parts), heads: new Set(heads), source: new Set(source) };
}

// Run `work` while a recording is told of all that is computed; return it.
function recorded(transformer, work, recording = new Recording()) {
  transformer.watch = recording;
  try {
    work(recording);
  } finally {
    transformer.watch = null;
  }
  return recording;
}

/* Choices, and names of tokens */

function choicesOf(logits, count) {
  const size = logits.length / count;
  const kept = Math.min(MOST_CHOICES, size - 1);
  const found = { ids: { shape: [count, kept], values: new Int32Array(count * kept) }, logits: { shape: [count, kept], values: new Float32Array(count * kept) } };
  const rests = new Float32Array(count * TEMPERATURES.length);
  for (let t = 0; t < count; t++) {
    const others = logits.slice(t * size, (t + 1) * size);
    const best = bestOf(others, kept);
    best.forEach((id, place) => {
      found.ids.values[t * kept + place] = id;
      found.logits.values[t * kept + place] = logits[t * size + id];
    });
    for (const id of best) others[id] = -Infinity;
    TEMPERATURES.forEach((temperature, i) => (rests[t * TEMPERATURES.length + i] = logSumExp(others, 0, size, temperature)));
  }
  const middle = TEMPERATURES.indexOf(1);
  const rest = Float32Array.from({ length: count }, (_, t) => rests[t * TEMPERATURES.length + middle]);
  return { ...found, rest: { shape: [count], values: rest }, temperatures: TEMPERATURES, rests: { shape: [count, TEMPERATURES.length], values: rests }, count: size };
}

// The tokens whose vectors are the most like each id’s own.
function nearestOf(tokens, ids) {
  tokens.all ??= (() => {
    const all = new Float32Array(tokens.length * tokens.width);
    const norms = new Float32Array(tokens.length);
    for (let id = 0; id < tokens.length; id++) {
      const row = tokens.at(id);
      all.set(row, id * tokens.width);
      norms[id] = Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));
    }
    return { vectors: all, norms };
  })();
  const { vectors, norms } = tokens.all;
  const { width, length } = tokens;
  tokens.nearest ??= new Map(); // what was found before
  const unknown = [...new Set(ids)].filter((id) => !tokens.nearest.has(id));
  const asked = new Float32Array(unknown.length * width);
  unknown.forEach((id, row) => asked.set(vectors.subarray(id * width, (id + 1) * width), row * width));
  const products = linear(asked, unknown.length, { weight: vectors, bias: null, inputs: width, outputs: length });
  unknown.forEach((id, row) => {
    const cosines = products.subarray(row * length, (row + 1) * length);
    for (let other = 0; other < length; other++) {
      if (other === id || other === PAD_ID || !norms[other]) cosines[other] = -2;
      else cosines[other] /= Math.max(norms[id], 1e-38) * norms[other];
    }
    tokens.nearest.set(id, bestOf(cosines, Math.min(MOST_NEAREST, length - 1)).map((other) => [other, cosines[other]]));
  });
  const found = ids.map((id) => tokens.nearest.get(id));
  const shape = [ids.length, found[0]?.length ?? 0];
  return {
    ids: { shape, values: Int32Array.from(found.flat(), ([id]) => id) },
    cosines: { shape, values: Float32Array.from(found.flat(), ([, cosine]) => cosine) },
  };
}

function namesOf(tokenizer, ...lists) {
  const ids = [...new Set(lists.flatMap((list) => [...list]))].sort((a, b) => a - b);
  return Object.fromEntries(ids.map((id) => [id, tokenizer.labels([id])[0]]));
}

// How byte pair encoding joined each word of some ids; null for another kind of tokenizer.
function cutsOf(tokenizer, ids) {
  if (tokenizer.kind !== "bpe") return null;
  const readable = (id) => tokenizer.labels([id])[0];
  return tokenizer.wordsOf(tokenizer.decode(ids)).map((word) => {
    const pairs = [];
    const letters = Array.from(byteLetters(word), (letter) => tokenizer.idOf.get(letter));
    tokenizer.merging.apply(letters, (left, right) => pairs.push([readable(left), readable(right)]));
    return [word.replaceAll(" ", "▁"), pairs];
  });
}

/* What every task shows */

// The vectors that tokens enter the first layer with; `normed` is what a norm makes of their sum.
function vectorsOf(transformer, side, ids, beside = null) {
  const { d_model: width, embedding_scale: scale } = transformer.shape;
  const tokens = new Float32Array(ids.length * width);
  const positions = transformer.position(side, 0) ? new Float32Array(ids.length * width) : null;
  ids.forEach((id, row) => {
    const others = beside?.at[row] ?? [];
    const own = side.tokens.at(id);
    for (let i = 0; i < width; i++) tokens[row * width + i] = others.reduce((sum, { vector }) => sum + vector[i], own[i]) * scale;
    positions?.set(transformer.position(side, row).subarray(0, width), row * width);
  });
  const parts = [...new Set((beside?.kinds ?? []).map(({ part }) => part))];
  const fromNorm = side.norm && transformer.norm(positions ? added(tokens, positions) : tokens, side.norm);
  return { width, tokens: listed(tokens, width), positions: positions && listed(positions, width), normed: fromNorm && listed(fromNorm, width), beside: parts };
}

// Rows as lists.
const listed = (values, width) => Array.from({ length: values.length / width }, (_, row) => Array.from(values.subarray(row * width, (row + 1) * width)));

// Queries, keys and values of each kind, (layers, L, H, d), as they enter the product.
function looksOf(transformer, recording) {
  const { num_heads: heads, head_dim: dim } = transformer.shape;
  const found = { left_out: [] };
  for (const [kind, layers] of Object.entries(recording.looks)) {
    const { attended, rows } = layers[0];
    const keys = attended.at(-1).keys.length;
    const arrays = { query: [], key: [], value: [] };
    for (const look of layers) {
      const last = look.attended.at(-1);
      arrays.query.push(look.queries);
      arrays.key.push(forAllHeads(last.keys, heads, dim));
      arrays.value.push(forAllHeads(last.values, heads, dim));
    }
    const stacked = (parts, count) => {
      const values = new Float32Array(parts.length * count * heads * dim);
      parts.forEach((part, i) => values.set(part, i * count * heads * dim));
      return { shape: [parts.length, count, heads, dim], values };
    };
    found[kind] = { query: stacked(arrays.query, rows), key: stacked(arrays.key, keys), value: stacked(arrays.value, keys) };
  }
  return found;
}

// Vectors of the heads that own them, repeated for each that shares them.
function forAllHeads(vectors, heads, dim) {
  const all = new Float32Array(vectors.length * heads * dim);
  vectors.forEach((vector, row) => {
    const times = (heads * dim) / vector.length;
    for (let head = 0; head < heads; head++) {
      const from = Math.floor(head / times) * dim;
      all.set(vector.subarray(from, from + dim), (row * heads + head) * dim);
    }
  });
  return all;
}

const rounded = (value, digits = 4) => Number(value.toFixed(digits));

// The `count` most probable tokens at a place, as a list that is read.
function alternativesAt(tokenizer, logits, at, size, count) {
  const total = logSumExp(logits, at * size, size);
  return bestOf(logits.subarray(at * size, (at + 1) * size), count).map((id) => ({
    piece: tokenizer.labels([id])[0], id, probability: rounded(Math.exp(logits[at * size + id] - total)),
  }));
}

function probabilityAt(logits, at, size, id) {
  return rounded(Math.exp(logits[at * size + id] - logSumExp(logits, at * size, size)));
}

/* Translation */

// The nodes of a search: what the beam held at each step, told apart by ids.
class Lanes {
  constructor(tokenizer, most) {
    this.tokenizer = tokenizer;
    this.most = most;
    this.kept = [];
  }

  watch(extensions, step) {
    if (step > this.most) return;
    for (const one of extensions) this.kept.push({ step, one, ids: one.finished ? [...one.ids, EOS_ID] : one.ids });
  }

  nodes(best) {
    const winner = (best.finished ? [...best.ids, EOS_ID] : best.ids).join(" ");
    const numbers = new Map(this.kept.map(({ ids }, number) => [ids.join(" "), number]));
    const parents = new Set(this.kept.map(({ ids }) => ids.slice(0, -1).join(" ")));
    const last = this.kept.at(-1)?.step;
    return this.kept.map(({ step, one, ids }) => {
      const key = ids.join(" ");
      const fate = one.finished ? "ended" : parents.has(key) ? "goes on" : step === last ? "open" : "dropped";
      return {
        parent: numbers.get(ids.slice(0, -1).join(" ")) ?? null, step, piece: this.tokenizer.labels(ids).at(-1), id: ids.at(-1),
        log_prob: rounded(one.logProb), probability: rounded(Math.exp(one.logProbs.at(-1))), fate,
        score: one.finished ? rounded(one.score) : null, is_best: `${winner} `.startsWith(`${key} `),
      };
    });
  }
}

// The maps of a greedy search, whose steps are the rows of what it writes.
class SearchMaps extends Recording {
  // Take the steps of a search, one at a time, and return what it finds.
  *during(model, steps) {
    for (this.step = 0; ; this.step++) {
      let step;
      recorded(model, () => (step = steps.next()), this);
      if (step.done) return step.value;
      yield;
    }
  }

  weights(kind, layer, row, head, weights) {
    if (row === 0) super.weights(kind, layer, this.step, head, weights);
  }

  sum() {}

  state() {}

  part() {}

  look() {}
}

// In steps, as all of these: gives {said}, the translation, as soon as it is there; then {early}, all that the maps of
// attention need; between them it gives way. It returns the rest. `limits`: tokens, tgt_tokens; `constant` has what no
// text changes: the model’s map, its languages.
function* insideTranslation(translator, text, { beamSize, limits, constant }) {
  const { model, src, tgt, card } = translator;
  const segments = translator.plan(text).texts;
  const line = segments[0] ?? "";
  const ids = src.encode(line);
  const limit = Math.min(limits.tokens, card.lengths.limit, card.shape.max_len);
  const row = [...ids.slice(0, limit - 1), EOS_ID];
  const lanes = new Lanes(tgt, limits.tgt_tokens);
  const recording = new Recording();
  let memory;
  recorded(model, () => (memory = model.encode(row)), recording);
  const steps = translator.searching(row, memory, { beamSize }, (kept, step) => lanes.watch(kept, step));
  const seen = new SearchMaps();
  const best = yield* seen.during(model, steps);
  const translation = translator.textOf(best);
  yield { said: translation };
  const whole = best.finished ? [...best.ids, EOS_ID] : best.ids;
  const written = whole.slice(0, limits.tgt_tokens);
  const read = [BOS_ID, ...written.slice(0, -1)];
  let states;
  const pass = () => {
    const past = model.start(memory);
    states = model.decode(read, read.map(() => past));
  };
  const isGreedy = (beamSize ?? card.decoding.beam_size) === 1; // it has computed these maps already
  if (!isGreedy) recorded(model, pass, recording);
  const mapOf = (kind) => (isGreedy ? seen : recording).map(kind, read.length);
  const source = { pieces: src.labels(row), ids: row };
  const target = { pieces: tgt.labels(written), ids: written, probabilities: written.map((_, t) => rounded(Math.exp(best.logProbs[t]))) };
  const early = {
    ...constant,
    text: line, translation, cut: ids.length >= limit, max_src_len: limit, finished: best.finished,
    tgt_cut: written.length < whole.length, segments: segments.length, source, target,
    unknown_words: unknownWordsOf(translator, line),
    attention: { cross: mapOf("cross"), encoder: recording.map("encoder"), decoder: mapOf("decoder") },
  };
  yield { early };
  if (isGreedy) recorded(model, pass, recording);
  const logits = model.output(states, read.length);
  const size = logits.length / read.length;
  const shares = sharesOf(model, recording, read, { kinds: [], at: [] }, written, logits);
  const support = supportOf(early.attention.cross, shares.written.cross, shares.tokens);
  const spelled = (tokenizer, tokens) => tokens.map((id) => tokenizer.bytes(id));
  yield;
  const lens = lensOf(model, recording, written, logits);
  yield;
  const choices = choicesOf(logits, read.length);
  const nearest = { source: nearestOf(model.src.tokens, row), target: nearestOf(model.tgt.tokens, written) };
  const cuts = cutsOf(src, row);
  return {
    source: { ...source, vectors: vectorsOf(model, model.src, row) },
    target: {
      ...target, vectors: vectorsOf(model, model.tgt, read),
      probabilities: written.map((id, t) => probabilityAt(logits, t, size, id)),
      alternatives: written.map((_, t) => alternativesAt(tgt, logits, t, size, 5)),
    },
    beam: { beam_size: beamSize ?? card.decoding.beam_size, length_penalty: card.decoding.length_penalty, nodes: lanes.nodes(best) },
    alignment: alignmentOf(support, spelled(tgt, written), spelled(src, row), best.finished && written.length === whole.length),
    lens, choices, nearest, cuts: cuts ? { source: cuts } : {}, shares,
    looks: looksOf(model, recording),
    pieces: { source: namesOf(src, row, nearest.source.ids.values), target: namesOf(tgt, written, nearest.target.ids.values, lens.ids.values, choices.ids.values) },
  };
}

/* Language models */

function besideOf(model, ids) {
  const past = { ids: [], seen: (model.matches?.lengths ?? []).map(() => new Map()) };
  const at = ids.map((id) => {
    past.ids.push(id);
    return model.beside(past);
  });
  const kinds = [];
  for (let n = 2; n <= (model.ngrams?.longest ?? 1); n++) kinds.push({ part: "ngrams", n });
  for (const n of model.matches?.lengths ?? []) kinds.push({ part: "matches", n });
  return { kinds, at };
}

function* insideLanguage(writer, text, { limits, constant }) {
  const { model, tokenizer, card } = writer;
  const limit = Math.min(limits.tokens, card.window_len);
  const ids = tokenizer.encode(text);
  const row = [card.start_id, ...ids.slice(0, limit - 1)];
  let states;
  const recording = recorded(model, () => {
    const past = model.start();
    states = model.decode(row, row.map(() => past));
  });
  const logits = model.output(states, row.length);
  const size = logits.length / row.length;
  const [next] = bestOf(logits.subarray(logits.length - size), 1);
  const written = [...row.slice(1), next];
  const tokens = { pieces: tokenizer.labels(row), ids: row, probabilities: row.slice(1).map((id, t) => probabilityAt(logits, t, size, id)) };
  const early = {
    ...constant,
    text, unknown_words: unknownWordsOf(writer, text), cut: ids.length >= limit, start: card.start_id === BOS_ID ? "document" : "between", max_len: limit, tokens,
    next: alternativesAt(tokenizer, logits, row.length - 1, size, 20),
    attention: { decoder: recording.map("decoder") },
  };
  yield { early };
  const beside = besideOf(model, row);
  const lens = lensOf(model, recording, written, logits);
  yield;
  const choices = choicesOf(logits, row.length);
  const nearest = nearestOf(model.tgt.tokens, row);
  const cuts = cutsOf(tokenizer, row);
  return {
    tokens: {
      ...tokens, vectors: vectorsOf(model, model.tgt, row, beside),
      alternatives: row.slice(1).map((_, t) => alternativesAt(tokenizer, logits, t, size, 5)),
    },
    lens, choices, nearest: { text: nearest }, cuts: cuts ? { text: cuts } : {},
    shares: sharesOf(model, recording, row, beside, written, logits),
    looks: looksOf(model, recording),
    pieces: { text: namesOf(tokenizer, row, nearest.ids.values, lens.ids.values, choices.ids.values) },
  };
}
