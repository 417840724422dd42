"""A certificate as a whole: what the model is that a form is compared with, and on which text."""

import hashlib
import json
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from shutil import which

import numpy as np
import pytest

import random_models
import weft
from weft.data.overlap import TextHashes
from weft.folder.layout import RunFolder
from weft.ship.certificate import compared
from weft.ship.certificate.compared import compared_text
from weft.ship.ctranslate2.target import CTranslate2
from weft.ship.exporting import export
from weft.ship.onnx.target import Onnx
from weft.ship.quantization import quantize
from weft.ship.source import open_source
from weft.ship.target import Asked
from weft.ship.targets import target_named

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
# what tells of the comparison
_TELLING = ("README.md", "parity.json")


@pytest.mark.usefixtures("need_engine")
@pytest.mark.parametrize("recipe", ["en-de", "en-zh"])
def test_an_int8_model_is_compared_with_the_numbers_that_its_steps_stand_for(
    recipe: str, tmp_path: Path
) -> None:
    folder = random_models.write_folder(recipe, tmp_path / "model")
    dev = random_models.write_dev("translation", tmp_path)
    small = tmp_path / "int8"
    quantize(folder, [dev], small, max_bleu_loss=100)
    made = export(small, Onnx(), tmp_path / "out", [dev])
    assert made.certificate is not None
    checks = {check.name: check for check in made.certificate.checks}
    assert checks["beam"].equal == checks["beam"].compared
    assert checks["logits"].largest < 1e-5
    source = open_source(small)
    # all is computed with these numbers, but what a person gets from Weft
    assert source.task.predictor().engine.kind == "float32"
    assert source.own.predictor().engine.kind == "int8"
    projection = source.task.weights.projection
    assert projection.stored.dtype == np.float32


def test_what_is_written_depends_on_the_model_alone(tmp_path: Path) -> None:
    """Whatever it is compared on, or not at all, the files are the same but for those that tell of
    the comparison.
    """
    folder = random_models.write_folder("en-de", tmp_path / "model")
    dev = random_models.write_dev("translation", tmp_path)
    short = tmp_path / "short.tsv"
    short.write_text("Hund\tHund\n", "utf-8")
    found = []
    for number, data in enumerate(([dev], [str(short)], [])):
        asked = Asked(is_certified=bool(data))
        place = tmp_path / str(number)
        export(folder, CTranslate2(), place, data, asked)
        listed = json.loads((place / "manifest.json").read_text("utf-8"))["files"]
        found.append({n: e for n, e in listed.items() if n not in _TELLING})
    first, *others = found
    assert "weft.json" in first
    assert others == [first, first]


def test_it_is_said_how_much_of_a_named_text_was_trained_on(tmp_path: Path) -> None:
    folder = random_models.write_folder("en-de", tmp_path / "model")
    dev = random_models.write_dev("translation", tmp_path)
    source = open_source(folder)
    unknown = compared_text(source, [dev], "")
    assert unknown.about == "5 pairs that the exporter named (trained on: not known)"
    assert any("not checked for overlap" in note for note in unknown.notes)
    # case and marks do not count
    trained = [(text.upper(), f"{text}!") for text in random_models.TEXTS[1:3]]
    keep_hashes(folder, trained)
    made = export(folder, Onnx(), tmp_path / "out", [dev])
    said = "5 pairs that the exporter named (trained on: 2)"
    assert made.certificate is not None
    assert made.certificate.text == said
    assert f"on {said}:" in (tmp_path / "out" / "README.md").read_text("utf-8")
    (found,) = (line for line in made.lines() if "contaminated" in line)
    assert "2 of 5 pairs (40.0 %) are in the training text as well" in found
    assert f"(first: {dev}:2)" in found
    # which goes to whoever exports, not to whoever gets the model
    assert dev not in (tmp_path / "out" / "parity.json").read_text("utf-8")


def test_a_text_of_the_run_is_held_out_and_may_yet_stand_in_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = random_models.write_folder("en-de", tmp_path / "model")
    source = open_source(folder)
    text = source.task.read([random_models.write_dev("translation", tmp_path)])
    monkeypatch.setattr(compared, "held_out", lambda _: ("test", text))
    about = "5 pairs of the run's own test text, held out from training"
    assert compared_text(source, [], "").about == about
    first = random_models.TEXTS[0]
    keep_hashes(folder, [(first, first)])
    found = compared_text(source, [], "")
    assert found.about == f"{about}, 1 of which stand in the training text, too"
    assert "contaminated: 1 of 5 pairs" in found.notes[0]


def test_a_single_pair_is_little(tmp_path: Path) -> None:
    folder = random_models.write_folder("en-de", tmp_path / "model")
    pair = tmp_path / "one.tsv"
    pair.write_text("Hund\tHund\n", "utf-8")
    found = compared_text(open_source(folder), [str(pair)], "")
    said = "1 pair is little to compare on: give 200 or so as DATA"
    assert found.notes[-1] == said
    pair.write_text("Hund\tHund\n" * 20, "utf-8")
    found = compared_text(open_source(folder), [str(pair)], "")
    assert not any("little" in note for note in found.notes)


def keep_hashes(folder: Path, rows: list[tuple[str, str]]) -> None:
    """Let a model know what it was trained on."""
    path = RunFolder(folder).train_hashes
    path.parent.mkdir(exist_ok=True)
    TextHashes.of(rows).save(path)


def test_parity_says_when_by_what_and_of_which_model_it_is(tmp_path: Path) -> None:
    folder = random_models.write_folder("classify-fast", tmp_path / "model")
    dev = random_models.write_dev("classification", tmp_path)
    before = datetime.now(UTC).date()
    export(folder, Onnx(), tmp_path / "out", [dev])
    told = json.loads((tmp_path / "out" / "parity.json").read_text("utf-8"))
    assert before <= date.fromisoformat(told["date"]) <= datetime.now(UTC).date()
    assert told["weft"] == weft.__version__
    assert told["source"] == {
        "manifest_sha256": sha256(folder / "manifest.json"),
        "weights_sha256": sha256(folder / "model.safetensors"),
        "weights": "float32",
    }
    assert (tmp_path / "out" / told["hashes"]).is_file()
    # the page names every key, and no other
    page = PAGE.read_text("utf-8")
    table = page.split("| key of `parity.json` |")[1].split("\n\n")[0]
    rows = (line.split("|")[1] for line in table.split("\n")[2:])
    assert {
        key for row in rows for key in row.replace("`", "").replace(",", "").split()
    } == {*told}
    for key in told["checks"][0]:
        assert f"`{key}`" in table


@pytest.mark.skipif(which("sha256sum") is None, reason="there is no sha256sum")
def test_who_gets_a_folder_finds_a_changed_file(tmp_path: Path) -> None:
    folder = random_models.write_folder("classify-fast", tmp_path / "model")
    export(folder, Onnx(), tmp_path / "out", asked=Asked(is_certified=False))
    card = tmp_path / "out" / "README.md"
    texts = [page.read_text("utf-8") for page in (PAGE, card)]
    lines = "\n".join(texts).split("\n")
    (command,) = {line.strip() for line in lines if line.endswith("| sha256sum -c")}

    def looked_at() -> int:
        place = tmp_path / "out"
        return subprocess.run(command, shell=True, cwd=place, check=False).returncode

    assert looked_at() == 0
    path = tmp_path / "out" / "model.onnx"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    assert looked_at() != 0


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


OTHERWISE = {
    "onnx": "`translate.py` takes the most probable token at each step, where Weft searches with a beam of 3.",
    "transformers.js": "takes the most probable token at each step, where Weft searches with a beam of 3.",
    "huggingface": "divides the log-probability of a translation by length^0.96, Weft by ((5 + length) / 6)^1.2, so",
    "ctranslate2": "divides the log-probability of a translation by length^0.96, Weft by ((5 + length) / 6)^1.2, so",
}


@pytest.mark.parametrize("form", OTHERWISE)
def test_the_card_says_whose_the_scores_are_and_how_the_form_searches(
    form: str, tmp_path: Path
) -> None:
    settings = ("decoding.beam_size=3", "decoding.length_penalty=1.2")
    folder = random_models.write_folder("en-de", tmp_path / "model", *settings)
    own = "# A model\n\n## Scores on test\n\n    BLEU  1.00\n    by    beam size 3\n"
    (folder / "README.md").write_text(own, "utf-8")
    target = target_named(form)
    precision = target.precisions[-1]
    asked = Asked(precision=precision, is_certified=False)
    export(folder, target, tmp_path / "out", asked=asked)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "The scores on test are Weft's own, with its settings (beam size 3)" in card
    assert ("; here the weights are in int8." in card) == (precision == "int8")
    assert OTHERWISE[form] in card


def test_a_greedy_model_is_used_so_in_every_form(tmp_path: Path) -> None:
    folder = random_models.write_folder(
        "en-de", tmp_path / "model", "decoding.beam_size=1"
    )
    source = open_source(folder)
    for form in ("onnx", "transformers.js", "huggingface", "ctranslate2"):
        assert target_named(form).used_otherwise(source) == ""
    assert "a beam of 4" in target_named("argos").used_otherwise(source)
