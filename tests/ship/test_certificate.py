"""A certificate as a whole: what the model is that a form is compared with, and on which text."""

from pathlib import Path

import numpy as np
import pytest

import random_models
from weft.ship.exporting import export
from weft.ship.onnx.target import Onnx
from weft.ship.quantization import quantize
from weft.ship.source import open_source


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
