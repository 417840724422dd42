"""A text as the rows that a model reads: a row a sentence, or as many sentences as fit, as it has
learned.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from weft.data.segment import split_sentences
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.predict.text import LINE_BREAKS, one_line

# Languages that put no space between sentences.
_SPACELESS = {"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my"}


@dataclass(frozen=True)
class Row:
    """Source ids, eos at their end, and what their translation begins with."""

    ids: tuple[int, ...]
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowLengths:
    """The lengths of source rows, in ids with eos.

    A row has at most `limit`. A text of more than `usual` is read in rows of no more where its
    sentences allow; `by_sentence`, each sentence is a row of its own.
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
    """The rows that one text becomes; `cut` where some of the text did not fit.

    `before` is the white space of the text before each row: the indent before the first.
    """

    rows: list[Row]
    cut: bool
    before: tuple[str, ...] = ()

    def join(self, texts: Sequence[str], language: str) -> str:
        """Return the translations of the rows as one text of a language; those that are empty leave
        no gap.
        """
        joined = ""
        for white, text in zip(self.before, texts, strict=True):
            if joined and text:
                joined += self.gap(white, language)
            joined += text
        return self.indent + joined if joined else ""

    @property
    def indent(self) -> str:
        """Return the white space before the text; a line break is none."""
        first = self.before[0] if self.before else ""
        return "" if LINE_BREAKS.search(first) else first

    @staticmethod
    def gap(white: str, language: str) -> str:
        """Return what stands between two sentences in place of `white`: wide white space as it is,
        else what the language has there.
        """
        is_wide = white not in ("", " ") and not LINE_BREAKS.search(white)
        return white if is_wide else joiner(language)


def plan_rows(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    lengths: RowLengths,
    prefix: tuple[int, ...] = (),
) -> dict[str, Plan]:
    """Return the rows of each text; none, where there is nothing to translate.

    What is longer than the usual is one row for as many of its sentences as make no more than that.
    The first row is translated with the prefix.
    """
    lines = [one_line(text) for text in texts]
    encoded = tokenizer.encode_batch(lines)
    by_sentence = lengths.by_sentence
    room = lengths.limit - 1
    usual = 0 if by_sentence else lengths.usual - 1
    plans: dict[str, Plan] = {}
    for text, line, ids in zip(texts, lines, encoded, strict=True):
        is_several = by_sentence and len(split_sentences(line)) > 1
        if len(ids) >= lengths.usual or is_several:
            plans[text] = _plan_sentences(text, tokenizer, room, usual, prefix)
        elif line and ids:
            rows = [Row((*ids, EOS_ID), prefix)]
            plans[text] = Plan(rows, cut=False, before=(_indent(text),))
        else:
            plans[text] = Plan([], cut=False)
    return plans


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def joiner(language: str) -> str:
    """Return what stands between two sentences of a language (BCP-47)."""
    return "" if re.split("[-_]", language.lower())[0] in _SPACELESS else " "


def _plan_sentences(
    text: str, tokenizer: Tokenizer, room: int, usual: int, prefix: tuple[int, ...]
) -> Plan:
    """Pack whole sentences into rows of a usual length; one that alone is longer than there is room
    is cut.
    """
    sentences = split_sentences(LINE_BREAKS.sub("\n", text))
    lines = [LINE_BREAKS.sub(" ", sentence) for sentence in sentences]
    encoded = tokenizer.encode_batch(lines)
    rows: list[Row] = []
    gaps: list[str] = []
    is_cut = False
    for pack in _packs([len(ids) for ids in encoded], usual):
        together = [sentences[i] for i in pack]
        ids = _encode_pack(together, [encoded[i] for i in pack], tokenizer, room)
        if not ids:
            continue
        is_cut = is_cut or len(ids) > room
        rows.append(Row((*ids[:room], EOS_ID)))
        gaps.append(_white_before(sentences, pack[0]))
    if rows:
        rows[0] = replace(rows[0], prefix=prefix)
    return Plan(rows, is_cut, tuple(gaps))


def _white_before(sentences: list[str], number: int) -> str:
    """Return the white space before a sentence: its own at the text's beginning, else what ends the
    sentence before.
    """
    if number == 0:
        return _indent(sentences[0])
    before = sentences[number - 1]
    return before[len(before.rstrip()) :]


def _encode_pack(
    sentences: list[str], encoded: list[list[int]], tokenizer: Tokenizer, room: int
) -> list[int]:
    """Return the sentences as one line; if that should need more ids than one by one, their own ids
    in a row.
    """
    together = tokenizer.encode(one_line("".join(sentences)))
    return together if len(together) <= room else list(chain.from_iterable(encoded))


def _packs(lengths: list[int], room: int) -> list[list[int]]:
    """Group neighbours by their numbers: as many as fit into `room`, and never less than one."""
    packs: list[list[int]] = []
    filled = room
    for i, length in enumerate(lengths):
        if filled + length > room or not packs:
            packs.append([])
            filled = 0
        packs[-1].append(i)
        filled += length
    return packs
