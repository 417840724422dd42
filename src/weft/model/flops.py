"""The multiplications and additions of training, by which a share of a machine's peak is known.

Matrix products alone are counted, and of tokens alone: norms, activations, dropout, softmax,
embedding lookups, the optimizer and all padding are left out, as is whatever is computed twice.

A weight costs 2 operations a token forward and 4 backward (Kaplan et al. 2020, "Scaling Laws for
Neural Language Models", section 2.1); attention 12 x H x d_k for each query and each key of its
text, a third of them forward (Chowdhery et al. 2022, "PaLM", appendix B). As there, the keys that a
causal mask hides are counted too.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from weft.model.attention import MultiHeadAttention
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.layers import DecoderLayer
from weft.model.transformer import Seq2SeqTransformer

Number = int | float
_NONE = torch.zeros(0, dtype=torch.int64)


@dataclass(frozen=True)
class Cost:
    """The cost of training on one batch in FLOPs, by what it grows with.

    `src`, `tgt` and `text`: of a source token, a target token and a text. `src_pair`, `tgt_pair`
    and `cross_pair`: of a query and a key, both source tokens, both target tokens, or one of each.
    """

    src: Number = 0
    tgt: Number = 0
    text: Number = 0
    src_pair: Number = 0
    tgt_pair: Number = 0
    cross_pair: Number = 0

    def of(
        self, src_lens: Int[Tensor, " B"] = _NONE, tgt_lens: Int[Tensor, " B"] = _NONE
    ) -> float:
        """Count the FLOPs of texts of these lengths in tokens; either side may have none."""
        texts = max(len(src_lens), len(tgt_lens))
        total = (
            self.src * src_lens.sum() + self.tgt * tgt_lens.sum() + self.text * texts
        )
        total = (
            total
            + self.src_pair * (src_lens**2).sum()
            + self.tgt_pair * (tgt_lens**2).sum()
        )
        if self.cross_pair:
            total = total + self.cross_pair * (src_lens * tgt_lens).sum()
        return float(total)


def seq2seq_cost(model: Seq2SeqTransformer) -> Cost:
    """Count an encoder-decoder.

    The encoder is computed for source tokens, as are keys and values of cross-attention.
    """
    decoder = [layer for layer in model.decoder if isinstance(layer, DecoderLayer)]
    memory = sum(
        _weights(layer.cross_attention.key, layer.cross_attention.value)
        for layer in decoder
    )
    return Cost(
        src=6 * (_weights(model.encoder) + memory),
        tgt=6 * (_weights(model.decoder) - memory + _weights(model.projection)),
        src_pair=12 * _width(model.encoder),
        tgt_pair=12 * sum(_width(layer.self_attention) for layer in decoder),
        cross_pair=12 * sum(_width(layer.cross_attention) for layer in decoder),
    )


def causal_cost(model: CausalTransformer) -> Cost:
    """Count a decoder-only model: all tokens are target tokens.

    The tables of n-grams and matches are lookups.
    """
    each = _weights(model.decoder) + _weights(model.projection)
    return Cost(tgt=6 * each, tgt_pair=12 * _width(model.decoder))


def classifier_cost(model: TransformerClassifier) -> Cost:
    """Count a classifier: the encoder is computed for tokens, the output layer for texts.

    A bag of n-grams is a lookup, which is not counted.
    """
    if model.encoder is None:
        return Cost()
    layers = model.encoder.layers
    head = 6 * _weights(model.projection)
    return Cost(src=6 * _weights(layers), text=head, src_pair=12 * _width(layers))


def _weights(*parts: nn.Module) -> int:
    """Count the entries of the matrices of linear layers, without biases."""
    linear = (m for part in parts for m in part.modules() if isinstance(m, nn.Linear))
    return sum(m.weight.numel() for m in linear)


def _width(part: nn.Module) -> int:
    """Sum H x d_k over all attentions."""
    return sum(
        m.num_heads * m.head_dim
        for m in part.modules()
        if isinstance(m, MultiHeadAttention)
    )
