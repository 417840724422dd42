"""Translators as T5Gemma: rotary positions, an RMSNorm before and after each sublayer, a gated
feed-forward, no biases.

Its norms multiply by 1 + w, so a gain g is kept as g - 1. It has a table of tokens for each side,
and the output has the target's, or its own.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from weft.config import Seq2SeqSection
from weft.folder.model_folder import TranslationConfig
from weft.predict.weights import NORM_EPS, WAVE_BASE
from weft.ship.certificate.checks import largest_difference
from weft.ship.huggingface.home import Home, Reasons
from weft.ship.huggingface.takes import ACTIVATIONS, GATED
from weft.ship.source import Source
from weft.ship.tensors import Array, Tensor, placed, same, shifted
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap

_MAPS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "output"}
_FEED_FORWARD = {"gate_proj": "gate", "up_proj": "inner", "down_proj": "outer"}
# the sublayers by the names of their norms there, in Weft's order
_SUBLAYERS = {
    "encoder": ("self_attn", "feedforward"),
    "decoder": ("self_attn", "cross_attn", "feedforward"),
}
_NORMS = {"norm": "pre", "after": "post"}
_ATTENTIONS = {"self_attn": "self_attention", "cross_attn": "cross_attention"}


class T5Gemma(Home):
    """The modern block as an encoder-decoder."""

    task: ClassVar[str] = "translation"
    architecture: ClassVar[str] = "T5GemmaForConditionalGeneration"
    model_type: ClassVar[str] = "t5gemma"
    since: ClassVar[str] = "4.53"
    auto_class: ClassVar[str] = "AutoModelForSeq2SeqLM"

    def reasons(self, source: Source) -> Reasons:
        shape = _shape(source)
        if shape.norm != "rms" or not shape.sandwich_norm:
            yield "its norms are others (it takes norm = rms with sandwich_norm)"
        if shape.query_key_norm:
            yield "it has norms of queries and keys (model.query_key_norm)"
        if shape.embedding_norm:
            yield "it has a norm of embeddings (model.embedding_norm)"
        if shape.activation not in GATED:
            yield f'model.activation = "{shape.activation}" (it takes geglu and swiglu)'
        if shape.positions != "rotary":
            yield f'model.positions = "{shape.positions}" (it takes rotary)'
        if shape.bias:
            yield "model.bias = true (it has no biases)"
        if shape.has_projection_bias and not shape.bias:
            yield "model.projection_bias = true (it has no biases)"
        if not shape.scale_embeddings:
            yield "model.scale_embeddings = false (it always scales)"
        if shape.d_model % shape.num_heads:
            yield "model.num_heads does not divide model.d_model"

    def ids(self, source: Source) -> IdMap:
        src, tgt = source.tokenizers
        if source.is_joint:
            return id_maps.same(src)
        return id_maps.joined(src, tgt, own_eos=False)

    def config(self, source: Source) -> Mapping[str, Any]:
        shape = _shape(source)
        ids = self.ids(source)
        num_written = len(ids.tgt)
        encoder = _module(shape, shape.num_encoder_layers, ids.size, ids)
        decoder = _module(shape, shape.num_decoder_layers, num_written, ids)
        return {
            "vocab_size": num_written,
            "encoder": encoder,
            "decoder": decoder,
            "dropout_rate": shape.dropout,
            "attention_dropout": shape.attention_dropout,
            "is_encoder_decoder": True,
            "tie_word_embeddings": shape.tie_embeddings,
        }

    def tensors(self, source: Source) -> list[Tensor]:
        shape = _shape(source)
        found = list(self._tables(source))
        counts = {
            "encoder": shape.num_encoder_layers,
            "decoder": shape.num_decoder_layers,
        }
        for side, count in counts.items():
            name = f"model.{side}"
            for number in range(count):
                found += _layer(f"{name}.layers.{number}", side, f"{side}.{number}")
            found.append(_gain(f"{name}.norm", f"{side}_norm"))
        return found

    def loose(self, source: Source) -> tuple[Mapping[str, float], str]:
        lost = {}
        for tensor in self.tensors(source):
            if _is_gain(tensor):
                (own,) = tensor.of
                lost[tensor.name] = most_lost(source.arrays[own])
        found = {name: difference for name, difference in lost.items() if difference}
        why = "gains below 0.5 are kept as gain - 1, which rounds"
        return found, why if found else ""

    def notes(self, source: Source) -> Iterator[str]:
        if not source.is_joint:
            yield "transformers 5 opens this folder; version 4 gives both sides one size of vocabulary"

    def _tables(self, source: Source) -> Iterator[Tensor]:
        """Yield the tables of tokens, and the projection to logits where it has its own."""
        ids = self.ids(source)
        src = "src_embedding.tokens.weight"
        is_tied = _shape(source).tie_embeddings
        is_shared = source.is_joint and is_tied
        tgt = src if is_shared else "tgt_embedding.tokens.weight"
        yield placed("model.encoder.embed_tokens.weight", {src: ids.src}, ids.size)
        yield same("model.decoder.embed_tokens.weight", tgt)
        if not is_tied:
            yield same("lm_head.out_proj.weight", "projection.weight")


def most_lost(gains: Array) -> float:
    """Return the most that differs in gains that were kept as g - 1 and are had back by adding 1;
    0.0 where all come back as they were.

    From 0.5 on they do: g - 1 is a float32 then (up to 2 by Sterbenz's lemma, and beyond because
    its last bit is worth no more than that of g). From 0 to 0.5 it is rounded to a multiple of
    2 ** -24, so that at most 2 ** -25 is lost.
    """
    one = np.float32(1)
    kept = gains - one
    return largest_difference(kept + one, gains)


def _module(
    shape: Seq2SeqSection, num_layers: int, vocab_size: int, ids: IdMap
) -> Mapping[str, Any]:
    """Return the config of an encoder or a decoder."""
    return {
        "model_type": "t5_gemma_module",
        "vocab_size": vocab_size,
        "hidden_size": shape.d_model,
        "intermediate_size": shape.d_ff,
        "num_hidden_layers": num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.dim_of_head,
        "query_pre_attn_scalar": shape.dim_of_head,
        "hidden_activation": ACTIVATIONS[shape.activation],
        "max_position_embeddings": shape.max_len,
        # version 4 reads the one, version 5 the other
        "rope_theta": WAVE_BASE,
        "rope_parameters": {"rope_type": "default", "rope_theta": WAVE_BASE},
        "rms_norm_eps": NORM_EPS,
        "attention_bias": False,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "layer_types": ["full_attention"] * num_layers,
        # no layer has a window, yet the class counts with its width
        "sliding_window": shape.max_len,
        "pad_token_id": ids.pad,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
        # by this one version 4 would tie the output to the table of the encoder
        "tie_word_embeddings": False,
    }


def _layer(name: str, side: str, of: str) -> Iterator[Tensor]:
    for number, sublayer in enumerate(_SUBLAYERS[side]):
        own = _ATTENTIONS.get(sublayer)
        if own is not None:
            for map_name, own_map in _MAPS.items():
                weight = f"{name}.{sublayer}.{map_name}.weight"
                yield same(weight, f"{of}.{own}.{own_map}.weight")
        for own_norm, place in _NORMS.items():
            norm = f"{name}.{place}_{sublayer}_layernorm"
            yield _gain(norm, f"{of}.residuals.{number}.{own_norm}")
    for map_name, own_map in _FEED_FORWARD.items():
        weight = f"{name}.mlp.{map_name}.weight"
        yield same(weight, f"{of}.feed_forward.{own_map}.weight")


def _gain(name: str, of: str) -> Tensor:
    return shifted(same(f"{name}.weight", f"{of}.weight"), -1.0)


def _is_gain(tensor: Tensor) -> bool:
    return tensor.name.endswith("norm.weight")


def _shape(source: Source) -> Seq2SeqSection:
    config = source.config
    assert isinstance(config, TranslationConfig)
    assert isinstance(config.model, Seq2SeqSection)
    return config.model
