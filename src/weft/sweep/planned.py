"""The runs of a sweep, each with the command that trains it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from weft.config import Recipe
from weft.errors import DataError, FolderError, UsageError
from weft.kernels.machine import threads_asked
from weft.recipes.file import with_values
from weft.sweep.file import Row, Sweep, Text
from weft.sweep.run import PARTS, Run, hash_of_texts, refuse_other_run

# the recipe of a name, settings and files, as `weft train` chooses it
Choose = Callable[[str | None, Sequence[str], Text], Recipe]


def planned_runs(sweep: Sweep, output: Path, choose: Choose) -> list[Run]:
    """Return all runs, in the order of texts, rows and seeds.

    Raises WeftError, with the file and the row, for a recipe or a text that is wrong, and for a
    folder that holds another run.
    """
    runs = []
    for text in sweep.texts:
        with _named(f"{sweep.path}: text {text.name}"):
            hashes = {"train": hash_of_texts(text.train)}
            for part, item in zip(PARTS, (text.dev, text.test), strict=True):
                hashes[part] = hash_of_texts([item])
        tasks: dict[str, str] = {}
        for row in sweep.rows:
            where = f"{sweep.path}: rows.{row.name}"
            with _named(where):
                recipe = choose(row.recipe, sweep.settings(text, row, {}), text)
            tasks[recipe.task] = row.name
            if len(tasks) > 1:
                (task, name), *_ = tasks.items()
                raise UsageError(
                    f"{where}: is for {recipe.task}, and {name} for {task}: a table compares rows of one task"
                )
            for seed in sweep.seeds:
                run = _run(sweep, output, text, row, seed, recipe, hashes)
                refuse_other_run(run, where)
                runs.append(run)
    return runs


def threads_of(recipe: Recipe) -> int:
    """Return how many threads each run of a recipe has: never as many as happen to be idle."""
    return recipe.training.threads or threads_asked() or 1


def minutes_in_all(runs: Sequence[Run], jobs: int) -> float | None:
    """Return how long runs take, `jobs` at a time; None where one has no minutes."""
    ends = [0.0] * jobs
    for run in runs:
        if run.minutes is None:
            return None
        ends.sort()
        ends[0] += run.minutes
    return max(ends)


def _run(
    sweep: Sweep,
    output: Path,
    text: Text,
    row: Row,
    seed: int,
    recipe: Recipe,
    hashes: dict[str, str],
) -> Run:
    folder = output / text.name / row.name / f"seed-{seed}"
    own = {"training.seed": seed, "training.threads": threads_of(recipe)}
    words = ["train", *text.train, "--output", str(folder)]
    options = {
        "--recipe": row.recipe,
        "--dev": text.dev,
        "--test": text.test,
        "--minutes": row.minutes,
    }
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    for setting in sweep.settings(text, row, own):
        words += ["--set", setting]
    return Run(
        text.name,
        row.name,
        seed,
        folder,
        tuple(words),
        with_values(recipe, own),
        {part: digest for part, digest in hashes.items() if digest},
        row.minutes,
    )


@contextlib.contextmanager
def _named(where: str) -> Iterator[None]:
    """Put a place before each line of an error that the block raises."""
    try:
        yield
    except (UsageError, DataError, FolderError) as error:
        lines = str(error).split("\n")
        said = "\n".join(f"{where}: {line}" for line in lines)
        kind = DataError if isinstance(error, DataError) else UsageError
        raise kind(said) from None
