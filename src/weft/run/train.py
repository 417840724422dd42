"""A training run from text to model folder, in one function that is the same for every task.

Everything that a run needs lies in its folder, so that the same command resumes where it stopped.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from weft.config import Recipe, TrainingSection, size_keys
from weft.data.check.finding import counted
from weft.data.crew import cores_shared_by
from weft.errors import Interrupted, OutOfMemoryError
from weft.folder.layout import RunFolder, how_to_resume
from weft.kernels import torch_machine
from weft.kernels.torch_machine import is_out_of_memory
from weft.run.beginning import ended_verdict, how_to_extend, take_folder
from weft.run.origin import SET_ASIDE, checkpoint_facts
from weft.run.preparing import Material, Training, prepare, read_material
from weft.run.publication import TrainedRun, publish
from weft.run.record import RunRecord, Verdict, keeping_record
from weft.run.repetition import lengths_before
from weft.run.request import Request
from weft.training.checkpoint import Checkpoints
from weft.training.distributed import (
    World,
    is_lost_process,
    joined_world,
    refuse_shares,
)
from weft.training.log import Log, in_words
from weft.training.optimizer import build_optimizer
from weft.training.schedule import learning_rate
from weft.training.snapshots import Snapshots
from weft.training.trackers import Tracker, find_trackers
from weft.training.trainer import Trainer


def train(
    request: Request,
    log: Log | None = None,
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> Verdict:
    """Train, or resume training, and leave a model folder at `request.out`.

    Events go to `log`, else to one of the run's own, which says nothing if `quiet` and more if
    `verbose`. A run that has ended is left as it is. Under `torchrun` the processes train one model
    together. Raises WeftError by kind; `run/verdict.json` then says the same.
    """
    request = request.checked()
    folder = RunFolder(request.out)
    with (
        joined_world(request.recipe.training.parallel) as world,
        keeping_record(folder.verdict if world.is_first else None) as record,
        ending_clearly(record.verdict, request.command, request.out),
        contextlib.ExitStack() as locks,
    ):
        own = Log(folder.metrics, quiet=quiet, verbose=verbose)
        log = (log or own) if world.is_first else Log(quiet=True)
        with cores_shared_by(world.local_size):  # all read and check it at once
            material = read_material(request, world)
        if request.minutes is None:
            request = replace(request, minutes=material.sizing.minutes)
        recipe = material.recipe
        refuse_shares(recipe.training.grad_accum_steps, world, size_keys(recipe))
        with world.in_turn():  # only the first takes the lock; the others read
            is_resumed = world.is_first and take_folder(
                request, recipe, material.origin, locks, log
            )
            if (ended := ended_verdict(folder, recipe)) is not None:
                log.note(how_to_extend(request, ended))
                return ended
            before = lengths_before(folder) if is_resumed else []
        record.enter("preparing")
        with world.in_turn():  # the first writes down what the others then read
            training = prepare(request, material, is_resumed, record, world, log)
        log.note(training.description)
        log.trackers = _open_trackers(folder, log) if world.is_first else []
        checkpoints = _open_checkpoints(folder, recipe)
        snapshots = None
        if recipe.training.keeps_doublings:
            snapshots = Snapshots(folder.snapshots)
        max_steps = training.planned.plan.max_steps
        record.foresee(max_steps, checkpoints.newest_step, training.notes)
        record.enter("training")
        said = request.notes if request.is_step else ()
        _announce(training, record.verdict, world, log, said)
        world.shard(training.task.model)
        trainer = _build_trainer(
            training, recipe, checkpoints, record, world, log, before, snapshots
        )
        with torch_machine.computing(training.task.machine):
            outcome = _run(trainer, record)
        if world.is_first:
            run = TrainedRun(
                folder,
                request.command,
                checkpoints,
                record,
                log,
                is_step=request.is_step,
            )
            _publish(run, request, material, training, world)
        record.end(outcome)
    return record.verdict


def _open_checkpoints(folder: RunFolder, recipe: Recipe) -> Checkpoints:
    """Open the run's checkpoints, of which the recipe says how many are kept."""
    kept = recipe.training.newest_checkpoints
    return Checkpoints(folder.checkpoints, kept, checkpoint_facts(folder))


def _announce(
    training: Training,
    verdict: Verdict,
    world: World,
    log: Log,
    said: Sequence[str] = (),
) -> None:
    """Say what will be trained, for how long, and what is doubtful, before the first step.

    Notes that were `said` before are not said again.
    """
    task, planned = training.task, training.planned
    log.foreseen = planned.costs
    log.time_left = planned.keeper.time_left if planned.keeper else None
    log.loss_terms = _loss_terms(planned.settings)
    evaluates = training.evaluate is not None
    length = planned.length(verdict.saved_step, log.metrics, evaluates)
    length += world.describe()
    about = "about " if planned.plan.is_open else ""
    steps = f"{about}{counted(planned.plan.max_steps, 'steps')}"
    numbers = in_words(task.num_parameters)
    log.note(
        f"{numbers} numbers to learn, {steps}, {length} on {task.machine.in_short()}"
    )
    if log.verbose:
        log.note(f"{task.num_parameters:,} parameters on {task.machine.describe()}")
    for tokenizer in dict.fromkeys(task.tokenizers):
        for note in tokenizer.notes:
            log.note(f"note: {note}")
    for note in verdict.notes:
        # said already, by the command that did it
        if not note.startswith(SET_ASIDE) and note not in said:
            log.note(f"note: {note}")


def _loss_terms(settings: TrainingSection) -> str:
    """Name what makes the loss in training another than that on dev; "" where nothing does."""
    terms = {
        "smoothed": settings.label_smoothing,
        "weighted": getattr(settings, "class_weights", None),
        "R-Drop": settings.r_drop,
    }
    return ", ".join(name for name, value in terms.items() if value)


def _open_trackers(folder: RunFolder, log: Log) -> list[Tracker]:
    """Find what draws the run's curves, if anything, and say so in a line each."""
    trackers = find_trackers(folder.tensorboard)
    for tracker in trackers:
        log.note(tracker.describe())
    return trackers


def _build_trainer(
    training: Training,
    recipe: Any,
    checkpoints: Checkpoints,
    record: RunRecord,
    world: World,
    log: Log,
    lengths_before: Sequence[Mapping[str, int | None]],
    snapshots: Snapshots | None,
) -> Trainer[Any]:
    """Build the trainer of a run; it resumes from the newest checkpoint."""
    task, planned = training.task, training.planned
    return Trainer(
        model=task.model,
        batches=training.batches,
        compute_loss=task.compute_loss,
        optimizer=build_optimizer(task.model, recipe.training),
        settings=planned.settings,
        plan=planned.plan,
        rate=partial(learning_rate, planned.settings, recipe.model.d_model),
        checkpoints=checkpoints,
        log=log,
        evaluate=training.evaluate,
        seconds_at_peak=task.seconds_at_peak,
        saved=record.save_step,
        world=world,
        parts=training.parts,
        scales_loss=task.machine.precision == "float16",
        timekeeper=planned.keeper,
        lengths_before=lengths_before,
        size_keys=size_keys(recipe),
        snapshots=snapshots,
        stages=training.stages,
        borders=planned.borders,
    )


def _run(trainer: Trainer[Any], record: RunRecord) -> str:
    """Train to the end; the record knows how far it came, however it ends. Return the outcome."""
    try:
        return trainer.run()
    finally:
        record.stand_at(trainer.progress, trainer.checkpoints.newest_step)
        record.verdict.max_steps = trainer.plan.max_steps


def _publish(
    run: TrainedRun,
    request: Request,
    material: Material,
    training: Training,
    world: World,
) -> None:
    """Write the model folder; if Ctrl-C ends that, say that no step is lost and how to resume."""
    texts = material.texts
    task = training.task
    if world.size > 1:  # the others hold shards of this one's weights
        task = material.kind.build(
            material.recipe, texts, training.tokenizers, task.machine
        )
    facts = {"texts": texts.facts(), **request.teacher_facts()}
    try:
        publish(run, task, texts, facts)
    except KeyboardInterrupt:
        steps = f"all {run.verdict.step:,} steps are saved"
        again = how_to_resume(run.command, request.out, is_saved=True)
        run.log.note(f"left while {run.verdict.stage}; {steps}; {again}")
        raise


@contextlib.contextmanager
def ending_clearly(verdict: Verdict, command: str, out: Path) -> Iterator[None]:
    """Say how to resume after Ctrl-C or SIGTERM, and for what the memory did not suffice."""
    try:
        with _terminable():
            yield
    except Interrupted as error:
        again = how_to_resume(command, out, verdict.saved_step > 0)
        raise Interrupted(f"{error}; {again}") from error
    except Exception as error:
        if is_out_of_memory(error):
            remedy = "give it less text, a smaller model, or more memory"
            raise OutOfMemoryError(
                f"out of memory while {verdict.stage}; {remedy}"
            ) from error
        if is_lost_process(error):
            again = how_to_resume(command, out, verdict.saved_step > 0)
            raise Interrupted(
                f"another process of the run has gone; {again}"
            ) from error
        raise


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the block as an error does, so that the verdict is written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted("stopped by SIGTERM")

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
