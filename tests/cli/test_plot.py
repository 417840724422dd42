"""weft plot, and weft inspect where it writes a picture: files, refusals in one line, and what is
said.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pushed import of_which

pytest.importorskip("matplotlib", reason="matplotlib (the extra plot) is not installed")

Command = Callable[..., Any]
PNG = b"\x89PNG\r\n\x1a\n"
WHATS = ["positions", "mask", "smoothing", "schedule"]


def write_run(folder: Path) -> Path:
    lines = [
        {"step": 50, "epoch": 0, "loss": 3.0},
        {"step": 50, "epoch": 0, "dev_bleu": 31.25, "dev_loss": 2.0},
    ]
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "metrics.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    return folder


@pytest.mark.parametrize("what", of_which(WHATS, "positions"))
def test_every_lesson_is_drawn(command: Command, tmp_path: Path, what: str) -> None:
    for suffix, start in ((".png", PNG), (".SVG", b"<?xml")):
        output = tmp_path / f"picture{suffix}"
        ended = command("plot", what, "--output", output)
        assert (ended.code, ended.out, ended.messages) == (
            0,
            b"",
            [f"written to {output}"],
        )
        assert output.read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 2


def test_history_of_several_runs(command: Command, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "runs" / name) for name in ("one", "two", "茶")]
    ended = command("plot", "history", *runs, runs[0], "--output", tmp_path / "h.svg")
    assert (ended.code, ended.messages) == (0, [f"written to {tmp_path / 'h.svg'}"])
    svg = (tmp_path / "h.svg").read_text(encoding="utf-8")
    assert [
        svg.count(f"runs/{name}: best BLEU 31.25 at step 50")
        for name in ("one", "two", "茶")
    ] == [1, 1, 1]


def test_schedule_of_a_recipe_by_name_and_by_file(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(
        '[training]\nmax_steps = 70\nschedule = "step"\nwarmup_steps = 11\n'
    )
    for recipe, said in (
        ("demo", "demo: cosine, warm-up 100"),
        (tmp_path / "mine.toml", "mine.toml: step, warm-up 11"),
    ):
        ended = command(
            "plot", "schedule", "--recipe", recipe, "--output", tmp_path / "s.svg"
        )
        assert ended.code == 0
        assert said in (tmp_path / "s.svg").read_text(encoding="utf-8")


def test_positions_take_a_width_and_a_length(command: Command, tmp_path: Path) -> None:
    assert (
        command(
            "plot",
            "positions",
            "--d-model",
            20,
            "--max-len",
            30,
            "--output",
            tmp_path / "p.svg",
        ).code
        == 0
    )
    svg = (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert "d_model = 20" in svg
    assert "dimension 5 (cosine)" in svg


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["posters"], "'positions', 'mask', 'smoothing', 'schedule' or 'history'"),
        (["history"], "needs the folder of a run"),
        (["mask", "runs/a"], "weft plot mask takes no FOLDERS"),
        (["positions", "--recipe", "demo"], "weft plot positions takes no --recipe"),
        (["schedule", "--max-len", "7"], "weft plot schedule takes no --max-len"),
        (
            ["history", "runs/a", "--d-model", "8"],
            "weft plot history takes no --d-model",
        ),
        (["positions", "--d-model", "21"], "even d_model, not 21"),
        (["positions", "--d-model", "0"], "--d-model"),
        (["schedule", "--recipe", "no-such"], "neither a file nor a packaged recipe"),
        (
            ["schedule", "--recipe", "open.toml"],
            "open.toml: sets no training.max_steps",
        ),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_usage_errors_are_one_line(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "open.toml").write_text("")
    ended = command("plot", *arguments, "--output", "p.png")
    assert (ended.code, ended.out, len(ended.messages)) == (2, b"", 1)
    assert ended.messages[0].startswith("weft: ")
    assert message in ended.messages[0]
    assert [path.name for path in tmp_path.iterdir()] == ["open.toml"]


@pytest.mark.parametrize("name", ["p.gif", "p", "p.html", "p.pdf"])
def test_other_suffixes_are_refused_before_any_work(
    command: Command, tmp_path: Path, name: str
) -> None:
    """The folder that does not exist is not even looked at."""
    ended = command(
        "plot", "history", tmp_path / "nowhere", "--output", tmp_path / name
    )
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert ".png (a picture) or .svg (a drawing)" in ended.messages[0]


@pytest.mark.parametrize(
    "arguments",
    [["plot", "mask"], ["inspect", "model", "tea"], ["check", "pairs.tsv"]],
    ids=lambda value: value[0],
)
def test_a_missing_folder_is_said_before_any_work(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    """Neither the model nor the text is there, and the folder is said."""
    monkeypatch.chdir(tmp_path)
    suffix = "html" if arguments[0] == "check" else "png"
    ended = command(*arguments, "--output", f"new/p.{suffix}")
    assert (ended.code, ended.messages) == (
        5,
        [
            f"weft: new/p.{suffix}: cannot be written (there is no folder new); make it first"
        ],
    )


def test_missing_run_is_one_line(command: Command, tmp_path: Path) -> None:
    ended = command(
        "plot",
        "history",
        write_run(tmp_path / "a"),
        tmp_path / "nowhere",
        "--output",
        tmp_path / "h.png",
    )
    assert (ended.code, len(ended.messages)) == (5, 1)
    assert f"{tmp_path / 'nowhere'}: no such folder" in ended.messages[0]
    assert not (tmp_path / "h.png").exists()


@pytest.mark.parametrize(
    "arguments",
    [["plot", "mask"], ["inspect", "nowhere", "tea"]],
    ids=lambda value: value[0],
)
def test_without_matplotlib_the_extra_is_named(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = command(*arguments, "--output", tmp_path / "p.png")
    assert (ended.code, ended.messages) == (
        2,
        [
            (
                "weft: a picture needs matplotlib: pip install '.[plot]' in the folder of Weft's source"
                ", or of a wheel pip install 'FILE.whl[plot]'"
            )
        ],
    )
    assert list(tmp_path.iterdir()) == []


def test_a_page_needs_no_matplotlib(tiny_folder: Path, tmp_path: Path) -> None:
    """In a process of its own, where whatever loads matplotlib would fail."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        f"sys.argv = ['weft', 'inspect', {str(tiny_folder)!r}, 'cat', '--output', {str(tmp_path / 'p.html')!r}]\n"
        "from weft.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.html").exists()


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_inspect_draws_what_the_model_looks_at(
    command: Command, tiny_folder: Path, tmp_path: Path, suffix: str
) -> None:
    output = tmp_path / f"attention{suffix}"
    ended = command("inspect", tiny_folder, "cat sees dog.", "--output", output)
    assert (ended.code, ended.out, ended.messages) == (0, b"", [f"written to {output}"])
    content = output.read_bytes()
    assert content.startswith(PNG if suffix == ".png" else b"<?xml")
    if suffix == ".svg":
        texts = content.decode()
        assert all(
            f">{piece}</text>" in texts for piece in ("cat", "sees", "Katze", "Hund")
        )


def test_inspect_writes_its_data_to_standard_output_or_to_a_file(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    said = command("inspect", tiny_folder, "cat sees dog.", "--json")
    assert (said.code, said.messages, len(said.lines)) == (0, [], 1)
    data = json.loads(said.lines[0])
    assert list(data)[:3] == ["format", "version", "task"]
    assert data["format"] == "weft-inspection"
    assert data["source"]["pieces"][:2] == ["▁cat", "▁sees"]
    output = tmp_path / "data.json"
    for asked in (["--json"], []):
        ended = command(
            "inspect", tiny_folder, "cat sees dog.", "--output", output, *asked
        )
        assert (ended.code, ended.out) == (0, b"")
        assert ended.messages == [f"written to {output}"]
        assert json.loads(output.read_bytes()) == data
        output.unlink()


def test_inspect_says_where_its_data_may_go(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "x.html"
    other = command("inspect", tiny_folder, "cat", "--json", "--output", page)
    assert (other.code, len(other.messages)) == (2, 1)
    assert "the name must end in .json (data)" in other.messages[0]
    assert not page.exists()


def test_inspect_names_every_format(command: Command, tmp_path: Path) -> None:
    ended = command(
        "inspect", tmp_path / "nowhere", "tea", "--output", tmp_path / "p.gif"
    )
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert all(
        suffix in ended.messages[0] for suffix in (".html", ".json", ".png", ".svg")
    )


def test_letters_that_cannot_be_drawn_are_said(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weft.inspection import figure

    monkeypatch.setattr(figure, "_FALLBACKS", ())
    run = write_run(tmp_path / "茶和我")
    png, svg = tmp_path / "h.png", tmp_path / "h.svg"
    ended = command("plot", "history", run, "--output", png)
    assert (ended.code, len(ended.messages)) == (0, 2)
    assert (
        "no installed font draws 和我茶; install one that does (for Chinese, fonts-noto-cjk)"
        in ended.messages[0]
    )
    assert command("plot", "history", run, "--output", svg).messages == [
        f"written to {svg}"
    ]


def test_inspect_writes_word_alignments(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command(
        "inspect", tiny_folder, "cat sees dog.", "--output", tmp_path / "words.pharaoh"
    )
    assert (ended.code, ended.messages) == (
        0,
        [f"written to {tmp_path / 'words.pharaoh'}"],
    )
    pairs = (tmp_path / "words.pharaoh").read_text().split()
    assert len(pairs) == len({pair.split("-")[1] for pair in pairs}) == 4
    assert all(int(pair.split("-")[0]) < 4 for pair in pairs)
