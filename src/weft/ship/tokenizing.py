"""The tokenizer of a model as other programs have it: its files, and the ids around a text."""

from collections.abc import Mapping

from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.ship.source import Source
from weft.ship.tokenizers import hub
from weft.ship.tokenizers.ids import IdMap


def why_no_tokenizer(source: Source) -> str:
    """Say through which step of Weft's own a text goes, and how a model does without it; "" where
    other programs can read as the model does.
    """
    key = "tokenizer" if source.is_joint else "tokenizer.src"
    return hub.steps_in_the_way(source.tokenizers[0], key)


def tokenizer_files(source: Source, ids: IdMap) -> Mapping[str, bytes]:
    """Return the files of the tokenizer, names to contents. Raises UsageError where a text goes
    through steps that other programs have not.
    """
    config = source.config
    src = source.tokenizers[0]
    tgt = source.tokenizers[-1]
    if isinstance(config, TranslationConfig):
        return hub.translator_files(src, tgt, ids, config.max_src_len)
    if isinstance(config, LanguageConfig):
        return hub.language_model_files(src, source.start_id, config.window_len)
    assert isinstance(config, ClassificationConfig)
    first = config.model.pooling == "first"
    limit = config.max_len + (1 if first else 0)
    return hub.classifier_files(src, limit, first_token=first)


def ids_around(source: Source, ids: IdMap) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids that the tokenizer puts before and behind those of a text."""
    config = source.config
    if isinstance(config, TranslationConfig):
        return (), (ids.src_eos,)
    if isinstance(config, LanguageConfig):
        return (source.start_id,), ()
    assert isinstance(config, ClassificationConfig)
    return ((ids.bos,), ()) if config.model.pooling == "first" else ((), ())
