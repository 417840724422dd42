"""weft generate, score and evaluate of a language model: what they write, where, and how they
end.
"""

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.kernels import torch_machine
from weft.kernels.machine import Machine
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling

Command = Callable[..., Any]
SETTINGS = (
    "task=language-modelling",
    "data.documents=line",
    "data.dev_share=0.1",
    "tokenizer.kind=character",
    "batches.packing=packed",
    "batches.window_len=24",
    "batches.batch_size=8",
    "model.d_model=24",
    "model.d_ff=48",
    "model.num_heads=2",
    "model.num_decoder_layers=1",
    "training.max_steps=60",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.precision=float32",
    "training.threads=1",
    "training.num_samples=0",
    "decoding.max_new_tokens=30",
)
LINES = [
    f"{a} {b} {c}."
    for a, b, c in product(
        ("the cat", "a dog", "my bird"), ("sees", "hears"), ("it", "us")
    )
]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each command measures anew how many threads are worth while."""
    monkeypatch.setattr(torch_machine, "_useful_threads", lambda device: 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model of characters. Tests must not change it."""
    here = tmp_path_factory.mktemp("language")
    (here / "train.txt").write_bytes(
        "".join(f"{line}\n" for line in LINES * 4).encode()
    )
    weft.train(
        out=here / "model", train=str(here / "train.txt"), settings=SETTINGS, quiet=True
    )
    return here / "model"


@pytest.fixture(scope="module")
def model(folder: Path) -> weft.LanguageModel:
    return weft.load(folder)


# generate


@pytest.mark.parametrize("prompt", ["", "the ", "a dog", "é 猫 "])
def test_the_prompt_and_what_follows_it(
    command: Command, folder: Path, model: weft.LanguageModel, prompt: str
) -> None:
    ended = command("generate", folder, "--prompt", prompt)
    found = model.generate(prompt)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.decode() == f"{prompt}{found.text}\n"
    assert found.text


def test_every_option_reaches_the_model(
    command: Command, folder: Path, model: weft.LanguageModel
) -> None:
    options: dict[str, Any] = {
        "max_new_tokens": 9,
        "temperature": 3.5,
        "top_k": 30,
        "top_p": 0.95,
        "min_p": 0.001,
        "repetition_penalty": 1.4,
        "seed": 5,
    }
    texts = {model.generate("the", **options).text}
    for left_out in options:
        flags = [
            f"--{name.replace('_', '-')}={value}"
            for name, value in options.items()
            if name != left_out
        ]
        asked = {name: value for name, value in options.items() if name != left_out}
        ended = command("generate", folder, "--prompt", "the", *flags)
        expected = model.generate("the", **asked).text
        assert ended.out.decode() == f"the{expected}\n"
        texts.add(expected)
    assert len(texts) >= 4  # else the options would make no difference


def test_it_stops_where_it_is_told(
    command: Command, folder: Path, model: weft.LanguageModel
) -> None:
    whole = model.generate("the cat", temperature=0, max_new_tokens=12).text
    first, second = whole[3:5], whole[7]
    expected = min(whole[: whole.index(first)], whole[: whole.index(second)], key=len)
    ended = command(
        "generate",
        folder,
        "--prompt",
        "the cat",
        "--temperature",
        0,
        "--stop",
        first,
        "--stop",
        second,
    )
    assert ended.out.decode() == f"the cat{expected}\n"


def test_json(command: Command, folder: Path, model: weft.LanguageModel) -> None:
    ended = command(
        "generate", folder, "--prompt", "é the", "--json", "--max-new-tokens", 4
    )
    assert (ended.code, ended.err) == (0, "")
    (line,) = ended.lines
    found = json.loads(line)
    assert set(found) == {
        "prompt",
        "text",
        "finish",
        "token_log_probs",
        "prompt_cut",
        "proposed",
        "accepted",
    }
    assert found == {
        "prompt": "é the",
        **model.generate("é the", max_new_tokens=4).to_json(),
    }
    assert "é" in line


def test_a_draft_changes_the_counts_alone(command: Command, folder: Path) -> None:
    asked = ("generate", folder, "--prompt", "the cat sees it. the", "--temperature", 0)
    plain, as_json = command(*asked), command(*asked, "--json")
    ended = command(*asked, "--draft", "prompt")
    assert (ended.code, ended.out, ended.err) == (0, plain.out, "")
    found = json.loads(command(*asked, "--json", "--draft", "prompt").lines[0])
    assert 0 < found["accepted"] <= found["proposed"]
    assert found | {"proposed": 0, "accepted": 0} == json.loads(as_json.lines[0])
    ended = command(*asked, "--draft", folder)
    assert (ended.code, ended.out) == (2, b"")
    assert 'it must be "prompt"' in ended.err


def test_a_prompt_that_is_not_all_seen_is_said(command: Command, folder: Path) -> None:
    prompt = "the cat sees it. " * 3
    ended = command("generate", folder, "--prompt", prompt)
    assert ended.code == 0
    assert ended.out.decode().startswith(prompt)
    assert ended.messages == [
        "weft: the prompt is longer than the window; only its end is read"
    ]
    asked = command("generate", folder, "--prompt", prompt, "--json")
    assert (json.loads(asked.lines[0])["prompt_cut"], asked.err) == (True, "")


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--temperature", "-1"], "--temperature"),
        (["--temperature", "warm"], "--temperature"),
        (["--temperature", "nan"], "--temperature"),
        (["--top-k", "0"], "--top-k"),
        (["--top-p", "1.5"], "weft: --top-p = 1.5: it must be above 0 and at most 1"),
        (["--precision", "int4"], "weft: --precision = int4: it must be"),
        (["--prompt", "a", "--prompt", "b"], "weft: --prompt is given more than once"),
        (["--min-p", "1"], "--min-p = 1.0"),
        (["--repetition-penalty", "0"], "--repetition-penalty = 0.0"),
        (["--max-new-tokens", "0"], "--max-new-tokens"),
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**64)], "--seed = "),
        (["--stop", ""], "a stop string is empty"),
        (["--beam-size", "3"], "--beam-size"),
        (["stray"], "stray"),
    ],
    ids=str,
)
def test_wrong_flags_are_one_line_and_nothing_is_written(
    command: Command,
    folder: Path,
    flags: list[str],
    message: str,
    as_json: tuple[str, ...],
) -> None:
    """Not even the prompt."""
    ended = command("generate", folder, "--prompt", "the", *flags, *as_json)
    assert (ended.code, ended.out) == (2, b"")
    assert len(ended.messages) == 1
    assert ended.messages[0].startswith("weft: ")
    assert message in ended.err


def test_an_argument_that_is_not_utf8(folder: Path, command: Command) -> None:
    """As a process is given it, and as Python reads it: a surrogate."""
    whole = [sys.executable, "-m", "weft", "generate", folder, "--prompt", b"caf\xe9"]
    done = subprocess.run(whole, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"weft: --prompt: not UTF-8")
    assert done.stderr.count(b"\n") == 1
    ended = command("generate", folder, "--stop", "caf\udce9")
    assert (ended.code, ended.out) == (3, b"")
    (message,) = ended.messages
    assert message.startswith("weft: --stop: not UTF-8")


def test_the_text_appears_as_it_is_written_and_a_reader_may_leave(folder: Path) -> None:
    """As in `weft generate ... | head -c 40`: nothing on standard error."""
    whole = [
        sys.executable,
        "-m",
        "weft",
        "generate",
        str(folder),
        "--max-new-tokens",
        "1000000",
    ]
    flags = ["--temperature", "9", "--repetition-penalty", "0.7", "--prompt", "the "]
    with subprocess.Popen(
        [*whole, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        # one character at least, and the end is far
        assert running.stdout.read(5)[:4] == b"the "
        running.stdout.close()
        try:
            assert running.wait(60) in (0, 1)
        finally:
            running.kill()
        assert running.stderr.read() == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["generate", "TRANSLATOR"],
            "holds a model for translation, which cannot generate or score text",
        ),
        (
            ["score", "TRANSLATOR"],
            "cannot generate or score text; weft evaluate scores it",
        ),
        (["score", "LANGUAGE", "FOLDER"], "is a folder; name a file in it"),
        (
            ["translate", "LANGUAGE", "a cat"],
            "holds a model for language-modelling, which cannot translate",
        ),
        (
            ["classify", "LANGUAGE", "a cat"],
            "holds a model for language-modelling, which cannot classify",
        ),
        (["inspect", "NONE", "a cat", "--output", "x.json"], "no such folder"),
        (["generate", "NONE"], "no such folder"),
        (["score", "NONE"], "no such folder"),
    ],
    ids=" ".join,
)
def test_a_folder_of_another_task_or_none(
    command: Command,
    folder: Path,
    tiny_folder: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    folders = {
        "TRANSLATOR": tiny_folder,
        "LANGUAGE": folder,
        "NONE": tmp_path / "none",
        "FOLDER": tmp_path,
    }
    ended = command(*(folders.get(word, word) for word in arguments))
    assert (ended.code, ended.out) == (5 if "NONE" in arguments else 2, b"")
    assert len(ended.messages) == 1
    assert message in ended.err


# score


def test_a_score_for_each_line(
    command: Command, folder: Path, model: weft.LanguageModel
) -> None:
    text = [
        "the cat sees it.",
        "",
        "tis eht taes cht.",
        "a\ttab",
        "é 猫",
        "a dog " * 20,
    ]
    ended = command("score", folder, stdin="\n".join(text).encode())
    assert ended.code == 0
    rows = [line.split("\t", 2) for line in ended.lines]
    assert [row[2] for row in rows] == text
    # a blank line keeps its place
    assert rows.pop(1) == ["", "", ""]
    expected = model.score([line for line in text if line])
    assert [float(row[0]) for row in rows] == pytest.approx(
        [s.log_prob for s in expected], abs=1e-4
    )
    assert [float(row[1]) for row in rows] == pytest.approx(
        [s.perplexity for s in expected], abs=0.01
    )
    assert float(rows[0][0]) > float(rows[1][0])
    tokens = sum(s.num_tokens for s in expected)
    mean = sum(s.log_prob for s in expected) / tokens
    assert ended.messages == [
        "1 blank line was not scored",
        f"{tokens:,} tokens, mean {mean:.4f} nats a token",
    ]


def test_from_a_file(command: Command, folder: Path, tmp_path: Path) -> None:
    text = "the cat\r\na dog\n".encode("utf-8-sig")
    (tmp_path / "lines.txt").write_bytes(text)
    ended = command("score", folder, tmp_path / "lines.txt")
    assert (ended.code, [line.split("\t")[2] for line in ended.lines]) == (
        0,
        ["the cat", "a dog"],
    )
    assert command("score", folder, stdin=text).out == ended.out


def test_to_a_file_and_in_blocks_it_says_the_same(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_text("the cat\n\na dog\nqwx\n")
    for options in ((), ("--json",)):
        asked = ("score", folder, tmp_path / "lines.txt", *options)
        alone = command(*asked)
        out = tmp_path / ("out.jsonl" if options else "out.txt")
        ended = command(*asked, "--output", out)
        assert (ended.out, out.read_bytes()) == (b"", alone.out)
        assert ended.messages == alone.messages
        on = ("--on", "local", "--block", "3", "--output", out)
        ended = command(*asked, *on)
        assert (ended.out, out.read_bytes()) == (b"", alone.out)
        assert ended.messages[-2:] == alone.messages[-2:]
    ended = command("score", folder, *[tmp_path / "lines.txt"] * 2)
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert "--on local takes several" in ended.err


def test_scores_as_json(
    command: Command, folder: Path, model: weft.LanguageModel
) -> None:
    ended = command("score", folder, "--json", stdin="the cat\n\né\n".encode())
    found = [json.loads(line) for line in ended.lines]
    blank = found.pop(1)
    assert found == [s.to_json() for s in model.score(["the cat", "é"])]
    assert blank.keys() == found[0].keys()
    assert (blank["text"], blank["num_tokens"]) == ("", 0)
    assert (blank["log_prob"], blank["perplexity"]) == (None, None)
    assert {*found[0]} == {
        "text", "log_prob", "num_tokens", "num_bytes", "perplexity", "bits_per_byte", "pieces", "token_log_probs",
    }  # fmt: skip
    assert found[0]["pieces"][-1] == "<eos>"


def test_nothing_to_score(command: Command, folder: Path) -> None:
    ended = command("score", folder, stdin=b"")
    assert (ended.code, ended.out, ended.messages) == (0, b"", [])


def test_what_is_done_is_said_meanwhile(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.console.stages.SLOW", 0.0)
    said = command("score", folder, stdin=b"the cat\n").err.split("\n")
    assert [line.split(" ...")[0] for line in said[:2]] == [
        "loading the model",
        "scoring",
    ]


def test_invalid_utf8_is_named_and_nothing_written(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(b"the cat\na dog\ncaf\xe9\n")
    for data, where in (((tmp_path / "in",), tmp_path / "in"), ((), "standard input")):
        ended = command("score", folder, *data, stdin=(tmp_path / "in").read_bytes())
        assert (ended.code, ended.out) == (3, b"")
        rest = f" {where} > {tmp_path / 'utf8.in'}" if data else ""
        assert len(ended.messages) == 1
        assert ended.messages[0].startswith(
            f"weft: {where}:3: not UTF-8 at the text's byte 17; it looks like WIN"
        )
        assert ended.messages[0].endswith(
            f"convert it: iconv -f WINDOWS-1252 -t UTF-8{rest}"
        )
        assert ("Notepad" in ended.err) == bool(data)


def test_a_file_that_is_not_there(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    for data, said in (
        (tmp_path / "none.txt", "no such file; a text itself goes to standard input"),
        (tmp_path, "is a folder; name a file in it"),
    ):
        ended = command("score", folder, data)
        assert (ended.code, ended.out) == (2, b"")
        assert ended.messages == [f"weft: {data}: {said}"]


def test_on_a_terminal_every_line_is_answered_at_once_and_counted(folder: Path) -> None:
    person, terminal = pty.openpty()
    whole = [sys.executable, "-m", "weft", "score", str(folder)]
    try:
        with subprocess.Popen(
            whole, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            for line in (b"the cat", b"a dog"):
                os.write(person, line + b"\n")
                assert running.stdout.readline().endswith(b"\t" + line + b"\n")
            os.write(person, b"caf\xe9\n")
            assert running.wait(60) == 3
            assert (
                b"\nweft: standard input:3: not UTF-8 at the text's byte 17"
                in running.stderr.read()
            )
    finally:
        os.close(person)
        os.close(terminal)


# evaluate


def test_one_long_document_is_counted_by_its_windows(
    command: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[tuple[int, str, int]] = []
    monkeypatch.setattr(
        "weft.console.stages.count",
        lambda number, unit, total=None, _=0.0: counts.append((number, unit, total)),
    )
    (tmp_path / "t.txt").write_text("the cat sees a dog. " * 1000)
    assert command("evaluate", folder, tmp_path / "t.txt").code == 0
    scored = [(number, total) for number, unit, total in counts if unit == "windows"]
    assert scored == [(n, len(scored)) for n in range(1, len(scored) + 1)]
    assert len(scored) > 1


def test_evaluate_gives_the_tasks_own_scores(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "new.txt"
    data.write_bytes(b"the fish sees a cat.\n\nwe hear the dog.\n")
    task = TrainableLanguageModelling.load(folder, Machine("cpu", "float32", 1, ""))
    scores = task.evaluate(task.read([str(data)]))
    ended = command("evaluate", folder, data, "--json")
    assert (ended.code, ended.messages) == (0, [])
    found = json.loads(ended.lines[0])
    assert found.pop("notes") == ["left out: 1 document (blank)"]
    assert found.pop("contaminated") is None
    signature = found.pop("data_signature")
    assert signature.startswith("data:")
    assert found.pop("computed") == {"precision": "float32"}
    assert set(found) == {
        "loss",
        "perplexity",
        "bits_per_byte",
        "num_tokens",
        "num_bytes",
    }
    assert found == {
        name: pytest.approx(value, rel=1e-6) for name, value in scores.to_json().items()
    }
    shown = command("evaluate", folder, data)
    said = [
        f"text  {signature}",
        "by    precision float32",
        "note: left out: 1 document (blank)",
    ]
    assert shown.lines == [*scores.lines(), *said]


def test_documents_of_the_training_text_are_marked(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    """Also where case, spaces and punctuation differ."""
    data = tmp_path / "again.txt"
    data.write_bytes(
        "".join(f"{line}\n" for line in ["something new", *LINES]).encode().upper()
    )
    ended = command("evaluate", folder, data)
    assert ended.code == 0
    (note,) = [line for line in ended.lines if "contaminated" in line]
    held_out = note.split(" of ")[0].split()[-1]
    assert int(held_out) in range(9, 12)  # of twelve, but those that dev holds
    assert " of 13 documents" in note
    assert note.endswith("; loss and perplexity are too low")
    assert f"{data}:" in note


def test_without_hashes_it_says_so(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "m", ignore=shutil.ignore_patterns("run"))
    (tmp_path / "t.txt").write_bytes(b"the cat\n")
    ended = command("evaluate", copy, tmp_path / "t.txt")
    assert any("not checked for overlap with training" in line for line in ended.lines)


@pytest.mark.parametrize("content", [None, b"", b" \n\t\n", b"a\n\xff\n"], ids=str)
def test_wrong_data(
    command: Command, folder: Path, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "t.txt"
    if content is not None:
        path.write_bytes(content)
    ended = command("evaluate", folder, path)
    assert (ended.code, ended.out) == (3, b"")
    assert len(ended.messages) == 1
    assert str(path) in ended.err


def test_there_is_nothing_to_search_with_a_beam(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_bytes(b"the cat\n")
    ended = command("evaluate", folder, tmp_path / "t.txt", "--beam-size", 4)
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [
        f"weft: --beam-size: {folder} holds a model for language-modelling, which searches nothing"
    ]


@pytest.mark.parametrize(
    "verb", [("generate", "--prompt", "the cat", "--temperature", 0), ("score",)]
)
def test_kernels_torch_reaches_the_model(
    command: Command, folder: Path, attention_calls: list[int], verb: tuple[Any, ...]
) -> None:
    name, *rest = verb
    usual = command(name, folder, *rest, stdin=b"the cat sees it.\n")
    assert (usual.code, attention_calls) == (0, [])
    watched = command(
        name, folder, *rest, "--kernels", "torch", stdin=b"the cat sees it.\n"
    )
    assert (watched.code, watched.out) == (0, usual.out)
    assert attention_calls
