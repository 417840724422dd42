"""String catalogues of Xcode (.xcstrings): each key gets the localization that it lacks.

A localization in the target's language is a copy of that in the source's, or of the key where there
is none, with its values translated. Source: Apple, "Localizing and varying text with a string
catalog".
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from weft.documents.document import Doubt, Reading, decode_file
from weft.documents.formats.programs.json_tree import Node, nodes_of, read_string
from weft.documents.formats.text.messages import read_message
from weft.documents.formats.text.values import Collector, ValuesDocument, joined
from weft.errors import UsageError

_BETWEEN = "\0"  # the values of a localization
_UNFINISHED = {"new", "needs_review", "stale"}
_STEP = "  "

Path = tuple[str, ...]


def open_xcstrings(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a catalogue; raises UsageError if it is none, and where the target is unknown."""
    text = decode_file(content, reading.name)
    if not reading.target:
        raise UsageError(
            f"{reading.name}: into which language? A catalogue has many; name the target"
        )
    return _Reader(text, reading).document()


@dataclass(frozen=True)
class _Place:
    """The place of a localization: what it replaces, and what is written around it."""

    start: int
    end: int
    before: str
    after: str
    indent: str


class _Reader:
    """Goes through the keys of a catalogue."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._text = text
        self._target = reading.target
        nodes = nodes_of(text, reading.name)
        self._nodes = {node.path: node for node in nodes}
        self._children: dict[Path, list[Node]] = {}
        for node in nodes:
            if node.path:
                self._children.setdefault(node.path[:-1], []).append(node)
        self._colon = " : " if '" : ' in text else ": "
        source = self._nodes.get(("sourceLanguage",))
        if source is None or ("strings",) not in self._nodes:
            raise UsageError(
                f"{reading.name}:1: no string catalogue: sourceLanguage and strings are missing"
            )
        self._source = read_string(self._raw(source))
        self._found = Collector()
        self._done = 0

    def document(self) -> ValuesDocument:
        if self._target.lower() != self._source.lower():
            for entry in self._children.get(("strings",), ()):
                if entry.kind == "{" and self._is_wanted(entry.path):
                    self._add(entry)
        self._found.keep(self._text[self._done :])
        return self._found.document()

    def _raw(self, node: Node) -> str:
        return self._text[node.start : node.end]

    def _is_wanted(self, path: Path) -> bool:
        """Return whether a key is to be translated and has no finished translation."""
        should = self._nodes.get((*path, "shouldTranslate"))
        if should is not None and self._raw(should) == "false":
            return False
        there = self._nodes.get((*path, "localizations", self._target))
        if there is None:
            return True
        states = [
            read_string(self._raw(node))
            for node in self._below(there)
            if node.kind == '"' and node.path[-1] == "state"
        ]
        return not states or not _UNFINISHED.isdisjoint(states)

    def _below(self, node: Node) -> list[Node]:
        """List all values in an object, in their order."""
        found: list[Node] = []
        waiting = [node]
        while waiting:
            inner = waiting.pop()
            found.append(inner)
            waiting += reversed(self._children.get(inner.path, []))
        return found

    def _add(self, entry: Node) -> None:
        path = entry.path
        original = self._nodes.get((*path, "localizations", self._source))
        copied = self._raw(original) if original else ""
        values = []
        if original:
            values = [
                (node.start - original.start, node.end - original.start)
                for node in self._below(original)
                if node.kind == '"' and node.path[-2:] == ("stringUnit", "value")
            ]
        texts = [read_string(copied[start:end]) for start, end in values] or [path[-1]]
        if any(_BETWEEN in text for text in texts):
            return
        place = self._place(entry)
        self._found.keep(self._text[self._done : place.start])
        self._done = place.end
        inner = joined([read_message(text) for text in texts], _BETWEEN)
        encode = partial(self._written, place, copied, values)
        where = f"line {self._found.line}, {path[-1]}"
        self._found.add(self._text[place.start : place.end], inner, encode, where)

    def _place(self, entry: Node) -> _Place:
        """Return where the localization of a key goes."""
        path = (*entry.path, "localizations")
        there = self._nodes.get((*path, self._target))
        outer = self._nodes.get(path)
        if there is not None:
            indent = _indent(self._text, there.start)
            return _Place(there.start, there.end, "", "", indent)
        if outer is not None:
            return self._gap(outer, self._target, "", "")
        indent = _indent(self._text, entry.start) + _STEP
        name = json.dumps(self._target, ensure_ascii=False)
        before = f'"localizations"{self._colon}{{\n{indent}{_STEP}{name}{self._colon}'
        gap = self._gap(entry, "localizations", before, f"\n{indent}}}")
        return _Place(gap.start, gap.end, gap.before, gap.after, indent + _STEP)

    def _gap(self, outer: Node, name: str, before: str, after: str) -> _Place:
        """Return the place of a new member of an object, whose names are in order."""
        children = self._children.get(outer.path, [])
        indent = _indent(self._text, outer.start) + _STEP
        shown = before or json.dumps(name, ensure_ascii=False) + self._colon
        earlier = [node for node in children if node.path[-1] < name]
        if earlier:
            start = earlier[-1].end
            return _Place(start, start, f",\n{indent}{shown}", after, indent)
        start = outer.start + 1
        comma = "," if children else ""
        if not children and "\n" not in self._raw(outer):
            comma = f"\n{indent[: -len(_STEP)]}"
        return _Place(start, start, f"\n{indent}{shown}", after + comma, indent)

    def _written(
        self,
        place: _Place,
        copied: str,
        values: Sequence[tuple[int, int]],
        text: str,
        doubts: Sequence[Doubt],
    ) -> str:
        """Write a localization with its state."""
        texts = [json.dumps(part, ensure_ascii=False) for part in text.split(_BETWEEN)]
        is_doubtful = any(doubt.remarks for doubt in doubts)
        state = "needs_review" if is_doubtful else "translated"
        if values:
            body = _with_values(copied, values, texts, state, self._colon)
        else:
            body = self._unit(texts[0], state, place.indent)
        return place.before + body + place.after

    def _unit(self, value: str, state: str, indent: str) -> str:
        inner = indent + _STEP
        lines = [
            "{",
            f'{inner}"stringUnit"{self._colon}{{',
            f'{inner}{_STEP}"state"{self._colon}"{state}",',
            f'{inner}{_STEP}"value"{self._colon}{value}',
            f"{inner}}}",
            f"{indent}}}",
        ]
        return "\n".join(lines)


def _indent(text: str, place: int) -> str:
    """Return the white space at the head of the line that a place is in."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _with_values(
    raw: str,
    spans: Sequence[tuple[int, int]],
    texts: Sequence[str],
    state: str,
    colon: str,
) -> str:
    """Return a localization with other values, all in one state."""
    parts: list[str] = []
    place = 0
    for (start, end), text in zip(spans, texts, strict=True):
        parts += (raw[place:start], text)
        place = end
    copied = "".join([*parts, raw[place:]])
    for old in ("new", "needs_review", "stale", "translated"):
        copied = copied.replace(f'"state"{colon}"{old}"', f'"state"{colon}"{state}"')
    return copied
