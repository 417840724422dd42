/* The sections as they were before the frame. */

function beginOld() {
  Object.assign(vectors, { side: Object.keys(SIDES)[0], at: null });
  FIRST = OFFSET + (data.start === "between" && SIDES[WRITTEN].ids.length > OFFSET + 1 ? 1 : 0);
  startMaps();
}

function drawOld() {
  for (const element of root.querySelectorAll("[data-say]")) element.textContent = say(element.dataset.say);
  drawSentences();
  drawVectors();
  drawAttention();
  if (!shown.kind) point(pinned);
}

function repaintOld() {
  paintVectors();
  if (!shown.kind) return;
  drawOverview();
  checkControls();
}

function listenOld() {
  listenToVectors();
  listenToMaps();
}
