"""The languages that a file's name says: `train.en`, `pairs.en-zh.tsv`."""

import re

from weft.data import languages
from weft.data.formats.filetype import split_ending
from weft.data.formats.registry import FILE_TYPES

_ONE = r"[a-z]{2,3}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))*"
_NAMED = re.compile(_ONE)
_NAMED_PAIR = re.compile(rf"(?:.*[._-])?({_ONE})[-_]({_ONE})")
# of packed files and of plain text, which is no file type
_PLAIN_ENDINGS = {"gz", "txt", "tab", "tok", "raw"}
_RARE = re.compile("[a-z]{3}")
# endings that say what else a file is, though some are codes of ISO 639-3
_NO_CODES = """
all aug bak bpe cor dat dev err fix hyp lem log low new old out pos ref spm src sys tag tgt tmp trg
trn tst val
"""


def from_name(name: str) -> str | None:
    """Return the language that a file name ends in: `en` of `train.en`, `train.en.gz` and
    `en.txt`.
    """
    last = _stem_parts(name)[-1]
    return languages.known(last) if _NAMED.fullmatch(last) else None


def from_two_names(src: str, tgt: str) -> tuple[str | None, str | None]:
    """Return the languages that the names of two aligned files end in.

    Beside a language that is known any code of three letters is one (`kos` of `train.en` and
    `train.kos`), but not what says that a file is something else (`src`).
    """
    src_lang, tgt_lang = from_name(src), from_name(tgt)
    if src_lang and not tgt_lang:
        tgt_lang = _rare_code(tgt, beside=src)
    elif tgt_lang and not src_lang:
        src_lang = _rare_code(src, beside=tgt)
    return src_lang, tgt_lang


def _rare_code(name: str, beside: str) -> str | None:
    """Return the code of three letters that a name ends in, or is where the other is a code."""
    *stem, last = _stem_parts(name)
    *other_stem, _ = _stem_parts(beside)
    is_ending = bool(stem) or not other_stem
    is_code = _RARE.fullmatch(last) is not None and last not in _NO_CODES.split()
    return last if is_ending and is_code else None


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
    """Split a name at its dots, without the endings that say how the file is written; [""] where
    nothing else is in it.
    """
    endings = _PLAIN_ENDINGS.copy()
    for kind in FILE_TYPES.values():
        endings.update(kind.endings)
    # with a dot in front, as a name may be an ending alone
    stem, ending = split_ending(f".{name}")
    while ending.lower() in endings:
        stem, ending = split_ending(stem)
    return f"{stem}.{ending}".split(".")[1:]
