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

from weft.decoding.decoder import Best, Cache, Ids, Rows, Step

C = TypeVar("C", bound=Cache)


class BatchedDecoder(Generic[C]):
    """Sentences that begin together: every row of the cache has seen equally many positions.

    `prefill` makes the cache of one row a sentence; `step` is a search's. A hypothesis is a row of
    the cache, found by the slot and the place where it stood.
    """

    begins_together = True

    def __init__(
        self,
        prefill: Callable[[Sequence[Sequence[int]]], C],
        step: Step[C],
        slots: int,
        places: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.slots, self.places = slots, places
        self._prefill, self._step, self._device = prefill, step, device
        self._cache: C | None = None
        self._rows: dict[tuple[int, int], int] = {}  # of the cache, by slot and place
        # by slot, where not everything is
        self._allowed: dict[int, Int[Tensor, " A"]] = {}

    def read(
        self,
        slots: Sequence[int],
        sentences: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Begin with these sentences, each in a slot of its own; those before them are gone."""
        self._cache = self._prefill(sentences)
        self._rows = {(slot, 0): row for row, slot in enumerate(slots)}
        lists = zip(slots, allowed, strict=False)
        self._allowed = {
            slot: torch.as_tensor(ids, device=self._device).long()
            for slot, ids in lists
            if len(ids)
        }

    def step(self, rows: Rows, count: int, *, whole: bool = False) -> Best:
        """Step once for each row, as `weft.engine.bindings.Session.step`."""
        assert self._cache is not None
        before = rows.ancestors[np.arange(len(rows)), np.maximum(rows.times - 1, 0)]
        places = np.where(rows.times > 0, before, 0).tolist()
        slots = rows.slots.tolist()
        parents = [self._rows[key] for key in zip(slots, places, strict=True)]
        if parents != list(range(len(self._rows))):
            self._cache = self._cache.select(torch.tensor(parents, device=self._device))
        logits, self._cache = self._step(
            torch.tensor(rows.tokens.tolist(), device=self._device), self._cache
        )
        self._rows = {
            key: row
            for row, key in enumerate(zip(slots, rows.places.tolist(), strict=True))
        }
        log_probs = self._within(logits.float(), rows.slots).log_softmax(-1)
        all_of_them = log_probs.cpu().numpy() if whole else None
        best, ids = best_allowed(log_probs, rows, count)
        return best.cpu().numpy(), ids.cpu().numpy().astype(np.int32), all_of_them

    def _within(
        self, logits: Float[Tensor, "R V"], slots: NDArray[np.int64]
    ) -> Float[Tensor, "R V"]:
        """Return the logits of what each row may become."""
        if not self._allowed:
            return logits
        within = torch.full_like(logits, -torch.inf)
        for row, slot in enumerate(slots.tolist()):
            ids = self._allowed.get(slot, slice(None))
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

    def session(self, slots: int, places: int) -> BatchedDecoder[C]:
        """Start a session of so many sentences with so many hypotheses each."""
        return BatchedDecoder(self._prefill, self._step, slots, places, self._device)


def best_allowed(
    log_probs: Float[Tensor, "R V"], rows: Rows, count: int
) -> tuple[Float[Tensor, "R m"], Int[Tensor, "R m"]]:
    """Return the `count` best next tokens of each row that are not banned."""
    if rows.ban_ends is not None and len(rows.banned):
        where = np.repeat(np.arange(len(rows)), np.diff(rows.ban_ends, prepend=0))
        places = tuple(
            torch.from_numpy(x).long().to(log_probs.device)
            for x in (where, rows.banned)
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
