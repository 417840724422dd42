import json
import math

import pytest

from weft.errors import DataError, DivergedError
from weft.evaluation.language import LanguageScores, language_scores


def test_by_hand():
    """Four tokens over six bytes, of probability 1/2, 1/4, 1/4 and 1/8: 1 + 2 + 2 + 3 bits."""
    scores = language_scores(8 * math.log(2), 4, 6)
    assert scores.loss == pytest.approx(2 * math.log(2))
    assert scores.perplexity == pytest.approx(4)
    assert scores.bits_per_byte == pytest.approx(8 / 6)
    assert (scores.num_tokens, scores.num_bytes) == (4, 6)


@pytest.mark.parametrize("size", [2, 29, 8000])
def test_of_a_model_that_knows_nothing_perplexity_is_the_size_of_the_vocabulary(size):
    assert language_scores(17 * math.log(size), 17, 3).perplexity == pytest.approx(size)


def test_bits_per_byte_do_not_ask_how_the_text_is_cut_into_tokens():
    few, many = language_scores(30.0, 5, 40), language_scores(30.0, 40, 40)
    assert (
        few.bits_per_byte == many.bits_per_byte == pytest.approx(30 / math.log(2) / 40)
    )
    assert few.perplexity > many.perplexity


def test_a_perfect_model():
    scores = language_scores(0.0, 5, 7)
    assert (scores.loss, scores.perplexity, scores.bits_per_byte) == (0, 1, 0)


def test_the_largest_perplexity_is_one_that_json_can_hold():
    scores = language_scores(3 * 699.0, 3, 5)
    assert scores.perplexity == pytest.approx(math.exp(699))
    for nll in (3 * 701.0, 1e300):
        scores = language_scores(nll, 3, 5)
        assert scores.perplexity == math.exp(700)
        assert (
            json.loads(json.dumps(scores.to_json(), allow_nan=False))["loss"] == nll / 3
        )


@pytest.mark.parametrize(("num_tokens", "num_bytes"), [(0, 0), (0, 5), (5, 0)])
def test_nothing_to_score_is_an_error(num_tokens, num_bytes):
    with pytest.raises(DataError, match="nothing to score"):
        language_scores(1.0, num_tokens, num_bytes)


@pytest.mark.parametrize("nll", [math.nan, math.inf])
def test_what_is_not_a_number_is_an_error(nll):
    with pytest.raises(DivergedError, match="scoring: the loss is") as caught:
        language_scores(nll, 3, 5)
    assert "\n" not in str(caught.value)


def test_the_scores_as_one_line_as_a_table_and_as_json():
    scores = LanguageScores(1.25, 3.4903, 2.5, 12345, 6789)
    assert (
        scores.summary()
        == "loss 1.2500 nats a token  perplexity 3.49  2.500 bits per byte"
    )
    assert [line.split() for line in scores.lines()] == [
        ["loss", "1.2500", "nats", "a", "token"],
        ["perplexity", "3.49", "a", "token"],
        ["bits", "per", "byte", "2.5000"],
        ["12,345", "tokens,", "6,789", "bytes"],
    ]
    assert json.loads(json.dumps(scores.to_json())) == {
        "loss": 1.25,
        "perplexity": 3.4903,
        "bits_per_byte": 2.5,
        "num_tokens": 12345,
        "num_bytes": 6789,
    }
