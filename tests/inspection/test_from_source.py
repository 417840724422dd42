"""What the source wrote of tokens that repeat, or that no source word supports, by hand."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from weft.decoding.decoder import Hypothesis
from weft.inspection.diagnosis.from_source import (
    MOST_TEXTS,
    share_of_repeats,
    share_of_unsupported,
)
from weft.inspection.probe import Probe
from weft.predict.alignment import Floats
from weft.predict.prediction import Prediction, repeated, repeats

Found = list[tuple[Hypothesis, Floats]] | None


class Spoken:
    """Stands for a probe, its task and its translator: what was written, with its shares."""

    def __init__(self, found: Found, repetition: Sequence[bool] = (True,)) -> None:
        self.found = found
        self.asked: list[str] = []
        self.text = self
        self.task = self
        self.src = [f"text {number}" for number in range(len(repetition))]
        self.predictions = [
            Prediction("", None, 1, [], [], repetition=is_so) for is_so in repetition
        ]

    def predictor(self) -> "Spoken":
        return self

    def source_shares(self, texts: Sequence[str]) -> Found:
        self.asked += texts
        return self.found


def as_probe(spoken: Spoken) -> Probe:
    return cast("Probe", spoken)


def hypothesis(*ids: int) -> Hypothesis:
    return Hypothesis(list(ids), -1.0, -1.0, [-1.0], True)


def test_the_places_that_say_again_what_stands_before_them() -> None:
    assert repeated([5, 6, 7, 8]) == set()
    assert repeated([5, *[9] * 7, 8]) == {2, 3, 4, 5, 6, 7}
    twos = [4, *[1, 2] * 4, 3]
    assert repeats(twos)
    assert repeated(twos) == {3, 4, 5, 6, 7, 8}
    assert repeated([1, 2] * 3) == set()
    assert not repeats([1, 2] * 3)


def test_repeats_are_compared_with_the_other_tokens() -> None:
    """Six of eight repeat and have half a nat, the others two; the end has no say."""
    shares = np.full((9, 3), 0.25, np.float32)
    shares[:, 2] = 0
    shares[:2] = [1, 1.5, -0.5]
    shares[8] = 100
    spoken = Spoken([(hypothesis(5, *[9] * 7), shares)], [False, True, True])
    said = share_of_repeats(as_probe(spoken))
    assert said == (
        "the source wrote 0.50 nats of a token that repeats, 2.00 of another"
    )
    assert spoken.asked == ["text 1", "text 2"]


def test_tokens_without_support_are_compared_with_the_others() -> None:
    """What the source's end wrote is of the source, but supports nothing."""
    shares = np.array([[0.2, 0.1, 3], [2, -1, 0], [0, 0.24, 0], [1, 1, 1]], np.float32)
    spoken = Spoken([(hypothesis(5, 6, 7), shares)], [True] * (MOST_TEXTS + 9))
    said = share_of_unsupported(as_probe(spoken))
    assert said == (
        "no source word supports 67% of the tokens: the source wrote 1.77 nats of these, 1.00 of the others"
    )
    assert len(spoken.asked) == MOST_TEXTS


@pytest.mark.parametrize("found", [None, [], [(hypothesis(5), np.ones((2, 2)))]])
def test_nothing_is_said_where_there_is_nothing_to_compare(found: Found) -> None:
    assert share_of_unsupported(as_probe(Spoken(found))) == ""
    assert share_of_repeats(as_probe(Spoken(found))) == ""
