"""weft classify: one line out for each line in; weft evaluate of a classifier: the scores of those
answers.
"""

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.cli.answers import named_row, refuse_other_form
from weft.errors import UsageError
from weft.kernels.machine import Machine
from weft.tasks.trainable_classification import TrainableClassification

Command = Callable[..., Any]
MOODS = {"sad": "low", "glum": "low", "merry": "high", "gay": "high"}
TEXTS = ["the cat was sad", "a dog seems merry", "the mouse was gay"]
LABELS = ["low", "high", "high"]
SETTINGS = (
    "task=classification",
    "tokenizer.kind=word",
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "training.max_steps=60",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.precision=float32",
    "training.threads=1",
    "data.max_len=6",
)


@pytest.fixture(autouse=True)
def no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a model times two products to choose the threads, which takes longer than the
    tests.
    """
    monkeypatch.setattr("weft.kernels.torch_machine._useful_threads", lambda device: 1)


def rows() -> list[tuple[str, str]]:
    words = product(
        ["the", "a"], ["cat", "dog", "bird", "mouse"], ["was", "seems"], MOODS
    )
    return [(" ".join(some), MOODS[some[-1]]) for some in words]


def write(path: Path, rows: list[tuple[str, str]], header: str = "text,label") -> Path:
    path.write_bytes(
        "".join(
            f"{line}\n" for line in [header, *(f"{a},{b}" for a, b in rows)]
        ).encode()
    )
    return path


def trained(folder: Path, *settings: str) -> Path:
    train = str(write(folder / "train.csv", rows()))
    weft.train(
        out=folder / "model", train=train, settings=(*SETTINGS, *settings), quiet=True
    )
    return folder / "model"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, but reading long texts in windows."""
    return trained(
        tmp_path_factory.mktemp("windows"),
        "data.too_long=windows",
        "training.max_steps=10",
    )


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Any number of labels a text: its mood, and whether it is of a cat; of a bird it says
    neither.
    """
    path = tmp_path_factory.mktemp("several") / "rows.jsonl"
    made = [
        (text, [] if "bird" in text else [label, *["cat"] * ("cat" in text)])
        for text, label in rows()
    ]
    path.write_text(
        "".join(json.dumps({"text": a, "label": b}) + "\n" for a, b in made), "utf-8"
    )
    settings = (*SETTINGS, "data.label_separator=;", "training.max_steps=150")
    weft.train(
        out=path.parent / "model", train=str(path), settings=settings, quiet=True
    )
    return path.parent / "model"


def answers(folder: Path, texts: list[str]) -> list[Any]:
    return (
        TrainableClassification.load(folder, Machine("cpu", "float32", 1, ""))
        .predictor()
        .classify(texts)
    )


# weft classify


def test_from_arguments(command: Command, folder: Path) -> None:
    ended = command("classify", folder, *TEXTS)
    found = answers(folder, TEXTS)
    assert [answer.label for answer in found] == LABELS
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        f"{answer.label}\t{answer.probability:.4f}" for answer in found
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_from_standard_input(command: Command, folder: Path, end: str) -> None:
    ended = command("classify", folder, stdin=end.join(TEXTS).encode())
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == command("classify", folder, *TEXTS).lines


def test_from_file_to_file(command: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes("\n".join(TEXTS).encode())
    ended = command(
        "classify", folder, "--input", tmp_path / "in", "--output", tmp_path / "out"
    )
    assert (ended.code, ended.out, ended.err) == (0, b"", "")
    assert (tmp_path / "out").read_bytes() == command("classify", folder, *TEXTS).out
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out"}


ROWS = [("7", TEXTS[0]), ("8", "a dog,\nseems merry"), ("9", ""), ("10", TEXTS[2])]
READ = [TEXTS[0], "a dog, seems merry", "", TEXTS[2]]  # each as a model reads it
TABLES = {
    "in.csv": "id,text\n"
    + "".join('{},"{}"\n'.format(n, text.replace('"', '""')) for n, text in ROWS),
    "in.jsonl": "".join(
        json.dumps({"id": n, "text": text, "x": [1]}) + "\n" for n, text in ROWS
    ),
    "in.tsv": "text\tid\n"
    + "".join(f"{text}\t{n}\n" for (n, _), text in zip(ROWS, READ, strict=True)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_of_a_table_each_row_has_its_answer(
    command: Command, folder: Path, tmp_path: Path, name: str, packed: bool
) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    content = TABLES[name].encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    ended = command("classify", folder, "--input", path, "--output", tmp_path / "out")
    assert ended.code == 0
    assert all(": note: " in line or "nothing known" in line for line in ended.messages)
    found = answers(folder, READ)
    assert (tmp_path / "out").read_text() == "".join(
        f"{a.label}\t{a.probability:.4f}\n" for a in found
    )
    whole = [
        json.loads(line)
        for line in command("classify", folder, "--input", path, "--json").lines
    ]
    assert [one["row"]["id"] for one in whole] == [number for number, _ in ROWS]
    assert [one["label"] for one in whole] == [answer.label for answer in found]
    extra = {"x": [1]} if name == "in.jsonl" else {}
    assert whole[0]["row"] == {"id": "7", "text": TEXTS[0], **extra}


def test_a_table_needs_the_column_that_the_model_reads(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("id,body\n1,the cat\n")
    ended = command("classify", folder, "--input", tmp_path / "in.csv")
    assert (ended.code, ended.out) == (3, b"")
    assert "in.csv:1: no column 'text'; columns: id, body" in ended.err
    assert "rename" in ended.err


def test_a_doubt_about_a_row_of_a_table_names_the_row(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(f'text\n"the\ncat"\n{"cat " * 20}\n')
    ended = command("classify", folder, "--input", tmp_path / "in.csv")
    assert ended.messages == [
        "weft: row 2: truncated: only what the model reads at most was classified"
    ]


def test_a_long_table_goes_chunk_by_chunk(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    texts = [
        f"the {name} was {mood}"
        for _ in range(400)
        for name, mood in product(["cat", "dog"], MOODS)
    ]
    (tmp_path / "in.csv").write_text(
        "text,id\n" + "".join(f"{t},{i}\n" for i, t in enumerate(texts))
    )
    found = [
        json.loads(line)
        for line in command(
            "classify", folder, "--input", tmp_path / "in.csv", "--json"
        ).lines
    ]
    assert [one["row"]["id"] for one in found] == [str(i) for i in range(len(texts))]
    assert [one["label"] for one in found] == [
        answer.label for answer in answers(folder, texts)
    ]


def test_lines_that_only_look_like_a_table_come_by_standard_input(
    command: Command, folder: Path
) -> None:
    assert len(command("classify", folder, stdin=TABLES["in.tsv"].encode()).lines) == 5


def test_every_line_has_its_answer_blank_ones_too(
    command: Command, folder: Path
) -> None:
    ended = command(
        "classify", folder, stdin=f"\n{TEXTS[0]}\n \t\n{TEXTS[1]}\n".encode()
    )
    assert [line.split("\t")[0] for line in ended.lines][1::2] == LABELS[:2]
    assert len(ended.lines) == 4
    assert ended.lines[0] == ended.lines[2]
    assert command("classify", folder, stdin=b"").lines == []


def test_every_label_with_its_probability(command: Command, folder: Path) -> None:
    ended = command("classify", folder, "--all", *TEXTS)
    for line, label in zip(ended.lines, LABELS, strict=True):
        shown = [cell.rsplit(" ", 1) for cell in line.split("\t")]
        assert shown[0][0] == label
        assert {name for name, _ in shown} == {"low", "high"}
        values = [float(value) for _, value in shown]
        assert values == sorted(values, reverse=True)
        assert sum(values) == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize("every", [False, True])
def test_json_lines(command: Command, folder: Path, every: bool) -> None:
    ended = command(
        "classify",
        folder,
        "--json",
        *["--all"] * every,
        stdin="\n".join(TEXTS).encode(),
    )
    objects = [json.loads(line) for line in ended.lines]
    keys = [
        "label",
        "labels",
        "probability",
        *["probabilities"] * every,
        "truncated",
        "windows",
    ]
    keys += ["unknown_words", "nothing_known", "unsure"]
    assert [list(found) for found in objects] == [keys] * 3
    for found, answer in zip(objects, answers(folder, TEXTS), strict=True):
        assert found == {
            key: value for key, value in answer.to_json().items() if key in keys
        }


def test_in_blocks_it_says_the_same(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    texts = tmp_path / "in.txt"
    texts.write_text("".join(f"{text}\n" for text, _ in rows()[:9]) + "\nqwx\n")
    for options in ((), ("--all",), ("--json",)):
        alone = command("classify", folder, "--input", texts, *options)
        out = tmp_path / f"out{len(''.join(options))}.txt"
        on = ("--on", "local", "--block", "4", "--output", out)
        if options == ("--json",):
            on = (*on[:-1], out.with_suffix(".jsonl"))
        ended = command("classify", folder, "--input", texts, *options, *on)
        assert ended.code == 0
        assert Path(on[-1]).read_bytes() == alone.out
        assert ("2 answers are doubtful" in ended.err) is (options != ("--json",))


def test_what_is_cut_is_said_on_standard_error(command: Command, folder: Path) -> None:
    long = "the cat was " * 4 + "sad"
    ended = command(
        "classify", folder, stdin=f"{TEXTS[0]}\n{long}\n{TEXTS[1]}\n{long}\n".encode()
    )
    assert (ended.code, len(ended.lines)) == (0, 4)
    assert ended.messages == [
        f"weft: line {n}: truncated: only what the model reads at most was classified"
        for n in (2, 4)
    ]
    asked = command("classify", folder, "--json", TEXTS[0], long)
    assert [json.loads(line)["truncated"] for line in asked.lines] == [False, True]
    assert asked.err == ""


def test_what_is_read_in_windows_is_not_cut(command: Command, windows: Path) -> None:
    long = "the cat was " * 4 + "sad"
    ended = command("classify", windows, TEXTS[0], long)
    assert (ended.code, len(ended.lines), ended.err) == (0, 2, "")
    (found,) = (
        json.loads(line) for line in command("classify", windows, "--json", long).lines
    )
    assert (found["truncated"], found["windows"]) == (False, 3)


def test_several_labels(command: Command, several: Path) -> None:
    texts = ["the cat was sad", "a bird was merry"]
    ended = command("classify", several, *texts)
    both, none = answers(several, texts)
    assert (both.labels, none.labels) == (["cat", "low"], [])
    assert ended.lines == [f"cat, low\t{both.probability:.4f}", "\t0.0000"]
    found = [
        json.loads(line)
        for line in command("classify", several, "--json", *texts).lines
    ]
    assert [(one["label"], one["labels"]) for one in found] == [
        ("cat, low", ["cat", "low"]),
        ("", []),
    ]
    shown = [
        cell.split(" ")[0]
        for cell in command("classify", several, "--all", texts[0]).lines[0].split("\t")
    ]
    assert shown[-1] == "high"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--input", "none.txt"], 2, "--input none.txt: no such file"),
        (
            ["--input", "/dev/null"],
            2,
            "--input /dev/null: is no file; give it as standard input",
        ),
        (["cat", "--input", "none.txt"], 2, "give texts or --input, not both"),
        (["cat", "--beam-size", "2"], 2, "--beam-size"),
    ],
)
def test_errors_are_one_line(
    command: Command, folder: Path, arguments: list[str], code: int, message: str
) -> None:
    ended = command("classify", folder, *arguments)
    assert (ended.code, ended.out) == (code, b"")
    assert len(ended.messages) == 1
    assert message in ended.err


def test_invalid_utf8_is_named_and_nothing_written(
    command: Command, folder: Path
) -> None:
    ended = command("classify", folder, stdin=b"the cat\n\xff\n")
    assert (ended.code, ended.out) == (3, b"")
    assert ended.messages[0].startswith("weft: standard input:2: not UTF-8")


@pytest.mark.parametrize(
    ("verb", "needs"),
    [
        (["classify"], "classify"),
        (["translate"], "translate"),
        (["generate", "--prompt"], "generate or score text; weft evaluate scores it"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_model_of_another_task_is_refused(
    command: Command, folder: Path, tiny_folder: Path, verb: list[str], needs: str
) -> None:
    wrong, task = (
        (tiny_folder, "translation")
        if verb == ["classify"]
        else (folder, "classification")
    )
    ended = command(verb[0], wrong, *verb[1:], "the cat")
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [
        f"weft: {wrong}: holds a model for {task}, which cannot {needs}"
    ]


# weft evaluate

NEW = [
    ("cat was sad", "low"),
    ("the mouse seems was gay", "high"),
    ("a bird glum", "low"),
    ("a cat", "high"),
]


def test_scores_are_those_of_the_answers(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    ended = command("evaluate", folder, write(tmp_path / "new.csv", NEW), "--json")
    assert (ended.code, ended.messages) == (0, [])
    (line,) = ended.lines
    found = json.loads(line)
    right = [
        a.label == label
        for a, (_, label) in zip(answers(folder, [t for t, _ in NEW]), NEW, strict=True)
    ]
    assert found["accuracy"] == sum(right) / 4
    assert found["num_texts"] == 4
    assert [score["label"] for score in found["per_class"]] == ["high", "low"]
    keys = {
        "accuracy",
        "macro_f1",
        "micro_f1",
        "per_class",
        "confusion",
        "calibration_error",
        "num_texts",
        "num_absent",
        "notes",
        "data_signature",
        "contaminated",
        "computed",
    }
    assert set(found) == keys
    assert found["notes"] == []


def test_for_a_person(command: Command, folder: Path, tmp_path: Path) -> None:
    ended = command("evaluate", folder, write(tmp_path / "new.csv", NEW[:3]))
    assert (ended.code, "note" in ended.err, "weft: " in ended.err) == (0, False, False)
    assert ended.lines[:2] == ["accuracy           1.0000", "macro-F1           1.0000"]
    assert any(
        line.split() == ["low", "1.0000", "1.0000", "1.0000", "2"]
        for line in ended.lines
    )
    assert not any(line.startswith("note:") for line in ended.lines)


def test_what_a_reader_of_the_scores_should_know(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    """Rows left out, labels that do not occur, texts that were cut, texts that training had."""
    made = [
        ("the cat was sad", "low"),
        ("the cat was " * 5, "low"),
        ("  ", "low"),
        ("the dog. was glum!", "low"),
    ]
    data = write(tmp_path / "new.csv", made)
    notes = [
        line.removeprefix("note: ")
        for line in command("evaluate", folder, data).lines
        if "note: " in line
    ]
    assert "left out: 1 row (empty text)" in notes
    assert any(note.startswith("no text has the label 'high'") for note in notes)
    assert "1 text cut at 6 tokens" in notes
    (note,) = [note for note in notes if "contaminated" in note]
    assert note.startswith("contaminated: 2 of 3 rows (66.7 %)")
    assert f"{data}:2" in note
    assert (
        json.loads(command("evaluate", folder, data, "--json").lines[0])["notes"]
        == notes
    )


def test_several_files_are_one_text(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    parts = [write(tmp_path / f"{i}.csv", NEW[i::2]) for i in range(2)]
    found = json.loads(command("evaluate", folder, *parts, "--json").lines[0])
    whole = json.loads(
        command("evaluate", folder, write(tmp_path / "all.csv", NEW), "--json").lines[0]
    )
    assert found["num_texts"] == 4
    assert found["confusion"] == whole["confusion"]


def test_several_labels_are_scored(
    command: Command, several: Path, tmp_path: Path
) -> None:
    data = write(
        tmp_path / "new.csv",
        [("the cat was sad", "low;cat"), ("a bird was sad", ""), ("a cat", "high;cat")],
    )
    found = json.loads(command("evaluate", several, data, "--json").lines[0])
    labels = [
        answer.labels
        for answer in answers(several, ["the cat was sad", "a bird was sad", "a cat"])
    ]
    assert (
        found["accuracy"]
        == sum(
            a == b
            for a, b in zip(labels, [["cat", "low"], [], ["cat", "high"]], strict=True)
        )
        / 3
    )
    assert found["confusion"] == []
    assert any(
        line.startswith("micro-F1") for line in command("evaluate", several, data).lines
    )


def test_without_hashes_it_says_so(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "m", ignore=shutil.ignore_patterns("run"))
    ended = command("evaluate", copy, write(tmp_path / "new.csv", NEW))
    assert any("not checked for overlap with training" in line for line in ended.lines)


def test_there_is_no_beam(command: Command, folder: Path, tmp_path: Path) -> None:
    ended = command(
        "evaluate", folder, write(tmp_path / "new.csv", NEW), "--beam-size", 2
    )
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [
        f"weft: --beam-size: {folder} holds a model for classification, which searches nothing"
    ]


def test_a_precision_that_nothing_would_have_is_refused(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    ended = command(
        "evaluate", folder, write(tmp_path / "new.csv", NEW), "--precision", "bfloat16"
    )
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages[0].endswith(
        "holds a model for classification, which is scored in float32"
    )


def test_a_missing_column_is_named_with_those_that_are_there(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    data = write(tmp_path / "new.csv", NEW, header="review,label")
    ended = command("evaluate", folder, data)
    assert (ended.code, ended.out) == (3, b"")
    (message,) = ended.messages
    assert f"{data}:1: no column 'text'; columns: review, label" in message


def test_an_unknown_label_is_named_with_its_place(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    data = write(tmp_path / "new.csv", [*NEW, ("a cat", "middling")])
    ended = command("evaluate", folder, data)
    assert (ended.code, ended.out) == (3, b"")
    (message,) = ended.messages
    assert message.startswith(
        f"weft: {data}:6: the label 'middling' (1 row of the text)"
    )
    assert "'high', 'low'" in message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("none.csv", None),
        ("new.csv", b""),
        ("new.csv", b"text,label\n"),
        ("new.txt", b"cat\n"),
        ("new.csv", b"\xff"),
    ],
)
def test_wrong_data(
    command: Command, folder: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    ended = command("evaluate", folder, path)
    assert (ended.code, ended.out) == (3, b"")
    assert len(ended.messages) == 1
    assert str(path) in ended.err


# weft train


def test_training_says_how_to_use_it(command: Command, tmp_path: Path) -> None:
    train, test = (
        write(tmp_path / "train.csv", rows()),
        write(tmp_path / "test.csv", NEW),
    )
    wanted = (*SETTINGS, "model.ngram_buckets=1000")
    settings = [part for value in wanted for part in ("--set", value)]
    ended = command(
        "train", "--train", train, "--test", test, "--out", tmp_path / "m", *settings
    )
    assert (ended.code, ended.out) == (0, b"")
    assert any(
        line.startswith("64 texts, ") and "2 labels: high 32, low 32" in line
        for line in ended.messages
    )
    assert ended.messages[-3].startswith("test: accuracy ")
    assert ended.messages[-2].endswith(f"the model is in {tmp_path / 'm'}; try:")
    assert ended.messages[-1] == f'  weft classify {tmp_path / "m"} "..."'
    assert "--set task=classification" in (tmp_path / "m" / "README.md").read_text(
        "utf-8"
    )


def test_a_text_of_nothing_known_is_a_guess_and_that_is_said(
    command: Command, folder: Path
) -> None:
    ended = command("classify", folder, "the cat was sad", "asdf qwer", "", "zxcv")
    assert len(ended.lines) == 4
    notes = [line for line in ended.messages if "note: " in line]
    assert notes[:2] == [
        "weft: note: of 2 of 4 texts (lines 2, 4) the model knows no word; what it answers there is a guess",
        "weft: note: 1 of 4 texts (line 3) is empty; what the model answers there is a guess",
    ]
    said = "weft: note: 3 words were never seen in training: asdf, qwer, zxcv; they are most of the words of"
    assert notes[2:] == [
        f"{said} 2 of 4 texts (lines 2, 4), and the label there is a guess"
    ]
    (only, *_) = command("classify", folder, "asdf").messages
    assert (
        only
        == "weft: note: of this text the model knows no word; what it answers there is a guess"
    )
    ended = command("classify", folder, "--json", "the cat was sad", "asdf qwer")
    found = [json.loads(line) for line in ended.lines]
    assert [one["nothing_known"] for one in found] == [False, True]
    assert [one["unsure"] for one in found] == [False, True]


def test_a_label_is_called_a_guess_where_most_words_are_unknown(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    """By the same rule in the note at the end and in the table's column."""
    half, few = "the cat asdf qwer", "the asdf qwer zxcv"
    ended = command("classify", folder, "the cat was asdf", half)
    seen = "weft: note: 2 words were never seen in training: asdf, qwer"
    assert f"{seen}; the model answers by the other words" in ended.messages
    ended = command("classify", folder, half, few)
    seen = "weft: note: 3 words were never seen in training: asdf, qwer, zxcv"
    where = "they are most of the words of 1 of 2 texts (line 2)"
    assert f"{seen}; {where}, and the label there is a guess" in ended.messages
    (tmp_path / "in.csv").write_text(f"text\n{half}\n{few}\n")
    out = tmp_path / "out.csv"
    command("classify", folder, "--input", tmp_path / "in.csv", "--output", out)
    of_half, of_few = (row[-1].split("; ") for row in cells_of(out)[1:])
    assert "knows few words of it" in of_few
    assert "knows few words of it" not in of_half


def test_of_many_guesses_the_first_rows_are_named_with_their_ids(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    rows = "".join(f"T{i},asdf\nT{i}0,the cat was sad\n" for i in range(30))
    (tmp_path / "in.csv").write_text(f"ID,text\n{rows}")
    ended = command("classify", folder, "--input", tmp_path / "in.csv")
    rows = "rows 1 (id T0), 3 (id T1), 5 (id T2), 7 (id T3), 9 (id T4), ..."
    assert ended.messages[0] == (
        f"weft: note: of 30 of 60 texts ({rows}) the model knows no word; what it answers there is a guess"
    )


# weft classify, from table to table


def cells_of(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def written(rows: list[list[str]], delimiter: str, end: str) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    return out.getvalue().encode()


TICKETS = [
    ["id", "text", "", "price, or so"],
    ["7", TEXTS[0], "x", "1,5"],
    ["8", "a dog\r\nseems merry", 'a;b\tc, "d"', "\n"],
    ["9", "", "", ""],
    ["10", "asdf", "y", "'"],
    ["11", "the cat was " * 4 + "sad", "", " z "],
]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["no BOM", "BOM"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_answers_to_a_table_are_that_table_and_columns_beside_it(
    command: Command,
    folder: Path,
    tmp_path: Path,
    delimiter: str,
    end: str,
    mark: bytes,
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes(mark + written(TICKETS, delimiter, end))
    ended = command("classify", folder, "--input", path, "--output", out)
    assert (ended.code, ended.out) == (0, b"")
    content, found = out.read_bytes(), cells_of(out, delimiter)
    assert content.startswith(mark + b"id" + delimiter.encode())
    assert content.endswith(end.encode())
    assert content.count(b"\r\n") == written(found, delimiter, end).count(b"\r\n")
    assert [row[:4] for row in found] == TICKETS
    answers_to = answers(folder, [text for _, text, *_ in TICKETS[1:]])
    assert [row[4:] for row in found] == [
        ["label", "probability", "note"],
        *(
            [answer.label, f"{answer.probability:.4f}", note]
            for answer, note in zip(
                answers_to, ["", "", "empty", "knows no word of it", "cut"], strict=True
            )
        ),
    ]
    assert {p.name for p in tmp_path.iterdir()} == {"in.csv", "out.csv"}


def test_tsv_whose_quotes_are_text_stays_so(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    rows = ['7\t"the cat\t5" nails', 'the 8\ta "dog" seems merry\t"']
    path, out = tmp_path / "in.tsv", tmp_path / "out.tsv"
    path.write_text("\n".join(["id\ttext\tx", *rows]) + "\n")
    assert command("classify", folder, "--input", path, "--output", out).code == 0
    head, *found = out.read_text().split("\n")[:-1]
    assert head == "id\ttext\tx\tlabel\tprobability\tnote"
    assert [line.rsplit("\t", 3)[0] for line in found] == rows


def test_a_table_of_the_other_kind_is_written_as_its_name_says(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"sep=;\r\n" + written(TICKETS, ";", "\r\n")))
    command("classify", folder, "--input", path, "--output", tmp_path / "out.tsv")
    assert [row[:4] for row in cells_of(tmp_path / "out.tsv", "\t")] == TICKETS
    command("classify", folder, "--input", path, "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes().startswith(b"sep=;\r\nid;text;")
    command(
        "classify",
        folder,
        "--input",
        tmp_path / "out.tsv",
        "--output",
        tmp_path / "again.csv",
    )
    assert cells_of(tmp_path / "again.csv")[0][4:] == [
        *("label", "probability", "note"),
        *("model_label", "model_probability", "model_note"),
    ]


def test_new_columns_take_no_name_that_is_there(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(f"text,Label ,model_note\n{TEXTS[0]},old,\n")
    command("classify", folder, "--input", path, "--output", out, "--all")
    head, row = cells_of(out)
    assert head[:3] == ["text", "Label ", "model_note"]
    assert head[3:6] == ["model2_label", "model2_probability", "model2_note"]
    assert head[6:] == ["model2_probability of high", "model2_probability of low"]
    (answer,) = answers(folder, TEXTS[:1])
    assert row[6:] == [
        f"{answer.probabilities[label]:.4f}" for label in ("high", "low")
    ]


def test_several_labels_stand_in_a_table_as_in_that_of_training(
    command: Command, several: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("text\nthe cat was sad\na bird, was merry\n")
    command("classify", several, "--input", path, "--output", out)
    both, none = answers(several, ["the cat was sad", "a bird, was merry"])
    rows = cells_of(out)
    assert none.labels == []
    assert rows[1][:3] == ["the cat was sad", "cat;low", f"{both.probability:.4f}"]
    assert rows[2][:3] == ["a bird, was merry", "", "0.0000"]


def test_rows_that_get_no_label_are_noted_and_counted(
    command: Command, several: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,text\n7,the cat was sad\n8,a bird was merry\n9,\n")
    ended = command("classify", several, "--input", path, "--output", out)
    assert ended.code == 0
    assert [("no label" in row[-1], row[2]) for row in cells_of(out)[1:3]] == [
        (False, "cat;low"),
        (True, ""),
    ]
    note = "note: 1 of 3 texts (row 2 (id 8)) gets no label: none has a probability of one half"
    assert any(note in line for line in ended.messages)
    ended = command("classify", several, "a bird was merry")
    assert any("this text gets no label" in line for line in ended.messages)
    # what has a label is not counted
    ended = command("classify", several, "the cat was sad")
    assert not any("no label" in line for line in ended.messages)


@pytest.mark.parametrize(("name", "more"), [("out.txt", []), ("out.jsonl", ["--json"])])
def test_other_names_and_json_are_lines_as_ever(
    command: Command, folder: Path, tmp_path: Path, name: str, more: list[str]
) -> None:
    (tmp_path / "in.csv").write_bytes(TABLES["in.csv"].encode())
    arguments = ("classify", folder, "--input", tmp_path / "in.csv", *more)
    command(*arguments, "--output", tmp_path / name)
    assert (tmp_path / name).read_bytes() == command(*arguments).out


@pytest.mark.parametrize(
    ("source", "output", "code", "message"),
    [
        ("in.csv", "out.xlsx", 2, "name it .csv, which spreadsheets open"),
        ("in.xlsx", "out.csv", 3, "is a spreadsheet, not one text a line; save it as CSV"),
    ],
)  # fmt: skip
def test_a_spreadsheet_is_told_how_it_becomes_a_table(
    command: Command,
    folder: Path,
    tmp_path: Path,
    source: str,
    output: str,
    code: int,
    message: str,
) -> None:
    is_table = source == "in.csv"
    (tmp_path / source).write_bytes(
        TABLES["in.csv"].encode() if is_table else b"PK\x03\x04"
    )
    asked = ("--input", tmp_path / source, "--output", tmp_path / output)
    ended = command("classify", folder, *asked)
    assert (ended.code, ended.out) == (code, b"")
    assert message in ended.err


def test_a_file_taken_as_a_text_is_said_before_the_output(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_bytes(TABLES["in.csv"].encode())
    ended = command(
        "classify", folder, tmp_path / "in.csv", "--output", tmp_path / "o.csv"
    )
    assert (ended.code, "--input" in ended.messages[0]) == (2, True)


@pytest.mark.parametrize("name", ["id", "Ticket-ID", "ticket_id", "ID"])
def test_a_row_is_named_by_its_id(name: str) -> None:
    assert named_row(3, {name: "T-7", "text": "x"}, None) == "3 (id T-7)"
    assert named_row(3, {"valid": "T-7", "text": "x"}, None) == "3"


@pytest.mark.parametrize("verb", ["classify", "evaluate"])
def test_kernels_torch_reaches_the_model(
    command: Command,
    folder: Path,
    tmp_path: Path,
    attention_calls: list[int],
    verb: str,
) -> None:
    given = (
        ["the cat was happy"]
        if verb == "classify"
        else [write(tmp_path / "new.csv", NEW)]
    )
    assert command(verb, folder, *given).code == 0
    assert attention_calls == []
    assert command(verb, folder, *given, "--kernels", "torch").code == 0
    assert attention_calls


def test_a_table_out_of_json_lines_is_told_what_keeps_its_rows() -> None:
    with pytest.raises(UsageError) as caught:
        refuse_other_form(Path("out.csv"), Path("in.jsonl"), False, False)
    assert str(caught.value).endswith(
        "add --json and give --output out.jsonl, which keeps each row with its answer; or name it .txt"
    )
