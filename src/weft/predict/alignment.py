"""What a model looks at while it writes: which source token each target token comes from, and what
is left out.

The attention is that of the decoder's last layer over the source, the mean of its heads.

Shapes: T target tokens, S source tokens, end symbols included; B rows.
"""

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.data.scripts import count_scripts, is_spaceless

Look: TypeAlias = Callable[
    [Int[Tensor, "B S"], Int[Tensor, "B T"]], Float[Tensor, "B T S"]
]
"""The attention at each row of target ids, which begins with bos, over a row of source ids;
padding is 0.
"""


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
    attention: Float[Tensor, "T S"],
    tgt: Sequence[str],
    src: Sequence[str],
    before: tuple[int, int] = (0, 0),
) -> list[Link]:
    """One for each target token; of equals the first source. `before`: how many of either side
    precede these.
    """
    best: list[int] = attention.argmax(1).tolist()
    first_tgt, first_src = before
    return [
        Link(first_tgt + t, first_src + s, tgt[t], src[s]) for t, s in enumerate(best)
    ]


@dataclass(frozen=True)
class WordAlignment:
    """Which word of the source each word of the target was written from; counted from 0, in the
    target's order.
    """

    src: list[str]
    tgt: list[str]
    pairs: list[tuple[int, int]]

    def pharaoh(self) -> str:
        """`0-0 2-1`: source and target word of each pair, as Moses and fast_align have it."""
        return " ".join(f"{s}-{t}" for s, t in self.pairs)

    def lines(self) -> list[str]:
        """For a person to read: a line for each target word."""
        sources = {
            t: [self.src[s] for s, other in self.pairs if other == t]
            for t in range(len(self.tgt))
        }
        return [f"{word}\t{' '.join(sources[t])}" for t, word in enumerate(self.tgt)]

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return {
            "source": self.src,
            "target": self.tgt,
            "pairs": [list(p) for p in self.pairs],
            "pharaoh": self.pharaoh(),
        }


def align_words(
    attention: Float[Tensor, "T S"],
    tgt: Sequence[bytes],
    src: Sequence[bytes],
    ends: tuple[bool, bool],
) -> WordAlignment:
    """For each target word the source words that its tokens looked at most, end symbols aside.

    `tgt` and `src` are what each token spells, spaces included; it need not be whole characters.
    `ends` says whether target and source end with a symbol. A word is what white space delimits,
    and in scripts without it (Han, kana, Thai and the like) a single piece, or all characters in a
    row that are spelled byte by byte.
    """
    tgt_words, src_words = (
        _words(some[: len(some) - end])
        for some, end in ((tgt, ends[0]), (src, ends[1]))
    )
    if not tgt_words or not src_words:
        return WordAlignment([w for w, _ in src_words], [w for w, _ in tgt_words], [])
    best = attention[:, : sum(n for _, n in src_words)].argmax(1).tolist()
    src_of, tgt_of = (
        [number for number, (_, count) in enumerate(words) for _ in range(count)]
        for words in (src_words, tgt_words)
    )
    pairs = {(t, src_of[best[place]]) for place, t in enumerate(tgt_of)}
    return WordAlignment(
        [w for w, _ in src_words],
        [w for w, _ in tgt_words],
        [(s, t) for t, s in sorted(pairs)],
    )


def _words(spelled: Sequence[bytes]) -> list[tuple[str, int]]:
    """Each word, without the spaces around it, with the number of its pieces; every piece belongs
    to one.
    """
    words: list[tuple[str, int]] = []
    spaces = 0  # pieces of white space alone, which belong to the word after them
    before = (False, False)  # of the piece before: of a script without spaces, in bytes
    for text, count in _whole_characters(spelled):
        if not text.strip():
            spaces += count
            continue
        alone, in_bytes = is_spaceless(count_scripts([text])), count > 1
        apart = not alone if before == (True, True) and in_bytes else alone or before[0]
        if not words or spaces or text[0].isspace() or apart:
            words.append((text.strip(), spaces + count))
        else:
            words[-1] = (words[-1][0] + text.rstrip(), words[-1][1] + count)
        spaces, before = 0, (alone, in_bytes)
    if spaces and words:
        words[-1] = (words[-1][0], words[-1][1] + spaces)
    return words


def _whole_characters(spelled: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    """The text of pieces, and how many they are: one, or as many as it takes to end at the end of a
    character.
    """
    decoder, text, count = codecs.getincrementaldecoder("utf-8")("replace"), "", 0
    for number, piece in enumerate(spelled, start=1):
        text, count = (
            text + decoder.decode(piece, final=number == len(spelled)),
            count + 1,
        )
        if not decoder.getstate()[0]:
            yield text, count
            text, count = "", 0


def coverage(attention: Float[Tensor, "T S"]) -> float:
    """Return the sum over source tokens of log(min(their attention in all, 1)): 0 where none was
    passed over.

    Source: Wu et al. 2016, "Google's Neural Machine Translation System", equation 14, cp / beta.
    """
    in_all = (
        attention.double().sum(0).clamp(min=torch.finfo(torch.float32).tiny, max=1.0)
    )
    return math.fsum(in_all.log().tolist())
