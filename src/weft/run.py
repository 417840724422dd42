"""A training run from text to model folder: the whole slope in one readable function.

Everything that a run needs lies in its folder, so that the same command goes on where it stopped.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from weft import durable, model_folder
from weft.config import ModelSection, Recipe, TokenizerSection, with_values
from weft.data.batches import Batches
from weft.data.languages import UNKNOWN
from weft.data.overlap import TextHashes, contamination_notes
from weft.data.store import ParallelStore, prepare_store
from weft.data.tokenizer import Tokenizer, build_tokenizers
from weft.errors import DataError, FolderError, UsageError
from weft.machine import Machine, choose_machine
from weft.model.transformer import count_parameters
from weft.model_folder import RunFiles, run_files
from weft.run_record import (
    ENDED,
    Verdict,
    begin_or_go_on,
    read_verdict,
    refuse_foreign,
    writing_verdict,
)
from weft.tasks import DevEvaluation, Translation, evaluate, read_tokenizers, write_tokenizers
from weft.texts import Texts, gather_texts
from weft.training.checkpoint import Checkpoints, load_state
from weft.training.log import Log
from weft.training.optimizer import build_optimizer
from weft.training.schedule import learning_rate
from weft.training.trainer import Plan, Trainer

EPOCHS = 30  # how often the text is read where the recipe sets no max_steps
FEWEST_STEPS, MOST_STEPS = 500, 100_000
EVALUATIONS = 15  # about how often dev is scored on the way


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
    with writing_verdict(files.verdict) as verdict:
        texts = gather_texts(
            request.recipe.data, request.train, request.dev, request.test, request.recipe.training.seed
        )
        recipe = _resolve(request, texts)
        origin = {"texts": texts.facts(), "from": _weights_sha256(request.start_from)}
        if begin_or_go_on(request.out, files, recipe, origin, request.command):
            if (ended := _ended(request.out, recipe)) is not None:
                log.note(_how_to_extend(request.out, ended))
                return ended
            log.note(f"going on with the run in {request.out}")
        machine = _settle_machine(files, recipe)
        tokenizers = _settle_tokenizers(files, request, recipe, texts)
        task = _build_task(request, recipe, tokenizers, machine)

        store = _store(files, "train", texts, task, recipe)
        batches = Batches(store, recipe.batches.tokens_per_batch, recipe.batches.batch_size, recipe.training.seed)
        plan = make_plan(recipe, batches)
        verdict.notes += [*_start_notes(request), *texts.notes, *_store_notes(store)]
        _announce(log, store, task, plan, verdict.notes)
        log.note(f"about {_expected_minutes(task, batches, recipe, plan):.1f} minutes of training from the start")

        checkpoints = Checkpoints(files.checkpoints, recipe.training.keep_checkpoints)
        trainer = Trainer(
            model=task.model,
            batches=batches,
            compute_loss=task.compute_loss,
            optimizer=build_optimizer(task.model, recipe.training),
            settings=recipe.training,
            plan=plan,
            rate=lambda step: learning_rate(recipe.training, recipe.model.d_model, step, plan.max_steps),
            checkpoints=checkpoints,
            log=log,
            evaluate=_dev_evaluation(files, recipe, texts, task),
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


def make_plan(recipe: Recipe, batches: Batches) -> Plan:
    """Steps in all, between evaluations and between checkpoints, where the recipe leaves them open."""
    settings = recipe.training
    epoch = max(batches.num_batches(0) // settings.grad_accum_steps, 1)
    steps = settings.max_steps or min(max(EPOCHS * epoch, FEWEST_STEPS), MOST_STEPS)
    eval_every = settings.eval_every or max(steps // EVALUATIONS, 1)
    return Plan(steps, eval_every, settings.save_every or min(eval_every, 500))


def _resolve(request: Request, texts: Texts) -> Recipe:
    """The recipe with the languages of the text, and with the shape of the model it starts from."""
    langs = [texts.train.src_lang, texts.train.tgt_lang]
    if request.start_from is None:
        return with_values(request.recipe, {"data.src_lang": langs[0], "data.tgt_lang": langs[1]})
    config = model_folder.open_model_folder(request.start_from).config
    own_langs = [config.src_lang, config.tgt_lang]
    if any(lang not in (UNKNOWN, own) for lang, own in zip(langs, own_langs, strict=True)):
        raise UsageError(
            f"{request.start_from} translates {' to '.join(own_langs)}, the text is {' to '.join(langs)}; "
            "give text in its languages"
        )
    recipe = with_values(request.recipe, {"data.src_lang": own_langs[0], "data.tgt_lang": own_langs[1]})
    for name, asked, default in (
        ("model", recipe.model, ModelSection()),
        ("tokenizer", recipe.tokenizer, TokenizerSection()),
    ):
        own = getattr(config, name)
        if asked not in (default, own):
            key = next(k for k, v in own.model_dump().items() if v != asked.model_dump()[k])
            raise UsageError(
                f"--from keeps the {name} of {request.start_from}, but {name}.{key} is {getattr(own, key)} "
                f"there and {getattr(asked, key)} here; leave out what sets it"
            )
    return recipe.model_copy(update={"model": config.model, "tokenizer": config.tokenizer})


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
    files: RunFiles, request: Request, recipe: Recipe, texts: Texts
) -> tuple[Tokenizer, Tokenizer]:
    """The run's own tokenizers once it has begun; else those of the model it starts from, or newly learned."""
    if files.tokenizers.is_dir():
        return read_tokenizers(files.tokenizers)
    if request.start_from is not None:
        tokenizers = Translation.load(request.start_from, Machine("cpu", "float32", 1, "")).tokenizers
    else:
        tokenizers = build_tokenizers(recipe.tokenizer, texts.train.src, texts.train.tgt)
    with durable.replacing(files.train_hashes) as temporary:  # before what says that the run has begun
        TextHashes.of(texts.train).save(temporary)
    write_tokenizers(files.tokenizers, tokenizers)
    return tokenizers


def _build_task(
    request: Request, recipe: Recipe, tokenizers: tuple[Tokenizer, Tokenizer], machine: Machine
) -> Translation:
    langs = (str(recipe.data.src_lang), str(recipe.data.tgt_lang))
    task = Translation.build(recipe, langs, tokenizers, machine)
    if request.start_from is not None:
        model_folder.open_model_folder(request.start_from).load_weights(task.model)
    return task


def _store(files: RunFiles, name: str, texts: Texts, task: Translation, recipe: Recipe) -> ParallelStore:
    text = {"train": texts.train, "dev": texts.dev}[name]
    assert text is not None
    store = prepare_store(
        files.stores,
        name,
        text.src,
        text.tgt,
        *task.tokenizers,
        task.config.max_src_len - 1,
        str(texts.facts()[name]["sha256"]),
    )
    if not len(store):
        raise DataError(f"the {name} text has no pair within data.max_len = {recipe.data.max_len} tokens a side")
    return store


def _start_notes(request: Request) -> list[str]:
    if request.start_from is None:
        return []
    return [f"starts from {request.start_from}: its weights, its shape and its tokenizers are kept"]


def _store_notes(store: ParallelStore) -> list[str]:
    return [f"left out of training: {count:,} pairs ({why})" for why, count in store.dropped.items() if count]


def _announce(log: Log, store: ParallelStore, task: Translation, plan: Plan, notes: list[str]) -> None:
    """Say what will be trained on what, and what is doubtful, before the first step."""
    config, side = task.config, task.config.tokenizer
    kinds = f"joint {side.src.kind}" if config.joint else f"{side.src.kind} to {side.tgt.kind}"
    sizes = f"{config.src_vocab_size:,}" + ("" if config.joint else f" and {config.tgt_vocab_size:,}")
    log.note(
        f"{config.src_lang} to {config.tgt_lang}: {len(store):,} pairs, {store.num_src_tokens:,} source and "
        f"{store.num_tgt_tokens:,} target tokens ({kinds}, {sizes} entries)"
    )
    log.note(f"{count_parameters(task.model):,} parameters, {plan.max_steps:,} steps on {task.machine.describe()}")
    for note in [*task.src_tokenizer.notes, *(task.tgt_tokenizer.notes if not config.joint else []), *notes]:
        log.note(f"note: {note}")


def _expected_minutes(task: Translation, batches: Batches, recipe: Recipe, plan: Plan) -> float:
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


def _dev_evaluation(files: RunFiles, recipe: Recipe, texts: Texts, task: Translation) -> DevEvaluation | None:
    if texts.dev is None:
        return None
    store = _store(files, "dev", texts, task, recipe)
    return DevEvaluation(task, texts.dev, store, files.samples, recipe.training.num_samples)


def _publish(
    request: Request, texts: Texts, task: Translation, checkpoints: Checkpoints, verdict: Verdict
) -> None:
    """Write the model folder from the best checkpoint, scored on test where there is one."""
    best = checkpoints.best()
    if best is not None:
        tensors = load_state(best).model
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                parameter.copy_(tensors[name])
    task.model.eval()
    if texts.test is not None:
        scores, _ = evaluate(task, texts.test)
        verdict.test = asdict(scores)
        verdict.notes += contamination_notes(TextHashes.of(texts.train), texts.test)
    facts = {"texts": texts.facts(), "steps": verdict.step, "best_step": verdict.best_step}
    task.save(request.out, facts, model_folder.model_card(task.config, facts, asdict(verdict), request.command))
