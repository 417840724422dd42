"""A model from several: the mean of the weights of a run's checkpoints, or of like models.

Source: Vaswani et al. 2017, section 6.1, where the last 5 or 20 checkpoints are averaged.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.layout import AVERAGE, refuse_pack_name
from weft.folder.model_files import files_of, read_card
from weft.folder.model_folder import (
    WEIGHTS,
    Contents,
    RunFolder,
    StoredModel,
    keep_train_hashes,
    open_model_folder,
    save_model_folder,
)
from weft.run.card import without_folders, without_run
from weft.training.checkpoint import Checkpoints, load_state


def average(folders: Sequence[Path], out: Path, last: int | None = None) -> list[str]:
    """Write `out`, a model with the mean of several models' weights; the names of those that went
    into it.

    Of one folder these are the checkpoints that its run keeps, the newest `last` of them (None:
    all, also the best one, however old); of several folders their own weights. Everything else is
    the first folder's. Raises UsageError where there are not two to take the mean of, or `out`
    holds something; FolderError where a folder is damaged, or unlike the first.
    """
    refuse_pack_name(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--output {out}: holds something already; give a new folder")
    if last is not None and (len(folders) > 1 or last < 2):
        raise UsageError(
            "--last is how many checkpoints of one run are averaged, at least 2"
        )
    models = [_opened(folder) for folder in folders]
    if len(folders) == 1:
        paths = _checkpoints(folders[0], last)
        weights = _mean((load_state(path).weights_to_use for path in paths), models[0])
    else:
        for other in models[1:]:
            _refuse_unlike(models[0], other)
        paths = list(folders)
        weights = _mean(map(_weights, models), models[0])
    names = [str(path) for path in paths]
    _write(models[0], out, weights, names)
    return names


def about_starts(folders: Sequence[Path]) -> str | None:
    """Say that models were trained from different starts, so that their mean is of little use."""
    starts = set()
    for folder in folders:
        try:
            starts.add(durable.read_json(RunFolder(folder).recipe).get("from"))
        except (FolderError, AttributeError):
            return None
    if len(folders) < 2 or (len(starts) == 1 and None not in starts):
        return None
    return "these models were trained from different starts: the mean of such weights is rarely useful"


def _opened(folder: Path) -> StoredModel:
    stored = open_model_folder(folder)
    if stored.config.weights == "int8":
        raise UsageError(f"{folder}: is in int8; give the folder that it was made from")
    return stored


def _checkpoints(folder: Path, last: int | None) -> list[Path]:
    """Return the checkpoints that a run keeps, the newest first."""
    found = Checkpoints(RunFolder(folder).checkpoints, keep=1).newest_first()[:last]
    if len(found) < (needed := max(last or 0, 2)):
        held = f"{len(found)} checkpoint{'' if len(found) == 1 else 's'}"
        raise UsageError(
            f"{folder}: holds {held} of a run, and {needed} are needed; train with training.keep_checkpoints="
            f"{needed} and a training.save_every that is at most a {needed}th of the steps, or give several folders"
        )
    return found


def _refuse_unlike(first: StoredModel, other: StoredModel) -> None:
    if first.config.task != other.config.task:
        tasks = f"holds a model for {other.config.task}, {first.folder} one for {first.config.task}"
        raise FolderError(f"{other.folder}: {tasks}; only like models can be averaged")
    differing = first.config.differences(other.config)
    if differing:
        key, (value, other_value) = min(differing.items())
        raise FolderError(
            f"{other.folder}: has {key} = {other_value}, {first.folder} has {value}; only like models can be averaged"
        )
    if first.tokenizers != other.tokenizers:
        raise FolderError(
            f"{other.folder}: has another tokenizer than {first.folder}; give models that share one"
        )


def _weights(stored: StoredModel) -> dict[str, Tensor]:
    """Load the weights of a model."""
    arrays = stored.own_arrays()
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def _mean(
    models: Iterable[Mapping[str, Tensor]], stored: StoredModel
) -> dict[str, Tensor]:
    """Average weights in float64, with one model in memory at a time."""
    sums: dict[str, Tensor] = {}
    count = 0
    for weights in _alike(models, stored):
        for name, tensor in weights.items():
            sums[name] = (
                sums[name] + tensor.double() if name in sums else tensor.double()
            )
        count += 1
    return {name: (total / count).float() for name, total in sums.items()}


def _alike(
    models: Iterable[Mapping[str, Tensor]], stored: StoredModel
) -> Iterator[Mapping[str, Tensor]]:
    """Raise FolderError for weights of other names or shapes than the model's own."""
    own = stored.own_arrays()
    expected = {name: array.shape for name, array in own.items()}
    for weights in models:
        if {name: tuple(tensor.shape) for name, tensor in weights.items()} != expected:
            raise FolderError(
                f"{stored.folder}: what is to be averaged has other weights than its model"
            )
        yield weights


def _write(
    stored: StoredModel, out: Path, weights: dict[str, Tensor], names: Sequence[str]
) -> None:
    card = _card(stored, names)
    facts = {
        "averaged": len(names),
        "first": stored.files.weights_sha256(),
    }
    arrays = {name: tensor.numpy() for name, tensor in weights.items()}
    contents = Contents(
        arrays, stored.tokenizers, words=stored.words(), profiles=stored.profiles()
    )
    save_model_folder(out, stored.config, contents, card, facts)
    keep_train_hashes(stored.folder, out)


def _card(stored: StoredModel, names: Sequence[str]) -> str:
    """Return the card of a mean: what it is and how to use it, then the first model's, named as
    that.
    """
    first = read_card(stored.folder) or "# A model\n"
    head, *sections = re.split(r"^(?=## )", without_run(first), flags=re.M)
    use = [section for section in sections if section.startswith("## Use\n")]
    rest = [section for section in sections if section not in use]
    listed = "\n".join(f"- {_named(Path(name))}" for name in names)
    top = "".join([head, *use]).rstrip("\n")
    card = f"""{top}

## Averaged

The weights are the mean of those of:

{listed}

The mean itself was not scored; `weft evaluate` scores it.
"""
    if rest:
        of_first = re.sub(r"^(?=#+ )", "#", "".join(rest), flags=re.M).strip("\n")
        folder = stored.folder.resolve().name
        card += f"""
## The card of {folder}

All of this section is about {folder}, whose tokenizers and settings this model has, and not about the mean.

{of_first}
"""
    return without_folders(card)


def _named(folder: Path) -> str:
    """Return the last name of a model or checkpoint with the hash of the weights that were taken
    from it.
    """
    files = files_of(folder).manifest()["files"]
    weights = AVERAGE if AVERAGE in files else WEIGHTS
    return (
        f"{folder.resolve().name} (its weights' sha256 {files[weights]['sha256'][:16]})"
    )
