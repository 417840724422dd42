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
  prompt: { model: "", text: "", temperature: "0.8", top_p: "0.95", max_tokens: "200", seed: "" },
  written: null,
  sample: { model: "", text: "" },
};
