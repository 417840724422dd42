/* Learning curves: lines in a small picture, with their numbers beside them. */

import { draw, make } from "./element.js";
import { count, say } from "./say.js";

const WIDE = 320;
const HIGH = 120;
const DASH = 6; // of a point that is alone
const EDGE = { left: 34, right: 6, top: 8, bottom: 16 };
const GAP = 4; // between a number and what it belongs to

const LINES = [
  ["loss-training", "loss", "training"],
  ["loss-dev", "dev_loss", "dev"],
];

// The logged numbers of one name, as [step, value].
const numbers = (rows, key) => rows.filter((row) => Number.isFinite(row[key])).map((row) => [row.step, row[key]]);

function scale(points) {
  const [steps, values] = [points.map(([step]) => step), points.map(([, value]) => value)];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const last = Math.max(...steps, 1);
  const x = (step) => EDGE.left + (step / last) * (WIDE - EDGE.left - EDGE.right);
  const y = (value) => EDGE.top + (1 - (value - low) / (high - low || 1)) * (HIGH - EDGE.top - EDGE.bottom);
  return { x, y, low, high, last };
}

// The numbers of the axes: the largest and smallest loss, the first and the last step.
function ticks({ x, y, low, high, last }) {
  const at = (left, top, anchor, text) => draw("text", { x: left, y: top, "text-anchor": anchor }, text);
  const losses = [...new Set([high, low])].map((value) => at(EDGE.left - GAP, y(value) + GAP, "end", value.toFixed(2)));
  const bottom = HIGH - GAP;
  return [...losses, at(x(0), bottom, "start", "0"), at(x(last), bottom, "end", say("at-step", { step: count(last) }))];
}

// The way through points; of a point alone a short dash.
function path(points, { x, y }) {
  const places = points.map(([step, value]) => `${x(step).toFixed(1)} ${y(value).toFixed(1)}`);
  return places.length > 1 ? `M${places.join("L")}` : `M${places[0]}h-${DASH}`;
}

// What a line says, for those who do not see it.
function saying(name, points) {
  const [[start, first], [end, last]] = [points[0], points.at(-1)];
  if (points.length === 1) return say("curve-point", { name: say(name), value: last.toFixed(2), step: count(end) });
  return say("curve-says", { name: say(name), first: first.toFixed(2), start: count(start), last: last.toFixed(2), end: count(end) });
}

function legendOf(name, points, kind) {
  return make("li", {}, make("i", { class: kind, "aria-hidden": "true" }), saying(name, points));
}

export function drawCurves({ rows, best }) {
  const lines = LINES.map(([name, key, kind]) => [name, numbers(rows, key), kind]).filter(([, points]) => points.length > 0);
  if (lines.length === 0) return make("p", { class: "legend" }, say("no-run"));
  const places = scale(lines.flatMap(([, points]) => points));
  const picture = draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "curve", "aria-hidden": "true" });
  const corner = [`${EDGE.left},0`, `${EDGE.left},${HIGH - EDGE.bottom}`, `${WIDE},${HIGH - EDGE.bottom}`];
  picture.append(draw("polyline", { points: corner.join(" "), class: "axes" }), ...ticks(places));
  for (const [, points, kind] of lines) picture.append(draw("path", { d: path(points, places), class: kind }));
  if (best) picture.append(draw("path", { d: `M${places.x(best).toFixed(1)} ${EDGE.top}V${HIGH - EDGE.bottom}`, class: "best" }));
  const notes = lines.map((line) => legendOf(...line));
  if (best) notes.push(make("li", {}, make("i", { class: "best", "aria-hidden": "true" }), say("best-step", { step: count(best) })));
  return make("figure", { class: "curves" }, picture, make("figcaption", {}, make("ul", {}, ...notes)));
}
