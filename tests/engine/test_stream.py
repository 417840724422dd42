"""Shares add up to the logit, part by part, by head and key, whatever the norms; and a lens ends
with what the model said.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from small_shapes import MODERN, SMALL, TRANSLATORS, shaken
from weft.config import CausalSection, Seq2SeqSection
from weft.engine.from_model import causal_weights_of, weights_of
from weft.engine.plain import PlainTransformer, softmax
from weft.engine.record import Record
from weft.engine.stream import (
    Pass,
    Row,
    language_pass,
    lens,
    shares,
    source_shares,
    translation_pass,
)
from weft.engine.weights import Weights
from weft.model.causal import CausalTransformer
from weft.model.transformer import Seq2SeqTransformer

V_SRC, V_TGT, D = 23, 19, SMALL["d_model"]
OPTIONS = [*TRANSLATORS, {"norm": "rms", "sandwich_norm": True}]
SRC = [5, 7, 9, 11, 3]
TGT = [4, 6, 8, 8, 3]
NORMS = {"pre": {}, "post": {"norm_first": False}, "sandwich": {"sandwich_norm": True}}


def translator(**options: Any) -> Weights:
    torch.manual_seed(3)
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    shape = Seq2SeqSection(**SMALL, **layers, **options)
    return weights_of(shaken(Seq2SeqTransformer(shape, V_SRC, V_TGT, joint=False)))


def writer(**options: Any) -> Weights:
    torch.manual_seed(4)
    shape = CausalSection(**SMALL, num_decoder_layers=2, **options)
    return causal_weights_of(shaken(CausalTransformer(shape, V_TGT)))


def forced(weights: Weights, src: list[int] = SRC, tgt: list[int] = TGT) -> Pass:
    return translation_pass(weights, src, [2, *tgt[:-1]])


def above_mean(passed: Pass, written: list[int]) -> np.ndarray:
    exact = passed.logits.astype(np.float64)
    return np.array(
        [row[i] - row.mean() for row, i in zip(exact, written, strict=True)]
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_shares_of_a_translation_are_its_logits(options: dict[str, Any]) -> None:
    weights = translator(**options)
    passed = forced(weights)
    found = shares(passed, TGT)
    np.testing.assert_allclose(found.values.sum(0), above_mean(passed, TGT), atol=1e-4)
    np.testing.assert_allclose(found.logit, above_mean(passed, TGT), atol=1e-9)
    assert found.error < 1e-4
    assert np.abs(found.values).max(1).min() > 0 or options.get("bias") is False
    parts = [(row.part, row.layer) for row in found.rows if row.layer is not None]
    assert parts == [
        (p, n) for n in range(3) for p in ("self", "cross", "feed-forward")
    ]
    has_positions = options.get("positions") != "rotary"
    first = ["token", "positions"] if has_positions else ["token"]
    assert [row.part for row in found.rows if row.layer is None] == [*first, "biases"]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_heads_and_keys_add_up_to_their_part(options: dict[str, Any]) -> None:
    weights = translator(**options)
    found = shares(forced(weights), TGT)
    for part, kind in (("self", "decoder"), ("cross", "cross")):
        for number in range(3):
            row = found.values[found.rows.index(Row(part, number))]
            by_head = found.carried[kind][number]
            assert by_head.shape == (4, len(TGT), len(SRC if kind == "cross" else TGT))
            np.testing.assert_allclose(by_head.sum((0, 2)), row, atol=1e-4)
    future = np.triu(np.ones((len(TGT), len(TGT))), 1) > 0
    assert not found.carried["decoder"][:, :, future].any()
    by_token = source_shares(weights, SRC, TGT)
    np.testing.assert_allclose(by_token, found.carried["cross"].sum((0, 1)))
    np.testing.assert_allclose(by_token, found.tokens)
    np.testing.assert_allclose(by_token.sum(1), found.source, atol=1e-4)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_each_share_is_what_its_part_wrote_through_all_frozen_norms(
    name: str, norm: str
) -> None:
    """With each norm as a matrix, written out for one token."""
    weights = translator(norm=norm, **NORMS[name])
    passed = forced(weights)
    found = shares(passed, TGT)
    place = 2

    def matrix(gain: np.ndarray, entered: np.ndarray) -> np.ndarray:
        centre = np.eye(D) - (1 / D if norm == "layer" else 0)
        x = centre @ entered.astype(np.float64)
        return np.diag(gain) @ centre / np.sqrt((x**2).mean() + weights.eps)

    assert weights.projection is not None
    matrix_out = weights.projection.weight.astype(np.float64)
    readout = matrix_out[TGT[place]] - matrix_out.mean(0)
    if weights.decoder_norm is not None:
        last = passed.record.decoder_states[-1][0, place]
        readout = readout @ matrix(weights.decoder_norm.gain, last)
    expected = {}
    for number in reversed(range(3)):
        layer = weights.decoder[number]
        assert layer.cross_attention is not None
        outputs = (
            layer.self_attention.output,
            layer.cross_attention.output,
            layer.outer,
        )
        for which in reversed(range(3)):
            part = passed.record.decoder_parts[3 * number + which]
            written = part.written[0, place].astype(np.float64)
            if name == "post":
                entered = part.before[0, place] + part.written[0, place]
                readout = readout @ matrix(layer.norms[which].gain, entered)
            own = readout
            if name == "sandwich":
                own = readout @ matrix(layer.after[which].gain, part.written[0, place])
            bias = outputs[which].bias
            assert bias is not None
            row = Row(("self", "cross", "feed-forward")[which], number)
            expected[row] = own @ (written - bias)
    assert weights.tgt is not None
    token = weights.tgt.tokens[TGT[place - 1]] * weights.embedding_scale
    expected[Row("token")] = readout @ token
    assert weights.tgt.positions is not None
    expected[Row("positions")] = readout @ weights.tgt.positions[place]
    for row, value in expected.items():
        np.testing.assert_allclose(
            found.values[found.rows.index(row), place],
            value,
            atol=1e-4,
            err_msg=str(row),
        )


@pytest.mark.parametrize(
    "options", [{}, {"norm_first": False}, {"sandwich_norm": True}, MODERN], ids=str
)
def test_of_a_language_model_ngrams_and_matches_have_rows(
    options: dict[str, Any],
) -> None:
    weights = writer(**options, ngrams=3, ngram_buckets=57, match_lengths=(1, 2))
    ids = [2, 5, 7, 5, 7, 9, 5]
    passed = language_pass(weights, ids)
    written = [*ids[1:], int(passed.logits[-1].argmax())]
    found = shares(passed, written)
    np.testing.assert_allclose(
        found.values.sum(0), above_mean(passed, written), atol=1e-4
    )
    beside = [(row.part, row.n) for row in found.rows if row.n]
    assert beside == [("ngrams", 2), ("ngrams", 3), ("matches", 1), ("matches", 2)]
    of_beside = [found.values[found.rows.index(Row(p, n=n))] for p, n in beside]
    two, three, one_match, two_matched = (
        np.flatnonzero(row).tolist() for row in of_beside
    )
    assert two == [1, 2, 3, 4, 5, 6]
    assert three == [2, 3, 4, 5, 6]
    assert one_match == [3, 4, 6]
    assert two_matched == [4]
    assert found.source is None
    assert list(found.carried) == ["decoder"]


def test_the_lens_ends_with_what_the_model_said() -> None:
    for options in OPTIONS:
        passed = forced(translator(**options))
        found = lens(passed, TGT)
        expected = softmax(passed.logits)
        order = np.argsort(-expected, axis=-1, kind="stable")[:, :3]
        assert found.ids[-1].tolist() == order.tolist()
        tops = np.take_along_axis(expected, order, axis=-1)
        np.testing.assert_allclose(found.probabilities[-1], tops, rtol=1e-4)
        np.testing.assert_allclose(
            found.written[-1], expected[range(5), TGT], rtol=1e-4
        )
        assert len(found.rows) == len(found.ids) == 10
        assert found.rows[0] == Row("embedding")
        assert found.rows[-1] == Row("feed-forward", 2)


def test_a_row_of_the_lens_is_the_output_of_a_model_that_ends_there() -> None:
    """A model without the last layers says what the lens has there."""
    for options in ({}, {"norm_first": False}, MODERN):
        weights = translator(**options)
        found = lens(forced(weights), TGT)
        for kept in (1, 2):
            shorter = replace(weights, decoder=weights.decoder[:kept])
            expected = softmax(forced(shorter).logits)
            np.testing.assert_allclose(
                found.written[3 * kept], expected[range(5), TGT], rtol=1e-4
            )


def test_one_token_alone_and_equal_tokens() -> None:
    weights = translator()
    for src, tgt in (([3], [3]), ([5, 5, 5, 3], [1, 1, 1, 1]), ([0, 3], [3])):
        passed = forced(weights, src, tgt)
        found = shares(passed, tgt)
        np.testing.assert_allclose(
            found.values.sum(0), above_mean(passed, tgt), atol=1e-4
        )
        assert np.isfinite(lens(passed, tgt).probabilities).all()


def test_a_record_that_is_not_deep_keeps_no_parts() -> None:
    weights = translator()
    record = Record()
    model = PlainTransformer(weights)
    model.decode(np.array([TGT]), model.prefill(np.array([SRC]), record), record=record)
    assert len(record.cross) == 3
    assert not record.decoder_parts
    assert not record.encoder_parts
    assert not record.looks
