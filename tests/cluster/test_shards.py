"""A folder of shards: whoever answered in whatever order, it is the output of one process; what is
finished is never done again, and nothing else is believed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from weft.cluster.block import Block, divided
from weft.cluster.executor import Executor, Here
from weft.cluster.shards import JOURNAL, Request, Shards, write_shards
from weft.cluster.work import Answered, Answers, Work
from weft.errors import Interrupted, UsageError
from weft.folder.durable import MANIFEST

TEXT = "ä\nb\nc\nd\ne\n"
ANSWERS = "1 Ä\n2 B\n3 C\n4 D\n5 E\n"


def shouting() -> Answers:
    """Answers each line by its number and in capitals, and counts the vowels."""

    def answers(lines: Sequence[str], first: int) -> Iterator[tuple[str, Any]]:
        for number, line in enumerate(lines, start=first):
            yield f"{number} {line.upper()}\n", {"vowels": line in "äe"}

    return answers


class Backwards:
    """Answers the last block first, and says which it was asked for; after `most` it is stopped."""

    def __init__(self, most: int = 99) -> None:
        self.most = most
        self.asked: list[int] = []

    def run(self, work: Work, blocks: Sequence[Block]) -> Iterator[Answered]:
        self.asked = [block.number for block in blocks]
        for done, answered in enumerate(Here().run(work, blocks[::-1])):
            if done == self.most:
                raise KeyboardInterrupt
            yield answered


Ask = Callable[..., Request]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Makes a request for the text of two lines a block, but for what is given."""

    def request(
        text: str = TEXT, rows: int = 2, settings: Any = None, name: str = "in.txt"
    ) -> Request:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        work = Work("shout", {}, {}, settings or {"loud": True}, shouting)
        return Request(work, divided([path], rows), rows, ".txt")

    return request


def written(folder: Path) -> str:
    shards = sorted(folder.glob("*.txt"))
    return "".join(shard.read_text("utf-8") for shard in shards)


def write(folder: Path, request: Request, executor: Executor | None = None) -> Shards:
    return write_shards(folder, request, executor or Here())


@pytest.mark.parametrize("executor", [Here(), Backwards()], ids=["here", "backwards"])
@pytest.mark.parametrize("rows", [1, 2, 5, 9])
def test_the_shards_are_the_output_of_one_process(
    tmp_path: Path, ask: Ask, executor: Executor, rows: int
) -> None:
    shards = write(tmp_path / "out", ask(rows=rows), executor)
    assert written(tmp_path / "out") == ANSWERS
    shards.join(tmp_path / "all.txt")
    assert (tmp_path / "all.txt").read_text("utf-8") == ANSWERS
    assert shards.sums == {"vowels": 2}
    assert not list(tmp_path.rglob(".weft-tmp-*"))


def test_the_manifest_says_of_each_shard_what_it_is_of(
    tmp_path: Path, ask: Ask
) -> None:
    write(tmp_path / "out", ask(), Backwards())
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"000000.txt", "000001.txt", "000002.txt", MANIFEST}
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text("utf-8"))
    source = str(tmp_path / "in.txt")
    assert manifest["verb"] == "shout"
    assert (manifest["settings"], manifest["block_rows"]) == ({"loud": True}, 2)
    assert manifest["inputs"] == [
        {"path": source, "rows": 5, "sha256": sha256(TEXT.encode()).hexdigest()}
    ]
    assert [shard["shard"] for shard in manifest["shards"]] == sorted(names)[:3]
    second = manifest["shards"][1]
    for key in ("began", "seconds", "worker"):
        del second[key]
    assert second == {
        "shard": "000001.txt",
        "input": source,
        "first": 3,
        "rows": 2,
        "input_sha256": sha256(b"c\nd\n").hexdigest(),
        "size": 8,
        "sha256": sha256(b"3 C\n4 D\n").hexdigest(),
        "sums": {"vowels": 0},
    }


def test_what_is_finished_is_never_done_again(tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "out"
    with pytest.raises(Interrupted, match="the same command continues it"):
        write(out, ask(), Backwards(most=2))
    assert (out / JOURNAL).is_file()
    assert not (out / MANIFEST).exists()
    rest = Backwards()
    shards = write(out, ask(), rest)
    assert rest.asked == [0]
    assert (written(out), shards.sums) == (ANSWERS, {"vowels": 2})
    idle = Backwards()
    assert write(out, ask(), idle).sums == {"vowels": 2}
    assert idle.asked == []


def test_a_shard_is_finished_when_the_journal_says_so_and_not_before(
    tmp_path: Path, ask: Ask
) -> None:
    """A kill between a shard and its line, or within the line, costs that block."""
    out = tmp_path / "out"
    with pytest.raises(Interrupted):
        write(out, ask(), Backwards(most=2))
    content = (out / JOURNAL).read_bytes()
    (out / JOURNAL).write_bytes(content[:-9])
    rest = Backwards()
    write(out, ask(), rest)
    assert rest.asked == [0, 1]
    assert written(out) == ANSWERS


@pytest.mark.parametrize("is_complete", [True, False], ids=["complete", "begun"])
@pytest.mark.parametrize("harm", ["other", "gone"])
def test_a_shard_that_is_not_as_it_was_written_is_made_again(
    tmp_path: Path, ask: Ask, harm: str, is_complete: bool
) -> None:
    out = tmp_path / "out"
    if is_complete:
        write(out, ask())
    else:
        with pytest.raises(Interrupted):
            write(out, ask(), Backwards(most=2))
    path = out / "000002.txt"
    if harm == "other":
        path.write_text("5 X\n")
    else:
        path.unlink()
    again = Backwards()
    write(out, ask(), again)
    assert again.asked == ([2] if is_complete else [0, 2])
    assert written(out) == ANSWERS
    assert not (out / JOURNAL).exists()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"text": "z\n" + TEXT}, "input"),
        ({"rows": 3}, "--block"),
        ({"settings": {"loud": False}}, "settings"),
        ({"text": "z\n", "rows": 1}, "--block and another input"),
    ],
)
@pytest.mark.parametrize("most", [1, 99], ids=["begun", "complete"])
def test_other_facts_are_refused_in_one_line(
    tmp_path: Path, ask: Ask, other: dict[str, Any], named: str, most: int
) -> None:
    out = tmp_path / "out"
    try:
        write(out, ask(), Backwards(most))
    except Interrupted:
        assert most == 1
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(UsageError) as caught:
        write(out, ask(**other))
    assert str(caught.value) == (
        f"{out}: was begun with another {named}; give the same, or another --output, or remove it"
    )
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    assert {name: after[name] for name in before} == before


def test_the_name_of_an_input_is_no_fact(tmp_path: Path, ask: Ask) -> None:
    write(tmp_path / "out", ask())
    idle = Backwards()
    write(tmp_path / "out", ask(name="moved.txt"), idle)
    assert idle.asked == []


@pytest.mark.parametrize("name", ["notes.txt", MANIFEST])
def test_a_folder_of_other_files_is_left_alone(
    tmp_path: Path, ask: Ask, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text('{"files": {}}')
    with pytest.raises(UsageError, match="has other files in it"):
        write(out, ask())
    assert [path.name for path in out.iterdir()] == [name]


def test_a_second_writer_is_refused(tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "out"
    with (
        Shards.opened(out, ask()),
        pytest.raises(UsageError, match="is in use by process"),
    ):
        write(out, ask())
    write(out, ask())
    assert written(out) == ANSWERS
