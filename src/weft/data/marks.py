"""Marks: tokens before a source row that tell the model something about it.

- The language to write, where a model writes several (Johnson et al. 2017, "Google's Multilingual
  Neural Machine Translation System").
- That a machine made the source (Caswell et al. 2019, "Tagged Back-Translation").
- The tag of the text that the row is from.

They stand in this order. A mark is an entry of the source tokenizer behind all of its pieces, under
a name that no text can produce: inside of it is a space. The plain row is that without marks; its
tokens are what places, attention and limits count.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.config import MarksSection
from weft.data.corpus import ParallelText
from weft.data.tokenizer import Tokenizer

# of the rows of a text with a tag, so many are read without it: the model translates without, too
UNTAGGED = 0.2
MADE = "<made by machine>"
_LANGUAGE = re.compile("<to (.+)>")
_TAG = re.compile("<tag (.+)>")
_VERSION = 1  # of how marks are written: another one makes stores anew
_FOR_TAGS = 3  # what random numbers are drawn for, beside those of hints

Ids = Sequence[int]


def language_mark(language: str) -> str:
    """Return the piece that asks for a language (BCP-47)."""
    return f"<to {language}>"


def tag_mark(tag: str) -> str:
    """Return the piece of a tag."""
    return f"<tag {tag}>"


def pieces_of(marks: MarksSection) -> list[str]:
    """Return the pieces of marks."""
    made = [MADE] if marks.made else []
    return [*map(language_mark, marks.languages), *made, *map(tag_mark, marks.tags)]


def marks_among(pieces: Iterable[str]) -> MarksSection:
    """Return the marks that the pieces of a tokenizer's marks are."""
    known = list(pieces)
    return MarksSection(
        languages=_named(_LANGUAGE, known),
        made=MADE in known,
        tags=_named(_TAG, known),
    )


def marks_needed(text: ParallelText) -> MarksSection:
    """Return the marks that tell the rows of a text apart."""
    languages: dict[str, None] = {}
    if len(text.directions) > 1:
        languages = dict.fromkeys(tgt for _, tgt in text.directions)
    tags = dict.fromkeys(worth.tag for worth in text.worths if worth.tag)
    made = any(worth.made for worth in text.worths)
    return MarksSection(languages=tuple(languages), made=made, tags=tuple(tags))


def with_marks(
    tokenizers: tuple[Tokenizer, Tokenizer], marks: MarksSection
) -> tuple[Tokenizer, Tokenizer]:
    """Return both tokenizers, marks that the source's lacks behind its own pieces; one that both
    sides share stays one.
    """
    src, tgt = tokenizers
    lacking = [piece for piece in pieces_of(marks) if piece not in src.marks]
    if not lacking:
        return src, tgt
    marked = src.with_marks(lacking)
    return marked, marked if tgt is src else tgt


@dataclass
class Marking:
    """Marks for the rows of a text: those of the file that each is from. The language to write is
    among them where the tokenizer has a mark for it.

    Of the rows of a text with a tag the share `UNTAGGED` has none, drawn by the seed.
    """

    text: ParallelText
    tokenizer: Tokenizer
    seed: int

    @property
    def key(self) -> list[Any]:
        """Return what the marks follow from, beside the text and the tokenizer."""
        worths = [[worth.tag, worth.made] for worth in self.text.worths]
        pairs = [*map(list, self.text.pairs), self.text.tgt_lang]
        return [_VERSION, UNTAGGED, self.seed, worths, pairs, self._runs]

    def write(self, rows: Ids, src: Sequence[Ids]) -> list[Ids]:
        """Return the source ids of pairs with their marks; `rows` are their numbers in the text."""
        return [[*self.of(row), *ids] for row, ids in zip(rows, src, strict=True)]

    def of(self, row: int) -> tuple[int, ...]:
        """Return the ids of a row's marks."""
        with_tag, without = self._of_files[self.text.file_of[row]]
        if with_tag == without or self._drawn[row] >= UNTAGGED:
            return with_tag
        return without

    @cached_property
    def _of_files(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return the ids of the marks of each file's rows, with the tag and without."""
        found = []
        for file in range(len(self.text.files)):
            worth = self.text.worth_of(file)
            language = language_mark(self.text.direction_of(file)[1])
            pieces = [language] if language in self.tokenizer.marks else []
            if worth.made:
                pieces.append(MADE)
            tag = [] if worth.tag is None else [tag_mark(worth.tag)]
            without = tuple(map(self.tokenizer.mark_id, pieces))
            of_tag = tuple(map(self.tokenizer.mark_id, tag))
            found.append(((*without, *of_tag), without))
        return found

    @cached_property
    def _drawn(self) -> NDArray[np.float64]:
        rng = np.random.default_rng([self.seed, _FOR_TAGS])
        return rng.random(len(self.text))

    @property
    def _runs(self) -> list[int]:
        """Return how many rows each file has."""
        return np.bincount(self.text.file_of).tolist()


def _named(pattern: re.Pattern[str], pieces: Iterable[str]) -> tuple[str, ...]:
    found = map(pattern.fullmatch, pieces)
    return tuple(match[1] for match in found if match)
