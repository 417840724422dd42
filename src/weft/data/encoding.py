"""A large text to ids, stretch by stretch in several processes: the same ids whatever their number.

Each stretch becomes a file in a folder beside the store that it is for. What is finished when a run
is killed is not encoded again by the next.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.config import SideSection
from weft.data.column import Column
from weft.data.crew import Task, work
from weft.data.home import Home
from weft.data.measures import describe, open_stretch, stretches
from weft.data.rows import IdRows
from weft.data.tokenizer import Tokenizer
from weft.folder.durable import make_folder, remove_leftovers, replacing, write_text

Flags = npt.NDArray[np.bool_]

STRETCH = 20_000  # rows of a task
_SUM = 16  # bytes
_FOLDER = (
    ".encoded-"  # behind the name of the store, and before the beginning of its key
)


class EncodedSide(NamedTuple):
    """Rows of one side as ids, and whether each has more than white space."""

    rows: IdRows
    has_text: Flags


def encode_side(texts: Sequence[str], tokenizer: Tokenizer) -> EncodedSide:
    """Encode texts."""
    has_text = np.fromiter(map(bool, map(str.strip, texts)), np.bool_, len(texts))
    return EncodedSide(tokenizer.encode_rows(texts), has_text)


def encode_large(
    columns: Sequence[Column], tokenizers: Sequence[Tokenizer], store: Path, key: str
) -> Iterator[list[EncodedSide]]:
    """Yield the sides of each stretch of a large text, for a store with this key."""
    folder = store.with_name(f"{store.name}{_FOLDER}{key[:16]}")
    make_folder(folder)
    remove_leftovers(folder)
    home = Home()
    common = {
        "columns": describe(columns, home.path),
        "tokenizers": [_keep(tokenizer, folder) for tokenizer in tokenizers],
        "folder": str(folder),
    }
    tasks = [{**common, **stretch} for stretch in stretches(len(columns[0]), STRETCH)]
    left = [task for task in tasks if _read(task) is None]
    work("encode", encode_stretch, left, "pairs")
    for task in tasks:
        sides = _read(task)
        assert sides is not None
        yield sides


def forget_encoded(store: Path) -> None:
    """Remove what was encoded for a store, which is complete, or is to be another one."""
    for folder in store.parent.glob(f"{store.name}{_FOLDER}*"):
        shutil.rmtree(folder, ignore_errors=True)


def encode_stretch(task: Task) -> None:
    """Encode a stretch of each column, and write it."""
    sides = zip(task["columns"], task["tokenizers"], _files(task), strict=True)
    for described, tokenizer, file in sides:
        texts = open_stretch(described, task["first"], task["last"])
        rows, has_text = encode_side(texts, _open(tokenizer))
        counts = np.array([len(texts)])
        flat = np.concatenate([counts, rows.lens, has_text, rows.ids])
        content = flat.astype("<u4").tobytes()
        with replacing(file) as temporary:
            temporary.write_bytes(_sum(content) + content)


def _files(task: Task) -> list[Path]:
    """Name the files of a stretch, one for each side."""
    folder = Path(task["folder"])
    rows = f"{task['first']}-{task['last']}"
    return [folder / f"{rows}.{side}.npy" for side in range(len(task["columns"]))]


def _read(task: Task) -> list[EncodedSide] | None:
    """Return the sides of a stretch; None where they are not there, or damaged."""
    sides = []
    for file in _files(task):
        content = file.read_bytes() if file.is_file() else b""
        if content[:_SUM] != _sum(content[_SUM:]):
            return None
        flat = np.frombuffer(content[_SUM:], "<u4")
        count = int(flat[0])
        lens, has_text, ids = np.split(flat[1:], [count, 2 * count])
        rows = IdRows(ids, lens.astype(np.int64))
        sides.append(EncodedSide(rows, has_text.astype(np.bool_)))
    return sides


def _sum(content: bytes) -> bytes:
    """Return what a file begins with, by which it is known to be whole."""
    return blake2b(content, digest_size=_SUM).digest()


def _keep(tokenizer: Tokenizer, folder: Path) -> str:
    """Write a tokenizer for other processes, and name its file."""
    path = folder / f"{tokenizer.sha256}.json"
    settings = tokenizer.settings.model_dump(mode="json")
    tree = json.loads(tokenizer.to_json())
    write_text(path, json.dumps({"settings": settings, "tree": tree}))
    return str(path)


@lru_cache(maxsize=2)
def _open(path: str) -> Tokenizer:
    content = json.loads(Path(path).read_text("utf-8"))
    return Tokenizer(content["tree"], SideSection(**content["settings"]))
