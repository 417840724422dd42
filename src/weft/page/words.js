"use strict";

/* What the page says, in English and in Chinese. {name} stands for a value. Each section speaks its own words. */

const WORDS = {
  en: {
    language: "Language",
    "title-translation": "How the model translated this",
    "title-language-modelling": "How the model reads this",
    "title-classification": "How the model labelled this",
    "tokens-document": "The first token, {piece}, is not of the text: the model reads it before every document.",
    "tokens-between":
      "The first token, {piece}, is not of the text: it stands between the documents of the training text. A model of a " +
      "single document, such as a book, has never read it, and what it says of the token after it means nothing.",
    "vectors-beside": "The model has added {parts} to the token’s own vector: so one token has other numbers at other places.",
    "vectors-of-tokens":
      "The model also reads n-grams of up to {ngrams} tokens; each has a vector of its own, which is not among these.",
    "part-ngrams": "the vectors of the n-grams that end with it",
    "part-matches": "that of the token that followed when the last tokens stood in the text before",
    and: " and ",
    "vector-tokens": "token",
    "vector-positions": "position",
    "vector-sum": "sum",
    "vector-normed": "normed",
    source: "source",
    target: "target",
    text: "text",
    kind: "Kind",
    layer: "Layer",
    head: "Head",
    mean: "mean",
    "layer-head": "Layer and head",
    "name-mean": "Layer {layer}, mean of heads",
    "name-head": "Layer {layer}, head {head}",
    "name-layer": "Layer {layer}",
    keep: "Keep to compare",
    forget: "Put away",
    "kept-caption": "Kept to compare with: {kind}, {name}.",
    "mean-caption": " Shown is the mean of the layer’s heads, which the model itself never forms.",
    "kind-cross": "Looks at the source",
    "kind-encoder": "Looks around",
    "kind-decoder": "Looks back",
    "map-cross": "Looks at the source (cross-attention)",
    "map-encoder": "Looks around (encoder self-attention)",
    "map-decoder": "Looks back (decoder self-attention)",
    "caption-cross":
      "Each row is a target token and each column a source token: the stronger the colour, the more the decoder looked " +
      "at that source token while it wrote the target token{cited}.",
    "caption-encoder":
      "Rows and columns are the tokens that are read: the stronger the colour, the more the encoder looked at the " +
      "column’s token to understand the row’s (Vaswani et al. 2017, section 3.2.3).",
    "caption-decoder":
      "Each row is a target token as it is written and each column a token before it, “{start}” at first: the stronger the " +
      "colour, the more the decoder looked back at it; the future cannot be seen (Vaswani et al. 2017, section 3.2.3).",
    "caption-causal":
      "Each row is a token that was read last and each column one before it: the stronger the colour, the more the model " +
      "looked back at it to foretell the next; the future cannot be seen (Vaswani et al. 2017, section 3.2.3).",
    before: "Step before",
    after: "Next step",
    label: "Label",
    "note-segments": "The text is translated in {count} segments: what is shown, the translation too, is of the first alone.",
    "note-cut": "The text was longer: what is shown, the answer too, is of its first {count} tokens alone.",
    "note-unfinished": "The translation found no end and was cut at its limit.",
    "note-long": "The translation is longer: what is shown is of its first {count} tokens alone.",
    "note-unknown": "Never seen in training: {words}. What the model makes of that is a guess.",
    "unknown-more": " and {more} more",
    "off-head": "This head is switched off: its output is not added.",
    "off-part": "These looks are switched off: their output is not added.",
    "off-key": "{key} is switched off: nothing looks at it.",
    cited: " ({names} et al. {year}, section {section})",
    start: "start",
    end: "end",
    ribbon: "The tokens, and the place in them that the whole page is about",
    rail: "Sections of this page",
    "step-of": "{step} of {steps}",
    "place-on-paper": "What follows is about token {step} of {steps}, {piece}.",
    "tint-head": "Colour: where {query} looks, by {name}",
    "tint-writes": "Colour: where the decoder looks to write {query}, by {name}",
    "tint-foretells": "Colour: where the model looks to foretell {query}, by {name}",
    "tint-shares": "Colour: what each token brought to {piece}",
    "tint-shares-both": "Colour: what each token brought to {piece}; red: took away",
    "tint-reasons": "Colour: what speaks for “{label}”; red: what speaks against it",
  },
  zh: {
    language: "语言",
    "title-translation": "模型是怎样翻译的",
    "title-language-modelling": "模型是怎样阅读的",
    "title-classification": "模型是怎样分类的",
    "tokens-document": "第一个词元 {piece} 不属于这段文字：模型在每篇文档之前读到它。",
    "tokens-between":
      "第一个词元 {piece} 不属于这段文字：它在训练文本中隔开各篇文档。只用一篇文档（例如一本书）训练的模型从未读过它，" +
      "它后面那个词元的概率没有意义。",
    "vectors-beside": "模型在词元自身的向量上加了{parts}：所以同一个词元在不同位置有不同的数。",
    "vectors-of-tokens": "模型还读取至多 {ngrams} 个词元的 n 元组；每个 n 元组有自己的向量，不在此图中。",
    "part-ngrams": "以它结尾的 n 元组的向量",
    "part-matches": "最近几个词元上次出现时其后那个词元的向量",
    and: "和",
    "vector-tokens": "词元",
    "vector-positions": "位置",
    "vector-sum": "和",
    "vector-normed": "归一后",
    source: "源文",
    target: "译文",
    text: "文字",
    kind: "种类",
    layer: "层",
    head: "头",
    mean: "平均",
    "layer-head": "层与头",
    "name-mean": "第 {layer} 层，各头平均",
    "name-head": "第 {layer} 层，第 {head} 个头",
    "name-layer": "第 {layer} 层",
    keep: "留作比较",
    forget: "收起",
    "kept-caption": "留作比较：{kind}，{name}。",
    "mean-caption": "这里显示的是该层各头的平均，模型自己并不计算它。",
    "kind-cross": "看源文",
    "kind-encoder": "环顾",
    "kind-decoder": "回看",
    "map-cross": "看源文（交叉注意力）",
    "map-encoder": "环顾（编码器自注意力）",
    "map-decoder": "回看（解码器自注意力）",
    "caption-cross":
      "每行是一个译文词元，每列是一个源文词元：颜色越明显，解码器在写这个译文词元时越关注那个源文词元{cited}。",
    "caption-encoder":
      "行和列都是读入的词元：颜色越明显，编码器在理解该行的词元时越关注该列的词元（Vaswani 等 2017，3.2.3 节）。",
    "caption-decoder":
      "每行是正在写的译文词元，每列是它之前的一个词元，最前是“{start}”：颜色越明显，解码器越多回看它；未来是看不见的" +
      "（Vaswani 等 2017，3.2.3 节）。",
    "caption-causal":
      "每行是最后读到的词元，每列是它之前的一个词元：颜色越明显，模型在预测下一个词元时越多回看它；未来是看不见的" +
      "（Vaswani 等 2017，3.2.3 节）。",
    before: "上一步",
    after: "下一步",
    label: "标签",
    "note-segments": "这段文字分成 {count} 段翻译：这里显示的一切，连同译文，都只来自第一段。",
    "note-cut": "文字更长：这里显示的一切，连同结果，都只来自前 {count} 个词元。",
    "note-unfinished": "译文没有写到结尾，在长度上限处被截断。",
    "note-long": "译文更长：这里显示的一切都只来自它的前 {count} 个词元。",
    "note-unknown": "训练中从未见过：{words}。模型在这里只能猜。",
    "unknown-more": "，另有 {more} 个",
    "off-head": "这个头已关掉：它的输出没有加上去。",
    "off-part": "这些看已关掉：它们的输出没有加上去。",
    "off-key": "{key} 已关掉：没有谁看它。",
    cited: "（{names} 等 {year}，{section} 节）",
    start: "开头",
    end: "结尾",
    ribbon: "词元，以及整页所讲的位置",
    rail: "本页各节",
    "step-of": "第 {step} 个，共 {steps} 个",
    "place-on-paper": "以下所讲的是第 {step} 个词元（共 {steps} 个）：{piece}。",
    "tint-head": "颜色：{query} 关注之处，{name}",
    "tint-writes": "颜色：解码器为写 {query} 而关注之处，{name}",
    "tint-foretells": "颜色：模型预测 {query} 时关注之处，{name}",
    "tint-shares": "颜色：各词元为 {piece} 带来了多少",
    "tint-shares-both": "颜色：各词元为 {piece} 带来了多少；红：减去",
    "tint-reasons": "颜色：支持“{label}”的程度；红色：反对",
  },
};

let language = navigator.language.startsWith("zh") ? "zh" : "en";

// Where each kind of model is described: the paper, and its section for each sentence that cites one.
const PAPERS = {
  transformer: { names: "Vaswani", year: 2017 },
  additive: { names: "Bahdanau", year: 2015 },
  dot: { names: "Luong", year: 2015 },
};
const CITED = {
  transformer: {
    "caption-cross": "3.2.3",
  },
  additive: { "caption-cross": "3.1" },
  dot: { "caption-cross": "3.1" },
};

// The family of a model: a classifier without layers is a bag of words.
function familyOf() {
  const isBag = data.task === "classification" && !Object.keys(KINDS).length;
  return isBag ? "bag" : (data.family ?? "transformer");
}

// The paper and section of a sentence, as far as it has one for this model.
function cited(key) {
  const family = familyOf();
  const section = CITED[family]?.[key];
  return section ? say("cited", { ...PAPERS[family], section }) : "";
}

// Add the words of a section, in both languages.
function speak(words) {
  for (const [name, own] of Object.entries(words)) Object.assign(WORDS[name], own);
}

const hasWord = (key) => Object.hasOwn(WORDS[language], key);
const isFixed = (key) => hasWord(key) && !/\{(?!cited)/.test(WORDS[language][key]); // says the same whatever was read

// A sentence of the page with its values filled in.
function say(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => (name === "cited" ? cited(key) : values[name]));
}

// Sentences one after the other.
const joined = (sentences, between = language === "zh" ? "" : " ") => sentences.join(between);
