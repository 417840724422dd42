"""A crew's tasks in blocks: whoever does them, the same is found; what is finished stays so."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.cluster.block import Block
from weft.cluster.executor import Executor, Here
from weft.cluster.tasks import InBlocks, open_tasks
from weft.cluster.work import Answered, Work
from weft.data import crew, home
from weft.data.clean.pairs import clean_pairs
from weft.data.clean.rules import Choice
from weft.data.column import Column
from weft.data.corpus import read_pairs
from weft.data.measures import measure
from weft.errors import FolderError, UsageError

ROWS = 120


@pytest.fixture
def file(tmp_path: Path, large_from: Callable[[int, int], None]) -> Path:
    """A text that counts as large, in stretches of 20 pairs."""
    large_from(50, 20)
    path = tmp_path / "made.en-de.tsv"
    lines = [f"the cat {n} sleeps\tdie Katze {n} schläft\n" for n in range(ROWS)]
    lines[7] = "the <b>cat</b> 7 sleeps\tdie Katze 7 schläft\n"
    lines[60] = "\tnichts\n"
    lines[61] = lines[5]
    path.write_text("".join(lines), "utf-8")
    return path


class Stopped:
    """Does the last block first, and is killed after so many."""

    def __init__(self, most: int = 99) -> None:
        self.most = most
        self.asked: list[str] = []

    def run(self, work: Work, blocks: Sequence[Block]) -> Iterator[Answered]:
        self.asked += [f"{work.verb} {block.number}" for block in blocks]
        for answered in Here().run(work, blocks[::-1]):
            if not self.most:
                raise SystemExit
            self.most -= 1
            yield answered


def in_blocks(
    folder: Path, executor: Executor, pairs: int = 40, text: str = "a"
) -> tuple[InBlocks, list[str]]:
    said: list[str] = []
    blocks = InBlocks(executor, folder, lambda: {"text": text}, said.append, pairs)
    return blocks, said


def hashes(path: Path) -> dict[str, Any]:
    """All that is measured of a text."""
    text = read_pairs([path])
    assert isinstance(text.src, Column)
    assert isinstance(text.tgt, Column)
    found = measure((text.src, text.tgt), seed=3)
    kinds = {"row": found.row, "order": found.order, "signed": found.signed}
    kinds |= {"side": found.side(1), "band": found.band(2), "sketch": found.sketch}
    return kinds


def test_measures_are_those_of_processes_here(file: Path, tmp_path: Path) -> None:
    wanted = hashes(file)
    work = tmp_path / "work"
    blocks, said = in_blocks(work, Stopped())
    with home.homes_in(work), crew.given_to(blocks):
        found = hashes(file)
    assert all(np.array_equal(found[kind], wanted[kind]) for kind in wanted)
    assert len(np.unique(wanted["row"])) == ROWS - 2
    assert said == ["measure: 3 blocks"]
    assert [entry["pairs"] for entry in blocks.entries] == [39, 40, 40]
    assert {entry["work"] for entry in blocks.entries} == {"001-measure"}


def test_a_cleaning_that_was_killed_does_what_was_not_finished(
    file: Path, tmp_path: Path
) -> None:
    def cleaned() -> Any:
        choice = Choice.of("translation", ["near-duplicates"], [])
        found = clean_pairs([str(file)], (None, None), choice, {})
        pairs = list(zip(found.text.src, found.text.tgt, strict=True))
        return pairs, list(found.record.lines(("source", "target")))

    wanted = cleaned()
    assert len(wanted[0]) == ROWS - 2
    assert [line.split("\t")[1] for line in wanted[1][1:]] == [
        "markup",
        "empty",
        "duplicates",
    ]
    work = tmp_path / "work"
    for most in (1, 4, 6):
        executor = Stopped(most)
        blocks, _ = in_blocks(work, executor)
        with pytest.raises(SystemExit), home.homes_in(work), crew.given_to(blocks):
            cleaned()
    executor = Stopped()
    blocks, said = in_blocks(work, executor)
    with home.homes_in(work), crew.given_to(blocks):
        assert cleaned() == wanted
    finished = sum(int(line.split("(")[1].split()[0]) for line in said if "(" in line)
    assert finished == 11
    assert len(blocks.entries) == finished + len(executor.asked)
    executor = Stopped()
    blocks, _ = in_blocks(work, executor)
    with home.homes_in(work), crew.given_to(blocks):
        assert cleaned() == wanted
    assert executor.asked == []


def test_another_text_is_refused(file: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for text in ("a", "a", "b"):
        blocks, _ = in_blocks(work, Here(), text=text)
        with home.homes_in(work), crew.given_to(blocks):
            if text == "a":
                hashes(file)
                continue
            with pytest.raises(UsageError, match="work: was begun with another text;"):
                hashes(file)


def test_a_file_that_a_machine_does_not_see_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "0.txt")
    answers = open_tasks("measure", {"columns": [[missing]], "seed": 0})
    task = json.dumps({"first": 0, "last": 1})
    with pytest.raises(FolderError, match=r"0\.(txt|npy): cannot be read on .*needs"):
        list(answers([task], 1))
