"""The choice of a recipe: by its name, by the model to start from, or by the look of the text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.data.formats.filetype import split_ending
from weft.data.formats.shards import shards_of
from weft.data.formats.source import open_file
from weft.data.kind import KINDS, guess_task
from weft.data.train_text import split_at_comma
from weft.errors import FolderError, UsageError
from weft.folder.layout import RUNS, command_of
from weft.folder.model_files import task_of

if TYPE_CHECKING:
    from weft.config import Recipe

# by task, the recipe that is used where none is named; None stands for the keys' defaults
USUAL = {
    "translation": None,
    "language-modelling": "lm-modern",
    "classification": "classify-fast",
}

_OF_PAIRS = ("data.src_lang", "data.tgt_lang")  # keys that a translator alone has


@dataclass(frozen=True)
class Chosen:
    """A recipe, notes on how it was chosen (`said`), and doubts about the choice.

    `own_keys` are those that settings set where no recipe was named, else None.
    """

    recipe: "Recipe"
    said: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    own_keys: frozenset[str] | None = None


def choose_recipe(
    name: str | None,
    settings: Sequence[str],
    data: Sequence[str],
    start_from: Path | None = None,
) -> Chosen:
    """Choose and read a recipe.

    A name or a task in the settings decides; else the task of the model to start from; else a
    language of a pair in the settings; else the look of the first text.
    """
    from weft.recipes.file import load_recipe, own_keys

    own = own_keys(settings) if name is None else None
    values = dict(_split(setting) for setting in settings)
    if name is not None or "task" in values:
        recipe = load_recipe(name or USUAL.get(values.get("task", "")), settings)
        if not data:
            return Chosen(recipe, own_keys=own)
        looks = _look_of(data[0], values)
        if looks == recipe.task:
            return Chosen(recipe, own_keys=own)
        doubt = (
            f"{data[0]} looks like {KINDS[looks]}, but the recipe is for {recipe.task}"
        )
        return Chosen(recipe, doubts=(doubt,), own_keys=own)
    if start_from is not None:
        task = task_of(start_from)
        if task not in KINDS:
            raise FolderError(
                f"{start_from}: holds a model of another version, for {task!r:.40}"
            )
        reason = f"{start_from} holds a model for {task}, so this is for {KINDS[task]}"
    elif setting := next((key for key in _OF_PAIRS if key in values), ""):
        task = "translation"
        reason = f"{setting} is set, so this is for {KINDS[task]}" if data else ""
    elif data:
        task = _look_of(data[0], values)
        reason = f"{data[0]} looks like {KINDS[task]}"
    else:
        task = "translation"
        reason = ""
    usual = USUAL[task]
    recipe = load_recipe(usual, [f"task={task}", *settings])
    if not reason:
        return Chosen(recipe, own_keys=own)
    by = f", by the recipe {usual}" if usual else ""
    others = " or ".join(other for other in KINDS if other != task)
    note = f"{reason}{by}; else name another --recipe, or --set task={others}"
    return Chosen(recipe, said=(note,), own_keys=own)


def columns_read(recipe: "Recipe", data: Sequence[str]) -> list[str]:
    """Say of each table of more than two columns which of them are read."""
    from weft.data.columns import describe_columns

    lines = [describe_columns(recipe, item) for item in data]
    return [line for line in lines if line]


def refuse_other_text(
    data: Sequence[str],
    dev: str | None,
    test: str | None,
    recipe: "Recipe",
    output: Path | None,
) -> None:
    """Raise UsageError without any text to train on, or with text beside built-in text.

    Without text, the message quotes the command that began the run in `output`.
    """
    builtin = recipe.model_dump()["data"].get("builtin")
    if data and not builtin:
        return
    from weft.data.texts import Sources
    from weft.data.train_text import parse_texts

    command = ""
    if output is not None and not data and not builtin:
        command = command_of(output)
    if command:
        raise UsageError(
            f"no text to train on; the command that began the run in {output} continues it: {command}"
        )
    Sources(parse_texts(data), dev, test).refuse_beside(builtin)


def refuse_two_sides(data: Sequence[str], settings: Sequence[str]) -> None:
    """Raise UsageError for two files that seem to be aligned, `a.en a.de`, without a comma."""
    is_task_set = any(_split(setting)[0] == "task" for setting in settings)
    if len(data) != 2 or is_task_set:
        return
    first, second = (Path(item.removesuffix(".gz")) for item in data)
    is_plain = not {".txt", ".md"}.isdisjoint((first.suffix, second.suffix))
    if is_plain or first.suffix == second.suffix:
        return
    if (first.parent, first.stem) == (second.parent, second.stem):
        raise UsageError(
            f"{data[0]} and {data[1]} seem to translate each other: join them by a comma, {','.join(data)}; "
            "to train a language model on both, add --set task=language-modelling"
        )


def usual_folder(
    data: Sequence[str], recipe: str | None, reverse: bool = False
) -> Path:
    """Return the folder of a model that the user has not named: after its text or its recipe."""
    if data:
        first = data[0].split(",")[0]
        name, _ = split_ending(Path(first.removesuffix(".gz")).name)
    else:
        name = Path(recipe or "").stem
    return RUNS / f"{name or 'model'}{'-reverse' if reverse else ''}"


def refuse_missing_text(items: Sequence[str | None]) -> None:
    """Raise DataError where a file is missing, before anything slow is begun."""
    for item in items:
        for path in split_at_comma(item) if item else ():
            first = next(iter(shards_of(path)), path)
            open_file(first).close()


def _look_of(item: str, values: Mapping[str, str]) -> str:
    """Guess the task of a text from its beginning. Raises DataError where it is missing."""
    refuse_missing_text([item])
    return guess_task(
        item,
        values.get("data.text_column", "text"),
        values.get("data.label_column", "label"),
    )


def _split(setting: str) -> tuple[str, str]:
    key, _, value = setting.partition("=")
    return key.strip(), value.strip().strip("\"'")
