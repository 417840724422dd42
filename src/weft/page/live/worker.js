/* The model at work in a thread of its own. A request is {id, kind, ...}; what was asked before it is given up. */

// Wait for a moment in which newer requests are heard.
const pause = () => new Promise((done) => setTimeout(done));

// Answer the messages of a page: `kinds` names, for each kind of request, what answers it: it gets the request, a
// function that tells something meanwhile, and one that says whether a newer request has come, for which it must wait.
function listen(scope, kinds) {
  let newest = 0;
  scope.onmessage = async ({ data: request }) => {
    newest = request.id;
    const tell = (answer) => scope.postMessage({ id: request.id, ...answer });
    const isOld = async () => {
      await pause();
      return request.id !== newest;
    };
    try {
      if (await isOld()) return;
      const answer = await kinds[request.kind](request, tell, isOld);
      if (answer) tell({ ...answer, done: true });
    } catch (error) {
      tell({ done: true, error: error instanceof Diverged ? "diverged" : `${error.message ?? error}` });
    }
  };
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
  return { text: joinRows(plan, texts, model.card.joiner), isWhole };
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
      let isWhole = true;
      for (const line of text.split(/\r\n|[\r\n]/)) {
        const tellMore = (begun) => tell({ text: [...done, begun].join("\n") });
        const found = lines.get(line) ?? (await translateLine(model, line, tellMore, isOld));
        if (!found) return null;
        if (lines.size >= MOST_LINES) lines.clear();
        lines.set(line, found);
        done.push(found.text);
        isWhole &&= found.isWhole;
      }
      return { text: done.join("\n"), isWhole };
    },
    async generate({ prompt, settings }, tell, isOld) {
      for (const { text } of model.pieces(prompt, settings)) {
        tell({ text });
        if (await isOld()) return null;
      }
      return {};
    },
    classify: ({ text }) => model.classify(text),
    inside: ({ text, asked }, tell) => ({ data: insideOf(model, text, asked, tell) }),
    stop: () => ({}),
  });
}

const INSIDES = { translation: insideTranslation, "language-modelling": insideLanguage, classification: insideClassification };

// What a page that looks inside asks: all that `serveModel` answers, and the data of an inspection; `asked.off` are
// switched off.
const insideOf = (model, text, asked, tell = () => {}) => {
  if (model.model) switchOff(model.model, asked.off);
  try {
    return INSIDES[model.card.task](model, text, asked, tell);
  } finally {
    if (model.model) switchOff(model.model);
  }
};
