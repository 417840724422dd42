"""Everything scored: by tables that can be read, and as the measure of beams over random models."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

from weft.config import Seq2SeqSection
from weft.decoding.decoder import Floats, Hypothesis, Indices, Step
from weft.decoding.exhaustive import exhaustive_search
from weft.decoding.reference import beam_search, greedy_search
from weft.engine.torch_steps import TorchCache, numpy_step
from weft.errors import DivergedError, UsageError
from weft.model.transformer import Seq2SeqTransformer

BOS, EOS, A, B = 0, 1, 2, 3


@dataclass
class Prefixes:
    """A cache that is the ids fed so far."""

    rows: list[tuple[int, ...]]

    def select(self, rows: Indices) -> "Prefixes":
        return Prefixes([self.rows[i] for i in rows.tolist()])


def script(
    table: Mapping[tuple[int, ...], Mapping[int, float]], fed: list[int] | None = None
) -> Step[Prefixes]:
    """A step that reads, by prefix without bos, the probability of each next token; eos where it
    says nothing.
    """

    def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        rows = [
            (*prefix, i) for prefix, i in zip(cache.rows, ids.tolist(), strict=True)
        ]
        if fed is not None:
            fed.append(len(rows))
        logits = np.full((len(rows), 4), -np.inf, np.float32)
        for n, prefix in enumerate(rows):
            assert prefix[0] == BOS
            for token, p in table.get(prefix[1:], {EOS: 1.0}).items():
                logits[n, token] = math.log(p)
        return logits, Prefixes(rows)

    return step


def exhaust(table, *, max_len=10, fed=None, **more) -> list[Hypothesis]:
    return exhaustive_search(
        script(table, fed), Prefixes([()]), bos_id=BOS, eos_id=EOS, max_len=max_len,
        **({"max_sequences": 10**9} | more),
    )  # fmt: skip


# Greedy takes A, then eos or A: 0.6 × 0.5; the best is B and eos: 0.4 × 0.9.
MISLEADING = {(): {A: 0.6, B: 0.4}, (A,): {A: 0.5, EOS: 0.5}, (B,): {EOS: 0.9, A: 0.1}}
ENDLESS = {(A,) * n: {A: 0.9, EOS: 0.1} for n in range(20)}


def test_all_outputs_come_in_the_order_of_their_scores():
    found = exhaust(MISLEADING, n_best=9)
    assert [h.ids for h in found] == [[B], [A], [A, A], [B, A]]
    assert [h.score for h in found] == pytest.approx(
        [math.log(p) for p in (0.36, 0.3, 0.3, 0.04)]
    )
    assert [h.log_prob for h in found] == [h.score for h in found]
    assert found[0].token_log_probs == pytest.approx([math.log(0.4), math.log(0.9)])
    assert all(h.finished for h in found)
    assert exhaust(MISLEADING, n_best=2) == found[:2]


def test_the_length_that_divides_counts_eos():
    # ln 0.48 / (7/6) = -0.629 < ln 0.4 / (9/6) = -0.611
    table = {
        (): {A: 0.6, B: 0.4},
        (A,): {EOS: 0.8, B: 0.2},
        (B,): {A: 1.0},
        (B, A): {A: 1.0},
    }
    assert exhaust(table)[0].ids == [A]
    first, second = exhaust(table, length_penalty=1.0, n_best=2)
    assert (first.ids, second.ids) == ([B, A, A], [A])
    assert first.score == pytest.approx(math.log(0.4) / (9 / 6))


def test_what_is_cut_says_so_and_stands_after_everything_finished():
    found = exhaust(ENDLESS, max_len=2, n_best=9)
    assert [(h.ids, h.finished) for h in found] == [
        ([], True),
        ([A], True),
        ([A, A], False),
    ]
    assert found[2].score > found[0].score
    assert found[2].token_log_probs == pytest.approx([math.log(0.9)] * 2)


def test_the_limit_counts_eos():
    table = {(): {A: 1.0}}
    assert exhaust(table, max_len=2) == [Hypothesis([A], 0.0, 0.0, [0.0, 0.0], True)]
    assert exhaust(table, max_len=1) == [Hypothesis([A], 0.0, 0.0, [0.0], False)]


def test_an_empty_output_is_one():
    assert exhaust({}) == [Hypothesis([], 0.0, 0.0, [0.0], True)]


def test_banned_ids_are_not_followed_and_change_no_other_probability():
    table = {(): {A: 0.7, B: 0.3}, (B,): {EOS: 0.8, A: 0.2}}
    (only,) = exhaust(table, banned_ids=[A], n_best=9)
    assert only.ids == [B]
    assert only.log_prob == pytest.approx(math.log(0.3 * 0.8))
    unfinished = exhaust(table, banned_ids=[EOS], max_len=2, n_best=9)
    # after A there is eos alone
    assert [(h.ids, h.finished) for h in unfinished] == [([B, A], False)]


def test_each_length_is_one_step_and_impossible_outputs_are_not_fed():
    fed: list[int] = []
    exhaust(MISLEADING, fed=fed)
    assert fed == [1, 2, 2]  # bos; A, B; AA, BA


@pytest.mark.parametrize("rows_per_step", [1, 2, 3])
def test_more_outputs_than_a_step_may_hold_are_followed_in_parts(rows_per_step):
    fed: list[int] = []
    uniform = {prefix: dict.fromkeys((A, B, EOS), 1 / 3) for prefix in prefixes(4)}
    parts = exhaust(uniform, max_len=4, n_best=99, fed=fed, rows_per_step=rows_per_step)
    assert max(fed) == rows_per_step
    assert sum(fed) == 1 + 2 + 4 + 8
    assert parts == exhaust(uniform, max_len=4, n_best=99)
    assert len(parts) == 1 + 2 + 4 + 8 + 16


def prefixes(longest: int) -> list[tuple[int, ...]]:
    """Everything of A and B shorter than `longest`."""
    return (
        [()] + [(*p, i) for p in prefixes(longest - 1) for i in (A, B)]
        if longest
        else []
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_no_numbers_are_an_error(value):
    def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        logits = np.zeros((len(ids), 4), np.float32)
        logits[-1, :] = 0.0 if len(ids) == 1 else value
        return logits, cache

    with pytest.raises(DivergedError, match="no token has a finite probability"):
        exhaustive_search(step, Prefixes([()]), bos_id=BOS, eos_id=EOS, max_len=3)


def test_nothing_possible_is_an_error():
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        exhaust({(): {A: 1.0}}, banned_ids=[A])


# The size
# --------------------------------------------------------------------------------------


def refused(max_len: int, vocab_size: int, fed: list[int], **more) -> str:
    def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        fed.append(len(ids))
        return np.zeros((len(ids), vocab_size), np.float32), cache

    settings = {"bos_id": BOS, "eos_id": EOS, "max_len": max_len, **more}
    with pytest.raises(UsageError) as error:
        exhaustive_search(step, Prefixes([()]), **settings)
    return str(error.value)


def test_too_many_outputs_are_refused_after_the_first_step():
    fed: list[int] = []
    # Without bos and eos 5 ids: 1 + 5 + 25 + 125 that end, 625 that are cut.
    message = refused(4, 7, fed, banned_ids=[BOS], max_sequences=780)
    assert (
        "5 ids in addition to eos, at most 4 tokens with eos, has 781 outputs to score, more than 780"
        in message
    )
    assert message.endswith("lower the limit to 3 tokens")
    assert "\n" not in message
    assert fed == [1]


def test_as_many_outputs_as_allowed_are_scored():
    uniform = {prefix: dict.fromkeys((A, B, EOS), 1 / 3) for prefix in prefixes(3)}
    found = exhaust(uniform, max_len=3, banned_ids=[BOS], n_best=99, max_sequences=15)
    assert len(found) == 1 + 2 + 4 + 8
    with pytest.raises(
        UsageError,
        match="15 outputs to score, more than 14; lower the limit to 2 tokens",
    ):
        exhaust(uniform, max_len=3, banned_ids=[BOS], max_sequences=14)


def test_where_eos_is_banned_only_the_longest_count():
    uniform = {prefix: dict.fromkeys((A, B, EOS), 1 / 3) for prefix in prefixes(3)}
    assert (
        len(
            exhaust(
                uniform, max_len=3, banned_ids=[BOS, EOS], n_best=99, max_sequences=8
            )
        )
        == 8
    )
    with pytest.raises(UsageError, match="8 outputs"):
        exhaust(uniform, max_len=3, banned_ids=[BOS, EOS], max_sequences=7)


def test_a_number_too_long_to_write_is_given_as_a_power():
    assert "has over 10^46989 outputs" in refused(10_000, 50_001, [])  # 50,000 ^ 10,000
    assert refused(10_000, 50_001, []).endswith("lower the limit to 1 tokens")


def test_a_vocabulary_too_large_for_a_single_token_says_so():
    assert "more than 50,000; use a beam" in refused(
        1, 50_001, [], max_sequences=50_000
    )


def test_a_single_id_can_be_repeated_a_thousand_times():
    def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        return np.tile(np.float32([-np.inf, -1.0, 0.0]), (len(ids), 1)), cache

    settings = {"bos_id": BOS, "eos_id": EOS, "max_len": 1100, "banned_ids": [BOS]}
    found = exhaustive_search(
        step, Prefixes([()]), n_best=2, max_sequences=1101, **settings
    )
    assert [len(h.ids) for h in found] == [0, 1]
    assert "has 1,101 outputs" in refused(
        1100, 3, [], banned_ids=[BOS], max_sequences=1100
    )


@pytest.mark.parametrize("name", ["max_len", "n_best", "rows_per_step"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(UsageError, match=f"{name} = 0: it must be at least 1"):
        exhaust(MISLEADING, **{name: 0})


# Random models
# --------------------------------------------------------------------------------------


@dataclass
class Numbers:
    """A cache that is one number a row, different for every history."""

    rows: Indices

    def select(self, rows: Indices) -> "Numbers":
        return Numbers(self.rows[rows])


@dataclass(frozen=True)
class Model:
    """Logits of its own after each of all histories."""

    table: Floats  # histories V
    max_len: int

    @property
    def vocab_size(self) -> int:
        return self.table.shape[1]

    def step(self, ids: Indices, cache: Numbers) -> tuple[Floats, Numbers]:
        numbers = cache.rows * self.vocab_size + ids
        return self.table[numbers], Numbers(numbers)

    @property
    def settings(self) -> dict[str, object]:
        return {"bos_id": BOS, "eos_id": EOS, "banned_ids": [BOS]}

    def exhaust(self, n_best: int = 1, **more) -> list[Hypothesis]:
        return exhaustive_search(
            self.step,
            Numbers(np.zeros(1, np.int64)),
            max_len=self.max_len,
            n_best=n_best,
            **self.settings,
            **more,
        )

    def beam(
        self, beam_size: int | None = None, n_best: int = 1, **more
    ) -> list[Hypothesis]:
        """With no size given, one that loses nothing: each of the longest prefixes with each next
        token.
        """
        choices = self.vocab_size - 2
        return beam_search(
            self.step, Numbers(np.zeros(1, np.int64)), max_lens=[self.max_len], n_best=n_best,
            beam_size=beam_size or choices ** (self.max_len - 1) * (choices + 1), **self.settings, **more,
        )[0]  # fmt: skip

    def greedy(self, **more) -> Hypothesis:
        return greedy_search(
            self.step,
            Numbers(np.zeros(1, np.int64)),
            max_lens=[self.max_len],
            **self.settings,
            **more,
        )[0]


def random_model(seed: int, whole_numbers: bool = False) -> Model:
    """A vocabulary of 5 to 7, a limit of 4 or 5; whole numbers make many outputs exactly equal."""
    generator = np.random.default_rng(seed)
    vocab_size, max_len = ((5, 4), (6, 4), (7, 4), (5, 5))[seed % 4]
    shape = (vocab_size**max_len, vocab_size)
    if whole_numbers:
        return Model(generator.integers(0, 2, shape).astype(np.float32), max_len)
    return Model(1.5 * generator.standard_normal(shape, np.float32), max_len)


PENALTIES = (0.0, 0.6, 1.0, -1.0, 2.5)
MODELS = [(random_model(seed), PENALTIES[seed % 5]) for seed in range(200)]


@cache
def best_of_all() -> list[Hypothesis]:
    """The best output of each of the models."""
    return [model.exhaust(length_penalty=alpha)[0] for model, alpha in MODELS]


def quality(hypothesis: Hypothesis) -> tuple[bool, float]:
    return hypothesis.finished, hypothesis.score


def test_a_wide_beam_finds_the_best_of_all_in_every_random_model():
    found = [model.beam(length_penalty=alpha) for model, alpha in MODELS]
    assert len(found) == 200
    assert found == [[best] for best in best_of_all()]
    assert len({tuple(best.ids) for best in best_of_all()}) > 20


def test_a_narrow_beam_misses_some_and_what_it_finds_instead_is_worse():
    missed = 0
    for (model, alpha), best in zip(MODELS, best_of_all(), strict=True):
        (narrow,) = model.beam(2, length_penalty=alpha)
        if narrow != best:
            missed += 1
            assert quality(narrow) < quality(best)
    assert 0 < missed < len(MODELS)


def test_a_beam_of_one_is_greedy_and_never_better_than_the_best_of_all():
    worse = 0
    for (model, alpha), best in zip(MODELS, best_of_all(), strict=True):
        greedy = model.greedy(length_penalty=alpha)
        assert model.beam(1, length_penalty=alpha) == [greedy]
        assert quality(greedy) <= quality(best)
        worse += greedy != best
    assert worse > 0


@pytest.mark.parametrize("n_best", [7, 100])
def test_equals_come_in_the_order_of_a_wide_beam(n_best):
    ties = 0
    for seed in range(20):
        model, alpha = random_model(seed, whole_numbers=True), PENALTIES[seed % 5]
        found = model.exhaust(n_best, length_penalty=alpha)
        assert found == model.beam(n_best=n_best, length_penalty=alpha)
        assert found == model.exhaust(n_best, length_penalty=alpha, rows_per_step=5)
        ties += n_best - len({h.score for h in found})
    assert ties > 5


def beam(table, beam_size: int, max_len: int, n_best: int) -> list[Hypothesis]:
    return beam_search(
        script(table), Prefixes([()]), bos_id=BOS, eos_id=EOS, max_lens=[max_len],
        beam_size=beam_size, length_penalty=0.0, n_best=n_best,
    )[0]  # fmt: skip


def test_of_equals_the_shorter_comes_first():
    table = {
        (): {EOS: 0.25, A: 0.25, B: 0.5},
        (B,): {A: 1.0},
        (B, A): {EOS: 0.5, A: 0.5},
    }
    found = exhaust(table, n_best=9)
    assert [h.ids for h in found] == [[], [A], [B, A], [B, A, A]]
    assert len({h.score for h in found}) == 1
    assert found == beam(table, 9, 10, 9)


def test_where_rounding_makes_sums_equal_the_more_probable_token_comes_first():
    # 1e-6 is lost beside ln 1e-300 = -691
    table = {(): {EOS: 1.0, A: 1e-300}, (A,): {A: 0.4999995, B: 0.5000005}}
    found = exhaust(table, max_len=2, n_best=9)
    assert [h.ids for h in found] == [[], [A, B], [A, A]]
    assert found[1].log_prob == found[2].log_prob
    assert found[1].token_log_probs > found[2].token_log_probs
    assert found == beam(table, 9, 2, 9)


@pytest.mark.parametrize("seed", range(12))
def test_a_wide_beam_finds_the_best_of_all_in_a_real_model(seed):
    pad, bos, eos, vocab_size, max_len, choices = 0, 1, 2, 7, 4, 4
    torch.manual_seed(seed)
    shape = Seq2SeqSection(
        d_model=6,
        d_ff=5,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=2,
        dropout=0.0,
        max_len=11,
    )
    model = (
        Seq2SeqTransformer(shape, vocab_size, vocab_size, joint=True).double().eval()
    )

    def step(ids: torch.Tensor, cache):
        states, cache = model.decode(ids[:, None], cache)
        return model.output(states[:, -1]), cache

    settings = {
        "bos_id": bos,
        "eos_id": eos,
        "banned_ids": (pad, bos),
        "length_penalty": 0.6,
        "n_best": 5,
    }
    with torch.inference_mode():
        cache = TorchCache(model.prefill(torch.randint(3, vocab_size, (1, 5))), "cpu")
        found = exhaustive_search(
            numpy_step(step), cache, max_len=max_len, rows_per_step=17, **settings
        )
        wide = choices ** (max_len - 1) * (choices + 1)
        beam = beam_search(
            numpy_step(step), cache, max_lens=[max_len], beam_size=wide, **settings
        )[0]
    assert [(h.ids, h.finished) for h in found] == [(h.ids, h.finished) for h in beam]
    assert [h.score for h in found] == pytest.approx([h.score for h in beam], rel=1e-6)
    for h in found:
        assert h.log_prob == pytest.approx(sum(h.token_log_probs), rel=1e-6)
