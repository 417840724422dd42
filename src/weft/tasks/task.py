"""The task of a model in use: it reads text, scores it, and hands out what predicts.

No module beside it loads PyTorch but those of `trainable.py`, which adds what a training run needs.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from weft.config import Recipe
from weft.data.base import Corpus
from weft.data.check.finding import counted
from weft.data.known import KnownWords
from weft.data.overlap import TextHashes, contamination_notes
from weft.data.signature import signature
from weft.data.texts import Sources, Texts
from weft.data.tokenizer import Tokenizer, load_tokenizer
from weft.errors import FolderError, MissingPackage, OtherVersion, UsageError
from weft.folder import model_folder
from weft.folder.model_folder import (
    ClassificationConfig,
    FolderConfig,
    LanguageConfig,
    StoredModel,
)
from weft.kernels.machine import Machine

NOT_CHECKED = "not checked for overlap with training: there is no run/train-hashes.npy beside the model"


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
        how = in_words(self.computed)
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


def in_words(computed: Mapping[str, Any]) -> str:
    """Write for a person what scores depend on besides model and text."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in computed.items()
    )


def training_hashes(folder: Path) -> TextHashes | None:
    """Load the hashes of what the model in a folder was trained on; None where there are none."""
    path = model_folder.RunFolder(folder).train_hashes
    return TextHashes.load(path) if path.is_file() else None


R = TypeVar("R", bound=Recipe)
C = TypeVar("C", bound=Corpus)
F = TypeVar("F", bound=FolderConfig)
One = TypeVar("One", LanguageConfig, ClassificationConfig)  # of one tokenizer


@dataclass(frozen=True)
class Portrait:
    """A model in the words of its model card; `use` are commands that use it.

    `sizes` are the numbers of `shape`, with its `kind`, for who says it in another language.
    """

    title: str
    shape: str
    use: Sequence[str]
    sizes: Mapping[str, int | str] = field(default_factory=dict)


class Task(ABC, Generic[R, C]):
    """A model with its tokenizers, loaded from a folder.

    R is its recipe, C its kind of text.
    """

    name: ClassVar[str]
    unit: ClassVar[str]  # what its text is counted in
    # from fewer rows little is learned; 0 where one row may hold any amount of text
    few_rows: ClassVar[int] = 0
    keeps_words: ClassVar[bool] = False  # of its training text, with the model
    # what text that was trained on does to its scores
    effect_of_overlap: ClassVar[str] = "the score is too high"
    config: FolderConfig
    tokenizers: tuple[Tokenizer, ...]
    machine: Machine
    known: KnownWords | None = None  # the words of its training text

    @classmethod
    @abstractmethod
    def gather(cls, recipe: R, given: Sources) -> Texts[C]:
        """Return the text of a run."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        """Return a trained model.

        Raises FolderError for a damaged or unfinished folder, UsageError for another task.
        """

    @abstractmethod
    def read(self, data: Sequence[str]) -> C:
        """Read text to score from files, as the training text was read."""

    @abstractmethod
    def evaluate(self, text: C) -> Scores:
        """Score the model on text that it was not trained on."""

    @staticmethod
    @abstractmethod
    def overlap_rows(text: C) -> Sequence[Sequence[str]]:
        """Give the rows that must not occur in training for a score to mean something: pairs, or
        texts.
        """

    @classmethod
    def hashes(cls, text: C) -> TextHashes:
        """Hash those rows."""
        return TextHashes.of(cls.overlap_rows(text))

    @abstractmethod
    def texts_by_language(self, text: C) -> Sequence[tuple[str, Sequence[str]]]:
        """Give the texts of each side with the code of its language."""

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

    def why_no_engine(self) -> str:
        """Say why the model is used without an engine; "" where none is missing or wanted."""
        return ""

    def what_computes(self) -> str:
        """Say in words what computes the model: an engine, NumPy, or as here PyTorch."""
        return f"PyTorch, {self.machine.in_short()}"

    def computer(self) -> str:
        """Name what computes the model: `engine`, `numpy`, or as here `torch`."""
        return "torch"

    @abstractmethod
    def portrait(self) -> Portrait:
        """Describe the model for its model card."""

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels that the model tells apart; none where it gives text or scores."""
        return ()

    @abstractmethod
    def sides(self, text: C) -> Sequence[tuple[str, Tokenizer, Sequence[str]]]:
        """Name what a row of a text consists of, each with its tokenizer and what all rows have."""

    def as_used(self) -> Self:
        """Return the same with products in float32, as `weft translate` and `weft evaluate` have
        them.
        """
        task: Any = self  # each task is a dataclass
        return replace(task, machine=self.machine.as_used())


def load_known(stored: StoredModel) -> KnownWords | None:
    """Return the words that a folder's model was trained on, where it has kept them."""
    words = stored.words()
    return None if words is None else KnownWords(words)


def load_tokenizers(stored: StoredModel) -> list[Tokenizer]:
    """Return the tokenizers of a folder, one for each file. Raises FolderError where they are not
    its config's.

    Raises MissingPackage where a package that they need is not installed; warns of OtherVersion
    where it is of another version than in training.
    """
    sides = stored.config.tokenizer_files()
    try:
        loaded = [
            load_tokenizer(stored.tokenizers[name], side, str(stored.folder / name))
            for name, side in sides.items()
        ]
    except MissingPackage as missing:
        raise missing.within(stored.folder) from None
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


def open_with_tokenizer(
    folder: Path, wanted: type[One], verb: str
) -> tuple[StoredModel, One, Tokenizer]:
    """Open a folder whose model has one tokenizer: the folder, its config and the tokenizer.

    Raises UsageError as `config_of` does, and FolderError where a file is not the model's own.
    """
    stored = model_folder.open_model_folder(folder)
    config = config_of(stored, wanted, verb)
    (tokenizer,) = load_tokenizers(stored)
    refuse_other_size(stored, tokenizer, config.vocab_size)
    return stored, config, tokenizer


def config_of(stored: StoredModel, wanted: type[F], verb: str) -> F:
    """Return the config of a folder as one of the wanted task.

    Raises UsageError where it holds a model of another task, which cannot do what `verb` says.
    """
    if not isinstance(stored.config, wanted):
        raise UsageError(
            f"{stored.folder}: holds a model for {stored.config.task}, which cannot {verb}"
        )
    return stored.config
