/* The text as tokens and as vectors. */

let FIRST; // the place that is marked first

// A piece with its space mark, ▁, paler than its letters.
function oldLabel(piece) {
  if (!piece.startsWith("▁") || piece === "▁") return [visible(piece)];
  const space = make("span", { class: "space" }, "▁");
  return [space, visible(piece.slice(1))];
}

// A list of choices with their probabilities; `id` is the one that was taken.
function drawChoices(list, rows, lang, id = null) {
  list.lang = lang;
  list.replaceChildren(
    ...rows.map((choice) => {
      const item = make("li", choice.id === id ? { class: "chosen" } : {});
      const piece = make("b", { title: choice.piece }, ...oldLabel(choice.piece));
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
  const button = make("button", { class: "token", type: "button", tabindex: index === 0 ? "0" : "-1" }, make("bdi", {}, ...oldLabel(piece)), make("small", {}, `${id}`));
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
      return make("div", { class: "vector" }, make("bdi", { title: piece, lang: SIDES[vectors.side].lang }, ...oldLabel(piece)), canvas);
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
