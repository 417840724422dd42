"""Whatever a draft proposes, the text is the one that is written without it; what it saves can be
counted.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from weft.decoding.draws import Draws
from weft.decoding.sampling import Chooser, Logits, Place, Sampling, sample_tokens
from weft.decoding.speculative import (
    Draft,
    PromptLookup,
    Tally,
    speculative_tokens,
)
from weft.errors import DivergedError

EOS, V = 1, 13
SETTINGS = [
    Sampling(temperature=0.0),
    Sampling(),
    Sampling(temperature=0.7, top_p=0.8),
    Sampling(temperature=1.5, top_k=6, min_p=0.02, repetition_penalty=1.4),
    Sampling(temperature=0.0, repetition_penalty=2.0),
]


@dataclass(frozen=True)
class Seen:
    """A cache: all ids that the model has been fed."""

    ids: tuple[int, ...]

    def until(self, length: int) -> "Seen":
        assert 0 <= length <= len(self.ids)
        return Seen(self.ids[:length])


class Model:
    """Random logits, the same after the same ids; eos where `ends` says. Counts its steps and
    positions.
    """

    def __init__(self, salt: int = 0, ends: float = -30.0) -> None:
        self.salt, self.ends, self.calls, self.longest = salt, ends, 0, 0

    def steps(self, ids: Sequence[int], cache: Seen) -> tuple[Logits, Seen]:
        self.calls += 1
        seen = (*cache.ids, *ids)
        self.longest = max(self.longest, len(seen))
        known = len(cache.ids)
        found = [self.logits(seen[: known + i + 1]) for i in range(len(ids))]
        return np.stack(found), Seen(seen)

    def logits(self, seen: tuple[int, ...]) -> Logits:
        # so that texts repeat
        rng = np.random.default_rng([self.salt, *seen[-3:]])
        logits = (2 * rng.standard_normal(V)).astype(np.float32)
        logits[EOS] = self.ends
        return logits


def chooser(settings: Sampling, seed: int) -> Chooser:
    return Chooser(settings, Draws(seed, []), (0, 2))


def whole(text: Sequence[int], limit: int) -> dict[str, Any]:
    return {
        "text": text,
        "first": 0,
        "place": 0,
        "max_new_tokens": limit,
        "eos_id": EOS,
    }


def plain(
    model: Model, text: Sequence[int], settings: Sampling, seed: int, limit: int
) -> list[tuple[int, float]]:
    cache = Seen(tuple(text[:-1]))
    choose = chooser(settings, seed)
    return list(sample_tokens(model.steps, cache, choose, **whole(text, limit)))


def drafted(
    model: Model,
    draft: Draft,
    choose: Chooser,
    tally: Tally,
    text: Sequence[int],
    limit: int,
) -> list[tuple[int, float]]:
    cache = Seen(tuple(text[:-1]))
    where = whole(text, limit)
    return list(speculative_tokens(model.steps, cache, draft, choose, tally, **where))


class Prophet:
    """Knows what will be written, and errs with a probability; goes on beyond the end."""

    def __init__(self, text: Sequence[int], truth: Sequence[int], errs: float) -> None:
        self.all, self.errs, self.draw = (
            [*text, *truth, *[5] * 20],
            errs,
            random.Random(3),
        )

    def propose(self, ids: Sequence[int], place: int, count: int) -> list[int]:
        true = self.all[len(ids) : len(ids) + count]
        return [
            (token + 1) % V if self.draw.random() < self.errs else token
            for token in true
        ]


class Silent:
    """Never has an idea."""

    def propose(self, ids: Sequence[int], place: int, count: int) -> list[int]:
        return []


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_writes_what_is_written_without_a_draft(
    settings: Sampling, subtests: pytest.Subtests
) -> None:
    errs = {"right": 0.0, "often right": 0.3, "seldom right": 0.8, "wrong": 1.0}
    for seed in range(4):
        model, text, limit = Model(ends=-2.0), [4, 7, seed], 40
        expected = plain(model, text, settings, seed, limit)
        truth = [token for token, _ in expected]
        for name in (*errs, "silent", "prompt"):
            choose, tally = chooser(settings, seed), Tally()
            draft: Draft = PromptLookup(3, 1) if name == "prompt" else Silent()
            if name in errs:
                draft = Prophet(text, truth, errs[name])
            with subtests.test(draft=name, seed=seed):
                found = drafted(model, draft, choose, tally, text, limit)
                assert found == expected
                assert 0 <= tally.accepted <= tally.proposed


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_what_is_foreseen_saves_steps(settings: Sampling) -> None:
    """30 tokens: 1 proposed and 2 written, 3 and 4, then 7 and 8 at a time."""
    text = [4, 7]
    truth = [token for token, _ in plain(Model(), text, settings, 9, 30)]
    for errs, steps, proposed, accepted in ((0.0, 5, 25, 25), (1.0, 30, 29, 0)):
        model, tally, choose = Model(), Tally(), chooser(settings, 9)
        found = drafted(model, Prophet(text, truth, errs), choose, tally, text, 30)
        assert [token for token, _ in found] == truth
        assert (model.calls, tally) == (steps, Tally(proposed, accepted))
        assert model.longest == 2 + 29  # the last token is never read


def test_nothing_is_written_after_the_end() -> None:
    model, text, settings = Model(ends=1.5), [4, 7], Sampling()
    for seed in range(10):
        truth = [token for token, _ in plain(model, text, settings, seed, 50)]
        found = drafted(
            model,
            Prophet(text, truth, 0.0),
            chooser(settings, seed),
            Tally(),
            text,
            50,
        )
        assert [token for token, _ in found] == truth
        assert truth.index(EOS) == len(truth) - 1


def test_a_place_has_its_number_whoever_asks_first() -> None:
    logits = np.zeros(100, np.float32)
    one, other = (chooser(Sampling(), 5) for _ in range(2))
    ahead = [one(logits, Place([], 0, place))[0] for place in (4, 0, 2, 4, 1, 3)]
    in_order = [other(logits, Place([], 0, place))[0] for place in range(5)]
    assert ahead == [in_order[i] for i in (4, 0, 2, 4, 1, 3)]
    assert len(set(in_order)) > 2


def test_what_is_no_number_is_told() -> None:
    class Broken(Model):
        def logits(self, seen: tuple[int, ...]) -> Logits:
            return np.full(V, math.nan, np.float32)

    with pytest.raises(DivergedError, match="no token has a finite probability"):
        drafted(Broken(), Silent(), chooser(Sampling(), 1), Tally(), [4], 5)


# Where proposals come from
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "count", "expected"),
    [
        ([3, 4, 5, 6, 9, 3, 4, 5], 3, [6, 9, 3]),
        ([3, 4, 5, 6, 9, 3, 4, 5], 1, [6]),
        ([3, 4, 5, 7, 4, 6, 3, 4], 2, [5, 7]),  # the longer run, not the later one
        ([3, 4, 5, 3, 4, 6, 3, 4], 1, [6]),  # of two as long, the later one
        ([9, 3, 4, 3, 4], 5, [3, 4, 3, 4, 3]),  # what reaches into the end is repeated
        ([7, 7, 7], 4, [7, 7, 7, 7]),
        ([3, 4, 5, 6], 4, []),
        ([3, 4, 5, 4], 2, []),  # one token is no run
        ([3], 2, []),
        # ids that are no characters, or two elsewhere
        ([0xD800, 0x10000, 8, 0xD800, 0x10000], 1, [8]),
    ],
    ids=str,
)
def test_what_followed_the_newest_tokens_before_is_proposed(
    ids: list[int], count: int, expected: list[int]
) -> None:
    assert PromptLookup().propose(ids, 0, count) == expected
    growing = PromptLookup()
    for end in range(1, len(ids)):
        growing.propose(ids[:end], 0, 3)
    assert growing.propose(ids, 0, count) == expected


def test_a_single_token_can_be_a_run() -> None:
    assert PromptLookup(3, 1).propose([3, 4, 5, 4], 0, 2) == [5, 4]
