/* The words of the translation, each with the words of the source that it belongs to. */

speak({
  en: {
    "alignment-title": "Word by word",
    "alignment-caption":
      "For each word of the translation the source words that its tokens looked at most, by the last layer’s mean of " +
      "heads: a hint, not a dictionary (Bahdanau et al. 2015, section 5.2.1).",
    "alignment-alone":
      "For each word of the translation the source words that its tokens looked at most: a hint, not a dictionary " +
      "(Bahdanau et al. 2015, section 5.2.1).",
  },
  zh: {
    "alignment-title": "逐词对应",
    "alignment-caption": "译文的每个词，以及写它时最关注的源文词（最后一层各头的平均）：只是线索，不是词典（Bahdanau 等 2015，5.2.1 节）。",
    "alignment-alone": "译文的每个词，以及写它时最关注的源文词：只是线索，不是词典（Bahdanau 等 2015，5.2.1 节）。",
  },
});

section({
  id: "alignment",
  order: 6.5,
  applies: ({ alignment }) => (alignment?.pairs.length ?? 0) > 0,
  draw: drawAlignment,
});

function drawAlignment(box) {
  const { source, target, pairs } = data.alignment;
  const word = (text, t) => {
    const from = pairs.filter(([, other]) => other === t).map(([s]) => source[s]);
    return make("div", {}, make("dt", { lang: SIDES.target.lang }, text), make("dd", { lang: SIDES.source.lang }, from.join(" ")));
  };
  const caption = say(KINDS.cross.heads > 1 ? "alignment-caption" : "alignment-alone");
  box.append(make("dl", { id: "alignment-words" }, ...target.map(word)), make("p", { class: "caption" }, caption));
}
