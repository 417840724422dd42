/* Who wrote it: the logit of the chosen token as a sum of what each part of the model wrote. */

speak({
  en: {
    "wrote-title": "Who wrote it",
    "wrote-title-of": "Who wrote {token}",
    "wrote-prose-written":
      "The logit of {token} lies {height} {side} the mean of all {count} tokens. That number is a sum: every part of the model has written " +
      "its share of it, and the shares add up exactly.",
    "wrote-prose-counted":
      "The logit of {token} is {own}, the mean of all {count} tokens {mean}: it lies {height} {side} the mean. That difference is a sum: every part of " +
      "the model has written its share of it, and the shares add up exactly.",
    "wrote-above": "above",
    "wrote-below": "below",
    "wrote-prose-label-mean": "The logit of {token} lies {height} {side} the mean of all labels. That number is a sum: every part has its share of it.",
    "wrote-prose-label-zero": "The logit of {token} is {logit}. That number is a sum: every part has its share of it.",
    "wrote-prose-source": "{share} of it, {percent} %, came directly from looks at the source; other parts have read what these brought.",
    "wrote-prose-source-alone": "{share} of it came directly from looks at the source; other parts have read what these brought.",
    "wrote-prose-most": "The most came from “{part}”: {value}.",
    "wrote-parts": "Shares of each part",
    "wrote-sum": "Sum {sum}; the logit less the mean is {logit}; they differ by {error} (at most {most} at any token here).",
    "wrote-sum-label-mean": "Sum {sum}; the logit less the mean is {logit}; they differ by {error} (at most {most} at any label).",
    "wrote-sum-label-zero": "Sum {sum}; the logit is {logit}; they differ by {error} (at most {most} at any label).",
    "wrote-by-head": "“{part}”, by head",
    "wrote-by-token": "and by the token that it looked at",
    "wrote-by-token-head": "and by the token that head {head} looked at",
    "wrote-head": "head {head}",
    "wrote-all-heads": "all heads",
    "wrote-others": "{count} others",
    "wrote-no-heads": "“{part}” has no heads: its share, {value}, cannot be divided further.",
    "wrote-left-out": "What the heads of “{part}” wrote is left out of this page, which would become too large with it. A shorter sentence has room for it; and a page written with --live computes it for the sentence that is typed into it.",
    "wrote-first-label": "What the heads of “{part}” wrote is known of the most probable label alone, “{label}”.",
    "wrote-from-source": "How much of each token came directly from the source",
    "wrote-from-source-reading": "{token}: {share} of {logit} came from the source, {percent} %.",
    "wrote-from-source-reading-alone": "{token}: {share} came from the source; its logit less the mean is {logit}.",
    "wrote-row-token": "the token’s row of the output matrix, less the mean of all rows",
    "wrote-row-mean": "the label’s row of the output matrix, less the mean of all rows",
    "wrote-row-zero": "the label’s row of the output matrix",
    "wrote-caption":
      "With the scale of every norm held as it was in this pass, the output is a sum of what the parts wrote, and the number above is that " +
      "sum read by {row} (direct logit attribution: Elhage et al. 2021, “A Mathematical Framework for Transformer " +
      "Circuits”). All biases, those of norms too, have a row of their own. A share says what was written, not what would have been " +
      "without it.",
  },
  zh: {
    "wrote-title": "是谁写的",
    "wrote-title-of": "是谁写了{token}",
    "wrote-prose-written": "{token} 的 logit 比全部 {count} 个词元的平均{side} {height}。这个数是一个和：模型的每一部分都写下了自己的一份，各份加起来恰好等于它。",
    "wrote-prose-counted":
      "{token} 的 logit 是 {own}，全部 {count} 个词元的平均是 {mean}：比平均{side} {height}。这个差是一个和：模型的每一部分都写下了自己的一份，各份加起来恰好等于它。",
    "wrote-above": "高",
    "wrote-below": "低",
    "wrote-prose-label-mean": "{token} 的 logit 比全部标签的平均{side} {height}。这个数是一个和：每一部分都有自己的一份。",
    "wrote-prose-label-zero": "{token} 的 logit 是 {logit}。这个数是一个和：每一部分都有自己的一份。",
    "wrote-prose-source": "其中 {share}（{percent}%）直接来自对源文的注意力；其他部分也读到了它带来的内容。",
    "wrote-prose-source-alone": "其中 {share} 直接来自对源文的注意力；其他部分也读到了它带来的内容。",
    "wrote-prose-most": "最多的一份来自“{part}”：{value}。",
    "wrote-parts": "每一部分的份额",
    "wrote-sum": "和为 {sum}，logit 减去平均为 {logit}，相差 {error}（这里任何词元最多差 {most}）。",
    "wrote-sum-label-mean": "和为 {sum}，logit 减去平均为 {logit}，相差 {error}（任何标签最多差 {most}）。",
    "wrote-sum-label-zero": "和为 {sum}，logit 为 {logit}，相差 {error}（任何标签最多差 {most}）。",
    "wrote-by-head": "“{part}”，按头分",
    "wrote-by-token": "再按所看的词元分",
    "wrote-by-token-head": "再按第 {head} 个头所看的词元分",
    "wrote-head": "第 {head} 个头",
    "wrote-all-heads": "所有头",
    "wrote-others": "其余 {count} 个",
    "wrote-no-heads": "“{part}”没有头：它的份额 {value} 不能再分。",
    "wrote-left-out": "“{part}”的各头写了什么没有放进本页，否则页面会太大。较短的句子放得下；用 --live 写成的页面会为键入的句子自己计算。",
    "wrote-first-label": "“{part}”的各头写了什么，只对最可能的标签“{label}”记录。",
    "wrote-from-source": "每个词元有多少直接来自源文",
    "wrote-from-source-reading": "{token}：{logit} 中有 {share} 来自源文，{percent}%。",
    "wrote-from-source-reading-alone": "{token}：{share} 来自源文；它的 logit 减去平均是 {logit}。",
    "wrote-row-token": "该词元在输出矩阵中的那一行减去各行的平均",
    "wrote-row-mean": "该标签在输出矩阵中的那一行减去各行的平均",
    "wrote-row-zero": "该标签在输出矩阵中的那一行",
    "wrote-caption":
      "把每个归一化的缩放固定为这次计算的值，输出就是各部分所写之和，而上面的数是用{row}去读这个和" +
      "（直接 logit 归因：Elhage 等 2021，“A Mathematical Framework for Transformer Circuits”）。所有偏置（包括归一化的）单独成一行。" +
      "份额说的是写下了什么，而不是没有它会怎样。",
  },
});

const WROTE_TOKENS = 12; // so many of the tokens that a part looked at have a row of their own
const WROTE_STRIP = { head: 26, bar: 56 };
const wrote = { all: MEAN, parts: null, detail: null, strip: null, marked: null };

section({
  id: "wrote",
  order: 6,
  applies: ({ shares }) => Boolean(shares?.values && (arrayOf(shares.values)?.values.length ?? 0) > 0),
  draw: drawWrote,
  place: placeWrote,
  repaint: () => repaintWeave(wrote.strip),
});

function drawWrote(box) {
  wrote.strip = null;
  wrote.all = MEAN;
  wrote.parts = make("div", { id: "wrote-parts" });
  wrote.sum = make("p", { class: "small", id: "wrote-sum" });
  wrote.detail = make("div", { class: "wrote-detail", id: "wrote-detail" });
  wrote.labels = make("div", { class: "controls" });
  box.append(wrote.labels, make("div", { class: "halves" }, make("div", {}, wrote.parts, wrote.sum), wrote.detail));
  if (data.shares.source) drawSourceStrip(box);
  box.append(make("p", { class: "caption" }, say("wrote-caption", { row: say(`wrote-row-${WRITTEN ? "token" : countedFrom()}`) })));
}

function placeWrote(changed) {
  if (changed.has("part") || changed.has("step")) wrote.all = MEAN;
  if (!["step", "part", "label"].some((name) => changed.has(name))) return markWroteToken();
  const now = sharesNow();
  const chosen = partNow(now);
  title("wrote", say("wrote-title-of", { token: now.token }));
  prose("wrote", wroteProse(now));
  if (!WRITTEN) drawWroteLabels();
  drawWroteParts(now, chosen);
  drawWroteDetail(now, chosen);
  if (wrote.strip) {
    standInWeave(wrote.strip, [0, place.step]);
    paintWeave(wrote.strip);
  }
}

// The label that is shown of a classifier, as far as its shares are there.
const labelNow = () => Math.min(place.label, arrayOf(data.shares.logit).values.length - 1);

// The shares at the place: {rows, values, logit, token}.
function sharesNow() {
  const { rows } = data.shares;
  const all = arrayOf(data.shares.values);
  const at = WRITTEN ? place.step : labelNow();
  const values = WRITTEN ? rows.map((_, i) => all.values[i * all.shape[1] + at]) : [...within(all, at).values];
  const token = WRITTEN ? quoted(writtenAt(at).piece) : `“${data.labels[at].label}”`;
  return { rows, values, logit: arrayOf(data.shares.logit).values[at], token, at };
}

// The map of a part, undefined of a part without heads.
const kindOfPart = ({ part }) => ({ cross: "cross", self: WRITTEN ? "decoder" : "encoder" })[part];
const hasHeads = (row) => Boolean(data.shares.written?.[kindOfPart(row)]) && (WRITTEN || labelNow() === 0);

// The row that is looked into: the chosen one, or that which wrote most through its heads.
function partNow({ rows, values }) {
  const chosen = rows.findIndex((row) => keyOfPart(row) === place.part);
  if (chosen >= 0) return chosen;
  const heads = rows.map((row, i) => i).filter((i) => hasHeads(rows[i]));
  return (heads.length ? heads : [...rows.keys()]).reduce((best, i) => (values[i] > values[best] ? i : best));
}

function wroteProse({ rows, values, logit, token, at }) {
  const count = grouped(data.choices?.count ?? data.model.vocabulary[WRITTEN] ?? 0);
  const said = { token, logit: minus(logit.toFixed(2)), height: Math.abs(logit).toFixed(2), side: say(logit < 0 ? "wrote-below" : "wrote-above"), count };
  const own = WRITTEN ? ownLogit() : null;
  if (own !== null) Object.assign(said, { own: minus(own), mean: minus((own - logit.toFixed(2)).toFixed(2)) });
  const written = own === null ? "written" : "counted";
  const sentences = [say(`wrote-prose-${WRITTEN ? written : `label-${countedFrom()}`}`, said)];
  if (data.shares.source) sentences.push(sourceSaid("wrote-prose-source", at));
  else {
    const most = values.indexOf(Math.max(...values));
    sentences.push(say("wrote-prose-most", { part: wroteName(rows[most]), value: signed(values[most]) }));
  }
  return joined(sentences);
}

// The logit of the written token as “Choosing” has it, null where it is not among those that are recorded.
function ownLogit() {
  if (!data.choices) return null;
  const [ids, logits] = [data.choices.ids, data.choices.logits].map((leaf) => within(arrayOf(leaf), place.step).values);
  const rank = ids.indexOf(writtenAt(place.step).id);
  return rank < 0 ? null : logits[rank].toFixed(2);
}

// What the logits of labels are counted from: their mean, or zero where each label is a yes or no of its own.
const countedFrom = () => data.shares.above ?? "mean";

// The largest difference of a sum from its logit, of the numbers as this page has them.
function mostApart() {
  const { shape: [rows, columns], values } = arrayOf(data.shares.values); // a row for each part, or for each label
  const sums = new Float64Array(WRITTEN ? columns : rows);
  values.forEach((value, i) => (sums[WRITTEN ? i % columns : Math.floor(i / columns)] += value));
  return arrayOf(data.shares.logit).values.reduce((most, logit, i) => Math.max(most, Math.abs(sums[i] - logit)), data.shares.error);
}

// How much came from the source; of a logit near zero a percentage says nothing.
function sourceSaid(key, step) {
  const [share, logit] = [arrayOf(data.shares.source).values[step], arrayOf(data.shares.logit).values[step]];
  const token = quoted(writtenAt(step).piece);
  const values = { token, share: signed(share), logit: minus(logit.toFixed(2)), percent: Math.round((100 * share) / logit) };
  return say(logit > 0.5 && share >= 0 && share <= logit ? key : `${key}-alone`, values);
}

// A part's name with the token that it is about: what entered the model at this place.
function wroteName(row) {
  return nameOfPart(row, WRITTEN ? quoted(readAt(place.step)) : "");
}

function drawWroteLabels() {
  const labels = data.labels.slice(0, arrayOf(data.shares.logit).values.length).map(({ label: name }, i) => [i, name]);
  wrote.labels.replaceChildren(choices(say("label"), "wrote-label", labels, labelNow(), (label) => go({ label })));
}

function drawWroteParts({ rows, values, logit }, chosen) {
  const list = rows.map((row, i) => ({ key: keyOfPart(row), name: wroteName(row), value: values[i], role: roleOf(row), chosen: i === chosen }));
  drawAmounts(wrote.parts, list, { name: say("wrote-parts"), choose: choosePart });
  const sum = values.reduce((total, value) => total + value, 0);
  const said = { sum: signed(sum), logit: signed(logit), error: small(Math.abs(sum - logit)), most: small(mostApart()) };
  wrote.sum.textContent = say(WRITTEN ? "wrote-sum" : `wrote-sum-label-${countedFrom()}`, said);
}

// The map of a part is looked at with it.
function choosePart(key) {
  const row = data.shares.rows.find((each) => keyOfPart(each) === key);
  go({ part: key, ...(KINDS[kindOfPart(row)] ? { kind: kindOfPart(row), layer: row.layer, tint: place.tint } : {}) });
}

function drawWroteDetail({ rows, values, at }, chosen) {
  const row = rows[chosen];
  const name = wroteName(row);
  if (!hasHeads(row)) return wrote.detail.replaceChildren(make("p", { class: "small" }, withoutHeads(row, name, values[chosen])));
  const kind = kindOfPart(row);
  wrote.marked = markedKey(kind, row.layer);
  const { heads, keys } = byHeadAndKey(kind, row.layer, at);
  const lists = [make("div", { id: "wrote-heads" }), make("div", { id: "wrote-tokens" })];
  const title = (text) => make("h3", {}, text);
  const byToken = wrote.all === MEAN ? say("wrote-by-token") : say("wrote-by-token-head", { head: wrote.all + 1 });
  wrote.detail.replaceChildren(title(say("wrote-by-head", { part: name })), lists[0], title(byToken), lists[1]);
  drawHeadAmounts(lists[0], kind, row, heads);
  drawTokenAmounts(lists[1], kind, row, keys);
}

// The key that is chosen of a part’s map.
const markedKey = (kind, layer) => (place.kind === kind && place.layer === layer ? place.key : null);

// Of another map, or place in one, nothing follows here but which token is marked.
function markWroteToken() {
  const now = sharesNow();
  const row = now.rows[partNow(now)];
  const kind = kindOfPart(row);
  const list = byId("wrote-tokens");
  if (!list || !hasHeads(row) || wrote.marked === markedKey(kind, row.layer)) return;
  wrote.marked = markedKey(kind, row.layer);
  drawTokenAmounts(list, kind, row, byHeadAndKey(kind, row.layer, now.at).keys);
}

// Why a part is not divided by heads.
function withoutHeads(row, part, value) {
  const kind = kindOfPart(row);
  if (!kind) return say("wrote-no-heads", { part, value: signed(value) });
  return data.shares.written?.[kind] ? say("wrote-first-label", { part, label: data.labels[0].label }) : say("wrote-left-out", { part });
}

// What each head wrote, and what it, or all of them, carried from each key.
function byHeadAndKey(kind, layer, step) {
  const all = arrayOf(data.shares.written[kind]);
  const maps = Array.from({ length: all.shape[1] }, (_, head) => (WRITTEN ? within(all, layer, head, step).values : summedByKey(within(all, layer, head))));
  const heads = maps.map((values) => values.reduce((sum, value) => sum + value, 0));
  const shown = wrote.all === MEAN ? maps : [maps[wrote.all]];
  const keys = Array.from(maps[0], (_, key) => shown.reduce((sum, values) => sum + values[key], 0));
  return { heads, keys };
}

// Of a classifier all places together.
function summedByKey({ shape: [rows, keys], values }) {
  const sums = new Float32Array(keys);
  for (let i = 0; i < rows * keys; i++) sums[i % keys] += values[i];
  return sums;
}

function drawHeadAmounts(list, kind, { layer, part }, heads) {
  const total = heads.reduce((sum, value) => sum + value, 0);
  const role = roleOf({ part });
  const rows = [...heads.entries()].map(([head, value]) => ({ key: head, name: say("wrote-head", { head: head + 1 }), value, role, chosen: wrote.all === head }));
  if (rows.length > 1) rows.unshift({ key: MEAN, name: say("wrote-all-heads"), value: total, role, chosen: wrote.all === MEAN });
  const choose = (key) => {
    wrote.all = Number(key);
    drawWroteDetail(sharesNow(), partNow(sharesNow()));
    root.querySelector(`#wrote-heads [data-key="${key}"]`)?.focus({ preventScroll: true });
    if (KINDS[kind] && wrote.all !== MEAN) keepingHead(() => go({ kind, layer, head: wrote.all, tint: place.tint }));
  };
  drawAmounts(list, rows, { name: say("wrote-by-head", { part: wroteName({ part, layer }) }), choose });
}

function keepingHead(change) {
  const { all } = wrote;
  change();
  wrote.all = all;
}

function drawTokenAmounts(list, kind, { layer, part }, values) {
  const { keys, cols } = KINDS[kind];
  const seen = [...values.keys()].filter((key) => isVisible(kind, place.step, key));
  const most = seen.length === WROTE_TOKENS + 1 ? seen.length : WROTE_TOKENS; // one alone is not folded
  const shown = seen.toSorted((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, most);
  const role = roleOf({ part });
  const token = (key) => ({ key, name: plainly(keys[key]), lang: SIDES[cols].lang, value: values[key], role, chosen: wrote.marked === key });
  const rows = shown.toSorted((a, b) => a - b).map(token);
  const others = seen.filter((key) => !shown.includes(key));
  const rest = { key: "", name: say("wrote-others", { count: others.length }), value: others.reduce((sum, key) => sum + values[key], 0) };
  const choose = (key) => key !== "" && keepingHead(() => go({ kind, layer, key: Number(key), tint: place.tint }));
  drawAmounts(list, others.length ? [...rows, rest] : rows, { name: say("wrote-by-token"), choose });
}

/* Every token's share from the source */

function drawSourceStrip(box) {
  const width = Math.floor(Math.min(Math.max(box.clientWidth / numSteps(), 46), 72));
  box.append(make("h3", {}, say("wrote-from-source")));
  wrote.strip = weave(box, {
    id: "wrote-source",
    name: say("wrote-from-source"),
    lang: SIDES.target.lang,
    rows: 1,
    columns: numSteps(),
    edges: Array.from({ length: numSteps() + 1 }, (_, i) => i * width),
    tops: [WROTE_STRIP.head, WROTE_STRIP.head + WROTE_STRIP.bar],
    side: 0,
    least: Array.from({ length: numSteps() }, (_, step) => Math.max(widthOf(writtenAt(step).piece, letters(15, 650)) + 8, 38)),
    paint: paintSourceStrip,
    paintHeads: () => {},
    read: (_, step) => sourceSaid("wrote-from-source-reading", step),
    choose: (_, step) => go({ step }),
  });
}

function paintSourceStrip(context, first, last, x) {
  const { head, bar: height } = WROTE_STRIP;
  const [ink, muted, hue, pale] = [tinted("ink", 1), tinted("muted", 1), tinted("source", 0.75), tinted("source", 0.09)];
  const [shares, logits] = [arrayOf(data.shares.source).values, arrayOf(data.shares.logit).values];
  const texts = [];
  context.textAlign = "center";
  for (let step = first; step < last; step++) {
    const [left, width] = [x(step), x(step + 1) - x(step)];
    const portion = logits[step] > 0 ? Math.min(Math.max(shares[step] / logits[step], 0), 1) : 0;
    const room = height - 18;
    context.fillStyle = pale;
    context.fillRect(left + 3, head, width - 6, room);
    context.fillStyle = hue;
    context.fillRect(left + 3, head + room * (1 - portion), width - 6, room * portion);
    const [colour, weight] = step === place.step ? [ink, 650] : [muted, 400];
    const amount = logits[step] > 0.5 ? `${Math.round((100 * shares[step]) / logits[step])} %` : signed(shares[step]);
    texts.push([15, weight, colour, plainly(writtenAt(step).piece), left + width / 2, head / 2, width - 6]);
    texts.push([11, weight, colour, minus(amount), left + width / 2, head + height - 8, width]);
  }
  writeTexts(context, texts);
}
