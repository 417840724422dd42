"""Arrays whose axes have names, in groups: what an inspection holds, for Python.

inspection.attention.cross.axes                   ("layer", "head", "target", "source")
inspection.attention.cross.at(layer=1, head=0)    a map (target, source)
numpy.asarray(inspection.attention.cross)         the plain array
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import UsageError


@dataclass(frozen=True, eq=False, repr=False)
class Named:
    """An array, `values`, with a name for each of its axes."""

    values: NDArray[Any]
    axes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes):
            raise ValueError(
                f"an array of {self.values.ndim} axes cannot be named {self.axes}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes, in their order."""
        return self.values.shape

    @property
    def sizes(self) -> dict[str, int]:
        """Return the length of each axis by its name."""
        return dict(zip(self.axes, self.shape, strict=True))

    def at(self, **places: int) -> "Named":
        """Take one place of each axis that is named, counted from 0 or from the end (-1).

        Raises UsageError for an axis or a place that the array does not have.
        """
        index: list[int | slice] = [slice(None)] * len(self.axes)
        for axis, place in places.items():
            size = self.shape[self._number(axis)]
            if not -size <= place < size:
                raise UsageError(f"{axis} = {place}: there are {size}, from 0 on")
            index[self._number(axis)] = place
        rest = tuple(axis for axis in self.axes if axis not in places)
        return Named(self.values[tuple(index)], rest)

    def mean(self, *axes: str) -> "Named":
        """Take the mean over axes; of all numbers where none is named."""
        return self._reduced(np.mean, axes)

    def sum(self, *axes: str) -> "Named":
        """Take the sum over axes; of all numbers where none is named."""
        return self._reduced(np.sum, axes)

    def _reduced(self, reduce: Any, axes: tuple[str, ...]) -> "Named":
        over = axes or self.axes
        numbers = tuple(map(self._number, over))
        rest = tuple(axis for axis in self.axes if axis not in over)
        return Named(np.asarray(reduce(self.values, axis=numbers)), rest)

    def _number(self, axis: str) -> int:
        if axis not in self.axes:
            raise UsageError(f"there is no axis {axis!r}; its axes are {self._listed}")
        return self.axes.index(axis)

    @property
    def _listed(self) -> str:
        return ", ".join(self.axes) or "none"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __float__(self) -> float:
        return float(self.values)

    def __repr__(self) -> str:
        sizes = [f"{axis} {size}" for axis, size in self.sizes.items()]
        return f"Named({', '.join(sizes) or float(self.values)}; {self.values.dtype})"


class Group:
    """Arrays and other values of one kind, each an attribute.

    Raises AttributeError, with the names that there are, for another one.
    """

    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        self._name = name
        self._content = dict(content)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not set yet: a copy
            raise AttributeError(name)
        if name not in self._content:
            there = ", ".join(self._content) or "nothing"
            raise AttributeError(
                f"{self._name} has no {name}; of this model there is {there}"
            )
        return self._content[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._content]

    def __contains__(self, name: object) -> bool:
        return name in self._content

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        rows = [f"  {name}: {value!r}" for name, value in self._content.items()]
        return "\n".join([f"{self._name}:", *rows])
