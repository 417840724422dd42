"""Many texts to ids at once, as a store takes them: the same ids as one by one, in less time.

A word that recurs is encoded once. That is no guess: where a text has one space between two words,
the ids of the whole are those of its parts (`cut_text` in `pipeline.py` says why). Texts of
characters are looked up in a table. Any other text goes through the library as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import tokenizers

from weft.data.pipeline import byte_letters

Ids = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_WORDS = 1 << 17  # that are kept, about 25 MB
# spaces of a text on average, below which its words hardly recur
_FEWEST_SPACES = 2
# of a batch's words; with more new ones, what is kept is of other text
_MOST_NEW = 0.25
_AT_ONCE = 1000  # texts
_CUT_AT_ONCE = 5000  # texts, of which all words are held
_TOGETHER = 100  # new words that are encoded as one text
_NUM_CODES = 0x110000
_UNKNOWN = np.uint32(2**32 - 1)
# before the first word of a text that no space is put before; no text that is cut has it
_FIRST = "\n"


@dataclass(frozen=True)
class IdRows:
    """Rows of ids, one behind the other, and how many each row has."""

    ids: Ids
    lens: Counts

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Join rows."""
        lens = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.fromiter(chain.from_iterable(rows), np.uint32, int(lens.sum()))
        return cls(ids, lens)

    @classmethod
    def joined(cls, parts: Sequence["IdRows"]) -> Self:
        """Join the rows of all parts, one part behind the other."""
        ids = [part.ids for part in parts]
        lens = [part.lens for part in parts]
        return cls(np.concatenate(ids), np.concatenate(lens))

    def __len__(self) -> int:
        return len(self.lens)

    @property
    def starts(self) -> Counts:
        """Return where each row begins."""
        return np.cumsum(self.lens) - self.lens

    def lists(self) -> list[list[int]]:
        """Return the rows as lists."""
        ends = np.cumsum(self.lens).tolist()
        ids = self.ids.tolist()
        rows = []
        start = 0
        for end in ends:
            rows.append(ids[start:end])
            start = end
        return rows

    def chosen(self, rows: npt.NDArray[np.int64]) -> "IdRows":
        """Return the rows with these numbers, in this order."""
        lens = self.lens[rows]
        places = _spans(self.starts[rows], lens)
        return IdRows(self.ids[places], lens)

    def summed(self, counts: Counts) -> "IdRows":
        """Join the rows of each stretch of so many to one; no stretch is empty."""
        begins = np.cumsum(counts) - counts
        return IdRows(self.ids, np.add.reduceat(self.lens, begins))


def _spans(starts: Counts, lens: Counts) -> Counts:
    """Return the places of several stretches, one behind the other."""
    before = np.cumsum(lens) - lens
    return np.repeat(starts - before, lens) + np.arange(int(lens.sum()))


def _woven(parts: Sequence[tuple[Counts, IdRows]], count: int) -> IdRows:
    """Put the rows of all parts in the places that each part names, `count` in all."""
    lens = np.zeros(count, np.int64)
    for places, rows in parts:
        lens[places] = rows.lens
    starts = np.cumsum(lens) - lens
    ids = np.zeros(int(lens.sum()), np.uint32)
    for places, rows in parts:
        ids[_spans(starts[places], rows.lens)] = rows.ids
    return IdRows(ids, lens)


class RowEncoder(Protocol):
    """A pipeline of the library for many texts at once, to which its own steps were applied."""

    def encode(self, texts: Sequence[str]) -> IdRows:
        """Return the ids of each text."""


def encode_whole(pipeline: tokenizers.Tokenizer, texts: Sequence[str]) -> IdRows:
    """Encode each text by the library, some at a time: what it returns is far larger than ids."""
    parts = [IdRows.of([])]
    for start in range(0, len(texts), _AT_ONCE):
        end = start + _AT_ONCE
        some = pipeline.encode_batch_fast(texts[start:end], add_special_tokens=False)
        parts.append(IdRows.of([encoding.ids for encoding in some]))
    return IdRows.joined(parts)


class WordEncoder:
    """Encodes texts by their words, each with the space before it.

    `inside` is the pipeline that puts no space before a text; with `leading_space` the first word
    of a text is as any other.
    """

    def __init__(
        self,
        pipeline: tokenizers.Tokenizer,
        inside: tokenizers.Tokenizer,
        leading_space: bool,
    ) -> None:
        self._pipeline = pipeline
        self._inside = inside
        self._first = "" if leading_space else _FIRST
        self._numbers = _Numbers()
        self._known = IdRows.of([])

    def encode(self, texts: Sequence[str]) -> IdRows:
        """Return the ids of each text, of so many at a time that their words take little memory."""
        parts = [IdRows.of([])]
        for start in range(0, len(texts), _CUT_AT_ONCE):
            end = start + _CUT_AT_ONCE
            parts.append(self._encode(texts[start:end]))
        return IdRows.joined(parts)

    def _encode(self, texts: Sequence[str]) -> IdRows:
        can_be_cut = np.fromiter(map(_is_plain, texts), np.bool_, len(texts))
        plain = np.flatnonzero(can_be_cut)
        cut = [texts[i] for i in plain.tolist()]
        if sum(text.count(" ") for text in cut) < _FEWEST_SPACES * max(len(cut), 1):
            return encode_whole(self._pipeline, texts)
        other = np.flatnonzero(~can_be_cut)
        rest = [texts[i] for i in other.tolist()]
        parts = [(plain, self._by_words(cut))]
        if rest:
            parts.append((other, encode_whole(self._pipeline, rest)))
        return _woven(parts, len(texts))

    def _by_words(self, texts: Sequence[str]) -> IdRows:
        lists = [(self._first + text).split(" ") for text in texts]
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        total = int(counts.sum())
        words = map(self._numbers.__getitem__, chain.from_iterable(lists))
        numbers = np.fromiter(words, np.int64, total)
        num_new = self._learn()
        found = self._known.chosen(numbers).summed(counts)
        self._forget(num_new > _MOST_NEW * total)
        return found

    def _learn(self) -> int:
        """Encode the words that were not known; return how many they are."""
        new = self._numbers.taken()
        standing = list(map(_as_standing, new))
        own = self._encode_together(standing)
        self._known = IdRows.joined([self._known, own])
        return len(new)

    def _encode_together(self, words: Sequence[str]) -> IdRows:
        """Encode words, many of them as one text: each begins where a piece with a space does.

        One by one, where a word has no space before it, or gets more by its normal form.
        """
        if all(word.startswith(" ") for word in words):
            texts = [
                "".join(words[start : start + _TOGETHER])
                for start in range(0, len(words), _TOGETHER)
            ]
            ids = encode_whole(self._inside, texts).ids
            begins = np.flatnonzero(self._begins_word[ids])
            if len(begins) == len(words):
                return IdRows(ids, np.diff(begins, append=len(ids)))
        return encode_whole(self._inside, words)

    @cached_property
    def _begins_word(self) -> Flags:
        """Say of each id whether its piece begins with a space."""
        pieces = self._inside.get_vocab()
        spaces = (" ", byte_letters(" "))
        begins = np.zeros(len(pieces), np.bool_)
        for piece, number in pieces.items():
            begins[number] = piece.startswith(spaces)
        return begins

    def _forget(self, is_other_text: bool) -> None:
        """Keep the first words alone where there are too many; none where text of another kind has
        begun.
        """
        if len(self._numbers) <= MOST_WORDS:
            return
        most = 0 if is_other_text else MOST_WORDS
        self._numbers.shorten(most)
        lens = self._known.lens[:most]
        self._known = IdRows(self._known.ids[: int(lens.sum())].copy(), lens.copy())


def _as_standing(word: str) -> str:
    """Return a word as it stands in a text: at its beginning, or behind a space."""
    return word[1:] if word.startswith(_FIRST) else f" {word}"


class _Numbers(dict[str, int]):
    """A number for each word, in the order in which they are first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[str] = []

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        self._new.append(word)
        return number

    def taken(self) -> list[str]:
        """Return the words that are new since the last call."""
        new = self._new
        self._new = []
        return new

    def shorten(self, most: int) -> None:
        """Drop all but the first words."""
        while len(self) > most:
            self.popitem()


def _is_plain(text: str) -> bool:
    """Return whether single spaces alone divide a text's words."""
    return (
        text.isprintable()
        and "  " not in text
        and text[:1] not in ("", " ")
        and text[-1] != " "
    )


class CharacterEncoder:
    """Encodes texts of which each known character is one piece."""

    def __init__(self, pipeline: tokenizers.Tokenizer) -> None:
        self._pipeline = pipeline

    def encode(self, texts: Sequence[str]) -> IdRows:
        """Return the ids of each text."""
        normalizer = self._pipeline.normalizer
        formed = texts
        if normalizer is not None:
            formed = [normalizer.normalize_str(text) for text in texts]
        lens = np.fromiter(map(len, formed), np.int64, len(formed))
        codes = np.frombuffer("".join(formed).encode("utf-32-le"), np.uint32)
        ids = self._table[codes]
        unknown = np.flatnonzero(ids == _UNKNOWN)
        if not len(unknown):
            return IdRows(ids, lens)
        # of texts with a character that is spelled by bytes
        other = np.unique(np.searchsorted(np.cumsum(lens), unknown, side="right"))
        plain = np.delete(np.arange(len(lens)), other)
        rest = [texts[i] for i in other.tolist()]
        parts = [
            (plain, IdRows(ids, lens).chosen(plain)),
            (other, encode_whole(self._pipeline, rest)),
        ]
        return _woven(parts, len(texts))

    @cached_property
    def _table(self) -> Ids:
        """Return the id of each code point."""
        table = np.full(_NUM_CODES, _UNKNOWN, np.uint32)
        for piece, number in self._pipeline.get_vocab().items():
            if len(piece) == 1:
                table[ord(piece)] = number
        return table
