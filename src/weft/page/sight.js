/* Pictures are painted when they are seen, or about to be. */

const NEAR = 400; // pixels of the window's edge
const unpaintedYet = new Map(); // what paints each element that is not in sight
const inSight = new WeakSet();
const sight = new IntersectionObserver(come, { rootMargin: `${NEAR}px 0px` });

function come(entries) {
  for (const { target, isIntersecting } of entries) {
    inSight[isIntersecting ? "add" : "delete"](target);
    const paint = unpaintedYet.get(target);
    if (!isIntersecting || !paint) continue;
    unpaintedYet.delete(target);
    if (!isStale(target)) paint();
  }
}

function isSeen(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

// Whether it is of data that are there no more: its section waits to be drawn anew, and keeps its picture until then.
const isStale = (element) => element.closest("[inert]") !== null;

// Paint an element now if it is in sight, else as soon as it comes there.
function whenSeen(element, paint) {
  if (isStale(element)) return;
  if (inSight.has(element) || isForPaper()) return paint();
  if (!unpaintedYet.has(element)) sight.observe(element);
  unpaintedYet.set(element, paint);
}

// Paint an element in the next frame, once, after all that changes the page meanwhile: letters and sizes of a picture
// are those of the whole page, which each time must be styled and laid out anew for them.
const soon = new Map();
function paintSoon(element, paint) {
  if (!soon.size) requestAnimationFrame(paintAll);
  soon.set(element, paint);
}

function paintAll() {
  const all = [...soon];
  soon.clear();
  for (const [element, paint] of all) whenSeen(element, paint);
}

// Paint what is not in sight, as paper shows all of it.
function paintUnseen() {
  const all = [...unpaintedYet];
  unpaintedYet.clear();
  for (const [element, paint] of all) if (!isStale(element)) paint();
}

function forgetUnseen() {
  unpaintedYet.clear();
  sight.disconnect();
}

// Forget those that do not stand in the page any more.
function forgetGone() {
  for (const element of unpaintedYet.keys()) {
    if (element.isConnected) continue;
    unpaintedYet.delete(element);
    sight.unobserve(element);
  }
}

// Whether all is drawn for paper, on which everything is in sight.
const isForPaper = () => document.documentElement.hasAttribute("data-printing");
