"""A decoder for the search made of a model's own prefill and step.

It serves where there is no engine: on a GPU, for recurrent models, without a compiler.
Shapes: R rows of one step, M of the cache before it, V vocabulary, m candidates of each row.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from weft.decoding.decoder import Cache, Ids, Step, StepInput, TopK

C = TypeVar("C", bound=Cache)
Prefill: TypeAlias = Callable[[Sequence[Sequence[int]]], C]
Logits: TypeAlias = Float[Tensor, "R V"]
# values and ids of the best tokens of each row
Best: TypeAlias = tuple[
    Float[Tensor, "R m"],
    Int[Tensor, "R m"],
]
# the same of the rows of a beam, and whether equals were left out
BestOfBeam: TypeAlias = tuple[
    Float[Tensor, "B k m"],
    Int[Tensor, "B k m"],
    Bool[Tensor, "B k"],
]


class BatchedDecoder(Generic[C]):
    """Sentences that begin together: every row of the cache has seen equally many positions.

    `prefill` makes the cache of one row a sentence; `step` is a search's. A hypothesis is a row of
    the cache, found by the index of its sentence and its own in the beam.
    """

    begins_together = True

    def __init__(
        self,
        prefill: Prefill[C],
        step: Step[C],
        num_sentences: int,
        beam_size: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_sentences = num_sentences
        self.beam_size = beam_size
        self._prefill = prefill
        self._step = step
        self._device = device
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
        self._rows = {}
        for row, index in enumerate(indices):
            self._rows[index, 0] = row
        self._allowed = {}
        for index, ids in zip(indices, allowed, strict=False):
            if len(ids):
                tensor = torch.as_tensor(ids, device=self._device)
                self._allowed[index] = tensor.long()

    def step(self, inputs: StepInput, k: int, *, all_log_probs: bool = False) -> TopK:
        """Step once for each row, as `weft.engine.bindings.Session.step`."""
        assert self._cache is not None
        sentences = inputs.sentences.tolist()
        beams = inputs.beams.tolist()
        parents = self._parents(inputs, sentences)
        if parents != list(range(len(self._rows))):
            rows = torch.tensor(parents, device=self._device)
            self._cache = self._cache.select(rows)
        newest = inputs.tokens.tolist()
        tokens = torch.tensor(newest, device=self._device)
        logits, self._cache = self._step(tokens, self._cache)
        keys = zip(sentences, beams, strict=True)
        self._rows = {}
        for row, key in enumerate(keys):
            self._rows[key] = row
        logits = logits.float()
        allowed = self._allowed_alone(logits, sentences)
        log_probs = allowed.log_softmax(-1)
        every = log_probs.cpu().numpy() if all_log_probs else None
        best, ids = best_allowed(log_probs, inputs, k)
        best_ids = ids.cpu().numpy().astype(np.int32)
        return best.cpu().numpy(), best_ids, every

    def _parents(self, inputs: StepInput, sentences: Sequence[int]) -> list[int]:
        """Return for each hypothesis the row of the cache that it goes on from."""
        positions = inputs.positions
        last = np.maximum(positions - 1, 0)
        rows = np.arange(len(inputs))
        ancestors = inputs.ancestors[rows, last]
        beams = np.where(positions > 0, ancestors, 0)
        keys = zip(sentences, beams.tolist(), strict=True)
        return [self._rows[key] for key in keys]

    def _allowed_alone(self, logits: Logits, sentences: Sequence[int]) -> Logits:
        """Mask the logits of all tokens that a row's sentence does not allow."""
        if not self._allowed:
            return logits
        masked = torch.full_like(logits, -torch.inf)
        for row, index in enumerate(sentences):
            ids = self._allowed.get(index, slice(None))
            masked[row, ids] = logits[row, ids]
        return masked


class BatchedEngine(Generic[C]):
    """A maker of `BatchedDecoder`s, in the place of an `Engine`."""

    def __init__(
        self,
        prefill: Prefill[C],
        step: Step[C],
        device: torch.device | str = "cpu",
    ) -> None:
        self._prefill = prefill
        self._step = step
        self._device = device

    def session(self, num_sentences: int, beam_size: int) -> BatchedDecoder[C]:
        """Start a session of so many sentences with so many hypotheses each."""
        return BatchedDecoder(
            self._prefill,
            self._step,
            num_sentences,
            beam_size,
            self._device,
        )


def best_allowed(log_probs: Logits, inputs: StepInput, count: int) -> Best:
    """Return the `count` best next tokens of each row that are not banned."""
    if inputs.ban_ends is None or not len(inputs.banned):
        return _best(log_probs, count)
    num_banned = np.diff(inputs.ban_ends, prepend=0)
    rows = np.repeat(np.arange(len(inputs)), num_banned)
    device = log_probs.device
    row = torch.from_numpy(rows).long().to(device)
    token = torch.from_numpy(inputs.banned).long().to(device)
    nothing = log_probs.new_tensor(-torch.inf)
    unbanned = log_probs.index_put((row, token), nothing)
    return _best(unbanned, count)


def _best(log_probs: Logits, count: int) -> Best:
    """Return the `count` largest of each row, the lower id first among equals.

    -inf where there are not so many.
    """
    known = min(count, log_probs.shape[1])
    best, ids, tied = top(log_probs[None], known)
    if tied.any():
        best, ids, _ = top_among_equals(log_probs[None], known)
    missing = (0, count - known)
    best = F.pad(best, missing, value=-torch.inf)
    ids = F.pad(ids, missing)
    return best[0], ids[0]


def top(values: Float[Tensor, "B k V"], m: int) -> BestOfBeam:
    """Return the m largest values of each row, their ids, and a flag.

    The largest stands first, the lower id first among equals. The flag says that the smallest of
    them has equals that were left out: topk promises no order among equals, so the choice has to be
    made anew by `top_among_equals`.
    """
    with_next = min(m + 1, values.shape[2])
    best, ids = values.topk(with_next)
    smallest = best[..., m - 1 : m]
    left_out = best[..., m:]
    tied = (smallest == left_out) & left_out.isfinite()
    best, ids = _lower_id_first(best[..., :m], ids[..., :m])
    return best, ids, tied.any(-1)


def top_among_equals(values: Float[Tensor, "B k V"], m: int) -> BestOfBeam:
    """Return the m largest values as `top` does, exact among equals, by one more search."""
    best, ids = values.topk(m)
    vocab_size = values.shape[2]
    smallest = best[..., -1:]
    larger = best > smallest
    all_ids = torch.arange(vocab_size, device=values.device)
    equal_ids = all_ids.where(values == smallest, vocab_size)
    lowest = equal_ids.topk(m, largest=False, sorted=True)
    equals = lowest.values
    num_larger = larger.sum(-1, keepdim=True)
    place = torch.arange(m, device=values.device)
    place = place - num_larger
    best_equals = equals.gather(-1, place.clamp(min=0))
    ids = ids.where(larger, best_equals)
    best, ids = _lower_id_first(best, ids)
    return best, ids, torch.zeros_like(larger[..., 0])


def _lower_id_first(
    best: Float[Tensor, "B k m"], ids: Int[Tensor, "B k m"]
) -> tuple[Float[Tensor, "B k m"], Int[Tensor, "B k m"]]:
    """Sort by value, the largest first, and equal values by id."""
    by_id = ids.sort(dim=-1)
    best = best.gather(-1, by_id.indices)
    by_value = best.sort(dim=-1, descending=True, stable=True)
    ids = by_id.values.gather(-1, by_value.indices)
    return by_value.values, ids
