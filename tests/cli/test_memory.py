"""weft translate --memory: what is taken and what is near, for lines and documents."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft import DEMO
from weft.folder import durable

Command = Callable[..., Any]
TEA = "Anna drinks tea in the library."
BOOKS = "The teacher reads 37 books."
BICYCLE = "The teacher bought a bicycle."
REPAIRED = "its translation is taken with the numbers of this text"
UNITS = f"""{TEA}\t喝茶。
{BOOKS.replace("37", "12")}\t老师读12本书。
The teacher bought a book.\t买书。
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.tsv"
    path.write_text(UNITS, "utf-8")
    return path


def test_lines_are_taken_and_counted(
    command: Command, old: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text(f"{TEA}\n{BOOKS}\n{BICYCLE}\n{BICYCLE} {TEA}\n", "utf-8")
    plain = command("translate", DEMO, "--input", lines)
    ended = command("translate", DEMO, "--input", lines, "--memory", old)
    assert ended.code == 0
    assert ended.lines[:2] == ["喝茶。", "老师读37本书。"]
    assert ended.lines[2] == plain.lines[2]
    assert ended.lines[3] == f"{plain.lines[2]}喝茶。"
    assert ended.err.strip().split("\n") == [
        f"weft: line 2: memory: {old}:2 has 'The teacher reads 12 books.'; {REPAIRED}",
        f"weft: line 3: near (83%): {old}:3 has 'The teacher bought a book.': '买书。'",
        f"weft: line 4: near (83%): {old}:3 has 'The teacher bought a book.': '买书。'",
        *(line for line in ended.err.split("\n") if "less sure" in line),
        "weft: memory: 2 of 4 texts taken (1 with other numbers), 1 in part, near matches for 1 more",
    ]
    assert "memory" not in plain.err


def test_json_has_every_match_with_its_place(command: Command, old: Path) -> None:
    text = f"{BICYCLE} {TEA}"
    ended = command("translate", DEMO, text, "--memory", old, "--json")
    found = json.loads(ended.lines[0])["memory"]
    near, exact = found
    assert [text[use["start"] : use["end"]] for use in found] == [BICYCLE, TEA]
    assert (near["score"], near["taken"]) == (pytest.approx(5 / 6), False)
    assert exact == {
        "start": len(BICYCLE) + 1,
        "end": len(text),
        "source": TEA,
        "target": "喝茶。",
        "score": 1.0,
        "kind": "exact",
        "where": f"{old}:1",
        "taken": True,
    }


def test_a_later_file_wins_and_that_is_said(
    command: Command, old: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.tsv"
    new.write_text(f"{TEA}\t安娜喝茶。\n", "utf-8")
    ended = command("translate", DEMO, TEA, "--memory", old, "--memory", new)
    assert ended.lines == ["安娜喝茶。"]
    assert f"weft: {old}:1: {new}:1 has another target for its source" in ended.err


def test_numbers_that_a_unit_has_otherwise_are_told(
    command: Command, tmp_path: Path
) -> None:
    old = tmp_path / "old.tsv"
    old.write_text(f"{BOOKS}\t老师读512本书。\n", "utf-8")
    ended = command("translate", DEMO, BOOKS, "--memory", old)
    assert ended.lines == ["老师读512本书。"]
    assert "weft: line 1: numbers: the source has 37, the translation 512" in ended.err


def test_what_a_glossary_doubts_stands_in_the_file(
    command: Command, old: Path, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("tea\t茶叶\n", "utf-8")
    messages = tmp_path / "app.po"
    messages.write_text(f'msgid ""\nmsgstr ""\n\nmsgid "{TEA}"\nmsgstr ""\n', "utf-8")
    command("translate", DEMO, messages, "--memory", old, "--glossary", terms)
    written = (tmp_path / "app.zh.po").read_text("utf-8")
    said = f"Term tea ({terms}:1): missing; the unit of the memory has it so."
    assert f"# Translation memory: {said}\n#, fuzzy\n" in written


def test_documents_have_their_tags_round_the_words_of_a_unit(
    command: Command, old: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    head = '<meta charset="utf-8">'
    marked = TEA.replace("tea", "<b>tea</b>")
    page.write_text(f"{head}<p>{marked}</p><p>{BOOKS}</p><p>{BICYCLE}</p>", "utf-8")
    ended = command("translate", DEMO, page, "--memory", old)
    assert ended.code == 0
    written = (tmp_path / "page.zh.html").read_text("utf-8")
    assert "<p>老师读37本书。</p>" in written
    assert written.replace("<b>", "").replace("</b>", "").count("喝茶。") == 1
    assert "<b>" in written
    said = "weft: memory: 2 of 3 texts taken (1 with other numbers), near matches for 1 more"
    assert said in ended.err


def test_formats_of_translators_say_what_came_from_where(
    command: Command, old: Path, tmp_path: Path
) -> None:
    messages = tmp_path / "app.po"
    entries = "".join(
        f'msgid "{text}"\nmsgstr ""\n\n' for text in (TEA, BOOKS, BICYCLE)
    )
    messages.write_text(f'msgid ""\nmsgstr ""\n\n{entries}', "utf-8")
    ended = command("translate", DEMO, messages, "--memory", old, "--json")
    assert ended.code == 0
    objects = [json.loads(line) for line in ended.lines]
    assert [one["memory"][0]["kind"] for one in objects] == ["exact", "repaired", "near"]  # fmt: skip
    written = (tmp_path / "app.zh.po").read_text("utf-8")
    assert f'\nmsgid "{TEA}"\nmsgstr "喝茶。"\n' in written
    assert "# Translation memory: With other numbers than in" in written
    assert f"# Translation memory, {old}:3 (83%): The teacher bought a book." in written
    # the same command again continues a whole file, and another memory makes another one
    assert ended.err.count("memory: 2 of 3 texts taken") == 1


def test_the_same_message_with_its_markup_is_taken_as_it_stood(
    command: Command, tmp_path: Path
) -> None:
    old = tmp_path / "old.po"
    message = "Anna drinks {0} in {1} the library."
    unit = f'msgid "{message}"\nmsgstr "{{1}} {{0}} 喝茶。"\n'
    old.write_text(
        f'{unit}\nmsgid "{message.replace("{1}", "{2}")}"\nmsgstr "{{2}} 茶 {{0}}"\n',
        "utf-8",
    )
    new = tmp_path / "new.po"
    head = 'msgid ""\nmsgstr ""\n\n'
    new.write_text(f'{head}msgid "{message}"\nmsgstr ""\n', "utf-8")
    assert command("translate", DEMO, new, "--memory", old).code == 0
    assert (tmp_path / "new.zh.po").read_text("utf-8") == head + unit


def test_units_with_markup_are_found_for_segments_with_other_markup(
    command: Command, tmp_path: Path
) -> None:
    old = tmp_path / "old.po"
    old.write_text(
        'msgid "Anna drinks <b>tea</b> in {0} the library."\nmsgstr "安娜在{0}图书馆喝<b>茶</b>。"\n',
        "utf-8",
    )
    page = tmp_path / "page.html"
    head = '<meta charset="utf-8">'
    page.write_text(f"{head}<p>{TEA.replace('tea', '<i>tea</i>')}</p>", "utf-8")
    ended = command("translate", DEMO, page, "--memory", old, "--json")
    (one,) = map(json.loads, ended.lines)
    assert one["text"] == "安娜在图书馆喝茶。"
    assert [use["where"] for use in one["memory"]] == [f"{old}:1"]
    assert "<i>" in (tmp_path / "page.zh.html").read_text("utf-8")
    # lines are text as it stands
    ended = command("translate", DEMO, TEA, "--memory", old, "--json")
    assert not any(use["taken"] for use in json.loads(ended.lines[0])["memory"])


@pytest.fixture
def reading(tmp_path: Path) -> Path:
    """A model that reads literals."""
    folder = tmp_path / "reading"
    shutil.copytree(DEMO, folder)
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(config | {"kept_forms": ["``a"]}), "utf-8")
    manifest = json.loads((folder / durable.MANIFEST).read_text("utf-8"))
    durable.write_manifest(folder, manifest["files"])
    return folder


def test_units_are_read_as_the_model_reads_documents(
    command: Command, reading: Path, tmp_path: Path
) -> None:
    units = {
        "Anna drinks ``tea`` in *the* library.": "安娜 在 *图书馆* 喝 ``tea`` 。",
        "The teacher bought ``x``.": "买 ``x`` 。",
    }
    others = ["Anna drinks ``milk`` in *the* library.", "The teacher bought ``y``."]
    old = tmp_path / "old.tsv"
    old.write_text("".join(f"{a}\t{b}\n" for a, b in units.items()), "utf-8")
    head = 'msgid ""\nmsgstr ""\n\n'
    new = tmp_path / "new.po"
    entries = (f'msgid "{text}"\nmsgstr ""\n' for text in (*units, *others))
    new.write_text(head + "\n".join(entries), "utf-8")
    ended = command("translate", reading, new, "--memory", old, "--json")
    assert ended.code == 0
    written = (tmp_path / "new.zh.po").read_text("utf-8")
    for source, target in units.items():
        assert f'msgid "{source}"\nmsgstr "{target}"\n' in written
    objects = [json.loads(line) for line in ended.lines]
    taken = [any(use["taken"] for use in one["memory"]) for one in objects]
    assert taken == [True, True, False, False]
    # the nearest ones are offered with what is in them
    assert [one["memory"][0]["where"] for one in objects[2:]] == [
        f"{old}:1",
        f"{old}:2",
    ]
    for name in ("milk", "y"):
        assert written.count(f"``{name}``") == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.tsv", "", "empty"),
        ("a.po", 'msgid "a"\nmsgstr ""\n', "no unit with text on both sides"),
        ("a.docx", "no text", "an office document"),
    ],
)
def test_what_is_no_memory_is_one_line(
    command: Command, tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content, "utf-8")
    ended = command("translate", DEMO, TEA, "--memory", path)
    assert (ended.code, ended.lines) == (3, [])
    assert said in ended.err
    assert len(ended.err.strip().split("\n")) == 1


def test_a_memory_in_other_languages_is_refused(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "old.tmx"
    path.write_text(
        '<tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>a</seg></tuv>'
        '<tuv xml:lang="de"><seg>b</seg></tuv></tu></body></tmx>',
        "utf-8",
    )
    ended = command("translate", DEMO, TEA, "--memory", path)
    assert (ended.code, ended.lines) == (3, [])
    assert "no segments in zh" in ended.err


def test_a_memory_that_is_missing_or_two_in_one_is_refused(
    command: Command, old: Path, tmp_path: Path
) -> None:
    asked = ("translate", DEMO, TEA, "--memory")
    ended = command(*asked, tmp_path / "olt.tsv")
    said = f"--memory {tmp_path / 'olt.tsv'}: no such file; did you mean {old}?"
    assert (ended.code, ended.messages) == (2, [f"weft: {said}"])
    for name in ("a.tmx", "b.tmx"):
        (tmp_path / name).write_text("<tmx/>")
    first, second = tmp_path / "a.tmx", tmp_path / "b.tmx"
    ended = command(*asked, f"{first},{second}")
    each = f"give --memory {first} --memory {second}"
    assert (ended.code, ended.err.endswith(f"{each}\n")) == (2, True)


def test_a_memory_of_the_other_direction_says_nothing_of_training(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "old.tmx"
    path.write_text(
        '<tmx version="1.4"><header srclang="zh"/><body><tu><tuv xml:lang="zh"><seg>喝茶。</seg></tuv>'
        f'<tuv xml:lang="en"><seg>{TEA}</seg></tuv></tu></body></tmx>',
        "utf-8",
    )
    ended = command("translate", DEMO, TEA, "--memory", path)
    assert (ended.code, ended.lines) == (0, ["喝茶。"])
    said = "its header names zh as the source language, but it is read as en to zh"
    assert f"weft: {path}: {said}\n" in ended.err
    evaluated = command("evaluate", DEMO, path, "--memory", path)
    assert (evaluated.code, "data.memory" in evaluated.err) == (2, False)
    assert "weft translate FOLDER TEXT --memory FILE takes one" in evaluated.err


def test_near_units_of_a_document_stand_with_their_place(
    command: Command, old: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    lines = [
        f"<p>The teacher bought a {word}.</p>"
        for word in ("bicycle", "cat", "dog", "bag", "pen", "cup")
    ]
    page.write_text("\n".join(['<meta charset="utf-8">', *lines]), "utf-8")
    ended = command("translate", DEMO, page, "--memory", old)
    near = [line for line in ended.messages if ": near (" in line]
    unit = f"{old}:3 has 'The teacher bought a book.': '买书。'"
    assert near == [f"weft: line {n}: near (83%): {unit}" for n in range(2, 7)]
    assert (
        "weft: 1 more near matches; --json or --review lists them all" in ended.messages
    )
