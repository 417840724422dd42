"""The data of an inspection as JSON: arrays as lists of rounded numbers, or packed for a page.

Numbers that stand alone are rounded either way.

A packed array is `{"shape", "dtype", "scale"?, "root"?, "causal"?, "data"}`: little-endian numbers
in base64. A number times `scale` is v; the value is v, or with `root` v times |v|, so that small
ones can be told apart. A `causal` array has of its last two axes, of one length, only the places on
and below the diagonal, row after row; the others are 0.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Data: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

DECIMALS = 4
# of what a reader sees as colours
_FEWER = {"vectors": 3, "looks": 3, "states": 3}
_EXACT = "error"  # the key of a number that is nearly 0
# of the data of a page, in bytes, by the tokens of the text that is read
_BUDGET = ((10, 78_000), (40, 228_000), (127, 1_070_000))
_FEWEST_DIMENSIONS = 64
_FRAME = 90  # bytes of a packed array without its numbers
_LEFT_OUT = object()


# Lists
# --------------------------------------------------------------------------------------


def plain(data: Any, decimals: int = DECIMALS) -> Any:
    """Return the same data with lists in the place of arrays, all numbers rounded."""
    return _rounded(data, _listed, decimals)


def _listed(array: Array, decimals: int) -> Any:
    if array.dtype.kind != "f":
        return array.tolist()
    return np.round(array.astype(np.float64), decimals).tolist()


def _rounded(data: Any, array: Callable[[Array, int], Any], decimals: int) -> Any:
    """Return the same data with its numbers rounded, and with `array` of each array."""
    if isinstance(data, Mapping):
        found = {}
        for key, value in data.items():
            fewer = _FEWER.get(key, decimals)
            exact = key == _EXACT
            found[key] = value if exact else _rounded(value, array, fewer)
        return found
    if isinstance(data, list | tuple):
        return [_rounded(each, array, decimals) for each in data]
    if isinstance(data, float):
        return round(float(data), decimals)
    return array(data, decimals) if isinstance(data, np.ndarray) else data


# Packed arrays
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A form of an array: the type of its numbers, whether they are coded by their root, and how
    many of its last axis are kept; or that it is left out.
    """

    dtype: str
    root: bool = False
    last: int | None = None
    left_out: bool = False


_FRACTION = Form("uint16")
_GONE = Form("", left_out=True)

# what kinds of arrays may become, the most exact form first
_FORMS: dict[str, tuple[Form, ...]] = {
    "maps": (_FRACTION, Form("uint8", root=True)),
    "tokens": (Form("float16"), Form("int8", root=True)),
    "written.cross": (Form("float16"), Form("int8", root=True), _GONE),
    "written.decoder": (Form("float16"), Form("int8", root=True), _GONE),
    "written.encoder": (Form("float16"), Form("int8", root=True), _GONE),
    "looks.cross": (Form("float16"), Form("int8"), _GONE),
    "looks.decoder": (Form("float16"), Form("int8"), _GONE),
    "looks.encoder": (Form("float16"), Form("int8"), _GONE),
    "vectors": (Form("float16"), Form("int8"), Form("int8", last=_FEWEST_DIMENSIONS)),
    "states": (Form("float16"), Form("int8")),
    "numbers": (Form("float16"),),
    "exact": (Form("float32"),),
    "fractions": (_FRACTION,),
}
# the order in which they become so, where a page would be too large
_STEPS = (
    "looks.encoder",
    "looks.decoder",
    "looks.cross",
    "vectors",
    "maps",
    "tokens",
    "written.encoder",
    "written.decoder",
    "written.cross",
    "states",
    "vectors",
    "looks.encoder",
    "looks.decoder",
    "looks.cross",
    "written.encoder",
    "written.decoder",
    "written.cross",
)


def packed(data: Data, budget: int | None = None) -> Data:
    """Return the same data with all arrays packed, as exactly as a page's budget of bytes allows,
    and all other numbers rounded.

    Where it is too small, numbers have fewer bits, step by step; then looks are left out by kinds,
    and at last what heads have written: `looks.left_out` and `shares.left_out` name them.

    Of several inspections, each without looks has half of a page's budget.
    """
    data = _rounded(data, lambda array, decimals: array, DECIMALS)
    if "inspections" in data:
        found = []
        for each in data["inspections"]:
            own = budget or budget_for(each)
            found.append(packed(each, own if "looks" in each else own // 2))
        return {**data, "inspections": found}
    if budget is None:
        budget = budget_for(data)
    levels = dict.fromkeys(_FORMS, 0)
    arrays = dict(_arrays(data))
    others = _mapped(data, lambda path, array: 0)
    rest = len(json.dumps(others, ensure_ascii=False, separators=(",", ":")).encode())
    for step in _STEPS:
        if rest + _size(arrays, levels) <= budget:
            break
        levels[step] += 1
    content: Data = _mapped(data, lambda path, array: _packed(path, array, levels))
    for key in ("looks", "shares"):
        if data.get(key):
            content.setdefault(key, {})["left_out"] = _gone(key, data, levels)
    return content


def _gone(key: str, data: Data, levels: Mapping[str, int]) -> list[str]:
    """Name the kinds of looks, or of what heads wrote in shares, that are left out."""
    kinds = data["looks"] if key == "looks" else data["shares"].get("written", {})
    prefix = "looks" if key == "looks" else "written"
    forms = {kind: _FORMS.get(f"{prefix}.{kind}", ()) for kind in kinds}
    return [
        kind
        for kind, choices in forms.items()
        if choices and choices[levels[f"{prefix}.{kind}"]].left_out
    ]


def budget_for(data: Data) -> int:
    """Return the bytes that a page's data may have: they grow with the text that is read."""
    sides = ("source", "tokens")
    (length,) = [len(data[side]["ids"]) for side in sides if side in data]
    tokens, sizes = zip(*_BUDGET, strict=True)
    if length > tokens[-1]:
        return int(sizes[-1] * (length / tokens[-1]) ** 2)
    return int(np.interp(length, tokens, sizes))


def unpacked_whole(data: Any) -> Any:
    """Return packed data with arrays in the place of what was packed."""
    if not isinstance(data, Mapping):
        return data
    if "data" in data and "dtype" in data:
        return unpacked(dict(data))
    return {key: unpacked_whole(value) for key, value in data.items()}


def unpacked(leaf: Data) -> Array:
    """Return the array that was packed, in float64 or as integers."""
    numbers = np.frombuffer(base64.b64decode(leaf["data"]), f"<{_CODES[leaf['dtype']]}")
    values = numbers.astype(np.float64) if "scale" in leaf else numbers
    if "scale" in leaf:
        values = values * leaf["scale"]
    if leaf.get("root"):
        values = values * np.abs(values)
    if not leaf.get("causal"):
        return values.reshape(leaf["shape"])
    whole = np.zeros(leaf["shape"], values.dtype)
    *before, length, _ = leaf["shape"]
    rows, columns = np.tril_indices(length)
    whole[..., rows, columns] = values.reshape(*before, -1)
    return whole


_CODES = {
    "float16": "f2",
    "float32": "f4",
    "uint8": "u1",
    "uint16": "u2",
    "int8": "i1",
    "int32": "i4",
}


def _arrays(data: Any, path: Path = ()) -> Iterator[tuple[Path, Array]]:
    if isinstance(data, np.ndarray):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _arrays(value, (*path, key))


def _mapped(data: Any, change: Callable[[Path, Array], Any], path: Path = ()) -> Any:
    """Return the same with each array changed; without those that become nothing."""
    if isinstance(data, np.ndarray):
        return change(path, data)
    if not isinstance(data, Mapping):
        return data
    found = {}
    for key, value in data.items():
        changed = _mapped(value, change, (*path, key))
        if changed is not _LEFT_OUT:
            found[key] = changed
    is_bare = bool(data) and not found
    return _LEFT_OUT if is_bare else found


def _kind_of(path: Path) -> str:
    """Name the kind of an array, a key of the forms."""
    first = path[0]
    if first == "looks":
        return f"looks.{path[1]}"
    if first == "shares":
        return _of_shares(path)
    if first == "lens":
        return "fractions"
    by_key = {"attention": "maps", "states": "states"}
    return "vectors" if "vectors" in path else by_key.get(first, "numbers")


def _of_shares(path: Path) -> str:
    if path[1] == "written":
        return f"written.{path[2]}"
    return "tokens" if path[1] == "tokens" else "exact"


def _form_of(path: Path, array: Array, levels: Mapping[str, int]) -> Form:
    if array.dtype.kind == "f":
        kind = _kind_of(path)
        return _FORMS[kind][levels[kind]]
    largest = array.max(initial=0)
    fits = [name for name in ("uint8", "uint16") if largest <= np.iinfo(name).max]
    return Form([*fits, "int32"][0])


def _is_causal(path: Path) -> bool:
    """Return whether an array's last two axes have nothing above the diagonal."""
    return path[-1] == "decoder" and path[0] in ("attention", "shares")


def _size(arrays: Mapping[Path, Array], levels: Mapping[str, int]) -> int:
    """Return the bytes of all packed arrays."""
    total = 0
    for path, array in arrays.items():
        form = _form_of(path, array, levels)
        if form.left_out:
            continue
        count = array.size
        if _is_causal(path):
            count = count * (array.shape[-1] + 1) // max(1, 2 * array.shape[-1])
        if form.last is not None and array.size:
            count = count * min(form.last, array.shape[-1]) // array.shape[-1]
        total += _FRAME + count * np.dtype(_CODES[form.dtype]).itemsize * 4 // 3
    return total


def _packed(path: Path, array: Array, levels: Mapping[str, int]) -> Any:
    """Pack an array in its form of now."""
    form = _form_of(path, array, levels)
    if form.left_out:
        return _LEFT_OUT
    if form.last is not None:
        array = array[..., : form.last]
    leaf: Data = {"shape": list(array.shape), "dtype": form.dtype}
    numbers = array
    if _is_causal(path):
        leaf["causal"] = True
        rows, columns = np.tril_indices(array.shape[-1])
        numbers = array[..., rows, columns]
    if array.dtype.kind == "f":
        numbers, scale = _coded(numbers, form)
        if scale is not None:
            leaf["scale"] = scale
        if form.root:
            leaf["root"] = True
    content = numbers.astype(f"<{_CODES[form.dtype]}").tobytes()
    leaf["data"] = base64.b64encode(content).decode("ascii")
    return leaf


def _coded(values: Array, form: Form) -> tuple[Array, float | None]:
    """Return the numbers that stand for values, and their scale, if they have one."""
    if form.dtype.startswith("float"):
        return values, None
    if form.root:
        values = np.sign(values) * np.sqrt(np.abs(values))
    most = np.iinfo(form.dtype).max
    largest = 1.0
    if form.dtype == "int8":
        largest = float(np.abs(values).max(initial=0.0)) or 1.0
    scale = largest / most
    return np.rint(values / scale).clip(-most, most), scale
