"""Everything that the trainer needs: text, machine, tokenizers, task and plan.

What the run's first start chooses is written into its folder; later starts read it there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from weft.config import ClassificationRecipe, Recipe, size_keys
from weft.console import stages
from weft.data.check.finding import counted
from weft.data.checked import write_checked
from weft.data.corpus import ParallelText
from weft.data.directions import describe
from weft.data.formats.table import column_names
from weft.data.kind import COLUMNS
from weft.data.overlap import TextHashes
from weft.data.profile import learn_profiles
from weft.data.texts import Texts
from weft.data.tokenizer import Tokenizer
from weft.data.train_text import names_of
from weft.errors import FolderError, OutOfMemoryError, UsageError
from weft.folder import durable, model_folder
from weft.folder.model_files import files_of
from weft.folder.model_folder import (
    WORDS,
    ClassificationConfig,
    FolderConfig,
    RunFolder,
    StoredModel,
    TranslationConfig,
)
from weft.folder.profiles import write_profiles
from weft.kernels import torch_machine
from weft.kernels.machine import Machine, counted_threads, threads_asked, usable_cores
from weft.kernels.torch_machine import choose_machine, is_out_of_memory
from weft.predict.parameters import stored_shapes
from weft.recipes.file import with_values
from weft.run.origin import read_overrides
from weft.run.planning import Planned, Workload, choose_plan, largest_place
from weft.run.record import RunRecord
from weft.run.request import Request
from weft.run.sizing import Sizing, choose_sizing
from weft.tasks.choice import TASKS
from weft.tasks.detecting import profiles_in
from weft.tasks.trainable import (
    Prepared,
    TrainableTask,
    fill,
    read_tokenizers,
    write_tokenizers,
)
from weft.training.distributed import World
from weft.training.log import Log
from weft.training.memory import free_bytes, parts_to_fit, recompute_layers
from weft.training.mixtures import AnyBatches, Stage
from weft.training.trainer import Evaluate

AnyTask = TrainableTask[Any, Any, Any]
_FEW_ROWS = 200  # that a model may learn to the cost of all else


@dataclass(frozen=True)
class Material:
    """Text to train on, the recipe that it completes, and the model to start from."""

    kind: type[AnyTask]
    texts: Texts[Any]
    recipe: Any  # of the task's own class
    start: StoredModel | None
    origin: dict[
        str, Any
    ]  # what identifies the text, the model to start from, the teacher
    sizing: Sizing


@dataclass(frozen=True)
class Training:
    """A task ready for the trainer, and what is to be said before the first step."""

    task: AnyTask
    tokenizers: tuple[Tokenizer, ...]
    batches: AnyBatches[Any]
    stages: tuple[
        Stage[Any], ...
    ]  # of which these batches are the first's, if there are any
    evaluate: Evaluate | None
    parts: int  # into which each batch is cut, where memory asks for it
    planned: Planned
    description: str
    notes: tuple[str, ...]


def read_material(request: Request, world: World) -> Material:
    """Read the text and the model to start from, and let the text complete the recipe.

    What a person left open goes by the text and the time.

    Raises DataError where the text is not fit for training, UsageError where the recipe and the
    model to start from do not fit each other.
    """
    kind = TASKS[request.recipe.task]
    if request.glossary is not None and kind.name != "translation":
        raise UsageError(
            f"--glossary has terms for a translator, the recipe is for {kind.name}; leave it out"
        )
    start = _open_start(request.start_from, kind)
    config = start.config if start else None
    recipe = _with_columns_of(config, request.recipe, names_of(request.train))
    texts = kind.gather(recipe, request.sources())
    texts = texts.accepted(request.allow_bad_data)
    sizing = choose_sizing(request, len(texts.train), world.size)
    recipe = with_values(recipe, sizing.values)
    recipe = kind.resolve(recipe, texts, config, str(request.start_from))
    origin = {
        "texts": texts.facts(),
        "from": _weights_sha256(request.start_from),
        **request.teacher_facts(),
        **sizing.facts(),
    }
    return Material(kind, texts, recipe, start, origin, sizing)


def _with_columns_of(
    config: FolderConfig | None, recipe: Recipe, train: Sequence[str]
) -> Recipe:
    """Return the recipe with the columns of the classifier to start from, unless it names its own.

    A table that has the usual columns and not those of the model is read by the usual ones. Raises
    DataError for a table that cannot be read.
    """
    if not isinstance(config, ClassificationConfig) or not train:
        return recipe
    assert isinstance(recipe, ClassificationRecipe)
    data = recipe.data
    update: dict[str, Any] = {}
    if data.label_separator is None:
        update["label_separator"] = config.label_separator
    usual = {"text_column": COLUMNS[0], "label_column": COLUMNS[1]}
    own = {"text_column": config.text_column, "label_column": config.label_column}
    if data.model_dump(include={*usual}) == usual:
        names = set(column_names(Path(train[0])))
        is_usual = set(COLUMNS) <= names and not {*own.values()} <= names
        update |= {} if is_usual else own
    return recipe.model_copy(update={"data": data.model_copy(update=update)})


def prepare(
    request: Request,
    material: Material,
    is_resumed: bool,
    record: RunRecord,
    world: World,
    log: Log,
) -> Training:
    """Choose the machine's settings, learn the tokenizers, encode the text, build and plan."""
    folder = RunFolder(request.out)
    recipe, texts = material.recipe, material.texts
    machine = _choose_machine(folder, recipe, world, log)
    if texts.check_key and world.is_first:
        write_checked(folder.checked, texts.check_key, texts.findings)
    record.enter("learning the tokenizers")
    tokenizers = _choose_tokenizers(folder, request, material)
    record.enter("encoding the text")
    task = material.kind.build(recipe, texts, tokenizers, machine)
    _begin_task(task, material, folder)
    _keep_languages(task, material, folder)
    encoded = task.prepare(folder.stores, texts, recipe)
    evaluate = task.dev_evaluation(folder, texts, recipe)
    with torch_machine.computing(machine):  # by the steps that training will take
        largest = _largest_of(encoded)
        parts = _choose_parts(folder, recipe, task, largest, world, log)
        work = Workload(recipe, task, encoded.batches, texts, parts)
        planned = choose_plan(request, is_resumed, work, world)
    notes = (
        *_start_notes(request, material),
        *request.notes,
        *material.sizing.notes,
        *planned.notes,
        *read_overrides(folder),
        *texts.notes,
        *encoded.notes,
    )
    return Training(
        task=task,
        tokenizers=tokenizers,
        batches=encoded.batches,
        stages=encoded.stages,
        evaluate=evaluate,
        parts=parts,
        planned=planned,
        description=encoded.description,
        notes=notes,
    )


def _open_start(folder: Path | None, kind: type[AnyTask]) -> StoredModel | None:
    """Open the model to start from. Raises UsageError where it is of another task."""
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
    return files_of(folder).weights_sha256()


def _choose_machine(
    folder: RunFolder, recipe: Recipe, world: World, log: Log
) -> Machine:
    """Read what the run's first start chose of this machine; else choose now and write it.

    The processes of a run on one machine share its cores. Raises UsageError where the first start
    had a GPU and this machine has none.
    """
    cores = max(usable_cores() // world.local_size, 1)  # of this process
    if folder.machine.is_file():
        machine = _machine_of_first_start(folder)
        if world.size == 1:
            return _with_threads(folder, machine, recipe, log)
        if machine.threads <= cores:
            return machine
        return replace(machine, threads=cores, peak_flops=0.0)
    settings = recipe.training
    threads = settings.threads or (cores if world.size > 1 else None)
    stages.enter("measuring this machine")
    machine = torch_machine.measured(
        choose_machine(settings.precision, threads, settings.kernels)
    )
    machine = replace(machine, parts=0)
    durable.write_json(folder.machine, asdict(machine))
    return machine


def _machine_of_first_start(folder: RunFolder) -> Machine:
    """Read `run/machine.json`. Raises FolderError, UsageError where its GPU is not here."""
    try:
        machine = Machine(**durable.read_json(folder.machine))
    except TypeError:
        raise FolderError(
            f"{folder.machine}: does not describe a machine; restore the file"
        ) from None
    if machine.device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"{folder.model_folder}: was started on a GPU, and this machine has none; continue where there is one"
        )
    return machine


def _with_threads(
    folder: RunFolder, machine: Machine, recipe: Recipe, log: Log
) -> Machine:
    """Return the machine with as many threads as are asked for now, or as there are cores.

    A number that differs from the first start's is noted and written down: sums are then made in
    another order.
    """
    asked = recipe.training.threads or threads_asked()
    threads = asked or min(machine.threads, max(usable_cores(), 1))
    if threads == machine.threads or machine.device == "cuda":
        return machine
    before = counted_threads(machine.threads)
    now = counted_threads(threads)
    log.note(
        f"note: resumed with {now}, started with {before}: the last bits of its sums may differ"
    )
    machine = replace(machine, threads=threads)
    machine = torch_machine.measured(machine) if machine.peak_flops else machine
    durable.write_json(folder.machine, asdict(machine))
    return machine


def _choose_parts(
    folder: RunFolder,
    recipe: Recipe,
    task: AnyTask,
    batches: AnyBatches[Any],
    world: World,
    log: Log,
) -> int:
    """Return the number of parts that each batch is divided into: that of the first start, else the
    smallest by which its largest batch fits the free memory.

    Raises OutOfMemoryError where an eighth of a batch does not fit.
    """
    if task.machine.parts:
        return task.machine.parts
    free = free_bytes(torch.device(task.machine.device)) // world.local_size
    batch = batches.batch(0, largest_place(batches))
    try:
        parts = parts_to_fit(task.model, task.compute_loss, batch, free)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(
            f"out of memory in an eighth of a batch of {batch.describe()}; lower {size_keys(recipe)} and "
            "raise training.grad_accum_steps by as much, or choose a smaller model"
        ) from error
    durable.write_json(folder.machine, asdict(replace(task.machine, parts=parts)))
    if parts > 1:
        log.note(
            f"note: each batch is computed in {parts} parts, as {free / 1e9:.1f} GB of memory are free"
        )
    return parts


def _largest_of(encoded: Prepared[Any]) -> AnyBatches[Any]:
    """Return the batches of the stage that has the largest batch in its first epoch."""
    every = [stage.batches for stage in encoded.stages] or [encoded.batches]
    return max(every, key=lambda batches: int(batches.sizes(0).max()))


def _choose_tokenizers(
    folder: RunFolder, request: Request, material: Material
) -> tuple[Tokenizer, ...]:
    """Read the run's own tokenizers once it has begun.

    Else take those of the model it starts from, or learn new ones, and write them down.
    """
    kind = material.kind
    train = material.texts.train
    if folder.tokenizers.is_dir():
        known = _known_hashes(folder.train_hashes)
        if known is None or request.allow_data_change:
            own = _trained_on(request, kind.hashes(train))
            _write_hashes(folder.train_hashes, known.joined(own) if known else own)
        return read_tokenizers(folder.tokenizers)
    if request.start_from is not None:
        reader = Machine("cpu", "float32", 1, "")
        before = kind.load(request.start_from, reader).tokenizers
        tokenizers = kind.keep_tokenizers(before, material.texts)
    elif request.tokenizers is not None:
        before = read_tokenizers(request.tokenizers)
        tokenizers = kind.keep_tokenizers(before, material.texts)
    else:
        tokenizers = kind.learn_tokenizers(material.recipe, material.texts)
    # before the tokenizers, which say that the run has begun
    _write_hashes(folder.train_hashes, _trained_on(request, kind.hashes(train)))
    write_tokenizers(folder.tokenizers, tokenizers)
    return tokenizers


def _known_hashes(path: Path) -> TextHashes | None:
    """Read the hashes of the text that was trained on so far; None where they are lost.

    Then they are made again from the text that the run resumes with, which has that text too.
    """
    try:
        return TextHashes.load(path)
    except FolderError:
        return None


def _write_hashes(path: Path, hashes: TextHashes) -> None:
    with durable.replacing(path) as temporary:
        hashes.save(temporary)


def _trained_on(request: Request, own: TextHashes) -> TextHashes:
    """Add to the hashes of the training text those of the one that the model to start from was
    trained on.
    """
    if request.start_from is None:
        return own
    before = _known_hashes(RunFolder(request.start_from).train_hashes)
    return own if before is None else own.joined(before)


def _start_notes(request: Request, material: Material) -> Iterator[str]:
    """Say what the run starts from, and how much of dev and test that model was trained on."""
    if request.start_from is None:
        return
    yield f"starts from {request.start_from}: its weights, its shape and its tokenizers are kept"
    texts = material.texts
    yield from _lost_directions(material)
    if len(texts.train) < _FEW_ROWS and material.kind.name != "language-modelling":
        yield (
            f"{counted(len(texts.train), texts.unit)} alone make a model forget much of the rest; with the text "
            "that it was trained on beside them it keeps that"
        )
    before = _known_hashes(RunFolder(request.start_from).train_hashes)
    for name, part in (("dev", texts.dev), ("test", texts.test)):
        if before is None or part is None:
            continue
        if seen := before.shared(material.kind.overlap_rows(part)):
            yield (
                f"{len(seen):,} of the {counted(len(part), texts.unit)} of {name} were trained on by "
                f"{request.start_from}, so that scores on them are too high; give text that it never saw with "
                f"--{name}"
            )


def _lost_directions(material: Material) -> Iterator[str]:
    """Say which directions the model to start from has and the new one has not."""
    train = material.texts.train
    start = material.start and material.start.config
    if not isinstance(train, ParallelText) or not isinstance(start, TranslationConfig):
        return
    lost = [pair for pair in start.directions if pair not in train.directions]
    if lost:
        kept = describe(train.directions)
        how = ""
        if any(pair[::-1] in train.directions for pair in lost):
            how = "; --set data.directions=both trains the text both ways"
        yield f"the new model translates {kept} alone, no longer {describe(lost)}{how}"


def _begin_task(task: AnyTask, material: Material, folder: RunFolder) -> None:
    """Give the model the weights to start from, and write down what it is.

    Its layers are computed twice where the recipe saves memory so.
    """
    start = material.start
    durable.write_json(folder.config, task.config.model_dump(mode="json"))
    if start is not None and start.config.known_words:
        durable.write_bytes(folder.words, bytes(start.files.mapped(WORDS)))
    if start is not None:
        is_int8 = start.config.weights == "int8"
        same: Any = task  # each task is a dataclass
        parameters = replace(same, config=start.config).parameters()
        fill(task.model, start.weights(stored_shapes(parameters, is_int8)))
    if material.recipe.training.activation_checkpointing:
        recompute_layers(task.model)


def _keep_languages(task: AnyTask, material: Material, folder: RunFolder) -> None:
    """Learn to tell the text's languages apart, once for all starts of the run; add what the model
    to start from knows of them.
    """
    if folder.languages.is_file():
        return
    profiles = learn_profiles(task.texts_by_language(material.texts.train))
    if material.start is not None:
        for code, before in profiles_in(material.start).items():
            profiles[code] = before.joined(profiles.get(code))
    if profiles:
        arrays = {code: profile.to_array() for code, profile in profiles.items()}
        write_profiles(folder.languages, arrays)
