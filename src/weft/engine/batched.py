"""A model's own prefill and step as a decoder for the search: on a GPU, of recurrent models,
without an engine.

Shapes: R rows of one step, M of the cache before it, V vocabulary, m candidates of each row.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.decoding.decoder import Cache, Ids, Step, StepInput, TopK

C = TypeVar("C", bound=Cache)


class BatchedDecoder(Generic[C]):
    """Sentences that begin together: every row of the cache has seen equally many positions.

    `prefill` makes the cache of one row a sentence; `step` is a search's. A hypothesis is a row of
    the cache, found by the index of its sentence and its own in the beam.
    """

    begins_together = True

    def __init__(
        self,
        prefill: Callable[[Sequence[Sequence[int]]], C],
        step: Step[C],
        num_sentences: int,
        beam_size: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_sentences = num_sentences
        self.beam_size = beam_size
        self._prefill, self._step, self._device = prefill, step, device
        self._cache: C | None = None
        # of the cache, by sentence and beam index
        self._rows: dict[tuple[int, int], int] = {}
        # by sentence, where not everything is
        self._allowed: dict[int, Int[Tensor, " A"]] = {}

    def read(
        self,
        indices: Sequence[int],
        sources: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Begin with these sentences, each at an index of its own; those before them are gone."""
        self._cache = self._prefill(sources)
        self._rows = {(index, 0): row for row, index in enumerate(indices)}
        lists = zip(indices, allowed, strict=False)
        self._allowed = {
            index: torch.as_tensor(ids, device=self._device).long()
            for index, ids in lists
            if len(ids)
        }

    def step(self, inputs: StepInput, k: int, *, all_log_probs: bool = False) -> TopK:
        """Step once for each row, as `weft.engine.bindings.Session.step`."""
        assert self._cache is not None
        positions = inputs.positions
        last = np.maximum(positions - 1, 0)
        ancestors = inputs.ancestors[np.arange(len(inputs)), last]
        beams_before = np.where(positions > 0, ancestors, 0).tolist()
        sentences = inputs.sentences.tolist()
        parents = [self._rows[key] for key in zip(sentences, beams_before, strict=True)]
        if parents != list(range(len(self._rows))):
            self._cache = self._cache.select(torch.tensor(parents, device=self._device))
        logits, self._cache = self._step(
            torch.tensor(inputs.tokens.tolist(), device=self._device), self._cache
        )
        keys = zip(sentences, inputs.beams.tolist(), strict=True)
        self._rows = {key: row for row, key in enumerate(keys)}
        log_probs = self._within(logits.float(), inputs.sentences).log_softmax(-1)
        all_of_them = log_probs.cpu().numpy() if all_log_probs else None
        best, ids = best_allowed(log_probs, inputs, k)
        return best.cpu().numpy(), ids.cpu().numpy().astype(np.int32), all_of_them

    def _within(
        self, logits: Float[Tensor, "R V"], sentences: NDArray[np.int64]
    ) -> Float[Tensor, "R V"]:
        """Return the logits of what each row may become."""
        if not self._allowed:
            return logits
        within = torch.full_like(logits, -torch.inf)
        for row, index in enumerate(sentences.tolist()):
            ids = self._allowed.get(index, slice(None))
            within[row, ids] = logits[row, ids]
        return within


class BatchedEngine(Generic[C]):
    """Makes these decoders."""

    def __init__(
        self,
        prefill: Callable[[Sequence[Sequence[int]]], C],
        step: Step[C],
        device: torch.device | str = "cpu",
    ) -> None:
        self._prefill, self._step, self._device = prefill, step, device

    def session(self, num_sentences: int, beam_size: int) -> BatchedDecoder[C]:
        """Start a session of so many sentences with so many hypotheses each."""
        return BatchedDecoder(
            self._prefill, self._step, num_sentences, beam_size, self._device
        )


def best_allowed(
    log_probs: Float[Tensor, "R V"], inputs: StepInput, count: int
) -> tuple[Float[Tensor, "R m"], Int[Tensor, "R m"]]:
    """Return the `count` best next tokens of each row that are not banned."""
    if inputs.ban_ends is not None and len(inputs.banned):
        rows = np.arange(len(inputs))
        where = np.repeat(rows, np.diff(inputs.ban_ends, prepend=0))
        places = tuple(
            torch.from_numpy(x).long().to(log_probs.device)
            for x in (where, inputs.banned)
        )
        log_probs = log_probs.index_put(places, log_probs.new_tensor(-torch.inf))
    return _best(log_probs, count)


def _best(
    log_probs: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R m"], Int[Tensor, "R m"]]:
    """Return the `count` largest of each row, the lower id first among equals.

    -inf where there are not so many.
    """
    known = min(count, log_probs.shape[1])
    best, ids, tied = top(log_probs[None], known)
    if tied.any():
        best, ids, _ = top_among_equals(log_probs[None], known)
    missing = (0, count - known)
    return torch.nn.functional.pad(
        best[0], missing, value=-torch.inf
    ), torch.nn.functional.pad(ids[0], missing)


_Top: TypeAlias = tuple[
    Float[Tensor, "B k m"], Int[Tensor, "B k m"], Bool[Tensor, "B k"]
]


def top(values: Float[Tensor, "B k V"], m: int) -> _Top:
    """Return the m largest values of each row, largest first, the lower id first among equals; and
    their ids.

    The flag says that the smallest of them has equals that were left out: topk promises no order
    among equals, so the choice has to be made anew by `top_among_equals`.
    """
    best, ids = values.topk(min(m + 1, values.shape[2]))
    tied = (best[..., m - 1 : m] == best[..., m:]) & best[..., m:].isfinite()
    return *_lower_id_first(best[..., :m], ids[..., :m]), tied.any(-1)


def top_among_equals(values: Float[Tensor, "B k V"], m: int) -> _Top:
    """Find the best next tokens as `top` does, exact among equals, by one more search."""
    best, ids = values.topk(m)
    larger = best > best[..., -1:]
    all_ids = torch.arange(values.shape[2], device=values.device)
    equals = (
        all_ids.where(values == best[..., -1:], values.shape[2])
        .topk(m, largest=False, sorted=True)
        .values
    )
    place = torch.arange(m, device=values.device) - larger.sum(-1, keepdim=True)
    ids = ids.where(larger, equals.gather(-1, place.clamp(min=0)))
    return *_lower_id_first(best, ids), torch.zeros_like(larger[..., 0])


def _lower_id_first(
    best: Float[Tensor, "B k m"], ids: Int[Tensor, "B k m"]
) -> tuple[Float[Tensor, "B k m"], Int[Tensor, "B k m"]]:
    by_id = ids.sort(dim=-1)
    by_value = best.gather(-1, by_id.indices).sort(dim=-1, descending=True, stable=True)
    return by_value.values, by_id.values.gather(-1, by_value.indices)
