"""Vectors of n-grams: the mean of a whole text's, or a sum at each position.

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

# The hash of `weft.engine.ngrams`, which computes it in NumPy: both change together.
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
        weights = self.row_weights[self.rows]
        return weights * self.valid


class NgramBag(nn.Module):
    """The mean of the vectors of a text's tokens and n-grams, of up to `ngrams` tokens.

    A token has a row of its own. A longer n-gram has the row that its hash points to, which it may
    share with others. With `ngram_weights` the mean is a weighted one, with one weight a row, which
    is counted, not learned; until `weigh` they are 0.
    """

    def __init__(self, shape: ClassifierSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.lengths = range(2, shape.ngrams + 1)
        self.buckets = shape.ngram_buckets
        self.tokens = nn.Embedding(vocab_size, shape.d_model)
        self.hashed: nn.EmbeddingBag | None = None
        if self.lengths:
            self.hashed = _table(shape.ngram_buckets, shape.d_model)
        weighted = shape.ngram_weights != "equal"
        self.token_weights = _weights(vocab_size) if weighted else None
        self.hashed_weights: nn.Parameter | None = None
        if weighted and self.lengths:
            self.hashed_weights = _weights(shape.ngram_buckets)

    def forward(self, ids: Int[Tensor, "B L"]) -> Float[Tensor, "B D"]:
        """Compute one vector a text from ids: the weighted mean over tokens and n-grams."""
        total = torch.zeros((), device=ids.device)
        weight = torch.zeros((), device=ids.device)
        for lookup in self.lookups(ids):
            rows, begins = _bags(lookup.rows, lookup.valid)
            each = None
            if lookup.row_weights is not None:
                each = lookup.row_weights[rows]
            total = total + F.embedding_bag(
                rows, lookup.table, begins, mode="sum", per_sample_weights=each
            )
            weight = weight + lookup.weights().sum(1)
        least = torch.finfo(weight.dtype).tiny
        return total / weight.clamp(min=least)[:, None]

    def lookups(self, ids: Int[Tensor, "B L"]) -> Iterator[Lookup]:
        """Yield the rows of all tokens, then of all n-grams of each length."""
        is_real = ids != self.pad_id
        tokens = self.tokens.weight
        yield Lookup(1, tokens, self.token_weights, ids, is_real)
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
        tables = self.token_weights, self.hashed_weights
        weights = [w for w in tables if w is not None]
        sizes = [len(w) for w in weights]
        largest = torch.zeros(sum(sizes))
        labels_at_once = max(MOST_COUNTS // sum(sizes), 1)
        for first in itertools.count(0, labels_at_once):
            labels = slice(first, first + labels_at_once)
            parts = ((ids, has[:, labels]) for ids, has in texts())
            met, num_texts = self._count(parts)
            all_met = met[-1]
            for row_counts, count in zip(met[:-1], num_texts[:-1], strict=True):
                share = count / num_texts[-1]
                if 0 < share < 1:
                    inside = row_counts / share + 2
                    outside = (all_met - row_counts) / (1 - share) + 2
                    ratio = (inside / outside).log()
                    torch.maximum(largest, ratio.abs(), out=largest)
            if len(met) - 1 < labels_at_once:
                break
        values = torch.split(largest, sizes)
        for weight, value in zip(weights, values, strict=True):
            weight.data.copy_(value)

    def _count(
        self, texts: Iterable[tuple[Int[Tensor, "B L"], Bool[Tensor, "B C"]]]
    ) -> tuple[Float[Tensor, "K R"], Float[Tensor, " K"]]:
        """Count the texts of each label, and those of them in which a row of the table occurs.

        What stands last is the count over all texts.
        """
        met = torch.zeros(0)
        num_texts = torch.zeros(0)
        for ids, labels in texts:
            with_all = F.pad(labels, (0, 1), value=True)
            has = with_all.float().T
            text, row = self._met(ids)
            if not len(met):
                met = torch.zeros(len(has), self._num_rows)
                num_texts = torch.zeros(len(has))
            for counts, of_label in zip(met, has, strict=True):
                counts.index_add_(0, row, of_label[text])
            num_texts += has.sum(1)
        return met, num_texts

    def _met(
        self, ids: Int[Tensor, "B L"]
    ) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"]]:
        """List each row that a text has, once, with the text's number.

        Rows of n-grams come behind those of tokens.
        """
        pairs = []
        for lookup in self.lookups(ids):
            rows = lookup.rows
            if lookup.n > 1:
                rows = rows + self.tokens.num_embeddings
            text = lookup.valid.nonzero()[:, 0]
            pairs.append(text * self._num_rows + rows[lookup.valid])
        joined = torch.cat(pairs)
        pair = torch.unique(joined)
        return pair // self._num_rows, pair % self._num_rows

    @property
    def _num_rows(self) -> int:
        return self.tokens.num_embeddings + (self.buckets if self.lengths else 0)


class NgramEmbedding(nn.Module):
    """The sum of the vectors of the n-grams that end at a position, of 2 to `ngrams` tokens.

    While training, each n-gram is left out with probability `ngram_dropout`, the whole of it, so
    that the model learns to do without those that it has never met. What is kept is not scaled up:
    a position that has all of its n-grams is then nothing new.
    """

    def __init__(self, shape: CausalSection, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.lengths = range(2, shape.ngrams + 1)
        self.buckets = shape.ngram_buckets
        self.dropout = shape.ngram_dropout
        self.hashed = _table(shape.ngram_buckets, shape.d_model)

    def forward(
        self,
        read: Int[Tensor, "N T"],
        length: int,
        segments: Int[Tensor, "N L"] | None = None,
    ) -> Float[Tensor, "N L D"]:
        """Embed the last `length` tokens; with `segments` no n-gram spans two documents."""
        all_hashes = []
        all_valid = []
        for n in self.lengths:
            hashes, valid = _ending(
                read, length, n, self.buckets, self.pad_id, segments
            )
            all_hashes.append(hashes)
            all_valid.append(valid)
        rows = torch.stack(all_hashes, dim=-1)  # N L R
        kept = torch.stack(all_valid, dim=-1)
        if self.training and self.dropout:
            drawn = torch.rand(kept.shape, device=kept.device)
            kept &= drawn >= self.dropout
        return _sum_of_rows(self.hashed, rows, kept)


class MatchEmbedding(nn.Module):
    """Vectors of the tokens that came next where the newest n tokens stood before; one for each n.

    Nothing is added where they stand for the first time. A model can learn to attend to them by
    itself, but slowly; so it can write a name again that it has just read. Two runs of tokens are
    taken for equal where their hashes below 2^31 are. Source: the match model of Mahoney 2005,
    "Adaptive Weighing of Context Models for Lossless Data Compression".
    """

    def __init__(self, shape: CausalSection, vocab_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.lengths = shape.match_lengths
        self.vocab_size = vocab_size
        self.followers = _table(len(shape.match_lengths) * vocab_size, shape.d_model)

    def forward(
        self,
        read: Int[Tensor, "N T"],
        length: int,
        segments: Int[Tensor, "N L"] | None = None,
    ) -> Float[Tensor, "N L D"]:
        """Embed the last `length` tokens. With `segments` no match is in another document."""
        all_rows = []
        all_known = []
        for i, n in enumerate(self.lengths):
            ids, known = self._followers(read, length, n, segments)
            all_rows.append(ids + i * self.vocab_size)
            all_known.append(known)
        rows = torch.stack(all_rows, dim=-1)  # N L R
        kept = torch.stack(all_known, dim=-1)
        return _sum_of_rows(self.followers, rows, kept)

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
        both_valid = valid[:, new, None] & valid[:, None, :]
        is_earlier = place[new, None] > place
        equal &= both_valid & is_earlier
        if segments is not None:
            equal &= segments[:, :, None] == segments[:, None, :]
        if total:
            behind = torch.where(equal, place + 1, 0).amax(-1)
        else:  # there is nothing to take a maximum of
            behind = place.expand(len(read), 0)
        is_known = behind > 0
        followers = read.gather(1, behind.long())
        return followers, is_known


def ngram_hashes(
    ids: Int[Tensor, "B L"], n: int, buckets: int, pad_id: int = 0
) -> tuple[Int[Tensor, "B G"], Bool[Tensor, "B G"]]:
    """Hash each n-gram of each text to a bucket, and say which are real: those without padding.

    G = L - n + 1.

    h begins with n; each id makes it (h * MULTIPLIER + id) mod PRIME, and the bucket is h mod
    `buckets`: the polynomial hash of Karp and Rabin 1987. No step leaves 63 bits, so that it is the
    same on every machine. Ids must be below 2^31.
    """
    num_ngrams = max(ids.shape[1] - n + 1, 0)
    shape = len(ids), num_ngrams
    hashes = ids.new_full(shape, n, dtype=torch.int64)
    valid = torch.ones_like(hashes, dtype=torch.bool)
    for offset in range(n):
        end = offset + num_ngrams
        window = ids[:, offset:end]
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
    first = read.shape[1] - length
    reached = F.pad(read, (n - 1, 0), value=pad_id)[:, first:]
    hashes, valid = ngram_hashes(reached, n, buckets, pad_id)
    if segments is not None:  # then nothing was read before
        begins = F.pad(segments, (n - 1, 0))
        valid &= begins[:, :length] == segments
    return hashes, valid


def _sum_of_rows(
    table: nn.EmbeddingBag,
    rows: Int[Tensor, "N L R"],
    kept: Bool[Tensor, "N L R"],
) -> Float[Tensor, "N L D"]:
    """Sum the rows of each position that are kept."""
    weights = kept.flatten(0, 1).to(table.weight.dtype)
    sums = table(rows.flatten(0, 1), per_sample_weights=weights)
    return sums.unflatten(0, rows.shape[:2])


def _table(buckets: int, d_model: int) -> nn.EmbeddingBag:
    """Build a table of zeros, without the millions of random rows that EmbeddingBag draws first."""
    return nn.EmbeddingBag.from_pretrained(
        torch.zeros(buckets, d_model), freeze=False, mode="sum"
    )


def _weights(buckets: int) -> nn.Parameter:
    """Build weights that are saved with the model but not learned."""
    return nn.Parameter(torch.zeros(buckets), requires_grad=False)


def _bags(
    rows: Int[Tensor, "B G"], chosen: Bool[Tensor, "B G"]
) -> tuple[Int[Tensor, " R"], Int[Tensor, " B"]]:
    """Join the chosen rows of all texts; return them, and where each text begins."""
    counts = chosen.sum(1)
    ends = counts.cumsum(0)
    return rows[chosen], ends - counts
