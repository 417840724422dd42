"""weft demo: its languages, what it says where nobody types, and the conversation."""

import os
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.cli import demo
from weft.data import builtin
from weft.data.builtin import Splits
from weft.data.known import KnownWords
from weft.folder import durable
from weft.training.trainer import Trainer

Command = Callable[..., Any]
TINY = (
    *(
        "model.d_model=16",
        "model.d_ff=16",
        "model.num_encoder_layers=1",
        "model.num_decoder_layers=1",
    ),
    *(
        "training.max_steps=2",
        "training.eval_every=2",
        "training.warmup_steps=1",
        "training.threads=1",
    ),
    *("training.kernels=torch", "training.precision=float32", "training.num_samples=1"),
    *("decoding.beam_size=1", "decoding.max_len_ratio=0.1", "decoding.max_len_extra=1"),
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "fr"], "--to fr: the built-in corpus has en, zh, de"),
        (["--from", "xx"], "--from xx: the built-in corpus has en, zh, de"),
        (
            ["--from", "de", "--to", "de"],
            "--from de --to de: the two are one language; change one",
        ),
    ],
)
def test_other_languages_are_refused(
    command: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    ended = command("demo", *arguments, "--output", tmp_path / "out")
    assert (ended.code, ended.messages) == (2, [f"weft: {message}"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "languages", "folder", "other"),
    [
        (
            ["--to", "de"],
            ("en", "de"),
            "runs/demo-en-de",
            (
                "weft train --recipe demo --set data.tgt_lang=de --set tokenizer.tgt.kind=word "
                "--set model.num_heads=1 --output runs/demo-en-de-one-head"
            ),
        ),
        pytest.param(
            ["--to", "en"],
            ("zh", "en"),
            "runs/demo-zh-en",
            (
                "weft train --recipe demo --set data.src_lang=zh --set data.tgt_lang=en "
                "--set tokenizer.src.kind=character --set tokenizer.tgt.kind=word "
                "--set model.num_heads=1 --output runs/demo-zh-en-one-head"
            ),
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_languages_and_the_folder(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    languages: tuple[str, str],
    folder: str,
    other: str,
) -> None:
    whole = demo._settings
    monkeypatch.setattr(demo, "_settings", lambda *given: [*whole(*given), *TINY])
    monkeypatch.chdir(tmp_path)
    ended = command("demo", *arguments)
    assert ended.code == 0, ended.err
    model = weft.load(folder)
    assert (model.src_lang, model.tgt_lang) == languages
    held_out = [sentence for sentence, _ in builtin.pairs("everyday", *languages).test]
    empty, heading, *rest = ended.lines
    assert empty == ""
    assert heading.startswith(f"Held-out sentences ({len(held_out)}): BLEU ")
    end = rest.index(f"The model is in {folder}. Next:")
    assert [
        line for line in rest[:end] if line and not line.startswith("  ")
    ] == held_out[: demo.SHOWN]
    assert rest[end + 1] == f'  weft translate {folder} "{held_out[demo.SHOWN]}"'
    assert "Your turn" not in ended.err
    assert rest[-2:] == ["  weft train your-pairs.tsv", f"  {other}"]
    again = command("evaluate", folder)  # the built-in text has no name
    assert again.code == 0, again.err
    assert f"{len(held_out)} sentences" in again.out.decode()


@pytest.mark.long
def test_a_stopped_demo_names_commands_that_continue_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has ended does too: `weft train`, which takes settings."""
    whole = demo._settings
    monkeypatch.setattr(demo, "_settings", lambda *given: [*whole(*given), *TINY])
    monkeypatch.chdir(tmp_path)
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        take_step(self)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_take_step", taking)
        ended = command("demo", "--to", "de")
    assert ended.code == 75
    assert ended.messages[-1] == (
        "weft: interrupted after step 1, which is saved; the same command continues it: weft demo --to de; "
        "to use what is saved: weft finish runs/demo-en-de"
    )
    ended = command("finish", "runs/demo-en-de")
    assert ended.code == 0
    assert "  weft demo --to de" in ended.messages
    ended = command("demo", "--to", "de")
    assert ended.code == 0, ended.err
    (longer,) = (line for line in ended.messages if line.startswith("  weft train "))
    assert longer.endswith(" --output runs/demo-en-de --set training.max_steps=4")
    ended = command(*shlex.split(longer)[1:])
    assert ended.code == 0, ended.err
    verdict = durable.read_json(Path("runs/demo-en-de/run/verdict.json"))
    assert (verdict["outcome"], verdict["step"]) == ("done", 4)


def test_by_default_it_is_english_to_chinese() -> None:
    assert demo._settings("en", "zh") == [
        "data.src_lang=en",
        "data.tgt_lang=zh",
        "tokenizer.src.kind=word",
        "tokenizer.tgt.kind=character",
    ]


def test_the_conversation_goes_on_until_an_empty_line(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Path(write_pairs(216)).read_text("utf-8").split("\n")[:-1]
    pairs = [(a, b) for a, b in (line.split("\t") for line in lines)]
    text = Splits(pairs[:200], [], pairs[200:])
    typed: Iterator[str] = iter(
        ["cat sees dog.", "boy loses Cat.", "  ", "never asked"]
    )
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    demo._converse(weft.load(tiny_folder), text, "en")
    out, err = capsys.readouterr()
    answers = out.split("\n")[:-1]
    assert answers[0] == "  Katze sieht Hund."
    assert "  (never seen: boy, loses - the model guesses there)" in answers[1:]
    assert next(typed) == "never asked"
    assert "words and their forms and no others" in err
    assert [
        f"Try, for example: {src}" in err
        for src, _ in text.test[demo.SHOWN : demo.SHOWN + 3]
    ] == [True] * 3


def test_the_end_of_input_ends_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def end(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end)
    assert demo._asked("English") == ""


def test_an_answer_that_the_model_is_not_sure_of_is_marked(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, known = weft.load(tiny_folder), KnownWords.of(["cat sees dog."])
    (sure,) = model.translate(["cat sees dog."])
    monkeypatch.setattr(demo, "UNSURE", sure.score - 0.01)
    assert demo.answer(model, known, "cat sees dog.") == ["  Katze sieht Hund."]
    monkeypatch.setattr(demo, "UNSURE", sure.score + 0.01)
    assert (
        f"not sure of this: {sure.score:.2f} nats"
        in demo.answer(model, known, "cat sees dog.")[1]
    )
