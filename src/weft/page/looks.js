/* All looks: every head of every layer small, with what it does; one of them large, and one kept beside it. */

{
  const state = { mode: "weight", scale: "one", isFit: true, kept: null };
  let large; // the picture of the chosen head
  let beside; // that of the kept one
  let lines;
  let told = null; // the pairs of words that the heads' rules were told with

  section({
    id: "looks",
    order: 4,
    applies: (shown) => Object.values(shown.attention).some((leaf) => arrayOf(leaf).shape[0] > 0),
    draw(box) {
      if (state.kept && !(state.kept.kind in KINDS)) state.kept = null;
      large = heatmap({ name: say("looks-map"), spec: () => specOf(place), pick, read });
      beside = heatmap({ name: say("looks-beside"), spec: () => state.kept && specOf(state.kept), pick: pickKept, read: null });
      lines = lookLines({ spec: () => specOf(place), pick });
      const own = make("figure", { class: "map-figure", id: "looks-own" }, make("p", { class: "reading", id: "looks-reading", "aria-live": "polite" }), large.box);
      const kept = make("figure", { class: "map-figure", id: "looks-kept", hidden: true }, make("p", { class: "reading", id: "looks-kept-name" }), beside.box);
      box.append(
        make("div", { class: "controls", id: "looks-kinds" }),
        make("div", { class: "heads", id: "looks-heads", role: "radiogroup", keydown: moveInHeads }),
        make("h3", { id: "looks-name" }),
        lines.box,
        make("div", { class: "controls", id: "looks-modes" }),
        make("div", { class: "maps", id: "looks-maps" }, kept, own),
        make("p", { class: "caption", id: "looks-caption" }),
      );
    },
    place(changed) {
      if (changed.has("kind")) drawKinds();
      if (changed.has("kind") || changed.has("layer") || changed.has("head")) showHead();
      else if (["step", "row", "key"].some((name) => changed.has(name))) showPlace();
    },
    repaint() {
      drawHeads();
      layOut();
    },
  });

  function layOut() {
    large.isFit = beside.isFit = state.isFit;
    large.layOut();
    if (state.kept) beside.layOut();
    lines.draw();
  }

  /* What is drawn of a map */

  const written = new WeakMap(); // sums over the heads, by the leaf

  // What a head carried into the logit of what each query writes; of the mean all heads together.
  function writtenOf(kind, layer, head) {
    const leaf = data.shares.written[kind];
    if (head !== MEAN) return within(arrayOf(leaf), layer, head);
    if (!written.has(leaf)) written.set(leaf, new Map());
    const of = written.get(leaf);
    if (!of.has(layer)) of.set(layer, sumOfHeads(within(arrayOf(leaf), layer)));
    return of.get(layer);
  }

  function sumOfHeads(maps) {
    const [heads, ...shape] = maps.shape;
    const values = new Float32Array(shape[0] * shape[1]);
    for (let head = 0; head < heads; head++) within(maps, head).values.forEach((value, i) => (values[i] += value));
    return { shape, values };
  }

  const hasWritten = (kind) => Boolean(data.shares?.written?.[kind]);
  const canCompare = () => state.kept && state.kept.kind === place.kind;
  const weights = new WeakMap(); // means of heads and differences, kept so that they are painted once

  function weightsOf(kind, layer, head) {
    if (head !== MEAN) return mapOf(kind, layer, head);
    const leaf = data.attention[kind];
    if (!weights.has(leaf)) weights.set(leaf, new Map());
    const of = weights.get(leaf);
    if (!of.has(layer)) of.set(layer, mapOf(kind, layer, head));
    return of.get(layer);
  }

  let difference = null; // the last one that was shown
  function differenceOf(one, other) {
    const name = [one.kind, one.layer, one.head, other.layer, other.head].join();
    if (difference?.name === name && difference.of === data) return difference.map;
    const [a, b] = [one, other].map(({ kind, layer, head }) => weightsOf(kind, layer, head));
    difference = { name, of: data, map: { shape: a.shape, values: a.values.map((value, i) => value - b.values[i]) } };
    return difference.map;
  }

  function modeHere(kind) {
    if (state.mode === "written" && !hasWritten(kind)) return "weight";
    return state.mode === "difference" && !canCompare() ? "weight" : state.mode;
  }

  function specOf(what) {
    const { kind, layer, head } = what;
    const { rows, cols, queries, keys } = KINDS[kind];
    const mode = what === place ? modeHere(kind) : modeHere(kind) === "difference" ? "weight" : modeHere(kind);
    const map = mode === "difference" ? differenceOf(place, state.kept) : mode === "written" ? writtenOf(kind, layer, head) : weightsOf(kind, layer, head);
    const isSigned = mode !== "weight";
    const top = isSigned || state.scale === "largest" ? largestOf(map.values) : 1;
    const { row, key } = placeIn(kind);
    const common = { ...map, queries, keys, row, key, isSigned, top, mode };
    const hues = { hue: roleOfSide(cols), queryHue: roleOfSide(rows) };
    return { ...common, ...hues, isFlat: mode === "weight" && isFlat(kind, layer, head), isVisible: (r, k) => isVisible(kind, r, k) };
  }

  const largest = new WeakMap();
  function largestOf(values) {
    if (!largest.has(values)) largest.set(values, Math.max(values.reduce((most, value) => Math.max(most, Math.abs(value)), 0), 1e-9));
    return largest.get(values);
  }

  const placeIn = (kind) => ({ row: rowIn(kind), key: kind === place.kind ? place.key : null });

  /* Choosing */

  function pick(row, key) {
    const isStep = KINDS[place.kind].rows === WRITTEN;
    go(isStep ? { step: row, key } : { side: READ, token: row, key });
  }

  function pickKept(row, key) {
    if (state.kept.kind === place.kind) pick(row, key);
  }

  function read(row, key) {
    byId("looks-reading").textContent = row === null ? readingHere() : readingOf(row, key);
  }

  const readingHere = () => readingOf(rowIn(place.kind), place.key);

  // A number in words; without a key, the largest of the row.
  function readingOf(row, key) {
    const spec = specOf(place);
    const weight = weightsOf(place.kind, place.layer, place.head);
    const own = within({ shape: spec.shape, values: spec.values }, row).values;
    const most = key ?? own.indexOf(Math.max(...own));
    const values = { query: quoted(spec.queries[row]), key: quoted(spec.keys[most]), weight: number(within(weight, row).values[most]) };
    const isStep = KINDS[place.kind].rows === WRITTEN; // it looks from what was read last
    const { who, isOne } = whoLooks();
    const sentence = `${key === null ? "looks-most" : "looks-at"}${isStep ? (OFFSET ? "-lm" : "-written") : isOne ? "" : "-by"}`;
    const said = [say(sentence, isStep ? { ...values, who, query: quoted(readAt(row)), next: quoted(writtenAt(row).piece) } : { ...values, who })];
    if (isOffKey(place.kind, most)) said.push(say("off-key", values));
    else said.push(...carriedSaid(row, most));
    if (spec.mode === "difference") said.push(say("looks-apart", { value: signed(own[most], 3) }));
    return joined(said);
  }

  // What a look carried; of a mean, which the model never forms, what its heads did.
  function carriedSaid(row, key) {
    const { kind, layer, head } = place;
    const off = offSaid(kind, layer, head);
    if (off) return [off];
    if (!hasWritten(kind)) return [];
    const carried = within(writtenOf(kind, layer, head), row).values[key];
    const value = signed(carried, digitsFor(Math.abs(carried)));
    return [say(head === MEAN ? "looks-carried-by-heads" : "looks-carried", { value, piece: heldBy(row) })];
  }

  // One layer and head of many; of a single map there is no need to name it.
  function whoLooks() {
    const { kind, layer, head } = place;
    const { layers, heads } = KINDS[kind];
    if (layers * heads === 1) return { who: say(OFFSET ? "looks-model" : "looks-decoder"), isOne: true };
    const name = heads === 1 ? "looks-layer" : head === MEAN ? "looks-mean" : "looks-head";
    return { who: say(name, { layer: layer + 1, head: head + 1 }), isOne: false };
  }

  // Whose logit a row is carried into: its token's, or that of a classifier's most probable label.
  const heldBy = (row) => (WRITTEN ? quoted(writtenAt(row).piece) : `“${data.labels[0].label}”`);

  /* The heads */

  function drawKinds() {
    const kinds = Object.keys(KINDS).map((kind) => [kind, say(`kind-${kind}`)]);
    byId("looks-kinds").hidden = kinds.length < 2;
    byId("looks-kinds").replaceChildren(choices(say("kind"), "looks-kind", kinds, place.kind, (kind) => {
      go({ kind });
      root.querySelector('input[name="looks-kind"]:checked').focus();
    }));
    drawHeads();
  }

  function drawHeads() {
    const { layers, heads } = KINDS[place.kind];
    const grid = byId("looks-heads");
    grid.hidden = layers * heads === 1;
    const count = headsOf(place.kind).length;
    grid.style.setProperty("--count", count);
    grid.style.setProperty("--half", Math.ceil(count / 2));
    grid.setAttribute("aria-label", say("layer-head"));
    const rows = [];
    for (let layer = 0; layer < layers; layer++) {
      if (heads > 1) rows.push(make("p", { class: "of-layer" }, say("name-layer", { layer: layer + 1 })));
      rows.push(make("div", { class: "of-heads" }, ...headsOf(place.kind).map((head) => headButton(layer, head))));
    }
    grid.replaceChildren(...rows);
  }

  function headButton(layer, head) {
    const { kind } = place;
    const canvas = make("canvas", { "aria-hidden": "true" });
    const map = weightsOf(kind, layer, head);
    const hue = roleOfSide(KINDS[kind].cols);
    const flat = isFlat(kind, layer, head);
    whenSeen(canvas, () => paintThumbnail(canvas, { ...map, hue, top: 1, isFlat: flat, isVisible: (r, k) => isVisible(kind, r, k) }));
    const more = { "data-layer": layer, "data-head": head, title: nameOf(kind, layer, head) };
    const button = make("button", { type: "button", role: "radio", class: "head", click: () => go({ layer, head }), ...more }, canvas, make("span"));
    tellRule(button);
    const [rows, columns] = map.shape;
    canvas.style.setProperty("aspect-ratio", `${columns} / ${rows}`);
    canvas.style.setProperty("width", `min(100%, ${((columns / rows) * 6).toFixed(2)}rem)`);
    return button;
  }

  // Of a mean it is said only that it is flat.
  const ruleShown = (kind, layer, head) => (head === MEAN && !isFlat(kind, layer, head) ? null : ruleOf(kind, layer, head));

  function ruleSaid(kind, layer, head) {
    const rule = ruleShown(kind, layer, head);
    return rule ? sayRule(rule, kind) : "";
  }

  function tellRule(button) {
    const { kind } = place;
    const [layer, head] = [button.dataset.layer, button.dataset.head].map(Number);
    const rule = joined([ruleSaid(kind, layer, head), ...(offSaid(kind, layer, head) ? [say("looks-off")] : [])].filter(Boolean), say("comma"));
    const number_ = KINDS[kind].heads === 1 ? layer + 1 : head === MEAN ? say("mean") : head + 1;
    button.lastChild.replaceChildren(make("b", {}, `${number_}`), rule && ` ${rule}`);
    button.setAttribute("aria-label", `${number_} ${rule}; ${nameOf(kind, layer, head)}`);
    told = pairsNow();
  }

  // Once more, where it is known only now which words belong to each other.
  function tellRules() {
    if (told !== pairsNow()) byId("looks-heads").querySelectorAll("button").forEach(tellRule);
  }

  function moveInHeads(event) {
    const heads = headsOf(place.kind);
    const next = stepInGrid(event, [place.layer, heads.indexOf(place.head)], KINDS[place.kind].layers, heads.length);
    if (!next) return;
    go({ layer: next[0], head: heads[next[1]] });
    byId("looks-heads").querySelector('[aria-checked="true"]').focus();
  }

  /* The chosen one */

  function showHead() {
    tellRules();
    for (const button of byId("looks-heads").querySelectorAll("button")) {
      const isChosen = Number(button.dataset.layer) === place.layer && Number(button.dataset.head) === place.head;
      button.setAttribute("aria-checked", isChosen);
      button.tabIndex = isChosen ? 0 : -1;
    }
    const { kind, layer, head } = place;
    const isOne = KINDS[kind].layers * KINDS[kind].heads === 1;
    const rule = ruleSaid(kind, layer, head);
    byId("looks-name").textContent = joined([say(`map-${kind}`), ...(isOne ? [] : [nameOf(kind, layer, head)]), ...(rule ? [rule] : [])], say("colon"));
    drawModes();
    drawKept();
    layOut();
    showPlace();
    describe();
  }

  function showPlace() {
    byId("looks-reading").textContent = readingHere();
    prose("looks", ...sayProse());
    large.drawChosen();
    if (state.kept) beside.draw();
    lines.draw();
  }

  function sayProse() {
    const { kind, layer, head } = place;
    const { layers, heads } = KINDS[kind];
    const isOne = layers * heads === 1;
    const said = [say(isOne ? "looks-one" : "looks-many", { count: layers * heads, layers, heads }), readingHere()];
    if (isFlat(kind, layer, head)) {
      const isSo = isRowFlat(kind, weightsOf(kind, layer, head), rowIn(kind));
      said.push(say(`looks-flat${isOne ? "-one" : ""}${isSo ? "" : "-average"}`));
    }
    return [joined(said)];
  }

  function describe() {
    const { kind, layer, head } = place;
    const caption = kind === "decoder" && WRITTEN === "text" ? "causal" : kind;
    const said = [say(`caption-${caption}`, { start: say("start") })];
    said.push(...explained(kind));
    if (kind === "decoder") said.push(say("looks-masked"));
    if (head === MEAN) said.push(say(modeHere(kind) === "written" ? "looks-sum-caption" : "mean-caption").trim());
    if (modeHere(kind) === "written") said.push(say(WRITTEN ? "looks-written-caption" : "looks-written-label"));
    if (modeHere(kind) === "difference") said.push(say("looks-difference-caption"));
    byId("looks-caption").textContent = joined(said);
  }

  // What those labels mean that heads have here and that do not say it themselves.
  const EXPLAINED = ["diagonal", "translated", "recent", "sharp", "mixed", "flat"];
  function explained(kind) {
    const named = [...Array(KINDS[kind].layers).keys()].flatMap((layer) => headsOf(kind).map((head) => ruleShown(kind, layer, head)));
    const there = new Set(named.filter(Boolean).map(({ rule }) => rule));
    const rules = EXPLAINED.filter((rule) => there.has(rule)).map((rule) => say(`looks-rule-${rule}`));
    const isMeasured = [...there].some((rule) => !["recent", "sharp", "mixed", "flat"].includes(rule));
    return isMeasured ? [say("looks-rules"), ...rules] : rules;
  }

  function drawModes() {
    const { kind } = place;
    const again = (name, value) => {
      state[name] = value;
      showHead();
      root.querySelector(`input[name="looks-${name}"]:checked`)?.focus();
    };
    const modes = [["weight", say("looks-weight")]];
    if (hasWritten(kind)) modes.push(["written", say("looks-written")]);
    if (canCompare()) modes.push(["difference", say("looks-difference")]);
    const groups = [];
    if (modes.length > 1) groups.push(choices(say("looks-shown"), "looks-mode", modes, modeHere(kind), (value) => again("mode", value)));
    const scales = [["one", say("looks-to-one")], ["largest", say("looks-to-largest")]];
    if (modeHere(kind) === "weight") groups.push(choices(say("looks-scale"), "looks-scale", scales, state.scale, (value) => again("scale", value)));
    const sizes = [[true, say("looks-fit")], [false, say("looks-full")]];
    groups.push(choices(say("looks-size"), "looks-isFit", sizes, state.isFit, (value) => again("isFit", value)));
    const keep = make("button", { type: "button", class: "quiet", id: "looks-keep", click: toggleKept }, say(state.kept ? "forget" : "keep"));
    const isChoice = Object.values(KINDS).some(({ layers, heads }) => layers * heads > 1);
    byId("looks-modes").replaceChildren(...groups, ...(isChoice ? [keep] : []));
  }

  function toggleKept() {
    const { kind, layer, head } = place;
    state.kept = state.kept ? null : { kind, layer, head };
    showHead();
    byId("looks-keep").focus();
  }

  function drawKept() {
    byId("looks-kept").hidden = !state.kept;
    byId("looks-maps").classList.toggle("two", Boolean(state.kept));
    if (!state.kept) return;
    const { kind, layer, head } = state.kept;
    byId("looks-kept-name").textContent = say("kept-caption", { kind: say(`map-${kind}`), name: nameOf(kind, layer, head) });
  }

  speak({
    en: {
      "looks-title": "All looks",
      "looks-many": "The model looks with {count} heads here ({layers} layers of {heads}), each in its own way; what each does is found by rule, with the mean weight on what the rule names.",
      "looks-one": "The model has one way to look here.",
      "looks-flat": "This head is flat: it looks at everything alike, and tells nothing of what belongs together.",
      "looks-flat-average": "On average over all rows this head is flat: it looks at nearly everything alike, and tells little of what belongs together.",
      "looks-flat-one-average": "On average over all rows these looks are flat: they are at nearly everything alike, and tell little of what belongs together.",
      "looks-flat-one": "These looks are flat: they are at everything alike, and tell nothing of what belongs together.",
      "looks-at": "{query} looks at {key}: {weight}.",
      "looks-at-by": "In {who}, {query} looks at {key}: {weight}.",
      "looks-most": "{query} looks most at {key}: {weight}.",
      "looks-most-by": "In {who}, {query} looks most at {key}: {weight}.",
      "looks-at-written": "After {query}, to write {next}, {who} looks at {key}: {weight}.",
      "looks-most-written": "After {query}, to write {next}, {who} looks most at {key}: {weight}.",
      "looks-at-lm": "Having read {query}, to foretell {next}, {who} looks at {key}: {weight}.",
      "looks-most-lm": "Having read {query}, to foretell {next}, {who} looks most at {key}: {weight}.",
      "looks-decoder": "the decoder",
      "looks-model": "the model",
      "looks-layer": "layer {layer}",
      "looks-head": "layer {layer}, head {head}",
      "looks-mean": "the mean of layer {layer}’s heads",
      "looks-carried": "That carried {value} into the logit of {piece}.",
      "looks-carried-by-heads": "Its heads together carried {value} into the logit of {piece}.",
      "looks-sum-caption": "Shown is the sum over the layer’s heads.",
      "looks-apart": "That is {value} against the kept one.",
      "looks-off": "switched off",
      "looks-masked": "Hatched is what cannot be seen.",
      "looks-rules": "A rule is named only where that has far more weight than even looks would give it.",
      "looks-rule-diagonal": "“The diagonal” is a band from corner to corner, up to one token to each side of the line.",
      "looks-rule-recent": "“The last four tokens”: the weight on all four together.",
      "looks-rule-sharp": "“One token at a time”: no rule says which one has most of a row’s weight; the number is the rows’ largest, on average.",
      "looks-rule-mixed": "“Mixed”: no rule fits; named is the token with most weight on average.",
      "looks-rule-flat": "“Flat”: how even the weights are, by their entropy over the largest possible.",
      "looks-rule-translated": "“The word it translates” is the word, or words, that “Word by word” on this page gives.",
      "looks-map": "The chosen head; arrow keys lead from number to number",
      "looks-beside": "The kept head",
      "looks-shown": "Show",
      "looks-weight": "weight",
      "looks-written": "written",
      "looks-difference": "difference",
      "looks-scale": "Colour up to",
      "looks-to-one": "1",
      "looks-to-largest": "the largest here",
      "looks-size": "Size",
      "looks-fit": "fit",
      "looks-full": "full",
      "looks-written-caption": "Written: weight times value, as far as it raised (grey) or lowered (red) the logit of the row’s token, exact; a large weight can carry nothing.",
      "looks-written-label": "Written: weight times value, as far as it raised (grey) or lowered (red) the logit of the most probable label, exact; a large weight can carry nothing.",
      "looks-difference-caption": "The difference from the kept map: grey where this head looks more, red where it looks less.",
      colon: ": ",
    },
    zh: {
      "looks-title": "所有的看",
      "looks-many": "模型在这里用 {count} 个头去看（{layers} 层，每层 {heads} 个），各有各的方式；每个头做什么由规则判定，附上规则所指之处的平均权重。",
      "looks-one": "模型在这里只有一种看法。",
      "looks-flat": "这个头是平坦的：它对一切同等看待，并不说明哪些词元相关。",
      "looks-flat-average": "就各行平均而言，这个头是平坦的：它对一切几乎同等看待，很少说明哪些词元相关。",
      "looks-flat-one-average": "总的来说，这些看是平坦的：对一切几乎同等看待，很少说明哪些词元相关。",
      "looks-flat-one": "这些看是平坦的：对一切同等看待，并不说明哪些词元相关。",
      "looks-at": "{query} 关注 {key}：{weight}。",
      "looks-at-by": "在{who}中，{query} 关注 {key}：{weight}。",
      "looks-most": "{query} 最关注 {key}：{weight}。",
      "looks-most-by": "在{who}中，{query} 最关注 {key}：{weight}。",
      "looks-at-written": "在 {query} 之后，为写 {next}，{who}关注 {key}：{weight}。",
      "looks-most-written": "在 {query} 之后，为写 {next}，{who}最关注 {key}：{weight}。",
      "looks-at-lm": "读到 {query} 之后，为预测 {next}，{who}关注 {key}：{weight}。",
      "looks-most-lm": "读到 {query} 之后，为预测 {next}，{who}最关注 {key}：{weight}。",
      "looks-decoder": "解码器",
      "looks-model": "模型",
      "looks-layer": "第 {layer} 层",
      "looks-head": "第 {layer} 层第 {head} 个头",
      "looks-mean": "第 {layer} 层各头的平均",
      "looks-carried": "这给 {piece} 的 logit 带来 {value}。",
      "looks-carried-by-heads": "该层各头合在一起给 {piece} 的 logit 带来 {value}。",
      "looks-sum-caption": "这里显示的是该层各头之和。",
      "looks-apart": "与保留的那张相差 {value}。",
      "looks-off": "已关掉",
      "looks-masked": "画斜线处是看不见的。",
      "looks-rules": "只有当某处的权重远多于均匀地看时，才说一个头在看那里。",
      "looks-rule-diagonal": "“对角线”是从一角到另一角的带子，线的每一侧至多一个词元。",
      "looks-rule-recent": "“最近四个词元”：四个词元的权重之和。",
      "looks-rule-sharp": "“每次一个词元”：没有规则能说每行的权重大多在哪一个上；数字是各行最大权重的均值。",
      "looks-rule-mixed": "“混合”：没有规则合适；所列的是权重均值最大的词元。",
      "looks-rule-flat": "“平坦”：权重有多均匀，即它们的熵除以可能的最大熵。",
      "looks-rule-translated": "“它所译的词”是本页“逐词对应”所给的词。",
      "looks-map": "所选的头；方向键逐个移动",
      "looks-beside": "保留的头",
      "looks-shown": "显示",
      "looks-weight": "权重",
      "looks-written": "写入",
      "looks-difference": "差别",
      "looks-scale": "颜色上限",
      "looks-to-one": "1",
      "looks-to-largest": "此图最大值",
      "looks-size": "大小",
      "looks-fit": "适应",
      "looks-full": "原大",
      "looks-written-caption": "写入：权重乘以值，即它使该行词元的 logit 升高（灰色）或降低（红色）多少，是精确的；权重大也可能什么都没带来。",
      "looks-written-label": "写入：权重乘以值，即它使最可能的标签的 logit 升高（灰色）或降低（红色）多少，是精确的；权重大也可能什么都没带来。",
      "looks-difference-caption": "与保留的图之差：灰色处这个头看得更多，红色处更少。",
      colon: "：",
    },
  });
}
