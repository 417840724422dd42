"""weft export: what it writes, and what it refuses, each in a line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from weft.errors import FolderError, UsageError
from weft.folder.model_folder import Contents, save_model_folder
from weft.ship.web import browser, page

Command = Callable[..., Any]


def test_a_page_is_written_and_it_is_said_how_to_open_it(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a browser, what the page's own scripts compute is not compared."""
    monkeypatch.setattr(browser, "find_spec", lambda name: None)
    out = tmp_path / "site"
    ended = command(
        "export", tiny_folder, "--to", "web", "--output", out, "--title", "Mine"
    )
    assert ended.code == 0
    found = "\n".join(ended.lines)
    assert "not checked: texts and their ids (no browser could be started" in found
    assert "numbers of the weights: " in found
    assert "what a person gets: " in found
    assert "weights in 16 bits, " in ended.err
    assert str(out / "index.html") in ended.err
    assert "python -m http.server" in ended.err
    assert '"title":"Mine"' in (out / "model.js").read_text("utf-8")
    card = (out / "README.md").read_text("utf-8")
    assert "It was compared with the model that it was made from, on " in card
    assert (out / "parity.json").is_file()


def test_a_page_is_never_written_over_another(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("export", tiny_folder, "--to", "web", "--output", tmp_path)
    assert ended.code == FolderError.exit_code
    assert f"{tmp_path}: exists already" in ended.messages[-1]


def test_a_model_that_is_too_large_is_refused_with_its_size(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page, "MOST_WEIGHTS", 100)
    out = tmp_path / "site"
    asked = ("--to", "web", "--uncertified", "--output", out)
    ended = command("export", tiny_folder, *asked)
    assert ended.code == UsageError.exit_code
    assert "more than a browser holds (100)" in ended.messages[-1]
    assert not out.exists()


def test_a_recurrent_model_is_refused_before_it_is_loaded(
    command: Command, tmp_path: Path
) -> None:
    task = tiny.tiny_task("en-de")
    model = {"kind": "recurrent", "d_model": 16}
    config = type(task.config).model_validate(
        {**task.config.model_dump(), "model": model}
    )
    files = dict.fromkeys(config.tokenizer_files(), b"{}")
    folder = tmp_path / "rnn"
    save_model_folder(folder, config, Contents({}, files), "# none\n", {})
    ended = command("export", folder, "--to", "web", "--output", tmp_path / "site")
    assert ended.code == UsageError.exit_code
    assert "the model is recurrent" in ended.messages[-1]


def test_another_target_is_refused(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("export", tiny_folder, "--to", "paper", "--output", tmp_path / "x")
    assert ended.code == UsageError.exit_code
    assert "web" in ended.err


def test_the_model_that_comes_with_weft_needs_no_folder(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    asked = ("--demo", "--to", "web", "--uncertified", "--output", out)
    two = command("export", tiny_folder, *asked)
    assert (two.code, two.messages) == (
        2,
        [
            f"weft: --demo takes the model that comes with Weft: leave out {tiny_folder}, or --demo"
        ],
    )
    assert command("export", *asked).code == 0
    assert '"tgt_lang":"zh"' in (tmp_path / "site" / "model.js").read_text("utf-8")
