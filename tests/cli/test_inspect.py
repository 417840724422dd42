"""weft inspect in the terminal: a table, and where the whole is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import weft

Command = Callable[..., Any]
TEXT = "My sister is drinking tea in the kitchen."


def test_without_output_a_table_is_printed(command: Command) -> None:
    ended = command("inspect", weft.DEMO, TEXT)
    assert (ended.code, ended.messages) == (0, [])
    *table, blank, last = ended.lines
    assert blank == ""
    assert table == weft.load(weft.DEMO).inspect(TEXT).lines()
    assert last == "The whole, as a page: --output inside.html"
    assert max(map(cell_len, ended.lines)) <= 60
    (row,) = [line.split() for line in table if line.startswith("喝")]
    assert row[4] == "drinking"


def test_notes_stand_beside_it(command: Command) -> None:
    ended = command("inspect", weft.DEMO, f"{TEXT} {TEXT}")
    assert ended.code == 0
    (note,) = ended.messages
    assert note.startswith("weft: the text is translated in 2 segments; ")


def test_words_that_training_never_had_are_named_as_weft_translate_names_them(
    command: Command,
) -> None:
    text = "I am hungry."
    ended = command("inspect", weft.DEMO, text)
    (note,) = ended.messages
    assert note == (
        "weft: 1 word was never seen in training: hungry; the model guesses there"
    )
    translated = command("translate", weft.DEMO, text)
    assert note.removeprefix("weft: ") in translated.messages[0]


def test_every_task_has_its_table(
    command: Command, tiny_models: dict[str, Path]
) -> None:
    for name, head in (("plays", "looked at"), ("languages", "label")):
        ended = command("inspect", tiny_models[name], "What say you?")
        assert ended.code == 0, name
        assert any(head in line for line in ended.lines), name
        assert max(map(cell_len, ended.lines)) <= 60, name


@pytest.mark.parametrize("more", [(), ("--live",)])
def test_a_beam_where_nothing_is_searched_for_is_refused_as_an_option(
    command: Command, tiny_models: dict[str, Path], tmp_path: Path, more: tuple[str]
) -> None:
    asked = ("--beam-size", "2", "--output", tmp_path / "x.html", *more)
    ended = command("inspect", tiny_models["plays"], "What say you?", *asked)
    assert ended.code == 2
    assert ended.messages[-1].startswith("weft: --beam-size is for translation;")


def test_with_json_the_data_are_printed(command: Command) -> None:
    ended = command("inspect", weft.DEMO, TEXT, "--json")
    data = json.loads(ended.out)
    assert (data["format"], data["text"]) == ("weft-inspection", TEXT)


# The model that comes with Weft
# --------------------------------------------------------------------------------------


def test_the_model_that_comes_with_weft_needs_no_folder(
    command: Command, tmp_path: Path
) -> None:
    assert (
        command("inspect", "--demo", TEXT).out
        == command("inspect", weft.DEMO, TEXT).out
    )
    page = tmp_path / "inside.html"
    ended = command("inspect", "--demo", TEXT, "--live", "--output", page)
    assert (ended.code, ended.messages[-1]) == (0, f"written to {page}")
    both = command("inspect", "--demo", TEXT, "Tom ate.", "--json")
    assert json.loads(both.out)["names"] == [TEXT, "Tom ate."]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "weft inspect --demo needs a sentence in English"),
        (("HERE",), "HERE is a folder: leave out one of them"),
        (("HERE", TEXT), "HERE is a folder: leave out one of them"),
        ((TEXT, "HERE"), "HERE is a folder: leave out one of them"),
        ((TEXT, "--checkpoints"), "has kept no steps of its run"),
    ],
)
def test_what_it_does_not_go_with_is_refused_in_a_line(
    command: Command, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    words = [word.replace("HERE", str(tmp_path)) for word in more]
    ended = command("inspect", "--demo", *words)
    assert (ended.code, ended.out, len(ended.messages)) == (2, b"", 1)
    assert said.replace("HERE", str(tmp_path)) in ended.messages[0]
