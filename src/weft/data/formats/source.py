"""The bytes of a data file, plain or gzip, in pieces of bounded size; archives and bombs are
refused.

Nothing is ever extracted to disk: an archive is named and left alone, gzip is unpacked piece by
piece.
"""

import difflib
import gzip
import os
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from weft.errors import DataError

CHUNK_BYTES = 1 << 20
MAX_UNPACKED_BYTES = 8 << 30
# unpacked over packed; text seldom passes 10, DEFLATE cannot pass 1,032
MAX_RATIO = 200
RATIO_FREE_BYTES = 64 << 20  # the ratio says nothing about small files

_GZIP = b"\x1f\x8b"
_SIGNATURES = (
    (b"PK\x03\x04", "a zip archive (or an office document)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\xfd7zXZ\x00", "packed with xz"),
    (b"\x28\xb5\x2f\xfd", "packed with Zstandard"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (_GZIP, "packed with gzip twice"),
)


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the content in pieces of at most CHUNK_BYTES; gzip is known by its content, not by its
    name.

    Raises DataError for a file that is missing, unreadable, an archive, damaged, or a decompression
    bomb.
    """
    with open_file(path) as raw:
        chunks = _unpack(raw, path) if raw.peek(2)[:2] == _GZIP else _pieces(raw)
        try:
            for number, chunk in enumerate(chunks):
                if number == 0:
                    _refuse_archive(chunk, path)
                yield chunk
        except EOFError:
            raise DataError(
                f"{path}: the gzip file is truncated; copy it again"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{path}: the gzip file is damaged ({error}); copy it again"
            ) from None
        except OSError as error:
            raise DataError(
                f"{path}: reading failed: {error.strerror or error}"
            ) from None


def read_head(path: Path, size: int = 4096) -> bytes:
    """Return the first bytes of the content, unpacked; empty for an empty file. Raises as
    `read_chunks` does.
    """
    chunks = read_chunks(path)
    try:
        return next(chunks, b"")[:size]
    finally:
        chunks.close()  # type: ignore[attr-defined]


def open_file(path: Path) -> BufferedReader:
    """Open for reading bytes; a missing file's message names near matches in its folder."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        if len(parts := str(path).split(",")) == 2 and all(map(os.path.isfile, parts)):
            raise DataError(
                f"{path}: two files joined by a comma are pairs, for translation; here name each by itself"
            ) from None
        raise DataError(f"{path}: no such file{near_names(path)}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{path}: cannot be opened: {reason}") from None


def near_names(path: Path) -> str:
    """Return a question after files of a similar name in the folder, behind a semicolon; "" where
    there are none.
    """
    try:
        names = os.listdir(path.parent)
    except (OSError, ValueError):
        return f"; the folder {path.parent} does not exist or cannot be read"
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if not near:
        return ""
    listing = " or ".join(str(path.parent / name) for name in near)
    return f"; did you mean {listing}?"


def _pieces(stream: BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    return iter(lambda: stream.read(CHUNK_BYTES), b"")


def _unpack(raw: BufferedReader, path: Path) -> Iterator[bytes]:
    """Walk first over the part that the ratio rule leaves free: a bomb is refused before its text
    is kept.
    """
    if raw.seekable():
        unpacked = 0
        for chunk in _inflate(raw, path):
            unpacked += len(chunk)
            if unpacked > RATIO_FREE_BYTES:
                break
        raw.seek(0)
    yield from _inflate(raw, path)


def _inflate(raw: BufferedReader, path: Path) -> Iterator[bytes]:
    unpacked = 0
    with gzip.GzipFile(fileobj=raw) as stream:
        for chunk in _pieces(stream):
            unpacked += len(chunk)
            if unpacked > MAX_UNPACKED_BYTES:
                raise DataError(
                    f"{path}: unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; unpack it and split it first"
                )
            if unpacked > RATIO_FREE_BYTES and unpacked > MAX_RATIO * raw.tell():
                raise DataError(
                    f"{path}: unpacks to more than {MAX_RATIO} times its size, as a decompression bomb does; "
                    "unpack it yourself if you trust it"
                )
            yield chunk


def _refuse_archive(head: bytes, path: Path) -> None:
    what = next(
        (name for signature, name in _SIGNATURES if head.startswith(signature)), None
    )
    if head[257:262] == b"ustar":
        what = "a tar archive"
    elif head.startswith(b"BZh") and head[4:10] == b"1AY&SY":
        what = "packed with bzip2"
    if what:
        raise DataError(
            f"{path}: is {what}; unpack it first and give the text file in it"
        )
