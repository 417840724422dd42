"""The record of a pass of the plain Transformer, for whoever looks into it.

Shapes: N rows; L positions of a tower; D d_model; H heads; d head_dim.
"""

from dataclasses import dataclass, field

from weft.engine.weights import Floats


@dataclass(frozen=True, eq=False)
class Part:
    """A sublayer at work on the residual stream, (N, L, D) each: the stream `before` it, what the
    sublayer has `written`, before any norm of its output, and the stream `after` it.
    """

    before: Floats
    written: Floats
    after: Floats


@dataclass(frozen=True, eq=False)
class Look:
    """The factors of an attention: queries, keys and values (N, H, L, d), as they enter the
    products, normed and turned.
    """

    query: Floats
    key: Floats
    value: Floats


@dataclass
class Record:
    """The arrays that a pass computed on its way; hand in an empty record to have it filled.

    Each list has an array for each layer: attention weights (N, H, queries, keys) of the encoder,
    the decoder over itself and the decoder over the source; states (N, positions, D) after each
    layer, with the embeddings before the first. A `deep` record has all sublayers of each tower
    too, in their order, the looks of each attention, and the `sums` of each tower's embeddings
    before a norm that they may have.
    """

    encoder: list[Floats] = field(default_factory=list)
    decoder: list[Floats] = field(default_factory=list)
    cross: list[Floats] = field(default_factory=list)
    encoder_states: list[Floats] = field(default_factory=list)
    decoder_states: list[Floats] = field(default_factory=list)
    deep: bool = False
    encoder_parts: list[Part] = field(default_factory=list)
    decoder_parts: list[Part] = field(default_factory=list)
    looks: dict[str, list[Look]] = field(default_factory=dict)
    sums: dict[str, Floats] = field(default_factory=dict)

    def keep_sum(self, tower: str, x: Floats) -> None:
        """Keep the sum of the embeddings of the "encoder" or the "decoder", if deep."""
        if self.deep:
            self.sums[tower] = x

    def keep_look(self, kind: str, weights: Floats, look: Look) -> None:
        """Keep an attention's weights, of "encoder", "decoder" or "cross", and if deep its look."""
        maps: list[Floats] = getattr(self, kind)
        maps.append(weights)
        if self.deep:
            self.looks.setdefault(kind, []).append(look)

    def keep_part(self, tower: str, part: Part) -> None:
        """Keep a sublayer of the "encoder" or the "decoder", if deep."""
        parts = self.encoder_parts if tower == "encoder" else self.decoder_parts
        if self.deep:
            parts.append(part)
