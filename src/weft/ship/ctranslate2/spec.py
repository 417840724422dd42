"""A model as a specification of the ctranslate2 package: built, filled, quantized and saved."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.config import CausalSection, ClassifierSection, LayerShape, Seq2SeqSection
from weft.data.tokenizer import BOS_ID, EOS_ID, UNK_ID
from weft.kernels.activations import GATES
from weft.predict.weights import NORM_EPS
from weft.ship.target import load
from weft.ship.tensors import Arrays, Tensor, constant

# activations there, by Weft's names; a gate has that of its gate
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}


@dataclass(frozen=True)
class Tokens:
    """The names of a model's ids, of one vocabulary or two; `adds_eos`: the end of a source is put
    behind it there.
    """

    src: Sequence[str]
    tgt: Sequence[str]
    adds_eos: bool = False


class Specification:
    """A specification without numbers, of the shape of one of Weft's models."""

    def __init__(self, shape: LayerShape, tokens: Tokens) -> None:
        specs = load("ctranslate2.specs")
        self.fields: Any = specs.model_spec
        self.layers: Any = specs.transformer_spec
        self.activations: Any = specs.common_spec.Activation
        self.shape = shape
        self.spec = self._built()
        self._name(tokens)

    def fill(self, arrays: Arrays) -> None:
        """Put in the numbers, each array by its name; nothing may be missing.

        They are copied, as quantization changes them in their place.
        """
        for name, array in arrays.items():
            scope, _, field = name.rpartition("/")
            part = self.fields.index_spec(self.spec, scope)
            setattr(part, field, np.array(array))
        self.spec.validate()

    def settings(self, arrays: Arrays) -> list[Tensor]:
        """Return what the specification has beside those arrays: the model's settings."""
        return [
            constant(name, np.asarray(value.numpy()))
            for name, value in self.spec.variables().items()
            if name not in arrays
        ]

    def save(self, place: Path, precision: str) -> None:
        """Write all files of the specification."""
        self.spec.optimize("int8" if precision == "int8" else None)
        self.spec.save(str(place))

    def _built(self) -> Any:
        shape = self.shape
        if isinstance(shape, Seq2SeqSection):
            encoder = self._encoder(shape.num_encoder_layers)
            decoder = self._decoder(shape.num_decoder_layers, has_memory=True)
            return self.layers.TransformerSpec(encoder, decoder)
        if isinstance(shape, CausalSection):
            decoder = self._decoder(shape.num_decoder_layers, has_memory=False)
            return self.layers.TransformerDecoderModelSpec(decoder)
        assert isinstance(shape, ClassifierSection)
        encoder = self._encoder(shape.num_encoder_layers)
        return self.layers.TransformerEncoderModelSpec(encoder)

    def _encoder(self, num_layers: int) -> Any:
        encoder = self.layers.TransformerEncoderSpec(num_layers, **self._options())
        encoder.scale_embeddings = self.shape.scale_embeddings
        if self.shape.positions == "rotary":
            del encoder.position_encodings  # a decoder has none of itself
        return encoder

    def _decoder(self, num_layers: int, has_memory: bool) -> Any:
        decoder = self.layers.TransformerDecoderSpec(
            num_layers,
            with_encoder_attention=has_memory,
            external_pre_post_encoder_layers=has_memory and self.shape.sandwich_norm,
            **self._options(),
        )
        decoder.scale_embeddings = self.shape.scale_embeddings
        return decoder

    def _options(self) -> dict[str, Any]:
        """Return the options that both stacks have."""
        shape = self.shape
        activation = GATES.get(shape.activation, shape.activation)
        is_rotary = shape.positions == "rotary"
        return {
            "num_heads": shape.num_heads,
            "num_heads_kv": shape.key_value_heads,
            "head_dim": shape.dim_of_head,
            "pre_norm": shape.norm_first,
            "rms_norm": shape.norm == "rms",
            "pre_post_layer_norm": shape.sandwich_norm,
            "layernorm_embedding": shape.embedding_norm,
            "activation": self.activations[ACTIVATIONS[activation]],
            "ffn_glu": shape.activation in GATES,
            "qk_norm": shape.query_key_norm,
            "rotary_dim": 0 if is_rotary else None,
            "rotary_interleave": False,
        }

    def _name(self, tokens: Tokens) -> None:
        """Set the vocabularies, and the tokens that have a meaning."""
        config: Any = self.spec._config
        config.unk_token = tokens.tgt[UNK_ID]
        config.bos_token = tokens.tgt[BOS_ID]
        config.eos_token = tokens.tgt[EOS_ID]
        config.layer_norm_epsilon = NORM_EPS
        if not isinstance(self.shape, Seq2SeqSection):
            self.spec.register_vocabulary(tokens.tgt)
            return
        config.decoder_start_token = tokens.tgt[BOS_ID]
        config.add_source_eos = tokens.adds_eos
        self.spec.register_source_vocabulary(tokens.src)
        self.spec.register_target_vocabulary(tokens.tgt)
