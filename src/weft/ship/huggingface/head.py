"""The head of a card that the Hugging Face Hub reads: YAML between two lines of dashes."""

import json
from typing import Any

from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.ship.source import Source
from weft.ship.target import Asked

_PIPELINES = {
    "translation": "translation",
    "language-modelling": "text-generation",
    "classification": "text-classification",
}


def head_of(source: Source, asked: Asked, library: str = "transformers") -> str:
    """Return the head: task, languages, library, and the license where one was stated.

    A value is written as JSON has it, which YAML reads alike.
    """
    facts: dict[str, Any] = {
        "library_name": library,
        "pipeline_tag": _PIPELINES[source.task.name],
        "language": _languages(source),
        "tags": ["weft"],
    }
    if asked.license:
        facts["license"] = asked.license
    lines = (
        f"{key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in facts.items()
        if value
    )
    return "\n".join(["---", *lines, "---", "", ""])


def _languages(source: Source) -> list[str]:
    config = source.config
    if isinstance(config, TranslationConfig):
        return [config.src_lang, config.tgt_lang]
    assert isinstance(config, LanguageConfig | ClassificationConfig)
    return [config.lang] if config.lang else []
