"""What a person reads in a document and in its translation, segment by segment, without tags and
placeholders: by others' readers, not by Weft's.
"""

import csv
import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from io import BytesIO, StringIO
from pathlib import PurePath
from zipfile import ZipFile

import docx
import markdown_it
import openpyxl
import polib
import pptx
import pysubs2
from fluent.syntax import FluentParser
from fluent.syntax import ast as fluent
from fluent.syntax.visitor import Visitor
from lxml import etree, html

Pairs = list[tuple[str, str]]

# what a person takes out of a message before it is translated
_PLACEHOLDERS = re.compile(
    r"``[^`]+``|`[^`\n]+`_{0,2}|:[\w:.+-]+:`[^`]+`|(?:(?:https?|ftp)://|www\.)[^\s<>\"')]+[^\s<>\"').,;:]"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|%\(\w+\)[sdrif]|%(?:\d+\$)?[-+#0]?[\d.]*(?:l|ll|h)?[sdifuxXcg@](?![a-z]{3})"
    r"|%\d+%?|%n\b|\{\{[^{}]*\}\}|[$#]\{[^{}]*\}|\{[\w.!:]*\}|\|[^|\s]+\||\[\d+\]_|\$\w+|(?<![\w.@])@\w+|(?<![\w&/#])#[^\W\d]\w*"
)
_REFERENCE = re.compile(r"(?<![\w`])\w+_(?!\w)")
_TITLED = re.compile(r"(?::[\w:.+-]+:)?`([^`<]+?)\s*<[^<>`]+>`(?:__?)?")
_NAMED = re.compile(r":(?:dfn|guilabel|emphasis|strong|sub|sup):`([^`<]+)`")
_MARKED = re.compile(
    r"\*\*([^*\s](?:[^*]*[^*\s])?)\*\*|(?<!\*)\*([^*\s](?:[^*]*[^*\s])?)\*(?!\*)"
)


def bare(text: str, has_tags: bool = True) -> str:
    """Take placeholders and addresses out of a text, as a person would; tags, too."""
    text = _PLACEHOLDERS.sub("\0", text)
    if has_tags:
        text = re.sub(r"<[^<>]*>|\[/?(?:b|i|u|code|url|center)\]", "", text)
    text = re.sub(r"\0[^\w\s<>&]{0,3}(?=\0)", "", text)
    text = re.sub(r"\0(?:\s?/\s?\0)+", "\0", text)
    text = re.sub(r"([(“])\0(?:\s?[,;/|]\s?\0)+([)”])", "\0", text)
    text = re.sub(r"^(?:[\s\0]*\0\s*[,;:.!?)\]–—-]+(?=\s))+", "", text)
    text = re.sub(r"[,;:–—-]\s*\0\s*(?=[.,;:!?)])", "", text)
    text = re.sub(r"([\"'])\s*\0\s*\1|\(\s*\0\s*\)|\[\s*\0\s*\]|“\s*\0\s*”", "\0", text)
    text = re.sub(r"\s*(?:\0\s*)+([.,:;!?)])", r"\1", text)
    text = re.sub(r"([(\[])\s*\0\s*", r"\1", text)
    return " ".join(text.replace("\0", " ").split())


def restructured(text: str) -> str:
    """Take the markup of reStructuredText off the words."""
    text = _NAMED.sub(lambda match: match[1], _TITLED.sub(lambda m: m[1], text))
    text = _MARKED.sub(lambda match: match[1] or match[2], text)
    return _REFERENCE.sub("{0}", text)


@dataclass(frozen=True)
class Marks:
    """The elements of a format of XML, by their local names.

    `holders` have the text, all elements where there are none. What `divides` begins a new
    paragraph; a block in another one does where `is_page`. What is `kept` is like a placeholder.
    """

    blocks: Container[str]
    drops: Container[str] = ()
    breaks: Container[str] = ()
    divides: Container[str] = ()
    holders: Container[str] = ()
    kept: Container[str] = ()
    is_page: bool = False


WORD = Marks(
    ("p",),
    ("del", "instrText", "delText", "posOffset", "pctHeight"),
    ("br", "cr", "noBreakHyphen"),
    ("tab",),
    ("t",),
)
SLIDE = Marks(("p",), ("fld",), ("br",), (), ("t",))
OPEN = Marks(
    ("p", "h"),
    (
        *(
            "tracked-changes",
            "annotation",
            "note-citation",
            "ruby-text",
            "date",
            "time",
        ),
        *("page-number", "page-count", "sheet-name", "desc", "sequence", "s"),
    ),
    ("line-break", "s", "date", "page-number"),
    ("tab",),
)
PAGE = Marks(
    (
        *(
            "p",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "li",
            "td",
            "th",
            "div",
            "title",
            "dt",
            "dd",
        ),
        *(
            "body",
            "section",
            "article",
            "header",
            "footer",
            "nav",
            "ul",
            "ol",
            "table",
            "tr",
        ),
        *(
            "caption",
            "blockquote",
            "pre",
            "main",
            "aside",
            "figure",
            "figcaption",
            "center",
        ),
        *(
            "label",
            "option",
            "button",
            "details",
            "summary",
            "form",
            "address",
            "dl",
            "hr",
        ),
    ),
    (
        *(
            "script",
            "style",
            "pre",
            "textarea",
            "svg",
            "code",
            "kbd",
            "samp",
            "var",
            "math",
        ),
        *("template", "noteref", "object", "iframe"),
    ),
    ("br", "img"),
    kept=("code", "kbd", "samp", "var", "math"),
    is_page=True,
)
BILINGUAL = Marks(
    ("source", "target", "seg", "translation", "numerusform"),
    ("bpt", "ept", "ph", "it", "ut", "bx", "ex"),
    ("ph", "x", "it"),
)


@dataclass
class _Walk:
    """Collects the paragraphs below an element."""

    marks: Marks
    found: list[str] = field(default_factory=list)
    opened: list[list[str]] = field(default_factory=lambda: [[]])

    def walk(self, element: etree._Element, inside: bool) -> None:
        name = _local(element)
        is_block = name in self.marks.blocks
        if is_block:
            self._begin()
        if name in self.marks.breaks:
            self.opened[-1].append(" ")
        if name in self.marks.kept:
            self.opened[-1].append("{0}")
        if name in self.marks.divides:
            self._flush()
        if name not in self.marks.drops:
            holds = not self.marks.holders or name in self.marks.holders
            inside = inside or is_block or self.marks.is_page
            self._add(element.text if holds and inside else None)
            for child in element:
                self.walk(child, inside)
                self._add(child.tail if inside and not self.marks.holders else None)
        if is_block:
            self._end()

    def _begin(self) -> None:
        if self.marks.is_page:
            self._flush()
        else:
            self.opened.append([])

    def _end(self) -> None:
        self._flush()
        if not self.marks.is_page:
            self.opened.pop()

    def _add(self, text: str | None) -> None:
        if text:
            self.opened[-1].append(text)

    def _flush(self) -> None:
        self.found.append("".join(self.opened[-1]))
        self.opened[-1].clear()


def _local(element: etree._Element) -> str:
    if not isinstance(element.tag, str):
        return "script"  # a comment
    return etree.QName(element).localname


def paragraphs(root: etree._Element, marks: Marks) -> list[str]:
    """The texts of an element's paragraphs."""
    walk = _Walk(marks)
    walk.walk(root, False)
    walk._flush()
    return [text for text in walk.found if text.strip()]


def read_docx(content: bytes) -> list[str]:
    package = docx.Document(BytesIO(content)).part.package
    found = []
    for part in sorted(package.iter_parts(), key=lambda part: str(part.partname)):
        name = PurePath(str(part.partname)).name
        if re.match(r"(document|header|footer|footnotes|endnotes)\d*\.xml", name):
            found += paragraphs(_without_fields(etree.fromstring(part.blob)), WORD)
    return found


_KEPT_FIELDS = re.compile(
    r"\s*(?:PAGE|NUMPAGES|DATE|TIME|SAVEDATE|CREATEDATE|SEQ|DOCVARIABLE)\b"
)


def _without_fields(root: etree._Element) -> etree._Element:
    """Take out the results of fields that are numbers and dates."""
    space = {"w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main"}
    for paragraph in root.iterfind(".//w:p", space):
        kept = ""
        for element in paragraph.iter("{*}fldChar", "{*}instrText", "{*}t"):
            kind = element.get(f"{{{space['w']}}}fldCharType")
            if kind in ("begin", "end"):
                kept = ""
            elif _local(element) == "instrText":
                kept += element.text or ""
            elif _local(element) == "t" and _KEPT_FIELDS.match(kept):
                element.text = " "
    return root


def read_pptx(content: bytes) -> list[str]:
    found = []
    for slide in pptx.Presentation(BytesIO(content)).slides:
        found += paragraphs(slide.element, SLIDE)
        if slide.has_notes_slide:
            found += paragraphs(slide.notes_slide.element, SLIDE)
    return found


def read_xlsx(content: bytes) -> list[str]:
    found = []
    for sheet in openpyxl.load_workbook(BytesIO(content)).worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "s":
                    found += str(cell.value).splitlines()
    return found


def read_odf(content: bytes) -> list[str]:
    with ZipFile(BytesIO(content)) as archive:
        root = etree.fromstring(archive.read("content.xml"))
        styles = etree.fromstring(archive.read("styles.xml"))
    found = []
    for cell in root.iter("{*}table-cell"):
        kind = next((v for k, v in cell.attrib.items() if "value-type" in str(k)), "")
        formula = any("formula" in str(key) for key in cell.attrib)
        if formula or kind not in ("", "string"):
            cell.clear()
    for body in (*root.iter("{*}body"), *styles.iter("{*}header", "{*}footer")):
        found += paragraphs(body, OPEN)
    return found


def read_epub(content: bytes) -> list[str]:
    found = []
    with ZipFile(BytesIO(content)) as archive:
        for name in archive.namelist():
            if name.endswith((".xhtml", ".html", ".htm")):
                page = etree.fromstring(
                    archive.read(name), etree.XMLParser(recover=True)
                )
                found += paragraphs(_without_notes(page), PAGE)
    return found


def read_html(content: bytes) -> list[str]:
    parser = html.HTMLParser(encoding="utf-8")
    return paragraphs(_without_notes(html.document_fromstring(content, parser)), PAGE)


def _without_notes(page: etree._Element) -> etree._Element:
    """Take out the marks of notes, and what says that it is not to be translated."""
    for element in list(page.iter(etree.Element)):
        raised = _local(element) == "sup" or element.find(".//{*}sup") is not None
        is_link = _local(element) == "a" or element.find(".//{*}a") is not None
        label = "".join(map(str, element.itertext())).strip()
        is_mark = raised and (is_link or not re.search(r"[^\W\d]", label))
        is_mark = is_mark and len(label) < 5 and _local(element) in ("a", "sup", "span")
        named = "note" in element.get("class", "") and len(label) < 5
        kept = element.get("translate") == "no" or "notranslate" in element.get(
            "class", ""
        )
        if (is_mark or named or kept) and element.getparent() is not None:
            tail = element.tail
            element.clear()
            element.tail = tail
            element.tag = "noteref"
    return page


def read_markdown(content: bytes) -> list[str]:
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    text = re.sub(r"\A---\n.*?\n---\n", "", content.decode(), flags=re.S)
    return [
        _TASK.sub("", "".join(map(_shown, token.children or [])))
        for token in parser.parse(text)
        if token.type == "inline"
    ]


# the box of a task, the name of a footnote
_TASK = re.compile(r"\[[ x]\] |\[\^\w+\]: ?")


def _shown(token: markdown_it.token.Token) -> str:
    if token.type == "text":
        return str(token.content)
    if token.type == "code_inline":
        return "{0}"
    return " " if token.type in ("softbreak", "hardbreak", "image") else ""


def read_subtitles(content: bytes) -> list[str]:
    """The texts of cues; of a dialogue those of each speaker."""
    found = []
    for cue in pysubs2.SSAFile.from_string(content.decode()):
        lines = unescape(re.sub("<[^<>]*>", "", cue.plaintext))
        speakers = re.split(r"(?m)^- ", lines)
        found += [" ".join(text.split()) for text in speakers if text.strip()]
    return found


class _Patterns(Visitor):  # type: ignore[misc]  # the package has no types
    """Collects the texts of patterns."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Pattern(self, node: fluent.Pattern) -> None:
        parts = [
            element.value if isinstance(element, fluent.TextElement) else "{0}"
            for element in node.elements
        ]
        self.found += re.split(r"\n\s*\n", "".join(parts))
        self.generic_visit(node)


def read_fluent(content: bytes) -> list[str]:
    visitor = _Patterns()
    visitor.visit(FluentParser().parse(content.decode()))
    return visitor.found


def read_android(content: bytes) -> list[str]:
    root = etree.fromstring(content)
    return [
        line
        for element in root.iter("string", "item")
        if element.get("translatable") != "false"
        for line in _unescaped("".join(map(str, element.itertext()))).splitlines()
    ]


def _unescaped(text: str) -> str:
    """Read a text as Android and Apple write them."""
    text = re.sub(r'(?s)\A\s*"(.*)"\s*\Z', r"\1", text).replace("\\n", "\n")
    return re.sub(r"\\(.)", r"\1", text)


def read_json(content: bytes) -> list[str]:
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, str) and " " in value:
            found.extend(_texts(value))
        elif isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                walk(inner)

    walk(json.loads(content))
    return found


def _texts(value: str) -> list[str]:
    """The lines of a message; of a choice of ICU its texts."""
    if re.match(r"\{\w+, (?:plural|select)", value):
        return re.findall(r"\{([^{}]*)\}", value.replace("#", "%d"))
    return value.splitlines()


def read_strings(content: bytes) -> list[str]:
    values = re.findall(r'=\s*"((?:[^"\\]|\\.)*)"\s*;', content.decode())
    return [line for value in values for line in _unescaped(value).splitlines()]


def read_table(content: bytes, mark: str, column: str) -> list[str]:
    """The cells of a column."""
    rows = csv.DictReader(StringIO(content.decode(), newline=""), delimiter=mark)
    return [row[column] for row in rows]


def pairs_of_po(before: bytes, after: bytes) -> Pairs:
    """Messages that had no translation, line by line, with that which they have now."""
    old, new = (polib.pofile(content.decode()) for content in (before, after))
    is_rst = ".rst" in "".join(
        entry.occurrences[0][0] for entry in old if entry.occurrences
    )
    found = []
    for was, entry in zip(old, new, strict=True):
        if was.obsolete or was.translated():
            continue
        text = entry.msgstr or entry.msgstr_plural.get(0, "") or entry.msgid
        if is_rst and "\n" in entry.msgid.strip():
            continue  # code
        sides = [entry.msgid.splitlines(), text.splitlines()]
        sides = [list(map(restructured, side)) if is_rst else side for side in sides]
        found += list(zip(*sides, strict=False))
    return found


def pairs_of_units(before: bytes, after: bytes) -> Pairs:
    """The texts of units of XLIFF, Qt and TMX that had no target, with those that they have now."""
    old, new = etree.fromstring(before), etree.fromstring(after)
    names = ("{*}trans-unit", "{*}segment", "{*}message", "{*}tu")
    found = []
    for was, unit in zip(old.iter(*names), new.iter(*names), strict=True):
        sides = [_side(unit, 0), _side(unit, 1)]
        if _side(was, 1) is None and None not in sides:
            lines = [_lines(side) for side in sides]
            found += list(zip(*lines, strict=False))
    return found


def _side(unit: etree._Element, number: int) -> etree._Element | None:
    """The source or the target of a unit; None where there is no text in it."""
    if _local(unit) == "tu":
        found = list(unit.iter("{*}seg"))
        return found[number] if number < len(found) else None
    name = ("{*}source", ("{*}target", "{*}translation"))[number]
    names = (name,) if isinstance(name, str) else name
    side = next((child for child in unit.iterchildren(*names)), None)
    if side is None or not "".join(map(str, side.itertext())).strip():
        return None
    return side


def _lines(side: etree._Element | None) -> Sequence[str]:
    assert side is not None
    forms = paragraphs(side, BILINGUAL)
    return forms[0].strip().splitlines() if forms else []


READERS: dict[str, Callable[[bytes], list[str]]] = {
    ".docx": read_docx,
    ".pptx": read_pptx,
    ".xlsx": read_xlsx,
    ".odt": read_odf,
    ".ods": read_odf,
    ".odp": read_odf,
    ".epub": read_epub,
    ".html": read_html,
    ".md": read_markdown,
    ".srt": read_subtitles,
    ".vtt": read_subtitles,
    ".ftl": read_fluent,
    ".xml": read_android,
    ".json": read_json,
    ".strings": read_strings,
    ".csv": lambda content: read_table(content, ",", "text"),
    ".tsv": lambda content: read_table(content, "\t", "text"),
    ".txt": lambda content: re.split(r"[\n\t]+(?:\s*[-*>#] )?", content.decode()),
}
# in whose texts tags are written as text
_WITH_TAGS = (
    ".po",
    ".xliff",
    ".xlf",
    ".ts",
    ".json",
    ".xml",
    ".strings",
    ".ftl",
    ".txt",
    ".csv",
    ".tsv",
)
OF_PAIRS: dict[str, Callable[[bytes, bytes], Pairs]] = {
    ".po": pairs_of_po,
    ".xliff": pairs_of_units,
    ".xlf": pairs_of_units,
    ".ts": pairs_of_units,
    ".tmx": pairs_of_units,
}


def read_pairs(before: bytes, after: bytes, ending: str) -> Iterator[tuple[str, str]]:
    """Yield what is to be translated in a document, without markup, and what stands there now.

    Raises ValueError where the two documents have not the same number of texts.
    """
    if ending in OF_PAIRS:
        pairs = OF_PAIRS[ending](before, after)
    else:
        read = READERS[ending]
        pairs = list(zip(read(before), read(after), strict=True))
    has_tags = ending in _WITH_TAGS
    for source, target in pairs:
        text = bare(source, has_tags)
        if re.search(r"[^\W\d_]", text):
            yield text, bare(target, has_tags)
