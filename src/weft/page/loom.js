/* The loom: what would be written if the model stopped after each of its parts. */

speak({
  en: {
    "loom-title": "What the model believed, part by part",
    "loom-translation":
      "Read a column from top to bottom: after each part of the decoder, the token that would have been written had the " +
      "model stopped there.",
    "loom-language-modelling":
      "Read a column from top to bottom: after each part, the token that would have been foretold had the model stopped " +
      "there.",
    "loom-tied-translation": "It begins as what was just written, and turns into the answer.",
    "loom-tied-language-modelling": "It begins as what was just read, and turns into what comes next.",
    "loom-recurrent":
      "Read a column from top to bottom: the token that would have been written had the decoder ended after this layer, without its look at " +
      "the source. The last row is the model’s own answer.",
    "loom-classification":
      "Read from top to bottom: after each part, the probability that every label would have had if the model had stopped there.",
    "loom-from-start": "{token} leads from the start on.",
    "loom-settles": "{token} takes the lead after “{part}” and keeps it; just before, {other} led.",
    "loom-never": "{token} never has the lead at the end: the model’s own favourite is {other}, {value}.",
    "loom-reading": "Token {column}, after “{part}”: {best}. {token}, which stands there in the end, has {value}.",
    "loom-reading-best": "Token {column}, after “{part}”: {best}.",
    "loom-label-reading": "After “{part}”: {label} {value}.",
    "loom-caption":
      "In a cell stands the token that leads there, and the number is that token’s probability. Colour: the probability of the token that " +
      "stands there in the end. Bold: this one leads; thin and fainter: another one does. Cells grow together while the same token leads, and a bar in the part’s colour marks where the final one took the lead for good. Each part is read with " +
      "the last norm and the output matrix, which were not trained for it: a lens, not a record (logit lens: nostalgebraist 2020).",
    "loom-caption-labels":
      "Colour: the probability. Each part is read as if it were the last one, with an output that was not trained for it: a lens, not a " +
      "record (logit lens: nostalgebraist 2020).",
  },
  zh: {
    "loom-title": "模型逐部分的想法",
    "loom-translation": "从上往下读一列：如果模型在解码器的这一部分之后就停下，会写出哪个词元。",
    "loom-language-modelling": "从上往下读一列：如果模型在这一部分之后就停下，会预测哪个词元。",
    "loom-tied-translation": "开始时是刚写下的词元，后来变成答案。",
    "loom-tied-language-modelling": "开始时是刚读到的词元，后来变成接下来的词元。",
    "loom-recurrent": "从上往下读一列：如果解码器在这一层之后就结束，而不看源文，会写出哪个词元。最后一行是模型自己的答案。",
    "loom-classification": "从上往下读：如果模型在这一部分之后就停下，每个标签的概率会是多少。",
    "loom-from-start": "{token} 从一开始就领先。",
    "loom-settles": "{token} 在“{part}”之后领先并一直保持；在此之前领先的是 {other}。",
    "loom-never": "{token} 到最后也没有领先：模型自己最看好的是 {other}，{value}。",
    "loom-reading": "第 {column} 个词元，在“{part}”之后：{best}。最终写在那里的 {token} 的概率是 {value}。",
    "loom-reading-best": "第 {column} 个词元，在“{part}”之后：{best}。",
    "loom-label-reading": "在“{part}”之后：{label} {value}。",
    "loom-caption":
      "格子里是在那里领先的词元，数字是这个词元的概率。颜色：最终写在那里的词元的概率。粗体表示它领先，较细较淡表示别的词元领先。同一个词元领先时格子连在一起；带颜色的横条标出最终词元" +
      "从哪一部分起一直领先。每一部分都用最后的归一化和输出矩阵来读，而它们并不是为此训练的：这是透镜，不是记录（logit lens：nostalgebraist 2020）。",
    "loom-caption-labels": "颜色：概率。每一部分都当作最后一部分来读，而输出并不是为此训练的：这是透镜，不是记录（logit lens：nostalgebraist 2020）。",
  },
});

const LOOM_HEAD = 34; // pixels above the first row
const LOOM_DEEPEST = { light: 0.58, dark: 0.5 }; // letters stay readable on the deepest tint
const LOOM_PALER = 0.72; // of a token that another one will replace
let loom = null;

const isDark = () => parseInt(hueOf("paper"), 10) < 128;

section({
  id: "loom",
  order: 5,
  applies: ({ lens }) => (lens?.rows.length ?? 0) > 0,
  draw: drawLoom,
  place: placeLoom,
  repaint: () => repaintWeave(loom.woven),
});

function readLoom() {
  const { rows } = data.lens;
  const probabilities = arrayOf(data.lens.probabilities);
  if (isRead()) return { rows, probabilities, columns: data.labels.length };
  const [ids, written] = [arrayOf(data.lens.ids), arrayOf(data.lens.written)];
  return { rows, probabilities, ids, written, columns: ids.shape[1] };
}

function drawLoom(box) {
  loom = readLoom();
  const measure = make("canvas").getContext("2d");
  const side = loomSide(measure, box);
  const needed = loomColumn(measure);
  const natural = Math.max(needed + 6, 46);
  const width = Math.floor(Math.max(natural, Math.min((box.clientWidth - side) / loom.columns, natural * 1.3)));
  const height = loom.rows.length > 13 ? 32 : 38;
  loom.woven = weave(box, {
    least: Math.max(needed, 38),
    id: "loom-grid",
    name: say("loom-title"),
    lang: WRITTEN ? SIDES[WRITTEN].lang : null,
    rows: loom.rows.length,
    columns: loom.columns,
    edges: Array.from({ length: loom.columns + 1 }, (_, i) => i * width),
    tops: Array.from({ length: loom.rows.length + 1 }, (_, i) => LOOM_HEAD + i * height),
    side,
    paint: paintLoom,
    paintHeads: paintLoomHeads,
    read: isRead() ? readLabelCell : readLoomCell,
    choose: (row, column) => go({ part: keyOfPart(loom.rows[row]), ...(WRITTEN ? { step: column } : { label: column }) }),
  });
  box.append(make("p", { class: "caption" }, say(isRead() ? "loom-caption-labels" : "loom-caption")));
  loom.shown = loomPlace().slice();
}

// Room for the names of the parts; on a narrow screen they take two lines.
function loomSide(measure, box) {
  lettering(measure, 13);
  const widest = Math.max(...loom.rows.map((row) => measure.measureText(nameOfPart(row)).width));
  return Math.ceil(Math.min(widest + 22, box.clientWidth < 560 ? 104 : 210));
}

// As wide as most of the tokens need it.
function loomColumn(measure) {
  lettering(measure, isRead() ? 14 : 16, 650);
  const texts = isRead() ? data.labels.map(({ label: name }) => name) : [...new Set(loom.ids.values)].map((id) => plainly(pieceOf(id)));
  const widths = texts.map((text) => measure.measureText(text).width).sort((a, b) => a - b);
  return Math.min(widths[Math.floor(widths.length * 0.92)] + 8, isRead() ? 144 : 90);
}

// The row and column of the place.
function loomPlace() {
  const row = loom.rows.findIndex((each) => keyOfPart(each) === place.part);
  return [row, WRITTEN ? place.step : Math.min(place.label, loom.columns - 1)];
}

function placeLoom(changed) {
  if (!["step", "part", "label"].some((name) => changed.has(name))) return;
  const [row, column] = loomPlace();
  prose("loom", ...loomProse(column));
  standInWeave(loom.woven, [row < 0 ? loom.rows.length - 1 : row, column]);
  paintWeave(loom.woven);
}

const loomId = (row, column, rank = 0) => loom.ids.values[(row * loom.columns + column) * loom.ids.shape[2] + rank];
const loomChance = (row, column, rank = 0) => loom.probabilities.values[(row * loom.columns + column) * loom.ids.shape[2] + rank];
const loomWritten = (row, column) => loom.written.values[row * loom.columns + column];

// The first row from which on the written token leads; as many as there are rows where it does not in the end.
function loomTurn(column) {
  const { id } = writtenAt(column);
  let row = loom.rows.length;
  while (row > 0 && loomId(row - 1, column) === id) row--;
  return row;
}

function loomProse(column) {
  const isRecurrent = loom.rows[0].part === "recurrent";
  const sentences = [say(`loom-${isRecurrent ? "recurrent" : data.task}`)];
  if (!isRecurrent && isTied() && hasWord(`loom-tied-${data.task}`)) sentences.push(say(`loom-tied-${data.task}`));
  if (WRITTEN) sentences.push(loomTurnSaid(column));
  return [joined(sentences)];
}

function loomTurnSaid(column) {
  const token = quoted(writtenAt(column).piece);
  const turn = loomTurn(column);
  const last = loom.rows.length - 1;
  if (turn === 0) return say("loom-from-start", { token });
  if (turn > last) return say("loom-never", { token, other: quoted(pieceOf(loomId(last, column))), value: likely(loomChance(last, column)) });
  return say("loom-settles", { token, part: nameOfPart(loom.rows[turn]), other: quoted(pieceOf(loomId(turn - 1, column))) });
}

function readLoomCell(row, column) {
  const ranks = [...Array(loom.ids.shape[2]).keys()];
  const best = ranks.map((rank) => `${quoted(pieceOf(loomId(row, column, rank)))} ${likely(loomChance(row, column, rank))}`).join(" · ");
  const token = quoted(writtenAt(column).piece);
  const values = { column: column + 1, part: nameOfPart(loom.rows[row]), best, token, value: likely(loomWritten(row, column)) };
  const isBest = loomId(row, column) === writtenAt(column).id;
  return say(isBest ? "loom-reading-best" : "loom-reading", values);
}

function readLabelCell(row, column) {
  const value = likely(loom.probabilities.values[row * loom.columns + column]);
  return say("loom-label-reading", { part: nameOfPart(loom.rows[row]), label: data.labels[column].label, value });
}

/* Painting */

function paintLoom(context, first, last, x) {
  const deepest = LOOM_DEEPEST[isDark() ? "dark" : "light"];
  const hue = hueOf(WRITTEN ? "target" : "source");
  const colours = { ink: tinted("ink", 1), paler: tinted("ink", LOOM_PALER), hue, deepest };
  context.textAlign = "center";
  const texts = [];
  for (let column = first; column < last; column++) {
    const bounds = { left: x(column), width: x(column + 1) - x(column), turn: WRITTEN ? loomTurn(column) : 0 };
    texts.push(loomTop(column, bounds, colours.ink));
    for (let row = 0; row < loom.rows.length; row++) {
      texts.push(...(WRITTEN ? paintLoomCell : paintLabelCell)(context, row, column, bounds, colours));
    }
    if (column === loomPlace()[1]) paintChosen(context, bounds.left, bounds.width, loom.woven.picture.tops.at(-1));
  }
  writeTexts(context, texts);
}

function loomTop(column, { left, width }, ink) {
  const weight = column === loomPlace()[1] ? 650 : 400;
  const text = WRITTEN ? plainly(writtenAt(column).piece) : data.labels[column].label;
  return [WRITTEN ? 16 : 14, weight, ink, text, left + width / 2, LOOM_HEAD / 2, width - 6];
}

// Paint a cell, and return what is written in it.
function paintLoomCell(context, row, column, { left, width, turn }, { ink, paler, hue, deepest }) {
  const { tops } = loom.woven.picture;
  const [id, above, below] = [loomId(row, column), row > 0 && loomId(row - 1, column), row + 1 < loom.rows.length && loomId(row + 1, column)];
  const depth = 0.035 + deepest * Math.sqrt(loomWritten(row, column));
  const [isOneAbove, isOneBelow] = [id === above, id === below];
  const [top, bottom] = [tops[row] + (isOneAbove ? 0 : 1.5), tops[row + 1] - (isOneBelow ? 0 : 1.5)];
  context.fillStyle = `rgb(${hue} / ${depth})`;
  context.beginPath();
  context.roundRect(left + 1.5, top, width - 3, bottom - top, [...(isOneAbove ? [0, 0] : [4, 4]), ...(isOneBelow ? [0, 0] : [4, 4])]);
  context.fill();
  if (row > 0 && row === turn) paintTurn(context, loom.rows[row], left, top, width);
  const leads = id === writtenAt(column).id;
  const middle = (tops[row] + tops[row + 1]) / 2;
  const colour = leads ? ink : paler;
  const at = left + width / 2;
  return [
    [15, leads ? 650 : 400, colour, plainly(pieceOf(id)), at, middle - 5, width - 8],
    [10.5, leads ? 600 : 400, colour, loomChance(row, column).toFixed(2), at, middle + 10, width],
  ];
}

function paintTurn(context, row, left, top, width) {
  context.fillStyle = tinted(roleOf(row), 1);
  context.beginPath();
  context.roundRect(left + 1.5, top, width - 3, 3, [3, 3, 0, 0]);
  context.fill();
}

function paintLabelCell(context, row, column, { left, width }, { ink, hue, deepest }) {
  const { tops } = loom.woven.picture;
  const value = loom.probabilities.values[row * loom.columns + column];
  context.fillStyle = `rgb(${hue} / ${0.035 + deepest * Math.sqrt(value)})`;
  context.beginPath();
  context.roundRect(left + 1.5, tops[row] + 1.5, width - 3, tops[row + 1] - tops[row] - 3, 4);
  context.fill();
  const weight = row === loom.rows.length - 1 ? 650 : 400;
  return [[14, weight, ink, value.toFixed(3), left + width / 2, (tops[row] + tops[row + 1]) / 2, width]];
}

function paintLoomHeads(context, side) {
  const { tops } = loom.woven.picture;
  const [chosen] = loomPlace();
  context.textAlign = "right";
  loom.rows.forEach((row, i) => {
    context.fillStyle = tinted(roleOf(row), 1);
    context.fillRect(side - 5, tops[i] + 1, 3, tops[i + 1] - tops[i] - 2);
    context.fillStyle = tinted(i === chosen ? "ink" : "muted", 1);
    paintName(context, nameOfPart(row), side - 12, (tops[i] + tops[i + 1]) / 2, side - 14, i === chosen ? 650 : 400);
  });
}

// A name in one line, or in two of smaller letters.
function paintName(context, name, right, middle, room, weight) {
  lettering(context, 13, weight);
  if (context.measureText(name).width <= room) return context.fillText(name, right, middle);
  lettering(context, 11.5, weight);
  const words = name.split(/(?<=[\s·])/);
  let count = words.length;
  while (count > 1 && context.measureText(words.slice(0, count).join("")).width > room) count--;
  context.fillText(fitted(context, words.slice(0, count).join("").trim(), room), right, middle - 7);
  context.fillText(fitted(context, words.slice(count).join("").trim(), room), right, middle + 7);
}
