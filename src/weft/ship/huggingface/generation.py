"""The settings of a search or of sampling, as generation_config.json has them."""

from typing import Any

from weft.data.tokenizer import BOS_ID, PAD_ID, UNK_ID
from weft.folder.model_folder import LanguageConfig, TranslationConfig
from weft.predict.rows import most_tokens
from weft.ship.lengths import most_continued, penalty_by_length
from weft.ship.source import Source
from weft.ship.tokenizers.ids import IdMap

# never written; their logits stay in the softmax, as in Weft
_BANNED = (PAD_ID, UNK_ID, BOS_ID)


def generation_of(source: Source, ids: IdMap) -> dict[str, Any]:
    """Return the content of generation_config.json; a classifier has none."""
    config = source.config
    banned = ids.to("tgt", _BANNED).tolist()
    found = {
        "pad_token_id": ids.pad,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
        "suppress_tokens": banned,
    }
    if isinstance(config, TranslationConfig):
        return {**found, "decoder_start_token_id": ids.bos, **_beam(config)}
    assert isinstance(config, LanguageConfig)
    return {**found, "bos_token_id": source.start_id, **_sampling(config)}


def of_pipelines(source: Source) -> dict[str, Any]:
    """Return what config.json must say for version 4, whose pipelines have settings of their own
    that go before those of generation_config.json; by the names of the pipelines.
    """
    config = source.config
    if isinstance(config, LanguageConfig):
        return {"text-generation": _sampling(config)}
    assert isinstance(config, TranslationConfig)
    settings = {"max_new_tokens": None, **_beam(config)}
    pair = f"translation_{config.src_lang}_to_{config.tgt_lang}"
    return {"translation": settings, pair: settings}


def _beam(config: TranslationConfig) -> dict[str, Any]:
    decoding = config.decoding
    penalty = penalty_by_length(decoding.length_penalty)
    limit = most_tokens(decoding, config.max_src_len, config.model.max_len)
    return {
        "num_beams": decoding.beam_size,
        "do_sample": False,
        "early_stopping": False,
        "length_penalty": round(penalty, 4),
        # counts the start, too
        "max_length": limit + 1,
    }


def _sampling(config: LanguageConfig) -> dict[str, Any]:
    """Return the settings of sampling; of a temperature of 0, those of the greedy search."""
    decoding = config.decoding
    found: dict[str, Any] = {
        "do_sample": decoding.temperature > 0,
        "repetition_penalty": decoding.repetition_penalty,
        "max_new_tokens": most_continued(decoding.max_new_tokens, config.window_len),
    }
    if decoding.temperature > 0:
        # what is not set there has a value of the library's own
        found["temperature"] = decoding.temperature
        found["top_k"] = decoding.top_k or 0
        found["top_p"] = decoding.top_p or 1.0
    if decoding.temperature > 0 and decoding.min_p is not None:
        found["min_p"] = decoding.min_p
    return found
