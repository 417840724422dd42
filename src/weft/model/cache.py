"""The cache of a decoder, a value: keys and values of every layer, and the source's padding.

A new cache is made at each step, none is ever changed.
Shapes: the legend in `weft.model.attention`; N rows are sentences, prompts or hypotheses, M those
that are chosen from them.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class KeysValues:
    """The keys and values of one attention: for each position one key and one value."""

    key: Float[Tensor, "N J L d_k"]
    value: Float[Tensor, "N J L d_k"]

    @property
    def length(self) -> int:
        """Return the number of positions."""
        return self.key.shape[2]

    def extended(self, new: "KeysValues") -> "KeysValues":
        """Append new positions."""
        # nothing to copy, and the empty tensor must not decide the dtype
        if not self.length:
            return new
        return KeysValues(
            torch.cat([self.key, new.key], dim=2),
            torch.cat([self.value, new.value], dim=2),
        )

    def until(self, length: int) -> "KeysValues":
        """Cut to the first `length` positions."""
        return KeysValues(self.key[:, :, :length], self.value[:, :, :length])

    def select(self, rows: Int[Tensor, " M"]) -> "KeysValues":
        """Keep, reorder or repeat rows."""
        return KeysValues(self.key[rows], self.value[rows])


@dataclass(frozen=True)
class CausalCache:
    """The cache of a decoder-only model; its rows have equally many positions.

    `ids` are the tokens read, which n-grams and matches of the next positions reach back to.
    """

    layers: tuple[KeysValues, ...]
    ids: Int[Tensor, "N L"]

    @property
    def length(self) -> int:
        """Return the number of positions so far."""
        return self.layers[0].length

    def until(self, length: int) -> "CausalCache":
        """Cut the cache to its first `length` positions."""
        return CausalCache(
            tuple(layer.until(length) for layer in self.layers), self.ids[:, :length]
        )

    def select(self, rows: Int[Tensor, " M"]) -> "CausalCache":
        """Keep, reorder or repeat rows."""
        return CausalCache(
            tuple(layer.select(rows) for layer in self.layers), self.ids[rows]
        )


@dataclass(frozen=True)
class LayerCache:
    """The cache of an encoder-decoder's layer: keys and values of the target so far and of the
    memory.
    """

    past: KeysValues
    memory: KeysValues


@dataclass(frozen=True)
class DecoderCache:
    """The cache of an encoder-decoder: that of each layer of its decoder."""

    layers: tuple[LayerCache, ...]
    memory_padding: Bool[Tensor, "N S"]

    @property
    def length(self) -> int:
        """Return the number of target positions so far."""
        return self.layers[0].past.length

    def select(self, rows: Int[Tensor, " M"]) -> "DecoderCache":
        """Keep, reorder or repeat rows."""
        layers = tuple(
            LayerCache(layer.past.select(rows), layer.memory.select(rows))
            for layer in self.layers
        )
        return DecoderCache(layers, self.memory_padding[rows])
