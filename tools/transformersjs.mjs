// What transformers.js makes of texts with a model that weft export has written: the library's own pipelines, greedily.
// In Node: node transformersjs.mjs NODE_MODULES FOLDER, a JSON list of [text, limit on new tokens] on standard input;
// in a browser `answers` is imported. What comes out is JSON: a list of translations, continuations or labels.

export async function answers(library, folder, asked) {
  const slash = folder.lastIndexOf("/");
  library.env.allowRemoteModels = false;
  library.env.allowLocalModels = true;
  library.env.localModelPath = folder.slice(0, slash + 1);
  const name = folder.slice(slash + 1);
  const config = await library.AutoConfig.from_pretrained(name);
  const task = taskOf(config.architectures[0]);
  const use = await library.pipeline(task, name);
  const found = [];
  for (const [text, limit] of asked) found.push(await answer(task, use, text, limit));
  return found;
}

function taskOf(architecture) {
  if (architecture.endsWith("ForCausalLM")) return "text-generation";
  if (architecture.endsWith("ForSequenceClassification")) return "text-classification";
  return "translation";
}

async function answer(task, use, text, limit) {
  if (task === "text-classification") {
    const several = await use(text, { top_k: null });
    return use.model.config.problem_type.startsWith("multi")
      ? several.filter((one) => one.score >= 0.5).map((one) => one.label)
      : [several[0].label];
  }
  if (task === "text-generation") {
    const [written] = await use(text, { max_new_tokens: limit, return_full_text: false });
    return written.generated_text;
  }
  const [translated] = await use(text, { max_new_tokens: limit });
  return translated.translation_text;
}

if (typeof process !== "undefined" && process.argv[2]) {
  const { readFileSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  const [modules, folder] = process.argv.slice(2);
  const path = `${modules}/@huggingface/transformers/dist/transformers.node.mjs`;
  const library = await import(pathToFileURL(path));
  const found = await answers(library, folder, JSON.parse(readFileSync(0, "utf-8")));
  console.log(JSON.stringify(found));
}
