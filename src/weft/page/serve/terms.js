/* The panel for a glossary: one of the server's, or terms that are typed, pasted or dropped. */

import { button, make, select } from "./element.js";
import { count, say } from "./say.js";
import { ownRows, state } from "./text.js";

const PAUSE = 700; // ms without a key, after which typed terms count
const LARGEST = 500_000; // bytes of a dropped file

// The glossaries of the server for a pair of languages; the first one is used unless another is chosen.
export const servedFor = ({ glossaries = [] }, { source, target }) =>
  glossaries.filter(({ pairs }) => pairs.some(([src, tgt]) => src === source && tgt === target)).map(({ name }) => name);

function drawChoice(names, changed) {
  if (names.length === 0) return "";
  const [usual, ...others] = names;
  const options = [["", say("terms-usual", { name: usual })], ...others.map((name) => [name, name]), ["-", say("terms-none")]];
  const chosen = state.terms.name === null ? "" : state.terms.name || "-";
  const choose = (name) => {
    state.terms.name = name === "" ? null : name === "-" ? "" : name;
    changed();
  };
  return select(say("terms-of-server"), options, chosen, choose, { id: "served-terms" });
}

// Draw the panel; `changed` is called where other terms count from now on.
export function drawTerms(place, server, route, changed) {
  let timer;
  const status = make("p", { role: "status", id: "terms-count" });
  const table = make("textarea", { id: "terms", rows: "5", spellcheck: "false", autocapitalize: "none", "aria-label": say("terms-own"), placeholder: say("terms-example"), input: typed, change: settled });
  const file = make("input", { type: "file", accept: ".tsv,.txt", class: "aside", "aria-label": say("terms-file"), change: () => read(file.files[0]) });
  table.value = place.querySelector("textarea")?.value ?? state.terms.table;

  function settled() {
    clearTimeout(timer);
    if (state.terms.table === table.value) return;
    state.terms.table = table.value;
    told();
    changed();
  }

  function typed() {
    clearTimeout(timer);
    timer = setTimeout(settled, PAUSE);
  }

  function told() {
    const [number, most] = [ownRows().length, server.limits.max_terms];
    status.textContent = number > most ? say("terms-many", { count: count(number), limit: count(most) }) : number > 0 ? say("terms-count", { count: count(number) }) : "";
    status.classList.toggle("refused", number > most);
  }

  async function read(dropped) {
    if (!dropped) return;
    if (dropped.size > LARGEST) {
      status.textContent = say("terms-large");
      return;
    }
    table.value = await dropped.text();
    settled();
  }

  const holds = (event) => event.dataTransfer?.types.includes("Files");
  place.ondragover = (event) => holds(event) && (event.preventDefault(), event.stopPropagation());
  place.ondrop = (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    event.stopPropagation();
    read(event.dataTransfer.files[0]);
  };
  const clear = button("clear", say("clear"), () => ((table.value = ""), settled(), table.focus()));
  const choose = make("label", { class: "tool" }, say("terms-file"), file);
  place.replaceChildren(drawChoice(servedFor(server, route), changed), table, make("p", {}, say("terms-hint")), make("div", { class: "row" }, choose, clear, status));
  told();
}
