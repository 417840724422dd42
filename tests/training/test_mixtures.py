"""Where one mixture ends and the next begins."""

from hypothesis import given
from hypothesis import strategies as st

from weft.training.mixtures import borders_of, stage_after


def test_by_hand() -> None:
    shares = (0.5, 0.8, 1.0)
    found = borders_of(shares, 10)
    assert found == [5, 8]
    numbers = [stage_after(step, found) for step in range(10)]
    assert numbers == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert borders_of((1.0,), 10) == []
    # what the clock has decided stands, and nothing ends before now
    assert borders_of(shares, 10, decided=[6]) == [6, 8]
    assert borders_of(shares, 10, decided=[6], now=9) == [6, 9]
    assert borders_of(shares, 10, decided=[6, 7]) == [6, 7]


@given(
    shares=st.lists(st.floats(0.001, 1.0), min_size=1, max_size=6, unique=True),
    steps=st.integers(1, 10_000),
)
def test_borders_rise_and_their_shares_give_them_again(
    shares: list[float], steps: int
) -> None:
    found = borders_of([*sorted(shares), 1.0], steps)
    assert found == sorted(found)
    assert all(0 <= border <= steps for border in found)
    again = [border / steps for border in found]
    assert borders_of([*again, 1.0], steps) == found
    numbers = [stage_after(step, found) for step in range(min(steps, 50))]
    assert numbers == sorted(numbers)
