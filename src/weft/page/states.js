/* What a recurrent model keeps of what it has read: the state at each token, a row of cells. */

{
  const ROW = 20; // pixels of a row
  const HIGHEST = 640; // of all rows
  const NAME = 12; // of the letters of a name
  const CELL = [4, 22]; // the least and the largest width of a cell
  const state = { pictures: {} };

  const SIDE_OF = { encoder: "source", decoder: "target" };

  section({
    id: "states",
    order: 4.5,
    applies: ({ states }) => Boolean(states?.encoder && states.decoder),
    draw(box) {
      for (const tower of Object.keys(SIDE_OF)) {
        box.append(make("h3", {}, say(`states-${tower}`)));
        state.pictures[tower] = weave(box, pictureOf(tower, box.clientWidth));
      }
      const { cell } = mapOfModel();
      box.append(make("p", { class: "caption" }, joined([say("states-caption"), ...(cell === "lstm" ? [say("states-lstm")] : [])])));
    },
    place(changed) {
      if (!["step", "token", "side"].some((name) => changed.has(name))) return;
      prose("states", joined(proseNow()));
      for (const [tower, picture] of Object.entries(state.pictures)) {
        const row = chosenRow(tower);
        if (row !== null) standInWeave(picture, [row, picture.at[1]]);
        paintWeave(picture);
      }
    },
    repaint: () => Object.values(state.pictures).forEach(repaintWeave),
  });

  const mapOfModel = () => data.model ?? {};
  const statesOf = (tower) => arrayOf(data.states[tower]);
  const pieceAt = (tower, row) => quoted(SIDES[SIDE_OF[tower]].pieces[row]);

  // The row of the place: of the source only where a token of it is chosen.
  function chosenRow(tower) {
    if (tower === "decoder") return place.step;
    return place.side === "source" ? place.token : null;
  }

  function pictureOf(tower, room) {
    const { shape: [rows, columns] } = statesOf(tower);
    const side = room < 560 ? 76 : 120;
    const width = Math.max(Math.min(Math.floor((room - side) / columns), CELL[1]), CELL[0]);
    const height = Math.max(Math.min(ROW, Math.floor(HIGHEST / rows)), 4);
    const steps = (count, size) => Array.from({ length: count + 1 }, (_, i) => i * size);
    return {
      id: `states-${tower}-grid`,
      name: say(`states-${tower}`),
      lang: SIDES[SIDE_OF[tower]].lang,
      rows,
      columns,
      edges: steps(columns, width),
      tops: steps(rows, height),
      side,
      least: 0.25 * width,
      paint: (context, first, last, x) => paintStates(context, tower, { first, last, x, height }),
      paintHeads: (context) => paintTokens(context, tower, side, height),
      read: (row, column) => readState(tower, row, column),
      choose: (row) => go(tower === "decoder" ? { step: row } : { side: "source", token: row }),
    };
  }

  /* Words */

  function proseNow() {
    const { shape: [, width] } = statesOf("decoder");
    const { cell } = mapOfModel();
    const said = [say("states-tell", { width, cell: cell ? cell.toUpperCase() : say("states-cell") })];
    const { step } = place;
    if (step === 0) return [...said, say("states-first", { token: pieceAt("decoder", 0) })];
    const cosine = signed(cosineOf(step - 1, step));
    return [...said, say("states-turned", { before: pieceAt("decoder", step - 1), token: pieceAt("decoder", step), cosine })];
  }

  // The cosine of the angle between two states of the decoder.
  function cosineOf(one, other) {
    const [a, b] = [one, other].map((row) => within(statesOf("decoder"), row).values);
    const product = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);
    return product(a, b) / (Math.sqrt(product(a, a) * product(b, b)) || 1);
  }

  function readState(tower, row, column) {
    const { shape: [, width] } = statesOf(tower);
    const value = signed(within(statesOf(tower), row).values[column], 3);
    const after = tower === "decoder" ? quoted(readAt(row)) : "";
    return say(`states-${tower}-reading`, { token: pieceAt(tower, row), after, number: column + 1, width, value });
  }

  /* Pictures */

  function paintStates(context, tower, { first, last, x, height }) {
    const { shape: [rows, columns], values } = statesOf(tower);
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
    const colours = [hueOf("plus"), hueOf("minus")];
    const gap = height > 8 ? 1 : 0;
    for (let row = 0; row < rows; row++) {
      for (let column = first; column < last; column++) {
        const value = values[row * columns + column];
        context.fillStyle = `rgb(${colours[value < 0 ? 1 : 0]} / ${0.02 + 0.88 * Math.sqrt(Math.abs(value) / largest)})`;
        context.fillRect(x(column), row * height, x(column + 1) - x(column) - gap, height - gap);
      }
    }
    const chosen = chosenRow(tower);
    if (chosen === null) return;
    context.strokeStyle = tinted("mark", 1);
    context.lineWidth = 2;
    context.strokeRect(x(first) - 2, chosen * height, x(last) - x(first) + 4, height - gap);
  }

  function paintTokens(context, tower, side, height) {
    const { pieces } = SIDES[SIDE_OF[tower]];
    const { shape: [rows] } = statesOf(tower);
    const every = Math.ceil((NAME + 2) / height);
    const chosen = chosenRow(tower);
    context.textAlign = "right";
    for (let row = 0; row < rows; row++) {
      if (row !== chosen && (row % every || (chosen !== null && Math.abs(row - chosen) < every))) continue;
      lettering(context, NAME, row === chosen ? 650 : 400);
      context.fillStyle = tinted(row === chosen ? "ink" : "muted", 1);
      context.fillText(fitted(context, plainly(pieces[row]), side - 14), side - 8, (row + 0.5) * height);
    }
  }

  speak({
    en: {
      "states-title": "What it keeps in mind",
      "states-tell":
        "This model reads one token after the other, and what it keeps of them is a state of {width} numbers. At each token its gates ({cell}) " +
        "decide how much of the state before stays and what is added.",
      "states-cell": "GRU or LSTM",
      "states-first": "The state in which it writes {token} is made of the source alone, and of the start.",
      "states-turned": "From the state that wrote {before} to the one that writes {token} the cosine is {cosine}: 1 is no turn at all, 0 a turn by a right angle.",
      "states-encoder": "The encoder’s state at each token of the source",
      "states-decoder": "The decoder’s state as it writes each token",
      "states-encoder-reading": "At {token}, number {number} of {width}: {value}.",
      "states-decoder-reading": "After {after}, to write {token}, number {number} of {width}: {value}.",
      "states-caption":
        "A row for each token, a column for each number: grey above zero, red below, the stronger the larger. A column that keeps its colour " +
        "over many rows is remembered; one that turns is rewritten. The encoder reads in both directions, and its rows are what both make " +
        "together of a token and its surroundings: the attention looks at these. The decoder’s are of its last layer, before it has looked.",
      "states-lstm": "An LSTM has a second state, its cell, which is not shown.",
    },
    zh: {
      "states-title": "它记住了什么",
      "states-tell": "这个模型一个接一个地读词元，所记住的是一个 {width} 个数的状态。每读一个词元，它的门（{cell}）决定之前的状态留下多少、加上什么。",
      "states-cell": "GRU 或 LSTM",
      "states-first": "写 {token} 时的状态只来自源文和开头。",
      "states-turned": "从写 {before} 的状态到写 {token} 的状态，余弦是 {cosine}：1 表示完全没有转向，0 表示转了一个直角。",
      "states-encoder": "编码器在每个源文词元处的状态",
      "states-decoder": "解码器写每个词元时的状态",
      "states-encoder-reading": "在 {token} 处，第 {number} 个数，共 {width} 个：{value}。",
      "states-decoder-reading": "在 {after} 之后，为写 {token}，第 {number} 个数，共 {width} 个：{value}。",
      "states-caption":
        "每个词元一行，每个数一列：灰色大于零，红色小于零，越明显越大。在许多行中保持颜色的一列是被记住的；变色的一列是被改写的。" +
        "编码器从两个方向读，它的每一行是两个方向对一个词元及其上下文共同得出的：注意力看的就是这些。解码器的各行来自它的最后一层，在它去看之前。",
      "states-lstm": "LSTM 还有第二个状态（cell），这里没有显示。",
    },
  });
}
