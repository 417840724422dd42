"""The files that arguments name: one that is missing, and one that stands where a text does."""

import os
from collections.abc import Iterable
from pathlib import Path

from weft.console.wording import remark
from weft.errors import DataError, UsageError

_MOST_CHARS = 255  # of a file's name
# types of file that are read as no text; the names of most of them are no words
_CLOSED = ("rtf", "pdf", "office", "sheet")


def refuse_missing(path: Path, option: str = "") -> None:
    """Raise UsageError for a path, the value of an option, where no file is."""
    if not path.is_file():
        said = f"{option} {path}".strip()
        raise UsageError(f"{said}: {why_missing(path)}")


def why_missing(path: Path, remedy: str = "") -> str:
    """Say why there is no file at a path, with a remedy, and which files have a similar name."""
    from weft.data.formats.source import near_names

    if os.path.isdir(path):
        return "is a folder; name a file in it"
    if os.path.exists(path):
        return "is no file; give it as standard input"
    return f"no such file{remedy}{near_names(path)}"


def refuse_files_as_texts(texts: Iterable[str]) -> None:
    """Raise UsageError for texts that are names of files, by their ending; DataError, as --input
    does, for a file that is read as no text. Remark on any other text that a file has as its name.
    """
    for text in texts:
        is_there = os.path.isfile(text)
        if _looks_like_name(text):
            said = f"{text}: {_about(Path(text), is_there)}"
            is_unread = is_there and _is_closed(Path(text))
            raise DataError(said) if is_unread else UsageError(said)
        if is_there:
            remark(f"weft: {text} is taken as a text; --input {text} reads the file")


def _looks_like_name(text: str) -> bool:
    """Return whether a text is one word with the ending of a document, a table or the like: `e.g.`
    and `node.js` are not.
    """
    ending = os.path.splitext(text)[1].lower()
    is_word = len(text.split()) == 1 and len(os.path.basename(text)) <= _MOST_CHARS
    return bool(ending) and is_word and "://" not in text and ending in _endings()


def _endings() -> set[str]:
    from weft.data.formats.registry import FILE_TYPES
    from weft.documents.registry import FORMATS

    found = {ending for row in FORMATS.values() for ending in row.endings}
    for name in _CLOSED:
        found |= {f".{ending}" for ending in FILE_TYPES[name].endings}
    return found


def _is_closed(path: Path) -> bool:
    from weft.data.formats.filetype import type_of_name

    kind = type_of_name(path)
    return kind is not None and kind.name in _CLOSED


def _about(path: Path, is_there: bool) -> str:
    """Say what to do with a file that is given as a text."""
    from weft.data.formats.filetype import better_first, type_of_name

    if not is_there:
        return why_missing(path, " (as a text, give it by standard input)")
    kind = type_of_name(path)
    if kind is not None and kind.name in _CLOSED:
        return f"is {kind.words}; {better_first(kind, path)}"
    return f"is a file; --input {path} reads it (as a text, give it by standard input)"
