"""A run that was interrupted becomes a model of what there is: `weft finish`.

Nothing that resuming needs is touched: the command that trains continues afterwards as if this had
never been, and puts its own model in the place of this one.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from weft.config import Recipe
from weft.data.texts import Sources, Texts
from weft.errors import DataError, FolderError, UsageError
from weft.folder import durable, model_folder
from weft.folder.layout import (
    DONE,
    FINISHED_EARLY,
    how_to_resume,
    refuse_no_folder,
    why_refused,
)
from weft.folder.model_folder import RunFolder
from weft.kernels.machine import Machine, machine_for_use
from weft.recipes.file import build_recipe
from weft.run.card import test_score
from weft.run.origin import checkpoint_facts, read_record
from weft.run.publication import TrainedRun, publish
from weft.run.record import ENDED, Verdict, keeping_record, read_verdict
from weft.tasks.choice import TASKS
from weft.tasks.task import Task, read_tokenizers
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
            texts, doubt = _texts_again(origin, recipe)
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


def held_out(model: Path) -> tuple[str, Any]:
    """Read again what the run in a folder holds out; return which part, and its text.

    The test text, or else dev. Raises UsageError, with the reason, where there is none.
    """
    folder = RunFolder(model)
    if not folder.recipe.is_file():
        raise UsageError(
            f"{model} holds no run whose held-out text could be taken; give DATA"
        )
    origin = read_record(folder)
    recipe = build_recipe(origin["recipe"], str(folder.recipe))
    texts, doubt = _texts_again(origin, recipe)
    parts = {} if texts is None else {"test": texts.test, "dev": texts.dev}
    for name, part in parts.items():
        if part is not None and len(part):
            return name, part
    why = doubt.removeprefix("no scores on test: ") or "it has none"
    raise UsageError(f"the run in {model} gives no held-out text: {why}; give DATA")


def _origin_of(folder: RunFolder) -> dict[str, Any]:
    """Read what the run wrote down when it began. Raises FolderError where there is none."""
    refuse_no_folder(folder.model_folder)
    if not folder.recipe.is_file():
        raise FolderError(f"{folder.model_folder}: holds no run that could be finished")
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


def _model_of(folder: RunFolder, recipe: Recipe) -> Task[Any, Any, Any]:
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
            machine.prepare()
            return machine
    except (FolderError, TypeError, UsageError):
        pass
    return machine_for_use()


def _texts_again(
    origin: Mapping[str, Any], recipe: Recipe
) -> tuple[Texts[Any] | None, str]:
    """Return the run's text, read once more from where it was; else why not, in a sentence."""
    why = "where they lay is not known"
    for sources in _sources(origin):
        try:
            texts = TASKS[recipe.task].gather(recipe, sources)
        except (DataError, FolderError, UsageError) as error:
            why = str(error).split("\n", maxsplit=1)[0]
            continue
        if _hashes(texts.facts()) == _hashes(origin["texts"]):
            return texts, ""
        why = "it has changed since training began"
    return None, f"no scores on test: the text was not found again ({why})"


def _sources(origin: Mapping[str, Any]) -> Iterator[Sources]:
    """Yield the files as they were named: from here, then from where training was begun."""
    named = origin.get("sources")
    if not isinstance(named, dict):
        return
    for folder in (Path(), Path(str(named.get("directory", "")))):
        train = tuple(_within(folder, name) for name in named.get("train", ()))
        parts = {
            part: _within(folder, named[part])
            for part in ("dev", "test")
            if named.get(part)
        }
        yield Sources(train, parts.get("dev"), parts.get("test"))


def _within(folder: Path, name: str) -> str:
    """Return a name of one file, or of two joined by a comma, as it stands in a folder."""
    path = folder / name
    if path.is_file():
        return str(path)
    return ",".join(str(folder / part) for part in name.split(","))


def _hashes(facts: Mapping[str, Any]) -> dict[str, str]:
    return {part: about["sha256"] for part, about in facts.items()}
