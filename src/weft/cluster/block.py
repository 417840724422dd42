"""Blocks: runs of lines of text files, each the work of one worker at a time."""

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from weft.data.plain_lines import content_of, lines
from weft.errors import DataError


@dataclass(frozen=True)
class Block:
    """So many `rows` of a text file, from line `first` on, the file's first being 1: its bytes from
    `start` to `end`.

    `number` counts the blocks of all files, from 0. `sha256` is that of the lines, each ended by
    LF.
    """

    number: int
    path: str
    first: int
    rows: int
    start: int
    end: int
    sha256: str

    @property
    def name(self) -> str:
        """Return what it is called in messages."""
        return f"{self.path}: lines {self.first:,} to {self.first + self.rows - 1:,}"

    def lines(self) -> list[str]:
        """Read its lines. Raises DataError where the file has changed since it was divided."""
        try:
            texts = self._read()
        except OSError as error:
            raise DataError(
                f"{self.path}: cannot be read ({error.strerror}); every machine needs it by this name"
            ) from None
        if texts is None or _hash_of(texts) != self.sha256:
            raise DataError(
                f"{self.path}: has changed since the work began; give the same command again"
            )
        return texts

    def _read(self) -> list[str] | None:
        """Return the lines; None where they are no text."""
        with Path(self.path).open("rb") as file:
            file.seek(self.start)
            content = io.BytesIO(file.read(self.end - self.start))
        is_first = self.start == 0
        texts = []
        for raw in content:
            try:
                texts.append(content_of(raw, is_first).decode("utf-8"))
            except UnicodeDecodeError:
                return None
            is_first = False
        return texts


@dataclass(frozen=True)
class Input:
    """A text file, its number of lines, and the SHA-256 of the lines, each ended by LF."""

    path: str
    rows: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the three as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Division:
    """Text files and their blocks, both in the order in which the files were given."""

    inputs: list[Input]
    blocks: list[Block]

    @property
    def rows(self) -> int:
        """Return the number of lines of all files."""
        return sum(each.rows for each in self.inputs)


def divided(paths: Sequence[Path], rows: int) -> Division:
    """Divide text files into blocks of so many `rows`, the last of each file perhaps of fewer.

    Every line is read once, in the memory of one. Raises DataError at one that is not UTF-8.
    """
    division = Division([], [])
    for path in paths:
        _divide(path, rows, division)
    return division


class _Run:
    """The lines of a file from one on, as long as they are fewer than a block has."""

    def __init__(self, path: str, first: int, start: int) -> None:
        self.path = path
        self.first = first
        self.start = start
        self.rows = 0
        self._digest = sha256()

    def add(self, content: bytes) -> None:
        self.rows += 1
        self._digest.update(content)

    def block(self, number: int, end: int) -> Block:
        """Return them as the block of this number, which ends at a byte of the file."""
        digest = self._digest.hexdigest()
        return Block(number, self.path, self.first, self.rows, self.start, end, digest)


def _divide(path: Path, rows: int, division: Division) -> None:
    """Add a file and its blocks to a division."""
    name = str(path.resolve())
    digest = sha256()
    total = 0
    run = _Run(name, 1, 0)
    with path.open("rb") as file:
        for total, line in lines(file, path):
            content = line.encode() + b"\n"
            digest.update(content)
            run.add(content)
            if run.rows == rows:
                end = file.tell()
                division.blocks.append(run.block(len(division.blocks), end))
                run = _Run(name, total + 1, end)
        if run.rows:
            division.blocks.append(run.block(len(division.blocks), file.tell()))
    division.inputs.append(Input(name, total, digest.hexdigest()))


def _hash_of(texts: Sequence[str]) -> str:
    digest = sha256()
    for text in texts:
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()
