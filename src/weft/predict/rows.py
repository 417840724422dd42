"""The search for hypotheses of rows of source ids, by one model or by several as one.

Native engines search where the models have them, else the models' own steps do. The result depends
on the row and the settings alone. How long a hypothesis may be is set here (`most_tokens`).

Shapes: B rows, S source tokens, T target tokens, H source tokens with the hints among them.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.config import DecodingSection
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Engine, Hypothesis, Indices
from weft.decoding.exhaustive import exhaustive_search
from weft.decoding.search import continuous_search, search_all, streamed_search
from weft.decoding.sentences import BeamSettings, Sentence, Waiting
from weft.decoding.shortlist import Shortlist
from weft.engine.batched import Steps, padded
from weft.engine.ensemble import EnsembleEngine
from weft.errors import OutOfMemoryError
from weft.predict.alignment import (
    CrossAttention,
    Floats,
    SourceShares,
    support_by_attention,
    support_by_shares,
)
from weft.predict.batching import in_batches, in_halves, in_threads
from weft.predict.prediction import OutputLimit
from weft.predict.segments import Plan, SourceRow
from weft.predict.settings import BANNED, DecodingSettings

R = TypeVar("R")


@dataclass(frozen=True)
class Member:
    """A model as one of those that search together; it has `max_len` positions on either side.

    `steps` are the model's own. An `engine` has the same weights and searches in their place.
    `cross_attention` computes the attention to the source, and `source_shares` what each source
    token wrote, which a recurrent model does not have; where there is an engine, several threads
    may call them at once. `foresee` is told of each source that is searched for and whose shares
    are wanted.
    """

    max_len: int
    steps: Steps[Any]
    engine: Engine | None = None
    cross_attention: CrossAttention | None = None
    source_shares: SourceShares | None = None
    foresee: Callable[[Sequence[int]], None] | None = None


@dataclass(frozen=True)
class Resolved:
    """The settings of a call, completed for one model.

    `requested` are those of the caller, `beams` those of the search, with the recipe's values where
    the caller has none. Every translation begins with the ids of `prefix`. `needs_support` says
    that it is to be known which source tokens each target token comes from.
    """

    requested: DecodingSettings
    beams: BeamSettings
    prefix: tuple[int, ...] = ()
    uses_shortlist: bool = False
    needs_support: bool = False


@dataclass(frozen=True)
class Planned:
    """Texts and the rows that are searched for them, each different text once."""

    texts: tuple[str, ...]
    plans: dict[str, Plan]
    settings: Resolved

    @property
    def rows(self) -> list[SourceRow]:
        """Return the rows that are searched for all texts, each once, in their order."""
        return [row for row in self._all_rows if row.given is None]

    @property
    def given(self) -> list[SourceRow]:
        """Return the rows that have their translations already."""
        return [row for row in self._all_rows if row.given is not None]

    @property
    def _all_rows(self) -> list[SourceRow]:
        rows = chain.from_iterable(plan.rows for plan in self.plans.values())
        return list(dict.fromkeys(rows))


@dataclass(frozen=True)
class RowSearch:
    """The search for rows, by the models of `members` as one.

    `max_len` is how many positions the smallest of them has, `workers` how many threads search at
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
        """Return the models' engines as one; None unless all have one."""
        engines: list[Engine] = []
        for member in self.members:
            if member.engine is None:
                return None
            engines.append(member.engine)
        return _as_one(engines)

    @property
    def searcher(self) -> Engine:
        """Return what searches: the models' engines, else their own steps."""
        return self.engine or self._own_steps()

    def find(
        self, rows: list[SourceRow], settings: Resolved
    ) -> dict[SourceRow, list[Hypothesis]]:
        """Return the hypotheses of every row, best first; samples in the order of their numbers."""
        requested = settings.requested
        if self.engine is not None and requested.exhaustive is None:
            return self._find_with(self.engine, rows, settings, requested.batch_tokens)
        hypotheses: dict[SourceRow, list[Hypothesis]] = {}
        for batch in _batches(rows, settings):
            ranked = _in_halves(batch, self._search, settings)
            hypotheses |= zip(batch, ranked, strict=True)
        return hypotheses

    def tokens(self, row: SourceRow, settings: Resolved) -> Iterator[int]:
        """Yield the tokens of a row's only hypothesis, each as soon as it is found."""
        engine = self.searcher
        try:
            (sentence,) = self._sentences([row], settings)
            yield from streamed_search(engine.session(1, 1), sentence, settings.beams)
        except MemoryError:
            raise _too_large(len(row.read), settings) from None

    def attend(
        self, ranked: Mapping[SourceRow, list[Hypothesis]], settings: Resolved
    ) -> dict[SourceRow, list[Floats]]:
        """Return the cross-attention (T, S) of each hypothesis, averaged over the models.

        Each model reads a whole hypothesis at once.
        """
        return self._read_again(ranked, settings, self._attention)

    def support(
        self, ranked: Mapping[SourceRow, list[Hypothesis]], settings: Resolved
    ) -> dict[SourceRow, list[Floats]]:
        """Return how much each source token supports each token of each hypothesis, (T, S).

        It is by shares where all models have them, else by attention; averaged over the models.
        """
        if not self.has_shares:
            return self._read_again(ranked, settings, self._support_by_attention)
        recorded: dict[SourceRow, list[Floats]] = {}
        for row, hypotheses in ranked.items():
            shares = [one.shares for one in hypotheses if one.shares is not None]
            if len(shares) == len(hypotheses):
                support = [support_by_shares(*found) for found in shares]
                recorded[row] = list(map(row.plain, support))
        rest = {row: ranked[row] for row in ranked if row not in recorded}
        return recorded | self._read_again(rest, settings, self._support_by_shares)

    @property
    def has_shares(self) -> bool:
        """Return whether all models know what source tokens wrote."""
        return all(member.source_shares for member in self.members)

    def shares(
        self, ranked: Mapping[SourceRow, list[Hypothesis]], settings: Resolved
    ) -> dict[SourceRow, list[Floats]]:
        """Return what each source token wrote into the logit of each token of each hypothesis, (T,
        S), averaged over the models, which all have shares.
        """
        return self._read_again(
            ranked,
            settings,
            lambda pairs: [shares for shares, _ in self._shares(pairs)],
        )

    def _read_again(
        self,
        ranked: Mapping[SourceRow, list[Hypothesis]],
        settings: Resolved,
        maps_of: Callable[["_Pairs"], list[Floats]],
    ) -> dict[SourceRow, list[Floats]]:
        """Return the map (T, S) of each hypothesis, which the models read once more."""
        found: dict[SourceRow, list[Floats]] = {}

        def read(batch: list[SourceRow], settings: Resolved) -> list[list[Floats]]:
            maps = iter(maps_of(_Pairs.of({row: ranked[row] for row in batch})))
            return [
                list(map(row.plain, islice(maps, len(ranked[row])))) for row in batch
            ]

        def keep(batch: list[SourceRow]) -> None:
            maps = _in_halves(batch, read, settings)
            found.update(zip(batch, maps, strict=True))

        # NumPy and PyTorch have threads of their own
        workers = 1 if self.engine is None else self.workers
        in_threads(keep, _batches(ranked, settings), workers)
        return found

    def _attention(self, pairs: "_Pairs") -> list[Floats]:
        src, tgt_in, _ = pairs.padded()
        maps = []
        for member in self.members:
            if member.cross_attention is not None:
                maps.append(member.cross_attention(src, tgt_in))
        return pairs.cut(np.stack(maps).mean(0))

    def _support_by_attention(self, pairs: "_Pairs") -> list[Floats]:
        return list(map(support_by_attention, self._attention(pairs)))

    def _support_by_shares(self, pairs: "_Pairs") -> list[Floats]:
        return [support_by_shares(*found) for found in self._shares(pairs)]

    def _shares(self, pairs: "_Pairs") -> list[tuple[Floats, Floats]]:
        """Return the shares of each pair (T, S), and how even the looks were that wrote them
        (T).
        """
        ids = pairs.padded()
        shares = []
        evenness = []
        for member in self.members:
            if member.source_shares is not None:
                of_tokens, even = member.source_shares(*ids)
                shares.append(of_tokens)
                evenness.append(even)
        mean = np.stack(evenness).mean(0)  # B T
        return [
            (part, even[: len(part)])
            for part, even in zip(
                pairs.cut(np.stack(shares).mean(0)), mean, strict=True
            )
        ]

    def _find_with(
        self, engine: Engine, rows: list[SourceRow], settings: Resolved, budget: int
    ) -> dict[SourceRow, list[Hypothesis]]:
        """Search with `budget` padded tokens at a time.

        Where memory does not suffice, begin again with half as many.
        """
        sentences = self._sentences(rows, settings)
        beams = settings.beams
        try:
            ranked = search_all(engine, sentences, beams, self.workers, budget)
            return {row: ranked[i] for i, row in enumerate(rows)}
        except MemoryError:
            longest = max(len(row.read) for row in rows)
            if budget <= longest * beams.beam_size:
                raise _too_large(longest, settings) from None
        return self._find_with(engine, rows, settings, budget // 2)

    def _search(
        self, rows: list[SourceRow], settings: Resolved
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row, by the models' own steps."""
        beams = settings.beams
        longest = settings.requested.exhaustive
        if longest is not None:
            return [self._search_exhaustively(row, longest, beams) for row in rows]
        decoder = self._own_steps().session(len(rows), beams.beam_size)
        waiting = Waiting(self._sentences(rows, settings))
        ranked = dict(continuous_search(decoder, waiting, beams, sys.maxsize))
        return [ranked[i] for i in range(len(rows))]

    def _own_steps(self) -> Engine:
        """Return an engine that takes the models' own steps, used where there is no native one."""
        return _as_one([member.steps for member in self.members])

    def _search_exhaustively(
        self, row: SourceRow, max_len: int, beams: BeamSettings
    ) -> list[Hypothesis]:
        (member,) = self.members
        most = self._most_tokens_of(row)
        steps = member.steps
        return exhaustive_search(
            steps.step,
            steps.prefill([row.read]),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_len=min(max_len, most),
            length_penalty=beams.length_penalty,
            n_best=beams.n_best,
            banned_ids=BANNED,
        )

    def _sentences(
        self, rows: Sequence[SourceRow], settings: Resolved
    ) -> list[Sentence]:
        """Return the rows in the form that the search takes, each with its output limit."""
        return [self.sentence(i, row, settings) for i, row in enumerate(rows)]

    def sentence(self, number: int, row: SourceRow, settings: Resolved) -> Sentence:
        """Return a row in the form that the search takes, with its output limit and settings."""
        needs_shares = settings.needs_support and self.has_shares
        # of many samples most are dropped, and of several models shares are added up
        records = needs_shares and self._records(settings)
        if needs_shares and not records:
            self._foresee(row)
        return Sentence(
            number,
            row.read,
            self._most_tokens_of(row),
            row.prefix,
            self._allowed(row) if settings.uses_shortlist else (),
            settings.beams,
            records=records,
            terms=row.terms_read,
            avoided=row.avoided,
        )

    def _records(self, settings: Resolved) -> bool:
        """Return whether the engine's search itself records the shares."""
        is_alone = settings.requested.sampling is None or settings.beams.beam_size == 1
        return is_alone and len(self.members) == 1 and self.engine is not None

    def _foresee(self, row: SourceRow) -> None:
        for member in self.members:
            if member.foresee is not None:
                member.foresee(row.read)

    def _allowed(self, row: SourceRow) -> NDArray[np.int32]:
        """Return the target ids that the shortlist has for a row, those of its prefix and its
        terms.
        """
        assert self.shortlist is not None
        ids = self.shortlist.of(row.ids)
        more = [*row.prefix, *row.hints.match]
        more += chain.from_iterable(term.target for term in row.hints.terms)
        if row.terms is not None:
            more += row.terms.forms.tokens.tolist()
        return np.union1d(ids, np.array(more, np.int32)) if more else ids

    def _most_tokens_of(self, row: SourceRow) -> int:
        """Return how many new tokens a row may have, eos and prefix counted.

        The recipe allows the tokens of a prefix and of terms in addition, the model does not.
        """
        most = most_tokens(self.decoding, len(row.ids), self.max_len)
        needed = len(row.prefix)
        if row.terms is not None:
            needed += sum(row.terms.lengths)
        else:
            needed += sum(len(term.target) for term in row.hints.terms)
        return min(most + needed, self.max_len - 1)

    def name_limit(self, row: SourceRow, settings: Resolved) -> OutputLimit:
        """Return the setting that allows a row no more new tokens.

        Where two allow the same number, the one that is harder to change: it still holds after the
        other was raised.
        """
        most = self._most_tokens_of(row)
        longest = settings.requested.exhaustive
        if longest is not None and longest < most:
            return "exhaustive"
        is_full = most == self.max_len - 1
        return "model.max_len" if is_full else "decoding.max_len_ratio"


def most_tokens(decoding: DecodingSection, src_len: int, max_len: int) -> int:
    """Return how many new tokens a row of `src_len` ids may have, without a prefix; both count eos.

    The recipe limits them by the source, the model to one fewer than its `max_len` positions. One
    more would fit: bos takes a position, but the last token, which nothing reads, needs none.
    """
    by_recipe = math.ceil(decoding.max_len_ratio * src_len) + decoding.max_len_extra
    return max(1, min(max_len - 1, by_recipe))


def written(hypothesis: Hypothesis) -> list[int]:
    """Return all tokens of a hypothesis, eos too."""
    return [*hypothesis.ids, EOS_ID] if hypothesis.finished else hypothesis.ids


@dataclass(frozen=True)
class _Pairs:
    """Source ids and what was written for each, to be read in one batch."""

    sources: list[tuple[int, ...]]
    targets: list[list[int]]

    @classmethod
    def of(cls, ranked: Mapping[SourceRow, list[Hypothesis]]) -> "_Pairs":
        """Join each hypothesis to its row."""
        sources = []
        targets = []
        for row, hypotheses in ranked.items():
            for hypothesis in hypotheses:
                sources.append(row.read)
                targets.append(written(hypothesis))
        return cls(sources, targets)

    def padded(self) -> tuple[Indices, Indices, Indices]:
        """Return the source ids, those that the decoder reads, and those that it writes."""
        inputs = [[BOS_ID, *ids[:-1]] for ids in self.targets]
        return padded(self.sources), padded(inputs), padded(self.targets)

    def cut(self, maps: Floats) -> list[Floats]:
        """Return the map (T, S) of each, without padding."""
        return [
            part[: len(tgt), : len(src)]
            for part, src, tgt in zip(maps, self.sources, self.targets, strict=True)
        ]


def _as_one(engines: Sequence[Engine]) -> Engine:
    return engines[0] if len(engines) == 1 else EnsembleEngine(engines)


def _in_halves(
    rows: list[SourceRow],
    work: Callable[[list[SourceRow], Resolved], list[R]],
    settings: Resolved,
) -> list[R]:
    """Return what the work gives for each row, in parts where memory does not suffice for all."""
    parts = in_halves(
        rows,
        lambda part: work(part, settings),
        lambda row: _too_large(len(row.read), settings),
    )
    return list(chain.from_iterable(parts))


def _too_large(src_len: int, settings: Resolved) -> OutOfMemoryError:
    size = settings.beams.beam_size
    is_drawn = settings.requested.sampling is not None
    searched = f"{size} samples" if is_drawn else f"beam_size = {size}"
    less = "fewer samples or " if is_drawn else "a smaller beam_size or "
    if size == 1:
        less = ""
    return OutOfMemoryError(
        f"no memory to translate {src_len} source tokens with {searched}; use {less}shorter texts"
    )


def _batches(
    rows: Iterable[SourceRow], settings: Resolved
) -> Iterator[list[SourceRow]]:
    """Yield the rows in batches; each hypothesis of a row counts in their size."""
    max_tokens = settings.requested.batch_tokens // settings.beams.beam_size
    return in_batches(rows, lambda row: len(row.read), max_tokens)
