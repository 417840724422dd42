"""An array of an inspection in a packed form, and back.

A packed array is `{"shape", "dtype", "scale"?, "root"?, "causal"?, "sums"?, "data"}`: little-endian
numbers in base64, or, of `int6`, a letter of base64 for each number. A number times `scale` is v;
the value is v, or with `root` v times |v|, so that small ones can be told apart. A `causal` array
has of its last two axes, of one length, only the places on and below the diagonal, row after row;
the others are 0. `sums` is an array of what the rows of the last axis add up to. An array of
`sinusoids` has `width` and no numbers: a formula gives them.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Data: TypeAlias = dict[str, Any]

_CODES = {
    "float16": "f2",
    "float32": "f4",
    "uint8": "u1",
    "uint16": "u2",
    "int8": "i1",
    "int32": "i4",
}
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MIDDLE = 32  # the letter of 0
_LARGEST = {"int6": 31, "int8": 127, "uint8": 255, "uint16": 65535}
_SAME = 1e-6  # as far as float32 may be from a formula


@dataclass(frozen=True)
class Form:
    """A form of an array: the type of its numbers, whether they are coded by their root, whether
    the sums of its rows are kept, and how many of its last axis are; or that it is left out.
    """

    dtype: str
    root: bool = False
    sums: bool = False
    last: int | None = None
    left_out: bool = False


# Packing
# --------------------------------------------------------------------------------------


def coded(array: Array, form: Form, is_causal: bool = False) -> Data:
    """Return an array in a form that is not left out."""
    if form.last is not None:
        array = array[..., : form.last]
    leaf: Data = {"shape": list(array.shape), "dtype": form.dtype}
    numbers = array
    if is_causal:
        leaf["causal"] = True
        rows, columns = np.tril_indices(array.shape[-1])
        numbers = array[..., rows, columns]
    if array.dtype.kind == "f":
        numbers, scale = _scaled(numbers, form)
        if scale is not None:
            leaf["scale"] = scale
        if form.root:
            leaf["root"] = True
    if form.sums:
        leaf["sums"] = coded(array.sum(-1), Form("float32"))
    leaf["data"] = _text(numbers, form.dtype)
    return leaf


def _scaled(values: Array, form: Form) -> tuple[Array, float | None]:
    """Return the numbers that stand for values, and their scale, if they have one."""
    if form.dtype.startswith("float"):
        return values, None
    if form.root:
        values = np.sign(values) * np.sqrt(np.abs(values))
    most = _LARGEST[form.dtype]
    largest = 1.0
    if form.dtype.startswith("int"):
        largest = float(np.abs(values).max(initial=0.0)) or 1.0
    scale = largest / most
    return np.rint(values / scale).clip(-most, most), scale


def _text(numbers: Array, dtype: str) -> str:
    if dtype == "int6":
        letters = np.frombuffer(_LETTERS, np.uint8)
        return letters[numbers.astype(int) + _MIDDLE].tobytes().decode("ascii")
    content = numbers.astype(f"<{_CODES[dtype]}").tobytes()
    return base64.b64encode(content).decode("ascii")


def is_sinusoidal(array: Array, width: int) -> bool:
    """Return whether vectors of positions, of a model so wide, are what the formula gives."""
    expected = _sinusoids(array.shape, width)
    return bool(np.allclose(array, expected, rtol=0, atol=_SAME))


def sinusoidal(array: Array, width: int) -> Data:
    """Return these vectors packed."""
    return {"shape": list(array.shape), "dtype": "sinusoids", "width": width}


def _sinusoids(shape: Sequence[int], width: int) -> Array:
    """Return sin(position / 10000^(2i/width)) in column 2i, its cos in 2i + 1 (Vaswani et al. 2017,
    section 3.5).
    """
    length, columns = shape
    column = np.arange(columns)
    frequencies = 10_000.0 ** (-(column - column % 2) / width)
    angles = np.arange(length)[:, None] * frequencies
    found: Array = np.where(column % 2, np.cos(angles), np.sin(angles))
    return found


# Unpacking
# --------------------------------------------------------------------------------------


def is_packed(data: Any) -> bool:
    """Return whether this is a packed array."""
    return isinstance(data, dict) and "dtype" in data and "shape" in data


def unpacked(leaf: Data) -> Array:
    """Return the array that was packed, in float64 or as integers."""
    if leaf["dtype"] == "sinusoids":
        return _sinusoids(leaf["shape"], leaf["width"])
    values = _numbers(leaf)
    if "scale" in leaf:
        values = values * leaf["scale"]
    if leaf.get("root"):
        values = values * np.abs(values)
    if leaf.get("causal"):
        whole = np.zeros(leaf["shape"], values.dtype)
        *before, length, _ = leaf["shape"]
        rows, columns = np.tril_indices(length)
        whole[..., rows, columns] = values.reshape(*before, -1)
        values = whole
    values = values.reshape(leaf["shape"])
    if "sums" not in leaf:
        return values
    return _summing_up(values, unpacked(leaf["sums"]), bool(leaf.get("root")))


def _numbers(leaf: Data) -> Array:
    text = leaf["data"].encode("ascii")
    if leaf["dtype"] == "int6":
        places = np.zeros(256)
        places[np.frombuffer(_LETTERS, np.uint8)] = np.arange(-_MIDDLE, _MIDDLE)
        return np.asarray(places[np.frombuffer(text, np.uint8)])
    numbers: Array = np.frombuffer(base64.b64decode(text), f"<{_CODES[leaf['dtype']]}")
    return numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers


def _summing_up(values: Array, sums: Array, root: bool) -> Array:
    """Return values whose rows add up: what each lacks is divided as the steps between its numbers
    are, by their amounts or, of coded roots, by the roots of these.
    """
    values = values.astype(np.float64)
    amounts = np.abs(values)
    weights = np.sqrt(amounts) if root else amounts
    total = weights.sum(-1, keepdims=True)
    parts = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    missing = sums - values.sum(-1)
    found: Array = values + missing[..., None] * parts
    return found
