"""Alignments: which source token each target token comes from, and what is left out.

A target token comes from the source token that wrote most of its logit, by all of the decoder's
looks at the source (its *share*). Of a model without shares, a recurrent one, it is the token with
the most attention. Where the looks are flat, or hardly wrote anything, it comes from none.

Shapes: T target tokens, S source tokens, end symbols included; B rows.
"""

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.data.scripts import count_scripts, is_mark, is_spaceless
from weft.predict.flatness import FLAT, is_flat

Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]

CrossAttention: TypeAlias = Callable[[Ids, Ids], Floats]
"""The attention (B, T, S) at each row of target ids (B, T), which begins with bos, over a row of
source ids (B, S); padding is 0.
"""

SourceShares: TypeAlias = Callable[[Ids, Ids, Ids], tuple[Floats, Floats]]
"""What each source token wrote into the logit of each target token, (B, T, S), and how even the
looks were that wrote it, (B, T), from source ids (B, S), the target ids that the decoder reads (B,
T) and those that it writes (B, T); padding is 0.
"""

LEAST_SHARE = 0.25
"""In nats: a token of whose logit no source token wrote so much comes from none."""

_LEAST = float(np.finfo(np.float32).tiny)
_LONGEST_PART = 16  # pieces between two spaces, up to which their words are remembered
_LEAST_OF_WORD = 0.5  # of what a word's main source wrote, so much makes another one


def support_by_shares(shares: Floats, evenness: Floats) -> Floats:
    """Return how much each source token supports each target token, (T, S), by shares (T, S); none
    does where the looks were even (T), or wrote hardly anything.
    """
    is_weak = shares.max(1, initial=0.0) < LEAST_SHARE
    is_nothing = is_weak | (evenness > FLAT)
    support: Floats = np.where(is_nothing[:, None], 0, shares)
    return support


def support_by_attention(attention: Floats) -> Floats:
    """Return the same by attention (T, S): where it is flat, no token supports another."""
    support: Floats = np.where(is_flat(attention)[:, None], 0, attention)
    return support


@dataclass(frozen=True)
class Link:
    """A target token and the source token that it comes from, and where they stand."""

    target: int
    source: int
    target_token: str
    source_token: str


def links(
    support: Floats,
    tgt: Sequence[str],
    src: Sequence[str],
    is_ended: bool,
    before: tuple[int, int] = (0, 0),
) -> list[Link]:
    """Return a link for each target token that a source token supports (T, S), to the one that does
    most, the first of equals.

    The source ends with a symbol, from which nothing comes but the target's own, if it `is_ended`.
    `before` tokens of target and source precede these, and are counted in the places.
    """
    first_tgt, first_src = before
    of_words = support[:, : len(src) - 1]
    best = of_words.argmax(1).tolist() if len(src) > 1 else [0] * len(tgt)
    most = of_words.max(1, initial=0.0).tolist()
    if is_ended:
        best[-1] = int(support[-1].argmax())
        most[-1] = float(support[-1].max())
    return [
        Link(first_tgt + t, first_src + best[t], token, src[best[t]])
        for t, token in enumerate(tgt)
        if most[t] > 0
    ]


@dataclass(frozen=True)
class WordAlignment:
    """The words of both sides, and pairs of a source and a target word that belong together.

    Words are counted from 0; the pairs are in the target's order.
    """

    src: list[str]
    tgt: list[str]
    pairs: list[tuple[int, int]]

    def pharaoh(self) -> str:
        """Write each pair as source and target number, `0-0 2-1`, as Moses and fast_align do."""
        return " ".join(f"{s}-{t}" for s, t in self.pairs)

    def lines(self) -> list[str]:
        """Write a line for each target word, with its source words behind it, for a person."""
        sources: list[list[str]] = [[] for _ in self.tgt]
        for s, t in self.pairs:
            sources[t].append(self.src[s])
        return [
            f"{word}\t{' '.join(words)}"
            for word, words in zip(self.tgt, sources, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return {
            "source": self.src,
            "target": self.tgt,
            "pairs": [list(p) for p in self.pairs],
            "pharaoh": self.pharaoh(),
        }


def align_words(
    support: Floats,
    tgt: Sequence[bytes],
    src: Sequence[bytes],
    ends: tuple[bool, bool],
) -> WordAlignment:
    """Align each target word with the source words that support its tokens most (T, S).

    `tgt` and `src` are what each token spells, spaces included; it need not be whole characters.
    `ends` says whether target and source end with a symbol, which is left out. A word is what white
    space delimits, and in scripts without it (Han, kana, Thai and the like) a single piece, or all
    characters in a row that are spelled byte by byte. Marks at a word's edges are words of their
    own where they are tokens of their own.
    """
    tgt_words, tgt_of = words_of(tgt[: len(tgt) - ends[0]])
    src_words, src_of = words_of(src[: len(src) - ends[1]])
    pairs = word_pairs(support, tgt_of, src_of)
    return WordAlignment(src_words, tgt_words, pairs)


def word_pairs(
    support: Floats, tgt_of: Sequence[int], src_of: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the pairs of source and target words, in the target's order, by the support (T, S) and
    the numbers of each token's word.

    A word comes from the source word that supports all of its tokens together most, and from one
    that does so for a single token, if it has at least half as much in all.
    """
    if not tgt_of or not src_of:
        return []
    of_words = support[: len(tgt_of), : len(src_of)]
    by_token = np.add.reduceat(of_words, firsts(src_of), axis=1)
    by_word = np.add.reduceat(by_token, firsts(tgt_of), axis=0)
    most: list[float] = by_word.max(1).tolist()
    main: list[int] = by_word.argmax(1).tolist()
    pairs = {(t, s) for t, s in enumerate(main) if most[t] > 0}
    best: list[int] = by_token.argmax(1).tolist()
    values: list[float] = by_token.max(1).tolist()
    in_all: list[list[float]] = by_word.tolist()
    for t, s, value in zip(tgt_of, best, values, strict=True):
        if value > 0 and in_all[t][s] > 0 and in_all[t][s] >= _LEAST_OF_WORD * most[t]:
            pairs.add((t, s))
    return [(s, t) for t, s in sorted(pairs)]


def firsts(word_of: Sequence[int]) -> list[int]:
    """Return the place of the first token of each word."""
    return [
        place
        for place, number in enumerate(word_of)
        if not place or number != word_of[place - 1]
    ]


@dataclass(frozen=True)
class _Piece:
    """The text that some tokens spell: that without the white space around it, whether there is
    some before and behind it, whether it is of a script without spaces between words, and whether
    it is nothing but marks.
    """

    text: str
    is_spaced: tuple[bool, bool]
    is_alone: bool
    is_mark: bool


_Counted: TypeAlias = tuple[_Piece, int]
"""A piece, and the number of its tokens."""


def words_of(spelled: Sequence[bytes]) -> tuple[list[str], list[int]]:
    """Return the words, without the spaces around them, and for each piece the number of its word.

    Pieces of white space alone belong to the word after them, at the end to the one before.
    """
    words: list[str] = []
    word_of: list[int] = []
    for part in _parts(spelled):
        is_short = len(part) <= _LONGEST_PART
        for word, count in (_words_of_part if is_short else _counted_words)(part):
            word_of += [len(words)] * count
            words.append(word)
    if words:
        word_of += [len(words) - 1] * (len(spelled) - len(word_of))
    return words, word_of


def _parts(spelled: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Divide pieces where white space and then a word begins, if all are whole characters and none
    is white space alone: what stands in one part then changes nothing in another.
    """
    kinds = list(map(_kind_of, spelled))
    if None in kinds:
        return [tuple(spelled)]
    begins = [place for place, is_first in enumerate(kinds) if is_first and place]
    bounds = pairwise((0, *begins, len(spelled)))
    return [tuple(spelled[first:last]) for first, last in bounds]


@lru_cache(100_000)
def _kind_of(piece: bytes) -> bool | None:
    """Return whether a piece begins with white space; None if it is only that, or broken off."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return None
    return text[0].isspace() if text.strip() else None


def _counted_words(spelled: Sequence[bytes]) -> list[tuple[str, int]]:
    """Return words, and how many pieces each has."""
    counted = []
    for run in _runs(spelled):
        for word in _without_marks(run):
            text = "".join([piece.text for piece, _ in word])
            counted.append((text, sum(count for _, count in word)))
    return counted


_words_of_part = lru_cache(20_000)(_counted_words)


def _without_marks(run: list[_Counted]) -> list[list[_Counted]]:
    """Divide a run into the marks before a word, the word, and the marks behind it."""
    if len(run) == 1 or not (run[0][0].is_mark or run[-1][0].is_mark):
        return [run]
    are_marks = [piece.is_mark for piece, _ in run]
    if all(are_marks):
        return [run]
    first = are_marks.index(False)
    last = len(run) - are_marks[::-1].index(False)
    return [part for part in (run[:first], run[first:last], run[last:]) if part]


def _runs(spelled: Sequence[bytes]) -> Iterator[list[_Counted]]:
    """Yield the pieces of each word, marks at its edges included.

    Those of white space alone are counted with the piece after them, at the end left out.
    """
    run: list[_Counted] = []
    spaces = 0  # pieces of white space that wait for their word
    was_alone = False  # the character before is of a script without spaces
    was_in_bytes = False  # and is spelled byte by byte
    was_before_space = False  # as bytes that break off before a space are
    for text, count in _whole_characters(spelled):
        piece = _piece_of(text)
        if not piece.text:
            spaces += count
            continue
        alone = piece.is_alone
        in_bytes = count > 1
        if was_alone and was_in_bytes and in_bytes:
            apart = not alone
        else:
            apart = alone or was_alone
        begins = was_before_space or piece.is_spaced[0]
        if run and (spaces or begins or apart):
            yield run
            run = []
        run.append((piece, spaces + count))
        spaces = 0
        was_alone = alone
        was_in_bytes = in_bytes
        was_before_space = piece.is_spaced[1]
    if run:
        yield run


@lru_cache(20_000)
def _piece_of(text: str) -> _Piece:
    stripped = text.strip()
    is_spaced = text[:1].isspace(), text[-1:].isspace()
    is_alone = is_spaceless(count_scripts([text]))
    return _Piece(stripped, is_spaced, is_alone, all(map(is_mark, stripped)))


def _whole_characters(spelled: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    """Yield the text of pieces and their number: one, or as many as end with a whole character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    count = 0
    for number, piece in enumerate(spelled, start=1):
        if not count and piece.isascii():
            yield piece.decode(), 1
            continue
        text += decoder.decode(piece, final=number == len(spelled))
        count += 1
        if not decoder.getstate()[0]:
            yield text, count
            text = ""
            count = 0


def coverage(attention: Floats) -> float:
    """Return the sum over source tokens of log(min(their attention (T, S) in all, 1)): 0 where none
    was passed over.

    Source: Wu et al. 2016, "Google's Neural Machine Translation System", equation 14, cp / beta.
    """
    in_all = attention.sum(0, dtype=np.float64)
    limited = np.clip(in_all, _LEAST, 1.0)
    return math.fsum(np.log(limited).tolist())
