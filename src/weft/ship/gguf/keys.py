"""The keys of a GGUF file beside its arrays: names, shape, search, as llama.cpp reads them.

A value's type is that of the file: bool, str, float (32 bits), int (32 bits without a sign), or a
list of one of these. Source of the names: the GGUF specification, and `gguf/constants.py`.
"""

from typing import Any, TypeAlias

from weft.folder.model_folder import LanguageConfig
from weft.predict.weights import NORM_EPS, WAVE_BASE
from weft.ship.gguf.arches import Arch
from weft.ship.licenses import license_of
from weft.ship.target import Asked

Keys: TypeAlias = dict[str, Any]

# of the sampler's steps, in the order in which Weft takes them
_STEPS = ("penalties", "temperature", "top_k", "top_p", "min_p")


def general_keys(
    config: LanguageConfig, asked: Asked, title: str, file_type: int
) -> Keys:
    """Return what the model is; a license only where one was stated."""
    keys: Keys = {
        "general.type": "model",
        "general.name": title,
        "general.description": f"A language model made by Weft {config.weft_version}",
        "general.file_type": file_type,
        "general.quantization_version": 2,
    }
    license = license_of(asked.license)
    if license is not None:
        keys["general.license"] = license.id
    if license is not None and license.name:
        keys["general.license.name"] = license.name
        keys["general.license.link"] = license.link
    if config.lang and config.lang != "und":
        keys["general.languages"] = [config.lang]
    return keys


def shape_keys(config: LanguageConfig, arch: Arch) -> Keys:
    """Return the shape of the model."""
    shape = config.model
    norm = "layer_norm_rms_epsilon" if arch.norm == "rms" else "layer_norm_epsilon"
    keys: Keys = {
        "vocab_size": config.vocab_size,
        "context_length": context_length(config),
        "embedding_length": shape.d_model,
        "block_count": shape.num_decoder_layers,
        "feed_forward_length": shape.d_ff,
        "attention.head_count": shape.num_heads,
        "attention.head_count_kv": shape.key_value_heads,
        f"attention.{norm}": NORM_EPS,
    }
    if not arch.has_table:
        keys["attention.key_length"] = shape.dim_of_head
        keys["attention.value_length"] = shape.dim_of_head
        keys["rope.dimension_count"] = shape.dim_of_head
        keys["rope.freq_base"] = WAVE_BASE
    return {f"{arch.name}.{name}": value for name, value in keys.items()}


def context_length(config: LanguageConfig) -> int:
    """Return how many positions a text has there: those that were trained, but for a table, which
    is written whole.
    """
    if config.model.positions == "rotary":
        return min(config.window_len, config.model.max_len)
    return config.model.max_len


def search_keys(config: LanguageConfig) -> Keys:
    """Return the settings of sampling, which llama.cpp takes where a person says no others."""
    decoding = config.decoding
    keys: Keys = {
        "sequence": ";".join(_STEPS),
        "temp": float(decoding.temperature),
        "top_k": decoding.top_k or 0,
        "top_p": float(decoding.top_p or 1.0),
        "min_p": float(decoding.min_p or 0.0),
        "penalty_repeat": float(decoding.repetition_penalty),
        "penalty_last_n": context_length(config),
    }
    return {f"general.sampling.{name}": value for name, value in keys.items()}
