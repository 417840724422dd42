"""The use of a model, for which CTranslate2 has no file: `weft.json` beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.data.tokenizer import BOS_ID, PAD_ID
from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.predict.rows import most_tokens
from weft.ship.ctranslate2.vocabulary import names_of
from weft.ship.lengths import penalty_by_length
from weft.ship.source import Source

SETTINGS = "weft.json"


def settings_of(source: Source) -> dict[str, Any]:
    """Return how a model is used: the arguments of a search under "search", and how many ids of a
    text are read.
    """
    config = source.config
    if isinstance(config, TranslationConfig):
        return _of_translator(source, config)
    if isinstance(config, LanguageConfig):
        return _of_writer(source, config)
    assert isinstance(config, ClassificationConfig)
    return {
        "task": config.task,
        "max_ids": config.max_len + _first(config),
        "pooling": config.model.pooling,
        "labels": config.labels,
        "multi_label": config.multi_label,
    }


def read_settings(place: Path) -> dict[str, Any]:
    """Read them from a folder of this form."""
    settings: dict[str, Any] = json.loads((place / SETTINGS).read_text("utf-8"))
    return settings


def never_written(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search that keep it from ids that are never written."""
    names = ("disable_unk", "suppress_sequences")
    return {name: settings["search"][name] for name in names}


def _never_written(source: Source) -> dict[str, Any]:
    """Return the arguments by which a search never writes padding, a beginning or the unknown."""
    names = names_of(source.tokenizers[-1])
    return {
        "disable_unk": True,
        "suppress_sequences": [[names[PAD_ID]], [names[BOS_ID]]],
    }


def _of_translator(source: Source, config: TranslationConfig) -> dict[str, Any]:
    decoding = config.decoding
    penalty = penalty_by_length(decoding.length_penalty)
    limit = most_tokens(decoding, config.max_src_len, config.model.max_len)
    return {
        "task": config.task,
        "source": config.src_lang,
        "target": config.tgt_lang,
        "max_ids": config.max_src_len,
        "search": {
            "beam_size": decoding.beam_size,
            "length_penalty": round(penalty, 4),
            "min_decoding_length": 0,
            "max_decoding_length": limit,
            **_never_written(source),
        },
    }


def _of_writer(source: Source, config: LanguageConfig) -> dict[str, Any]:
    decoding = config.decoding
    sampling = {
        "sampling_temperature": decoding.temperature,
        "sampling_topk": decoding.top_k or 0,
        "sampling_topp": decoding.top_p or 1.0,
    }
    if not decoding.temperature:
        sampling = {"sampling_topk": 1}
    return {
        "task": config.task,
        "max_ids": config.model.max_len,
        "search": {
            "max_length": decoding.max_new_tokens,
            "repetition_penalty": decoding.repetition_penalty,
            "include_prompt_in_result": False,
            **sampling,
            **_never_written(source),
        },
    }


def _first(config: ClassificationConfig) -> int:
    """Return the number of ids before those of a text."""
    return 1 if config.model.pooling == "first" else 0
