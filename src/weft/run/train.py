"""A training run from text to model folder: the whole slope in one readable function, the same for
every task.

Everything that a run needs lies in its folder, so that the same command goes on where it stopped.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from weft.config import Recipe
from weft.console import stages
from weft.data.check.finding import counted
from weft.data.overlap import TextHashes
from weft.data.texts import Sources, Texts
from weft.data.tokenizer import Tokenizer
from weft.errors import FolderError, Interrupted, OutOfMemoryError, UsageError
from weft.folder import durable, model_folder
from weft.folder.layout import STOPPED_EARLY, going_on
from weft.folder.model_folder import RunFolder, StoredModel
from weft.kernels.machine import (
    Machine,
    choose_machine,
    counted_threads,
    is_out_of_memory,
    threads_asked,
    usable_cores,
)
from weft.recipes.file import load_recipe
from weft.run.planning import Asked, Planned, settle_plan
from weft.run.publication import publish
from weft.run.record import (
    ENDED,
    Verdict,
    begin_or_go_on,
    checkpoint_facts,
    enter_stage,
    keep_up,
    read_overrides,
    read_verdict,
    refuse_foreign,
    run_name,
    set_aside,
    with_own_split,
    writing_verdict,
)
from weft.tasks.choice import TASKS
from weft.tasks.task import Task, read_tokenizers, write_tokenizers
from weft.training.budget import more_steps, read_time_plan
from weft.training.checkpoint import Checkpoints
from weft.training.distributed import (
    World,
    is_lost_process,
    joined_world,
    refuse_shares,
)
from weft.training.log import Log, in_words
from weft.training.memory import free_bytes, parts_to_fit, recompute_layers
from weft.training.optimizer import build_optimizer
from weft.training.schedule import learning_rate
from weft.training.trackers import Tracker, find_trackers, refuse_missing
from weft.training.trainer import Batches, Trainer

AnyTask = Task[Any, Any, Any]


@dataclass(frozen=True)
class Request:
    """What was asked: a recipe, the text beside it, where to write, and an own model to start from.

    `fresh` begins anew where the folder holds a run, which is set aside; `allow_data_change` goes
    on with other text. `teacher` says what wrote the text (`weft.run.distillation`), and is kept
    with the run and the model; `notes` are said and kept beside those of the text. `minutes` is
    when the run shall end, counted from `began` (time.monotonic): its steps and schedule are then
    planned by the clock (`weft.training.budget`).
    """

    recipe: Recipe
    out: Path
    train: tuple[str, ...] = ()
    dev: str | None = None
    test: str | None = None
    start_from: Path | None = None
    command: str = ""
    fresh: bool = False
    allow_data_change: bool = False
    allow_bad_data: bool = False
    teacher: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    minutes: float | None = None
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def by_name(
        cls, recipe: str | None, settings: Sequence[str], **asked: Any
    ) -> "Request":
        """Make a request for a recipe by name or file, with `section.key=value` settings. Raises
        UsageError.
        """
        return cls(load_recipe(recipe, settings), **asked)


def train(
    request: Request,
    log: Log | None = None,
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> Verdict:
    """Train, or go on training, and leave a model folder at `request.out`.

    Events go to `log`, else to one of the run's own, which says nothing if `quiet` and more if
    `verbose`.

    A run that has ended is left as it is. Under `torchrun` the processes train one model together.
    Raises WeftError by kind; verdict.json then says the same.
    """
    files, request = RunFolder(request.out), _as_begun(request)
    kind = TASKS[request.recipe.task]
    with (
        joined_world(request.recipe.training.parallel) as world,
        writing_verdict(record := files.verdict if world.is_first else None) as verdict,
        ending_clearly(verdict, request.command, request.out),
        contextlib.ExitStack() as locks,
    ):
        own = Log(files.metrics, quiet=quiet, verbose=verbose)
        log = (log or own) if world.is_first else Log(quiet=True)
        start = _open_start(request.start_from, kind)
        texts = kind.gather(
            request.recipe, Sources(request.train, request.dev, request.test)
        )
        texts = texts.accepted(request.allow_bad_data)
        recipe = kind.resolve(
            request.recipe,
            texts,
            start.config if start else None,
            str(request.start_from),
        )
        refuse_shares(recipe.training.grad_accum_steps, world)
        origin = {
            "texts": texts.facts(),
            "from": _weights_sha256(request.start_from),
            **_teacher(request),
        }
        with world.in_turn():
            goes_on = world.is_first and _take_folder(
                request, recipe, origin, locks, log
            )
            if (ended := _ended(request.out, recipe)) is not None:
                log.note(_how_to_extend(request, ended))
                return ended
        enter_stage(record, verdict, "preparing")
        with world.in_turn():  # the first writes down what the others then read
            machine = _settle_machine(files, recipe, world, log)
            enter_stage(record, verdict, "learning the tokenizers")
            tokenizers = _settle_tokenizers(files, kind, request, recipe, texts)
            enter_stage(record, verdict, "encoding the text")
            task = _begin(
                kind.build(recipe, texts, tokenizers, machine), recipe, start, files
            )
            prepared = task.prepare(files.stores, texts, recipe)
            evaluate = task.dev_evaluation(files, texts, recipe)
            parts = _settle_parts(files, task, prepared.batches, world, log)
            asked = Asked(request.out, request.minutes, request.began, goes_on)
            planned = settle_plan(
                asked, recipe, task, prepared.batches, texts, parts, world
            )
        verdict.max_steps = planned.plan.max_steps
        verdict.notes += (
            *_start_notes(request, kind, texts),
            *request.notes,
            *planned.notes,
            *read_overrides(files),
            *texts.notes,
            *prepared.notes,
        )
        log.note(prepared.description)
        log.trackers = _trackers(request.out, recipe, log) if world.is_first else []

        checkpoints = Checkpoints(
            files.checkpoints, recipe.training.keep_checkpoints, checkpoint_facts(files)
        )
        verdict.saved_step = checkpoints.newest_step
        enter_stage(record, verdict, "training")
        length = (
            planned.length(verdict.saved_step, log.metrics, evaluate is not None)
            + world.describe()
        )
        _announce(log, task, planned, length, verdict.notes)
        world.shard(task.model)
        trainer = Trainer(
            model=task.model,
            batches=prepared.batches,
            compute_loss=task.compute_loss,
            optimizer=build_optimizer(task.model, recipe.training),
            settings=planned.settings,
            plan=planned.plan,
            rate=lambda step: learning_rate(
                planned.settings, recipe.model.d_model, step, trainer.plan.last
            ),
            checkpoints=checkpoints,
            log=log,
            evaluate=evaluate,
            seconds_at_peak=task.seconds_at_peak,
            saved=lambda progress: keep_up(record, verdict, progress),
            world=world,
            parts=parts,
            scales_loss=machine.precision == "float16",
            timekeeper=planned.keeper,
        )
        try:
            outcome = trainer.run()
        finally:
            verdict.stands_at(trainer.progress, checkpoints.newest_step)
            verdict.max_steps = trainer.plan.max_steps
        _tell_settings(files, recipe, machine, verdict, log)
        if world.is_first:
            published = (
                task
                if world.size == 1
                else kind.build(recipe, texts, tokenizers, machine)
            )
            _publish(request, published, checkpoints, verdict, texts, log)
        verdict.ends(outcome)
    return verdict


def _take_folder(
    request: Request,
    recipe: Recipe,
    origin: Mapping[str, Any],
    locks: contextlib.ExitStack,
    log: Log,
) -> bool:
    """Hold the run's folder for this process; set an earlier run aside where asked; begin, or go
    on: True.
    """
    refuse_missing(recipe.training.trackio)
    out, files, overrides = request.out, RunFolder(request.out), []
    if request.fresh and files.recipe.is_file():
        with durable.held(files.lock, out):
            overrides.append(
                f"--fresh: an earlier run was set aside as {set_aside(out)}"
            )
        log.note(overrides[0])
    durable.make_folder(files.folder)
    if not locks.enter_context(durable.held(files.lock, out)):
        log.note(
            f"note: {out} cannot be locked (this system, or this disk, has no locks); start no second run in it"
        )
    for folder in (out, files.folder, files.stores):
        durable.remove_leftovers(folder)
    goes_on = begin_or_go_on(
        out,
        recipe,
        origin,
        sources=_sources(request),
        command=request.command,
        overrides=overrides,
        allow_data_change=request.allow_data_change,
    )
    if goes_on and _ended(out, recipe) is None:
        _refuse_lost_checkpoints(request)
        log.note(f"going on with the run in {out}")
    return goes_on


@contextlib.contextmanager
def ending_clearly(verdict: Verdict, command: str, out: Path) -> Iterator[None]:
    """Say what memory did not suffice for; stop on SIGTERM wherever the run stands; name what goes
    on.
    """
    try:
        with _terminable():
            yield
    except Interrupted as error:
        raise Interrupted(
            f"{error}; {going_on(command, out, verdict.saved_step > 0)}"
        ) from error
    except Exception as error:
        if is_out_of_memory(error):
            remedy = "give it less text, a smaller model, or more memory"
            raise OutOfMemoryError(
                f"out of memory while {verdict.stage}; {remedy}"
            ) from error
        if is_lost_process(error):
            again = going_on(command, out, verdict.saved_step > 0)
            raise Interrupted(
                f"another process of the run has gone; {again}"
            ) from error
        raise


def _publish(
    request: Request,
    task: AnyTask,
    checkpoints: Checkpoints,
    verdict: Verdict,
    texts: Texts[Any],
    log: Log,
) -> None:
    """What follows the last step; where Ctrl-C ends it, say that no step is lost and what goes
    on.
    """
    facts = {"texts": texts.facts(), **_teacher(request)}
    try:
        publish(
            request.out, task, checkpoints, verdict, texts, facts, request.command, log
        )
    except KeyboardInterrupt:
        steps = f"all {verdict.step:,} steps are saved"
        log.note(
            f"left while {verdict.stage}; {steps}; {going_on(request.command, request.out, is_saved=True)}"
        )
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


def _open_start(folder: Path | None, kind: type[AnyTask]) -> StoredModel | None:
    """Return the model to start from. Raises UsageError where it is of another task."""
    if folder is None:
        return None
    stored = model_folder.open_model_folder(folder)
    if stored.config.task != kind.name:
        raise UsageError(
            f"--from {folder}: holds a model for {stored.config.task}, the recipe is for {kind.name}"
        )
    return stored


def _weights_sha256(folder: Path | None) -> str | None:
    if folder is None:
        return None
    return str(durable.read_manifest(folder)["files"][model_folder.WEIGHTS]["sha256"])


def _as_begun(request: Request) -> Request:
    """Return the request, with the split of the folder's run.

    Raises UsageError where the folder holds something else than a run, or what a teacher wrote for
    another.
    """
    refuse_foreign(request.out)
    files = RunFolder(request.out)
    if (
        request.teacher is None
        and files.distilled.is_dir()
        and not files.recipe.is_file()
    ):
        where = f"{request.out} holds a teacher's translations"
        raise UsageError(f"{where}; go on with weft distill, or give another --output")
    return (
        request
        if request.fresh
        else replace(request, recipe=with_own_split(request.out, request.recipe))
    )


def _sources(request: Request) -> dict[str, Any]:
    """Return the files and the folder that the run reads, as they were named, and from where."""
    start = None if request.start_from is None else str(request.start_from)
    named = {
        "train": [*request.train],
        "dev": request.dev,
        "test": request.test,
        "from": start,
    }
    return {**named, "directory": os.getcwd()}


def _teacher(request: Request) -> dict[str, Any]:
    return {} if request.teacher is None else {"teacher": dict(request.teacher)}


def _ended(out: Path, recipe: Recipe) -> Verdict | None:
    """Return the verdict of a run that has nothing left to do."""
    verdict = read_verdict(RunFolder(out).verdict)
    if verdict is None or verdict.outcome not in ENDED or not _is_sound(out):
        return None
    if verdict.outcome == STOPPED_EARLY:
        patience = recipe.training.patience
        return (
            None
            if patience is None or patience > verdict.evaluations_since_best
            else verdict
        )
    planned, steps = read_time_plan(RunFolder(out).plan), recipe.training.max_steps
    if planned is not None and steps == planned.recipe_steps:  # the clock has decided
        return verdict
    longer = steps is not None and steps > verdict.step
    return None if longer else verdict


def _refuse_lost_checkpoints(request: Request) -> None:
    """Raise FolderError where a run that has saved steps has no checkpoint any more: it would begin
    anew.
    """
    out, anew = (
        request.out,
        "give another --output" if request.teacher else "begin anew with --fresh",
    )
    before, finished = (
        read_verdict(RunFolder(out).verdict),
        model_folder.is_finished(out),
    )
    saved = finished or (before is not None and before.saved_step > 0)
    if saved and not Checkpoints(RunFolder(out).checkpoints, 1).holds_any:
        further = (
            f", or train its model further with --from {out} and another --output"
            if finished
            else ""
        )
        raise FolderError(
            f"{out}: its checkpoints are gone; restore them, {anew}{further}"
        )


def _is_sound(out: Path) -> bool:
    """Return whether the published model is whole; else it is published again, from its
    checkpoint.
    """
    try:
        durable.read_manifest(out)
    except FolderError:
        return False
    return True


def _how_to_extend(request: Request, verdict: Verdict) -> str:
    out, by_clock = request.out, request.minutes is not None
    ignored = ", and --minutes does not lengthen a finished run" if by_clock else ""
    if verdict.outcome == STOPPED_EARLY:
        more = "a larger --set training.patience"
    else:
        steps = more_steps(read_time_plan(RunFolder(out).plan), verdict.step)
        more = f"--set training.max_steps={steps}{' in place of --minutes' if by_clock else ''}"
    return f"{out} is finished ({verdict.reason}){ignored}; to train it further, give the same command with {more}"


def _settle_machine(
    files: RunFolder, recipe: Recipe, world: World, log: Log
) -> Machine:
    """What the run's first start chose, else choose now and write it down; processes share this
    machine's cores.

    Raises UsageError where the first start had a GPU and this machine has none.
    """
    mine = max(usable_cores() // world.local_size, 1)
    if files.machine.is_file():
        try:
            machine = Machine(**durable.read_json(files.machine))
        except TypeError:
            raise FolderError(
                f"{files.machine}: does not describe a machine; restore the file"
            ) from None
        if machine.device == "cuda" and not torch.cuda.is_available():
            raise UsageError(
                f"{files.folder.parent}: was begun on a GPU, and this machine has none; go on where there is one"
            )
        if world.size == 1:
            return _with_threads(files, machine, recipe, log)
        threads = min(machine.threads, mine)
        return (
            machine
            if threads == machine.threads
            else replace(machine, threads=threads, peak_flops=0.0)
        )
    shared, settings = mine if world.size > 1 else None, recipe.training
    stages.enter("measuring this machine")
    machine = choose_machine(
        settings.precision, settings.threads or shared, settings.kernels
    ).measured()
    machine = replace(machine, parts=0)
    durable.write_json(files.machine, asdict(machine))
    return machine


def _with_threads(
    files: RunFolder, machine: Machine, recipe: Recipe, log: Log
) -> Machine:
    """Return the machine of the run's first start, with as many threads as are asked for now, or as
    there are cores.

    Others than before are noted and written down: sums are then made in another order.
    """
    asked = recipe.training.threads or threads_asked()
    threads = asked or min(machine.threads, max(usable_cores(), 1))
    if threads == machine.threads or machine.device == "cuda":
        return machine
    before, now = counted_threads(machine.threads), counted_threads(threads)
    log.note(
        f"note: goes on with {now}, begun with {before}: the last bits of its sums may differ"
    )
    machine = replace(machine, threads=threads)
    machine = machine.measured() if machine.peak_flops else machine
    durable.write_json(files.machine, asdict(machine))
    return machine


def _settle_parts(
    files: RunFolder, task: AnyTask, batches: Batches[Any], world: World, log: Log
) -> int:
    """Into how many parts the run's first start cut each batch; else what memory asks for now,
    written down.
    """
    if task.machine.parts:
        return task.machine.parts
    free = free_bytes(torch.device(task.machine.device)) // world.local_size
    batch = batches.batch(0, batches.num_batches(0) // 2)
    try:
        parts = parts_to_fit(task.model, task.compute_loss, batch, free)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(
            f"out of memory in an eighth of a batch of {batch.describe()}; lower batches.tokens_per_batch and "
            "raise training.grad_accum_steps by as much, or choose a smaller model"
        ) from error
    durable.write_json(files.machine, asdict(replace(task.machine, parts=parts)))
    if parts > 1:
        log.note(
            f"note: each batch is computed in {parts} parts, as {free / 1e9:.1f} GB of memory are free"
        )
    return parts


def _settle_tokenizers(
    files: RunFolder,
    kind: type[AnyTask],
    request: Request,
    recipe: Recipe,
    texts: Texts[Any],
) -> tuple[Tokenizer, ...]:
    """Return the run's own tokenizers once it has begun.

    Else those of the model it starts from, or newly learned.
    """
    if files.tokenizers.is_dir():
        known = _known_hashes(files.train_hashes)
        if known is None or request.allow_data_change:
            own = _trained_on(request, kind.overlap_rows(texts.train))
            _write_hashes(files.train_hashes, known.joined(own) if known else own)
        return read_tokenizers(files.tokenizers)
    if request.start_from is not None:
        tokenizers = kind.load(
            request.start_from, Machine("cpu", "float32", 1, "")
        ).tokenizers
    else:
        tokenizers = kind.learn_tokenizers(recipe, texts)
    hashes = _trained_on(request, kind.overlap_rows(texts.train))
    _write_hashes(files.train_hashes, hashes)  # before what says that the run has begun
    write_tokenizers(files.tokenizers, tokenizers)
    return tokenizers


def _known_hashes(path: Path) -> TextHashes | None:
    """Those of the text so far; None where they are lost, for the text that the run goes on with
    has them too.
    """
    try:
        return TextHashes.load(path)
    except FolderError:
        return None


def _write_hashes(path: Path, hashes: TextHashes) -> None:
    with durable.replacing(path) as temporary:
        hashes.save(temporary)


def _trained_on(request: Request, rows: Iterable[Sequence[str]]) -> TextHashes:
    """The training text's rows, and those of the model that the run starts from: its weights have
    seen them.
    """
    own = TextHashes.of(rows)
    before = (
        None
        if request.start_from is None
        else _known_hashes(RunFolder(request.start_from).train_hashes)
    )
    return own if before is None else own.joined(before)


def _start_notes(request: Request, kind: type[AnyTask], texts: Texts[Any]) -> list[str]:
    """What the run starts from, and how much of the text that is to judge it was trained on there
    already.
    """
    if request.start_from is None:
        return []
    notes = [
        f"starts from {request.start_from}: its weights, its shape and its tokenizers are kept"
    ]
    before = _known_hashes(RunFolder(request.start_from).train_hashes)
    for name, part in (("dev", texts.dev), ("test", texts.test)):
        if before is None or part is None:
            continue
        if seen := before.shared(kind.overlap_rows(part)):
            notes.append(
                f"{len(seen):,} of the {counted(len(part), texts.unit)} of {name} were trained on by "
                f"{request.start_from}, so that scores on them are too high; give text that it never saw with "
                f"--{name}"
            )
    return notes


def _tell_settings(
    files: RunFolder, recipe: Recipe, machine: Machine, verdict: Verdict, log: Log
) -> None:
    """Say and keep what repeats a run by the clock without one: its plan, and what the machine
    chose.
    """
    planned = read_time_plan(files.plan)
    if planned is not None and planned.repeats:
        asked = recipe.training
        settings = f"{planned.as_settings(asked)} {machine.as_settings(asked.model_dump())}".strip()
        verdict.notes.append(f"planned by the clock; the same without it: {settings}")
        log.note(f"note: {verdict.notes[-1]}")


def _announce(
    log: Log, task: AnyTask, planned: Planned, length: str, notes: list[str]
) -> None:
    """Say what will be trained and how long, and what is doubtful, before the first step."""
    log.foreseen = planned.costs
    log.time_left = planned.keeper.time_left if planned.keeper else None
    numbers = in_words(task.num_parameters)
    steps = f"{'about ' if planned.plan.is_open else ''}{counted(planned.plan.max_steps, 'steps')}"
    log.note(
        f"{numbers} numbers to learn, {steps}, {length} on {task.machine.in_short()}"
    )
    if log.verbose:
        log.note(f"{task.num_parameters:,} parameters on {task.machine.describe()}")
    tokenizers = dict.fromkeys(task.tokenizers)
    for note in [
        *(note for tokenizer in tokenizers for note in tokenizer.notes),
        *notes,
    ]:
        log.note(f"note: {note}")


def _trackers(out: Path, recipe: Recipe, log: Log) -> list[Tracker]:
    """What draws the run's curves, if anything; said in a line each."""
    found = find_trackers(
        RunFolder(out).tensorboard, recipe.training.trackio, run_name(out)
    )
    for tracker in found:
        log.note(tracker.describe())
    return found


def _begin(
    task: AnyTask, recipe: Recipe, start: StoredModel | None, files: RunFolder
) -> AnyTask:
    """Return the task ready for its first step: with the weights to start from, its layers computed
    twice where asked.

    What the model is stands in the run's folder from here on.
    """
    durable.write_json(files.config, task.config.model_dump(mode="json"))
    if start is not None and start.config.known_words:
        durable.write_bytes(
            files.words, (start.folder / model_folder.WORDS).read_bytes()
        )
    if start is not None:
        start.load_weights(task.model)
    if recipe.training.activation_checkpointing:
        recompute_layers(task.model)
    return task
