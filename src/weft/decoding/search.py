"""Beam search over any number of sentences: as one is done, the next takes its place.

It finds what `reference.beam_search` finds, with a decoder whose rows may stand at different
positions. A beam has k hypotheses. Keys and values stay where they were computed: a hypothesis's
ancestors say at which beam index it stood at each position. No row depends on the rows beside it.

Shapes: S sentences that the decoder has room for, A of them active, k hypotheses in a beam, R rows
of a step (the live hypotheses), m candidates of a row, T positions.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import (
    Decoder,
    Engine,
    Floats,
    Hypothesis,
    Ids,
    Indices,
    StepInput,
    Tokens,
    TopK,
    length_penalties,
)
from weft.errors import DivergedError, UsageError

_MOST_SENTENCES = 256

NO_NUMBERS = "decoding: no token has a finite probability (NaN or infinite logits)"


@dataclass(frozen=True)
class BeamSettings:
    """The settings of a beam search; as the arguments of `reference.beam_search`.

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
        """Create a search with these settings."""
        return Search(decoder, self, budget)


@dataclass(frozen=True)
class Sentence:
    """Ids of a source, its number, and how many new tokens its output may have, eos counted.

    Every output begins with `prefix`, however improbable; its tokens count as new ones. If
    `allowed` has ids, in ascending order, an output has no others; those of the prefix are among
    them.
    """

    number: int
    ids: Sequence[int]
    max_len: int
    prefix: Sequence[int] = ()
    allowed: Ids = ()


def search_all(
    engine: Engine,
    sentences: Sequence[Sentence],
    settings: BeamSettings,
    workers: int = 1,
    batch_tokens: int = 4096,
) -> dict[int, list[Hypothesis]]:
    """Search with several threads; return each sentence's `n_best` hypotheses, best first, by its
    number: fewer where the beam met fewer.

    The sentences that a thread works on have at most `batch_tokens` source tokens times beam_size
    in all, but for a single one that has more. It takes the longest waiting ones where
    `Search.fill` starts them. Where a thread fails, or the caller is interrupted, all threads stop
    at their next step. Raises DivergedError where the logits of a row are not numbers.
    """
    waiting = Waiting(sentences)
    workers = max(1, min(workers, len(sentences)))
    budget = max(1, batch_tokens // settings.beam_size)
    total_len = sum(len(sentence.ids) for sentence in sentences)
    mean_len = total_len / max(len(sentences), 1)
    per_worker = -(-len(sentences) // workers)
    within_budget = round(budget / max(mean_len, 1))
    num_sentences = max(1, min(per_worker, within_budget, _MOST_SENTENCES))

    def work() -> dict[int, list[Hypothesis]]:
        try:
            decoder = engine.session(num_sentences, settings.beam_size)
            return dict(continuous_search(decoder, waiting, settings, budget))
        except BaseException:
            waiting.stop()  # the others need not go on
            raise

    if workers == 1:
        return work()
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(work) for _ in range(workers)]
            hypotheses: dict[int, list[Hypothesis]] = {}
            for future in futures:
                hypotheses.update(future.result())
            return hypotheses
        except BaseException:  # Ctrl-C comes here, and the pool waits for its threads
            waiting.stop()
            raise


class Waiting:
    """Sentences that wait, the longest first; any number of threads take from them."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        # taken from the end; a long sentence that began last would keep the other threads waiting
        self._sentences = sorted(sentences, key=lambda sentence: len(sentence.ids))
        self._lock = Lock()
        self.stopped = False

    def take(self, count: int, room: int, at_least_one: bool) -> list[Sentence]:
        """Take the longest: at most `count`, of at most `room` padded tokens.

        With `at_least_one`, the first may be longer.
        """
        taken: list[Sentence] = []
        with self._lock:
            while self._sentences and len(taken) < count:
                first = taken[0] if taken else self._sentences[-1]
                longest = len(first.ids)
                is_too_long = longest * (len(taken) + 1) > room
                if is_too_long and (taken or not at_least_one):
                    break
                taken.append(self._sentences.pop())
        return taken

    def stop(self) -> None:
        """Stop every search that takes its sentences from here."""
        self.stopped = True


def continuous_search(
    decoder: Decoder, waiting: Waiting, settings: BeamSettings, budget: int
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield the number of each sentence and its `n_best` hypotheses, best first, as they are done:
    fewer where the beam met fewer.

    A stopped search yields no more. `budget` limits the source tokens of the active sentences.
    Raises DivergedError where the logits of a row are not numbers.
    """
    search = settings.search(decoder, budget)
    while not waiting.stopped and search.fill(waiting):
        yield from search.advance()


def streamed_search(
    decoder: Decoder, sentence: Sentence, settings: BeamSettings
) -> Iterator[int]:
    """Yield the tokens of a sentence's only hypothesis, eos too, each after its step.

    Raises as the search.
    """
    search = settings.search(decoder, len(sentence.ids))
    waiting = Waiting([sentence])
    while search.fill(waiting):
        list(search.advance())
        yield int(search.newest_tokens[0, 0])


@dataclass(frozen=True)
class Extensions:
    """The k hypotheses of each active beam after a step (A k): the beam index of each one's parent,
    the log-probability of its new token, and this token.
    """

    parents: Indices
    log_probs: Floats
    tokens: Tokens


class Search:
    """The state of a beam search: arrays over the S sentences of a decoder, of which some are
    active.
    """

    def __init__(self, decoder: Decoder, settings: BeamSettings, budget: int) -> None:
        self.decoder = decoder
        self.settings = settings
        self.budget = budget
        num_sentences = decoder.num_sentences
        shape = num_sentences, settings.beam_size
        self.numbers = np.full(num_sentences, -1)  # -1: the index is free
        self.lengths = np.zeros(num_sentences, np.int64)  # new tokens so far
        self.max_lens = np.zeros(num_sentences, np.int64)
        self.src_lens = np.zeros(num_sentences, np.int64)
        self.log_probs = np.full(shape, -np.inf, np.float32)
        self.newest_tokens = np.zeros(shape, np.int32)
        # what a score must be above to enter the pool of finished hypotheses
        self.worst_scores = np.full(num_sentences, -np.inf, np.float32)
        self.pools: list[list[Hypothesis]] = [[] for _ in range(num_sentences)]
        self.prefixes: list[Sequence[int]] = [()] * num_sentences
        self.prefix_lens = np.zeros(num_sentences, np.int64)
        # S k T; index p belongs to the token read at position p, bos at 0: `ancestors` is its beam
        # index, `tokens` what was chosen after it, which is read at p + 1
        self.tokens = np.zeros((*shape, 32), np.int32)
        self.ancestors = np.zeros((*shape, 32), np.int32)
        self.token_log_probs = np.zeros((*shape, 32), np.float32)
        self.penalties = np.ones(1, np.float32)
        banned = sorted(set(settings.banned_ids))
        self.banned = np.asarray(banned, np.int32)

    def fill(self, waiting: Waiting) -> bool:
        """Start waiting sentences at free indices, several at a time; say whether any is active."""
        num_sentences = self.decoder.num_sentences
        free = np.flatnonzero(self.numbers < 0)
        is_idle = len(free) == num_sentences
        active_lens = self.src_lens[self.numbers >= 0]
        room = self.budget - int(active_lens.sum())
        has_few_free = len(free) * 8 < num_sentences
        has_little_room = 8 * room < self.budget
        # encoding several sentences at once is faster, so it waits for more than a few free indices
        is_full = has_few_free or has_little_room or self.decoder.begins_together
        if is_full and not is_idle:
            return True
        sentences = waiting.take(len(free), room, is_idle)
        if sentences:
            indices = free[: len(sentences)].tolist()
            sources = [sentence.ids for sentence in sentences]
            allowed = [sentence.allowed for sentence in sentences]
            self.decoder.read(indices, sources, allowed)
            for index, sentence in zip(indices, sentences, strict=True):
                self._start(index, sentence)
        return bool(sentences) or not is_idle

    def _start(self, index: int, sentence: Sentence) -> None:
        """Begin a sentence with one live hypothesis, bos alone."""
        if sentence.max_len < 1:
            raise UsageError(
                f"the output limit is {sentence.max_len} tokens; it must be at least 1"
            )
        self.numbers[index] = sentence.number
        self.lengths[index] = 0
        self.max_lens[index] = sentence.max_len
        self.src_lens[index] = len(sentence.ids)
        self.log_probs[index] = -np.inf
        self.log_probs[index, 0] = 0.0
        self.newest_tokens[index, 0] = self.settings.bos_id
        self.worst_scores[index] = -np.inf
        self.pools[index] = []
        self.prefixes[index] = sentence.prefix
        self.prefix_lens[index] = len(sentence.prefix)
        if sentence.max_len >= len(self.penalties) - 1:
            alpha = self.settings.length_penalty
            table = length_penalties(alpha, 2 * sentence.max_len + 1)
            self.penalties = np.asarray(table, np.float32)

    def advance(self) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Extend every live hypothesis by one token; yield the sentences that are done by it."""
        active = np.flatnonzero(self.numbers >= 0)
        positions = self.lengths[active]  # of the newest token of each beam, bos at 0
        self._make_room(int(positions.max()) + 1)
        # k candidates a hypothesis are enough: the k best of a beam are among them
        top_log_probs, top_ids = self._candidates(active)  # A k m
        # all candidates of a beam compete, so that a hypothesis may go on twice, or not at all
        extensions = self._choose(active, top_log_probs, top_ids)
        self._record(active, positions, extensions)
        log_probs = self.log_probs[active]  # A k
        is_eos = extensions.tokens == self.settings.eos_id
        # a beam with fewer than k candidates is filled up with some of probability 0
        ended = is_eos & (log_probs > -np.inf)
        # the new token counts in the length, eos too
        lengths = positions + 1
        penalties = self.penalties[lengths]
        scores = log_probs / penalties[:, None]
        self._finish_hypotheses(active, ended, scores)
        # what ended leaves the beam: with -inf it is neither extended nor chosen again
        live_log_probs = np.where(ended, -np.inf, log_probs)
        self.log_probs[active] = live_log_probs
        self.lengths[active] = lengths
        # A log-probability only falls, and the penalty is largest at one end of the lengths that
        # are left: no hypothesis can score above this bound.
        max_lens = self.max_lens[active]
        next_penalties = self.penalties[lengths + 1]
        largest = np.maximum(self.penalties[max_lens], next_penalties)
        bounds = live_log_probs.max(1) / largest
        # until a pool is full, its worst score is -inf, and no beam with a live hypothesis is
        # hopeless
        is_hopeless = bounds <= self.worst_scores[active]
        is_done = is_hopeless | (lengths >= max_lens)
        for i in np.flatnonzero(is_done).tolist():
            # what is live at the limit is cut; what is live in a hopeless beam finds a full pool
            live_scores = np.where(ended[i], -np.inf, scores[i])
            yield self._finish(int(active[i]), live_scores)

    def _make_room(self, length: int) -> None:
        """Make room for `length` tokens: double the arrays where they are shorter."""
        if length <= self.tokens.shape[2]:
            return
        more = (0, self.tokens.shape[2])
        room = ((0, 0), (0, 0), more)
        self.tokens = np.pad(self.tokens, room)
        self.ancestors = np.pad(self.ancestors, room)
        self.token_log_probs = np.pad(self.token_log_probs, room)

    def _candidates(self, active: Indices) -> tuple[Floats, Tokens]:
        """Compute the most probable next tokens of every hypothesis (A k m).

        Where there is none, the log-probability is -inf. Inside a prefix, its next token is the
        only candidate.
        """
        k = self.settings.beam_size
        is_live = self.log_probs[active] > -np.inf
        rows, beams = np.nonzero(is_live)
        sentences = active[rows]
        positions = self.lengths[sentences]
        is_forced = positions < self.prefix_lens[sentences]
        forced = np.flatnonzero(is_forced).tolist()
        inputs = self._step_input(sentences, beams)
        log_probs, ids, all_log_probs = self._step(inputs, bool(forced))
        if all_log_probs is not None:
            for row in forced:
                token = self.prefixes[sentences[row]][positions[row]]
                log_probs[row] = -np.inf
                log_probs[row, 0] = all_log_probs[row, token]
                ids[row, 0] = token
        shape = len(active), k, log_probs.shape[1]
        if len(sentences) == len(active) * k:
            return log_probs.reshape(shape), ids.reshape(shape)
        padded_log_probs = np.full(shape, -np.inf, np.float32)
        padded_ids = np.zeros(shape, np.int32)
        padded_log_probs[rows, beams] = log_probs
        padded_ids[rows, beams] = ids
        return padded_log_probs, padded_ids

    def _step(self, inputs: StepInput, all_log_probs: bool) -> TopK:
        """Take a step of the decoder: the `beam_size` most probable next tokens of each row."""
        k = self.settings.beam_size
        return self.decoder.step(inputs, k, all_log_probs=all_log_probs)

    def _step_input(self, sentences: Indices, beams: Indices) -> StepInput:
        """Gather the newest token and the ancestors of these hypotheses."""
        positions = self.lengths[sentences]
        width = int(positions.max()) + 1
        banned, ban_ends = self._bans(sentences, beams)
        return StepInput(
            sentences,
            beams,
            positions,
            self.newest_tokens[sentences, beams],
            self.ancestors[sentences, beams, :width],  # R T
            banned,
            ban_ends,
        )

    def _bans(self, sentences: Indices, beams: Indices) -> tuple[Tokens, Indices]:
        """List the banned ids of these hypotheses, row after row, and where each row's end."""
        n = self.settings.no_repeat_ngrams
        if not n:
            count = len(sentences)
            ends = np.arange(1, count + 1) * len(self.banned)
            return np.tile(self.banned, count), ends
        banned: list[int] = []
        ends_of_rows = []
        rows = zip(sentences.tolist(), beams.tolist(), strict=True)
        for index, beam in rows:
            length = self.lengths[index]
            tokens = self.tokens[index, beam, :length].tolist()
            newest = tokens[len(tokens) - n + 1 :]
            banned += self.banned.tolist()
            for i in range(len(tokens) - n + 1):
                if tokens[i : i + n - 1] == newest:
                    banned.append(tokens[i + n - 1])
            ends_of_rows.append(len(banned))
        return np.array(banned, np.int32), np.array(ends_of_rows, np.int64)

    def _choose(
        self,
        active: Indices,
        top_log_probs: Floats,
        top_ids: Tokens,
    ) -> Extensions:
        """Choose the k most probable extensions of each beam, and set the log-probabilities.

        Raises DivergedError where a sentence has none.
        """
        k = self.settings.beam_size
        log_probs = self.log_probs[active]
        totals = log_probs[:, :, None] + top_log_probs  # A k m
        totals = totals.reshape(len(active), -1)
        has_extension = np.isfinite(totals.max(1))
        is_nan = np.isnan(top_log_probs)
        if is_nan.any() or not has_extension.all():
            raise DivergedError(NO_NUMBERS)
        # stable: of equals the earlier hypothesis, then the lower id, on every device
        order = np.argsort(-totals, axis=1, kind="stable")
        chosen = order[:, :k]
        self.log_probs[active] = np.take_along_axis(totals, chosen, 1)
        parents = chosen // k  # m = k
        flat_log_probs = top_log_probs.reshape(totals.shape)
        token_log_probs = np.take_along_axis(flat_log_probs, chosen, 1)
        flat_ids = top_ids.reshape(totals.shape)
        tokens = np.take_along_axis(flat_ids, chosen, 1)
        return Extensions(parents, token_log_probs, tokens)

    def _record(
        self,
        active: Indices,
        positions: Indices,
        extensions: Extensions,
    ) -> None:
        """Give each hypothesis its parent's history, followed by its new token."""
        parents = extensions.parents
        sentences = active[:, None]
        beams = np.arange(self.settings.beam_size)[None]
        newest = positions[:, None]
        until = int(positions.max())
        if self.settings.beam_size > 1:
            for history in (self.tokens, self.ancestors, self.token_log_probs):
                history[active, :, :until] = history[sentences, parents, :until]
        self.tokens[sentences, beams, newest] = extensions.tokens
        self.ancestors[sentences, beams, newest] = parents
        self.token_log_probs[sentences, beams, newest] = extensions.log_probs
        self.newest_tokens[active] = extensions.tokens

    def _finish_hypotheses(
        self,
        active: Indices,
        ended: NDArray[np.bool_],
        scores: Floats,
    ) -> None:
        """Put the hypotheses that ended with eos into their sentences' pools of the `n_best`."""
        n_best = self.settings.n_best
        worst_scores = self.worst_scores[active]
        is_better = scores > worst_scores[:, None]
        for i, beam in np.argwhere(ended & is_better).tolist():
            index = int(active[i])
            pool = self.pools[index]
            length = int(self.lengths[index]) + 1
            score = scores[i, beam]
            hypothesis = self._hypothesis(index, beam, length, score, True)
            rank = bisect_right(pool, -hypothesis.score, key=lambda h: -h.score)
            pool.insert(rank, hypothesis)
            del pool[n_best:]
            if len(pool) == n_best:
                self.worst_scores[index] = pool[-1].score

    def _finish(self, index: int, scores: Floats) -> tuple[int, list[Hypothesis]]:
        """Return a sentence's number and hypotheses, best first, and free its index.

        Those that were cut at the limit stand after all that ended, whatever their scores, because
        a translation without an end is incomplete.
        """
        hypotheses = self.pools[index]
        length = int(self.lengths[index])
        for beam in np.argsort(-scores, kind="stable").tolist():
            score = scores[beam]
            is_full = len(hypotheses) >= self.settings.n_best
            if is_full or score == -np.inf:
                break
            cut = self._hypothesis(index, beam, length, score, False)
            hypotheses.append(cut)
        number = int(self.numbers[index])
        self.numbers[index] = -1
        return number, hypotheses

    def _hypothesis(
        self, index: int, beam: int, length: int, score: np.float32, finished: bool
    ) -> Hypothesis:
        """Build the hypothesis at this index of a sentence's beam, of its first `length` tokens."""
        ids = self.tokens[index, beam, :length].tolist()
        token_log_probs = self.token_log_probs[index, beam, :length].tolist()
        log_prob = float(self.log_probs[index, beam])
        if finished:
            ids = ids[:-1]
        return Hypothesis(ids, log_prob, float(score), token_log_probs, finished)
