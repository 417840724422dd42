"""The data of an inspection as JSON: arrays as lists of rounded numbers, or packed for a page
(`weft.inspection.coding`). Numbers that stand alone are rounded either way.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from weft.inspection.coding import (
    Array,
    Data,
    Form,
    coded,
    is_packed,
    is_sinusoidal,
    sinusoidal,
    unpacked,
)

Path: TypeAlias = tuple[str, ...]

DECIMALS = 4
_OF_PAGES = (
    7  # what is rounded again where it is shown: to four before, 0.92652 would be 0.926
)
# of what a reader sees as colours
_FEWER = {"vectors": 3, "looks": 3, "states": 3}
_EXACT = "error"  # the key of a number that is nearly 0
# of the data of a page, in bytes, by the tokens of the text that is read
_BUDGET = ((10, 100_000), (40, 250_000), (127, 1_095_000))
_FEWEST_DIMENSIONS = 64
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


_FRACTION = Form("uint16")
_GONE = Form("", left_out=True)
_WRITTEN = Form("float16", sums=True), Form("int8", root=True, sums=True), _GONE
_LOOKS = Form("float16"), Form("int8"), Form("int6"), _GONE

# what kinds of arrays may become, the most exact form first
_FORMS: dict[str, tuple[Form, ...]] = {
    "maps": (_FRACTION, Form("uint8", root=True)),
    "tokens": (Form("float16"), Form("int8", root=True)),
    "written.cross": _WRITTEN,
    "written.decoder": _WRITTEN,
    "written.encoder": _WRITTEN,
    "looks.cross": _LOOKS,
    "looks.decoder": _LOOKS,
    "looks.encoder": _LOOKS,
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
    "maps",
    "tokens",
    "written.encoder",
    "written.decoder",
    "written.cross",
    "looks.encoder",
    "looks.decoder",
    "vectors",
    "states",
    "looks.cross",
    "looks.encoder",
    "looks.decoder",
    "looks.cross",
    "vectors",
    "written.encoder",
    "written.decoder",
    "written.cross",
)


def packed(data: Data, budget: int | None = None, *, deflates: bool = True) -> Data:
    """Return the same data with all arrays packed, as exactly as a page's budget of bytes allows,
    and all other numbers rounded. In a page they will be deflated; without `deflates`, as in an
    answer that is awaited, that is not tried, which takes a while.

    Where it is too small, numbers have fewer bits, step by step; then looks are left out by kinds,
    and at last what heads have written: `looks.left_out` and `shares.left_out` name them.

    Of several inspections, each without looks has half of a page's budget.
    """
    data = _rounded(data, lambda array, decimals: array, _OF_PAGES)
    if "inspections" in data:
        found = []
        for each in data["inspections"]:
            own = budget or budget_for(each)
            share = own if "looks" in each else own // 2
            found.append(packed(each, share, deflates=deflates))
        return {**data, "inspections": found}
    if budget is None:
        budget = budget_for(data)
    levels = dict.fromkeys(_FORMS, 0)
    packing = _Packing(data, _deflated if deflates else _written)
    for step in _STEPS:
        if packing.size(levels) <= budget:
            break
        levels[step] += 1
    content = packing.packed(levels)
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
    """Return the bytes that a page's data may have once they are deflated: they grow with the text
    that is read.
    """
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
    if is_packed(data):
        return unpacked(dict(data))
    return {key: unpacked_whole(value) for key, value in data.items()}


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


class _Packing:
    """Data that are packed at several levels; the size of each form of an array is found once."""

    def __init__(self, data: Data, measure: Callable[[Any], int]) -> None:
        self.data = data
        self.measure = measure
        self.arrays = dict(_arrays(data))
        self.widths = dict(_formulas(data))
        self.rest = measure(_mapped(data, lambda path, array: 0))
        self.sizes: dict[tuple[Path, Form], int] = {}

    def packed(self, levels: Mapping[str, int]) -> Data:
        """Return the data, their arrays in the forms of these levels."""
        found: Data = _mapped(
            self.data, lambda path, array: self._leaf(path, array, levels)
        )
        return found

    def size(self, levels: Mapping[str, int]) -> int:
        """Return the bytes that they will have."""
        total = self.rest
        for path, array in self.arrays.items():
            key = path, _form_of(path, array, levels)
            if key not in self.sizes:
                self.sizes[key] = self.measure(self._leaf(path, array, levels))
            total += self.sizes[key]
        return total

    def _leaf(self, path: Path, array: Array, levels: Mapping[str, int]) -> Any:
        form = _form_of(path, array, levels)
        if form.left_out:
            return _LEFT_OUT
        if path in self.widths:
            return sinusoidal(array[..., : form.last], self.widths[path])
        return coded(array, form, _is_causal(path))


def _formulas(data: Data) -> Iterator[tuple[Path, int]]:
    """Yield the paths of vectors of positions that follow the formula, and the model's width."""
    for side in ("source", "target", "tokens"):
        vectors = data.get(side, {}).get("vectors", {})
        positions = vectors.get("positions")
        if positions is not None and is_sinusoidal(positions, vectors["width"]):
            yield (side, "vectors", "positions"), vectors["width"]


def _deflated(data: Any) -> int:
    """Return the bytes of data as they lie in a page: JSON, deflated, in base64."""
    return len(zlib.compress(_json(data), 6)) * 4 // 3


def _written(data: Any) -> int:
    """Return the bytes of data as JSON."""
    return len(_json(data))


def _json(data: Any) -> bytes:
    if data is _LEFT_OUT:
        return b""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
