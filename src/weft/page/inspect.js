/* The page as a whole, in the language that is chosen. */

// Show an inspection in `where`, which has the elements of the page; it listens once, whatever it shows.
function begin(inspection, where, chosen = language) {
  data = inspection;
  root = where;
  language = chosen;
  reasons = 0;
  readText();
  startMaps();
  startBeam();
  draw();
}

function drawNotes() {
  const notes = [];
  const limit = { translation: data.max_src_len - 1, "language-modelling": data.max_len - 1, classification: data.max_len };
  if (data.segments > 1) notes.push(say("note-segments", { count: data.segments }));
  if (data.cut) notes.push(say("note-cut", { count: limit[data.task] }));
  if (data.finished === false) notes.push(say("note-unfinished"));
  if (data.tgt_cut) notes.push(say("note-long", { count: data.target.ids.length }));
  byId("notes").textContent = joined(notes);
  byId("notes").hidden = notes.length === 0;
}

// What only a page of its own has: its title, and the choice of its language.
function nameDocument() {
  document.documentElement.lang = language;
  document.title = `${say(`title-${data.task}`)}: ${data.text}`;
  drawLanguages();
}

function drawLanguages() {
  const speak = (chosen) => {
    language = chosen;
    draw();
    root.querySelector('input[name="language"]:checked').focus();
  };
  byId("languages").replaceChildren(choices(say("language"), "language", [["en", "English"], ["zh", "中文"]], language, speak));
}

function draw() {
  byId("title").textContent = say(`title-${data.task}`);
  for (const element of root.querySelectorAll("[data-say]")) element.textContent = say(element.dataset.say);
  if (root === document) nameDocument();
  drawTexts();
  drawNotes();
  drawSentences();
  drawLabels();
  drawNext();
  drawVectors();
  drawAttention();
  drawSteps();
  drawBeam();
  drawAlignment();
  if (!shown.kind) point(pinned);
}

// Paint again what has its colours from a canvas.
function repaint() {
  paintVectors();
  if (!shown.kind) return;
  drawOverview();
  checkControls();
}

function listen() {
  listenToVectors();
  listenToMaps();
  listenToBeam();
}
