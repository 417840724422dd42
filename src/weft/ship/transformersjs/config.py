"""The content of config.json and generation_config.json, as transformers.js reads them.

`model_type` only says how the library uses a graph: which files it opens, which inputs it gives,
and which names the cache has. The graph computes whatever it has.
"""

from collections.abc import Mapping
from typing import Any

from weft.config import Seq2SeqSection
from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.predict.rows import most_tokens
from weft.ship.lengths import most_continued
from weft.ship.source import Source
from weft.ship.tokenizers.ids import IdMap

# without it the library looks for weights in 8 bits where it computes by wasm
_FLOAT32 = {"transformers.js_config": {"dtype": "fp32"}}


def config_of(source: Source, ids: IdMap) -> Mapping[str, Any]:
    """Return the content of config.json."""
    config = source.config
    if isinstance(config, TranslationConfig):
        return _of_translator(config, ids)
    if isinstance(config, LanguageConfig):
        return _of_writer(config, ids)
    assert isinstance(config, ClassificationConfig)
    return _of_classifier(config)


def generation_of(source: Source, ids: IdMap) -> Mapping[str, Any]:
    """Return the content of generation_config.json; a classifier has none.

    The library's pipelines have a limit of their own, 256 tokens, which a caller can change alone.
    """
    config = source.config
    if isinstance(config, ClassificationConfig):
        return {}
    found = {**_special_ids(ids), "do_sample": False}
    if isinstance(config, LanguageConfig):
        limit = most_continued(config.decoding.max_new_tokens, config.window_len)
        return {**found, "max_new_tokens": limit}
    assert isinstance(config, TranslationConfig)
    decoding = config.decoding
    limit = most_tokens(decoding, config.max_src_len, config.model.max_len)
    return {
        **found,
        "decoder_start_token_id": ids.bos,
        "max_new_tokens": limit,
    }


def _of_translator(config: TranslationConfig, ids: IdMap) -> Mapping[str, Any]:
    shape = config.model
    assert isinstance(shape, Seq2SeqSection)
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": ids.size,
        "d_model": shape.d_model,
        "encoder_layers": shape.num_encoder_layers,
        "decoder_layers": shape.num_decoder_layers,
        "encoder_attention_heads": shape.num_heads,
        "decoder_attention_heads": shape.num_heads,
        "max_position_embeddings": shape.max_len,
        "decoder_start_token_id": ids.bos,
        **_special_ids(ids),
        **_FLOAT32,
    }


def _of_writer(config: LanguageConfig, ids: IdMap) -> Mapping[str, Any]:
    shape = config.model
    return {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": ids.size,
        "hidden_size": shape.d_model,
        "num_hidden_layers": shape.num_decoder_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.dim_of_head,
        "max_position_embeddings": shape.max_len,
        **_special_ids(ids),
        **_FLOAT32,
    }


def _of_classifier(config: ClassificationConfig) -> Mapping[str, Any]:
    several = "multi_label" if config.multi_label else "single_label"
    labels = enumerate(config.labels)
    return {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "problem_type": f"{several}_classification",
        "id2label": {str(number): label for number, label in labels},
        "max_position_embeddings": config.model.max_len,
        **_FLOAT32,
    }


def _special_ids(ids: IdMap) -> Mapping[str, int]:
    return {
        "pad_token_id": ids.pad,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
    }
