"""The rows of the test text: what each adds to a model's scores, computed once and kept.

`seed-1.rows.json` stands beside the run's folder. By it a difference of two rows of the table is
known to hold, or not to hold, on other text of the same kind.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.console import stages
from weft.data.corpus import ParallelText
from weft.data.documents import Documents
from weft.data.labelled import LabelledText
from weft.errors import FolderError, WeftError
from weft.evaluation.seeds import Component
from weft.evaluation.seeds import of_rows as component_of_rows
from weft.evaluation.summed import (
    BLEU_SUMS,
    CHRF_SUMS,
    OF_SUMS,
    Array,
    bleu_rows,
    chrf_rows,
)
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.inspection.language_rows import losses_of_rows, rows_of
from weft.recipes.file import build_recipe
from weft.run.begun import read_record, texts_again
from weft.sweep.run import Run
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.opening import load_task
from weft.tasks.translation import Translation, in_forms_of


class RowsOfTest:
    """The statistics of finished runs on their test text; `notes` say where there are none."""

    def __init__(self, score: Callable[[Run], str]) -> None:
        self._score = score
        self._texts: dict[tuple[str, str], Any] = {}
        self.notes: dict[str, None] = {}

    def component(
        self, first: Sequence[Run], second: Sequence[Run]
    ) -> Component | None:
        """Return the variance that the difference of two rows' runs has by the rows of the text;
        None where that is not known.
        """
        name = self._score(first[0])
        if name not in OF_SUMS:
            self._note(f"{name} is no sum over rows")
            return None
        try:
            found = [self._statistics(run) for run in (*first, *second)]
        except WeftError as error:  # such as a text that is no longer there
            self._note(str(error).split("\n", maxsplit=1)[0])
            return None
        statistics = np.stack([one[name] for one in found], axis=1)
        count = len(first)

        def difference(sums: Array) -> Array:
            scores = OF_SUMS[name](sums)
            of_runs = scores.mean(-1)  # over directions
            base, other = np.split(of_runs, [count], axis=-1)
            return other.mean(-1) - base.mean(-1)

        return component_of_rows(statistics, difference)

    def _note(self, reason: str) -> None:
        self.notes[f"p is of seeds alone: {reason}"] = None

    def _statistics(self, run: Run) -> dict[str, Array]:
        """Return the statistics of a run's model by score: rows, directions, sums."""
        model = durable.sha256_of(run.folder / durable.MANIFEST)
        path = run.folder.with_name(f"{run.folder.name}.rows.json")
        kept = _kept(path, model)
        if not kept:
            stages.enter(f"scoring each row of test with {run.name}")
            text = self._text_of(run)
            task = load_task(run.folder, is_command=True)
            found = statistics_of(task, text)
            kept = {name: found[name].tolist() for name in found}
            durable.write_text(path, json.dumps({"model": model, **kept}))
        return {name: np.array(kept[name]) for name in kept}

    def _text_of(self, run: Run) -> Any:
        """Return the test text of a run, which those of the same text and settings share."""
        record = read_record(RunFolder(run.folder))
        settings = durable.to_json(record["recipe"]["data"])
        key = (run.text, settings)
        if key not in self._texts:
            recipe = build_recipe(record["recipe"], str(run.folder))
            texts, why = texts_again(record, recipe)
            if texts is None or texts.test is None:
                raise FolderError(f"{run.name}: {why or 'it has no test text'}")
            self._texts[key] = texts.test
        return self._texts[key]


def statistics_of(task: Any, text: Any) -> dict[str, Array]:
    """Return what each row of a text adds to the sums of a model's scores, by score.

    Shapes: rows, directions, sums; a row is of one direction, and adds nothing to the others.
    """
    if isinstance(task, Translation):
        return _of_translations(task, text)
    if isinstance(task, Classification):
        return _of_labels(task, text)
    assert isinstance(task, LanguageModelling)
    return _of_losses(task, text)


def _of_translations(task: Translation, text: ParallelText) -> dict[str, Array]:
    written = [prediction.text for prediction in task.translated(text)]
    references = in_forms_of(task.tokenizers[1:], text.tgt)
    shape = len(text), len(text.directions)
    bleu = np.zeros((*shape, BLEU_SUMS))
    chrf = np.zeros((*shape, CHRF_SUMS))
    for place, pair in enumerate(text.directions):
        rows = text.rows_of(pair) if text.pairs else range(len(text))
        hypotheses = [written[row] for row in rows]
        wanted = [references[row] for row in rows]
        lang = task.config.tgt_lang
        if task.config.directions:
            _, lang = pair
        bleu[rows, place] = bleu_rows(hypotheses, wanted, lang)
        chrf[rows, place] = chrf_rows(hypotheses, wanted)
    return {"bleu": bleu, "chrf": chrf}


def _of_labels(task: Classification, text: LabelledText) -> dict[str, Array]:
    answers = task.predictor().classify_stream(text.texts)
    right = np.zeros(len(text))
    for row, answer in enumerate(answers):
        right[row] = set(answer.labels) == set(text.labels[row])
    return {"accuracy": _over(right, np.ones(len(text)))}


def _of_losses(task: LanguageModelling, text: Documents) -> dict[str, Array]:
    rows = rows_of(text)
    nats, num_tokens = losses_of_rows(task, text, rows)
    sizes = [row.num_bytes for row in rows]
    num_bytes = np.array(sizes, np.float64)
    bits = nats / np.log(2)
    return {
        "loss": _over(nats, num_tokens),
        "bits_per_byte": _over(bits, num_bytes),
    }


def _over(values: Array, sizes: Array) -> Array:
    rows = np.stack([values, sizes], axis=-1)
    return rows[:, None]  # of one direction


def _kept(path: Path, model: str) -> dict[str, Any]:
    """Return the statistics that were kept of a model; {} where there are none of this one."""
    try:
        kept = durable.read_json(path)
    except FolderError:
        return {}
    if not isinstance(kept, dict) or kept.pop("model", "") != model:
        return {}
    return kept
