"""The arrays of a safetensors file, mapped: read from the disk where and when they are used.

The file is checked before anything is made of it: 8 bytes with the length of a header, the header
(JSON: type, shape and place of each array), and the arrays, which follow each other without gaps.
Source: the description of the format at huggingface.co/docs/safetensors.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.errors import FolderError
from weft.folder.mapped import mapped

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_TYPES: Mapping[str, Any] = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,
    "I8": np.int8,
    "U8": np.uint8,
    "I32": np.int32,
    "I64": np.int64,
}
# bytes of a number, also of types that no model of Weft has
_SIZES = {
    **dict.fromkeys(("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64"), 8),
}
_LENGTH = 8  # bytes of the header's length
_MOST_HEADER = 2**22
_MOST_AXES = 8


@dataclass(frozen=True)
class StoredArray:
    """An array in a safetensors file: its type and shape, and its bytes, from `start` to before
    `end`.
    """

    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Map the arrays of a file. Raises FolderError where it is no sound safetensors file."""
    return arrays_of(mapped(path), path)


def arrays_of(content: memoryview, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that is mapped, by name; those of 16 bits become float32.

    Raises FolderError, with the name `path`, where it is no sound safetensors file, or has a type
    that no model of Weft has.
    """
    data = np.frombuffer(content, np.uint8) if len(content) else np.empty(0, np.uint8)
    arrays = {}
    for name, stored in stored_arrays(content, path).items():
        if stored.kind not in _TYPES:
            raise _unsound(path, f"{name[:40]!r} is {stored.kind}")
        try:
            arrays[name] = _array(data, stored)
        except ValueError as error:  # a shape that no array has, with a 0 in it
            raise _unsound(path, f"{name[:40]!r}: {error}") from None
    return arrays


def stored_arrays(content: memoryview, path: Path) -> dict[str, StoredArray]:
    """Read which arrays a file has, by name, in the order of their places.

    Raises FolderError, with the name `path`, where it is no sound safetensors file.
    """
    try:
        return _checked(content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unsound(path, str(error)) from None


def is_finite(array: NDArray[Any]) -> bool:
    """Return whether every number is one, neither NaN nor infinite."""
    # finite numbers may have an infinite sum, but no others a finite one
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if np.isfinite(total):
        return True
    return bool(np.isfinite(array).all())


def _unsound(path: Path, why: str) -> FolderError:
    return FolderError(f"{path}: not a sound safetensors file ({why[:100]})")


def _checked(content: memoryview) -> dict[str, StoredArray]:
    """Return the arrays in the order of their places. Raises ValueError and others where their
    bytes are not the whole file behind its header.
    """
    length = int.from_bytes(content[:_LENGTH], "little")
    place = _LENGTH + length
    if length > _MOST_HEADER or place > len(content):
        raise ValueError(f"{len(content):,} bytes, its header {length:,}")
    text = bytes(content[_LENGTH:place]).decode("utf-8")
    header = json.loads(text, object_pairs_hook=_each_once)
    if not isinstance(header, dict):
        raise ValueError("the header is no object")
    header.pop("__metadata__", None)
    found = {name: _stored(entry, place) for name, entry in header.items()}
    in_order = sorted(found.items(), key=lambda item: (item[1].start, item[1].end))
    for name, stored in in_order:
        if stored.start != place or _size(stored) != stored.end - stored.start:
            raise ValueError(f"{name[:40]!r} is not where or as large as it says")
        place = stored.end
    if place != len(content):
        raise ValueError(f"{len(content):,} bytes, its arrays end at {place:,}")
    return dict(in_order)


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ValueError where it has a name twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _stored(entry: Mapping[str, Any], place: int) -> StoredArray:
    """Read an entry of a header behind which the arrays begin at `place`."""
    start, end = _counts(entry["data_offsets"])
    shape = _counts(entry["shape"])
    kind = entry["dtype"]
    if kind not in _SIZES or len(shape) > _MOST_AXES:
        raise ValueError(f"an array of type {kind!s:.20} with {len(shape)} axes")
    return StoredArray(kind, shape, place + start, place + end)


def _counts(numbers: Any) -> tuple[int, ...]:
    """Return a list of integers that are 0 or more. Raises ValueError for anything else."""
    if not isinstance(numbers, list):
        raise ValueError(f"{numbers!s:.40} is no list of numbers")
    for number in numbers:
        if type(number) is not int or number < 0:
            raise ValueError(f"{number!s:.40} is no size")
    return tuple(numbers)


def _size(stored: StoredArray) -> int:
    return prod(stored.shape) * _SIZES[stored.kind]


def _array(data: NDArray[np.uint8], stored: StoredArray) -> NDArray[Any]:
    flat = data[stored.start : stored.end].view(_TYPES[stored.kind])
    array = flat.reshape(stored.shape)
    if stored.kind == "BF16":
        return _from_bfloat16(array)
    if stored.kind == "F16":
        return array.astype(np.float32)
    # a view where it can be one: only a file of another program lies otherwise
    return np.require(array, requirements="A")


def _from_bfloat16(upper: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return numbers whose upper 16 bits are these, and the lower ones 0."""
    bits = upper.astype(np.uint32) << 16
    return bits.view(np.float32)
