/* A model of each task: text in, an answer out. `card` is what weft.inspection.browser writes of it. */

const BANNED = [PAD_ID, UNK_ID, BOS_ID];

class Translator {
  constructor(card, buffer) {
    this.card = card;
    this.tokenizers = card.tokenizers.map((data) => new Tokenizer(data));
    [this.src] = this.tokenizers;
    this.tgt = this.tokenizers.at(-1);
    this.model = new Transformer(card.shape, new Stored(card.arrays, buffer));
    this.sentences = new Sentences(card.sentences);
  }

  plan(text) {
    return planRows(text, this.src, this.card.lengths, this.sentences);
  }

  // How many new tokens a row may have, eos counted.
  limit(row) {
    const { max_len_ratio: ratio, max_len_extra: extra } = this.card.decoding;
    return Math.max(1, Math.min(this.card.shape.max_len - 1, Math.ceil(ratio * row.length) + extra));
  }

  search(row, settings, watch = null) {
    return endOf(this.searching(row, this.model.encode(row), settings, watch));
  }

  // The same step by step, of a row that was encoded.
  searching(row, memory, { beamSize, lengthPenalty } = {}, watch = null) {
    const { beam_size: beam, length_penalty: penalty } = this.card.decoding;
    const settings = { beamSize: beamSize ?? beam, lengthPenalty: lengthPenalty ?? penalty, banned: BANNED };
    return new Search(this.model, settings, this.limit(row), watch).steps(this.model.start(memory));
  }

  textOf(hypothesis) {
    return oneLine(this.tgt.decode(hypothesis.ids));
  }

  // The translation of a text; `told` hears of each row that is done, with the text so far.
  translate(text, settings, told = () => {}) {
    const plan = this.plan(text);
    const found = [];
    const texts = [];
    for (const row of plan.rows) {
      found.push(this.search(row, settings));
      texts.push(this.textOf(found.at(-1)));
      if (texts.length < plan.rows.length) told(joinRows(plan, texts, this.card.joiner));
    }
    return { text: joinRows(plan, texts, this.card.joiner), cut: plan.cut, unfinished: found.some((one) => !one.finished), found };
  }
}

class Writer {
  constructor(card, buffer) {
    this.card = card;
    this.tokenizers = card.tokenizers.map((data) => new Tokenizer(data));
    [this.tokenizer] = this.tokenizers;
    this.model = new Transformer(card.shape, new Stored(card.arrays, buffer));
  }

  start(prompt) {
    return [this.card.start_id, ...this.tokenizer.encode(prompt)];
  }

  // The logits of what follows the last of these ids, and the past that knows them.
  read(ids) {
    const past = this.model.start();
    const states = this.model.decode(ids, ids.map(() => past));
    return { past, logits: this.last(states) };
  }

  last(states) {
    const width = this.card.shape.d_model;
    return this.model.output(states.slice(states.length - width), 1);
  }

  // New ids after a prompt, one by one, until the end or the limit; a text that outgrows the window goes on with half.
  *tokens(prompt, settings) {
    const ids = this.start(prompt);
    const given = [...ids];
    const { window_len: window } = this.card;
    let left = settings.limit;
    for (let number = 0; left > 0; ) {
      const first = ids.length > window ? ids.length - Math.max(1, Math.floor(window / 2)) : 0;
      const room = Math.min(left, window - (ids.length - first) + 1);
      let { past, logits } = this.read(ids.slice(first));
      for (let i = 0; i < room; i++) {
        const draw = () => drawAt(settings.seed, given, number);
        const id = nextToken(logits, settings, ids.slice(first), BANNED, draw);
        number++;
        yield id;
        if (id === EOS_ID) return;
        ids.push(id);
        if (i + 1 < room) logits = this.last(this.model.decode([id], [past]));
      }
      left -= room;
    }
  }

  // The text of new ids as they come: what is no whole character yet waits.
  *pieces(prompt, settings) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let begins = !prompt && this.tokenizer.leadingSpace;
    for (const id of this.tokens(prompt, settings)) {
      if (id === EOS_ID) break;
      let text = decoder.decode(Uint8Array.from(this.tokenizer.bytes(id)), { stream: true });
      if (begins && text.startsWith(" ")) text = text.slice(1);
      begins = false;
      yield { id, text };
    }
    yield { id: EOS_ID, text: decoder.decode() };
  }
}

class Classifier {
  constructor(card, buffer) {
    this.card = card;
    this.tokenizers = card.tokenizers.map((data) => new Tokenizer(data));
    [this.tokenizer] = this.tokenizers;
    const stored = new Stored(card.arrays, buffer);
    this.model = card.shape ? new Transformer(card.shape, stored, "encoder.") : null;
    this.bag = bagOf(stored, card.longest);
    this.projection = stored.linear("projection");
  }

  // The rows that a text is read in.
  rows(text) {
    const ids = this.tokenizer.encode(oneLine(text));
    const { max_len: longest, too_long: tooLong, first_token: hasFirst } = this.card;
    const first = hasFirst ? [BOS_ID] : [];
    const rows = [];
    for (let from = 0; !rows.length || (tooLong === "windows" && from < ids.length); from += longest) {
      rows.push([...first, ...ids.slice(from, from + longest)]);
    }
    return { rows, cut: tooLong === "cut" && ids.length > longest };
  }

  // The vector that the logits are a projection of: the pooled states, then the mean of the bag.
  vector(ids) {
    const parts = [];
    if (this.model) parts.push(this.pooled(ids));
    if (this.bag) parts.push(bagMean(this.bag, ids));
    return Float32Array.from(parts.flatMap((part) => [...part]));
  }

  pooled(ids) {
    const width = this.card.shape.d_model;
    const pooled = new Float64Array(width);
    if (!ids.length) return pooled;
    const states = this.model.encode(ids);
    if (this.card.pooling === "first") return states.subarray(0, width);
    for (let i = 0; i < states.length; i++) pooled[i % width] += states[i] / ids.length;
    return pooled;
  }

  logits(ids) {
    return linear(this.vector(ids), 1, this.projection);
  }

  // The probability of each label, the mean of the rows’.
  classify(text) {
    const { rows, cut } = this.rows(text);
    const probabilities = new Float64Array(this.card.labels.length);
    for (const row of rows) {
      const logits = this.logits(row);
      if (logits.some((logit) => !Number.isFinite(logit))) throw new Diverged();
      const found = this.card.multi_label ? Float64Array.from(logits, (logit) => 1 / (1 + Math.exp(-logit))) : Float64Array.from(logits);
      if (!this.card.multi_label) softmaxInPlace(found);
      found.forEach((value, i) => (probabilities[i] += value / rows.length));
    }
    return { probabilities: [...probabilities], cut };
  }
}

function bagOf(stored, longest) {
  const tokens = stored.rows("bag.tokens");
  if (!tokens) return null;
  return {
    tokens,
    hashed: stored.rows("bag.hashed.vectors"),
    longest,
    tokenWeights: stored.array("bag.token_weights"),
    hashedWeights: stored.array("bag.hashed_weights"),
  };
}

const MODELS = { translation: Translator, "language-modelling": Writer, classification: Classifier };

function loadModel(card, buffer) {
  const model = new MODELS[card.task](card, buffer);
  model.known = knownWordsOf(card, buffer);
  return model;
}
