// Measures transformers.js in Node: node runtimes.js PACKAGES FOLDER, with a JSON list on standard input: texts, each with
// the most tokens that it may be given.
// Each text is translated, continued or classified by itself, greedily; printed are the seconds of all, without loading.
const { readFileSync } = require("node:fs");
const { basename, dirname, resolve } = require("node:path");
const { pathToFileURL } = require("node:url");

async function main([packages, folder]) {
  const path = `${packages}/node_modules/@huggingface/transformers/dist/transformers.node.mjs`;
  const library = await import(pathToFileURL(path));
  library.env.allowRemoteModels = false;
  library.env.localModelPath = dirname(folder);

  const name = basename(folder);
  const config = JSON.parse(readFileSync(`${folder}/config.json`));
  const [architecture] = config.architectures;
  const classifies = architecture.endsWith("ForSequenceClassification");
  let kind = library.AutoModelForSeq2SeqLM;
  if (architecture.endsWith("ForCausalLM")) kind = library.AutoModelForCausalLM;
  if (classifies) kind = library.AutoModelForSequenceClassification;
  const options = { dtype: "fp32", session_options: { intraOpNumThreads: 1 } };
  const tokenizer = await library.AutoTokenizer.from_pretrained(name);
  const model = await kind.from_pretrained(name, options);

  async function use([text, limit]) {
    const inputs = tokenizer(text);
    await (classifies ? model(inputs) : model.generate({ ...inputs, do_sample: false, max_new_tokens: limit }));
  }

  const texts = JSON.parse(readFileSync(0));
  await use(texts[0]);
  const began = performance.now();
  for (const text of texts) await use(text);
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }));
}

main(process.argv.slice(2).map((name) => resolve(name)));
