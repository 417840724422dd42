"""The origin of a run, written down when it begins and compared when it resumes.

The record is `run/recipe.json`: the recipe, hashes of the texts, the model to start from, the
teacher, and the files and the command as they were named.
"""

import hashlib
import itertools
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from weft.config import FOLLOWS_LENGTH, MAY_CHANGE, Recipe, recipe_difference
from weft.data.train_text import Worth
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.layout import refuse_pack_name
from weft.folder.model_folder import VERSION, RunFolder, is_finished
from weft.recipes.file import build_recipe, with_values
from weft.recipes.problems import as_written
from weft.run.begun import read_record
from weft.run.record import ENDED, read_verdict
from weft.training.checkpoint import Checkpoints

# in the record of a run that began with --fresh, before the new name of the folder
SET_ASIDE = "--fresh: an earlier run was set aside as "
MOST_DIFFERENCES = 8  # shown
# in the record of a run from before data.seed was a key
SPLIT_BY_TRAINING = "split_by_training_seed"
# packages that the same weights need in the same version
BIT_FOR_BIT = ("torch", "numpy", "tokenizers")


def refuse_foreign(out: Path) -> None:
    """Raise UsageError where `out` is a file, or a folder with something else in it than a run."""
    refuse_pack_name(out)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --output names a folder")
    folder = RunFolder(out)
    if not out.is_dir() or folder.recipe.is_file() or _is_barely_begun(folder):
        return
    is_lost = folder.folder.is_dir()
    why = f"; {folder.recipe} is missing, restore it" if is_lost else ""
    raise UsageError(
        f"{out} is not empty and holds no run to resume{why}; give --output another folder"
    )


def _is_barely_begun(folder: RunFolder) -> bool:
    """Return whether a folder is empty, or holds only what a run leaves before its first file.

    Before that file a teacher may have translated, or the steps of a course have been gone.
    """
    if any(path != folder.folder for path in folder.model_folder.iterdir()):
        return False
    early = {folder.lock}
    if folder.distilled.is_dir():
        early |= {folder.distilled, folder.verdict}
    if folder.course.is_dir():
        early |= {folder.course, folder.verdict}
    inside = [*folder.folder.iterdir()] if folder.folder.is_dir() else []
    return all(
        path in early or path.name.startswith(durable.TEMPORARY) for path in inside
    )


def set_aside(out: Path) -> Path:
    """Move a run's folder aside, so that nothing is lost; return its new name."""
    free = (out.with_name(f"{out.name}.before-{n}") for n in itertools.count(1))
    aside = next(path for path in free if not path.exists())
    durable.rename(out, aside)
    return aside


def begin_or_resume(
    folder: RunFolder,
    recipe: Recipe,
    origin: Mapping[str, Any],
    latest: Mapping[str, Any],
    overrides: Sequence[str],
    allow_data_change: bool,
    note: Callable[[str], None],
) -> bool:
    """Write down what the run is trained from, or compare it; True where the run has begun before.

    `origin` describes the texts, the model to start from and the teacher that wrote the text.
    `latest` has the files and the command as they were named; of them the latest are kept, so that
    `weft finish` finds them again. `overrides` say what was allowed against a check; they stay in
    the record. `note` is told of another run, begun in this folder and never saved, whose place
    this one takes.

    Raises UsageError, with the difference, where the folder's run was begun from something else and
    has saved a step. Only `MAY_CHANGE` may change, `FOLLOWS_LENGTH` with the length, and the
    texts with `allow_data_change`.
    """
    facts = {
        "recipe": recipe.model_dump(mode="json"),
        **origin,
        **latest,
        "weft_version": VERSION,
        "versions": {name: metadata.version(name) for name in BIT_FOR_BIT},
    }
    if not folder.recipe.is_file():
        _begin(folder, {**facts, "overrides": [*overrides]})
        return False
    kept = _with_data_seed(read_record(folder))
    changed_texts = [*_text_lines(kept["texts"], origin["texts"])]
    refused_texts = [] if allow_data_change else changed_texts
    begun = build_recipe(kept["recipe"], str(folder.model_folder))
    # Another recipe (another seed, say) can hold out other pairs: then the texts differ for that
    # reason alone, and it is not said.
    differences = [*_recipe_lines(begun, recipe)]
    if not differences:
        differences = [*refused_texts, *_start_lines(kept, facts)]
    has_saved = Checkpoints(folder.checkpoints, 1).holds_any
    if differences and not has_saved and not is_finished(folder.model_folder):
        # nothing is lost: it has never saved a step
        shown = _some_of(differences)
        note(
            f"note: {folder.model_folder} held a run that had saved no step and differs ({shown}); "
            "this one takes its place"
        )
        _begin(folder, {**facts, "overrides": [*overrides]})
        return False
    if begun.task != recipe.task:
        raise UsageError(
            f"{folder.model_folder} holds a run of {begun.task}, and this is {recipe.task}; give another --output"
        )
    may_allow = differences == changed_texts and not origin.get("teacher")
    _refuse_differences(folder.model_folder, differences, may_allow)
    is_same = facts["recipe"] == begun.model_dump(mode="json")
    is_over = _is_over(folder) and is_same
    if changed_texts and is_over:
        raise UsageError(
            f"{folder.model_folder} is finished, and the new text was not trained on; start over with --fresh, "
            f"or train its model further on it with --from {folder.model_folder} and another --output"
        )
    known = [*kept.get("overrides", []), *overrides]
    if changed_texts:
        reached = Checkpoints(folder.checkpoints, 1).newest_step
        texts = "; ".join(changed_texts)
        known.append(f"--allow-data-change: {texts}, at step {reached}")
    record = kept if is_over else {**kept, **latest}
    record["recipe"] = facts["recipe"]
    record["texts"] = origin["texts"] if changed_texts else kept["texts"]
    record["overrides"] = known
    durable.write_json(folder.recipe, record)
    return True


def _refuse_differences(out: Path, differences: Sequence[str], may_allow: bool) -> None:
    """Raise UsageError where the folder's run was begun from something else.

    `may_allow` says that --allow-data-change would let it resume.
    """
    if not differences:
        return
    shown = _some_of(differences)
    is_allowed = may_allow and not is_finished(out)
    hint = ", or allow it with --allow-data-change" if is_allowed else ""
    raise UsageError(
        f"{out} holds a run that differs: {shown}; continue with the same, give another --output, or start over "
        f"with --fresh{hint}"
    )


def _is_over(folder: RunFolder) -> bool:
    """Return whether the folder's run came to its end."""
    verdict = read_verdict(folder.verdict)
    return verdict is not None and verdict.outcome in ENDED


def read_task(folder: RunFolder) -> str:
    """Read which task the run is for."""
    return build_recipe(read_record(folder)["recipe"], str(folder.recipe)).task


def _with_data_seed(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record, with `data.seed` where it is from before that was a key of its own."""
    recipe = record["recipe"]
    if not isinstance(recipe, dict) or "seed" in recipe.get("data", {}):
        return record
    data = {**recipe.get("data", {}), "seed": recipe.get("training", {}).get("seed", 1)}
    return {**record, "recipe": {**recipe, "data": data}, SPLIT_BY_TRAINING: True}


def read_overrides(folder: RunFolder) -> list[str]:
    """Read what was allowed against a check, at this start of the run or an earlier one."""
    return list(durable.read_json(folder.recipe).get("overrides", []))


def with_own_split(out: Path, recipe: Recipe) -> Recipe:
    """Return the recipe with the seed by which the folder's run held text out.

    A run from before `data.seed` was a key held out by `training.seed`; others change nothing.
    """
    try:
        record = durable.read_json(RunFolder(out).recipe)
        seed = record["recipe"]["training"]["seed"]
        is_older = "seed" not in record["recipe"]["data"] or SPLIT_BY_TRAINING in record
        return with_values(recipe, {"data.seed": seed}) if is_older else recipe
    except (FolderError, KeyError, TypeError):
        # no run, or a damaged record, which is refused where it is compared
        return recipe


def checkpoint_facts(folder: RunFolder) -> dict[str, str]:
    """Return what every checkpoint says of its origin: the run's id, hashes of recipe and texts."""
    record = durable.read_json(folder.recipe)
    hashes = {
        key: hashlib.sha256(durable.to_json(record[key]).encode()).hexdigest()
        for key in ("recipe", "texts")
    }
    return {"run": str(record.get("run", "")), **hashes}


def _begin(folder: RunFolder, facts: Mapping[str, Any]) -> None:
    """Write down what a run begins from, in a folder emptied of a start that never saved a step.

    What a teacher wrote stays: it is the run's text.
    """
    durable.make_folder(folder.folder)
    for path in folder.folder.iterdir():
        if path in (folder.lock, folder.distilled, folder.course):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    durable.write_json(folder.recipe, {"run": uuid.uuid4().hex, **facts})


def _some_of(differences: Sequence[str]) -> str:
    shown = [*differences[:MOST_DIFFERENCES]]
    more = len(differences) - MOST_DIFFERENCES
    if more > 0:
        shown.append(f"and {more} more")
    return "; ".join(shown)


def _recipe_lines(old: Recipe, new: Recipe) -> Iterator[str]:
    changed = recipe_difference(old, new)
    may_change = {*MAY_CHANGE}
    if "training.max_steps" in changed:
        may_change.add(FOLLOWS_LENGTH)
    for key, (before, now) in changed.items():
        if key not in may_change:
            yield f"{key} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    return as_written(value) if value is None or isinstance(value, bool) else str(value)


def _text_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for part in sorted(old.keys() | new.keys()):
        before = old.get(part) or {}
        now = new.get(part) or {}
        if before.get("sha256") != now.get("sha256"):
            yield f"the {part} text was {_size(before)}, is {_size(now)}"
        elif _worths(before) != _worths(now):
            yield f"the sources of {part} were {_worths(before)}, are {_worths(now)}"


def _start_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["from"] != new["from"]:
        yield f"the model to start from was {_start(old)}, is {_start(new)}"
    before, now = _teacher(old), _teacher(new)
    if before != now:
        yield f"the teacher was {before}, is {now}"


def _teacher(facts: Mapping[str, Any]) -> str:
    return str((facts.get("teacher") or {}).get("teacher", "none"))


def _start(facts: Mapping[str, Any]) -> str:
    """Name the model to start from: its folder, where that is known, and its weights' hash."""
    if not facts["from"]:
        return "none"
    sources = facts.get("sources")
    folder = sources.get("from") if isinstance(sources, dict) else None
    return f"{folder or 'another'} (weights sha256 {facts['from'][:8]})"


def _worths(part: Mapping[str, Any]) -> str:
    """Say what the rows of each file are worth, whatever its name."""
    said = []
    for facts in part.get("worths", ()):
        worth = Worth(facts["weight"], facts["tag"], facts["made"])
        said.append(f"{facts['rows']:,} ({worth.describe() or 'plain'})")
    return " and ".join(said) or "plain"


def _size(part: Mapping[str, Any] | None) -> str:
    return f"{part['size']} (sha256 {part['sha256'][:8]})" if part else "none"
