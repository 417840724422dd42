/* Words to numbers: how a word was cut, the vectors of its tokens, and what is like them. */

{
  const STRIP = 26; // pixels of a vector's height
  const ROW = 13; // of a row of all vectors, of a short text
  const HIGHEST = 560; // of all of them
  const FONT = 12;
  const state = { part: "sum", column: 0 };

  section({
    id: "numbers",
    order: 2,
    applies: (shown) => Boolean((shown.source ?? shown.tokens).vectors),
    draw(box) {
      box.append(
        make("div", { class: "numbers-top" }, make("div", { id: "numbers-cut" }), make("div", { id: "numbers-near" }), make("div", { id: "numbers-grams" })),
        make("p", { class: "reading", id: "numbers-reading", "aria-live": "polite" }),
        make("div", { class: "strips", id: "numbers-strips", role: "application", tabindex: "0", "aria-label": say("numbers-strips"), keydown: moveInStrips }),
        make("div", { class: "controls", id: "numbers-controls" }),
        make("h3", { class: "on-paper", id: "numbers-named" }),
        make("div", { class: "all-vectors", id: "numbers-all" }),
        make("p", { class: "caption", id: "numbers-caption" }),
      );
    },
    place(changed) {
      const isAll = changed.has("side");
      if (!isAll && !changed.has("token") && !changed.has("step")) return;
      drawToken();
      if (isAll) drawTable();
      else markRow();
    },
    repaint() {
      drawToken();
      drawTable();
    },
  });

  // The token that is looked at; what a language model would write next has no vector yet.
  const tokenHere = () => Math.min(place.token, SIDES[place.side].pieces.length - 1);

  function partsOf(side) {
    const { tokens, positions, normed } = SIDES[side].vectors;
    return { tokens: arrayOf(tokens), positions: positions ? arrayOf(positions) : null, normed: normed ? arrayOf(normed) : null };
  }

  // A vector of a token: its own, that of its position, the sum, or what a norm makes of that.
  function vectorOf(side, part, row) {
    const { tokens, positions, normed } = partsOf(side);
    // a translator's decoder reads what was written before: row t + 1 is target token t
    if (part === "normed") return within(normed, row).values;
    const own = within(tokens, row).values;
    if (!positions || part === "tokens") return own;
    const at = within(positions, row).values;
    return part === "positions" ? at : own.map((value, i) => value + at[i]);
  }

  // A number of each strip with as many digits as all of them have in this page, so that what is shown adds up.
  function numbersAt(side, row, column) {
    const { tokens, positions, normed } = SIDES[side].vectors;
    const digits = Math.min(...[tokens, positions, normed].filter(Boolean).map(digitsIn));
    const shown = (part) => Number(vectorOf(side, part, row)[column].toFixed(digits));
    const sumOf = () => shown("tokens") + shown("positions");
    return stripsOf(side).map((part) => `${say(`vector-${part}`)} ${signed(part === "sum" ? sumOf() : shown(part), digits)}`);
  }

  // The row of the vectors in which a token of a side is read: a translator's decoder reads the start first.
  const isShifted = (side) => side === "target";
  const rowOfToken = (side, token) => Math.min(isShifted(side) ? token + 1 : token, partsOf(side).tokens.shape[0] - 1);
  const isRead = (side, token) => !isShifted(side) || token + 1 < partsOf(side).tokens.shape[0];
  const readPieces = (side) => (isShifted(side) ? ["<bos>", ...SIDES[side].pieces.slice(0, -1)] : SIDES[side].pieces);

  /* The chosen token */

  function drawToken() {
    const { side } = place;
    const token = tokenHere();
    const piece = SIDES[side].pieces[token];
    prose("numbers", ...sayProse(side, token, piece));
    drawCut(side, token);
    drawNearest(side, token);
    drawGrams(side, token);
    drawStrips(side, token);
  }

  function sayProse(side, token, piece) {
    const { width } = SIDES[side].vectors;
    const values = { piece: quoted(piece), id: grouped(SIDES[side].ids[token]), width: grouped(width) };
    if (!isRead(side, token)) return [say("numbers-unread", values)];
    const said = [say("numbers-tell", values)];
    const { positions, normed } = partsOf(side);
    said.push(say(positions ? (normed ? "numbers-added-normed" : "numbers-added") : "numbers-alone"));
    if (normed && !positions) said.push(say("numbers-normed"));
    if (data.model?.positions === "rotary") said.push(say("numbers-rotary"));
    const { beside = [] } = SIDES[side].vectors;
    if (beside.length) said.push(say("vectors-beside", { parts: beside.map((part) => say(`part-${part}`)).join(say("and")) }));
    return [joined(said)];
  }

  // The word that a token is of: its letters, and the pairs that were joined, in their order.
  function wordOf(side, token) {
    const words = data.cuts?.[side];
    const { pieces } = SIDES[side];
    if (!words || isSymbol(pieces[token])) return null;
    let [word, joinedSoFar] = [0, ""];
    for (let at = 0; at < pieces.length && word < words.length; at++) {
      if (isSymbol(pieces[at])) continue;
      if (at === token) return words[word];
      joinedSoFar += pieces[at];
      if (joinedSoFar.length >= words[word][0].length) [word, joinedSoFar] = [word + 1, ""];
    }
    return null;
  }

  function drawCut(side, token) {
    const word = wordOf(side, token);
    const place_ = byId("numbers-cut");
    place_.hidden = !word;
    if (!word) return place_.replaceChildren();
    const [text, merges] = word;
    const tree = treeOf(text, merges);
    const said = merges.length ? "numbers-cut" : "numbers-letter";
    place_.replaceChildren(make("h3", {}, say("numbers-cut-title")), drawTree(tree), make("p", { class: "caption" }, say(said, { word: quoted(text), merges: merges.length, tokens: tree.length })));
  }

  // Trees of a word: letters that were joined, two at a time. A node is {text, height, x, children}.
  function treeOf(text, merges) {
    let nodes = [...text].map((letter, x) => ({ text: letter, height: 0, x, children: [] }));
    for (const [left, right] of merges) {
      const at = nodes.findIndex((node, i) => node.text === left && nodes[i + 1]?.text === right);
      if (at < 0) break;
      const children = [nodes[at], nodes[at + 1]];
      const height = 1 + Math.max(...children.map((child) => child.height));
      nodes.splice(at, 2, { text: left + right, height, x: (children[0].x + children[1].x) / 2, children });
    }
    return nodes;
  }

  function drawTree(roots) {
    const across = 30;
    const down = 26;
    const top = Math.max(...roots.map((root_) => root_.height));
    const count = (node) => (node.children.length ? node.children.reduce((sum, child) => sum + count(child), 0) : 1);
    const letters = roots.reduce((sum, root_) => sum + count(root_), 0);
    const picture = svg("svg", { class: "cut", width: letters * across + 60, height: (top + 1) * down + 6, role: "img", "aria-label": roots.map((root_) => plainly(root_.text)).join(" · ") });
    const x = (node) => node.x * across + 30;
    const y = (node) => (top - node.height) * down + 16;
    const place_ = (node, isRoot) => {
      for (const child of node.children) {
        picture.append(svg("path", { d: `M${x(node)} ${y(node) + 5}L${x(child)} ${y(child) - 13}` }));
        place_(child, false);
      }
      const text = svg("text", { x: x(node), y: y(node), class: isRoot ? "root" : "" });
      text.textContent = plainly(node.text);
      picture.append(text);
    };
    for (const node of roots) place_(node, true);
    return make("div", { class: "scroller" }, picture);
  }

  function drawNearest(side, token) {
    const near = data.nearest?.[side];
    const place_ = byId("numbers-near");
    place_.hidden = !near;
    if (!near) return;
    const ids = within(arrayOf(near.ids), token).values;
    const cosines = within(arrayOf(near.cosines), token).values;
    const named = data.pieces?.[side] ?? {};
    const items = [...ids].map((id, i) => make("li", {}, make("b", {}, label(named[id] ?? `${id}`)), make("span", {}, cosines[i].toFixed(2)), bar(Math.max(cosines[i], 0))));
    const count = data.model?.vocabulary?.[side];
    place_.replaceChildren(
      make("h3", {}, say("numbers-near-title")),
      make("ol", { class: "choices", lang: SIDES[side].lang }, ...items),
      make("p", { class: "caption" }, say("numbers-near", { count: count ? grouped(count) : "" })),
    );
  }

  // The n-grams that are read with the token, where the model has vectors for them.
  function drawGrams(side, token) {
    const longest = Math.max(data.ngrams ?? 1, ...(data.shares?.rows ?? []).map(({ part, n }) => (part === "ngrams" ? (n ?? 1) : 1)));
    const place_ = byId("numbers-grams");
    place_.hidden = longest < 2;
    if (place_.hidden) return;
    const { pieces } = SIDES[side];
    const grams = [];
    for (let n = 2; n <= longest; n++) {
      if (token - n + 1 >= 0) grams.push(pieces.slice(token - n + 1, token + 1));
    }
    const items = grams.map((gram) => make("li", {}, ...gram.map(label)));
    place_.replaceChildren(make("h3", {}, say("numbers-grams-title")), make("ul", { class: "grams", lang: SIDES[side].lang }, ...items), make("p", { class: "caption" }, say("vectors-of-tokens", { ngrams: longest })));
  }

  /* Its vectors as strips: token + position = sum → normed */

  function stripsOf(side) {
    const { positions, normed } = partsOf(side);
    return ["tokens", ...(positions ? ["positions", "sum"] : []), ...(normed ? ["normed"] : [])];
  }

  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);

  function paintNumbers(canvas, values, most) {
    if (canvas.width !== values.length) Object.assign(canvas, { width: values.length, height: 1 });
    const image = new ImageData(values.length, 1);
    const [above, below] = [colourOf("plus"), colourOf("minus")];
    values.forEach((value, i) => {
      image.data.set(value < 0 ? below : above, 4 * i);
      image.data[4 * i + 3] = Math.round(255 * Math.sqrt(Math.abs(value) / most));
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function drawStrips(side, token) {
    const row = rowOfToken(side, token);
    const strips = byId("numbers-strips");
    const all = stripsOf(side).map((part) => vectorOf(side, part, row));
    const most = Math.max(...all.map(largest));
    const signs = { positions: "+", sum: "=", normed: "→" };
    strips.hidden = !isRead(side, token);
    if (strips.children.length !== all.length) strips.replaceChildren(...stripsOf(side).map((part) => stripOf(part, signs[part] ?? "")));
    whenSeen(strips, () => [...strips.querySelectorAll("canvas")].forEach((canvas, i) => paintNumbers(canvas, all[i], most)));
    strips.onpointermove = (event) => {
      const track = event.target.closest(".track");
      if (track) readColumn(columnAt(event, track));
    };
    state.column = Math.min(state.column, all[0].length - 1);
    byId("numbers-reading").hidden = !isRead(side, token);
    readColumn(state.column);
  }

  function stripOf(part, sign) {
    const canvas = make("canvas", { "aria-hidden": "true", width: 1, height: 1 });
    canvas.style.setProperty("height", `${STRIP}px`);
    return make("div", { class: "strip" }, make("span", {}, `${sign} ${say(`vector-${part}`)}`), make("div", { class: "track" }, canvas));
  }

  function columnAt(event, track) {
    const { left, width } = track.getBoundingClientRect();
    return clamped(Math.floor((numColumns() * (event.clientX - left)) / width), numColumns());
  }

  const rowHeight = (rows) => Math.max(Math.min(ROW, Math.floor(HIGHEST / rows)), 3);
  const heightHere = () => rowHeight(readPieces(place.side).length);

  const numColumns = () => partsOf(place.side).tokens.shape[1];

  function moveInStrips(event) {
    const next = stepInGrid(event, [0, state.column], 1, numColumns());
    if (next) readColumn(next[1]);
  }

  function readColumn(column) {
    const { side } = place;
    const row = rowOfToken(side, tokenHere());
    state.column = column;
    const read = numbersAt(side, row, column).join(say("comma"));
    byId("numbers-reading").textContent = say("numbers-reading", { column: column + 1, width: numColumns(), read });
    const strips = byId("numbers-strips");
    strips.style.setProperty("--at", (column + 0.5) / numColumns());
    strips.style.setProperty("--wide", 1 / numColumns());
  }

  /* All tokens' vectors, a row each */

  function drawTable() {
    const { side } = place;
    const parts = stripsOf(side);
    if (!parts.includes(state.part)) state.part = parts[0];
    const choose = (part) => {
      state.part = part;
      drawTable();
      root.querySelector('input[name="numbers-part"]:checked').focus();
    };
    const options = parts.map((part) => [part, say(`vector-${part}`)]);
    byId("numbers-controls").replaceChildren(...(parts.length > 1 ? [choices(say("numbers-all"), "numbers-part", options, state.part, choose)] : []));
    const pieces = readPieces(side);
    const rows = pieces.map((_, row) => vectorOf(side, state.part, row));
    const canvas = make("canvas", { width: rows[0].length, height: rows.length, "aria-hidden": "true" });
    canvas.style.setProperty("height", `${rows.length * heightHere()}px`);
    const names = make("canvas", { class: "names", "aria-hidden": "true" });
    const all = byId("numbers-all");
    all.replaceChildren(names, make("div", { class: "track" }, canvas));
    whenSeen(all, () => {
      paintRows(canvas, rows);
      paintNames(names, pieces);
    });
    all.onclick = (event) => {
      const row = clamped(Math.floor((event.clientY - canvas.getBoundingClientRect().top) / heightHere()), rows.length);
      const token = isShifted(side) ? row - 1 : row;
      if (token >= 0) go({ side, token });
    };
    const caption = say("numbers-caption", { rows: rows.length, width: rows[0].length });
    const first = rows[0].length < SIDES[side].vectors.width ? [say("numbers-first", { shown: rows[0].length })] : [];
    const start = data.start ? [say(`tokens-${data.start}`, { piece: quoted(pieces[0]) })] : [];
    byId("numbers-caption").replaceChildren(joined([caption, ...first, ...start]), hint(say("numbers-choose")));
    byId("numbers-named").textContent = joined([say("numbers-all"), say(`vector-${state.part}`)]);
    markRow();
  }

  function paintRows(canvas, rows) {
    const most = Math.max(...rows.map(largest));
    const image = new ImageData(canvas.width, canvas.height);
    const [above, below] = [colourOf("plus"), colourOf("minus")];
    let at = 0;
    for (const row of rows) {
      for (const value of row) {
        const colour = value < 0 ? below : above;
        image.data[at] = colour[0];
        image.data[at + 1] = colour[1];
        image.data[at + 2] = colour[2];
        image.data[at + 3] = 255 * Math.sqrt(Math.abs(value) / most);
        at += 4;
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function paintNames(canvas, pieces) {
    const scale = globalThis.devicePixelRatio || 1;
    const [width, height] = [88, pieces.length * heightHere()];
    Object.assign(canvas, { width: width * scale, height: height * scale });
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = headFont().replace(`${HEAD_FONT}px`, `${FONT}px`);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const every = Math.ceil(FONT / heightHere());
    pieces.forEach((piece, row) => {
      if (row % every) return;
      pen.fillStyle = css(isSymbol(piece) ? "muted" : "ink");
      pen.fillText(plainly(piece), width - 6, (row + 0.5) * heightHere());
    });
  }

  function markRow() {
    const all = byId("numbers-all");
    all.classList.toggle("unread", !isRead(place.side, tokenHere())); // no row is its own
    all.style.setProperty("--row", `${rowOfToken(place.side, tokenHere()) * heightHere()}px`);
    all.style.setProperty("--row-height", `${heightHere()}px`);
  }

  speak({
    en: {
      "numbers-title": "Words to numbers",
      "numbers-tell": "The model sees no letters, only numbers. {piece} is number {id} of its vocabulary, and enters as a vector of {width} numbers, learned in training.",
      "numbers-added": "A vector that stands for its position is added; the sum is what the first layer reads.",
      "numbers-added-normed": "A vector that stands for its position is added; the sum, brought to one scale (norm), is what the first layer reads.",
      "numbers-alone": "Nothing is added for its position.",
      "numbers-normed": "It is brought to one scale (norm) before the first layer reads it.",
      "numbers-rotary": "Its position turns the queries and keys of every look instead.",
      "numbers-unread":
        "The model writes no letters, only numbers. {piece} is number {id} of its vocabulary. It is the last that was written, and is not read again: no vector of it enters, so it has no row below.",
      "numbers-cut-title": "How the word was cut",
      "numbers-cut": "{word} began as letters; {merges} learned pairs were joined, one after the other, the most frequent in the training text first (Sennrich et al. 2016). Tokens left: {tokens}.",
      "numbers-letter": "{word} stays as it is: no learned pair is in it.",
      "numbers-near-title": "What is like it",
      "numbers-near": "The nearest of the {count} token vectors, by the cosine of the angle between them: 1 is the same direction.",
      "numbers-grams-title": "Its n-grams",
      "numbers-strips": "The vector of the chosen token; arrow keys lead from number to number",
      "numbers-reading": "Number {column} of {width}: {read}",
      "numbers-all": "All tokens:",
      "numbers-caption": "A row for each of the {rows} tokens, a column for each of the {width} numbers: grey above zero, red below, the stronger the larger.",
      "numbers-choose": "Choose a row to see its token.",
      "numbers-first": "Only the first {shown} numbers are in this file.",
      comma: ", ",
    },
    zh: {
      "numbers-title": "从词到数",
      "numbers-tell": "模型看到的不是字母，而是数。{piece} 是词表中的第 {id} 个，以一个 {width} 个数的向量进入模型，这些数是训练中学来的。",
      "numbers-added": "再加上代表其位置的向量；两者之和就是第一层所读的内容。",
      "numbers-added-normed": "再加上代表其位置的向量；两者之和归一到同一尺度（norm）后，就是第一层所读的内容。",
      "numbers-alone": "位置不另加向量。",
      "numbers-normed": "它先归一到同一尺度（norm），再由第一层读入。",
      "numbers-rotary": "位置改为在每次看时旋转查询和键。",
      "numbers-unread": "模型写下的不是字母，而是数。{piece} 是词表中的第 {id} 个。它是最后写下的，不会再被读入：它没有向量进入模型，下面也没有它的一行。",
      "numbers-cut-title": "词是怎样切的",
      "numbers-cut": "{word} 起初是一个个字母；学到的 {merges} 对片段被依次合并，训练文本中最常见的在先（Sennrich 等 2016）。剩下的词元数：{tokens}。",
      "numbers-letter": "{word} 保持原样：其中没有学到的片段对。",
      "numbers-near-title": "与它相近的",
      "numbers-near": "在 {count} 个词元向量中最近的几个，按两者夹角的余弦：1 表示方向相同。",
      "numbers-grams-title": "它的 n 元组",
      "numbers-strips": "所选词元的向量；方向键逐个移动",
      "numbers-reading": "第 {column} 个数，共 {width} 个：{read}",
      "numbers-all": "所有词元：",
      "numbers-caption": "{rows} 个词元每个一行，{width} 个数每个一列：灰色大于零，红色小于零，越明显越大。",
      "numbers-choose": "选一行即可看该词元。",
      "numbers-first": "此文件只含前 {shown} 个数。",
      comma: "，",
    },
  });
}
