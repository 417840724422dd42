"""--on of check and clean: a large text goes to workers in blocks, and comes to the same."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.data import builtin, crew

Command = Callable[..., Any]


@pytest.fixture
def text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_from: Callable[[int, int], None],
) -> Path:
    """A text that counts as large, with things to mend and to drop, in stretches of 50."""
    large_from(100, 50)
    monkeypatch.setenv(crew.VARIABLE, "1")
    pairs = builtin.pairs("everyday", "en", "de").train[:230]
    pairs[30] = pairs[3]
    pairs[70] = (pairs[70][0], f"<b>{pairs[70][1]}</b>")
    pairs[90] = (pairs[90][0], "")
    path = tmp_path / "made.en-de.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), "utf-8")
    return path


def test_cleaned_text_is_that_of_the_verb_alone(
    command: Command, tmp_path: Path, text: Path
) -> None:
    alone = command("clean", text, "--output", tmp_path / "alone.tsv")
    assert alone.code == 0
    on = ("--on", "local", "--block", "100")
    ended = command("clean", text, "--output", tmp_path / "on.tsv", *on)
    assert (ended.code, ended.lines) == (0, alone.lines)
    assert "weft: mend: 3 blocks, by this process\n" in ended.err
    for name in (".tsv", ".changes.tsv"):
        wanted = (tmp_path / f"alone{name}").read_bytes()
        assert (tmp_path / f"on{name}").read_bytes() == wanted
    assert not list(tmp_path.glob("*.work"))


def test_shards_have_the_text_in_order_and_a_manifest(
    command: Command, tmp_path: Path, text: Path
) -> None:
    command("clean", text, "--output", tmp_path / "alone.tsv")
    folder = tmp_path / "cleaned"
    on = ("--on", "local", "--block", "100")
    assert command("clean", text, "--output", folder, *on).code == 0
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    lines = []
    for shard in manifest["shards"]:
        content = (folder / shard["shard"]).read_bytes()
        entry = manifest["files"][shard["shard"]]
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        head, *rows = content.decode("utf-8").split("\n")[:-1]
        assert (head, len(rows)) == ("en\tde", shard["rows"])
        assert shard["first"] == len(lines) + 1
        lines += rows
    head, *wanted = (tmp_path / "alone.tsv").read_text("utf-8").split("\n")[:-1]
    assert lines == wanted
    assert len(manifest["shards"]) == -(-len(lines) // 100)
    names = {path.name for path in folder.iterdir()}
    assert names == {*manifest["files"], "manifest.json"}
    changes = (tmp_path / "cleaned.changes.tsv").read_bytes()
    assert changes == (tmp_path / "alone.changes.tsv").read_bytes()
    (read,) = manifest["inputs"]
    assert read["sha256"] == hashlib.sha256(text.read_bytes()).hexdigest()
    assert {"001-mend", "002-measure", "003-check"} <= {
        block["work"] for block in manifest["blocks"]
    }
    checked = command("check", folder, "--json")
    assert json.loads(checked.out)["parts"]["train"]["rows"] == len(lines)
    again = command("clean", text, "--output", folder, *on)
    assert (again.code, "give a new folder for the shards" in again.err) == (2, True)


def test_a_check_finds_the_same(command: Command, tmp_path: Path, text: Path) -> None:
    alone = command("check", text, "--json")
    ended = command("check", text, "--json", "--on", "local")
    assert (ended.code, ended.out) == (alone.code, alone.out)
    assert "weft: check: 1 block, by this process\n" in ended.err
    report = tmp_path / "report.json"
    ended = command("check", text, "--output", report, "--on", "local")
    assert json.loads(report.read_text("utf-8")) == json.loads(alone.out)
    assert not list(tmp_path.glob("*.work"))


def test_what_is_not_divided_is_said_or_refused(
    command: Command,
    tmp_path: Path,
    text: Path,
    large_from: Callable[[int, int], None],
) -> None:
    (tmp_path / "t.txt").write_text("one line\n\nanother one\n")
    (tmp_path / "terms.csv").write_text("en,de,inflection\ncat,Katze,n\n")
    for arguments, said in (
        (("check", tmp_path / "t.txt", "--on", "local"), "pairs alone are divided"),
        (("check", tmp_path / "terms.csv", "--on", "local"), "is a glossary"),
        (("check", text, "--workers", "2"), "--workers goes with --on"),
        (("clean", text, "--dry-run", "--on", "here"), "--on here: must be ray"),
    ):
        ended = command(*arguments)
        assert (ended.code, len(ended.messages)) == (2, 1)
        assert said in ended.err
    large_from(100_000, 50)
    ended = command("clean", text, "--dry-run", "--on", "local")
    assert "no text of 100,000 pairs or more: nothing was divided" in ended.err
