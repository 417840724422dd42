"""Vectors of n-grams: the mean of a whole text's, or at each position those that end there.

An n-gram of several tokens has no entry of its own but a bucket of a table, which its hash points to and which it
may share with others. Shapes: the legend in `weft.model.attention`; R is the longest n-gram's length less 1.
Source: Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification", section 2.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.config import CausalSection, ClassifierSection

PRIME = 2**31 - 1  # a Mersenne prime; below it, the product of two numbers fits into 63 bits
MULTIPLIER = 742_938_285  # spreads pairs evenly modulo PRIME, by the spectral test of Fishman and Moore 1986


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
        if self.lengths:
            self.hashed = _table(shape.ngram_buckets, shape.d_model)

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


class NgramEmbedding(nn.Module):
    """At each position the sum of the vectors of the n-grams of 2 to `ngrams` tokens that end there.

    While training, each n-gram is left out with probability `ngram_dropout`, the whole of it, so that the model
    learns to do without those that it has never met. What is kept is not scaled up: a position that has all of
    its n-grams is then nothing new.
    """

    def __init__(self, shape: CausalSection, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.lengths = pad_id, range(2, shape.ngrams + 1)
        self.buckets, self.dropout = shape.ngram_buckets, shape.ngram_dropout
        self.hashed = _table(shape.ngram_buckets, shape.d_model)

    def forward(
        self, ids: Int[Tensor, "N L"], recent: Int[Tensor, "N R"], segments: Int[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        """`recent` are the tokens before the ids, padding where there are none.

        With `segments` an n-gram has no part in another document.
        """
        read = torch.cat([recent, ids], dim=1)
        found = [
            ngram_hashes(read[:, recent.shape[1] - n + 1 :], n, self.buckets, self.pad_id) for n in self.lengths
        ]
        rows = torch.stack([hashes for hashes, _ in found], dim=-1)  # N L R
        kept = torch.stack([valid for _, valid in found], dim=-1)
        if segments is not None:
            within = [F.pad(segments, (n - 1, 0))[:, : segments.shape[1]] == segments for n in self.lengths]
            kept &= torch.stack(within, dim=-1)
        if self.training and self.dropout:
            kept &= torch.rand(kept.shape, device=kept.device) >= self.dropout
        weights = kept.flatten(0, 1).to(self.hashed.weight.dtype)
        return self.hashed(rows.flatten(0, 1), per_sample_weights=weights).unflatten(0, ids.shape)


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


def _table(buckets: int, d_model: int) -> nn.EmbeddingBag:
    """Of given rows, as the module would draw millions of random ones first; `init_weights` begins with zeros."""
    return nn.EmbeddingBag.from_pretrained(torch.zeros(buckets, d_model), freeze=False, mode="sum")


def _bags(rows: Int[Tensor, "B G"], chosen: Bool[Tensor, "B G"]) -> tuple[Int[Tensor, " R"], Int[Tensor, " B"]]:
    """The chosen rows of all texts, one text behind the other, and where each text begins."""
    counts = chosen.sum(1)
    return rows[chosen], counts.cumsum(0) - counts
