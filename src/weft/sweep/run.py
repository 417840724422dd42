"""A run of a sweep: what trains it, what is kept beside its folder, and what came of it.

The folder is that of `weft train`. Beside `seed-1` stand `seed-1.log`, all that its process said,
and `seed-1.json`: what the run was planned with, how long its processes took, how the last ended.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from math import prod
from pathlib import Path
from typing import Any

from weft.config import FOLLOWS_LENGTH, MAY_CHANGE, Recipe, recipe_difference
from weft.data.formats.shards import shards_of
from weft.data.formats.source import open_file
from weft.data.train_text import parse_texts, split_at_comma
from weft.errors import FolderError, Interrupted, LeftAtOnce, UsageError
from weft.folder import durable
from weft.folder.arrays import stored_arrays
from weft.folder.layout import DONE, STOPPED_EARLY, WEIGHTS, RunFolder, is_finished
from weft.folder.mapped import mapped
from weft.recipes.file import build_recipe
from weft.recipes.problems import as_written

PARTS = ("dev", "test")
# keys that neither what is learned nor how long depends on
_OF_THE_MACHINE = {"training.parallel", "training.save_every", "training.threads"}
_STOPPED = (Interrupted.exit_code, LeftAtOnce.exit_code)
_ERROR = re.compile(r"weft: (.+)")


@dataclass(frozen=True, eq=False)
class Run:
    """A row with a seed on a text; `arguments` are those of `weft train`.

    `texts` are hashes of its files, by the part that they are.
    """

    text: str
    row: str
    seed: int
    folder: Path
    arguments: tuple[str, ...]
    recipe: Recipe
    texts: Mapping[str, str] = field(default_factory=dict)
    minutes: float | None = None

    @property
    def name(self) -> str:
        """Return what the run is called: its folder below that of the sweep."""
        return "/".join(self.folder.parts[-3:])

    @property
    def log(self) -> Path:
        """Return the file of all that its process says."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def record(self) -> Path:
        """Return the file of what it was planned with, and of how it ended."""
        return self.folder.with_name(f"{self.folder.name}.json")


@dataclass(frozen=True)
class Outcome:
    """The end of a run, or how far it came: "new", "begun", "failed" or "done".

    `scores` are those of its model by part and name, `seconds` those of all its processes,
    `computed` what its numbers depend on besides the recipe: the machine's precision and the like.
    `scored_on` are hashes of the texts by part.
    """

    state: str
    reason: str = ""
    exit_code: int = 0
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0
    parameters: int = 0
    computed: Mapping[str, Any] = field(default_factory=dict)
    scored_on: Mapping[str, str] = field(default_factory=dict)


def hash_of_texts(items: Iterable[str | None]) -> str:
    """Return a hash of files as `weft train` is given them; "" of none. Raises DataError where one
    is missing.
    """
    digest = sha256()
    is_any = False
    for item in items:
        for text in parse_texts(item or ()):
            digest.update(f"{text.weight}:{text.tag}\n".encode())
            for path in split_at_comma(text.data):
                for file in shards_of(path) or [path]:
                    is_any = True
                    with open_file(file) as content:
                        digest.update(file_digest(content, "sha256").digest())
    return digest.hexdigest() if is_any else ""


def outcome_of(run: Run) -> Outcome:
    """Return what came of a run, by its folder and its record."""
    kept = _kept(run)
    code = kept.get("exit_code")
    seconds = float(kept.get("seconds", 0.0))
    verdict = _object(RunFolder(run.folder).verdict)
    if not kept:
        return Outcome("new")
    if code not in (None, 0, *_STOPPED):
        reason = str(kept.get("reason", ""))
        return Outcome("failed", reason, int(code), seconds=seconds)
    is_over = verdict.get("outcome") in (DONE, STOPPED_EARLY)
    if code != 0 or not is_over or not is_finished(run.folder) or _length(run, kept):
        return Outcome("begun", seconds=seconds)
    return Outcome(
        "done",
        scores={part: _scores(verdict.get(part), part) for part in PARTS},
        steps=int(verdict.get("step", 0)),
        seconds=seconds,
        parameters=_parameters(run.folder),
        computed=_computed(RunFolder(run.folder).machine),
        scored_on=_scored_on(RunFolder(run.folder).recipe),
    )


def refuse_other_run(run: Run, where: str) -> None:
    """Raise UsageError where a run's folder was begun with another recipe or other text.

    A run may become longer.
    """
    kept = _kept(run)
    if not kept or not RunFolder(run.folder).recipe.is_file():
        return
    changed = []
    for key, (before, now) in _changes(run, kept).items():
        if key not in {*MAY_CHANGE, FOLLOWS_LENGTH}:
            changed.append(f"{key} was {as_written(before)}, is {as_written(now)}")
    minutes = kept.get("minutes")
    if minutes != run.minutes:
        now = as_written(run.minutes)
        changed.append(f"minutes was {as_written(minutes)}, is {now}")
    texts = kept.get("texts", {})
    for part in sorted({*texts, *run.texts}):
        if texts.get(part) != run.texts.get(part):
            changed.append(f"the {part} text is another one")
    if changed:
        raise UsageError(
            f"{where}: {run.folder} was begun otherwise: {'; '.join(changed)}; give the row another name, the sweep "
            "another output, or remove that folder"
        )


def begin(run: Run) -> None:
    """Write down with what a run is begun or continued."""
    durable.make_folder(run.folder.parent)
    facts = {
        "recipe": run.recipe.model_dump(mode="json"),
        "texts": dict(run.texts),
        "minutes": run.minutes,
        "seconds": _kept(run).get("seconds", 0.0),
        "exit_code": None,
    }
    durable.write_json(run.record, facts)


def end(run: Run, code: int, seconds: float) -> Outcome:
    """Write down how a run's process ended, after so many seconds; return what came of it."""
    facts = _kept(run)
    facts["exit_code"] = code
    facts["reason"] = _reason(run, code) if code not in (0, *_STOPPED) else ""
    facts["seconds"] = round(float(facts.get("seconds", 0.0)) + seconds, 1)
    durable.write_json(run.record, facts)
    return outcome_of(run)


def _reason(run: Run, code: int) -> str:
    """Return why a process failed: the last error that it said, or the signal that ended it."""
    if code < 0:
        memory = "; perhaps the memory was full: try --jobs 1" if code == -9 else ""
        return f"ended by signal {-code}{memory}"
    said = _ERROR.findall(run.log.read_text("utf-8", "replace"))
    if not said:
        return f"ended with exit code {code}: see {run.log}"
    return str(said[-1])


def _kept(run: Run) -> dict[str, Any]:
    return _object(run.record)


def _object(path: Path) -> dict[str, Any]:
    """Read an object of JSON; {} where there is none, or it is damaged."""
    try:
        found = durable.read_json(path)
    except FolderError:
        return {}
    return found if isinstance(found, dict) else {}


def _changes(run: Run, kept: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys of the recipe that differ from those that the run was planned with."""
    before = build_recipe(kept.get("recipe", {}), str(run.record))
    return recipe_difference(before, run.recipe)


def _length(run: Run, kept: Mapping[str, Any]) -> set[str]:
    """Return the changed keys by which the run would be of another length."""
    return _changes(run, kept).keys() - _OF_THE_MACHINE


def _scores(found: Any, part: str) -> dict[str, float]:
    """Return the scores among what a verdict has of a part of the text."""
    if not isinstance(found, dict):
        return {}
    scores = {}
    for name, value in found.items():
        if isinstance(value, float):
            scores[name.removeprefix(f"{part}_")] = value
    return scores


def _parameters(folder: Path) -> int:
    """Count the numbers of a model's weights."""
    path = folder / WEIGHTS
    stored = stored_arrays(mapped(path), path).values()
    return sum(prod(array.shape) for array in stored)


def _computed(path: Path) -> dict[str, Any]:
    machine = _object(path)
    names = ("device", "precision", "kernels", "threads")
    return {name: machine[name] for name in names if name in machine}


def _scored_on(path: Path) -> dict[str, str]:
    """Return the hashes of the texts that a run's scores are of."""
    texts = _object(path).get("texts")
    if not isinstance(texts, dict):
        return {}
    parts = {part: texts.get(part) or {} for part in PARTS}
    return {part: str(facts.get("sha256", "")) for part, facts in parts.items()}
