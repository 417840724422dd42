"""The file of a sweep: what all runs share, the seeds, the rows of the table, and the texts."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from weft.config import Section, Seed
from weft.errors import UsageError
from weft.folder.layout import RUNS
from weft.recipes.file import recipe_names
from weft.recipes.problems import as_written, problems_of
from weft.recipes.written import written_value

Values = dict[str, Any]
Minutes = Annotated[float, Field(ge=0.1)]
MOST_RUNS = 10_000
# of a row or a text, which is also that of a folder
_NAME = re.compile(r"\w[\w .,=+()-]{0,99}")
_KEY = re.compile(r"\w+")
_NOT_IN_NAMES = re.compile(r"[^\w .,=+()-]+")
_OWN = ("recipe", "minutes")  # keys of a row that are no settings
_OF_THE_SWEEP = {"training.seed": "seeds = [1, 2]"}


class TextSection(Section):
    """The files of one text, and the settings of all runs on it."""

    train: str | list[str] = ""
    dev: str | None = None
    test: str | None = None
    settings: Values = Field(default_factory=dict)


class SweepSection(Section):
    """The keys of a sweep's file; the text stands in it, or several in `data`, by their names."""

    train: str | list[str] = ""
    dev: str | None = None
    test: str | None = None
    recipe: str | None = None
    minutes: Minutes | None = None
    seeds: list[Seed] = Field(default_factory=lambda: [1], min_length=1)
    output: str | None = None
    settings: Values = Field(default_factory=dict)
    rows: dict[str, Values] = Field(default_factory=dict)
    grid: Values = Field(default_factory=dict)
    data: dict[str, TextSection] = Field(default_factory=dict)


@dataclass(frozen=True)
class Text:
    """A text to train on: its files as `weft train` takes them, and settings by dotted key."""

    name: str
    train: tuple[str, ...]
    dev: str | None
    test: str | None
    settings: Values


@dataclass(frozen=True)
class Row:
    """A row of the table: what its runs have that those of other rows may not have."""

    name: str
    recipe: str | None
    minutes: float | None
    settings: Values


@dataclass(frozen=True)
class Sweep:
    """Every text is trained on with every row and every seed."""

    path: Path
    output: Path
    seeds: tuple[int, ...]
    texts: tuple[Text, ...]
    rows: tuple[Row, ...]

    def settings(self, text: Text, row: Row, own: Mapping[str, Any]) -> list[str]:
        """Return what `--set` is given for a row on a text; `own` are the run's, which win."""
        values = text.settings | row.settings | dict(own)
        return [f"{key}={written_value(value)}" for key, value in values.items()]


def read_sweep(path: Path) -> Sweep:
    """Read a sweep's file. Raises UsageError with the file, the key and what is wrong with it.

    Names of files in it are taken from its folder.
    """
    tree = _tree_of(path)
    try:
        asked = SweepSection.model_validate(tree)
    except ValidationError as error:
        problems = problems_of(error, SweepSection, tree)
        raise _refusal(path, problems) from None
    common = _flat(asked.settings)
    texts = _texts(path, asked)
    rows = _rows(path, asked, common)
    for where, values in (
        *((f"data.{text.name}", text.settings) for text in texts),
        *((f"rows.{row.name}", row.settings) for row in rows),
    ):
        _refuse_keys_of_the_sweep(path, where, values)
    _refuse_repeated(path, "seeds", asked.seeds)
    if (count := len(texts) * len(rows) * len(asked.seeds)) > MOST_RUNS:
        raise _refusal(path, [f"{count:,} runs; at most {MOST_RUNS:,}"])
    output = RUNS / path.stem if asked.output is None else path.parent / asked.output
    return Sweep(path, output, tuple(asked.seeds), texts, rows)


def _refusal(path: Path, problems: Sequence[str]) -> UsageError:
    return UsageError("\n".join(f"{path}: {problem}" for problem in problems))


def _tree_of(path: Path) -> Values:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal(
            path, [f"not UTF-8 at byte {error.start}; save it as UTF-8"]
        ) from None
    except OSError as error:
        raise _refusal(path, [f"cannot be read ({error.strerror})"]) from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(path, [f"not valid TOML: {error}"]) from None


def _texts(path: Path, asked: SweepSection) -> tuple[Text, ...]:
    """Return the texts. Raises UsageError where one is named beside several."""
    named = dict(asked.data)
    alone = {"train": asked.train, "dev": asked.dev, "test": asked.test}
    given = [key for key, value in alone.items() if value]
    if named and given:
        raise _refusal(
            path,
            [f"{given[0]}: there is [data.{next(iter(named))}], too; put it there"],
        )
    if not named:
        files = {key: alone[key] for key in given}
        only = TextSection.model_validate(files)
        named = {_name_of_text(only, asked.recipe): only}
    texts = []
    for name, section in named.items():
        _refuse_name(path, f"data.{name}", name)
        trained_on = section.train
        if isinstance(trained_on, str):
            trained_on = [trained_on] if trained_on else []
        texts.append(
            Text(
                name,
                tuple(_beside(path, item) for item in trained_on),
                section.dev and _beside(path, section.dev),
                section.test and _beside(path, section.test),
                _flat(section.settings),
            )
        )
    return tuple(texts)


def _name_of_text(only: TextSection, recipe: str | None) -> str:
    """Return the name of a text that has none: its first file's, or else the recipe's."""
    first = only.train if isinstance(only.train, str) else "".join(only.train[:1])
    file = Path(first.split(",")[0] or recipe or "").name
    return _NOT_IN_NAMES.sub("-", file.split(".")[0]).strip("- ") or "text"


def _beside(path: Path, item: str) -> str:
    """Return the name of a file, or of two joined by a comma, as it stands in the file's folder."""
    whole = path.parent / item
    if whole.exists():
        return str(whole)
    return ",".join(str(path.parent / part.strip()) for part in item.split(","))


def _rows(path: Path, asked: SweepSection, common: Values) -> tuple[Row, ...]:
    """Return the rows that are named, then those of the grid; without either, a single one."""
    named = {name: _flat(values) for name, values in asked.rows.items()}
    for name, values in _of_grid(path, asked.grid):
        if name in named:
            raise _refusal(path, [f"rows.{name}: is a row of the grid, too"])
        named[name] = values
    if not named:
        named = {"base": {}}
    rows = []
    for name, values in named.items():
        where = f"rows.{name}"
        _refuse_name(path, where, name)
        own: Values = {"recipe": asked.recipe, "minutes": asked.minutes}
        own |= {key: values[key] for key in _OWN if key in values}
        _refuse_own(path, where, own)
        recipe = own["recipe"]
        if recipe is not None and recipe not in recipe_names():
            recipe = str(path.parent / recipe)
        kept = {key: value for key, value in values.items() if key not in _OWN}
        rows.append(Row(name, recipe, own["minutes"], common | kept))
    return tuple(rows)


def _of_grid(path: Path, grid: Values) -> Iterator[tuple[str, Values]]:
    """Yield each combination of the grid's values with its name."""
    lists = _flat(grid)
    for key, values in lists.items():
        if not isinstance(values, list) or not values:
            shown = f"grid.{key} = {as_written(values)}"
            raise _refusal(path, [f"{shown}: give a list of values"])
    if not lists:
        return
    lasts = Counter(key.rsplit(".", 1)[-1] for key in lists)
    shorts = []
    for key in lists:
        last = key.rsplit(".", 1)[-1]
        shorts.append(last if lasts[last] == 1 else key)
    for values in product(*lists.values()):
        parts = []
        for short, value in zip(shorts, values, strict=True):
            shown = _NOT_IN_NAMES.sub("-", str(value).lower())
            parts.append(f"{short}={shown.strip('-')}")
        yield ",".join(parts), dict(zip(lists, values, strict=True))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Values:
    """Return the values of nested tables by dotted keys.

    A table with a key that is no word, such as a label, stays one value.
    """
    flat: Values = {}
    for key, value in tree.items():
        is_section = isinstance(value, dict) and all(map(_KEY.fullmatch, value))
        if is_section and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _refuse_name(path: Path, where: str, name: str) -> None:
    """Raise UsageError for a name that no folder should have."""
    if not _NAME.fullmatch(name) or name.endswith((" ", ".")):
        raise _refusal(
            path,
            [
                f"{where}: a name is a folder's, too: letters, digits and any of _ . , = + - ( ), 100 at most"
            ],
        )


def _refuse_own(path: Path, where: str, own: Mapping[str, Any]) -> None:
    """Raise UsageError for a recipe that is no name, and for minutes that are no time."""
    minutes = own["minutes"]
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if minutes is not None and not (is_number and minutes >= 0.1):
        shown = f"{where}.minutes = {as_written(minutes)}"
        raise _refusal(path, [f"{shown}: must be a number of at least 0.1"])
    if own["recipe"] is not None and not isinstance(own["recipe"], str):
        shown = f"{where}.recipe = {as_written(own['recipe'])}"
        raise _refusal(path, [f"{shown}: must be a recipe's name, or a TOML file"])


def _refuse_keys_of_the_sweep(path: Path, where: str, values: Values) -> None:
    """Raise UsageError for a setting that the sweep makes itself."""
    for key, instead in _OF_THE_SWEEP.items():
        if key in values:
            raise _refusal(path, [f"{where}: {key}: is set by {instead}; leave it out"])


def _refuse_repeated(path: Path, key: str, values: Sequence[Any]) -> None:
    """Raise UsageError where a value stands twice in a list."""
    for value, count in Counter(values).items():
        if count > 1:
            raise _refusal(path, [f"{key}: {value} is there {count} times"])
