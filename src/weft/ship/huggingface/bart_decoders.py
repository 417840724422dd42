"""Language models with norms last, as decoders of BART's family: Marian's, which computes
positions, and OPT, which has a table of them.

Marian's layers can attend to an encoder. Where there is none they never do, but the arrays for it
must be there: they are zeros, and the norm behind them ones.

Shapes: D d_model.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.config import CausalSection
from weft.ship.huggingface.bart_family import MAPS, bart_stack, sines_first
from weft.ship.huggingface.causal import CausalHome, shape_of
from weft.ship.huggingface.home import positions
from weft.ship.huggingface.takes import ACTIVATIONS, UNGATED, Takes
from weft.ship.source import Source
from weft.ship.tensors import Tensor, constant, placed

_NORMS_LAST = {"norm": ("layer",), "norm_first": (False,), "activation": UNGATED}
_OFFSET = 2  # rows of OPT's table of positions before the first


class MarianDecoder(CausalHome):
    """Norms last, and positions that the class computes."""

    architecture = "MarianForCausalLM"
    model_type = "marian"
    table = "model.decoder.embed_tokens.weight"
    scales = True
    takes = Takes({**_NORMS_LAST, "positions": ("sinusoidal",)})

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        num_layers = shape.num_decoder_layers
        return {
            "is_decoder": True,
            "is_encoder_decoder": False,
            "d_model": shape.d_model,
            # what the class keeps of earlier positions goes by the encoder's number of layers
            "encoder_layers": num_layers,
            "decoder_layers": num_layers,
            "encoder_attention_heads": shape.num_heads,
            "decoder_attention_heads": shape.num_heads,
            "encoder_ffn_dim": shape.d_ff,
            "decoder_ffn_dim": shape.d_ff,
            "activation_function": ACTIVATIONS[shape.activation],
            "max_position_embeddings": shape.max_len,
            "scale_embedding": shape.scale_embeddings,
            "dropout": shape.dropout,
            "attention_dropout": shape.attention_dropout,
            "activation_dropout": shape.activation_dropout,
            "decoder_start_token_id": source.start_id,
            "forced_eos_token_id": None,
        }

    def tensors(self, source: Source) -> list[Tensor]:
        d_model = shape_of(source).d_model
        return [sines_first(tensor, d_model) for tensor in super().tensors(source)]

    def notes(self, source: Source) -> Iterator[str]:
        yield from super().notes(source)
        yield (
            "this class counts positions from the padding on: give texts of one length in a batch, or one at a time"
        )

    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        # computed anyway, but version 4 warns where the file has none
        yield positions("model.decoder.embed_positions.weight", "embedding", shape)
        yield from bart_stack("decoder", shape.num_decoder_layers, shape)
        for number in range(shape.num_decoder_layers):
            yield from _unused(f"model.decoder.layers.{number}.encoder_attn", shape)


class OPT(CausalHome):
    """Norms last, and a table of positions."""

    architecture = "OPTForCausalLM"
    model_type = "opt"
    table = "model.decoder.embed_tokens.weight"
    takes = Takes({**_NORMS_LAST, "positions": ("learned",)})

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {
            "hidden_size": shape.d_model,
            "word_embed_proj_dim": shape.d_model,
            "num_hidden_layers": shape.num_decoder_layers,
            "num_attention_heads": shape.num_heads,
            "ffn_dim": shape.d_ff,
            "activation_function": ACTIVATIONS[shape.activation],
            "max_position_embeddings": shape.max_len,
            "do_layer_norm_before": False,
            "enable_bias": True,
            "dropout": shape.dropout,
            "attention_dropout": shape.attention_dropout,
        }

    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        name = "model.decoder.embed_positions.weight"
        rows = np.arange(shape.max_len) + _OFFSET
        table = {"embedding.positions.table": rows}
        yield placed(name, table, shape.max_len + _OFFSET)
        yield from bart_stack("decoder", shape.num_decoder_layers, shape)


def _unused(name: str, shape: CausalSection) -> Iterator[Tensor]:
    """Yield the arrays of an attention that is never used, and of the norm behind it."""
    zeros = np.zeros((shape.d_model, shape.d_model), np.float32)
    for part in MAPS:
        yield constant(f"{name}.{part}.weight", zeros)
        yield constant(f"{name}.{part}.bias", zeros[0])
    yield constant(f"{name}_layer_norm.weight", zeros[0] + 1)
    yield constant(f"{name}_layer_norm.bias", zeros[0])
