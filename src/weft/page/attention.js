/* What was looked at: every head of every layer small, one of them large, and one kept beside it. */

let OLD_KINDS;

// What is shown, what is kept to compare it with, and which query (row) and key (column) is pointed at; null is none.
// `asked` is the token whose probability is shown, of the side that has any: in whatever kind, it is marked above.
const shown = { kind: null, layer: Infinity, head: MEAN };
let kept = null;
let pinned;
let asked;
const active = { row: 0, col: 0 }; // the cell that the Tab key comes to

// Another text is seen as the last one was, as far as its model has what was shown.
function startMaps() {
  OLD_KINDS = oldKindsOf();
  if (!(shown.kind in OLD_KINDS)) shown.kind = Object.keys(OLD_KINDS)[0] ?? null;
  kept = null;
  pinned = { row: FIRST, col: null };
  asked = WRITTEN ? FIRST : null;
  Object.assign(active, { row: 0, col: 0 });
}

const cells = (map = "map") => byId(map).tBodies[0].rows;

// Rows and columns of each kind of map: tokens of a side, the columns of the decoder one behind them.
function oldKindsOf() {
  const kind = (name, rows, cols, caption = name) => {
    const keys = name === "decoder" && data.task === "translation" ? ["<bos>", ...SIDES[cols].pieces.slice(0, -1)] : SIDES[cols].pieces;
    return { rows, cols, queries: SIDES[rows].pieces, keys, offset: keys === SIDES[cols].pieces ? 0 : 1, caption };
  };
  const all = {
    translation: { cross: ["target", "source"], encoder: ["source", "source"], decoder: ["target", "target"] },
    "language-modelling": { decoder: ["text", "text", "causal"] },
    classification: { encoder: ["text", "text"] },
  }[data.task];
  const there = Object.entries(all).filter(([name]) => data.attention[name].length > 0); // recurrent models look across alone
  return Object.fromEntries(there.map(([name, [rows, cols, caption]]) => [name, kind(name, rows, cols, caption)]));
}

// What can be shown of each layer of a kind: the mean of its heads and every head, of one head that alone.
function oldHeadsOf(kind = shown.kind) {
  const heads = [...data.attention[kind][0].keys()];
  return heads.length > 1 ? [MEAN, ...heads] : heads;
}

function oldNameOf(layer, head, kind = shown.kind) {
  const name = oldHeadsOf(kind).length === 1 ? "name-layer" : head === MEAN ? "name-mean" : "name-head";
  return say(name, { layer: layer + 1, head: head + 1 });
}

function oldWeightsOf(kind, layer, head) {
  const heads = data.attention[kind][layer];
  if (head !== MEAN) return heads[head];
  const mean = (i, j) => heads.reduce((sum, weights) => sum + weights[i][j], 0) / heads.length;
  return heads[0].map((row, i) => row.map((_, j) => mean(i, j)));
}

// The row or column that a token stands for in the map shown, and the token that is asked about.
function placeOfToken(side, index) {
  const kind = OLD_KINDS[shown.kind] ?? {};
  const row = kind.rows === side ? index : null;
  const col = row === null && kind.cols === side ? index : null;
  return { row, col, asked: side === WRITTEN ? index : null };
}

// The token that is asked about at a place, null where the place is of another side.
const askedAt = (place) => place.asked ?? (OLD_KINDS[shown.kind]?.rows === WRITTEN ? place.row : null);

// A place of one kind of map in another: the same tokens, as far as they are in it.
function carried({ row, col }, from, to) {
  if (from === to) return { row, col };
  const tokens = { [from.cols]: col === null ? null : col - from.offset, [from.rows]: row };
  return { row: to.rows === WRITTEN ? asked : Math.max(tokens[to.rows] ?? 0, 0), col: null };
}

/* The large picture */

function drawMap(id = "map", kind = shown.kind) {
  const { queries, keys, rows, cols } = OLD_KINDS[kind];
  const languages = [SIDES[rows].lang, SIDES[cols].lang];
  const header = (scope, piece, lang, ...inside) => make("th", { scope, lang, title: piece }, ...inside);
  const top = make("tr", {}, make("td", { class: "corner", role: "presentation" }));
  top.append(...keys.map((key) => header("col", key, languages[1], make("div", {}, ...oldLabel(key)))));
  const body = make("tbody");
  for (const query of queries) {
    const row = make("tr", {}, header("row", query, languages[0], make("bdi", {}, ...oldLabel(query))));
    row.append(...keys.map(() => make("td", { tabindex: "-1" })));
    body.append(row);
  }
  byId(id).replaceChildren(make("thead", {}, top), body);
  byId(id).style.setProperty("--keys", keys.length);
}

function paintMap(id = "map", { kind, layer, head } = shown) {
  const weights = oldWeightsOf(kind, layer, head);
  weights.forEach((row, i) => row.forEach((w, j) => cells(id)[i].cells[j + 1].style.setProperty("--shade", shade(w))));
  byId(id).setAttribute("aria-label", `${say(`map-${kind}`)}, ${oldNameOf(layer, head, kind)}`);
}

function describeMap() {
  const mean = shown.head === MEAN ? say("mean-caption") : "";
  byId("map-caption").textContent = say(`caption-${OLD_KINDS[shown.kind].caption}`) + mean;
  nameCell();
}

// The map as it is now stays beside the next ones, of its own kind or another, until it is put away.
function keep(what) {
  kept = what;
  byId("keep").textContent = say(kept ? "forget" : "keep");
  byId("kept-box").hidden = !kept;
  byId("kept-caption").textContent = "";
  if (!kept) return;
  const values = { kind: say(`map-${kept.kind}`), name: oldNameOf(kept.layer, kept.head, kept.kind) };
  byId("kept-caption").textContent = say("kept-caption", values);
  drawMap("kept", kept.kind);
  paintMap("kept", kept);
  point(pinned);
}

// Say the weight of the cell that the keyboard is at.
function nameCell(weights = oldWeightsOf(shown.kind, shown.layer, shown.head)) {
  const cell = cells()[active.row].cells[active.col + 1];
  cell.setAttribute("aria-label", readingOf({ ...active }, weights));
  return cell;
}

function readingOf({ row, col }, weights) {
  const { queries, keys } = OLD_KINDS[shown.kind];
  if (row === null && col === null) return "";
  if (row === null) return say("looked-at", { key: quoted(keys[col]) });
  const most = col ?? weights[row].indexOf(Math.max(...weights[row]));
  const values = { query: quoted(queries[row]), key: quoted(keys[most]), weight: number(weights[row][most]) };
  return say(col === null ? "looks-most" : "looks-at", values);
}

function cellPlace(event) {
  const cell = event.target.closest("td, th");
  if (!cell || !byId("map").contains(cell) || cell.classList.contains("corner")) return null;
  const col = cell.cellIndex === 0 ? null : cell.cellIndex - 1;
  return { row: cell.scope === "col" ? null : cell.parentNode.sectionRowIndex, col };
}

function moveInMap(event) {
  const { queries, keys } = OLD_KINDS[shown.kind];
  const next = stepInGrid(event, [active.row, active.col], queries.length, keys.length);
  if (next) cells()[next[0]].cells[next[1] + 1].focus();
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
  asked = askedAt(place) ?? asked;
  point(place);
}

// Ask about a token of the written side, whatever is shown.
function ask(index) {
  pin(OLD_KINDS[shown.kind]?.rows === WRITTEN ? { row: index, col: null } : { ...pinned, asked: index });
}

function point(place) {
  const { rows } = OLD_KINDS[shown.kind] ?? {};
  if (rows) markMap(place);
  const weights = rows ? oldWeightsOf(shown.kind, shown.layer, shown.head) : [];
  byId("reading").textContent = rows ? readingOf(place, weights) : "";
  const { tinted, marked } = rows ? tintsOf(place, weights) : { tinted: {}, marked: {} };
  const shownToken = askedAt(place) ?? asked;
  if (WRITTEN) (marked[WRITTEN] ??= []).push(shownToken);
  for (const side of Object.keys(SIDES)) {
    [...byId(side).children].forEach((token, index) => {
      token.style.setProperty("--shade", shade(tinted[side]?.[index] ?? 0));
      token.classList.toggle("marked", marked[side]?.includes(index) ?? false);
    });
  }
  if (WRITTEN) drawConsidered(shownToken);
}

// How strongly to tint each token, and which ones to mark.
function tintsOf({ row, col }, weights) {
  const { rows, cols, offset } = OLD_KINDS[shown.kind]; // where it is 1, the first key, <bos>, is no token of the side
  const marked = Object.fromEntries(Object.keys(SIDES).map((side) => [side, []]));
  const tinted = {};
  if (row !== null) {
    marked[rows].push(row);
    tinted[cols] = weights[row].slice(offset);
  }
  if (col !== null) marked[cols].push(col - offset);
  if (col !== null && row === null) tinted[rows] = weights.map((line) => line[col]);
  return { tinted, marked };
}

function markMap(place) {
  for (const map of kept ? ["map", "kept"] : ["map"]) {
    for (const element of byId(map).querySelectorAll(".marked, .here")) element.classList.remove("marked", "here");
    const { row, col } = map === "map" ? place : placeInKept(place);
    if (row !== null) {
      cells(map)[row].classList.add("marked");
      cells(map)[row].cells[0].classList.add("marked");
    }
    if (col !== null) {
      byId(map).tHead.rows[0].cells[col + 1].classList.add("marked");
      for (const line of cells(map)) line.cells[col + 1].classList.add("marked");
    }
    if (row !== null && col !== null) cells(map)[row].cells[col + 1].classList.add("here");
  }
}

// The kept map may have other tokens: only rows and columns of the same side are marked in both.
function placeInKept({ row, col }) {
  const [here, there] = [OLD_KINDS[shown.kind], OLD_KINDS[kept.kind]];
  const moved = col === null || here.cols !== there.cols ? null : col - here.offset + there.offset;
  return { row: here.rows === there.rows ? row : null, col: there.keys[moved] === undefined ? null : moved };
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
  const heads = oldHeadsOf();
  const nothingToChoose = layers.length * heads.length === 1;
  byId("overview-box").hidden = nothingToChoose;
  byId("pictures").classList.toggle("alone", nothingToChoose);
  byId("keep").hidden = nothingToChoose && Object.keys(OLD_KINDS).length === 1;
  byId("overview-caption").textContent = say(heads.length > 1 ? "overview-caption" : "overview-layers");
  const grid = byId("overview");
  grid.style.setProperty("--columns", heads.length);
  const above = (head) => (head === MEAN ? say("mean") : heads.length > 1 ? `${head + 1}` : "");
  grid.replaceChildren(make("span"), ...heads.map((head) => make("span", {}, above(head))));
  grid.setAttribute("aria-label", say("layer-head"));
  layers.forEach((_, layer) => {
    grid.append(make("span", {}, `${layer + 1}`));
    for (const head of heads) {
      const canvas = make("canvas", { "aria-hidden": "true" });
      drawThumbnail(canvas, oldWeightsOf(shown.kind, layer, head));
      const name = oldNameOf(layer, head);
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
  const [layers, heads] = [data.attention[shown.kind], oldHeadsOf()];
  const layer = Math.min(Math.max(shown.layer + down, 0), layers.length - 1);
  const head = Math.min(Math.max(shown.head + right, heads[0]), heads.at(-1));
  show({ layer, head });
  byId("overview").querySelector('[aria-checked="true"]').focus();
}

/* What is shown */

function drawControls() {
  const layers = data.attention[shown.kind];
  const choose = (name) => (value) => show({ [name]: value });
  const kinds = Object.keys(OLD_KINDS).map((kind) => [kind, say(`kind-${kind}`)]);
  const heads = oldHeadsOf().map((head) => [head, head === MEAN ? say("mean") : head + 1]);
  const numbers = layers.map((_, layer) => [layer, layer + 1]);
  byId("controls").replaceChildren(choices(say("kind"), "kind", kinds, shown.kind, choose("kind")));
  if (layers.length > 1) byId("controls").append(choices(say("layer"), "layer", numbers, shown.layer, choose("layer")));
  if (heads.length > 1) byId("controls").append(choices(say("head"), "head", heads, shown.head, choose("head")));
}

function checkControls() {
  for (const input of root.querySelectorAll("#controls input")) input.checked = `${shown[input.name]}` === input.value;
  for (const button of byId("overview").querySelectorAll("button")) {
    const chosen = +button.dataset.layer === shown.layer && +button.dataset.head === shown.head;
    button.setAttribute("aria-checked", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
}

function show(changes) {
  const before = OLD_KINDS[shown.kind];
  Object.assign(shown, changes);
  if ("kind" in changes) startKind(before);
  checkControls();
  paintMap();
  describeMap();
  point(pinned);
}

// Another kind has other tokens, and may have other layers and heads.
function startKind(before) {
  const [layers, heads] = [data.attention[shown.kind], oldHeadsOf()];
  shown.layer = Math.min(shown.layer, layers.length - 1);
  shown.head = Math.min(Math.max(shown.head, heads[0]), heads.at(-1));
  pinned = carried(pinned, before, OLD_KINDS[shown.kind]);
  const focused = root.activeElement?.name;
  drawControls();
  drawOverview();
  drawMap();
  Object.assign(active, { row: 0, col: 0 });
  cells()[0].cells[1].tabIndex = 0;
  keep(kept);
  if (focused) root.querySelector(`input[name="${focused}"][value="${shown[focused]}"]`)?.focus();
}

function drawAttention() {
  byId("attention-none").hidden = shown.kind !== null;
  byId("controls").hidden = byId("pictures").hidden = !shown.kind;
  if (!shown.kind) return;
  byId("scale").setAttribute("aria-label", say("scale"));
  show({ kind: shown.kind });
}

function listenToMaps() {
  const map = byId("map");
  map.addEventListener("keydown", moveInMap);
  map.addEventListener("pointerover", (event) => point(cellPlace(event) ?? pinned));
  map.addEventListener("pointerleave", () => point(pinned));
  map.addEventListener("focusin", (event) => activate(cellPlace(event)));
  map.addEventListener("click", (event) => pin(cellPlace(event) ?? pinned));
  byId("overview").addEventListener("keydown", moveInOverview);
  byId("keep").addEventListener("click", () => keep(kept ? null : { ...shown }));
}
