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

// What a page asks of a model alone: to load it, to translate, to write on, to classify.
function serveModel(scope) {
  let model;
  listen(scope, {
    load({ card, buffer }) {
      model = loadModel(card, buffer);
      return {};
    },
    async translate({ text, settings }, tell, isOld) {
      const plan = model.plan(text);
      const texts = [];
      let isWhole = !plan.cut;
      for (const row of plan.rows) {
        const found = model.search(row, settings);
        isWhole &&= found.finished;
        texts.push(model.textOf(found));
        if (await isOld()) return null;
        if (texts.length < plan.rows.length) tell({ text: joinRows(plan, texts, model.card.joiner) });
      }
      return { text: joinRows(plan, texts, model.card.joiner), isWhole };
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
