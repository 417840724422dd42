"""Vectors of n-grams: the mean of a whole text's, or at each position those that end there or
followed before.

An n-gram of several tokens has no entry of its own but a bucket of a table, which its hash points
to and which it may share with others. Shapes: the legend in `weft.model.attention`; R rows of a
table are summed at a position. Sources: Joulin et al. 2017, "Bag of Tricks for Efficient Text
Classification", section 2; for the weights of a bag's rows Wang and Manning 2012, "Baselines and
Bigrams", section 2.1.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.config import CausalSection, ClassifierSection

# a Mersenne prime; below it, the product of two numbers fits into 63 bits
PRIME = 2**31 - 1
# spreads pairs evenly modulo PRIME, by the spectral test of Fishman and Moore 1986
MULTIPLIER = 742_938_285
MOST_COUNTS = 2**26  # numbers that are counted in at a time


@dataclass(frozen=True, eq=False)
class Lookup:
    """Rows of a table that texts have for their n-grams of one length, and which of them are real.

    `row_weights` has a weight for each row of the table; None where all weigh 1.
    """

    n: int
    table: Float[Tensor, "R D"]
    row_weights: Float[Tensor, " R"] | None
    rows: Int[Tensor, "B G"]
    valid: Bool[Tensor, "B G"]

    def weights(self) -> Float[Tensor, "B G"]:
        """Return the weight of each n-gram; 0 where it is not real."""
        if self.row_weights is None:
            return self.valid.to(self.table.dtype)
        return self.row_weights[self.rows] * self.valid


class NgramBag(nn.Module):
    """The mean of the vectors of all tokens and, with `ngrams` above 1, of all longer n-grams up to
    that length.

    A token has a row of its own. A longer n-gram has the row that its hash points to, which it may
    share with others. With `ngram_weights` the mean is a weighted one, with one weight a row, which
    is counted, not learned; until `weigh` they are 0.
    """

    def __init__(self, shape: ClassifierSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.lengths, self.buckets = (
            pad_id,
            range(2, shape.ngrams + 1),
            shape.ngram_buckets,
        )
        self.tokens = nn.Embedding(vocab_size, shape.d_model)
        self.hashed: nn.EmbeddingBag | None = None
        if self.lengths:
            self.hashed = _table(shape.ngram_buckets, shape.d_model)
        weighted = shape.ngram_weights != "equal"
        self.token_weights = _weights(vocab_size) if weighted else None
        self.hashed_weights = (
            _weights(shape.ngram_buckets) if weighted and self.lengths else None
        )

    def forward(self, ids: Int[Tensor, "B L"]) -> Float[Tensor, "B D"]:
        """Compute one vector a text from ids: the weighted mean over tokens and n-grams."""
        total, weight = (
            torch.zeros((), device=ids.device),
            torch.zeros((), device=ids.device),
        )
        for found in self.lookups(ids):
            rows, begins = _bags(found.rows, found.valid)
            each = None if found.row_weights is None else found.row_weights[rows]
            total = total + F.embedding_bag(
                rows, found.table, begins, mode="sum", per_sample_weights=each
            )
            weight = weight + found.weights().sum(1)
        return total / weight.clamp(min=torch.finfo(weight.dtype).tiny)[:, None]

    def lookups(self, ids: Int[Tensor, "B L"]) -> Iterator[Lookup]:
        """Return the rows of all tokens, then of all n-grams of each length."""
        yield Lookup(1, self.tokens.weight, self.token_weights, ids, ids != self.pad_id)
        if self.hashed is not None:
            for n in self.lengths:
                rows, valid = ngram_hashes(ids, n, self.buckets, self.pad_id)
                yield Lookup(n, self.hashed.weight, self.hashed_weights, rows, valid)

    @property
    def lacks_weights(self) -> bool:
        """Return whether `weigh` is still to be called."""
        return self.token_weights is not None and not bool(self.token_weights.any())

    def weigh(
        self,
        texts: Callable[[], Iterable[tuple[Int[Tensor, "B L"], Bool[Tensor, "B C"]]]],
    ) -> None:
        """Set the weight of each row: the largest of its absolute log-count ratios, over the
        labels.

        `texts` gives all of them, anew at each call: ids, and which labels a text has. Of a label
        that m of n texts have, the ratio of a row that is met in p of these and in q of the others
        is log((p + 2 m / n) / m) - log((q + 2 (n - m) / n) / (n - m)): with as many texts on both
        sides the source's with a = 1. The weight of a row that is met nowhere is 0.
        """
        weights = [
            w for w in (self.token_weights, self.hashed_weights) if w is not None
        ]
        sizes = [len(w) for w in weights]
        found, at_once = torch.zeros(sum(sizes)), max(MOST_COUNTS // sum(sizes), 1)
        for first in itertools.count(0, at_once):
            labels = slice(first, first + at_once)
            met, num_texts = self._count((ids, has[:, labels]) for ids, has in texts())
            for row_counts, with_label in zip(met[:-1], num_texts[:-1], strict=True):
                share = with_label / num_texts[-1]
                if 0 < share < 1:
                    inside, outside = (
                        row_counts / share + 2,
                        (met[-1] - row_counts) / (1 - share) + 2,
                    )
                    torch.maximum(found, (inside / outside).log().abs(), out=found)
            if len(met) - 1 < at_once:
                break
        for weight, values in zip(weights, torch.split(found, sizes), strict=True):
            weight.data.copy_(values)

    def _count(
        self, texts: Iterable[tuple[Int[Tensor, "B L"], Bool[Tensor, "B C"]]]
    ) -> tuple[Float[Tensor, "K R"], Float[Tensor, " K"]]:
        """Count the texts in which a row occurs, per label and (last column) in all; and all
        texts.
        """
        met = num_texts = torch.zeros(0)
        for ids, labels in texts:
            has = F.pad(labels, (0, 1), value=True).float().T
            text, row = self._met(ids)
            if not len(met):
                met, num_texts = (
                    torch.zeros(len(has), self._num_rows),
                    torch.zeros(len(has)),
                )
            for counts, mine in zip(met, has, strict=True):
                counts.index_add_(0, row, mine[text])
            num_texts += has.sum(1)
        return met, num_texts

    def _met(
        self, ids: Int[Tensor, "B L"]
    ) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"]]:
        """List each row that a text has, once, with the text's number.

        Rows of n-grams come behind those of tokens.
        """
        pairs = []
        for found in self.lookups(ids):
            rows = (
                found.rows if found.n == 1 else found.rows + self.tokens.num_embeddings
            )
            pairs.append(
                found.valid.nonzero()[:, 0] * self._num_rows + rows[found.valid]
            )
        pair = torch.unique(torch.cat(pairs))
        return pair // self._num_rows, pair % self._num_rows

    @property
    def _num_rows(self) -> int:
        return self.tokens.num_embeddings + (self.buckets if self.lengths else 0)


class NgramEmbedding(nn.Module):
    """An embedding of n-grams: the sum of the vectors of those of 2 to `ngrams` tokens that end
    there.

    While training, each n-gram is left out with probability `ngram_dropout`, the whole of it, so
    that the model learns to do without those that it has never met. What is kept is not scaled up:
    a position that has all of its n-grams is then nothing new.
    """

    def __init__(self, shape: CausalSection, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.lengths = pad_id, range(2, shape.ngrams + 1)
        self.buckets, self.dropout = shape.ngram_buckets, shape.ngram_dropout
        self.hashed = _table(shape.ngram_buckets, shape.d_model)

    def forward(
        self,
        read: Int[Tensor, "N T"],
        length: int,
        segments: Int[Tensor, "N L"] | None = None,
    ) -> Float[Tensor, "N L D"]:
        """Embed the last `length` tokens. With `segments` an n-gram has no part in another
        document.
        """
        found = [
            _ending(read, length, n, self.buckets, self.pad_id, segments)
            for n in self.lengths
        ]
        rows = torch.stack([hashes for hashes, _ in found], dim=-1)  # N L R
        kept = torch.stack([valid for _, valid in found], dim=-1)
        if self.training and self.dropout:
            kept &= torch.rand(kept.shape, device=kept.device) >= self.dropout
        return _sum_of_rows(self.hashed, rows, kept)


class MatchEmbedding(nn.Module):
    """An embedding of matches: for each n, of what followed when the newest n tokens stood there
    last.

    Nothing is added where they stand for the first time. A model can learn to look back for them by
    itself, but slowly; so it can write a name again that it has just read. Two runs of tokens are
    taken for equal where their hashes below 2^31 are. Source: the match model of Mahoney 2005,
    "Adaptive Weighing of Context Models for Lossless Data Compression".
    """

    def __init__(self, shape: CausalSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id, self.lengths, self.vocab_size = (
            pad_id,
            shape.match_lengths,
            vocab_size,
        )
        self.followers = _table(len(shape.match_lengths) * vocab_size, shape.d_model)

    def forward(
        self,
        read: Int[Tensor, "N T"],
        length: int,
        segments: Int[Tensor, "N L"] | None = None,
    ) -> Float[Tensor, "N L D"]:
        """Embed the last `length` tokens. With `segments` no other document is looked at."""
        found = [self._followers(read, length, n, segments) for n in self.lengths]
        # N L R
        rows = torch.stack(
            [ids + i * self.vocab_size for i, (ids, _) in enumerate(found)], dim=-1
        )
        return _sum_of_rows(
            self.followers, rows, torch.stack([known for _, known in found], dim=-1)
        )

    def _followers(
        self,
        read: Int[Tensor, "N T"],
        length: int,
        n: int,
        segments: Int[Tensor, "N L"] | None,
    ) -> tuple[Int[Tensor, "N L"], Bool[Tensor, "N L"]]:
        """Find what followed the last match of each position, and whether there is one."""
        total = read.shape[1]
        hashes, valid = _ending(read, total, n, PRIME, self.pad_id, segments)
        place = torch.arange(total, dtype=torch.int32, device=read.device)
        new = slice(total - length, None)
        # N L T: a position beside an earlier one
        equal = hashes[:, new, None] == hashes[:, None, :]
        equal &= (valid[:, new, None] & valid[:, None, :]) & (place[new, None] > place)
        if segments is not None:
            equal &= segments[:, :, None] == segments[:, None, :]
        behind = (
            torch.where(equal, place + 1, 0).amax(-1)
            if total
            else place.expand(len(read), 0)
        )
        return read.gather(1, behind.long()), behind > 0


def ngram_hashes(
    ids: Int[Tensor, "B L"], n: int, buckets: int, pad_id: int = 0
) -> tuple[Int[Tensor, "B G"], Bool[Tensor, "B G"]]:
    """Return the bucket of each n-gram of each text, and which of them are real: those without
    padding; G = L - n + 1.

    h begins with n; each id makes it (h * MULTIPLIER + id) mod PRIME, and the bucket is h mod
    `buckets`: the polynomial hash of Karp and Rabin 1987. No step leaves 63 bits, so that it is the
    same on every machine. Ids must be below 2^31.
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
    """Hash the n-grams that end at each of the last `length` tokens, and say which are real."""
    reached = F.pad(read, (n - 1, 0), value=pad_id)[:, read.shape[1] - length :]
    hashes, valid = ngram_hashes(reached, n, buckets, pad_id)
    if segments is not None:  # then nothing was read before
        valid &= F.pad(segments, (n - 1, 0))[:, :length] == segments
    return hashes, valid


def _sum_of_rows(
    table: nn.EmbeddingBag, rows: Int[Tensor, "N L R"], kept: Bool[Tensor, "N L R"]
) -> Float[Tensor, "N L D"]:
    weights = kept.flatten(0, 1).to(table.weight.dtype)
    return table(rows.flatten(0, 1), per_sample_weights=weights).unflatten(
        0, rows.shape[:2]
    )


def _table(buckets: int, d_model: int) -> nn.EmbeddingBag:
    """Build a table of given rows; `init_weights` begins with zeros.

    The module itself would draw millions of random rows first.
    """
    return nn.EmbeddingBag.from_pretrained(
        torch.zeros(buckets, d_model), freeze=False, mode="sum"
    )


def _weights(buckets: int) -> nn.Parameter:
    """Return a model's own, as its rows are, but not learned."""
    return nn.Parameter(torch.zeros(buckets), requires_grad=False)


def _bags(
    rows: Int[Tensor, "B G"], chosen: Bool[Tensor, "B G"]
) -> tuple[Int[Tensor, " R"], Int[Tensor, " B"]]:
    """Return the chosen rows of all texts, one text behind the other, and where each text
    begins.
    """
    counts = chosen.sum(1)
    return rows[chosen], counts.cumsum(0) - counts
