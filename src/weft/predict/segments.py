"""The division of a text into the rows that a model reads.

A row has one sentence or as many as fit, whichever the model has learned from.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from weft.data.hints import Hints
from weft.data.segment import split_sentences
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.forms import Terms
from weft.predict.memory_use import MemoryUse
from weft.predict.terms import RowTerms
from weft.predict.text import LINE_BREAKS, one_line

# Languages that put no space between sentences.
_SPACELESS = {"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my"}

NO_HINTS = Hints()


@dataclass(frozen=True)
class SourceRow:
    """Source ids, eos at their end, what their translation begins with, the terms that it has, and
    the runs of tokens that it has not.

    All places count the tokens of `ids`; the model reads them with the `hints` in them, and the ids
    of `marks` before them (`weft.data.marks`). `found` are the glossary's terms in its line, by
    which the search is not yet bound. Where a translation is `given`, nothing is searched.
    """

    ids: tuple[int, ...]
    prefix: tuple[int, ...] = ()
    terms: Terms | None = None
    avoided: tuple[tuple[int, ...], ...] = ()
    hints: Hints = NO_HINTS
    found: RowTerms | None = None
    given: str | None = None
    marks: tuple[int, ...] = ()

    @property
    def read(self) -> tuple[int, ...]:
        """Return the ids that the model reads."""
        if not self.hints:
            return (*self.marks, *self.ids)
        return (*self.marks, *self.hints.write(self.ids[:-1]), self.ids[-1])

    def plain(self, support: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the tokens that the model reads support (T, H), by the row's own (T, S).

        That of a mark is nobody's.
        """
        unmarked = support[:, len(self.marks) :]
        return self.hints.fold(unmarked) if self.hints else unmarked

    @property
    def terms_read(self) -> Terms | None:
        """Return the terms, each bound to the tokens that the model reads in the place of its
        source.
        """
        if self.terms is None or not (self.hints or self.marks):
            return self.terms
        return self.terms.moved(self._span_read)

    def _span_read(self, begin: int, end: int) -> tuple[int, int]:
        """Return the tokens that the model reads for some of the row's own."""
        first, last = self.hints.span(begin, end)
        before = len(self.marks)
        return before + first, before + last

    def bound(
        self,
        rivals: Iterable[tuple[int, ...]] = (),
        numbers: Collection[int] | None = None,
    ) -> "SourceRow":
        """Return the row with the terms that were found, or those of some `numbers`, and without
        the words to avoid and these `rivals`.
        """
        if self.found is None or not self.found.finder.binds:
            return self
        terms = self.found.needed
        if numbers is not None:
            terms = self.found.needed_of(numbers)
        avoided = dict.fromkeys((*self.found.avoided, *rivals))
        return replace(self, terms=terms, avoided=tuple(avoided))


@dataclass(frozen=True)
class RowLengths:
    """The lengths of source rows, in ids with eos.

    No row has more than `limit`. A text of more than `usual` is divided where sentences end, into
    rows of at most `usual`; a longer sentence is a row of its own. With `by_sentence`, every
    sentence is.
    """

    limit: int
    usual: int
    by_sentence: bool = False

    def within(self, other: "RowLengths") -> "RowLengths":
        """Return these lengths, none greater than the other's."""
        limit = min(self.limit, other.limit)
        usual = min(self.usual, other.usual, limit)
        return RowLengths(limit, usual, self.by_sentence)


@dataclass(frozen=True)
class Plan:
    """The rows that one text becomes; `cut` says that the end of a sentence did not fit.

    `before` is the white space of the text before each row: the indent before the first. `texts`
    are the rows' own, each a single line; `starts` are where they begin in the text, the white
    space before them at most. `memory` are the units of a memory that are taken or near; None
    without a memory.
    """

    rows: list[SourceRow]
    cut: bool
    before: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    memory: tuple[MemoryUse, ...] | None = None

    @property
    def searched(self) -> str:
        """Return the lines of the rows that are searched."""
        rows = zip(self.rows, self.texts, strict=True)
        return " ".join(line for row, line in rows if row.given is None)

    def join(self, texts: Sequence[str], language: str) -> str:
        """Join the translations of the rows to one text of a language.

        An empty one leaves no gap.
        """
        joined = ""
        for white, text in zip(self.before, texts, strict=True):
            if joined and text:
                joined += self.gap(white, language)
            joined += text
        return self.indent + joined if joined else ""

    @property
    def bound(self) -> "Plan":
        """Return the plan with rows that are bound by their terms from the first search on."""
        return replace(self, rows=[row.bound() for row in self.rows])

    @property
    def indent(self) -> str:
        """Return the white space before the text; nothing where it has a line break."""
        first = self.before[0] if self.before else ""
        return "" if LINE_BREAKS.search(first) else first

    @staticmethod
    def gap(white: str, language: str) -> str:
        """Return what separates two translated sentences whose sources `white` separates.

        A single space or a line break becomes what the language has between sentences; so does
        nothing. Any other white space stays as it is.
        """
        is_wide = white not in ("", " ") and not LINE_BREAKS.search(white)
        return white if is_wide else joiner(language)


def plan_rows(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    lengths: RowLengths,
    language: str,
    prefix: tuple[int, ...] = (),
) -> dict[str, Plan]:
    """Return the rows of each text of a language (BCP-47); none, where there is nothing to
    translate.

    A text that is longer than usual is divided into rows of whole sentences. The translation of the
    first row begins with the prefix.
    """
    lines = [one_line(text) for text in texts]
    encoded = tokenizer.encode_batch(lines)
    by_sentence = lengths.by_sentence
    # these two count ids without eos
    most_ids = lengths.limit - 1
    usual_ids = 0 if by_sentence else lengths.usual - 1
    plans: dict[str, Plan] = {}
    for text, line, ids in zip(texts, lines, encoded, strict=True):
        is_long = len(ids) + 1 > lengths.usual  # with eos
        sentences: list[str] = []
        if is_long or by_sentence:
            sentences = split_sentences(text, language)
        if is_long or len(sentences) > 1:
            plan = _plan_sentences(sentences, tokenizer, most_ids, usual_ids, prefix)
            plans[text] = plan
        elif line and ids:
            rows = [SourceRow((*ids, EOS_ID), prefix)]
            plans[text] = Plan(rows, False, (indent(text),), (line,), (0,))
        else:
            plans[text] = Plan([], cut=False)
    return plans


def indent(text: str) -> str:
    """Return the white space that a text begins with."""
    return text[: len(text) - len(text.lstrip())]


def joiner(language: str) -> str:
    """Return what stands between two sentences of a language (BCP-47)."""
    return "" if re.split("[-_]", language.lower())[0] in _SPACELESS else " "


def _plan_sentences(
    sentences: list[str],
    tokenizer: Tokenizer,
    most_ids: int,
    usual_ids: int,
    prefix: tuple[int, ...],
) -> Plan:
    """Pack whole sentences into rows of at most `usual_ids`; cut one of more than `most_ids`.

    Both count ids without eos.
    """
    lines = [LINE_BREAKS.sub(" ", sentence) for sentence in sentences]
    encoded = tokenizer.encode_batch(lines)
    rows: list[SourceRow] = []
    gaps: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    begins = [0, *accumulate(map(len, sentences))]
    is_cut = False
    for pack in _packs([len(ids) for ids in encoded], usual_ids):
        together = one_line("".join(sentences[i] for i in pack))
        ids = _encode_pack(together, [encoded[i] for i in pack], tokenizer, most_ids)
        if not ids:
            continue
        is_cut = is_cut or len(ids) > most_ids
        rows.append(SourceRow((*ids[:most_ids], EOS_ID)))
        gaps.append(white_before(sentences, pack[0]))
        texts.append(together)
        starts.append(begins[pack[0]])
    if rows:
        rows[0] = replace(rows[0], prefix=prefix)
    return Plan(rows, is_cut, tuple(gaps), tuple(texts), tuple(starts))


def white_before(sentences: list[str], number: int) -> str:
    """Return the white space before a sentence.

    The first sentence begins with it; before any other it is at the end of the sentence before.
    """
    if number == 0:
        return indent(sentences[0])
    before = sentences[number - 1]
    return before[len(before.rstrip()) :]


def _encode_pack(
    line: str, encoded: list[list[int]], tokenizer: Tokenizer, most_ids: int
) -> list[int]:
    """Encode the line that some sentences are together.

    Where that has more than `most_ids`, return the ids of the single sentences one after the other.
    """
    together = tokenizer.encode(line)
    return together if len(together) <= most_ids else list(chain.from_iterable(encoded))


def _packs(lengths: list[int], room: int) -> list[list[int]]:
    """Group neighbouring sentences of these lengths: as many as fit into `room`, at least one.

    Return the sentences' numbers.
    """
    packs: list[list[int]] = []
    filled = room
    for i, length in enumerate(lengths):
        if filled + length > room or not packs:
            packs.append([])
            filled = 0
        packs[-1].append(i)
        filled += length
    return packs
