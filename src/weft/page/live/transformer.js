/* The pass of a Transformer on arrays of 32 bits, as weft.engine.plain has it. Sums are in double precision.
   Shapes: L rows, D d_model, H heads, J heads of keys and values, d head_dim. */

/* Operations */

// A matrix (outputs, inputs) times each of the first rows of x, plus the bias. What is added to an index is cut to 32 bits
// (| 0), as a sum that may be larger is checked each time: that takes a quarter of the time.
function linear(x, rows, map) {
  const { inputs, outputs, bias } = map;
  const y = new Float32Array(rows * outputs);
  let row = 0;
  if (rows >= 4) {
    const packed = new Float64Array(4 * inputs);
    for (; row + 4 <= rows; row += 4) linearOfFour(packFour(x, row * inputs, inputs, packed), map, y, row * outputs);
  }
  for (; row < rows; row++) linearOfOne(x, row * inputs, map, y, row * outputs);
  if (bias) for (let at = 0, i = 0; at < y.length; at++, i = i + 1 === outputs ? 0 : i + 1) y[at] += bias[i];
  return y;
}

// One row of x by eight rows of the matrix at a time.
function linearOfOne(x, from, { weight, inputs, outputs }, y, to) {
  let output = 0;
  for (; output + 8 <= outputs; output = (output + 8) | 0) {
    const first = Math.imul(output, inputs);
    const second = (first + inputs) | 0;
    const third = (second + inputs) | 0;
    const fourth = (third + inputs) | 0;
    const fifth = (fourth + inputs) | 0;
    const sixth = (fifth + inputs) | 0;
    const seventh = (sixth + inputs) | 0;
    const eighth = (seventh + inputs) | 0;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let e = 0;
    let f = 0;
    let g = 0;
    let h = 0;
    for (let i = 0; i < inputs; i = (i + 1) | 0) {
      const value = x[(from + i) | 0];
      a += value * weight[(first + i) | 0];
      b += value * weight[(second + i) | 0];
      c += value * weight[(third + i) | 0];
      d += value * weight[(fourth + i) | 0];
      e += value * weight[(fifth + i) | 0];
      f += value * weight[(sixth + i) | 0];
      g += value * weight[(seventh + i) | 0];
      h += value * weight[(eighth + i) | 0];
    }
    y[to + output] = a;
    y[to + output + 1] = b;
    y[to + output + 2] = c;
    y[to + output + 3] = d;
    y[to + output + 4] = e;
    y[to + output + 5] = f;
    y[to + output + 6] = g;
    y[to + output + 7] = h;
  }
  for (; output < outputs; output++) {
    let sum = 0;
    for (let i = 0, w = output * inputs; i < inputs; i++) sum += x[from + i] * weight[w + i];
    y[to + output] = sum;
  }
}

// Four rows of x beside each other, number by number, in double precision.
function packFour(x, from, inputs, packed) {
  for (let row = 0; row < 4; row++) {
    for (let i = 0; i < inputs; i++) packed[4 * i + row] = x[from + row * inputs + i];
  }
  return packed;
}

// Four packed rows by two rows of the matrix at a time: each number that is read is used several times.
function linearOfFour(packed, { weight, inputs, outputs }, y, to) {
  let output = 0;
  for (; output + 2 <= outputs; output = (output + 2) | 0) {
    const first = Math.imul(output, inputs);
    const second = (first + inputs) | 0;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let e = 0;
    let f = 0;
    let g = 0;
    let h = 0;
    for (let i = 0, at = 0; i < inputs; i = (i + 1) | 0, at = (at + 4) | 0) {
      const upper = weight[(first + i) | 0];
      const lower = weight[(second + i) | 0];
      const one = packed[at];
      const two = packed[(at + 1) | 0];
      const three = packed[(at + 2) | 0];
      const four = packed[(at + 3) | 0];
      a += one * upper;
      b += two * upper;
      c += three * upper;
      d += four * upper;
      e += one * lower;
      f += two * lower;
      g += three * lower;
      h += four * lower;
    }
    y[to + output] = a;
    y[to + outputs + output] = b;
    y[to + 2 * outputs + output] = c;
    y[to + 3 * outputs + output] = d;
    y[to + output + 1] = e;
    y[to + outputs + output + 1] = f;
    y[to + 2 * outputs + output + 1] = g;
    y[to + 3 * outputs + output + 1] = h;
  }
  for (; output < outputs; output++) linearOfLast(packed, { weight, inputs, outputs }, output, y, to);
}

// The last row of a matrix with an odd number of them.
function linearOfLast(packed, { weight, inputs, outputs }, output, y, to) {
  for (let row = 0; row < 4; row++) {
    let sum = 0;
    for (let i = 0; i < inputs; i++) sum += packed[4 * i + row] * weight[output * inputs + i];
    y[to + row * outputs + output] = sum;
  }
}

function added(x, y) {
  const sum = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) sum[i] = x[i] + y[i];
  return sum;
}

// Rows of `gain.length` numbers, each divided by its root mean square; with `centred` its mean is subtracted first.
function normed(x, { gain, bias }, centred, eps) {
  const width = gain.length;
  const y = new Float32Array(x.length);
  for (let from = 0; from < x.length; from += width) {
    const mean = centred ? meanOf(x, from, width) : 0;
    let squares = 0;
    for (let i = from; i < from + width; i++) squares += (x[i] - mean) ** 2;
    const root = Math.sqrt(squares / width + eps);
    for (let i = 0; i < width; i++) y[from + i] = ((x[from + i] - mean) / root) * gain[i] + (bias ? bias[i] : 0);
  }
  return y;
}

function meanOf(x, from, width) {
  let sum = 0;
  for (let i = from; i < from + width; i++) sum += x[i];
  return sum / width;
}

// The error function to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26).
function erf(x) {
  const size = Math.abs(x);
  const t = 1 / (1 + 0.3275911 * size);
  const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - series * Math.exp(-size * size));
}

const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  relu2: (x) => Math.max(x, 0) ** 2,
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  silu: (x) => x / (1 + Math.exp(-x)),
};

// Powers of scores in place, so that their sum is 1.
function softmaxInPlace(scores) {
  let largest = -Infinity;
  for (const score of scores) if (score > largest) largest = score;
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += scores[i] = Math.exp(scores[i] - largest);
  for (let i = 0; i < scores.length; i++) scores[i] /= total;
}

/* The weights, by the paths that their arrays have */

// The parts of a model, from the list of its arrays [path, entry] and the buffer that they lie in.
class Stored {
  constructor(arrays, buffer) {
    this.entries = new Map(arrays);
    this.buffer = buffer;
    this.known = new Map(); // an array that several parts share is read once
  }

  has(path) {
    return this.entries.has(path);
  }

  array(path) {
    const entry = this.entries.get(path);
    if (!entry) return null;
    const key = entry.offset;
    if (!this.known.has(key)) this.known.set(key, floatsOf(this.buffer, entry));
    return this.known.get(key);
  }

  rows(path) {
    return this.has(path) ? rowsOf(this.buffer, this.entries.get(path)) : null;
  }

  linear(path) {
    const entry = this.entries.get(`${path}.stored`);
    if (!entry) return null;
    const [outputs, inputs] = entry.shape;
    const scales = this.array(`${path}.scales`);
    const stored = this.array(`${path}.stored`);
    const weight = scales ? stored.map((value, i) => value * scales[Math.floor(i / inputs)]) : stored;
    return { weight, bias: this.array(`${path}.bias`), inputs, outputs };
  }

  norm(path) {
    return this.has(`${path}.gain`) ? { gain: this.array(`${path}.gain`), bias: this.array(`${path}.bias`) } : null;
  }

  attention(path) {
    if (!this.has(`${path}.query.stored`)) return null;
    const [query, key, value, output] = ["query", "key", "value", "output"].map((name) => this.linear(`${path}.${name}`));
    return { query, key, value, output, queryGain: this.array(`${path}.query_gain`), keyGain: this.array(`${path}.key_gain`) };
  }

  layer(path) {
    const cross = this.attention(`${path}.cross_attention`);
    const count = cross ? 3 : 2;
    const norms = (name) => Array.from({ length: count }, (_, i) => this.norm(`${path}.${name}.${i}`)).filter(Boolean);
    return {
      self: this.attention(`${path}.self_attention`),
      cross,
      inner: this.linear(`${path}.inner`),
      outer: this.linear(`${path}.outer`),
      gate: this.linear(`${path}.gate`),
      norms: norms("norms"),
      after: norms("after"),
    };
  }

  side(path, shape) {
    if (!this.has(`${path}.tokens`)) return null;
    const norm = this.norm(`${path}.norm`);
    return { tokens: this.rows(`${path}.tokens`), positions: this.array(`${path}.positions`), sinusoids: shape.positions === "sinusoidal", norm };
  }
}

/* The model */

// What was switched off: parts as "decoder.0.cross", heads as "cross.0.3", and the numbers of source tokens.
const NOTHING_OFF = { parts: new Set(), heads: new Set(), source: new Set() };

class Transformer {
  // `shape` has the numbers of weft.engine.weights.Weights; `prefix` stands before the paths of its arrays.
  constructor(shape, stored, prefix = "") {
    this.shape = shape;
    this.src = stored.side(`${prefix}src`, shape);
    this.tgt = stored.side(`${prefix}tgt`, shape);
    const layers = (name, count) => Array.from({ length: count }, (_, i) => stored.layer(`${prefix}${name}.${i}`));
    this.encoder = layers("encoder", shape.encoder_layers);
    this.decoder = layers("decoder", shape.decoder_layers);
    this.encoderNorm = stored.norm(`${prefix}encoder_norm`);
    this.decoderNorm = stored.norm(`${prefix}decoder_norm`);
    this.projection = stored.linear(`${prefix}projection`);
    this.ngrams = tableOf(stored, `${prefix}ngrams`, shape.ngrams);
    this.matches = tableOf(stored, `${prefix}matches`, shape.matches);
    this.activation = ACTIVATIONS[shape.activation];
    this.off = NOTHING_OFF;
    this.watch = null; // told what a pass computes
    this.longer = null; // the place of a token whose vector is multiplied by a factor
    this.placed = []; // vectors of positions, or cosines and sines, as far as they were needed
  }

  norm(x, norm) {
    return normed(x, norm, this.shape.norm === "layer", this.shape.eps);
  }

  // The memory of source ids: their last states (L, D).
  encode(ids) {
    let x = this.embedded(this.src, ids, 0);
    this.watch?.state("encoder", x);
    for (const [number, layer] of this.encoder.entries()) x = this.encoderLayer(layer, number, x, ids.length);
    return this.encoderNorm ? this.norm(x, this.encoderNorm) : x;
  }

  // The past of a target that begins: for each layer what it looks back to, and the memory that it looks at.
  start(memory = null) {
    const layers = this.decoder.map((layer, number) => {
      const own = { keys: [], values: [] };
      if (!layer.cross) return { own };
      const count = memory.length / this.shape.d_model;
      const attended = { keys: [], values: [] };
      this.remember(layer.cross, memory, Array(count).fill(attended), null);
      this.watch?.look("cross", number, "attended", attended);
      return { own, memory: attended };
    });
    return { layers, ids: [], seen: (this.matches?.lengths ?? []).map(() => new Map()) };
  }

  // A past that goes on by itself.
  static fork(past) {
    const copied = ({ keys, values }) => ({ keys: [...keys], values: [...values] });
    const layers = past.layers.map((layer) => ({ ...layer, own: copied(layer.own) }));
    return { layers, ids: [...past.ids], seen: past.seen.map((places) => new Map(places)) };
  }

  // The last states (L, D) of new ids, each after its own past, which grows; ids that share one stand in their order.
  decode(ids, pasts) {
    const places = [];
    const beside = [];
    ids.forEach((id, row) => {
      const past = pasts[row];
      places.push(past.ids.length);
      past.ids.push(id);
      beside.push(this.beside(past));
    });
    let x = this.embedded(this.tgt, ids, places, beside);
    this.watch?.state("decoder", x);
    for (const [number, layer] of this.decoder.entries()) x = this.decoderLayer(layer, number, x, pasts, places);
    return this.decoderNorm ? this.norm(x, this.decoderNorm) : x;
  }

  // Logits (L, V).
  output(states, rows) {
    return linear(states, rows, this.projection);
  }

  // Vectors of tokens and of what stands beside them, scaled, plus those of their positions; their sum may have a norm.
  embedded(side, ids, places, beside = []) {
    const { d_model: width, embedding_scale: scale } = this.shape;
    const x = new Float32Array(ids.length * width);
    ids.forEach((id, row) => {
      const token = side.tokens.at(id);
      const others = beside[row] ?? [];
      const place = this.position(side, places ? places[row] : row);
      const factor = this.longer?.place === row ? scale * this.longer.factor : scale;
      for (let i = 0; i < width; i++) {
        let sum = token[i];
        for (const { vector } of others) sum += vector[i];
        x[row * width + i] = sum * factor + (place ? place[i] : 0);
      }
    });
    this.watch?.sum(side === this.src ? "encoder" : "decoder", x);
    return side.norm ? this.norm(x, side.norm) : x;
  }

  // The vector of a position (Vaswani et al. 2017, section 3.5); null where the model has none.
  position(side, place) {
    const { d_model: width } = this.shape;
    if (side.positions) return side.positions.subarray(place * width, (place + 1) * width);
    if (!side.sinusoids) return null;
    this.placed[place] ??= Float32Array.from({ length: width }, (_, i) => {
      const angle = place * 10000 ** (-(i - (i % 2)) / width);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
    return this.placed[place];
  }

  // The vectors of n-grams and of what followed a match at the last of a past’s ids, each with its part and n.
  beside(past) {
    const found = [];
    const { ids } = past;
    for (let n = 2; n <= (this.ngrams?.longest ?? 1); n++) {
      const hash = hashOfLast(ids, n, this.ngrams.table.length);
      if (hash !== null) found.push({ part: "ngrams", n, vector: this.ngrams.table.at(hash) });
    }
    (this.matches?.lengths ?? []).forEach((n, which) => {
      const hash = hashOfLast(ids, n, PRIME);
      if (hash === null) return;
      const behind = past.seen[which].get(hash);
      past.seen[which].set(hash, ids.length);
      if (behind === undefined) return;
      const vocabulary = this.matches.table.length / this.matches.lengths.length;
      found.push({ part: "matches", n, vector: this.matches.table.at(which * vocabulary + ids[behind]) });
    });
    return found;
  }

  encoderLayer(layer, number, x, rows) {
    const sublayers = [
      ["self", (y) => {
        const attended = { keys: [], values: [] };
        const places = Array.from({ length: rows }, (_, i) => i);
        this.remember(layer.self, y, Array(rows).fill(attended), places);
        const each = Array(rows).fill(attended);
        return this.attend("encoder", number, layer.self, y, each, places, this.off.source);
      }],
      ["feed-forward", (y) => this.feedForward(layer, y, rows)],
    ];
    return this.layer("encoder", layer, number, x, sublayers);
  }

  decoderLayer(layer, number, x, pasts, places) {
    const own = pasts.map((past) => past.layers[number].own);
    // with several new positions of one past, each sees those up to itself
    const seen = places.map((place) => place + 1);
    const sublayers = [
      ["self", (y) => {
        this.remember(layer.self, y, own, places);
        return this.attend("decoder", number, layer.self, y, own, places, null, seen);
      }],
      ["feed-forward", (y) => this.feedForward(layer, y, pasts.length)],
    ];
    const looks = (y) => this.attend("cross", number, layer.cross, y, pasts.map((past) => past.layers[number].memory), null, this.off.source);
    if (layer.cross) sublayers.splice(1, 0, ["cross", looks]);
    return this.layer("decoder", layer, number, x, sublayers);
  }

  // The sublayers of a layer one after the other, each with its residual connection.
  layer(tower, layer, number, x, sublayers) {
    sublayers.forEach(([part, sublayer], i) => {
      x = this.residual(tower, number, part, layer, i, x, sublayer);
    });
    this.watch?.state(tower, x);
    return x;
  }

  // norm(x + sublayer(x)); or, with norm_first, x + sublayer(norm(x)), where what is added may have a norm of its own.
  residual(tower, number, part, layer, which, before, sublayer) {
    const norm = layer.norms[which];
    const isOff = this.off.parts.has(`${tower}.${number}.${part}`);
    // it looks all the same, and what it writes is left out
    const computed = (y) => (isOff ? sublayer(y).fill(0) : sublayer(y));
    let written;
    let after;
    if (this.shape.norm_first) {
      written = computed(this.norm(before, norm));
      const more = layer.after.length && !isOff ? this.norm(written, layer.after[which]) : written;
      after = added(before, more);
    } else {
      written = computed(before);
      after = this.norm(added(before, written), norm);
    }
    this.watch?.part(tower, number, part, { before, written, after });
    return after;
  }

  feedForward(layer, x, rows) {
    const inner = linear(x, rows, layer.inner);
    const gate = layer.gate ? linear(x, rows, layer.gate) : null;
    const { activation } = this;
    for (let i = 0; i < inner.length; i++) inner[i] = gate ? activation(gate[i]) * inner[i] : activation(inner[i]);
    return linear(inner, rows, layer.outer);
  }

  // Append the keys and values of each row to what it is attended to by; `places` are those of self-attention.
  remember(part, x, attended, places) {
    const rows = attended.length;
    const keys = linear(x, rows, part.key);
    const values = linear(x, rows, part.value);
    this.place(keys, rows, part.keyGain, places);
    const width = part.key.outputs;
    const { outputs } = part.value;
    attended.forEach((each, row) => {
      each.keys.push(keys.subarray(row * width, (row + 1) * width));
      each.values.push(values.subarray(row * outputs, (row + 1) * outputs));
    });
  }

  // Norm each head’s queries or keys where there is a gain, and turn them by their positions where these are rotary.
  place(x, rows, gain, places) {
    const { head_dim: dim, rotary, eps } = this.shape;
    if (gain) x.set(normed(x, { gain, bias: null }, false, eps));
    if (!rotary || !places) return;
    const width = x.length / rows;
    for (let row = 0; row < rows; row++) {
      const { cosines, sines } = this.turn(places[row]);
      for (let from = row * width; from < (row + 1) * width; from += dim) turnHead(x, from, cosines, sines);
    }
  }

  // The cosines and sines of a position’s angles (Su et al. 2021, equation 34).
  turn(place) {
    this.placed[place] ??= (() => {
      const angles = this.shape.rotary.map((frequency) => Math.fround(Math.fround(place) * frequency));
      return { cosines: Float32Array.from(angles, Math.cos), sines: Float32Array.from(angles, Math.sin) };
    })();
    return this.placed[place];
  }

  // Concat(head_1, ..., head_h) W^O (section 3.2.2). Each row looks at its own keys, the first `seen` of them; `hidden`
  // are the numbers of keys that nobody looks at.
  attend(kind, number, part, x, attended, places, hidden = null, seen = null) {
    const rows = attended.length;
    const { num_heads: heads, head_dim: dim } = this.shape;
    const queries = linear(x, rows, part.query);
    this.place(queries, rows, part.queryGain, places);
    const width = part.query.outputs;
    const joined = new Float32Array(rows * width);
    const times = width / part.key.outputs;
    for (let row = 0; row < rows; row++) {
      const { keys, values } = attended[row];
      const count = seen ? seen[row] : keys.length;
      for (let head = 0; head < heads; head++) {
        const query = row * width + head * dim;
        const weights = weightsOf(queries, query, keys, Math.floor(head / times) * dim, dim, count, hidden);
        this.watch?.weights(kind, number, row, head, weights);
        if (this.off.heads.has(`${kind}.${number}.${head}`)) continue;
        sumOf(values, weights, Math.floor(head / times) * dim, dim, joined, query);
      }
    }
    this.watch?.look(kind, number, "query", { queries, rows, attended });
    return linear(joined, rows, part.output);
  }
}

// A table of vectors of n-grams or matches; null where the model has none.
function tableOf(stored, path, lengths) {
  if (!stored.has(`${path}.vectors`)) return null;
  const table = stored.rows(`${path}.vectors`);
  return Array.isArray(lengths) ? { table, lengths } : { table, longest: lengths };
}

function turnHead(x, from, cosines, sines) {
  const half = cosines.length;
  for (let i = 0; i < half; i++) {
    const a = x[from + i];
    const b = x[from + half + i];
    x[from + i] = a * cosines[i] - b * sines[i];
    x[from + half + i] = b * cosines[i] + a * sines[i];
  }
}

// softmax(q K^T / sqrt(d)) of one query (equation 1); where all keys are hidden it looks at none.
function weightsOf(queries, query, keys, from, dim, count, hidden) {
  const scores = new Float32Array(count);
  const root = Math.sqrt(dim);
  let open = 0;
  for (let t = 0; t < count; t++) {
    const key = keys[t];
    let sum = 0;
    for (let i = 0; i < dim; i++) sum += queries[query + i] * key[from + i];
    const isHidden = hidden?.has(t);
    if (!isHidden) open += 1;
    scores[t] = isHidden ? -1e38 : sum / root;
  }
  if (!open) return scores.fill(0);
  softmaxInPlace(scores);
  return scores;
}

function sumOf(values, weights, from, dim, y, to) {
  for (let t = 0; t < weights.length; t++) {
    const value = values[t];
    const weight = weights[t];
    for (let i = 0; i < dim; i++) y[to + i] += weight * value[from + i];
  }
}
