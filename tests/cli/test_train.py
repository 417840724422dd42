"""weft train: which task and recipe it takes for a text, where the model goes, and what it says of
that first.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.data import builtin
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.folder.model_files import task_of

Command = Callable[..., Any]
STEPS = (
    "--set",
    "training.max_steps=1",
    "--set",
    "training.precision=float32",
    "--set",
    "training.kernels=torch",
)
NARROW = (
    "--set",
    "model.d_model=16",
    "--set",
    "model.num_heads=2",
    "--set",
    "model.d_ff=16",
)
ROWS = "".join(
    f"{'good' if i % 2 else 'bad'}\tthe text of number {i} is like this\n"
    for i in range(60)
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, "utf-8")
    return name


def pairs(count: int = 60) -> str:
    return "".join(
        f"{src}\t{tgt}\n"
        for src, tgt in builtin.pairs("everyday", "en", "de").train[:count]
    )


def recipe_of(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = durable.read_json(RunFolder(Path(folder)).recipe)
    return found


def test_pairs_become_a_translator_in_a_folder_of_their_name(
    command: Command, tiny_settings: tuple[str, ...]
) -> None:
    data = write("data/mine.en-de.tsv", pairs())
    settings = [part for setting in tiny_settings for part in ("--set", setting)]
    ended = command("train", data, *settings, *STEPS)
    assert (ended.code, ended.out) == (0, b"")
    assert ended.messages[0] == (
        f"{data} looks like pairs of sentences: a translator; else name another --recipe, or "
        "--set task=language-modelling or classification"
    )
    assert (
        ended.messages[1]
        == "the model goes to runs/mine.en-de; --output names another folder"
    )
    assert task_of(Path("runs/mine.en-de")) == "translation"
    again = command("train", data, *settings, *STEPS)
    assert (again.code, "runs/mine.en-de is finished" in again.err) == (0, True)


def test_languages_that_nobody_named_are_said_to_be_unknown(
    command: Command, tiny_settings: tuple[str, ...]
) -> None:
    settings = [part for setting in tiny_settings for part in ("--set", setting)]
    ended = command("train", write("mine.tsv", pairs()), *settings, *STEPS)
    named = "languages unknown (name them by --set data.src_lang=... --set data.tgt_lang=...): 60 pairs, "
    assert any(line.startswith(named) for line in ended.messages)


def test_a_label_and_a_text_become_a_classifier(command: Command) -> None:
    data = write("questions.tsv", f"label\ttext\n{ROWS}")
    ended = command("train", data, *STEPS, *NARROW, "--set", "model.ngram_buckets=100")
    assert ended.code == 0
    assert ended.messages[0].startswith(
        f"{data} looks like labelled rows: a classifier, by the recipe classify-fast; else name another --recipe, "
        "or --set task=translation or language-modelling"
    )
    assert task_of(Path("runs/questions")) == "classification"
    assert (
        recipe_of("runs/questions")["recipe"]["model"]["ngram_weights"]
        == "log-count-ratio"
    )


def test_rows_without_a_header_are_no_pairs_either(command: Command) -> None:
    ended = command("train", write("questions.tsv", ROWS))
    assert (ended.code, "looks like labelled rows" in ended.messages[0]) == (3, True)
    assert (
        "; this looks like a row: add a first line that names the columns (text,label)"
        in ended.messages[-1]
    )
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("name", "head", "cells", "said"),
    [
        (
            "a.csv",
            "No;English;Yoruba;Source",
            "{i};The dog {i} is here;Aja {i} wa;book",
            "of its columns No, English, Yoruba, Source, English is read as the source and Yoruba as the target",
        ),
        (
            "b.tsv",
            "",
            "The dog {i} is here\tAja {i} wa\tbook",
            "the first two of 3 columns are read",
        ),
        (
            "c.csv",
            "id,label,text",
            "{i},good,The dog {i} is here",
            "of its columns id, label, text, text is read as the text and label as the label",
        ),
    ],
)
def test_the_columns_that_are_read_are_said_before_anything_is_refused(
    command: Command, name: str, head: str, cells: str, said: str
) -> None:
    rows = [head, *(cells.format(i=i) for i in range(40))]
    data = write(name, "\n".join(filter(None, rows)) + "\n")
    ended = command("train", data, "--dev", write("dev.pdf", "%PDF-"))
    assert (ended.code, ended.messages[1].split("; ")[0]) == (3, f"{data}: {said}")
    if head:
        keys = "text_column label_column" if "label" in head else "src_lang tgt_lang"
        others = " ".join(f"--set data.{key}=..." for key in keys.split())
        assert ended.messages[1].endswith(f"; {others} choose others")


def test_running_text_becomes_a_language_model(command: Command) -> None:
    text = "\n\n".join(
        src for src, _ in builtin.pairs("everyday", "en", "de").train[:300]
    )
    small = (
        "model.num_decoder_layers=1",
        "model.num_key_value_heads=2",
        "batches.window_len=32",
        "data.lang=en",
    )
    settings = [part for setting in small for part in ("--set", setting)]
    ended = command(
        "train", write("book.txt", text), *STEPS, *NARROW, *settings, "--output", "here"
    )
    assert ended.code == 0
    assert ended.messages[0].startswith(
        "book.txt looks like running text: a language model, by the recipe lm-modern;"
    )
    assert "the model goes to" not in ended.err
    assert (
        task_of(Path("here")),
        recipe_of("here")["recipe"]["training"]["optimizer"],
    ) == (
        "language-modelling",
        "muon",
    )


def test_what_is_named_wins_and_a_contradiction_is_noted(
    command: Command, tiny_settings: tuple[str, ...]
) -> None:
    data = write("questions.tsv", f"label\ttext\n{ROWS}")
    settings = [part for setting in tiny_settings for part in ("--set", setting)]
    ended = command("train", data, "--set", "task=translation", *settings, *STEPS)
    assert (ended.code, task_of(Path("runs/questions"))) == (0, "translation")
    said = f"{data} looks like labelled rows: a classifier, but the recipe is for translation"
    assert f"note: {said}" in ended.messages
    assert (
        said
        in json.loads(RunFolder(Path("runs/questions")).verdict.read_bytes())["notes"]
    )


def test_a_model_to_start_from_says_the_task(
    command: Command, tiny_folder: Path
) -> None:
    start = shutil.copytree(tiny_folder, "start")
    ended = command(
        "train",
        write("book.txt", "no\ttabs\n" * 60),
        "--from",
        start,
        "--allow-bad-data",
        *STEPS,
    )
    assert ended.messages[0].startswith(
        "start holds a model for translation, so this is for pairs of sentences"
    )
    assert (ended.code, task_of(Path("runs/book"))) == (0, "translation")
    ended = command("train", "book.txt", "--from", "nowhere")
    assert (ended.code, ended.messages) == (
        5,
        ["weft: nowhere: no such folder; give the folder that `weft train` wrote"],
    )


def test_another_run_of_that_name_is_left_as_it_is(
    command: Command, tiny_settings: tuple[str, ...]
) -> None:
    settings = [
        part
        for setting in (*tiny_settings, *STEPS[1::2])
        for part in ("--set", setting)
    ]
    assert command("train", write("a/train.tsv", pairs(60)), *settings).code == 0
    before = Path("runs/train/model.safetensors").read_bytes()
    ended = command("train", write("b/train.tsv", pairs(80)), *settings)
    assert ended.code == 2
    assert "runs/train holds a run that differs: the train text was" in ended.err
    assert "give another --output" in ended.err
    assert Path("runs/train/model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--train", "a.en", "a.de"], 2, "two aligned files are joined by a comma"),
        (
            ["a.en", "a.de"],
            2,
            "seem to translate each other: join them by a comma, a.en,a.de",
        ),
        (["a.en", "none.tsv"], 3, "none.tsv: no such file"),
        (["a.en", "--dev", "a.df"], 3, "a.df: no such file; did you mean a.de"),
        ([], 2, "no text to train on"),
        (["a.en", "--recipe", "demo"], 2, "the recipe brings its own text"),
        (
            ["a.en", "--set", "training.max_steps", "=", "3"],
            2,
            "write section.key=value",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    command: Command, arguments: list[str], code: int, message: str
) -> None:
    write("a.en", "one line\n")
    write("a.de", "eine Zeile\n")
    ended = command("train", *arguments)
    assert (ended.code, ended.out) == (code, b"")
    (line,) = [line for line in ended.messages if line.startswith("weft: ")]
    assert message in line
    assert not Path("runs").exists()


def test_a_run_without_its_text_names_the_command_that_goes_on(
    command: Command, tiny_settings: tuple[str, ...]
) -> None:
    settings = [
        part
        for setting in (*tiny_settings, *STEPS[1::2])
        for part in ("--set", setting)
    ]
    assert command("train", write("p.tsv", pairs()), "--out=mine", *settings).code == 0
    ended = command("train", "--out", "mine")
    assert ended.code == 2
    begun = recipe_of("mine")["command"]
    assert ended.messages == [
        f"weft: no text to train on; the command that began the run in mine continues it: {begun}"
    ]
    Path("mine", durable.MANIFEST).unlink()
    ended = command("translate", "mine", "x")
    both = f"the same command continues it: {begun}; to use what is saved: weft finish mine"
    assert (ended.code, ended.messages) == (
        5,
        [f"weft: mine: training has not finished; {both}"],
    )


def test_an_archive_is_to_be_unpacked(command: Command) -> None:
    ended = command("translate", write("model.zip", "PK"), "x")
    assert ended.code == 5
    said = (
        "weft: model.zip: is an archive; unpack it first, or name it model.weft if weft pack wrote it; "
        "give the folder that `weft train` wrote"
    )
    assert ended.messages == [said]


def test_a_run_on_built_in_text_goes_on(command: Command, tmp_path: Path) -> None:
    shape = (
        "model.d_model=16",
        "model.d_ff=16",
        "model.num_encoder_layers=1",
        "model.num_decoder_layers=1",
    )
    out = tmp_path / "out"
    for steps in (1, 2):
        settings = [
            *shape,
            "training.threads=1",
            "training.kernels=torch",
            f"training.max_steps={steps}",
        ]
        more = [word for setting in settings for word in ("--set", setting)]
        ended = command("train", "--recipe", "toy-de-en", "--output", out, *more)
        assert ended.code == 0, ended.err
        assert f"done after {steps} step" in ended.messages[-2]
