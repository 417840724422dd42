/* What every section draws with: elements, tokens, numbers, colours. */

const byId = (id) => root.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* Tokens */

// Line breaks and tabs have no shape of their own.
const visible = (piece) => piece.replace(/\r?\n|\r/g, "↵").replace(/\t/g, "⇥");

const SYMBOLS = { "<bos>": "start", "<eos>": "end" };
const isSymbol = (piece) => Object.hasOwn(SYMBOLS, piece);

// A piece as text: a space before it is not written, a lone space is ␣, and symbols have names.
function plainly(piece) {
  if (isSymbol(piece)) return say(SYMBOLS[piece]);
  return piece === "▁" || piece === " " ? "␣" : visible(piece.replace(/^▁/u, ""));
}

// A piece as an element: after a space it begins with a thin gap; what is not of the text is pale.
function label(piece) {
  const pale = isSymbol(piece) || piece === "▁" || piece === " ";
  const kind = pale ? "piece pale" : piece.startsWith("▁") ? "piece gap" : "piece";
  return make("bdi", { class: kind, title: isSymbol(piece) ? piece : null }, plainly(piece));
}

// What is said of controls, after other sentences: paper has none.
const hint = (text, more = {}) => make("span", { class: "on-screen", ...more }, joined(["", text]));

// A piece in a sentence of our own, in quotes.
const quoted = (piece) => `“${plainly(piece)}”`;

/* Numbers */

// Colour grows with the square root of a weight, so that small weights can be told apart.
const shade = (weight) => Math.sqrt(Math.max(weight, 0)).toFixed(3);
const number = (weight) => (weight > 0 && weight < 0.001 ? "< 0.001" : weight.toFixed(3));
// A softmax gives no token 0: one that reads so was rounded.
const likely = (probability) => (probability < 0.001 ? "< 0.001" : probability.toFixed(3));

// A number with its sign; what is rounded to zero has none.
function signed(value, digits = 2) {
  const size = Math.abs(value).toFixed(digits);
  return Number(size) === 0 ? size : (value < 0 ? "−" : "+") + size;
}

// How wide a piece is in some letters, in pixels; asked of a pen that stands nowhere, as letters of one in the page are
// known only when all of it is styled.
const widths = new Map();
let measuring;
function widthOf(piece, font) {
  const key = `${font} ${piece}`;
  if (!widths.has(key)) {
    measuring ??= make("canvas").getContext("2d");
    measuring.font = font;
    widths.set(key, measuring.measureText(plainly(piece)).width);
  }
  return widths.get(key);
}

// Thousands apart; to ask the browser's Intl for it takes it many milliseconds at first.
const grouped = (count) => `${Math.round(count)}`.replace(/\B(?=(\d{3})+$)/g, ",");

function bar(probability) {
  const filled = make("i");
  filled.style.setProperty("--probability", probability);
  return make("span", { class: "bar", "aria-hidden": "true" }, filled);
}

const palette = new Map(); // the colours that were asked for; to ask for one takes long

// A colour of the style as it is now.
function css(role) {
  if (!palette.has(role)) palette.set(role, getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim());
  return palette.get(role);
}

// A role's colour as it is now: [red, green, blue]. Roles: source, target, feed, given, minus, ink, paper.
function colourOf(role) {
  const value = css(role);
  if (!value.startsWith("#")) return value.split(/\s+/).map(Number);
  const digits = value.length === 4 ? value.replace(/[^#]/g, "$&$&") : value;
  return [1, 3, 5].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

/* Controls */

// A group of radio buttons, of which `chosen` is on; `options` are values with their texts.
function choices(legend, name, options, chosen, choose) {
  const group = make("fieldset", {}, make("legend", {}, legend));
  for (const [value, text] of options) {
    const input = make("input", { type: "radio", name, value, autocomplete: "off" });
    input.checked = value === chosen;
    input.addEventListener("change", () => choose(value));
    group.append(make("label", {}, input, make("span", {}, `${text}`)));
  }
  return group;
}

// Where a key leads from a place in a grid of so many rows and columns; null where it is no key of a grid.
function stepInGrid(event, [row, column], rows, columns) {
  const steps = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    Home: [row, 0],
    End: [row, Infinity],
  };
  if (!(event.key in steps)) return null;
  event.preventDefault();
  const inside = (place, count) => Math.min(Math.max(place, 0), count - 1);
  const [nextRow, nextColumn] = steps[event.key];
  return [inside(nextRow, rows), inside(nextColumn, columns)];
}

// Scroll a box, and not the page, as little as it takes to see what is in it with some room beside it.
function bringIntoBox(box, element, room = 24) {
  const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
  const way = (start, end, from, to) => (start - room < from ? start - room - from : Math.max(end + room - to, 0));
  box.scrollLeft += way(inner.left, inner.right, outer.left, outer.right);
  box.scrollTop += way(inner.top, inner.bottom, outer.top, outer.bottom);
}
