"""The arrays of another program's model, each made of arrays of Weft's, and read back into them.

A model in another form is a list of `Tensor`. Each knows how its numbers are made, and which of
Weft's numbers they are: so a file can be written, and one that was written can be proved.

Shapes: D d_model, V vocabulary, M inputs and N outputs of a linear map.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]
Parts: TypeAlias = list[tuple[str, Array]]
"""Arrays of Weft's, or some of their rows, by the names of the arrays."""


@dataclass(frozen=True)
class Tensor:
    """An array of another program's: its name there, the names of Weft's arrays that it is made of,
    how it is made of them, and how they are found in it again.

    `back` gives each of Weft's arrays, in the order of `of`; None for one that cannot be found in
    this array, such as one of which it has the sum with another. A constant is made of nothing.
    """

    name: str
    of: tuple[str, ...]
    make: Callable[..., Array]
    back: Callable[[Array], Sequence[Array | None]]

    def made(self, arrays: Arrays) -> Array:
        """Make the array from Weft's."""
        parts = [arrays[name] for name in self.of]
        return np.asarray(self.make(*parts), order="C")

    def found(self, array: Array) -> Parts:
        """Return Weft's arrays as they stand in an array of the other program's."""
        parts = zip(self.of, self.back(array), strict=True)
        return [(name, part) for name, part in parts if part is not None]


def same(name: str, of: str) -> Tensor:
    """Return an array that is one of Weft's as it is."""
    return Tensor(
        name,
        (of,),
        lambda array: array,
        lambda array: [array],
    )


def constant(name: str, array: Array) -> Tensor:
    """Return an array that has nothing of Weft's model, such as a bias of zeros."""
    return Tensor(
        name,
        (),
        lambda: array,
        lambda array: [],
    )


def stacked(name: str, of: Sequence[str], sizes: Sequence[int]) -> Tensor:
    """Return Weft's arrays one below the other, of so many rows each."""
    ends = np.cumsum(sizes)[:-1]
    return Tensor(
        name,
        tuple(of),
        lambda *arrays: np.concatenate(arrays),
        lambda array: np.split(array, ends),
    )


def placed(
    name: str, of: Mapping[str, NDArray[np.int64]], num_rows: int, rest: float = 0.0
) -> Tensor:
    """Return a table of so many rows in which the rows of Weft's tables have the places that are
    given; what no table fills is `rest`. Where two tables claim a row, the first one has it.
    """
    places = tuple(of.values())

    def make(*arrays: Array) -> Array:
        shape = (num_rows, *arrays[0].shape[1:])
        table = np.full(shape, rest, arrays[0].dtype)
        pairs = list(zip(places, arrays, strict=True))
        for rows, array in reversed(pairs):
            table[rows] = array
        return table

    return Tensor(name, tuple(of), make, lambda table: [table[rows] for rows in places])


# An array that is made of another one
# --------------------------------------------------------------------------------------


def transposed(tensor: Tensor) -> Tensor:
    """Return a matrix (M, N) that is another's (N, M) turned over."""
    return _changed(
        tensor,
        lambda array: array.T,
        lambda array: array.T,
    )


def permuted(tensor: Tensor, order: NDArray[np.int64], axis: int = -1) -> Tensor:
    """Return an array whose numbers along an axis stand in another order: number i is the other's
    number `order[i]`.
    """
    inverse = np.argsort(order)
    return _changed(
        tensor,
        lambda array: np.take(array, order, axis),
        lambda array: np.take(array, inverse, axis),
    )


def side_by_side(size: int, head_dim: int) -> NDArray[np.int64]:
    """Return the order of the rows of heads that are turned in which the two numbers of a pair are
    neighbours: Weft's number of each row, for `permuted`.
    """
    heads = np.arange(size).reshape(-1, 2, head_dim // 2)
    return heads.swapaxes(1, 2).ravel()


def reshaped(tensor: Tensor, shape: tuple[int, ...], before: tuple[int, ...]) -> Tensor:
    """Return an array in a shape that the other had as `before`."""
    return _changed(
        tensor,
        lambda array: array.reshape(shape),
        lambda array: array.reshape(before),
    )


def shifted(tensor: Tensor, by: float) -> Tensor:
    """Return an array plus a number: a gain w that the other program keeps as w - 1.

    A float32 may lose its last bits by this; how many of them, the certificate says.
    """
    offset = np.float32(by)
    return _changed(
        tensor,
        lambda array: array + offset,
        lambda array: array - offset,
    )


def scaled(tensor: Tensor, by: float) -> Tensor:
    """Return an array times a number; exact for a power of two."""
    factor = np.float32(by)
    return _changed(
        tensor,
        lambda array: array * factor,
        lambda array: array / factor,
    )


def hidden(tensor: Tensor, places: Sequence[int], by: float) -> Tensor:
    """Return an array with one number at some places. Weft's own are not in the file: NaN comes
    back for them.
    """
    chosen = list(places)

    def make(*arrays: Array) -> Array:
        array = tensor.make(*arrays).copy()
        array[chosen] = by
        return array

    def back(array: Array) -> Sequence[Array | None]:
        known = array.copy()
        known[chosen] = np.nan
        return tensor.back(known)

    return Tensor(tensor.name, tensor.of, make, back)


def one_way(tensor: Tensor, change: Callable[[Array], Array]) -> Tensor:
    """Return an array from which Weft's own bits cannot be had back: another array has them."""
    return Tensor(
        tensor.name,
        tensor.of,
        lambda *arrays: change(tensor.make(*arrays)),
        lambda array: [None] * len(tensor.of),
    )


def _changed(
    tensor: Tensor, there: Callable[[Array], Array], back: Callable[[Array], Array]
) -> Tensor:
    """Return an array that is another one changed, and changed back before it is read."""
    return Tensor(
        tensor.name,
        tensor.of,
        lambda *arrays: there(tensor.make(*arrays)),
        lambda array: tensor.back(back(array)),
    )


def make_all(tensors: Iterable[Tensor], arrays: Arrays) -> dict[str, Array]:
    """Make all arrays of the other program's model, by their names there."""
    return {tensor.name: tensor.made(arrays) for tensor in tensors}


def read_all(tensors: Iterable[Tensor], arrays: Arrays) -> Iterator[tuple[str, Array]]:
    """Yield Weft's arrays as they stand in the other program's, by Weft's names; one that stands
    there twice comes twice.
    """
    for tensor in tensors:
        yield from tensor.found(arrays[tensor.name])
