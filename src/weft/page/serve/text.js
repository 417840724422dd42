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

// The terms of one's own as rows of cells, which a TAB divides; where there is none, the first sign of equality.
export const ownRows = () => rowsOf(state.terms.table);

function rowsOf(table) {
  const lines = table.split(/\r?\n/).filter((line) => line.trim() !== "");
  return lines.map((line) => (line.includes("\t") ? line.split("\t") : line.split(/=(.*)/s, 2)).map((cell) => cell.trim()));
}

// What a request says of its glossary: undefined for that of the server.
export function glossary() {
  const rows = ownRows();
  return rows.length > 0 ? rows : (state.terms.name ?? undefined);
}
