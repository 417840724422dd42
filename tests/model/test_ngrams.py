"""The hashes of n-grams, and the embeddings of those that end, or began before, at each
position.
"""

from math import log

import pytest
import torch
from torch import Tensor

from weft.config import CausalSection, ClassifierSection
from weft.model import ngrams as module
from weft.model.ngrams import MatchEmbedding, NgramBag, NgramEmbedding, ngram_hashes

LENGTHS, BUCKETS, D = (7, 3, 4), 97, 6


@pytest.fixture
def ids() -> Tensor:
    """Three rows, padded with 0."""
    drawn = torch.randint(
        1, 23, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(4)
    )
    return drawn.masked_fill(
        torch.arange(max(LENGTHS)) >= torch.tensor(LENGTHS)[:, None], 0
    )


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
        assert hashes[row].tolist() == [
            hashed(tokens[i : i + n], buckets) for i in range(7 - n + 1)
        ]
        assert valid[row].tolist() == [i + n <= length for i in range(7 - n + 1)]


def test_one_hash_by_hand() -> None:
    """The length and the first id give 2 M + 3, which is below the prime; the second id does the
    rest.
    """
    assert 2 * MULTIPLIER + 3 == 1_485_876_573
    hashes, valid = ngram_hashes(torch.tensor([[3, 5]]), 2, 1000)
    assert hashes.tolist() == [
        [(1_485_876_573 * 742_938_285 + 5) % 2_147_483_647 % 1000]
    ]
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
    there, back = (
        ngram_hashes(torch.tensor([row]), 2, 2**24)[0] for row in ([3, 5], [5, 3])
    )
    assert there.tolist() != back.tolist()
    alone, twice = (
        ngram_hashes(torch.tensor([[1, 1, 1]]), n, 2**24)[0][0, 0] for n in (2, 3)
    )
    assert alone != twice


@pytest.mark.parametrize("n", [2, 3])
def test_hashes_spread_evenly(n: int) -> None:
    """Of R different n-grams in R buckets, 1 - 1/e fill a bucket if they fall at random; near ones
    too.
    """
    side = {2: 100, 3: 22}[n]
    ngrams = torch.cartesian_prod(*[torch.arange(1, side + 1)] * n)
    hashes, _ = ngram_hashes(ngrams, n, len(ngrams))
    assert len(hashes.unique()) / len(ngrams) > 0.6


def embedding(ngrams: int, dropout: float = 0.0) -> NgramEmbedding:
    shape = CausalSection(
        d_model=D,
        num_heads=1,
        ngrams=ngrams,
        ngram_buckets=BUCKETS,
        ngram_dropout=dropout,
    )
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
    found = module(ids, ids.shape[1])
    for row, length in enumerate(LENGTHS):
        text = ids[row, :length].tolist()
        for place in range(length):
            torch.testing.assert_close(found[row, place], by_hand(module, text, place))
        assert (found[row, length:] == 0).all()


@pytest.mark.parametrize("length", [0, 1, 5])
def test_ngrams_reach_back_to_tokens_read_before(ids: Tensor, length: int) -> None:
    module = embedding(4)
    expected = module(ids, ids.shape[1])[:, ids.shape[1] - length :]
    torch.testing.assert_close(module(ids, length), expected)
    assert expected.shape == (len(ids), length, D)


def test_ngrams_stay_in_their_document(ids: Tensor) -> None:
    module = embedding(3)
    segments = torch.tensor([[1, 1, 1, 2, 2, 2, 2]])
    apart = torch.cat([module(ids[:1, :3], 3), module(ids[:1, 3:], 4)], dim=1)
    torch.testing.assert_close(module(ids[:1], 7, segments), apart)
    assert not torch.allclose(module(ids[:1], 7), apart)


def test_dropout_leaves_out_whole_ngrams_in_training_alone(ids: Tensor) -> None:
    """With pairs alone, a position has its whole vector or none; the share is as asked for."""
    module, wide = embedding(2, dropout=0.25), ids[:1].repeat(500, 1)
    torch.manual_seed(3)
    dropped = module(wide, 7)[:, 1:]
    module.eval()
    whole = module(wide, 7)[:, 1:]
    kept = dropped.abs().amax(-1) > 0
    assert torch.equal(dropped, whole * kept[:, :, None])
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)


VOCAB = 23


def matches(*lengths: int) -> MatchEmbedding:
    module = MatchEmbedding(
        CausalSection(d_model=D, num_heads=1, match_lengths=lengths), VOCAB, pad_id=0
    )
    with torch.no_grad():
        module.followers.weight.normal_(generator=torch.Generator().manual_seed(7))
    return module


def follower(text: list[int], place: int, n: int) -> int | None:
    """What stood behind the last earlier occurrence of the n tokens that end at a place, by
    looking.
    """
    newest = text[place - n + 1 : place + 1]
    earlier = [
        end for end in range(n - 1, place) if text[end - n + 1 : end + 1] == newest
    ]
    return text[earlier[-1] + 1] if earlier and place >= n - 1 else None


def matched_by_hand(module: MatchEmbedding, text: list[int], place: int) -> Tensor:
    found = [(i, follower(text, place, n)) for i, n in enumerate(module.lengths)]
    return sum(
        (
            module.followers.weight[i * VOCAB + token]
            for i, token in found
            if token is not None
        ),
        torch.zeros(D),
    )


@pytest.fixture
def repetitive() -> Tensor:
    """Four rows of three letters, the last two padded."""
    drawn = torch.randint(1, 4, (4, 40), generator=torch.Generator().manual_seed(8))
    return drawn.masked_fill(
        torch.arange(40) >= torch.tensor([40, 40, 17, 2])[:, None], 0
    )


@pytest.mark.parametrize("lengths", [(1,), (3,), (2, 5)], ids=str)
def test_matches_by_looking(repetitive: Tensor, lengths: tuple[int, ...]) -> None:
    module, some = matches(*lengths), 0
    found = module(repetitive, 40)
    for row in range(4):
        text = [token for token in repetitive[row].tolist() if token]
        for place in range(len(text)):
            expected = matched_by_hand(module, text, place)
            torch.testing.assert_close(found[row, place], expected)
            some += bool(expected.any())
        assert (found[row, len(text) :] == 0).all()
    assert 20 < some < 99


def test_a_match_by_hand() -> None:
    """9 stood before 4 first and before 5 then; 7 8 only before 9."""
    module = matches(1, 2)
    text = torch.tensor([[7, 8, 9, 4, 9, 5, 7, 8, 9]])
    one, two = module.followers.weight.split(VOCAB)
    found = module(text, 9)[0]
    # 9 alone was last followed by 5, 8 9 by 4
    torch.testing.assert_close(found[8], one[5] + two[4])
    torch.testing.assert_close(found[7], one[9] + two[9])
    torch.testing.assert_close(found[6], one[8])
    assert (found[:4] == 0).all()


@pytest.mark.parametrize("length", [0, 1, 13])
def test_matches_reach_back_to_tokens_read_before(
    repetitive: Tensor, length: int
) -> None:
    module = matches(2, 3)
    torch.testing.assert_close(
        module(repetitive, length), module(repetitive, 40)[:, 40 - length :]
    )


def test_matches_stay_in_their_document(repetitive: Tensor) -> None:
    module = matches(1, 3)
    segments = torch.tensor([[1] * 15 + [2] * 25])
    row = repetitive[:1]
    apart = torch.cat([module(row[:, :15], 15), module(row[:, 15:], 25)], dim=1)
    torch.testing.assert_close(module(row, 40, segments), apart)
    assert not torch.allclose(module(row, 40), apart)


def test_nothing_read_has_no_matches() -> None:
    assert matches(2)(torch.empty(3, 0, dtype=torch.long), 0).shape == (3, 0, D)


def weighted_bag(ngrams: int = 2) -> NgramBag:
    shape = ClassifierSection(
        d_model=D,
        num_heads=1,
        ngrams=ngrams,
        ngram_buckets=BUCKETS,
        ngram_weights="log-count-ratio",
    )
    return NgramBag(shape, vocab_size=23, pad_id=0)


def drawn_texts(num_labels: int) -> list[tuple[Tensor, Tensor]]:
    """Three batches of padded texts, with any number of labels each."""
    random = torch.Generator().manual_seed(7)
    batches = []
    for _ in range(3):
        texts = torch.randint(1, 23, (9, 6), generator=random)
        lengths = torch.randint(1, 7, (9, 1), generator=random)
        has = torch.rand(9, num_labels, generator=random) < 0.3
        batches.append((texts.masked_fill(torch.arange(6) >= lengths, 0), has))
    return batches


def rows_of(text: list[int]) -> set[tuple[str, int]]:
    """What a text meets, in plain numbers: its tokens, and the buckets of its pairs."""
    real = [token for token in text if token]
    pairs = [hashed(real[i : i + 2], BUCKETS) for i in range(len(real) - 1)]
    return {("token", token) for token in real} | {("hash", bucket) for bucket in pairs}


@pytest.mark.parametrize("num_labels", [1, 2, 5])
def test_log_count_ratios_in_plain_numbers(
    num_labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the same when only two labels are counted at a time."""
    batches, bag = drawn_texts(num_labels), weighted_bag()
    assert bag.lacks_weights
    bag.weigh(lambda: iter(batches))
    assert not bag.lacks_weights
    texts = [
        (rows_of(t), h)
        for ids, has in batches
        for t, h in zip(ids.tolist(), has.tolist(), strict=True)
    ]
    for kind, weights in (("token", bag.token_weights), ("hash", bag.hashed_weights)):
        for row in range(len(weights)):
            ratios = []
            for label in range(num_labels):
                inside = [(kind, row) in met for met, has in texts if has[label]]
                outside = [(kind, row) in met for met, has in texts if not has[label]]
                m, n = len(inside), len(texts)
                p, q = sum(inside) + 2 * m / n, sum(outside) + 2 * (n - m) / n
                ratios.append(abs(log(p / m) - log(q / (n - m))))
            assert weights[row].item() == pytest.approx(max(ratios), abs=1e-5)
    before = bag.state_dict()["hashed_weights"].clone()
    monkeypatch.setattr(module, "MOST_COUNTS", 2 * (23 + BUCKETS))
    bag.weigh(lambda: iter(batches))
    assert torch.equal(bag.hashed_weights, before)


def test_what_tells_nothing_weighs_nothing() -> None:
    """A row that both labels have alike, a row that no text has, and a label that all texts
    have.
    """
    ids = torch.tensor([[1, 2, 0], [1, 3, 0], [1, 2, 3], [1, 3, 2]])
    bag = weighted_bag(ngrams=1)
    bag.weigh(
        lambda: iter(
            [
                (
                    ids,
                    torch.tensor(
                        [[True, True], [False, True], [True, True], [False, True]]
                    ),
                )
            ]
        )
    )
    assert bag.token_weights[[1, 3 + 1, 22]].tolist() == [0.0, 0.0, 0.0]
    # (2 + 1) / 2 to (1 + 1) / 2
    assert bag.token_weights[2] == pytest.approx(log(3 / 2))
    assert bag.hashed_weights is None
