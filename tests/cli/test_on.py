"""--on: in blocks, by whomever, a verb says line by line what it says alone."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import weft

Command = Callable[..., Any]
WORDS = ("cat", "dog", "bird", "fish", "horse", "mouse")
VERBS = ("sees", "hears", "likes", "eats")
LINES = [f"{a} {verb} {b}." for a, verb, b in product(WORDS[:4], VERBS, WORDS[2:])]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(line + "\n" for line in ["", *LINES[:40], "", "x"]))
    return path


def test_every_line_is_that_of_the_verb_alone(
    command: Command, tiny_folder: Path, tmp_path: Path, source: Path
) -> None:
    for options in ((), ("--json",), ("--n-best", "2"), ("--temperature", "1")):
        alone = command("translate", tiny_folder, "--input", source, *options)
        for rows in (7, 10_000):
            out = tmp_path / "".join(("out", *options, str(rows)))
            on = ("--on", "local", "--block", rows, "--output", out)
            ended = command("translate", tiny_folder, "--input", source, *options, *on)
            assert (ended.code, ended.out) == (0, b"")
            shards = sorted(path for path in out.iterdir() if path.stem.isdecimal())
            assert len(shards) == (7 if rows == 7 else 1)
            assert b"".join(path.read_bytes() for path in shards) == alone.out


def test_a_file_of_all_lies_beside_its_shards(
    command: Command, tiny_folder: Path, tmp_path: Path, source: Path
) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in (2, 0, 1):
        (shards / f"{number}.txt").write_text(LINES[number] + "\n")
    (shards / ".hidden").write_text("x\n")
    (shards / "deeper").mkdir()
    out = tmp_path / "all.txt"
    arguments = ("--on", "local", "--output", out)
    for given in (("--input", shards), [shards / f"{n}.txt" for n in range(3)]):
        ended = command("translate", tiny_folder, *given, *arguments)
        assert ended.code == 0
        wanted = [p.text for p in weft.load(tiny_folder).translate(LINES[:3])]
        assert out.read_text("utf-8").split("\n")[:-1] == wanted
        assert len(set(wanted)) == 3
    assert "3 lines in 3 blocks (3 answered before), by this process" in ended.err
    manifest = json.loads((tmp_path / "all.txt.shards" / "manifest.json").read_text())
    names = [Path(each["path"]).name for each in manifest["inputs"]]
    assert names == ["0.txt", "1.txt", "2.txt"]
    out.write_text("lost")
    command("translate", tiny_folder, "--input", source, *arguments)
    assert out.read_text() == "lost"


def test_another_setting_or_model_is_refused(
    command: Command, tiny_folder: Path, tmp_path: Path, source: Path
) -> None:
    arguments = ("--input", source, "--on", "local", "--output", tmp_path / "out")
    assert command("translate", tiny_folder, *arguments).code == 0
    for options, named in (
        (("--beam-size", "1"), "settings"),
        (("--json",), "settings"),
        (("--block", "5"), "--block"),
    ):
        ended = command("translate", tiny_folder, *arguments, *options)
        assert (ended.code, len(ended.messages)) == (2, 1)
        assert f"out: was begun with another {named}; " in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--workers", "2"), 2, "--workers goes with --on"),
        (("--block", "2"), 2, "--block goes with --on"),
        (("--on", "ray:6379"), 2, "--on ray:6379: must be ray, ray://HOST:PORT or local"),
        (("--on", "local", "--workers", "2"), 2, "--workers: --on local is this process"),
        (("--on", "local"), 2, "--on reads files; give --input FILE"),
        (("--on", "local", "--input", "{in}"), 2, "--on needs --output"),
        (("--on", "local", "{gone}", "--output", "{out}"), 2, "no such file"),
        (("--on", "local", "--input", "{none}", "--output", "{out}"), 2, "there is no file"),
        (("--on", "local", "--input", "{in}", "--output", "{in}"), 2, "is the input itself"),
        (("--on", "local", "--input", "{in}", "--output", "{out}.jsonl"), 2, "give --json too"),
        (("--on", "local", "--input", "{some}", "--output", "{some}/all.txt"), 2, "among the files"),
        (("--on", "local", "--input", "{in}", "--output", "{some}"), 2, "has other files in it"),
        (("--on", "local", "--input", "{table}", "--output", "{out}"), 3, "not one text a line"),
        (("--on", "local", "--input", "{in}", "--output", "{out}", "--column", "a"), 2, "--column: --on takes"),
        (("--on", "local", "--input", "{in}", "--output", "{out}", "--review", "r.html"), 2, "--review: --on"),
        (("--on", "local", "--input", "{in}", "--output", "{out}", "--exhaustive", "2", "--beam-size", "2"), 2, "--"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    source: Path,
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "a.txt").write_text("cat\n")
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    names = {name: tmp_path / name for name in ("gone.txt", "none", "some", "out")}
    places = {
        "{in}": source,
        "{gone}": names["gone.txt"],
        "{none}": names["none"],
        "{some}": names["some"],
        "{out}": names["out"],
        "{table}": tmp_path / "in.csv",
    }
    words = list(arguments)
    for name, path in places.items():
        words = [word.replace(name, str(path)) for word in words]
    ended = command("translate", tiny_folder, *words)
    assert (ended.code, len(ended.messages)) == (code, 1)
    assert said in ended.err
    assert not (tmp_path / "out").exists()
