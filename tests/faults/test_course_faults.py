"""X6, K1 of `weft train --mono`: whatever ends it, in whichever step, the same command goes on
there to the same model.
"""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run, Undisturbed, differences, verdict
from .test_checkpoint_faults import one_of_each

pytestmark = pytest.mark.long

STEPS = ("pairs", "reverse", "forward-1")
MADE = ("forward-again-1.tsv", "forward-made-1.tsv")
# an operation of each step, and the stage that verdict.json then names
STAGES = {
    "step 1 of 5, pairs": "os.rename run/course/pairs/run/checkpoints/latest",
    "step 2 of 5, reverse": "between",
    "step 4 of 5, forward-made-1": f"os.rename run/course/{MADE[1]}",
    "step 5 of 5, forward-1": "os.rename run/course/forward-1/run/checkpoints/latest",
    "publishing": "os.rename model.safetensors",
}


@pytest.fixture(scope="module")
def run_course(
    tiny_run: Run, write_pairs: Callable[[int], str], tmp_path_factory: Any
) -> Run:
    """Take the steps of a course of 40 updates each, after which a beam comes to an end."""
    mono = tmp_path_factory.mktemp("mono") / "news.txt"
    rows = Path(write_pairs(20)).read_text("utf-8").split("\n")[:-1]
    sentences = [f"{row.split(chr(9))[1][:-1]} heute.\n" for row in rows]
    mono.write_text("".join(sentences), "utf-8")
    longer = (
        "training.max_steps=40",
        "training.save_every=20",
        "training.eval_every=40",
    )

    def run(out: Path, **asked: Any) -> Any:
        return tiny_run(out, *longer, mono=[f"de={mono}"], **asked)

    return run


@pytest.fixture(scope="module")
def whole(run_course: Run, tmp_path_factory: Any) -> Undisturbed:
    folder = tmp_path_factory.mktemp("course")
    ended = run_course(folder / "out", events=str(folder / "events"))
    assert ended.code == 0, ended.said
    return Undisturbed(folder / "out", ended.events)


def unlike(out: Path, other: Path) -> list[str]:
    """The files in which two courses differ, those of each step and of what is published."""
    course = Path("run/course")
    found = [
        f"{step}/{name}"
        for step in STEPS
        for name in differences(out / course / step, other / course / step)
    ]
    found += [n for n in differences(out, other) if not n.startswith("run/course/")]
    for name in MADE:
        if (out / course / name).read_bytes() != (other / course / name).read_bytes():
            found.append(name)
    return [*found, *map(str, out.rglob(".weft-tmp-*"))]


def number_of(whole: Undisturbed, stage: str) -> int:
    numbers = whole.numbers(f"^{re.escape(STAGES[stage])}")
    if stage == "step 2 of 5, reverse":  # after those of the first step
        return numbers[len(numbers) // 2]
    return numbers[0]


@pytest.mark.parametrize("stage", STAGES)
def test_X6_a_failed_step_of_a_course_is_named_and_taken_again(
    tmp_path: Path, run_course: Run, whole: Undisturbed, stage: str
) -> None:
    number = number_of(whole, stage)
    faults = (
        {"kill_at": number},
        {"fail_at": number},
        {"signal_at": {number: int(signal.SIGTERM)}},
    )
    for count, fault in enumerate(faults):
        out = tmp_path / str(count)
        ended = run_course(out, **fault)
        assert ended.code in (-signal.SIGKILL, -signal.SIGTERM, 5, 75), ended.said
        said = verdict(out)
        assert said["stage"] == stage
        assert said["outcome"] != "done" or stage == "publishing"
        assert not (out / "manifest.json").exists()
        again = run_course(out)
        assert again.code == 0, again.said
        assert unlike(out, whole.out) == []


def test_K1_X6_a_course_killed_at_any_kind_of_operation_ends_the_same(
    tmp_path: Path, run_course: Run, whole: Undisturbed
) -> None:
    bad = {}
    for number in one_of_each(whole.events)[::9]:
        out = tmp_path / str(number)
        ended = run_course(out, kill_at=number)
        assert ended.code == -signal.SIGKILL, ended.said
        again = run_course(out)
        assert again.code == 0, (whole.events[number], again.said)
        if found := unlike(out, whole.out):
            bad[whole.events[number]] = found
    assert bad == {}


def test_X6_the_record_says_the_same_but_for_time(whole: Undisturbed) -> None:
    record = json.loads((whole.out / "run/course/record.json").read_bytes())
    assert [*record["steps"]] == [
        "pairs",
        "reverse",
        "forward-again-1",
        "forward-made-1",
        "forward-1",
    ]
    assert all(step["seconds"] >= 0 for step in record["steps"].values())
