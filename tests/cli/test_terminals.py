"""Terminals that are not UTF-8, pipes that close: every verb's words arrive, and nothing ends in a
traceback.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import weft
from weft.__main__ import main
from weft.data import builtin

SAID = ["Käse", "чай", "茶"]
Run = Callable[..., tuple[int, bytes, bytes]]


class _Bytes(io.BytesIO):
    """Keeps what was written when the stream around it is closed."""

    def close(self) -> None:
        return


@pytest.fixture
def ascii_terminal(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `weft ARGUMENTS...` with standard output and error in ASCII, refusing all else; code and
    bytes.
    """

    def call(*arguments: object) -> tuple[int, bytes, bytes]:
        out, err = _Bytes(), _Bytes()
        monkeypatch.setattr(sys, "argv", ["weft", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="ascii"))
        with pytest.raises(SystemExit) as caught:
            main()
        sys.stdout.flush()
        sys.stderr.flush()
        return int(caught.value.code or 0), out.getvalue(), err.getvalue()

    return call


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of texts whose names, words and labels no ASCII terminal can show."""
    folder = tmp_path_factory.mktemp("Käse")
    pairs = builtin.pairs("everyday", "de", "zh").train[:60]
    (folder / "päare.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    rows = [f"{'süß' if i % 2 else '酸'}\tder Käse {i} ist 茶\n" for i in range(60)]
    (folder / "zeilen.tsv").write_text("label\ttext\n" + "".join(rows), "utf-8")
    (folder / "büch.txt").write_text(
        "\n\n".join(a for a, _ in pairs) + "\nKäse Ã¶ чай\n", "utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def models(data: Path, tiny_settings: Sequence[str]) -> dict[str, Path]:
    """A model of each task, trained for one step."""
    step = ("training.max_steps=1", "training.threads=1", "training.kernels=torch")
    shape = ("model.d_model=16", "model.num_heads=2", "model.d_ff=16")
    asked = {
        "päare.tsv": tiny_settings,
        "zeilen.tsv": ("task=classification", *shape),
        "büch.txt": ("task=language-modelling", *shape),
    }
    for name, settings in asked.items():
        weft.train(
            out=data / "rün" / name,
            train=str(data / name),
            settings=(*settings, *step),
            quiet=True,
        )
    return {name: data / "rün" / name for name in asked}


def test_every_verb_speaks_on_an_ascii_terminal(
    ascii_terminal: Run,
    data: Path,
    models: dict[str, Path],
    tmp_path: Path,
    tiny_settings: Sequence[str],
) -> None:
    pairs, rows, text = data / "päare.tsv", data / "zeilen.tsv", data / "büch.txt"
    translator, classifier, writer = models.values()
    copy = shutil.copytree(translator, tmp_path / "köpie")
    settings = [
        part
        for setting in (*tiny_settings, "training.max_steps=1")
        for part in ("--set", setting)
    ]
    verbs: list[tuple[object, ...]] = [
        ("--help",),
        ("check", pairs),
        ("check", text),
        ("check", rows),
        ("train", pairs, "--output", tmp_path / "nëu", *settings),
        ("train", data / "fehlt ä.tsv"),
        ("evaluate", translator, pairs),
        ("evaluate", classifier, rows),
        ("evaluate", writer, text),
        ("compare", translator, copy, pairs, "--samples", "10"),
        ("compare", classifier, classifier, rows, "--samples", "10"),
        (
            "quantize",
            translator,
            pairs,
            "--output",
            tmp_path / "kleín",
            "--max-bleu-loss",
            "100",
        ),
        ("average", translator, copy, "--output", tmp_path / "mittél"),
        ("distill", translator, pairs, "--output", tmp_path / "schüler", *settings),
        ("inspect", translator, "Käse", "--output", tmp_path / "ä.json"),
        ("diagnose", translator, pairs),
        ("selfcheck", translator),
        ("plot", "mask", "--output", tmp_path / "mäske.svg"),
    ]
    for asked in verbs:
        code, out, err = ascii_terminal(*asked)
        assert b"Traceback" not in err, asked
        assert (out + err).isascii(), asked
        assert code in (0, 1, 3), (asked, err)
        assert out + err, asked


def test_what_is_for_programs_stays_utf_8(
    ascii_terminal: Run, data: Path, models: dict[str, Path]
) -> None:
    translator, classifier, writer = models.values()
    pairs, rows, text = data / "päare.tsv", data / "zeilen.tsv", data / "büch.txt"
    for asked in (
        ("check", rows, "--json"),
        ("evaluate", classifier, rows, "--json"),
        ("compare", translator, translator, pairs, "--samples", "10", "--json"),
        ("diagnose", translator, pairs, "--json"),
        ("classify", classifier, "Käse", "--json"),
        ("translate", translator, "Käse", "--json"),
        ("score", writer, text, "--json"),
        ("generate", writer, "--prompt", "Käse", "--max-new-tokens", "3", "--json"),
    ):
        code, out, _ = ascii_terminal(*asked)
        assert (code in (0, 3), out != b"") == (True, True), asked
        for line in out.decode("utf-8").split("\n")[:-1]:
            json.loads(line)
    assert not ascii_terminal("score", writer, text)[1].isascii()
    assert (
        "Käse".encode()
        in ascii_terminal(
            "generate", writer, "--prompt", "Käse", "--max-new-tokens", "3"
        )[1]
    )


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "iso-8859-1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
    ids=["ascii", "latin", "C"],
)
def test_a_process_in_another_locale(data: Path, environment: dict[str, str]) -> None:
    asked = [sys.executable, "-m", "weft", "check", data / "zeilen.tsv"]
    done = subprocess.run(
        asked,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 3)
    assert done.stderr == b""
    assert b"labelled rows" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(data: Path) -> None:
    asked = f'unset PYTHONUNBUFFERED; "{sys.executable}" -m weft check "{data / "büch.txt"}" | true'
    done = subprocess.run(
        ["bash", "-c", asked], capture_output=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == (b"", b"")
