"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const source = data.source.pieces;
const target = data.target.pieces;
const MEAN = -1;
const KINDS = {
  cross: {
    label: "Cross",
    title: "Cross-attention",
    queries: target,
    keys: source,
    languages: [data.tgt_lang, data.src_lang],
    caption:
      "Each row is a target token and each column a source token: the stronger the colour, the more the decoder " +
      "looked at that source token while it wrote the target token (Vaswani et al. 2017, section 3.2.3).",
  },
  encoder: {
    label: "Encoder",
    title: "Encoder self-attention",
    queries: source,
    keys: source,
    languages: [data.src_lang, data.src_lang],
    caption:
      "Rows and columns are the source tokens: the stronger the colour, the more the encoder looked at the column’s " +
      "token to understand the row’s (Vaswani et al. 2017, section 3.2.3).",
  },
  decoder: {
    label: "Decoder",
    title: "Decoder self-attention",
    queries: target,
    keys: ["<bos>", ...target.slice(0, -1)],
    languages: [data.tgt_lang, data.tgt_lang],
    caption:
      "Each row is a target token as it is written and each column a token before it, <bos> the start: the stronger " +
      "the colour, the more the decoder looked back at it; the future cannot be seen (Vaswani et al. 2017, section 3.2.3).",
  },
};

for (const kind of Object.keys(KINDS)) {
  if (data.attention[kind].length === 0) delete KINDS[kind]; // recurrent models look across alone
}

// What is shown, and which query (row) and key (column) of it is pointed at; null is none.
const shown = { kind: "cross", layer: data.attention.cross.length - 1, head: MEAN };
let pinned = { row: 0, col: null };
const active = { row: 0, col: 0 }; // the cell that the Tab key comes to

const byId = (id) => document.getElementById(id);
const cells = () => byId("map").tBodies[0].rows;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A piece with its space mark, ▁, paler than its letters.
function label(piece) {
  if (!piece.startsWith("▁") || piece === "▁") return [piece];
  const space = make("span", { class: "space" }, "▁");
  return [space, piece.slice(1)];
}

// A piece in a sentence of our own: without its space mark, in quotes.
const quoted = (piece) => `“${piece.replace(/^▁(?=.)/u, "")}”`;

// Colour grows with the square root of a weight, so that small weights can be told apart.
const shade = (weight) => Math.sqrt(weight).toFixed(3);
const number = (weight) => (weight > 0 && weight < 0.001 ? "< 0.001" : weight.toFixed(3));
const chance = (probability) => (probability < 0.001 ? "< 0.001" : probability.toFixed(3));
const nameOf = (layer, head) => `Layer ${layer + 1}, ${head === MEAN ? "mean of heads" : `head ${head + 1}`}`;

function weightsOf(kind, layer, head) {
  const heads = data.attention[kind][layer];
  if (head !== MEAN) return heads[head];
  const mean = (i, j) => heads.reduce((sum, weights) => sum + weights[i][j], 0) / heads.length;
  return heads[0].map((row, i) => row.map((_, j) => mean(i, j)));
}

/* The two sentences */

function bar(probability) {
  const filled = make("i");
  filled.style.setProperty("--probability", probability);
  return make("span", { class: "bar", "aria-hidden": "true" }, filled);
}

function drawSentence(id, pieces, language, probabilities) {
  byId(id).lang = language;
  pieces.forEach((piece, index) => {
    const button = make("button", { class: "token", type: "button" }, make("bdi", {}, ...label(piece)));
    if (probabilities) {
      button.append(bar(probabilities[index]));
      button.setAttribute("aria-label", `${quoted(piece)}, probability ${chance(probabilities[index])}`);
    }
    const place = () => placeOfToken(id, index);
    button.addEventListener("focus", () => pin(place()));
    button.addEventListener("click", () => pin(place()));
    button.addEventListener("pointerenter", () => point(place()));
    button.addEventListener("pointerleave", () => point(pinned));
    byId(id).append(button);
  });
}

// The row or column that a token stands for in the map shown, and the target token that is asked about.
function placeOfToken(id, index) {
  const isSource = id === "source";
  if (shown.kind === "cross") return isSource ? { row: null, col: index } : { row: index, col: null };
  const isRow = isSource === (shown.kind === "encoder");
  return { row: isRow ? index : null, col: null, target: isSource ? null : index };
}

function drawConsidered(index) {
  const { alternatives, probabilities, ids } = data.target;
  const rows = alternatives[index].slice();
  if (!rows.some((choice) => choice.id === ids[index])) {
    rows.push({ piece: target[index], id: ids[index], probability: probabilities[index] });
  }
  byId("considered-title").replaceChildren("Most probable at ", make("bdi", { lang: data.tgt_lang }, quoted(target[index])));
  byId("considered").lang = data.tgt_lang;
  byId("considered").replaceChildren(
    ...rows.map((choice) => {
      const item = make("li", choice.id === ids[index] ? { class: "chosen" } : {});
      const piece = make("b", { title: choice.piece }, ...label(choice.piece));
      item.append(piece, make("span", {}, chance(choice.probability)), bar(choice.probability));
      return item;
    }),
  );
}

/* The large picture */

function drawMap() {
  const { queries, keys, languages } = KINDS[shown.kind];
  const header = (scope, piece, lang, ...inside) => make("th", { scope, lang, title: piece }, ...inside);
  const top = make("tr", {}, make("td", { class: "corner", role: "presentation" }));
  top.append(...keys.map((key) => header("col", key, languages[1], make("div", {}, ...label(key)))));
  const body = make("tbody");
  for (const query of queries) {
    const row = make("tr", {}, header("row", query, languages[0], make("bdi", {}, ...label(query))));
    row.append(...keys.map(() => make("td", { tabindex: "-1" })));
    body.append(row);
  }
  byId("map").replaceChildren(make("thead", {}, top), body);
  byId("map").style.setProperty("--keys", keys.length);
  Object.assign(active, { row: 0, col: 0 });
  cells()[0].cells[1].tabIndex = 0;
}

function paintMap() {
  const weights = weightsOf(shown.kind, shown.layer, shown.head);
  weights.forEach((row, i) => row.forEach((w, j) => cells()[i].cells[j + 1].style.setProperty("--shade", shade(w))));
  const { title, caption } = KINDS[shown.kind];
  byId("map").setAttribute("aria-label", `${title}, ${nameOf(shown.layer, shown.head)}`);
  const mean = shown.head === MEAN ? " Shown is the mean of the layer’s heads, which the model itself never forms." : "";
  byId("map-caption").textContent = caption + mean;
  nameCell(weights);
}

// Say the weight of the cell that the keyboard is at.
function nameCell(weights = weightsOf(shown.kind, shown.layer, shown.head)) {
  const cell = cells()[active.row].cells[active.col + 1];
  cell.setAttribute("aria-label", readingOf({ ...active }, weights));
  return cell;
}

function readingOf({ row, col }, weights) {
  const { queries, keys } = KINDS[shown.kind];
  if (row === null && col === null) return "";
  if (row === null) return `Everything that looks at ${quoted(keys[col])}`;
  if (col !== null) return `${quoted(queries[row])} looks at ${quoted(keys[col])}: ${number(weights[row][col])}`;
  const most = weights[row].indexOf(Math.max(...weights[row]));
  return `${quoted(queries[row])} looks most at ${quoted(keys[most])}: ${number(weights[row][most])}`;
}

function cellPlace(event) {
  const cell = event.target.closest("td, th");
  if (!cell || !byId("map").contains(cell) || cell.classList.contains("corner")) return null;
  const col = cell.cellIndex === 0 ? null : cell.cellIndex - 1;
  return { row: cell.scope === "col" ? null : cell.parentNode.sectionRowIndex, col };
}

function moveInMap(event) {
  const { row, col } = active;
  const steps = {
    ArrowUp: [row - 1, col],
    ArrowDown: [row + 1, col],
    ArrowLeft: [row, col - 1],
    ArrowRight: [row, col + 1],
    Home: [row, 0],
    End: [row, Infinity],
  };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const { queries, keys } = KINDS[shown.kind];
  const [nextRow, nextCol] = steps[event.key];
  const line = cells()[Math.min(Math.max(nextRow, 0), queries.length - 1)];
  line.cells[Math.min(Math.max(nextCol, 0), keys.length - 1) + 1].focus();
}

// The cell that was focused, by keyboard or pointer, is the one to come back to.
function activate(place) {
  cells()[active.row].cells[active.col + 1].tabIndex = -1;
  Object.assign(active, place);
  nameCell().tabIndex = 0;
  pin(place);
}

/* Pointing: the map and the two sentences show the same place */

function pin(place) {
  pinned = place;
  point(place);
}

function point(place) {
  const weights = weightsOf(shown.kind, shown.layer, shown.head);
  markMap(place);
  byId("reading").textContent = readingOf(place, weights);
  const { tinted, marked } = tintsOf(place, weights);
  for (const id of ["source", "target"]) {
    [...byId(id).children].forEach((token, index) => {
      token.style.setProperty("--shade", shade(tinted[id]?.[index] ?? 0));
      token.classList.toggle("marked", marked[id].includes(index));
    });
  }
  const asked = place.target ?? (shown.kind === "encoder" ? null : place.row);
  if (asked !== null) drawConsidered(asked);
}

// How strongly to tint each token, and which ones to mark.
function tintsOf({ row, col }, weights) {
  const rowSide = shown.kind === "encoder" ? "source" : "target";
  const colSide = shown.kind === "decoder" ? "target" : "source";
  const offset = shown.kind === "decoder" ? 1 : 0; // the first key, <bos>, is no target token
  const marked = { source: [], target: [] };
  const tinted = {};
  if (row !== null) {
    marked[rowSide].push(row);
    tinted[colSide] = weights[row].slice(offset);
  }
  if (col !== null) marked[colSide].push(col - offset);
  if (col !== null && row === null) tinted[rowSide] = weights.map((line) => line[col]);
  return { tinted, marked };
}

function markMap({ row, col }) {
  for (const element of byId("map").querySelectorAll(".marked, .here")) element.classList.remove("marked", "here");
  if (row !== null) {
    cells()[row].classList.add("marked");
    cells()[row].cells[0].classList.add("marked");
  }
  if (col !== null) {
    byId("map").tHead.rows[0].cells[col + 1].classList.add("marked");
    for (const line of cells()) line.cells[col + 1].classList.add("marked");
  }
  if (row !== null && col !== null) cells()[row].cells[col + 1].classList.add("here");
}

/* Small multiples */

function drawThumbnail(canvas, weights) {
  const [height, width] = [weights.length, weights[0].length];
  const [red, green, blue] = getComputedStyle(document.documentElement).getPropertyValue("--heat").trim().split(/\s+/);
  const image = new ImageData(width, height);
  weights.flat().forEach((w, i) => image.data.set([red, green, blue, Math.round(255 * Math.sqrt(w))], 4 * i));
  Object.assign(canvas, { width, height });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function drawOverview() {
  const layers = data.attention[shown.kind];
  const heads = [MEAN, ...layers[0].keys()];
  const grid = byId("overview");
  grid.style.setProperty("--columns", heads.length);
  grid.replaceChildren(make("span"), ...heads.map((head) => make("span", {}, head === MEAN ? "mean" : `${head + 1}`)));
  layers.forEach((_, layer) => {
    grid.append(make("span", {}, `${layer + 1}`));
    for (const head of heads) {
      const canvas = make("canvas", { "aria-hidden": "true" });
      drawThumbnail(canvas, weightsOf(shown.kind, layer, head));
      const name = nameOf(layer, head);
      const button = make("button", { type: "button", role: "radio", "aria-label": name, title: name }, canvas);
      Object.assign(button.dataset, { layer, head });
      button.addEventListener("click", () => show({ layer, head }));
      grid.append(button);
    }
  });
}

function moveInOverview(event) {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const [down, right] = steps[event.key];
  const layers = data.attention[shown.kind];
  const layer = Math.min(Math.max(shown.layer + down, 0), layers.length - 1);
  const head = Math.min(Math.max(shown.head + right, MEAN), layers[layer].length - 1);
  show({ layer, head });
  byId("overview").querySelector('[aria-checked="true"]').focus();
}

/* What is shown */

function drawControls() {
  const layers = data.attention[shown.kind];
  byId("controls").replaceChildren(
    choices("Kind", "kind", Object.entries(KINDS).map(([value, kind]) => [value, kind.label])),
    choices("Layer", "layer", layers.map((_, layer) => [layer, layer + 1])),
    choices("Head", "head", [[MEAN, "mean"], ...layers[0].map((_, head) => [head, head + 1])]),
  );
}

function choices(legend, name, options) {
  const group = make("fieldset", {}, make("legend", {}, legend));
  for (const [value, text] of options) {
    const input = make("input", { type: "radio", name, value, autocomplete: "off" });
    input.addEventListener("change", () => show({ [name]: name === "kind" ? value : Number(value) }));
    group.append(make("label", {}, input, make("span", {}, `${text}`)));
  }
  return group;
}

function checkControls() {
  for (const input of document.querySelectorAll("#controls input")) input.checked = `${shown[input.name]}` === input.value;
  for (const button of byId("overview").querySelectorAll("button")) {
    const chosen = +button.dataset.layer === shown.layer && +button.dataset.head === shown.head;
    button.setAttribute("aria-checked", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
}

function show(changes) {
  Object.assign(shown, changes);
  if ("kind" in changes) startKind();
  checkControls();
  paintMap();
  point(pinned);
}

// Another kind has other tokens, and may have other layers and heads.
function startKind() {
  const layers = data.attention[shown.kind];
  shown.layer = Math.min(shown.layer, layers.length - 1);
  shown.head = Math.min(shown.head, layers[0].length - 1);
  pinned = { row: 0, col: null };
  const focused = document.activeElement?.name;
  drawControls();
  drawOverview();
  drawMap();
  if (focused) document.querySelector(`input[name="${focused}"][value="${shown[focused]}"]`).focus();
}

function drawNotes() {
  const notes = [];
  if (data.cut) notes.push(`The text was longer: only its first ${data.max_src_len - 1} tokens are shown.`);
  if (!data.finished) notes.push("The translation found no end and was cut at its limit.");
  byId("notes").textContent = notes.join(" ");
  byId("notes").hidden = notes.length === 0;
}

function listen() {
  const map = byId("map");
  map.addEventListener("keydown", moveInMap);
  map.addEventListener("pointerover", (event) => point(cellPlace(event) ?? pinned));
  map.addEventListener("pointerleave", () => point(pinned));
  map.addEventListener("focusin", (event) => activate(cellPlace(event)));
  map.addEventListener("click", (event) => pin(cellPlace(event) ?? pinned));
  byId("overview").addEventListener("keydown", moveInOverview);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawOverview();
    checkControls();
  });
}

function start() {
  document.title = `Attention: ${data.text}`;
  byId("src-lang").textContent = data.src_lang;
  byId("tgt-lang").textContent = data.tgt_lang;
  drawNotes();
  drawSentence("source", source, data.src_lang);
  drawSentence("target", target, data.tgt_lang, data.target.probabilities);
  listen();
  show({ kind: shown.kind });
}

start();
