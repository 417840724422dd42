"""The task as a training run sees it: text, tokenizers, model, batches, loss, scores, a folder."""

import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weft.config import Recipe, SideSection, recipe_difference
from weft.data.base import Corpus
from weft.data.known import KnownWords
from weft.data.texts import Texts
from weft.data.tokenizer import SMALLEST, Tokenizer, load_tokenizer
from weft.errors import FolderError, UsageError
from weft.folder import durable, model_folder
from weft.folder.arrays import Arrays
from weft.folder.layout import SCALES
from weft.folder.model_folder import FolderConfig, RunFolder, StoredModel
from weft.kernels.machine import Machine
from weft.kernels.modules import names_without_native_code
from weft.model.attention import attend_plainly
from weft.model.transformer import count_parameters
from weft.predict.parameters import Parameters, stored_shapes
from weft.predict.quality import Quality
from weft.tasks.task import Task
from weft.training.loss import LossSums
from weft.training.mixtures import AnyBatches, Stage
from weft.training.trainer import Evaluate

# rows that are scored to foresee how long all take, and seconds that suffice
PIECES = (1, 8, 64)
TRIAL = 0.5

R = TypeVar("R", bound=Recipe)
C = TypeVar("C", bound=Corpus)
B = TypeVar("B")
M = TypeVar("M", bound=nn.Module)
F = TypeVar("F", bound=FolderConfig)


@dataclass(frozen=True)
class Prepared(Generic[B]):
    """A run's training batches; `description` says what they are of.

    They are those of the first of the `stages`, if the run has some.

    `notes` say what was left out, and what of the model has no native code.
    """

    batches: AnyBatches[Any]
    description: str
    notes: tuple[str, ...] = ()
    stages: tuple[Stage[Any], ...] = ()


class TrainableTask(Task[R, C], Generic[R, C, B]):
    """A model with its tokenizers, built for training from a recipe or loaded from a folder: the
    same object.

    R is its recipe, C its kind of text, B its batch.
    """

    model: nn.Module

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
    def keep_tokenizers(
        cls, tokenizers: tuple[Tokenizer, ...], texts: Texts[C]
    ) -> tuple[Tokenizer, ...]:
        """Return the tokenizers of a model to start from, as the text needs them."""
        return tokenizers

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

    @abstractmethod
    def prepare(self, stores: Path, texts: Texts[C], recipe: R) -> Prepared[B]:
        """Return the batches to train on, and notes; encoded text is kept in `stores`."""

    @abstractmethod
    def parameters(self) -> Parameters:
        """Yield the learned parameters of the model, by its config."""

    def kernel_notes(self) -> tuple[str, ...]:
        """Say what of the model has no native code although the machine's kernels are native."""
        if self.machine.kernels != "native":
            return ()
        missing = names_without_native_code(self.model)
        return tuple(
            f"{name} has no native code; PyTorch computes it in training, and use takes longer"
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

    def scoring_seconds(self, text: C, on_dev: bool) -> float:
        """Estimate the seconds that scoring a text takes, by small parts of it.

        `on_dev`: while training, else at the end.
        """
        self.model.eval()
        # the first call loads and compiles, and would be scaled up to the whole text
        self.score_piece(text, 1, on_dev)
        took: list[tuple[int, float]] = []
        for rows in (min(rows, len(text)) for rows in PIECES):
            started = time.perf_counter()
            self.score_piece(text, rows, on_dev)
            took.append((rows, time.perf_counter() - started))
            if took[-1][1] > TRIAL or rows == len(text):
                break
        self.model.train()
        (fewest, least), (rows, seconds) = took[0], took[-1]
        a_row = seconds / rows
        if seconds > least:
            a_row = (seconds - least) / (rows - fewest)
        return seconds + (len(text) - rows) * a_row

    def score_piece(self, text: C, rows: int, on_dev: bool) -> None:
        """Score the first so many rows, as a trial."""
        self.evaluate(text.select(range(rows)))

    def save(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        card: str,
        profiles: Mapping[str, NDArray[np.uint8]] = MappingProxyType({}),
    ) -> None:
        """Write the model folder; `profiles` are what is known of its languages."""
        weights = {
            name: parameter.detach().cpu().numpy()
            for name, parameter in self.model.named_parameters()
        }
        tokenizers = [
            tokenizer.to_json().encode() for tokenizer in dict.fromkeys(self.tokenizers)
        ]
        files = dict(zip(self.config.tokenizer_files(), tokenizers, strict=True))
        words = None if self.known is None else self.known.hashes
        contents = model_folder.Contents(weights, files, words=words, profiles=profiles)
        model_folder.save_model_folder(folder, self.config, contents, card, facts)

    @property
    def loss_of_guessing(self) -> float:
        """Return the loss of guessing among the pieces that text needs, in nats.

        Tokenizers of words or characters have a piece for each byte, for what they do not know
        alone.
        """
        tokenizer = self.tokenizers[-1]
        spells = tokenizer.settings.kind in ("character", "word")
        size = tokenizer.vocab_size - len(tokenizer.marks)
        return math.log(max(size - (SMALLEST if spells else 0), 2))

    @property
    def loss_untrained(self) -> float:
        """Return the loss of a new model, which guesses among all pieces, in nats."""
        return math.log(self.tokenizers[-1].vocab_size)

    @property
    def num_parameters(self) -> int:
        """Count the model's weights, shared ones once."""
        return count_parameters(self.model)

    def knowing(
        self,
        known: KnownWords | None,
        low_confidence: float | None,
        quality: Quality | None = None,
    ) -> Self:
        """Return the same, with what it takes to say at use where it guesses, and how good its
        translations are; for tasks that say it.
        """
        return self


def config_knowing(
    config: F, known: KnownWords | None, low_confidence: float | None
) -> F:
    """Return the config of a model that keeps the words that it knows."""
    return config.model_copy(
        update={"known_words": known is not None, "low_confidence": low_confidence}
    )


def load_into(
    stored: StoredModel,
    build: Callable[[], M],
    parameters: Parameters,
    machine: Machine,
) -> M:
    """Build the model that a config describes and fill it with its weights, ready to use."""
    is_int8 = stored.config.weights == "int8"
    # what the config claims is allocated only if the weights are that large
    arrays = stored.weights(stored_shapes(parameters, is_int8))
    with _OwnNumbers():
        model = build()
    fill(model, arrays)
    if machine.plain:
        attend_plainly(model)
    return model.to(torch.device(machine.device)).eval()


@torch.no_grad()
def fill(model: nn.Module, arrays: Arrays) -> None:
    """Copy stored weights into a model; int8 ones are multiplied by their scales.

    A table for fewer tokens than the model has fills its beginning: the rest are new marks.
    """
    for name, parameter in model.named_parameters():
        stored = arrays[name]
        known = parameter[: len(stored)]
        known.copy_(_tensor(stored))
        if name + SCALES in arrays:
            known.mul_(_tensor(arrays[name + SCALES])[:, None])


def _tensor(array: NDArray[Any]) -> Tensor:
    """Return a tensor of its own memory: that of a mapped array cannot be written."""
    return torch.from_numpy(np.array(array))


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
