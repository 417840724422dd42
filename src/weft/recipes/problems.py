"""The problems of a recipe in words: the key, its value, the values it takes, and a suggestion.

The values that a key takes are read from the recipe's JSON schema.
"""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from weft.config import MODEL_KINDS, RECIPES, SIDES
from weft.recipes.foreign_keys import NAMES_ELSEWHERE

LONGEST = 60  # characters of a value that are shown
HUGE = 2**53  # a bound of this size or more is named only where a value exceeds it
PAGE = "docs/recipes.md explains every key"

Path = tuple[str, ...]
Schema = Mapping[str, Any]


def problems_of(
    error: ValidationError, recipe: type[BaseModel], tree: Any
) -> list[str]:
    """Return every problem of a tree that a recipe or another closed schema refused, each once."""
    fields = _fields_of(recipe, tree)
    problems = [
        _of_section_in_list(problem, recipe, fields, tree)
        or _problem(problem, recipe, fields, tree)
        for problem in error.errors()
    ]
    return list(dict.fromkeys(problems))


def unknown_keys(error: ValidationError) -> set[Path]:
    """Return the paths of the keys that the recipe does not have."""
    problems = error.errors()
    return {_path(p) for p in problems if p["type"] == "extra_forbidden"}


def keys_named(leaf: str) -> list[str]:
    """Return the dotted keys of all tasks whose last part is `leaf`.

    Where there are none, return those that other programs call so.
    """
    keys: dict[str, None] = {}
    for recipe in RECIPES.values():
        keys |= dict.fromkeys(_keys(_fields_of(recipe, {})))
    named = [key for key in keys if key.rsplit(".", 1)[-1] == leaf]
    return named or _called_elsewhere(leaf, list(keys))


def as_written(value: Any) -> str:
    """Return a value in the form in which a recipe would hold it."""
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_written, value))}]"
    if isinstance(value, Mapping):
        parts = [f"{key} = {as_written(inner)}" for key, inner in value.items()]
        return f"{{{', '.join(parts)}}}"
    return repr(value) if isinstance(value, str | int | float) else str(value)


def takes(schema: Schema, value: Any = None) -> str:
    """Return in words which values a key takes; `value` is the wrong one that it got."""
    if "anyOf" in schema:
        return _either([takes(form, value) for form in schema["anyOf"]])
    if "enum" in schema:
        return _either([as_written(choice) for choice in schema["enum"]])
    if "const" in schema:
        return as_written(schema["const"])
    return _WORDS[schema.get("type", "object")](schema, value)


def _either(choices: Sequence[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _number(schema: Schema, value: Any) -> str:
    kind = "a number"
    if schema["type"] == "integer":
        kind = "a whole number"
    elif isinstance(value, float) and not math.isfinite(value):
        kind = "a finite number"
    return f"{kind} {_bounds(schema, value)}".rstrip()


def _bounds(schema: Schema, value: Any) -> str:
    words = {
        "minimum": "of at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    is_huge = isinstance(value, int | float) and value >= HUGE
    bounds = {key: schema[key] for key in words if key in schema}
    bounds = {k: bound for k, bound in bounds.items() if bound < HUGE or is_huge}
    if {"minimum", "maximum"} <= bounds.keys():
        return f"from {_plain(bounds['minimum'])} to {_plain(bounds['maximum'])}"
    parts = [f"{words[key]} {_plain(bound)}" for key, bound in bounds.items()]
    return " and ".join(parts)


def _plain(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def _text(schema: Schema, value: Any) -> str:
    if "maxLength" in schema:
        return f"a text of {schema['minLength']} to {schema['maxLength']} characters"
    return "a text"


def _list(schema: Schema, value: Any) -> str:
    if items := schema.get("prefixItems"):
        return f"a list of {len(items)}, each {takes(items[0])}"
    return f"a list, each {takes(schema['items'])}"


def _table(schema: Schema, value: Any) -> str:
    inner = schema.get("additionalProperties")
    if isinstance(inner, Mapping):
        return f"for each name {takes(inner)}"
    return "a section with keys of its own"


_WORDS = {
    "array": _list,
    "boolean": lambda schema, value: "true or false",
    "integer": _number,
    "null": lambda schema, value: "none",
    "number": _number,
    "object": _table,
    "string": _text,
}


def _fields_of(recipe: type[BaseModel], tree: Any) -> Mapping[str, Schema]:
    """Return the schema of each dotted section and key, for the kind of model that `tree` has."""
    model = tree.get("model") if isinstance(tree, Mapping) else None
    is_recurrent = isinstance(model, Mapping) and model.get("kind") == "recurrent"
    return _fields(recipe, "recurrent" if is_recurrent else "transformer")


@cache
def _fields(recipe: type[BaseModel], kind: str) -> Mapping[str, Schema]:
    schema = recipe.model_json_schema()
    return dict(_walk(schema, schema["$defs"], kind))


def _walk(
    schema: Schema, definitions: Schema, kind: str, prefix: str = ""
) -> Iterator[tuple[str, Schema]]:
    for name, field in schema["properties"].items():
        options = field.get("oneOf", [field])
        options = [_resolved(option, definitions) for option in options]
        of_kind = [option for option in options if _kind_of(option) == kind]
        inner = (of_kind or options)[0]
        yield f"{prefix}{name}", inner
        if "properties" in inner:
            yield from _walk(inner, definitions, kind, f"{prefix}{name}.")


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rsplit("/", 1)[-1]
    definition: Schema = definitions[name]
    return definition


def _kind_of(schema: Schema) -> str:
    return str(schema.get("properties", {}).get("kind", {}).get("const", ""))


def _keys(fields: Mapping[str, Schema]) -> list[str]:
    """Return the dotted keys, without the sections."""
    return [key for key, schema in fields.items() if "properties" not in schema]


def _path(problem: Any) -> Path:
    """Return the path of a problem, without the tag that pydantic adds for the kind of model."""
    path = tuple(str(part) for part in problem["loc"])
    if path[:2] in (("model", "transformer"), ("model", "recurrent")):
        return path[:1] + path[2:]
    return path


def _where_written(path: Path, tree: Any) -> Path:
    """Return the path of the tokenizers' key for both sides, where a side has it from there."""
    if not _is_of_side(path) or _holds(tree, path[:3]):
        return path
    return path[:1] + path[2:]


def _is_of_side(path: Path) -> bool:
    """Return whether a path leads into the tokenizer of one side of a translator."""
    return len(path) > 1 and path[0] == "tokenizer" and path[1] in SIDES


def _holds(tree: Any, path: Path) -> bool:
    for part in path:
        if not isinstance(tree, Mapping) or part not in tree:
            return False
        tree = tree[part]
    return True


def _problem(
    problem: Any, recipe: type[BaseModel], fields: Mapping[str, Schema], tree: Any
) -> str:
    path = _where_written(_path(problem), tree)
    kind = problem["type"]
    if kind == "extra_forbidden":
        return _of_other_kind(path, recipe, fields) or _unknown(path, fields)
    # a missing path that is not a key is a number missing in a list
    if kind == "missing" and ".".join(path) in fields:
        return f"lacks {'.'.join(path)}"
    if kind == "json_invalid":
        if _is_broken(tree):
            return "holds a character that is no text; write it as UTF-8"
        return "nested too deeply"
    # the path may lead into a list, or to one of several forms of a value
    while path and ".".join(path) not in fields:
        path = path[:-1]
    key = ".".join(path)
    schema = fields.get(key, {})
    is_section_or_list = not path or "properties" in schema or "items" in schema
    if kind == "value_error" and is_section_or_list:
        # the validators of weft.config have words of their own
        message = problem["msg"].removeprefix("Value error, ")
        return f"{key}: {message}" if key else message
    return _wrong_value(key, schema, _at(tree, path))


def _of_section_in_list(
    problem: Any, recipe: type[BaseModel], fields: Mapping[str, Schema], tree: Any
) -> str:
    """Report a key of one of several sections, such as the mixtures; "" for anything else."""
    path = _path(problem)
    place = next((i for i, part in enumerate(path) if part.isdigit()), len(path))
    outer, inner = path[:place], path[place + 1 :]
    items = fields.get(".".join(outer), {}).get("items", {})
    if not inner or "$ref" not in items:
        return ""
    number = int(path[place])
    where = f"{'.'.join(outer)}, number {number + 1}"
    name, *rest = inner
    if problem["type"] == "missing":
        return f"{where}: lacks {name}"
    keys = _resolved(items, recipe.model_json_schema()["$defs"])["properties"]
    if name not in keys:
        return f"{where}: unknown key {name}; it has {_either([*keys])}"
    schema = keys[name]
    if rest:
        schema = schema.get("additionalProperties", schema)
    value = _at(_at(tree, outer)[number], inner)
    return _wrong_value(f"{where}: {'.'.join(inner)}", schema, value)


def _wrong_value(key: str, schema: Schema, value: Any) -> str:
    shown = as_written(value) if key else repr(value)
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}..."
    start = f"{key} = {shown}" if key else shown
    remedy = meant(schema, value) or _unquoted(schema, value)
    return f"{start}: must be {takes(schema, value)}{remedy}"


def _at(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def _is_broken(tree: Any) -> bool:
    """Return whether a key or value was not UTF-8: Python then has lone surrogates in it."""
    if isinstance(tree, Mapping):
        return any(_is_broken(part) for pair in tree.items() for part in pair)
    if isinstance(tree, list):
        return any(map(_is_broken, tree))
    if not isinstance(tree, str):
        return False
    return any("\ud800" <= character <= "\udfff" for character in tree)


def meant(schema: Schema, value: Any) -> str:
    """Suggest the word nearest to `value` that a key takes, after a semicolon; "" without one."""
    words: list[Any] = []
    for form in _forms(schema):
        words += form.get("enum", [])
    words = [word for word in words if isinstance(word, str)]
    close = difflib.get_close_matches(str(value).lower(), words, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _unquoted(schema: Schema, value: Any) -> str:
    """Return the remedy for a number in quotes; "" for anything else."""
    types = {form.get("type") for form in _forms(schema)}
    takes_number = types & {"integer", "number"}
    if takes_number and isinstance(value, str) and _is_number(value):
        return "; write it without quotes"
    return ""


def _forms(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf", [schema]))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _of_other_kind(
    path: Path, recipe: type[BaseModel], fields: Mapping[str, Schema]
) -> str:
    """Report a key that the recipe has for another kind of model; "" where it has none such."""
    key = ".".join(path)
    for kind in MODEL_KINDS:
        if key in _keys(_fields(recipe, kind)):
            remedy = _same_or_called(path, _keys(fields)) or "leave it out"
            return f"unknown key {key}, which is for model.kind = {kind!r}; {remedy}"
    return ""


def _unknown(path: Path, fields: Mapping[str, Schema]) -> str:
    """Report an unknown key, with a suggestion and with the tasks whose recipes have it."""
    keys = _keys(fields)
    key = ".".join(path)
    shown = key if key.isprintable() and key else repr(key)
    suggestion = _same_or_called(path, keys)
    owners = [
        task for task, recipe in RECIPES.items() if key in _keys(_fields_of(recipe, {}))
    ]
    if owners:
        suggestion = suggestion or "leave it out"
        return f"unknown key {shown}, which is for {' and '.join(owners)}; {suggestion}"
    suggestion = suggestion or _alike(path, keys) or f"{_known(path, keys)}; {PAGE}"
    return f"unknown key {shown}; {suggestion}"


def _same_or_called(path: Path, keys: Sequence[str]) -> str:
    """Suggest the same key in another section, or a key that other programs call so; "" without."""
    leaf = path[-1]
    if same := [key for key in keys if key.endswith(f".{leaf}")]:
        return f"did you mean {_most_similar('.'.join(path), same)}?"
    called = _called_elsewhere(leaf, keys)
    if not called:
        return ""
    if _is_of_side(path):
        called = [".".join([*path[:2], key.rsplit(".", 1)[-1]]) for key in called]
    steps = " (steps, not epochs)" if "epoch" in leaf else ""
    return f"did you mean {' or '.join(called)}{steps}?"


def _most_similar(wanted: str, keys: Sequence[str]) -> str:
    def ratio(key: str) -> float:
        return difflib.SequenceMatcher(None, wanted, key).ratio()

    return max(keys, key=ratio)


def _alike(path: Path, keys: Sequence[str]) -> str:
    """Suggest the key with the most similar spelling; "" without one."""
    close = difflib.get_close_matches(".".join(path), keys, n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]}?"
    leaves = {key.rsplit(".", 1)[-1]: key for key in keys}
    close = difflib.get_close_matches(path[-1], leaves, n=1, cutoff=0.6)
    return f"did you mean {leaves[close[0]]}?" if close else ""


def _known(path: Path, keys: Sequence[str]) -> str:
    sections = dict.fromkeys(key.split(".")[0] for key in keys)
    section = path[0]
    if section in sections and len(path) > 1:
        known = [key for key in keys if key.startswith(f"{section}.")]
        return f"known keys: {', '.join(known)}"
    return f"known sections: {', '.join(sections)}"


def _called_elsewhere(leaf: str, keys: Sequence[str]) -> list[str]:
    """Return the keys that other programs call `leaf`."""
    name = leaf.lower().replace("-", "_")
    suggested = set()
    for own, names in NAMES_ELSEWHERE.items():
        if name in names.split():
            suggested.update([key for key in own.split() if key in keys][:1])
    return [key for key in keys if key in suggested]
