/* The text as tokens and as vectors, and what every section draws with. */

let data; // the inspection
let root = document; // what its pictures stand in: a page of its own, or a part of another
const byId = (id) => root.getElementById(id);

// What is read or written: of a translation two sides, else one.
let SIDES;
let WRITTEN; // the side that has probabilities
let OFFSET; // 1 where the first token is given, that of a document

// The place that is marked first: of a text that begins with what stands between documents not the
// one after it, of which the model may know nothing.
let FIRST;

function readText() {
  SIDES =
    data.task === "translation"
      ? { source: { ...data.source, lang: data.src_lang }, target: { ...data.target, lang: data.tgt_lang } }
      : { text: { ...data.tokens, lang: data.lang } };
  WRITTEN = { translation: "target", "language-modelling": "text" }[data.task];
  OFFSET = data.task === "language-modelling" ? 1 : 0;
  FIRST = OFFSET + (data.start === "between" && SIDES[WRITTEN].ids.length > OFFSET + 1 ? 1 : 0);
  Object.assign(vectors, { side: Object.keys(SIDES)[0], at: null });
}

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Line breaks and tabs have no shape of their own.
const visible = (piece) => piece.replace(/\r?\n|\r/g, "↵").replace(/\t/g, "⇥");

// A piece with its space mark, ▁, paler than its letters.
function label(piece) {
  if (!piece.startsWith("▁") || piece === "▁") return [visible(piece)];
  const space = make("span", { class: "space" }, "▁");
  return [space, visible(piece.slice(1))];
}

// A piece in a sentence of our own: without its space mark, in quotes.
const quoted = (piece) => `“${visible(piece.replace(/^▁(?=.)/u, ""))}”`;

// Colour grows with the square root of a weight, so that small weights can be told apart.
const shade = (weight) => Math.sqrt(weight).toFixed(3);
const number = (weight) => (weight > 0 && weight < 0.001 ? "< 0.001" : weight.toFixed(3));
// A softmax gives no token 0: one that reads so was rounded.
const likely = (probability) => (probability < 0.001 ? "< 0.001" : probability.toFixed(3));

function bar(probability) {
  const filled = make("i");
  filled.style.setProperty("--probability", probability);
  return make("span", { class: "bar", "aria-hidden": "true" }, filled);
}

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

// A list of choices with their probabilities; `id` is the one that was taken.
function drawChoices(list, rows, lang, id = null) {
  list.lang = lang;
  list.replaceChildren(
    ...rows.map((choice) => {
      const item = make("li", choice.id === id ? { class: "chosen" } : {});
      const piece = make("b", { title: choice.piece }, ...label(choice.piece));
      item.append(piece, make("span", {}, likely(choice.probability)), bar(choice.probability));
      return item;
    }),
  );
}

// The probability of a token of the written side, null where it was given.
const probabilityOf = (index) => SIDES[WRITTEN].probabilities[index - OFFSET] ?? null;

// The most probable tokens at a place, and the one that stands there.
function considered(index) {
  const { alternatives, ids, pieces } = SIDES[WRITTEN];
  const rows = alternatives[index - OFFSET].slice();
  if (!rows.some((choice) => choice.id === ids[index])) {
    rows.push({ piece: pieces[index], id: ids[index], probability: probabilityOf(index) });
  }
  return rows;
}

function drawConsidered(index) {
  const { ids, lang, pieces } = SIDES[WRITTEN];
  const given = index < OFFSET; // nothing was chosen there
  const [before, after] = say(given ? "given" : "most-probable", { piece: "\n" }).split("\n");
  byId("considered-title").replaceChildren(before, make("bdi", { lang }, quoted(pieces[index])), after);
  drawChoices(byId("considered"), given ? [] : considered(index), lang, ids[index]);
}

// A translator's text and translation as plain sentences.
function drawTexts() {
  byId("texts").hidden = data.task !== "translation";
  if (byId("texts").hidden) return;
  const pairs = [["source", data.text], ["target", data.translation]];
  byId("texts").replaceChildren(
    ...pairs.map(([side, text]) => make("div", {}, make("dt", {}, say(side)), make("dd", { lang: SIDES[side].lang, dir: "auto" }, text))),
  );
}

function drawSentences() {
  byId("sentences").replaceChildren(
    ...Object.entries(SIDES).map(([side, { lang, pieces, ids }]) => {
      const tokens = make("div", { class: "tokens", id: side, lang, role: "toolbar", "aria-label": say(side) });
      tokens.append(...pieces.map((piece, index) => tokenButton(side, index, piece, ids[index])));
      tokens.addEventListener("keydown", moveInTokens);
      return make("div", { class: "sentence" }, make("span", { class: "lang" }, lang === "und" ? "" : lang), tokens);
    }),
  );
  byId("considered-box").hidden = !WRITTEN;
  const captions = ["tokens-caption", ...(WRITTEN ? ["tokens-probability"] : []), ...(shown.kind ? ["tokens-tint"] : [])];
  const sentences = captions.map((key) => say(key));
  if (data.start) sentences.push(say(`tokens-${data.start}`, { piece: quoted(SIDES[WRITTEN].pieces[0]) }));
  byId("tokens-caption").textContent = joined(sentences);
}

// The Tab key comes to one token of a side, the one that was left; arrows lead from it to the others.
function moveInTokens(event) {
  const tokens = [...event.currentTarget.children];
  const sideways = event.key !== "ArrowUp" && event.key !== "ArrowDown";
  const next = sideways ? stepInGrid(event, [0, tokens.indexOf(root.activeElement)], 1, tokens.length) : null;
  if (next) tokens[next[1]].focus();
}

function focusToken(button, place) {
  for (const token of button.parentNode.children) token.tabIndex = -1;
  button.tabIndex = 0;
  pin(place);
}

function tokenButton(side, index, piece, id) {
  const button = make("button", { class: "token", type: "button", tabindex: index === 0 ? "0" : "-1" }, make("bdi", {}, ...label(piece)), make("small", {}, `${id}`));
  const probability = side === WRITTEN ? probabilityOf(index) : null;
  if (probability !== null) {
    const said = say("probability", { piece: "", value: likely(probability) });
    button.append(bar(probability), make("span", { class: "unseen" }, said));
  }
  const place = () => placeOfToken(side, index);
  button.addEventListener("focus", () => focusToken(button, place()));
  button.addEventListener("click", () => pin(place()));
  button.addEventListener("pointerenter", () => point(place()));
  button.addEventListener("pointerleave", () => point(pinned));
  return button;
}

/* Vectors as a heat map: a row for each token */

// `at` is the number that is read out, by its row and column; null is none.
const vectors = { side: null, part: "sum", at: null };

function numbersOf({ side, part }) {
  const { tokens, positions } = SIDES[side].vectors;
  if (part === "tokens" || !positions) return tokens;
  if (part === "positions") return positions;
  return tokens.map((row, i) => row.map((value, j) => value + positions[i][j]));
}

function drawVectors() {
  const { width, positions, tokens } = SIDES[vectors.side].vectors;
  const parts = positions ? ["tokens", "positions", "sum"] : [];
  const choose = (name) => (value) => {
    vectors[name] = value;
    if (name === "side") vectors.at = null;
    drawVectors();
    root.querySelector(`input[name="vectors-${name}"]:checked`).focus();
  };
  byId("vectors-controls").replaceChildren();
  if (Object.keys(SIDES).length > 1) {
    const sides = Object.keys(SIDES).map((side) => [side, say(side)]);
    byId("vectors-controls").append(choices(say("side"), "vectors-side", sides, vectors.side, choose("side")));
  }
  if (parts.length) {
    const named = parts.map((part) => [part, say(`vector-${part}`)]);
    byId("vectors-controls").append(choices(say("part"), "vectors-part", named, vectors.part, choose("part")));
  }
  const values = { shown: tokens[0].length, width };
  const { beside = [] } = SIDES[vectors.side].vectors;
  const sentences = [say(positions ? "vectors-caption" : "vectors-alone", values)];
  if (beside.length) sentences.push(say("vectors-beside", { parts: beside.map((part) => say(`part-${part}`)).join(say("and")) }));
  if (data.ngrams > 1) sentences.push(say("vectors-of-tokens", { ngrams: data.ngrams }));
  byId("vectors-caption").textContent = joined(sentences);
  byId("vectors-box").setAttribute("aria-label", say("vectors-title"));
  byId("vectors-reading").textContent = say("vectors-hint");
  paintVectors();
}

function paintVectors() {
  const rows = numbersOf(vectors);
  const largest = Math.max(...rows.flat().map(Math.abs), 1e-9);
  const colours = ["--heat", "--warm"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim().split(/\s+/));
  byId("vectors").replaceChildren(
    ...SIDES[vectors.side].pieces.map((piece, i) => {
      const image = new ImageData(rows[i].length, 1);
      rows[i].forEach((value, j) => {
        image.data.set([...colours[value < 0 ? 1 : 0], Math.round(255 * Math.sqrt(Math.abs(value) / largest))], 4 * j);
      });
      const canvas = make("canvas", { width: rows[i].length, height: 1, "aria-hidden": "true" });
      canvas.getContext("2d").putImageData(image, 0, 0);
      canvas.addEventListener("pointermove", (event) => readVector(i, columnAt(event, rows[i].length)));
      return make("div", { class: "vector" }, make("bdi", { title: piece, lang: SIDES[vectors.side].lang }, ...label(piece)), canvas);
    }),
  );
  if (vectors.at) readVector(...vectors.at);
}

// The column of a row of so many numbers that the pointer is over.
function columnAt(event, count) {
  const box = event.target.getBoundingClientRect();
  return Math.min(count - 1, Math.max(0, Math.floor((count * (event.clientX - box.left)) / box.width)));
}

// Read a number out and frame it.
function readVector(row, column) {
  vectors.at = [row, column];
  const numbers = numbersOf(vectors)[row];
  const values = { piece: quoted(SIDES[vectors.side].pieces[row]), column: column + 1, value: numbers[column].toFixed(3) };
  byId("vectors-reading").textContent = say("vector-reading", values);
  root.querySelector(".vector .frame")?.remove();
  const frame = make("i", { class: "frame" });
  frame.style.setProperty("--column", column);
  frame.style.setProperty("--columns", numbers.length);
  byId("vectors").children[row].append(frame);
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

function moveInVectors(event) {
  const rows = numbersOf(vectors);
  const next = stepInGrid(event, vectors.at ?? [0, 0], rows.length, rows[0].length);
  if (!next) return;
  readVector(...next);
  root.querySelector(".vector .frame").scrollIntoView({ block: "nearest", inline: "nearest" });
}

function listenToVectors() {
  byId("vectors-box").addEventListener("keydown", moveInVectors);
  byId("vectors-box").addEventListener("focus", () => readVector(...(vectors.at ?? [0, 0])));
}
