"""The task as a training run sees it: text, tokenizers, model, batches, loss, scores, a folder."""

import json
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from weft.config import Recipe, SideSection, recipe_difference
from weft.data.base import Corpus
from weft.data.check.finding import counted
from weft.data.known import KnownWords
from weft.data.overlap import TextHashes, contamination_notes
from weft.data.signature import signature
from weft.data.texts import Sources, Texts
from weft.data.tokenizer import SMALLEST, Tokenizer, load_tokenizer
from weft.errors import FolderError, OtherVersion, UsageError
from weft.folder import durable, model_folder
from weft.folder.model_folder import FolderConfig, RunFolder, StoredModel
from weft.kernels.activations import names_without_native_code
from weft.kernels.machine import Machine
from weft.model.attention import attend_plainly
from weft.model.transformer import count_parameters
from weft.training.loss import LossSums
from weft.training.trainer import AnyBatches, Evaluate

# rows that are scored to foresee how long all take, and seconds that suffice
PIECES = (1, 8, 64)
TRIAL = 0.5
NOT_CHECKED = (
    "not checked for overlap with training: the folder has no run/train-hashes.npy"
)


class Scores(Protocol):
    """The scores of a test set: `summary` is one line, `lines` are for a person to read."""

    def summary(self) -> str: ...
    def lines(self) -> list[str]: ...
    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Scored:
    """Scores with what their reader must know of the text: its signature, and whether it was
    trained on.

    `contamination` is empty where no row of it was, and where nothing is known of the training
    text.
    """

    scores: Scores
    signature: str
    contamination: tuple[str, ...] = ()
    # the precision, and how outputs were searched for
    computed: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """Return the scores in one line."""
        return "  ".join([self.scores.summary(), self.signature, *self.contamination])

    def lines(self) -> list[str]:
        """Return the scores for a person, in lines."""
        how = ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in self.computed.items()
        )
        marks = [f"note: {mark}" for mark in self.contamination]
        return [*self.scores.lines(), f"text  {self.signature}", f"by    {how}", *marks]

    def to_json(self) -> dict[str, Any]:
        """Return the scores' own dictionary, with `data_signature` and `contaminated` (a sentence
        or none).
        """
        return {
            **self.scores.to_json(),
            "data_signature": self.signature,
            "computed": dict(self.computed),
            "contaminated": self.contamination[0] if self.contamination else None,
        }


def training_hashes(folder: Path) -> TextHashes | None:
    """Load the hashes of what the model in a folder was trained on; None where there are none."""
    path = model_folder.RunFolder(folder).train_hashes
    return TextHashes.load(path) if path.is_file() else None


R = TypeVar("R", bound=Recipe)
C = TypeVar("C", bound=Corpus)
B = TypeVar("B")
M = TypeVar("M", bound=nn.Module)
F = TypeVar("F", bound=FolderConfig)


@dataclass(frozen=True)
class Prepared(Generic[B]):
    """A run's training batches; `description` says what they are of.

    `notes` say what was left out, and what of the model has no native code.
    """

    batches: AnyBatches[Any]
    description: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Portrait:
    """A model in the words of its model card; `use` are commands that use it."""

    title: str
    shape: str
    use: Sequence[str]


class Task(ABC, Generic[R, C, B]):
    """A model with its tokenizers, built for training from a recipe or loaded from a folder: the
    same object.

    R is its recipe, C its kind of text, B its batch.
    """

    name: ClassVar[str]
    unit: ClassVar[str]  # what its text is counted in
    # from fewer rows little is learned; 0 where one row may hold any amount of text
    few_rows: ClassVar[int] = 0
    keeps_words: ClassVar[bool] = False  # of its training text, with the model
    # what text that was trained on does to its scores
    effect_of_overlap: ClassVar[str] = "the score is too high"
    has_int8: ClassVar[bool] = False  # whether `weft quantize` takes its models
    config: FolderConfig
    tokenizers: tuple[Tokenizer, ...]
    model: nn.Module
    machine: Machine
    known: KnownWords | None = None  # the words of its training text

    @classmethod
    @abstractmethod
    def gather(cls, recipe: R, given: Sources) -> Texts[C]:
        """Return the text of a run."""

    @classmethod
    @abstractmethod
    def resolve(
        cls, recipe: R, texts: Texts[C], start: FolderConfig | None, where: str
    ) -> R:
        """Return the recipe with what the text, or the model in folder `where` that it starts from,
        says.
        """

    @classmethod
    @abstractmethod
    def learn_tokenizers(cls, recipe: R, texts: Texts[C]) -> tuple[Tokenizer, ...]:
        """Learn new tokenizers from the training text."""

    @classmethod
    @abstractmethod
    def build(
        cls,
        recipe: R,
        texts: Texts[C],
        tokenizers: tuple[Tokenizer, ...],
        machine: Machine,
    ) -> Self:
        """Return a new model with fresh weights, drawn from the recipe's seed."""

    @classmethod
    @abstractmethod
    def untrained(
        cls, config: Any, tokenizers: tuple[Tokenizer, ...], machine: Machine
    ) -> Self:
        """Return the model that a config describes, its weights still to come; its loss is the
        plain one.
        """

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        """Return a trained model.

        Raises FolderError for a damaged or unfinished folder, UsageError for another task.
        """

    @abstractmethod
    def prepare(self, stores: Path, texts: Texts[C], recipe: R) -> Prepared[B]:
        """Return the batches to train on, and notes; encoded text is kept in `stores`."""

    def kernel_notes(self) -> tuple[str, ...]:
        """Say what PyTorch computes of the model although the machine's kernels are native."""
        if self.machine.kernels != "native":
            return ()
        missing = names_without_native_code(self.model)
        return tuple(
            f"{name} has no native code; PyTorch computes it, which takes longer"
            for name in missing
        )

    @abstractmethod
    def compute_loss(self, batch: B) -> LossSums:
        """Return the loss of one micro-batch, in the machine's precision."""

    @abstractmethod
    def flops(self, batch: B) -> float:
        """Count multiplications and additions of training on a micro-batch; 0 where not counted.

        See `weft.model.flops`.
        """

    def seconds_at_peak(self, batch: B) -> float:
        """Estimate the seconds of a micro-batch at the machine's matrix peak; 0 where not known."""
        peak = self.machine.peak_flops
        return self.flops(batch) / peak if peak else 0.0

    @abstractmethod
    def dev_evaluation(
        self, files: RunFolder, texts: Texts[C], recipe: R
    ) -> Evaluate | None:
        """Return what scores the model on dev; None where there is no dev text."""

    @abstractmethod
    def read(self, data: Sequence[str]) -> C:
        """Read text to score from files, as the training text was read."""

    @abstractmethod
    def evaluate(self, text: C) -> Scores:
        """Score the model on text that it was not trained on."""

    def scoring_seconds(self, text: C, on_dev: bool) -> float:
        """Estimate the seconds that scoring a text takes, by small parts of it.

        `on_dev`: while training, else at the end.
        """
        self.model.eval()
        took: list[tuple[int, float]] = []
        for rows in (min(rows, len(text)) for rows in PIECES):
            started = time.perf_counter()
            self.score_piece(text, rows, on_dev)
            took.append((rows, time.perf_counter() - started))
            if took[-1][1] > TRIAL or rows == len(text):
                break
        self.model.train()
        (fewest, least), (rows, seconds) = took[0], took[-1]
        a_row = (
            max(seconds - least, 0.0) / (rows - fewest)
            if rows > fewest
            else seconds / rows
        )
        return seconds + (len(text) - rows) * a_row

    def score_piece(self, text: C, rows: int, on_dev: bool) -> None:
        """Score the first so many rows, as a trial."""
        self.evaluate(text.select(range(rows)))

    @staticmethod
    @abstractmethod
    def overlap_rows(text: C) -> Sequence[Sequence[str]]:
        """Give the rows that must not occur in training for a score to mean something: pairs, or
        texts.
        """

    def scored(
        self,
        text: C,
        scores: Scores,
        trained_on: TextHashes | None,
        asked: Mapping[str, Any] | None = None,
    ) -> Scored:
        """Return the scores of a text with its signature and, where the training text is known,
        what they share.

        `asked` are settings of the search that take the place of the model's own.
        """
        marks = self.shared_rows(text, trained_on)
        return Scored(
            scores,
            signature(text.rows(), self.tokenizers),
            tuple(marks),
            self.computed(asked or {}),
        )

    def computed(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what scores depend on besides model and text."""
        return {"precision": self.machine.precision}

    def shared_rows(self, text: C, trained_on: TextHashes | None) -> list[str]:
        """Say how much of a text was trained on; nothing where the training text is not known."""
        if trained_on is None:
            return []
        return contamination_notes(
            trained_on,
            self.overlap_rows(text),
            text.where,
            self.unit,
            self.effect_of_overlap,
        )

    def doubts(self, text: C, trained_on: TextHashes | None) -> list[str]:
        """Say what else stands against figures on a text: what reading changed or left out."""
        notes = [
            *text.notes,
            *(
                f"left out: {counted(n, self.unit)} ({why})"
                for why, n in text.dropped.items()
                if n
            ),
        ]
        if trained_on is None:
            notes.append(NOT_CHECKED)
        return notes

    @abstractmethod
    def predictor(self) -> Any:
        """Return what takes text and gives text or numbers by this model."""

    @abstractmethod
    def portrait(self) -> Portrait:
        """Describe the model for its model card."""

    def save(self, folder: Path, facts: Mapping[str, Any], card: str) -> None:
        """Write the model folder."""
        weights = {name: p.detach() for name, p in self.model.named_parameters()}
        tokenizers = [
            tokenizer.to_json().encode() for tokenizer in dict.fromkeys(self.tokenizers)
        ]
        files = dict(zip(self.config.tokenizer_files(), tokenizers, strict=True))
        words = None if self.known is None else torch.from_numpy(self.known.hashes)
        contents = model_folder.Contents(weights, files, words=words)
        model_folder.save_model_folder(folder, self.config, contents, card, facts)

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels that the model tells apart; none where it gives text or scores."""
        return ()

    @property
    def loss_of_guessing(self) -> float:
        """Return the loss of guessing among the pieces that text needs, in nats.

        Tokenizers of words or characters have a piece for each byte, for what they do not know
        alone.
        """
        tokenizer = self.tokenizers[-1]
        spells = tokenizer.settings.kind in ("character", "word")
        return math.log(max(tokenizer.vocab_size - (SMALLEST if spells else 0), 2))

    @property
    def loss_untrained(self) -> float:
        """Return the loss of a new model, which guesses among all pieces, in nats."""
        return math.log(self.tokenizers[-1].vocab_size)

    @abstractmethod
    def sides(self, text: C) -> Sequence[tuple[str, Tokenizer, Sequence[str]]]:
        """Name what a row of a text consists of, each with its tokenizer and what all rows have."""

    @property
    def num_parameters(self) -> int:
        """Count the model's weights, shared ones once."""
        return count_parameters(self.model)

    def as_used(self) -> Self:
        """Return the same with products in float32, as `weft translate` and `weft evaluate` have
        them.
        """
        task: Any = self  # each task is a dataclass
        return replace(task, machine=self.machine.as_used())

    def knowing(self, known: KnownWords | None, low_confidence: float | None) -> Self:
        """Return the same, with what it takes to say at use where it guesses; for tasks that say
        it.
        """
        return self


def load_known(stored: StoredModel) -> KnownWords | None:
    """Return the words that a folder's model was trained on, where it has kept them."""
    if not stored.config.known_words:
        return None
    return KnownWords(
        model_folder.read_words(stored.folder / model_folder.WORDS).numpy()
    )


def config_knowing(
    config: F, known: KnownWords | None, low_confidence: float | None
) -> F:
    """Return the config of a model that keeps the words that it knows."""
    return config.model_copy(
        update={"known_words": known is not None, "low_confidence": low_confidence}
    )


def load_tokenizers(stored: StoredModel) -> list[Tokenizer]:
    """Return the tokenizers of a folder, one for each file. Raises FolderError where they are not
    its config's.

    Warns of OtherVersion where a package that they need is of another version than in training.
    """
    sides = stored.config.tokenizer_files()
    loaded = [
        load_tokenizer(stored.tokenizers[name], side, str(stored.folder / name))
        for name, side in sides.items()
    ]
    known = stored.config.tokenizer_steps
    steps = {
        name: version
        for tokenizer in loaded
        for name, version in tokenizer.steps.items()
    }
    if steps.keys() != known.keys():
        raise FolderError(
            f"{stored.folder / model_folder.CONFIG}: tokenizer_steps are not those of its tokenizers"
        )
    for name in (name for name in steps if steps[name] != known[name]):
        said = f"{stored.folder}: trained with {name} {known[name]}, and {steps[name]} is installed"
        remedy = "text may be cut into other words than the model knows; install that version if its results differ"
        warnings.warn(f"{said}: {remedy}", OtherVersion, stacklevel=2)
    return loaded


def refuse_other_size(stored: StoredModel, tokenizer: Tokenizer, size: int) -> None:
    """Raise FolderError where a tokenizer does not have the number of pieces that the model has."""
    if tokenizer.vocab_size != size:
        raise FolderError(
            f"{stored.folder}: a tokenizer has {tokenizer.vocab_size} pieces, the model {size}; "
            "the files belong to different models"
        )


def load_into(stored: StoredModel, build: Callable[[], M], machine: Machine) -> M:
    """Build the model that a config describes and fill it with its weights, ready to use."""
    # what the config claims is allocated only if the weights are that large
    with torch.device("meta"):
        stored.refuse_unfit(build())
    with _OwnNumbers():
        model = build()
    stored.load_weights(model)
    if machine.plain:
        attend_plainly(model)
    return model.to(machine.for_use()).eval()


class _OwnNumbers(TorchFunctionMode):
    """Draws the first weights, which are soon written over, from a generator of their own.

    Torch's is the process's: a run in another thread would draw other dropout masks after it was
    used here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        draws = (
            {"generator": self.generator}
            if getattr(func, "__name__", "") in _DRAWING
            else {}
        )
        return func(*args, **{**(kwargs or {}), **draws})


_DRAWING = ("uniform_", "normal_", "kaiming_uniform_")


def config_of(stored: StoredModel, wanted: type[F], verb: str) -> F:
    """Return the config of a folder as one of the wanted task.

    Raises UsageError where it holds a model of another task, which cannot do what `verb` says.
    """
    if not isinstance(stored.config, wanted):
        raise UsageError(
            f"{stored.folder}: holds a model for {stored.config.task}, which cannot {verb}"
        )
    return stored.config


def keep_model_of(recipe: R, start: FolderConfig, where: str) -> R:
    """Return the recipe with the shape and the tokenizers of the model in folder `where`.

    Raises UsageError where the recipe sets a key to another value; a default asks for nothing.
    """
    kept = recipe.model_copy(
        update={name: getattr(start, name) for name in ("model", "tokenizer")}
    )
    asked = recipe_difference(type(recipe)(), recipe)
    for key, (here, there) in recipe_difference(recipe, kept).items():
        if key in asked:
            raise UsageError(
                f"--from keeps the {key.split('.')[0]} of {where}, but {key} is {there} there and {here} here; "
                "leave out what sets it"
            )
    return kept


def refuse_other_kind(config: FolderConfig, wanted: type[F]) -> F:
    """Return the config as one of the wanted task. Raises FolderError where it is another's."""
    if not isinstance(config, wanted):
        raise FolderError(
            f"a config for {config.task} is where another was expected; restore the folder"
        )
    return config


def write_tokenizers(folder: Path, tokenizers: tuple[Tokenizer, ...]) -> None:
    """Keep a run's tokenizers, with their settings, in a new folder."""
    different = list(dict.fromkeys(tokenizers))
    facts = {
        "order": [different.index(tokenizer) for tokenizer in tokenizers],
        "settings": [
            tokenizer.settings.model_dump(mode="json") for tokenizer in different
        ],
    }
    with durable.writing_folder(folder, facts) as temporary:
        for number, tokenizer in enumerate(different):
            (temporary / f"{number}.json").write_bytes(tokenizer.to_json().encode())


def read_tokenizers(folder: Path) -> tuple[Tokenizer, ...]:
    """Read what `write_tokenizers` wrote. Raises FolderError where it is damaged."""
    manifest = durable.read_manifest(folder)
    sides = [SideSection.model_validate(side) for side in manifest["settings"]]
    paths = [folder / f"{number}.json" for number in range(len(sides))]
    loaded = [
        load_tokenizer(p.read_bytes(), side, str(p))
        for p, side in zip(paths, sides, strict=True)
    ]
    return tuple(loaded[i] for i in manifest["order"])


def keep_samples(path: Path, step: int, samples: Iterable[Mapping[str, Any]]) -> None:
    """Add to the samples of earlier steps; what a run that was killed had said of later ones
    goes.
    """
    old = path.read_text("utf-8").split("\n")[:-1] if path.is_file() else []
    kept = [line for line in old if json.loads(line)["step"] < step]
    new = [
        json.dumps({"step": step, **sample}, ensure_ascii=False) for sample in samples
    ]
    durable.write_text(path, "".join(line + "\n" for line in [*kept, *new]))
