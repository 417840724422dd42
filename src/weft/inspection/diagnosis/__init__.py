"""Why is my model bad? `weft diagnose` says it by what the run wrote down, and by what the model
does with a text.

Each cause is told from evidence that it leaves, and comes with what to do. `ranking.py` lists the
causes; what each of them looks at stands in the module of its kind:

- `data.py`: the text of training, dev and test;
- `training.py`: the course of the run;
- `model.py`: what the model does with text like that of its training;
- `use.py`: the text that it is tried with.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.console import stages
from weft.data.corpus import ParallelText
from weft.data.languages import direction
from weft.data.overlap import TextHashes
from weft.errors import FolderError
from weft.folder.layout import run_of_steps
from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.evidence import Evidence
from weft.inspection.diagnosis.ranking import find_causes, find_causes_by_run
from weft.inspection.diagnosis.run import Run
from weft.inspection.diagnosis.training import unfinished
from weft.kernels.machine import Machine
from weft.tasks.choice import load_trainable
from weft.tasks.task import training_hashes
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_translation import TrainableTranslation

__all__ = ["Cause", "Run", "diagnose", "explain_run"]


def diagnose(folder: Path, data: Sequence[str], machine: Machine) -> list[Cause]:
    """Return the causes found, the gravest first; `data` is text of the kind that the model was
    trained on, or nothing.

    Raises FolderError for a folder that holds neither a model nor a run that says how it ended,
    DataError for text that cannot be read.
    """
    run = Run.of(folder)
    stages.enter("loading the model")
    try:
        task = load_trainable(folder, machine)
    except FolderError:
        if not run.left_no_model:
            raise
        return [unfinished(run, run_of_steps(folder))]
    text = task.read(data) if data else None
    trained_on = training_hashes(folder)
    if isinstance(task, TrainableTranslation) and task.config.directions:
        return _causes_of_directions(task, run, text, trained_on)
    return find_causes(Evidence(task, run, text, trained_on))


def _causes_of_directions(
    task: TrainableTranslation,
    run: Run,
    text: ParallelText | None,
    trained_on: TextHashes | None,
) -> list[Cause]:
    """Return the causes found in each direction that a text has, which they name; those that all
    have, once.
    """
    pairs = task.directions[:1] if text is None else text.directions
    found: dict[str, list[Cause]] = {}
    for src_lang, tgt_lang in pairs:
        one = task.toward(tgt_lang, src_lang)
        part = text and text.of((src_lang, tgt_lang))
        evidence = Evidence(one, run, part, trained_on)
        found[direction(src_lang, tgt_lang)] = find_causes(evidence)
    ranked: list[tuple[int, Cause]] = []
    for name, causes in found.items():
        for rank, cause in enumerate(causes):
            if not all(cause in others for others in found.values()):
                named = replace(cause, evidence=f"{name}: {cause.evidence}")
                ranked.append((rank, named))
            elif name == next(iter(found)):
                ranked.append((rank, cause))
    return [cause for _, cause in sorted(ranked, key=lambda each: each[0])]


def explain_run(task: TrainableTask[Any, Any, Any], run: Run) -> list[Cause]:
    """Return what the run's figures alone say of a model that does badly, the gravest first."""
    return find_causes_by_run(Evidence(task, run))
