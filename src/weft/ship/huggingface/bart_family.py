"""Translators as Blenderbot, Pegasus or Marian: the paper's Transformer, by three classes.

All three have BART's names. They differ in where the norms stand and in what positions are:

- Blenderbot: norms first; a table of positions, which takes computed ones as they are.
- Pegasus: norms first; positions are computed, all sines before all cosines. So the numbers of
  every vector stand in that order, too.
- Marian: norms last, and Pegasus' positions; a table of tokens for each side, if wanted.

Shapes: D d_model, V vocabulary of the form, S ids of the source and T of the target.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from weft.config import LayerShape, Seq2SeqSection
from weft.folder.model_folder import TranslationConfig
from weft.ship.huggingface.home import (
    Home,
    Reasons,
    differing,
    layer_norm,
    linear,
    positions,
)
from weft.ship.source import Source
from weft.ship.tensors import Tensor, constant, permuted, placed, reshaped, same
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap
from weft.ship.written import NEVER

# positions up to which a table of computed ones is worth its size
_TABLE = 2048
_SELF = {"self_attn": "self_attention"}
_BOTH = {**_SELF, "encoder_attn": "cross_attention"}
# the axis that has the numbers of the model's vectors, by the end of an array's name; the axis of
# what lies between two maps, such as heads, has them not
_VECTORS = {
    "q_proj.weight": 1,
    "k_proj.weight": 1,
    "v_proj.weight": 1,
    "out_proj.weight": 0,
    "out_proj.bias": 0,
    "fc1.weight": 1,
    "fc2.weight": 0,
    "fc2.bias": 0,
    "norm.weight": 0,
    "norm.bias": 0,
    "shared.weight": 1,
    "embed_tokens.weight": 1,
    "embed_positions.weight": 1,
    "lm_head.weight": 1,
}
MAPS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}


class BartLike(Home):
    """The parts that the three classes have alike."""

    task: ClassVar[str] = "translation"
    auto_class: ClassVar[str] = "AutoModelForSeq2SeqLM"
    norm_first: ClassVar[bool]

    def reasons(self, source: Source) -> Reasons:
        shape = _shape(source)
        yield from differing(
            shape,
            norm_first=(self.norm_first,),
            norm=("layer",),
            sandwich_norm=(False,),
            query_key_norm=(False,),
            embedding_norm=(False,),
            activation=("relu", "gelu", "relu2"),
            positions=("sinusoidal", "learned"),
        )
        if shape.key_value_heads != shape.num_heads:
            yield "it needs model.num_key_value_heads = model.num_heads"
        if shape.dim_of_head * shape.num_heads != shape.d_model:
            yield "it needs model.head_dim = model.d_model / model.num_heads"
        yield from self.own_reasons(shape)

    @abstractmethod
    def own_reasons(self, shape: Seq2SeqSection) -> Reasons:
        """Yield why a model of this shape does not fit this class, though another of the three
        could have it.
        """

    def config(self, source: Source) -> Mapping[str, Any]:
        shape = _shape(source)
        return {
            "vocab_size": self.ids(source).size,
            "max_position_embeddings": shape.max_len,
            "d_model": shape.d_model,
            "encoder_layers": shape.num_encoder_layers,
            "decoder_layers": shape.num_decoder_layers,
            "encoder_attention_heads": shape.num_heads,
            "decoder_attention_heads": shape.num_heads,
            "encoder_ffn_dim": shape.d_ff,
            "decoder_ffn_dim": shape.d_ff,
            "activation_function": shape.activation,
            "dropout": shape.dropout,
            "attention_dropout": shape.attention_dropout,
            "activation_dropout": shape.activation_dropout,
            "scale_embedding": shape.scale_embeddings,
            "is_encoder_decoder": True,
            "tie_word_embeddings": shape.tie_embeddings,
            "forced_eos_token_id": None,
            "encoder_no_repeat_ngram_size": 0,
        }

    def ids(self, source: Source) -> IdMap:
        src, tgt = source.tokenizers
        shape = _shape(source)
        if source.is_joint and shape.tie_embeddings:
            return id_maps.same(src)
        return id_maps.joined(src, tgt, own_eos=True)

    def tensors(self, source: Source) -> list[Tensor]:
        shape = _shape(source)
        found = [
            *self._tables(source),
            *self._positions(source),
            *bart_stack("encoder", shape.num_encoder_layers, shape, _SELF),
            *bart_stack("decoder", shape.num_decoder_layers, shape, _BOTH),
        ]
        if shape.norm_first:
            for side in ("encoder", "decoder"):
                found += layer_norm(f"model.{side}.layer_norm", f"{side}_norm", shape)
        return [self.in_order(tensor, shape) for tensor in found]

    def in_order(self, tensor: Tensor, shape: Seq2SeqSection) -> Tensor:
        """Return an array with the numbers of its vectors in the class's order."""
        return tensor

    def _tables(self, source: Source) -> Iterator[Tensor]:
        """Yield the table of tokens, the projection to logits, and the logits' bias."""
        ids = self.ids(source)
        shape = _shape(source)
        tgt = "tgt_embedding.tokens.weight"
        src = "src_embedding.tokens.weight"
        for name in _names_of_tables(shape):
            if ids.is_joined:
                yield placed(name, {tgt: ids.tgt, src: ids.src}, ids.size)
            else:
                yield same(name, src)
        if not shape.tie_embeddings:
            yield placed("lm_head.weight", {"projection.weight": ids.tgt}, ids.size)
        yield self._logits_bias(source, ids)

    def _logits_bias(self, source: Source, ids: IdMap) -> Tensor:
        """Return what is added to logits: the model's bias, and so little for ids of the source
        that none is ever written.
        """
        name = "final_logits_bias"
        bias = np.full(ids.size, NEVER, np.float32)
        bias[ids.tgt] = 0
        if "projection.bias" not in source.arrays:
            return constant(name, bias[None])
        table = placed(name, {"projection.bias": ids.tgt}, ids.size, rest=NEVER)
        return reshaped(table, (1, ids.size), (ids.size,))

    def _positions(self, source: Source) -> Iterator[Tensor]:
        """Yield the tables of positions, where the class has some."""
        shape = _shape(source)
        for side, own in (("encoder", "src_embedding"), ("decoder", "tgt_embedding")):
            name = f"model.{side}.embed_positions.weight"
            yield positions(name, own, shape)


class Blenderbot(BartLike):
    """Norms first, and a table of positions."""

    architecture = "BlenderbotForConditionalGeneration"
    model_type = "blenderbot"
    norm_first = True

    def own_reasons(self, shape: Seq2SeqSection) -> Reasons:
        if shape.positions == "sinusoidal" and shape.max_len > _TABLE:
            yield f"its table of positions would have {shape.max_len:,} rows (model.max_len)"


class Pegasus(BartLike):
    """Norms first, and positions that the class computes."""

    architecture = "PegasusForConditionalGeneration"
    model_type = "pegasus"
    norm_first = True

    def own_reasons(self, shape: Seq2SeqSection) -> Reasons:
        yield from differing(shape, positions=("sinusoidal",))

    def in_order(self, tensor: Tensor, shape: Seq2SeqSection) -> Tensor:
        return sines_first(tensor, shape.d_model)

    def _positions(self, source: Source) -> Iterator[Tensor]:
        yield from ()


class Marian(Pegasus):
    """Norms last, and positions that the class computes; where each side has a vocabulary, each has
    a table.
    """

    architecture = "MarianMTModel"
    model_type = "marian"
    norm_first = False

    def ids(self, source: Source) -> IdMap:
        src, tgt = source.tokenizers
        if self._is_shared(source):
            return id_maps.same(src)
        if source.is_joint:
            return id_maps.same(src)
        return id_maps.joined(src, tgt, own_eos=False)

    def config(self, source: Source) -> Mapping[str, Any]:
        ids = self.ids(source)
        return {
            **super().config(source),
            "decoder_vocab_size": len(ids.tgt),
            "share_encoder_decoder_embeddings": self._is_shared(source),
        }

    def _tables(self, source: Source) -> Iterator[Tensor]:
        if self._is_shared(source):
            yield from super()._tables(source)
            return
        ids = self.ids(source)
        src = "src_embedding.tokens.weight"
        yield placed("model.encoder.embed_tokens.weight", {src: ids.src}, ids.size)
        name = "model.decoder.embed_tokens.weight"
        yield same(name, "tgt_embedding.tokens.weight")
        if not _shape(source).tie_embeddings:
            yield same("lm_head.weight", "projection.weight")
        own = IdMap(ids.tgt, ids.tgt, len(ids.tgt))
        yield self._logits_bias(source, own)

    def _is_shared(self, source: Source) -> bool:
        """Return whether both sides and the output have one table."""
        return source.is_joint and _shape(source).tie_embeddings


def _names_of_tables(shape: Seq2SeqSection) -> tuple[str, ...]:
    """Return what the class calls its table of tokens: without ties to the output transformers 5
    knows of none between the sides either.
    """
    sides = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    shared = ("model.shared.weight",)
    return shared if shape.tie_embeddings else (*shared, *sides)


def sines_first(tensor: Tensor, d_model: int) -> Tensor:
    """Return an array whose vectors have their numbers at even places before the others.

    Weft's positions, as the paper's, have a sine and its cosine side by side.
    """
    order = np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])
    for end, axis in _VECTORS.items():
        if tensor.name.endswith(end):
            return permuted(tensor, order, axis)
    return tensor


def bart_stack(
    side: str,
    count: int,
    shape: LayerShape,
    attentions: Mapping[str, str] = _SELF,
) -> Iterator[Tensor]:
    """Yield the arrays of an encoder's or a decoder's layers; `attentions` are the names of their
    attentions there to Weft's.
    """
    for number in range(count):
        name = f"model.{side}.layers.{number}"
        yield from _layer(name, f"{side}.{number}", shape, attentions)


def _layer(
    name: str, of: str, shape: LayerShape, attentions: Mapping[str, str]
) -> Iterator[Tensor]:
    norms = [*(f"{part}_layer_norm" for part in attentions), "final_layer_norm"]
    for part, own in attentions.items():
        for map_name, own_map in MAPS.items():
            yield from linear(
                f"{name}.{part}.{map_name}",
                f"{of}.{own}.{own_map}",
                shape.bias,
                shape.d_model,
            )
    inner, outer = f"{of}.feed_forward.inner", f"{of}.feed_forward.outer"
    yield from linear(f"{name}.fc1", inner, shape.bias, shape.d_ff)
    yield from linear(f"{name}.fc2", outer, shape.bias, shape.d_model)
    for number, norm in enumerate(norms):
        yield from layer_norm(f"{name}.{norm}", f"{of}.residuals.{number}.norm", shape)


def _shape(source: Source) -> Seq2SeqSection:
    config = source.config
    assert isinstance(config, TranslationConfig)
    assert isinstance(config.model, Seq2SeqSection)
    return config.model
