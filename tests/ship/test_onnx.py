"""Models as graphs of ONNX: opened by onnxruntime they are the same, and are used without Weft."""

import ast
import json
import runpy
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import house  # tools/house.py
import random_models
from weft.data.tokenizer import EOS_ID
from weft.errors import FolderError, UsageError
from weft.folder.model_folder import CONFIG
from weft.predict.rows import most_tokens
from weft.ship.certificate.reference import reference_of
from weft.ship.exporting import Export, export
from weft.ship.onnx import loops
from weft.ship.onnx import target as onnx_target
from weft.ship.onnx.target import Onnx
from weft.ship.opened import Wanted
from weft.ship.source import Source, open_source

# a recipe of each task, with the loop that goes with it
TASKS = {
    "en-de": "translate.py",
    "tiny-shakespeare": "generate.py",
    "classify-fast": "classify.py",
}
VARIANTS = (
    *(name for name in random_models.with_layers() if name not in TASKS),
    "en-de-modern tokenizer.joint=false",
    "en-de tokenizer.src.kind=unigram tokenizer.tgt.kind=unigram",
    "classify-modern data.label_separator=, data.too_long=windows",
    "imdb-classifier model.pooling=first",
    "lm-modern batches.packing=packed",
)


def exported(recipe: str, place: Path) -> Export:
    name, *settings = recipe.split(" ")
    folder = random_models.write_folder(name, place / "model", *settings)
    task = json.loads((folder / CONFIG).read_text("utf-8"))["task"]
    return export(folder, Onnx(), place / "out", [random_models.write_dev(task, place)])


@pytest.mark.parametrize("name", TASKS)
def test_a_model_of_each_task_is_the_same_and_needs_no_weft(
    name: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = exported(name, tmp_path)
    assert made.certificate is not None
    checks = {check.name: check for check in made.certificate.checks}
    assert checks["logits"].largest is not None
    assert checks["logits"].largest < 3e-5
    assert ("greedy" in checks) == (name != "classify-fast")
    assert ("beam" in checks) == (name == "en-de")
    assert checks["weights"].compared > 10_000
    # the script of the folder says what Weft says
    texts = ["A dog", "Ein kleiner Hund!"]
    config = tmp_path / "out" / "config.json"
    settings = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps(settings | LITTLE), "utf-8")
    script = str(tmp_path / "out" / TASKS[name])
    monkeypatch.setattr(sys, "argv", [script, *texts])
    runpy.run_path(script, run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("".join(said_by_weft(tmp_path / "model", texts)))


LITTLE = {"temperature": 0.0, "max_new_tokens": 3, "max_len_extra": 5}


def said_by_weft(folder: Path, texts: list[str]) -> Iterator[str]:
    """What a script should print; of a classifier the first line's label."""
    task = open_source(folder).task
    tokenizer = task.tokenizers[-1]
    for text in texts:
        if task.name == "classification":
            (answer,) = task.predictor().classify(text)
            yield answer.label
            return
        if task.name == "translation":
            ids = (*task.tokenizers[0].encode(text), EOS_ID)
            limit = most_tokens(task.config.decoding, len(ids), 200)
            limit = limit - task.config.decoding.max_len_extra + 5
        else:
            ids = tuple(task.predictor().start(text))
            limit = 3
        (found,) = reference_of(task).search([Wanted(ids, limit)], 1)
        begun = text if task.name == "language-modelling" else ""
        yield f"{begun}{tokenizer.decode(found)}\n"


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_recipe_and_option_is_the_same(variant: str, tmp_path: Path) -> None:
    made = exported(variant, tmp_path)
    assert made.certificate is not None
    assert made.certificate.failed is None


def test_one_changed_number_is_found_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault X1: what was written is not what was meant."""
    real = Onnx.write

    def write(self: Any, source: Source, place: Path, asked: Any) -> Any:
        gain = "encoder.layers.0.residuals.0.norm.weight"
        changed = source.arrays[gain].copy()
        changed[3] = np.nextafter(changed[3], np.inf)
        arrays = {**source.arrays, gain: changed}
        return real(self, replace(source, arrays=arrays), place, asked)

    monkeypatch.setattr(Onnx, "write", write)
    with pytest.raises(FolderError, match=r"norm.weight\[3\] is .*, not .*; nothing"):
        exported("classify-modern", tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_recurrent_model_has_no_graph() -> None:
    task = SimpleNamespace(config=SimpleNamespace(is_recurrent=True))
    source = Source(Path(), task, None, {})  # type: ignore[arg-type]
    assert "it is recurrent; train a Transformer" in Onnx().why_not(source)


def test_weights_that_no_file_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_target, "MOST_BYTES", 1000)
    with pytest.raises(UsageError, match="more than the 2 GiB of a file of ONNX"):
        exported("classify-modern", tmp_path)
    assert not (tmp_path / "out").exists()


LOOPS = Path(loops.__file__).parent


@pytest.mark.parametrize("name", ["translate", "generate", "classify"])
def test_a_script_that_cannot_work_says_how_it_is_used(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a text, when it is asked, and without the files beside it."""
    script = tmp_path / f"{name}.py"
    script.write_bytes((LOOPS / script.name).read_bytes())
    for words, code, told in (
        ([], 2, "arguments are required: text"),
        (["--help"], 0, "show this help"),
        (["A text."], 2, f"the files in {tmp_path} cannot be opened: "),
    ):
        monkeypatch.setattr("sys.argv", [str(script), *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        assert ended.value.code == code
        said = "".join(capsys.readouterr())
        assert said.startswith(f"usage: {name}.py [-h] text [text ...]\n")
        assert told in said


def test_the_loop_is_shown_whole_and_has_sixty_lines() -> None:
    source = (LOOPS / "translate.py").read_text("utf-8")
    page = (Path(__file__).parents[2] / "docs" / "interop.md").read_text("utf-8")
    assert f"```python\n{source}```\n" in page
    (kind,) = (n for n in ast.parse(source).body if isinstance(n, ast.ClassDef))
    text = ast.get_source_segment(source, kind) or ""
    lines = house.tokens_by_line(text, house.docstring_lines(ast.parse(text)))
    assert len(lines) <= 60
