"use strict";

/* What the page says, in English and in Chinese. {name} stands for a value. Each section speaks its own words. */

const WORDS = {
  en: {
    language: "Language",
    "title-translation": "How the model translated this",
    "title-language-modelling": "How the model reads this",
    "title-classification": "How the model labelled this",
    "tokens-title": "Tokens",
    "tokens-caption":
      "The text is cut into the pieces of the model’s vocabulary, each with its number; ▁ marks a space{cited}.",
    "tokens-probability":
      "The line under a token is the probability that the model gave it, out of all tokens it knows; below stand the " +
      "most probable ones at the marked place{cited}.",
    "tokens-tint":
      "The stronger the colour of a token, the more attention there is between it and the marked one, in the picture that " +
      "is chosen under Attention.",
    "tokens-document": "The first token, {piece}, is not of the text: the model reads it before every document.",
    "tokens-between":
      "The first token, {piece}, is not of the text: it stands between the documents of the training text. A model of a " +
      "single document, such as a book, has never read it, and what it says of the token after it means nothing.",
    "vectors-title": "Vectors",
    "vectors-caption":
      "Each row is a token and each column one of the first {shown} of its {width} numbers, blue above zero and orange " +
      "below: the token’s own vector, the vector of its position, and their sum, which the first layer reads (Vaswani " +
      "et al. 2017, sections 3.4 and 3.5).",
    "vectors-alone":
      "Each row is a token and each column one of the first {shown} of its {width} numbers, blue above zero and orange " +
      "below. This model adds no positions to them{cited}.",
    "vectors-beside": "The model has added {parts} to the token’s own vector: so one token has other numbers at other places.",
    "vectors-of-tokens":
      "The model also reads n-grams of up to {ngrams} tokens; each has a vector of its own, which is not among these.",
    "part-ngrams": "the vectors of the n-grams that end with it",
    "part-matches": "that of the token that followed when the last tokens stood in the text before",
    and: " and ",
    "vector-tokens": "token",
    "vector-positions": "position",
    "vector-sum": "sum",
    "vector-reading": "{piece}, number {column}: {value}",
    "vectors-hint": "Point at a number to read it, or go there with the arrow keys.",
    side: "Text",
    part: "Vector",
    source: "source",
    target: "target",
    text: "text",
    "attention-title": "Attention",
    "attention-none": "This model has no attention layers.",
    kind: "Kind",
    layer: "Layer",
    head: "Head",
    mean: "mean",
    "layer-head": "Layer and head",
    "name-mean": "Layer {layer}, mean of heads",
    "name-head": "Layer {layer}, head {head}",
    "name-layer": "Layer {layer}",
    "overview-caption":
      "Every head of every layer: a row for each layer, the mean of its heads first; choose one to see it large " +
      "(Vaswani et al. 2017, section 3.2.2).",
    "overview-layers": "Every layer, which has one head: choose one to see it large.",
    scale: "Colours from weight 0, faint, to weight 1, strong",
    keep: "Keep to compare",
    forget: "Put away",
    "kept-caption": "Kept to compare with: {kind}, {name}.",
    "mean-caption": " Shown is the mean of the layer’s heads, which the model itself never forms.",
    "kind-cross": "Cross",
    "kind-encoder": "Encoder",
    "kind-decoder": "Decoder",
    "map-cross": "Cross-attention",
    "map-encoder": "Encoder self-attention",
    "map-decoder": "Decoder self-attention",
    "caption-cross":
      "Each row is a target token and each column a source token: the stronger the colour, the more the decoder looked " +
      "at that source token while it wrote the target token{cited}.",
    "caption-encoder":
      "Rows and columns are the tokens that are read: the stronger the colour, the more the encoder looked at the " +
      "column’s token to understand the row’s (Vaswani et al. 2017, section 3.2.3).",
    "caption-decoder":
      "Each row is a target token as it is written and each column a token before it, <bos> the start: the stronger the " +
      "colour, the more the decoder looked back at it; the future cannot be seen (Vaswani et al. 2017, section 3.2.3).",
    "caption-causal":
      "Each row is a token that was read last and each column one before it: the stronger the colour, the more the model " +
      "looked back at it to foretell the next; the future cannot be seen (Vaswani et al. 2017, section 3.2.3).",
    "looked-at": "Everything that looks at {key}",
    "looks-at": "{query} looks at {key}: {weight}",
    "looks-most": "{query} looks most at {key}: {weight}",
    probability: "{piece}, probability {value}",
    "most-probable": "Most probable at {piece}",
    given: "{piece} is given: the model did not choose it",
    "steps-title": "Step by step",
    step: "Step {step} of {steps}",
    before: "Step before",
    after: "Next step",
    "steps-caption":
      "The decoder writes one token after the other: it has what stands before the marked place, looks at the source, " +
      "tinted by the attention that is chosen above, and gives every token it knows a probability{cited}.",
    "beam-title": "Beam search",
    "beam-caption":
      "Of all beginnings the search keeps the {beam} most probable at each step. Bold is the way to the translation; × " +
      "ends a branch that was dropped there; a number is the score of what ended, its log-probability divided by " +
      "((5 + length) / 6)^{penalty} (Wu et al. 2016, equation 14; Vaswani et al. 2017, section 6.1).",
    "beam-all": "all branches",
    "beam-lasting": "branches of two steps and more",
    "beam-shown": "Show",
    "beam-reading": "Step {step}, {piece}: probability {probability}, log-probability so far {total}; {fate}",
    "fate-goes on": "continued",
    "fate-dropped": "dropped at step {next}",
    "fate-ended": "ended with score {score}",
    "fate-open": "still open when the search had its answer",
    "alignment-title": "Word alignment",
    "alignment-caption":
      "For each word of the translation the source words that its tokens looked at most, by the last layer’s mean of " +
      "heads: a hint, not a dictionary (Bahdanau et al. 2015, section 5.2.1).",
    "alignment-alone":
      "For each word of the translation the source words that its tokens looked at most: a hint, not a dictionary " +
      "(Bahdanau et al. 2015, section 5.2.1).",
    "next-title": "What comes next",
    "next-caption":
      "The most probable tokens after the text, with their probabilities (Vaswani et al. 2017, section 3.4).",
    "labels-title": "Label",
    "labels-caption": "The probability of each label, the most probable first.",
    "reasons-title": "What each token adds",
    "reasons-caption":
      "By how much each token raises (blue) or lowers (orange) the log-probability of the label: by gradient times vector " +
      "(Denil et al. 2014), and by what is lost where the token is left out.",
    "reasons-ngrams":
      "Groups of up to {ngrams} tokens (n-grams) count as well. The gradient divides an n-gram’s share among its tokens; a " +
      "token that is left out takes its n-grams along, its neighbours form new ones, and the shares of all others grow. So " +
      "a token may be blue by one measure and orange by the other.",
    agreement: "The two agree with a correlation of {value}.",
    disagreement:
      "The two do not agree (correlation {value}): the gradient is a straight line at this text, leaving a token out is a " +
      "step away from it, and tokens act together.",
    "no-agreement": "The two cannot be compared on so few tokens.",
    label: "Label",
    token: "Token",
    gradient: "Gradient × vector",
    "left-out": "Left out",
    "note-segments": "The text is translated in {count} segments: what is shown, the translation too, is of the first alone.",
    "note-cut": "The text was longer: what is shown, the answer too, is of its first {count} tokens alone.",
    "note-unfinished": "The translation found no end and was cut at its limit.",
    "note-long": "The translation is longer: what is shown is of its first {count} tokens alone.",
    cited: " ({names} et al. {year}, section {section})",
    start: "start",
    end: "end",
    ribbon: "The tokens, and the place in them that the whole page is about",
    rail: "Sections of this page",
    "step-of": "{step} of {steps}",
    "tint-head": "Colour: where {query} looks, by {name}",
    "tint-foretells": "Colour: where the model looks to foretell {query}, by {name}",
    "tint-shares": "Colour: what each token brought to {piece}",
    "tint-reasons": "Colour: what speaks for “{label}”; red: what speaks against it",
  },
  zh: {
    language: "语言",
    "title-translation": "模型是怎样翻译的",
    "title-language-modelling": "模型是怎样阅读的",
    "title-classification": "模型是怎样分类的",
    "tokens-title": "词元",
    "tokens-caption": "文字被切成模型词表中的片段，每个片段都有编号；▁ 表示空格{cited}。",
    "tokens-probability":
      "词元下面的横线是模型给它的概率（在全部已知词元之中）；下方列出标记位置上最可能的词元{cited}。",
    "tokens-tint": "词元的颜色越深，在“注意力”一节所选的图中，它与标记的词元之间的注意力就越强。",
    "tokens-document": "第一个词元 {piece} 不属于这段文字：模型在每篇文档之前读到它。",
    "tokens-between":
      "第一个词元 {piece} 不属于这段文字：它在训练文本中隔开各篇文档。只用一篇文档（例如一本书）训练的模型从未读过它，" +
      "它后面那个词元的概率没有意义。",
    "vectors-title": "向量",
    "vectors-caption":
      "每行是一个词元，每列是它 {width} 个数中前 {shown} 个之一，蓝色大于零，橙色小于零：词元自身的向量、位置的向量，" +
      "以及两者之和，即第一层读到的内容（Vaswani 等 2017，3.4 和 3.5 节）。",
    "vectors-alone":
      "每行是一个词元，每列是它 {width} 个数中前 {shown} 个之一，蓝色大于零，橙色小于零。这个模型不加位置向量{cited}。",
    "vectors-beside": "模型在词元自身的向量上加了{parts}：所以同一个词元在不同位置有不同的数。",
    "vectors-of-tokens": "模型还读取至多 {ngrams} 个词元的 n 元组；每个 n 元组有自己的向量，不在此图中。",
    "part-ngrams": "以它结尾的 n 元组的向量",
    "part-matches": "最近几个词元上次出现时其后那个词元的向量",
    and: "和",
    "vector-tokens": "词元",
    "vector-positions": "位置",
    "vector-sum": "和",
    "vector-reading": "{piece}，第 {column} 个数：{value}",
    "vectors-hint": "指向一个数即可读出它，也可用方向键移动。",
    side: "文字",
    part: "向量",
    source: "源文",
    target: "译文",
    text: "文字",
    "attention-title": "注意力",
    "attention-none": "这个模型没有注意力层。",
    kind: "种类",
    layer: "层",
    head: "头",
    mean: "平均",
    "layer-head": "层与头",
    "name-mean": "第 {layer} 层，各头平均",
    "name-head": "第 {layer} 层，第 {head} 个头",
    "name-layer": "第 {layer} 层",
    "overview-caption": "每一层的每个头：一行一层，先是各头的平均；选一个放大来看（Vaswani 等 2017，3.2.2 节）。",
    "overview-layers": "每一层，各有一个头：选一个放大来看。",
    scale: "颜色由浅到深，表示权重从 0 到 1",
    keep: "留作比较",
    forget: "收起",
    "kept-caption": "留作比较：{kind}，{name}。",
    "mean-caption": "这里显示的是该层各头的平均，模型自己并不计算它。",
    "kind-cross": "交叉",
    "kind-encoder": "编码器",
    "kind-decoder": "解码器",
    "map-cross": "交叉注意力",
    "map-encoder": "编码器自注意力",
    "map-decoder": "解码器自注意力",
    "caption-cross":
      "每行是一个译文词元，每列是一个源文词元：颜色越深，解码器在写这个译文词元时越关注那个源文词元{cited}。",
    "caption-encoder":
      "行和列都是读入的词元：颜色越深，编码器在理解该行的词元时越关注该列的词元（Vaswani 等 2017，3.2.3 节）。",
    "caption-decoder":
      "每行是正在写的译文词元，每列是它之前的一个词元，<bos> 是开头：颜色越深，解码器越多回看它；未来是看不见的" +
      "（Vaswani 等 2017，3.2.3 节）。",
    "caption-causal":
      "每行是最后读到的词元，每列是它之前的一个词元：颜色越深，模型在预测下一个词元时越多回看它；未来是看不见的" +
      "（Vaswani 等 2017，3.2.3 节）。",
    "looked-at": "所有关注 {key} 的词元",
    "looks-at": "{query} 关注 {key}：{weight}",
    "looks-most": "{query} 最关注 {key}：{weight}",
    probability: "{piece}，概率 {value}",
    "most-probable": "{piece} 处最可能的词元",
    given: "{piece} 是给定的，不是模型选的",
    "steps-title": "逐步解码",
    step: "第 {step} 步，共 {steps} 步",
    before: "上一步",
    after: "下一步",
    "steps-caption":
      "解码器一个接一个地写词元：它已有标记位置之前的内容，按上面所选的注意力关注源文（以深浅表示），并给每个已知词元" +
      "一个概率{cited}。",
    "beam-title": "束搜索",
    "beam-caption":
      "搜索在每一步只保留最可能的 {beam} 个开头。粗体是通向译文的路径；× 表示分支在此被放弃；数字是已结束者的得分，" +
      "即对数概率除以 ((5 + 长度) / 6)^{penalty}（Wu 等 2016，式 14；Vaswani 等 2017，6.1 节）。",
    "beam-all": "所有分支",
    "beam-lasting": "两步及以上的分支",
    "beam-shown": "显示",
    "beam-reading": "第 {step} 步，{piece}：概率 {probability}，累计对数概率 {total}；{fate}",
    "fate-goes on": "继续",
    "fate-dropped": "在第 {next} 步被放弃",
    "fate-ended": "结束，得分 {score}",
    "fate-open": "搜索得出答案时仍未结束",
    "alignment-title": "词对齐",
    "alignment-caption":
      "译文的每个词，以及写它时最关注的源文词（最后一层各头的平均）：只是线索，不是词典（Bahdanau 等 2015，5.2.1 节）。",
    "alignment-alone": "译文的每个词，以及写它时最关注的源文词：只是线索，不是词典（Bahdanau 等 2015，5.2.1 节）。",
    "next-title": "接下来是什么",
    "next-caption": "这段文字之后最可能的词元及其概率（Vaswani 等 2017，3.4 节）。",
    "labels-title": "标签",
    "labels-caption": "每个标签的概率，最可能的在前。",
    "reasons-title": "每个词元的贡献",
    "reasons-caption":
      "每个词元使该标签的对数概率升高（蓝）或降低（橙）多少：用梯度乘以向量（Denil 等 2014），以及去掉该词元后损失多少。",
    "reasons-ngrams":
      "至多 {ngrams} 个词元的组合（n 元组）也起作用。梯度把一个 n 元组的份额平分给它的词元；去掉一个词元时，它的 n 元组也一起" +
      "消失，相邻词元组成新的 n 元组，其余部分的份额随之变大。所以一个词元可能在一种量法下是蓝色，在另一种下是橙色。",
    agreement: "两者的相关系数是 {value}。",
    disagreement:
      "两者并不一致（相关系数 {value}）：梯度是这段文字处的一条直线，去掉一个词元却是离开它的一步，而且词元共同起作用。",
    "no-agreement": "词元太少，两者无法比较。",
    label: "标签",
    token: "词元",
    gradient: "梯度 × 向量",
    "left-out": "去掉后",
    "note-segments": "这段文字分成 {count} 段翻译：这里显示的一切，连同译文，都只来自第一段。",
    "note-cut": "文字更长：这里显示的一切，连同结果，都只来自前 {count} 个词元。",
    "note-unfinished": "译文没有写到结尾，在长度上限处被截断。",
    "note-long": "译文更长：这里显示的一切都只来自它的前 {count} 个词元。",
    cited: "（{names} 等 {year}，{section} 节）",
    start: "开头",
    end: "结尾",
    ribbon: "词元，以及整页所讲的位置",
    rail: "本页各节",
    "step-of": "第 {step} 个，共 {steps} 个",
    "tint-head": "颜色：{query} 关注之处，{name}",
    "tint-foretells": "颜色：模型预测 {query} 时关注之处，{name}",
    "tint-shares": "颜色：各词元为 {piece} 带来了多少",
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
    "tokens-caption": "5.1",
    "tokens-probability": "3.4",
    "vectors-alone": "3.4",
    "caption-cross": "3.2.3",
    "steps-caption": "3",
  },
  additive: { "tokens-probability": "3.1", "caption-cross": "3.1", "steps-caption": "3.1" },
  dot: { "tokens-probability": "3", "caption-cross": "3.1", "steps-caption": "2" },
};

// The paper and section of a sentence, as far as it has one for this model.
function cited(key) {
  const family = data.family ?? "transformer";
  const section = CITED[family][key];
  return section ? say("cited", { ...PAPERS[family], section }) : "";
}

// Add the words of a section, in both languages.
function speak(words) {
  for (const [name, own] of Object.entries(words)) Object.assign(WORDS[name], own);
}

const hasWord = (key) => Object.hasOwn(WORDS[language], key);

// A sentence of the page with its values filled in.
function say(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => (name === "cited" ? cited(key) : values[name]));
}

// Sentences one after the other.
const joined = (sentences) => sentences.join(language === "zh" ? "" : " ");
