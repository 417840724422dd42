"""The map of a model: its parts in their order, with their sizes, as a page draws them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from weft.config import LayerShape
from weft.engine.weights import (
    Attention,
    ClassifierWeights,
    Layer,
    Linear,
    Norm,
    Side,
    Weights,
)

Data: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Box:
    """A part of a model: `inputs` numbers come in and `outputs` go out, of a feed-forward part with
    so many `between`; `numbers` are its own weights, those of its norms too.

    `tower` is "encoder", "decoder", "bag" or "output". Of a matrix that several parts share the
    first has the numbers.
    """

    name: str
    tower: str
    layer: int | None
    part: str
    inputs: int
    outputs: int
    between: int | None
    numbers: int

    def to_data(self) -> Data:
        """Return the same as a dictionary."""
        found = asdict(self)
        found["in"] = found.pop("inputs")
        found["out"] = found.pop("outputs")
        return found


@dataclass(frozen=True)
class ModelMap:
    """The boxes of a model, and the names of those that are `tied`: they share a matrix.

    `shape` is what is the same in all layers; `vocabulary` has the number of tokens of each side.
    """

    boxes: list[Box]
    tied: list[list[str]]
    shape: Mapping[str, Any]
    vocabulary: dict[str, int]

    @property
    def parameters(self) -> int:
        """Return the number of all weights."""
        return sum(box.numbers for box in self.boxes)

    def to_data(self) -> Data:
        """Return the same as a dictionary."""
        return {
            "parameters": self.parameters,
            **self.shape,
            "tied": self.tied,
            "vocabulary": self.vocabulary,
            "boxes": [box.to_data() for box in self.boxes],
        }


def shape_data(shape: LayerShape) -> Data:
    """Return what is the same in all layers of a Transformer."""
    return {
        "d_model": shape.d_model,
        "num_heads": shape.num_heads,
        "head_dim": shape.dim_of_head,
        "norm_first": shape.norm_first,
        "norm": shape.norm,
        "activation": shape.activation,
        "positions": shape.positions,
        "gated": shape.activation in ("swiglu", "geglu"),
    }


def map_of_translator(
    shape: LayerShape, weights: Weights, ties: bool, joint: bool
) -> ModelMap:
    """Return the map of an encoder-decoder Transformer. `ties` says that the output's matrix is
    that of the target's tokens, which are the source's too where the vocabulary is `joint`.
    """
    assert weights.src is not None
    assert weights.tgt is not None
    draw = _Drawing(shape)
    is_one = ties and joint
    draw.embedding("encoder", weights.src)
    draw.norm("encoder", weights.src.norm, "embedding-norm")
    draw.layers("encoder", weights.encoder)
    draw.norm("encoder", weights.encoder_norm)
    draw.embedding("decoder", weights.tgt, has_own=not is_one)
    draw.norm("decoder", weights.tgt.norm, "embedding-norm")
    draw.layers("decoder", weights.decoder)
    draw.norm("decoder", weights.decoder_norm)
    draw.output(weights.projection, has_own=not ties)
    tied = []
    if ties:
        first = ["encoder.embedding"] if is_one else []
        tied = [[*first, "decoder.embedding", "output"]]
    sizes = {"source": len(weights.src.tokens), "target": len(weights.tgt.tokens)}
    return ModelMap(draw.boxes, tied, shape_data(shape), sizes)


def map_of_writer(shape: LayerShape, weights: Weights, ties: bool) -> ModelMap:
    """Return the map of a language model."""
    assert weights.tgt is not None
    draw = _Drawing(shape)
    draw.embedding("decoder", weights.tgt)
    if weights.ngrams is not None:
        draw.table("decoder", "ngrams", weights.ngrams.vectors)
    if weights.matches is not None:
        draw.table("decoder", "matches", weights.matches.vectors)
    draw.norm("decoder", weights.tgt.norm, "embedding-norm")
    draw.layers("decoder", weights.decoder)
    draw.norm("decoder", weights.decoder_norm)
    draw.output(weights.projection, has_own=not ties)
    tied = [["decoder.embedding", "output"]] if ties else []
    return ModelMap(
        draw.boxes, tied, shape_data(shape), {"text": len(weights.tgt.tokens)}
    )


def map_of_classifier(
    shape: LayerShape, weights: ClassifierWeights, size: int
) -> ModelMap:
    """Return the map of a classifier whose vocabulary has this size."""
    draw = _Drawing(shape)
    encoder = weights.encoder
    if encoder is not None:
        assert encoder.src is not None
        draw.embedding("encoder", encoder.src)
        draw.norm("encoder", encoder.src.norm, "embedding-norm")
        draw.layers("encoder", encoder.encoder)
        draw.norm("encoder", encoder.encoder_norm)
        width = encoder.d_model
        draw.box("encoder", "pooling", (width, width), 0)
    bag = weights.bag
    if bag is not None:
        own = 0 if bag.token_weights is None else bag.token_weights.size
        draw.table("bag", "bag", bag.tokens, own)
        if bag.hashed is not None:
            own = 0 if bag.hashed_weights is None else bag.hashed_weights.size
            draw.table("bag", "ngrams", bag.hashed.vectors, own)
    draw.output(weights.projection, has_own=True)
    known = {} if encoder is None else shape_data(shape)
    return ModelMap(draw.boxes, [], known, {"text": size})


class _Drawing:
    """Boxes, one after the other."""

    def __init__(self, shape: LayerShape) -> None:
        self.shape = shape
        self.boxes: list[Box] = []

    def box(
        self,
        tower: str,
        part: str,
        ends: tuple[int, int],
        numbers: int,
        layer: int | None = None,
        between: int | None = None,
    ) -> None:
        """Add a box."""
        places = [tower, *([] if layer is None else [str(layer)]), part]
        name = "output" if part == "output" else ".".join(places)
        self.boxes.append(Box(name, tower, layer, part, *ends, between, numbers))

    def embedding(self, tower: str, side: Side, has_own: bool = True) -> None:
        """Add the tokens, and the positions where they are vectors."""
        count, width = side.tokens.shape
        numbers = side.tokens.size if has_own else 0
        self.box(tower, "embedding", (count, width), numbers)
        if side.positions is not None:
            is_learned = self.shape.positions == "learned"
            numbers = side.positions.size if is_learned else 0
            self.box(tower, "positions", (len(side.positions), width), numbers)

    def table(self, tower: str, part: str, vectors: Any, others: int = 0) -> None:
        """Add a table of vectors, with other weights of its own."""
        self.box(tower, part, vectors.shape, vectors.size + others)

    def layers(self, tower: str, layers: tuple[Layer, ...]) -> None:
        """Add the sublayers of each layer, each with its norms."""
        for number, layer in enumerate(layers):
            for place, (part, numbers) in enumerate(self._sublayers(layer)):
                norms = layer.norms[place : place + 1] + layer.after[place : place + 1]
                total = numbers + sum(map(_of_norm, norms))
                between = None
                if part == "feed-forward":
                    between = len(layer.inner.stored)
                width = self.shape.d_model
                self.box(tower, part, (width, width), total, number, between)

    def _sublayers(self, layer: Layer) -> Iterator[tuple[str, int]]:
        yield "self", self._of_attention(layer.self_attention)
        if layer.cross_attention is not None:
            yield "cross", self._of_attention(layer.cross_attention)
        gate = 0 if layer.gate is None else _of_map(layer.gate)
        yield "feed-forward", _of_map(layer.inner) + _of_map(layer.outer) + gate

    def _of_attention(self, part: Attention) -> int:
        """Count the weights of an attention; those of keys and values that heads share, once."""
        times = self.shape.num_heads // self.shape.key_value_heads
        shared = _of_map(part.key) + _of_map(part.value)
        gains = [gain for gain in (part.query_gain, part.key_gain) if gain is not None]
        own = _of_map(part.query) + _of_map(part.output) + sum(map(len, gains))
        return own + shared // times

    def norm(self, tower: str, norm: Norm | None, part: str = "norm") -> None:
        """Add the norm after a tower, or another one, where it has one."""
        if norm is not None:
            width = self.shape.d_model
            self.box(tower, part, (width, width), _of_norm(norm))

    def output(self, projection: Linear | None, has_own: bool) -> None:
        """Add the projection to logits."""
        assert projection is not None
        outputs, inputs = projection.stored.shape
        numbers = _of_map(projection)
        if not has_own:
            numbers -= projection.stored.size
        self.box("output", "output", (inputs, outputs), numbers)


def _of_map(part: Linear) -> int:
    return part.stored.size + (0 if part.bias is None else part.bias.size)


def _of_norm(norm: Norm) -> int:
    return norm.gain.size + (0 if norm.bias is None else norm.bias.size)
