"""JSON as nodes with their places in the text, and strings written as a file writes them."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.errors import UsageError

_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:(\"(?:[^\"\\]|\\.)*+\")|([{}\[\]:,])|([^\s\"{}\[\]:,]++))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(/)|.)")
_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 256


@dataclass(frozen=True)
class Node:
    """A value: the keys that lead to it, a number for a place in a list, and where it stands.

    `kind` is `"` of a string, `{` of an object, `[` of a list, empty of all else.
    """

    path: tuple[str, ...]
    kind: str
    start: int
    end: int


@dataclass
class _Open:
    """An object or a list that is being read."""

    kind: str
    start: int
    path: tuple[str, ...]
    key: str = ""
    number: int = 0
    is_key: bool = True


def check_json(text: str, name: str, line: int = 1) -> None:
    """Raise UsageError, with the line, for what is no JSON; `line` is that of the text's first."""
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        where = f"{name}:{line + error.lineno - 1}"
        raise UsageError(
            f"{where}: not JSON: {error.msg} (column {error.colno}); correct that"
        ) from None
    except RecursionError:
        raise UsageError(
            f"{name}:{line}: nested more than {MAX_DEPTH} deep, which is not read"
        ) from None


def nodes_of(text: str, name: str) -> list[Node]:
    """Return all values in a text of JSON, in the order in which they begin.

    Raises UsageError if it is none, or nested too deep.
    """
    check_json(text, name)
    return sorted(_nodes(text, name), key=lambda node: (node.start, -node.end))


def _nodes(text: str, name: str) -> Iterator[Node]:
    opened: list[_Open] = []
    for match in _TOKEN.finditer(text):
        mark = match[2] or ""
        end = match.end()
        start = end - len(match[1] or match[2] or match[3])
        inner = opened[-1] if opened else None
        if mark in ("{", "["):
            opened.append(_Open(mark, start, _path(inner)))
            if len(opened) > MAX_DEPTH:
                raise UsageError(
                    f"{name}:{text.count(chr(10), 0, start) + 1}: nested more than {MAX_DEPTH} deep, which is not read"
                )
        elif mark in ("}", "]"):
            done = opened.pop()
            yield Node(done.path, done.kind, done.start, end)
        elif inner and mark == ",":
            inner.is_key = True
            inner.number += 1
        elif inner and mark == ":":
            inner.is_key = False
        elif inner and inner.kind == "{" and inner.is_key:
            inner.key = read_string(match[1])
        else:
            yield Node(_path(inner), '"' if match[1] else "", start, end)


def _path(inner: _Open | None) -> tuple[str, ...]:
    if inner is None:
        return ()
    return (*inner.path, inner.key if inner.kind == "{" else str(inner.number))


def read_string(raw: str) -> str:
    """Return what a string says, with its quotes."""
    found = json.loads(raw, strict=False)
    assert isinstance(found, str)
    return found


def write_string(text: str, raw: str, is_ascii: bool) -> str:
    """Write a string between its quotes, with the escapes that another has.

    With `is_ascii` all characters beyond ASCII are escaped.
    """
    written = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
    written = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
    bare = _ESCAPE.sub("", raw)
    escapes = {}
    for match in _ESCAPE.finditer(raw):
        if match[1] or match[2]:
            escapes[match[2] or chr(int(match[1], 16))] = match[0]
    for character, escape in escapes.items():
        if character not in bare and character not in '"\\' and character >= " ":
            written = written.replace(character, escape)
    return written


def is_escaped(text: str) -> bool:
    """Return whether a file escapes all characters beyond ASCII."""
    return text.isascii() and any(
        int(match[1], 16) > 127 for match in _ESCAPE.finditer(text) if match[1]
    )


def is_named(path: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a value is named: by its key, by all keys with dots between, or by those
    without the numbers of lists.
    """
    keys = [key for key in path if not key.isdigit()]
    found = {keys[-1] if keys else "", ".".join(path), ".".join(keys)}
    return not found.isdisjoint(names)
