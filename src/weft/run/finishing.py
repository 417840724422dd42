"""A run that was interrupted becomes a model of what there is: `weft finish`.

Nothing that resuming needs is touched: the command that trains continues afterwards as if this had
never been, and puts its own model in the place of this one.
"""

from pathlib import Path
from typing import Any

import torch

from weft.config import Recipe
from weft.errors import FolderError, UsageError
from weft.folder import durable, model_folder
from weft.folder.layout import (
    DONE,
    FINISHED_EARLY,
    how_to_resume,
    refuse_no_folder,
    run_of_steps,
    why_refused,
)
from weft.folder.model_folder import RunFolder
from weft.kernels import torch_machine
from weft.kernels.machine import Machine
from weft.kernels.torch_machine import machine_for_torch
from weft.recipes.file import build_recipe
from weft.run.begun import read_record, texts_again
from weft.run.card import test_score
from weft.run.origin import checkpoint_facts
from weft.run.publication import TrainedRun, publish
from weft.run.record import ENDED, Verdict, keeping_record, read_verdict
from weft.tasks.choice import TASKS
from weft.tasks.trainable import TrainableTask, read_tokenizers
from weft.training.checkpoint import Checkpoints
from weft.training.log import Log


def finish(out: Path, log: Log | None = None, *, quiet: bool = False) -> Verdict:
    """Make a model in the folder `out` of what its run has saved: the best step on dev, else the
    newest.

    A run that has ended is left as it is; one that had made all its steps has ended then. Raises
    FolderError where there is no run, or nothing saved yet; UsageError where it is still going on.
    """
    log = log or Log(quiet=quiet)
    folder = RunFolder(out)
    origin = _origin_of(folder)
    with durable.held(folder.lock, out):
        earlier = read_verdict(folder.verdict) or Verdict()
        if earlier.outcome in ENDED and model_folder.is_finished(out):
            log.note(f"{out} is finished already ({earlier.reason})")
            return earlier
        keep_all = 1_000_000
        checkpoints = Checkpoints(
            folder.checkpoints, keep_all, checkpoint_facts(folder)
        )
        command = str(origin.get("command", ""))
        state = checkpoints.load_latest()
        if state is None:
            why = how_to_resume(command, out, is_saved=False)
            why = why_refused(folder.verdict) or why
            raise FolderError(f"{out}: no step is saved yet; {why}")
        recipe = build_recipe(origin["recipe"], str(folder.recipe))
        with keeping_record(folder.verdict) as record:
            record.foresee(earlier.max_steps, checkpoints.newest_step, earlier.notes)
            record.stand_at(state.progress, checkpoints.newest_step)
            record.enter("scoring")
            task = _model_of(folder, recipe)
            texts, doubt = texts_again(origin, recipe)
            doubts = _doubts(earlier, doubt)
            verdict = record.verdict
            verdict.notes = list(dict.fromkeys([*verdict.notes, *doubts]))
            for note in doubts:
                log.note(f"note: {note}")
            if replaced := _published(out):
                log.note(f"replaces {replaced}")
            kept = [key for key in ("texts", "teacher") if origin.get(key)]
            facts = {key: origin[key] for key in kept}
            # only the scoring was missing, and it is made up for here
            is_whole = texts is not None and 0 < verdict.max_steps <= verdict.step
            run = TrainedRun(
                folder, command, checkpoints, record, log, is_stopped=not is_whole
            )
            publish(run, task, texts, facts)
            if is_whole:
                record.end(DONE)
            else:
                verdict.end(FINISHED_EARLY, 0, _how_far(verdict))
    return verdict


def _origin_of(folder: RunFolder) -> dict[str, Any]:
    """Read what the run wrote down when it began. Raises FolderError where there is none."""
    refuse_no_folder(folder.model_folder)
    if not folder.recipe.is_file():
        said = "holds no run that could be finished"
        if step := run_of_steps(folder.model_folder):
            said = (
                "its steps are not finished; the same command goes on, or make a model of what the last one has "
                f"saved: weft finish {step}"
            )
        raise FolderError(f"{folder.model_folder}: {said}")
    return read_record(folder)


def _how_far(verdict: Verdict) -> str:
    steps = f"{verdict.step:,}"
    if verdict.max_steps:
        steps += f" of {verdict.max_steps:,}"
    return f"{FINISHED_EARLY} at step {steps}"


def _published(out: Path) -> str:
    """Name the model that a folder holds already by its step and score; "" where there is none.

    Its step is the one that its weights are of, as on its card.
    """
    if not model_folder.is_finished(out):
        return ""
    manifest = durable.read_json(out / durable.MANIFEST)
    facts = manifest if isinstance(manifest, dict) else {}
    number = facts.get("best_step") or facts.get("steps")
    step = f" of step {number:,}" if isinstance(number, int) else ""
    score = test_score(out / model_folder.CARD)
    return f"the model{step}{f' (test {score})' if score else ''}"


def _doubts(earlier: Verdict, doubt: str) -> list[str]:
    """Return what a reader of the scores should know: training failed, the text is not there."""
    doubts = []
    if earlier.outcome == "failed":
        doubts.append(f"training had failed: {earlier.reason}")
    if doubt:
        doubts.append(doubt)
    return doubts


def _model_of(folder: RunFolder, recipe: Recipe) -> TrainableTask[Any, Any, Any]:
    """Return the run's own model, its weights still to come."""
    if not folder.config.is_file():
        raise FolderError(
            f"{folder.config}: missing, as in runs of an earlier version; give the run's own command with "
            "--set training.max_steps=N, N being the step that it has reached"
        )
    config = model_folder.read_config(folder.config)
    tokenizers = read_tokenizers(folder.tokenizers)
    return TASKS[recipe.task].untrained(config, tokenizers, _machine_of(folder))


def _machine_of(folder: RunFolder) -> Machine:
    """Return the machine as training chose it; where this one has not that, as it is for use."""
    try:
        machine = Machine(**durable.read_json(folder.machine))
        if machine.device == "cpu" or torch.cuda.is_available():
            torch_machine.prepare(machine)
            return machine
    except (FolderError, TypeError, UsageError):
        pass
    return machine_for_torch()
