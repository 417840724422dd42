"""The classifier: ids in, one row of logits a text out; pooled states of an encoder, a bag of n-grams, or both.

Shapes: the legend in `weft.model.attention`.
Sources: Vaswani et al. 2017, section 3 (the encoder); Joulin et al. 2017, "Bag of Tricks for Efficient Text
Classification", section 2 (the bag).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.config import ClassifierSection
from weft.model.attention import AttentionRecord, attention_mask
from weft.model.layers import EncoderLayer
from weft.model.transformer import Embedding, final_norm, init_weights

PRIME = 2**31 - 1  # a Mersenne prime; below it, the product of two numbers fits into 63 bits
MULTIPLIER = 742_938_285  # spreads pairs evenly modulo PRIME, by the spectral test of Fishman and Moore 1986


class TransformerClassifier(nn.Module):
    """Logits of a text's labels, from an encoder's pooled states and from the mean of its n-grams.

    Without encoder layers there is only the bag, which knows no positions; without `ngrams` above 1 there is
    only the encoder. E, the width of a text's vector, is D for one of them and 2 D for both side by side.
    """

    def __init__(self, shape: ClassifierSection, vocab_size: int, num_labels: int, pad_id: int = 0) -> None:
        super().__init__()
        self.max_len, self.pad_id = shape.max_len, pad_id
        with_layers = shape.num_encoder_layers > 0
        with_bag = shape.ngrams > 1 or not with_layers
        self.encoder = TextEncoder(shape, vocab_size, pad_id) if with_layers else None
        self.bag = NgramBag(shape, vocab_size, pad_id) if with_bag else None
        self.head_dropout = nn.Dropout(shape.head_dropout)
        self.projection = nn.Linear((with_layers + with_bag) * shape.d_model, num_labels)
        init_weights(self, not shape.scale_embeddings, shape.init_range)

    def forward(self, ids: Int[Tensor, "B L"], record: AttentionRecord | None = None) -> Float[Tensor, "B C"]:
        """Logits of every label for each text."""
        return self.output(self.states(ids, record))

    def states(self, ids: Int[Tensor, "B L"], record: AttentionRecord | None = None) -> Float[Tensor, "B E"]:
        """One vector a text; padding, which stands on the right, has no part in it."""
        parts = [] if self.encoder is None else [self.encoder(ids, record)]
        if self.bag is not None:
            parts.append(self.bag(ids))
        return torch.cat(parts, dim=-1)

    def output(self, states: Float[Tensor, "*N E"]) -> Float[Tensor, "*N C"]:
        """Texts' vectors to logits."""
        return self.projection(self.head_dropout(states))


class TextEncoder(nn.Module):
    """Embedding and encoder layers; a text's vector is the mean of its states, or the first of them."""

    def __init__(self, shape: ClassifierSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.pooling = pad_id, shape.pooling
        self.embedding = Embedding(shape, nn.Embedding(vocab_size, shape.d_model))
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(shape.num_encoder_layers))
        self.norm = final_norm(shape)

    def forward(self, ids: Int[Tensor, "B L"], record: AttentionRecord | None = None) -> Float[Tensor, "B D"]:
        """Ids to one vector a text."""
        padding = ids == self.pad_id
        mask = attention_mask(padding)
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, mask, record)
        x = self.norm(x)
        return x[:, 0] if self.pooling == "first" else masked_mean(x, ~padding)


class NgramBag(nn.Module):
    """The mean of the vectors of all tokens and, with `ngrams` above 1, of all longer n-grams up to that length.

    A token has a row of its own. A longer n-gram has the row that its hash points to, which it may share with
    others.
    """

    def __init__(self, shape: ClassifierSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.lengths, self.buckets = pad_id, range(2, shape.ngrams + 1), shape.ngram_buckets
        self.tokens = nn.Embedding(vocab_size, shape.d_model)
        self.hashed: nn.EmbeddingBag | None = None
        if self.lengths:  # from given rows, as the module would draw millions of random ones first
            rows = torch.zeros(shape.ngram_buckets, shape.d_model)
            self.hashed = nn.EmbeddingBag.from_pretrained(rows, freeze=False, mode="sum")

    def forward(self, ids: Int[Tensor, "B L"]) -> Float[Tensor, "B D"]:
        """Ids to one vector a text: the sum over tokens and n-grams, by their number."""
        real = ids != self.pad_id
        rows, begins = _bags(ids, real)
        total, count = F.embedding_bag(rows, self.tokens.weight, begins, mode="sum"), real.sum(1)
        if self.hashed is not None:
            hashes, valid = self._hashes(ids)
            total, count = total + self.hashed(*_bags(hashes, valid)), count + valid.sum(1)
        return total / count.clamp(min=1)[:, None]

    def _hashes(self, ids: Int[Tensor, "B L"]) -> tuple[Int[Tensor, "B G"], Bool[Tensor, "B G"]]:
        found = [ngram_hashes(ids, n, self.buckets, self.pad_id) for n in self.lengths]
        return torch.cat([h for h, _ in found], dim=1), torch.cat([v for _, v in found], dim=1)


def ngram_hashes(
    ids: Int[Tensor, "B L"], n: int, buckets: int, pad_id: int = 0
) -> tuple[Int[Tensor, "B G"], Bool[Tensor, "B G"]]:
    """The bucket of each n-gram of each text, and which of them are real: those without padding; G = L - n + 1.

    h begins with n; each id makes it (h * MULTIPLIER + id) mod PRIME, and the bucket is h mod `buckets`: the
    polynomial hash of Karp and Rabin 1987. No step leaves 63 bits, so that it is the same on every machine.
    Ids must be below 2^31.
    """
    num_ngrams = max(ids.shape[1] - n + 1, 0)
    hashes = ids.new_full((len(ids), num_ngrams), n, dtype=torch.int64)
    valid = torch.ones_like(hashes, dtype=torch.bool)
    for offset in range(n):
        window = ids[:, offset : offset + num_ngrams]
        hashes = (hashes * MULTIPLIER + window) % PRIME
        valid &= window != pad_id
    return hashes % buckets, valid


def masked_mean(x: Float[Tensor, "B L D"], chosen: Bool[Tensor, "B L"]) -> Float[Tensor, "B D"]:
    """The mean over the chosen positions; zeros where there are none."""
    total = x.masked_fill(~chosen[:, :, None], 0.0).sum(1)
    return total / chosen.sum(1).clamp(min=1)[:, None]


def _bags(rows: Int[Tensor, "B G"], chosen: Bool[Tensor, "B G"]) -> tuple[Int[Tensor, " R"], Int[Tensor, " B"]]:
    """The chosen rows of all texts, one text behind the other, and where each text begins."""
    counts = chosen.sum(1)
    return rows[chosen], counts.cumsum(0) - counts
