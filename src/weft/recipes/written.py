"""A recipe as TOML, as short as it can be: what differs from the defaults."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from weft.config import Recipe, Section


def as_toml(recipe: Recipe) -> str:
    """Return the task of a recipe and the keys that differ from the defaults, as TOML.

    `load_recipe` reads the same recipe from it.
    """
    tree = {"task": recipe.task, **_changed(recipe)}
    return "\n".join(_lines(tree, ""))


def _changed(section: Section) -> dict[str, Any]:
    """Return the values that are not the defaults of their keys; inner sections as mappings."""
    values = section.model_dump(mode="json")
    changed: dict[str, Any] = {}
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if isinstance(value, Section):
            if inner := _changed(value):
                changed[key] = inner
        elif field.is_required() or value != field.get_default():
            changed[key] = values[key]
    return changed


def _lines(tree: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the lines of a section: its own values, then the sections in it.

    Weights by label are a mapping, and are written as a section.
    """
    sections = {}
    values = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            sections[key] = value
        else:
            values[key] = value
    if path and (values or not sections):
        yield f"\n[{path}]"
    for key, value in values.items():
        yield f"{_quoted_key(key)} = {written_value(value)}"
    for key, section in sections.items():
        name = _quoted_key(key)
        yield from _lines(section, f"{path}.{name}" if path else name)


def _quoted_key(key: str) -> str:
    """Return a key bare where TOML takes it so, else as a string."""
    is_bare = key.replace("_", "").isalnum() and key.isascii()
    return key if is_bare else written_value(key)


def written_value(value: Any) -> str:
    """Return a value in TOML, which has no null: the recipes say "none" for it."""
    if isinstance(value, list):
        return f"[{', '.join(map(written_value, value))}]"
    if isinstance(value, Mapping):
        pairs = [f"{_quoted_key(key)} = {written_value(value[key])}" for key in value]
        return f"{{{', '.join(pairs)}}}"
    if value is None:
        value = "none"
    # JSON and TOML write strings, numbers and booleans alike, but for the character DEL
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
