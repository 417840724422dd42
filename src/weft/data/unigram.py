"""Unigram pieces by expectation maximization (Kudo 2018, "Subword Regularization", section 3.2).

The trainer of the `tokenizers` library sums in an order that changes from run to run; this one is
deterministic. It works on characters, so that no piece cuts one in two; bytes come in when the
vocabulary is written.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from weft.data.pipeline import BYTE_LETTERS, SPECIALS, byte_letters

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Group = tuple[int, int, slice]  # start, end and edges
Scored = list[tuple[str, float]]

_LONGEST_PIECE = 16  # characters
_LONGEST_WORD = 48  # longer words are learned from in parts of this length
# characters of distinct words; the most frequent words say enough
_MOST_TEXT = 1_000_000
_SEEDS_PER_PIECE = 10
_KEPT_EACH_ROUND = 0.75
_LAST_ROUNDS = 10  # of expectation and maximization, when the pieces are chosen
_FEWEST_EXPECTED = 0.5  # a piece expected less often than this is dropped
# how far the bytes that are no learned piece lie below the least probable one
_BELOW_ALL = 1.0


@dataclass(frozen=True)
class Lattice:
    """The ways to cut words into pieces: edges, each a piece from a start to an end position of a
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
        kept = alive[self.piece]
        return Lattice(
            word=self.word[kept],
            start=self.start[kept],
            end=self.end[kept],
            piece=self.piece[kept],
            lengths=self.lengths,
        )

    def groups(self) -> list[Group]:
        """Group the edges by start and end, in order of end."""
        keys = self.end * (_LONGEST_WORD + 1) + self.start
        changes = np.flatnonzero(np.diff(keys)) + 1
        bounds = [0, *changes.tolist(), len(keys)]
        groups = []
        for first, last in pairwise(bounds):
            if last > first:
                start = int(self.start[first])
                end = int(self.end[first])
                groups.append((start, end, slice(first, last)))
        return groups


def learn_unigram(
    words: Sequence[str], counts: Ints, room: int, min_frequency: int = 2
) -> Scored:
    """Learn at most `room` pieces, besides the ASCII characters, which are bytes; return them with
    their log-probabilities.

    `words` are pre-tokens, most frequent first, with how often each occurs. Other single characters
    take at most half of the room, or what the longer pieces leave; no longer piece is rarer than
    `min_frequency`, or than 2.
    """
    parts = _cut(words, counts)
    singles, seeds = _seed(parts, room, min_frequency)
    pieces = [*singles, *seeds]
    num_singles = len(singles)
    num_wide = sum(not piece.isascii() for piece in singles)
    num_seeds_kept = room - min(num_wide, room // 2)
    scores, alive = _maximize(parts, pieces, num_singles, num_seeds_kept)

    num_longer = int(alive[num_singles:].sum())
    room_for_wide = max(room // 2, room - num_longer)
    living = np.flatnonzero(alive).tolist()
    learned: Scored = []
    for i in sorted(living, key=lambda i: (-scores[i], pieces[i])):
        if i < num_singles and not pieces[i].isascii():
            if not room_for_wide:
                continue
            room_for_wide -= 1
        learned.append((pieces[i], float(scores[i])))
    return learned


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
    """Collect all single characters, and the repeated substrings that cover most of the text, both
    in a fixed order.

    A substring can repeat only if those one character shorter do: lengths are counted in turn, in
    little memory.
    """
    singles = set(chain.from_iterable(parts))
    counts: dict[str, int] = {}
    shorter: set[str] = singles
    fewest = max(2, min_frequency)
    for length in range(2, _LONGEST_PIECE + 1):
        seen: Counter[str] = Counter()
        for word, count in parts.items():
            last = len(word) - length
            for start in range(last + 1):
                piece = word[start : start + length]
                if piece[:-1] in shorter and piece[1:] in shorter:
                    seen[piece] += count
        repeated = {piece: n for piece, n in seen.items() if n >= fewest}
        counts |= repeated
        shorter = set(repeated)
    seeds = sorted(counts, key=lambda piece: (-counts[piece] * len(piece), piece))
    most = _SEEDS_PER_PIECE * room
    return sorted(singles), seeds[:most]


def _maximize(
    parts: Counter[str], pieces: list[str], num_singles: int, num_seeds_kept: int
) -> tuple[Floats, Mask]:
    """Learn the scores of the pieces, and which of them live.

    Expectation, maximization and pruning alternate until few enough seeds live; single characters
    always do.
    """
    number = {piece: i for i, piece in enumerate(pieces)}
    lattice = _lattice(list(parts), number)
    # how each seed would be cut if it were no piece
    inner = _lattice(pieces[num_singles:], number, allow_whole=False)
    counts = np.fromiter(parts.values(), dtype=np.float64)
    alive = np.ones(len(pieces), dtype=np.bool_)
    seeds_alive = alive[num_singles:]  # a view
    scores = np.full(len(pieces), -np.log(len(pieces)))
    while True:
        num_alive = int(seeds_alive.sum())
        is_last = num_alive <= num_seeds_kept
        for _ in range(_LAST_ROUNDS if is_last else 2):
            expected = _expected_counts(lattice, counts, scores)
            floored = np.maximum(expected, _FEWEST_EXPECTED)
            total = np.asarray(floored[alive].sum())
            scores = _digamma(floored) - _digamma(total)
        expected_seeds = expected[num_singles:]
        is_useless = expected_seeds < _FEWEST_EXPECTED
        if is_last:
            seeds_alive &= ~is_useless
            return scores, alive

        # what the text would lose in log-probability without each seed
        lead = scores[num_singles:] - _best_scores(inner, scores)
        losses = expected_seeds * lead
        largest = np.finfo(np.float64).max
        losses[is_useless] = -largest
        losses[~seeds_alive] = -np.inf
        most_kept = int(_KEPT_EACH_ROUND * num_alive)
        num_kept = max(num_seeds_kept, most_kept)
        largest_first = np.argsort(-losses, kind="stable")
        seeds_alive[largest_first[num_kept:]] = False
        lattice = lattice.only(alive)
        inner = inner.only(alive)


def _lattice(
    words: list[str], number: dict[str, int], allow_whole: bool = True
) -> Lattice:
    """Collect the edges of all known substrings; without `allow_whole` a word may not be one
    piece.
    """
    edges = array("q")
    for w, word in enumerate(words):
        length = len(word)
        for start in range(length):
            last = min(start + _LONGEST_PIECE, length)
            for end in range(start + 1, last + 1):
                piece = number.get(word[start:end])
                if piece is not None and (allow_whole or end - start < length):
                    edges.extend((end, start, w, piece))
    table = np.array(edges, dtype=np.int64)
    ends, starts, of_word, pieces = table.reshape(-1, 4).T
    order = np.lexsort((of_word, starts, ends))
    return Lattice(
        word=of_word[order],
        start=starts[order],
        end=ends[order],
        piece=pieces[order],
        lengths=np.array([len(word) for word in words], dtype=np.int64),
    )


def _expected_counts(lattice: Lattice, counts: Floats, scores: Floats) -> Floats:
    """Compute how often each piece is expected in all ways to cut the words, by
    forward-backward.
    """
    groups = lattice.groups()
    weights = scores[lattice.piece]
    forward = _forward(lattice, weights, groups, np.logaddexp)
    num_words = len(lattice.lengths)
    backward = np.full(forward.shape, -np.inf)
    all_words = np.arange(num_words)
    backward[lattice.lengths, all_words] = 0.0
    for start, end, edges in sorted(groups, key=lambda group: -group[0]):
        words = lattice.word[edges]
        paths = backward[end, words] + weights[edges]
        backward[start, words] = np.logaddexp(backward[start, words], paths)

    # the probability of each edge in its word
    paths = forward[lattice.start, lattice.word] + weights
    paths += backward[lattice.end, lattice.word]
    shares = np.exp(paths - backward[0, lattice.word])
    expected = np.bincount(
        lattice.piece,
        weights=shares * counts[lattice.word],
        minlength=len(scores),
    )
    return expected.astype(np.float64)


def _best_scores(lattice: Lattice, scores: Floats) -> Floats:
    """Return the log-probability of the best way to cut each word."""
    weights = scores[lattice.piece]
    forward = _forward(lattice, weights, lattice.groups(), np.maximum)
    words = np.arange(len(lattice.lengths))
    best: Floats = forward[lattice.lengths, words]
    return best


def _forward(
    lattice: Lattice,
    weights: Floats,
    groups: list[Group],
    join: Callable[[Floats, Floats], Floats],
) -> Floats:
    """Compute the log-weight of all cuts of each word up to each position, as (position, word).

    `join` adds up the cuts of a position, or takes the best of them.
    """
    longest = int(lattice.lengths.max(initial=0))
    shape = (longest + 1, len(lattice.lengths))
    forward = np.full(shape, -np.inf)
    forward[0] = 0.0
    for start, end, edges in groups:
        words = lattice.word[edges]
        paths = forward[start, words] + weights[edges]
        forward[end, words] = join(forward[end, words], paths)
    return forward


def _digamma(x: Floats) -> Floats:
    """Compute the derivative of log-gamma, for x > 0: the recurrence up to x + 6, then the
    asymptotic series.
    """
    shifted = sum(-1.0 / (x + i) for i in range(6))
    y = x + 6.0
    series = np.log(y) - 1 / (2 * y) - 1 / (12 * y**2)
    series = series + 1 / (120 * y**4) - 1 / (252 * y**6)
    result: Floats = shifted + series
    return result
