/* The words of the translation, each with the words of the source that it belongs to. */

speak({
  en: {
    "alignment-title": "Word by word",
    "alignment-caption":
      "For each word of the translation the source words that wrote most of it: what all looks at them added to its " +
      "logit. A word without any comes from none: its looks were flat, or hardly wrote anything. A hint, not a dictionary.",
    "alignment-alone":
      "For each word of the translation the source words that its tokens looked at most: a hint, not a dictionary " +
      "(Bahdanau et al. 2015, section 5.2.1).",
  },
  zh: {
    "alignment-title": "逐词对应",
    "alignment-caption": "译文的每个词，以及写出它最多的源文词：所有层对这些词的注意力为它的 logit 增加了多少。没有源文词的，是因为注意力平均分散，或几乎没有写出什么。只是线索，不是词典。",
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
  const caption = say(data.family === "transformer" ? "alignment-caption" : "alignment-alone");
  box.append(make("dl", { id: "alignment-words" }, ...target.map(word)), make("p", { class: "caption" }, caption));
}
