/* A map of numbers on one canvas: its heads stay in view, every number can be read by pointer and by key. */

const CELL = 24; // pixels of a cell at full size
const LEAST_CELL = 3;
const LARGEST_CELL = 32;
const MOST = 900; // pixels of a map's height, and of one that scrolls
const MOST_SCROLLED = 560;
const HEAD_FONT = 13;
const HEAD_ROOM = 8;

const heatmaps = new WeakMap(); // what is shown in each box

// A map in a box of its own. `spec()` gives what is drawn: {values, shape, queries, keys, hue, isVisible(row, key), isSigned,
// top: the value of the strongest colour, isFlat, row, key}. `pick(row, key)` is called for a cell that is chosen, key null for a
// row; `read(row, key)` for one that is pointed at, null where the pointer has left.
function heatmap({ name, spec, pick, read }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const room = make("div", { class: "map-room" }, canvas);
  const box = make("div", { class: "map-box", role: "application", tabindex: "0", "aria-label": name }, room);
  const view = { box, canvas, room, isFit: true, width: 0, high: MOST, at: null, cell: CELL, left: 0, top: 0 };
  const draw = () => paintSoon(box, () => paintHeatmap(view, spec()));
  heatmaps.set(box, view);
  view.layOut = () => {
    if (!view.width && !isForPaper()) return; // it has no place yet
    layOutHeatmap(view, spec());
    draw();
  };
  new ResizeObserver(([{ contentRect }]) => {
    const width = Math.floor(contentRect.width);
    if (!width || width === view.width) return;
    view.width = width;
    view.high = heightInView(); // asked now, as to ask later would lay out the page anew
    view.layOut();
  }).observe(box);
  view.draw = draw;
  view.drawChosen = () => paintSoon(box, () => {
    showCell(view, spec());
    paintHeatmap(view, spec());
  });
  box.addEventListener("scroll", draw, { passive: true });
  const placeOf = (event) => cellOf(view, spec(), event);
  canvas.addEventListener("pointermove", (event) => {
    view.at = placeOf(event);
    read?.(view.at?.row ?? null, view.at?.key ?? null);
    draw();
  });
  canvas.addEventListener("pointerleave", () => {
    view.at = null;
    read?.(null, null);
    draw();
  });
  canvas.addEventListener("click", (event) => {
    const at = placeOf(event);
    if (at) pick(at.row, at.key);
  });
  box.addEventListener("keydown", (event) => {
    const { shape, row, key, isVisible } = spec();
    const next = stepInGrid(event, [row, key ?? -1], shape[0], shape[1]);
    if (!next) return;
    pick(next[0], isVisible(...next) ? next[1] : Math.min(next[0], shape[1] - 1));
    view.drawChosen();
  });
  return view;
}

const headFont = () => `${HEAD_FONT}px system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif`;

function measureHeads(view, { queries, keys }) {
  const widest = (pieces) => Math.max(...pieces.map((piece) => widthOf(piece, headFont())));
  view.left = Math.min(Math.ceil(widest(queries)) + HEAD_ROOM, 112);
  view.top = Math.min(Math.ceil(widest(keys)) + HEAD_ROOM, 96);
}

// The size of the cells, of the room that they need and of what is seen of it.
function layOutHeatmap(view, shown) {
  const [rows, columns] = shown.shape;
  measureHeads(view, shown);
  const isWhole = view.isFit || isForPaper(); // paper does not scroll
  const [width, most] = isForPaper() ? PAPER : [view.width, isWhole ? view.high : MOST_SCROLLED];
  const fitting = Math.floor(Math.min((width - view.left - 2) / columns, (most - view.top - 2) / rows));
  view.cell = isWhole ? Math.min(Math.max(fitting, LEAST_CELL), LARGEST_CELL) : CELL;
  const whole = [view.left + columns * view.cell + 1, view.top + rows * view.cell + 1];
  view.room.style.setProperty("width", `${whole[0]}px`);
  view.room.style.setProperty("height", `${whole[1]}px`);
  view.seen = [Math.min(whole[0], width), Math.min(whole[1], most)];
  view.box.style.setProperty("height", `${view.seen[1]}px`);
  view.isMore = whole[0] > width + 1 || whole[1] > most;
  const scale = Math.max(globalThis.devicePixelRatio || 1, isForPaper() ? 2 : 1);
  Object.assign(view.canvas, { width: Math.round(view.seen[0] * scale), height: Math.round(view.seen[1] * scale) });
  view.canvas.style.setProperty("width", `${view.seen[0]}px`);
  view.canvas.style.setProperty("height", `${view.seen[1]}px`);
}

// How high a map may be so that it is seen whole, with its heads, below the tokens that stay in view.
function heightInView() {
  const beyond = isAlone() ? byId("ribbon").offsetHeight + 72 : 72; // the sentence above it, and room
  return Math.min(Math.max(innerHeight - beyond, 360), MOST);
}

// The numbers as an image of one point each, in the colour of the map: ink and red where they have a sign.
function imageOf({ shape: [rows, columns], values, hue, isSigned, top, isVisible }) {
  const image = new ImageData(columns, rows);
  const [above, below] = [isSigned ? colourOf("plus") : colourOf(hue), colourOf("minus")];
  for (let i = 0; i < rows * columns; i++) {
    if (!isVisible(Math.floor(i / columns), i % columns)) continue;
    const colour = values[i] < 0 ? below : above;
    const depth = Math.min(Math.sqrt(Math.abs(values[i]) / top), 1);
    image.data[4 * i] = colour[0];
    image.data[4 * i + 1] = colour[1];
    image.data[4 * i + 2] = colour[2];
    image.data[4 * i + 3] = Math.round(255 * depth);
  }
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: columns, height: rows });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

const images = new WeakMap(); // the image of a map's values, by them

function imageFor(shown) {
  const look = `${shown.top} ${shown.isSigned ? "signed" : colourOf(shown.hue)}`;
  const known = images.get(shown.values);
  if (known?.look === look) return known.image;
  const image = imageOf(shown);
  images.set(shown.values, { look, image });
  return image;
}

function paintHeatmap(view, shown) {
  const { canvas, box, cell, left, top, seen } = view;
  if (!seen || !shown) return; // put away meanwhile
  const scale = canvas.width / seen[0];
  const pen = canvas.getContext("2d");
  const [rows, columns] = shown.shape;
  const colours = { ink: css("ink"), line: css("line"), paper: css("paper"), mark: css("mark"), muted: css("muted") };
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, seen[0], seen[1]);
  const [x0, y0] = [left - box.scrollLeft, top - box.scrollTop];
  pen.save();
  pen.beginPath();
  pen.rect(left, top, seen[0] - left, seen[1] - top);
  pen.clip();
  hatchMasked(pen, shown, x0, y0, cell, colours);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(imageFor(shown), x0, y0, columns * cell, rows * cell);
  if (cell >= 8) ruleCells(pen, x0, y0, rows, columns, cell, colours.paper);
  if (shown.isFlat) hatch(pen, x0, y0, columns * cell, rows * cell, colours.muted, 9);
  pen.strokeStyle = colours.line;
  pen.strokeRect(x0 + 0.5, y0 + 0.5, columns * cell - 1, rows * cell - 1);
  const inRow = (row, key, colour, width) => outline(pen, x0, y0, cell, row, key, columns, colour, width);
  inRow(shown.row, null, colours.mark, 1);
  if (shown.key !== null) inRow(shown.row, shown.key, colours.mark, 2.5);
  if (view.at) inRow(view.at.row, view.at.key, colours.ink, 1.5);
  pen.restore();
  paintHeads(pen, view, shown, x0, y0, colours);
  shadeEdges(pen, view, rows, columns);
}

function outline(pen, x0, y0, cell, row, key, columns, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  const [x, size] = key === null ? [x0, columns * cell] : [x0 + key * cell, cell];
  pen.strokeRect(x + width / 2 - 0.5, y0 + row * cell + width / 2 - 0.5, Math.max(size - width + 1, 1), Math.max(cell - width + 1, 1));
  pen.lineWidth = 1;
}

function ruleCells(pen, x0, y0, rows, columns, cell, paper) {
  pen.fillStyle = paper;
  for (let row = 1; row < rows; row++) pen.fillRect(x0, y0 + row * cell - 1, columns * cell, 1);
  for (let column = 1; column < columns; column++) pen.fillRect(x0 + column * cell - 1, y0, 1, rows * cell);
}

// Lines across a part of a picture, which say that its colour is no number.
function hatch(pen, x, y, width, height, colour, step = 6) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.45;
  pen.beginPath();
  for (let at = -height; at < width; at += step) {
    pen.moveTo(x + at, y + height);
    pen.lineTo(x + at + height, y);
  }
  pen.stroke();
  pen.restore();
}

// What a query may not see is hatched, so that it is not taken for a weight of 0.
function hatchMasked(pen, { shape: [rows, columns], isVisible }, x0, y0, cell, { line }) {
  if (isVisible(0, columns - 1)) return;
  pen.save();
  pen.beginPath();
  for (let row = 0; row < rows; row++) {
    let first = 0;
    while (first < columns && isVisible(row, first)) first++;
    pen.rect(x0 + first * cell, y0 + row * cell, (columns - first) * cell, cell);
  }
  pen.clip();
  hatch(pen, x0, y0, columns * cell, rows * cell, line);
  pen.restore();
}

// The tokens beside and above, as many as there is room for, the chosen ones always.
function paintHeads(pen, view, shown, x0, y0, { ink, muted, paper, mark }) {
  const { cell, left, top, seen } = view;
  const every = Math.ceil((HEAD_FONT + 2) / cell);
  const here = { row: view.at?.row ?? shown.row, key: view.at ? view.at.key : shown.key };
  const isNear = (index, chosen) => chosen !== null && index !== chosen && Math.abs(index - chosen) < every;
  pen.textBaseline = "middle";
  const write = (piece, isHere) => {
    pen.fillStyle = isHere ? mark : isSymbol(piece) ? muted : ink;
    if (isHere) pen.font = `600 ${headFont()}`;
    pen.fillText(plainly(piece), 0, 0);
    if (isHere) pen.font = headFont();
  };
  pen.font = headFont();
  pen.save();
  pen.beginPath();
  pen.rect(0, top - HEAD_FONT / 2, left, seen[1] - top + HEAD_FONT / 2);
  pen.clip();
  pen.textAlign = "right";
  shown.queries.forEach((piece, row) => {
    const y = y0 + (row + 0.5) * cell;
    const isHere = row === here.row;
    if (y < top - cell || y > seen[1] + cell || (!isHere && (row % every || isNear(row, here.row)))) return;
    pen.setTransform(pen.getTransform().a, 0, 0, pen.getTransform().d, (left - HEAD_ROOM / 2) * pen.getTransform().a, y * pen.getTransform().d);
    write(piece, isHere);
  });
  pen.restore();
  pen.save();
  const scale = pen.getTransform().a;
  pen.beginPath();
  pen.rect(left, 0, seen[0] - left, top);
  pen.clip();
  pen.textAlign = "left";
  shown.keys.forEach((piece, key) => {
    const x = x0 + (key + 0.5) * cell;
    const isHere = key === here.key;
    if (x < left - cell || x > seen[0] + cell || (!isHere && (key % every || isNear(key, here.key)))) return;
    pen.setTransform(0, -scale, scale, 0, x * scale, (top - HEAD_ROOM / 2) * scale);
    write(piece, isHere);
  });
  pen.restore();
  pen.setTransform(scale, 0, 0, scale, 0, 0);
}

// A shadow at each edge where there is more.
function shadeEdges(pen, { box, seen, left, top, cell }, rows, columns) {
  const more = {
    left: box.scrollLeft > 1,
    right: left + columns * cell - box.scrollLeft > seen[0] + 2,
    top: box.scrollTop > 1,
    bottom: top + rows * cell - box.scrollTop > seen[1] + 2,
  };
  const edges = {
    left: [left, top, left + 12, top, left, top, 12, seen[1]],
    right: [seen[0], 0, seen[0] - 12, 0, seen[0] - 12, top, 12, seen[1]],
    top: [left, top, left, top + 12, left, top, seen[0], 12],
    bottom: [0, seen[1], 0, seen[1] - 12, left, seen[1] - 12, seen[0], 12],
  };
  const [red, green, blue] = colourOf("given");
  for (const [name, [xa, ya, xb, yb, x, y, width, height]] of Object.entries(edges)) {
    if (!more[name]) continue;
    const shadow = pen.createLinearGradient(xa, ya, xb, yb);
    shadow.addColorStop(0, `rgb(${red} ${green} ${blue} / 0.5)`);
    shadow.addColorStop(1, `rgb(${red} ${green} ${blue} / 0)`);
    pen.fillStyle = shadow;
    pen.fillRect(x, y, width, height);
  }
}

// The cell under the pointer; over the tokens beside it a row alone, over those above a column in the row that is chosen.
function cellOf(view, { shape: [rows, columns], row, isVisible }, event) {
  const bounds = view.canvas.getBoundingClientRect();
  const x = event.clientX - bounds.left;
  const y = event.clientY - bounds.top;
  const key = Math.floor((x - view.left + view.box.scrollLeft) / view.cell);
  const at = y < view.top ? row : Math.floor((y - view.top + view.box.scrollTop) / view.cell);
  if (at < 0 || at >= rows || key >= columns) return null;
  if (x < view.left) return { row: at, key: null };
  return isVisible(at, key) ? { row: at, key } : null;
}

// Scroll the box so that the chosen cell is seen.
function showCell(view, { row, key }) {
  if (!view.isMore) return;
  const { box, cell, left, top, seen } = view;
  const needed = (start, from, size, head) => (start < from ? start : start + cell > from + size - head ? start + cell - size + head : from);
  box.scrollTop = needed(row * cell, box.scrollTop, seen[1], top);
  if (key !== null) box.scrollLeft = needed(key * cell, box.scrollLeft, seen[0], left);
}

/* A map as small as a stamp */

function paintThumbnail(canvas, shown) {
  const image = imageFor(shown);
  const [rows, columns] = shown.shape;
  const size = Math.max(Math.min(4, Math.floor(192 / Math.max(rows, columns))), 1);
  Object.assign(canvas, { width: columns * size, height: rows * size });
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  if (shown.isFlat) hatch(pen, 0, 0, canvas.width, canvas.height, css("muted"), 8);
}
