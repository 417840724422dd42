"""weft inspect --live: a page with the model inside, and what it is not for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_a_page_with_the_model_inside_is_written(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    ended = command("inspect", tiny_folder, "cat sees dog.", "--live", "--output", page)
    assert (ended.code, ended.out) == (0, b"")
    assert "weights rounded to 16 bits" in ended.messages[0]
    assert " another answer" in ended.messages[0]
    assert 'id="weights"' in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--output", "x.json"), "--live needs --output"),
        (("--json",), "--live needs --output"),
        ((), "--live needs --output"),
        (("another text", "--output", "x.html"), "one model and one sentence"),
    ],
)
def test_what_is_no_page_of_one_sentence_is_refused(
    command: Command, tiny_folder: Path, more: tuple[str, ...], said: str
) -> None:
    ended = command("inspect", tiny_folder, "cat sees dog.", "--live", *more)
    assert ended.code == 2
    assert said in ended.messages[-1]
