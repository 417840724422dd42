// Measures transformers.js in Node: node runtimes.mjs PACKAGES FOLDER, with a JSON list of texts on standard input.
// Each text is translated, continued or classified by itself, greedily; printed are the seconds of all of them, without loading.
import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, folder] = process.argv.slice(2).map((name) => resolve(name));
const library = `${packages}/node_modules/@huggingface/transformers/dist/transformers.node.mjs`;
const { AutoTokenizer, AutoModelForSeq2SeqLM, AutoModelForCausalLM, AutoModelForSequenceClassification, env } =
  await import(pathToFileURL(library));
env.allowRemoteModels = false;
env.localModelPath = dirname(folder);

const config = JSON.parse(readFileSync(`${folder}/config.json`));
const kinds = [
  ["MarianMTModel", AutoModelForSeq2SeqLM],
  ["ForCausalLM", AutoModelForCausalLM],
  ["ForSequenceClassification", AutoModelForSequenceClassification],
];
const [, kind] = kinds.find(([name]) => config.architectures[0].endsWith(name)) ?? kinds[0];
const options = { dtype: "fp32", session_options: { intraOpNumThreads: 1 } };
const tokenizer = await AutoTokenizer.from_pretrained(basename(folder));
const model = await kind.from_pretrained(basename(folder), options);
const writes = kind !== AutoModelForSequenceClassification;

async function use(text) {
  const inputs = tokenizer(text);
  return writes ? model.generate({ ...inputs }) : model(inputs);
}

const texts = JSON.parse(readFileSync(0));
await use(texts[0]);
const began = performance.now();
for (const text of texts) await use(text);
console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }));
