"""The answers to verbs and options that Weft does not have: what to use instead."""

import difflib
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from weft.folder.layout import holds_model_or_run, is_folder_or_pack

INSTEAD = {
    "chat": "Weft makes no chat models; weft generate FOLDER --prompt TEXT continues a prompt",
    "convert": "weft export writes a model in the form of another program",
    "dedup": "weft clean DATA --output FILE drops what occurs again, and more",
    "eval": "weft evaluate FOLDER DATA scores a model",
    "explain": "weft inspect FOLDER TEXT --output page.html shows what it does; weft diagnose finds why it is bad",
    "filter": "weft clean DATA --output FILE mends what it can and drops what would spoil training",
    "finetune": "weft train DATA --from FOLDER trains a Weft model further; Weft does not read other models",
    "fit": "weft train DATA trains a model",
    "infer": "weft translate, weft classify or weft generate use a model, by its task",
    "init": "weft train DATA needs nothing beforehand; weft demo shows it on built-in text",
    "install": "a model folder or a pack works wherever it is copied; nothing has to be installed",
    "list": "models are plain folders, by default in runs/",
    "predict": "weft translate, weft classify or weft generate use a model, by its task",
    "publish": "Weft uploads nothing; one file to hand on comes of weft pack FOLDER --output model.weft",
    "resume": "the same weft train command continues the run",
    "run": "weft translate, weft classify or weft generate use a model, by its task",
    "server": "weft serve FOLDER serves models over HTTP",
    "show": "weft inspect FOLDER TEXT --output page.html shows what a model does",
    "test": "weft evaluate FOLDER DATA scores a model, weft selfcheck FOLDER checks its arithmetic",
    "tokenize": "training learns its tokenizers itself; weft inspect shows the tokens of a text",
    "tune": "weft sweep FILE.toml trains with each of several settings and says which is better",
    "validate": "weft check DATA checks text, weft evaluate FOLDER DATA scores a model",
    "zip": "one file of a model, which is used as it is, comes of weft pack FOLDER --output model.weft",
    "visualize": "weft inspect FOLDER TEXT --output page.html shows what a model does; weft plot draws curves",
}

# what people ask `weft plot` for and other verbs draw, or it draws by another name
PICTURES = {
    **dict.fromkeys(
        ("attention", "beam", "embeddings", "heads", "tokens", "translation"),
        "weft inspect FOLDER TEXT --output page.html draws what a model does with a text",
    ),
    **dict.fromkeys(
        ("bleu", "curve", "curves", "log", "loss", "run"),
        "weft plot history FOLDER draws the curves of a run",
    ),
}

_STEPS = (
    "training lasts for steps: --set training.max_steps=2000; the default is 30 epochs"
)
_GPU = "a GPU is used where PyTorch finds one; CUDA_VISIBLE_DEVICES= in front of the command hides it"
_BY_TRAINING = "that is decided when a model is trained"
_KERNELS = (
    "only weft translate, classify, generate, score and evaluate have it; leave it out"
)
_PLAIN = "what it shows comes from plain NumPy, that of a recurrent model from PyTorch; leave it out"
_LANGUAGES = (
    "--set data.src_lang=en --set data.tgt_lang=de, or name the file pairs.en-de.tsv"
)
_ONE_WAY = (
    "a model translates between the languages that it was trained on; leave it out, or say by --to which of several "
    "it is to write"
)
LANGUAGES = {  # other programs' options for a language
    **dict.fromkeys(
        ("--source", "--source-lang", "--src", "--src-lang"), "--set data.src_lang=en"
    ),
    **dict.fromkeys(
        ("--target", "--target-lang", "--tgt", "--tgt-lang"), "--set data.tgt_lang=de"
    ),
    **dict.fromkeys(
        ("--lang", "--language", "--languages", "--langs", "--pair", "--to"), _LANGUAGES
    ),
}
OPTIONS = {
    "--batch": "--set batches.tokens_per_batch=4096, or batches.batch_size=64",
    "--checkpoint": "the same command continues a run; --from FOLDER starts from a model",
    "--config": "--recipe takes a name or a TOML file",
    "--cpu": _GPU,
    "--cuda": _GPU,
    "--data": "texts need no option: weft train DATA",
    "--device": _GPU,
    "--encoding": "text is UTF-8; iconv -f WINDOWS-1252 -t UTF-8 converts a file",
    "--epochs": _STEPS,
    "--file": "texts need no option: weft train DATA; --input FILE for use",
    "--fp16": "--set training.precision=float16 for training, --precision for use",
    "--gpu": _GPU,
    "--gpus": "torchrun --nproc-per-node 2 -m weft train ... uses several",
    "--layers": "--set model.num_encoder_layers=3 --set model.num_decoder_layers=3",
    "--lr": "--set training.learning_rate=0.001",
    "--model": "the model's folder needs no option: weft translate FOLDER TEXT",
    "--model-dir": "--output FOLDER",
    "--name": "--output FOLDER",
    "--output-dir": "--output FOLDER",
    "--resume": "the same command continues a run",
    "--steps": _STEPS,
    "--task": "--set task=translation, language-modelling or classification",
    "--threshold": "--all gives every label's probability, for a threshold of your own",
    "--threads": "--set training.threads=2 for training; OMP_NUM_THREADS=2 in front of the command for use",
    "--valid": "--dev DATA",
    "--validation": "--dev DATA",
    "--workers": "batches are prepared during the step; there is nothing to set",
}


def about_verb(word: str, verbs: Iterable[str]) -> str:
    """Return the answer to a word that is given as a verb and is none."""
    if word in INSTEAD:
        return f"weft has no {word}: {INSTEAD[word]}"
    if is_folder_or_pack(word):
        return f"weft needs a verb before {word}: weft translate {word} TEXT"
    if os.path.exists(word):
        use = f"weft check {word}, or weft train {word}"
        return f"weft needs a verb before {word}: {use}"
    near = difflib.get_close_matches(word.lower(), [*verbs, *INSTEAD], n=1, cutoff=0.7)
    if near and near[0] in INSTEAD:
        return f"weft has no {word}: {INSTEAD[near[0]]}"
    remedy = f"did you mean weft {near[0]}?" if near else "weft --help lists them"
    return f"weft has no verb {word!r:.80}; {remedy}"


def about_order(verb: str, words: Sequence[str]) -> str | None:
    """Return the right order of a verb's arguments where the model's folder is not the first."""
    if not words or is_folder_or_pack(words[0]):
        return None
    for i, word in enumerate(words):
        if is_folder_or_pack(word) and holds_model_or_run(Path(word)):
            others = shlex.join([*words[:i], *words[i + 1 :]])
            return f"the model's folder comes first: {verb} {shlex.quote(word)} {others:.100}"
    return None


def about_option(verb: str, name: str, options: Iterable[str]) -> str:
    """Return the answer to an option that a verb, `weft VERB`, does not have."""
    known = [option for option in options if option.startswith("--")]
    near = [option for option in known if option.startswith(f"{name}-")]
    near = near or difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    takes_settings = "--set" in known
    remedy = _known_elsewhere(verb, name, takes_settings)
    if remedy is None and near:
        remedy = f"did you mean {near[0]}?"
    if remedy is None and (key := _as_key(name.lstrip("-").replace("-", "_"))):
        remedy = key if takes_settings else f"{_BY_TRAINING}: {key}"
    if remedy is None:
        return f"{verb} has no option {name}; see {verb} --help"
    return f"{verb} has no option {name}: {remedy}"


def _known_elsewhere(verb: str, name: str, takes_settings: bool) -> str | None:
    """Return what to use instead of an option of other programs or verbs; None for one that is not
    known.

    `takes_settings` says whether the verb has the option --set.
    """
    if name in ("--glossary", "--memory") and not takes_settings:
        return f"weft translate FOLDER TEXT {name} FILE takes one; leave it out here"
    if name == "--kernels" and not takes_settings:
        return _PLAIN if verb == "weft inspect" else _KERNELS
    if name in LANGUAGES or (name == "--from" and not takes_settings):
        return LANGUAGES[name] if takes_settings else _ONE_WAY
    remedy = OPTIONS.get(name)
    if remedy and remedy.startswith("--set ") and not takes_settings:
        return f"{_BY_TRAINING}: {remedy}"
    return remedy


def _as_key(leaf: str) -> str | None:
    """Return how to set the key of a recipe that is called `leaf`; None where there is none."""
    from weft.recipes.problems import keys_named

    keys = keys_named(leaf)
    return f"it is a key of the recipe: --set {keys[0]}=..." if keys else None
