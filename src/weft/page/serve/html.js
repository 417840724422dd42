/* An HTML file as stretches of text with the tags inside them, which the server puts back in their places. */

import { ask } from "./server.js";

const BLOCKS = new Set(
  ("ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY BUTTON CAPTION DD DETAILS DIALOG DIV DL DT FIELDSET FIGCAPTION FIGURE FOOTER FORM H1 H2 H3 H4 H5 H6 " +
    "HEAD HEADER HGROUP HR HTML LEGEND LI MAIN MENU NAV OL OPTGROUP OPTION P SEARCH SECTION SELECT SUMMARY TABLE TBODY TD TFOOT TH THEAD TITLE TR UL").split(" "),
);
const LEFT_ALONE = new Set("SCRIPT STYLE PRE TEXTAREA NOSCRIPT TEMPLATE IFRAME OBJECT VIDEO AUDIO CANVAS MATH".split(" "));

const isLeftAlone = (node) =>
  LEFT_ALONE.has(node.tagName) || node.namespaceURI === "http://www.w3.org/2000/svg" || node.translate === false || node.classList?.contains("notranslate");

const hasBlock = (node) => BLOCKS.has(node.tagName) || [...node.children].some(hasBlock);
const isWords = (node) => node.nodeType === Node.TEXT_NODE || (node.nodeType === Node.ELEMENT_NODE && !isLeftAlone(node) && !hasBlock(node));
const hasLetters = (nodes) => nodes.some((node) => /\p{L}/u.test(node.textContent));

// Runs of text and tags inside it, in their order: each a list of neighbours.
function* runsIn(element) {
  let run = [];
  for (const node of [...element.childNodes, null]) {
    if (node && isWords(node)) {
      run.push(node);
      continue;
    }
    if (hasLetters(run)) yield run;
    run = [];
    if (node?.nodeType === Node.ELEMENT_NODE && !isLeftAlone(node)) yield* runsIn(node);
  }
}

function markup(nodes) {
  const holder = nodes[0].ownerDocument.createElement("div");
  holder.append(...nodes.map((node) => node.cloneNode(true)));
  return holder.innerHTML;
}

export function readHtml(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const runs = [...runsIn(page.documentElement)];
  const whole = /<html[\s>]/i.test(text);
  const write = (translations) => {
    const copy = new DOMParser().parseFromString(text, "text/html");
    [...runsIn(copy.documentElement)].forEach((run, i) => {
      const holder = copy.createElement("template");
      holder.innerHTML = translations[i];
      run[0].before(holder.content);
      for (const node of run) node.remove();
    });
    if (!whole) return copy.body.innerHTML;
    const type = /^\s*(<!doctype[^>]*>)/i.exec(text);
    return `${type ? `${type[1]}\n` : ""}${copy.documentElement.outerHTML}\n`;
  };
  return { segments: runs.map(markup), write, translate: translateHtml };
}

async function translateHtml(texts, { source, target, model }, signal) {
  const answer = await ask("v1/translate", { texts, source, target, format: "html", ...(model && { model }) }, signal);
  return answer.translations.map(({ text }) => text);
}
