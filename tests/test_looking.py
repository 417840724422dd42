"""`weft.compare`, `weft.diagnose` and `weft.plot`: lines, HTML and dictionary say the same."""

import base64
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.errors import MissingPackage, UsageError
from weft.inspection.diagnosis import Cause
from weft.model.positions import sinusoids

Pairs = Callable[[int], str]
IMAGE = re.compile(r'^<img alt="([^"]+)" .*src="data:image/svg\+xml;base64,([^"]+)">$')


@pytest.fixture
def _with_matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")


def test_a_comparison_shows_itself(tiny_folder: Path, write_pairs: Pairs) -> None:
    text = write_pairs(20)
    found = weft.compare(tiny_folder, tiny_folder, text, samples=10, show=1)
    assert isinstance(found, weft.Comparison)
    assert repr(found) == "\n".join(found.lines())
    assert found.to_dict() == found.to_json()
    json.dumps(found.to_dict())
    html = found._repr_html_()
    assert html.count("<table>") == 1 + len({group.figure for group in found.groups})
    assert "both models have the same weights" in html
    names = [figure.name for figure in found.figures]
    assert [f">{name}</td>" in html for name in names] == [True] * len(names)


def test_a_comparison_takes_settings_of_the_search_alone(tiny_folder: Path) -> None:
    with pytest.raises(UsageError, match=r"weft\.compare takes no beam; leave it out"):
        weft.compare(tiny_folder, tiny_folder, beam=3)


def test_a_comparison_without_text_takes_what_the_first_run_held_out(
    tiny_folder: Path,
) -> None:
    found = weft.compare(tiny_folder, tiny_folder, samples=10, beam_size=1)
    assert found.notes[0].startswith("no text was given")
    assert [computed["beam_size"] for computed in found.computed] == [1, 1]


def test_a_diagnosis_is_a_sequence_of_causes(
    tiny_folder: Path, write_pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = weft.diagnose(tiny_folder)
    assert (len(sound), list(sound)) == (0, [])
    assert repr(sound).startswith("nothing found; give text as well")
    assert sound.to_dict() == {
        "folder": str(tiny_folder),
        "tried": False,
        "causes": [],
    }
    given = []
    causes = [Cause("one", "3 < 4", "do this"), Cause("two", "seen", "do that")]

    def find(folder: Path, data: list[str], machine: object) -> list[Cause]:
        given.append(data)
        return causes

    monkeypatch.setattr("weft.inspection.diagnosis.diagnose", find)
    text = write_pairs(20)
    found = weft.diagnose(str(tiny_folder), text)
    assert given == [[text]]
    assert (found[1], list(found), found.tried) == (causes[1], causes, True)
    assert repr(found).split("\n") == [
        *("one: 3 < 4", "  do this", "two: seen", "  do that"),
    ]
    assert found._repr_html_().startswith("<ol><li><b>one</b>: 3 &lt; 4<br>do this")
    assert found.to_dict()["causes"][1]["remedy"] == "do that"


@pytest.mark.usefixtures("_with_matplotlib")
def test_a_picture_shows_itself_and_has_the_numbers_that_are_drawn(
    tmp_path: Path,
) -> None:
    picture = weft.plot("positions", d_model=8, max_len=12)
    assert isinstance(picture, weft.Picture)
    (values,) = picture.to_dict()["panels"][0]["images"]
    assert np.allclose(values, sinusoids(12, 8).numpy().T)
    shown = IMAGE.fullmatch(picture._repr_html_())
    assert shown is not None
    assert "d_model = 8" in shown[1]
    svg = base64.b64decode(shown[2]).decode("utf-8")
    assert svg.startswith("<?xml")
    picture.save(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text("utf-8") == svg
    assert repr(picture).split("\n")[0] == "picture: positions"


@pytest.mark.usefixtures("_with_matplotlib")
def test_a_history_is_drawn_of_what_was_logged(tmp_path: Path) -> None:
    lines = [{"step": 50, "loss": 3.0}, {"step": 50, "dev_bleu": 31.5, "dev_loss": 2.0}]
    (tmp_path / "run").mkdir()
    log = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "run" / "metrics.jsonl").write_text(log)
    losses, scores = weft.plot("history", tmp_path).to_dict()["panels"]
    assert [losses["lines"][i]["y"] for i in (0, 1)] == [[3.0], [2.0]]
    assert [31.5] in [line["y"] for line in scores["lines"]]


@pytest.mark.usefixtures("_with_matplotlib")
def test_every_lesson_is_a_picture() -> None:
    for what in ("mask", "smoothing", "schedule"):
        panel = weft.plot(what).to_dict()["panels"][0]
        assert panel["images"] or panel["lines"], what
    (line,) = weft.plot("schedule", recipe="demo").to_dict()["panels"][0]["lines"]
    assert line["label"] == "demo: cosine, warm-up 100"


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("posters", {}, "there is no picture 'posters': choose positions, mask,"),
        ("mask", {"d_model": 8}, r"weft\.plot\('mask'\) takes no d_model"),
        ("positions", {"recipe": "demo"}, r"takes no recipe; leave it out"),
        ("positions", {"d_model": 0}, "d_model = 0: it must be at least 2"),
        ("history", {}, "needs the folder of a run, or several"),
    ],
)
def test_what_no_picture_has_is_refused(
    what: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        weft.plot(what, **options)  # type: ignore[arg-type]


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingPackage, match=r"a picture needs matplotlib: pip install"
    ):
        weft.plot("mask")


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in weft.__all__:
        found = getattr(weft, name)
        assert name.startswith("__") or found.__doc__, name
