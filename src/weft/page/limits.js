/* What the page does not show, and where its ideas are from. */

{
  section({
    id: "limits",
    order: 10,
    applies: () => true,
    draw(box) {
      const said = ["limits-weights", "limits-lens", "limits-one"];
      if (data.lens === undefined) said.splice(1, 1);
      if (!Object.keys(KINDS).length) said.shift();
      if (data.states) said.push("limits-states");
      const items = [...said.map((key) => say(key)), ...roundingSaid()];
      const commands = ["diagnose", "selfcheck"].map((verb) => make("li", {}, make("code", {}, `weft ${verb}`), say("colon"), say(`limits-${verb}`)));
      box.append(
        make("ul", { class: "said" }, ...items.map((item) => make("li", {}, item))),
        make("h3", {}, say("limits-next")),
        make("ul", { class: "said" }, ...commands),
        make("h3", {}, say("limits-papers")),
        make("ul", { class: "said", id: "limits-cited" }, ...papers().map((key) => make("li", {}, say(`paper-${key}`)))),
      );
    },
  });

  // A file's numbers have fewer bits than the model computed them with; a page that computes them itself has all.
  function roundingSaid() {
    if (!(data.source ?? data.tokens).vectors?.tokens.dtype) return [];
    const sums = data.shares ? [say("limits-sums")] : [];
    const kinds = data.looks?.left_out ?? [];
    const missing = kinds.length ? [say("limits-left-out", { kinds: kinds.map((kind) => say(`map-${kind}`)).join(say("and")) })] : [];
    return [joined([say("limits-rounded"), ...sums, ...missing])];
  }

  // The papers of this kind of model.
  function papers() {
    const family = familyOf();
    if (family === "bag") return ["bag", "gradient"];
    if (family === "additive" || family === "dot") return ["recurrent", family];
    const lens = [...(data.lens ? ["lens"] : []), ...(data.shares ? ["shares"] : [])];
    return ["transformer", ...lens, ...(data.task === "classification" ? ["gradient"] : []), ...(data.task === "translation" ? ["beam"] : [])];
  }

  speak({
    en: {
      "limits-title": "What this does not show",
      "limits-weights": "Where a head looks is not why the model decided: what it carried can be nothing, and other parts can undo it.",
      "limits-lens": "What a layer would write if the model stopped there is a guess: the layer was never trained to be the last.",
      "limits-one": "One sentence is not the model. Try others, and try the ones it gets wrong.",
      "limits-states": "What one number of a state stands for is not known: training gave none of them a meaning.",
      "limits-rounded": "Numbers of this page are rounded, the more the longer the sentence is.",
      "limits-sums": "Shares and what heads wrote add up all the same: their sums are kept exact.",
      "limits-left-out": "Queries, keys and values of these have no room in it: {kinds}. A shorter sentence has it; a page with --live computes them itself.",
      "limits-next": "What to run next",
      "limits-diagnose": "why a model is bad, from its run and many sentences.",
      "limits-selfcheck": "whether what computes it computes what it should.",
      "limits-papers": "Where the ideas are from",
      "paper-transformer": "The Transformer: Vaswani et al. 2017, “Attention Is All You Need”.",
      "paper-recurrent": "The recurrent encoder and decoder with gates: Cho et al. 2014, “Learning Phrase Representations using RNN Encoder–Decoder for Statistical Machine Translation”.",
      "paper-additive": "Its attention: Bahdanau et al. 2015, “Neural Machine Translation by Jointly Learning to Align and Translate”.",
      "paper-dot": "Its attention: Luong et al. 2015, “Effective Approaches to Attention-based Neural Machine Translation”.",
      "paper-bag": "The bag of n-grams: Joulin et al. 2017, “Bag of Tricks for Efficient Text Classification”.",
      "paper-gradient": "Gradient times vector: Denil et al. 2014, “Extraction of Salient Sentences from Labelled Documents”.",
      "paper-lens": "The logit lens: nostalgebraist 2020, “interpreting GPT: the logit lens”.",
      "paper-shares": "Who wrote a token: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”.",
      "paper-beam": "The score of the search: Wu et al. 2016, equation 14.",
    },
    zh: {
      "limits-title": "这里没有显示的",
      "limits-weights": "一个头看哪里，并不是模型作决定的原因：它带来的可能是零，别的部分也可能把它抵消。",
      "limits-lens": "“如果模型停在某一层会写什么”只是猜测：那一层从未被训练成最后一层。",
      "limits-one": "一句话不是整个模型。试试别的句子，也试试它弄错的句子。",
      "limits-states": "状态中的一个数代表什么并不知道：训练没有给任何一个数规定意义。",
      "limits-rounded": "本页中的数经过舍入，句子越长舍入越多。",
      "limits-sums": "份额以及各头所写的仍然加得起来：它们的和是精确保存的。",
      "limits-left-out": "以下各种的查询、键和值放不下：{kinds}。较短的句子放得下；带 --live 的页面会自己计算它们。",
      "limits-next": "接下来运行什么",
      "limits-diagnose": "从训练过程和许多句子中找出模型为什么不好。",
      "limits-selfcheck": "检查计算它的程序是否算得正确。",
      "limits-papers": "这些想法出自哪里",
      "paper-transformer": "Transformer：Vaswani 等 2017，“Attention Is All You Need”。",
      "paper-recurrent": "带门的循环编码器和解码器：Cho 等 2014，“Learning Phrase Representations using RNN Encoder–Decoder for Statistical Machine Translation”。",
      "paper-additive": "它的注意力：Bahdanau 等 2015，“Neural Machine Translation by Jointly Learning to Align and Translate”。",
      "paper-dot": "它的注意力：Luong 等 2015，“Effective Approaches to Attention-based Neural Machine Translation”。",
      "paper-bag": "n 元组袋：Joulin 等 2017，“Bag of Tricks for Efficient Text Classification”。",
      "paper-gradient": "梯度乘以向量：Denil 等 2014，“Extraction of Salient Sentences from Labelled Documents”。",
      "paper-lens": "Logit lens：nostalgebraist 2020，“interpreting GPT: the logit lens”。",
      "paper-shares": "词元由谁写出：Elhage 等 2021，“A Mathematical Framework for Transformer Circuits”。",
      "paper-beam": "搜索的得分：Wu 等 2016，式 14。",
    },
  });
}
