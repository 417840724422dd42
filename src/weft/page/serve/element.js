/* Elements of the page. */

export const byId = (id) => document.getElementById(id);

const isSomething = (child) => child !== null && child !== undefined && child !== false;

// An element; an attribute that is a function listens, true stands without a value, false and null not at all.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (isSomething(value)) element.setAttribute(name, value);
  }
  element.append(...children.filter(isSomething));
  return element;
}

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const ICONS = {
  swap: "M4 8h14l-4-4M20 16H6l4 4",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  file: "M12 16V4m-4 4 4-4 4 4M5 15v5h14v-5",
  terms: "M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zm0 14a2 2 0 0 1 2-2h12M9 8h6",
  clear: "M6 6l12 12M18 6 6 18",
  undo: "M5 5v5h5M5.500 10a7.500 7.500 0 1 1-.8 5",
  look: "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM12 9.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5z",
  dark: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600 19 19M19 5l-1.400 1.400M6.400 17.600 5 19",
};

export const icon = (name) => draw("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, draw("path", { d: ICONS[name] }));

// A button of an icon, whose text only narrow screens leave out.
export const button = (name, text, click, more = {}) =>
  make("button", { type: "button", class: "tool", title: text, click, ...more }, icon(name), make("span", {}, text));

// A choice of many values, each with its text.
export function select(name, options, chosen, choose, more = {}) {
  const made = options.map(([value, text]) => make("option", { value, selected: value === chosen }, text));
  return make("select", { "aria-label": name, change: (event) => choose(event.target.value), ...more }, ...made);
}

// Where a view says what went wrong; without a text it is not seen.
export const complaint = () => make("p", { class: "notice refused", id: "complaint", role: "alert", hidden: true });

export function complain(place, text) {
  place.textContent = text;
  place.hidden = !text;
}

// The models of a task, as a choice.
export const modelsOf = (server, task) => server.models.filter((model) => model.task === task).map(({ id }) => [id, id]);

export function bar(share) {
  const filled = make("i");
  filled.style.setProperty("--share", share);
  return make("span", { class: "share", "aria-hidden": "true" }, filled);
}
