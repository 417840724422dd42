"""The notebooks of docs/notebooks: every cell runs, and every link into the code is right."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import notebooks  # tools/notebooks.py
import weft
from weft.data import builtin

ALL = sorted(notebooks.FOLDER.glob("*.ipynb"))
PAPER = notebooks.FOLDER / "attention-is-all-you-need.ipynb"
OWN = notebooks.FOLDER / "your-own-translator.ipynb"
WHAT = notebooks.FOLDER / "what-is-my-model-doing.ipynb"
TARGET = re.compile(r"\]\(((?!https?:)[^)#\s]+)")
Notebook = dict[str, Any]


def written(path: Path, *sources: str, tags: tuple[str, ...] = ()) -> Path:
    """Write a notebook of code cells; the first has the tags."""
    cells: list[Notebook] = [
        {"cell_type": "code", "metadata": {}, "source": source} for source in sources
    ]
    cells[0]["metadata"] = {"tags": list(tags)}
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_the_three_are_there() -> None:
    assert sorted([PAPER, OWN, WHAT]) == ALL


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_notebook_is_one_of_jupyter_without_outputs(path: Path) -> None:
    """Source: the format's description, nbformat 4.5: cells have ids of their own."""
    content = notebooks.read(path)
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    cells = content["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse(notebooks.source_of(cell))
    assert cells[0]["cell_type"] == "markdown"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_what_a_notebook_points_at_is_there(path: Path) -> None:
    """If lines have moved: python tools/notebooks.py --anchors."""
    text = "\n".join(map(notebooks.source_of, notebooks.read(path)["cells"]))
    missing = [t for t in TARGET.findall(text) if not (path.parent / t).exists()]
    assert missing == []
    wrong = [
        (name, target.name, line, notebooks.line_of(name, target))
        for name, target, line in notebooks.links(path)
        if notebooks.line_of(name, target) != line
    ]
    assert wrong == []


def test_the_table_has_the_sections_of_the_paper() -> None:
    table = notebooks.source_of(notebooks.read(PAPER)["cells"][0])
    rows = re.findall(r"^\| ([3-6](?:\.\d)+) \|.*$", table, re.MULTILINE)
    assert {"3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5"} <= set(rows)
    assert {"5.3", "5.4", "6.1"} <= set(rows)
    assert len(list(notebooks.links(PAPER))) >= 15
    without = [
        row for row in table.split("\n") if row.startswith("| 3") and "](" not in row
    ]
    assert without == []


def test_from_the_paper_to_the_files_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ran = notebooks.run(PAPER)
    same = [shown for shown in ran.shown if "differ by at most" in shown]
    assert len(same) >= 9
    assert any("def attention(" in shown for shown in ran.shown)
    out = capsys.readouterr().out
    variances = re.findall(r"d_k +(\d+): .* products +([\d.]+), scaled ([\d.]+)", out)
    assert [width for width, *_ in variances] == ["4", "64", "1024"]
    for width, products, scaled in variances:
        assert float(products) == pytest.approx(int(width), rel=0.2)
        assert float(scaled) == pytest.approx(1, rel=0.2)
    assert "greedy     a     probability 0.220" in out
    assert "beam of 4  b c   probability 0.450" in out


def test_what_is_my_model_doing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ran = notebooks.run(WHAT)
    assert any(shown.startswith("<iframe ") for shown in ran.shown)
    out = capsys.readouterr().out
    assert "▁drinking" in out
    assert re.search(r"^ +9 \S+ +0\.\d+$", out, re.MULTILINE)  # counted as in the page
    assert "Layer 2, head 1: " in out
    assert "layer 0" not in out
    tables = [shown for shown in ran.shown if shown.startswith("<table>")]
    assert len(tables) == 2
    assert all(
        "<th>&lt;eos&gt;</th>" in table for table in tables
    )  # not taken for a tag
    assert "<th>1 · cross</th>" in tables[0]
    by_share, by_weight = (
        int(re.findall(rf"largest {kind}: +(\d+) of", out)[0])
        for kind in ("share", "weight")
    )
    assert by_share >= by_weight > 0


def test_it_looks_into_a_model_of_ones_own(
    tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"folder": tiny_folder, "sentence": "cat sees dog.", "chosen": 1}
    notebooks.run(WHAT, given)
    assert "cat" in capsys.readouterr().out


def test_the_showcase_is_held_out_and_built_as_the_text_is() -> None:
    """Otherwise it would be a show of failures, without a word on them."""
    cells = notebooks.read(OWN)["cells"]
    [shown] = [
        source
        for source in map(notebooks.source_of, cells)
        if "sentences = [" in source
    ]
    test = dict(builtin.pairs("everyday", "en", "de").test)
    sentences = re.findall(r'^    "(.+)",$', shown, re.MULTILINE)
    assert len(sentences) == 3
    assert set(sentences) <= set(test)


@pytest.mark.long
def test_a_translator_of_ones_own_is_trained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    monkeypatch.chdir(tmp_path)
    ran = notebooks.run(OWN, {"steps": 24})
    assert isinstance(ran.names["model"], weft.Translator)
    assert any(shown.startswith("<img ") for shown in ran.shown)
    out = capsys.readouterr().out
    assert "done: 24 steps" in out
    assert "never seen: astronaut" in out
    assert "give text as well" not in "".join(
        ran.shown
    )  # the diagnosis has been given some
    assert re.search(r"step +its own answer\n +0 .*\n( +\d+ .*\n)+ +24 ", out)


def test_an_error_in_a_cell_ends_the_run(tmp_path: Path) -> None:
    path = written(tmp_path / "n.ipynb", "a = 1", "a / 0", "a = 2")
    with pytest.raises(notebooks.CellError, match=r"n\.ipynb, cell 2: ZeroDivision"):
        notebooks.run(path)


def test_cells_share_names_and_the_last_expression_is_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "n.ipynb", "a = 1\nb = 2", "a + b", "a;", "None")
    assert notebooks.run(path).shown == ["3"]
    path = written(tmp_path / "n.ipynb", "a = 1", "a", tags=("parameters",))
    assert notebooks.run(path, {"a": 5}).shown == ["5"]
    with pytest.raises(AssertionError, match="has no"):
        notebooks.run(path, {"other": 5})


def test_anchors_are_renewed(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1\n\n\nclass A:\n    def b(self): ...\n")
    path = tmp_path / "deep" / "n.ipynb"
    path.parent.mkdir()
    written(path, "[`A.b`](../code.py#L1) [`A`](../code.py#L77)")
    notebooks.renew_anchors(path)
    assert [line for _, _, line in notebooks.links(path)] == [5, 4]
    with pytest.raises(notebooks.CellError, match=r"has no A\.c"):
        notebooks.line_of("A.c", tmp_path / "code.py")
