"""Filters worked out by hand, draws against their probabilities, and texts whose growth can be read
off.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from weft.decoding.reference import greedy_search
from weft.decoding.sampling import (
    SampledToken,
    Sampling,
    draw_ids,
    filtered_log_probs,
    sample_tokens,
)
from weft.errors import DivergedError, UsageError

BOS, EOS = 0, 1


def filtered(
    probs: list[float], history: list[int] | None = None, banned_ids=(), **settings
) -> list[float]:
    """Probabilities in, probabilities that are drawn from out."""
    ids = None if history is None else torch.tensor([history]).long()
    found = filtered_log_probs(
        torch.tensor([probs]).log(), Sampling(**settings), ids, banned_ids
    )
    return found.exp()[0].tolist()


def close(*expected: float):
    return pytest.approx(expected, abs=1e-6)


# Settings
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("temperature", [-0.1, math.inf, math.nan], "a finite number and at least 0"),
        ("top_k", [0, -3], "at least 1"),
        ("top_p", [0.0, -0.5, 1.1, math.nan], "above 0 and at most 1"),
        ("min_p", [-0.1, 1.0, math.nan], "at least 0 and below 1"),
        (
            "repetition_penalty",
            [0.0, -1.0, math.inf, math.nan],
            "a finite number above 0",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name, values, rule):
    for value in values:
        with pytest.raises(UsageError) as error:
            Sampling(**{name: value})
        assert str(error.value) == f"{name} = {value}: it must be {rule}"


def test_the_ends_of_the_ranges_are_allowed():
    Sampling(temperature=0.0, top_k=1, top_p=1.0, min_p=0.0, repetition_penalty=0.5)


# Filters
# --------------------------------------------------------------------------------------


def test_without_settings_the_distribution_is_the_models():
    logits = torch.randn(3, 7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        filtered_log_probs(logits, Sampling()), logits.double().log_softmax(-1)
    )


def test_temperature_divides_the_logits():
    # squares, normalised
    assert filtered([0.5, 0.25, 0.25], temperature=0.5) == close(4 / 6, 1 / 6, 1 / 6)
    assert filtered([0.8, 0.2], temperature=2.0) == close(2 / 3, 1 / 3)  # roots


def test_top_k_keeps_the_k_most_probable():
    assert filtered([0.1, 0.4, 0.2, 0.3], top_k=2) == close(0, 4 / 7, 0, 3 / 7)
    assert filtered([0.1, 0.4, 0.2, 0.3], top_k=1) == close(0, 1, 0, 0)


def test_of_equals_top_k_keeps_the_lower_ids():
    assert filtered([0.2, 0.4, 0.2, 0.2], top_k=3) == close(1 / 4, 2 / 4, 1 / 4, 0)
    assert filtered([0.25] * 4, top_k=2) == close(1 / 2, 1 / 2, 0, 0)


def test_top_p_keeps_the_fewest_whose_mass_reaches_p():
    # 0.4 < 0.65 <= 0.7
    assert filtered([0.1, 0.4, 0.2, 0.3], top_p=0.65) == close(0, 4 / 7, 0, 3 / 7)
    assert filtered([0.1, 0.4, 0.2, 0.3], top_p=0.75) == close(0, 4 / 9, 2 / 9, 3 / 9)
    assert filtered([0.1, 0.4, 0.2, 0.3], top_p=0.95) == close(0.1, 0.4, 0.2, 0.3)


def test_top_p_keeps_the_best_however_small_p_is():
    assert filtered([0.1, 0.4, 0.2, 0.3], top_p=1e-9) == close(0, 1, 0, 0)
    assert filtered([0.25] * 4, top_p=1e-9) == close(1, 0, 0, 0)


def test_of_equals_top_p_keeps_the_lower_ids():
    kept = [p > 0 for p in filtered([1 / 1009] * 1009, top_p=500.5 / 1009)]
    assert kept == [True] * 501 + [False] * 508


def test_min_p_keeps_what_is_nearly_as_probable_as_the_best():
    # 0.24 and above
    assert filtered([0.1, 0.4, 0.2, 0.3], min_p=0.6) == close(0, 4 / 7, 0, 3 / 7)
    assert filtered([0.1, 0.4, 0.2, 0.3], min_p=0.45) == close(0, 4 / 9, 2 / 9, 3 / 9)
    assert filtered([0.1, 0.4, 0.2, 0.3], min_p=0.99) == close(0, 1, 0, 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 7},
        {"top_k": 99},
        {"top_p": 1.0},
        {"min_p": 0.0},
        {"repetition_penalty": 1.0},
    ],
)
def test_filters_at_their_limits_do_nothing(settings):
    logits = 9 * torch.randn(5, 7, generator=torch.Generator().manual_seed(2))
    history = torch.arange(5)[:, None]
    plain = filtered_log_probs(logits, Sampling(), history)
    assert torch.equal(filtered_log_probs(logits, Sampling(**settings), history), plain)


def test_every_row_is_filtered_by_itself():
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(3))
    history = torch.tensor([[0, 1], [2, 2], [6, 0], [5, 4], [3, 3]])
    settings = Sampling(0.7, top_k=5, top_p=0.9, min_p=0.05, repetition_penalty=1.3)
    together = filtered_log_probs(logits, settings, history)
    for i in range(5):
        alone = filtered_log_probs(logits[i : i + 1], settings, history[i : i + 1])
        torch.testing.assert_close(alone, together[i : i + 1])


@pytest.mark.parametrize("seed", range(20))
def test_a_filter_leaves_the_most_probable_in_their_proportions(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(3, 11, generator=generator)
    settings = Sampling(
        0.5 + seed / 10, top_k=1 + seed % 9, top_p=0.3 + seed / 40, min_p=seed / 100
    )
    plain = filtered_log_probs(logits, Sampling(settings.temperature))
    found = filtered_log_probs(logits, settings)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(3).double())
    for before, after in zip(plain, found, strict=True):
        kept = after.isfinite()
        assert 1 <= kept.sum() <= settings.top_k
        assert before[kept].min() >= before[~kept].max()
        torch.testing.assert_close(
            after[kept] - after[kept].max(), before[kept] - before[kept].max()
        )


# Their order
# --------------------------------------------------------------------------------------


def test_top_p_is_of_what_top_k_has_left():
    # Of two, the first has 4/7 >= 0.5; of all four it would have 0.4 < 0.5, and both would stay.
    assert filtered([0.4, 0.3, 0.2, 0.1], top_k=2, top_p=0.5) == close(1, 0, 0, 0)


def test_min_p_comes_after_top_p():
    # Of all four, 0.4 < 0.5 <= 0.7 leaves two; had min_p come first, 4/7 would have been enough.
    assert filtered([0.4, 0.3, 0.2, 0.1], top_p=0.5, min_p=0.6) == close(
        4 / 7, 3 / 7, 0, 0
    )


def test_the_temperature_comes_before_top_p():
    # At 0.5 the squares 16, 9, 4, 1 of 30: 16/30 >= 0.5, where 0.4 would not have been enough.
    assert filtered([0.4, 0.3, 0.2, 0.1], temperature=0.5, top_p=0.5) == close(
        1, 0, 0, 0
    )


def test_the_penalty_comes_before_top_k():
    # The logits are ln p < 0: the first, doubled, is ln 0.16 and falls behind 0.3 and 0.2.
    assert filtered(
        [0.4, 0.3, 0.2, 0.1], history=[0], repetition_penalty=2.0, top_k=2
    ) == close(0, 3 / 5, 2 / 5, 0)


def test_banned_ids_are_out_before_everything():
    assert filtered([0.4, 0.3, 0.2, 0.1], banned_ids=[0], top_k=1) == close(0, 1, 0, 0)
    # Of 0.3, 0.2, 0.1 the first is half: it reaches 0.45.
    assert filtered([0.4, 0.3, 0.2, 0.1], banned_ids=[0], top_p=0.45) == close(
        0, 1, 0, 0
    )
    assert filtered([0.4, 0.3, 0.2, 0.1], banned_ids=[0], temperature=0.0) == close(
        0, 1, 0, 0
    )


# Penalty, greedy, extremes
# --------------------------------------------------------------------------------------


def test_the_penalty_divides_positive_and_multiplies_negative_logits_once():
    logits = torch.tensor(
        [[3.0, -1.0, 0.0, 2.0, -math.inf], [3.0, -1.0, 0.0, 2.0, 1.0]]
    )
    history = torch.tensor([[0, 1, 1, 4], [2, 3, 3, 3]])
    expected = torch.tensor(
        [[2.0, -1.5, 0.0, 2.0, -math.inf], [3.0, -1.0, 0.0, 4 / 3, 1.0]]
    )
    found = filtered_log_probs(logits, Sampling(repetition_penalty=1.5), history)
    torch.testing.assert_close(found, expected.double().log_softmax(-1))


def test_temperature_0_is_the_most_probable_token_the_lower_id_among_equals():
    assert filtered([0.2, 0.4, 0.4], temperature=0.0) == [0, 1, 0]
    assert filtered(
        [0.4, 0.3, 0.3], history=[0], repetition_penalty=2.0, temperature=0.0
    ) == [0, 1, 0]


@pytest.mark.parametrize("temperature", [1e-9, 1e-300, 5e-324])
def test_a_temperature_next_to_0_is_nearly_greedy(temperature):
    assert filtered([0.2, 0.5, 0.3], temperature=temperature) == [0, 1, 0]


def test_impossible_tokens_stay_impossible():
    for settings in (
        {},
        {"temperature": 50.0},
        {"top_k": 3},
        {"top_p": 0.999},
        {"min_p": 1e-9},
    ):
        assert filtered([0.0, 0.5, 0.0, 0.5], **settings) == close(0, 0.5, 0, 0.5)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.0}, {"top_k": 1}, {"top_p": 0.5}, {"min_p": 0.5}]
)
def test_rows_without_numbers_become_nan(settings):
    logits = torch.zeros(4, 3)
    logits[0, 1], logits[1, 2], logits[2] = math.nan, math.inf, -math.inf
    found = filtered_log_probs(logits, Sampling(**settings))
    assert found.isnan().all(-1).tolist() == [True, True, True, False]


def test_the_given_logits_stay_as_they_were():
    logits = torch.arange(5.0).double()[None]
    filtered_log_probs(
        logits, Sampling(0.5, 2, 0.5, 0.5, 2.0), torch.tensor([[1]]), [4]
    )
    assert logits.tolist() == [[0, 1, 2, 3, 4]]


# Draws
# --------------------------------------------------------------------------------------


def test_a_number_falls_into_the_share_of_its_id():
    log_probs = torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0]).double().log()
    numbers = torch.tensor(
        [0.0, 0.24, 0.26, 0.74, 0.76, 1 - 2**-53], dtype=torch.float64
    )
    assert draw_ids(log_probs.expand(6, -1), numbers).tolist() == [1, 1, 3, 3, 4, 4]


@pytest.mark.parametrize("seed", range(5))
def test_no_number_draws_an_impossible_id(seed):
    logits = 5 * torch.randn(501, 1009, generator=torch.Generator().manual_seed(seed))
    log_probs = filtered_log_probs(logits, Sampling(top_p=0.9))
    for number in (0.0, 2**-60, 0.5, 1 - 2**-53):
        drawn = draw_ids(log_probs, torch.full((501,), number, dtype=torch.float64))
        assert log_probs.gather(1, drawn[:, None]).isfinite().all()


# Texts
# --------------------------------------------------------------------------------------


@dataclass
class Texts:
    """A cache that is the ids fed so far."""

    rows: list[list[int]]
    fed: list[int] = field(default_factory=list)

    def select(self, rows: Tensor) -> "Texts":
        return Texts([self.rows[i] for i in rows.tolist()], self.fed)


def model(logits_after: Callable[[list[int]], list[float]]):
    """A step whose logits are a function of all of a row's ids."""

    def step(ids: Tensor, cache: Texts) -> tuple[Tensor, Texts]:
        rows = [[*row, i] for row, i in zip(cache.rows, ids.tolist(), strict=True)]
        cache.fed.append(len(rows))
        return torch.tensor([logits_after(row) for row in rows]), Texts(rows, cache.fed)

    return step


def random_logits(row: list[int]) -> list[float]:
    """Of seven ids, another distribution after each history."""
    seed = sum((place + 1) * 31**i for i, place in enumerate(row)) % 2**31
    return (2 * torch.randn(7, generator=torch.Generator().manual_seed(seed))).tolist()


def sample(
    logits_after, prompts, *, limit=20, seeds=None, cache=None, settings=None, **more
) -> list[SampledToken]:
    generators = [
        torch.Generator().manual_seed(seed)
        for seed in (range(len(prompts)) if seeds is None else seeds)
    ]
    prompt = torch.tensor(prompts).long()
    cache = Texts([row[:-1] for row in prompts]) if cache is None else cache
    stream = sample_tokens(
        model(logits_after), cache, prompt=prompt, max_new_tokens=limit, eos_id=EOS,
        settings=settings or Sampling(), generators=generators, **more,
    )  # fmt: skip
    return list(stream)


def ids_of(tokens: list[SampledToken], row: int = 0) -> list[int]:
    """What a row became, up to its eos."""
    ids = [int(token.ids[row]) for token in tokens]
    return ids[: ids.index(EOS) + 1] if EOS in ids else ids


@pytest.mark.parametrize(
    "settings",
    [
        Sampling(),
        Sampling(temperature=0.6),
        Sampling(top_k=3),
        Sampling(top_p=0.8),
        Sampling(min_p=0.3),
    ],
)
def test_draws_have_the_frequencies_of_their_probabilities(settings):
    draws = 20_000
    logits = torch.tensor([1.0, -math.inf, 0.0, 2.0, -1.0, 1.5, 0.5])
    tokens = sample(
        lambda row: logits.tolist(),
        [[BOS]] * 100,
        limit=draws // 100,
        settings=settings,
    )
    counts = (
        torch.stack([token.ids for token in tokens]).flatten().bincount(minlength=7)
    )
    assert counts.sum() == draws
    probs = filtered_log_probs(logits[None], settings).exp()[0]
    deviations = (draws * probs * (1 - probs)).sqrt()
    assert ((counts - draws * probs).abs() <= 4 * deviations).all()
    assert (counts[probs == 0] == 0).all()


def test_draws_one_after_another_are_independent():
    tokens = sample(lambda row: [0.0, -math.inf, 0.0, 0.0], [[BOS]] * 50, limit=181)
    ids = torch.stack([token.ids for token in tokens])  # times rows
    for first, second in ((ids[:-1], ids[1:]), (ids[:, :-1], ids[:, 1:])):
        pairs = (first * 4 + second).flatten().bincount(minlength=16)
        pairs = pairs[pairs > 0]
        expected = first.numel() / 9
        assert len(pairs) == 9
        # 8 degrees of freedom: one in a thousand
        assert ((pairs - expected) ** 2 / expected).sum() < 27


def test_the_same_seed_draws_the_same_and_another_seed_something_else():
    prompts = [[BOS, 2, 3]] * 3
    tokens = sample(random_logits, prompts, seeds=[5, 5, 6], banned_ids=[EOS])
    assert ids_of(tokens, 0) == ids_of(tokens, 1) != ids_of(tokens, 2)
    again = sample(random_logits, prompts, seeds=[5, 5, 6], banned_ids=[EOS])
    assert [ids_of(again, row) for row in range(3)] == [
        ids_of(tokens, row) for row in range(3)
    ]


def test_a_row_becomes_the_same_whatever_stands_beside_it():
    prompts = [[BOS, 2, i % 7] for i in range(23)]
    together = sample(random_logits, prompts)
    lengths = {len(ids_of(together, row)) for row in range(23)}
    assert len(lengths) > 3
    for row in range(23):
        alone = sample(random_logits, prompts[row : row + 1], seeds=[row])
        assert ids_of(alone) == ids_of(together, row)
        own = torch.stack([token.log_probs[row] for token in together])[: len(alone)]
        assert torch.equal(own, torch.stack([token.log_probs[0] for token in alone]))


def test_temperature_0_is_greedy_search():
    cache = Texts([[] for _ in range(17)])

    def after(row: list[int]) -> list[float]:
        return random_logits([*row, 5])

    tokens = sample(
        after, [[BOS]] * 17, limit=9, settings=Sampling(temperature=0.0), cache=cache
    )
    limits = torch.full((17,), 9)
    for row, best in enumerate(
        greedy_search(
            model(after),
            Texts([[] for _ in range(17)]),
            bos_id=BOS,
            eos_id=EOS,
            max_lens=limits,
        )
    ):
        assert ids_of(tokens, row) == best.ids + [EOS] * best.finished
        log_probs = [float(token.log_probs[row]) for token in tokens]
        assert log_probs[: len(best.token_log_probs)] == best.token_log_probs


def test_temperature_0_needs_no_generator():
    (token,) = sample(
        lambda row: [0.0, 1.0, 2.0],
        [[BOS]],
        limit=1,
        seeds=[],
        settings=Sampling(temperature=0.0),
    )
    assert token.ids.tolist() == [2]


def countdown(row: list[int]) -> list[float]:
    """2 until the row is as long as its first id says, then eos; and a 3 of a third of the
    probability.
    """
    newest = EOS if len(row) >= row[0] else 2
    return [
        math.log(0.75) if i == newest else math.log(0.25) if i == 3 else -math.inf
        for i in range(5)
    ]


def test_a_row_that_draws_eos_is_done_and_leaves_the_others_alone():
    cache = Texts([[], [], []])
    tokens = sample(
        countdown, [[2], [4], [2]], cache=cache, settings=Sampling(temperature=0.0)
    )
    assert [token.ids.tolist() for token in tokens] == [
        [2, 2, 2],
        [EOS, 2, EOS],
        [EOS, 2, EOS],
        [EOS, EOS, EOS],
    ]
    assert [token.done.tolist() for token in tokens] == [
        [False, False, False], [True, False, True], [True, False, True], [True, True, True],
    ]  # fmt: skip
    assert cache.fed == [3, 3, 1, 1]
    sums = torch.stack([token.log_probs for token in tokens]).sum(0)
    assert sums.tolist() == pytest.approx([n * math.log(0.75) for n in (2, 4, 2)])


def test_at_the_limit_rows_are_left_undone():
    tokens = sample(countdown, [[2], [9]], limit=3, settings=Sampling(temperature=0.0))
    assert len(tokens) == 3
    assert tokens[-1].done.tolist() == [True, False]


def test_the_log_probabilities_are_the_models_before_any_filter():
    settings = Sampling(temperature=3.0, top_k=2, repetition_penalty=2.0)
    tokens = sample(
        lambda row: countdown([99, *row]),
        [[4, 2]] * 5,
        limit=12,
        settings=settings,
        banned_ids=[2],
    )
    assert {int(i) for token in tokens for i in token.ids} == {3}
    assert torch.stack(
        [token.log_probs for token in tokens]
    ).flatten().tolist() == pytest.approx([math.log(0.25)] * 60)


def test_the_prompt_but_its_last_id_is_known_and_not_fed_again():
    seen = []

    def after(row: list[int]) -> list[float]:
        seen.append(list(row))
        return [-math.inf, -math.inf, 0.0]

    sample(after, [[BOS, 5, 6]], limit=3)
    assert seen == [[BOS, 5, 6], [BOS, 5, 6, 2], [BOS, 5, 6, 2, 2]]


def test_the_penalty_counts_the_prompt_and_what_was_drawn():
    settings = Sampling(temperature=0.0, repetition_penalty=100.0)
    tokens = sample(
        lambda row: [5.0, -9.0, 4.0, 3.0, 2.0],
        [[0], [2], [3]],
        limit=3,
        settings=settings,
    )
    assert [ids_of(tokens, row) for row in range(3)] == [
        [2, 3, 4],
        [0, 3, 4],
        [0, 2, 4],
    ]


def test_tokens_come_one_by_one_as_they_are_asked_for():
    cache = Texts([[]])
    stream = sample_tokens(
        model(countdown), cache, prompt=torch.tensor([[30]]), max_new_tokens=10, eos_id=EOS,
        settings=Sampling(temperature=0.0),
    )  # fmt: skip
    assert cache.fed == []
    for step in range(1, 5):
        next(stream)
        assert cache.fed == [1] * step


def test_impossible_and_banned_ids_are_never_drawn():
    tokens = sample(
        lambda row: [0.0, 0.0, -math.inf, 0.0, 9.0],
        [[BOS]] * 20,
        limit=100,
        banned_ids=[EOS, 4],
    )
    assert {int(i) for token in tokens for i in token.ids} == {0, 3}


@pytest.mark.parametrize(
    "settings", [Sampling(), Sampling(temperature=0.0), Sampling(top_k=1, top_p=0.5)]
)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_no_numbers_are_an_error(settings, value):
    def after(row: list[int]) -> list[float]:
        return [value] * 3 if row[0] == 2 and len(row) == 2 else [0.0, -math.inf, 0.0]

    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(after, [[BOS], [2]], settings=settings)


def test_a_banned_id_that_is_no_number_is_an_error_too():
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(lambda row: [0.0, 0.0, math.nan], [[BOS]], banned_ids=[2])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_everything_banned_is_an_error(temperature):
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(
            lambda row: [0.0, 0.0, -math.inf],
            [[BOS]],
            settings=Sampling(temperature),
            banned_ids=[0, 1],
        )


def test_impossible_settings_are_refused_at_the_call():
    def call(prompt: Tensor, limit: int, generators: int) -> None:
        sample_tokens(
            model(countdown), Texts([]), prompt=prompt, max_new_tokens=limit, eos_id=EOS, settings=Sampling(),
            generators=[torch.Generator() for _ in range(generators)],
        )  # fmt: skip

    with pytest.raises(UsageError, match="max_new_tokens = 0: it must be at least 1"):
        call(torch.tensor([[BOS]]), 0, 1)
    with pytest.raises(UsageError, match="the prompt is empty"):
        call(torch.zeros(1, 0).long(), 5, 1)
    with pytest.raises(UsageError, match="1 generators for 2 rows"):
        call(torch.tensor([[BOS], [BOS]]), 5, 1)


def test_no_row_gives_no_token():
    stream = sample_tokens(
        model(countdown), Texts([]), prompt=torch.zeros(0, 1).long(), max_new_tokens=5, eos_id=EOS,
        settings=Sampling(),
    )  # fmt: skip
    assert list(stream) == []
