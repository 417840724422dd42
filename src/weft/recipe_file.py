"""Recipes read: from TOML, from settings, from what a run has saved.

Every problem in one is listed at once, and an unknown key names its nearest neighbour. TOML has no null: the word
"none" stands for it.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from weft.config import RECIPES, Recipe, RecurrentSection, TranslationRecipe
from weft.errors import UsageError

R = TypeVar("R", bound=Recipe)


def recipe_names() -> list[str]:
    """The packaged recipes, sorted."""
    folder = resources.files("weft") / "recipes"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))


def load_recipe(name_or_file: str | None = None, settings: Sequence[str] = ()) -> Recipe:
    """Read a packaged recipe by name or a TOML file, apply `section.key=value` settings, validate.

    Its `task` decides which recipe it is; without one it is a translation.

    Raises UsageError naming every problem, with the file or setting that it comes from.
    """
    tree: dict[str, Any] = {} if name_or_file is None else _read_toml(name_or_file)
    for setting in settings:
        _apply_setting(tree, setting)
    return build_recipe(tree, name_or_file or "recipe")


def build_recipe(tree: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Validate a plain mapping. Raises UsageError with one line for each problem."""
    try:
        recipe, problems = _validated(_without_none(tree))
    except (ValueError, RecursionError):
        raise UsageError(f"{where}: nested too deeply, or a number of too many digits") from None
    if recipe is None:
        raise UsageError("\n".join(f"{where}: {problem}" for problem in problems))
    return recipe


def recipe_difference(old: BaseModel, new: BaseModel) -> dict[str, tuple[Any, Any]]:
    """Dotted keys whose values differ, each with the old and the new value."""
    a, b = _flatten(old.model_dump(mode="json")), _flatten(new.model_dump(mode="json"))
    return {key: (a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)}


def with_values(recipe: R, values: Mapping[str, Any]) -> R:
    """The recipe with some dotted keys replaced, validated anew."""
    tree = recipe.model_dump(mode="json")
    for key, value in values.items():
        _place(tree, key, value)
    changed = build_recipe(tree)
    assert isinstance(changed, type(recipe))
    return changed


def _read_toml(name_or_file: str) -> dict[str, Any]:
    if name_or_file in recipe_names():
        text = (resources.files("weft") / "recipes" / f"{name_or_file}.toml").read_text(encoding="utf-8")
    else:
        if not os.path.isfile(name_or_file):  # unlike Path.is_file, False for a name that is too long
            near = difflib.get_close_matches(name_or_file, recipe_names(), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(recipe_names())
            raise UsageError(
                f"recipe {name_or_file!r:.80} is neither a file nor a packaged recipe ({known}){hint}"
            )
        try:
            text = Path(name_or_file).read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{name_or_file}: not UTF-8 at byte {error.start}; save the recipe as UTF-8"
            ) from None
        except OSError as error:
            raise UsageError(f"{name_or_file}: cannot be read ({error.strerror})") from None
    try:
        return tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # not only TOMLDecodeError: an endless number, endless nesting
        raise UsageError(f"{name_or_file}: not valid TOML: {error}") from None


def _apply_setting(tree: dict[str, Any], setting: str) -> None:
    """Place one `section.key=value`; the value is TOML, or else a bare word taken as a string."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {setting!r}: write section.key=value, for example training.max_steps=2000")
    _place(tree, key.strip(), _parse_value(text.strip()))


def _parse_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text  # a second line would be a second key


def _place(tree: dict[str, Any], dotted: str, value: Any) -> None:
    *sections, key = dotted.split(".")
    for section in sections:
        inner = tree.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{dotted}: {section} is a value, not a section")
        tree = inner
    tree[key] = value


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items()}
    return None if value == "none" else value


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _validated(tree: Any) -> tuple[Recipe | None, list[str]]:
    """The recipe, or else every problem in it.

    How the keys of a section fit together is checked only where all are known: hence once more without
    the unknown ones.
    """
    task = tree.get("task", "translation") if isinstance(tree, Mapping) else "translation"
    if not isinstance(task, str) or task not in RECIPES:
        return None, [f"task = {task!r:.60}: known tasks: {', '.join(RECIPES)}"]
    try:
        return RECIPES[task].model_validate_json(json.dumps(tree, default=str)), []
    except ValidationError as error:
        found = error.errors()
    keys = _known_keys(RECIPES[task], tree)
    problems = [_explain(problem, keys) for problem in found]
    unknown = {_path(problem) for problem in found if problem["type"] == "extra_forbidden"}
    more = _validated(_without_keys(tree, unknown))[1] if unknown else []
    return None, [*problems, *(problem for problem in more if problem not in problems)]


def _known_keys(recipe: type[Recipe], tree: Any) -> list[str]:
    """Every dotted key of the recipe; of the model's section, those of the kind that the tree asks for."""
    tree = recipe().model_dump(mode="json") | _kind_keys(recipe, tree)
    return list(_flatten(tree))


def _kind_keys(recipe: type[Recipe], tree: Any) -> dict[str, Any]:
    model = tree.get("model") if isinstance(tree, Mapping) else None
    if recipe is TranslationRecipe and isinstance(model, Mapping) and model.get("kind") == "recurrent":
        return {"model": RecurrentSection(kind="recurrent").model_dump(mode="json")}
    return {}


def _path(problem: Any) -> tuple[str, ...]:
    """Where a problem is, without the tag that pydantic adds for the kind of model."""
    path = tuple(str(part) for part in problem["loc"])
    tagged = len(path) > 1 and path[0] == "model" and path[1] in ("transformer", "recurrent")
    return path[:1] + path[2:] if tagged else path


def _without_keys(tree: Any, paths: Set[tuple[str, ...]], here: tuple[str, ...] = ()) -> Any:
    if not isinstance(tree, Mapping):
        return tree
    return {
        key: _without_keys(inner, paths, (*here, key)) for key, inner in tree.items() if (*here, key) not in paths
    }


def _explain(error: Any, keys: Sequence[str]) -> str:
    path = _path(error)
    key, message = ".".join(path), error["msg"].removeprefix("Value error, ")
    if not key.isprintable():
        key = repr(key)
    if error["type"] == "extra_forbidden":
        owners, near = _owners(key), _nearest(path, keys)
        if not owners:
            return f"unknown key {key or repr(key)}; {near}"
        remedy = near if near.endswith(f".{path[-1]}?") else "leave it out"
        return f"unknown key {key}, which is for {' and '.join(owners)}; {remedy}"
    if error["type"] == "value_error":
        return f"{key}: {message}" if key else message
    message = f"{message[0].lower()}{message[1:]}"
    if error["type"] in ("missing", "json_invalid"):
        return f"{key}: {message}" if key else message
    if error["type"] in ("bool_type", "bool_parsing"):
        message = "input should be true or false"
    if error["type"] == "literal_error":
        choices = re.findall("'([^']*)'", error["ctx"]["expected"])
        close = difflib.get_close_matches(str(error["input"]).lower(), choices, n=1, cutoff=0.6)
        message += f"; did you mean {close[0]!r}?" if close else ""
    given = as_written(error["input"]) if key else repr(error["input"])
    given = given if len(given) <= 60 else f"{given[:60]}..."
    return f"{key} = {given}: {message}" if key else f"{given}: {message}"


def keys_named(leaf: str) -> list[str]:
    """The dotted keys of any task's recipe whose last word is this."""
    keys = [key for recipe in RECIPES.values() for key in _flatten(recipe().model_dump(mode="json"))]
    return [key for key in dict.fromkeys(keys) if key.rsplit(".", 1)[-1] == leaf]


def _owners(key: str) -> list[str]:
    """The tasks that have such a key."""
    return [task for task, recipe in RECIPES.items() if key in _flatten(recipe().model_dump(mode="json"))]


def as_written(value: Any) -> str:
    """A value as a recipe would have it."""
    words: dict[Any, str] = {True: "true", False: "false", None: "none"}
    return words[value] if value is None or isinstance(value, bool) else repr(value)


def _nearest(path: Sequence[str], keys: Sequence[str]) -> str:
    """Name the nearest known key: the same word elsewhere, a like path, a like word; else all of the section."""
    wanted = ".".join(path)
    leaves = {key.rsplit(".", 1)[-1]: key for key in keys}
    same = [key for key in keys if key.endswith(f".{path[-1]}")]
    close = sorted(same, key=lambda key: -difflib.SequenceMatcher(None, wanted, key).ratio())
    close = close or difflib.get_close_matches(wanted, keys, n=1, cutoff=0.75)
    close = close or [leaves[leaf] for leaf in difflib.get_close_matches(path[-1], leaves, n=1, cutoff=0.6)]
    if close:
        return f"did you mean {close[0]}?"
    sections = dict.fromkeys(key.split(".")[0] for key in keys)
    section = path[0] if path[0] in sections and len(path) > 1 else None
    known = [key for key in keys if key.startswith(f"{section}.")] if section else list(sections)
    return f"known {'keys' if section else 'sections'}: {', '.join(known)}"
