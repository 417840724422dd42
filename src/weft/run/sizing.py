"""The size of a translator, how it learns, and how long: chosen by how much text there is, and how
much can be computed in the time, where neither a recipe nor a setting says.

The study behind it: docs/experiments.md, "Size by text and time".
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from weft.config import Seq2SeqSection, TranslationRecipe
from weft.data.check.finding import counted
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.kernels import torch_machine
from weft.run.request import Request
from weft.training.checkpoint import Checkpoints

# rows of text that a model soon learns by heart
FEW_PAIRS = 20_000
DROPOUT_OF_FEW = 0.2
TOKENS_PER_BATCH = 1024
TOKENS_OF_MANY = 2048
# minutes that a run takes where nobody says, by pairs: so many, times the power of how many more
# there are
FEWEST_MINUTES, MOST_MINUTES = 10.0, 120.0
MINUTES_OF_FEW, POWER = 20.0, 0.35
FEW = 5_000
USUAL_PEAK = (
    1.5e11  # multiplications and additions a second of two cores, where none is known
)
# keys that a width must fit, and those that a learning rate must
OF_WIDTH = {
    "model.d_model",
    "model.num_heads",
    "model.num_key_value_heads",
    "model.head_dim",
}
OF_RATE = {"training.schedule", "training.optimizer"}
CHOSEN = "chosen"  # the key of a run's record


@dataclass(frozen=True)
class Size:
    """A width, its heads, the learning rate that suits it, and from how many multiplications and
    additions of training on it is better than a narrower one.
    """

    d_model: int
    num_heads: int
    learning_rate: float
    least_flop: float

    def values(self) -> dict[str, Any]:
        """Return the keys of a recipe."""
        return {
            "model.d_model": self.d_model,
            "model.d_ff": 4 * self.d_model,
            "model.num_heads": self.num_heads,
            "training.learning_rate": self.learning_rate,
        }


SIZES = (
    Size(128, 4, 0.003, 0.0),
    Size(192, 6, 0.002, 8e13),
    Size(256, 8, 0.0015, 4e14),
)


@dataclass(frozen=True)
class Sizing:
    """The choice: values of a recipe's keys, and the minutes of the run where nobody said
    them.
    """

    values: Mapping[str, Any]
    minutes: float | None = None
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return what is kept with the run, so that it goes on with the same."""
        return {CHOSEN: {**self.values}} if self.values else {}


NOTHING = Sizing({})


def choose_sizing(request: Request, num_pairs: int, num_processes: int) -> Sizing:
    """Choose what `request` leaves open, for a run on so many pairs.

    A run that has begun keeps what was chosen then. Without minutes the same is chosen on each
    machine; of several processes none measures, as all must choose the same.
    """
    if request.own_keys is None or not isinstance(request.recipe, TranslationRecipe):
        return NOTHING
    if not isinstance(request.recipe.model, Seq2SeqSection):  # a recurrent one
        return NOTHING
    begun = _as_begun(request)
    if begun is not None:
        return Sizing(_open(begun, request.own_keys))
    has_end = request.recipe.training.max_steps is not None
    minutes = request.minutes or usual_minutes(num_pairs)
    peak = num_processes * USUAL_PEAK
    if num_processes == 1 and request.minutes is not None:
        peak = _peak(request.recipe) or USUAL_PEAK
    flop = 60 * minutes * peak
    values = sizes(num_pairs, flop)
    if request.start_from is not None:  # its shape is that of the other model
        batch = "batches.tokens_per_batch"
        values = {batch: values[batch]}
    notes: tuple[str, ...] = ()
    chosen = None
    if request.minutes is None and not has_end:
        chosen = minutes
        pairs = counted(num_pairs, "pairs")
        notes = (f"{minutes:g} minutes for {pairs}; --minutes says otherwise",)
    return Sizing(_open(values, request.own_keys), chosen, notes)


def sizes(num_pairs: int, flop: float) -> dict[str, Any]:
    """Return the keys of a translator for so many pairs, and so many multiplications and additions
    at the rate of large matrix products.
    """
    size = [size for size in SIZES if size.least_flop <= flop][-1]
    is_narrowest = size is SIZES[0]
    tokens = TOKENS_PER_BATCH if is_narrowest else TOKENS_OF_MANY
    values = {**size.values(), "batches.tokens_per_batch": tokens}
    if num_pairs < FEW_PAIRS:
        values["model.dropout"] = DROPOUT_OF_FEW
    return values


def usual_minutes(num_pairs: int) -> float:
    """Return how long a run takes on so many pairs, where nobody says it."""
    minutes = MINUTES_OF_FEW * (max(num_pairs, 1) / FEW) ** POWER
    return float(round(min(max(minutes, FEWEST_MINUTES), MOST_MINUTES)))


def _peak(recipe: TranslationRecipe) -> float:
    """Measure this machine's rate of matrix products."""
    settings = recipe.training
    machine = torch_machine.choose_machine(
        settings.precision, settings.threads, settings.kernels
    )
    return torch_machine.measured(machine).peak_flops


def _as_begun(request: Request) -> Mapping[str, Any] | None:
    """Return what the run in the folder chose, if it has saved a step."""
    folder = RunFolder(request.out)
    if request.fresh or not Checkpoints(folder.checkpoints, 1).holds_any:
        return None
    try:
        record = durable.read_json(folder.recipe)
    except FolderError:
        return None  # refused where it is compared
    return dict(record.get(CHOSEN, {}))


def _open(values: Mapping[str, Any], own_keys: Set[str]) -> dict[str, Any]:
    """Return the values of keys that nobody set, nor another that excludes them."""
    excluded = own_keys
    if "batches.batch_size" in own_keys:
        excluded = own_keys | {"batches.tokens_per_batch"}
    if own_keys & OF_WIDTH:  # what was not set then fits the default width
        excluded = excluded | SIZES[0].values().keys()
    if own_keys & OF_RATE:
        excluded = excluded | {"training.learning_rate"}
    return {key: value for key, value in values.items() if key not in excluded}
