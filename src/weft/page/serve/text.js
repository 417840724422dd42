/* What was typed, kept while the page is open: a view that is come back to has it still. */

export const state = {
  text: "",
  source: "auto",
  target: "",
  model: "",
  detected: null, // the language that the text was last found to be in
  looks: null, // the language that it clearly looks like
  lookedAt: null, // the text of which that was found
  look: { model: "", text: "", way: null }, // `way`: the models that translated a text, one after the other
  terms: { name: null, table: "" }, // a glossary of the server, null for its first and "" for none; and terms of one's own
  prompt: { model: "", text: "", temperature: "0.8", top_p: "0.95", max_tokens: "200", seed: "" },
  written: null,
  sample: { model: "", text: "" },
};

const ownLines = () => state.terms.table.split(/\r?\n/).filter((line) => line.trim() !== "");
const cellsOf = (line) => line.split(line.includes("\t") ? "\t" : "=").map((cell) => cell.trim());

// Whether a line is a term: it has a source, and where no TAB divides it, one sign of equality at most.
const isTerm = (line) => cellsOf(line)[0] !== "" && (line.includes("\t") || cellsOf(line).length < 3);

// The terms of one's own as rows of cells, and the lines that are none.
export const ownRows = () => ownLines().filter(isTerm).map(cellsOf);
export const unreadLines = () => ownLines().filter((line) => !isTerm(line));

// What a request says of its glossary: undefined for that of the server.
export function glossary() {
  const rows = ownRows();
  return rows.length > 0 ? rows : (state.terms.name ?? undefined);
}
