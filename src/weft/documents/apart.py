"""A document that is read and written by a process of its own, within bounds of memory and time.

Strangers' files are read so: whatever a file does to its reader, it does it to that process alone.
`python -m weft.documents.apart` reads one document from standard input, says what is to be
translated, and writes it with what it is then given. Each message is JSON, with bytes behind it
where a file is meant; before both stand their lengths.
"""

import json
import os
import struct
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, BinaryIO

from weft.documents.document import Document, Doubt, Reading, Translated
from weft.documents.driver import mended, needs_alignment, unchanged, write_mended
from weft.documents.kept import ReadDocument
from weft.documents.numbers import Numbers
from weft.documents.registry import FORMATS
from weft.errors import UsageError

if sys.platform != "win32":
    import resource

MOST_MEMORY = 1 << 30  # bytes of address space
MOST_SECONDS = 60  # of CPU time
_LENGTHS = struct.Struct(">QQ")
_FILES = 16  # that the process may open


def packed(value: Any, content: bytes = b"") -> bytes:
    """Return a message."""
    text = json.dumps(value).encode()
    return _LENGTHS.pack(len(text), len(content)) + text + content


def lengths(head: bytes) -> tuple[int, int]:
    """Return how long the JSON and the bytes of a message are, by its first `HEAD` bytes."""
    text, content = _LENGTHS.unpack(head)
    return text, content


HEAD = _LENGTHS.size


def asked(row: str, reading: Reading, content: bytes) -> bytes:
    """Return the first message to the process: a file of a format."""
    return packed({"format": row, "reading": asdict(reading)}, content)


def known(forms: Collection[str]) -> bytes:
    """Return a message in between: the forms of placeholders that the model reads."""
    return packed({"forms": list(forms)})


def told(translated: Sequence[Translated] | None) -> bytes:
    """Return the last one: the translations of its texts, None to leave all as it is."""
    if translated is None:
        return packed(None)
    return packed(
        [
            [
                one.text,
                list(one.alignment),
                asdict(one.doubt),
                dict(one.stands),
                one.languages,
            ]
            for one in translated
        ]
    )


def main() -> None:
    """Read one document, say its texts, and write it."""
    # what a library prints must not stand among the messages
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(BrokenPipeError):
        _serve(sys.stdin.buffer, out)
        out.close()


def _serve(source: BinaryIO, out: BinaryIO) -> None:
    value, content = _received(source)
    reading = value["reading"]
    columns = tuple(reading.pop("columns"))
    row = FORMATS[value["format"]]
    _bound()
    try:
        document = row.open(content, Reading(**reading, columns=columns))
        _send(out, _texts_of(document))
        answer, _ = _received(source)
        if isinstance(answer, dict):
            document = ReadDocument(document, answer["forms"])
            _send(out, _texts_of(document))
            answer, _ = _received(source)
        _send(out, _written(document, answer))
    except UsageError as error:
        _send(out, packed({"error": str(error)}))
    except MemoryError:
        _send(out, packed({"error": "the file needs too much memory; divide it"}))


def _texts_of(document: Document[bytes]) -> bytes:
    texts = [segment.text for segment in document.segments]
    return packed({"texts": texts, "needs_alignment": needs_alignment(document)})


def _written(document: Document[bytes], answer: Any) -> bytes:
    if answer is None:
        return packed({}, unchanged(document))
    translated = []
    for text, alignment, doubt, stands, (src, tgt) in answer:
        links = [(a, b, c, d) for a, b, c, d in alignment]
        said = Doubt.from_json(doubt)
        translated.append(Translated(text, links, said, stands, (src, tgt)))
    every = mended(document, translated)
    found = [(i, vars(one.numbers)) for i, one in enumerate(every) if one.numbers]
    return packed({"numbers": found}, write_mended(document, every))


def numbers_in(value: Any) -> Mapping[int, Numbers]:
    """Return the numbers that differ by the segments, as the last answer of the process has
    them.
    """
    return {
        number: Numbers(**{name: tuple(some) for name, some in found.items()})
        for number, found in value.get("numbers", ())
    }


def _received(source: BinaryIO) -> tuple[Any, bytes]:
    """Read a message; ends the process where there is none any more."""
    head = source.read(HEAD)
    if len(head) < HEAD:
        sys.exit()
    size, rest = lengths(head)
    text = source.read(size)
    return json.loads(text), source.read(rest)


def _send(out: BinaryIO, message: bytes) -> None:
    out.write(message)
    out.flush()


def _bound() -> None:
    """Set the bounds of this process, where the system has them."""
    if sys.platform == "win32":
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))


if __name__ == "__main__":
    main()
