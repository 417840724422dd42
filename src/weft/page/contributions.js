/* A classifier's label and its reasons; a language model's next token. */

let reasons = 0; // the label whose reasons are shown
const AGREEING = 0.3; // the least correlation of two measures that agree

function drawLabels() {
  if (data.task !== "classification") return;
  byId("labels-section").hidden = byId("reasons-section").hidden = false;
  const rows = data.labels.map(({ label, probability }) => ({ piece: label, id: label, probability }));
  drawChoices(byId("labels"), rows, "", rows[0].id);
  drawReasons();
}

function drawReasons() {
  const named = data.contributions.map(({ label }, i) => [i, label]);
  const choose = (i) => {
    reasons = i;
    drawReasons();
    root.querySelector('input[name="reasons"]:checked').focus();
  };
  byId("reasons-controls").replaceChildren(choices(say("label"), "reasons", named, reasons, choose));
  const { gradient, left_out, agreement } = data.contributions[reasons];
  const largest = Math.max(...gradient.map(Math.abs), ...left_out.map(Math.abs), 1e-9);
  const heads = ["token", "gradient", "left-out"].map((key) => make("th", { scope: "col" }, say(key)));
  const body = make("tbody");
  SIDES.text.pieces.forEach((piece, i) => {
    const name = make("th", { scope: "row", lang: SIDES.text.lang, title: piece }, make("bdi", {}, ...oldLabel(piece)));
    body.append(make("tr", {}, name, ...[gradient[i], left_out[i]].map((value) => reason(value, largest))));
  });
  byId("reasons").replaceChildren(make("thead", {}, make("tr", {}, ...heads)), body);
  const sentences = data.ngrams > 1 ? [say("reasons-ngrams", { ngrams: data.ngrams })] : [];
  const agree = agreement === null ? "no-agreement" : agreement < AGREEING ? "disagreement" : "agreement";
  sentences.push(say(agree, { value: agreement?.toFixed(2) }));
  byId("agreement").textContent = joined(sentences);
}

// A number with a bar to the right of the middle where it is above zero, to the left where it is below.
function reason(value, largest) {
  const filled = make("i", { class: value < 0 ? "below" : "above" });
  filled.style.setProperty("--share", Math.abs(value) / largest);
  return make("td", {}, make("span", { class: "both-ways", "aria-hidden": "true" }, filled), make("span", {}, value.toFixed(3)));
}

function drawNext() {
  if (data.task !== "language-modelling") return;
  byId("next-section").hidden = false;
  drawChoices(byId("next"), data.next, data.lang, data.next[0].id);
}
