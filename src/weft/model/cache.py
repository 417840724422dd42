"""What a decoder has seen so far, as a value: keys and values of every layer, and the source's padding.

Shapes: the legend in `weft.model.attention`; N rows are sentences or hypotheses.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class LayerCache:
    """One decoder layer's keys and values: of the positions decoded so far, and of the memory."""

    key: Float[Tensor, "N H T K"]
    value: Float[Tensor, "N H T K"]
    memory_key: Float[Tensor, "N H S K"]
    memory_value: Float[Tensor, "N H S K"]


@dataclass(frozen=True)
class DecoderCache:
    """All layers' keys and values; a new one is made at each step, none is ever changed."""

    layers: tuple[LayerCache, ...]
    memory_padding: Bool[Tensor, "N S"]

    @property
    def length(self) -> int:
        """How many target positions it has seen."""
        return self.layers[0].key.shape[2]

    def select(self, rows: Int[Tensor, " M"]) -> "DecoderCache":
        """Keep, reorder or repeat rows."""
        layers = tuple(
            LayerCache(layer.key[rows], layer.value[rows], layer.memory_key[rows], layer.memory_value[rows])
            for layer in self.layers
        )
        return DecoderCache(layers, self.memory_padding[rows])

    def join(self, other: "DecoderCache") -> "DecoderCache":
        """The rows of both, this one's first; they must have seen equally many target positions."""
        if self.length != other.length:
            raise ValueError(f"caches of {self.length} and {other.length} target positions cannot be joined")
        width = max(self.memory_padding.shape[1], other.memory_padding.shape[1])
        mine, theirs = self._widened(width), other._widened(width)
        layers = tuple(
            LayerCache(
                torch.cat([a.key, b.key]),
                torch.cat([a.value, b.value]),
                torch.cat([a.memory_key, b.memory_key]),
                torch.cat([a.memory_value, b.memory_value]),
            )
            for a, b in zip(mine.layers, theirs.layers, strict=True)
        )
        return DecoderCache(layers, torch.cat([mine.memory_padding, theirs.memory_padding]))

    def _widened(self, width: int) -> "DecoderCache":
        """The same with the memory padded to `width` positions."""
        extra = width - self.memory_padding.shape[1]
        if extra == 0:
            return self
        layers = tuple(
            LayerCache(
                layer.key,
                layer.value,
                F.pad(layer.memory_key, (0, 0, 0, extra)),
                F.pad(layer.memory_value, (0, 0, 0, extra)),
            )
            for layer in self.layers
        )
        return DecoderCache(layers, F.pad(self.memory_padding, (0, extra), value=True))
