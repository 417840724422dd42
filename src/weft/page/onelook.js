/* One look in stages: a query and a key, their product, the score, the softmax, and the value that is carried. */

speak({
  en: {
    "onelook-title": "One look",
    "onelook-title-of": "One look: {query} looks at {key}",
    "onelook-title-writing": "One look at {key}: after {query}, to write {written}",
    "onelook-title-foretelling": "One look at {key}: after {query}, to foretell {written}",
    "onelook-prose":
      "{name}. A look compares two vectors: what {query} asks, its query, and what every token offers, its key. How well they fit decides how " +
      "much of that token’s value is carried over.",
    "onelook-writing":
      "The decoder has read {query} last, and is to write {written}: it cannot know that yet, so the query is that of {query}.",
    "onelook-foretelling":
      "The model has read {query} last, and is to foretell {written}: it cannot know that yet, so the query is that of {query}.",
    "onelook-mean": "A mean of heads has no query of its own: this is head {head}.",
    "onelook-kind": "Look",
    "onelook-match": "Query and key, {count} numbers each, are multiplied number by number.",
    "onelook-query": "query of {token}",
    "onelook-key": "key of {token}",
    "onelook-product": "product",
    "onelook-strip-reading": "Number {number}: query {query} × key {key} ≈ {product}.",
    "onelook-sum": "The products add up to {sum}. Divided by √{count} {root}, that is the score of {key}: {score}.",
    "onelook-sum-off":
      "The products add up to {sum}. Divided by √{count} {root}, that would be the score of {key}: {score}. But the token is switched off, " +
      "and nothing looks at it.",
    "onelook-softmax":
      "Every key gets a score, and the softmax turns the scores into weights that add up to 1: each is its exponential, divided by all of " +
      "them together. {key} gets {weight}.",
    "onelook-softmax-off":
      "Every key that is not switched off gets a score, and the softmax turns the scores into weights that add up to 1: each is its " +
      "exponential, divided by all of them together. {key} is switched off, and gets 0.",
    "onelook-softmax-none": "All keys are switched off: there is nothing to look at, and no weight.",
    "onelook-also-off": "Switched off, and without a weight: {tokens}.",
    "onelook-masked": "The {count} after {query} are masked: the future cannot be seen.",
    "onelook-masked-one": "The one after {query} is masked: the future cannot be seen.",
    "onelook-weights": "Scores and weights of every key",
    "onelook-weight": "weight",
    "onelook-score": "score",
    "onelook-key-reading": "{key}: score {score}, weight {weight}.",
    "onelook-key-changed": "{key}: score {score}, weight {weight}; with a temperature of {temperature}: {changed}.",
    "onelook-key-masked": "{key} is masked: it comes later.",
    "onelook-off": "off",
    "onelook-temperature": "Temperature of this picture",
    "onelook-back": "1 again",
    "onelook-value": "The weight carries the value of {key}: {weight} times each of its {count} numbers.",
    "onelook-value-off": "{key} is switched off: nothing of its {count} numbers, its value, is carried over.",
    "onelook-value-row": "value of {token}",
    "onelook-carried": "carried: × {weight}",
    "onelook-value-reading": "Number {number}: value {value} × {weight} ≈ {carried}.",
    "onelook-wrote": "Through the head’s output that wrote {share} of the logit of {token}.",
    "onelook-check": "Query and key give the weights that were recorded, to {difference}.",
    "onelook-check-apart":
      "Queries, keys and values are rounded in this page: the weights that they give differ from the model’s own, which all pictures show, " +
      "by up to {difference}.",
    "onelook-left-out":
      "The queries, keys and values of “{kind}” are left out of this page, which would become too large with them. A shorter sentence has " +
      "room for them; and a page written with --live computes them for the sentence that is typed into it.",
    "onelook-caption":
      "Grey is above zero, red below. Scaled dot-product attention: Vaswani et al. 2017, section 3.2.1.",
    "onelook-dial": "The temperature is not part of the model, and changes nothing but this picture.",
  },
  zh: {
    "onelook-title": "看一眼",
    "onelook-title-of": "看一眼：{query} 看 {key}",
    "onelook-title-writing": "看一眼 {key}：读完 {query}，要写 {written}",
    "onelook-title-foretelling": "看一眼 {key}：读完 {query}，要预测 {written}",
    "onelook-prose": "{name}。看一眼就是比较两个向量：{query} 所问的（查询），和每个词元所给的（键）。两者有多合，就把那个词元的值带过来多少。",
    "onelook-writing": "解码器最后读到的是 {query}，要写的是 {written}：它还不知道后者，所以查询属于 {query}。",
    "onelook-foretelling": "模型最后读到的是 {query}，要预测的是 {written}：它还不知道后者，所以查询属于 {query}。",
    "onelook-mean": "各头的平均没有自己的查询：这里是第 {head} 个头。",
    "onelook-kind": "看",
    "onelook-match": "查询和键各有 {count} 个数，逐个相乘。",
    "onelook-query": "{token} 的查询",
    "onelook-key": "{token} 的键",
    "onelook-product": "乘积",
    "onelook-strip-reading": "第 {number} 个数：查询 {query} × 键 {key} ≈ {product}。",
    "onelook-sum": "乘积之和是 {sum}。除以 √{count} {root}，就是 {key} 的分数：{score}。",
    "onelook-sum-off": "乘积之和是 {sum}。除以 √{count} {root}，本该是 {key} 的分数：{score}。但这个词元已关掉，没有谁看它。",
    "onelook-softmax": "每个键都有分数，softmax 把分数变成总和为 1 的权重：各自的指数除以所有指数之和。{key} 得到 {weight}。",
    "onelook-softmax-off": "每个没有关掉的键都有分数，softmax 把分数变成总和为 1 的权重：各自的指数除以所有指数之和。{key} 已关掉，得到 0。",
    "onelook-softmax-none": "所有键都已关掉：没有可看的，也没有权重。",
    "onelook-also-off": "已关掉、没有权重的：{tokens}。",
    "onelook-masked": "{query} 后面的 {count} 个被遮住：未来是看不见的。",
    "onelook-masked-one": "{query} 后面的一个被遮住：未来是看不见的。",
    "onelook-weights": "每个键的分数和权重",
    "onelook-weight": "权重",
    "onelook-score": "分数",
    "onelook-key-reading": "{key}：分数 {score}，权重 {weight}。",
    "onelook-key-changed": "{key}：分数 {score}，权重 {weight}；温度为 {temperature} 时：{changed}。",
    "onelook-key-masked": "{key} 被遮住：它在后面。",
    "onelook-off": "关",
    "onelook-temperature": "这张图的温度",
    "onelook-back": "恢复为 1",
    "onelook-value": "权重带来 {key} 的值：它的 {count} 个数各乘以 {weight}。",
    "onelook-value-off": "{key} 已关掉：它的值（{count} 个数）丝毫不会带过来。",
    "onelook-value-row": "{token} 的值",
    "onelook-carried": "带来：× {weight}",
    "onelook-value-reading": "第 {number} 个数：值 {value} × {weight} ≈ {carried}。",
    "onelook-wrote": "经过这个头的输出，它写下了 {token} 的 logit 中的 {share}。",
    "onelook-check": "由查询和键算出的权重与记录的一致，相差至多 {difference}。",
    "onelook-check-apart": "查询、键和值在本页中经过舍入：由它们算出的权重与模型自己的（各图所显示的）相差至多 {difference}。",
    "onelook-left-out": "“{kind}”的查询、键和值没有放进本页，否则页面会太大。较短的句子放得下；用 --live 写成的页面会为键入的句子自己计算它们。",
    "onelook-caption": "灰色大于零，红色小于零。缩放点积注意力：Vaswani 等 2017，3.2.1 节。",
    "onelook-dial": "温度不是模型的一部分，只改变这张图。",
  },
});

const LOOK_ROW = 26;
const LOOK_BARS = { head: 28, bar: 112, score: 26 };
const [PRODUCT, CARRIED] = [["query", "key", "product"], ["value", "carried"]]; // the strips of the two pictures of numbers
const APART = 1e-3; // weights that are further from the recorded ones are said to be
const onelook = { temperature: 1, now: null };

section({
  id: "onelook",
  order: 3,
  applies: ({ looks }) => Object.keys(KINDS).some((kind) => looks?.[kind] || looks?.left_out.includes(kind)),
  draw: drawOneLook,
  place: placeOneLook,
  repaint: repaintOneLook,
});

function drawOneLook(box) {
  Object.assign(onelook, { box, temperature: 1, shape: null, weaves: [], room: null });
  new ResizeObserver(([{ contentRect }]) => (onelook.room = Math.floor(contentRect.width))).observe(box);
}

function placeOneLook(changed) {
  if (!["step", "row", "kind", "layer", "head", "key"].some((name) => changed.has(name))) return;
  const now = lookNow();
  const same = onelook.shape === shapeOfLook(now);
  onelook.now = now;
  onelook.shape = shapeOfLook(now);
  if (!same) frameOneLook();
  checkLookControls();
  if (now.query) sayOneLook();
  else sayLeftOut();
  repaintOneLook();
}

// What the frame of the pictures depends on; the rest is painted into it.
const shapeOfLook = ({ kind, query, keys }) => [kind, Boolean(query), keys.length, language].join();

// The look at the place: its head, its key, and all that is computed of them.
function lookNow() {
  const { kind, layer } = place;
  const row = rowIn(kind);
  const { keys } = KINDS[kind];
  const head = place.head === MEAN ? busiestHead(kind, layer, row) : place.head;
  const weights = within(mapOf(kind, layer, head), row).values; // as they were recorded, which all pictures show
  const key = place.key ?? weights.indexOf(Math.max(...weights));
  const base = { kind, layer, row, head, key, keys, weights };
  const vectors = data.looks[kind];
  if (!vectors) return base;
  const part = (name, at) => within(arrayOf(vectors[name]), layer, at, head).values;
  const query = part("query", row);
  const scores = Array.from(keys, (_, at) => (isVisible(kind, row, at) ? scoreOf(query, part("key", at)) : -Infinity));
  const open = scores.map((score, at) => (isOffKey(kind, at) ? -Infinity : score)); // to the softmax
  const isRounded = !vectors.query.values; // of a page that computes they are as exact as its weights
  return { ...base, query, keyVector: part("key", key), value: part("value", key), scores, open, isRounded };
}

// Of a mean of heads the one that looks hardest at one place.
function busiestHead(kind, layer, row) {
  const largest = [...Array(KINDS[kind].heads).keys()].map((head) => Math.max(...within(mapOf(kind, layer, head), row).values));
  return largest.indexOf(Math.max(...largest));
}

function scoreOf(query, key) {
  let sum = 0;
  for (let i = 0; i < query.length; i++) sum += query[i] * key[i];
  return sum / Math.sqrt(query.length);
}

function softmaxOf(scores, temperature) {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp((score - largest) / temperature));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return largest === -Infinity ? scores.map(() => 0) : powers.map((power) => power / total);
}

// The weights with another temperature: of the recorded ones, and where those are rounded to nothing of query and key.
function weightsAt(temperature) {
  const { open, weights } = onelook.now;
  if (temperature === 1) return weights;
  const computed = softmaxOf(open, 1);
  const logs = open.map((score, at) => (score === -Infinity ? score : Math.log(weights[at] > APART ? weights[at] : computed[at])));
  return softmaxOf(logs, temperature);
}

/* The frame of the stages */

function frameOneLook() {
  const { box, now } = onelook;
  const room = (onelook.room ??= box.clientWidth); // kept: to ask for it lays out the page, and this section if it is out of sight
  const say1 = (id) => make("p", { class: "stage", id });
  onelook.controls = make("div", { class: "controls" });
  if (!now.query) {
    onelook.weaves = [];
    box.replaceChildren(onelook.controls, say1("onelook-left-out"));
    return drawLookControls();
  }
  const [match, soft, value] = ["match", "softmax", "value"].map((name) => make("div", { class: "stage-picture", id: `onelook-${name}-box` }));
  const stages = make("div", { class: "stages" }, say1("onelook-match"), match, say1("onelook-sum"), say1("onelook-softmax"), temperatureControl(), soft);
  stages.append(say1("onelook-value"), value, say1("onelook-wrote"));
  box.replaceChildren(onelook.controls, stages, make("p", { class: "small", id: "onelook-check" }), make("p", { class: "caption" }, say("onelook-caption"), hint(say("onelook-dial"), { id: "onelook-dial" })));
  drawLookControls();
  onelook.weaves = [weaveStrips(match, room, PRODUCT, "onelook-strips"), weaveWeights(soft, room), weaveStrips(value, room, CARRIED, "onelook-values")];
}

function drawLookControls() {
  const { layers, heads } = KINDS[place.kind];
  const counted = (count) => Array.from({ length: count }, (_, i) => [i, i + 1]);
  const kinds = Object.keys(KINDS).map((kind) => [kind, say(`kind-${kind}`)]);
  const groups = [];
  if (kinds.length > 1) groups.push(choices(say("onelook-kind"), "onelook-kind", kinds, place.kind, (kind) => go({ kind })));
  if (layers > 1) groups.push(choices(say("layer"), "onelook-layer", counted(layers), place.layer, (layer) => go({ layer })));
  if (heads > 1) groups.push(choices(say("head"), "onelook-head", counted(heads), place.head, (head) => go({ head })));
  const focused = root.activeElement?.name;
  onelook.controls.replaceChildren(...groups);
  if (focused?.startsWith("onelook-")) onelook.controls.querySelector(`[name="${focused}"]:checked`)?.focus();
}

function checkLookControls() {
  const shown = { "onelook-kind": place.kind, "onelook-layer": place.layer, "onelook-head": onelook.now.head };
  for (const input of onelook.controls.querySelectorAll("input")) input.checked = `${shown[input.name]}` === input.value;
}

function temperatureControl() {
  const slider = make("input", { type: "range", id: "onelook-temperature", min: -2, max: 2, step: 0.1, value: 0, autocomplete: "off" });
  const output = make("output", { for: "onelook-temperature" }, "1.00");
  const back = make("button", { type: "button", class: "quiet", hidden: true }, say("onelook-back"));
  const set = (power) => {
    onelook.temperature = 2 ** power;
    output.textContent = onelook.temperature.toFixed(2);
    back.hidden = power === 0;
    byId("onelook-dial").classList.toggle("on-screen", power === 0); // paper has no dial, but may show what one has changed
    standInWeave(onelook.weaves[1], onelook.weaves[1].at);
    paintWeave(onelook.weaves[1]);
  };
  slider.addEventListener("input", () => set(Number(slider.value)));
  back.addEventListener("click", () => {
    slider.value = 0;
    set(0);
    slider.focus();
  });
  return make("div", { class: "controls dial" }, make("label", { for: "onelook-temperature" }, say("onelook-temperature")), slider, output, back);
}

/* Words */

// Who looks: the token whose stream the query is of. A decoder writes a token from what it has read last.
const lookerNow = ({ kind, row }) => quoted(KINDS[kind].rows === WRITTEN ? readAt(row) : KINDS[kind].queries[row]);

// What it looks for, as far as that is one token: how the sentences about it end.
function purposeNow({ kind, row }) {
  if (KINDS[kind].rows !== WRITTEN) return null;
  return { way: OFFSET ? "foretelling" : "writing", written: quoted(writtenAt(row).piece) };
}

function sayOneLook() {
  const { kind, layer, head, key, keys, row, query, scores, weights } = onelook.now;
  const looker = lookerNow(onelook.now);
  const token = quoted(keys[key]);
  const purpose = purposeNow(onelook.now);
  const said = { name: nameOf(kind, layer, head), query: looker, key: token, written: purpose?.written };
  title("onelook", say(`onelook-title-${purpose?.way ?? "of"}`, said));
  const sentences = [say("onelook-prose", said), ...(purpose ? [say(`onelook-${purpose.way}`, said)] : [])];
  if (place.head === MEAN) sentences.push(say("onelook-mean", { head: head + 1 }));
  prose("onelook", joined(sentences));
  const count = query.length;
  const root = Math.sqrt(count);
  const values = { key: token, count, root: rootSaid(root), score: minus(scores[key].toFixed(2)), weight: number(weights[key]) };
  const off = isOffKey(kind, key) ? "-off" : "";
  byId("onelook-match").textContent = say("onelook-match", values);
  byId("onelook-sum").textContent = say(`onelook-sum${off}`, { ...values, sum: minus((scores[key] * root).toFixed(3)) });
  byId("onelook-softmax").textContent = softmaxSaid(values, looker);
  byId("onelook-value").textContent = say(`onelook-value${off}`, values);
  byId("onelook-wrote").textContent = offSaid(kind, layer, head) ?? lookShareSaid();
  byId("onelook-check").textContent = checkSaid();
}

const rootSaid = (root) => (Number.isInteger(root) ? `= ${root}` : `≈ ${root.toFixed(3)}`);

function softmaxSaid(values, looker) {
  const { kind, row, key, keys, open } = onelook.now;
  const off = [...keys.keys()].filter((at) => at !== key && isOffKey(kind, at));
  if (open.every((score) => score === -Infinity)) return say("onelook-softmax-none");
  const said = [say(isOffKey(kind, key) ? "onelook-softmax-off" : "onelook-softmax", values), ...maskSaid(kind, row, keys.length, looker)];
  if (off.length) said.push(say("onelook-also-off", { tokens: off.map((at) => quoted(keys[at])).join(say("comma")) }));
  return joined(said);
}

// Whether query and key give the weights that are shown.
function checkSaid() {
  const { open, weights, isRounded } = onelook.now;
  const difference = Math.max(...softmaxOf(open, 1).map((weight, at) => Math.abs(weight - weights[at])));
  return say(isRounded && difference > APART ? "onelook-check-apart" : "onelook-check", { difference: small(difference) });
}

function maskSaid(kind, row, count, query) {
  const masked = kind === "decoder" ? count - 1 - row : 0;
  return masked > 0 ? [say(masked === 1 ? "onelook-masked-one" : "onelook-masked", { count: masked, query })] : [];
}

// What came of it: of a classifier's layers it is known for the most probable label alone.
function lookShareSaid() {
  const { kind, layer, head, row, key } = onelook.now;
  const leaf = data.shares?.written?.[kind];
  if (!leaf || (WRITTEN && KINDS[kind].rows !== WRITTEN)) return "";
  if (isOffKey(kind, key)) return "";
  const share = within(arrayOf(leaf), layer, head, row).values[key];
  const token = WRITTEN ? quoted(writtenAt(place.step).piece) : `“${data.labels[0].label}”`;
  return say("onelook-wrote", { share: signed(share, digitsFor(Math.abs(share))), token });
}

function sayLeftOut() {
  title("onelook", say("onelook-title"));
  prose("onelook", "");
  byId("onelook-left-out").textContent = say("onelook-left-out", { kind: say(`map-${place.kind}`) });
}

/* Pictures */

function repaintOneLook() {
  const { now, weaves } = onelook;
  if (!weaves?.length) return;
  weaves[0].grid.setAttribute("aria-label", namesOfStrips(PRODUCT));
  weaves[2].grid.setAttribute("aria-label", namesOfStrips(CARRIED));
  standInWeave(weaves[0], weaves[0].at);
  standInWeave(weaves[1], [weaves[1].at[0], now.key]);
  standInWeave(weaves[2], weaves[2].at);
  weaves.forEach(paintWeave);
}

function weaveStrips(box, room, names, id) {
  const count = onelook.now.query.length;
  const side = room < 560 ? 112 : 150;
  const width = Math.max(Math.min(Math.floor((room - side) / count), 30), 9);
  const edges = Array.from({ length: count + 1 }, (_, i) => i * width);
  const tops = Array.from({ length: names.length + 1 }, (_, i) => i * LOOK_ROW);
  const read = id === "onelook-strips" ? (_, at) => readProduct(at) : (_, at) => readValue(at);
  const paint = (context, first, last, x) => paintStrips(context, names, first, last, x);
  const paintHeads = (context) => names.forEach((name, i) => paintStripName(context, name, side, (i + 0.5) * LOOK_ROW));
  return weave(box, { id, room, name: namesOfStrips(names), rows: names.length, columns: count, edges, tops, side, least: 0.3 * width, paint, paintHeads, read, choose: () => {} });
}

const namesOfStrips = (names) => names.map(stripName).join(" · ");

function stripName(name) {
  const { key, keys, weights } = onelook.now;
  const token = name === "query" ? lookerNow(onelook.now) : quoted(keys[key]);
  return say({ value: "onelook-value-row" }[name] ?? `onelook-${name}`, { token, weight: number(weights[key]) });
}

function stripNumbers(name) {
  const { query, keyVector, value, weights, key } = onelook.now;
  if (name === "product") return query.map((number, i) => number * keyVector[i]);
  return { query, key: keyVector, value }[name] ?? value.map((number) => number * weights[key]);
}

// A product is that of the numbers as they are printed, so that it holds.
const printed = (value) => Math.round(1000 * value) / 1000;

function readProduct(at) {
  const [query, key] = [printed(onelook.now.query[at]), printed(onelook.now.keyVector[at])];
  return say("onelook-strip-reading", { number: at + 1, query: signed(query, 3), key: signed(key, 3), product: signed(query * key, 3) });
}

function readValue(at) {
  const { value, weights, key } = onelook.now;
  const weight = weights[key];
  const carried = printed(value[at]) * (weight < 0.001 ? weight : printed(weight));
  return say("onelook-value-reading", { number: at + 1, value: signed(value[at], 3), weight: number(weight), carried: signed(carried, 3) });
}

// Grey above zero, red below; what is carried is as pale as its weight is small.
function paintStrips(context, names, first, last, x) {
  const colours = [hueOf("ink"), hueOf("minus")];
  names.forEach((name, row) => {
    const numbers = stripNumbers(name);
    const largest = Math.max(...stripNumbers(name === "carried" ? "value" : name).map(Math.abs), 1e-9);
    for (let at = first; at < last; at++) {
      const depth = 0.03 + 0.85 * Math.sqrt(Math.abs(numbers[at]) / largest);
      context.fillStyle = `rgb(${colours[numbers[at] < 0 ? 1 : 0]} / ${depth})`;
      context.fillRect(x(at) + 0.5, row * LOOK_ROW + 2, x(at + 1) - x(at) - 1, LOOK_ROW - 4);
    }
  });
}

function paintStripName(context, name, side, middle) {
  context.textAlign = "right";
  context.fillStyle = tinted("muted", 1);
  lettering(context, 13);
  context.fillText(fitted(context, stripName(name), side - 10), side - 10, middle);
}

function weaveWeights(box, room) {
  const { keys, kind } = onelook.now;
  const side = room < 560 ? 60 : 150;
  const { head, bar: height, score } = LOOK_BARS;
  const width = Math.floor(Math.min(Math.max((room - side) / keys.length, 50), 84));
  return weave(box, {
    id: "onelook-weights",
    room,
    name: say("onelook-weights"),
    lang: SIDES[KINDS[kind].cols].lang,
    rows: 1,
    columns: keys.length,
    edges: Array.from({ length: keys.length + 1 }, (_, i) => i * width),
    tops: [head, head + height + score],
    side,
    least: keys.map((piece) => Math.max(widthOf(piece, letters(15, 650)) + 8, 48)),
    seen: () => (kind === "decoder" ? Math.max(onelook.now.row + 2, 8) : keys.length), // what is masked is said
    paint: paintWeights,
    paintHeads: paintWeightHeads,
    read: (_, key) => readKey(key),
    choose: (_, key) => isVisible(kind, onelook.now.row, key) && go({ key }),
  });
}

function readKey(at) {
  const { kind, row, keys, scores, weights } = onelook.now;
  const { temperature } = onelook;
  const key = quoted(keys[at]);
  if (!isVisible(kind, row, at)) return say("onelook-key-masked", { key });
  if (isOffKey(kind, at)) return say("off-key", { key });
  const values = { key, score: minus(scores[at].toFixed(2)), weight: number(weights[at]), temperature: temperature.toFixed(2) };
  if (temperature === 1) return say("onelook-key-reading", values);
  return say("onelook-key-changed", { ...values, changed: number(weightsAt(temperature)[at]) });
}

function paintWeights(context, first, last, x) {
  const { kind, row, keys, key, scores, weights } = onelook.now;
  const { head, bar: height, score } = LOOK_BARS;
  const changed = weightsAt(onelook.temperature);
  const role = roleOfSide(KINDS[kind].cols);
  const colours = { ink: tinted("ink", 1), muted: tinted("muted", 1), fill: tinted(role, 0.78), pale: tinted(role, 0.07) };
  const texts = [];
  context.textAlign = "center";
  for (let at = first; at < last; at++) {
    const bounds = { left: x(at) + 3, width: x(at + 1) - x(at) - 6, middle: (x(at) + x(at + 1)) / 2 };
    const colour = at === key ? colours.ink : colours.muted;
    texts.push([15, at === key ? 650 : 400, colour, plainly(keys[at]), bounds.middle, head / 2, bounds.width]);
    const isOff = isOffKey(kind, at);
    if (isOff || !isVisible(kind, row, at)) {
      paintHatch(context, bounds.left, head, bounds.width, height, colours.muted);
      if (isOff) texts.push([12, 400, colour, say("onelook-off"), bounds.middle, head + height + score / 2, bounds.width]);
      continue;
    }
    texts.push(paintWeightBar(context, bounds, changed[at], weights[at], colours));
    texts.push([12, at === key ? 600 : 400, colour, minus(scores[at].toFixed(2)), bounds.middle, head + height + score / 2, bounds.width]);
  }
  writeTexts(context, texts);
  if (key >= first && key < last) paintChosen(context, x(key), x(key + 1) - x(key), head + height + score);
}

// The bar of a weight as the slider has it, with a line where it is in the model; returns its number.
function paintWeightBar(context, { left, width, middle }, weight, real, { ink, muted, fill, pale }) {
  const { head, bar: height } = LOOK_BARS;
  const room = height - 16;
  context.fillStyle = pale;
  context.fillRect(left, head, width, height);
  context.fillStyle = fill;
  context.fillRect(left, head + height - room * weight, width, room * weight);
  if (onelook.temperature !== 1) {
    context.fillStyle = ink;
    context.fillRect(left, head + height - room * real - 1, width, 1.5);
  }
  const isLarge = weight > 0.05;
  return [11.5, isLarge ? 600 : 400, isLarge ? ink : muted, number(weight), middle, head + height - room * weight - 8, width + 6];
}

function paintHatch(context, left, top, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.globalAlpha = 0.35;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = left - height; at < left + width; at += 7) {
    context.moveTo(at, top + height);
    context.lineTo(at + height, top);
  }
  context.stroke();
  context.restore();
}

function paintWeightHeads(context, side) {
  const { head, bar: height, score } = LOOK_BARS;
  context.textAlign = "right";
  context.fillStyle = tinted("muted", 1);
  lettering(context, 13);
  context.fillText(say("onelook-weight"), side - 10, head + height - 10);
  context.fillText(say("onelook-score"), side - 10, head + height + score / 2);
}
