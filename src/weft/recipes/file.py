"""Reading a recipe: from TOML, from `section.key=value` settings, or from a run's recipe.json.

All problems of a recipe are reported at once, and an unknown key comes with a suggestion. TOML has
no null; the string "none" stands for it.
"""

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from weft.config import MODEL_KINDS, RECIPES, SIDES, Recipe
from weft.errors import UsageError
from weft.recipes.problems import problems_of, unknown_keys
from weft.recipes.retired import without_retired

R = TypeVar("R", bound=Recipe)


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes, sorted."""
    folder = resources.files("weft") / "recipes"
    files = [path.name for path in folder.iterdir() if path.name.endswith(".toml")]
    return sorted(name.removesuffix(".toml") for name in files)


def load_recipe(
    name_or_file: str | None = None, settings: Sequence[str] = ()
) -> Recipe:
    """Read a recipe and apply `section.key=value` settings.

    It is a packaged recipe's name, a TOML file or a run's recipe.json. Without a `task` it is for
    translation. Where a setting says another `model.kind`, what is for the recipe's own kind alone
    is left out, unless the recipe is a file of one's own. Raises UsageError with every problem, and
    the file or setting that it comes from.
    """
    values = [_parse_setting(setting) for setting in settings]
    tree: dict[str, Any] = {}
    if name_or_file is not None:
        tree = _read_recipe(name_or_file, dict(values).get("model.kind"))
    for key, value in values:
        _place(tree, key, value)
    return build_recipe(tree, name_or_file or "recipe")


def own_keys(settings: Sequence[str]) -> frozenset[str]:
    """Return the keys that settings set. Raises UsageError for what is no setting."""
    return frozenset(key for key, _ in map(_parse_setting, settings))


def build_recipe(tree: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Validate a mapping as a recipe. Raises UsageError with one line for each problem."""
    try:
        kept, gone = without_retired(_without_none(tree))
        recipe, problems = _validated(kept)
    except (ValueError, RecursionError):
        raise UsageError(
            f"{where}: nested too deeply, or a number of too many digits"
        ) from None
    problems = [*gone, *problems]
    if recipe is None or problems:
        raise UsageError("\n".join(f"{where}: {problem}" for problem in problems))
    return recipe


def with_values(recipe: R, values: Mapping[str, Any]) -> R:
    """Return the recipe with the values of some dotted keys replaced, validated again."""
    tree = recipe.model_dump(mode="json")
    for key, value in values.items():
        _place(tree, key, value)
    changed = build_recipe(tree)
    assert isinstance(changed, type(recipe))
    return changed


def _read_recipe(name_or_file: str, kind: Any) -> dict[str, Any]:
    """Read the keys of a recipe and, below them, those of the recipe that it extends.

    `kind` is the model's kind that is set beside it, None for its own.
    """
    tree = _read_tree(name_or_file, kind)
    if "extends" not in tree:
        return tree
    base = tree.pop("extends")
    if not isinstance(base, str):
        raise UsageError(
            f"{name_or_file}: extends = {base!r:.60}: must be the name or the file of a recipe"
        )
    if base not in recipe_names():
        base_file = str(Path(name_or_file).parent / base)
    else:
        base_file = base
    model = tree.get("model")
    if kind is None and isinstance(model, dict):
        kind = model.get("kind")
    base_tree = _read_tree(base_file, kind)
    if "extends" in base_tree:
        raise UsageError(
            f"{name_or_file}: extends {base!r:.80}, which extends a recipe itself; name one that does not"
        )
    shared = tree.get("tokenizer")
    if isinstance(shared, dict):
        _drop_side_keys(base_tree, shared)
    return _merged(base_tree, tree)


def _drop_side_keys(tree: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Drop keys of one side's tokenizer, which the same keys for both sides take the place of."""
    tokenizer = tree.get("tokenizer")
    if not isinstance(tokenizer, dict):
        return
    for side in SIDES:
        settings = tokenizer.get(side)
        if isinstance(settings, dict):
            for key in keys:
                settings.pop(key, None)


def _merged(base: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two trees; where both have a key, the value of `tree` wins."""
    merged = dict(base)
    for key, value in tree.items():
        below = base.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(below, value)
        else:
            merged[key] = value
    return merged


def _read_tree(name_or_file: str, kind: Any) -> dict[str, Any]:
    """Read the keys of one file: TOML, or a run's recipe.json.

    Of a file that the user did not write, the keys that a model of another `kind` lacks are left
    out.
    """
    text = _text_of(name_or_file)
    is_json = name_or_file.endswith(".json")
    language = "JSON" if is_json else "TOML"
    try:
        tree = json.loads(text) if is_json else tomllib.loads(text)
    # also an enormous number or endless nesting, which are no TOMLDecodeError
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name_or_file}: not valid {language}: {error}") from None
    if is_json:
        tree = tree.get("recipe") if isinstance(tree, dict) else None
    if not isinstance(tree, dict):
        raise UsageError(
            f"{name_or_file}: not the recipe.json of a run; a recipe of your own is a TOML file"
        )
    if is_json or name_or_file in recipe_names():
        _drop_keys_of_other_kinds(tree, kind)
    return tree


def _drop_keys_of_other_kinds(tree: Mapping[str, Any], kind: Any) -> None:
    """Drop the model's keys that are for the kind of the tree, and not for this one."""
    model = tree.get("model")
    new = MODEL_KINDS.get(str(kind))
    if new is None or not isinstance(model, dict):
        return
    old = MODEL_KINDS.get(str(model.get("kind", "transformer")), new)
    for key in old.model_fields.keys() - new.model_fields.keys():
        model.pop(key, None)


def _files_beside(path: Path) -> list[str]:
    """Return the paths of all files in a path's folder, or of the run's recipe that is meant."""
    recipe = path.parent / "run" / path.name
    try:
        if path.name == "recipe.json" and recipe.is_file():
            return [str(recipe)]
        return [str(path.parent / name) for name in os.listdir(path.parent)]
    except (OSError, ValueError):
        return []


def _text_of(name_or_file: str) -> str:
    if name_or_file in recipe_names():
        packaged = resources.files("weft") / "recipes" / f"{name_or_file}.toml"
        return packaged.read_text(encoding="utf-8")
    # unlike Path.is_file, False for a name that is too long
    if not os.path.isfile(name_or_file):
        names = [*recipe_names(), *_files_beside(Path(name_or_file))]
        near = difflib.get_close_matches(name_or_file, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        known = ", ".join(recipe_names())
        raise UsageError(
            f"recipe {name_or_file!r:.80} is neither a file nor a packaged recipe ({known}){hint}"
        )
    try:
        return Path(name_or_file).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name_or_file}: not UTF-8 at byte {error.start}; save the recipe as UTF-8"
        ) from None
    except OSError as error:
        raise UsageError(f"{name_or_file}: cannot be read ({error.strerror})") from None


def _parse_setting(setting: str) -> tuple[str, Any]:
    """Return the key and the value of `section.key=value`; one that is not TOML is a string."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise UsageError(
            f"--set {setting!r}: write section.key=value, for example training.max_steps=2000"
        )
    return key.strip(), _parse_value(text.strip())


def _parse_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # a value with a line end could hold a second key
    return parsed["value"] if len(parsed) == 1 else text


def _place(tree: dict[str, Any], dotted: str, value: Any) -> None:
    """Set a dotted key; a tokenizer's key for both sides takes the place of either side's own."""
    *sections, key = dotted.split(".")
    if sections == ["tokenizer"]:
        _drop_side_keys(tree, [key])
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
    """Return the recipe, or None and all of its problems.

    Whether the keys of a section fit together is checked only where all of them are known: with
    unknown keys, the rest is validated once more without them.
    """
    task = "translation"
    if isinstance(tree, Mapping):
        task = tree.get("task", task)
    if not isinstance(task, str) or task not in RECIPES:
        return None, [f"task = {task!r:.60}: known tasks: {', '.join(RECIPES)}"]
    schema = RECIPES[task]
    try:
        return schema.model_validate_json(json.dumps(tree, default=str)), []
    except ValidationError as error:
        problems = problems_of(error, schema, tree)
        unknown = unknown_keys(error)
    if unknown:
        _, more = _validated(_without_keys(tree, unknown))
        problems += [problem for problem in more if problem not in problems]
    return None, problems


def _without_keys(
    tree: Any, paths: Set[tuple[str, ...]], here: tuple[str, ...] = ()
) -> Any:
    if isinstance(tree, list):
        return [
            _without_keys(inner, paths, (*here, str(place)))
            for place, inner in enumerate(tree)
        ]
    if not isinstance(tree, Mapping):
        return tree
    return {
        key: _without_keys(inner, paths, (*here, key))
        for key, inner in tree.items()
        if (*here, key) not in paths
    }
