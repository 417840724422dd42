"""From rows of source ids to hypotheses: by one model, or by several as one.

On a processor that has them the native engines search; else the models' own steps do. What is found
depends on the row and the settings alone.

Shapes: B rows, S source tokens, T target tokens, N hypotheses, L new ones, D d_model, V vocabulary.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.config import DecodingSection
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Cache, Engine, Hypothesis
from weft.decoding.exhaustive import exhaustive_search
from weft.decoding.search import (
    Beams,
    Sentence,
    Waiting,
    continuous_search,
    search_all,
    streamed_search,
)
from weft.decoding.shortlist import Shortlist
from weft.engine.batched import BatchedEngine
from weft.engine.ensemble import EnsembleEngine
from weft.errors import OutOfMemoryError
from weft.predict.alignment import Look
from weft.predict.batching import in_batches, in_halves, padded
from weft.predict.segments import Row
from weft.predict.settings import BANNED, DecodingSettings
from weft.predict.text import evaluating

C = TypeVar("C", bound=Cache)
R = TypeVar("R")


class TranslationModel(Protocol[C]):
    """What a translator asks of a model: source rows end with eos, target rows start with bos,
    padding is 0.
    """

    training: bool

    @property
    def max_len(self) -> int:
        """How many positions it has, on either side."""
        ...

    def train(self, mode: bool = True) -> Any:
        """As `torch.nn.Module.train`."""
        ...

    def prefill(self, src: Int[Tensor, "B S"], /) -> C:
        """Read the source."""
        ...

    def decode(
        self, ids: Int[Tensor, "N L"], cache: C, /
    ) -> tuple[Float[Tensor, "N L D"], C]:
        """States of the newest target positions."""
        ...

    def output(self, states: Float[Tensor, "N D"], /) -> Float[Tensor, "N V"]:
        """Logits of the token after each state."""
        ...


@dataclass(frozen=True)
class Member:
    """A model, an engine that has the same one and searches in its place, and what gives its
    attention.
    """

    model: TranslationModel[Any]
    device: torch.device
    engine: Engine | None = None
    look: Look | None = None

    def prefill(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return the model's cache for rows of source ids."""
        return self.model.prefill(padded(rows).to(self.device))

    def step(
        self, newest: Int[Tensor, "N"], cache: Any
    ) -> tuple[Float[Tensor, "N V"], Any]:
        """Logits after one more token of each row, and the longer cache."""
        states, cache = self.model.decode(newest[:, None], cache)  # N -> N 1 D
        return self.model.output(states[:, -1]), cache

    @property
    def steps(self) -> Engine:
        """The model's own, for where there is no engine."""
        return BatchedEngine(self.prefill, self.step, self.device)


@dataclass(frozen=True)
class Settled:
    """What was asked for, the search that it means, the ids of the prefix, and whether the
    shortlist is used.
    """

    asked: DecodingSettings
    beams: Beams
    prefix: tuple[int, ...] = ()
    is_short: bool = False


@dataclass(frozen=True)
class RowSearch:
    """Searches with the models of `members`, `max_len` positions each, by so many `workers` at
    once.

    Every method raises OutOfMemoryError where a single row does not fit into memory, DivergedError
    for a model whose output is not a number.
    """

    members: tuple[Member, ...]
    decoding: DecodingSection
    max_len: int
    workers: int = 1
    shortlist: Shortlist | None = None

    @cached_property
    def engine(self) -> Engine | None:
        """The models' engines, if all have one."""
        engines = [
            member.engine for member in self.members if member.engine is not None
        ]
        return _as_one(engines) if len(engines) == len(self.members) else None

    def find(self, rows: list[Row], settings: Settled) -> dict[Row, list[Hypothesis]]:
        """Return the hypotheses of every row, best first; of samples, by their numbers."""
        if self.engine is not None and settings.asked.exhaustive is None:
            return self._find_with(
                self.engine, rows, settings, settings.asked.batch_tokens
            )
        found: dict[Row, list[Hypothesis]] = {}
        with self._evaluating():
            for batch in _batches(rows, settings):
                ranked = _in_halves(batch, self._search, settings)
                found |= zip(batch, ranked, strict=True)
        return found

    def tokens(self, row: Row, settings: Settled) -> Iterator[int]:
        """Those of a row's only hypothesis, each as soon as it is found."""
        engine = self._own_steps() if self.engine is None else self.engine
        try:
            (sentence,) = self._sentences([row], settings)
            steps = streamed_search(engine.session(1, 1), sentence, settings.beams)
            while (token := self._next(steps)) is not None:
                yield token
        except (MemoryError, torch.OutOfMemoryError):
            raise _too_large(len(row.ids), settings) from None

    def look_at(
        self, found: Mapping[Row, list[Hypothesis]], settings: Settled
    ) -> dict[Row, list[Float[Tensor, "T S"]]]:
        """The attention while each hypothesis was written, the mean over the models: one forced
        pass of each.
        """
        looked: dict[Row, list[Tensor]] = {}

        def look(batch: list[Row], settings: Settled) -> list[list[Tensor]]:
            return self._look({row: found[row] for row in batch})

        with self._evaluating():
            for batch in _batches(found, settings):
                maps = _in_halves(batch, look, settings)
                looked |= zip(batch, maps, strict=True)
        return looked

    def _look(
        self, found: Mapping[Row, list[Hypothesis]]
    ) -> list[list[Float[Tensor, "T S"]]]:
        pairs = [
            (row.ids, _fed(hypothesis))
            for row, ranked in found.items()
            for hypothesis in ranked
        ]
        src, tgt = (padded(side) for side in zip(*pairs, strict=True))
        looks = [
            (member.look, member.device)
            for member in self.members
            if member.look is not None
        ]
        maps = [
            look(src.to(device), tgt.to(device)).float().cpu() for look, device in looks
        ]
        attention = torch.stack(maps).mean(0)  # B T S
        parts = (
            part[: len(fed), : len(ids)]
            for part, (ids, fed) in zip(attention, pairs, strict=True)
        )
        return [list(islice(parts, len(ranked))) for ranked in found.values()]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """As `evaluating`, of all models."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(evaluating(member.model))
            yield

    def _next(self, steps: Iterator[int]) -> int | None:
        with self._evaluating():
            return next(steps, None)

    def _find_with(
        self, engine: Engine, rows: list[Row], settings: Settled, budget: int
    ) -> dict[Row, list[Hypothesis]]:
        """With so many padded tokens at a time; where memory does not suffice for them, half as
        many.
        """
        sentences = self._sentences(rows, settings)
        try:
            found = search_all(engine, sentences, settings.beams, self.workers, budget)
            return {row: found[i] for i, row in enumerate(rows)}
        except (MemoryError, torch.OutOfMemoryError):
            longest = max(len(row.ids) for row in rows)
            if budget <= longest * settings.beams.beam_size:
                raise _too_large(longest, settings) from None
        return self._find_with(engine, rows, settings, budget // 2)

    def _search(self, rows: list[Row], settings: Settled) -> list[list[Hypothesis]]:
        if settings.asked.exhaustive is not None:
            return [
                self._search_exhaustively(
                    row, settings.asked.exhaustive, settings.beams
                )
                for row in rows
            ]
        decoder = self._own_steps().session(len(rows), settings.beams.beam_size)
        waiting = Waiting(self._sentences(rows, settings))
        found = dict(continuous_search(decoder, waiting, settings.beams, sys.maxsize))
        return [found[i] for i in range(len(rows))]

    def _own_steps(self) -> Engine:
        """Return the models' own, where there is no engine."""
        return _as_one([member.steps for member in self.members])

    def _search_exhaustively(
        self, row: Row, max_len: int, beams: Beams
    ) -> list[Hypothesis]:
        (member,) = self.members
        return exhaustive_search(
            member.step,
            member.prefill([row.ids]),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_len=min(
                max_len, output_limit(self.decoding, len(row.ids), self.max_len)
            ),
            length_penalty=beams.length_penalty,
            n_best=beams.n_best,
            banned_ids=BANNED,
            device=member.device,
        )

    def _sentences(self, rows: Sequence[Row], settings: Settled) -> list[Sentence]:
        return [
            Sentence(
                i,
                row.ids,
                self._limit_of(row),
                row.prefix,
                self._allowed(row) if settings.is_short else (),
            )
            for i, row in enumerate(rows)
        ]

    def _allowed(self, row: Row) -> NDArray[np.int32]:
        """What the shortlist lets a row become."""
        assert self.shortlist is not None
        ids = self.shortlist.of(row.ids)
        return np.union1d(ids, np.array(row.prefix, np.int32)) if row.prefix else ids

    def _limit_of(self, row: Row) -> int:
        """New tokens, eos and prefix counted, which leaves the rest its room."""
        return min(
            output_limit(self.decoding, len(row.ids), self.max_len) + len(row.prefix),
            self.max_len - 1,
        )


def output_limit(decoding: DecodingSection, src_len: int, max_len: int) -> int:
    """New tokens, eos counted, for a source row of `src_len`, eos counted, of a model with
    `max_len` positions.
    """
    wanted = math.ceil(decoding.max_len_ratio * src_len) + decoding.max_len_extra
    return max(1, min(max_len - 1, wanted))


def written(hypothesis: Hypothesis) -> list[int]:
    """All of its tokens, eos too."""
    return [*hypothesis.ids, EOS_ID] if hypothesis.finished else hypothesis.ids


def _as_one(engines: Sequence[Engine]) -> Engine:
    return engines[0] if len(engines) == 1 else EnsembleEngine(engines)


def _fed(hypothesis: Hypothesis) -> list[int]:
    """What the model had before it at each of its tokens."""
    return [BOS_ID, *written(hypothesis)[:-1]]


def _in_halves(
    rows: list[Row], work: Callable[[list[Row], Settled], list[R]], settings: Settled
) -> list[R]:
    """Return what the work gives for each row, in parts where memory does not suffice for all."""
    parts = in_halves(
        rows,
        lambda part: work(part, settings),
        lambda row: _too_large(len(row.ids), settings),
    )
    return list(chain.from_iterable(parts))


def _too_large(src_len: int, settings: Settled) -> OutOfMemoryError:
    size, is_drawn = settings.beams.beam_size, settings.asked.sampling is not None
    found = f"{size} samples" if is_drawn else f"beam_size = {size}"
    less = (
        ""
        if size == 1
        else "fewer samples or "
        if is_drawn
        else "a smaller beam_size or "
    )
    return OutOfMemoryError(
        f"no memory to translate {src_len} source tokens with {found}; use {less}shorter texts"
    )


def _batches(rows: Iterable[Row], settings: Settled) -> Iterator[list[Row]]:
    """Yield the rows in batches; each hypothesis of a row counts in their size."""
    max_tokens = settings.asked.batch_tokens // settings.beams.beam_size
    return in_batches(rows, lambda row: len(row.ids), max_tokens)
