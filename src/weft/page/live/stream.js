/* The residual stream, read, as weft.engine.stream has it: what the model would write after each part (the lens), and
   the share of a logit that each part has written. A norm’s scale is held as this pass computed it, so that a direction
   can be carried back to every sum.
   Shapes: L positions of a tower, D d_model, H heads, d head_dim. */

// What a pass computes on its way, kept.
class Recording {
  constructor() {
    this.sums = {}; // tower: the embeddings before a norm that they may have
    this.states = { encoder: [], decoder: [] };
    this.parts = { encoder: [], decoder: [] };
    this.maps = {}; // kind: for each layer, rows of heads’ weights
    this.looks = {}; // kind: for each layer, queries and what was looked at
  }

  sum(tower, x) {
    this.sums[tower] = x;
  }

  state(tower, x) {
    this.states[tower].push(x);
  }

  part(tower, layer, part, { before, written, after }) {
    this.parts[tower].push({ layer, part, before, written, after });
  }

  weights(kind, layer, row, head, weights) {
    const rows = ((this.maps[kind] ??= [])[layer] ??= []);
    (rows[row] ??= [])[head] = weights;
  }

  look(kind, layer, name, look) {
    if (name === "query") (this.looks[kind] ??= [])[layer] = look;
  }

  // The maps of a kind, (layers, H, rows, keys), of the first `count` rows; what a row may not see is 0.
  map(kind, count = Infinity) {
    const layers = (this.maps[kind] ?? []).map((rows) => rows.slice(0, count));
    if (!layers.length) return { shape: [0, 1, 0, 0], values: new Float32Array(0) };
    const rows = layers[0].length;
    const heads = layers[0][0].length;
    const keys = layers[0].at(-1)[0].length;
    const values = new Float32Array(layers.length * heads * rows * keys);
    layers.forEach((each, layer) => {
      each.forEach((byHead, row) => {
        byHead.forEach((weights, head) => values.set(weights, ((layer * heads + head) * rows + row) * keys));
      });
    });
    return { shape: [layers.length, heads, rows, keys], values };
  }
}

// The maps that a part writes with to the stream.
const outputOf = (layer, part) => (part === "feed-forward" ? layer.outer : layer[part].output);
const KIND_OF = { encoder: { self: "encoder" }, decoder: { self: "decoder", cross: "cross" } };

function dotRows(direction, vectors, rows) {
  const width = direction.length / rows;
  const products = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let i = row * width; i < (row + 1) * width; i++) sum += direction[i] * vectors[i];
    products[row] = sum;
  }
  return products;
}

// The product of each direction and one vector.
function dotAll(direction, vector, rows) {
  const width = vector.length;
  return Float64Array.from({ length: rows }, (_, row) => {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += direction[row * width + i] * vector[i];
    return sum;
  });
}

const addInto = (sums, more) => more.forEach((value, i) => (sums[i] += value));

// A direction (L, D) on its way back through a tower.
class Back {
  constructor(transformer, tower, recording, direction, rows) {
    this.transformer = transformer;
    this.rows = rows;
    this.direction = Float64Array.from(direction);
    this.biases = new Float64Array(rows);
    this.outlets = [];
    const layers = transformer[tower];
    this.through(transformer[`${tower}Norm`], recording.states[tower].at(-1));
    const counts = {}; // of the sublayers of each layer that were passed
    for (const part of [...recording.parts[tower]].reverse()) {
      const layer = layers[part.layer];
      const which = (counts[part.layer] = (counts[part.layer] ?? layer.norms.length) - 1);
      this.past(layer, which, part);
    }
    this.outlets.reverse();
    const side = tower === "encoder" ? transformer.src : transformer.tgt;
    this.through(side.norm, recording.sums[tower]);
  }

  // Leave a sublayer and its connection behind.
  past(layer, which, part) {
    const { norm_first: isFirst } = this.transformer.shape;
    if (!isFirst) this.through(layer.norms[which], added(part.before, part.written));
    const stream = this.direction;
    // only what is added passes this norm, the stream goes by
    const isOff = part.written.every((value) => value === 0);
    if (layer.after.length && !isOff) this.through(layer.after[which], part.written);
    const output = outputOf(layer, part.part);
    const outlet = { ...part, output, direction: this.direction, isOff };
    if (output.bias && !isOff) addInto(this.biases, dotAll(this.direction, output.bias, this.rows));
    this.outlets.push(outlet);
    this.direction = stream;
  }

  // Leave a norm behind, whose scale is that of what entered it.
  through(norm, x) {
    if (!norm) return;
    const { rows } = this;
    const { eps, norm: kind } = this.transformer.shape;
    const width = norm.gain.length;
    const direction = new Float64Array(this.direction.length);
    for (let row = 0; row < rows; row++) {
      const from = row * width;
      const mean = kind === "layer" ? meanOf(x, from, width) : 0;
      let squares = 0;
      let sum = 0;
      for (let i = 0; i < width; i++) {
        squares += (x[from + i] - mean) ** 2;
        if (norm.bias) this.biases[row] += this.direction[from + i] * norm.bias[i];
        direction[from + i] = this.direction[from + i] * norm.gain[i];
        sum += direction[from + i];
      }
      const root = Math.sqrt(squares / width + eps);
      const less = kind === "layer" ? sum / width : 0;
      for (let i = from; i < from + width; i++) direction[i] = (direction[i] - less) / root;
    }
    this.direction = direction;
  }

  // The share (L) of what a sublayer has written, without its bias.
  share({ direction, written, output, isOff }) {
    const shares = dotRows(direction, written, this.rows);
    if (output.bias && !isOff) dotAll(direction, output.bias, this.rows).forEach((bias, i) => (shares[i] -= bias));
    return shares;
  }

  // What each head has carried from each key, into `values` (H, L, keys) from a place on.
  carry({ direction, output, layer, part }, recording, tower, values, at) {
    const { num_heads: heads, head_dim: dim, d_model: width } = this.transformer.shape;
    const kind = KIND_OF[tower][part];
    const rows = recording.maps[kind][layer];
    const { attended } = recording.looks[kind][layer];
    const keys = rows.at(-1)[0].length;
    const inner = output.inputs;
    for (let row = 0; row < this.rows; row++) {
      const byHead = new Float64Array(inner);
      for (let i = 0; i < width; i++) {
        const value = direction[row * width + i];
        for (let j = 0; j < inner; j++) byHead[j] += value * output.weight[i * inner + j];
      }
      const { values: vectors } = attended[row];
      for (let head = 0; head < heads; head++) {
        if (this.transformer.off.heads.has(`${kind}.${layer}.${head}`)) continue;
        const weights = rows[row][head];
        const from = Math.floor((head * vectors[0].length) / inner) * dim;
        for (let key = 0; key < weights.length; key++) {
          let sum = 0;
          for (let i = 0; i < dim; i++) sum += byHead[head * dim + i] * vectors[key][from + i];
          values[at + (head * this.rows + row) * keys + key] = sum * weights[key];
        }
      }
    }
  }

  // The same of all layers of a kind: (layers, H, L, keys).
  carried(part, recording, tower) {
    const { num_heads: heads } = this.transformer.shape;
    const own = this.outlets.filter((outlet) => outlet.part === part);
    const kind = KIND_OF[tower][part];
    const keys = recording.maps[kind]?.[0].at(-1)[0].length ?? 0;
    const size = heads * this.rows * keys;
    const values = new Float32Array(own.length * size);
    own.forEach((outlet, i) => {
      if (!outlet.isOff && recording.maps[kind][outlet.layer]) this.carry(outlet, recording, tower, values, i * size);
    });
    return { shape: [own.length, heads, this.rows, keys], values };
  }

  // The shares of the embeddings of ids: tokens, positions, and what stands beside them.
  embeddings(side, ids, beside) {
    const { embedding_scale: scale, d_model: width } = this.transformer.shape;
    const rows = [{ part: "token", layer: null }];
    const shares = [Float64Array.from(ids, (id, row) => this.productAt(row, side.tokens.at(id), scale))];
    if (this.transformer.position(side, 0)) {
      rows.push({ part: "positions", layer: null });
      shares.push(Float64Array.from(ids, (_, row) => this.productAt(row, this.transformer.position(side, row).subarray(0, width), 1)));
    }
    for (const { part, n } of beside.kinds) {
      rows.push({ part, layer: null, n });
      const own = (row) => beside.at[row].find((one) => one.part === part && one.n === n);
      shares.push(Float64Array.from(ids, (_, row) => (own(row) ? this.productAt(row, own(row).vector, scale) : 0)));
    }
    return { rows, shares };
  }

  productAt(row, vector, scale) {
    let sum = 0;
    for (let i = 0; i < vector.length; i++) sum += this.direction[row * vector.length + i] * vector[i];
    return sum * scale;
  }
}

// Rows (R, T) of shares as one array.
function tableOfRows(rows) {
  const width = rows[0].length;
  const values = new Float32Array(rows.length * width);
  rows.forEach((row, i) => values.set(row, i * width));
  return { shape: [rows.length, width], values };
}

function sumOfRows(rows) {
  const sums = new Float64Array(rows[0].length);
  for (const row of rows) addInto(sums, row);
  return sums;
}

/* Shares of written tokens */

// The direction of each written token’s logit above the mean of the vocabulary, and its own bias.
function readoutOf(transformer, written) {
  const { weight, bias, inputs, outputs } = transformer.projection;
  transformer.meanRow ??= (() => {
    const mean = new Float64Array(inputs);
    for (let i = 0; i < weight.length; i++) mean[i % inputs] += weight[i] / outputs;
    return mean;
  })();
  const direction = new Float64Array(written.length * inputs);
  written.forEach((id, row) => {
    for (let i = 0; i < inputs; i++) direction[row * inputs + i] = weight[id * inputs + i] - transformer.meanRow[i];
  });
  const meanBias = bias ? bias.reduce((sum, value) => sum + value, 0) / outputs : 0;
  return { direction, biases: written.map((id) => (bias ? bias[id] - meanBias : 0)) };
}

// Shares of the logits (T, V) of the tokens that were written, by all parts of the decoder.
function sharesOf(transformer, recording, ids, beside, written, logits) {
  const rows = ids.length;
  const { direction, biases } = readoutOf(transformer, written);
  const back = new Back(transformer, "decoder", recording, direction, rows);
  const found = back.embeddings(transformer.tgt, ids, beside);
  for (const outlet of back.outlets) {
    found.rows.push({ part: outlet.part, layer: outlet.layer });
    found.shares.push(back.share(outlet));
  }
  found.rows.push({ part: "biases", layer: null });
  found.shares.push(back.biases.map((bias, row) => bias + biases[row]));
  const size = logits.length / rows;
  const logit = Float64Array.from(written, (id, row) => logits[row * size + id] - meanOf(logits, row * size, size));
  const sums = sumOfRows(found.shares);
  const error = Math.max(...logit.map((value, i) => Math.abs(value - sums[i])));
  const result = { rows: found.rows, values: tableOfRows(found.shares), logit: { shape: [rows], values: Float32Array.from(logit) }, error, left_out: [], source: null, tokens: null };
  result.written = { decoder: back.carried("self", recording, "decoder") };
  if (transformer.src) {
    const cross = back.outlets.filter(({ part }) => part === "cross").map((outlet) => back.share(outlet));
    result.source = { shape: [rows], values: Float32Array.from(sumOfRows(cross)) };
    result.written.cross = back.carried("cross", recording, "decoder");
    result.tokens = summedOverHeads(result.written.cross);
  }
  return result;
}

// (layers, H, T, S) to (T, S)
function summedOverHeads({ shape: [, , rows, keys], values }) {
  const sums = new Float32Array(rows * keys);
  values.forEach((value, i) => (sums[i % sums.length] += value));
  return { shape: [rows, keys], values: sums };
}

/* The lens */

const LEADING = 3;

function logSumExp(logits, from, size, temperature = 1) {
  let largest = -Infinity;
  for (let i = from; i < from + size; i++) if (logits[i] > largest) largest = logits[i];
  let total = 0;
  for (let i = from; i < from + size; i++) total += Math.exp((logits[i] - largest) / temperature);
  return Math.log(total) + largest / temperature;
}

// The most probable tokens after each part, and the probability of what was written in the end.
function lensOf(transformer, recording, written, logits) {
  const rows = [{ part: "embedding", layer: null }, ...recording.parts.decoder.map(({ part, layer }) => ({ part, layer }))];
  const states = [recording.states.decoder[0], ...recording.parts.decoder.slice(0, -1).map(({ after }) => after)];
  const count = written.length;
  const normed = (state) => (transformer.decoderNorm ? transformer.norm(state, transformer.decoderNorm) : state);
  const all = [...states.map((state) => transformer.output(normed(state), count)), logits];
  const shape = [rows.length, count, LEADING];
  const lens = {
    rows,
    ids: { shape, values: new Int32Array(rows.length * count * LEADING) },
    probabilities: { shape, values: new Float32Array(rows.length * count * LEADING) },
    written: { shape: shape.slice(0, 2), values: new Float32Array(rows.length * count) },
  };
  const size = logits.length / count;
  all.forEach((each, row) => {
    for (let t = 0; t < count; t++) {
      const total = logSumExp(each, t * size, size);
      const at = row * count + t;
      bestOf(each.subarray(t * size, (t + 1) * size), LEADING).forEach((id, place) => {
        lens.ids.values[at * LEADING + place] = id;
        lens.probabilities.values[at * LEADING + place] = Math.exp(each[t * size + id] - total);
      });
      lens.written.values[at] = Math.exp(each[t * size + written[t]] - total);
    }
  });
  return lens;
}
