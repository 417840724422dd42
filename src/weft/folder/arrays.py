"""The arrays of a safetensors file, mapped: read from the disk where and when they are used."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_TYPES: Mapping[str, Any] = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
}


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Map the arrays of a sound safetensors file, by name; those of 16 bits become float32."""
    data = np.memmap(path, np.uint8, "r")
    header_end = 8 + int(data[:8].view(np.uint64)[0])
    header = json.loads(data[8:header_end].tobytes())
    header.pop("__metadata__", None)
    arrays: dict[str, NDArray[Any]] = {}
    for name, facts in header.items():
        start, end = facts["data_offsets"]
        first = header_end + start
        last = header_end + end
        kind = facts["dtype"]
        flat = data[first:last].view(_TYPES[kind])
        array = flat.reshape(facts["shape"])
        if kind == "BF16":
            array = _from_bfloat16(array)
        elif kind == "F16":
            array = array.astype(np.float32)
        arrays[name] = array
    return arrays


def is_finite(array: NDArray[Any]) -> bool:
    """Return whether every number is one, neither NaN nor infinite."""
    # finite numbers may have an infinite sum, but no others a finite one
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if np.isfinite(total):
        return True
    return bool(np.isfinite(array).all())


def _from_bfloat16(upper: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return numbers whose upper 16 bits are these, and the lower ones 0."""
    bits = upper.astype(np.uint32) << 16
    return bits.view(np.float32)
