"""A graph of ONNX in the making: values that are computed from values, and the arrays they need.

A graph is built from a model's weights, without PyTorch: each array keeps the name that it has in
Weft, constants have names that say what they are, and nothing else is in the file. Python's
operators stand for those of ONNX, so that a model reads as its formula.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from weft.ship.target import load
from weft.ship.tensors import Array, Arrays, Tensor, constant, same, transposed

OPSET = 20
IR_VERSION = 9  # the oldest that has this set of operators
MOST_BYTES = (
    2**31 - 2**20
)  # of a file: those of a message of protobuf, less what is no weight
_END = 2**31 - 1  # of a slice: as far as there is something
# the numbers by which ONNX knows its types
_TYPES = {"float32": 1, "uint8": 2, "int64": 7, "bool": 9}

Size: TypeAlias = int | str
Number: TypeAlias = int | float
Operand: TypeAlias = "Value | Number"


@dataclass(frozen=True)
class Port:
    """An input or output: its name, its type, and its sizes; one that has a name may be any."""

    name: str
    dtype: str
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class Node:
    """An operation: its kind, the names of its inputs and outputs, and its attributes."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


def _operator(kind: str) -> Callable[["Value", "Operand"], "Value"]:
    """Return the method that adds an operation of two operands to a graph."""

    def computed(self: "Value", other: "Operand") -> "Value":
        return self.graph.op(kind, self, other)

    return computed


@dataclass(frozen=True, eq=False)
class Value:
    """An array that a graph computes or has, by its name there."""

    graph: "Graph"
    name: str

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")
    __mod__ = _operator("Mod")
    __matmul__ = _operator("MatMul")
    __gt__ = _operator("Greater")
    __ge__ = _operator("GreaterOrEqual")
    __and__ = _operator("And")
    __or__ = _operator("Or")

    def __invert__(self) -> "Value":
        """Return the opposite of each truth."""
        return self.graph.op("Not", self)

    def equals(self, other: "Operand") -> "Value":
        """Return whether each number is the other's."""
        return self.graph.op("Equal", self, other)

    def to(self, dtype: str) -> "Value":
        """Return the same numbers in another type."""
        number = _TYPES[dtype]
        return self.graph.op("Cast", self, to=number)

    def size(self, axis: int) -> "Value":
        """Return the size of an axis, as an array of one whole number."""
        end = axis + 1
        return self.graph.op("Shape", self, start=axis, end=end)

    def rows(self, ids: "Value") -> "Value":
        """Return the rows of a table that ids name."""
        return self.graph.op("Gather", self, ids)

    def transposed(self, *axes: int) -> "Value":
        """Return the array with its axes in another order."""
        return self.graph.op("Transpose", self, perm=list(axes))

    def reshaped(self, *sizes: int) -> "Value":
        """Return the array in another shape; a size of 0 is as it was, -1 is what is left."""
        shape = self.graph.ints(*sizes)
        return self.graph.op("Reshape", self, shape)

    def unsqueezed(self, *axes: int) -> "Value":
        """Return the array with new axes of size 1 at these places."""
        new = self.graph.ints(*axes)
        return self.graph.op("Unsqueeze", self, new)

    def part(
        self, axis: int, start: "Value | int", end: "Value | int" = _END
    ) -> "Value":
        """Return what lies from `start` on and before `end` along an axis."""
        graph = self.graph
        if isinstance(start, int):
            start = graph.ints(start)
        if isinstance(end, int):
            end = graph.ints(end)
        axes = graph.ints(axis)
        return graph.op("Slice", self, start, end, axes)

    def sum(self, axis: int) -> "Value":
        """Return the sum along an axis, which is then gone."""
        axes = self.graph.ints(axis)
        return self.graph.op("ReduceSum", self, axes, keepdims=0)

    def mean(self) -> "Value":
        """Return the mean along the last axis, which stays with size 1."""
        axes = self.graph.ints(-1)
        return self.graph.op("ReduceMean", self, axes, keepdims=1)

    def largest(self) -> "Value":
        """Return the largest along the last axis, which is then gone."""
        axes = self.graph.ints(-1)
        return self.graph.op("ReduceMax", self, axes, keepdims=0)

    def halves(self) -> tuple["Value", "Value"]:
        """Return both halves of the last axis."""
        first, second = self.graph.ops(
            "Split",
            self,
            count=2,
            axis=-1,
            num_outputs=2,
        )
        return first, second


class Graph:
    """A graph in the making, and the arrays of the model that it may take."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []

    def input(self, name: str, dtype: str, *sizes: Size) -> Value:
        """Add an input."""
        self.inputs.append(Port(name, dtype, sizes))
        return Value(self, name)

    def output(self, name: str, value: Value, *sizes: Size) -> None:
        """Add an output of floats, or of whole numbers where the name says that they are ids."""
        dtype = "int64" if name.endswith("_ids") else "float32"
        self.nodes.append(Node("Identity", (value.name,), (name,), {}))
        self.outputs.append(Port(name, dtype, sizes))

    def has(self, name: str) -> bool:
        """Return whether the model has an array of this name."""
        return name in self.arrays

    def weight(self, name: str) -> Value:
        """Return an array of the model."""
        return self.array(same(name, name))

    def matrix(self, name: str) -> Value:
        """Return the matrix of a linear map, inputs by outputs, as products take it."""
        return self.array(transposed(same(name, name)))

    def array(self, tensor: Tensor) -> Value:
        """Return an array by its name; it is in the file once."""
        self.tensors.setdefault(tensor.name, tensor)
        return Value(self, tensor.name)

    def ints(self, *numbers: int) -> Value:
        """Return an array of whole numbers."""
        name = "_".join(["ints", *map(str, numbers)])
        array = np.array(numbers, np.int64)
        return self.array(constant(name, array))

    def number(self, number: Number) -> Value:
        """Return a number: a whole one as int64, any other as float32."""
        if isinstance(number, int):
            name = f"int_{number}"
            array = np.array(number, np.int64)
        else:
            array = np.array(number, np.float32)
            name = f"float_{array!s}"
        return self.array(constant(name, array))

    def op(self, kind: str, *inputs: Value | Number, **attributes: Any) -> Value:
        """Add an operation with one output."""
        (value,) = self.ops(kind, *inputs, **attributes)
        return value

    def ops(
        self, kind: str, *inputs: Value | Number, count: int = 1, **attributes: Any
    ) -> list[Value]:
        """Add an operation with so many outputs."""
        names = []
        for part in inputs:
            value = part if isinstance(part, Value) else self.number(part)
            names.append(value.name)
        number = len(self.nodes)
        outputs = [f"{kind}_{number}_{i}" for i in range(count)]
        node = Node(kind, tuple(names), tuple(outputs), attributes)
        self.nodes.append(node)
        return [Value(self, name) for name in outputs]

    def range(self, first: Value, end: Value) -> Value:
        """Return the whole numbers from the first on and before the end, arrays of one each."""
        scalars = [self.op("Squeeze", part, self.ints(0)) for part in (first, end)]
        return self.op("Range", *scalars, 1)

    def join(self, parts: Sequence[Value], axis: int) -> Value:
        """Put arrays one behind the other along an axis."""
        return self.op("Concat", *parts, axis=axis)

    def num_bytes(self) -> int:
        """Return the bytes of the model's arrays in the file."""
        names: set[str] = set()
        for tensor in self.tensors.values():
            names.update(tensor.of)
        sizes = (self.arrays[name].nbytes for name in names)
        return sum(sizes)

    def write(
        self, path: Path, name: str, facts: Mapping[str, str] | None = None
    ) -> None:
        """Write the graph, the same bytes each time; `facts` about it are in the file, too."""
        onnx = load("onnx")
        helper = onnx.helper
        weights = []
        for tensor in self.tensors.values():
            array = tensor.made(self.arrays)
            weights.append(onnx.numpy_helper.from_array(array, tensor.name))
        graph = helper.make_graph(
            [_node(helper, node) for node in self.nodes],
            name,
            [_port(helper, port) for port in self.inputs],
            [_port(helper, port) for port in self.outputs],
            weights,
        )
        model = helper.make_model(
            graph,
            producer_name="Weft",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        helper.set_model_props(model, dict(facts or {}))
        content = model.SerializeToString(deterministic=True)
        path.write_bytes(content)


def read_arrays(path: Path) -> Iterator[tuple[str, Array]]:
    """Yield all arrays of a file: the weights and constants of the graph, and those that stand
    in an operation itself.
    """
    onnx = load("onnx")
    graph = onnx.load(str(path)).graph
    tensors = list(graph.initializer)
    for node in graph.node:
        parts = (part for part in node.attribute if part.HasField("t"))
        tensors += [part.t for part in parts]
    for tensor in tensors:
        array = onnx.numpy_helper.to_array(tensor)
        yield tensor.name, array


def _node(helper: Any, node: Node) -> Any:
    return helper.make_node(
        node.kind,
        node.inputs,
        node.outputs,
        **node.attributes,
    )


def _port(helper: Any, port: Port) -> Any:
    number = _TYPES[port.dtype]
    return helper.make_tensor_value_info(port.name, number, port.sizes)
