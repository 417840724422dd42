"""Alignments from a model's attention: which source token each target token comes from, and what
is left out.

The attention is that of the decoder's last layer over the source, the mean of its heads.

Shapes: T target tokens, S source tokens, end symbols included; B rows.
"""

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.data.scripts import count_scripts, is_spaceless

Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]

CrossAttention: TypeAlias = Callable[[Ids, Ids], Floats]
"""The attention (B, T, S) at each row of target ids (B, T), which begins with bos, over a row of
source ids (B, S); padding is 0.
"""

_LEAST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Link:
    """A target token and the source token that had the most attention as it was written, and where
    they stand.
    """

    target: int
    source: int
    target_token: str
    source_token: str


def links(
    attention: Floats,
    tgt: Sequence[str],
    src: Sequence[str],
    before: tuple[int, int] = (0, 0),
) -> list[Link]:
    """Return for each target token a link to the source token with the most attention (T, S), the
    first of equals.

    `before` tokens of target and source precede these, and are counted in the places.
    """
    best: list[int] = attention.argmax(1).tolist()
    first_tgt, first_src = before
    return [
        Link(first_tgt + t, first_src + s, tgt[t], src[s]) for t, s in enumerate(best)
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
    attention: Floats,
    tgt: Sequence[bytes],
    src: Sequence[bytes],
    ends: tuple[bool, bool],
) -> WordAlignment:
    """Align each target word with the source words that its tokens attended to most; the attention
    is (T, S).

    `tgt` and `src` are what each token spells, spaces included; it need not be whole characters.
    `ends` says whether target and source end with a symbol, which is left out. A word is what white
    space delimits, and in scripts without it (Han, kana, Thai and the like) a single piece, or all
    characters in a row that are spelled byte by byte.
    """
    tgt_words, tgt_of = words_of(tgt[: len(tgt) - ends[0]])
    src_words, src_of = words_of(src[: len(src) - ends[1]])
    pairs = word_pairs(attention, tgt_of, src_of)
    return WordAlignment(src_words, tgt_words, pairs)


def word_pairs(
    attention: Floats, tgt_of: Sequence[int], src_of: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the pairs of source and target words, in the target's order, by the attention (T, S)
    and the numbers of each token's word.
    """
    if not tgt_of or not src_of:
        return []
    best = attention[:, : len(src_of)].argmax(1).tolist()
    pairs = {(t, src_of[best[place]]) for place, t in enumerate(tgt_of)}
    return [(s, t) for t, s in sorted(pairs)]


def words_of(spelled: Sequence[bytes]) -> tuple[list[str], list[int]]:
    """Return the words, without the spaces around them, and for each piece the number of its word.

    Pieces of white space alone belong to the word after them, at the end to the one before.
    """
    words: list[str] = []
    counts: list[int] = []  # pieces of each word
    spaces = 0  # pieces of white space that wait for their word
    was_alone = False  # the character before is of a script without spaces
    was_in_bytes = False  # and is spelled byte by byte
    was_before_space = False  # as bytes that break off before a space are
    for text, count in _whole_characters(spelled):
        if not text.strip():
            spaces += count
            continue
        alone = _stands_alone(text)
        in_bytes = count > 1
        if was_alone and was_in_bytes and in_bytes:
            apart = not alone
        else:
            apart = alone or was_alone
        begins = was_before_space or text[0].isspace()
        if not words or spaces or begins or apart:
            words.append(text.strip())
            counts.append(spaces + count)
        else:
            words[-1] += text.rstrip()
            counts[-1] += count
        spaces = 0
        was_alone = alone
        was_in_bytes = in_bytes
        was_before_space = text[-1].isspace()
    if words:
        counts[-1] += spaces
    word_of = [number for number, count in enumerate(counts) for _ in range(count)]
    return words, word_of


@lru_cache(10_000)
def _stands_alone(piece: str) -> bool:
    """Return whether a piece is of a script without spaces between words."""
    return is_spaceless(count_scripts([piece]))


def _whole_characters(spelled: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    """Yield the text of pieces and their number: one, or as many as end with a whole character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    count = 0
    for number, piece in enumerate(spelled, start=1):
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
