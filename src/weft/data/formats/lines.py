"""Lines of strict UTF-8 text. Only LF and CR LF end a line: not CR alone, U+0085, U+2028, VT or
FF.
"""

import codecs
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from weft.data.formats.encoding import remedy, saving
from weft.data.formats.row import EMPTY_LINE
from weft.data.formats.source import read_chunks
from weft.errors import DataError

MAX_LINE_CHARS = 1_000_000


def read_lines_within(path: Path, keeps_cr: bool = False) -> Iterator[str | None]:
    """Yield each line without its end; None stands for one longer than MAX_LINE_CHARS, which is
    never held whole.

    A final line end opens no further line. With `keeps_cr` a line that CR LF ends keeps its CR.
    Raises DataError with the byte offset (from 0) where the text is not UTF-8.
    """
    # the beginning of a line whose end has not been read yet
    held = ""
    skipping = False
    for text in read_text(path):
        pieces = (held + text).split("\n")
        held = pieces.pop()
        for piece in pieces:
            if skipping or len(piece) > MAX_LINE_CHARS:
                skipping = False
                yield None
            else:
                yield piece if keeps_cr else piece.removesuffix("\r")
        if skipping or len(held) > MAX_LINE_CHARS:
            held = ""
            skipping = True
    if skipping:
        yield None
    elif held:
        yield held


def filled_lines(
    path: Path, dropped: Counter[str] | None = None
) -> Iterator[tuple[int, str | None]]:
    """Yield the numbers, from 1, and text of the lines that hold more than white space.

    None stands for a line that is too long, which the caller counts (TOO_LONG). Blank lines are
    counted in `dropped` as EMPTY_LINE; a format in which they only separate entries passes no
    counter.
    """
    for number, line in enumerate(read_lines_within(path), start=1):
        if line is not None and (not line or line.isspace()):
            if dropped is not None:
                dropped[EMPTY_LINE] += 1
        else:
            yield number, line


def read_lines(path: Path | str) -> Iterator[str]:
    """Yield each line of a plain or gzip file without its end, otherwise untouched; a byte-order
    mark is dropped.

    Raises DataError where the text is not UTF-8, holds NUL, or a line is longer than
    MAX_LINE_CHARS.
    """
    for number, line in enumerate(read_lines_within(Path(path)), start=1):
        if line is None:
            raise DataError(
                f"{path}:{number}: longer than {MAX_LINE_CHARS:,} characters; break it up"
            )
        yield line


def read_text(path: Path) -> Iterator[str]:
    """Yield the text in pieces that end anywhere, with its line ends as they are; a byte-order mark
    is dropped.

    Raises DataError with line and byte offset where it is not UTF-8 or holds NUL.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset, lines = 0, 1  # of the first byte of the chunk
    for number, chunk in enumerate(read_chunks(path)):
        if number == 0:
            _refuse_wide_encoding(chunk, path)
            if chunk.startswith(codecs.BOM_UTF8):
                offset, chunk = len(codecs.BOM_UTF8), chunk[len(codecs.BOM_UTF8) :]  # noqa: PLW2901
        data = decoder.getstate()[0] + chunk
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise _not_utf8(
                path, data, error.start, offset + len(chunk) - len(data), lines
            ) from None
        if "\0" in text:
            raise _holds_nul(path, data, offset + len(chunk) - len(data), lines)
        yield text
        offset, lines = offset + len(chunk), lines + chunk.count(b"\n")
    pending = decoder.getstate()[0]
    if pending:
        raise _not_utf8(path, pending, 0, offset - len(pending), lines)


def _refuse_wide_encoding(head: bytes, path: Path) -> None:
    """Refuse UTF-16 and UTF-32, which show by their byte-order mark, or by NUL in every other
    byte.
    """
    marks = (
        codecs.BOM_UTF32_LE,
        codecs.BOM_UTF32_BE,
        codecs.BOM_UTF16_LE,
        codecs.BOM_UTF16_BE,
    )
    mark = next((m for m in marks if head.startswith(m)), None)
    sample = head[:4096]
    zeros = max(sample[0::2].count(0), sample[1::2].count(0))
    if mark or (
        len(sample) >= 4
        and zeros > 0.4 * (len(sample) // 2)
        and sample[:4].count(0) >= 1
    ):
        bits = 32 if mark and len(mark) == 4 else 16
        first = 0 if mark else sample.index(0)
        raise DataError(
            f"{path}:1: looks like UTF-{bits}, not UTF-8, at the text's byte {first}; "
            f"{saving(path, f'UTF-{bits}')}"
        )


def _not_utf8(path: Path, data: bytes, start: int, offset: int, line: int) -> DataError:
    line += data.count(b"\n", 0, start)
    return DataError(
        f"{path}:{line}: not UTF-8 at the text's byte {offset + start} (0x{data[start]:02X}); {remedy(path, data)}"
    )


def _holds_nul(path: Path, data: bytes, offset: int, line: int) -> DataError:
    start = data.index(0)
    line += data.count(b"\n", 0, start)
    return DataError(
        f"{path}:{line}: NUL at the text's byte {offset + start}; is this a binary file? Give UTF-8 text"
    )
