/* A classifier's reasons: what every token, and every group of tokens, adds to a label. */

speak({
  en: {
    "reasons-title": "What each token adds",
    "reasons-title-of": "What speaks for “{label}”",
    "reasons-prose": "The model gives the label “{label}” a probability of {probability}.",
    "reasons-for": "{token} speaks most for it, {value}.",
    "reasons-against": "{token} speaks most against it, {value}.",
    "reasons-none": "No single token matters here: by this measure none adds or takes more than {value}.",
    "reasons-by": "Tinted by",
    "reasons-token": "{measure}: {token} {value}.",
    "reasons-group": "Group of {count} tokens, {token}: {value}.",
    "reasons-no-group": "No group of {count} tokens begins at {token}.",
    "measure-exact": "exact share",
    "measure-places": "from its place",
    "measure-gradient": "gradient × vector",
    "measure-left_out": "left out",
    "reasons-groups": "groups of {count}",
    "reasons-text": "The text, tinted by what each token adds",
    "reasons-picture": "Tokens, groups of tokens and what they add",
    "reasons-caption":
      "Grey speaks for the label, red against it, the stronger the more; every measure has a scale of its own, on which {full} at least is full. Gradient × vector: by how much the label’s log-probability " +
      "rises in proportion to the token’s vector (Denil et al. 2014). Left out: by how much it falls where the token is missing.",
    "reasons-caption-exact": "Exact share: its part of the label’s logit, above the mean of all labels; with those of the groups and the biases the shares add up to it.",
    "reasons-caption-exact-zero": "Exact share: its part of the label’s logit; with those of the groups and the biases the shares add up to it.",
    "reasons-caption-places":
      "From its place: the part of the label’s logit that the layers have written at the token’s place; a place has read all others, so it is not the token alone.",
    "reasons-caption-groups":
      "Under the text stand the groups of tokens (n-grams) that the model knows, each with its share. A token that is left out takes its groups " +
      "along, its neighbours form new ones, and the shares of all others grow.",
    agreement: "Gradient and leaving out agree with a correlation of {value}.",
    disagreement:
      "Gradient and leaving out do not agree (correlation {value}): the gradient is a straight line at this text, leaving a token out is a step " +
      "away from it, and tokens act together.",
    "no-agreement": "Gradient and leaving out cannot be compared on so few tokens.",
  },
  zh: {
    "reasons-title": "每个词元的贡献",
    "reasons-title-of": "什么支持“{label}”",
    "reasons-prose": "模型给标签“{label}”的概率是 {probability}。",
    "reasons-for": "最支持它的是 {token}，{value}。",
    "reasons-against": "最反对它的是 {token}，{value}。",
    "reasons-none": "这里没有哪个词元单独起作用：按这一量法，没有一个加上或减去超过 {value}。",
    "reasons-by": "着色依据",
    "reasons-token": "{measure}：{token} {value}。",
    "reasons-group": "{count} 个词元的组合 {token}：{value}。",
    "reasons-no-group": "没有 {count} 个词元的组合从 {token} 开始。",
    "measure-exact": "精确份额",
    "measure-places": "来自它的位置",
    "measure-gradient": "梯度 × 向量",
    "measure-left_out": "去掉后",
    "reasons-groups": "{count} 元组合",
    "reasons-text": "原文，按每个词元的贡献着色",
    "reasons-picture": "词元、词元组合及其贡献",
    "reasons-caption":
      "灰色支持这个标签，红色反对，越明显越多；每种量法有自己的尺度，满格至少是 {full}。梯度 × 向量：标签的对数概率随词元向量按比例升高多少（Denil 等 2014）。去掉后：没有这个词元时它降低多少。",
    "reasons-caption-exact": "精确份额：它在标签的 logit（高出全部标签平均的部分）中所占的部分；连同各组合和偏置，份额加起来恰好等于它。",
    "reasons-caption-exact-zero": "精确份额：它在标签的 logit 中所占的部分；连同各组合和偏置，份额加起来恰好等于它。",
    "reasons-caption-places": "来自它的位置：标签的 logit 中由各层在该词元位置上写下的部分；一个位置读过所有其他位置，所以并不只属于这个词元。",
    "reasons-caption-groups":
      "文字下面是模型认识的词元组合（n 元组），各有自己的份额。去掉一个词元时，它的组合也一起消失，相邻词元组成新的组合，其余部分的份额随之变大。",
    agreement: "梯度与去掉后的相关系数是 {value}。",
    disagreement: "梯度与去掉后并不一致（相关系数 {value}）：梯度是这段文字处的一条直线，去掉一个词元却是离开它的一步，而且词元共同起作用。",
    "no-agreement": "词元太少，梯度与去掉后无法比较。",
  },
});

const LEAST_REASON = 0.01; // what is less is said to be nothing
const FULL_REASON = 0.1; // the least that is tinted with full strength, and drawn in full height
const AGREEING = 0.3; // the least correlation of two measures that agree
const REASONS = { head: 30, span: 19, measure: 62, gap: 6 };
const reasons = { by: null, woven: null };

section({
  id: "reasons",
  order: 0,
  applies: ({ contributions }) => (contributions?.length ?? 0) > 0,
  draw: drawReasons,
  place: placeReasons,
  repaint: () => repaintWeave(reasons.woven),
});

const reasonLabel = () => Math.min(place.label, data.contributions.length - 1);

// What each token adds to the label, by every measure there is, and each length of groups: {name, values}, {n, values}.
function reasonsNow() {
  const label = reasonLabel();
  const { gradient, left_out } = data.contributions[label];
  const [exact, places] = [labelShares("tokens", label), labelShares("places", label)];
  const all = { exact, left_out: arrayOf(left_out).values, gradient: arrayOf(gradient).values, places };
  const measures = Object.entries(all).filter(([, values]) => values);
  return {
    label,
    measures: measures.map(([name, values]) => ({ name, values })),
    groups: groupsOf(label),
  };
}

// Groups by their lengths: {n, values}, where values has the share of that which begins at each token, NaN where none does.
function groupsOf(label) {
  const recorded = data.shares?.ngrams;
  if (!recorded) return [];
  const [lengths, starts] = [arrayOf(recorded.n).values, arrayOf(recorded.start).values];
  const shares = within(arrayOf(recorded.values), label).values;
  return [...new Set(lengths)].map((n) => {
    const values = new Float32Array(SIDES.text.pieces.length).fill(NaN);
    lengths.forEach((length, i) => length === n && (values[starts[i]] = shares[i]));
    return { n, values };
  });
}

function labelShares(name, label) {
  const leaf = data.shares?.[name];
  return leaf ? within(arrayOf(leaf), label).values : null;
}

function drawReasons(box) {
  const now = reasonsNow();
  Object.assign(reasons, { now, by: now.measures[0].name });
  reasons.controls = make("div", { class: "controls" });
  const { lang } = SIDES.text;
  reasons.text = make("p", { id: "reasons-text", lang, "aria-label": say("reasons-text") });
  reasons.text.append(...SIDES.text.pieces.map((piece, i) => make("span", { "data-token": i, class: piece.startsWith("▁") ? "spaced" : null }, plainly(piece))));
  reasons.text.addEventListener("click", (event) => event.target.dataset.token && go({ side: "text", token: Number(event.target.dataset.token) }));
  box.append(reasons.controls, reasons.text);
  reasons.woven = weave(box, reasonsPicture(now));
  reasons.caption = make("p", { class: "caption" });
  box.append(reasons.caption);
}

function placeReasons(changed) {
  if (!changed.has("label") && !changed.has("token")) return;
  reasons.now = reasonsNow();
  drawReasonControls();
  tintReasons();
  sayReasons();
  const [row, column] = reasons.woven.at;
  standInWeave(reasons.woven, [row, changed.has("token") ? Math.min(place.token, SIDES.text.pieces.length - 1) : column]);
  paintWeave(reasons.woven);
}

function drawReasonControls() {
  const focused = reasons.controls.contains(root.activeElement) ? root.activeElement.name : null;
  const labels = data.contributions.map(({ label: name }, i) => [i, name]);
  const measures = reasons.now.measures.map(({ name }) => [name, say(`measure-${name}`)]);
  const tintBy = (by) => {
    reasons.by = by;
    tintReasons();
    sayReasons();
  };
  const groups = [choices(say("label"), "reasons-label", labels, reasonLabel(), (label) => go({ label })), choices(say("reasons-by"), "reasons-by", measures, reasons.by, tintBy)];
  reasons.controls.replaceChildren(...groups);
  if (focused) reasons.controls.querySelector(`[name="${focused}"]:checked`)?.focus();
}

const shownMeasure = () => reasons.now.measures.find(({ name }) => name === reasons.by) ?? reasons.now.measures[0];

// The amount that is shown in full: the largest, unless all are next to nothing.
const fullReason = (values) => Math.max(...Array.from(values, Math.abs), FULL_REASON);

function tintReasons() {
  const { values } = shownMeasure();
  const largest = fullReason(values);
  [...reasons.text.children].forEach((token, i) => {
    token.classList.toggle("below", values[i] < 0);
    token.style.setProperty("--depth", Math.sqrt(Math.abs(values[i]) / largest).toFixed(3));
    token.title = signed(values[i], 4);
  });
}

function sayReasons() {
  const { label, probability } = data.labels[reasonLabel()];
  const { values } = shownMeasure();
  const { pieces } = SIDES.text;
  title("reasons", say("reasons-title-of", { label }));
  const sentences = [say("reasons-prose", { label, probability: likely(probability) })];
  const [most, least] = [values.indexOf(Math.max(...values)), values.indexOf(Math.min(...values))];
  const isNothing = Math.max(values[most], -values[least]) < LEAST_REASON;
  if (isNothing) sentences.push(say("reasons-none", { value: LEAST_REASON }));
  else if (values[most] > 0) sentences.push(say("reasons-for", { token: quoted(pieces[most]), value: signed(values[most], digitsFor(values[most])) }));
  if (!isNothing && values[least] < 0) sentences.push(say("reasons-against", { token: quoted(pieces[least]), value: signed(values[least], digitsFor(-values[least])) }));
  prose("reasons", joined(sentences));
  reasons.caption.textContent = joined(reasonCaptions());
}

function reasonCaptions() {
  const { agreement } = data.contributions[reasonLabel()];
  const sentences = [say("reasons-caption", { full: FULL_REASON })];
  const names = reasons.now.measures.map(({ name }) => name);
  if (names.includes("exact")) sentences.push(say(data.shares.above === "zero" ? "reasons-caption-exact-zero" : "reasons-caption-exact"));
  if (names.includes("places")) sentences.push(say("reasons-caption-places"));
  if (reasons.now.groups.length) sentences.push(say("reasons-caption-groups"));
  const agree = agreement === null ? "no-agreement" : agreement < AGREEING ? "disagreement" : "agreement";
  return [...sentences, say(agree, { value: agreement === null ? "" : minus(agreement.toFixed(2)) })];
}

/* The picture: tokens, under them their groups as spans, and bars for each measure */

function reasonsPicture({ measures, groups }) {
  const { pieces, lang } = SIDES.text;
  const measure = make("canvas").getContext("2d");
  lettering(measure, 15, 650);
  const edges = [0];
  for (const piece of pieces) edges.push(edges.at(-1) + Math.min(Math.max(measure.measureText(plainly(piece)).width + 18, 54), 130));
  const heights = [...groups.map(({ n }) => n * REASONS.span + REASONS.gap), ...measures.map(() => REASONS.measure + REASONS.gap)];
  const tops = [REASONS.head];
  for (const height of heights) tops.push(tops.at(-1) + height);
  return {
    id: "reasons-grid",
    name: say("reasons-picture"),
    lang,
    rows: heights.length,
    columns: pieces.length,
    edges,
    tops,
    side: reasonSide(measure, groups, measures),
    paint: paintReasons,
    paintHeads: paintReasonHeads,
    read: readReason,
    choose: (_, token) => go({ side: "text", token }),
  };
}

const reasonNames = ({ groups, measures }) => [...groups.map(({ n }) => say("reasons-groups", { count: n })), ...measures.map(({ name }) => say(`measure-${name}`))];

function reasonSide(measure, groups, measures) {
  lettering(measure, 13);
  return Math.ceil(Math.max(...reasonNames({ groups, measures }).map((name) => measure.measureText(name).width))) + 16;
}

function readReason(row, column) {
  const { groups, measures } = reasons.now;
  const { pieces } = SIDES.text;
  if (row >= groups.length) {
    const { name, values } = measures[row - groups.length];
    return say("reasons-token", { measure: say(`measure-${name}`), token: quoted(pieces[column]), value: signed(values[column], 4) });
  }
  const { n, values } = groups[row];
  if (Number.isNaN(values[column])) return say("reasons-no-group", { count: n, token: quoted(pieces[column]) });
  return say("reasons-group", { count: n, token: quoted(groupText(column, n)), value: signed(values[column], 4) });
}

const groupText = (start, n) => SIDES.text.pieces.slice(start, start + n).map((piece) => visible(piece).replace(/▁/gu, " ")).join("").trim();

function paintReasons(context, first, last, x) {
  const { groups, measures } = reasons.now;
  const { tops } = reasons.woven.picture;
  const colours = { ink: tinted("ink", 1), muted: tinted("muted", 1), line: tinted("line", 1), above: hueOf("ink"), below: hueOf("minus") };
  context.textAlign = "center";
  for (let column = first; column < last; column++) paintReasonToken(context, column, x, colours);
  const longest = Math.max(0, ...groups.map(({ n }) => n));
  const largest = Math.max(1e-9, ...groups.flatMap(({ values }) => Array.from(values, (value) => Math.abs(value) || 0)));
  groups.forEach((group, row) => {
    for (let at = Math.max(first - longest, 0); at < last; at++) paintSpan(context, group, at, x, tops[row], largest, colours);
  });
  measures.forEach(({ values }, i) => paintMeasure(context, values, first, last, x, tops[groups.length + i], colours));
  if (place.token >= first && place.token < last) paintChosen(context, x(place.token), x(place.token + 1) - x(place.token), tops.at(-1));
}

function paintReasonToken(context, column, x, { ink, muted }) {
  const isChosen = column === place.token;
  const [left, width] = [x(column), x(column + 1) - x(column)];
  lettering(context, 15, isChosen ? 650 : 400);
  context.fillStyle = isChosen ? ink : muted;
  context.fillText(fitted(context, plainly(SIDES.text.pieces[column]), width - 6), left + width / 2, REASONS.head / 2);
}

// A group under its tokens; those that overlap stand below each other.
function paintSpan(context, { n, values }, at, x, top, largest, { ink, above, below }) {
  const value = values[at];
  if (!value) return;
  const [left, right] = [x(at) + 2, x(at + n) - 2];
  const y = top + (at % n) * REASONS.span;
  context.fillStyle = `rgb(${value < 0 ? below : above} / ${0.04 + 0.42 * Math.sqrt(Math.abs(value) / largest)})`;
  context.beginPath();
  context.roundRect(left, y + 1, right - left, REASONS.span - 2, 3);
  context.fill();
  context.fillStyle = ink;
  lettering(context, 11);
  context.fillText(signed(value, digitsFor(largest)), (left + right) / 2, y + REASONS.span / 2 + 0.5);
}

function paintMeasure(context, values, first, last, x, top, { ink, line, above, below }) {
  const largest = fullReason(values);
  const digits = digitsFor(Math.max(...Array.from(values, Math.abs)));
  const [middle, room] = [top + REASONS.measure / 2, REASONS.measure / 2 - 13];
  context.fillStyle = line;
  context.fillRect(x(first), middle - 0.5, x(last) - x(first), 1);
  lettering(context, 11);
  for (let column = first; column < last; column++) {
    const [left, width] = [x(column) + 8, x(column + 1) - x(column) - 16];
    const height = (room * values[column]) / largest;
    context.fillStyle = `rgb(${height < 0 ? below : above} / 0.75)`;
    context.fillRect(left, height < 0 ? middle : middle - height, width, Math.max(Math.abs(height), 0.5));
    context.fillStyle = ink;
    context.fillText(signed(values[column], digits), left + width / 2, height < 0 ? middle - height + 8 : middle - height - 7);
  }
}

function paintReasonHeads(context, side) {
  const { tops } = reasons.woven.picture;
  const { groups } = reasons.now;
  context.textAlign = "right";
  context.fillStyle = tinted("muted", 1);
  lettering(context, 13);
  reasonNames(reasons.now).forEach((name, row) => context.fillText(name, side - 8, row < groups.length ? tops[row] + REASONS.span / 2 : tops[row] + REASONS.measure / 2));
}
