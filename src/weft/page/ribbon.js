/* The ribbon: the tokens that were read and written, always in view, with the place in them. */

function drawRibbon() {
  const lines = Object.keys(SIDES).map(ribbonLine);
  const step = (name, sign, by) =>
    make("button", { type: "button", class: "step", "data-by": by, "aria-label": say(name), title: say(name) }, sign);
  const buttons = WRITTEN ? [make("div", { class: "steps" }, step("before", "◀", -1), make("output", { id: "step-count" }), step("after", "▶", 1))] : [];
  const foot = make("div", { class: "ribbon-foot" }, make("p", { id: "ribbon-said", "aria-live": "polite" }), ...buttons, make("p", { class: "on-paper", id: "paper-place" }));
  byId("ribbon").setAttribute("aria-label", say("ribbon"));
  byId("ribbon").replaceChildren(...lines, foot);
  placeRibbon();
}

function ribbonLine(side) {
  const { lang, pieces } = SIDES[side];
  const tokens = make("div", { class: `line of-${roleOfSide(side)}`, id: `ribbon-${side}`, lang, role: "toolbar", "aria-label": say(side), "data-side": side });
  tokens.append(...pieces.map((piece, index) => ribbonToken(piece, side, index)));
  if (side === WRITTEN && OFFSET) tokens.append(ribbonToken(data.next[0].piece, side, pieces.length, "token next"));
  return make("div", { class: "ribbon-line" }, make("span", { class: "lang" }, lang === "und" ? "" : lang), tokens);
}

function ribbonToken(piece, side, index, kind = "token") {
  return make("button", { type: "button", class: kind, tabindex: "-1", "data-index": index }, label(piece));
}

/* Where the place is, and the tint of every token */

function placeRibbon() {
  const { tints, said } = ribbonTints();
  for (const side of Object.keys(SIDES)) placeLine(side, tints[side]);
  byId("ribbon-said").replaceChildren(...said);
  if (!WRITTEN) return;
  const [before, after] = root.querySelectorAll("#ribbon .step");
  before.disabled = place.step === 0;
  after.disabled = place.step === numSteps() - 1;
  const counted = { step: place.step + 1, steps: numSteps() };
  byId("step-count").textContent = say("step-of", counted);
  byId("paper-place").textContent = say("place-on-paper", { ...counted, piece: quoted(writtenAt(place.step).piece) });
}

function placeLine(side, tint) {
  const line = byId(`ribbon-${side}`);
  const chosen = side === WRITTEN ? place.step + OFFSET : side === place.side || READ !== WRITTEN ? pointedAt(side) : null;
  const stop = side === place.side ? place.token : (chosen ?? 0);
  const faintFrom = side === WRITTEN ? place.step + OFFSET + 1 : Infinity; // not yet written
  [...line.children].forEach((token, index) => {
    const value = tint?.[index] ?? 0;
    const look = [shade(Math.abs(value)), value < 0, index === chosen, index >= faintFrom, index === stop, isOffIn(side, index)].join();
    if (looksOfTokens.get(token) === look) return;
    looksOfTokens.set(token, look);
    token.style.setProperty("--shade", shade(Math.abs(value)));
    token.classList.toggle("below", value < 0);
    token.classList.toggle("chosen", index === chosen);
    token.classList.toggle("later", index >= faintFrom);
    token.classList.toggle("off", isOffIn(side, index));
    token.tabIndex = index === stop ? 0 : -1;
    if (index === chosen) token.setAttribute("aria-current", "true");
    else token.removeAttribute("aria-current");
  });
  if (chosen !== null) toBeSeen.set(line, line.children[chosen]);
  if (toBeSeen.size === 1) requestAnimationFrame(keepInLines);
}

const looksOfTokens = new WeakMap(); // as they are drawn: most stay as they were
const isOffIn = (side, index) => side === READ && Boolean(data.off?.source.includes(index));

// The token of the side that is read which the place points at, if any.
function pointedAt(side) {
  if (place.side === side) return place.token;
  const map = KINDS[place.kind];
  if (map?.cols === side && place.key !== null) return place.key - map.offset;
  return map?.rows === side && map.rows !== WRITTEN ? place.row : null;
}

// What is to be seen of each line: scrolled to once a frame, as to ask where a token stands lays out the page.
const toBeSeen = new Map();
function keepInLines() {
  for (const [line, token] of toBeSeen) keepInLine(line, token);
  toBeSeen.clear();
}

function keepInLine(line, token) {
  if (!token?.isConnected) return;
  const room = 48;
  const start = token.offsetLeft - line.offsetLeft;
  if (start - room < line.scrollLeft) line.scrollLeft = start - room;
  const end = start + token.offsetWidth + room - line.clientWidth;
  if (end > line.scrollLeft) line.scrollLeft = end;
}

// How strongly each token of each side is tinted, from -1 to 1, and a sentence that says by what.
function ribbonTints() {
  if (data.task === "classification" && place.tint === "shares" && hasShares()) return reasonTints();
  if (place.tint === "shares" && sharesHere()) return shareTints();
  return place.kind ? headTints() : { tints: {}, said: [] };
}

function headTints() {
  const { cols, rows, queries, offset } = KINDS[place.kind];
  const map = mapOf(place.kind, place.layer, place.head);
  const row = rowIn(place.kind);
  const weights = [...within(map, row).values];
  const looker = rows === WRITTEN ? writtenAt(row).piece : queries[row];
  const key = rows === WRITTEN ? (OFFSET ? "tint-foretells" : "tint-writes") : "tint-head";
  const said = say(key, { name: nameOf(place.kind, place.layer, place.head), query: quoted(looker) });
  return { tints: { [cols]: weights.slice(offset) }, said: [said] };
}

// What the tokens before, or of the source, wrote of the chosen one; null where this is not known.
function sharesHere() {
  const { tokens, written } = data.shares ?? {};
  if (data.task === "translation") return tokens ? [...within(arrayOf(tokens), place.step).values] : null;
  return written?.decoder ? summed(written.decoder, place.step) : null;
}

// The same as fractions of all that speaks for it.
function shareTints() {
  const values = asFractions(sharesHere());
  return { tints: { [READ]: values }, said: [say(values.some((value) => value < 0) ? "tint-shares-both" : "tint-shares", { piece: quoted(writtenAt(place.step).piece) })] };
}

// Sums over layers and heads of what was written at a step, for every key.
function summed(leaf, step) {
  const all = arrayOf(leaf);
  const [layers, heads, , keys] = all.shape;
  const sums = new Array(keys).fill(0);
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      within(all, layer, head, step).values.forEach((value, key) => (sums[key] += value));
    }
  }
  return sums;
}

function asFractions(values) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const total = Math.max(values.reduce((sum, value) => sum + Math.max(value, 0), 0), most);
  return values.map((value) => value / total);
}

// What each token adds to the label that is chosen.
function reasonTints() {
  const reasons = data.contributions[Math.min(place.label, data.contributions.length - 1)];
  const values = [...(arrayOf(data.shares?.tokens) ? within(arrayOf(data.shares.tokens), place.label).values : reasons.left_out)];
  const most = fullReason(values);
  return { tints: { text: values.map((value) => value / most) }, said: [say("tint-reasons", { label: reasons.label })] };
}

/* By pointer and by keyboard */

function chooseInRibbon(event) {
  const step = event.target.closest(".step");
  if (step) return go({ step: place.step + Number(step.dataset.by) });
  const token = event.target.closest(".token");
  if (token) go({ side: token.parentNode.dataset.side, token: Number(token.dataset.index) });
}

// In a line the arrows lead from token to token.
function moveInRibbon(event) {
  const line = event.target.closest(".line");
  if (!line || event.key === "ArrowUp" || event.key === "ArrowDown") return;
  const from = Number(event.target.dataset.index);
  const next = stepInGrid(event, [0, from], 1, line.children.length);
  if (!next) return;
  go({ side: line.dataset.side, token: next[1] });
  line.children[next[1]].focus({ preventScroll: true });
}

// Everywhere else, where the keys have no other use, left and right are the step before and the next one.
function moveSteps(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || !WRITTEN) return;
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.target.closest?.("input, select, textarea, [contenteditable], [tabindex='0'], [role=radio]")) return;
  event.preventDefault();
  go({ step: clamped(place.step + by, numSteps()) });
}
