"""Packed data are the same as the data, as exactly as their bits and a page's budget allow."""

import base64
import json
import zlib
from typing import Any

import numpy as np
import pytest

from weft.inspection.coding import Form, coded, unpacked
from weft.inspection.packing import budget_for, packed, plain, unpacked_whole
from weft.inspection.translation import TranslationInspection


def made_up(
    tokens: int, width: int = 32, layers: int = 2, head_dim: int = 8
) -> dict[str, Any]:
    """Data of a translator; the rows of its maps are those of a softmax."""
    random = np.random.default_rng(3)
    heads = width // head_dim

    def scores() -> np.ndarray:
        return random.standard_normal((layers, heads, tokens, tokens)) * 3

    causal = np.where(np.tri(tokens, dtype=bool), scores(), -np.inf)

    def softmax(x: np.ndarray) -> np.ndarray:
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def look() -> np.ndarray:
        return random.standard_normal((layers, tokens, heads, head_dim))

    maps = {"encoder": softmax(scores()), "decoder": softmax(causal)}
    kinds = ("encoder", "decoder", "cross")
    vectors = random.standard_normal((tokens, width))
    return {
        "task": "translation",
        "source": {"ids": [5] * tokens, "vectors": {"width": width, "tokens": vectors}},
        "target": {"ids": [6] * tokens},
        "attention": {**maps, "cross": softmax(scores())},
        "lens": {
            "rows": [{"part": "embedding", "layer": None}],
            "ids": random.integers(0, 300, (1, tokens, 3)),
            "probabilities": random.random((1, tokens, 3)),
            "written": random.random((1, tokens)),
        },
        "shares": {
            "values": random.standard_normal((4, tokens)) * 5,
            "logit": random.standard_normal(tokens),
            "written": {"decoder": np.tril(scores()), "cross": scores()},
        },
        "looks": {
            **{kind: {"query": look(), "key": look()} for kind in kinds},
            "left_out": [],
        },
        "choices": {"ids": random.integers(0, 70_000, (tokens, 9)), "count": 70_000},
    }


def size_of(data: Any) -> int:
    """The bytes of data in a page."""
    text = json.dumps(data, separators=(",", ":"))
    return len(base64.b64encode(zlib.compress(text.encode(), 9)))


def test_packed_data_are_the_data() -> None:
    data = made_up(7)
    found = packed(data, budget=10**9)
    assert json.loads(json.dumps(found)) == found
    back = unpacked_whole(found)
    assert found["looks"]["left_out"] == []
    for kind, maps in data["attention"].items():
        np.testing.assert_allclose(back["attention"][kind], maps, atol=1e-5)
    assert not back["attention"]["decoder"][0, 0][np.triu_indices(7, 1)].any()
    np.testing.assert_array_equal(back["lens"]["ids"], data["lens"]["ids"])
    np.testing.assert_array_equal(back["choices"]["ids"], data["choices"]["ids"])
    assert found["choices"]["ids"]["dtype"] == "int32"
    assert found["lens"]["ids"]["dtype"] == "uint16"
    np.testing.assert_allclose(back["shares"]["values"], data["shares"]["values"], 1e-6)
    for kind, values in data["shares"]["written"].items():
        np.testing.assert_allclose(back["shares"]["written"][kind], values, rtol=1e-3)
    np.testing.assert_allclose(
        back["looks"]["cross"]["key"], data["looks"]["cross"]["key"], rtol=1e-3
    )
    assert back["source"]["vectors"]["tokens"].shape == (7, 32)


def test_where_the_budget_is_small_numbers_have_fewer_bits() -> None:
    """And the last that goes are the looks at the source."""
    data = made_up(30)
    sizes = []
    left_out = []
    for budget in range(120_000, 0, -1_500):
        found = packed(data, budget)
        sizes.append(size_of(found))
        if sizes[-1] > budget:
            break
        left_out.append(found["looks"]["left_out"])
        back = unpacked_whole(found)
        for kind, maps in data["attention"].items():
            np.testing.assert_allclose(back["attention"][kind], maps, atol=0.004)
        for kind, values in data["shares"]["written"].items():
            if kind in found["shares"]["left_out"]:
                continue
            largest = np.abs(values).max()
            wrong = np.abs(back["shares"]["written"][kind] - values)
            assert (wrong <= 0.0158 * np.sqrt(np.abs(values) * largest) + 3e-4).all()
            sums = back["shares"]["written"][kind].sum(-1)
            np.testing.assert_allclose(sums, values.sum(-1), atol=1e-5)
        for kind in set(data["looks"]) - {"left_out", *left_out[-1]}:
            expected = data["looks"][kind]["query"]
            np.testing.assert_allclose(
                back["looks"][kind]["query"], expected, atol=0.08
            )
    assert sizes == sorted(sizes, reverse=True)
    assert left_out[0] == []
    assert ["encoder"] in left_out
    assert left_out[-1] == ["encoder", "decoder", "cross"]
    assert packed(data, 0)["shares"]["left_out"] == ["decoder", "cross"]


def test_an_answer_that_is_awaited_is_packed_without_deflating(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = made_up(30)
    budget = 50_000
    kept = packed(data, budget)
    monkeypatch.setattr("zlib.compress", lambda *_: pytest.fail("deflated"))
    awaited = packed(data, budget, deflates=False)
    assert len(json.dumps(awaited, separators=(",", ":"))) < 1.02 * budget
    assert len(awaited["looks"]["left_out"]) > len(kept["looks"]["left_out"])


def test_the_data_of_a_page_are_within_its_budget() -> None:
    """Of a model of 3 and 3 layers with 6 heads, 192 wide, as en-de is."""
    for tokens in (10, 40, 127):
        data = made_up(tokens, 192, 3, 32)
        found = packed(data)
        assert size_of(found) <= budget_for(data)
        assert budget_for(data) <= {10: 100_000, 40: 250_000, 127: 1_095_000}[tokens]
    assert budget_for(made_up(500, 8, 1)) > 1_100_000


@pytest.mark.parametrize("form", [Form("float16", sums=True), Form("int8", True, True)])
def test_what_heads_wrote_adds_up_to_the_row_of_their_part(form: Form) -> None:
    """A rounded number may be off by what its digits allow; their sum is exact."""
    random = np.random.default_rng(1)
    written = np.tril(random.standard_normal((2, 3, 9, 9)) * 3)
    back = unpacked(coded(written, form, is_causal=True))
    rows = written.sum((1, 3))
    np.testing.assert_allclose(back.sum((1, 3)), rows, atol=3e-6)
    alone = coded(written, Form(form.dtype, form.root), is_causal=True)
    assert np.abs(unpacked(alone).sum((1, 3)) - rows).max() > 1e-4


def test_numbers_of_six_bits_are_letters() -> None:
    numbers = np.arange(-31, 32) / 31 * 2.5
    leaf = coded(numbers, Form("int6"))
    assert len(leaf["data"]) == 63
    assert leaf["data"][31] == "g"  # that of 32
    np.testing.assert_allclose(unpacked(leaf), numbers, atol=1e-12)


def sinusoids(count: int, width: int) -> np.ndarray:
    angles = np.arange(count)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(count, width)


def test_positions_that_a_formula_gives_are_exact_and_cost_nothing() -> None:
    data = made_up(9)
    vectors = data["source"]["vectors"]
    vectors["positions"] = sinusoids(9, 32).astype(np.float32)
    for budget in (10**9, 0):
        found = packed(data, budget)["source"]["vectors"]["positions"]
        assert found == {"shape": [9, 32], "dtype": "sinusoids", "width": 32}
        np.testing.assert_allclose(unpacked(found), vectors["positions"], atol=1e-7)
    # a wide model's have as many numbers as the tokens' vectors
    wide = sinusoids(9, 128)
    data["source"]["vectors"] = {"width": 128, "tokens": wide[::-1], "positions": wide}
    found = packed(data, 0)["source"]["vectors"]
    assert found["tokens"]["shape"] == found["positions"]["shape"] == [9, 64]
    np.testing.assert_allclose(unpacked(found["positions"]), wide[:, :64], atol=1e-12)
    # those that were learned are kept as they are
    data["source"]["vectors"]["positions"] = wide + 0.001
    kept = packed(data, 10**9)["source"]["vectors"]["positions"]
    assert kept["dtype"] == "float16"


def test_empty_and_constant_arrays() -> None:
    data = {
        "tokens": {"ids": [1]},
        "attention": {
            "encoder": np.zeros((0, 1, 0, 0)),
            "decoder": np.ones((1, 1, 1, 1)),
        },
        "shares": {"written": {"decoder": np.zeros((1, 1, 1, 1))}},
        "looks": {"encoder": {"query": np.zeros((1, 1, 1, 4))}, "left_out": []},
    }
    for budget in (10**6, 700):
        found = packed(data, budget)
        back = unpacked_whole(found)
        assert back["attention"]["encoder"].shape == (0, 1, 0, 0)
        assert back["attention"]["decoder"].tolist() == [[[[1.0]]]]
        assert not back["shares"]["written"]["decoder"].any()


def test_numbers_lie_little_end_first_in_base64() -> None:
    data = {"tokens": {"ids": []}, "lens": {"ids": np.array([[1, 300]])}}
    leaf = packed(data)["lens"]["ids"]
    assert leaf == {
        "shape": [1, 2],
        "dtype": "uint16",
        "data": base64.b64encode(bytes([1, 0, 44, 1])).decode(),
    }
    assert unpacked(leaf).tolist() == [[1, 300]]
    leaf = coded(np.tri(20)[None], Form("int8", root=True), is_causal=True)
    assert base64.b64decode(leaf.pop("data")) == bytes([127] * 210)
    assert leaf == {
        "shape": [1, 20, 20],
        "dtype": "int8",
        "causal": True,
        "scale": pytest.approx(1 / 127),
        "root": True,
    }


def test_lists_are_rounded(inspection: TranslationInspection) -> None:
    data = inspection.to_data()
    found = plain(data)
    assert found == inspection.to_json()
    json.dumps(found, allow_nan=False)
    assert (
        found["attention"]["cross"]
        == np.round(inspection.cross.astype(float), 4).tolist()
    )
    chosen = [choice.probability for choice in inspection.chosen]
    assert data["target"]["probabilities"] == chosen
    log_prob = data["beam"]["nodes"][0]["log_prob"]
    # a page rounds once more where it shows a number
    for written, digits in ((found, 4), (packed(data), 7)):
        assert written["target"]["probabilities"] == np.round(chosen, digits).tolist()
        assert written["beam"]["nodes"][0]["log_prob"] == round(log_prob, digits)
        assert written["shares"]["error"] == data["shares"]["error"]
    looks = found["looks"]["cross"]["query"]
    assert np.round(looks, 3).tolist() == looks
    assert np.shape(looks) == data["looks"]["cross"]["query"].shape
