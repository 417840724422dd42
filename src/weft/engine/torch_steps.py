"""PyTorch models behind NumPy arrays, for those who know no PyTorch.

Shapes: N rows of the cache, L new positions, S source and T target tokens, D d_model, H heads, V
vocabulary; B texts, C labels.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.decoding.decoder import Floats, Indices, Step
from weft.engine.batched import Steps, padded
from weft.model.attention import AttentionRecord
from weft.model.mode import Trainable, evaluating

TorchStep: TypeAlias = Callable[
    [Int[Tensor, "N"], Any],
    tuple[Float[Tensor, "N V"], Any],
]


@dataclass(frozen=True)
class TorchCache:
    """The cache of a PyTorch model, whose rows NumPy arrays select."""

    cache: Any
    device: torch.device | str

    def until(self, length: int) -> "TorchCache":
        """Cut to the first `length` positions."""
        return TorchCache(self.cache.until(length), self.device)

    def select(self, rows: Indices) -> "TorchCache":
        """Keep, reorder or repeat rows."""
        places = torch.from_numpy(rows).to(self.device)
        return TorchCache(self.cache.select(places), self.device)


def numpy_step(step: TorchStep, device: torch.device | str = "cpu") -> Step[TorchCache]:
    """Return the same step for a search, which knows NumPy alone."""

    def wrapped(tokens: Indices, known: TorchCache) -> tuple[Floats, TorchCache]:
        newest = torch.from_numpy(tokens).to(device)
        logits, cache = step(newest, known.cache)
        floats: Floats = logits.detach().float().cpu().numpy()
        return floats, TorchCache(cache, device)

    return wrapped


@contextmanager
def calling(model: Trainable) -> Iterator[None]:
    """Call a model in evaluation mode, and leave it in the mode that it had.

    Raises MemoryError where its device has no memory left.
    """
    try:
        with evaluating(model):
            yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(str(error)) from None


class TranslationModule(Trainable, Protocol):
    """An encoder-decoder of PyTorch: source rows end with eos, target rows start with bos, padding
    is 0.
    """

    def prefill(self, src: Int[Tensor, "B S"], /) -> Any:
        """Read the source; return the cache."""
        ...

    def decode(
        self,
        ids: Int[Tensor, "N L"],
        cache: Any,
        record: AttentionRecord | None = None,
        /,
    ) -> tuple[Float[Tensor, "N L D"], Any]:
        """Return the states of the newest target positions, and the longer cache."""
        ...

    def output(self, states: Float[Tensor, "N D"], /) -> Float[Tensor, "N V"]:
        """Return the logits of the token after each state."""
        ...


def steps_of(
    model: TranslationModule, device: torch.device | str = "cpu"
) -> Steps[TorchCache]:
    """Return an encoder-decoder's own steps; MemoryError where its device has no memory left."""

    def prefill(sources: Sequence[Sequence[int]]) -> TorchCache:
        src = torch.from_numpy(padded(sources)).to(device)
        with calling(model):
            return TorchCache(model.prefill(src), device)

    def step(newest: Int[Tensor, "N"], cache: Any) -> tuple[Float[Tensor, "N V"], Any]:
        with calling(model):
            states, longer = model.decode(newest[:, None], cache)  # N -> N 1 D
            return model.output(states[:, -1]), longer

    return Steps(prefill, numpy_step(step, device))


def cross_attention_of(
    model: TranslationModule, device: torch.device | str = "cpu"
) -> Callable[[Indices, Indices], Floats]:
    """Return what computes the last layer's cross-attention (B, T, S) after each target token, the
    mean of its heads, from source ids (B, S) and target ids (B, T).
    """

    def cross_attention(src: Indices, tgt_in: Indices) -> Floats:
        record = AttentionRecord()
        with calling(model):
            cache = model.prefill(torch.from_numpy(src).to(device))
            model.decode(torch.from_numpy(tgt_in).to(device), cache, record)
            mean = record.cross[-1].mean(1)  # B H T S -> B T S
            floats: Floats = mean.float().cpu().numpy()
        return floats

    return cross_attention


class CausalModule(Trainable, Protocol):
    """A language model of PyTorch; states become logits by `output`."""

    def prefill(self, prompt: Int[Tensor, "N L"], /) -> Any:
        """Read the beginnings; return the cache."""
        ...

    def decode(
        self, ids: Int[Tensor, "N L"], cache: Any, /
    ) -> tuple[Float[Tensor, "N L D"], Any]:
        """Return the states of new positions, and the longer cache."""
        ...

    def output(self, states: Float[Tensor, "*N D"], /) -> Float[Tensor, "*N V"]:
        """Return the logits of the token after each state."""
        ...


@dataclass(frozen=True)
class TorchWriter:
    """A language model of PyTorch behind NumPy arrays, on its device."""

    model: CausalModule
    device: torch.device | str = "cpu"

    def prefill(self, ids: Indices) -> TorchCache:
        """Read beginnings of one length (N, L), without padding; L may be 0."""
        prompt = self._tensor(ids)
        with calling(self.model):
            return TorchCache(self.model.prefill(prompt), self.device)

    def decode(self, ids: Indices, cache: TorchCache) -> tuple[Floats, TorchCache]:
        """Read new tokens (N, L) after those in the cache; return the logits of what follows each
        (N, L, V), and the longer cache.
        """
        rows = self._tensor(ids)
        with calling(self.model):
            states, longer = self.model.decode(rows, cache.cache)
            logits = self.model.output(states)
            floats: Floats = logits.float().cpu().numpy()
        return floats, TorchCache(longer, self.device)

    def _tensor(self, ids: Indices) -> Int[Tensor, "N L"]:
        return torch.from_numpy(np.ascontiguousarray(ids)).to(self.device)


class ClassifierModule(Trainable, Protocol):
    """A classifier of PyTorch."""

    def __call__(self, ids: Int[Tensor, "B L"], /) -> Float[Tensor, "B C"]:
        """Return the logits of each label."""
        ...


@dataclass(frozen=True)
class TorchClassifier:
    """A classifier of PyTorch behind NumPy arrays, on its device."""

    model: ClassifierModule
    device: torch.device | str = "cpu"

    def logits(self, ids: Indices) -> NDArray[np.float64]:
        """Return the logits of each label (B, C) for padded texts (B, L)."""
        rows = torch.from_numpy(ids).to(self.device)
        with calling(self.model):
            doubles: NDArray[np.float64] = self.model(rows).double().cpu().numpy()
        return doubles
