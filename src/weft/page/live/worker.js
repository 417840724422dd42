/* The model at work in a thread of its own. A request is {id, kind, ...}; what was asked before it is given up. */

// What waits for a moment in which newer requests are heard. A timer would wait for milliseconds when it is asked often.
function pauses() {
  const { port1: here, port2: there } = new MessageChannel();
  return () => new Promise((done) => {
    here.onmessage = done;
    there.postMessage(null);
  });
}

// Answer the messages of a page: `kinds` names, for each kind of request, what answers it: it gets the request, a
// function that tells something meanwhile, and one that says whether a newer request has come, for which it must wait.
function listen(scope, kinds) {
  const pause = pauses();
  let newest = 0;
  let last = Promise.resolve(); // one is answered, or given up, before the next begins
  scope.onmessage = ({ data: request }) => {
    newest = request.id;
    last = last.then(() => answer(request));
  };
  async function answer(request) {
    const tell = (answer) => scope.postMessage({ id: request.id, ...answer });
    const isOld = async () => {
      await pause();
      return request.id !== newest;
    };
    try {
      if (request.kind !== "load" && (await isOld())) return;
      const answer = await kinds[request.kind](request, tell, isOld);
      if (answer) tell({ ...answer, done: true });
    } catch (error) {
      tell({ done: true, error: error instanceof Diverged ? "diverged" : `${error.message ?? error}` });
    }
  }
}

const MOST_LINES = 1000; // that are remembered

// The translation of one line, told from row to row; null where a newer request has come.
async function translateLine(model, line, tell, isOld) {
  const plan = model.plan(line);
  const texts = [];
  let isWhole = !plan.cut;
  for (const row of plan.rows) {
    const found = model.search(row);
    isWhole &&= found.finished;
    texts.push(model.textOf(found));
    if (await isOld()) return null;
    tell(joinRows(plan, texts, model.card.joiner));
  }
  return { text: joinRows(plan, texts, model.card.joiner), isWhole, unknown: unknownWordsOf(model, line) ?? [] };
}

// What a page asks of a model alone: to load it, to translate, to write on, to classify.
function serveModel(scope) {
  let model;
  const lines = new Map(); // translations, by what was translated
  listen(scope, {
    load({ card, buffer }) {
      model = loadModel(card, buffer);
      return {};
    },
    // Each line is a text of its own; one that is known is not translated again.
    async translate({ text }, tell, isOld) {
      const done = [];
      const unknown = new Set();
      let isWhole = true;
      for (const line of text.split(/\r\n|[\r\n]/)) {
        const tellMore = (begun) => tell({ text: [...done, begun].join("\n") });
        const found = lines.get(line) ?? (await translateLine(model, line, tellMore, isOld));
        if (!found) return null;
        if (!lines.has(line) && lines.size >= MOST_LINES) lines.clear();
        lines.set(line, found);
        done.push(found.text);
        isWhole &&= found.isWhole;
        for (const word of found.unknown) unknown.add(word);
      }
      return { text: done.join("\n"), isWhole, unknown: [...unknown] };
    },
    async generate({ prompt, settings }, tell, isOld) {
      for (const { text } of model.pieces(prompt, settings)) {
        tell({ text });
        if (await isOld()) return null;
      }
      return {};
    },
    classify: ({ text }) => ({ ...model.classify(text), unknown: unknownWordsOf(model, text) ?? [], extent: model.known?.extentOf(text) ?? "none" }),
    async inside({ text, asked }, tell, isOld) {
      const steps = insideSteps(model, text, asked);
      for (;;) {
        const { done, value } = steps.next();
        if (done) return { data: value };
        if (value) tell(value);
        if (!(await isOld())) continue;
        steps.return();
        return null;
      }
    },
    // what the model answers with nothing switched off
    async whole({ text, asked }, tell, isOld) {
      const steps = insideSteps(model, text, { ...asked, off: {} });
      for (;;) {
        const { done, value } = steps.next();
        const said = value?.said ?? value?.early?.next?.[0].piece ?? value?.labels?.[0].label;
        if (said === undefined && !done && !(await isOld())) continue;
        steps.return();
        return said === undefined ? null : { said };
      }
    },
    stop: () => ({}),
  });
}

const INSIDES = { translation: insideTranslation, "language-modelling": insideLanguage, classification: insideClassification };

// The data of an inspection in steps (inside.js); `asked.off` are switched off.
function* insideSteps(model, text, asked) {
  if (model.model) switchOff(model.model, asked.off);
  try {
    return yield* INSIDES[model.card.task](model, text, asked);
  } finally {
    if (model.model) switchOff(model.model);
  }
}

// All of them at once.
function insideOf(model, text, asked) {
  const steps = insideSteps(model, text, asked);
  for (let early = {}; ; ) {
    const { done, value } = steps.next();
    if (done) return { ...early, ...value };
    early = value?.early ?? early;
  }
}
