"""A certificate as a whole: what the model is that a form is compared with, and on which text."""

import json
from pathlib import Path

import numpy as np
import pytest

import random_models
from weft.ship.ctranslate2.target import CTranslate2
from weft.ship.exporting import export
from weft.ship.onnx.target import Onnx
from weft.ship.quantization import quantize
from weft.ship.source import open_source
from weft.ship.target import Asked

# what tells of the comparison
_TELLING = ("README.md", "parity.json")


@pytest.mark.usefixtures("need_engine")
@pytest.mark.parametrize("recipe", ["demo", "en-zh"])
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
