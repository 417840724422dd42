"""The interval of `tools/pace.py` is that of the ranks."""

import sys

import pytest

import pace


@pytest.mark.parametrize(
    ("count", "left_out"),
    [
        (6, 0),  # 2 / 64 is below 5 %, 2 * 7 / 64 is not
        (8, 0),  # 2 * 9 / 256 is not
        (9, 1),  # 2 * 10 / 512 is, 2 * 46 / 512 is not
        (12, 2),  # 2 * 79 / 4096 is, 2 * 299 / 4096 is not
    ],
)
def test_as_many_ratios_are_left_out_as_leave_95_percent(
    count: int, left_out: int
) -> None:
    ratios = [1 + i / 100 for i in range(count)]
    median = 1 + (count - 1) / 200
    ends = ratios[left_out], ratios[-1 - left_out]
    expected = f"start: {median:.3f} ({ends[0]:.3f} to {ends[1]:.3f}), {count} pairs"
    assert pace.line_of("start", ratios) == expected


def test_fewer_rounds_than_have_an_interval_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pace.py", "HEAD", "--rounds", "5"])
    with pytest.raises(SystemExit):
        pace.main()
    assert "at least 6" in capsys.readouterr().err
