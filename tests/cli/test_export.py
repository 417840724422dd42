"""weft export: what it writes, and what it refuses, each in a line."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from weft import packages
from weft.cli.ship import Form
from weft.errors import FolderError, UsageError
from weft.folder.durable import TEMPORARY
from weft.folder.exported import PROGRAMS
from weft.folder.model_folder import Contents, save_model_folder
from weft.ship import exporting
from weft.ship.targets import TARGETS, target_named
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


def test_a_title_is_that_of_a_page(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    asked = ("--to", "onnx", "--output", tmp_path / "out", "--title", "Mine")
    ended = command("export", tiny_folder, *asked)
    assert (ended.code, ended.messages) == (
        2,
        ["weft: --title is that of a page, and --to onnx makes none: leave it out"],
    )


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
    made = command("export", *asked)
    assert made.code == 0
    # what is known is said
    card = (out / "README.md").read_text("utf-8")
    assert "License of the model: mit\n" in card
    assert "learned from: MIT" in card
    assert "no license was stated" not in made.err
    assert '"tgt_lang":"zh"' in (tmp_path / "site" / "model.js").read_text("utf-8")


def test_a_model_without_a_home_hears_that_before_it_hears_of_packages(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    asked = ("export", tiny_folder, "--output", tmp_path / "out", "--to")
    homeless = command(*asked, "gguf")
    assert homeless.code == 2
    assert "has no home in gguf: it is a translator" in homeless.messages[-1]
    without = command(*asked, "onnx")
    assert without.code == 2
    assert "weft: weft export --to onnx needs onnx: pip" in without.messages[-1]
    uncertified = command(*asked, "onnx", "--uncertified")
    assert "onnx, with --uncertified too, needs onnx: pip" in uncertified.messages[-1]


def test_a_package_that_is_too_old_is_named_in_a_line(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("onnx")
    versions = {"onnx": "1.17.0", "onnxruntime": "1.9.0"}
    monkeypatch.setattr(packages, "version", versions.get)
    out = tmp_path / "out"
    ended = command("export", tiny_folder, "--to", "onnx", "--output", out)
    assert ended.code == 2
    assert ended.messages[-1].startswith(
        "weft: the certificate of weft export --to onnx (--uncertified writes without one) "
        "needs onnxruntime 1.20 or later, and 1.9.0 is installed: pip install '.[onnx]'"
    )
    assert not out.exists()


def test_the_page_says_which_packages_write_and_which_compare() -> None:
    page = (Path(__file__).parents[2] / "docs" / "interop.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \| ([\w, ]+) \| ([\w, ]+) \|$", page, re.M)
    told = {form: (writes, compares) for form, writes, compares in rows}
    stated = {}
    for form in TARGETS:
        target = target_named(form)
        writes = ", ".join(target.writers) or "nothing more"
        compares = ", ".join(target.packages) or "nothing more"
        stated[form] = (writes, compares)
    assert told == stated


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_and_it_is_said_that_nothing_was_written(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    def killed(*more: Any) -> None:
        assert any(tmp_path.iterdir())
        if number == signal.SIGINT:  # which is ignored in the background
            raise KeyboardInterrupt
        os.kill(os.getpid(), number)

    monkeypatch.setattr(exporting, "card_of", killed)
    before = signal.getsignal(signal.SIGTERM)
    asked = ("--to", "web", "--uncertified", "--output", tmp_path / "site")
    ended = command("export", tiny_folder, *asked)
    assert ended.code == 130
    assert ended.messages[-1] == "weft: left at once; nothing was written"
    assert [*tmp_path.iterdir()] == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_a_killed_export_left_is_removed_by_the_next(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    left = tmp_path / f"{TEMPORARY}0123"
    left.mkdir()
    (left / "model.js").write_text("half")
    asked = ("--to", "web", "--uncertified", "--output", tmp_path / "site")
    assert command("export", tiny_folder, *asked).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.fixture(scope="module")
def exported(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is an export. Tests must not change it."""
    out = tmp_path_factory.mktemp("exported") / "hub"
    asked = exporting.Asked(is_certified=False)
    exporting.export(tiny_folder, target_named("huggingface"), out, asked=asked)
    return out


@pytest.mark.parametrize(
    "words",
    [
        ("translate", "HERE", "cat"),
        ("serve", "HERE", "--port", "0"),
        ("export", "HERE", "--to", "web", "--output", "NEW"),
        ("export", "HERE", "--to", "gguf", "--output", "NEW"),
        ("pack", "HERE", "--output", "NEW.weft"),
        ("inspect", "HERE", "cat"),
        ("generate", "HERE", "--prompt", "cat"),
    ],
    ids=" ".join,
)
def test_an_export_is_no_model_and_it_is_said_what_opens_it(
    command: Command, exported: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    places = {"HERE": str(exported), "NEW": str(tmp_path / "x")}
    ended = command(*(places.get(word, word) for word in words))
    assert ended.code == FolderError.exit_code
    assert ended.messages[-1] == (
        f"weft: {exported}: is an export of a model in the form huggingface, which transformers opens; "
        "Weft opens the model's folder that it was made from"
    )


def test_it_is_known_what_opens_each_form() -> None:
    assert {*PROGRAMS} == {*TARGETS} == {form.value for form in Form}
