"""What a run writes about itself: what it is trained from, and how it ended."""

import contextlib
import hashlib
import itertools
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from weft.config import Recipe, recipe_difference
from weft.console import stages
from weft.data.check.finding import counted
from weft.errors import FolderError, Interrupted, UsageError, WeftError
from weft.folder import durable
from weft.folder.layout import DONE, STOPPED_EARLY
from weft.folder.model_folder import VERSION, RunFolder, is_finished
from weft.recipes.file import build_recipe, with_values
from weft.recipes.problems import as_written
from weft.training.checkpoint import Checkpoints, Progress

MAY_CHANGE = {
    "training.max_steps",
    "training.patience",
    "training.save_every",
    "training.parallel",
    "training.trackio",
    "training.threads",
}
MOST_DIFFERENCES = 8  # shown
ENDED = (DONE, STOPPED_EARLY)
# in the record of a run from before data.seed was a key
SPLIT_BY_TRAINING = "split_by_training_seed"
# packages that the same weights need in the same version
BIT_FOR_BIT = ("torch", "numpy", "tokenizers")
READING = "reading"  # the first stage, before the run has its folder


@dataclass
class Verdict:
    """How a run ended: done, stopped early, interrupted or failed; never better than the truth.

    A run that `weft finish` made a model of has "finished early" at `step` of `max_steps` (0: not
    known). While it runs, the outcome is "running"; it stays so where the process was killed.
    `stage` is what was being done last; `reason` is one line; `dev` and `test` hold scores,
    `judgement` what the model is good for (`weft.run.judging`); `notes` say what a reader of them
    should know.
    """

    outcome: str = "failed"
    exit_code: int = 1
    stage: str = READING
    reason: str = ""
    step: int = 0
    max_steps: int = 0
    saved_step: int = 0
    best_step: int = 0
    evaluations_since_best: int = 0
    seconds: float = 0.0
    dev: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    test_summary: str = ""
    judgement: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def stands_at(self, progress: Progress, saved_step: int) -> None:
        """Take over how far training has come, and the step of the newest checkpoint."""
        self.step, self.saved_step, self.best_step = (
            progress.step,
            saved_step,
            progress.best_step,
        )
        self.evaluations_since_best = progress.evaluations_since_best
        self.dev = dict(progress.best_scores)

    def ends(self, outcome: str) -> None:
        """Say that training came to its end: "done" or "stopped early"."""
        self.outcome, self.exit_code, self.reason = (
            outcome,
            0,
            f"{outcome} after {counted(self.step, 'steps')}",
        )


@contextlib.contextmanager
def writing_verdict(path: Path | None) -> Iterator[Verdict]:
    """Hand out a verdict and write it, where there is a path, when the block ends, however it ends.

    A block that never came to `enter_stage` writes nothing: the folder is not there yet, or is not
    its own.
    """
    verdict, started = Verdict(), time.monotonic()
    try:
        yield verdict
    except WeftError as error:
        verdict.outcome = "interrupted" if isinstance(error, Interrupted) else "failed"
        verdict.exit_code, verdict.reason = error.exit_code, str(error)
        raise
    except KeyboardInterrupt:
        verdict.outcome, verdict.exit_code, verdict.reason = (
            "interrupted",
            130,
            "left at once by Ctrl-C",
        )
        raise
    except Exception as error:
        verdict.outcome, verdict.reason = "failed", f"{type(error).__name__}: {error}"
        raise
    finally:
        verdict.seconds = round(time.monotonic() - started, 1)
        if path is not None and verdict.stage != READING:
            try:
                durable.write_json(path, asdict(verdict))
            except FolderError:
                # else an error is on its way that says more
                if verdict.outcome in ENDED:
                    raise


def enter_stage(path: Path | None, verdict: Verdict, stage: str) -> None:
    """Say and write down what is done next, so that nothing else is read where this process is
    killed.
    """
    if stage != verdict.stage:
        stages.enter(stage)
    verdict.outcome, verdict.stage = "running", stage
    verdict.reason = (
        f"running as process {os.getpid()}, or killed; the same command goes on"
    )
    if path is not None:
        durable.write_json(path, asdict(verdict))


def keep_up(path: Path | None, verdict: Verdict, progress: Progress) -> None:
    """Write down that a checkpoint was saved just now: what is left where this process is
    killed.
    """
    verdict.stands_at(progress, progress.step)
    enter_stage(path, verdict, verdict.stage)


def read_verdict(path: Path) -> Verdict | None:
    """Return the verdict of an earlier start.

    None where there was none, or it is damaged: training does not need it.
    """
    try:
        return Verdict(**durable.read_json(path))
    except (FolderError, TypeError):
        return None


def refuse_foreign(out: Path) -> None:
    """Raise UsageError where `out` is a file, or a folder with something else in it than a run."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --output names a folder")
    if (
        out.is_dir()
        and not RunFolder(out).recipe.is_file()
        and not _is_barely_begun(out)
    ):
        why = (
            f"; {RunFolder(out).recipe} is missing, restore it"
            if RunFolder(out).folder.is_dir()
            else ""
        )
        raise UsageError(
            f"{out} is not empty and holds no run to go on with{why}; give --output another folder"
        )


def _is_barely_begun(out: Path) -> bool:
    """Return whether a folder is empty, or holds only what a run leaves that was killed before its
    first file.

    Before that file a teacher may have translated.
    """
    files = RunFolder(out)
    inside = [*files.folder.iterdir()] if files.folder.is_dir() else []
    early = (
        {files.lock, files.distilled, files.verdict}
        if files.distilled.is_dir()
        else {files.lock}
    )
    return all(p == files.folder for p in out.iterdir()) and all(
        p in early or p.name.startswith(durable.TEMPORARY) for p in inside
    )


def set_aside(out: Path) -> Path:
    """Give a run's folder another name beside it, so that nothing is lost; the new name."""
    free = (out.with_name(f"{out.name}.before-{n}") for n in itertools.count(1))
    aside = next(path for path in free if not path.exists())
    durable.rename(out, aside)
    return aside


def begin_or_go_on(
    out: Path,
    recipe: Recipe,
    origin: Mapping[str, Any],
    *,
    command: str,
    sources: Mapping[str, Any],
    overrides: Sequence[str] = (),
    allow_data_change: bool = False,
) -> bool:
    """Write down what the run is trained from, or compare it; True where the run has begun before.

    `origin` describes the texts, the model it starts from and the teacher that wrote the text.
    Raises UsageError, with the difference, where the folder's run was begun from something else and
    has saved a step; only lengths of the run may change, and the texts with `allow_data_change`.
    `sources` are the files as they were named, so that `weft finish` finds them again; of them and
    of `command` the latest are kept. `overrides` say what was allowed against a check; they stay in
    the record.
    """
    files = RunFolder(out)
    latest = {"sources": dict(sources), "command": command}
    versions = {name: metadata.version(name) for name in BIT_FOR_BIT}
    written_by = {"weft_version": VERSION, "versions": versions}
    facts = {"recipe": recipe.model_dump(mode="json"), **origin, **latest, **written_by}
    if not files.recipe.is_file():
        _begin(files, {**facts, "overrides": [*overrides]})
        return False
    old = _with_data_seed(read_record(files))
    begun, texts = (
        build_recipe(old["recipe"], str(out)),
        [*_text_lines(old["texts"], origin["texts"])],
    )
    # Another recipe (another seed, say) can hold out other pairs: then the texts differ for that
    # reason alone.
    differences = [*_recipe_lines(begun, recipe)] or [
        *([] if allow_data_change else texts),
        *_start_lines(old, facts),
    ]
    if differences and not (
        Checkpoints(files.checkpoints, 1).holds_any or is_finished(out)
    ):
        # nothing is lost: it has never saved a step
        _begin(files, {**facts, "overrides": [*overrides]})
        return False
    if begun.task != recipe.task:
        raise UsageError(
            f"{out} holds a run of {begun.task}, and this is {recipe.task}; give another --output"
        )
    if differences:
        shown = "; ".join([*differences[:MOST_DIFFERENCES], *_and_more(differences)])
        allowed = differences == texts and not origin.get("teacher")
        hint = (
            ", or allow it with --allow-data-change"
            if allowed and not is_finished(out)
            else ""
        )
        raise UsageError(
            f"{out} holds a run that differs: {shown}; go on with the same, give another --output, or begin anew "
            f"with --fresh{hint}"
        )
    before = read_verdict(files.verdict)
    is_left = (
        before is not None
        and before.outcome in ENDED
        and facts["recipe"] == old["recipe"]
    )
    if texts and is_left:
        raise UsageError(
            f"{out} is finished, and the new text was not trained on; begin anew with --fresh, or train its model "
            f"further on it with --from {out} and another --output"
        )
    reached = Checkpoints(files.checkpoints, 1).newest_step
    changes = (
        [f"--allow-data-change: {'; '.join(texts)}, at step {reached}"] if texts else []
    )
    known = [*old.get("overrides", []), *overrides, *changes]
    durable.write_json(
        files.recipe,
        {
            **old,
            **({} if is_left else latest),
            "recipe": facts["recipe"],
            "texts": origin["texts"] if texts else old["texts"],
            "overrides": known,
        },
    )
    return True


def read_record(files: RunFolder) -> dict[str, Any]:
    """What the run was begun from. Raises FolderError where that is missing or damaged."""
    found = durable.read_json(files.recipe)
    if not isinstance(found, dict) or not {"recipe", "texts", "from"} <= found.keys():
        raise FolderError(
            f"{files.recipe}: does not say what the run was begun from; restore the file"
        )
    return found


def read_task(files: RunFolder) -> str:
    """Which task the run is for."""
    return build_recipe(read_record(files)["recipe"], str(files.recipe)).task


def _with_data_seed(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record, with the seed of its split where it is from before that was a key of its
    own.
    """
    recipe = record["recipe"]
    if not isinstance(recipe, dict) or "seed" in recipe.get("data", {}):
        return record
    data = {**recipe.get("data", {}), "seed": recipe.get("training", {}).get("seed", 1)}
    return {**record, "recipe": {**recipe, "data": data}, SPLIT_BY_TRAINING: True}


def read_overrides(files: RunFolder) -> list[str]:
    """What was allowed against a check, at this start of the run or an earlier one."""
    return list(durable.read_json(files.recipe).get("overrides", []))


def with_own_split(out: Path, recipe: Recipe) -> Recipe:
    """The recipe, or of a folder's run from before `data.seed` was a key one that holds out what
    that run did.
    """
    try:
        record = durable.read_json(RunFolder(out).recipe)
        data, training = record["recipe"]["data"], record["recipe"]["training"]
        is_older = "seed" not in data or SPLIT_BY_TRAINING in record
        return (
            with_values(recipe, {"data.seed": training["seed"]}) if is_older else recipe
        )
    except (FolderError, KeyError, TypeError):
        # no run, or a damaged record, which is refused where it is compared
        return recipe


def run_name(out: Path) -> str:
    """What the run is called among others: its folder's name and the beginning of its own mark."""
    return f"{out.resolve().name}-{str(durable.read_json(RunFolder(out).recipe).get('run', ''))[:8]}"


def checkpoint_facts(files: RunFolder) -> dict[str, str]:
    """What every checkpoint says of its origin: the run's mark, and hashes of its recipe and its
    texts.
    """
    record = durable.read_json(files.recipe)
    hashes = {
        key: hashlib.sha256(durable.to_json(record[key]).encode()).hexdigest()
        for key in ("recipe", "texts")
    }
    return {"run": str(record.get("run", "")), **hashes}


def _begin(files: RunFolder, facts: Mapping[str, Any]) -> None:
    """Empty the run's folder of what a start left that never saved a step, and write down what it
    begins from.

    What a teacher wrote stays: it is the run's text.
    """
    durable.make_folder(files.folder)
    for path in files.folder.iterdir():
        if path in (files.lock, files.distilled):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    durable.write_json(files.recipe, {"run": uuid.uuid4().hex, **facts})


def _and_more(differences: Sequence[str]) -> list[str]:
    more = len(differences) - MOST_DIFFERENCES
    return [f"and {more} more"] if more > 0 else []


def _recipe_lines(old: Recipe, new: Recipe) -> Iterator[str]:
    for key, (before, now) in recipe_difference(old, new).items():
        if key not in MAY_CHANGE:
            yield f"{key} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    return as_written(value) if value is None or isinstance(value, bool) else str(value)


def _text_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for part in sorted(old.keys() | new.keys()):
        before, now = old.get(part), new.get(part)
        if (before or {}).get("sha256") != (now or {}).get("sha256"):
            yield f"the {part} text was {_size(before)}, is {_size(now)}"


def _start_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["from"] != new["from"]:
        yield f"the model to start from was {_start(old)}, is {_start(new)}"
    before, now = (
        (facts.get("teacher") or {}).get("teacher", "none") for facts in (old, new)
    )
    if before != now:
        yield f"the teacher was {before}, is {now}"


def _start(facts: Mapping[str, Any]) -> str:
    """The model to start from, by its folder where a record has that, and the beginning of its
    weights' hash.
    """
    if not facts["from"]:
        return "none"
    sources = facts.get("sources")
    folder = sources.get("from") if isinstance(sources, dict) else None
    return f"{folder or 'another'} (weights sha256 {facts['from'][:8]})"


def _size(part: Mapping[str, Any] | None) -> str:
    return f"{part['size']} (sha256 {part['sha256'][:8]})" if part else "none"
