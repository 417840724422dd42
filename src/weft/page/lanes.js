/* The search as lanes: a lane for each rank of the beam, a column for each step. */

speak({
  en: {
    "lanes-title": "The search",
    "lanes-prose":
      "The decoder does not take the most probable token and forget the rest: at each step it keeps the {beam} most probable beginnings, here one above " +
      "the other, the most probable one on top.",
    "lanes-prose-one": "This search keeps one beginning alone: at each step it takes the most probable token.",
    "lanes-lost": "At step {step} the translation takes {piece}, though {other} is more probable there: who takes the most probable token at once would have written another one.",
    "lanes-first": "At every step the translation takes the most probable token: a search that keeps one beginning alone finds it too.",
    "lanes-reading": "Step {step}, lane {rank}, {piece}: probability {probability}, log-probability of the whole beginning {total}; {fate}.",
    "lanes-text": "So far: {text}",
    "lanes-nothing": "Step {step}, lane {rank}: nothing was kept here.",
    "lanes-fate-goes on": "continued",
    "lanes-fate-dropped": "dropped at step {next}",
    "lanes-fate-ended": "ended with score {score}",
    "lanes-fate-open": "still open when the search had its answer",
    "lanes-caption":
      "A ribbon is as thick as its token’s probability; the coloured one leads to the translation; × was dropped, ● ended. What ended is compared by its " +
      "score, the log-probability{by} (Wu et al. 2016, equation 14; Vaswani et al. 2017, section 6.1).",
    "lanes-by": " divided by {power}",
    "lanes-length": "length",
    "lanes-keys": "Left and right lead along a ribbon, up and down to the other lanes of a step.",
  },
  zh: {
    "lanes-title": "搜索",
    "lanes-prose": "解码器并不是只取最可能的词元而忘掉其余：它在每一步保留最可能的 {beam} 个开头，这里上下排列，最可能的在最上面。",
    "lanes-prose-one": "这次搜索只保留一个开头：每一步都取最可能的词元。",
    "lanes-lost": "译文在第 {step} 步取了 {piece}，虽然那里 {other} 更可能：如果每一步都只取最可能的词元，就会写出另一个译文。",
    "lanes-first": "译文在每一步都取了最可能的词元：只保留一个开头的搜索也会找到它。",
    "lanes-reading": "第 {step} 步，第 {rank} 道，{piece}：概率 {probability}，整个开头的对数概率 {total}；{fate}。",
    "lanes-text": "到此为止：{text}",
    "lanes-nothing": "第 {step} 步，第 {rank} 道：这里没有保留任何开头。",
    "lanes-fate-goes on": "继续",
    "lanes-fate-dropped": "在第 {next} 步被放弃",
    "lanes-fate-ended": "结束，得分 {score}",
    "lanes-fate-open": "搜索得出答案时仍未结束",
    "lanes-caption":
      "带子的粗细是词元的概率；有颜色的通向译文；× 表示被放弃，● 表示结束。已结束者按得分比较，即对数概率{by}" +
      "（Wu 等 2016，式 14；Vaswani 等 2017，6.1 节）。",
    "lanes-by": "除以 {power}",
    "lanes-length": "长度",
    "lanes-keys": "左右键沿着带子走，上下键到同一步的其他道。",
  },
});

const LANE = 28; // pixels
const LANES = { head: 24, side: 34 };
const THICKEST = 20;
let lanes = null;

section({
  id: "lanes",
  order: 8,
  applies: ({ beam }) => (beam?.nodes.length ?? 0) > 0,
  draw: drawLanes,
  place: placeLanes,
  repaint: () => repaintWeave(lanes.woven),
});

// The caption; a length penalty of 1 is not written as a power, and one of 0 divides by nothing.
function captionOfLanes() {
  const { length_penalty: penalty } = data.beam;
  const length = `(5 + ${say("lanes-length")}) / 6`;
  const by = penalty ? say("lanes-by", { power: penalty === 1 ? length : `(${length})^` }) : "";
  const [before, after] = say("lanes-caption", { by }).split("^");
  return after === undefined ? [before] : [before, make("sup", {}, `${penalty}`), after];
}

// Every node's step and rank in it, the nodes of each step, and the children of each node.
function readLanes() {
  const { nodes } = data.beam;
  const steps = [];
  const places = nodes.map(({ step }, i) => {
    const column = step - 1;
    (steps[column] ??= []).push(i);
    return { column, rank: steps[column].length - 1 };
  });
  const children = nodes.map(() => []);
  nodes.forEach(({ parent }, i) => parent !== null && children[parent].push(i));
  const names = new Map();
  return { nodes, steps, places, children, names, count: Math.max(data.beam.beam_size, ...steps.map((each) => each.length)) };
}

function drawLanes(box) {
  lanes = readLanes();
  const measure = make("canvas").getContext("2d");
  lettering(measure, 14, 650);
  const widths = [...new Set(lanes.nodes.map(({ piece }) => plainly(piece)))].map((text) => measure.measureText(text).width).sort((a, b) => a - b);
  const natural = Math.min(Math.max(widths[Math.floor(widths.length * 0.92)] + 34, 62), 116);
  const width = Math.floor(Math.max(natural, Math.min((box.clientWidth - LANES.side) / lanes.steps.length, natural * 1.25)));
  lanes.woven = weave(box, {
    id: "lanes-grid",
    name: say("lanes-title"),
    lang: SIDES.target.lang,
    rows: lanes.count,
    columns: lanes.steps.length,
    edges: Array.from({ length: lanes.steps.length + 1 }, (_, i) => i * width),
    tops: Array.from({ length: lanes.count + 1 }, (_, i) => LANES.head + i * LANE),
    side: LANES.side,
    least: lanes.steps.map(neededInLanes),
    paint: paintLanes,
    paintHeads: paintLaneHeads,
    read: readLane,
    has: (rank, column) => nodeAt(rank, column) !== undefined,
    move: moveInLanes,
    choose: (_, column) => go({ step: Math.min(column, numSteps() - 1) }),
  });
  const column = Math.min(place.step, lanes.steps.length - 1);
  standInWeave(lanes.woven, [bestRank(column), column]);
  box.append(make("p", { class: "caption" }, ...captionOfLanes(), hint(say("lanes-keys"))));
  prose("lanes", joined([say(data.beam.beam_size > 1 ? "lanes-prose" : "lanes-prose-one", { beam: data.beam.beam_size }), ...greedySaid()]));
}

// Where the translation first takes another token than the most probable one after its own beginning.
function greedySaid() {
  if (data.beam.beam_size === 1) return [];
  const { ids, pieces, alternatives } = data.target;
  const step = ids.findIndex((id, i) => alternatives[i][0].id !== id);
  if (step < 0) return [say("lanes-first")];
  return [say("lanes-lost", { step: step + 1, piece: quoted(pieces[step]), other: quoted(alternatives[step][0].piece) })];
}

const nodeAt = (rank, column) => lanes.steps[column]?.[rank];

function placeLanes(changed) {
  if (!changed.has("step")) return;
  const column = Math.min(place.step, lanes.steps.length - 1);
  const [rank, at] = lanes.woven.at;
  if (at !== column) standInWeave(lanes.woven, [bestRank(column), column]);
  else standInWeave(lanes.woven, [rank, at]);
  paintWeave(lanes.woven);
}

const bestRank = (column) => Math.max(lanes.steps[column].findIndex((i) => lanes.nodes[i].is_best), 0);

function readLane(rank, column) {
  const i = nodeAt(rank, column);
  if (i === undefined) return say("lanes-nothing", { step: column + 1, rank: rank + 1 });
  const node = lanes.nodes[i];
  const fate = say(`lanes-fate-${node.fate}`, { next: node.step + 1, score: minus(node.score?.toFixed(3) ?? "") });
  const values = { step: column + 1, rank: rank + 1, piece: quoted(node.piece), probability: likely(node.probability), total: minus(node.log_prob.toFixed(3)) };
  return joined([say("lanes-reading", { ...values, fate }), say("lanes-text", { text: textUpTo(i) })]);
}

// What was written on the way to a node.
function textUpTo(i) {
  const pieces = [];
  for (let at = i; at !== null; at = lanes.nodes[at].parent) pieces.unshift(lanes.nodes[at].piece);
  return pieces.map((piece) => (isSymbol(piece) ? "" : visible(piece).replace(/▁/gu, " "))).join("").trim();
}

// Left and right along a ribbon, up and down in a step, to the ends of a branch.
function moveInLanes(event, [rank, column]) {
  const here = nodeAt(rank, column);
  const after = (i) => lanes.children[i].toSorted((a, b) => lanes.nodes[b].is_best - lanes.nodes[a].is_best || a - b)[0];
  const before = (i) => lanes.nodes[i].parent ?? undefined;
  const farthest = (next, i) => (next(i) === undefined ? i : farthest(next, next(i)));
  const ways = {
    ArrowLeft: () => before(here),
    ArrowRight: () => after(here),
    ArrowUp: () => nodeAt(rank - 1, column),
    ArrowDown: () => nodeAt(rank + 1, column),
    Home: () => farthest(before, here),
    End: () => farthest(after, here),
  };
  if (!(event.key in ways)) return null;
  event.preventDefault();
  const next = lanes.places[ways[event.key]() ?? here];
  return [next.rank, next.column];
}

/* Painting */

const laneMiddle = (rank) => LANES.head + (rank + 0.5) * LANE;

function paintLanes(context, first, last, x) {
  const shown = [...lanes.nodes.keys()].filter((i) => lanes.places[i].column >= first && lanes.places[i].column <= last);
  shown.sort((a, b) => lanes.nodes[a].is_best - lanes.nodes[b].is_best); // the best path is painted last
  context.textAlign = "center";
  const colours = { other: tinted("given", 0.3), best: tinted("target", 0.62), ink: tinted("ink", 1), muted: tinted("muted", 1), paper: tinted("paper", 0.72) };
  for (const i of shown) paintRibbon(context, i, x, colours);
  const texts = shown.flatMap((i) => paintLaneName(context, i, x, colours));
  writeTexts(context, [...texts, ...laneSteps(first, last, x, colours)]);
  if (place.step >= first && place.step < last) paintChosen(context, x(place.step), x(place.step + 1) - x(place.step), lanes.woven.picture.tops.at(-1));
}

function paintRibbon(context, i, x, { other, best }) {
  const node = lanes.nodes[i];
  const { column, rank } = lanes.places[i];
  const from = node.parent === null ? { x: x(0) - 8, rank: 0 } : { x: laneX(x, column - 1), rank: lanes.places[node.parent].rank };
  const to = laneX(x, column);
  const middle = (from.x + to) / 2;
  context.strokeStyle = node.is_best ? best : other;
  context.lineWidth = 1.5 + (THICKEST - 1.5) * node.probability;
  context.lineCap = "butt";
  context.beginPath();
  context.moveTo(from.x, laneMiddle(from.rank));
  context.bezierCurveTo(middle, laneMiddle(from.rank), middle, laneMiddle(rank), to, laneMiddle(rank));
  context.stroke();
}

// How wide a step must be for the names of its nodes, and for the signs beside them.
function neededInLanes(nodes) {
  const needed = (i) => widthOf(lanes.nodes[i].piece, letters(14, 650)) + (["dropped", "ended"].includes(lanes.nodes[i].fate) ? 38 : 14);
  return Math.min(Math.max(...nodes.map(needed), 40), 116);
}

const laneX = (x, column) => (x(column) + x(column + 1)) / 2;

// Make room for the name of a node, and return it, with the sign of its end.
function paintLaneName(context, i, x, { ink, muted, paper, best }) {
  const node = lanes.nodes[i];
  const { column, rank } = lanes.places[i];
  const weight = node.is_best ? 650 : 400;
  const [text, width] = nameInLane(context, plainly(node.piece), weight, x(column + 1) - x(column) - 26);
  const sign = { dropped: "×", ended: "●" }[node.fate];
  const [at, middle] = [laneX(x, column), laneMiddle(rank)];
  context.fillStyle = paper;
  context.beginPath();
  context.roundRect(at - width / 2, middle - 10, width, 20, 4);
  context.fill();
  const texts = [[14, weight, node.is_best || node.fate !== "dropped" ? ink : muted, text, at, middle + 0.5, width]];
  if (sign) texts.push([14, weight, node.is_best ? best : muted, sign, at + width / 2 + 6, middle + 0.5, width]);
  return texts;
}

// A name as far as there is room, and how wide it is: measured once, as every step has the same ones.
function nameInLane(context, name, weight, room) {
  const key = `${weight} ${room} ${name}`;
  if (!lanes.names.has(key)) {
    lettering(context, 14, weight);
    const text = fitted(context, name, room);
    lanes.names.set(key, [text, context.measureText(text).width + 10]);
  }
  return lanes.names.get(key);
}

function laneSteps(first, last, x, { ink, muted }) {
  const texts = [];
  for (let column = first; column < last; column++) {
    const isChosen = column === place.step;
    texts.push([12, isChosen ? 650 : 400, isChosen ? ink : muted, `${column + 1}`, laneX(x, column), LANES.head / 2, LANE]);
  }
  return texts;
}

function paintLaneHeads(context, side) {
  context.textAlign = "right";
  context.fillStyle = tinted("muted", 1);
  lettering(context, 12);
  for (let rank = 0; rank < lanes.count; rank++) context.fillText(`${rank + 1}`, side - 18, laneMiddle(rank));
}
