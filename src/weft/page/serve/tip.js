/* A few words beside what is pointed at; a reader of the screen has them in its name. */

import { make } from "./element.js";

const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: true });
const ROOM = 6; // pixels between a tip and its anchor, and the window's edge

export function showTip(anchor, text) {
  if (!tip.isConnected) document.body.append(tip);
  tip.textContent = text;
  tip.hidden = false;
  const [at] = anchor.getClientRects();
  if (!at) return hideTip();
  const below = at.top < tip.offsetHeight + 2 * ROOM;
  const left = Math.min(at.left + at.width / 2 - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - ROOM);
  tip.style.setProperty("left", `${Math.max(left, ROOM)}px`);
  tip.style.setProperty("top", `${below ? at.bottom + ROOM : at.top - tip.offsetHeight - ROOM}px`);
}

export function hideTip() {
  tip.hidden = true;
}

addEventListener("scroll", hideTip, { capture: true, passive: true });
addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
