/* The steps of the decoder, its beam as a tree, and the words that belong together. */

function drawSteps() {
  if (data.task !== "translation") return;
  byId("steps-section").hidden = false;
  byId("step").max = SIDES.target.pieces.length;
  byId("step").setAttribute("aria-label", say("steps-title"));
  byId("step-before").setAttribute("aria-label", say("before"));
  byId("step-after").setAttribute("aria-label", say("after"));
  drawStep();
}

// What the decoder has, looks at and may choose at the step; tinted by the chosen head of cross-attention.
function drawStep() {
  if (data.task !== "translation") return;
  const { source, target } = SIDES;
  const step = asked + 1;
  const { layer, head } = shown.kind === "cross" ? shown : { layer: data.attention.cross.length - 1, head: MEAN };
  const weights = oldWeightsOf("cross", layer, head)[step - 1];
  const token = (piece, kind, weight = 0) => {
    const element = make("span", { class: `token ${kind}` }, make("bdi", {}, ...oldLabel(piece)));
    element.style.setProperty("--shade", shade(weight));
    return element;
  };
  byId("step").value = step;
  byId("step-reading").textContent = say("step", { step, steps: target.pieces.length });
  byId("step-source").lang = source.lang;
  byId("step-target").lang = target.lang;
  byId("step-source").replaceChildren(...source.pieces.map((piece, i) => token(piece, "", weights[i])));
  const written = target.pieces.slice(0, step).map((piece, i) => token(piece, i === step - 1 ? "marked" : ""));
  byId("step-target").replaceChildren(token("<bos>", "faint"), ...written);
  drawChoices(byId("step-choices"), considered(step - 1), target.lang, target.ids[step - 1]);
}

const goToStep = (next) => ask(Math.min(Math.max(next, 1), SIDES.target.pieces.length) - 1);

/* The beam: a column for each step, a row for each branch */

const WIDEST = 92; // pixels of a column at most
const ROW = 22;
const SOME_BRANCHES = 40; // more of them are shown only if asked for
const ROOM = 24; // pixels to be seen around the node that is come to
const beam = { all: null, at: null };

const startBeam = () => Object.assign(beam, { all: null, at: null });

// Nodes with their places: branches below each other, the most probable first, each as high as there is room in its
// columns, and behind the last where a score stands there; the root is number -1.
function laidOut(nodes, all) {
  const children = new Map([[-1, []], ...nodes.map((_, i) => [i, []])]);
  nodes.forEach((node, i) => children.get(node.parent ?? -1).push(i));
  const isShort = (i) => nodes[i].fate === "dropped" && !nodes[i].is_best; // born at one step and gone at the next
  const places = new Map();
  // Where a branch goes: row 0 is its own, `lowest` the last row that it takes in each column.
  const place = (i, column) => {
    const below = children.get(i).filter((child) => all || !isShort(child));
    below.sort((a, b) => nodes[b].is_best - nodes[a].is_best || nodes[b].log_prob - nodes[a].log_prob);
    const taken = { rows: [[i, 0]], lowest: new Map([[column, 0]]) };
    if (nodes[i]?.fate === "ended") taken.lowest.set(column + 1, 0);
    for (const child of below) {
      const branch = place(child, column + 1);
      const down = Math.max(...[...branch.lowest.keys()].map((c) => (taken.lowest.get(c) ?? -1) + 1));
      for (const [node, row] of branch.rows) taken.rows.push([node, row + down]);
      for (const [c, row] of branch.lowest) taken.lowest.set(c, row + down);
    }
    places.set(i, { column, row: 0 });
    return taken;
  };
  const { rows, lowest } = place(-1, 0);
  for (const [i, row] of rows) places.get(i).row = row;
  return { places, rows: Math.max(...lowest.values()) + 1, columns: Math.max(...[...places.values()].map((p) => p.column)) + 1 };
}

function drawBeam() {
  if (data.task !== "translation") return;
  const { nodes, beam_size, length_penalty } = data.beam;
  beam.all ??= nodes.filter((node) => node.fate !== "goes on").length <= SOME_BRANCHES;
  byId("beam-section").hidden = false;
  byId("beam-caption").textContent = say("beam-caption", { beam: beam_size, penalty: length_penalty });
  const choose = (all) => {
    beam.all = all;
    drawBeam();
    root.querySelector('input[name="beam-all"]:checked').focus();
  };
  const options = [[true, say("beam-all")], [false, say("beam-lasting")]];
  byId("beam-controls").replaceChildren(choices(say("beam-shown"), "beam-all", options, beam.all, choose));
  const { places, rows, columns } = laidOut(nodes, beam.all);
  const column = Math.min(WIDEST, 26 + Math.max(46, ...nodes.map((node) => widthOf(shortened(node.piece)) + (node.fate === "dropped" ? 16 : 0))));
  const x = (place) => 12 + place.column * column;
  const y = (place) => 14 + place.row * ROW;
  const picture = svg("svg", { width: columns * column + WIDEST, height: rows * ROW + 10, role: "tree", "aria-label": say("beam-title") });
  const start = svg("text", { x: 12, y: y(places.get(-1)) + 4, class: "faint" });
  start.textContent = "<bos>";
  for (const [i, place] of places) {
    if (i < 0) continue;
    const before = places.get(nodes[i].parent ?? -1);
    const bend = `M${x(before) + column - 26} ${y(before)}H${x(place) - 12}V${y(place)}H${x(place) - 4}`;
    picture.append(svg("path", { d: bend, class: nodes[i].is_best ? "best" : "" }));
  }
  picture.append(start, ...[...places].filter(([i]) => i >= 0).map(([i, place]) => branch(nodes[i], i, x(place), y(place) + 4)));
  picture.id = "tree";
  byId("beam").replaceChildren(picture);
  beam.places = places;
  const wished = [beam.at, nodes.findIndex((node) => node.is_best), ...places.keys()]; // an empty answer has no best way
  const at = wished.find((i) => i >= 0 && places.has(i));
  if (at !== undefined) goToNode(at);
}

function shortened(piece) {
  const letters = [...visible(piece.replace(/^▁(?=.)/u, ""))];
  return letters.length > 8 ? `${letters.slice(0, 7).join("")}…` : letters.join("");
}

// About how many pixels a label takes: Chinese letters and the like are wider.
const widthOf = (text) => [...text].reduce((width, letter) => width + (letter > "\u2e80" ? 13 : 8), 0);

// The name of a branch begins with what is seen of it, so that who speaks to the browser can say that.
function branch(node, i, x, y) {
  const end = { dropped: " ×", ended: ` ${node.score?.toFixed(2)}` }[node.fate] ?? "";
  const seen = shortened(node.piece) + end;
  const name = `${seen}; ${readingOfNode(i)}`;
  const group = svg("g", { role: "treeitem", tabindex: "-1", "data-node": i, "aria-label": name, class: node.is_best ? "best" : "" });
  const text = svg("text", { x, y, class: node.fate === "dropped" ? "faint" : "" });
  text.textContent = seen;
  group.append(text);
  group.addEventListener("pointerenter", () => (byId("beam-reading").textContent = readingOfNode(i)));
  group.addEventListener("focus", () => goToNode(i));
  return group;
}

function readingOfNode(i) {
  const node = data.beam.nodes[i];
  const fate = say(`fate-${node.fate}`, { next: node.step + 1, score: node.score?.toFixed(3) });
  const values = { step: node.step, piece: quoted(node.piece), probability: likely(node.probability), total: node.log_prob.toFixed(3) };
  return say("beam-reading", { ...values, fate });
}

function goToNode(i) {
  byId("beam").querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
  beam.at = i;
  const node = byId("beam").querySelector(`[data-node="${i}"]`);
  node.setAttribute("tabindex", "0");
  byId("beam-reading").textContent = readingOfNode(i);
  bringIntoBox(byId("beam"), node, ROOM);
}

// Left and right along a branch, also to its ends, up and down among the nodes of a step.
function moveInBeam(event) {
  const here = beam.places.get(beam.at);
  const near = [...beam.places].filter(([i]) => i >= 0);
  const inStep = (down) =>
    near
      .filter(([, p]) => p.column === here.column && (p.row - here.row) * down > 0)
      .sort(([, a], [, b]) => (a.row - b.row) * down)[0]?.[0];
  const before = (node) => data.beam.nodes[node].parent ?? undefined;
  const after = (node) => near.filter(([i]) => before(i) === node).sort(([, a], [, b]) => a.row - b.row)[0]?.[0];
  const farthest = (next, node) => (next(node) === undefined ? node : farthest(next, next(node)));
  const steps = {
    ArrowLeft: () => before(beam.at),
    ArrowRight: () => after(beam.at),
    ArrowUp: () => inStep(-1),
    ArrowDown: () => inStep(1),
    Home: () => farthest(before, beam.at),
    End: () => farthest(after, beam.at),
  };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const next = steps[event.key]();
  if (next === undefined) return;
  const node = byId("beam").querySelector(`[data-node="${next}"]`);
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block: "nearest", inline: "nearest" }); // the page too, where the box is not all in view
}

function drawAlignment() {
  byId("alignment-section").hidden = data.task !== "translation" || data.alignment.pairs.length === 0;
  if (byId("alignment-section").hidden) return;
  const { source, target, pairs } = data.alignment;
  byId("alignment-caption").textContent = say(oldHeadsOf("cross").length > 1 ? "alignment-caption" : "alignment-alone");
  byId("alignment").replaceChildren(
    ...target.map((word, t) => {
      const from = pairs.filter(([, other]) => other === t).map(([s]) => source[s]);
      return make("div", {}, make("dt", { lang: SIDES.target.lang }, word), make("dd", { lang: SIDES.source.lang }, from.join(" ")));
    }),
  );
}

function listenToBeam() {
  byId("step").addEventListener("input", (event) => goToStep(Number(event.target.value)));
  byId("step-before").addEventListener("click", () => goToStep(asked));
  byId("step-after").addEventListener("click", () => goToStep(asked + 2));
  byId("beam").addEventListener("keydown", moveInBeam);
}
