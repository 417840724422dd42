"""The classifier: ids in, one row of logits a text out.

It has pooled states of an encoder, a bag of n-grams, or both.

Shapes: the legend in `weft.model.attention`.
Source: Vaswani et al. 2017, section 3 (the encoder); the bag is that of `weft.model.ngrams`.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.config import ClassifierSection
from weft.model.attention import AttentionRecord, attention_mask
from weft.model.layers import EncoderLayer
from weft.model.ngrams import NgramBag
from weft.model.transformer import Embedding, final_norm, init_weights


class TransformerClassifier(nn.Module):
    """Logits of a text's labels, from an encoder's pooled states and from the mean of its n-grams.

    Without encoder layers there is only the bag, which knows no positions; without `ngrams` above 1
    there is only the encoder. E, the width of a text's vector, is D for one of them and 2 D for
    both side by side.
    """

    def __init__(
        self,
        shape: ClassifierSection,
        vocab_size: int,
        num_labels: int,
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        self.max_len = shape.max_len
        self.pad_id = pad_id
        with_layers = shape.num_encoder_layers > 0
        with_bag = shape.ngrams > 1 or not with_layers
        self.encoder = TextEncoder(shape, vocab_size, pad_id) if with_layers else None
        self.bag = NgramBag(shape, vocab_size, pad_id) if with_bag else None
        self.head_dropout = nn.Dropout(shape.head_dropout)
        self.projection = nn.Linear(
            (with_layers + with_bag) * shape.d_model, num_labels
        )
        init_weights(self, not shape.scale_embeddings, shape.init_range)

    def forward(
        self, ids: Int[Tensor, "B L"], record: AttentionRecord | None = None
    ) -> Float[Tensor, "B C"]:
        """Compute the logits of every label for each text."""
        return self.output(self.states(ids, record))

    def states(
        self,
        ids: Int[Tensor, "B L"],
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B E"]:
        """Compute one vector a text; padding, which stands on the right, has no part in it."""
        parts = [] if self.encoder is None else [self.encoder(ids, record)]
        if self.bag is not None:
            parts.append(self.bag(ids))
        return torch.cat(parts, dim=-1)

    def output(self, states: Float[Tensor, "*N E"]) -> Float[Tensor, "*N C"]:
        """Project texts' vectors to logits."""
        return self.projection(self.head_dropout(states))


class TextEncoder(nn.Module):
    """Embedding and encoder layers; a text's vector is the mean of its states, or the first one."""

    def __init__(self, shape: ClassifierSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.pooling = shape.pooling
        self.embedding = Embedding(shape, nn.Embedding(vocab_size, shape.d_model))
        self.layers = nn.ModuleList(
            EncoderLayer(shape) for _ in range(shape.num_encoder_layers)
        )
        self.norm = final_norm(shape)

    def forward(
        self,
        ids: Int[Tensor, "B L"],
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B D"]:
        """Compute one vector a text."""
        padding = ids == self.pad_id
        mask = attention_mask(padding)
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, mask, record)
        x = self.norm(x)
        return x[:, 0] if self.pooling == "first" else masked_mean(x, ~padding)


def masked_mean(
    x: Float[Tensor, "B L D"], chosen: Bool[Tensor, "B L"]
) -> Float[Tensor, "B D"]:
    """Compute the mean over the chosen positions; zeros where there are none."""
    total = x.masked_fill(~chosen[:, :, None], 0.0).sum(1)
    return total / chosen.sum(1).clamp(min=1)[:, None]
