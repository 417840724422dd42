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
from pathlib import Path
from typing import Any

from weft.console import stages
from weft.errors import FolderError
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
        return [unfinished(run)]
    if isinstance(task, TrainableTranslation) and task.config.directions:
        src_lang, tgt_lang = task.directions[0]
        task = task.toward(tgt_lang, src_lang)
    text = task.read(data) if data else None
    return find_causes(Evidence(task, run, text, training_hashes(folder)))


def explain_run(task: TrainableTask[Any, Any, Any], run: Run) -> list[Cause]:
    """Return what the run's figures alone say of a model that does badly, the gravest first."""
    return find_causes_by_run(Evidence(task, run))
