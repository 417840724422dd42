import cmath
import math

import pytest
import torch

from weft.model.positions import (
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    rotate,
    segment_positions,
    sinusoids,
)

D = 22


@pytest.mark.parametrize(
    ("position", "pair"), [(0, 0), (1, 0), (1, 3), (13, 7), (5003, 0), (5003, 10)]
)
def test_sinusoids_follow_the_formula(position: int, pair: int) -> None:
    angle = position / 10_000 ** (2 * pair / D)
    row = sinusoids(position + 1, D)[position]
    assert row[2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-7)
    assert row[2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_first_row_and_shape() -> None:
    table = sinusoids(7, D)
    assert table.shape == (7, D)
    assert table.dtype == torch.float32
    assert table[0].tolist() == [0.0, 1.0] * (D // 2)


def test_base_sets_the_slowest_wave() -> None:
    assert sinusoids(2, 4, base=100.0)[1, 2].item() == pytest.approx(math.sin(1 / 10))


def test_products_depend_on_distance_alone() -> None:
    table = sinusoids(31, D)
    products = table @ table.T
    for distance in (0, 1, 5):
        line = products.diagonal(distance)
        torch.testing.assert_close(line, line[:1].expand_as(line), rtol=0, atol=1e-5)
    assert products[0, 0] == pytest.approx(D / 2)
    assert products[0, 1] < products[0, 0] - 0.1


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_rows_start_at_first(
    kind: type[SinusoidalPositions] | type[LearnedPositions],
) -> None:
    positions = kind(13, D)
    with torch.no_grad():
        positions.table.copy_(torch.arange(13.0)[:, None].expand(13, D))
    assert positions(5)[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert positions(3, 10)[:, 0].tolist() == [10, 11, 12]
    assert positions(1, 12).shape == (1, D)


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions, NoPositions])
@pytest.mark.parametrize(("length", "first"), [(14, 0), (1, 13), (2, 12), (1, 99)])
def test_beyond_the_last_position(kind: type, length: int, first: int) -> None:
    with pytest.raises(
        ValueError,
        match=f"^{first + length} positions needed, but model.max_len is 13$",
    ):
        kind(13, D)(length, first)


def test_only_learned_positions_are_learned_and_saved() -> None:
    fixed, learned = SinusoidalPositions(13, D), LearnedPositions(13, D)
    assert list(fixed.parameters()) == []
    assert list(fixed.state_dict()) == []
    assert list(learned.state_dict()) == ["table"]
    learned(2, 3).sum().backward()
    assert learned.table.grad is not None
    assert learned.table.grad.sum(1).tolist() == [0, 0, 0, D, D, *[0] * 8]


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_each_at_its_own_place(
    kind: type[SinusoidalPositions] | type[LearnedPositions],
) -> None:
    positions = kind(13, D)
    with torch.no_grad():
        positions.table.copy_(torch.arange(13.0)[:, None].expand(13, D))
    places = torch.tensor([[0, 12, 3], [3, 3, 1]])
    assert positions.at(places).shape == (2, 3, D)
    assert positions.at(places)[:, :, D - 1].tolist() == places.tolist()
    with pytest.raises(
        ValueError, match=r"^14 positions needed, but model.max_len is 13$"
    ):
        positions.at(torch.zeros(2, 14, dtype=torch.long))


def test_learned_positions_learn_at_their_places() -> None:
    learned = LearnedPositions(13, D)
    learned.at(torch.tensor([[2, 5], [5, 0]])).sum().backward()
    assert learned.table.grad is not None
    assert learned.table.grad.sum(1).tolist() == [D, 0, D, 0, 0, 2 * D, *[0] * 7]


def test_segments_count_from_zero_each() -> None:
    segments = torch.tensor(
        [[1, 1, 1, 2, 3, 3, 0], [4, 4, 2, 2, 2, 2, 2], [0, 0, 0, 0, 0, 0, 0]]
    )
    places = [[0, 1, 2, 0, 0, 1, 0], [0, 1, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
    assert segment_positions(segments).tolist() == places
    assert segment_positions(segments[:, :1]).tolist() == [[0]] * 3


def turned(vector: list[float], position: int) -> list[float]:
    """Each pair as a complex number, times e^(i position frequency)."""
    half = len(vector) // 2
    pairs = [
        complex(vector[i], vector[half + i])
        * cmath.exp(1j * position * 10_000 ** (-i / half))
        for i in range(half)
    ]
    return [p.real for p in pairs] + [p.imag for p in pairs]


@pytest.mark.parametrize("first", [0, 3, 1000])
def test_rotation_in_complex_numbers(first: int) -> None:
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(1))
    found = rotate(x, first)
    for place in range(5):
        expected = torch.tensor(turned(x[1, 2, place].tolist(), first + place))
        torch.testing.assert_close(found[1, 2, place], expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.norm(dim=-1), x.norm(dim=-1))


def test_rotated_products_depend_on_distance_alone() -> None:
    query, key = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(2))
    queries, keys = (rotate(x.expand(1, 1, 21, 8))[0, 0] for x in (query, key))
    products = queries @ keys.T
    for distance in (-4, 0, 1, 9):
        line = products.diagonal(distance)
        torch.testing.assert_close(line, line[:1].expand_as(line), rtol=1e-4, atol=1e-4)
    assert products[0, 1].item() != pytest.approx(products[0, 9].item(), abs=0.01)


def test_no_positions_add_nothing() -> None:
    none = NoPositions(13, D)
    x = torch.randn(2, 4, D)
    assert torch.equal(x + none(4, 9), x)
    assert torch.equal(x + none.at(torch.tensor([[0, 1, 2, 0], [0, 0, 1, 2]])), x)
    assert list(none.state_dict()) == []
