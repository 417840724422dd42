"""weft check: what it says of sound and of damaged text, in which form, and the code that it ends
with.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from weft.data import builtin

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return builtin.pairs("everyday", "en", "de").train[:1200]


def write(path: Path, rows: list[tuple[str, ...]], head: str = "") -> Path:
    path.write_bytes((head + "".join("\t".join(row) + "\n" for row in rows)).encode())
    return path


def test_sound_text_ends_with_0(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    ended = command("check", write(tmp_path / "p.en-de.tsv", pairs))
    assert (ended.code, ended.err) == (0, "")
    assert (
        " looks like pairs of sentences: a translator; else name another --recipe"
        in ended.lines[0]
    )
    assert ended.lines[1].startswith("train: 1,200 rows; en to de; median length: ")
    assert "|rules:2|order:" in ended.lines[1]
    assert ended.lines[-1].startswith("fatal: 0, warnings: 0, notes: ")
    assert ended.lines[-1].endswith("; ready for training")


def test_two_files_side_by_side_may_be_meant_as_pairs(
    command: Command, tmp_path: Path
) -> None:
    files = [
        str(write(tmp_path / name, [("one line",), ("and another",)]))
        for name in ("t.en", "t.de")
    ]
    ended = command("check", *files)
    assert (
        ended.lines[1]
        == f"if the two files translate each other, join them by a comma: {','.join(files)}"
    )
    assert ended.lines[-1].endswith("; ready for training, but see the warnings")


def test_what_is_fatal_comes_first_and_ends_with_3(
    process: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path / "p.en-de.tsv"
    copies = [(src, src) for src, _ in pairs[:30]]
    shifted = [(src, tgt) for (src, _), (_, tgt) in pairwise(pairs)]
    ended = process("check", write(path, [*pairs[:500], *shifted[500:], *copies]))
    assert (ended.code, ended.err) == (3, "")
    first = ended.lines.index("") + 1
    assert ended.lines[first].startswith(
        f"FATAL    shifted-lines (train): {path}:501: from here to {path}:1199"
    )
    assert (
        ended.lines[first + 1]
        .strip()
        .startswith("look there for a line that is missing")
    )
    shown = f"{path}:501 (to line 1199, 1 line earlier): {pairs[500][0]}"
    assert ended.lines[first + 2].strip().startswith(shown)
    severities = [
        line.split(" ")[0]
        for line in ended.lines
        if line.split(" ")[0] in ("FATAL", "WARNING", "NOTE")
    ]
    assert severities == sorted(severities, key=["FATAL", "WARNING", "NOTE"].index)
    assert {"FATAL", "NOTE"} <= set(severities)
    assert ended.lines[-1].endswith("; this text would spoil training")


def test_json_says_the_same(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    data = write(tmp_path / "p.en-de.tsv", [*pairs, pairs[3]])
    test = write(tmp_path / "t.en-de.tsv", pairs[:25])
    ended = command("check", data, "--test", test, "--json")
    assert ended.code == 3
    (line,) = ended.lines
    found = json.loads(line)
    assert (found["task"], found["verdict"]) == (
        "translation",
        "this text would spoil training",
    )
    assert set(found["parts"]) == {"train", "test"}
    column = found["parts"]["train"]["columns"]["source"]["characters"]
    assert (
        sum(b["count"] for b in column["histogram"])
        == found["parts"]["train"]["rows"]
        == 1201
    )
    assert column["total"] == sum(len(src) for src, _ in [*pairs, pairs[3]])
    by_code = {finding["code"]: finding for finding in found["findings"]}
    assert by_code["test-in-training"]["severity"] == "fatal"
    assert (
        by_code["test-in-training"]["part"],
        by_code["test-in-training"]["count"],
    ) == ("test", 25)
    assert by_code["duplicates"]["examples"][0]["where"] == f"{data}:1201"
    assert by_code["duplicates"]["lines"] == {str(data): [1201]}
    assert by_code["test-in-training"]["lines"] == {str(test): list(range(1, 26))}
    assert found["counts"]["fatal"] == 1


@pytest.mark.parametrize("name", ["r.html", "r.json"])
def test_a_report_is_written_beside(
    command: Command, tmp_path: Path, pairs: list[Any], name: str
) -> None:
    ended = command(
        "check", write(tmp_path / "p.tsv", pairs), "--output", tmp_path / name
    )
    assert (ended.code, ended.messages) == (0, [f"written to {tmp_path / name}"])
    assert ended.lines
    content = (tmp_path / name).read_text("utf-8")
    assert content.startswith(
        "<!doctype html>" if name.endswith("html") else '{"task": "translation"'
    )


def test_unreadable_files_do_not_hide_each_other(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    sound = write(tmp_path / "sound.tsv", pairs)
    (tmp_path / "latin.tsv").write_bytes("a\tMäuse\n".encode("latin-1"))
    (tmp_path / "notab.tsv").write_bytes(b"a\tb\nno tab\n")
    ended = command(
        "check",
        tmp_path / "latin.tsv",
        sound,
        tmp_path / "notab.tsv",
        tmp_path / "none.tsv",
    )
    assert (ended.code, ended.err) == (3, "")
    fatal = [
        line for line in ended.lines if line.startswith("FATAL    unreadable (train): ")
    ]
    assert len(fatal) == 3
    assert any(
        "latin.tsv:1: not UTF-8 at the text's byte 3 (0xE4)" in line for line in fatal
    )
    assert any(
        "notab.tsv:2: 1 columns" in line or "notab.tsv:2: no TAB" in line
        for line in fatal
    )
    assert any("none.tsv: no such file" in line for line in fatal)
    assert any(line.startswith("train: 1,200 rows") for line in ended.lines), (
        "the sound one is looked at"
    )


def test_a_language_in_the_settings_says_that_a_table_holds_pairs(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "p.csv"
    path.write_text("a;b\n" + "".join(f"dog{i};hund{i}\n" for i in range(30)))
    assert "looks like labelled rows" in command("check", path).lines[0]
    settings = ("--set", "data.src_lang=en", "--set", "data.tgt_lang=kos")
    ended = command("check", path, *settings)
    assert (ended.code, "unknown key" in ended.err) == (0, False)
    assert ended.lines[0].startswith(
        "data.src_lang is set, so this is for pairs of sentences: a translator; else"
    )
    assert ended.lines[1].startswith("train: 30 rows; en to kos; ")


def test_rows(command: Command, tmp_path: Path) -> None:
    rows = [
        (f"the text of number {i} is like this", "good" if i % 2 else "bad")
        for i in range(300)
    ]
    rows[7] = (rows[7][0], "Good ")
    data = write(tmp_path / "r.tsv", rows, "text\tlabel\n")
    ended = command("check", data)
    assert ended.code == 0
    assert "looks like labelled rows: a classifier" in ended.lines[0]
    assert any(
        line.startswith(f"WARNING  label-variants (train): {data}:9: ")
        for line in ended.lines
    )
    other = write(tmp_path / "q.tsv", rows, "text\tkind\n")
    ended = command("check", other)
    assert ended.code == 3
    assert "columns: text, kind" in "".join(ended.lines)
    assert command("check", other, "--set", "data.label_column=kind").code == 0
    named = command("check", data, "--recipe", "classify-fast")
    assert (named.code, "looks like" in named.lines[0]) == (0, False)


def test_documents(command: Command, tmp_path: Path) -> None:
    text = "\n\n".join(
        src for src, _ in builtin.pairs("everyday", "en", "de").train[:300]
    )
    (tmp_path / "book.txt").write_text(text, "utf-8")
    ended = command("check", tmp_path / "book.txt")
    assert (ended.code, "running text: a language model" in ended.lines[0]) == (0, True)
    assert ended.lines[1].startswith("train: 300 rows; median length: text ")
    news = tmp_path / "news.txt"
    news.write_text(text.replace("\n\n", "\n"), "utf-8")
    hint = "if each line is a sentence, as in text for weft train --mono: --set data.documents=line"
    assert hint not in ended.lines
    assert hint in command("check", news).lines
    by_line = command("check", news, "--set", "data.documents=line").lines
    assert hint not in by_line
    assert any(line.startswith("train: 300 rows; ") for line in by_line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "no-such"], "neither a file nor a packaged recipe"),
        (["--output", "r.pdf"], "must end in"),
        (["--set", "data.txt_column=x"], "unknown key"),
    ],
)
def test_wrong_usage(
    command: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    ended = command("check", write(tmp_path / "p.tsv", [("a", "b")]), *arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert message in ended.err


def test_a_terminal_shows_few_examples_and_says_where_the_others_are(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    rows = "".join(
        f"the text <b>number</b> {i} is like this\t{'good' if i % 2 else 'bad'}\n"
        for i in range(300)
    )
    (tmp_path / "r.tsv").write_text(
        f"text\tlabel\n{rows}" + "the same text again\tgood\n" * 9
    )
    ended = command("check", tmp_path / "r.tsv")
    blocks = "\n".join(ended.lines).split("\n\n")[1:-1]
    assert blocks
    for block in blocks:
        examples = [line for line in block.split("\n") if line.startswith(" " * 11)]
        assert len(examples) <= (1 if block.startswith("NOTE") else 3), block
    assert (
        " more examples, all line numbers, lengths and scripts: --output report.html"
        in ended.lines[-2]
    )


def test_a_glossary_is_checked_as_one(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "terms.csv"
    row = "cat,Katze,\n"
    path.write_text(f"source,target,avoid\n{row * 30}")
    ended = command("check", path)
    assert (ended.code, len(ended.lines), ended.err) == (0, 23, "")
    first, doubt, *_, more, use = ended.lines
    assert first.startswith(f"{path}: a glossary of 30 terms, 0 with inflection")
    assert doubt == f"{path}:3: cat stands in {path}:2, too, with the same target"
    assert more == "9 more such terms: --json"
    assert use == f"weft translate FOLDER TEXT --glossary {path} uses it"
    found = json.loads(command("check", path, "--json").out)
    assert (found["num_terms"], len(found["doubts"])) == (30, 29)
    refused = command("check", path, "--output", tmp_path / "r.html")
    assert (refused.code, "is a glossary, of which no page is made" in refused.err) == (2, True)  # fmt: skip


def test_memories_terms_and_documents_say_how_they_are_used(
    command: Command, tmp_path: Path
) -> None:
    memory = tmp_path / "old.tmx"
    unit = '<tu><tuv xml:lang="en"><seg>a cat</seg></tuv><tuv xml:lang="de"><seg>eine Katze</seg></tuv></tu>'
    memory.write_text(f'<tmx version="1.4"><header/><body>{unit}</body></tmx>')
    use = (
        f"as a translation memory, weft translate FOLDER TEXT --memory {memory} uses it"
    )
    assert use in command("check", memory).lines
    terms = tmp_path / "terms.tsv"
    terms.write_text("cat\tKatze\ndog\tHund\n")
    how = f"weft translate FOLDER TEXT --glossary {terms} uses it"
    use = f"if these are terms, what is said of training does not count: {how}"
    assert use in command("check", terms).lines
    terms.write_text(
        "a cat that sleeps all day\teine Katze, die den ganzen Tag schläft\n"
    )
    assert not any("--glossary" in line for line in command("check", terms).lines)
    document = tmp_path / "a.docx"
    document.write_bytes(b"PK\x03\x04")
    ended = command("check", document)
    assert (ended.code, ended.out) == (3, b"")
    assert ended.err.endswith(f"weft translate FOLDER {document} translates it\n")


def test_every_row_without_a_label_is_named_and_the_rest_is_checked(
    command: Command, tmp_path: Path
) -> None:
    rows = [
        (f"text {i} is about {i * i}", "good" if i % 2 else "bad") for i in range(300)
    ]
    for place, missing in ((7, ""), (40, "nan"), (41, " ")):
        rows[place] = (rows[place][0], missing)
    rows[60] = rows[50]
    data = write(tmp_path / "r.tsv", rows, "text\tlabel\n")
    ended = command("check", data)
    assert ended.code == 3
    said = f"FATAL    no-label (train): {data}:9: no label (3 rows have none: empty, nan or null)"
    assert said in ended.lines
    for line in (9, 42, 43):
        assert f"{data}:{line}: text {line - 2} is about" in ended.out.decode()
    assert any(" duplicates (train): " in line for line in ended.lines)
    assert any(line.startswith("train: 297 rows") for line in ended.lines)
    assert any(f"weft clean {data} --output FILE" in line for line in ended.lines)
    (tmp_path / "clean.tsv").unlink(missing_ok=True)
    assert command("clean", data, "--output", tmp_path / "clean.tsv").code == 0
    assert "no-label" not in command("check", tmp_path / "clean.tsv").out.decode()
    write(data, [(text, "") for text, _ in rows], "text\tlabel\n")
    (fatal,) = [line for line in command("check", data).lines if "FATAL" in line]
    assert "unreadable (train)" in fatal
    assert "no label (300 rows have none" in fatal


def test_weights_and_tags_where_they_mean_nothing(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    table = write(tmp_path / "p.en-de.tsv", pairs[:50])
    book = tmp_path / "book.txt"
    book.write_text("One line.\n\nAnother one.\n", "utf-8")
    assert command("check", f"{table}@2:news").code == 0
    for arguments, said in (
        (["check", table, "--test", f"{table}@2"], f"give {table} alone"),
        (["check", f"{book}@2"], "weight 2: weights and tags are for pairs"),
        (["clean", f"{table}@2:x", "--dry-run"], f"give {table} alone"),
        (["clean", table, "--dry-run", "--dev", f"{table}@:x"], f"give {table} alone"),
        (["train", table, "--dev", f"{table}@3"], f"give {table} alone"),
    ):
        ended = command(*arguments)
        assert ended.code == 2, ended.err
        assert said in ended.messages[-1]


def test_dev_is_checked_where_the_training_text_cannot_be_read(
    command: Command, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    (tmp_path / "notab.tsv").write_bytes(b"a\tb\nno tab\n")
    dev = write(tmp_path / "dev.tsv", pairs[:50])
    ended = command("check", tmp_path / "notab.tsv", "--dev", dev)
    assert (ended.code, ended.err) == (3, "")
    assert any(line.startswith("dev: 50 rows") for line in ended.lines)
