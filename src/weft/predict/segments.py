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
        whole = ""
        for gap, text in zip(self.before, texts, strict=True):
            if text:
                whole += (self.gap(gap, language) if whole else "") + text
        return self.indent + whole if whole else ""

    @property
    def indent(self) -> str:
        """White space before the text; a line break is none."""
        first = self.before[0] if self.before else ""
        return "" if LINE_BREAKS.search(first) else first

    @staticmethod
    def gap(white: str, language: str) -> str:
        """Between two sentences: wide white space stays; else it is as the language has it."""
        return (
            joiner(language)
            if white in ("", " ") or LINE_BREAKS.search(white)
            else white
        )


def plan_rows(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    max_len: int,
    usual_len: int,
    prefix: tuple[int, ...] = (),
    by_sentence: bool = False,
) -> dict[str, Plan]:
    """Return the rows of each text, each of at most `max_len` ids; none, where there is nothing to
    translate.

    What is longer than the usual is one row for as many of its sentences as make no more than that;
    `by_sentence`, every sentence is a row of its own. The first of them is translated with the
    prefix.
    """
    lines = [one_line(text) for text in texts]
    encoded = tokenizer.encode_batch(lines)
    usual = 0 if by_sentence else usual_len - 1
    return {
        text: Plan(
            *_whole(line, ids, prefix), before=(_indent(text),) if line and ids else ()
        )
        if len(ids) < usual_len and not (by_sentence and len(split_sentences(line)) > 1)
        else _plan_sentences(text, tokenizer, max_len - 1, usual, prefix)
        for text, line, ids in zip(texts, lines, encoded, strict=True)
    }


def _whole(
    line: str, ids: list[int], prefix: tuple[int, ...]
) -> tuple[list[Row], bool]:
    """One row, or none where there is nothing; nothing is cut."""
    return [Row((*ids, EOS_ID), prefix)] if line and ids else [], False


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def joiner(language: str) -> str:
    """What stands between two sentences of a language (BCP-47)."""
    return "" if re.split("[-_]", language.lower())[0] in _SPACELESS else " "


def _plan_sentences(
    text: str, tokenizer: Tokenizer, room: int, usual: int, prefix: tuple[int, ...]
) -> Plan:
    """Pack whole sentences into rows of a usual length; one that alone is longer than there is room
    is cut.
    """
    sentences = split_sentences(LINE_BREAKS.sub("\n", text))
    encoded = tokenizer.encode_batch(
        [LINE_BREAKS.sub(" ", sentence) for sentence in sentences]
    )
    packs = _packs([len(ids) for ids in encoded], usual)
    rows = [
        _encode_pack(
            [sentences[i] for i in pack], [encoded[i] for i in pack], tokenizer, room
        )
        for pack in packs
    ]
    whole = [Row((*ids[:room], EOS_ID)) for ids in rows if ids]
    if whole:
        whole[0] = replace(whole[0], prefix=prefix)
    gaps = [
        _white_before(sentences, pack[0])
        for pack, ids in zip(packs, rows, strict=True)
        if ids
    ]
    return Plan(whole, any(len(ids) > room for ids in rows), tuple(gaps))


def _white_before(sentences: list[str], number: int) -> str:
    """White space before a sentence: its own at the text's beginning, else what stands behind the
    one before.
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
    """Which neighbours stand together: as many as fit into `room`, and never less than one."""
    packs: list[list[int]] = []
    filled = room
    for i, length in enumerate(lengths):
        if filled + length > room or not packs:
            packs.append([])
            filled = 0
        packs[-1].append(i)
        filled += length
    return packs
