"""What rows of the test text add to scores: their sums are the scores; a jackknife by sacreBLEU."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

import weft
from weft.config import TranslationRecipe
from weft.evaluation.summed import OF_SUMS
from weft.run.begun import held_out
from weft.sweep import rows
from weft.sweep.rows import RowsOfTest, statistics_of
from weft.sweep.run import Run
from weft.tasks.opening import load_task

SIZE = ("model.d_model=16", "model.d_ff=16", "model.num_heads=2", "training.max_steps=2",
        "training.precision=float32", "training.threads=1")  # fmt: skip
WORDS = ("red", "blue", "small", "large", "warm", "cold", "old", "new")


def check_sums(folder: Path, text: Any) -> None:
    """Every score of the sums is that of `weft evaluate`."""
    task = load_task(folder)
    scores = task.evaluate(text).to_json()
    found = statistics_of(task, text)
    assert found
    for name, statistics in found.items():
        score = OF_SUMS[name](statistics.sum(0)).mean(-1)
        assert score == pytest.approx(scores[name]), name


def test_the_sums_of_translators(tiny_folder: Path, both_ways: Path) -> None:
    """The second writes two languages; a row adds to the score of one."""
    for folder in (tiny_folder, both_ways):
        _, text = held_out(folder)
        check_sums(folder, text)


def test_the_sums_of_a_language_model(tmp_path: Path) -> None:
    lines = [f"the {a} {b} cat\n" for a in WORDS for b in WORDS]
    (tmp_path / "a.txt").write_text("".join(lines))
    own = ("task=language-modelling", "tokenizer.kind=character", "data.dev_share=0",
           "model.num_decoder_layers=1", "batches.window_len=24", "batches.batch_size=8")  # fmt: skip
    out = tmp_path / "model"
    train = str(tmp_path / "a.txt")
    weft.train(out=out, train=train, settings=(*SIZE, *own), quiet=True)
    check_sums(out, load_task(out).read([train]))


def test_the_sums_of_a_classifier(tmp_path: Path) -> None:
    rows_of = [
        f"the {a} {b} cat,{'warm' if a < b else 'cold'}" for a in WORDS for b in WORDS
    ]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows_of, ""]))
    own = ("task=classification", "tokenizer.kind=word", "model.num_encoder_layers=1",
           "data.dev_size=0", "data.test_size=0")  # fmt: skip
    out = tmp_path / "model"
    train = str(tmp_path / "a.csv")
    weft.train(out=out, train=train, settings=(*SIZE, *own), quiet=True)
    check_sums(out, load_task(out).read([train]))


@pytest.fixture(scope="module")
def two_runs(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
) -> list[Run]:
    """Two rows of one run each: trained, and hardly."""
    here = tmp_path_factory.mktemp("rows") / "t"
    folders = [here / row / "seed-1" for row in ("a", "b")]
    shutil.copytree(tiny_folder, folders[0])
    settings = (*tiny_settings, "training.max_steps=20", "model.d_model=32")
    weft.train(out=folders[1], train=write_pairs(216), settings=settings, quiet=True)
    return [
        Run("t", folder.parent.name, 1, folder, (), TranslationRecipe())
        for folder in folders
    ]


def test_the_rows_of_the_text_by_leaving_each_out(
    two_runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = held_out(two_runs[0].folder)
    models = [weft.load(run.folder) for run in two_runs]
    written = [[p.text for p in model.translate(text.src)] for model in models]
    differences = []
    for out in range(len(text)):
        kept = [row for row in range(len(text)) if row != out]
        wanted = [[text.tgt[row] for row in kept]]
        hypotheses = [[texts[row] for row in kept] for texts in written]
        a, b = (BLEU().corpus_score(texts, wanted).score for texts in hypotheses)
        differences.append(b - a)
    count = len(text)
    variance = (
        (count - 1)
        / count
        * np.square(np.subtract(differences, np.mean(differences))).sum()
    )
    found = RowsOfTest(lambda run: "bleu").component(two_runs[:1], two_runs[1:])
    assert found is not None
    assert (found.variance, found.freedom) == (pytest.approx(variance), count - 1)
    assert found.variance > 0

    def refuse(*asked: Any, **more: Any) -> Any:
        raise AssertionError("what is kept is not computed again")

    monkeypatch.setattr(rows, "load_task", refuse)
    again = RowsOfTest(lambda run: "bleu").component(two_runs[:1], two_runs[1:])
    assert again == found


def test_what_is_not_known_of_the_rows_is_said(
    two_runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = RowsOfTest(lambda run: "macro_f1")
    assert lacking.component(two_runs[:1], two_runs[1:]) is None
    assert [*lacking.notes] == ["p is of seeds alone: macro_f1 is no sum over rows"]
    for run in two_runs:
        run.folder.with_name("seed-1.rows.json").unlink(missing_ok=True)
    monkeypatch.setattr(
        rows, "texts_again", lambda record, recipe: (None, "it is gone")
    )
    lost = RowsOfTest(lambda run: "bleu")
    assert lost.component(two_runs[:1], two_runs[1:]) is None
    assert [*lost.notes] == ["p is of seeds alone: t/a/seed-1: it is gone"]
