"""The formats of documents: a row says all that a command or a server needs to know of one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from weft.documents.document import FileDocument, TextDocument
from weft.documents.html import in_language, open_html, read_html
from weft.documents.plain import open_plain, read_plain
from weft.errors import UsageError


def _as_it_is(document: FileDocument, code: str) -> FileDocument:
    return document


@dataclass(frozen=True)
class Format:
    """A format of documents.

    `endings` are those of file names, with the dot. `open` reads a file from its bytes and the name
    that messages give it, `read` text. `in_language` makes a file say that it is in a language.
    """

    name: str
    endings: tuple[str, ...]
    open: Callable[[bytes, str], FileDocument]
    read: Callable[[str], TextDocument]
    in_language: Callable[[FileDocument, str], FileDocument] = _as_it_is


FORMATS = {
    row.name: row
    for row in (
        Format("text", (".txt",), open_plain, read_plain),
        Format("html", (".html", ".htm"), open_html, read_html, in_language),
    )
}


def endings() -> list[str]:
    """List the endings of all files that can be opened."""
    return [ending for row in FORMATS.values() for ending in row.endings]


def format_of(name: str) -> Format:
    """Return the format that a file's name says; raises UsageError for any other ending."""
    ending = PurePath(name).suffix.lower()
    for row in FORMATS.values():
        if ending in row.endings:
            return row
    listed = ", ".join(endings())
    raise UsageError(f"{name}: documents have one of the endings {listed}")
