/* Sentences to try a model with that knows few others. */

import { make } from "./element.js";
import { listed, say } from "./say.js";

// `take` gets the sentence that is chosen.
export function drawExamples(model, take) {
  const sentences = model?.card?.examples ?? [];
  if (sentences.length === 0) return [];
  const offer = (sentence) => make("li", {}, make("button", { type: "button", lang: model.source, click: () => take(sentence) }, sentence));
  return [make("p", {}, say("examples")), make("ul", {}, ...sentences.map(offer))];
}

// That some of the models that translated know little else.
export function narrowNote(translations, served) {
  const ids = new Set(translations.flatMap((translation) => translation?.models ?? []));
  const narrow = served.filter(({ id, card }) => ids.has(id) && card?.examples).map(({ id }) => id);
  return narrow.length > 0 && make("li", {}, say("narrow", { models: listed(narrow) }));
}
