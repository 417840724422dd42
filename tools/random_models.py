"""Tiny models of every packaged recipe with random weights, and their tokenizers: nothing is
trained.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shrunk import sizes_shrunk
from weft.config import (
    ClassificationRecipe,
    LanguageRecipe,
    Recipe,
    SideSection,
    TokenizerSection,
    TranslationRecipe,
)
from weft.data.tokenizer import Tokenizer, build_tokenizer, build_tokenizers
from weft.engine.halves import rounded_to_halves
from weft.folder.model_folder import (
    ClassificationConfig,
    Contents,
    LanguageConfig,
    TranslationConfig,
    save_model_folder,
)
from weft.kernels.machine import Machine
from weft.predict.parameters import Parameters
from weft.predict.weights import causal_weights, classifier_weights, seq2seq_weights
from weft.recipes.file import load_recipe, recipe_names
from weft.tasks import classification, language_modelling, translation

TEXTS = [
    "Ein kleiner Hund läuft über die Wiese.",
    "A small dog runs across the meadow, doesn't it?",
    "我想要一杯茶。谢谢！",
    "お茶をください。Tea 123 4567",
    "Grüße aus Köln: 12 °C, naïve café…",
] * 3
LABELS = ["bad", "good", "so-so"]
MACHINE = Machine("cpu", "float32", 1, "tests are small")
FOR_TESTS = ("model.max_len=200",)


def with_layers() -> list[str]:
    """The recipes whose models a browser computes, by name."""
    return [name for name in recipe_names() if "rnn" not in name]


def tiny_task(name: str, *settings: str, seed: int = 3) -> Any:
    """A model of a recipe made tiny, with random weights that 16 bits hold, for use."""
    recipe = load_recipe(name)
    sizes = [f"{key}={value}" for key, value in sizes_shrunk(recipe).items()]
    return task_of(load_recipe(name, [*sizes, *FOR_TESTS, *settings]), seed)


def task_of(recipe: Recipe, seed: int = 3) -> Any:
    common = {"weft_version": "0", "tokenizer_steps": {}, "weights": "float32"}
    shape: Any = recipe.model
    generator = np.random.default_rng(seed)
    sinusoidal = shape.positions == "sinusoidal"
    if isinstance(recipe, TranslationRecipe):
        section = TokenizerSection(
            joint=recipe.tokenizer.joint,
            src=in_a_browser(recipe.tokenizer.src),
            tgt=in_a_browser(recipe.tokenizer.tgt),
        )
        data = recipe.data
        both = build_tokenizers(section, TEXTS, TEXTS, needs_joint=data.has_hints)
        config = TranslationConfig(
            **common,
            task="translation",
            shortlist="none",
            src_lang="de",
            tgt_lang="en",
            joint=both[0] is both[1],
            src_vocab_size=both[0].vocab_size,
            tgt_vocab_size=both[1].vocab_size,
            max_src_len=60,
            usual_src_len=25,
            takes_terms=data.terms > 0,
            takes_match=data.memory > 0,
            model=shape,
            tokenizer=TokenizerSection(
                joint=both[0] is both[1], src=both[0].settings, tgt=both[1].settings
            ),
            decoding=recipe.decoding,
        )
        arrays = random_arrays(translation.parameters_of(config), generator)
        return translation.Translation(
            config=config,
            tokenizers=both,
            machine=MACHINE,
            weights=rounded_to_halves(seq2seq_weights(shape, arrays), sinusoidal),
        )
    one = build_tokenizer(in_a_browser(recipe.tokenizer), TEXTS)
    if isinstance(recipe, LanguageRecipe):
        language = LanguageConfig(
            **common,
            task="language-modelling",
            lang="de",
            vocab_size=one.vocab_size,
            documents="line",
            packing=recipe.batches.packing,
            window_len=recipe.batches.window_len,
            model=shape,
            tokenizer=one.settings,
            decoding=recipe.decoding,
        )
        arrays = random_arrays(language_modelling.parameters_of(language), generator)
        return language_modelling.LanguageModelling(
            config=language,
            tokenizers=(one,),
            machine=MACHINE,
            weights=rounded_to_halves(causal_weights(shape, arrays), sinusoidal),
        )
    assert isinstance(recipe, ClassificationRecipe)
    labelled = ClassificationConfig(
        **common,
        task="classification",
        lang="de",
        vocab_size=one.vocab_size,
        text_column="text",
        label_column="label",
        label_separator=recipe.data.label_separator,
        labels=LABELS,
        multi_label=recipe.data.label_separator is not None,
        max_len=20,
        too_long=recipe.data.too_long,
        model=shape,
        tokenizer=one.settings,
    )
    arrays = random_arrays(classification.parameters_of(labelled), generator)
    return classification.Classification(
        config=labelled,
        tokenizers=(one,),
        machine=MACHINE,
        weights=rounded_to_halves(classifier_weights(shape, arrays), sinusoidal),
    )


def in_a_browser(settings: SideSection) -> SideSection:
    """The same tokenizer without steps of other packages."""
    words = settings.words if settings.words in ("unicode", "whitespace") else "unicode"
    return settings.model_copy(update={"words": words, "simplified": False})


def random_arrays(parameters: Parameters, generator: Any) -> dict[str, Any]:
    """Numbers large enough that every head looks somewhere else; gains are near 1."""
    arrays = {}
    for parameter in parameters:
        numbers = generator.normal(size=parameter.shape) * 0.3
        # the weights of a mean are at least 0
        if parameter.name.endswith("_weights"):
            numbers = abs(numbers)
        is_gain = parameter.name.endswith(("norm.weight", "after.weight"))
        arrays[parameter.name] = (numbers + is_gain).astype(np.float32)
    return arrays


def tokenizer_of(**settings: Any) -> Tokenizer:
    """A tokenizer of any kind, learned from the texts above."""
    return build_tokenizer(SideSection(vocab_size=420, **settings), TEXTS)


def write_folder(name: str, folder: Path, *settings: str, seed: int = 3) -> Path:
    """Write a model folder with such a model; its weights are any float32 numbers."""
    task = tiny_task(name, *settings, seed=seed)
    config = task.config
    generator = np.random.default_rng(seed)
    arrays = random_arrays(PARAMETERS[config.task](config), generator)
    texts = [
        tokenizer.to_json().encode() for tokenizer in dict.fromkeys(task.tokenizers)
    ]
    tokenizers = dict(zip(config.tokenizer_files(), texts, strict=True))
    save_model_folder(folder, config, Contents(arrays, tokenizers), "# A model\n", {})
    return folder


def write_dev(task: str, path: Path) -> str:
    """Write text to compare such models on, and return its name."""
    rows = {
        "translation": [f"{text}\t{text}" for text in TEXTS[:5]],
        "language-modelling": TEXTS[:5],
        "classification": ["text\tlabel", *(f"{text}\tbad" for text in TEXTS[:5])],
    }[task]
    ends = {"language-modelling": ".txt"}
    file = path / f"dev{ends.get(task, '.tsv')}"
    file.write_text("\n".join(rows) + "\n", "utf-8")
    return str(file)


PARAMETERS: dict[str, Callable[[Any], Parameters]] = {
    "translation": translation.parameters_of,
    "language-modelling": language_modelling.parameters_of,
    "classification": classification.parameters_of,
}
