/* The page as a whole, in the language that is chosen. */

function drawNotes() {
  const notes = [];
  const limit = { translation: data.max_src_len - 1, "language-modelling": data.max_len - 1, classification: data.max_len };
  if (data.segments > 1) notes.push(say("note-segments", { count: data.segments }));
  if (data.cut) notes.push(say("note-cut", { count: limit[data.task] }));
  if (data.finished === false) notes.push(say("note-unfinished"));
  byId("notes").textContent = notes.join(" ");
  byId("notes").hidden = notes.length === 0;
}

function drawLanguages() {
  const speak = (chosen) => {
    language = chosen;
    draw();
    document.querySelector('input[name="language"]:checked').focus();
  };
  byId("languages").replaceChildren(choices(say("language"), "language", [["en", "English"], ["zh", "中文"]], language, speak));
}

function draw() {
  document.documentElement.lang = language;
  document.title = `${say(`title-${data.task}`)}: ${data.text}`;
  byId("title").textContent = say(`title-${data.task}`);
  for (const element of document.querySelectorAll("[data-say]")) element.textContent = say(element.dataset.say);
  drawLanguages();
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

listenToVectors();
listenToMaps();
listenToBeam();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  paintVectors();
  if (!shown.kind) return;
  drawOverview();
  checkControls();
});
draw();
