"""Filters worked out by hand, draws against their probabilities, and texts whose growth can be read
off.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st

from pushed import of_which
from weft.decoding.decoder import Floats, Indices
from weft.decoding.draws import Draws
from weft.decoding.reference import greedy_search
from weft.decoding.sampling import (
    Chooser,
    Place,
    Sampling,
    choose_together,
    draw_ids,
    filtered_log_probs,
    log_softmax,
    sample_tokens,
)
from weft.errors import DivergedError, UsageError

BOS, EOS = 0, 1


def filtered(
    probs: list[float], history: list[int] | None = None, banned_ids=(), **settings
) -> list[float]:
    """Probabilities in, probabilities that are drawn from out."""
    ids = None if history is None else np.array([history])
    with np.errstate(divide="ignore"):
        logits = np.log(np.array([probs], np.float32))
    found = filtered_log_probs(logits, Sampling(**settings), ids, banned_ids)
    return np.exp(found)[0].tolist()


def random_rows(scale: float, shape: tuple[int, int], seed: int):
    rows = np.random.default_rng(seed).standard_normal(shape)
    return (scale * rows).astype(np.float32)


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
    logits = random_rows(1.0, (3, 7), 1)
    expected = torch.from_numpy(logits).double().log_softmax(-1).numpy()
    found = filtered_log_probs(logits, Sampling())
    np.testing.assert_allclose(found, expected, rtol=1e-12)


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
    logits = random_rows(9.0, (5, 7), 2)
    history = np.arange(5)[:, None]
    plain = filtered_log_probs(logits, Sampling(), history)
    found = filtered_log_probs(logits, Sampling(**settings), history)
    assert np.array_equal(found, plain)


def test_every_row_is_filtered_by_itself():
    logits = random_rows(1.0, (5, 7), 3)
    history = np.array([[0, 1], [2, 2], [6, 0], [5, 4], [3, 3]])
    settings = Sampling(0.7, top_k=5, top_p=0.9, min_p=0.05, repetition_penalty=1.3)
    together = filtered_log_probs(logits, settings, history)
    for i in range(5):
        alone = filtered_log_probs(logits[i : i + 1], settings, history[i : i + 1])
        assert np.array_equal(alone, together[i : i + 1])


@pytest.mark.parametrize("seed", range(20))
def test_a_filter_leaves_the_most_probable_in_their_proportions(seed):
    logits = random_rows(2.0, (3, 11), seed)
    settings = Sampling(
        0.5 + seed / 10, top_k=1 + seed % 9, top_p=0.3 + seed / 40, min_p=seed / 100
    )
    plain = filtered_log_probs(logits, Sampling(settings.temperature))
    found = filtered_log_probs(logits, settings)
    np.testing.assert_allclose(np.exp(found).sum(-1), 1.0)
    for before, after in zip(plain, found, strict=True):
        kept = np.isfinite(after)
        assert 1 <= kept.sum() <= settings.top_k
        assert before[kept].min() >= before[~kept].max()
        np.testing.assert_allclose(
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
    logits = [[3.0, -1.0, 0.0, 2.0, -math.inf], [3.0, -1.0, 0.0, 2.0, 1.0]]
    history = np.array([[0, 1, 1, 4], [2, 3, 3, 3]])
    expected = [[2.0, -1.5, 0.0, 2.0, -math.inf], [3.0, -1.0, 0.0, 4 / 3, 1.0]]
    settings = Sampling(repetition_penalty=1.5)
    found = filtered_log_probs(np.array(logits, np.float32), settings, history)
    np.testing.assert_allclose(found, log_softmax(np.array(expected)), atol=1e-7)


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
    logits = np.zeros((4, 3), np.float32)
    logits[0, 1], logits[1, 2], logits[2] = math.nan, math.inf, -math.inf
    found = filtered_log_probs(logits, Sampling(**settings))
    assert np.isnan(found).all(-1).tolist() == [True, True, True, False]


def test_the_given_logits_stay_as_they_were():
    logits = np.arange(5.0)[None]
    settings = Sampling(0.5, 2, 0.5, 0.5, 2.0)
    filtered_log_probs(logits, settings, np.array([[1]]), [4])
    assert logits.tolist() == [[0, 1, 2, 3, 4]]


# Draws
# --------------------------------------------------------------------------------------


def test_a_number_falls_into_the_share_of_its_id():
    with np.errstate(divide="ignore"):
        log_probs = np.log([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    numbers = np.array([0.0, 0.24, 0.26, 0.74, 0.76, 1 - 2**-53])
    rows = np.tile(log_probs, (6, 1))
    assert draw_ids(rows, numbers).tolist() == [1, 1, 3, 3, 4, 4]


@pytest.mark.parametrize("seed", range(5))
def test_no_number_draws_an_impossible_id(seed):
    logits = random_rows(5.0, (501, 1009), seed)
    log_probs = filtered_log_probs(logits, Sampling(top_p=0.9))
    for number in (0.0, 2**-60, 0.5, 1 - 2**-53):
        drawn = draw_ids(log_probs, np.full(501, number))
        assert np.isfinite(log_probs[np.arange(501), drawn]).all()


def test_a_number_is_the_hash_of_what_it_belongs_to():
    """Computed with another program: `printf '5 2 7 30 400' | sha256sum`."""
    number = Draws(5, [30, 400], sample=2).at(7)
    digest = "165cb60f1afbe724"
    assert number == int(digest, 16) / 2**64 // 2**-53 * 2**-53
    others = [
        Draws(6, [30, 400], sample=2).at(7),
        Draws(5, [30, 401], sample=2).at(7),
        Draws(5, [304, 0], sample=2).at(7),
        Draws(5, [30, 400], sample=1).at(7),
        Draws(5, [30, 400], sample=2).at(8),
    ]
    assert len({number, *others}) == 6


def test_numbers_are_spread_evenly():
    numbers = [Draws(seed, [3]).at(place) for seed in range(200) for place in range(50)]
    counts, _ = np.histogram(numbers, bins=20, range=(0.0, 1.0))
    # 19 degrees of freedom: one in a thousand
    assert ((counts - 500) ** 2 / 500).sum() < 43.8
    assert 0 <= min(numbers) <= max(numbers) < 1


# Texts
# --------------------------------------------------------------------------------------


@dataclass
class Texts:
    """A cache that is the ids fed so far, of one text or of several rows."""

    rows: list[list[int]]
    fed: list[int] = field(default_factory=list)

    def select(self, rows: Indices) -> "Texts":
        return Texts([self.rows[i] for i in rows.tolist()], self.fed)


def steps_of(logits_after: Callable[[list[int]], list[float]]):
    """Steps whose logits are a function of all of a text's ids."""

    def steps(ids: Sequence[int], cache: Texts):
        (row,) = cache.rows
        cache.fed.append(len(ids))
        grown = [[*row, *ids[: i + 1]] for i in range(len(ids))]
        logits = np.array([logits_after(one) for one in grown], np.float32)
        return logits, Texts([[*row, *ids]], cache.fed)

    return steps


def random_logits(row: list[int]) -> list[float]:
    """Of seven ids, another distribution after each history."""
    seed = sum((place + 1) * 31**i for i, place in enumerate(row)) % 2**31
    return (2 * torch.randn(7, generator=torch.Generator().manual_seed(seed))).tolist()


def sample(
    logits_after,
    prompt: list[int],
    *,
    limit=20,
    seed=0,
    cache=None,
    settings=None,
    banned_ids=(),
) -> list[tuple[int, float]]:
    """Return what a prompt becomes: ids and their log-probabilities."""
    choose = Chooser(settings or Sampling(), Draws(seed, prompt), banned_ids)
    stream = sample_tokens(
        steps_of(logits_after),
        Texts([prompt[:-1]]) if cache is None else cache,
        choose,
        text=prompt,
        max_new_tokens=limit,
        eos_id=EOS,
    )
    return list(stream)


def ids_of(tokens: list[tuple[int, float]]) -> list[int]:
    return [token for token, _ in tokens]


GREEDY = Sampling(temperature=0.0)


@pytest.mark.parametrize(
    "settings",
    of_which(
        [
            Sampling(),
            Sampling(temperature=0.6),
            Sampling(top_k=3),
            Sampling(top_p=0.8),
            Sampling(min_p=0.3),
        ],
        Sampling(temperature=0.6),
        Sampling(top_p=0.8),
    ),
)
def test_draws_have_the_frequencies_of_their_probabilities(settings):
    draws = 8000
    logits = [1.0, -math.inf, 0.0, 2.0, -1.0, 1.5, 0.5]
    tokens = [
        token
        for seed in range(40)
        for token in ids_of(
            sample(lambda row: logits, [BOS], limit=200, seed=seed, settings=settings)
        )
    ]
    counts = np.bincount(tokens, minlength=7)
    assert counts.sum() == draws
    row = np.array([logits], np.float32)
    probs = np.exp(filtered_log_probs(row, settings))[0]
    deviations = np.sqrt(draws * probs * (1 - probs))
    assert (abs(counts - draws * probs) <= 4 * deviations).all()
    assert (counts[probs == 0] == 0).all()


def test_draws_one_after_another_are_independent():
    def even(row: list[int]) -> list[float]:
        return [0.0, -math.inf, 0.0, 0.0]

    ids = np.array(
        [ids_of(sample(even, [BOS], limit=181, seed=seed)) for seed in range(50)]
    )
    for first, second in ((ids[:, :-1], ids[:, 1:]), (ids[:-1], ids[1:])):
        pairs = np.bincount((first * 4 + second).ravel(), minlength=16)
        pairs = pairs[pairs > 0]
        expected = first.size / 9
        assert len(pairs) == 9
        # 8 degrees of freedom: one in a thousand
        assert ((pairs - expected) ** 2 / expected).sum() < 27


def test_the_same_seed_draws_the_same_and_another_seed_something_else():
    prompt = [BOS, 2, 3]
    first, again, other = (
        sample(random_logits, prompt, seed=seed, banned_ids=[EOS]) for seed in (5, 5, 6)
    )
    assert first == again
    assert ids_of(first) != ids_of(other)


def test_another_prompt_has_other_numbers():
    def even(row: list[int]) -> list[float]:
        return [0.0, -math.inf, *[0.0] * 9]

    assert ids_of(sample(even, [BOS, 2])) != ids_of(sample(even, [BOS, 3]))


def test_temperature_0_is_greedy_search():
    def step(ids: Indices, cache: Texts) -> tuple[Floats, Texts]:
        rows = [[*row, i] for row, i in zip(cache.rows, ids.tolist(), strict=True)]
        return np.float32([random_logits(row) for row in rows]), Texts(rows)

    (best,) = greedy_search(
        step,
        Texts([[]]),
        bos_id=BOS,
        eos_id=EOS,
        max_lens=[9],
    )
    tokens = sample(random_logits, [BOS], limit=9, settings=GREEDY)
    assert ids_of(tokens) == best.ids + [EOS] * best.finished
    log_probs = [log_prob for _, log_prob in tokens]
    assert log_probs == pytest.approx(best.token_log_probs, abs=1e-6)


def countdown(row: list[int]) -> list[float]:
    """2 until the row is as long as its first id says, then eos; and a 3 of a third of the
    probability.
    """
    newest = EOS if len(row) >= row[0] else 2
    return [
        math.log(0.75) if i == newest else math.log(0.25) if i == 3 else -math.inf
        for i in range(5)
    ]


def test_a_text_ends_with_eos_or_at_the_limit():
    tokens = sample(countdown, [4], settings=GREEDY)
    assert ids_of(tokens) == [2, 2, 2, EOS]
    assert sum(log_prob for _, log_prob in tokens) == pytest.approx(4 * math.log(0.75))
    assert ids_of(sample(countdown, [9], limit=3, settings=GREEDY)) == [2, 2, 2]
    assert sample(countdown, [9], limit=0) == []


def test_the_log_probabilities_are_the_models_before_any_filter():
    settings = Sampling(temperature=3.0, top_k=2, repetition_penalty=2.0)
    tokens = sample(
        lambda row: countdown([99, *row]),
        [4, 2],
        limit=12,
        settings=settings,
        banned_ids=[2],
    )
    assert {token for token, _ in tokens} == {3}
    log_probs = [log_prob for _, log_prob in tokens]
    assert log_probs == pytest.approx([math.log(0.25)] * 12)


def test_the_prompt_but_its_last_id_is_known_and_not_fed_again():
    seen = []

    def after(row: list[int]) -> list[float]:
        seen.append(list(row))
        return [-math.inf, -math.inf, 0.0]

    sample(after, [BOS, 5, 6], limit=3)
    assert seen == [[BOS, 5, 6], [BOS, 5, 6, 2], [BOS, 5, 6, 2, 2]]


@pytest.mark.parametrize(
    ("start", "expected"), [(0, [2, 3, 4]), (2, [0, 3, 4]), (3, [0, 2, 4])]
)
def test_the_penalty_counts_the_prompt_and_what_was_drawn(start, expected):
    settings = Sampling(temperature=0.0, repetition_penalty=100.0)
    tokens = sample(
        lambda row: [5.0, -9.0, 4.0, 3.0, 2.0], [start], limit=3, settings=settings
    )
    assert ids_of(tokens) == expected


def test_what_the_cache_does_not_know_is_not_penalised_and_places_are_counted_on():
    draws = Draws(3, [BOS])
    choose = Chooser(Sampling(repetition_penalty=1e9), draws)
    stream = sample_tokens(
        steps_of(lambda row: [9.0, -math.inf, 9.0]),
        Texts([[]]),
        choose,
        text=[BOS, 2],
        first=1,
        place=1,
        max_new_tokens=1,
        eos_id=EOS,
    )
    assert next(stream) == (BOS, pytest.approx(math.log(0.5)))
    free = Chooser(Sampling(), draws)
    logits = np.zeros(1000, np.float32)
    assert free(logits, Place([], 0, 1))[0] == int(draws.at(1) * 1000)


def test_tokens_come_one_by_one_as_they_are_asked_for():
    cache = Texts([[]])
    choose = Chooser(GREEDY, Draws(0, [30]))
    stream = sample_tokens(
        steps_of(countdown), cache, choose, text=[30], max_new_tokens=10, eos_id=EOS
    )
    assert cache.fed == []
    for step in range(1, 5):
        next(stream)
        assert cache.fed == [1] * step


def test_impossible_and_banned_ids_are_never_drawn():
    tokens = sample(
        lambda row: [0.0, 0.0, -math.inf, 0.0, 9.0],
        [BOS],
        limit=500,
        banned_ids=[EOS, 4],
    )
    assert {token for token, _ in tokens} == {0, 3}


@pytest.mark.parametrize(
    "settings", [Sampling(), GREEDY, Sampling(top_k=1, top_p=0.5)], ids=str
)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_no_numbers_are_an_error(settings, value):
    def after(row: list[int]) -> list[float]:
        return [value] * 3 if len(row) == 2 else [0.0, -math.inf, 0.0]

    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(after, [2], settings=settings)


def test_a_banned_id_that_is_no_number_is_an_error_too():
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(lambda row: [0.0, 0.0, math.nan], [BOS], banned_ids=[2])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_everything_banned_is_an_error(temperature):
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(
            lambda row: [0.0, 0.0, -math.inf],
            [BOS],
            settings=Sampling(temperature),
            banned_ids=[0, 1],
        )


# Several texts, each with its own settings
# --------------------------------------------------------------------------------------


BIASES = st.dictionaries(
    st.integers(0, 29), st.sampled_from([-100.0, -1.5, 3.0, 100.0]), max_size=4
)
MIXED = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.0, 0.3, 1.0, 4.0]),
        "top_k": st.sampled_from([None, 1, 4, 30, 99]),
        "top_p": st.sampled_from([None, 0.2, 0.9]),
        "min_p": st.sampled_from([None, 0.1]),
        "repetition_penalty": st.sampled_from([1.0, 1.3]),
        "logit_bias": BIASES.map(lambda biases: tuple(sorted(biases.items()))),
        "presence_penalty": st.sampled_from([0.0, 1.5, -2.0]),
        "frequency_penalty": st.sampled_from([0.0, 0.7]),
    }
)


@tried(max_examples=30)
@given(st.data())
def test_a_row_chooses_together_what_it_chooses_alone(data: st.DataObject) -> None:
    rows = data.draw(st.lists(MIXED, min_size=1, max_size=6))
    few = st.integers(0, 3)
    rng = np.random.default_rng(data.draw(few))
    logits = (4 * rng.standard_normal((len(rows), 30))).astype(np.float32)
    logits[:, data.draw(few)] = data.draw(st.sampled_from([0.0, -math.inf, 7.0]))
    if data.draw(st.booleans()):
        logits[data.draw(st.integers(0, len(rows) - 1)), 5] = math.nan
    choosers = []
    places = []
    for number, values in enumerate(rows):
        text = rng.integers(0, 30, 9).tolist()
        choosers.append(Chooser(Sampling(**values), Draws(number, text), (0, 2)))
        places.append(Place(text, int(rng.integers(9)), int(rng.integers(9))))
    together = choose_together(choosers, logits, places)
    every = zip(together, choosers, logits, places, strict=True)
    for found, choose, row, place in every:
        if np.isnan(row).any():
            assert isinstance(found, DivergedError)
            with pytest.raises(DivergedError):
                choose(row, place)
        else:
            assert found == choose(row, place)


def test_presence_and_frequency_count_what_was_chosen_and_not_the_prompt() -> None:
    logits = np.array([5.0, 4.9, 4.5, 0.0], np.float32)

    def chosen(text: list[int], number: int, **penalties: float) -> int:
        settings = Sampling(temperature=0.0, **penalties)
        place = Place(text, len(text) - 1, number)
        return Chooser(settings, Draws(1, text))(logits, place).token

    # out of sight is no matter
    text = [0, 0, 1, 0, 2]
    assert chosen(text, 0, frequency_penalty=2.0) == 0
    assert chosen(text, 2, frequency_penalty=0.05) == 0
    assert chosen(text, 2, frequency_penalty=0.2) == 1
    assert chosen(text, 4, frequency_penalty=0.2) == 1
    assert chosen(text, 4, frequency_penalty=0.3) == 1
    assert chosen(text, 5, presence_penalty=0.3) == 0
    assert chosen(text, 2, presence_penalty=0.3) == 1
    assert chosen([3, 1, 0], 2, frequency_penalty=0.6) == 2
    assert chosen([0, 0, 1], 3, presence_penalty=0.45) == 0
    assert chosen([0, 0, 1], 3, frequency_penalty=0.45) == 2


def test_a_bias_is_added_and_a_banned_id_stays_banned() -> None:
    logits = np.array([[5.0, 4.0, 3.0]], np.float32)
    choose = Sampling(logit_bias=((0, -3.0), (2, 1.5)))
    found = np.exp(filtered_log_probs(logits, choose))[0]
    expected = np.exp([2.0, 4.0, 4.5])
    assert found == pytest.approx(expected / expected.sum())
    pressed = Sampling(temperature=0.0, logit_bias=((1, 100.0),))
    best = filtered_log_probs(logits, pressed, banned_ids=[1])
    assert best[0].argmax() == 0


@pytest.mark.parametrize("name", ["presence_penalty", "frequency_penalty"])
def test_a_penalty_is_finite(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} = inf: it must be finite"):
        Sampling(**{name: math.inf})
