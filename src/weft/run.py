"""A training run from text to model folder: the whole slope in one readable function, the same for every task.

Everything that a run needs lies in its folder, so that the same command goes on where it stopped.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from weft import durable, model_folder
from weft.config import Recipe
from weft.data.overlap import TextHashes, contamination_notes
from weft.data.tokenizer import Tokenizer
from weft.errors import FolderError, UsageError
from weft.machine import Machine, choose_machine
from weft.model.transformer import count_parameters
from weft.model_card import model_card
from weft.model_folder import RunFiles, StoredModel, run_files
from weft.run_record import (
    ENDED,
    Verdict,
    begin_or_go_on,
    read_verdict,
    refuse_foreign,
    writing_verdict,
)
from weft.tasks.choice import TASKS
from weft.tasks.task import Task, read_tokenizers, write_tokenizers
from weft.texts import Sources, Texts
from weft.training.checkpoint import Checkpoints, load_state
from weft.training.log import Log
from weft.training.optimizer import build_optimizer
from weft.training.schedule import learning_rate
from weft.training.trainer import Batches, Plan, Trainer

EPOCHS = 30  # how often the text is read where the recipe sets no max_steps
FEWEST_STEPS, MOST_STEPS = 500, 100_000
EVALUATIONS = 15  # about how often dev is scored on the way

AnyTask = Task[Any, Any, Any]


@dataclass(frozen=True)
class Request:
    """What was asked: a recipe, the text beside it, where to write, and an own model to start from."""

    recipe: Recipe
    out: Path
    train: tuple[str, ...] = ()
    dev: str | None = None
    test: str | None = None
    start_from: Path | None = None
    command: str = ""


def train(request: Request, log: Log | None = None) -> Verdict:
    """Train, or go on training, and leave a model folder at `request.out`.

    A run that has ended is left as it is. Raises WeftError by kind; verdict.json then says the same.
    """
    files = run_files(request.out)
    refuse_foreign(request.out)
    log = log or Log(files.metrics)
    kind = TASKS[request.recipe.task]
    with writing_verdict(files.verdict) as verdict:
        start = _open_start(request.start_from, kind)
        texts = kind.gather(request.recipe, Sources(request.train, request.dev, request.test))
        recipe = kind.resolve(request.recipe, texts, start.config if start else None, str(request.start_from))
        origin = {"texts": texts.facts(), "from": _weights_sha256(request.start_from)}
        if begin_or_go_on(request.out, files, recipe, origin, request.command):
            if (ended := _ended(request.out, recipe)) is not None:
                log.note(_how_to_extend(request.out, ended))
                return ended
            log.note(f"going on with the run in {request.out}")
        machine = _settle_machine(files, recipe)
        tokenizers = _settle_tokenizers(files, kind, request, recipe, texts)
        task = kind.build(recipe, texts, tokenizers, machine)
        if start is not None:
            start.load_weights(task.model)

        prepared = task.prepare(files.stores, texts, recipe)
        batches = prepared.batches
        plan = make_plan(recipe, batches)
        verdict.notes += [*_start_notes(request), *texts.notes, *prepared.notes]
        _announce(log, prepared.description, task, plan, verdict.notes)
        log.note(f"about {_expected_minutes(task, batches, recipe, plan):.1f} minutes of training from the start")

        d_model = recipe.model.d_model
        checkpoints = Checkpoints(files.checkpoints, recipe.training.keep_checkpoints)
        trainer = Trainer(
            model=task.model,
            batches=batches,
            compute_loss=task.compute_loss,
            optimizer=build_optimizer(task.model, recipe.training),
            settings=recipe.training,
            plan=plan,
            rate=lambda step: learning_rate(recipe.training, d_model, step, plan.max_steps),
            checkpoints=checkpoints,
            log=log,
            evaluate=task.dev_evaluation(files, texts, recipe),
        )
        try:
            outcome = trainer.run()
        finally:
            verdict.step, verdict.best_step = trainer.progress.step, trainer.progress.best_step
            verdict.dev = dict(trainer.progress.best_scores)
            verdict.evaluations_since_best = trainer.progress.evaluations_since_best
            verdict.notes += checkpoints.notes
        _publish(request, texts, task, checkpoints, verdict)
        verdict.outcome, verdict.exit_code = outcome, 0
        verdict.reason = f"{outcome} after {verdict.step:,} steps"
    return verdict


def make_plan(recipe: Recipe, batches: Batches[Any]) -> Plan:
    """Steps in all, between evaluations and between checkpoints, where the recipe leaves them open."""
    settings = recipe.training
    epoch = max(batches.num_batches(0) // settings.grad_accum_steps, 1)
    steps = settings.max_steps or min(max(EPOCHS * epoch, FEWEST_STEPS), MOST_STEPS)
    eval_every = settings.eval_every or max(steps // EVALUATIONS, 1)
    return Plan(steps, eval_every, settings.save_every or min(eval_every, 500))


def _open_start(folder: Path | None, kind: type[AnyTask]) -> StoredModel | None:
    """The model to start from. Raises UsageError where it is of another task."""
    if folder is None:
        return None
    stored = model_folder.open_model_folder(folder)
    if stored.config.task != kind.name:
        raise UsageError(f"--from {folder}: holds a model for {stored.config.task}, the recipe is for {kind.name}")
    return stored


def _weights_sha256(folder: Path | None) -> str | None:
    if folder is None:
        return None
    return str(durable.read_manifest(folder)["files"][model_folder.WEIGHTS]["sha256"])


def _ended(out: Path, recipe: Recipe) -> Verdict | None:
    """The verdict of a run that has nothing left to do."""
    verdict = read_verdict(run_files(out).verdict)
    if verdict is None or verdict.outcome not in ENDED or not model_folder.is_finished(out):
        return None
    if verdict.outcome == "stopped early":
        patience = recipe.training.patience
        return None if patience is None or patience > verdict.evaluations_since_best else verdict
    longer = recipe.training.max_steps is not None and recipe.training.max_steps > verdict.step
    return None if longer else verdict


def _how_to_extend(out: Path, verdict: Verdict) -> str:
    more = "a larger --set training.patience" if verdict.outcome == "stopped early" else ""
    more = more or f"--set training.max_steps={2 * verdict.step}"
    return f"{out} is finished ({verdict.reason}); to train it further, give the same command with {more}"


def _settle_machine(files: RunFiles, recipe: Recipe) -> Machine:
    """What the run's first start chose, else choose now and write it down."""
    if files.machine.is_file():
        try:
            return Machine(**durable.read_json(files.machine))
        except TypeError:
            raise FolderError(f"{files.machine}: does not describe a machine; restore the file") from None
    machine = choose_machine(recipe.training.precision, recipe.training.threads)
    durable.write_json(files.machine, asdict(machine))
    return machine


def _settle_tokenizers(
    files: RunFiles, kind: type[AnyTask], request: Request, recipe: Recipe, texts: Texts[Any]
) -> tuple[Tokenizer, ...]:
    """The run's own tokenizers once it has begun; else those of the model it starts from, or newly learned."""
    if files.tokenizers.is_dir():
        return read_tokenizers(files.tokenizers)
    if request.start_from is not None:
        tokenizers = kind.load(request.start_from, Machine("cpu", "float32", 1, "")).tokenizers
    else:
        tokenizers = kind.learn_tokenizers(recipe, texts)
    with durable.replacing(files.train_hashes) as temporary:  # before what says that the run has begun
        TextHashes.of(kind.overlap_rows(texts.train)).save(temporary)
    write_tokenizers(files.tokenizers, tokenizers)
    return tokenizers


def _start_notes(request: Request) -> list[str]:
    if request.start_from is None:
        return []
    return [f"starts from {request.start_from}: its weights, its shape and its tokenizers are kept"]


def _announce(log: Log, description: str, task: AnyTask, plan: Plan, notes: list[str]) -> None:
    """Say what will be trained on what, and what is doubtful, before the first step."""
    log.note(description)
    log.note(f"{count_parameters(task.model):,} parameters, {plan.max_steps:,} steps on {task.machine.describe()}")
    tokenizers = dict.fromkeys(task.tokenizers)
    for note in [*(note for tokenizer in tokenizers for note in tokenizer.notes), *notes]:
        log.note(f"note: {note}")


def _expected_minutes(task: AnyTask, batches: Batches[Any], recipe: Recipe, plan: Plan) -> float:
    """Time one batch of middling length, forward and backward, without leaving a trace in the run."""
    random = torch.get_rng_state()
    middle = batches.batch(0, batches.num_batches(0) // 2)
    for _ in range(2):
        started = time.perf_counter()
        sums = task.compute_loss(middle)
        (sums.loss_sum / sums.num_tokens).backward()  # type: ignore[no-untyped-call]
        seconds = time.perf_counter() - started
    task.model.zero_grad()
    torch.set_rng_state(random)
    return seconds * recipe.training.grad_accum_steps * plan.max_steps / 60


def _publish(
    request: Request, texts: Texts[Any], task: AnyTask, checkpoints: Checkpoints, verdict: Verdict
) -> None:
    """Write the model folder from the best checkpoint, scored on test where there is one."""
    best = checkpoints.best()
    if best is not None:
        tensors = load_state(best).model
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                parameter.copy_(tensors[name])
    task.model.eval()
    test_lines: list[str] = []
    if texts.test is not None:
        scores = task.evaluate(texts.test)
        verdict.test, verdict.test_summary, test_lines = scores.to_json(), scores.summary(), scores.lines()
        hashes, rows = TextHashes.of(task.overlap_rows(texts.train)), task.overlap_rows(texts.test)
        verdict.notes += contamination_notes(hashes, rows, texts.test.where, texts.unit)
    facts = {"texts": texts.facts(), "steps": verdict.step, "best_step": verdict.best_step}
    task.save(request.out, facts, model_card(task.config, facts, asdict(verdict), test_lines, request.command))
