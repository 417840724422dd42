"""The settings that a loop takes: the content of config.json beside the graphs."""

from collections.abc import Mapping
from typing import Any

from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.predict.settings import BANNED
from weft.ship.source import Source
from weft.ship.tokenizers.ids import IdMap


def settings_of(source: Source, ids: IdMap) -> Mapping[str, Any]:
    """Return the content of config.json. The loop leaves out the ids of `suppress_tokens`, which
    are never written.
    """
    config = source.config
    if isinstance(config, TranslationConfig):
        return {
            **_of_writing(config.task, ids, config.model.max_len),
            "max_src_len": config.max_src_len,
            "max_len_ratio": config.decoding.max_len_ratio,
            "max_len_extra": config.decoding.max_len_extra,
        }
    if isinstance(config, LanguageConfig):
        return {
            **_of_writing(config.task, ids, config.model.max_len),
            "max_new_tokens": config.decoding.max_new_tokens,
            "temperature": config.decoding.temperature,
        }
    assert isinstance(config, ClassificationConfig)
    return {
        "task": config.task,
        "labels": config.labels,
        "multi_label": config.multi_label,
        "max_len": config.max_len,
        "too_long": config.too_long,
    }


def _of_writing(task: str, ids: IdMap, max_len: int) -> Mapping[str, Any]:
    return {
        "task": task,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
        "suppress_tokens": ids.to("tgt", BANNED).tolist(),
        "max_len": max_len,
    }
