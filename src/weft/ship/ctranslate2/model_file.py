"""The arrays of a `model.bin`, read without CTranslate2.

The file has a version, the name and revision of a specification, the arrays, and then aliases:
names of arrays that are others'. Strings have their size before them and NUL behind them. All is
little-endian. Source: `ModelSpec._serialize` of the ctranslate2 package, version 6 of the file.
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import FolderError
from weft.ship.ctranslate2.quantized import SCALE
from weft.ship.tensors import Array

MODEL = "model.bin"
_VERSION = 6
# by the number that stands for a type
_TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)


def read_model(path: Path) -> dict[str, Array]:
    """Return all arrays of a file by name, settings of the model among them; an alias has the same
    array, and its scales.

    Raises FolderError for a file of another version or type of numbers.
    """
    return arrays_in(np.memmap(path, np.uint8, "r"), str(path))


def arrays_in(content: Array, where: str) -> dict[str, Array]:
    """Return the same from the bytes of a file; `where` is its name in messages."""
    reader = _Reader(content, where)
    version = reader.number("I")
    if version != _VERSION:
        raise FolderError(
            f"{where}: is version {version} of its format, not {_VERSION}"
        )
    reader.text()  # the specification
    reader.number("I")  # its revision
    arrays = dict(reader.array() for _ in range(reader.number("I")))
    for _ in range(reader.number("I")):
        alias = reader.text()
        name = reader.text()
        arrays[alias] = arrays[name]
        if name + SCALE in arrays:
            arrays[alias + SCALE] = arrays[name + SCALE]
    return arrays


class _Reader:
    """A place in the file, from which numbers, texts and arrays are taken one by one."""

    def __init__(self, content: Array, where: str) -> None:
        self.content = content
        self.where = where
        self.place = 0

    def take(self, size: int) -> Array:
        start = self.place
        self.place += size
        return self.content[start : self.place]

    def number(self, kind: str) -> int:
        size = struct.calcsize(f"<{kind}")
        (found,) = struct.unpack(f"<{kind}", self.take(size).tobytes())
        return int(found)

    def text(self) -> str:
        size = self.number("H")
        return self.take(size).tobytes()[:-1].decode("utf-8")

    def array(self) -> tuple[str, Array]:
        """Take an array, with its name."""
        name = self.text()
        num_axes = self.number("B")
        shape = [self.number("I") for _ in range(num_axes)]
        kind = self.number("B")
        if kind >= len(_TYPES):
            raise FolderError(f"{self.where}: {name} has numbers of an unknown type")
        size = self.number("I")
        array: Any = np.frombuffer(self.take(size), _TYPES[kind])
        return name, array.reshape(shape)
