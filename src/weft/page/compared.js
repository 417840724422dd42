/* Two models on one sentence: what each wrote, believed and looked at, beside each other. */

speak({
  en: {
    "compared-title": "Two models, one sentence",
    "compared-same": "Both write the same: {text}.",
    "compared-same-text": "Both write {text}, in different tokens; those that only one of them writes are marked.",
    "compared-differ": "{a} writes {one}; {b} writes {other}. Tokens that only one of them writes are marked.",
    "compared-read": "Both read the same text, and differ in what they foretell.",
    "compared-labels": "{a} says {one}, {b} says {other}.",
    "compared-forced": "Below, {b} is made to write what {a} wrote, so that the same tokens are compared.",
    "compared-no-pair":
      "The two cut text into different tokens, so their numbers do not belong to the same places: turn from one to the other above to see each.",
    "compared-likely": "How likely each finds each token",
    "compared-loom": "What {name} believed, part by part",
    "compared-cell": "{token}, {name}: {value}",
    "compared-belief": "{token}, {name}, after “{part}”: {best} {value}; {token} has {own}",
    "compared-belief-own": "{token}, {name}, after “{part}”: {best} {value}",
    "compared-shares": "Who wrote {token}: shares of its logit",
    "compared-map": "Weight of {a} less that of {b}: {map}",
    "compared-map-cell": "{query} → {key}: {a} − {b} = {value}",
    "compared-other-maps": "The two have other layers or heads, so that no map of one belongs to a map of the other.",
    "compared-caption":
      "Colour: the probability of the token that stands there in the end. In the map, grey is more weight in {a}, red more in {b}. Heads are " +
      "numbered by chance: head 2 of two models trained apart need not do the same.",
    "compared-values": "Probability of each label",
  },
  zh: {
    "compared-title": "两个模型，一个句子",
    "compared-same": "两者写的一样：{text}。",
    "compared-same-text": "两者都写 {text}，但词元不同；只有一方写出的词元有标记。",
    "compared-differ": "{a} 写 {one}；{b} 写 {other}。只有一方写出的词元有标记。",
    "compared-read": "两者读同一文本，预测不同。",
    "compared-labels": "{a} 认为是 {one}，{b} 认为是 {other}。",
    "compared-forced": "下面让 {b} 写出 {a} 的译文，这样比较的是同样的词元。",
    "compared-no-pair": "两者的分词不同，它们的数不属于同样的位置：请在上面逐个切换查看。",
    "compared-likely": "各自认为每个词元有多大可能",
    "compared-loom": "{name} 逐部分的想法",
    "compared-cell": "{token}，{name}：{value}",
    "compared-belief": "{token}，{name}，在“{part}”之后：{best} {value}；{token} 为 {own}",
    "compared-belief-own": "{token}，{name}，在“{part}”之后：{best} {value}",
    "compared-shares": "是谁写了 {token}：logit 的份额",
    "compared-map": "{a} 的权重减去 {b} 的：{map}",
    "compared-map-cell": "{query} → {key}：{a} − {b} = {value}",
    "compared-other-maps": "两者的层数或头数不同，一方的图与另一方的图不对应。",
    "compared-caption": "颜色：最终写在那里的词元的概率。图中灰色表示 {a} 的权重更大，红色表示 {b} 的更大。头的编号是偶然的：分别训练的两个模型，第 2 个头不一定做同样的事。",
    "compared-values": "每个标签的概率",
  },
});

{
  const HEAD = 30; // pixels above the first row
  const DEEPEST = { light: 0.58, dark: 0.5 }; // as in the loom
  let pictures = []; // the weaves of the section
  let map = null;

  section({
    id: "compared",
    order: 0,
    applies: () => whole.kind === "models",
    draw: drawCompared,
    place: placeCompared,
    repaint() {
      for (const one of pictures) repaintWeave(one);
      map?.layOut();
    },
  });

  const both = () => whole.pair?.map((number) => whole.inspections[number]) ?? null;
  const names = () => shortNames().slice(0, 2);
  const inQuotes = (text) => `“${text}”`;
  const sideOf = (one) => (one.task === "translation" ? one.target : one.tokens);

  function drawCompared(box) {
    pictures = [];
    map = null;
    prose("compared", ...comparedProse());
    if (data.task === "translation") box.append(...writtenLines());
    if (!both()) return;
    if (data.task === "classification") box.append(make("h3", {}, say("compared-values")), labelHalves());
    else drawWeaves(box);
    if (both().every((one) => one.shares?.values && one.task !== "classification")) {
      box.append(make("h3", { id: "compared-shares-title" }), make("div", { class: "halves", id: "compared-shares" }, make("div"), make("div")));
    }
    drawDifference(box);
    const [a, b] = names();
    box.append(make("p", { class: "caption" }, say("compared-caption", { a, b })));
  }

  function comparedProse() {
    const [first, second] = whole.inspections;
    const [a, b] = names();
    const sentences = [];
    if (data.task === "classification") sentences.push(say("compared-labels", { a, b, one: inQuotes(first.labels[0].label), other: inQuotes(second.labels[0].label) }));
    else if (data.task !== "translation") sentences.push(say("compared-read"));
    else if (first.translation === second.translation) {
      const isSame = first.target.pieces.join(" ") === second.target.pieces.join(" ");
      sentences.push(say(isSame ? "compared-same" : "compared-same-text", { text: inQuotes(first.translation) }));
    } else sentences.push(say("compared-differ", { a, b, one: inQuotes(first.translation), other: inQuotes(second.translation) }));
    if (whole.inspections.length > 2) sentences.push(say("compared-forced", { a, b }));
    if (!both()) sentences.push(say("compared-no-pair"));
    return [joined(sentences)];
  }

  /* What each wrote */

  function writtenLines() {
    const [first, second] = whole.inspections;
    const pieces = [first, second].map((one) => one.target.pieces);
    const kept = commonPlaces(...pieces);
    return [first, second].map((one, side) => {
      const tokens = one.target.pieces.map((piece, i) => make("span", { class: kept[side].has(i) ? "said" : "said only" }, label(piece)));
      return make("div", { class: "compared-line" }, make("span", { class: "small" }, names()[side]), make("span", { lang: one.tgt_lang, dir: "auto" }, ...tokens));
    });
  }

  // The places of the longest sequence that both have (Wagner and Fischer 1974, "The string-to-string correction problem").
  function commonPlaces(a, b) {
    const lengths = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
      }
    }
    const found = [new Set(), new Set()];
    for (let i = 0, j = 0; i < a.length && j < b.length; ) {
      if (a[i] === b[j]) {
        found[0].add(i++);
        found[1].add(j++);
      } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
      else j++;
    }
    return found;
  }

  function labelHalves() {
    const lists = both().map((one, side) => {
      const list = make("div");
      const rows = one.labels.slice(0, 12).map(({ label: name, probability }) => ({ key: name, name, value: probability, role: "source", digits: 3 }));
      drawAmounts(list, rows, { name: names()[side], largest: 1 });
      return make("div", {}, make("p", { class: "small" }, names()[side]), list);
    });
    return make("div", { class: "halves" }, ...lists);
  }

  /* Token by token, in columns that stand under each other */

  // The tokens that are compared: those that are written, of a text those that are foretold.
  const columnsOf = (one) => (one.task === "translation" ? one.target.pieces : one.tokens.pieces.slice(1));

  function drawWeaves(box) {
    const pair = both();
    const columns = columnsOf(pair[0]);
    const measure = make("canvas").getContext("2d");
    lettering(measure, 15, 650);
    const widest = Math.max(...columns.map((piece) => measure.measureText(plainly(piece)).width));
    const width = Math.min(Math.max(widest + 14, 48), 96);
    const edges = Array.from({ length: columns.length + 1 }, (_, i) => i * width);
    const side = box.clientWidth < 560 ? 104 : 190;
    const common = { columns: columns.length, edges, side, lang: sideLang(pair[0]) };
    box.append(make("h3", {}, say("compared-likely")));
    pictures.push(weave(box, likelihoods(pair, columns, common)));
    if (!pair.every((one) => one.lens)) return;
    pair.forEach((one, number) => {
      box.append(make("h3", {}, say("compared-loom", { name: names()[number] })));
      pictures.push(weave(box, beliefs(one, number, columns, common)));
    });
  }

  const sideLang = (one) => (one.task === "translation" ? one.tgt_lang : one.lang);
  const stepHere = (columns) => Math.min(place.step, columns.length - 1);

  function likelihoods(pair, columns, common) {
    const values = pair.map((one) => sideOf(one).probabilities);
    const tops = [HEAD, HEAD + 34, HEAD + 68];
    return {
      id: "compared-likely",
      name: say("compared-likely"),
      rows: 2,
      tops,
      ...common,
      read: (row, column) => say("compared-cell", { token: quoted(columns[column]), name: names()[row], value: likely(values[row][column]) }),
      choose: (row, column) => go({ step: column }),
      paintHeads: (context, side) => paintNames(context, side, names(), tops, () => "target"),
      paint(context, first, last, x) {
        const texts = [];
        context.textAlign = "center";
        for (let column = first; column < last; column++) {
          texts.push(columnHead(columns, column, x));
          for (const row of [0, 1]) texts.push(tintedCell(context, x(column), x(column + 1), tops[row], tops[row + 1], values[row][column], likely(values[row][column])));
          if (column === stepHere(columns)) paintChosen(context, x(column), x(column + 1) - x(column), tops.at(-1));
        }
        writeTexts(context, texts);
      },
    };
  }

  function columnHead(columns, column, x) {
    const weight = column === stepHere(columns) ? 650 : 400;
    return [15, weight, tinted("ink", 1), plainly(columns[column]), (x(column) + x(column + 1)) / 2, HEAD / 2, x(column + 1) - x(column) - 6];
  }

  const depthOf = (value) => 0.035 + DEEPEST[isDark() ? "dark" : "light"] * Math.sqrt(Math.max(value, 0));

  function tintedCell(context, left, right, top, bottom, value, text) {
    context.fillStyle = `rgb(${hueOf("target")} / ${depthOf(value)})`;
    context.beginPath();
    context.roundRect(left + 1.5, top + 1.5, right - left - 3, bottom - top - 3, 4);
    context.fill();
    return [13, 400, tinted("ink", 1), text, (left + right) / 2, (top + bottom) / 2, right - left - 6];
  }

  function paintNames(context, side, texts, tops, role) {
    context.textAlign = "right";
    texts.forEach((text, row) => {
      context.fillStyle = tinted(role(row), 1);
      context.fillRect(side - 5, tops[row] + 1, 3, tops[row + 1] - tops[row] - 2);
      context.fillStyle = tinted("muted", 1);
      lettering(context, 13);
      context.fillText(fitted(context, text, side - 14), side - 12, (tops[row] + tops[row + 1]) / 2);
    });
  }

  function beliefs(one, number, columns, common) {
    const { rows } = one.lens;
    const [ids, chances, own] = [one.lens.ids, one.lens.probabilities, one.lens.written].map(arrayOf);
    const [, places, ranks] = ids.shape;
    const at = (row, column) => (row * places + column) * ranks;
    const piece = (row, column) => one.pieces[WRITTEN][ids.values[at(row, column)]];
    const tops = Array.from({ length: rows.length + 1 }, (_, i) => HEAD + i * 30);
    return {
      id: `compared-loom-${number}`,
      name: say("compared-loom", { name: names()[number] }),
      rows: rows.length,
      tops,
      ...common,
      choose: (row, column) => go({ step: column, part: keyOfPart(rows[row]) }),
      paintHeads: (context, side) => paintNames(context, side, rows.map((row) => nameOfPart(row)), tops, (row) => roleOf(rows[row])),
      read(row, column) {
        const said = { name: names()[number], part: nameOfPart(rows[row]), token: quoted(columns[column]) };
        const best = quoted(piece(row, column));
        return say(piece(row, column) === columns[column] ? "compared-belief-own" : "compared-belief", { ...said, best, value: likely(chances.values[at(row, column)]), own: likely(own.values[row * places + column]) });
      },
      paint(context, first, last, x) {
        const texts = [];
        context.textAlign = "center";
        for (let column = first; column < last; column++) {
          texts.push(columnHead(columns, column, x));
          for (let row = 0; row < rows.length; row++) {
            const leads = piece(row, column) === columns[column];
            const text = tintedCell(context, x(column), x(column + 1), tops[row], tops[row + 1], own.values[row * places + column], plainly(piece(row, column)));
            texts.push([14, leads ? 650 : 400, ...text.slice(2)]);
          }
          if (column === stepHere(columns)) paintChosen(context, x(column), x(column + 1) - x(column), tops.at(-1));
        }
        writeTexts(context, texts);
      },
    };
  }

  /* Shares and maps at the place */

  function placeCompared(changed) {
    if (!both()) return;
    if (changed.has("step")) {
      for (const one of pictures) {
        const row = one.at[0] || (one.picture.rows > 2 ? one.picture.rows - 1 : 0); // at first what it said in the end
        standInWeave(one, [row, stepHere(columnsOf(both()[0]))]);
        paintWeave(one);
      }
      drawShares();
    }
    if (map) drawMapName();
    map?.layOut();
  }

  function drawShares() {
    const box = byId("compared-shares");
    if (!box) return;
    const step = stepHere(columnsOf(both()[0]));
    byId("compared-shares-title").textContent = say("compared-shares", { token: quoted(columnsOf(both()[0])[step]) });
    const [one] = both();
    const entered = one.task === "translation" ? ["<bos>", ...one.target.pieces] : one.tokens.pieces;
    const before = quoted(entered[step]);
    const lists = both().map(({ shares }) => {
      const values = arrayOf(shares.values);
      return shares.rows.map((row, i) => ({ key: keyOfPart(row), name: nameOfPart(row, before), value: values.values[i * values.shape[1] + step], role: roleOf(row) }));
    });
    const largest = Math.max(...lists.flat().map(({ value }) => value));
    lists.forEach((rows, side) => {
      const list = make("div");
      drawAmounts(list, rows, { name: names()[side], largest });
      box.children[side].replaceChildren(make("p", { class: "small" }, names()[side]), list);
    });
  }

  const attentionOf = (one, kind) => arrayOf(one.attention[kind]);
  const haveSameMaps = (kind) => {
    const [a, b] = both().map((one) => attentionOf(one, kind)?.shape.join());
    return a !== undefined && a === b;
  };

  function drawDifference(box) {
    if (!place.kind) return;
    if (!haveSameMaps(place.kind)) return box.append(make("p", { class: "small" }, say("compared-other-maps")));
    if (whole.pair.indexOf(numberShown()) < 0) return;
    map = heatmap({
      name: say("compared-map", { a: names()[0], b: names()[1], map: "" }),
      spec: differenceHere,
      pick: (row, key) => go({ ...(KINDS[place.kind].rows === WRITTEN ? { step: row } : { row }), key }),
      read: null,
    });
    box.append(make("h3", { id: "compared-map-title" }), map.box, make("p", { class: "reading", id: "compared-map-said", "aria-live": "polite" }));
  }

  function weightsOf(one) {
    const { kind, layer, head } = place;
    const maps = attentionOf(one, kind);
    if (head !== MEAN) return within(maps, layer, head).values;
    const [, heads, queries, keys] = maps.shape;
    const values = new Float32Array(queries * keys);
    for (let h = 0; h < heads; h++) within(maps, layer, h).values.forEach((value, i) => (values[i] += value / heads));
    return values;
  }

  function differenceHere() {
    const { rows, cols, queries, keys } = KINDS[place.kind];
    const [a, b] = both().map(weightsOf);
    const values = a.map((value, i) => value - b[i]);
    const top = Math.max(values.reduce((most, value) => Math.max(most, Math.abs(value)), 0), 1e-6);
    const hues = { hue: roleOfSide(cols), queryHue: roleOfSide(rows) };
    const shape = [queries.length, keys.length];
    const seen = (row, key) => isVisible(place.kind, row, key);
    return { values, shape, queries, keys, ...hues, isSigned: true, top, isFlat: false, row: rowIn(place.kind), key: place.key, isVisible: seen };
  }

  function drawMapName() {
    const [a, b] = names();
    const { kind, layer, head, key } = place;
    byId("compared-map-title").textContent = say("compared-map", { a, b, map: `${say(`kind-${kind}`)}, ${nameOf(kind, layer, head)}` });
    const { values, queries, keys } = differenceHere();
    const row = rowIn(kind);
    const column = key ?? values.slice(row * keys.length, (row + 1) * keys.length).reduce((best, value, i, all) => (Math.abs(value) > Math.abs(all[best]) ? i : best), 0);
    const said = { a, b, query: quoted(queries[row]), key: quoted(keys[column]), value: signed(values[row * keys.length + column], 3) };
    byId("compared-map-said").textContent = say("compared-map-cell", said);
  }
}
