"""The steps of a PyTorch model for a decoder that knows only NumPy.

Shapes: N rows of the cache, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.decoding.decoder import Floats, Indices
from weft.engine.batched import BatchedEngine

Prefill: TypeAlias = Callable[[Sequence[Sequence[int]]], Any]
TorchStep: TypeAlias = Callable[
    [Int[Tensor, "N"], Any],
    tuple[Float[Tensor, "N V"], Any],
]


@dataclass(frozen=True)
class TorchCache:
    """The cache of a PyTorch model, whose rows NumPy arrays select."""

    cache: Any
    device: torch.device | str

    def select(self, rows: Indices) -> "TorchCache":
        """Keep, reorder or repeat rows."""
        places = torch.from_numpy(rows).to(self.device)
        return TorchCache(self.cache.select(places), self.device)


def engine_of_steps(
    prefill: Prefill, step: TorchStep, device: torch.device | str = "cpu"
) -> BatchedEngine[TorchCache]:
    """Return an engine that takes the steps of a PyTorch model on its device."""

    def wrapped_prefill(sources: Sequence[Sequence[int]]) -> TorchCache:
        return TorchCache(prefill(sources), device)

    def wrapped_step(tokens: Indices, known: TorchCache) -> tuple[Floats, TorchCache]:
        newest = torch.from_numpy(tokens).to(device)
        logits, cache = step(newest, known.cache)
        floats: Floats = logits.float().cpu().numpy()
        return floats, TorchCache(cache, device)

    return BatchedEngine(wrapped_prefill, wrapped_step)
