/* The model as a map: its parts in their order, each with the numbers that go in and out and its share of the weights. */

{
  const ROLES = { self: "side", cross: "source", "feed-forward": "feed", recurrent: "side", embedding: "side", ngrams: "side", matches: "side", bag: "side", output: "target" };
  const WHERE = {
    embedding: "numbers", positions: "numbers", "embedding-norm": "numbers", ngrams: "numbers", matches: "numbers", bag: "reasons", pooling: "reasons",
    self: "looks", cross: "looks", "feed-forward": "loom", recurrent: "loom", norm: "loom", output: "choosing",
  };
  const SIZES = {
    en: [[1e3, "thousand"], [1e6, "million"], [1e9, "billion"]],
    zh: [[1e4, "万"], [1e8, "亿"]],
  };
  const NAMES = { classification: { output: "labels" } };
  const TABLES = ["embedding", "ngrams", "matches", "bag"];
  const LEADING = ["side", "kind", "layer", "part"]; // of the place: what a part of the map leads to
  let chosen = null; // the part that was chosen last, and where that led: {name, at}

  section({
    id: "model",
    order: 1,
    applies: (shown) => Boolean(shown.model?.boxes?.length),
    draw(box) {
      const towers = ["encoder", "bag", "decoder"].filter((tower) => data.model.boxes.some((part) => part.tower === tower));
      const columns = towers.map(drawTower);
      columns.at(-1).append(...data.model.boxes.filter(({ tower }) => tower === "output").map(drawPart));
      box.append(make("div", { class: "towers" }, ...columns), make("p", { class: "caption" }, say("model-caption"), hint(sayChoice())));
      prose("model", sayModel());
      drawRailMap();
    },
    place(changed) {
      if (LEADING.some((name) => changed.has(name))) markPart();
    },
  });

  // The part that was chosen, until the place is led elsewhere: then the one that looks there.
  function nameHere() {
    if (chosen && LEADING.every((name) => chosen.at[name] === place[name])) return chosen.name;
    chosen = null;
    return data.model.boxes.find((box) => kindOf(box) === place.kind && box.layer === place.layer)?.name;
  }

  function markPart() {
    const here = nameHere();
    for (const part of root.querySelectorAll("#model-box .part, #rail-map i")) {
      if (part.dataset.name === here) part.setAttribute("aria-current", "true");
      else part.removeAttribute("aria-current");
    }
  }

  // The map once more, small, beside the sections: where the place is in the model.
  function drawRailMap() {
    const bars = data.model.boxes.map((box) => make("i", { class: isOff(box) ? "off" : null, "data-role": roleOf(box), "data-name": box.name, "data-tower": box.tower }));
    byId("rail-map").replaceChildren(...bars);
  }

  // A count in words: 1.2 million, 120 万.
  function roughly(count) {
    const step = [...SIZES[language]].reverse().find(([size]) => count >= size);
    if (!step) return grouped(count);
    return `${Number((count / step[0]).toPrecision(2))} ${step[1]}`;
  }

  const percent = (share) => `${Number((100 * share).toPrecision(2))}%`;

  function sayModel() {
    const { parameters, boxes, tied = [], norm_first: isBefore } = data.model;
    const inTables = boxes.filter(({ part }) => TABLES.includes(part)).reduce((sum, { numbers }) => sum + numbers, 0);
    const more = boxes.some(({ part }) => part === "ngrams") ? say("model-size-ngrams") : "";
    const said = [say("model-size", { count: roughly(parameters), share: percent(inTables / parameters), more })];
    if (isBefore !== undefined && boxes.some(({ part }) => part === "self")) said.push(say(isBefore ? "model-norm-before" : "model-norm-after"));
    return joined([...said, ...tied.map(sayTied)]);
  }

  // Which tables are one matrix.
  function sayTied(names) {
    const [source, output] = [names.includes("encoder.embedding"), names.includes("output")];
    if (!output) return say("model-tied-tables");
    if (data.task !== "translation") return joined([say("model-tied-one"), say("model-tied-back")]);
    return joined([say(source ? "model-tied-all" : "model-tied-decoder"), say("model-tied-back")]);
  }

  function drawTower(tower) {
    const parts = data.model.boxes.filter((part) => part.tower === tower);
    const groups = [];
    for (const part of parts) {
      if (part.layer === null) groups.push(drawPart(part));
      else if (part.layer === groups.at(-1)?.layer) groups.at(-1).list.append(drawPart(part));
      else groups.push(layerOf(part));
    }
    const heading = make("h3", {}, say(`model-tower-${tower}`));
    return make("div", { class: `tower of-${tower}` }, heading, ...groups.map((group) => group.list ?? group));
  }

  function layerOf(part) {
    const list = make("div", { class: "layer", role: "group", "aria-label": say("name-layer", { layer: part.layer + 1 }) });
    list.append(make("span", { class: "layer-name" }, `${part.layer + 1}`), drawPart(part));
    return { layer: part.layer, list };
  }

  // The kind of map that belongs to a part, if it looks.
  const kindOf = ({ tower, part }) => (part === "cross" ? "cross" : part === "self" ? tower : null);

  function drawPart(box) {
    const { name, numbers } = box;
    const share = numbers / data.model.parameters;
    const area = make("i", { class: "area", "aria-hidden": "true" });
    area.style.setProperty("--side", `${(Math.sqrt(share) * 5).toFixed(3)}rem`);
    const text = make("span", { class: "part-text" }, make("b", {}, nameOfPart(box)), ...[termOf(box), flowOf(box)].filter(Boolean).map((said) => make("small", {}, said)));
    const where = whereOf(box);
    const said = make("span", { class: "unseen" }, `; ${shareOf(box)}`);
    const off = offOf(box);
    if (off) text.append(make("small", { class: "off-said" }, off));
    const more = { class: isOff(box) ? "part off" : "part", "data-role": roleOf(box), "data-name": name, title: shareOf(box) };
    if (!where) return make("div", more, text, said, area);
    return make("button", { type: "button", ...more, click: () => leadTo(box, where) }, text, said, area);
  }

  /* Where a part is seen at work */

  // Its section, null where there is none: the loom is of what writes, so of a translator's encoder nothing is in it.
  function whereOf({ tower, part }) {
    let id = tower === "bag" ? "reasons" : WHERE[part];
    if (id === "loom" && tower === "encoder" && data.task === "translation") id = part === "recurrent" ? "states" : null;
    return shownSections.some((one) => one.id === id) ? id : null;
  }

  function leadTo(box, where) {
    go(changesTo(box, where));
    chosen = { name: box.name, at: { ...place } };
    markPart();
    goToSection(where);
  }

  // The place at which a section shows a part.
  function changesTo(box, where) {
    const kind = kindOf(box);
    if (kind in KINDS) return { kind, layer: box.layer };
    if (where === "loom") return { part: keyOfPart(box.part === "norm" ? data.lens.rows.at(-1) : box) }; // the last row is read after the norm
    const side = box.tower === "encoder" ? READ : (WRITTEN ?? READ);
    if (!["numbers", "states"].includes(where) || side === place.side) return {};
    return { side, token: side === WRITTEN ? place.step + OFFSET : Math.max(pointedAt(side) ?? 0, 0) };
  }

  // How to choose one; some may lead nowhere.
  const sayChoice = () => joined([say("model-choose"), ...(data.model.boxes.every(whereOf) ? [] : [say("model-choose-some")])]);

  /* What is switched off, in a page whose model is inside of it */

  const isOff = ({ name }) => Boolean(data.off?.parts.includes(name));

  function offOf(box) {
    if (isOff(box)) return say("model-off");
    const heads = (data.off?.heads ?? []).filter((key) => key.startsWith(`${kindOf(box)}.${box.layer}.`));
    if (!heads.length) return "";
    return say("model-heads-off", { heads: heads.map((key) => Number(key.split(".")[2]) + 1).sort((a, b) => a - b).join(", ") });
  }

  // The encoder's tokens look at each other, the decoder's at those before.
  const nameOfPart = ({ tower, part }) => say(`model-part-${NAMES[data.task]?.[part] ?? (part === "self" && tower === "encoder" ? "around" : part)}`);

  function roleOf({ tower, part }) {
    const role = ROLES[part] ?? "given";
    return role === "side" ? (tower === "decoder" ? "target" : "source") : role;
  }

  // What goes in and out at each token; of a table its rows and columns.
  const isTable = ({ part }) => part === "positions" || TABLES.includes(part);
  const flowOf = (box) => [box.in, box.between, box.out].filter((size) => size).map(grouped).join(isTable(box) ? " × " : " → ");

  // What papers call a part.
  function termOf({ tower, part }) {
    const { norm, activation, cell } = data.model;
    const mlp = { swiglu: "MLP, SwiGLU", geglu: "MLP, GEGLU" }[activation] ?? "MLP";
    const terms = {
      self: tower === "encoder" ? "around" : "self",
      cross: cell ? "attention" : "cross",
    };
    const ofNorm = { layer: "LayerNorm", rms: "RMSNorm" }[norm];
    const exact = { norm: ofNorm, "embedding-norm": ofNorm, recurrent: cell?.toUpperCase(), "feed-forward": mlp }[part];
    const key = `model-term-${terms[part] ?? part}`;
    return exact ?? (hasWord(key) ? say(key) : "");
  }

  function shareOf({ name, numbers }) {
    const group = (data.model.tied ?? []).find((names) => names.includes(name));
    const others = group?.filter((other) => other !== name).map(nameOfBox).join(say("and"));
    const said = [numbers ? say("model-share", { count: grouped(numbers), share: percent(numbers / data.model.parameters) }) : say("model-none")];
    if (others) said.push(say("model-shared", { others }));
    return joined(said);
  }

  function nameOfBox(name) {
    const found = data.model.boxes.find((box) => box.name === name);
    if (!found) return name;
    const part = nameOfPart(found);
    return found.tower === "output" ? part : `${part} (${say(`model-tower-${found.tower}`)})`;
  }

  speak({
    en: {
      "model-title": "The model",
      "model-size": "This model is {count} numbers; {share} of them are vectors of tokens{more}.",
      "model-size-ngrams": " and n-grams",
      "model-norm-before": "Each part reads what came so far, brought to one scale (norm), and adds what it found.",
      "model-norm-after": "Each part reads what came so far and adds what it found; the sum is then brought to one scale (norm).",
      "model-tied-one": "The table of token vectors is the output’s matrix too:",
      "model-tied-decoder": "The encoder has a table of token vectors of its own; the decoder’s is the output’s matrix too:",
      "model-tied-all": "Encoder, decoder and output share one matrix:",
      "model-tied-back": "what turns a token into a vector also turns a vector back into a token.",
      "model-tied-tables": "Encoder and decoder share one table of token vectors.",
      "model-caption": "From top to bottom as a text passes through. In small type: what papers call a part; how many numbers go in, are between and come out at each token, or a table’s rows × the numbers in each. The square is its share of all weights.",
      "model-choose": "Choose a part whose name is underlined to see it at work; the chosen one is framed.",
      "model-choose-some": "What the others make is not shown here.",
      "model-tower-encoder": "Encoder",
      "model-tower-decoder": "Decoder",
      "model-tower-bag": "Bag of n-grams",
      "model-part-embedding": "token vectors",
      "model-part-positions": "positions",
      "model-part-ngrams": "n-gram vectors",
      "model-part-matches": "copied matches",
      "model-part-self": "looks back",
      "model-part-around": "looks around",
      "model-part-cross": "looks at the source",
      "model-part-feed-forward": "feed-forward",
      "model-part-norm": "norm",
      "model-part-embedding-norm": "norm",
      "model-part-output": "logits of all tokens",
      "model-part-labels": "logits of all labels",
      "model-part-pooling": "mean of all tokens",
      "model-part-bag": "token vectors, averaged",
      "model-part-recurrent": "recurrent layer",
      "model-term-embedding": "embedding",
      "model-term-bag": "embedding, mean-pooled",
      "model-term-ngrams": "n-gram embedding",
      "model-term-positions": "positional encoding",
      "model-term-around": "self-attention",
      "model-term-self": "masked self-attention",
      "model-term-cross": "cross-attention",
      "model-term-attention": "attention",
      "model-term-output": "linear layer",
      "model-term-pooling": "mean pooling",
      "model-share": "{count} weights, {share} of all",
      "model-none": "no weights of its own",
      "model-shared": "one matrix with {others}",
      "model-off": "switched off",
      "model-heads-off": "switched off: head {heads}",
    },
    zh: {
      "model-title": "模型",
      "model-size": "这个模型是 {count}个数；其中 {share} 是词元{more}的向量。",
      "model-size-ngrams": "和 n 元组",
      "model-norm-before": "每个部分先把到此为止的内容归一到同一尺度（norm）再读，然后加上自己的发现。",
      "model-norm-after": "每个部分读到此为止的内容，加上自己的发现，再把和归一到同一尺度（norm）。",
      "model-tied-one": "词元向量表也就是输出矩阵：",
      "model-tied-decoder": "编码器有自己的词元向量表；解码器的也就是输出矩阵：",
      "model-tied-all": "编码器、解码器和输出共用一个矩阵：",
      "model-tied-back": "把词元变成向量的，也把向量变回词元。",
      "model-tied-tables": "编码器和解码器共用一个词元向量表。",
      "model-caption": "自上而下是文字经过的顺序。小字：论文中的名称；每个词元进入、居中和出来各有多少个数，或表的行数 × 每行的数。方块是它占全部权重的份额。",
      "model-choose": "选一个名称带下划线的部分看它工作；所选的带框。",
      "model-choose-some": "其余部分得出什么，这里不显示。",
      "model-tower-encoder": "编码器",
      "model-tower-decoder": "解码器",
      "model-tower-bag": "n 元组袋",
      "model-part-embedding": "词元向量",
      "model-part-positions": "位置",
      "model-part-ngrams": "n 元组向量",
      "model-part-matches": "复制的匹配",
      "model-part-self": "回看",
      "model-part-around": "环顾",
      "model-part-cross": "看源文",
      "model-part-feed-forward": "前馈",
      "model-part-norm": "归一化",
      "model-part-embedding-norm": "归一化",
      "model-part-output": "所有词元的 logit",
      "model-part-labels": "所有标签的 logit",
      "model-part-pooling": "所有词元的平均",
      "model-part-bag": "词元向量的平均",
      "model-part-recurrent": "循环层",
      "model-term-embedding": "嵌入",
      "model-term-bag": "嵌入，平均池化",
      "model-term-ngrams": "n 元组嵌入",
      "model-term-positions": "位置编码",
      "model-term-around": "自注意力",
      "model-term-self": "带掩码的自注意力",
      "model-term-cross": "交叉注意力",
      "model-term-attention": "注意力",
      "model-term-output": "线性层",
      "model-term-pooling": "平均池化",
      "model-share": "{count} 个权重，占 {share}",
      "model-none": "没有自己的权重",
      "model-shared": "与{others}是同一矩阵",
      "model-off": "已关掉",
      "model-heads-off": "已关掉：头 {heads}",
    },
  });
}
