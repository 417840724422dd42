"""The problems of a recipe, a line for each: the key, what was given, what it takes, what was
meant.

What a key takes is told from the recipe's own schema, so that every kind of wrong value is answered
alike.
"""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from weft.config import RECIPES
from weft.recipes.foreign_keys import OUR_KEYS

LONGEST = 60  # characters of a value that are shown
HUGE = 2**53  # a bound from here on is named only to whoever has passed it
PAGE = "docs/recipes.md explains every key"

Path = tuple[str, ...]
Schema = Mapping[str, Any]


def problems_of(
    error: ValidationError, recipe: type[BaseModel], tree: Any
) -> list[str]:
    """List every problem for which the recipe, or another closed schema, refuses a tree."""
    fields = _fields_of(recipe, tree)
    return list(
        dict.fromkeys(_problem(found, fields, tree) for found in error.errors())
    )


def unknown_keys(error: ValidationError) -> set[Path]:
    """Return where the keys stand that the recipe does not have."""
    return {
        _path(found) for found in error.errors() if found["type"] == "extra_forbidden"
    }


def keys_named(leaf: str) -> list[str]:
    """Return the dotted keys of any task's recipe whose last word is this, or that other programs
    call so.
    """
    keys = list(
        dict.fromkeys(
            key for recipe in RECIPES.values() for key in _keys(_fields_of(recipe, {}))
        )
    )
    return [key for key in keys if key.rsplit(".", 1)[-1] == leaf] or _called_elsewhere(
        leaf, keys
    )


def as_written(value: Any) -> str:
    """Return a value as a recipe would have it."""
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_written, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {as_written(inner)}' for key, inner in value.items())}}}"
    return repr(value) if isinstance(value, str | int | float) else str(value)


def takes(schema: Schema, given: Any = None) -> str:
    """Say what a key takes; `given` is what it got."""
    if "anyOf" in schema:
        return _either([takes(one, given) for one in schema["anyOf"]])
    if "enum" in schema:
        return _either([as_written(value) for value in schema["enum"]])
    if "const" in schema:
        return as_written(schema["const"])
    return _WORDS[schema.get("type", "object")](schema, given)


def _either(choices: Sequence[str]) -> str:
    return " or ".join(
        [", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices
    )


def _number(schema: Schema, given: Any) -> str:
    is_endless = isinstance(given, float) and not math.isfinite(given)
    kind = (
        "a whole number"
        if schema["type"] == "integer"
        else "a finite number"
        if is_endless
        else "a number"
    )
    return " ".join([kind, *_bounds(schema, given)])


def _bounds(schema: Schema, given: Any) -> list[str]:
    words = {
        "minimum": "of at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    passed = isinstance(given, int | float) and given >= HUGE
    named = {
        key: schema[key]
        for key in words
        if key in schema and (schema[key] < HUGE or passed)
    }
    said = [f"{words[key]} {_plain(bound)}" for key, bound in named.items()]
    if {"minimum", "maximum"} <= named.keys():
        return [f"from {_plain(named['minimum'])} to {_plain(named['maximum'])}"]
    return [" and ".join(said)] if said else []


def _plain(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def _text(schema: Schema, given: Any) -> str:
    if "pattern" in schema:
        return "a short name of Latin letters, digits, spaces, dots, hyphens and underscores, a letter or digit first"
    if "maxLength" in schema:
        return f"a text of {schema['minLength']} to {schema['maxLength']} characters"
    return "a text"


def _list(schema: Schema, given: Any) -> str:
    if "prefixItems" in schema:
        return f"a list of {len(schema['prefixItems'])}, each {takes(schema['prefixItems'][0])}"
    return f"a list, each {takes(schema['items'])}"


def _table(schema: Schema, given: Any) -> str:
    inner = schema.get("additionalProperties")
    return (
        f"for each name {takes(inner)}"
        if isinstance(inner, Mapping)
        else "a section with keys of its own"
    )


_WORDS = {
    "array": _list,
    "boolean": lambda schema, given: "true or false",
    "integer": _number,
    "null": lambda schema, given: "none",
    "number": _number,
    "object": _table,
    "string": _text,
}


def _fields_of(recipe: type[BaseModel], tree: Any) -> Mapping[str, Schema]:
    """Map each section and key, dotted, to its schema.

    Those of the model are of the kind that the tree asks for.
    """
    model = tree.get("model") if isinstance(tree, Mapping) else None
    is_recurrent = isinstance(model, Mapping) and model.get("kind") == "recurrent"
    return _fields(recipe, "recurrent" if is_recurrent else "transformer")


@cache
def _fields(recipe: type[BaseModel], kind: str) -> Mapping[str, Schema]:
    whole = recipe.model_json_schema()
    return dict(_walk(whole, whole["$defs"], kind))


def _walk(
    schema: Schema, defined: Schema, kind: str, prefix: str = ""
) -> Iterator[tuple[str, Schema]]:
    for name, field in schema["properties"].items():
        options = [_resolved(option, defined) for option in field.get("oneOf", [field])]
        of_kind = [option for option in options if _kind_of(option) == kind]
        inner = (of_kind or options)[0]
        yield f"{prefix}{name}", inner
        if "properties" in inner:
            yield from _walk(inner, defined, kind, f"{prefix}{name}.")


def _resolved(schema: Schema, defined: Schema) -> Schema:
    found: Schema = (
        defined[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema
    )
    return found


def _kind_of(schema: Schema) -> str:
    return str(schema.get("properties", {}).get("kind", {}).get("const", ""))


def _keys(fields: Mapping[str, Schema]) -> list[str]:
    """Return every dotted key, without the sections."""
    return [key for key, schema in fields.items() if "properties" not in schema]


def _path(problem: Any) -> Path:
    """Return where a problem is, without the tag that is added for the kind of model."""
    path = tuple(str(part) for part in problem["loc"])
    tagged = (
        len(path) > 1 and path[0] == "model" and path[1] in ("transformer", "recurrent")
    )
    return path[:1] + path[2:] if tagged else path


def _problem(problem: Any, fields: Mapping[str, Schema], tree: Any) -> str:
    path = _path(problem)
    kind = problem["type"]
    if kind == "extra_forbidden":
        return _unknown(path, fields)
    # else it is one of a list's numbers
    if kind == "missing" and ".".join(path) in fields:
        return f"lacks {'.'.join(path)}"
    if kind == "json_invalid":
        return (
            "holds a character that is no text; write it as UTF-8"
            if _is_broken(tree)
            else "nested too deeply"
        )
    # within a list, or one of several forms of a value
    while path and ".".join(path) not in fields:
        path = path[:-1]
    key = ".".join(path)
    schema = fields.get(key, {})
    # Keys that do not fit together, or the parts of a list: our own validators say it.
    if kind == "value_error" and (
        not path or "properties" in schema or "items" in schema
    ):
        message = problem["msg"].removeprefix("Value error, ")
        return f"{key}: {message}" if key else message
    given = _at(tree, path)
    shown = as_written(given) if key else repr(given)
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
    remedy = meant(schema, given) or _unquoted(schema, given)
    return f"{key}{' = ' if key else ''}{shown}: must be {takes(schema, given)}{remedy}"


def _at(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def _is_broken(tree: Any) -> bool:
    """Return whether a key or a value was not UTF-8: Python has lone surrogates then."""
    if isinstance(tree, Mapping):
        return any(_is_broken(part) for pair in tree.items() for part in pair)
    if isinstance(tree, list):
        return any(map(_is_broken, tree))
    return isinstance(tree, str) and any(
        "\ud800" <= character <= "\udfff" for character in tree
    )


def meant(schema: Schema, given: Any) -> str:
    """Return the nearest of the words that a key takes, behind a semicolon; empty without any."""
    words = [
        word
        for form in _forms(schema)
        for word in form.get("enum", [])
        if isinstance(word, str)
    ]
    close = difflib.get_close_matches(str(given).lower(), words, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _unquoted(schema: Schema, given: Any) -> str:
    """Say what to do about a number in quotes."""
    wants_number = {form.get("type") for form in _forms(schema)} & {"integer", "number"}
    return (
        "; write it without quotes"
        if wants_number and isinstance(given, str) and _is_number(given)
        else ""
    )


def _forms(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf", [schema]))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _unknown(path: Path, fields: Mapping[str, Schema]) -> str:
    """Return an unknown key: the one that was meant, and the tasks that have it where others do."""
    keys = _keys(fields)
    key = ".".join(path)
    meant = _same_or_called(path, keys)
    shown = key if key.isprintable() and key else repr(key)
    owners = [
        task for task, recipe in RECIPES.items() if key in _keys(_fields_of(recipe, {}))
    ]
    if owners:
        return f"unknown key {shown}, which is for {' and '.join(owners)}; {meant or 'leave it out'}"
    return f"unknown key {shown}; {meant or _alike(path, keys) or f'{_known(path, keys)}; {PAGE}'}"


def _same_or_called(path: Path, keys: Sequence[str]) -> str:
    """Return the key of that word in another section, or that other programs call so; empty without
    any.
    """
    wanted = ".".join(path)
    if same := [key for key in keys if key.endswith(f".{path[-1]}")]:
        return f"did you mean {max(same, key=lambda key: difflib.SequenceMatcher(None, wanted, key).ratio())}?"
    called = _called_elsewhere(path[-1], keys)
    steps = (
        ", in steps, of which a reading of the text takes many"
        if "epoch" in path[-1]
        else ""
    )
    return f"did you mean {' or '.join(called)}{steps}?" if called else ""


def _alike(path: Path, keys: Sequence[str]) -> str:
    """Return the key written most like this one; empty without any."""
    leaves = {key.rsplit(".", 1)[-1]: key for key in keys}
    close = difflib.get_close_matches(".".join(path), keys, n=1, cutoff=0.75)
    close = close or [
        leaves[leaf]
        for leaf in difflib.get_close_matches(path[-1], leaves, n=1, cutoff=0.6)
    ]
    return f"did you mean {close[0]}?" if close else ""


def _known(path: Path, keys: Sequence[str]) -> str:
    sections = dict.fromkeys(key.split(".")[0] for key in keys)
    section = path[0] if path[0] in sections and len(path) > 1 else None
    if section is None:
        return f"known sections: {', '.join(sections)}"
    known = [key for key in keys if key.startswith(f"{section}.")]
    return f"known keys: {', '.join(known)}"


def _word(leaf: str) -> str:
    return leaf.lower().replace("-", "_")


def _called_elsewhere(leaf: str, keys: Sequence[str]) -> list[str]:
    """Return the keys for which other programs have such a word."""
    word = _word(leaf)
    meant = set()
    for own_keys, other_words in OUR_KEYS:
        if word in other_words:
            meant.add(next((key for key in own_keys if key in keys), None))
    return [key for key in keys if key in meant]
