"""Searches over scripted logits whose answer can be read off, and against the enumeration of
everything.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from weft.decoding.decoder import Hypothesis, Indices, length_penalties
from weft.decoding.reference import beam_search, greedy_search
from weft.errors import DivergedError, UsageError

BOS, EOS, A, B = 0, 1, 2, 3
V = 4


@dataclass
class Prefixes:
    """A cache that is the text itself: for each row its sentence and the ids fed so far."""

    rows: list[tuple[int, tuple[int, ...]]]
    fed: list[int] = field(default_factory=list)

    def select(self, rows: Indices) -> "Prefixes":
        return Prefixes([self.rows[i] for i in rows.tolist()], self.fed)


def script(tables: list[Mapping[tuple[int, ...], Mapping[int, float]]]):
    """A step that reads, by sentence and prefix (without bos), the probability of each next
    token.
    """

    def step(ids: Indices, cache: Prefixes):
        rows = [
            (s, (*prefix, i))
            for (s, prefix), i in zip(cache.rows, ids.tolist(), strict=True)
        ]
        cache.fed.append(len(rows))
        logits = np.full((len(rows), V), -np.inf, np.float32)
        for n, (sentence, prefix) in enumerate(rows):
            assert prefix[0] == BOS
            for token, p in tables[sentence].get(prefix[1:], {EOS: 1.0}).items():
                logits[n, token] = math.log(p)
        return logits, Prefixes(rows, cache.fed)

    return step


def start(sentences: int) -> Prefixes:
    return Prefixes([(s, ()) for s in range(sentences)])


def beam(
    tables, *, beam_size=2, length_penalty=0.0, limit=10, **more
) -> list[list[Hypothesis]]:
    limits = limit if isinstance(limit, list) else [limit] * len(tables)
    return beam_search(
        script(tables), start(len(tables)), bos_id=BOS, eos_id=EOS, max_lens=limits,
        beam_size=beam_size, length_penalty=length_penalty, **more,
    )  # fmt: skip


def greedy(tables, *, limit=10, **more) -> list[Hypothesis]:
    limits = limit if isinstance(limit, list) else [limit] * len(tables)
    return greedy_search(
        script(tables),
        start(len(tables)),
        bos_id=BOS,
        eos_id=EOS,
        max_lens=limits,
        **more,
    )


# A looks better than B at first, and is not: 0.6 × 0.5 < 0.4 × 0.9.
MISLEADING = {(): {A: 0.6, B: 0.4}, (A,): {A: 0.5, EOS: 0.5}, (B,): {EOS: 0.9, A: 0.1}}
# "A" ends at once with 0.5; "B A A" needs three more sure steps and has 0.4.
SHORT_OR_LONG = {
    (): {A: 0.6, B: 0.4},
    (A,): {EOS: 0.8, B: 0.2},
    (B,): {A: 1.0},
    (B, A): {A: 1.0},
    (B, A, A): {EOS: 1.0},
}
ENDLESS = {prefix: {A: 0.9, EOS: 0.1} for n in range(20) for prefix in [(A,) * n]}


def test_greedy_takes_the_best_next_token_and_a_beam_of_two_the_better_sentence():
    assert greedy([MISLEADING])[0].ids[:1] == [A]
    (best,) = beam([MISLEADING])[0]
    assert best.ids == [B]
    assert best.finished
    assert best.log_prob == pytest.approx(math.log(0.4 * 0.9))
    assert best.token_log_probs == pytest.approx([math.log(0.4), math.log(0.9)])


def test_the_score_is_the_log_probability_over_the_penalty_of_the_length_with_eos():
    (best,) = beam([MISLEADING], length_penalty=0.7)[0]
    assert best.score == pytest.approx(math.log(0.36) / (7 / 6) ** 0.7)
    assert length_penalties(0.7, 3)[1:] == pytest.approx(
        [1.0, (7 / 6) ** 0.7, (8 / 6) ** 0.7]
    )


def test_a_length_penalty_turns_the_winner():
    assert beam([SHORT_OR_LONG], length_penalty=0.0)[0][0].ids == [A]
    # ln 0.48 / (7/6) = -0.629 < ln 0.4 / (9/6) = -0.611
    assert beam([SHORT_OR_LONG], length_penalty=1.0)[0][0].ids == [B, A, A]
    assert beam([SHORT_OR_LONG], length_penalty=-1.0)[0][0].ids == [A]


def test_n_best_come_in_the_order_of_their_scores():
    found = beam([MISLEADING], beam_size=4, n_best=4)[0]
    assert [h.ids for h in found] == [[B], [A], [A, A], [B, A]]
    assert [h.score for h in found] == pytest.approx(
        [math.log(p) for p in (0.36, 0.3, 0.3, 0.04)]
    )
    scores = [
        h.score
        for h in beam([MISLEADING], beam_size=4, n_best=4, length_penalty=1.0)[0]
    ]
    assert scores == sorted(scores, reverse=True)


def test_where_eos_is_the_only_token_left_the_output_is_empty():
    for hypothesis in (greedy([{}])[0], beam([{}], beam_size=3)[0][0]):
        assert hypothesis == Hypothesis([], 0.0, 0.0, [0.0], True)


def test_at_the_limit_a_hypothesis_is_cut_and_says_so():
    cut = greedy([ENDLESS], limit=3)[0]
    assert (cut.ids, cut.finished) == ([A, A, A], False)
    assert len(cut.token_log_probs) == 3
    assert cut.log_prob == pytest.approx(3 * math.log(0.9))
    assert beam([ENDLESS], beam_size=1, limit=3)[0] == [cut]


def test_the_limit_counts_eos():
    table = {(): {A: 1.0}, (A,): {EOS: 1.0}}
    assert greedy([table], limit=2)[0].finished
    assert beam([table], limit=2)[0][0].finished
    assert not greedy([table], limit=1)[0].finished
    assert not beam([table], limit=1)[0][0].finished


def test_what_is_cut_stands_after_everything_finished_even_with_a_better_score():
    found = beam([ENDLESS], beam_size=2, n_best=2, limit=1)[0]
    assert [(h.ids, h.finished) for h in found] == [([], True), ([A], False)]
    assert found[1].score > found[0].score


def test_a_beam_stops_when_no_live_hypothesis_can_win_any_more():
    endless = {(first, *(A,) * n): {A: 1.0} for first in (A, B) for n in range(40)}
    table = {**endless, (): {A: 0.99, B: 0.01}, (A,): {EOS: 0.99, A: 0.01}}
    cache = start(1)
    (found,) = beam_search(
        script([table]), cache, bos_id=BOS, eos_id=EOS, max_lens=[40],
        beam_size=2, length_penalty=1.0,
    )  # fmt: skip
    assert found[0].ids == [A]
    assert len(cache.fed) == 2


def test_a_beam_goes_on_while_a_longer_hypothesis_could_still_win():
    cache = start(1)
    (found,) = beam_search(
        script([SHORT_OR_LONG]), cache, bos_id=BOS, eos_id=EOS, max_lens=[10],
        beam_size=2, length_penalty=1.0,
    )  # fmt: skip
    assert found[0].ids == [B, A, A]
    assert len(cache.fed) == 4


def test_with_a_negative_penalty_the_next_length_is_the_favourable_one():
    # [] has ln 0.1 = -2.3; [A] has ln 0.9 × (7/6)² = -0.14; at the limit [A, ...] would have fallen
    # below -5.
    table = {(): {A: 0.9, EOS: 0.1}, (A,): {EOS: 1.0}}
    assert beam([table], length_penalty=-2.0, limit=40)[0][0].ids == [A]


def test_equal_candidates_go_by_the_lower_id():
    flat = {(): dict.fromkeys((A, B, EOS), 1 / 3)}
    assert greedy([flat])[0].ids == []
    assert greedy([flat], banned_ids=[EOS], limit=1)[0].ids == [A]
    found = beam([flat], beam_size=2, n_best=2, limit=1)[0]
    assert [(h.ids, h.finished) for h in found] == [([], True), ([A], False)]


@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_equals_beyond_the_beam_are_chosen_by_id_in_a_large_vocabulary(m):
    generator = np.random.default_rng(m)
    logits = generator.integers(0, 6, (7, 301)).astype(np.float32)

    def step(ids, cache):
        return logits[[s for s, _ in cache.rows]], cache

    found = beam_search(
        step, start(7), bos_id=BOS, eos_id=300, max_lens=[1] * 7,
        beam_size=m, n_best=m, length_penalty=0.0, banned_ids=[300],
    )  # fmt: skip
    for row, hypotheses in zip(logits.tolist(), found, strict=True):
        by_value_then_id = sorted(range(300), key=lambda i: (-row[i], i))
        assert [h.ids for h in hypotheses] == [[i] for i in by_value_then_id[:m]]


def test_banned_ids_are_never_chosen_and_change_no_other_probability():
    table = {(): {A: 0.7, B: 0.3}, (B,): {EOS: 1.0}}
    for found in (
        greedy([table], banned_ids=[A])[0],
        beam([table], banned_ids=[A])[0][0],
    ):
        assert found.ids == [B]
        assert found.log_prob == pytest.approx(math.log(0.3))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "search", [greedy_search, partial(beam_search, beam_size=3, length_penalty=1.0)]
)
def test_logits_that_are_no_numbers_are_an_error(value, search):
    def step(ids, cache):
        logits = np.zeros((len(ids), V), np.float32)
        logits[-1] = value
        return logits, cache

    settings = {"bos_id": BOS, "eos_id": EOS, "max_lens": [5, 5]}
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        search(step, start(2), **settings)


def test_impossible_settings_are_refused():
    with pytest.raises(UsageError, match="n_best = 3 and beam_size = 2"):
        beam([MISLEADING], beam_size=2, n_best=3)
    with pytest.raises(UsageError, match="at least 1"):
        beam([MISLEADING], limit=0)
    with pytest.raises(UsageError, match="at least 1"):
        greedy([MISLEADING], limit=0)


def test_no_sentence_gives_no_hypothesis():
    assert greedy([]) == []
    assert beam([]) == []


# Random models
# --------------------------------------------------------------------------------------


def random_table(seed: int, longest: int) -> dict[tuple[int, ...], dict[int, float]]:
    """Random probabilities of eos, A and B after every prefix shorter than `longest`."""
    generator = np.random.default_rng(seed)
    table = {}
    for prefix in (
        p for n in range(longest) for p in itertools.product((A, B), repeat=n)
    ):
        powers = np.exp(2 * generator.standard_normal(3))
        weights = (powers / powers.sum()).tolist()
        table[prefix] = dict(zip((EOS, A, B), weights, strict=True))
    return table


def enumerate_all(
    table, limit: int, alpha: float
) -> list[tuple[bool, float, list[int]]]:
    """Every output up to the limit: finished or not, score, ids; the best first."""
    found = []
    for prefix in (
        p for n in range(limit + 1) for p in itertools.product((A, B), repeat=n)
    ):
        log_prob = sum(
            math.log(table[prefix[:i]][token]) for i, token in enumerate(prefix)
        )
        if len(prefix) == limit:
            found.append((False, log_prob / ((5 + limit) / 6) ** alpha, list(prefix)))
        else:
            total = log_prob + math.log(table[prefix][EOS])
            found.append((True, total / ((6 + len(prefix)) / 6) ** alpha, list(prefix)))
    return sorted(found, key=lambda each: (not each[0], -each[1]))


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("n_best", [1, 3, 40])
def test_a_beam_as_wide_as_the_space_equals_exhaustive_search(alpha, n_best):
    limit = 4
    tables = [random_table(seed, limit) for seed in range(30)]
    found = beam(tables, beam_size=64, length_penalty=alpha, n_best=n_best, limit=limit)
    for table, hypotheses in zip(tables, found, strict=True):
        expected = enumerate_all(table, limit, alpha)[:n_best]
        assert [(h.finished, h.ids) for h in hypotheses] == [
            (done, ids) for done, _, ids in expected
        ]
        assert [h.score for h in hypotheses] == pytest.approx(
            [score for _, score, _ in expected], abs=1e-5
        )
        for h in hypotheses:
            assert h.log_prob == pytest.approx(sum(h.token_log_probs), abs=1e-5)


@pytest.mark.parametrize("alpha", [-2.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("beam_size", [2, 3])
def test_stopping_early_changes_no_result(alpha, beam_size):
    """A narrow beam that never stops early: the same search with room in its pool for every
    finished one.
    """
    limit = 6
    tables = [random_table(seed, limit) for seed in range(40)]
    early = beam(tables, beam_size=beam_size, length_penalty=alpha, limit=limit)
    for table, (best,) in zip(tables, early, strict=True):
        assert best.ids == narrow_beam(table, beam_size, alpha, limit)


def narrow_beam(table, beam_size: int, alpha: float, limit: int) -> list[int]:
    """The same search as plain lists, to the limit, with nothing given up."""
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        candidates = [
            ((*ids, token), total + math.log(p))
            for ids, total in live
            for token, p in table[ids].items()
        ]
        best = sorted(candidates, key=lambda each: -each[1])[:beam_size]
        penalty = ((5 + length) / 6) ** alpha
        finished += [
            (total / penalty, ids[:-1]) for ids, total in best if ids[-1] == EOS
        ]
        live = [(ids, total) for ids, total in best if ids[-1] != EOS]
    return list(
        max(finished)[1] if finished else max((total, ids) for ids, total in live)[1]
    )


def test_a_beam_of_one_is_greedy_search():
    tables = [random_table(seed, 6) for seed in range(60)]
    limits = [1 + seed % 6 for seed in range(60)]
    for alpha in (0.0, 1.0):
        one = beam(tables, beam_size=1, length_penalty=alpha, limit=limits)
        assert [h for (h,) in one] == greedy(tables, limit=limits, length_penalty=alpha)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_sentence_in_a_batch_is_translated_as_alone(beam_size):
    tables = [random_table(seed, 6) for seed in range(23)]
    limits = [1 + seed % 6 for seed in range(23)]
    together = beam(
        tables, beam_size=beam_size, n_best=beam_size, length_penalty=1.0, limit=limits
    )
    for table, limit, hypotheses in zip(tables, limits, together, strict=True):
        alone = beam(
            [table],
            beam_size=beam_size,
            n_best=beam_size,
            length_penalty=1.0,
            limit=limit,
        )
        assert alone == [hypotheses]
