/* How it learned: the same sentence through the steps of a run, beside the curve of its loss. */

speak({
  en: {
    "learned-title": "How it learned",
    "learned-prose-translation":
      "This run kept its weights at {count} moments. At each of them the model is made to write the same translation, so that the same " +
      "tokens can be followed; the slider above moves every picture of this page. Below stands what the model of that moment would " +
      "have written by itself, by greedy search: each time the most probable token.",
    "learned-prose-language-modelling":
      "This run kept its weights at {count} moments. The slider above moves every picture of this page from one to the next; the text " +
      "stays the same. Below stands how each of them would have written on, by greedy search: each time the most probable token.",
    "learned-prose-classification":
      "This run kept its weights at {count} moments. The slider above moves every picture of this page from one to the next; the text " +
      "stays the same. Below stands which label each of them gives.",
    "learned-none":
      "Of this model’s run nothing is kept but its end, so its way cannot be shown. A run keeps its weights where its training has " +
      "keep_checkpoints = \"doublings\": before the first step, and each time that the number of steps has doubled.",
    "learned-now": "At step {step} of {last}: {own}",
    "learned-own-translation": "by itself it writes",
    "learned-own-language-modelling": "it writes on",
    "learned-own-classification": "its label",
    "learned-likely": "{percent} % a token for the text of this page",
    "learned-curve": "The loss while it learned",
    "learned-curve-said": "Loss on dev: {first} at step {a}, {end} at step {b}. The chosen step is {step}.",
    "learned-no-curve": "The run’s log of its losses is not there.",
    "learned-dev": "loss on dev",
    "learned-training": "loss in training",
    "learned-axis": "step",
    "learned-steps": "What each step would have written",
    "learned-samples": "What the run itself wrote of its dev text",
    "learned-sample": "step {step}: {answer}",
    "learned-caption":
      "The bar is the geometric mean of the probabilities that the step gave to the tokens of this page. Steps are drawn by their logarithm, " +
      "as a model learns most at first. Pictures that are large are kept of the finished model alone, and are missing at the other steps: one look in " +
      "stages, the nearest words, the list of choices and the search. Weights of earlier steps are kept in half precision.",
    "learned-losses":
      "The two losses do not measure the same: the one in training is taken while dropout switches parts of the model off, and against " +
      "smoothed labels where the recipe smooths them; the one on dev has neither. So the one on dev can lie below.",
    "learned-broken": "� stands for bytes that make no letter.",
    "learned-empty": "(nothing)",
  },
  zh: {
    "learned-title": "它是怎样学会的",
    "learned-prose-translation":
      "这次训练在 {count} 个时刻保存了权重。在每个时刻都让模型写出同一译文，这样就能跟踪同样的词元；上面的滑块会移动本页的每一幅图。下面是当时的模型自己会写出的译文，用贪心搜索：每次取最可能的词元。",
    "learned-prose-language-modelling": "这次训练在 {count} 个时刻保存了权重。上面的滑块会把本页的每一幅图从一个时刻移到下一个；文本不变。下面是各时刻的模型会怎样续写，用贪心搜索：每次取最可能的词元。",
    "learned-prose-classification": "这次训练在 {count} 个时刻保存了权重。上面的滑块会把本页的每一幅图从一个时刻移到下一个；文本不变。下面是各时刻的模型给出的标签。",
    "learned-none":
      "这个模型的训练只留下了结尾，因此无法展示它的过程。若训练设置 keep_checkpoints = \"doublings\"，就会保存权重：在第一步之前，以及每当步数翻倍时。",
    "learned-now": "第 {step} 步，共 {last} 步：{own}",
    "learned-own-translation": "它自己会写",
    "learned-own-language-modelling": "它会续写",
    "learned-own-classification": "它的标签",
    "learned-likely": "对本页文本平均每个词元 {percent}%",
    "learned-curve": "学习过程中的损失",
    "learned-curve-said": "开发集损失：第 {a} 步为 {first}，第 {b} 步为 {end}。选中的是第 {step} 步。",
    "learned-no-curve": "没有这次训练的损失记录。",
    "learned-dev": "开发集损失",
    "learned-training": "训练损失",
    "learned-axis": "步数",
    "learned-steps": "每一步会写出什么",
    "learned-samples": "训练时它写出的开发集文本",
    "learned-sample": "第 {step} 步：{answer}",
    "learned-caption":
      "横条是该步给本页各词元的概率的几何平均。步数按对数排列，因为模型一开始学得最多。较大的图只为训练好的模型保存，其他步没有：逐步看一次注意、最近的词、候选列表和搜索。" +
      "早期各步的权重以半精度保存。",
    "learned-losses": "两种损失量的不是同一件事：训练损失在 dropout 关掉模型一部分时计算，若配方设了标签平滑，目标也经过平滑；开发集损失两者都没有。所以开发集损失可以更低。",
    "learned-broken": "� 表示不成文字的字节。",
    "learned-empty": "（空）",
  },
});

{
  const CURVE = { width: 720, widest: 832, height: 220, left: 44, right: 12, top: 12, bottom: 30 }; // pixels

  section({
    id: "learned",
    order: 9,
    applies: () => Boolean(whole.inspections) && isLearning(),
    draw(box) {
      if (whole.inspections.length < 2) return prose("learned", say("learned-none"));
      prose("learned", say(`learned-prose-${data.task}`, { count: whole.inspections.length }));
      CURVE.width = Math.min(box.clientWidth || CURVE.width, CURVE.widest);
      box.append(
        make("p", { class: "reading", id: "learned-now" }, nowSaid()),
        make("h3", {}, say("learned-curve")),
        curve(),
        make("h3", {}, say("learned-steps")),
        stepList(),
        ...sampleList(),
        make("p", { class: "caption" }, joined([say("learned-caption"), ...(hasBroken() ? [say("learned-broken")] : [])])),
      );
    },
  });

  const answerOf = (number) => whole.own[number] || say("learned-empty");
  const hasBroken = () => whole.own.some((text) => text.includes("\uFFFD"));

  function nowSaid() {
    const number = numberShown();
    const own = `${say(`learned-own-${data.task}`)} “${answerOf(number)}”`;
    return say("learned-now", { step: grouped(whole.steps[number]), last: grouped(whole.steps.at(-1)), own });
  }

  /* The curve */

  // Steps by their logarithm: step 0 stands at the left.
  const along = (step, last) => CURVE.left + (Math.log(step + 1) / Math.log(last + 1)) * (CURVE.width - CURVE.left - CURVE.right);

  function curve() {
    const { losses, training } = whole;
    const points = [...losses, ...training];
    if (!points.length) return make("p", { class: "small" }, say("learned-no-curve"));
    const last = Math.max(...points.map(([step]) => step), ...whole.steps);
    const values = points.map(([, loss]) => loss);
    const [low, high] = [Math.min(0, ...values), Math.max(...values) * 1.04];
    const room = CURVE.height - CURVE.top - CURVE.bottom;
    const place = ([step, loss]) => [along(step, last), CURVE.top + room * (1 - (loss - low) / (high - low))];
    const picture = svg("svg", { class: "curve", viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, role: "img", "aria-label": curveSaid() });
    picture.append(...axes(low, high, last, room), ...moments(last), line(training.map(place), "given"), line(losses.map(place), "target"));
    picture.append(...losses.map(place).map(([x, y]) => svg("circle", { cx: x, cy: y, r: 3, class: "of-target" })));
    const keys = [["of-target", "learned-dev", losses], ["of-given", "learned-training", training]].filter(([, , list]) => list.length);
    const legend = keys.map(([kind, word]) => make("span", { class: `curve-key ${kind}` }, say(word)));
    const caption = keys.length > 1 ? [make("p", { class: "caption" }, say("learned-losses"))] : [];
    return make("figure", { class: "curve-figure" }, picture, make("figcaption", {}, make("div", { class: "small" }, ...legend), ...caption));
  }

  function curveSaid() {
    const list = whole.losses.length ? whole.losses : whole.training;
    const [[a, first], [b, end]] = [list[0], list.at(-1)];
    const step = grouped(whole.steps[numberShown()]);
    return say("learned-curve-said", { a: grouped(a), b: grouped(b), first: first.toFixed(2), end: end.toFixed(2), step });
  }

  const line = (points, role) => svg("polyline", { class: `of-${role}`, points: points.map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" ") });

  function axes(low, high, last, room) {
    const floor = CURVE.top + room;
    const ticks = [0, 0.5, 1].map((part) => low + part * (high - low));
    const labels = ticks.map((value, i) => svg("text", { x: CURVE.left - 6, y: floor - (room * i) / 2 + 4, "text-anchor": "end" }, value.toFixed(1)));
    const end = svg("text", { x: CURVE.left - 10, y: CURVE.height - 8, "text-anchor": "end" }, say("learned-axis"));
    return [svg("path", { class: "axis-line", d: `M${CURVE.left} ${CURVE.top}V${floor}H${CURVE.width - CURVE.right}` }), ...labels, end];
  }

  // The steps that are kept, on the axis; the chosen one goes through the picture.
  function moments(last) {
    const floor = CURVE.height - CURVE.bottom;
    const isNow = (number) => number === numberShown();
    const places = whole.steps.map((step) => Math.min(along(step, last), CURVE.width - CURVE.right - 4 * grouped(step).length));
    const named = new Set(); // those whose names have room, first of all the chosen one's, then from the last on
    for (const number of [numberShown(), ...places.keys()].sort((a, b) => isNow(b) - isNow(a) || b - a)) {
      const room = (other) => 4 * (grouped(whole.steps[number]).length + grouped(whole.steps[other]).length) + 6;
      if ([...named].every((other) => Math.abs(places[other] - places[number]) >= room(other))) named.add(number);
    }
    return whole.steps.flatMap((step, number) => {
      const x = along(step, last).toFixed(1);
      const mark = svg("path", { class: isNow(number) ? "moment now" : "moment", d: `M${x} ${floor + 5}V${isNow(number) ? CURVE.top : floor - 3}` });
      if (!named.has(number)) return [mark];
      return [mark, svg("text", { x: places[number], y: CURVE.height - 8, "text-anchor": "middle", class: isNow(number) ? "now" : "" }, grouped(step))];
    });
  }

  /* What each step would have written */

  // How likely it was at a step, a token; null where there is nothing to be likely.
  function likelihood(number) {
    const one = whole.inspections[number];
    const { probabilities } = one.task === "translation" ? one.target : one.tokens;
    if (!probabilities?.length) return one.labels?.[0].probability ?? null;
    const logs = probabilities.map((value) => Math.log(Math.max(value, 1e-4)));
    return Math.exp(logs.reduce((sum, value) => sum + value, 0) / logs.length);
  }

  function stepList() {
    const list = make("div", { class: "moments", role: "radiogroup", "aria-label": say("learned-steps"), keydown: moveInSteps });
    list.append(...whole.steps.map((step, number) => stepRow(step, number)));
    return list;
  }

  function stepRow(step, number) {
    const isNow = number === numberShown();
    const value = likelihood(number);
    const lang = data.task === "translation" ? data.tgt_lang : data.lang;
    const state = { role: "radio", "aria-checked": `${isNow}`, tabindex: isNow ? "0" : "-1", "data-number": number };
    const parts = [make("span", { class: "moment-step" }, grouped(step)), bar(value ?? 0)];
    const said = data.task === "classification" ? (value ?? 0).toFixed(3) : say("learned-likely", { percent: Math.round(100 * (value ?? 0)) });
    parts.push(make("span", { class: "unseen" }, said), make("span", { class: "moment-own", lang, dir: "auto" }, answerOf(number)));
    return make("button", { type: "button", class: "moment-row", title: said, click: () => choose(number), ...state }, ...parts);
  }

  function choose(number) {
    stopPlaying();
    turn(number);
    byId("learned").querySelector(`[data-number="${number}"]`)?.focus({ preventScroll: true });
  }

  function moveInSteps(event) {
    const next = stepInGrid(event, [Number(event.target.dataset.number ?? 0), 0], whole.steps.length, 1);
    if (next) choose(next[0]);
  }

  /* What the run wrote while it trained */

  function sampleList() {
    if (!whole.samples.length) return [];
    const texts = [...new Set(whole.samples.map(({ text }) => text))];
    const now = whole.steps[numberShown()];
    return [make("h3", {}, say("learned-samples")), ...texts.map((text) => samplesOf(text, now))];
  }

  // The last one that is not of a later step is marked.
  function samplesOf(text, now) {
    const rows = whole.samples.filter((row) => row.text === text);
    const shown = rows.findLastIndex(({ step }) => step <= now);
    const few = rows.length > 12 ? rows.filter((_, i) => i === shown || i % Math.ceil(rows.length / 11) === 0 || i === rows.length - 1) : rows;
    const item = (row) => make("li", row === rows[shown] ? { class: "now" } : {}, say("learned-sample", { step: grouped(row.step), answer: row.answer || say("learned-empty") }));
    return make("div", { class: "samples" }, make("p", {}, text), make("ol", {}, ...few.map(item)));
  }
}
