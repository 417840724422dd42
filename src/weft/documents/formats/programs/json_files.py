"""JSON (.json, .arb) and JSON Lines (.jsonl): the text of strings, whose places stay.

Which strings are translated, names of keys say; without any, the file's own shape: messages of a
program or of an extension, ARB (Application Resource Bundle), or sentences.
"""

import re
from collections.abc import Sequence
from functools import partial

from weft.documents.document import Doubt, Reading, decode_file
from weft.documents.formats.programs.json_tree import (
    Node,
    is_escaped,
    is_named,
    nodes_of,
    read_string,
    write_string,
)
from weft.documents.formats.text.lines import lines_of
from weft.documents.formats.text.messages import choices_in, read_message
from weft.documents.formats.text.values import Collector, ValuesDocument
from weft.errors import UsageError

_LOCALE = "@@locale"
# a value that is a name of something: a path, a version, a colour, an identifier
_IDENTIFIER = re.compile(r"[_/\\:=#@.\d]|^[a-z]+[A-Z]")
_SMALL = re.compile(r"[a-z-]+")  # a word among messages, a value elsewhere
_LONGEST_NAME = 200
_PLURAL_KEY = re.compile(r".+_(?:zero|one|two|few|many|other|plural)")
_I18NEXT = re.compile(r"\{\{[^{}]+\}\}|\$t\(")
_LEAST_SHARE = 0.5  # of strings with a sentence or a capital letter among messages


def open_json(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of JSON; raises UsageError, with the line, if it is none, or not UTF-8."""
    text = decode_file(content, reading.name)
    found = Collector()
    head = "\ufeff" if text.startswith("\ufeff") else ""
    found.keep(head)
    _add_json(found, text[len(head) :], reading)
    return found.document()


def open_json_lines(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of JSON Lines; raises UsageError for a line that is no JSON, and where no key is
    named.
    """
    text = decode_file(content, reading.name)
    if not reading.columns:
        raise UsageError(
            f"{reading.name}: which keys have the text? Name the columns that are translated"
        )
    found = Collector()
    head = "\ufeff" if text.startswith("\ufeff") else ""
    found.keep(head)
    is_ascii = is_escaped(text)
    num_values = 0
    for line in lines_of(text[len(head) :]):
        if line.text.strip():
            name = f"{reading.name}:{found.line}"
            nodes = _named(line.text, nodes_of(line.text, name), reading.columns)
            num_values += len(nodes)
            _add_strings(found, line.text, nodes, is_ascii)
        else:
            found.keep(line.text)
        found.keep(line.end)
    if not num_values and text.strip("\ufeff \r\n\t"):
        _refuse_names(reading)
    return found.document()


def _refuse_names(reading: Reading) -> None:
    names = ", ".join(reading.columns)
    raise UsageError(
        f"{reading.name}: no string has the key {names}; keys are named as key or outer.inner"
    )


def _add_json(found: Collector, text: str, reading: Reading) -> None:
    nodes = nodes_of(text, reading.name)
    is_ascii = is_escaped(text)
    if reading.columns:
        chosen = _named(text, nodes, reading.columns)
        if not chosen:
            _refuse_names(reading)
    else:
        chosen = _chosen(found, text, nodes)
    if reading.target:
        chosen = [*chosen, *(node for node in nodes if node.path == (_LOCALE,))]
        chosen.sort(key=lambda node: node.start)
    _add_strings(found, text, chosen, is_ascii, reading.target)


def _strings(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.kind == '"']


def _named(text: str, nodes: Sequence[Node], names: Sequence[str]) -> list[Node]:
    return [node for node in _strings(nodes) if is_named(node.path, names)]


def _chosen(found: Collector, text: str, nodes: Sequence[Node]) -> list[Node]:
    """Return the strings that have text by the shape of the file."""
    strings = _strings(nodes)
    keys = {node.path for node in nodes}
    if _is_bundle(nodes, keys):
        return [
            n for n in strings if len(n.path) == 1 and not n.path[0].startswith("@")
        ]
    if _is_extension(nodes):
        return [n for n in strings if len(n.path) == 2 and n.path[1] == "message"]
    texts = {node: read_string(text[node.start : node.end]) for node in strings}
    if _are_messages(nodes, texts):
        return [n for n in strings if not _is_identifier(texts[n])]
    sentences = [node for node in strings if " " in texts[node].strip()]
    words = [node for node in strings if " " not in texts[node].strip()]
    left = [node for node in words if any(map(str.isalpha, texts[node]))]
    if left:
        line = text.count("\n", 0, left[0].start) + found.line
        found.note(
            f"strings of one word stay ({len(left)} from here on, the first one is {'.'.join(left[0].path)}); "
            "name the keys whose text is translated",
            f"line {line}",
        )
    return sentences


def _is_bundle(nodes: Sequence[Node], keys: set[tuple[str, ...]]) -> bool:
    """Return whether this is ARB: keys with what is said of them under the same key after `@`."""
    if (_LOCALE,) in keys:
        return True
    said = [n.path[0] for n in nodes if len(n.path) == 1 and n.path[0].startswith("@")]
    return any((name[1:],) in keys for name in said)


def _is_extension(nodes: Sequence[Node]) -> bool:
    """Return whether all keys have an object with a message, as extensions of browsers have."""
    outer = {node.path for node in nodes if len(node.path) == 1}
    with_message = {
        node.path[:1]
        for node in nodes
        if len(node.path) == 2 and node.path[1] == "message" and node.kind == '"'
    }
    return bool(outer) and outer == with_message


def _are_messages(nodes: Sequence[Node], texts: dict[Node, str]) -> bool:
    """Return whether a file has nothing but messages of a program, by all of its values."""
    leaves = [node for node in nodes if node.kind not in ("{", "[")]
    if not nodes or nodes[0].kind != "{" or len(leaves) != len(texts) or not texts:
        return False
    shown = any(
        _PLURAL_KEY.fullmatch(n.path[-1]) or _I18NEXT.search(t)
        for n, t in texts.items()
    )
    words = [t for t in texts.values() if any(map(str.isalpha, t))]
    like = [t for t in words if not (_is_identifier(t) or _SMALL.fullmatch(t))]
    return shown or len(like) > _LEAST_SHARE * len(words)


def _is_identifier(text: str) -> bool:
    """Return whether a text is a name of something, not words."""
    if len(text) > _LONGEST_NAME or " " in text or _I18NEXT.search(text):
        return False
    return _IDENTIFIER.search(text) is not None


def _add_strings(
    found: Collector,
    text: str,
    nodes: Sequence[Node],
    is_ascii: bool,
    target: str = "",
) -> None:
    """Add the strings at some places of a text, and keep all between."""
    place = 0
    for node in nodes:
        found.keep(text[place : node.start + 1])
        place = node.end - 1
        raw = text[node.start + 1 : place]
        if node.path == (_LOCALE,):
            found.keep(target.replace("-", "_"))
            continue
        said = read_string(text[node.start : node.end])
        encode = partial(_encoded, raw, is_ascii)
        where = f"line {found.line}, {'.'.join(node.path)}"
        found.add(raw, read_message(said), encode, where, choices_in(said))
    found.keep(text[place:])


def _encoded(raw: str, is_ascii: bool, text: str, _doubts: Sequence[Doubt]) -> str:
    return write_string(text, raw, is_ascii)
