"""The work that is done on each block, and what a worker says of one that is done."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from weft.cluster.block import Block
from weft.errors import FolderError
from weft.folder.durable import sha256_of
from weft.folder.model_files import files_of

Sums: TypeAlias = Mapping[str, float]
Answers: TypeAlias = Callable[[Sequence[str], int], Iterator[tuple[str, Sums]]]
"""Gives for lines, of which the first has a number in its file, what is written for each, with its
line end, and what is to be added up over all lines.
"""


@dataclass(frozen=True)
class Work:
    """A verb's work on lines; it travels to other machines.

    `open` loads the models there, and is a module's function with its arguments, all plain values.
    The `models`, and the `files` that are read beside them, must lie under the same path on each,
    and have the same hash: of a model that of its manifest. `settings` are what the answers depend
    on besides the models and the lines.
    """

    verb: str
    models: Mapping[Path, str]
    files: Mapping[Path, str]
    settings: Mapping[str, Any]
    open: Callable[[], Answers]

    def refuse_other_files(self) -> None:
        """Raise FolderError where a model or a file is missing on this machine, or another one."""
        for path, sha256 in self.models.items():
            if files_of(path).digest() != sha256:
                raise _other(path)
        for path, sha256 in self.files.items():
            if not path.is_file() or sha256_of(path) != sha256:
                raise _other(path)


def _other(path: Path) -> FolderError:
    return FolderError(
        f"{path}: missing or another one on {platform.node()}; all machines need the same under this path"
    )


@dataclass(frozen=True)
class Answered:
    """The answers to a block: the text to write, and the `sums` over its lines.

    It `began` at so many seconds since 1970, and took `seconds`; `worker` is a process and its
    machine.
    """

    number: int
    text: str
    sums: dict[str, float]
    began: float
    seconds: float
    worker: str

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self)


class Worker:
    """A process at work, with its model loaded."""

    def __init__(self, work: Work) -> None:
        """Load the models. Raises FolderError where one is missing here, or another one."""
        self.name = f"{os.getpid()}@{platform.node()}"
        work.refuse_other_files()
        self._answers = work.open()

    def answer(self, block: Block) -> Answered:
        """Answer every line of a block. Raises WeftError, by kind, as the verb does."""
        began = time.time()
        clock = time.perf_counter()
        written = []
        sums: dict[str, float] = {}
        for text, counted in self._answers(block.lines(), block.first):
            written.append(text)
            for name, value in counted.items():
                sums[name] = sums.get(name, 0) + value
        seconds = round(time.perf_counter() - clock, 3)
        text = "".join(written)
        return Answered(block.number, text, sums, round(began, 3), seconds, self.name)
