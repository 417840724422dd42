/* The frame of the page: one sentence, one place in it, and sections that are all about that place. */

const MEAN = -1; // of the heads of a layer

let whole; // what the page was given: an inspection, or several
let data; // the inspection that is shown
let root = document; // what the page stands in: a document of its own, or a part of another
const isAlone = () => root === document;

// What is read or written: of a translation two sides, else one.
let SIDES;
let WRITTEN; // the side that has probabilities: target, text of a language model, none of a classifier
let READ; // the side that is read: source, or the text
let OFFSET; // the written token of step t is number t + OFFSET of its side: a language model's first one is given

// The one place. `step` counts the tokens that are written: of a language model, row `step` foretells token
// `step` + 1, the last row what comes next. `side` and `token` are the token that was chosen last. `kind`, `layer`
// and `head` (MEAN for the mean of all) are the map, `row` the query of an encoder's map, `key` a column of the map or
// null, `part` a row of the loom or null, `label` a classifier's, `tint` what colours the ribbon: "shares" or "head".
const place = {};

/* The sides */

function readText() {
  const isTranslation = data.task === "translation";
  SIDES = isTranslation
    ? { source: { ...data.source, lang: data.src_lang }, target: { ...data.target, lang: data.tgt_lang } }
    : { text: { ...data.tokens, lang: data.lang } };
  WRITTEN = { translation: "target", "language-modelling": "text" }[data.task] ?? null;
  READ = isTranslation ? "source" : "text";
  OFFSET = data.task === "language-modelling" ? 1 : 0;
  // the symbol that a text begins with is its start, whatever the model calls it
  if (data.start) SIDES.text.pieces = ["<bos>", ...SIDES.text.pieces.slice(1)];
  KINDS = kindsOf();
}

const numSteps = () => (WRITTEN ? SIDES[WRITTEN].pieces.length : 0);

// The token that a step writes: the last step of a language model writes what is most probable next.
function writtenAt(step) {
  const { pieces, ids } = SIDES[WRITTEN];
  const index = step + OFFSET;
  if (index < pieces.length) return { piece: pieces[index], id: ids[index], index };
  return { piece: data.next[0].piece, id: data.next[0].id, index };
}

// What a decoder has read last at a step.
const readAt = (step) => (step + OFFSET > 0 ? SIDES[WRITTEN].pieces[step + OFFSET - 1] : "<bos>");

// Its probability.
function probabilityAt(step) {
  const index = step + OFFSET;
  return index < SIDES[WRITTEN].pieces.length ? SIDES[WRITTEN].probabilities[step] : data.next[0].probability;
}

/* The maps of attention */

let KINDS; // name: {rows, cols: sides; queries, keys: pieces; offset: of keys before the first token of the side}

function kindsOf() {
  const all = {
    translation: { cross: ["target", "source"], encoder: ["source", "source"], decoder: ["target", "target"] },
    "language-modelling": { decoder: ["text", "text"] },
    classification: { encoder: ["text", "text"] },
  }[data.task];
  const kinds = {};
  for (const [name, [rows, cols]] of Object.entries(all)) {
    const { shape } = arrayOf(data.attention[name]) ?? { shape: [0] };
    if (!shape[0]) continue; // recurrent models look across alone
    const { pieces } = SIDES[cols];
    const isShifted = name === "decoder" && data.task === "translation"; // what was written before, the start at first
    const keys = isShifted ? ["<bos>", ...pieces.slice(0, -1)] : pieces;
    kinds[name] = { rows, cols, queries: SIDES[rows].pieces, keys, offset: isShifted ? 1 : 0, layers: shape[0], heads: shape[1] };
  }
  return kinds;
}

// What can be shown of each layer of a kind: every head, and of several their mean.
const headsOf = (kind) => [...(KINDS[kind].heads > 1 ? [MEAN] : []), ...Array(KINDS[kind].heads).keys()];

function nameOf(kind, layer, head) {
  const name = KINDS[kind].heads === 1 ? "name-layer" : head === MEAN ? "name-mean" : "name-head";
  return say(name, { layer: layer + 1, head: head + 1 });
}

// The weights of a map, {shape: [queries, keys], values}.
function mapOf(kind, layer, head) {
  const maps = arrayOf(data.attention[kind]);
  if (head !== MEAN) return within(maps, layer, head);
  const [, heads, queries, keys] = maps.shape;
  const values = new Float32Array(queries * keys);
  for (let h = 0; h < heads; h++) {
    const of = within(maps, layer, h).values;
    for (let i = 0; i < values.length; i++) values[i] += of[i] / heads;
  }
  return { shape: [queries, keys], values };
}

// Whether a query may look at a key: the future cannot be seen.
const isVisible = (kind, row, key) => kind !== "decoder" || key <= row;

// Whether a key is of a token that is switched off, in a page whose model is inside of it.
const isOffKey = (kind, key) => isOffIn(KINDS[kind].cols, key);

// What is to be said of a head that is switched off, or of all looks of its layer; null where they are not.
function offSaid(kind, layer, head) {
  const { heads = [], parts = [] } = data.off ?? {};
  const part = kind === "cross" ? "decoder" : kind;
  if (parts.includes(`${part}.${layer}.${kind === "cross" ? "cross" : "self"}`)) return say("off-part");
  return heads.includes(`${kind}.${layer}.${head}`) ? say("off-head") : null;
}

// The query of a kind of map that the place stands at.
const rowIn = (kind) => (KINDS[kind].rows === WRITTEN ? place.step : place.row);

/* The place */

// The place that a text begins with: of what stands between documents a model may know nothing, so not right after it.
function firstPlace() {
  const step = data.start === "between" && numSteps() > 2 ? 1 : 0;
  const kind = place.kind in KINDS ? place.kind : (Object.keys(KINDS)[0] ?? null);
  const { layers = 1, heads = 1 } = KINDS[kind] ?? {};
  const layer = Math.min(place.layer ?? layers - 1, layers - 1);
  const head = Math.min(place.head ?? firstHead(kind, layer), heads - 1);
  const side = WRITTEN ?? READ;
  const token = WRITTEN ? step + OFFSET : 0;
  return { step, side, token, kind, layer, head, row: 0, key: null, part: null, label: 0, tint: hasShares() ? "shares" : "head" };
}

// The first head of a layer that tells something.
function firstHead(kind, layer) {
  const heads = kind ? headsOf(kind).filter((head) => head !== MEAN) : [];
  return heads.find((head) => !isFlat(kind, layer, head)) ?? 0;
}

const hasShares = () => Boolean(data.shares?.tokens || data.shares?.written?.decoder || (data.task === "classification" && data.contributions?.length));

const clamped = (value, count) => Math.min(Math.max(value, 0), count - 1);

// Where changes lead, with all that follows from them.
function settled(changes) {
  const next = { ...place, ...changes };
  const isStep = "step" in changes && !("token" in changes);
  if (isStep && WRITTEN) Object.assign(next, { side: WRITTEN, token: clamped(next.step, numSteps()) + OFFSET });
  if (!Object.hasOwn(SIDES, next.side)) next.side = WRITTEN ?? READ;
  next.token = clamped(next.token, SIDES[next.side].pieces.length + (next.side === WRITTEN ? OFFSET : 0));
  if (next.side === WRITTEN) next.token = Math.max(next.token, OFFSET); // what is given was not written
  if (next.side === WRITTEN) next.step = next.token - OFFSET;
  next.step = clamped(next.step, Math.max(numSteps(), 1));
  if (next.side === READ && READ !== WRITTEN && "token" in changes) next.row = next.token;
  return settledInMap(next, changes);
}

function settledInMap(next, changes) {
  const map = KINDS[next.kind];
  if (!map) return next;
  next.layer = clamped(next.layer, map.layers);
  next.head = Math.max(clamped(next.head + 1, map.heads + 1) - 1, map.heads > 1 ? MEAN : 0);
  next.row = clamped(next.row, SIDES[READ].pieces.length);
  if ("head" in changes || "layer" in changes || "kind" in changes) next.tint = changes.tint ?? "head";
  const isSource = next.side === READ && READ !== WRITTEN;
  if ("token" in changes && !("key" in changes)) next.key = isSource && next.kind === "cross" ? next.token : null;
  if (next.kind !== place.kind && !("key" in changes)) next.key = null;
  const row = map.rows === WRITTEN ? next.step : next.row;
  if (next.key !== null && !(next.key >= 0 && next.key < map.keys.length && isVisible(next.kind, row, next.key))) next.key = null;
  return next;
}

// Change the place: every section that is about what changed follows, those in sight at once.
function go(changes) {
  const next = settled(changes);
  const changed = new Set(Object.keys(next).filter((name) => next[name] !== place[name]));
  if (!changed.size) return;
  Object.assign(place, next);
  const seen = new Set(shownSections.filter(({ id }) => isSeen(byId(id)))); // asked while nothing has changed yet
  writeFragment();
  placeRibbon();
  for (const one of shownSections) {
    if (undrawn.has(one)) continue;
    behind.set(one, new Set([...(behind.get(one) ?? []), ...changed]));
    if (seen.has(one) || isForPaper()) follow(one);
    else if (!inSight.has(byId(one.id))) whenSeen(byId(one.id), () => follow(one)); // what is near follows in time
  }
  drawInTime();
}

// Sections that are not in sight, and what has changed since they were: they follow when they come there, or while there
// is nothing else to do.
const behind = new Map();

function follow(one) {
  const changed = behind.get(one);
  behind.delete(one);
  if (changed && !undrawn.has(one)) one.place?.(changed);
}

function followAll() {
  for (const one of behind.keys()) follow(one);
}

/* The place in the address, so that a link opens it: counted from 1, as it is shown */

const COUNTED = { t: "step", n: "token", l: "layer", h: "head", r: "row", c: "key", y: "label" };
const NAMED = { s: "side", k: "kind", p: "part", by: "tint" };

function fieldsOfAddress() {
  const fields = new URLSearchParams();
  for (const [letter, name] of Object.entries(NAMED)) if (place[name] !== null) fields.set(letter, place[name]);
  for (const [letter, name] of Object.entries(COUNTED)) if (place[name] !== null) fields.set(letter, place[name] + 1);
  if (whole.inspections) fields.set("i", whole.inspections.indexOf(data) + 1);
  if (chosenLanguage) fields.set("lang", chosenLanguage);
  return fields;
}

function writeFragment() {
  if (!isAlone() || location.protocol === "about:") return; // a frame has no address of its own
  writtenFragment = `#${fieldsOfAddress()}`;
  history.replaceState(null, "", writtenFragment);
}

let writtenFragment = "";
let chosenLanguage = null; // where one was: else it is the browser's

// Take the language of the address, if it names one; return whether that is another one than before.
function takeLanguage() {
  const found = new URLSearchParams(location.hash.slice(1)).get("lang");
  if (!Object.hasOwn(WORDS, found ?? "") || found === language) return false;
  language = chosenLanguage = found;
  return true;
}

function readFragment() {
  if (!isAlone()) return {};
  const fields = new URLSearchParams(location.hash.slice(1));
  const found = {};
  for (const [letter, name] of Object.entries(NAMED)) if (fields.has(letter)) found[name] = fields.get(letter);
  for (const [letter, name] of Object.entries(COUNTED)) {
    const value = Number(fields.get(letter));
    if (fields.has(letter) && Number.isInteger(value)) found[name] = value - 1;
  }
  if (found.kind && !Object.hasOwn(KINDS, found.kind)) delete found.kind;
  return found;
}

/* Sections */

const allSections = [];
let shownSections = [];

// A section of the page: {id, order, applies(data), draw(box), place?(changed), repaint?()}. Its heading is
// say(`${id}-title`), its first paragraph say(`${id}-prose`) where there is one; both may be told anew by `title`
// and `prose`.
function section(one) {
  allSections.push(one);
  allSections.sort((a, b) => a.order - b.order);
}

const title = (id, ...nodes) => byId(`${id}-title`).replaceChildren(...nodes);
const prose = (id, ...nodes) => byId(`${id}-prose`).replaceChildren(...nodes);

function drawSections() {
  shownSections = sectionsOf(data);
  forgetUnseen();
  byId("rail-map").replaceChildren();
  byId("sections").replaceChildren(...shownSections.map(frameOf));
  undrawn.clear();
  behind.clear();
  for (const one of shownSections) undrawn.add(one);
  if (isForPaper()) return drawAll();
  drawSection(shownSections[0]); // what is seen first
  for (const one of undrawn) whenSeen(byId(one.id), () => drawSection(one));
  drawInTime();
}

const sectionsOf = (shown) => allSections.filter((one) => one.applies(shown));

// A section is drawn when it comes near; the others one after the other while there is nothing else to do, so that
// soon all of it can be searched and read aloud.
const undrawn = new Set();
let isHeld = false; // while a live page has not all data of a text, nothing more is drawn of it

function drawSection(one) {
  if (isHeld || !undrawn.delete(one)) return;
  const box = byId(`${one.id}-box`);
  box.classList.remove("undrawn");
  box.parentNode.inert = false;
  box.replaceChildren();
  behind.delete(one);
  one.draw(box);
  one.place?.(new Set(Object.keys(place)));
}

function drawAll() {
  for (const one of undrawn) drawSection(one);
  followAll();
}

const AT_LEISURE = 200; // milliseconds before each, in which the page is seen and heard; and the longest wait for an idle one
const whenIdle = (work) => (globalThis.requestIdleCallback ? requestIdleCallback(work, { timeout: AT_LEISURE }) : work());
let isInTime = false; // whether one is to be drawn in time
function drawInTime() {
  if (isInTime || isHeld || !(undrawn.size || behind.size)) return;
  isInTime = true;
  const drawNext = () => {
    isInTime = false;
    followAll();
    const [next] = undrawn;
    if (next) drawSection(next);
    drawInTime();
  };
  setTimeout(() => whenIdle(drawNext), AT_LEISURE);
}

function frameOf({ id }) {
  const heading = make("h2", { id: `${id}-title`, tabindex: "-1" }, say(`${id}-title`));
  const said = isFixed(`${id}-prose`) ? say(`${id}-prose`) : "";
  const text = make("p", { class: "prose", id: `${id}-prose` }, said);
  return make("section", { id, "aria-labelledby": `${id}-title` }, heading, text, make("div", { class: "box undrawn", id: `${id}-box` }));
}

// The way to a section; the place in the address stays.
function goToSection(id) {
  const one = shownSections.find((shown) => shown.id === id);
  drawSection(one);
  follow(one);
  const target = byId(`${id}-title`);
  target.focus({ preventScroll: true });
  bringToTop(target);
}

// Sections on the way have their true heights only when they come near: so once more with these.
function bringToTop(target, times = 3) {
  target.scrollIntoView({ block: "start" });
  if (times) requestAnimationFrame(() => bringToTop(target, times - 1));
}

function drawRail() {
  const link = ({ id }) =>
    make("a", { href: `#${id}`, "data-to": id, "aria-label": say(`${id}-title`), title: say(`${id}-title`) }, make("span", {}, say(hasWord(`${id}-rail`) ? `${id}-rail` : `${id}-title`)));
  byId("rail").setAttribute("aria-label", say("rail"));
  byId("rail").replaceChildren(...shownSections.map(link));
  watchSections();
}

// "You are here": the section whose heading is the last one above the middle of the window.
let watching = null;
function watchSections() {
  watching?.disconnect();
  const inView = new Set();
  watching = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) inView[isIntersecting ? "add" : "delete"](target.id);
      const here = shownSections.find(({ id }) => inView.has(id))?.id;
      for (const link of byId("rail").children) {
        if (link.dataset.to === here) link.setAttribute("aria-current", "location");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-35% 0px -60% 0px" },
  );
  for (const { id } of shownSections) watching.observe(byId(id));
}

/* The page as a whole, in the language that is chosen */

// Show an inspection, or several, in `where`, which has the elements of the page. Another one is seen at the same place,
// as far as it has it.
function begin(given, where, chosen = language) {
  whole = given;
  root = where;
  language = chosen;
  palette.clear();
  turnTo(whole.inspections ? firstOfSeveral() : 0);
}

// Show one of several inspections.
function turnTo(number) {
  data = whole.inspections ? whole.inspections[number] : whole;
  findPlace();
  draw();
}

// The place that the address names, else the first one.
function findPlace() {
  readText();
  Object.assign(place, firstPlace());
  Object.assign(place, settled(readFragment()));
}

function draw() {
  if (isAlone()) nameDocument();
  drawHead();
  drawSections();
  drawRail();
}

// All that stands above the sections.
function drawHead() {
  byId("title").textContent = say(`title-${data.task}`);
  drawTexts();
  drawNotes();
  if (whole.inspections) drawTurner();
  drawRibbon();
}

// What only a page of its own has: its title, and the choice of its language.
function nameDocument() {
  const { documentElement: all } = document;
  if (all.lang !== language) all.lang = language; // to set it, even to the same, styles the whole page anew
  document.title = `${say(`title-${data.task}`)}: ${data.text}`;
  const speakIn = (chosen) => {
    language = chosenLanguage = chosen;
    writeFragment();
    draw();
    drawAll(); // what could be read before can be read at once
    root.querySelector('input[name="language"]:checked').focus();
  };
  const languages = [["en", "English"], ["zh", "中文"]];
  byId("languages").replaceChildren(choices(say("language"), "language", languages, language, speakIn));
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

function drawNotes() {
  const notes = [];
  const limit = { translation: data.max_src_len - 1, "language-modelling": data.max_len - 1, classification: data.max_len };
  if (data.segments > 1) notes.push(say("note-segments", { count: data.segments }));
  if (data.cut) notes.push(say("note-cut", { count: limit[data.task] }));
  if (data.finished === false) notes.push(say("note-unfinished"));
  if (data.tgt_cut) notes.push(say("note-long", { count: data.target.ids.length }));
  if (data.unknown_words?.length) notes.push(say("note-unknown", { words: unknownWords() }));
  byId("notes").textContent = joined(notes);
  byId("notes").hidden = notes.length === 0;
}

// The words that training never had; of many the first ones.
const MOST_UNKNOWN = 10;
function unknownWords() {
  const named = data.unknown_words.slice(0, MOST_UNKNOWN).map((word) => `“${word}”`);
  const more = data.unknown_words.length - named.length;
  return joined(named, language === "zh" ? "、" : ", ") + (more ? say("unknown-more", { more }) : "");
}

// Paint again what has its colours from a canvas.
function repaint() {
  palette.clear();
  for (const one of shownSections) if (!undrawn.has(one)) one.repaint?.();
}

// Listen, once, whatever is shown.
function listen() {
  byId("ribbon").addEventListener("click", chooseInRibbon);
  byId("ribbon").addEventListener("keydown", moveInRibbon);
  root.addEventListener("keydown", moveSteps);
  byId("rail").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    goToSection(link.dataset.to);
  });
  if (isAlone()) addEventListener("hashchange", followFragment);
}

function followFragment() {
  if (location.hash === writtenFragment) return;
  if (takeLanguage()) draw();
  if (whole.inspections) turn(firstOfSeveral());
  go(readFragment());
}
