"""A run that was interrupted becomes a model of what there is: `weft finish`.

Nothing of what going on needs is touched: the command that trains goes on afterwards as if this had
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
from weft.folder.layout import FINISHED_EARLY, going_on, refuse_no_folder
from weft.folder.model_folder import RunFolder
from weft.kernels.machine import Machine, machine_for_use
from weft.recipes.file import build_recipe
from weft.run.publication import publish
from weft.run.record import (
    ENDED,
    Verdict,
    checkpoint_facts,
    enter_stage,
    read_record,
    read_verdict,
    writing_verdict,
)
from weft.tasks.choice import TASKS
from weft.tasks.task import Task, read_tokenizers
from weft.training.checkpoint import Checkpoints
from weft.training.log import Log


def finish(out: Path, log: Log | None = None, *, quiet: bool = False) -> Verdict:
    """Make a model in the folder `out` of what its run has saved: the best step on dev, else the
    newest.

    A run that has ended is left as it is. Raises FolderError where there is no run, or nothing
    saved yet; UsageError where it is still going on.
    """
    log, files = log or Log(quiet=quiet), RunFolder(out)
    record = _record_of(out)
    with durable.held(files.lock, out):
        earlier = read_verdict(files.verdict) or Verdict()
        if earlier.outcome in ENDED and model_folder.is_finished(out):
            log.note(f"{out} is finished already ({earlier.reason})")
            return earlier
        # none is removed
        checkpoints = Checkpoints(files.checkpoints, 1_000_000, checkpoint_facts(files))
        state = checkpoints.load_latest()
        if state is None:
            raise FolderError(
                f"{out}: no step is saved yet; {going_on(str(record.get('command', '')), out, is_saved=False)}"
            )
        recipe = build_recipe(record["recipe"], str(files.recipe))
        with writing_verdict(files.verdict) as verdict:
            verdict.notes, verdict.max_steps = [*earlier.notes], earlier.max_steps
            verdict.stands_at(state.progress, checkpoints.newest_step)
            enter_stage(files.verdict, verdict, "scoring")
            task = _model_of(files, recipe)
            texts, doubt = _texts_again(record, recipe)
            verdict.notes = list(
                dict.fromkeys([*verdict.notes, *_doubts(earlier, doubt)])
            )
            for note in _doubts(earlier, doubt):
                log.note(f"note: {note}")
            facts = {
                key: record[key] for key in ("texts", "teacher") if record.get(key)
            }
            publish(
                out,
                task,
                checkpoints,
                verdict,
                texts,
                facts,
                str(record.get("command", "")),
                log,
                goes_on=True,
            )
            verdict.exit_code, verdict.outcome, verdict.reason = (
                0,
                FINISHED_EARLY,
                _how_far(verdict),
            )
    return verdict


def held_out(folder: Path) -> tuple[str, Any]:
    """What the run in a folder holds out, read once more: its test text, or else dev; and which of
    them.

    Raises UsageError, with the reason, where there is none.
    """
    files = RunFolder(folder)
    if not files.recipe.is_file():
        raise UsageError(
            f"{folder} holds no run whose held-out text could be taken; give text"
        )
    record = read_record(files)
    texts, doubt = _texts_again(
        record, build_recipe(record["recipe"], str(files.recipe))
    )
    parts = {} if texts is None else {"test": texts.test, "dev": texts.dev}
    for name, part in parts.items():
        if part is not None and len(part):
            return name, part
    why = doubt.removeprefix("no scores on test: ") or "it has none"
    raise UsageError(f"the run in {folder} gives no held-out text: {why}; give text")


def _record_of(out: Path) -> dict[str, Any]:
    """What the run wrote down when it began. Raises FolderError where there is none."""
    refuse_no_folder(out)
    if not RunFolder(out).recipe.is_file():
        raise FolderError(f"{out}: holds no run that could be finished")
    return read_record(RunFolder(out))


def _how_far(verdict: Verdict) -> str:
    whole = f" of {verdict.max_steps:,}" if verdict.max_steps else ""
    return f"{FINISHED_EARLY} at step {verdict.step:,}{whole}"


def _doubts(earlier: Verdict, doubt: str) -> list[str]:
    """What a reader of the scores should know: that training failed, that the text is not there."""
    failed = (
        [f"training had failed: {earlier.reason}"]
        if earlier.outcome == "failed"
        else []
    )
    return [*failed, *([doubt] if doubt else [])]


def _model_of(files: RunFolder, recipe: Recipe) -> Task[Any, Any, Any]:
    """Return the run's own model, its weights still to come."""
    if not files.config.is_file():
        raise FolderError(
            f"{files.config}: missing, as in runs begun by an earlier version; give the run's own command with "
            "--set training.max_steps=N, N being the step that it has reached"
        )
    config = model_folder.read_config(files.config)
    return TASKS[recipe.task].untrained(
        config, read_tokenizers(files.tokenizers), _machine_of(files)
    )


def _machine_of(files: RunFolder) -> Machine:
    """As training chose it, where this machine has that."""
    try:
        machine = Machine(**durable.read_json(files.machine))
        if machine.device == "cpu" or torch.cuda.is_available():
            machine.prepare()
            return machine
    except (FolderError, TypeError, UsageError):
        pass
    return machine_for_use()


def _texts_again(
    record: Mapping[str, Any], recipe: Recipe
) -> tuple[Texts[Any] | None, str]:
    """Return the run's text, read once more from where it was; else why not, in a sentence."""
    why = "where they lay is not known"
    for sources in _sources(record):
        try:
            texts = TASKS[recipe.task].gather(recipe, sources)
        except (DataError, FolderError, UsageError) as error:
            why = str(error).split("\n", maxsplit=1)[0]
            continue
        if _hashes(texts.facts()) == _hashes(record["texts"]):
            return texts, ""
        why = "it has changed since training began"
    return None, f"no scores on test: the text was not found again ({why})"


def _sources(record: Mapping[str, Any]) -> Iterator[Sources]:
    """Yield the files as they were named: from here, then from where training was begun."""
    named = record.get("sources")
    if not isinstance(named, dict):
        return
    for folder in (Path(), Path(str(named.get("directory", "")))):
        train = tuple(_within(folder, name) for name in named.get("train", ()))
        dev, test = (
            _within(folder, named[part]) if named.get(part) else None
            for part in ("dev", "test")
        )
        yield Sources(train, dev, test)


def _within(folder: Path, name: str) -> str:
    """Return a name of one file, or of two joined by a comma, as it stands in a folder."""
    whole = folder / name
    return (
        str(whole)
        if whole.is_file()
        else ",".join(str(folder / part) for part in name.split(","))
    )


def _hashes(facts: Mapping[str, Any]) -> dict[str, str]:
    return {part: about["sha256"] for part, about in facts.items()}
