/* A picture of many columns on one canvas: only what is in view is painted, the heads of its rows stay at the left.

A picture has: id, name, lang; `rows` and `columns`, how many; `edges`, where each column begins and the last one ends;
`tops`, the same for rows (above the first is room for heads); `side`, the width of the heads of rows;
paint(context, first, last, x): the columns from `first` up to `last`, x(column) is where one begins; paintHeads(context);
read(row, column): what stands there, as a sentence; choose(row, column); and where arrows do not lead from cell to
cell, move(event, [row, column]); `room`, the width of the box, where it is known.
On paper columns may be narrower, down to `least` pixels (a number, or one for each column), and only the first ones, `seen()` of
them, are there. */

const woven = new Map(); // the pictures that stand in the page now, by their ids
const PRINTED = 700; // pixels of a page's width
const WHOLE = 820; // how high a picture may be to stand on one page
const PAPER = [PRINTED, 560]; // room for a picture that has to be whole, with what is said of it, on one page
const printing = matchMedia("print");
const isPrinted = () => printing.matches || isForPaper();

function weave(box, picture) {
  const cellId = `${picture.id}-cell`;
  const canvas = make("canvas", { "aria-hidden": "true", lang: picture.lang });
  canvas.style.setProperty("height", `${picture.tops.at(-1) + 1}px`);
  const wide = make("div", { class: "weave-wide" });
  const cell = make("div", { role: "gridcell", id: cellId });
  const counts = { "aria-rowcount": picture.rows, "aria-colcount": picture.columns };
  const named = { id: picture.id, class: "weave", role: "grid", tabindex: "0", "aria-label": picture.name, "aria-activedescendant": cellId, ...counts };
  const grid = make("div", named, canvas, wide, make("div", { role: "row", class: "weave-row" }, cell));
  const reading = make("p", { class: "weave-reading", "aria-live": "polite" });
  // its width and where it is scrolled to are kept: to ask for them would lay out the page anew
  const one = { picture, grid, canvas, wide, cell, reading, at: [0, 0], more: [], hovered: null, width: picture.room ?? box.clientWidth, left: 0, scrolled: 0 };
  wide.style.setProperty("width", `${picture.side + picture.edges.at(-1)}px`);
  grid.addEventListener("scroll", () => scrollWeave(one), { passive: true });
  grid.addEventListener("focus", () => paintWeave(one));
  grid.addEventListener("blur", () => paintWeave(one));
  grid.addEventListener("keydown", (event) => moveInWeave(one, event));
  grid.addEventListener("click", (event) => pressWeave(one, event));
  grid.addEventListener("pointermove", (event) => readInWeave(one, cellUnder(one, event)));
  grid.addEventListener("pointerleave", () => readInWeave(one, null));
  box.append(grid, reading);
  woven.set(picture.id, one);
  new ResizeObserver(() => resizeWeave(one)).observe(grid);
  standInWeave(one, one.at);
  return one;
}

function scrollWeave(one) {
  const left = one.grid.scrollLeft;
  if (left === one.left) return;
  one.left = one.scrolled = left;
  paintWeave(one);
}

function resizeWeave(one) {
  const width = one.grid.clientWidth;
  if (width === one.width) return;
  one.width = width;
  paintWeave(one);
}

/* Painting */

const paintWeave = (one) => paintSoon(one.grid, () => paintNow(one));

function paintNow(one) {
  const { picture, grid } = one;
  if (!grid.isConnected) return;
  if (one.scrolled !== one.left) grid.scrollLeft = one.scrolled = one.left;
  const height = picture.tops.at(-1) + 1;
  const printed = isPrinted();
  const width = printed ? PRINTED : one.width;
  const bands = printed ? bandsOf(picture, width) : [columnsInView(one, width)];
  grid.classList.toggle("whole", bands.length * height < WHOLE);
  canvasesFor(one, bands.length).forEach((canvas, i) => {
    const context = sized(canvas, width, height);
    paintBand(context, picture, { ...bands[i], width, height });
    if (!printed && root.activeElement === grid) paintCursor(context, one, bands[i].left);
  });
}

// A canvas for each band, so that none is cut by the end of a page.
function canvasesFor(one, count) {
  while (one.more.length > count - 1) one.more.pop().remove();
  while (one.more.length < count - 1) {
    const canvas = make("canvas", { "aria-hidden": "true", lang: one.picture.lang });
    (one.more.at(-1) ?? one.canvas).after(canvas);
    one.more.push(canvas);
  }
  return [one.canvas, ...one.more];
}

// A canvas with as many points as the screen has there.
function sized(canvas, width, height) {
  const ratio = Math.max(devicePixelRatio, isPrinted() ? 2 : 1);
  const size = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== size[0]) canvas.width = size[0];
  if (canvas.height !== size[1]) canvas.height = size[1];
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  return context;
}

function columnsInView({ picture, left }, width) {
  const { edges, columns, side } = picture;
  let first = 0;
  while (first < columns - 1 && edges[first + 1] <= left) first++;
  let last = first + 1;
  while (last < columns && edges[last] < left + width - side) last++;
  return { first, last, left };
}

// On paper nothing scrolls: columns are narrower where that is enough, else those that do not fit stand below, and all
// take the whole width.
function bandsOf({ edges, columns, side, least, seen }, width) {
  const count = Math.min(seen?.() ?? columns, columns);
  const room = width - side + 0.5;
  const needed = [0];
  for (let column = 0; column < count; column++) {
    const natural = edges[column + 1] - edges[column];
    needed.push(needed[column] + Math.min(least?.[column] ?? (least || natural), natural));
  }
  const wide = (first, last) => needed[last] - needed[first];
  const starts = [];
  for (let first = 0, last; first < count; first = last) {
    starts.push(first);
    last = first + 1;
    while (last < count && wide(first, last + 1) <= room) last++;
  }
  const even = starts.map((_, band) => Math.round((band * count) / starts.length));
  const ends = (all) => [...all.slice(1), count];
  const fits = even.every((first, band) => wide(first, ends(even)[band]) <= room);
  const chosen = fits ? even : starts;
  const widest = Math.max(...chosen.map((first, band) => wide(first, ends(chosen)[band])));
  const most = chosen.length > 1 ? Infinity : edges[count] / needed[count];
  const scale = Math.min(room / widest, most);
  return chosen.map((first, band) => ({ first, last: ends(chosen)[band], left: needed[first], scale, edges: needed }));
}

function paintBand(context, picture, { first, last, left, scale = 1, edges = picture.edges, width, height }) {
  const { side, columns } = picture;
  const x = (column) => side + ((edges[column] ?? edges.at(-1)) - left) * scale;
  context.save();
  context.beginPath();
  context.rect(side, 0, (isPrinted() ? x(last) : width) - side, height); // the next column stands in the next band
  context.clip();
  picture.paint(context, first, last, x);
  context.restore();
  if (left > 0 && first >= 0 && !isPrinted()) paintMore(context, side, 1, height);
  if (last < columns || edges[last] - left > width - side + 1) if (!isPrinted()) paintMore(context, width, -1, height);
  picture.paintHeads(context, side);
}

// A shadow where there is more to see.
function paintMore(context, x, way, height) {
  const shadow = context.createLinearGradient(x, 0, x + way * 20, 0);
  shadow.addColorStop(0, tinted("paper", 0.9));
  shadow.addColorStop(1, tinted("paper", 0));
  context.fillStyle = shadow;
  context.fillRect(Math.min(x, x + way * 20), 0, 20, height);
}

function paintCursor(context, { picture, at: [row, column] }, left) {
  const { edges, tops, side } = picture;
  const x = side + edges[column] - left;
  context.strokeStyle = tinted("ink", 1);
  context.lineWidth = 2;
  context.setLineDash([4, 2]);
  if (x > side - 4) context.strokeRect(x + 2, tops[row] + 2, edges[column + 1] - edges[column] - 4, tops[row + 1] - tops[row] - 4);
  context.setLineDash([]);
}

// The frame of the column that is chosen.
function paintChosen(context, left, width, height) {
  context.strokeStyle = tinted("mark", 1);
  context.lineWidth = 2;
  context.beginPath();
  context.roundRect(left + 1, 1, width - 2, height - 2, 5);
  context.stroke();
}

const hueOf = (role) => colourOf(role).join(" ");
const tinted = (role, depth) => `rgb(${hueOf(role)} / ${depth})`;

const repaintWeave = (one) => one && paintWeave(one);

// Letters of a canvas: those of the page.
const letters = (size, weight = 400) => `${weight} ${size}px system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif`;

function lettering(context, size, weight) {
  context.font = letters(size, weight);
}

// Write texts [size, weight, colour, text, x, y, room], those of the same letters together: to change letters takes long.
function writeTexts(context, texts) {
  const groups = new Map();
  for (const text of texts) {
    const name = `${text[0]} ${text[1]}`;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(text);
  }
  for (const [name, group] of groups) {
    lettering(context, group[0][0], group[0][1]);
    for (const [, , colour, text, x, y, room] of group) {
      context.fillStyle = colour;
      context.fillText(fitted(context, text, room, name), x, y);
    }
  }
}

// A text that is cut where it is too long for its place; to measure takes long, so it is done once for the same letters.
const fits = new Map();
function fitted(context, text, room, font = "") {
  const key = `${font} ${room} ${text}`;
  if (!font) return cutToFit(context, text, room);
  if (fits.size > 20000) fits.clear();
  if (!fits.has(key)) fits.set(key, cutToFit(context, text, room));
  return fits.get(key);
}

function cutToFit(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const left = [...text];
  while (left.length > 1 && context.measureText(`${left.join("")}…`).width > room) left.pop();
  return `${left.join("")}…`;
}

/* Where the reader is in it */

function standInWeave(one, at) {
  const { picture, cell } = one;
  one.at = at;
  cell.parentNode.setAttribute("aria-rowindex", at[0] + 1);
  cell.setAttribute("aria-colindex", at[1] + 1);
  cell.setAttribute("aria-label", picture.read(...at));
  if (!one.hovered) one.reading.textContent = picture.read(...at);
  bringColumn(one, at[1]);
}

function bringColumn(one, column) {
  const { edges, side } = one.picture;
  const most = Math.max(edges.at(-1) + side - one.width, 0);
  const [start, end] = [edges[column] - 24, edges[column + 1] + 24 - Math.max(one.width - side, 0)];
  const left = Math.min(Math.max(one.left > start ? start : Math.max(end, one.left), 0), most);
  if (left === one.left) return;
  one.left = left;
  paintWeave(one);
}

function moveInWeave(one, event) {
  const { picture, at } = one;
  const next = picture.move ? picture.move(event, at) : stepInGrid(event, at, picture.rows, picture.columns);
  if (next) arriveInWeave(one, next);
}

function arriveInWeave(one, next) {
  one.hovered = null;
  standInWeave(one, next);
  one.picture.choose(...next);
  paintWeave(one);
}

function pressWeave(one, event) {
  const under = cellUnder(one, event);
  if (under) arriveInWeave(one, under);
}

function readInWeave(one, under) {
  one.hovered = under;
  one.reading.textContent = one.picture.read(...(under ?? one.at));
}

function cellUnder({ picture, left: scrolled, canvas }, event) {
  const { edges, tops, side, rows, columns } = picture;
  const box = canvas.getBoundingClientRect();
  const [left, down] = [event.clientX - box.left, event.clientY - box.top];
  const x = left - side + scrolled;
  if (left < side || x >= edges.at(-1) || down >= tops.at(-1)) return null;
  const column = edges.findIndex((_, i) => i < columns && x < edges[i + 1]);
  const row = Math.max(tops.findIndex((_, i) => i < rows && down < tops[i + 1]), 0);
  return picture.has?.(row, column) === false ? null : [row, column];
}

printing.addEventListener("change", () => {
  palette.clear();
  for (const one of woven.values()) paintNow(one);
});
