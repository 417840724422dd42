"""A text as the rows that a model reads: one where it fits, else several that end where sentences end."""

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
    """The rows that one text becomes; `cut` where some of the text did not fit."""

    rows: list[Row]
    cut: bool


def plan_rows(
    texts: Sequence[str], tokenizer: Tokenizer, max_len: int, usual_len: int, prefix: tuple[int, ...] = ()
) -> dict[str, Plan]:
    """The rows of each text, each of at most `max_len` ids; none, where there is nothing to translate.

    What is longer than the usual is one row for as many of its sentences as make no more than that. The first of
    them is translated with the prefix.
    """
    lines = [one_line(text) for text in texts]
    encoded = tokenizer.encode_batch(lines)
    return {
        text: Plan([Row((*ids, EOS_ID), prefix)] if line and ids else [], cut=False)
        if len(ids) < usual_len
        else _plan_long(text, tokenizer, max_len - 1, usual_len - 1, prefix)
        for text, line, ids in zip(texts, lines, encoded, strict=True)
    }


def joiner(language: str) -> str:
    """What stands between two sentences of a language (BCP-47)."""
    return "" if re.split("[-_]", language.lower())[0] in _SPACELESS else " "


def _plan_long(text: str, tokenizer: Tokenizer, room: int, usual: int, prefix: tuple[int, ...]) -> Plan:
    """Pack whole sentences into rows of a usual length; one that alone is longer than there is room is cut."""
    sentences = split_sentences(LINE_BREAKS.sub("\n", text))
    encoded = tokenizer.encode_batch([LINE_BREAKS.sub(" ", sentence) for sentence in sentences])
    rows = [
        _encode_pack([sentences[i] for i in pack], [encoded[i] for i in pack], tokenizer, room)
        for pack in _packs([len(ids) for ids in encoded], usual)
    ]
    whole = [Row((*ids[:room], EOS_ID)) for ids in rows if ids]
    if whole:
        whole[0] = replace(whole[0], prefix=prefix)
    return Plan(whole, cut=any(len(ids) > room for ids in rows))


def _encode_pack(sentences: list[str], encoded: list[list[int]], tokenizer: Tokenizer, room: int) -> list[int]:
    """The sentences as one line; if that should need more ids than one by one, their own ids in a row."""
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
