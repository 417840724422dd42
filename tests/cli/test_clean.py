"""weft clean: what it says, which files it writes, and which it refuses to write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.data import builtin

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return builtin.pairs("everyday", "en", "de").train[:300]


def write(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())
    return path


def test_pairs_are_cleaned_and_the_changes_listed(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    keep = (
        "--keep",
        "near-duplicates",
        "--keep",
        "strangers",
        "--keep",
        "length-ratio",
    )
    damaged = [*pairs, pairs[0], (f"{pairs[1][0]}<br>", f"{pairs[1][1]} Ja!")]
    source = write(tmp_path / "made.en-de.tsv", damaged)
    before = source.read_bytes()
    output = tmp_path / "clean.tsv"
    dry = command("clean", source, "--output", output, "--dry-run", *keep)
    assert not output.exists()
    ended = command("clean", source, "--output", output, *keep)
    assert ended.code == dry.code == 0
    assert ended.lines == dry.lines
    said = [line for line in ended.lines if " duplicates:" in line]
    assert said == ["      1 dropped duplicates: it has occurred before"]
    assert ended.lines[-1] == "302 pairs read, 301 kept, 1 dropped"
    assert source.read_bytes() == before
    assert output.read_text().startswith("en\tde\n")
    changes = (tmp_path / "clean.changes.tsv").read_text().split("\n")
    assert changes[0] == "done\trule\twhere\tsource\ttarget\tnew source\tnew target"
    assert changes[1].startswith(f"dropped\tduplicates\t{source}:301\t{pairs[0][0]}\t")
    assert changes[2].startswith(f"mended\tmarkup\t{source}:302\t{pairs[1][0]}<br>\t")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clean.changes.tsv",
        "clean.tsv",
        "made.en-de.tsv",
    ]
    again = command("clean", output, "--dry-run", "--json", *keep)
    assert json.loads(again.out)["rules"] == {}


def test_what_cannot_be_written_is_refused_before_anything(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    source = write(tmp_path / "made.en-de.tsv", pairs[:20])
    for output, said in (
        (source, "would be written over what is read"),
        (tmp_path / "missing" / "a.tsv", "there is no folder"),
        (tmp_path / "a.tmx", "pairs are written as .tsv, .csv or .jsonl"),
        (tmp_path, "is a folder"),
        (f"{tmp_path}/a,{tmp_path}/a", "is named twice"),
        (f"{tmp_path}/a,{tmp_path}/b,{tmp_path}/c", "name one file, or two"),
    ):
        ended = command("clean", source, "--output", output)
        assert ended.code in (2, 5), said
        assert said in ended.err
        assert ended.err.count("\n") == 1
    assert "--output is missing" in command("clean", source).err
    assert "no such rule" in command("clean", source, "--dry-run", "--drop", "x").err
    assert [path.name for path in tmp_path.iterdir()] == ["made.en-de.tsv"]


def test_what_weft_clean_did_not_write_is_not_replaced(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    source = write(tmp_path / "made.en-de.tsv", [*pairs, pairs[0]])
    output = write(tmp_path / "mine.tsv", pairs[:3])
    before = output.read_bytes()
    ended = command("clean", source, "--output", output)
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert f"{output}: exists already" in ended.err
    assert output.read_bytes() == before
    assert command("clean", source, "--output", output, "--dry-run").code == 0
    changes = tmp_path / "mine.changes.tsv"
    assert not changes.exists()
    output.rename(changes)
    assert (
        f"{changes}: exists already" in command("clean", source, "--output", output).err
    )
    changes.unlink()
    first = command("clean", source, "--output", output)
    assert first.code == 0
    assert "of an earlier cleaning" not in first.err
    # what an earlier cleaning wrote may be written anew, by other rules, too
    again = command("clean", source, "--output", output, "--keep", "duplicates")
    assert again.code == 0
    said = f"weft: {output}: of an earlier cleaning; will be replaced"
    assert again.messages[0] == said
    assert again.lines[-1] != first.lines[-1]


def test_rows_and_documents(command: Command, tmp_path: Path) -> None:
    rows = [(f"{'good' if n % 2 else 'bad'}", f"text {n} {n * n}") for n in range(60)]
    table = write(tmp_path / "r.tsv", [("label", "text"), *rows, rows[7]])
    ended = command(
        "clean", table, "--output", tmp_path / "out.tsv", "--keep", "near-duplicates"
    )
    assert ended.lines[-1] == "61 rows read, 60 kept, 1 dropped"
    assert (
        "are written as .csv or .tsv"
        in command("clean", table, "--output", tmp_path / "out.jsonl").err
    )
    text = tmp_path / "t.txt"
    text.write_text("one line\n\nanother one\n\none line\n")
    ended = command("clean", text, "--output", tmp_path / "o.txt")
    assert ended.lines[-1] == "3 documents read, 2 kept, 1 dropped"
    assert (tmp_path / "o.txt").read_text() == "one line\n\nanother one\n"
    text.write_text("one line\n<b>two</b>\n<br>\n\n<br>\n", "utf-8")
    ended = command("clean", text, "--output", tmp_path / "o.txt")
    assert [line for line in ended.lines if line[0] in " 2"] == [
        "      1 mended markup (lines): tags are taken out, references are the characters",
        "      2 dropped markup (lines): tags are taken out, references are the characters",
        "      1 dropped empty: there is no text, or none on one side",
        "2 documents read, 1 kept, 1 dropped",
    ]
    refused = command("clean", text, "--output", tmp_path / "o.txt", "--test", text)
    assert "are for pairs and labelled rows" in refused.err
