"""The n-grams of NumPy are those of PyTorch: hashes exactly, sums and means to rounding; and a row
is the same bit for bit in any company.
"""

import random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from weft.config import CausalSection, ClassifierSection
from weft.engine import ngrams
from weft.engine.from_model import bag_of, causal_weights_of
from weft.model import ngrams as learned
from weft.model.causal import CausalTransformer
from weft.model.ngrams import NgramBag

V, D, BUCKETS = 19, 6, 97
SHAPES = [(1, 1), (3, 2), (4, 7), (2, 40), (2, 0), (5, 3)]


def texts(rows: int, length: int, seed: int, is_padded: bool) -> NDArray[np.int64]:
    """Few different ids, so that n-grams come again; padded on the right, some wholly."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(1, 5, (rows, length))
    if is_padded:
        lengths = generator.integers(0, length + 1, rows)
        ids[np.arange(length) >= lengths[:, None]] = 0
    return ids


def language_model(**options: Any) -> CausalTransformer:
    torch.manual_seed(3)
    shape = CausalSection(
        d_model=D, num_heads=1, num_decoder_layers=1, ngram_buckets=BUCKETS, **options
    )
    model = CausalTransformer(shape, V).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


def bag(ngrams: int, weighted: bool) -> NgramBag:
    torch.manual_seed(4)
    shape = ClassifierSection(
        d_model=D,
        num_heads=1,
        num_encoder_layers=0,
        ngrams=ngrams,
        ngram_buckets=BUCKETS,
        ngram_weights="log-count-ratio" if weighted else "equal",
    )
    made = NgramBag(shape, V, pad_id=0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.uniform_(-2, 2)
        for weights in (made.token_weights, made.hashed_weights):
            if weights is not None:
                weights.abs_()
    return made


def close(found: NDArray[Any] | None, expected: torch.Tensor) -> None:
    assert found is not None
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.detach(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("buckets", [1, BUCKETS, 2**24, learned.PRIME])
def test_hashes_are_equal(n: int, buckets: int, is_padded: bool) -> None:
    for seed, (rows, length) in enumerate(SHAPES):
        ids = texts(rows, length, seed, is_padded) * (2**29 if seed % 2 else 1)
        found = ngrams.ngram_hashes(ids, n, buckets)
        expected = learned.ngram_hashes(torch.from_numpy(ids), n, buckets)
        for ours, theirs in zip(found, expected, strict=True):
            assert np.array_equal(ours, theirs.numpy())


MODELS: list[dict[str, Any]] = [
    {"ngrams": 2},
    {"ngrams": 4},
    {"match_lengths": (1,)},
    {"match_lengths": (2, 1, 5)},
    {"ngrams": 3, "match_lengths": (1, 3)},
]


@torch.inference_mode()
@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("options", MODELS, ids=str)
def test_sums_beside_the_tokens_are_equal(
    options: dict[str, Any], is_padded: bool
) -> None:
    model = language_model(**options)
    weights = causal_weights_of(model)
    parts = [part for part in (model.ngrams, model.matches) if part is not None]
    for seed, (rows, length) in enumerate(SHAPES):
        read = texts(rows, length, seed, is_padded)
        for new in sorted({0, min(1, length), length // 2, length}):
            ids = torch.from_numpy(read)
            expected = torch.stack([part(ids, new) for part in parts]).sum(0)
            found = ngrams.beside(weights, read, new)
            close(found, expected)
            if length > 20 and new > 1:
                assert found is not None
                assert found.any()


def test_a_model_without_tables_has_nothing_beside_its_tokens() -> None:
    weights = causal_weights_of(language_model())
    assert ngrams.beside(weights, texts(2, 5, 1, False), 5) is None


def test_what_followed_a_match_by_hand() -> None:
    read = np.array([[5, 6, 7, 5, 6, 8, 5, 6], [9, 9, 9, 9, 0, 0, 9, 1]])
    ones = ngrams._behind_match(read, 1)
    assert ones.tolist() == [[0, 0, 0, 1, 2, 0, 4, 5], [0, 1, 2, 3, 0, 0, 4, 0]]
    pairs = ngrams._behind_match(read, 2)
    assert pairs.tolist() == [[0, 0, 0, 0, 2, 0, 0, 5], [0, 0, 2, 3, 0, 0, 0, 0]]


@torch.inference_mode()
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("longest", [1, 2, 4])
def test_means_of_a_bag_are_equal(longest: int, weighted: bool) -> None:
    made = bag(longest, weighted)
    weights = bag_of(made)
    for seed, (rows, length) in enumerate(SHAPES):
        for is_padded in (False, True):
            ids = texts(rows, length, seed, is_padded)
            close(ngrams.bag_means(weights, ids), made(torch.from_numpy(ids)))


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_without_weight_have_a_mean_of_zero(weighted: bool) -> None:
    made = bag(3, weighted)
    ids = np.array([[0, 0, 0], [3, 0, 0]])
    if made.token_weights is not None:
        made.token_weights.data[3] = 0
    found = ngrams.bag_means(bag_of(made), ids)
    assert not found[0].any()
    assert found[1].any() == (not weighted)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_text_is_the_same_bit_for_bit_in_any_company(weighted: bool) -> None:
    weights = bag_of(bag(3, weighted))
    ids = texts(40, 60, 7, True)
    lengths = (ids != 0).sum(1)
    alone = [
        ngrams.bag_means(weights, ids[row : row + 1, : max(length, 1)])[0]
        for row, length in enumerate(lengths)
    ]
    draw = random.Random(8)
    for _ in range(10):
        some = draw.sample(range(40), draw.randint(1, 40))
        width = max(1, lengths[some].max())
        found = ngrams.bag_means(weights, ids[some, :width])
        assert np.array_equal(found, np.stack([alone[row] for row in some]))
