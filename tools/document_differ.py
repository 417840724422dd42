"""What a translation of a document has changed that it should not: for each format a function from
the bytes of both files to sentences, none where all is well.

The files are read by others' readers where there is one.
"""

import csv
import json
import plistlib
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from io import StringIO
from tempfile import NamedTemporaryFile

import markdown_it
import polib
import pysubs2
from fluent.syntax import FluentParser, FluentSerializer
from fluent.syntax import ast as fluent
from lxml import etree, html

from weft.documents.placeholders import find_kept

fluent_serializer = FluentSerializer()
_TONGUE = ("lang", "dir", "{http://www.w3.org/XML/1998/namespace}lang")


def unlike(what: str, original: Iterable[object], translated: Iterable[object]) -> list[str]:  # fmt: skip
    """Say where two lists of things first differ."""
    old = list(original)
    new = list(translated)
    if old == new:
        return []
    number = next(
        (place for place, pair in enumerate(zip(old, new, strict=False)) if len(set(map(repr, pair))) > 1),
        min(len(old), len(new)),
    )  # fmt: skip
    return [f"{what} {number}: {old[number : number + 1]} has become {new[number : number + 1]}"]  # fmt: skip


def _cues(text: str, kind: str) -> list[pysubs2.SSAEvent]:
    return list(pysubs2.SSAFile.from_string(text, kind, keep_unknown_html_tags=True))


def diff_subtitles(original: bytes, translated: bytes, ending: str) -> list[str]:
    """Compare subtitles: cues, times, tags, and all lines of WebVTT that are of no cue."""
    old, new = original.decode(), translated.decode()
    kind = ending.removeprefix(".")
    cues = [_cues(text, kind) for text in (old, new)]
    times = [[(cue.start, cue.end) for cue in found] for found in cues]
    tags = [[sorted(re.findall(r"<[^<>]*>|\{[^{}]*\}", cue.text)) for cue in found] for found in cues]  # fmt: skip
    heads = [re.findall(r"(?m)^.*-->.*$", text) for text in (old, new)]
    others = [re.findall(r"(?ms)^(?:WEBVTT|NOTE|STYLE|REGION).*?\n\n", text) for text in (old, new)]  # fmt: skip
    return (
        unlike("times", *times)
        + unlike("tags of cue", *tags)
        + unlike("line", *heads)
        + unlike("block", *others)
    )


MARKUP = re.compile(
    r"(?::[\w:.+-]+:`[^`]+`|``[^`]+``|<[^<>`]+>`__?|\|[^|\s]+\||\[\d+\]_)"
)


def placeholders(text: str) -> list[str]:
    """The placeholders of a message, and the markup of reStructuredText that has no words."""
    text = re.sub(r"(:[\w:]+:)`[^`<]+(?=<)", r"\1`", text)
    text = re.sub(r":(?:dfn|guilabel):`[^`]+`", "", text)
    kept = [text[start:end] for start, end in find_kept(text)]
    return sorted([*MARKUP.findall(text), *(raw for raw in kept if "`" not in raw)])


def _key(entry: polib.POEntry) -> tuple[object, ...]:
    flags = sorted(set(entry.flags) - {"fuzzy"})
    message = (entry.msgctxt, entry.msgid, entry.msgid_plural)
    return (*message, entry.comment, entry.occurrences, entry.obsolete, flags)


def diff_po(original: bytes, translated: bytes) -> list[str]:
    """Compare catalogues: all of their messages but their translations, and the placeholders in
    these; what was translated is the same; gettext takes the file.
    """
    old, new = (polib.pofile(content.decode()) for content in (original, translated))
    keys = [list(map(_key, found)) for found in (old, new)]
    faults = unlike("entry", *keys)
    for before, after in zip(old, new, strict=True):
        if before.translated() and (before.msgstr, before.msgstr_plural) != (
            after.msgstr,
            after.msgstr_plural,
        ):
            faults.append(f"the translation of {before.msgid!r} has changed")
        elif not before.translated() and after.translated() and not before.msgid_plural:
            faults += unlike(
                f"placeholder of {after.msgid!r}",
                placeholders(after.msgid),
                placeholders(after.msgstr),
            )
    return faults + gettext_says(translated)


def gettext_says(catalogue: bytes) -> list[str]:
    """What msgfmt has against a catalogue; nothing where it is not installed."""
    program = shutil.which("msgfmt")
    if not program:
        return []
    with NamedTemporaryFile(suffix=".po") as file:
        file.write(catalogue)
        file.flush()
        command = [
            program,
            "--check-format",
            "--check-domain",
            "-o",
            "/dev/null",
            file.name,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.split("\n") if done.returncode else []


# elements and attributes that a translation of a bilingual file may add or change
_ADDED = {
    "target",
    "tuv",
    "seg",
    "translation",
    "numerusform",
    "translatorcomment",
    "note",
}
_ADDED |= {"notes", "alt-trans"}
_STATED = {"target-language", "trgLang", "language", "state", "state-qualifier", "subState", "type"}  # fmt: skip
_PAIRS = {"trans-unit", "segment", "message"}


def _local(element: etree._Element) -> str:
    return etree.QName(element).localname


def _outline(root: etree._Element) -> list[object]:
    """All elements but what a translation may add, with their attributes and their text."""
    found: list[object] = []
    for element in root.iter(etree.Element):
        around = {_local(outer) for outer in element.iterancestors()} - {"notes"}
        name = _local(element)
        if name in _ADDED or around & _ADDED:
            continue
        stated = {
            key: value for key, value in element.attrib.items() if key not in _STATED
        }
        text = "" if len(element) and not (element.text or "").strip() else element.text
        found.append((element.tag, sorted(stated.items()), text))
    return found


def _codes(element: etree._Element) -> list[object]:
    """The inline elements of a text, each with those that it is in."""
    found = []
    for inner in element.iter(etree.Element):
        if inner is element or _local(inner) == "numerusform":
            continue
        above = [outer.tag for outer in inner.iterancestors()]
        depth = above.index(element.tag)
        found.append((inner.tag, sorted(inner.attrib.items()), above[:depth]))
    return sorted(found, key=repr)


def _sides(unit: etree._Element) -> tuple[etree._Element, etree._Element] | None:
    there = {_local(child): child for child in unit.iterchildren(etree.Element)}
    source = there.get("seg-source", there.get("source"))
    target = there.get("target", there.get("translation"))
    return None if source is None or target is None else (source, target)


def diff_units(original: bytes, translated: bytes) -> list[str]:
    """Compare XLIFF or messages of Qt: sources, all that is neither text nor state, and the inline
    elements of each new target with those of its source.
    """
    old, new = etree.fromstring(original), etree.fromstring(translated)
    found = unlike("element", _outline(old), _outline(new))
    units = [[unit for unit in root.iter(etree.Element) if _local(unit) in _PAIRS] for root in (old, new)]  # fmt: skip
    for before, after in zip(*units, strict=True):
        sides = _sides(after)
        was = _sides(before)
        if sides is None:
            continue
        if was is not None and etree.tostring(was[1]) == etree.tostring(sides[1]):
            continue
        name = f"of unit {after.get('id')}"
        found += unlike(f"inline element {name}", *map(_codes, sides))
        found += unlike(f"placeholder {name}", *map(_variables, sides))
    return found


def _variables(side: etree._Element) -> list[str]:
    """The placeholders in a text, of the first where it has several forms."""
    form = next(side.iter("numerusform"), side)
    text = "".join(map(str, form.itertext()))
    return sorted(re.findall(r"%L?\d{1,2}%?(?!\w)|%n\b|\{\d*\}", text))


def diff_memory(original: bytes, translated: bytes) -> list[str]:
    """Compare translation memories: units, what was there of each, the codes of new segments."""
    old, new = etree.fromstring(original), etree.fromstring(translated)
    found = unlike("element", _outline(old), _outline(new))
    for before, after in zip(old.iter("tu"), new.iter("tu"), strict=True):
        segs = [
            seg for seg in before.iter("seg") if (seg.text or "").strip() or len(seg)
        ]
        there = [etree.tostring(seg, with_tail=False) for seg in segs]
        number = f"of unit {after.get('tuid')}"
        written = {
            etree.tostring(seg, with_tail=False): seg for seg in after.iter("seg")
        }
        found += unlike(f"lost {number}", [], sorted(set(there) - set(written)))
        codes = [_codes(seg) for seg in segs]
        for raw, seg in written.items():
            if raw not in there and _codes(seg) not in codes:
                found += unlike(f"codes {number}", codes, [_codes(seg)])
    return found


def diff_markdown(original: bytes, translated: bytes) -> list[str]:
    """Compare the tokens that markdown-it makes of both: blocks in their order, and what is in each
    beside its words; code, addresses and HTML too.
    """
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    old, new = (
        list(_blocks(parser.parse(content.decode())))
        for content in (original, translated)
    )
    return unlike("block", old, new)


def _blocks(tokens: list[markdown_it.token.Token]) -> Iterator[tuple[object, ...]]:
    for token in tokens:
        if token.type == "inline":
            yield ("inline", sorted(Counter(_marks(token.children or [])).items()))
            continue
        tags = re.findall(r"<[^>]*>", token.content)
        content = tags if token.type == "html_block" else token.content
        yield (
            token.type,
            token.tag,
            token.level,
            token.markup,
            token.info,
            str(content),
        )


def _marks(tokens: list[markdown_it.token.Token]) -> Iterator[tuple[str, ...]]:
    for token in tokens:
        if token.type in ("text", "softbreak"):
            continue
        attributes = str([pair for pair in token.attrs.items() if pair[0] != "alt"])
        content = "" if token.type == "image" else " ".join(token.content.split())
        yield (token.type, attributes, content)


def _resource(element: etree._Element) -> tuple[object, ...]:
    parent = element.getparent()
    named = [
        (name, value)
        for name, value in element.attrib.items()
        if "tools}" not in str(name)
    ]
    return element.tag, parent.tag if parent is not None else "", sorted(named)


def diff_resources(original: bytes, translated: bytes) -> list[str]:
    """Compare strings of Android: names, quantities, inline elements, placeholders."""
    roots = [etree.fromstring(content) for content in (original, translated)]
    elements = [
        sorted(map(_resource, root.iter(etree.Element)), key=repr) for root in roots
    ]
    names = [
        [one.get("name") for one in root.iterchildren(etree.Element)] for root in roots
    ]
    mark = re.compile(r"%\d*\$?[sd]|</?\w+>")
    texts = [["".join(one.itertext()) for one in root.iterchildren(etree.Element)] for root in roots]  # fmt: skip
    marks = [[sorted(mark.findall(text)) for text in found] for found in texts]
    found = unlike("element", *elements) + unlike("name", *names)
    return found + unlike("placeholders of string", *marks)


def diff_json(original: bytes, translated: bytes) -> list[str]:
    """Compare JSON: all keys in their order, all that is no string, and the escapes of the file."""
    old, new = (content.decode() for content in (original, translated))
    found = unlike("value", *(list(_leaves(json.loads(text))) for text in (old, new)))
    is_escaped = old.isascii() and re.search(r"\\u(?!00[0-7])", old)
    if is_escaped and not new.isascii():
        found.append("characters beyond ASCII are no longer escaped")
    return found


def _leaves(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{path} {{"
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path} ["
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{number}")
    else:
        yield f"{path} {'a string' if isinstance(value, str) else value!r}"


def diff_table(
    original: bytes, translated: bytes, mark: str, columns: Iterable[str]
) -> list[str]:
    """Compare tables as the standard library reads them: all cells but those of some columns, and
    how each cell that was quoted is.
    """
    old, new = (
        list(csv.reader(StringIO(content.decode(), newline=""), delimiter=mark))
        for content in (original, translated)
    )
    places = {old[0].index(name) for name in columns}
    rest = [
        [
            [cell for place, cell in enumerate(row) if place not in places]
            for row in rows
        ]
        for rows in (old[1:], new[1:])
    ]
    widths = [list(map(len, rows)) for rows in (old, new)]
    return unlike("width of row", *widths) + unlike("row", old[:1] + rest[0], new[:1] + rest[1])  # fmt: skip


def diff_fluent(
    original: bytes, translated: bytes, by_words: bool = False
) -> list[str]:
    """Compare files of Fluent as fluent.syntax reads them: entries, keys, comments and placeables.

    With `by_words` a translation may have literals of its own.
    """
    old, new = (
        FluentParser().parse(content.decode()) for content in (original, translated)
    )
    return unlike("entry", _entries(old, by_words), _entries(new, by_words))


def _entries(resource: fluent.Resource, by_words: bool) -> list[object]:
    return [
        fluent_serializer.serialize_entry(entry)
        if isinstance(entry, fluent.BaseComment | fluent.Junk)
        else _shape(entry, by_words)
        for entry in resource.body
    ]


def _shape(node: object, by_words: bool) -> object:
    """A node without its words; placeables in any order."""
    if isinstance(node, fluent.Pattern):
        found = [
            _shape(element, by_words)
            for element in node.elements
            if isinstance(element, fluent.Placeable)
            and not (by_words and isinstance(element.expression, fluent.StringLiteral))
        ]
        return sorted(map(str, found))
    if isinstance(node, fluent.BaseNode):
        fields = sorted(vars(node).items())
        shapes = [
            (name, _shape(value, by_words)) for name, value in fields if name != "span"
        ]
        return (type(node).__name__, shapes)
    if isinstance(node, list):
        return [_shape(value, by_words) for value in node]
    return node


def diff_stringsdict(original: bytes, translated: bytes) -> list[str]:
    """Compare property lists: all keys, what is no form of a plural, and the variables."""
    return unlike(
        "entry", *(list(_plist(plistlib.loads(c))) for c in (original, translated))
    )


def _plist(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _plist(inner, f"{path}.{key}")
        return
    forms = ("zero", "one", "two", "few", "many", "other", "NSStringLocalizedFormatKey")
    is_form = path.endswith(forms)
    shown = sorted(re.findall(r"%#@\w+@|%l*[d@]", str(value))) if is_form else value
    yield f"{path} {shown}"


def diff_html(original: bytes, translated: bytes) -> list[str]:
    """Compare pages: every tag with its attributes and what it is in, comments, and what is no
    text; the language and its direction may differ.
    """
    return unlike("tag", *(sorted(_page(c)) for c in (original, translated)))


def _page(content: bytes) -> Iterator[str]:
    parser = html.HTMLParser(encoding="utf-8")
    for element in html.document_fromstring(content, parser).iter():
        path = "/".join(str(outer.tag) for outer in element.iterancestors())
        stated = [pair for pair in element.attrib.items() if pair[0] not in _TONGUE]
        is_raw = element.tag in ("script", "style", "pre", "textarea", etree.Comment)
        yield f"{path} {element.tag} {sorted(stated)} {element.text if is_raw else ''}"


def diff_strings(original: bytes, translated: bytes) -> list[str]:
    """Compare strings of Apple's programs: keys, comments, all that is no value, and variables."""
    value = re.compile(r'(=\s*)"((?:[^"\\]|\\.)*)"(\s*;)')
    texts = [content.decode() for content in (original, translated)]
    frames = [value.sub(r"\1\3", text).splitlines() for text in texts]
    variables = [
        [
            sorted(re.findall(r"%\d*\$?[@dfs]", found[2]))
            for found in value.finditer(text)
        ]
        for text in texts
    ]
    return unlike("line", *frames) + unlike("variables of string", *variables)


def diff_text(original: bytes, translated: bytes) -> list[str]:
    """Compare plain text: its lines, their indents, marks and tabs, and the ends of the lines."""
    mark = re.compile(r"\s*(?:[-*>#]\s+)*")
    shapes = []
    for content in (original, translated):
        lines = content.decode().splitlines(keepends=True)
        shapes.append(
            [
                (mark.match(line)[0], line.count("\t"), line[len(line.rstrip()) :])
                for line in lines
            ]
        )
    return unlike("line", *shapes)
