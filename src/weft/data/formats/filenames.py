"""The languages that a file's name says: `train.en`, `pairs.en-zh.tsv`."""

import re

from weft.data import languages
from weft.data.formats.registry import FILE_TYPES

_ONE = r"[a-z]{2,3}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))*"
_NAMED = re.compile(_ONE)
_NAMED_PAIR = re.compile(rf"(?:.*[._-])?({_ONE})[-_]({_ONE})")
# of packed files and of plain text, which is no file type
_PLAIN_ENDINGS = {"gz", "txt", "tab", "tok", "raw"}


def from_name(name: str) -> str | None:
    """Return the language that a file name ends in: `en` of `train.en`, `train.en.gz` and
    `en.txt`.
    """
    parts = _stem_parts(name)
    return languages.known(parts[-1]) if parts and _NAMED.fullmatch(parts[-1]) else None


def pair_from_name(name: str) -> tuple[str, str] | None:
    """Return the two languages that a file name ends in: `en`, `zh` of `pairs.en-zh.tsv` and
    `en_zh.tmx`.
    """
    match = _NAMED_PAIR.fullmatch(".".join(_stem_parts(name)))
    if not match:
        return None
    src = languages.known(match[1])
    tgt = languages.known(match[2])
    return (src, tgt) if src and tgt else None


def _stem_parts(name: str) -> list[str]:
    """Split a name at its dots, without the endings that say how the file is written."""
    endings = _PLAIN_ENDINGS.copy()
    for kind in FILE_TYPES.values():
        endings.update(kind.endings)
    parts = name.split(".")
    while parts and parts[-1].lower() in endings:
        parts.pop()
    return parts
