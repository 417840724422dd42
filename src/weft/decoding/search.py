"""Beam search over any number of sentences: as one is done, the next takes its place.

It finds what `reference.beam_search` finds, with a decoder whose rows may stand at different
positions. A sentence has a slot with k places, one for each hypothesis; a hypothesis keeps its keys
and values where they were made, and remembers in which place it stood at each time. No row depends
on the rows beside it.

Shapes: S slots, A of them in use, k places of each, R rows (the hypotheses alive), m candidates of
a row, T times.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import (
    Best,
    Decoder,
    Engine,
    Hypothesis,
    Ids,
    Rows,
    length_penalties,
)
from weft.errors import DivergedError, UsageError

_MOST_SLOTS = 256

NO_NUMBERS = "decoding: no token has a finite probability (NaN or infinite logits)"


@dataclass(frozen=True)
class Beams:
    """How to search; as the arguments of `reference.beam_search`.

    `no_repeat_ngrams` n above 0 lets no n tokens in a row occur twice in an output (Paulus et al.
    2018, "A Deep Reinforced Model for Abstractive Summarization", section 2.5).
    """

    bos_id: int
    eos_id: int
    beam_size: int = 1
    length_penalty: float = 0.0
    n_best: int = 1
    banned_ids: Sequence[int] = ()
    no_repeat_ngrams: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.beam_size:
            raise UsageError(
                f"n_best = {self.n_best} and beam_size = {self.beam_size}: n_best must be from 1 to beam_size"
            )

    def search(self, decoder: Decoder, budget: int) -> "Search":
        """Return a search so, at its beginning."""
        return Search(decoder, self, budget)


@dataclass(frozen=True)
class Sentence:
    """Ids of a source, its number, and how many new tokens its output may have, eos counted.

    Every output begins with `prefix`, which counts as new tokens, whatever the model thinks of it.
    Where ids are `allowed`, ascending, it has no others; those of the prefix are among them.
    """

    number: int
    ids: Sequence[int]
    max_len: int
    prefix: Sequence[int] = ()
    allowed: Ids = ()


def search_all(
    engine: Engine,
    sentences: Sequence[Sentence],
    beams: Beams,
    workers: int = 1,
    batch_tokens: int = 4096,
) -> dict[int, list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence, best first, by its number: found by several
    threads at once.

    Each takes the longest of the sentences that wait, as long as those it works on have at most
    `batch_tokens` source tokens times beam_size. Where one fails, or who waits for them is
    interrupted, all stop at their next step. Raises DivergedError where the logits of a row are not
    numbers.
    """
    waiting = Waiting(sentences)
    workers = max(1, min(workers, len(sentences)))
    budget = max(1, batch_tokens // beams.beam_size)
    mean = sum(len(sentence.ids) for sentence in sentences) / max(len(sentences), 1)
    slots = max(
        1, min(-(-len(sentences) // workers), round(budget / max(mean, 1)), _MOST_SLOTS)
    )

    def work() -> dict[int, list[Hypothesis]]:
        try:
            return dict(
                continuous_search(
                    engine.session(slots, beams.beam_size), waiting, beams, budget
                )
            )
        except BaseException:
            waiting.stop()  # the others need not go on
            raise

    if workers == 1:
        return work()
    with ThreadPoolExecutor(workers) as pool:
        try:
            parts = [pool.submit(work) for _ in range(workers)]
            return {
                number: found
                for part in parts
                for number, found in part.result().items()
            }
        except BaseException:  # Ctrl-C comes here, and the pool waits for its threads
            waiting.stop()
            raise


class Waiting:
    """Sentences that wait, the longest first; any number of threads take from them."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self._sentences = sorted(sentences, key=lambda sentence: len(sentence.ids))
        self._lock = Lock()
        self.stopped = False

    def take(self, count: int, room: int, at_least_one: bool) -> list[Sentence]:
        """The next ones: at most `count`, of at most `room` padded tokens, or one of more if one is
        needed.
        """
        taken: list[Sentence] = []
        with self._lock:
            while self._sentences and len(taken) < count:
                longest = len((taken[0] if taken else self._sentences[-1]).ids)
                if longest * (len(taken) + 1) > room and (taken or not at_least_one):
                    break
                taken.append(self._sentences.pop())
        return taken

    def stop(self) -> None:
        """Let nothing wait any more, and what is under way be left."""
        self.stopped = True


def continuous_search(
    decoder: Decoder, waiting: Waiting, beams: Beams, budget: int
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield the number of each sentence and its `n_best` hypotheses, best first, as they are done;
    no more once stopped.

    `budget` limits the source tokens of the sentences that are under way. Raises DivergedError
    where the logits of a row are not numbers.
    """
    search = beams.search(decoder, budget)
    while not waiting.stopped and search.fill(waiting):
        yield from search.advance()


def streamed_search(
    decoder: Decoder, sentence: Sentence, beams: Beams
) -> Iterator[int]:
    """Yield the tokens of a sentence's only hypothesis, eos too, each as soon as it is found.

    Raises as the search.
    """
    search, waiting = beams.search(decoder, len(sentence.ids)), Waiting([sentence])
    while search.fill(waiting):
        list(search.advance())
        yield int(search.newest[0, 0])


class Search:
    """The state: arrays over slots, of which those with a sentence are in use."""

    def __init__(self, decoder: Decoder, beams: Beams, budget: int) -> None:
        self.decoder, self.beams, self.budget = decoder, beams, budget
        shape = decoder.slots, beams.beam_size
        self.numbers = np.full(decoder.slots, -1)
        self.times = np.zeros(decoder.slots, np.int64)
        self.limits = np.zeros(decoder.slots, np.int64)
        self.src_lens = np.zeros(decoder.slots, np.int64)
        self.log_probs = np.full(shape, -np.inf, np.float32)
        self.newest = np.zeros(shape, np.int32)
        # what a score must be above to enter the pool
        self.worst = np.full(decoder.slots, -np.inf, np.float32)
        self.pools: list[list[Hypothesis]] = [[] for _ in range(decoder.slots)]
        self.prefixes: list[Sequence[int]] = [()] * decoder.slots
        self.prefix_lens = np.zeros(decoder.slots, np.int64)
        self.ids, self.ancestors = (np.zeros((*shape, 32), np.int32) for _ in range(2))
        self.token_log_probs = np.zeros((*shape, 32), np.float32)
        self.penalties = np.ones(1, np.float32)
        self.banned = np.asarray(sorted(set(beams.banned_ids)), np.int32)

    def fill(self, waiting: Waiting) -> bool:
        """Give free slots to new sentences, several at a time; False where nothing is left to
        do.
        """
        free = np.flatnonzero(self.numbers < 0)
        is_idle = len(free) == self.decoder.slots
        room = self.budget - int(self.src_lens[self.numbers >= 0].sum())
        is_full = (
            len(free) * 8 < self.decoder.slots
            or 8 * room < self.budget
            or self.decoder.begins_together
        )
        if is_full and not is_idle:
            return True
        sentences = waiting.take(len(free), room, is_idle)
        if sentences:
            slots = free[: len(sentences)].tolist()
            self.decoder.read(
                slots, [s.ids for s in sentences], [s.allowed for s in sentences]
            )
            for slot, sentence in zip(slots, sentences, strict=True):
                self._start(slot, sentence)
        return bool(sentences) or not is_idle

    def _start(self, slot: int, sentence: Sentence) -> None:
        if sentence.max_len < 1:
            raise UsageError(
                f"the output limit is {sentence.max_len} tokens; it must be at least 1"
            )
        self.numbers[slot], self.times[slot], self.limits[slot] = (
            sentence.number,
            0,
            sentence.max_len,
        )
        self.src_lens[slot] = len(sentence.ids)
        self.log_probs[slot] = -np.inf
        self.log_probs[slot, 0], self.newest[slot, 0] = 0.0, self.beams.bos_id
        self.worst[slot] = -np.inf
        self.pools[slot] = []
        self.prefixes[slot], self.prefix_lens[slot] = (
            sentence.prefix,
            len(sentence.prefix),
        )
        if sentence.max_len >= len(self.penalties) - 1:
            table = length_penalties(
                self.beams.length_penalty, 2 * sentence.max_len + 1
            )
            self.penalties = np.asarray(table, np.float32)

    def advance(self) -> Iterator[tuple[int, list[Hypothesis]]]:
        """One more token for every hypothesis; what is done leaves."""
        used = np.flatnonzero(self.numbers >= 0)
        now = self.times[used]
        self._make_room(int(now.max()) + 1)
        best, ids = self._candidates(used)  # A k m
        parents, log_probs, newest = self._choose(used, best, ids)  # A k
        self._keep(used, now, parents, log_probs, newest)
        ended = (newest == self.beams.eos_id) & (self.log_probs[used] > -np.inf)
        lens = now + 1
        scores = self.log_probs[used] / self.penalties[lens][:, None]
        self._into_pools(used, ended, scores)
        self.log_probs[used] = np.where(ended, -np.inf, self.log_probs[used])
        self.times[used] = lens
        favourable = np.maximum(
            self.penalties[self.limits[used]], self.penalties[lens + 1]
        )
        settled = self.log_probs[used].max(1) / favourable <= self.worst[used]
        for i in np.flatnonzero(settled | (lens >= self.limits[used])).tolist():
            yield self._finish(int(used[i]), np.where(ended[i], -np.inf, scores[i]))

    def _make_room(self, length: int) -> None:
        if length > self.ids.shape[2]:
            room = ((0, 0), (0, 0), (0, self.ids.shape[2]))
            self.ids, self.ancestors = (
                np.pad(self.ids, room),
                np.pad(self.ancestors, room),
            )
            self.token_log_probs = np.pad(self.token_log_probs, room)

    def _candidates(
        self, used: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return the best next tokens of every hypothesis; log-probability -inf where there is
        none.
        """
        k = self.beams.beam_size
        at, places = np.nonzero(self.log_probs[used] > -np.inf)
        slots = used[at]
        times = self.times[slots]
        forced = np.flatnonzero(times < self.prefix_lens[slots]).tolist()
        found, ids, everything = self._step(
            self._rows(slots, places), whole=bool(forced)
        )
        if everything is not None:
            for row in forced:
                token = self.prefixes[slots[row]][times[row]]
                found[row], found[row, 0], ids[row, 0] = (
                    -np.inf,
                    everything[row, token],
                    token,
                )
        shape = len(used), k, found.shape[1]
        if len(slots) == len(used) * k:
            return found.reshape(shape), ids.reshape(shape)
        all_found, all_ids = (
            np.full(shape, -np.inf, np.float32),
            np.zeros(shape, np.int32),
        )
        all_found[at, places], all_ids[at, places] = found, ids
        return all_found, all_ids

    def _step(self, rows: Rows, whole: bool) -> Best:
        """Return the decoder's."""
        return self.decoder.step(rows, self.beams.beam_size, whole=whole)

    def _rows(self, slots: NDArray[np.int64], places: NDArray[np.int64]) -> Rows:
        """Return the newest token of each of these hypotheses."""
        times = self.times[slots]
        ancestors = self.ancestors[slots, places, : int(times.max()) + 1]  # R T
        return Rows(
            slots,
            places,
            times,
            self.newest[slots, places],
            ancestors,
            *self._bans(slots, places),
        )

    def _bans(
        self, slots: NDArray[np.int64], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """What the settings forbid."""
        n = self.beams.no_repeat_ngrams
        if not n:
            return np.tile(self.banned, len(slots)), np.arange(1, len(slots) + 1) * len(
                self.banned
            )
        rows = []
        for slot, place in zip(slots.tolist(), places.tolist(), strict=True):
            said = self.ids[slot, place, : self.times[slot]].tolist()
            newest = said[len(said) - n + 1 :]
            again = (
                said[i + n - 1]
                for i in range(len(said) - n + 1)
                if said[i : i + n - 1] == newest
            )
            rows.append([*self.banned.tolist(), *again])
        ends = np.cumsum([len(row) for row in rows])
        return np.array([token for row in rows for token in row], np.int32), ends

    def _choose(
        self, used: NDArray[np.int64], best: NDArray[np.float32], ids: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
        """The most probable extensions of each sentence: parents, log-probabilities of the tokens,
        tokens.
        """
        k = self.beams.beam_size
        totals = np.where(
            best > -np.inf, self.log_probs[used][:, :, None] + best, -np.inf
        ).reshape(len(used), -1)
        if np.isnan(best).any() or not np.isfinite(totals.max(1)).all():
            raise DivergedError(NO_NUMBERS)
        chosen = np.argsort(-totals, axis=1, kind="stable")[:, :k]
        self.log_probs[used] = np.take_along_axis(totals, chosen, 1)
        flat_best, flat_ids = best.reshape(totals.shape), ids.reshape(totals.shape)
        return (
            chosen // k,
            np.take_along_axis(flat_best, chosen, 1),
            np.take_along_axis(flat_ids, chosen, 1),
        )

    def _keep(
        self,
        used: NDArray[np.int64],
        now: NDArray[np.int64],
        parents: NDArray[np.int64],
        log_probs: NDArray[np.float32],
        newest: NDArray[np.int32],
    ) -> None:
        """What each hypothesis consists of, after it has been extended."""
        rows, places, times = (
            used[:, None],
            np.arange(self.beams.beam_size)[None],
            now[:, None],
        )
        until = int(now.max())
        if self.beams.beam_size > 1:
            for history in (self.ids, self.ancestors, self.token_log_probs):
                history[used, :, :until] = history[rows, parents, :until]
        self.ids[rows, places, times] = newest
        self.ancestors[rows, places, times] = parents
        self.token_log_probs[rows, places, times] = log_probs
        self.newest[used] = newest

    def _into_pools(
        self,
        used: NDArray[np.int64],
        ended: NDArray[np.bool_],
        scores: NDArray[np.float32],
    ) -> None:
        for i, place in zip(
            *np.nonzero(ended & (scores > self.worst[used][:, None])), strict=True
        ):
            slot = int(used[i])
            pool = self.pools[slot]
            hypothesis = self._hypothesis(
                slot, int(place), int(self.times[slot]) + 1, scores[i, place], True
            )
            pool.insert(
                bisect_right(pool, -hypothesis.score, key=lambda other: -other.score),
                hypothesis,
            )
            del pool[self.beams.n_best :]
            if len(pool) == self.beams.n_best:
                self.worst[slot] = pool[-1].score

    def _finish(
        self, slot: int, scores: NDArray[np.float32]
    ) -> tuple[int, list[Hypothesis]]:
        """Return the pool, then what was cut at the limit, best first; the slot is free again."""
        found = self.pools[slot]
        for place in np.argsort(-scores, kind="stable").tolist():
            if len(found) < self.beams.n_best and scores[place] > -np.inf:
                found.append(
                    self._hypothesis(
                        slot, place, int(self.times[slot]), scores[place], False
                    )
                )
        number = int(self.numbers[slot])
        self.numbers[slot] = -1
        return number, found

    def _hypothesis(
        self, slot: int, place: int, length: int, score: np.float32, finished: bool
    ) -> Hypothesis:
        ids = self.ids[slot, place, :length].tolist()
        token_log_probs = self.token_log_probs[slot, place, :length].tolist()
        log_prob = float(self.log_probs[slot, place])
        return Hypothesis(
            ids[:-1] if finished else ids,
            log_prob,
            float(score),
            token_log_probs,
            finished,
        )
