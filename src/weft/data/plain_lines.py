"""The lines of plain text as the verbs take them: one text each, also a blank one."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from weft.data.formats.encoding import remedy
from weft.errors import DataError

BOM = b"\xef\xbb\xbf"


def lines(source: BinaryIO, path: Path | None) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, which end in LF or CRLF. Raises DataError at one that is not UTF-8."""
    offset = 0  # of the line's first byte, as the readers of training text count
    for number, raw in enumerate(source, start=1):
        try:
            yield number, content_of(raw, number == 1).decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"{path or 'standard input'}:{number}"
            what = remedy(path, _all_of(source) or raw)
            raise DataError(
                f"{where}: not UTF-8 at the text's byte {offset + error.start}; {what}"
            ) from None
        offset += len(raw)


def content_of(raw: bytes, is_first: bool) -> bytes:
    """Return a line without its end, and the first of a text without its byte order mark."""
    content = raw.removesuffix(b"\n").removesuffix(b"\r")
    return content.removeprefix(BOM) if is_first else content


def _all_of(source: BinaryIO) -> bytes:
    """Return the beginning of the input; nothing where it cannot be read again."""
    if not source.seekable():
        return b""
    source.seek(0)
    return source.read(2**20)
