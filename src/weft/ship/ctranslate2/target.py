"""The export to CTranslate2: a folder that its engine loads, and how it is used."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.predict.rows import most_tokens
from weft.ship.ctranslate2.layout import tensors_of
from weft.ship.ctranslate2.model import WHY_LOOSE, write_model
from weft.ship.ctranslate2.opened import (
    HEAD,
    TGT_TOKENIZER,
    OpenedByCTranslate2,
    OpenedClassifier,
    OpenedTranslator,
    OpenedWriter,
)
from weft.ship.ctranslate2.reasons import reasons_of
from weft.ship.ctranslate2.settings import SETTINGS, settings_of
from weft.ship.ctranslate2.spec import Tokens
from weft.ship.ctranslate2.usage import use_of
from weft.ship.ctranslate2.vocabulary import names_of
from weft.ship.lengths import of_other_lengths
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.tensors import Tensor, make_all, same
from weft.ship.tokenizers import hub
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap
from weft.ship.tokenizing import ids_around, tokenizer_files
from weft.ship.written import Written

_OPENED: Mapping[str, type[OpenedByCTranslate2]] = {
    "translation": OpenedTranslator,
    "language-modelling": OpenedWriter,
    "classification": OpenedClassifier,
}
# by the class that loads it
_FORMS = {
    "translation": "CTranslate2 (Translator)",
    "language-modelling": "CTranslate2 (Generator)",
    "classification": "CTranslate2 (Encoder)",
}


class CTranslate2(Target):
    """A folder that CTranslate2 loads, with the tokenizer beside it."""

    name = "ctranslate2"
    extra = "ctranslate2"
    packages = ("ctranslate2",)
    writers = ("ctranslate2",)
    precisions = ("float32", "int8")
    library = "ctranslate2"

    def why_not(self, source: Source) -> str:
        return reasons_of(source)

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        for name, content in _tokenizer_files(source).items():
            (place / name).write_bytes(content)
        settings = settings_of(source)
        text = json.dumps(settings, indent=2, ensure_ascii=False)
        (place / SETTINGS).write_text(f"{text}\n", "utf-8")
        src, tgt = source.tokenizers[0], source.tokenizers[-1]
        tokens = Tokens(names_of(src), names_of(tgt))
        tensors = tensors_of(source, 0)
        model = write_model(source, tensors, tokens, place, asked.precision)
        head = _head(source)
        if head:
            arrays: Any = make_all(head, source.arrays)
            np.savez(place / HEAD, **arrays)
        ids = _ids(source)
        return Written(
            _FORMS[source.task.name],
            [*model.tensors, *head],
            ids,
            *ids_around(source, ids),
            precision=asked.precision,
            loose=model.loose,
            why_loose=WHY_LOOSE,
            notes=tuple(_notes(source)),
        )

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        return _OPENED[source.task.name](place)

    def used_otherwise(self, source: Source) -> str:
        return of_other_lengths("CTranslate2", source.config)

    def how_to_use(self, source: Source, written: Written) -> str:
        return use_of(source)


def _head(source: Source) -> list[Tensor]:
    """Return the projection of a classifier, which the engine does not compute."""
    if not isinstance(source.config, ClassificationConfig):
        return []
    names = ("weight", "bias")
    return [same(name, f"projection.{name}") for name in names]


def _tokenizer_files(source: Source) -> dict[str, bytes]:
    src, tgt = source.tokenizers[0], source.tokenizers[-1]
    files = tokenizer_files(source, id_maps.same(src))
    found = {hub.TOKENIZER: files[hub.TOKENIZER]}
    if not source.is_joint:
        found[TGT_TOKENIZER] = tgt.to_json().encode()
    return found


def _ids(source: Source) -> IdMap:
    """Say where Weft's ids stand: each side has its vocabulary there, too."""
    src, tgt = source.tokenizers[0], source.tokenizers[-1]
    if source.is_joint:
        return id_maps.same(src)
    sizes = src.vocab_size, tgt.vocab_size
    return IdMap(np.arange(sizes[0]), np.arange(sizes[1]), max(sizes))


def _notes(source: Source) -> list[str]:
    """Say what CTranslate2 has not, of how Weft uses the model."""
    config = source.config
    notes = []
    if isinstance(config, TranslationConfig):
        limit = most_tokens(config.decoding, config.max_src_len, config.model.max_len)
        notes.append(
            f"a translation ends behind {limit:,} tokens at the latest, which Weft allows the longest source alone: "
            "CTranslate2 has one limit for all"
        )
    if isinstance(config, LanguageConfig) and config.decoding.min_p is not None:
        notes.append("CTranslate2 has no min_p: its samples are drawn without it")
    if isinstance(config, ClassificationConfig) and config.too_long == "windows":
        notes.append(
            f"a text of more than {config.max_len} ids is cut there; Weft reads it in windows"
        )
    return notes
