"""K1 of a large text: what is prepared of it survives a kill, and is what a small one gives."""

import signal
from pathlib import Path

import pytest

from .conftest import Run, Undisturbed, differences

LARGE = 80  # rows


@pytest.fixture(scope="module")
def whole(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A run on text that is taken for a large one."""
    folder = tmp_path_factory.mktemp("whole")
    ended = tiny_run(folder / "out", events=str(folder / "events"), large=LARGE)
    assert ended.code == 0, ended.said
    return Undisturbed(folder / "out", ended.events)


def test_K1_a_large_text_gives_what_a_small_one_gives(
    whole: Undisturbed, undisturbed: Undisturbed
) -> None:
    assert len(whole.numbers(r"\.encoded-\w+/0-")) >= 2
    assert differences(whole.out, undisturbed.out) == ["run/checked.json"]


@pytest.mark.long
def test_K1_killed_at_every_third_operation_before_the_first_step(
    whole: Undisturbed, tiny_run: Run, tmp_path: Path
) -> None:
    first_step = whole.numbers("^step")[0]
    assert first_step > whole.numbers("encoded-")[-1]
    for number in range(0, first_step, 3):
        out = tmp_path / str(number)
        killed = tiny_run(out, large=LARGE, kill_at=number)
        assert killed.code == -signal.SIGKILL, killed.said
        again = tiny_run(out, large=LARGE)
        assert again.code == 0, again.said
        assert differences(out, whole.out) == [], whole.events[number]
