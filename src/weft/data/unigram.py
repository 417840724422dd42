"""Unigram pieces by expectation maximization (Kudo 2018, "Subword Regularization", section 3.2).

The trainer of the `tokenizers` library sums in an order that changes from run to run; this one is
deterministic. It works on characters, so that no piece cuts one in two; bytes come in when the
vocabulary is written.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from weft.data.pipeline import BYTE_LETTERS, SPECIALS, byte_letters

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LONGEST_PIECE = 16  # characters
_LONGEST_WORD = 48  # longer words are learned from in parts of this length
# characters of distinct words; the most frequent words say enough
_MOST_TEXT = 1_000_000
_SEEDS_PER_PIECE = 10
_KEPT_EACH_ROUND = 0.75
_LAST_ROUNDS = 10  # of expectation and maximization, when the pieces are settled
_FEWEST_EXPECTED = 0.5  # a piece expected less often than this is dropped
# how far the bytes that are no learned piece lie below the least probable one
_BELOW_ALL = 1.0


@dataclass(frozen=True)
class Lattice:
    """All ways to cut words into pieces: edges, each a piece from a start to an end position of a
    word.

    Edges are sorted by end, start and word, so no word occurs twice among edges of one start and
    end: the recursions over positions run for all words at once.
    """

    word: Ints
    start: Ints
    end: Ints
    piece: Ints
    lengths: Ints  # of the words

    def only(self, alive: Mask) -> "Lattice":
        """Return the lattice without the edges of pieces that are no longer alive."""
        keep = alive[self.piece]
        kept = {
            name: getattr(self, name)[keep]
            for name in ("word", "start", "end", "piece")
        }
        return replace(self, **kept)

    def groups(self) -> list[tuple[int, int, slice]]:
        """Start, end and edges of each group, in order of end."""
        keys = self.end * (_LONGEST_WORD + 1) + self.start
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
        return [
            (int(self.start[a]), int(self.end[a]), slice(a, b))
            for a, b in pairwise(bounds)
            if b > a
        ]


def learn_unigram(
    words: Sequence[str], counts: Ints, room: int, min_frequency: int = 2
) -> list[tuple[str, float]]:
    """Pieces with their log-probabilities: at most `room`, besides the ASCII characters, which are
    bytes.

    `words` are pre-tokens, most frequent first, with how often each occurs. Other single characters
    take at most half of the room, or what the longer pieces leave; no longer piece is rarer than
    `min_frequency`, or than 2.
    """
    parts = _cut(words, counts)
    singles, seeds = _seed(parts, room, min_frequency)
    pieces = [*singles, *seeds]
    num_wide = sum(not piece.isascii() for piece in singles)
    num_seeds_kept = room - min(num_wide, room // 2)
    scores, alive = _maximize(parts, pieces, len(singles), num_seeds_kept)
    order = sorted(
        np.flatnonzero(alive).tolist(), key=lambda i: (-scores[i], pieces[i])
    )
    wide_singles = [i for i in order if i < len(singles) and not pieces[i].isascii()]
    others = set(
        wide_singles[: max(room // 2, room - int(alive[len(singles) :].sum()))]
    )
    free = {i for i in range(len(singles)) if pieces[i].isascii()}
    return [
        (pieces[i], float(scores[i]))
        for i in order
        if i in others or i in free or i >= len(singles)
    ]


def unigram_vocabulary(pieces: Sequence[tuple[str, float]]) -> list[list[str | float]]:
    """Return the vocabulary as `tokenizer.json` has it: specials, all bytes, then the other pieces,
    in byte letters.

    A byte that is itself a learned piece keeps its probability; the others lie below every piece.
    """
    scores = {byte_letters(piece): round(score, 6) for piece, score in pieces}
    least = min(scores.values(), default=0.0) - _BELOW_ALL
    first: list[list[str | float]] = [[special, 0.0] for special in SPECIALS]
    first += [[letter, scores.pop(letter, least)] for letter in BYTE_LETTERS]
    return first + [[piece, score] for piece, score in scores.items()]


def _cut(words: Sequence[str], counts: Ints) -> Counter[str]:
    parts: Counter[str] = Counter()
    text = 0
    for word, count in zip(words, counts.tolist(), strict=True):
        text += len(word)
        if parts and text > _MOST_TEXT:
            break
        for start in range(0, len(word), _LONGEST_WORD):
            parts[word[start : start + _LONGEST_WORD]] += count
    return parts


def _seed(
    parts: Counter[str], room: int, min_frequency: int
) -> tuple[list[str], list[str]]:
    """All single characters, and the repeated substrings that cover most of the text, both in a
    fixed order.

    A substring can repeat only if those one character shorter do: lengths are counted in turn, in
    little memory.
    """
    singles = set(chain.from_iterable(parts))
    counts: dict[str, int] = {}
    shorter: set[str] = singles
    for length in range(2, _LONGEST_PIECE + 1):
        seen: Counter[str] = Counter()
        for word, count in parts.items():
            for start in range(len(word) - length + 1):
                piece = word[start : start + length]
                if piece[:-1] in shorter and piece[1:] in shorter:
                    seen[piece] += count
        repeated = {
            piece: count
            for piece, count in seen.items()
            if count >= max(2, min_frequency)
        }
        counts |= repeated
        shorter = set(repeated)
    seeds = sorted(counts, key=lambda piece: (-counts[piece] * len(piece), piece))
    return sorted(singles), seeds[: _SEEDS_PER_PIECE * room]


def _maximize(
    parts: Counter[str], pieces: list[str], num_singles: int, num_seeds_kept: int
) -> tuple[Floats, Mask]:
    """Alternate expectation, maximization and pruning until few enough seeds live; single
    characters always do.
    """
    number = {piece: i for i, piece in enumerate(pieces)}
    lattice = _lattice(list(parts), number)
    inner = _lattice(pieces[num_singles:], number, whole=False)
    counts = np.fromiter(parts.values(), dtype=np.float64)
    alive = np.ones(len(pieces), dtype=np.bool_)
    seeds_alive = alive[num_singles:]  # a view
    scores = np.full(len(pieces), -np.log(len(pieces)))
    while True:
        num_alive = int(seeds_alive.sum())
        for _ in range(2 if num_alive > num_seeds_kept else _LAST_ROUNDS):
            expected = _expected_counts(lattice, counts, scores)
            floored = np.maximum(expected, _FEWEST_EXPECTED)
            scores = _digamma(floored) - _digamma(np.asarray(floored[alive].sum()))
        useless = expected[num_singles:] < _FEWEST_EXPECTED
        if num_alive <= num_seeds_kept:
            seeds_alive &= ~useless
            return scores, alive
        losses = expected[num_singles:] * (
            scores[num_singles:] - _best_scores(inner, scores)
        )
        losses[useless] = -np.finfo(np.float64).max
        losses[~seeds_alive] = -np.inf
        kept = max(num_seeds_kept, int(_KEPT_EACH_ROUND * num_alive))
        seeds_alive[np.argsort(-losses, kind="stable")[kept:]] = False
        lattice, inner = lattice.only(alive), inner.only(alive)


def _lattice(words: list[str], number: dict[str, int], whole: bool = True) -> Lattice:
    """Edges of all known substrings; with `whole` false, a word may not be one piece."""
    edges = array("q")
    for w, word in enumerate(words):
        length = len(word)
        for start in range(length):
            for end in range(start + 1, min(start + _LONGEST_PIECE, length) + 1):
                piece = number.get(word[start:end])
                if piece is not None and (whole or end - start < length):
                    edges.extend((end, start, w, piece))
    ends, starts, of_word, pieces = np.array(edges, dtype=np.int64).reshape(-1, 4).T
    order = np.lexsort((of_word, starts, ends))
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    return Lattice(of_word[order], starts[order], ends[order], pieces[order], lengths)


def _expected_counts(lattice: Lattice, counts: Floats, scores: Floats) -> Floats:
    """How often each piece is expected in all ways to cut the words, by forward-backward."""
    groups = lattice.groups()
    weights = scores[lattice.piece]
    forward = _forward(lattice, weights, groups, np.logaddexp)
    num_words = len(lattice.lengths)
    backward = np.full(forward.shape, -np.inf)
    backward[lattice.lengths, np.arange(num_words)] = 0.0
    for start, end, edges in sorted(groups, key=lambda group: -group[0]):
        words = lattice.word[edges]
        backward[start, words] = np.logaddexp(
            backward[start, words], backward[end, words] + weights[edges]
        )
    paths = (
        forward[lattice.start, lattice.word]
        + weights
        + backward[lattice.end, lattice.word]
    )
    shares = np.exp(paths - backward[0, lattice.word]) * counts[lattice.word]
    expected: Floats = np.bincount(
        lattice.piece, weights=shares, minlength=len(scores)
    ).astype(np.float64)
    return expected


def _best_scores(lattice: Lattice, scores: Floats) -> Floats:
    """Return the log-probability of the best way to cut each word."""
    forward = _forward(lattice, scores[lattice.piece], lattice.groups(), np.maximum)
    best: Floats = forward[lattice.lengths, np.arange(len(lattice.lengths))]
    return best


def _forward(
    lattice: Lattice,
    weights: Floats,
    groups: list[tuple[int, int, slice]],
    join: Callable[[Floats, Floats], Floats],
) -> Floats:
    """Log-weight of all cuts of each word up to each position, (position, word), joined by a sum or
    maximum.
    """
    forward = np.full(
        (int(lattice.lengths.max(initial=0)) + 1, len(lattice.lengths)), -np.inf
    )
    forward[0] = 0.0
    for start, end, edges in groups:
        words = lattice.word[edges]
        forward[end, words] = join(
            forward[end, words], forward[start, words] + weights[edges]
        )
    return forward


def _digamma(x: Floats) -> Floats:
    """Derivative of log-gamma, for x > 0: the recurrence up to x + 6, then the asymptotic
    series.
    """
    shifted = sum(-1.0 / (x + i) for i in range(6))
    y = x + 6.0
    series = (
        np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6)
    )
    result: Floats = shifted + series
    return result
