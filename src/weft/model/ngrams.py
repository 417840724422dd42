"""Vectors of n-grams: the mean of a whole text's, or at each position those that end there or followed before.

An n-gram of several tokens has no entry of its own but a bucket of a table, which its hash points to and which it
may share with others. Shapes: the legend in `weft.model.attention`; R rows of a table are summed at a position.
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
        self, read: Int[Tensor, "N T"], length: int, segments: Int[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        """Of the last `length` tokens read. With `segments` an n-gram has no part in another document."""
        found = [_ending(read, length, n, self.buckets, self.pad_id, segments) for n in self.lengths]
        rows = torch.stack([hashes for hashes, _ in found], dim=-1)  # N L R
        kept = torch.stack([valid for _, valid in found], dim=-1)
        if self.training and self.dropout:
            kept &= torch.rand(kept.shape, device=kept.device) >= self.dropout
        return _sum_of_rows(self.hashed, rows, kept)


class MatchEmbedding(nn.Module):
    """At each position, for each length n, the vector of what followed when the newest n tokens stood there last.

    Nothing is added where they stand for the first time. A model can learn to look back for them by itself, but
    slowly; so it can write a name again that it has just read. Two runs of tokens are taken for equal where their
    hashes below 2^31 are.
    Source: the match model of Mahoney 2005, "Adaptive Weighing of Context Models for Lossless Data Compression".
    """

    def __init__(self, shape: CausalSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.lengths, self.vocab_size = pad_id, shape.match_lengths, vocab_size
        self.followers = _table(len(shape.match_lengths) * vocab_size, shape.d_model)

    def forward(
        self, read: Int[Tensor, "N T"], length: int, segments: Int[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        """Of the last `length` tokens read. With `segments` no other document is looked at."""
        found = [self._followers(read, length, n, segments) for n in self.lengths]
        rows = torch.stack([ids + i * self.vocab_size for i, (ids, _) in enumerate(found)], dim=-1)  # N L R
        return _sum_of_rows(self.followers, rows, torch.stack([known for _, known in found], dim=-1))

    def _followers(
        self, read: Int[Tensor, "N T"], length: int, n: int, segments: Int[Tensor, "N L"] | None
    ) -> tuple[Int[Tensor, "N L"], Bool[Tensor, "N L"]]:
        """What followed the last match of each position, and whether there is one."""
        total = read.shape[1]
        hashes, valid = _ending(read, total, n, PRIME, self.pad_id, segments)
        place = torch.arange(total, dtype=torch.int32, device=read.device)
        new = slice(total - length, None)
        equal = hashes[:, new, None] == hashes[:, None, :]  # N L T: a position beside an earlier one
        equal &= (valid[:, new, None] & valid[:, None, :]) & (place[new, None] > place)
        if segments is not None:
            equal &= segments[:, :, None] == segments[:, None, :]
        behind = torch.where(equal, place + 1, 0).amax(-1) if total else place.expand(len(read), 0)
        return read.gather(1, behind.long()), behind > 0


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


def _ending(
    read: Int[Tensor, "N T"],
    length: int,
    n: int,
    buckets: int,
    pad_id: int,
    segments: Int[Tensor, "N L"] | None,
) -> tuple[Int[Tensor, "N L"], Bool[Tensor, "N L"]]:
    """The hash of the n-gram that ends at each of the last `length` tokens, and whether it is a real one."""
    reached = F.pad(read, (n - 1, 0), value=pad_id)[:, read.shape[1] - length :]
    hashes, valid = ngram_hashes(reached, n, buckets, pad_id)
    if segments is not None:  # then nothing was read before
        valid &= F.pad(segments, (n - 1, 0))[:, :length] == segments
    return hashes, valid


def _sum_of_rows(
    table: nn.EmbeddingBag, rows: Int[Tensor, "N L R"], kept: Bool[Tensor, "N L R"]
) -> Float[Tensor, "N L D"]:
    weights = kept.flatten(0, 1).to(table.weight.dtype)
    return table(rows.flatten(0, 1), per_sample_weights=weights).unflatten(0, rows.shape[:2])


def _table(buckets: int, d_model: int) -> nn.EmbeddingBag:
    """Of given rows, as the module would draw millions of random ones first; `init_weights` begins with zeros."""
    return nn.EmbeddingBag.from_pretrained(torch.zeros(buckets, d_model), freeze=False, mode="sum")


def _bags(rows: Int[Tensor, "B G"], chosen: Bool[Tensor, "B G"]) -> tuple[Int[Tensor, " R"], Int[Tensor, " B"]]:
    """The chosen rows of all texts, one text behind the other, and where each text begins."""
    counts = chosen.sum(1)
    return rows[chosen], counts.cumsum(0) - counts
