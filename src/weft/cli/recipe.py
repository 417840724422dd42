"""The recipe that a verb works by: named, or the one for what the text looks like or a model to
start from is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.data.corpus import split_at_comma
from weft.data.formats.source import open_file
from weft.data.kind import KINDS, guess_task
from weft.errors import FolderError, UsageError
from weft.folder.layout import RUNS, command_of, task_of

if TYPE_CHECKING:
    from weft.config import Recipe

# Of each task, the recipe that is taken where none is named; of none of them the keys' own
# defaults.
USUAL = {
    "translation": None,
    "language-modelling": "lm-modern",
    "classification": "classify-fast",
}


@dataclass(frozen=True)
class Chosen:
    """A recipe, what is to be said of how it was chosen, and what is doubtful about the choice that
    was made.
    """

    recipe: "Recipe"
    said: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def choose_recipe(
    name: str | None,
    settings: Sequence[str],
    data: Sequence[str],
    start_from: Path | None = None,
) -> Chosen:
    """Read the recipe to work by.

    What is named wins; then the task of the model to start from; then the look of the first text.
    """
    from weft.recipes.file import load_recipe

    values = dict(_split(setting) for setting in settings)
    if name is not None or "task" in values:
        recipe = load_recipe(name or USUAL.get(values.get("task", "")), settings)
        looks = _look_of(data[0], values) if data else recipe.task
        differs = (
            f"{data[0]} looks like {KINDS[looks]}, but the recipe is for {recipe.task}"
            if data
            else ""
        )
        return Chosen(recipe, doubts=() if looks == recipe.task else (differs,))
    if start_from is not None:
        task = task_of(start_from)
        if task not in KINDS:
            raise FolderError(
                f"{start_from}: holds a model of another version, for {task!r:.40}"
            )
        said = f"{start_from} holds a model for {task}, so this is for {KINDS[task]}"
    else:
        task = _look_of(data[0], values) if data else "translation"
        said = f"{data[0]} looks like {KINDS[task]}" if data else ""
    usual = USUAL[task]
    by = f", by the recipe {usual}" if usual else ""
    others = " or ".join(other for other in KINDS if other != task)
    recipe = load_recipe(usual, [f"task={task}", *settings])
    return Chosen(
        recipe,
        said=(f"{said}{by}; else name another --recipe, or --set task={others}",)
        if said
        else (),
    )


def refuse_other_text(
    data: Sequence[str],
    dev: str | None,
    test: str | None,
    recipe: "Recipe",
    output: Path | None,
) -> None:
    """Raise UsageError where nothing is to be trained on, or text beside what the recipe brings.

    Of a run that has begun it is known by which command.
    """
    builtin = recipe.model_dump()["data"].get("builtin")
    if data and not builtin:
        return
    from weft.data.texts import Sources

    builtin = recipe.model_dump()["data"].get("builtin")
    command = (
        command_of(output) if output is not None and not data and not builtin else ""
    )
    if command:
        raise UsageError(
            f"no text to train on; the run in {output} goes on by the command that began it: {command}"
        )
    Sources(tuple(data), dev, test).refuse_beside(builtin)


def refuse_two_sides(data: Sequence[str], settings: Sequence[str]) -> None:
    """Raise UsageError for two texts that seem to be the sides of pairs, `a.en a.de`, without a
    comma.
    """
    paths = [Path(item.removesuffix(".gz")) for item in data]
    if len(paths) != 2 or any(_split(setting)[0] == "task" for setting in settings):
        return
    if paths[0].suffix == paths[1].suffix or {p.suffix for p in paths} & {
        ".txt",
        ".md",
    }:
        return
    if (paths[0].parent, paths[0].stem) == (paths[1].parent, paths[1].stem):
        raise UsageError(
            f"{data[0]} and {data[1]} seem to translate each other: join them by a comma, {','.join(data)}; "
            "to learn to write from both, add --set task=language-modelling"
        )


def usual_folder(data: Sequence[str], recipe: str | None) -> Path:
    """Choose the folder of a model where none was named: after its first text, or its recipe."""
    if data:
        first = data[0].split(",")[0]
        name = Path(first.removesuffix(".gz")).stem
    else:
        name = Path(recipe or "").stem
    return RUNS / (name or "model")


def refuse_missing_text(items: Sequence[str | None]) -> None:
    """Raise DataError where a text that was named is not there, before anything slow is begun."""
    for item in items:
        for path in split_at_comma(item) if item else ():
            open_file(path).close()


def _look_of(item: str, values: Mapping[str, str]) -> str:
    """Return the task that a text is for, by its look. Raises DataError for one that is not
    there.
    """
    refuse_missing_text([item])
    return guess_task(
        item,
        values.get("data.text_column", "text"),
        values.get("data.label_column", "label"),
    )


def _split(setting: str) -> tuple[str, str]:
    key, _, value = setting.partition("=")
    return key.strip(), value.strip().strip("\"'")
