"""Better translations that people sent, in files that `weft train` reads. Nothing trains on them
unless it is told to.
"""

import asyncio
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from weft.data.languages import known
from weft.predict.text import one_line
from weft.serve.refusals import Forbidden

_MAX_BYTES = 64 * 2**20  # of all files


@dataclass
class Suggestions:
    """Files of pairs, one for each direction: `corrections.en-de.tsv` for a `path`
    `corrections.tsv`.

    All together have at most `max_bytes`; then no more are taken. A file is readable and writable
    by its owner alone, as it has what people wrote.
    """

    path: Path
    max_bytes: int = _MAX_BYTES
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def add(self, languages: tuple[str, str], pair: tuple[str, str]) -> None:
        """Keep a text and its translation.

        Raises Forbidden where there is no room for more, or the file cannot be written.
        """
        await asyncio.to_thread(self.append, languages, pair)

    def file_of(self, languages: tuple[str, str]) -> Path:
        """Return the file of a direction."""
        src, tgt = languages
        return self.path.with_name(f"{self.path.stem}.{src}-{tgt}{self._ending}")

    @property
    def _ending(self) -> str:
        return self.path.suffix or ".tsv"

    def append(self, languages: tuple[str, str], pair: tuple[str, str]) -> None:
        """Keep a pair, as `add` does."""
        path = self.file_of(languages)
        row = "\t".join(map(cell, pair)) + "\n"
        with self._lock:
            try:
                if not path.exists():
                    row = _header(languages) + row
                data = row.encode("utf-8", "replace")
                if self._size() + len(data) > self.max_bytes:
                    raise Forbidden("the file of suggestions is full")
                _write_behind(path, data)
            except OSError:
                raise Forbidden("the file of suggestions cannot be written") from None

    def _size(self) -> int:
        """Return how many bytes all files have."""
        files = self.path.parent.glob(f"{self.path.stem}.*{self._ending}")
        return sum(file.stat().st_size for file in files)


def cell(text: str) -> str:
    """Return a text as a cell that is read back as it is, on a single line.

    Line breaks and TABs become spaces, as a model reads single lines. Whether the quotes of a TSV
    file are a spreadsheet's is decided by all of its cells; so one that has quotes is written as a
    spreadsheet would, and never looks like anything else.
    """
    plain = one_line(text).replace("\t", " ").replace("\0", " ")
    if '"' not in plain:
        return plain
    doubled = plain.replace('"', '""')
    return f'"{doubled}"'


def _header(languages: tuple[str, str]) -> str:
    """Return the first row, which names the columns."""
    codes = [known(code) for code in languages]
    names = languages if all(codes) else ("source", "target")
    return "\t".join(names) + "\n"


def _write_behind(path: Path, data: bytes) -> None:
    """Write to the end of a file in one piece."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    number = os.open(path, flags, 0o600)
    try:
        os.write(number, data)
    finally:
        os.close(number)
