"""weft translate: one line out for each line in, whatever the lines are; where one is malformed,
nothing.
"""

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import weft
from weft.cli.answers import translation_cells
from weft.cli.doubts import doubts_of
from weft.cli.guesses import Guesses
from weft.engine.from_model import weights_of
from weft.engine.stream import source_shares
from weft.folder.model_folder import TranslationConfig, open_model_folder
from weft.inspection.translation import inspect_translation
from weft.kernels.torch_machine import choose_machine
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.prediction import Alternative, OutputLimit, Prediction
from weft.predict.settings import DecodingSettings
from weft.predict.text import looks_like_sentence
from weft.predict.translator import Translator
from weft.tasks.trainable_translation import TrainableTranslation

Command = Callable[..., Any]
SENTENCES = ["cat sees dog.", "fish wants mouse.", "bird likes horse."]


@pytest.fixture(scope="module")
def expected(tiny_folder: Path) -> list[str]:
    return [p.text for p in weft.load(tiny_folder).translate(SENTENCES)]


def test_the_model_says_something_different_to_each(expected: list[str]) -> None:
    """Else a swapped line would not be noticed below."""
    assert len(set(expected)) == 3
    assert all(expected)


def test_from_arguments(
    command: Command, tiny_folder: Path, expected: list[str]
) -> None:
    ended = command("translate", tiny_folder, *SENTENCES)
    assert (ended.code, ended.lines, ended.err) == (0, expected, "")


@pytest.mark.parametrize("last", ["\n", ""], ids=["line end at the end", "none"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_from_standard_input(
    command: Command, tiny_folder: Path, expected: list[str], end: str, last: str
) -> None:
    text = end.join(SENTENCES) + (end if last else "")
    ended = command("translate", tiny_folder, stdin=text.encode())
    assert (ended.code, ended.lines, ended.err) == (0, expected, "")


REFUSED = {
    "in.csv": "a,b\n",
    "in.tsv": "a\tb\n",
    "in.jsonl": '{"text": "a"}\n',
    "messages": 'msgid "a"\nmsgstr "b"\n',
    "in": "<?xml version='1.0'?><xliff/>",
    "in.doc": "PK\x03\x04",
    "in.txt": "%PDF-1.4",
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_no_lines_are_refused_with_their_remedy(
    command: Command, tiny_folder: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(REFUSED[name])
    ended = command("translate", tiny_folder, "--input", tmp_path / name)
    assert (ended.code, ended.out) == (3, b"")
    assert len(ended.messages) == 1
    assert ended.messages[0].startswith(f"weft: {tmp_path / name}: is ")
    assert ", not one text a line; " in ended.err
    assert ("standard input" in ended.err) is (name in ("in.csv", "in.tsv", "in.jsonl"))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("page", "<!DOCTYPE html>", "an HTML page"),
        ("film", "1\n00:00:01,000 --> 00:00:02,000\ncat\n", "subtitles (SRT)"),
        ("notes", "<?xml version='1.0'?><cat/>", "XML"),
    ],
)
def test_lines_that_may_be_meant_are_taken_with_a_warning(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    name: str,
    text: str,
    words: str,
) -> None:
    (tmp_path / name).write_text(text)
    ended = command("translate", tiny_folder, "--input", tmp_path / name)
    assert ended.code == 0
    assert ended.messages[0].startswith(
        f"weft: {tmp_path / name} looks like {words}; its lines are taken as they are"
    )
    assert len(ended.lines) == len(text.rstrip("\n").split("\n"))


def test_what_comes_by_a_pipe_is_known_by_its_content_alone(
    command: Command, tiny_folder: Path
) -> None:
    assert (
        "standard input looks like an HTML page"
        in command("translate", tiny_folder, stdin=b"<html>\n").err
    )
    ended = command("translate", tiny_folder, stdin=b'{"text": "cat"}\n')
    assert (ended.code, len(ended.lines)) == (0, 1)
    assert "looks like JSON" in ended.err
    ended = command("translate", tiny_folder, stdin=b'msgid "a"\nmsgstr "b"\n')
    assert (ended.code, ended.out) == (3, b"")
    assert "standard input: is a PO file" in ended.err
    assert "HTML" not in command("translate", tiny_folder, "<html>").err


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("in.tsv", "en\tde\n{0}\teins\n{1}\tzwei\n", "en"),
        ("in.tsv", "de\ten\neins\t{0}\nzwei\t{1}\n", "2"),
        ("in.tsv", "{0}\teins\n\n{1}\tzwei\n", "1"),
        ("in.txt", "{0}\teins\n{1}\tzwei\n", "1"),
        ("in.csv", 'id,text\n1,{0}\n2,"{1}"\n', "text"),
        ("in.csv", "id,text\n1,{0}\n2,{1}\n", "2"),
        ("in.jsonl", '{{"a": 1, "b": "{0}"}}\n{{"a": 2, "b": "{1}"}}\n', "b"),
    ],
)
def test_a_column_of_a_table_is_translated_row_by_row(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    expected: list[str],
    name: str,
    text: str,
    column: str,
) -> None:
    (tmp_path / name).write_text(text.format(*SENTENCES))
    ended = command(
        "translate", tiny_folder, "--input", tmp_path / name, "--column", column
    )
    assert (ended.code, ended.lines) == (0, expected[:2])
    assert ("rows left out: 1 (empty line)" in ended.err) is ("\n\n" in text)
    assert ("names the columns and is no text" in ended.err) is (text[:2] == "de")


def test_an_empty_cell_is_an_empty_line(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(f"id,text\n1,\n2,{SENTENCES[0]}\n")
    ended = command(
        "translate", tiny_folder, "--input", tmp_path / "in.csv", "--column", "text"
    )
    assert (len(ended.lines), ended.lines[0]) == (2, "")


@pytest.mark.parametrize(
    ("name", "column", "code", "message"),
    [
        (
            "in.tsv",
            None,
            3,
            "for one column: --input FILE --column NAME, or its number",
        ),
        ("in.tsv", "fr", 3, "no column 'fr'; columns: en, de"),
        (
            "in.tsv",
            "3",
            3,
            "in.tsv:1: there is no column 3, but 2; they are counted from 1",
        ),
        ("in.tsv", "0", 3, "in.tsv:1: there is no column 0, but 2"),
        ("none.tsv", "1", 2, "none.tsv: no such file"),
    ],
)
def test_a_column_that_is_not_there(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    name: str,
    column: str | None,
    code: int,
    message: str,
) -> None:
    (tmp_path / "in.tsv").write_text(f"en\tde\n{SENTENCES[0]}\teins\n")
    asked = ["--column", column] if column else []
    ended = command("translate", tiny_folder, "--input", tmp_path / name, *asked)
    assert (ended.code, ended.out) == (code, b"")
    assert message in ended.err


@pytest.mark.parametrize("output", [None, "out.csv"])
def test_a_column_of_another_case_is_named_by_the_option(
    command: Command, tiny_folder: Path, tmp_path: Path, output: str | None
) -> None:
    (tmp_path / "in.csv").write_text(f"id;Text\n1;{SENTENCES[0]}\n")
    asked = ["--input", tmp_path / "in.csv", "--column", "text"]
    more = ["--output", tmp_path / output] if output else []
    ended = command("translate", tiny_folder, *asked, *more)
    assert (ended.code, ended.out) == (3, b"")
    assert ended.err.endswith("; did you mean --column Text?\n")


def test_a_table_is_refused_with_its_separator(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(f"id;Text\n1;{SENTENCES[0]}\n")
    ended = command("translate", tiny_folder, "--input", tmp_path / "in.csv")
    assert ended.code == 3
    assert "in.csv: is a table of cells between semicolons, not one text" in ended.err


def test_a_column_is_of_a_table_alone(command: Command, tiny_folder: Path) -> None:
    ended = command("translate", tiny_folder, SENTENCES[0], "--column", "1")
    assert (ended.code, "give the table by --input FILE" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("source", "text", "column", "output", "wanted"),
    [
        (
            "in.csv",
            "id;text\r\n1;{0}\r\n2;{1}\r\n",
            "text",
            "out.csv",
            "id;text;translation;note\r\n1;{0};{2};{4}\r\n2;{1};{3};{5}\r\n",
        ),
        (
            "in.csv",
            "text,Note\n{0},x\n{1},y\n",
            "1",
            "out.tsv",
            "text\tNote\tmodel_translation\tmodel_note\n{0}\tx\t{2}\t{4}\n{1}\ty\t{3}\t{5}\n",
        ),
        (
            "in.tsv",
            "en\tde\n{0}\teins\n{1}\tzwei\n",
            "1",
            "out.tsv",
            "en\tde\ttranslation\tnote\n{0}\teins\t{2}\t{4}\n{1}\tzwei\t{3}\t{5}\n",
        ),
    ],
)
def test_a_table_is_written_as_a_table(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    source: str,
    text: str,
    column: str,
    output: str,
    wanted: str,
) -> None:
    (tmp_path / source).write_text(text.format(*SENTENCES), newline="")
    predictions = weft.load(tiny_folder).translate(SENTENCES[:2])
    translated = [prediction.text for prediction in predictions]
    notes = [note_of(prediction) for prediction in predictions]
    asked = ("--input", tmp_path / source, "--column", column)
    ended = command("translate", tiny_folder, *asked, "--output", tmp_path / output)
    assert (ended.code, ended.out) == (0, b"")
    whole = wanted.format(*SENTENCES[:2], *translated, *notes)
    assert (tmp_path / output).read_bytes().decode() == whole


def note_of(prediction: Prediction) -> str:
    doubts = {
        "truncated": prediction.truncated,
        "repetition": prediction.repetition,
        "empty": prediction.empty,
        "short": prediction.short,
        "unsure": prediction.unsure,
    }
    return "; ".join(name for name, is_so in doubts.items() if is_so)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("x.csv", (), "lines of text are written, not a comma-separated table; name it .txt"),
        ("x.xlsx", (), "lines of text are written, not a spreadsheet; name it .txt"),
        ("x.html", (), "lines of text are written, not an HTML page; name it .txt"),
        ("x.jsonl", (), "lines of text are written, not JSON, an object a line; give --json too"),
        ("x.csv", ("--json",), "lines of JSON are written, not a comma-separated table; name it .jsonl"),
        ("x.txt.gz", (), "it is not compressed; leave .gz out"),
    ],
)  # fmt: skip
def test_an_output_named_as_what_is_not_written(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    name: str,
    more: tuple[str, ...],
    message: str,
) -> None:
    output = tmp_path / name
    ended = command("translate", tiny_folder, SENTENCES[0], "--output", output, *more)
    assert (ended.code, ended.messages) == (2, [f"weft: --output {output}: {message}"])
    assert list(tmp_path.iterdir()) == []


def test_the_best_n_are_no_table(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(f"id,text\n1,{SENTENCES[0]}\n")
    asked = ("--input", tmp_path / "in.csv", "--column", "text", "--n-best", 2)
    ended = command("translate", tiny_folder, *asked, "--output", tmp_path / "out.csv")
    assert (ended.code, "a table gets one translation a row" in ended.err) == (2, True)


def test_lines_with_tabs_are_told_from_text(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text(
        "".join(f"{text}\teins\n" for text in SENTENCES[:2])
    )
    ended = command("translate", tiny_folder, "--input", tmp_path / "in.txt")
    assert (ended.code, len(ended.lines)) == (0, 2)
    assert (
        f"{tmp_path / 'in.txt'}: every line has a TAB and is taken as it is; one column: --input"
        in ended.err
    )
    assert (
        "TAB"
        not in command(
            "translate", tiny_folder, stdin=f"a\tb\n{SENTENCES[0]}\n".encode()
        ).err
    )


def test_one_column_named_as_a_table_is_lines(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.tsv").write_text(f"{SENTENCES[0]}\n")
    ended = command("translate", tiny_folder, "--input", tmp_path / "in.tsv")
    assert (ended.code, len(ended.lines), ended.err) == (0, 1, "")


def test_from_file_to_file(
    command: Command, tiny_folder: Path, tmp_path: Path, expected: list[str]
) -> None:
    (tmp_path / "in").write_bytes("\n".join(SENTENCES).encode())
    ended = command(
        "translate",
        tiny_folder,
        "--input",
        tmp_path / "in",
        "--output",
        tmp_path / "out",
    )
    assert (ended.code, ended.out, ended.err) == (0, b"", "")
    assert (tmp_path / "out").read_bytes().decode() == "".join(
        f"{line}\n" for line in expected
    )
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out"}


def test_a_file_given_as_a_text_is_noticed(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "cat"
    file.write_text("i want a beer .\n", "utf-8")
    ended = command("translate", str(tiny_folder), str(file), "x" * 5000)
    assert (ended.code, ended.out.count(b"\n")) == (0, 2)
    assert ended.err.startswith(
        f"weft: {file} is taken as a text; --input {file} reads the file\n"
    )
    assert ended.err.count("is taken as") == 1


def test_no_input_gives_no_output(command: Command, tiny_folder: Path) -> None:
    ended = command("translate", tiny_folder, stdin=b"")
    assert (ended.code, ended.out, ended.err) == (0, b"", "")


def test_blank_lines_stay_in_their_place(
    command: Command, tiny_folder: Path, expected: list[str]
) -> None:
    first, second, _ = expected
    ended = command(
        "translate",
        tiny_folder,
        stdin=f"\n{SENTENCES[0]}\n \t\n\r\n{SENTENCES[1]}\n\n".encode(),
    )
    assert ended.lines == ["", first, "", "", second, ""]


def test_a_byte_order_mark_is_no_text(
    command: Command, tiny_folder: Path, expected: list[str]
) -> None:
    ended = command(
        "translate", tiny_folder, stdin=b"\xef\xbb\xbf" + SENTENCES[0].encode() + b"\n"
    )
    assert ended.lines == expected[:1]


@pytest.mark.parametrize(
    "inside", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"]
)
def test_only_line_feeds_end_a_line(
    command: Command, tiny_folder: Path, expected: list[str], inside: str
) -> None:
    ended = command(
        "translate",
        tiny_folder,
        stdin=f"cat{inside}sees dog.\n{SENTENCES[1]}\n".encode(),
    )
    assert len(ended.lines) == 2
    assert ended.lines[1] == expected[1]


def test_line_ends_inside_an_argument_become_spaces(
    command: Command, tiny_folder: Path, expected: list[str]
) -> None:
    ended = command("translate", tiny_folder, "cat\nsees\r\ndog.", SENTENCES[1])
    assert ended.lines == expected[:2]


@pytest.mark.parametrize("to_file", [False, True])
def test_invalid_utf8_is_named_and_nothing_written(
    command: Command, tiny_folder: Path, tmp_path: Path, to_file: bool
) -> None:
    (tmp_path / "in").write_bytes(b"cat.\ndog.\ncaf\xe9 sees\nfish.\n")
    where = ("--output", tmp_path / "out") if to_file else ()
    ended = command("translate", tiny_folder, "--input", tmp_path / "in", *where)
    assert (ended.code, ended.out) == (3, b"")
    path = tmp_path / "in"
    assert len(ended.messages) == 1
    assert ended.messages[0].startswith(
        f"weft: {path}:3: not UTF-8 at the text's byte 13; it looks like WINDOWS-"
    )
    assert ended.messages[0].endswith(
        f"or convert it: iconv -f WINDOWS-1252 -t UTF-8 {path} > {tmp_path / 'utf8.in'}"
    )
    assert {p.name for p in tmp_path.iterdir()} == {"in"}


def test_invalid_utf8_on_standard_input(command: Command, tiny_folder: Path) -> None:
    ended = command("translate", tiny_folder, stdin=b"cat.\n\n\xff\n")
    assert (ended.code, ended.out) == (3, b"")
    assert ended.messages[0].startswith("weft: standard input:3: not UTF-8")


@pytest.mark.parametrize(
    "way", ["same name", "symbolic link", "hard link", "another path"]
)
def test_the_input_is_never_the_output(
    command: Command, tiny_folder: Path, tmp_path: Path, way: str
) -> None:
    source, target = tmp_path / "in", tmp_path / "other"
    source.write_bytes(b"cat sees dog.\n")
    if way == "symbolic link":
        target.symlink_to(source)
    elif way == "hard link":
        target.hardlink_to(source)
    else:
        target = (
            source if way == "same name" else tmp_path / ".." / tmp_path.name / "in"
        )
    ended = command("translate", tiny_folder, "--input", source, "--output", target)
    assert (ended.code, ended.out) == (2, b"")
    assert len(ended.messages) == 1
    assert "is the input itself" in ended.err
    assert source.read_bytes() == b"cat sees dog.\n"


def test_an_output_that_cannot_be_written(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command(
        "translate", tiny_folder, "cat.", "--output", tmp_path / "none" / "out"
    )
    assert (ended.code, ended.out) == (5, b"")
    assert len(ended.messages) == 1
    assert "cannot be written" in ended.err


def test_alternatives(command: Command, tiny_folder: Path, expected: list[str]) -> None:
    ended = command(
        "translate",
        tiny_folder,
        "--n-best",
        3,
        "--beam-size",
        5,
        stdin=b"cat sees dog.\n\nbird.\n",
    )
    rows = [line.split("\t") for line in ended.lines]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    assert rows[0][2] == expected[0]
    scores = [float(row[1]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    assert rows[3] == ["2", "", ""]


def test_samples(command: Command, tiny_folder: Path) -> None:
    asked = ("translate", tiny_folder, "--temperature", 2, "--n-best", 3)
    rows = [line.split("\t") for line in command(*asked, *SENTENCES).lines]
    assert [row[0] for row in rows] == [
        str(number) for number in (1, 2, 3) for _ in range(3)
    ]
    assert len({row[2] for row in rows}) > 3
    assert [["1", *row[1:]] for row in rows[3:6]] == [
        line.split("\t") for line in command(*asked, SENTENCES[1]).lines
    ]
    assert [
        line.split("\t") for line in command(*asked, *SENTENCES, "--seed", 2).lines
    ] != rows


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_minimum_bayes_risk(command: Command, tiny_folder: Path, utility: str) -> None:
    asked = (
        "translate",
        tiny_folder,
        SENTENCES[0],
        "--mbr",
        8,
        "--utility",
        utility,
        "--seed",
        4,
    )
    rows = [
        line.split("\t")
        for line in command(*asked, "--n-best", 3, "--temperature", 1.5).lines
    ]
    scores = [float(row[1]) for row in rows]
    assert 0 <= scores[2] <= scores[1] <= scores[0] <= 100
    assert len({row[2] for row in rows}) == 3
    assert command(*asked).code == 0
    assert command(*asked[:-3], "meteor").messages == [
        "weft: --utility = meteor: it must be one of chrf, bleu"
    ]


def test_an_ensemble(
    command: Command, tiny_folder: Path, expected: list[str], other: Path
) -> None:
    asked = ("translate", tiny_folder, *SENTENCES, "--ensemble")
    assert command(*asked, tiny_folder).lines == expected
    assert (
        command(*asked, tiny_folder, "--ensemble", tiny_folder, "--temperature", 0).code
        == 0
    )
    ended = command(*asked, other)
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [
        f"weft: --ensemble {other}: its source tokenizer is another; the models of an ensemble need the same one"
    ]


@pytest.fixture(scope="module")
def other(
    tmp_path_factory: pytest.TempPathFactory,
    write_pairs: Any,
    tiny_settings: tuple[str, ...],
) -> Path:
    """A model of the same languages and other tokenizers."""
    out = tmp_path_factory.mktemp("other") / "model"
    weft.train(
        out=out,
        train=write_pairs(40),
        settings=(*tiny_settings, "training.max_steps=1"),
        quiet=True,
    )
    return out


def test_json_lines(command: Command, tiny_folder: Path, expected: list[str]) -> None:
    ended = command(
        "translate",
        tiny_folder,
        "--json",
        "--n-best",
        2,
        stdin="cat sees dog.\n\n猫\n".encode(),
    )
    objects = [json.loads(line) for line in ended.lines]
    assert [set(o) for o in objects] == [
        {
            *(
                "text",
                "score",
                "truncated",
                "segments",
                "n_best",
                "tokens",
                "token_log_probs",
            ),
            *("empty", "repetition", "short", "source_cut", "output_limit"),
            *("unsure", "unknown_words"),
        },
    ] * 3
    assert objects[0]["text"] == expected[0] == objects[0]["n_best"][0]["text"]
    assert len(objects[0]["n_best"]) == 2
    assert objects[0]["truncated"] is False
    assert objects[1] == {
        "text": "",
        "score": None,
        "truncated": False,
        "segments": 0,
        "n_best": [],
        "tokens": [],
        "token_log_probs": [],
        "empty": False,
        "repetition": False,
        "short": False,
        "source_cut": False,
        "output_limit": None,
        "unsure": False,
        "unknown_words": [],
    }
    assert ended.err == ""


def test_alignments_are_the_shares_of_the_source(
    command: Command, tiny_folder: Path
) -> None:
    """Each token comes from what the plain pass says has written most of it; words are those that
    inspect shows.
    """
    ended = command("translate", tiny_folder, "--json", "--alignments", *SENTENCES)
    for text, line in zip(SENTENCES, ended.lines, strict=True):
        found = json.loads(line)
        task = TrainableTranslation.load(tiny_folder, choose_machine("float32"))
        inspection = inspect_translation(task, text)
        assert isinstance(task.model, Seq2SeqTransformer)
        shares = source_shares(
            weights_of(task.model), inspection.src_ids, inspection.tgt_ids
        )
        of_words = shares[:-1, :-1].argmax(1).tolist()
        from_ = [*of_words, int(shares[-1].argmax())]
        assert [link["source"] for link in found["alignments"]] == from_
        assert (
            [link["target_token"] for link in found["alignments"]]
            == found["tokens"]
            == inspection.tgt_pieces
        )
        assert [link["source_token"] for link in found["alignments"]] == [
            inspection.src_pieces[s] for s in from_
        ]
        assert [
            round(math.exp(p), 3) for p in found["token_log_probs"]
        ] == pytest.approx(
            [choice.probability for choice in inspection.chosen], abs=2e-3
        )
        for word in found["words"]:
            assert found["text"][word["start"] : word["end"]] == word["text"]
            assert word["probability"] == pytest.approx(math.exp(word["log_prob"]))
            for source in word["sources"]:
                assert text[source["start"] : source["end"]] == source["text"]
        shown = [word["text"] for word in found["words"]]
        assert shown == [*found["text"][:-1].split(), "."] == inspection.alignment.tgt
        pairs = [
            [source["number"], number]
            for number, word in enumerate(found["words"])
            for source in word["sources"]
        ]
        assert pairs == [list(pair) for pair in inspection.alignment.pairs]
    refused = command("translate", tiny_folder, "--alignments", "cat.")
    assert (refused.code, refused.out) == (2, b"")
    assert refused.messages == [
        "weft: --alignments are written with --json alone; give that too"
    ]


def test_a_coverage_penalty_changes_the_scores(
    command: Command, tiny_folder: Path
) -> None:
    asked = ("translate", tiny_folder, SENTENCES[0], "--n-best", 3)
    plain, covered = (
        [float(line.split("\t")[1]) for line in command(*asked, *more).lines]
        for more in ((), ("--coverage-penalty", 0.5))
    )
    assert all(a < b for a, b in zip(covered, plain, strict=True))


def test_what_is_cut_is_said_on_standard_error(
    command: Command, tiny_folder: Path, expected: list[str]
) -> None:
    """The model takes 256 source tokens; a word without spaces, unknown to it, has one for each
    byte.
    """
    ended = command(
        "translate",
        tiny_folder,
        "--beam-size",
        1,
        stdin=f"{SENTENCES[0]}\n{'x' * 300}\n".encode(),
    )
    assert ended.code == 0
    assert len(ended.lines) == 2
    said, *notes = ended.messages
    assert all(": note: " in line for line in notes)
    assert said == (
        "weft: line 2: truncated: a sentence is longer than the model reads, and its end was not translated; "
        "make it several sentences, or train with a larger data.max_len"
    )
    asked = command("translate", tiny_folder, "--beam-size", 1, "--json", "x" * 300)
    found = json.loads(asked.lines[0])
    assert (found["truncated"], found["source_cut"]) == (True, True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("column", ["text", "2"])
def test_the_lines_of_a_cell_are_sentences(
    command: Command, tiny_folder: Path, tmp_path: Path, end: str, column: str
) -> None:
    table = tmp_path / "cells.csv"
    both = f"cat sees dog.{end}bird hears fish."
    table.write_bytes(f'id,text\n1,"{both}"\n2,"{end}"\n'.encode())
    asked = ("translate", tiny_folder, "--input", table, "--column", column)
    first, second = command(*asked, "--json").lines
    alone = command("translate", tiny_folder, "cat sees dog.", "bird hears fish.").lines
    found = json.loads(first)
    assert (found["segments"], found["text"]) == (2, " ".join(alone))
    assert json.loads(second)["text"] == ""
    assert command(*asked).lines == [" ".join(alone), ""]
    output = tmp_path / "out.csv"
    assert command(*asked, "--output", output).code == 0
    assert " ".join(alone) in output.read_text("utf-8")


def test_fewer_different_samples_than_asked_for_are_told(
    command: Command, tiny_folder: Path
) -> None:
    asked = ("--mbr", 4, "--temperature", 0.001, "--n-best", 3)
    ended = command("translate", tiny_folder, *asked, SENTENCES[0])
    assert (ended.code, len(ended.lines)) == (0, 1)
    assert ended.messages[0] == (
        "weft: line 1: fewer: only 1 different of the 3 translations asked for; "
        "more samples (--mbr) or a higher --temperature may give more"
    )
    ended = command("translate", tiny_folder, "--n-best", 3, SENTENCES[0])
    assert (len(ended.lines), "fewer" in ended.err) == (3, False)


@pytest.fixture(scope="module")
def config(tiny_folder: Path) -> TranslationConfig:
    """A config of a beam of 5, whose sources are limited by `data.max_len`."""
    stored = open_model_folder(tiny_folder).config
    assert isinstance(stored, TranslationConfig)
    beam = stored.decoding.model_copy(update={"beam_size": 5})
    limits = {"max_src_len": stored.model.max_len - 1, "decoding": beam}
    return stored.model_copy(update=limits)


def test_an_empty_translation_is_called_empty(config: TranslationConfig) -> None:
    usual = DecodingSettings()
    nothing = Prediction("", -1.0, 0, [], [])
    (said,) = doubts_of(nothing, "cat sees dog.", config, usual)
    assert said.startswith("empty: the model answers nothing; --beam-size 1, a larger")
    assert doubts_of(nothing, " ", config, usual) == []
    partly = Prediction("Hund.", -1.0, 2, [], [], empty=True)
    (said,) = doubts_of(partly, "cat sees dog. cat.", config, usual)
    assert said.startswith("empty: the model answers nothing to one of its sentences")
    assert "--beam-size 1" in said
    brief = Prediction("Hund.", -1.0, 1, [], [], short=True)
    (said,) = doubts_of(brief, "cat sees dog. cat.", config, usual)
    assert said.startswith("short: far fewer tokens for its source than nearly all")
    assert said.endswith(
        "if the text is several sentences, give each on a line of its own"
    )


@pytest.mark.parametrize(
    ("options", "remedies"),
    [
        ({}, ["--beam-size", "--length-penalty"]),
        ({"beam_size": 1}, []),
        ({"exhaustive": 2}, ["--length-penalty"]),
        ({"temperature": 1.0}, ["--seed"]),
        ({"temperature": 0.0}, []),
        ({"mbr": 4}, ["--seed"]),
    ],
)
def test_no_remedy_is_named_that_the_settings_refuse_or_that_changes_nothing(
    config: TranslationConfig, options: dict[str, Any], remedies: list[str]
) -> None:
    asked = DecodingSettings(**options)
    for empty in (
        Prediction("", -1.0, 0, [], []),
        Prediction("Hund.", -1.0, 2, [], [], empty=True),
    ):
        (said,) = doubts_of(empty, "cat sees dog.", config, asked)
        assert re.findall(r"--[a-z-]+", said) == remedies
        assert said.endswith("more training or more text like this may give text")
    greedy = config.decoding.model_copy(update={"beam_size": 1})
    alone = config.model_copy(update={"decoding": greedy})
    (said,) = doubts_of(Prediction("", -1.0, 0, [], []), "a", alone, asked)
    assert "--beam-size" not in said
    endless = Prediction("a a a", -1.0, 1, [], [], repetition=True)
    (said,) = doubts_of(endless, "cat sees dog.", config, asked)
    assert ("--no-repeat-ngrams" in said) == ("exhaustive" not in options)


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"beam_size": 5}, "asked for"),
        ({"exhaustive": 2}, "asked for; a larger --exhaustive may give more"),
        (
            {"mbr": 4},
            "asked for; more samples (--mbr) or a higher --temperature may give more",
        ),
    ],
)
def test_what_gives_more_translations_is_told_by_how_they_are_found(
    config: TranslationConfig, options: dict[str, Any], end: str
) -> None:
    two = Prediction("a", -1.0, 1, [Alternative("a", -1.0, False)] * 2, [])
    (said,) = doubts_of(two, "cat.", config, DecodingSettings(n_best=3, **options))
    assert said == f"fewer: only 2 different of the 3 translations {end}"
    assert doubts_of(two, "cat.", config, DecodingSettings(n_best=2, **options)) == []


@pytest.mark.parametrize(
    ("limit", "remedy"),
    [
        ("decoding.max_len_ratio", "weft train --from with a larger decoding.max_len_ratio or max_len_extra raises it"),
        ("model.max_len", "translate shorter texts, or train a new model with a larger model.max_len"),
        ("exhaustive", "a larger number for exhaustive allows longer ones"),
    ],
)  # fmt: skip
def test_a_translation_that_comes_to_no_end_is_said_to_be_cut_at_its_own_limit(
    limit: OutputLimit, remedy: str, config: TranslationConfig
) -> None:
    usual = DecodingSettings()
    endless = Prediction("a b", -1.0, 1, [], [], output_limit=limit)
    end = (
        f"truncated: the translation came to no end and was cut at its limit; {remedy}"
    )
    assert doubts_of(endless, "cat sees dog.", config, usual) == [end]
    # no larger limit helps what repeats itself
    again = replace(endless, repetition=True)
    cut, remedy = doubts_of(again, "cat sees dog.", config, usual)
    assert cut == "truncated: the translation was cut, as it repeats itself"
    assert remedy.endswith("--no-repeat-ngrams 3 forbids that")
    # where both were cut, both are said; a table's note has the word once
    both = replace(endless, source_cut=True)
    full = config.model_copy(update={"max_src_len": config.model.max_len})
    for key, limited in (("data.max_len", config), ("model.max_len", full)):
        source, output = doubts_of(both, "cat sees dog.", limited, usual)
        assert source.startswith("truncated: a sentence is longer than the model reads")
        assert source.endswith(f" with a larger {key}")
    assert output == end
    assert translation_cells(endless, [source, output]) == ["a b", "truncated"]


def test_of_many_doubts_the_first_are_told_and_the_rest_counted(
    command: Command, tiny_folder: Path
) -> None:
    text = f"{'x' * 300}\n".encode() * 25
    ended = command("translate", tiny_folder, "--beam-size", 1, stdin=text)
    assert (ended.code, len(ended.lines)) == (0, 25)
    assert ended.messages[19].startswith("weft: line 20: truncated: ")
    said = (
        "weft: 5 more such doubts; with --json each line says what is doubtful about it"
    )
    assert ended.messages[20] == said
    assert all(": note: " in line for line in ended.messages[21:])


def test_a_tab_in_a_translation_is_a_space_among_the_columns(
    command: Command, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Translator._translate

    def with_a_tab(self: Translator, texts: list[str], settings: Any) -> Any:
        return [
            replace(
                found,
                n_best=[
                    replace(a, text=a.text.replace(" ", "\t")) for a in found.n_best
                ],
            )
            for found in real(self, texts, settings)
        ]

    plain = command("translate", tiny_folder, *SENTENCES, "--n-best", 2)
    monkeypatch.setattr(Translator, "_translate", with_a_tab)
    assert "\t" in weft.load(tiny_folder).translate(SENTENCES)[0].n_best[0].text
    assert command("translate", tiny_folder, *SENTENCES, "--n-best", 2).out == plain.out


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=("Cs",), exclude_characters="\n"),
            max_size=12,
        ),
        max_size=5,
    )
)
def test_as_many_lines_out_as_in(
    command: Command, tiny_folder: Path, lines: list[str]
) -> None:
    ended = command(
        "translate",
        tiny_folder,
        "--beam-size",
        1,
        stdin="".join(f"{line}\n" for line in lines).encode(),
    )
    assert ended.code == 0
    assert len(ended.lines) == len(lines)
    assert not any("\r" in line for line in ended.lines)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--input", "none.txt"], 2, "--input none.txt: no such file"),
        (["cat.", "--input", "none.txt"], 2, "give texts or --input, not both"),
        (
            ["cat.", "--n-best", "9", "--beam-size", "2"],
            2,
            "--n-best = 9: it must be from 1 to --beam-size, which is 2",
        ),
        (["cat.", "--length-penalty", "nan"], 2, "--length-penalty = nan"),
        (["cat.", "--top-k", "3"], 2, "--top-k is for samples; give a temperature"),
        (
            ["cat.", "--temperature", "1", "--beam-size", "2"],
            2,
            "--beam-size is for a search",
        ),
        (["--input", "."], 2, "--input .: is a folder; name a file in it"),
        (
            ["cat.", "--output", "absent/file"],
            5,
            "absent/file: cannot be written (there is no folder absent)",
        ),
        (
            ["cat.", "--precision", "float16"],
            2,
            "--precision = float16: only GPUs have it",
        ),
        (
            ["cat.", "--precision", "int4"],
            2,
            "--precision = int4: it must be float32, bfloat16",
        ),
        (
            ["cat.", "--kernels", "native"],
            2,
            "--kernels = native: it must be auto or torch",
        ),
        (
            ["cat.", "--kernels", "torch", "--precision", "bfloat16"],
            2,
            "--kernels = torch: they compute in float32",
        ),
        (
            ["cat.", "--exhaustive", "3", "--beam-size", "2"],
            2,
            "--beam-size is for a beam",
        ),
        (["cat.", "--input"], 2, "see weft translate --help"),
    ],
)
def test_errors_are_one_line(
    command: Command, tiny_folder: Path, arguments: list[str], code: int, message: str
) -> None:
    ended = command("translate", tiny_folder, *arguments)
    assert (ended.code, ended.out) == (code, b"")
    assert len(ended.messages) == 1
    assert ended.messages[0].startswith("weft: ")
    assert message in ended.err


def test_a_folder_that_is_no_model(command: Command, tmp_path: Path) -> None:
    ended = command("translate", tmp_path, "cat.")
    assert (ended.code, ended.out) == (5, b"")
    assert len(ended.messages) == 1


# As processes


def test_a_pipe_end_to_end(
    process: Command, tiny_folder: Path, expected: list[str]
) -> None:
    ended = process("translate", tiny_folder, stdin="\n".join(SENTENCES).encode())
    assert (ended.code, ended.lines, ended.err) == (0, expected, "")


def test_an_argument_that_is_not_utf8(command: Command, tiny_folder: Path) -> None:
    """Python reads such a byte as half of a surrogate pair; cli/test_generate.py has a process."""
    ended = command("translate", tiny_folder, "caf\udce9")
    assert (ended.code, ended.out) == (3, b"")
    (message,) = ended.messages
    assert "not UTF-8" in message


def test_a_reader_that_leaves_is_no_error(tiny_folder: Path) -> None:
    """As in `weft translate ... | head -1`: nothing on standard error."""
    whole = [
        sys.executable,
        "-m",
        "weft",
        "translate",
        str(tiny_folder),
        "--beam-size",
        "1",
    ]
    read, write = os.pipe()
    os.close(read)  # left before the first line
    try:
        text = "cat sees dog.\n" * 3000
        done = subprocess.run(
            whole,
            input=text.encode(),
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(write)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


def test_a_folder_as_output_is_refused_before_anything_is_translated(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("translate", tiny_folder, "cat", "--output", tmp_path)
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [f"weft: {tmp_path}: is a folder; name a file in it"]


# Whole files
# --------------------------------------------------------------------------------------


def test_a_file_goes_on_where_it_was_interrupted(
    command: Command, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in its third part: the same lines come out, and the first two parts are not made
    again.
    """
    monkeypatch.setattr("weft.cli.streams.CHUNK", 4)
    asked = ("translate", tiny_folder, "--beam-size", 1, "--input", tmp_path / "in")
    (tmp_path / "in").write_text(
        "".join(f"{SENTENCES[i % 3]}\n" for i in range(18)), "utf-8"
    )
    command(*asked, "--output", tmp_path / "whole")
    real, parts = Translator._translate, []

    def interrupted(self: Translator, texts: list[str], settings: Any) -> Any:
        parts.append(len(texts))
        if len(parts) == 3:
            raise KeyboardInterrupt
        return real(self, texts, settings)

    monkeypatch.setattr(Translator, "_translate", interrupted)
    assert command(*asked, "--output", tmp_path / "out").code == 75
    assert not (tmp_path / "out").exists()
    ended = command(*asked, "--output", tmp_path / "out")
    assert (ended.code, ended.err) == (
        0,
        f"weft: {tmp_path / 'out'}: continues after line 8\n",
    )
    assert parts == [4, 4, 4, 4, 4, 2]
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"in", "whole", "out"}


def test_another_input_or_setting_is_refused_and_nothing_lost(
    command: Command, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.cli.streams.CHUNK", 2)
    (tmp_path / "in").write_text(
        "".join(f"{sentence}\n" for sentence in SENTENCES), "utf-8"
    )
    asked = (
        "translate",
        tiny_folder,
        "--input",
        tmp_path / "in",
        "--output",
        tmp_path / "out",
    )
    calls = 0
    real = Translator._translate

    def interrupted(self: Translator, texts: list[str], settings: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return real(self, texts, settings)

    monkeypatch.setattr(Translator, "_translate", interrupted)
    interrupted_at = command(*asked)
    said = f"weft: {tmp_path / 'out'}: interrupted; the same command continues it"
    assert (interrupted_at.code, interrupted_at.messages) == (75, [said])
    partial = tmp_path / "out.partial"
    begun = partial.read_bytes()
    refused = command(*asked, "--beam-size", 2, "--n-best", 2, "--json")
    begun_with = "was started with another beam_size, n_best, json"
    assert refused.messages == [
        f"weft: {partial}: {begun_with}; give the same, or remove out.partial to start over"
    ]
    assert refused.code == 2
    columns = command(*asked, "--n-best", 2)
    left = f"weft: {partial}: what an interrupted command left; give that one again, or remove it"
    assert (columns.code, columns.messages) == (2, [left])
    (tmp_path / "in").write_text(
        "".join(f"{sentence}\n" for sentence in SENTENCES[::-1]), "utf-8"
    )
    assert "was started with another input; give the same" in command(*asked).err
    assert partial.read_bytes() == begun
    partial.unlink()
    assert command(*asked).err == ""


@pytest.mark.long
def test_a_killed_process_is_gone_on_with(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    """SIGKILL while a file of 10,000 lines is translated; twice."""
    words = [
        "cat",
        "dog",
        "bird",
        "fish",
        "horse",
        "mouse",
        "sees",
        "hears",
        "finds",
        "likes",
    ]
    text = "".join(
        f"{a} {b} {c} {d}.\n"
        for a in words
        for b in words
        for c in words
        for d in words
    )
    (tmp_path / "in").write_text(text, "utf-8")
    asked = [
        sys.executable,
        "-m",
        "weft",
        "translate",
        str(tiny_folder),
        "--beam-size",
        "1",
    ]
    asked += ["--input", str(tmp_path / "in"), "--output"]
    partial = tmp_path / "out.partial"
    for size in (2_000, 50_000):
        with subprocess.Popen(
            [*asked, str(tmp_path / "out")], stderr=subprocess.PIPE
        ) as running:
            while running.poll() is None and not (
                partial.exists() and partial.stat().st_size > size
            ):
                time.sleep(0.001)
            running.kill()
        assert partial.exists(), "it was faster than the test"
    done = partial.read_bytes().count(b"\n")
    rest = ["translate", tiny_folder, "--beam-size", 1, "--input", tmp_path / "in"]
    ended = command(*rest, "--output", tmp_path / "out")
    assert ended.code == 0
    assert (
        ended.messages[0] == f"weft: {tmp_path / 'out'}: continues after line {done:,}"
    )
    assert command(*rest, "--output", tmp_path / "whole").code == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "out").read_bytes().count(b"\n") == 10_000


@pytest.mark.parametrize("prefix", ["Katze", "Hund mag"])
def test_a_prefix_is_what_every_translation_begins_with(
    command: Command, tiny_folder: Path, prefix: str
) -> None:
    ended = command("translate", tiny_folder, *SENTENCES, "--prefix", prefix)
    assert ended.code == 0
    assert len(ended.lines) == 3
    assert all(line.startswith(prefix) for line in ended.lines)


def test_a_model_that_is_older_than_its_run_is_said_to_be(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    assert "note" not in command("translate", folder, SENTENCES[0]).err
    path = folder / "run" / "verdict.json"
    verdict = json.loads(path.read_bytes())
    later = {"outcome": "interrupted", "saved_step": 150}
    path.write_text(json.dumps(verdict | later), "utf-8")
    said = "the model is of step 120, and its run has saved step 150; to use that: weft finish "
    ended = command("translate", folder, SENTENCES[0])
    assert (ended.code, len(ended.lines)) == (0, 1)
    assert ended.err.startswith(f"weft: note: {said}")


def test_what_repeats_itself_is_said_and_can_be_forbidden(
    command: Command, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = json.loads(
        command("translate", tiny_folder, SENTENCES[0], "--json").lines[0]
    )
    assert free["repetition"] is False
    monkeypatch.setattr("weft.predict.translator.repeats", lambda ids: True)
    ended = command("translate", tiny_folder, SENTENCES[0])
    assert ended.err.startswith("weft: line 1: repetition: ")
    once = command(
        "translate", tiny_folder, "cat cat cat cat cat cat.", "--no-repeat-ngrams", 1
    )
    words = once.lines[0].rstrip(".").split()
    assert len(words) == len(set(words)) > 0


def test_words_that_were_never_seen_are_told_once_with_their_count(
    command: Command, tiny_folder: Path, expected: list[str]
) -> None:
    lines = ["Cat sees dog.", "A boy sees dog.", "the boy hears bird.", "boy"]
    text = "".join(f"{line}\n" for line in lines).encode()
    ended = command("translate", tiny_folder, stdin=text)
    notes = [line for line in ended.messages if "never seen" in line]
    said = "weft: note: 3 words were never seen in training: A, boy, the; the model guesses there, in 3 of 4 texts"
    assert notes == [f"{said} (lines 2, 3, 4)"]
    assert not any(
        "never seen" in line
        for line in command("translate", tiny_folder, "cat sees dog").messages
    )
    ended = command("translate", tiny_folder, "--json", stdin=text)
    assert ended.err == ""
    found = [json.loads(line)["unknown_words"] for line in ended.lines]
    assert found == [[], ["A", "boy"], ["the", "boy"], ["boy"]]


def test_two_sentences_on_a_line_are_both_translated(
    command: Command, tiny_folder: Path
) -> None:
    one, other = command(
        "translate", tiny_folder, "cat sees dog.", "Bird hears fish."
    ).lines
    assert one != other
    assert command(
        "translate", tiny_folder, "cat sees dog.  Bird hears fish."
    ).lines == [f"{one}  {other}"]


@pytest.mark.parametrize(
    ("text", "forbids"), [("cat sees dog", True), ("00:12:01 --> 00:12:07", False)]
)
def test_repeated_ngrams_are_to_be_forbidden_only_of_sentences(
    text: str, forbids: bool, config: TranslationConfig
) -> None:
    endless = Prediction("a a a", -1.0, 1, [], [], repetition=True)
    said = doubts_of(endless, text, config, DecodingSettings())
    assert len(said) == 1
    assert ("--no-repeat-ngrams" in said[0]) == forbids


def test_a_sentence_with_a_number_is_one() -> None:
    for text in ("My number is 0171 5552368.", "It cost 1,250 euros in 2024-0815."):
        assert looks_like_sentence(text)
    for text in (
        "00:01:02,5 --> 00:01:04,5",
        "| 12 | a | 4,5 | 6 |",
        "f(x, y) = 1;",
        "a",
    ):
        assert not looks_like_sentence(text)


def test_what_was_guessed_is_summed_up() -> None:
    guesses = Guesses()
    for number in range(20):
        unknown = [f"w{number}"] if number < 12 else []
        guesses.see(
            Prediction("x", -1.0, 1, [], [], unsure=number < 3, unknown_words=unknown),
            number + 1,
        )
    words, unsure = guesses.lines()
    assert words.startswith("note: 12 words were never seen in training: w0, w1, ")
    assert words.endswith(
        "w9 and 2 more; the model guesses there, in 12 of 20 texts (lines 1, 2, 3, 4, 5, ...)"
    )
    assert unsure.startswith("note: of 3 of 20 texts (lines 1, 2, 3) the model")
    guesses = Guesses(unit="")
    for number in range(2):
        place = f"table 1, row {number}"
        guesses.see(Prediction("x", -1.0, 1, [], [], unsure=True), number, place)
    (unsure,) = guesses.lines()
    assert "of 2 of 2 texts (table 1, row 0; table 1, row 1) the model" in unsure
    for number in range(3):
        guesses.see(Prediction("x", -1.0, 1, [], []), number)
    assert guesses.lines()[0].endswith("look them over")
    guesses = Guesses()
    for number in range(2):
        guesses.see(Prediction("x", -1.0, 1, [], [], unsure=number < 1), number + 1)
    assert guesses.lines()[0].endswith("look it over")
    guesses = Guesses()
    for number in range(20):  # as many as are to be expected
        guesses.see(Prediction("x", -1.0, 1, [], [], unsure=number < 2), number + 1)
    assert guesses.lines() == []


def test_a_model_that_looks_nowhere_in_particular_says_once_that_it_aligns_nothing(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    """Without keys of its looks at the source, every word of it counts alike."""
    folder = tmp_path / "flat"
    shutil.copytree(tiny_folder, folder)
    path = folder / "model.safetensors"
    arrays = load_file(path)
    keys = [name for name in arrays if "cross_attention.key" in name]
    assert keys
    save_file({**arrays, **{name: 0 * arrays[name] for name in keys}}, path)
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest["files"][path.name] = {"size": path.stat().st_size, "sha256": digest}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    ended = command("translate", folder, "--json", "--alignments", *SENTENCES)
    found = [json.loads(line) for line in ended.lines]
    assert [one["alignments"] for one in found] == [[], [], []]
    assert all(not word["sources"] for one in found for word in one["words"])
    said = [message for message in ended.messages if "aligned" in message]
    assert said == [
        "weft: note: no word of 3 of 3 texts is aligned: the model looks at all words of the source alike"
    ]
    ended = command("translate", folder, "--json", *SENTENCES)
    assert not any("aligned" in message for message in ended.messages)


def test_kernels_torch_reaches_the_model_and_says_the_same(
    command: Command, tiny_folder: Path, expected: list[str], attention_calls: list[int]
) -> None:
    ended = command("translate", tiny_folder, "--kernels", "torch", *SENTENCES)
    assert (ended.code, ended.lines, ended.err) == (0, expected, "")
    assert attention_calls
