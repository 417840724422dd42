"""What a run writes about itself: what it is trained from, and how it ended."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weft import durable
from weft.config import Recipe, build_recipe, recipe_difference
from weft.errors import FolderError, Interrupted, UsageError, WeftError
from weft.model_folder import VERSION, RunFiles, run_files

MAY_CHANGE = {"training.max_steps", "training.patience", "training.save_every"}
MOST_DIFFERENCES = 8  # shown
ENDED = ("done", "stopped early")


@dataclass
class Verdict:
    """How a run ended: done, stopped early, interrupted or failed; never better than the truth.

    `reason` is one line; `dev` and `test` hold scores; `notes` what a reader of the scores should know.
    """

    outcome: str = "failed"
    exit_code: int = 1
    reason: str = ""
    step: int = 0
    best_step: int = 0
    evaluations_since_best: int = 0
    seconds: float = 0.0
    dev: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    test_summary: str = ""
    notes: list[str] = field(default_factory=list)


@contextlib.contextmanager
def writing_verdict(path: Path) -> Iterator[Verdict]:
    """Hand out a verdict and write it when the block ends, however it ends.

    A block that never came to train anything (`step` 0) leaves an earlier verdict in place, and writes none
    where the run has no folder yet.
    """
    verdict, started = Verdict(), time.monotonic()
    try:
        yield verdict
    except WeftError as error:
        verdict.outcome = "interrupted" if isinstance(error, Interrupted) else "failed"
        verdict.exit_code, verdict.reason = error.exit_code, str(error)
        raise
    except KeyboardInterrupt:
        verdict.outcome, verdict.exit_code, verdict.reason = "interrupted", 130, "left at once by Ctrl-C"
        raise
    except Exception as error:
        verdict.reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        verdict.seconds = round(time.monotonic() - started, 1)
        if path.parent.is_dir() and (verdict.step or not path.is_file()):
            durable.write_json(path, asdict(verdict))


def read_verdict(path: Path) -> Verdict | None:
    """The verdict of an earlier start, if there was one."""
    return Verdict(**durable.read_json(path)) if path.is_file() else None


def refuse_foreign(out: Path) -> None:
    """Raise UsageError where `out` is a file, or a folder with something else in it than a run."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out names a folder")
    if out.is_dir() and not run_files(out).recipe.is_file() and not _is_barely_begun(out):
        raise UsageError(f"{out} is not empty and holds no run to go on with; give --out another folder")


def _is_barely_begun(out: Path) -> bool:
    """Whether a folder is empty, or holds only what a run leaves that was killed before its first file."""
    files = run_files(out)
    inside = [*files.folder.iterdir()] if files.folder.is_dir() else []
    return all(p == files.folder for p in out.iterdir()) and all(
        p.name.startswith(durable.TEMPORARY) for p in inside
    )


def begin_or_go_on(out: Path, files: RunFiles, recipe: Recipe, origin: Mapping[str, Any], command: str) -> bool:
    """Write down what the run is trained from, or compare it; True where the run has begun before.

    `origin` describes the texts and the model it starts from. Raises UsageError, with the difference, where the
    folder's run was begun from something else; only lengths of the run may change.
    """
    facts = {"recipe": recipe.model_dump(mode="json"), **origin, "command": command, "weft_version": VERSION}
    if not files.recipe.is_file():
        durable.make_folder(files.folder)
        durable.remove_leftovers(files.folder)
        durable.write_json(files.recipe, facts)
        return False
    old = durable.read_json(files.recipe)
    if not isinstance(old, dict) or not {"recipe", "texts", "from"} <= old.keys():
        raise FolderError(f"{files.recipe}: does not say what the run was begun from; restore the file")
    begun = build_recipe(old["recipe"], str(out))
    if begun.task != recipe.task:
        raise UsageError(f"{out} holds a run of {begun.task}, and this is {recipe.task}; give another --out")
    # Another recipe (another seed, say) can hold out other pairs: then the texts differ for that reason alone.
    differences = [*_recipe_lines(begun, recipe)] or [*_origin_lines(old, origin)]
    if differences:
        shown = "; ".join([*differences[:MOST_DIFFERENCES], *_and_more(differences)])
        raise UsageError(f"{out} holds a run that differs: {shown}; go on with the same, or give another --out")
    durable.write_json(files.recipe, {**old, "recipe": facts["recipe"]})
    return True


def _and_more(differences: Sequence[str]) -> list[str]:
    more = len(differences) - MOST_DIFFERENCES
    return [f"and {more} more"] if more > 0 else []


def _recipe_lines(old: Recipe, new: Recipe) -> Iterator[str]:
    for key, (before, now) in recipe_difference(old, new).items():
        if key not in MAY_CHANGE:
            yield f"{key} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _origin_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for part in sorted(old["texts"].keys() | new["texts"].keys()):
        before, now = old["texts"].get(part), new["texts"].get(part)
        if (before or {}).get("sha256") != (now or {}).get("sha256"):
            yield f"the {part} text was {_size(before)}, is {_size(now)}"
    if old["from"] != new["from"]:
        yield f"the model to start from was {old['from'] or 'none'}, is {new['from'] or 'none'}"


def _size(part: Mapping[str, Any] | None) -> str:
    return f"{part['size']} (sha256 {part['sha256'][:8]})" if part else "none"
