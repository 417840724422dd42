/* What the views share that ask one model about one text, as it is typed. */

import { complain, complaint, make, select } from "./element.js";
import { say } from "./say.js";

// The model and the text that are asked about are kept in `form`. `ask` is called with a signal when no key came for
// `wait` ms, `changed` at every key, `cleared` where no text is left.
export function asker(form, models, field, { wait, ask, changed, cleared }) {
  let timer;
  let left = new AbortController();
  const wrong = complaint();

  async function run() {
    left = new AbortController();
    const { signal } = left;
    complain(wrong, "");
    try {
      await ask(signal);
    } catch (error) {
      if (!signal.aborted) complain(wrong, error.message);
    }
  }

  function again(ms = wait) {
    left.abort();
    clearTimeout(timer);
    changed();
    if (form.text.trim()) timer = setTimeout(run, ms);
    else cleared();
  }

  function typed() {
    form.text = text.value;
    again();
  }

  function chooseModel(model) {
    form.model = model;
    again(0);
  }

  const text = make("textarea", { ...field, input: typed });
  text.value = form.text;
  if (!models.some(([id]) => id === form.model)) [[form.model]] = models;
  const pick = models.length > 1 && make("div", { class: "pick" }, select(say("model"), models, form.model, chooseModel, { id: "model" }));

  // Once all stands in the page.
  function begin() {
    if (form.text) again(0);
    if (!matchMedia("(pointer: coarse)").matches) text.focus();
  }

  return { pick, text, wrong, begin };
}
