"""A model as a browser takes it: a card with all but the weights, and the weights as bytes.

The scripts of `page/live` compute with them what the plain pass computes.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.config import LayerShape
from weft.data.pipeline import has_leading_space
from weft.data.segment import sentence_rules
from weft.data.tokenizer import Tokenizer
from weft.engine.halves import packed, rounded_to_halves
from weft.engine.weights import Weights
from weft.errors import UsageError
from weft.folder.model_files import files_of
from weft.folder.model_folder import FolderConfig, TranslationConfig, config_in
from weft.inspection.assets import asset
from weft.predict.segments import joiner
from weft.predict.weights import rotary_frequencies
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

# what computes a model; each needs those before it
ENGINE = (
    "halves.js",
    "tokenizer.js",
    "segments.js",
    "known.js",
    "ngrams.js",
    "transformer.js",
    "search.js",
    "sampling.js",
    "models.js",
    "stream.js",
    "alignment.js",
    "inside.js",
    "labels.js",
    "worker.js",
)

_RECURRENT = 'the model is recurrent, which no browser computes; train a Transformer (model.kind = "transformer")'


@dataclass(frozen=True, eq=False)
class BrowserModel:
    """A model of `count` weights: its card, for JSON, and its weights, behind which the hashes of
    the words of its training are.

    The count is the model's own: of an int8 folder neither the scales nor the second copy of a
    matrix that two parts share, though `data` has both.
    """

    card: dict[str, Any]
    data: bytes
    count: int


def engine_source() -> str:
    """Return the script that computes a model: a function `weftEngine` whose value has its parts.

    A page gives its text to a worker, as it may load no file there.
    """
    parts = "".join(asset(f"live/{name}") for name in ENGINE)
    return (
        f'function weftEngine() {{\n"use strict";\n{parts}\nreturn {{ bytesOf, loadModel, Tokenizer, Sentences, '
        "planRows, joinRows, oneLine, KnownWords, foldedWords, hashOfWord, "
        "Transformer, wordsOf, pieceThatSpells, insideOf, serveModel };\n}\n"
    )


def refuse_no_browser(folder: Path) -> None:
    """Raise UsageError for a model that no browser computes, before it is loaded."""
    config = config_in(files_of(folder))
    if reason := why_no_browser(config):
        raise UsageError(f"{folder}: {reason}")


def why_no_browser(config: FolderConfig) -> str:
    """Say why no browser computes a model; "" where one does."""
    if config.is_recurrent:
        return _RECURRENT
    if isinstance(config, TranslationConfig) and config.marks.languages:
        return "the page writes no marks of languages, which the model reads before each source"
    for name in config.tokenizer_steps:
        return _other_step(name)
    return ""


def browser_model(task: Task[Any, Any]) -> BrowserModel:
    """Return a model of any task but a recurrent one, its weights rounded to 16 bits.

    Raises UsageError for what no browser computes.
    """
    shape = _layers_of(task)
    if isinstance(task, Translation):
        card = _of_translation(task)
    elif isinstance(task, LanguageModelling):
        card = _of_language(task)
    else:
        assert isinstance(task, Classification)
        card = _of_classification(task)
    weights: Any = task.weights
    laid_out = packed(weights, shape.key_value_heads, shape.positions == "sinusoidal")
    card["tokenizers"] = [browser_tokenizer(tokenizer) for tokenizer in _once(task)]
    card["arrays"] = laid_out.entries
    count = laid_out.count - _copied(weights, shape)
    data = laid_out.data
    if task.known is not None:
        hashes = task.known.hashes.astype("<i4")
        card["known"] = {"dtype": "int32", "shape": hashes.shape, "offset": len(data)}
        data += hashes.tobytes()
    return BrowserModel(card, data, count)


def _copied(weights: Any, shape: LayerShape) -> int:
    """Return how many numbers of the output's matrix are those of the tokens once more, in int8."""
    stored = weights.projection.stored
    is_tied = getattr(shape, "tie_embeddings", False)
    return int(stored.size) if is_tied and stored.dtype == np.int8 else 0


def rounded_task(task: Task[Any, Any]) -> Any:
    """Return the task with its weights rounded to 16 bits, as `browser_model` writes them.

    Raises UsageError as that does.
    """
    used: Any = task
    is_sinusoidal = _layers_of(task).positions == "sinusoidal"
    weights = rounded_to_halves(used.weights, is_sinusoidal)
    # an int8 model too is computed in float32 there
    config = used.config.model_copy(update={"weights": "float32"})
    return replace(used, weights=weights, config=config)


def _layers_of(task: Task[Any, Any]) -> LayerShape:
    """Return the shape of a model's layers. Raises UsageError for a recurrent model."""
    assert isinstance(task, Translation | LanguageModelling | Classification)
    shape = task.config.model
    if not isinstance(shape, LayerShape):
        raise UsageError(_RECURRENT)
    return shape


def browser_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return what a browser needs of a tokenizer. Raises UsageError for steps of other packages."""
    settings = tokenizer.settings
    for name in tokenizer.steps:
        raise UsageError(_other_step(name))
    model = json.loads(tokenizer.to_json())["model"]
    found: dict[str, Any] = {
        "kind": settings.kind,
        "words": settings.words,
        "unicode": settings.unicode,
        "lowercase": settings.lowercase,
        "leadingSpace": has_leading_space(settings),
    }
    if settings.kind == "unigram":
        pieces, scores = zip(*model["vocab"], strict=True)
        return {**found, "pieces": pieces, "scores": scores}
    ids = model["vocab"]
    found["pieces"] = sorted(ids, key=ids.__getitem__)
    merges = model["merges"]
    return {**found, "merges": [ids[part] for pair in merges for part in pair]}


def _other_step(name: str) -> str:
    return (
        f"the tokenizer has a step of another package ({name}), which no browser runs; "
        'train with simplified = false and words = "unicode" or "whitespace"'
    )


def _once(task: Task[Any, Any]) -> list[Tokenizer]:
    """Return a task's tokenizers, one that both sides share once."""
    return list(dict.fromkeys(task.tokenizers))


def _of_translation(task: Translation) -> dict[str, Any]:
    config = task.config
    assert task.weights is not None
    lengths = task.predictor().lengths
    return {
        "task": task.name,
        "src_lang": config.src_lang,
        "tgt_lang": config.tgt_lang,
        "shape": _shape(task.weights, _layers_of(task)),
        "decoding": config.decoding.model_dump(),
        "lengths": {
            "limit": lengths.limit,
            "usual": lengths.usual,
            "bySentence": lengths.by_sentence,
        },
        "sentences": sentence_rules(config.src_lang),
        "joiner": joiner(config.tgt_lang),
    }


def _of_language(task: LanguageModelling) -> dict[str, Any]:
    assert task.weights is not None
    predictor = task.predictor()
    return {
        "task": task.name,
        "lang": task.config.lang,
        "shape": _shape(task.weights, task.config.model),
        "decoding": task.config.decoding.model_dump(),
        "start_id": predictor.start_id,
        "window_len": task.config.window_len,
    }


def _of_classification(task: Classification) -> dict[str, Any]:
    config = task.config
    assert task.weights is not None
    encoder = task.weights.encoder
    return {
        "task": task.name,
        "lang": config.lang,
        "shape": encoder and _shape(encoder, config.model),
        "labels": config.labels,
        "multi_label": config.multi_label,
        "max_len": config.max_len,
        "too_long": config.too_long,
        "first_token": config.model.pooling == "first",
        "pooling": config.model.pooling,
        "longest": config.model.ngrams,
    }


def _shape(weights: Weights, shape: LayerShape) -> dict[str, Any]:
    """Return the numbers of a Transformer."""
    is_rotary = shape.positions == "rotary"
    matches = weights.matches
    ngrams = weights.ngrams
    return {
        "num_heads": weights.num_heads,
        "head_dim": weights.head_dim,
        "norm_first": weights.norm_first,
        "norm": weights.norm,
        "activation": weights.activation,
        "eps": weights.eps,
        "embedding_scale": weights.embedding_scale,
        "d_model": weights.d_model,
        "positions": shape.positions,
        "rotary": rotary_frequencies(shape.dim_of_head).tolist() if is_rotary else None,
        "encoder_layers": len(weights.encoder),
        "decoder_layers": len(weights.decoder),
        "max_len": shape.max_len,
        "ngrams": ngrams and ngrams.longest,
        "matches": matches and list(matches.lengths),
    }
