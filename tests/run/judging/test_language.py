"""The verdict on a language model: beside guessing, counting tokens and counting pairs."""

import math

import pytest

from weft.run.judging.judgement import NOT_YET, USABLE, not_judged
from weft.run.judging.language import PAIRS, Yardsticks, judge, yardsticks

BESIDE = Yardsticks(guessing=6.0, tokens=4.0, pairs=3.0)


@pytest.mark.parametrize(
    ("loss", "verdict", "why"),
    [
        (
            4.2,
            NOT_YET,
            "worse than counting how often each token occurs: 4.20 against 4.00 nats a token",
        ),
        (
            4.0,
            NOT_YET,
            "no better than counting how often each token occurs: 4.00 against 4.00 nats a token",
        ),
        (
            3.99,
            NOT_YET,
            "worse than counting which token follows which: 3.99 against 3.00 nats a token",
        ),
        (
            3.0,
            NOT_YET,
            "no better than counting which token follows which: 3.00 against 3.00 nats a token",
        ),
        (2.99, USABLE, "it predicts better than pairs of tokens do"),
    ],
)
def test_the_rules(loss: float, verdict: str, why: str) -> None:
    found = judge(loss, BESIDE, "token", by_heart=False)
    assert found.verdict == verdict
    assert why in found.says[0]


def test_what_is_said_beside_it() -> None:
    letters = judge(3.5, BESIDE, "character", by_heart=False)
    assert (
        letters.says[0]
        == "worse than counting which character follows which: 3.50 against 3.00 nats a character"
    )
    found = judge(2.0, BESIDE, "token", by_heart=True).with_curve(
        "falls", ["more text"]
    )
    assert found.says[0].endswith("; the curve still falls: train it for longer")
    assert (
        "as one among 7 equally likely ones (2.00 nats); among 20 where pairs are counted, 55 where tokens are, 403"
        in found.says[1]
    )
    assert "by heart" in found.says[2]
    assert found.figures["tokens_loss"] == 4.0
    assert (found.still_improves, found.helps) == (True, ()), (
        "what is usable needs no help"
    )
    nothing = not_judged("dev was not scored")
    assert nothing.with_curve("falls", ["more text"]) == nothing


def test_yardsticks_by_hand() -> None:
    """Of tokens 0 to 3, `0 1 0 1 2` was seen; scored are 1 after 0, then 3 after 1, which never
    stood there.
    """
    found = yardsticks([[0, 1, 0, 1, 2]], [[0, 1, 3]], vocab_size=4)
    own = {1: 3 / 9, 3: 1 / 9}
    assert found.guessing == pytest.approx(math.log(4))
    assert found.tokens == pytest.approx(-(math.log(own[1]) + math.log(own[3])) / 2)
    pairs = (PAIRS * 1.0 + (1 - PAIRS) * own[1], (1 - PAIRS) * own[3])
    assert found.pairs == pytest.approx(-sum(map(math.log, pairs)) / 2)


def test_after_a_token_that_was_never_seen_the_next_ones_own_frequency_is_all_there_is() -> (
    None
):
    found = yardsticks([[0, 0, 0]], [[1, 0]], vocab_size=2)
    assert found.pairs == pytest.approx(-math.log(4 / 5))
