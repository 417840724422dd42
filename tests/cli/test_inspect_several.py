"""weft inspect with several sentences, two models or the steps of a run: what is written, and what
is refused in one line.
"""

import base64
import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TEXT = "cat sees dog."
Command = Callable[..., Any]


def data_of(ended: Any) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def data_in(page: Path) -> str:
    """The data that a page unpacks."""
    start = 'id="data">'
    text = page.read_text("utf-8")
    block = text[text.index(start) + len(start) :].partition("</script>")[0]
    return zlib.decompress(base64.b64decode(block), -zlib.MAX_WBITS).decode()


def test_the_second_argument_is_a_model_where_it_is_a_folder(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(tiny_folder, tmp_path / "other")
    data = data_of(command("inspect", tiny_folder, other, TEXT, "--json"))
    assert (data["kind"], data["pair"]) == ("models", [0, 1])
    assert data["names"] == [str(tiny_folder), str(other)]
    assert data["inspections"][0] == data["inspections"][1]
    single = data_of(command("inspect", tiny_folder, TEXT, "--json"))
    assert data["inspections"][0] == single


def test_several_sentences_and_another_beam(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    texts = (TEXT, "bird likes mouse.")
    asked = ("inspect", tiny_folder, *texts, "--beam-size", "2")
    data = data_of(command(*asked, "--json"))
    assert data["names"] == [*texts]
    assert [one["beam"]["beam_size"] for one in data["inspections"]] == [2, 2]
    page = tmp_path / "page.html"
    ended = command(*asked, "--output", page)
    assert ended.code == 0
    assert ended.messages[-1] == f"written to {page}"
    assert '"weft-inspections"' in data_in(page)


def test_the_steps_of_a_run(command: Command, tiny_folder: Path) -> None:
    """This run has kept its newest two alone, as runs do that are not asked for more."""
    data = data_of(command("inspect", tiny_folder, TEXT, "--checkpoints", "--json"))
    assert data["kind"] == "checkpoints"
    kept = (tiny_folder / "run" / "checkpoints").glob("step-*")
    assert data["steps"] == sorted(int(path.name[5:]) for path in kept)
    assert len(data["own"]) == len(data["inspections"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["MODEL"], "MODEL is the folder of a model; give a sentence after it"),
        (["EMPTY", TEXT], "not a Weft model folder"),
        (["MODEL", TEXT, "x y"], "compared on one sentence; 2 are given"),
        (["MODEL", TEXT, "--checkpoints"], "--checkpoints is of one model; leave out"),
        ([TEXT, "a dog", "--checkpoints"], "takes one sentence; 2 are given"),
        ([TEXT, "a dog", "--output", "x.png"], "x.png: a picture is of one sentence"),
        ([TEXT, "a dog", "--output", "x.txt"], "a word alignment is of one text"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EMPTY").mkdir()
    shutil.copytree(tiny_folder, tmp_path / "MODEL")
    asked = arguments if "--output" in arguments else [*arguments, "--json"]
    ended = command("inspect", tiny_folder, *asked)
    assert ended.code > 1
    (message,) = ended.messages
    assert said in message
    assert not [*tmp_path.glob("x.*")]
