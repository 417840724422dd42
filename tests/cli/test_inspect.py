"""weft inspect in the terminal: a table, and where the whole is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_every_task_has_its_table(
    command: Command, tiny_models: dict[str, Path]
) -> None:
    for name, head in (("plays", "looked at"), ("languages", "label")):
        ended = command("inspect", tiny_models[name], "What say you?")
        assert ended.code == 0, name
        assert any(head in line for line in ended.lines), name
        assert max(map(cell_len, ended.lines)) <= 60, name


def test_with_json_the_data_are_printed(command: Command) -> None:
    ended = command("inspect", weft.DEMO, TEXT, "--json")
    data = json.loads(ended.out)
    assert (data["format"], data["text"]) == ("weft-inspection", TEXT)
