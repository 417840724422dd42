"""weft export: what it writes, and what it refuses, each in a line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from weft.errors import FolderError, UsageError
from weft.folder.model_folder import Contents, save_model_folder
from weft.ship import web

Command = Callable[..., Any]


def test_a_page_is_written_and_it_is_said_how_to_open_it(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    ended = command(
        "export", tiny_folder, "--to", "web", "--output", out, "--title", "Mine"
    )
    assert (ended.code, ended.out) == (0, b"")
    assert "weights in 16 bits" in ended.messages[0]
    assert str(out / "index.html") in ended.messages[1]
    assert "python -m http.server" in ended.messages[2]
    assert '"title":"Mine"' in (out / "model.js").read_text("utf-8")


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
    monkeypatch.setattr(web, "MOST_WEIGHTS", 100)
    out = tmp_path / "site"
    ended = command("export", tiny_folder, "--to", "web", "--output", out)
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
    asked = ("--demo", "--to", "web", "--output", tmp_path / "site")
    two = command("export", tiny_folder, *asked)
    assert (two.code, two.messages) == (
        2,
        [
            f"weft: --demo takes the model that comes with Weft: leave out {tiny_folder}, or --demo"
        ],
    )
    assert command("export", *asked).code == 0
    assert '"tgt_lang":"zh"' in (tmp_path / "site" / "model.js").read_text("utf-8")
