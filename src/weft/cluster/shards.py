"""A folder of shards: the answers to each block in a file of its own, and a manifest of all.

The shards are numbered in the order of the input, so that joined by their names they are the output
of one process. A line of the journal says that a shard is complete, and is written after it; a
worker or a whole command that is killed costs what it had not finished. At the end the manifest,
in order, takes the place of the journal.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.cluster.block import Block, Division
from weft.cluster.executor import Executor
from weft.cluster.work import Answered, Work
from weft.errors import FolderError, Interrupted, UsageError
from weft.folder import durable
from weft.folder.durable import MANIFEST
from weft.folder.version import installed_version

JOURNAL = "finished.jsonl"
_LOCK = "in-use"
_MOST_MANIFEST = 2**30  # bytes; a shard has some 500 in it
# of the facts: what they are called where they differ
_CALLED = {
    "verb": "verb",
    "version": "version of Weft",
    "models": "model",
    "settings": "settings",
    "block_rows": "--block",
    "inputs": "input",
}


@dataclass(frozen=True)
class Request:
    """A `work` that is asked for, on the blocks of a `division`, of `block_rows` lines each; shards
    have names that end with `suffix`.
    """

    work: Work
    division: Division
    block_rows: int
    suffix: str

    def facts(self) -> dict[str, Any]:
        """Return what the shards depend on, as the manifest begins."""
        return {
            "verb": self.work.verb,
            "version": installed_version(),
            "models": [
                {"path": str(path), "sha256": sha256}
                for path, sha256 in self.work.models.items()
            ],
            "settings": dict(self.work.settings),
            "block_rows": self.block_rows,
            "inputs": [each.to_json() for each in self.division.inputs],
        }


class Shards:
    """The folder at `path`, as far as it is written for a request; `entries` are what the manifest
    says of each shard, by the block's number.
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self.request = request
        self.entries: dict[int, dict[str, Any]] = {}

    @classmethod
    @contextmanager
    def opened(cls, path: Path, request: Request) -> Iterator["Shards"]:
        """Make the folder, or continue it, and keep other processes out while the block runs.

        Raises UsageError where it was begun with other facts, or has other files in it.
        """
        shards = cls(path, request)
        if path.exists():
            _refuse_foreign(path)
        durable.make_folder(path)
        with durable.held(path / _LOCK, path):
            shards._continue()
            yield shards
        (path / _LOCK).unlink(missing_ok=True)

    @property
    def missing(self) -> list[Block]:
        """Return the blocks that have no shard yet."""
        blocks = self.request.division.blocks
        return [block for block in blocks if block.number not in self.entries]

    @property
    def sums(self) -> dict[str, float]:
        """Return the sums over all lines that are answered, in the order of the input."""
        total: dict[str, float] = {}
        for number in sorted(self.entries):
            for name, value in self.entries[number]["sums"].items():
                total[name] = total.get(name, 0) + value
        return total

    def file(self, number: int) -> Path:
        """Return the path of the shard of a block."""
        return self.path / f"{number:06}{self.request.suffix}"

    def add(self, answered: Answered) -> None:
        """Write a shard, and then that it is complete."""
        block = self.request.division.blocks[answered.number]
        path = self.file(block.number)
        content = answered.text.encode()
        with durable.replacing(path) as temporary:
            temporary.write_bytes(content)
        entry = {
            "shard": path.name,
            "input": block.path,
            "first": block.first,
            "rows": block.rows,
            "input_sha256": block.sha256,
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "sums": answered.sums,
            "began": answered.began,
            "seconds": answered.seconds,
            "worker": answered.worker,
        }
        durable.append_line(self.path / JOURNAL, _line(entry))
        self.entries[block.number] = entry

    def finish(self) -> None:
        """Write the manifest, in the order of the input, in the place of the journal."""
        listed = [self.entries[number] for number in sorted(self.entries)]
        manifest = {**self.request.facts(), "shards": listed}
        durable.write_json(self.path / MANIFEST, manifest)
        (self.path / JOURNAL).unlink(missing_ok=True)

    def join(self, output: Path) -> None:
        """Write all shards one after another into a file, which appears when it is complete."""
        with durable.replacing(output) as temporary, temporary.open("wb") as file:
            file.writelines(self.contents())

    def contents(self) -> Iterator[bytes]:
        """Yield the shards' contents, in the order of the input."""
        for number in sorted(self.entries):
            yield self.file(number).read_bytes()

    def _continue(self) -> None:
        """Read what is finished; begin the journal where nothing is."""
        durable.remove_leftovers(self.path)
        facts = self.request.facts()
        rows: list[Any]
        if (self.path / MANIFEST).is_file():
            manifest = durable.read_json(self.path / MANIFEST, _MOST_MANIFEST)
            old = manifest
            rows = manifest["shards"]
        else:
            lines = _whole_lines(self.path / JOURNAL)
            if not lines:
                (self.path / JOURNAL).unlink(missing_ok=True)
                durable.append_line(self.path / JOURNAL, _line(facts))
                return
            old = lines[0]
            rows = lines[1:]
        self._refuse_other(old, facts)
        numbers = {self.file(b.number).name: b for b in self.request.division.blocks}
        for entry in rows:
            block = numbers.get(entry["shard"])
            if block is not None and self._is_whole(entry):
                self.entries[block.number] = entry

    def _is_whole(self, entry: Mapping[str, Any]) -> bool:
        """Return whether a shard is there as it was written."""
        path = self.path / entry["shard"]
        is_there = path.is_file() and path.stat().st_size == entry["size"]
        return is_there and durable.sha256_of(path) == entry["sha256"]

    def _refuse_other(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Raise UsageError where the folder was begun with other facts than these."""
        if not isinstance(old, dict) or not _CALLED.keys() <= old.keys():
            raise FolderError(
                f"{self.path}: what it was begun with is not known; give another --output, or remove it"
            )
        changed = [
            called
            for key, called in _CALLED.items()
            if _compared(key, old[key]) != _compared(key, new[key])
        ]
        if changed:
            raise UsageError(
                f"{self.path}: was begun with another {' and another '.join(changed)}; give the same, "
                "or another --output, or remove it"
            )


def write_shards(
    path: Path,
    request: Request,
    executor: Executor,
    advance: Callable[[int], None] = lambda rows: None,
    begin: Callable[[int], None] = lambda done: None,
) -> Shards:
    """Answer the blocks of a request that have no shard yet in a folder, and return it, complete.

    `begin` is told how many shards are there already, `advance` of the lines of each that is added.
    Raises WeftError, by kind; what is finished stays.
    """
    with Shards.opened(path, request) as shards:
        missing = shards.missing
        begin(len(shards.entries))
        advance(sum(entry["rows"] for entry in shards.entries.values()))
        try:
            for answered in executor.run(request.work, missing) if missing else ():
                shards.add(answered)
                advance(request.division.blocks[answered.number].rows)
        except KeyboardInterrupt:
            raise Interrupted(
                f"{path}: interrupted; the same command continues it"
            ) from None
        shards.finish()
    return shards


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _whole_lines(journal: Path) -> list[Any]:
    """Return the values of a journal's lines, and cut off one that was not written to its end."""
    if not journal.is_file():
        return []
    content = journal.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        with journal.open("r+b") as file:
            file.truncate(end)
    lines = content[:end].split(b"\n")[:-1]
    return [durable.parse_json(line, journal) for line in lines]


def _compared(key: str, value: Any) -> Any:
    """Return a fact without what the answers do not depend on: the paths."""
    if key in ("models", "inputs"):
        return [each["sha256"] for each in value]
    return json.loads(_line(value))


def _refuse_foreign(path: Path) -> None:
    """Raise UsageError for a path that is no folder of shards, nor an empty one."""
    if not path.is_dir():
        raise UsageError(f"{path}: is a file; the shards need a folder")
    names = {entry.name for entry in path.iterdir()}
    is_own = not names or not names.isdisjoint((JOURNAL, _LOCK))
    if not is_own and MANIFEST in names:
        manifest = durable.read_json(path / MANIFEST, _MOST_MANIFEST)
        is_own = isinstance(manifest, dict) and "shards" in manifest
    if not is_own:
        raise UsageError(
            f"{path}: has other files in it; give a new folder for the shards"
        )
