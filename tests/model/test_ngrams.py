"""The hashes of n-grams, and the embedding of those that end at each position. The bag: test_classifier.py."""

import pytest
import torch
from torch import Tensor

from weft.config import CausalSection
from weft.model.ngrams import NgramEmbedding, ngram_hashes

LENGTHS, BUCKETS, D = (7, 3, 4), 97, 6


@pytest.fixture
def ids() -> Tensor:
    """Three rows, padded with 0."""
    drawn = torch.randint(1, 23, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(4))
    return drawn.masked_fill(torch.arange(max(LENGTHS)) >= torch.tensor(LENGTHS)[:, None], 0)


PRIME, MULTIPLIER = 2_147_483_647, 742_938_285


def hashed(ngram: list[int], buckets: int) -> int:
    h = len(ngram)
    for token in ngram:
        h = (h * MULTIPLIER + token) % PRIME
    return h % buckets


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("buckets", [1, BUCKETS, 2**24])
def test_hashes_in_plain_numbers(ids: Tensor, n: int, buckets: int) -> None:
    hashes, valid = ngram_hashes(ids, n, buckets)
    assert hashes.shape == valid.shape == (len(LENGTHS), 7 - n + 1)
    for row, length in enumerate(LENGTHS):
        tokens = ids[row].tolist()
        assert hashes[row].tolist() == [hashed(tokens[i : i + n], buckets) for i in range(7 - n + 1)]
        assert valid[row].tolist() == [i + n <= length for i in range(7 - n + 1)]


def test_one_hash_by_hand() -> None:
    """The length and the first id give 2 M + 3, which is below the prime; the second id does the rest."""
    assert 2 * MULTIPLIER + 3 == 1_485_876_573
    hashes, valid = ngram_hashes(torch.tensor([[3, 5]]), 2, 1000)
    assert hashes.tolist() == [[(1_485_876_573 * 742_938_285 + 5) % 2_147_483_647 % 1000]]
    assert valid.tolist() == [[True]]


def test_the_largest_id_leaves_no_63_bits() -> None:
    top = 2**31 - 1
    hashes, _ = ngram_hashes(torch.full((1, 8), top), 8, 2**24, pad_id=0)
    assert hashes.tolist() == [[hashed([top] * 8, 2**24)]]


def test_a_text_shorter_than_n_has_no_ngrams() -> None:
    hashes, valid = ngram_hashes(torch.tensor([[3, 5]]), 4, BUCKETS)
    assert hashes.shape == valid.shape == (1, 0)


def test_ngrams_with_padding_are_not_real() -> None:
    _, valid = ngram_hashes(torch.tensor([[9, 3, 9, 4, 5, 6, 9]]), 2, BUCKETS, pad_id=9)
    assert valid.tolist() == [[False, False, False, True, True, False]]


def test_hashes_know_order_and_length() -> None:
    there, back = (ngram_hashes(torch.tensor([row]), 2, 2**24)[0] for row in ([3, 5], [5, 3]))
    assert there.tolist() != back.tolist()
    alone, twice = (ngram_hashes(torch.tensor([[1, 1, 1]]), n, 2**24)[0][0, 0] for n in (2, 3))
    assert alone != twice


@pytest.mark.parametrize("n", [2, 3])
def test_hashes_spread_evenly(n: int) -> None:
    """Of R different n-grams in R buckets, 1 - 1/e fill a bucket if they fall at random; near ones too."""
    side = {2: 100, 3: 22}[n]
    ngrams = torch.cartesian_prod(*[torch.arange(1, side + 1)] * n)
    hashes, _ = ngram_hashes(ngrams, n, len(ngrams))
    assert len(hashes.unique()) / len(ngrams) > 0.6


def embedding(ngrams: int, dropout: float = 0.0) -> NgramEmbedding:
    shape = CausalSection(d_model=D, num_heads=1, ngrams=ngrams, ngram_buckets=BUCKETS, ngram_dropout=dropout)
    module = NgramEmbedding(shape, pad_id=0)
    with torch.no_grad():
        module.hashed.weight.normal_(generator=torch.Generator().manual_seed(6))
    return module


def by_hand(module: NgramEmbedding, text: list[int], place: int) -> Tensor:
    """The n-grams of a text without padding that end at a place."""
    vectors = [
        module.hashed.weight[hashed(text[place - n + 1 : place + 1], BUCKETS)]
        for n in module.lengths
        if n <= place + 1
    ]
    return sum(vectors, torch.zeros(D))


@pytest.mark.parametrize("ngrams", [2, 4])
def test_the_embedding_by_hand(ids: Tensor, ngrams: int) -> None:
    """A row begins without n-grams, and padding has none."""
    module = embedding(ngrams)
    found = module(ids, torch.zeros(len(ids), ngrams - 1, dtype=torch.long))
    for row, length in enumerate(LENGTHS):
        text = ids[row, :length].tolist()
        for place in range(length):
            torch.testing.assert_close(found[row, place], by_hand(module, text, place))
        assert (found[row, length:] == 0).all()


def test_ngrams_reach_back_to_recent_tokens(ids: Tensor) -> None:
    module, whole = embedding(4), ids[:1]
    nothing = torch.zeros(1, 3, dtype=torch.long)
    expected = module(whole, nothing)[:, 4:]
    torch.testing.assert_close(module(whole[:, 4:], whole[:, 1:4]), expected)
    assert not torch.allclose(module(whole[:, 4:], nothing), expected)


def test_ngrams_stay_in_their_document(ids: Tensor) -> None:
    module, nothing = embedding(3), torch.zeros(1, 2, dtype=torch.long)
    segments = torch.tensor([[1, 1, 1, 2, 2, 2, 2]])
    apart = [module(part, nothing) for part in (ids[:1, :3], ids[:1, 3:])]
    torch.testing.assert_close(module(ids[:1], nothing, segments), torch.cat(apart, dim=1))
    assert not torch.allclose(module(ids[:1], nothing), torch.cat(apart, dim=1))


def test_dropout_leaves_out_whole_ngrams_in_training_alone(ids: Tensor) -> None:
    """With pairs alone, a position has its whole vector or none; the share is as asked for."""
    module, wide = embedding(2, dropout=0.25), ids[:1].repeat(500, 1)
    nothing = torch.zeros(500, 1, dtype=torch.long)
    torch.manual_seed(3)
    dropped = module(wide, nothing)[:, 1:]
    module.eval()
    whole = module(wide, nothing)[:, 1:]
    kept = dropped.abs().amax(-1) > 0
    assert torch.equal(dropped, whole * kept[:, :, None])
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)
