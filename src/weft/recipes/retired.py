"""Keys that recipes no longer have, so that older recipes, runs and model folders still open.

docs/experiments.md says why each key is gone, and in which commit it stood last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.recipes.problems import as_written

PAGE = (
    "a run that began with it continues in the version that docs/experiments.md names"
)


@dataclass(frozen=True)
class Retired:
    """A key that is gone: `neutral` is the value without effect, `remedy` what to do instead."""

    neutral: Any
    remedy: str


_AGAINST_LEARNING_BY_HEART = (
    "models were worse with it; model.dropout and training.r_drop are what helps"
)
RETIRED = {
    "batches.bpe_dropout": Retired(0.0, _AGAINST_LEARNING_BY_HEART),
    "batches.word_dropout": Retired(0.0, _AGAINST_LEARNING_BY_HEART),
    "model.layer_dropout": Retired(0.0, _AGAINST_LEARNING_BY_HEART),
    "training.trackio": Retired(
        None, "TensorBoard and run/metrics.jsonl have the same curves"
    ),
}
# a value that is gone, and the one that is read in its place
REPLACED = {("training.precision", "tf32"): "float32"}


def without_retired(tree: Any) -> tuple[Any, list[str]]:
    """Return a recipe's tree without the keys that are gone, and one line for each in use.

    A key with its neutral value is left out without a word.
    """
    if not isinstance(tree, Mapping):
        return tree, []
    kept = {}
    problems: list[str] = []
    for name, section in tree.items():
        if isinstance(section, Mapping):
            kept[name] = _kept_keys(name, section, problems)
        else:
            kept[name] = section
    return kept, problems


def without_training_keys(config: Any) -> Any:
    """Return a model folder's config without the keys of its shape that are gone.

    All of them had a part in training alone, so that the model is the same without.
    """
    shape = config.get("model") if isinstance(config, Mapping) else None
    if not isinstance(shape, Mapping):
        return config
    kept = {key: shape[key] for key in shape if f"model.{key}" not in RETIRED}
    return {**config, "model": kept}


def _kept_keys(
    name: str, section: Mapping[str, Any], problems: list[str]
) -> dict[str, Any]:
    """Return the keys of a section that recipes still have; add a line for each other in use."""
    kept = {}
    for leaf, value in section.items():
        key = f"{name}.{leaf}"
        gone = RETIRED.get(key)
        if gone is None:
            kept[leaf] = _replaced(key, value)
        elif value != gone.neutral:
            problems.append(
                f"{key} = {as_written(value):.60}: no longer a key of recipes; leave it out, or set it to "
                f"{as_written(gone.neutral)} ({gone.remedy}); {PAGE}"
            )
    return kept


def _replaced(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return REPLACED.get((key, value), value)
