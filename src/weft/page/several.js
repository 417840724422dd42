/* Several inspections in one page: steps of a run, two models or several sentences, and what turns from one to another. */

speak({
  en: {
    "turner-checkpoints": "Step of training",
    "turner-models": "Model",
    "turner-sentences": "Sentence",
    "turner-play": "Play",
    "turner-stop": "Stop",
    "turner-step": "step {step} of {last}",
    "turner-finished": "step {step}: the finished model",
    "turner-forced": "{name}, made to write what {first} wrote",
  },
  zh: {
    "turner-checkpoints": "训练步数",
    "turner-models": "模型",
    "turner-sentences": "句子",
    "turner-play": "播放",
    "turner-stop": "停止",
    "turner-step": "第 {step} 步，共 {last} 步",
    "turner-finished": "第 {step} 步：训练好的模型",
    "turner-forced": "{name}，被要求写出 {first} 的译文",
  },
});

const TURN_MS = 900; // between two steps that are played
const SAME = ["model", "cuts"]; // what is the same at every step, and is kept once
let playing = null;

const numberShown = () => whole.inspections.indexOf(data);
const isLearning = () => whole.kind === "checkpoints";

// The inspection that is seen first: that of the address, else the finished model, else the first.
function firstOfSeveral() {
  if (isLearning()) shareWhatIsSame();
  const asked = Number(new URLSearchParams(isAlone() ? location.hash.slice(1) : "").get("i")) - 1;
  return whole.inspections[asked] ? asked : (whole.finished ?? 0);
}

function shareWhatIsSame() {
  const final = whole.inspections[whole.finished];
  for (const each of whole.inspections) for (const key of SAME) each[key] ??= final[key];
}

// What an inspection is called.
function nameOfNumber(number) {
  if (isLearning()) {
    const [step, last] = [whole.steps[number], whole.steps.at(-1)].map(grouped);
    return say(number === whole.finished ? "turner-finished" : "turner-step", { step, last });
  }
  const shown = shortNames();
  return number === 2 && whole.kind === "models" ? say("turner-forced", { name: shown[1], first: shown[0] }) : shown[number];
}

// The names, of folders as much of their ends as tells them apart.
function shortNames() {
  const { names, kind } = whole;
  if (kind !== "models") return names;
  const parts = names.map((name) => name.replace(/\/+$/, "").split("/"));
  const longest = Math.max(...parts.map(({ length }) => length));
  for (let count = 1; count < longest; count++) {
    const ends = parts.map((each) => each.slice(-count).join("/"));
    if (ends[0] !== ends[1]) return ends;
  }
  return names;
}

// Turn to another inspection; what is in view stays where it is.
function turn(number) {
  if (number === numberShown() || !whole.inspections[number]) return;
  const kept = inView();
  turnTo(number);
  drawAll(); // so that all is as high as it will be
  writeFragment();
  if (kept && byId(kept.id)) scrollBy({ top: byId(kept.id).getBoundingClientRect().top - kept.top, behavior: "instant" });
}

// The section at the top of the window, and where it stands.
function inView() {
  for (const one of byId("sections").children) {
    const { top, bottom } = one.getBoundingClientRect();
    if (bottom > innerHeight / 3) return { id: one.id, top };
  }
  return null;
}

/* What turns */

// It stands above the ribbon and is made once: what is dragged must not be replaced.
function drawTurner() {
  const box = byId("turner");
  box.hidden = whole.inspections.length < 2;
  if (box.hidden) return;
  if (box.dataset.language !== language) {
    box.dataset.language = language;
    box.replaceChildren(...(isLearning() ? stepTurner() : [nameTurner()]));
  }
  if (isLearning()) placeStepTurner();
  else for (const input of box.querySelectorAll("input")) input.checked = Number(input.value) === numberShown();
}

function nameTurner() {
  const options = whole.inspections.map((_, number) => [number, nameOfNumber(number)]);
  return choices(say(`turner-${whole.kind}`), "turner", options, numberShown(), (number) => turn(number));
}

function stepTurner() {
  const last = whole.inspections.length - 1;
  const slider = make("input", { type: "range", id: "turner-step", min: 0, max: last, step: 1, autocomplete: "off" });
  slider.addEventListener("input", () => {
    const number = Number(slider.value); // what stops playing sets it back
    stopPlaying();
    turn(number);
  });
  const label = make("label", { for: "turner-step" }, say("turner-checkpoints"));
  const play = make("button", { type: "button", class: "step", id: "turner-play", click: playOrStop });
  return [label, slider, play, make("output", { id: "turner-said", for: "turner-step" })];
}

function placeStepTurner() {
  const name = nameOfNumber(numberShown());
  const slider = byId("turner-step");
  slider.value = numberShown();
  slider.setAttribute("aria-valuetext", name);
  byId("turner-said").textContent = name;
  const word = say(playing ? "turner-stop" : "turner-play");
  byId("turner-play").textContent = playing ? "■" : "▶";
  for (const attribute of ["aria-label", "title"]) byId("turner-play").setAttribute(attribute, word);
}

// Play from where it stands; at the end, from the beginning.
function playOrStop() {
  if (playing) return stopPlaying();
  playing = setInterval(playOn, TURN_MS);
  if (numberShown() === whole.inspections.length - 1) turn(0);
  else playOn();
}

function playOn() {
  turn(numberShown() + 1);
  if (numberShown() === whole.inspections.length - 1) stopPlaying();
}

function stopPlaying() {
  if (!playing) return;
  clearInterval(playing);
  playing = null;
  placeStepTurner();
}
