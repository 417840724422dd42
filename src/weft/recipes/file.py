"""Recipes read: from TOML, from settings, from what a run has saved.

Every problem in one is listed at once, and an unknown key names its nearest neighbour. TOML has no
null: the word "none" stands for it.
"""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from weft.config import RECIPES, Recipe
from weft.errors import UsageError
from weft.recipes.problems import problems_of, unknown_keys

R = TypeVar("R", bound=Recipe)


def recipe_names() -> list[str]:
    """Return the packaged recipes, sorted."""
    folder = resources.files("weft") / "recipes"
    return sorted(
        p.name.removesuffix(".toml")
        for p in folder.iterdir()
        if p.name.endswith(".toml")
    )


def load_recipe(
    name_or_file: str | None = None, settings: Sequence[str] = ()
) -> Recipe:
    """Read a packaged recipe by name, a TOML file or a run's recipe.json; apply `section.key=value`
    settings.

    Its `task` decides which recipe it is; without one it is a translation.

    Raises UsageError naming every problem, with the file or setting that it comes from.
    """
    tree: dict[str, Any] = {} if name_or_file is None else _read_recipe(name_or_file)
    for setting in settings:
        _apply_setting(tree, setting)
    return build_recipe(tree, name_or_file or "recipe")


def build_recipe(tree: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Validate a plain mapping. Raises UsageError with one line for each problem."""
    try:
        recipe, problems = _validated(_without_none(tree))
    except (ValueError, RecursionError):
        raise UsageError(
            f"{where}: nested too deeply, or a number of too many digits"
        ) from None
    if recipe is None:
        raise UsageError("\n".join(f"{where}: {problem}" for problem in problems))
    return recipe


def with_values(recipe: R, values: Mapping[str, Any]) -> R:
    """Return the recipe with some dotted keys replaced, validated anew."""
    tree = recipe.model_dump(mode="json")
    for key, value in values.items():
        _place(tree, key, value)
    changed = build_recipe(tree)
    assert isinstance(changed, type(recipe))
    return changed


def _read_recipe(name_or_file: str) -> dict[str, Any]:
    """Return the keys of a recipe, laid over those of the one that it extends."""
    tree = _read_tree(name_or_file)
    if "extends" not in tree:
        return tree
    base = tree.pop("extends")
    if not isinstance(base, str):
        raise UsageError(
            f"{name_or_file}: extends = {base!r:.60}: must be the name or the file of a recipe"
        )
    below = _read_tree(
        base if base in recipe_names() else str(Path(name_or_file).parent / base)
    )
    if "extends" in below:
        raise UsageError(
            f"{name_or_file}: extends {base!r:.80}, which extends a recipe itself; name one that does not"
        )
    return _laid_over(below, tree)


def _laid_over(below: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two trees; of a key that both have, `tree` has the value."""
    found = dict(below)
    for key, value in tree.items():
        under = below.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        found[key] = _laid_over(under, value) if both else value  # type: ignore[arg-type]
    return found


def _read_tree(name_or_file: str) -> dict[str, Any]:
    """Return the keys of one file: TOML, or the recipe that a run has kept as JSON."""
    text = _text_of(name_or_file)
    is_json = name_or_file.endswith(".json")
    try:
        tree = json.loads(text) if is_json else tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # not only TOMLDecodeError: an endless number, endless nesting
        raise UsageError(
            f"{name_or_file}: not valid {'JSON' if is_json else 'TOML'}: {error}"
        ) from None
    if is_json:
        tree = tree.get("recipe") if isinstance(tree, dict) else None
    if not isinstance(tree, dict):
        raise UsageError(
            f"{name_or_file}: not the recipe.json of a run; a recipe of your own is a TOML file"
        )
    return tree


def _text_of(name_or_file: str) -> str:
    if name_or_file in recipe_names():
        text = (resources.files("weft") / "recipes" / f"{name_or_file}.toml").read_text(
            encoding="utf-8"
        )
    else:
        # unlike Path.is_file, False for a name that is too long
        if not os.path.isfile(name_or_file):
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
            raise UsageError(
                f"{name_or_file}: cannot be read ({error.strerror})"
            ) from None
    return text


def _apply_setting(tree: dict[str, Any], setting: str) -> None:
    """Set one `section.key=value`; the value is TOML, or else a bare word taken as a string."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise UsageError(
            f"--set {setting!r}: write section.key=value, for example training.max_steps=2000"
        )
    _place(tree, key.strip(), _parse_value(text.strip()))


def _parse_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # a second line would be a second key
    return parsed["value"] if len(parsed) == 1 else text


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


def _validated(tree: Any) -> tuple[Recipe | None, list[str]]:
    """Return the recipe, or else every problem in it.

    How the keys of a section fit together is checked only where all are known: hence once more
    without the unknown ones.
    """
    task = (
        tree.get("task", "translation") if isinstance(tree, Mapping) else "translation"
    )
    if not isinstance(task, str) or task not in RECIPES:
        return None, [f"task = {task!r:.60}: known tasks: {', '.join(RECIPES)}"]
    try:
        return RECIPES[task].model_validate_json(json.dumps(tree, default=str)), []
    except ValidationError as error:
        problems = problems_of(error, RECIPES[task], tree)
        unknown = unknown_keys(error)
    more = _validated(_without_keys(tree, unknown))[1] if unknown else []
    return None, [*problems, *(problem for problem in more if problem not in problems)]


def _without_keys(
    tree: Any, paths: Set[tuple[str, ...]], here: tuple[str, ...] = ()
) -> Any:
    if not isinstance(tree, Mapping):
        return tree
    return {
        key: _without_keys(inner, paths, (*here, key))
        for key, inner in tree.items()
        if (*here, key) not in paths
    }
