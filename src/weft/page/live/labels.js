/* A classifier at work on a text, as the data of an inspection: weft.engine.labels and weft.inspection.reasons. */

const MOST_LABELS = 5;
const STEP = 0.002; // by which a token’s vector is made longer and shorter

const arrayOfRows = (rows) => tableOfRows(rows.map((row) => Float32Array.from(row)));

// What each n-gram of a bag adds to the mean, by their lengths.
function bagParts(bag, ids) {
  const rows = [...bagRows(bag, ids)];
  const total = rows.reduce((sum, { weight }) => sum + weight, 0) || 1;
  const lengths = Array.from({ length: bag.hashed ? bag.longest : 1 }, (_, i) => i + 1);
  return lengths.map((n) => {
    const count = Math.max(ids.length - n + 1, 0);
    const vectors = Array.from({ length: count }, () => new Float64Array(bag.tokens.width));
    for (const row of rows) if (row.n === n) vectors[row.place] = Float64Array.from(row.vector, (value) => (value * row.weight) / total);
    return { n, vectors };
  });
}

// The logits where the encoder stops at a state, if any, and the bag has its first lengths alone.
function logitsAt(classifier, state, bag, count, ids) {
  const vector = [];
  if (classifier.model) vector.push(...pooledState(classifier, state, ids));
  if (classifier.bag) {
    const total = new Float64Array(classifier.bag.tokens.width);
    for (const { vectors } of bag.slice(0, count)) for (const one of vectors) addInto(total, one);
    vector.push(...total);
  }
  return linear(Float32Array.from(vector), 1, classifier.projection);
}

function pooledState(classifier, state, ids) {
  const { model, card } = classifier;
  const states = model.encoderNorm ? model.norm(state, model.encoderNorm) : state;
  const width = card.shape.d_model;
  if (card.pooling === "first") return states.subarray(0, width);
  const pooled = new Float64Array(width);
  states.forEach((value, i) => (pooled[i % width] += value / ids.length));
  return pooled;
}

// Log-probabilities: to be the one, or, of several, to hold.
function logProbsOfLabels(classifier, logits) {
  if (classifier.card.multi_label) return Float64Array.from(logits, (logit) => -Math.log1p(Math.exp(-Math.abs(logit))) + Math.min(logit, 0));
  return logSoftmax(Float64Array.from(logits));
}

// By how much each label’s log-probability falls where a token is missing, (L, C).
function fallsOf(classifier, ids, fixed) {
  const whole = logProbsOfLabels(classifier, classifier.logits(ids));
  return ids.map((_, place) => {
    if (place < fixed || ids.length === 1) return whole.map(() => 0);
    const rest = logProbsOfLabels(classifier, classifier.logits(ids.filter((_, i) => i !== place)));
    return whole.map((value, i) => value - rest[i]);
  });
}

// Gradient times vector, (L, C): through the layers by quotients of differences, through the bag exactly.
function gradientOf(classifier, ids, bag) {
  const found = ids.map(() => new Float64Array(classifier.card.labels.length));
  const { model } = classifier;
  if (model) {
    ids.forEach((_, place) => {
      const at = (factor) => {
        model.longer = { place, factor };
        return logProbsOfLabels(classifier, classifier.logits(ids));
      };
      const [above, below] = [at(1 + STEP), at(1 - STEP)];
      found[place].forEach((_, i) => (found[place][i] += (above[i] - below[i]) / (2 * STEP)));
    });
    model.longer = null;
  }
  if (classifier.bag) gradientOfBag(classifier, ids, bag, found);
  return found;
}

// An n-gram’s share is divided among its tokens.
function gradientOfBag(classifier, ids, bag, found) {
  const { weight, inputs } = classifier.projection;
  const { multi_label: isMulti, labels } = classifier.card;
  const probabilities = logProbsOfLabels(classifier, classifier.logits(ids)).map(Math.exp);
  const from = inputs - classifier.bag.tokens.width;
  for (const { n, vectors } of bag) {
    vectors.forEach((vector, start) => {
      const scores = labels.map((_, label) => vector.reduce((sum, value, i) => sum + value * weight[label * inputs + from + i], 0));
      const mean = scores.reduce((sum, score, i) => sum + score * probabilities[i], 0);
      scores.forEach((score, label) => {
        const share = isMulti ? score * (1 - probabilities[label]) : score - mean;
        for (let place = start; place < start + n; place++) found[place][label] += share / n;
      });
    });
  }
}

function agreementOf(a, b) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [one, other] = [a, b].map((values) => values.map((value) => value - mean(values)));
  const product = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  const size = Math.sqrt(product(one, one) * product(other, other));
  return a.length < 3 || !size ? null : rounded(product(one, other) / size);
}

// The shares of the logits of some labels, above the mean of all, or above 0 where each is decided alone.
function labelShares(classifier, recording, ids, bag, labels) {
  const { projection, model, card } = classifier;
  const { weight, bias, inputs, outputs } = projection;
  const isMulti = card.multi_label;
  const mean = new Float64Array(inputs);
  if (!isMulti) weight.forEach((value, i) => (mean[i % inputs] += value / outputs));
  const meanBias = isMulti || !bias ? 0 : meanOf(bias, 0, outputs);
  const logits = logitsAt(classifier, recording?.parts.encoder.at(-1)?.after, bag, bag.length, ids);
  const meanLogit = isMulti ? 0 : meanOf(logits, 0, outputs);
  const result = { rows: [], left_out: [], above: isMulti ? "zero" : "mean", places: null, tokens: null, ngrams: null, written: {} };
  const table = [];
  const places = [];
  const ofBag = [];
  labels.forEach((label, which) => {
    const readout = Float64Array.from({ length: inputs }, (_, i) => weight[label * inputs + i] - mean[i]);
    let rows = [];
    const values = [];
    let rest = bias ? bias[label] - meanBias : 0;
    if (model) {
      const width = card.shape.d_model;
      const count = ids.length;
      const direction = new Float64Array(count * width);
      for (let row = 0; row < (card.pooling === "first" ? 1 : count); row++) {
        for (let i = 0; i < width; i++) direction[row * width + i] = readout[i] / (card.pooling === "first" ? 1 : count);
      }
      const back = new Back(model, "encoder", recording, direction, count);
      const found = back.embeddings(model.src, ids, { kinds: [], at: [] });
      rows = [...found.rows, ...back.outlets.map(({ part, layer }) => ({ part, layer }))];
      const byPlace = [...found.shares, ...back.outlets.map((outlet) => back.share(outlet))];
      places.push(sumOfRows(byPlace));
      values.push(...byPlace.map((row) => row.reduce((sum, value) => sum + value, 0)));
      rest += back.biases.reduce((sum, value) => sum + value, 0);
      if (!which) result.written.encoder = back.carried("self", recording, "encoder");
    }
    for (const { n, vectors } of bag) {
      const from = inputs - classifier.bag.tokens.width;
      const shares = vectors.map((vector) => vector.reduce((sum, value, i) => sum + value * readout[from + i], 0));
      (ofBag[n] ??= []).push(shares);
      rows.push({ part: "bag", layer: null, n });
      values.push(shares.reduce((sum, value) => sum + value, 0));
    }
    rows.push({ part: "biases", layer: null });
    values.push(rest);
    result.rows = rows;
    table.push(values);
  });
  const logit = labels.map((label) => logits[label] - meanLogit);
  const error = Math.max(...table.map((values, i) => Math.abs(values.reduce((sum, value) => sum + value, 0) - logit[i])));
  Object.assign(result, { values: arrayOfRows(table), logit: { shape: [labels.length], values: Float32Array.from(logit) }, error });
  if (model) result.places = arrayOfRows(places);
  if (classifier.bag) Object.assign(result, ngramsOf(ofBag));
  return result;
}

// The shares of a bag’s tokens, and of its n-grams, shorter ones first.
function ngramsOf(ofBag) {
  const tokens = arrayOfRows(ofBag[1]);
  const lengths = ofBag.map((shares, n) => [n, shares]).filter(([n, shares]) => n > 1 && shares);
  if (!lengths.length) return { tokens, ngrams: null };
  const places = lengths.flatMap(([n, shares]) => shares[0].map((_, start) => [n, start]));
  const column = (which) => ({ shape: [places.length], values: Int32Array.from(places, (place) => place[which]) });
  const rows = ofBag[1].map((_, label) => lengths.flatMap(([, shares]) => shares[label]));
  return { tokens, ngrams: { n: column(0), start: column(1), values: arrayOfRows(rows) } };
}

function* insideClassification(classifier, text, { limits, constant }) {
  const { model, tokenizer, card } = classifier;
  const line = oneLine(text);
  const all = tokenizer.encode(line);
  const first = card.first_token ? [BOS_ID] : [];
  const limit = Math.min(limits.tokens, card.max_len);
  const ids = [...first, ...all.slice(0, limit)];
  const recording = model ? recorded(model, () => model.encode(ids)) : null;
  const bag = classifier.bag ? bagParts(classifier.bag, ids) : [];
  const logProbs = logProbsOfLabels(classifier, classifier.logits(ids));
  const order = ranked(logProbs);
  const most = order.slice(0, MOST_LABELS);
  const falls = fallsOf(classifier, ids, first.length);
  const gradient = gradientOf(classifier, ids, bag);
  const side = model ? model.src : { tokens: classifier.bag.tokens };
  const nearest = nearestOf(side.tokens, ids);
  const cuts = cutsOf(tokenizer, ids);
  const width = side.tokens.width;
  const alone = { width, beside: [], positions: null, normed: null, tokens: ids.map((id) => [...side.tokens.at(id)]) };
  return {
    ...constant,
    text: line, cut: all.length > limit, max_len: limit, unknown_words: unknownWordsOf(classifier, line),
    tokens: { pieces: tokenizer.labels(ids), ids, vectors: model ? vectorsOf(model, side, ids) : alone },
    labels: order.map((i) => ({ label: card.labels[i], probability: rounded(Math.exp(logProbs[i])) })),
    contributions: most.map((label) => {
      const [a, b] = [gradient, falls].map((rows) => rows.map((row) => rounded(row[label])));
      return { label: card.labels[label], gradient: a, left_out: b, agreement: agreementOf(a, b) };
    }),
    attention: { encoder: recording ? recording.map("encoder") : { shape: [0, 1, 0, 0], values: new Float32Array(0) } },
    lens: labelLens(classifier, recording, bag, ids, order),
    shares: labelShares(classifier, recording, ids, bag, most),
    looks: recording ? looksOf(model, recording) : { left_out: [] },
    nearest: { text: nearest }, cuts: cuts ? { text: cuts } : {},
    pieces: { text: namesOf(tokenizer, ids, nearest.ids.values) },
  };
}

// The labels after each part of the encoder, the bag left out; then with the bag, length by length.
function labelLens(classifier, recording, bag, ids, order) {
  const rows = [];
  const found = [];
  const keep = (row, state, count) => {
    const logProbs = logProbsOfLabels(classifier, logitsAt(classifier, state, bag, count, ids));
    rows.push(row);
    found.push(order.map((label) => Math.exp(logProbs[label])));
  };
  let last;
  if (recording) {
    keep({ part: "embedding", layer: null }, recording.states.encoder[0], 0);
    for (const { part, layer, after } of recording.parts.encoder) keep({ part, layer }, (last = after), 0);
  }
  bag.forEach(({ n }, i) => keep({ part: "bag", layer: null, n }, last, i + 1));
  return { rows, probabilities: arrayOfRows(found) };
}
