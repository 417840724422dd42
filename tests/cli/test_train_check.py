"""Training looks the text over first: what is fatal stops it, a flag goes on, and that is written
down.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data import builtin
from weft.errors import DataError
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.run.card import without_folders

Command = Callable[..., Any]
STEPS = ("training.max_steps=2", "training.eval_every=99")


@pytest.fixture
def shifted(tmp_path: Path) -> str:
    """Pairs of which the second half is one line out of step."""
    pairs = builtin.pairs("everyday", "en", "de").train[:400]
    moved = [(src, tgt) for (src, _), (_, tgt) in pairwise(pairs)]
    return write(tmp_path / "shifted.en-de.tsv", [*pairs[:200], *moved[200:]])


def write(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_bytes("".join(f"{a}\t{b}\n" for a, b in rows).encode())
    return str(path)


def test_a_fatal_finding_stops_training_before_a_file_is_written(
    tmp_path: Path, shifted: str, tiny_settings: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as caught:
        weft.train(
            out=tmp_path / "out",
            train=shifted,
            settings=(*tiny_settings, *STEPS),
            quiet=True,
        )
    first, last = str(caught.value).split("\n")
    assert first.startswith(
        f"{shifted}:201: from here to {shifted}:399 each source line matches the target line 1 line earlier"
    )
    assert "--allow-bad-data" in last
    assert caught.value.exit_code == 3
    assert not (tmp_path / "out").exists()


def test_the_flag_goes_on_and_is_recorded(
    tmp_path: Path, shifted: str, tiny_settings: tuple[str, ...]
) -> None:
    settings = (*tiny_settings, *STEPS)
    verdict = weft.train(
        out=tmp_path / "out",
        train=shifted,
        settings=settings,
        allow_bad_data=True,
        quiet=True,
    )
    (note,) = [
        note
        for note in verdict.notes
        if note.startswith("trained all the same (--allow-bad-data): ")
    ]
    assert "each source line matches" in note
    facts = durable.read_json(RunFolder(tmp_path / "out").recipe)
    assert facts["texts"]["train"]["overridden"] == ["shifted-lines"]
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "trained in spite of: shifted-lines (--allow-bad-data)" in card
    assert without_folders(note) in card


def test_sound_text_records_nothing(tiny_folder: Path) -> None:
    facts = durable.read_json(RunFolder(tiny_folder).recipe)
    assert "overridden" not in facts["texts"]["train"]
    assert "--allow-bad-data" not in (tiny_folder / "README.md").read_text("utf-8")


def test_the_command_says_every_fatal_finding_on_a_line(
    command: Command, tmp_path: Path, shifted: str, tiny_settings: tuple[str, ...]
) -> None:
    test = write(
        tmp_path / "t.en-de.tsv", builtin.pairs("everyday", "en", "de").train[:100]
    )
    asked = ["train", "--train", shifted, "--test", test, "--out", tmp_path / "out"]
    asked += [
        part for setting in (*tiny_settings, *STEPS) for part in ("--set", setting)
    ]
    ended = command(*asked)
    assert (ended.code, ended.out) == (3, b"")
    assert [line.startswith("weft: ") for line in ended.messages] == [
        False,
        True,
        True,
        True,
    ]
    assert "shifted.en-de.tsv:201: from here" in ended.err
    assert "100 of 100 pairs of test" in ended.err
    ended = command(*asked, "--allow-bad-data")
    assert ended.code == 0
    (line,) = [line for line in ended.messages if line.startswith("test: ")]
    assert "|tok:" in line
    assert "  contaminated: " in line
    assert " of 100 pairs (" in line


def test_check_and_train_say_the_same(
    command: Command, tmp_path: Path, shifted: str
) -> None:
    found = json.loads(command("check", shifted, "--json").lines[0])
    fatal = [
        finding["message"]
        for finding in found["findings"]
        if finding["severity"] == "fatal"
    ]
    ended = command("train", "--train", shifted, "--out", tmp_path / "out")
    assert ended.code == 3
    assert [
        line.removeprefix("weft: ").startswith(fatal[0]) for line in ended.messages[1:]
    ] == [True, False]


class TestSignature:
    """Every score has the signature of the text that it is of, and says whether that was trained on
    (D5).
    """

    def test_a_run_prints_and_keeps_it(
        self,
        command: Command,
        tmp_path: Path,
        write_pairs: Callable[[int], str],
        tiny_settings: tuple[str, ...],
    ) -> None:
        settings = [
            part for setting in (*tiny_settings, *STEPS) for part in ("--set", setting)
        ]
        ended = command(
            "train", "--train", write_pairs(210), "--out", tmp_path / "out", *settings
        )
        (line,) = [line for line in ended.messages if line.startswith("test: ")]
        verdict = json.loads(RunFolder(tmp_path / "out").verdict.read_bytes())
        signature = verdict["test"]["data_signature"]
        assert verdict["test"]["contaminated"] is None
        assert line.endswith(signature)
        card = (tmp_path / "out" / "README.md").read_text("utf-8")
        assert f"text  {signature}" in card
        assert card.count("|rules:2|order:") == 3, "of train, dev and test"

    def test_evaluate_prints_it(
        self, command: Command, tiny_folder: Path, tmp_path: Path
    ) -> None:
        data = write(
            tmp_path / "t.tsv", [("horse wants horse", "Pferd will Pferd und Hase")]
        )
        found = json.loads(command("evaluate", tiny_folder, data, "--json").lines[0])
        assert found["contaminated"] is None
        lines = command("evaluate", tiny_folder, data).lines
        assert f"text  {found['data_signature']}" in lines
        again = write(
            tmp_path / "other-name.tsv",
            [("horse wants horse", "Pferd will Pferd und Hase")],
        )
        assert (
            json.loads(command("evaluate", tiny_folder, again, "--json").lines[0])
            == found
        )

    def test_a_contaminated_score_says_so_in_every_form(
        self,
        command: Command,
        tiny_folder: Path,
        tmp_path: Path,
        write_pairs: Callable[[int], str],
    ) -> None:
        # what the model was trained on, and what was held out of it
        data = write_pairs(216)
        found = json.loads(
            command("evaluate", tiny_folder, data, "--beam-size", 1, "--json").lines[0]
        )
        assert found["contaminated"].startswith(
            "contaminated: 176 of 216 pairs (81.5 %)"
        )
        assert found["contaminated"] in found["notes"]
        lines = command("evaluate", tiny_folder, data, "--beam-size", 1).lines
        assert f"note: {found['contaminated']}" in lines
