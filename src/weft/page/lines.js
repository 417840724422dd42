/* A head as lines between the tokens that look and those that are looked at. */

const LINES_HEIGHT = 132; // pixels
const LINE_FONT = 15;

// The places of pieces side by side: {x, width} of each.
function sideBySide(font, pieces) {
  let x = 0;
  return pieces.map((piece) => {
    const width = Math.max(Math.ceil(widthOf(piece, font)) + 12, 26);
    const place = { x, width };
    x += width + 3;
    return place;
  });
}

// A picture in a box: the keys above, the queries below; the chosen query's lines are strong.
function lookLines({ spec, pick }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const box = make("div", { class: "lines-box" }, canvas);
  const view = { box, canvas };
  canvas.style.setProperty("height", `${LINES_HEIGHT}px`);
  view.draw = () => paintSoon(box, () => paintLines(view, spec()));
  canvas.addEventListener("click", (event) => {
    const bounds = canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const isAbove = event.clientY - bounds.top < LINES_HEIGHT / 2;
    const index = (isAbove ? view.keys : view.queries).findIndex((place) => x >= place.x && x < place.x + place.width + 3);
    if (index >= 0) pick(isAbove ? spec().row : index, isAbove ? index : null);
  });
  return view;
}

function paintLines(view, shown) {
  const { canvas, box } = view;
  const seen = box.clientWidth; // asked before anything changes
  const pen = canvas.getContext("2d");
  const font = headFont().replace(`${HEAD_FONT}px`, `${LINE_FONT}px`);
  view.keys = sideBySide(font, shown.keys);
  view.queries = sideBySide(font, shown.queries);
  const width = Math.max(...[view.keys, view.queries].map((places) => places.at(-1).x + places.at(-1).width)) + 2;
  const scale = globalThis.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.ceil(width * scale), height: LINES_HEIGHT * scale });
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${LINES_HEIGHT}px`);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = font;
  drawLines(pen, view, shown);
  drawPieces(pen, view.keys, shown.keys, 0, (i) => shown.values[shown.row * shown.shape[1] + i], shown.key, shown.hue);
  drawPieces(pen, view.queries, shown.queries, LINES_HEIGHT - 26, () => 0, shown.row, shown.queryHue);
  const at = view.queries[shown.row];
  if (width > seen) box.scrollLeft = at.x + (at.width - seen) / 2;
}

function drawLines(pen, { keys, queries }, shown) {
  const [rows, columns] = shown.shape;
  const colour = colourOf(shown.isSigned ? "plus" : shown.hue);
  const order = [...Array(rows).keys()].filter((row) => row !== shown.row && rows <= 60);
  for (const row of [...order, shown.row]) {
    const isHere = row === shown.row;
    for (let key = 0; key < columns; key++) {
      const value = shown.values[row * columns + key];
      const weight = Math.min(Math.abs(value) / shown.top, 1);
      if (weight < (isHere ? 0.004 : 0.08)) continue;
      const [r, g, b] = value < 0 ? colourOf("minus") : colour;
      pen.strokeStyle = `rgb(${r} ${g} ${b} / ${isHere ? 0.25 + 0.75 * weight : 0.14 * weight})`;
      pen.lineWidth = isHere ? 0.75 + 7 * weight : 1 + 3 * weight;
      const [from, to] = [queries[row].x + queries[row].width / 2, keys[key].x + keys[key].width / 2];
      pen.beginPath();
      pen.moveTo(from, LINES_HEIGHT - 27);
      pen.bezierCurveTo(from, LINES_HEIGHT * 0.55, to, LINES_HEIGHT * 0.45, to, 27);
      pen.stroke();
    }
  }
}

function drawPieces(pen, places, pieces, y, depth, chosen, hue) {
  const [r, g, b] = colourOf(hue);
  const [ink, muted] = [css("ink"), css("muted")];
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pieces.forEach((piece, i) => {
    const { x, width } = places[i];
    pen.fillStyle = `rgb(${r} ${g} ${b} / ${0.06 + 0.42 * Math.sqrt(Math.min(Math.abs(depth(i)), 1))})`;
    pen.fillRect(x, y, width, 26);
    if (i === chosen) {
      pen.strokeStyle = `rgb(${r} ${g} ${b})`;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, width - 2, 24);
    }
    pen.fillStyle = isSymbol(piece) ? muted : ink;
    pen.fillText(plainly(piece), x + width / 2, y + 14);
  });
}
