"""What a translation as a command writes it has changed in a document beside words, languages and
the comments that say what is doubtful.
"""

import re
from collections.abc import Callable, Container
from io import BytesIO
from zipfile import ZipFile

from lxml import etree

from document_differ import (
    diff_fluent,
    diff_html,
    diff_json,
    diff_markdown,
    diff_memory,
    diff_po,
    diff_resources,
    diff_strings,
    diff_subtitles,
    diff_table,
    diff_text,
    diff_units,
)
from office_differ import diff_docx, diff_epub, diff_odf, diff_pptx, diff_xlsx

Differ = Callable[[bytes, bytes], list[str]]

DIFFERS: dict[str, Differ] = {
    ".po": diff_po,
    ".xliff": diff_units,
    ".xlf": diff_units,
    ".ts": diff_units,
    ".tmx": diff_memory,
    ".ftl": lambda before, after: diff_fluent(before, after, by_words=True),
    ".html": diff_html,
    ".strings": diff_strings,
    ".txt": diff_text,
    ".md": diff_markdown,
    ".json": diff_json,
    ".xml": diff_resources,
    ".srt": lambda before, after: diff_subtitles(before, after, ".srt"),
    ".vtt": lambda before, after: diff_subtitles(before, after, ".vtt"),
    ".csv": lambda before, after: diff_table(before, after, ",", ("text",)),
    ".docx": diff_docx,
    ".xlsx": diff_xlsx,
    ".pptx": diff_pptx,
    ".odt": diff_odf,
    ".ods": diff_odf,
    ".odp": diff_odf,
    ".epub": diff_epub,
}


def diff_document(before: bytes, after: bytes, ending: str) -> list[str]:
    """Say what a translation has changed that it should not."""
    if ending in _ARCHIVES:
        before, after = (_settled(content) for content in (before, after))
    return DIFFERS[ending](before, after)


_ARCHIVES = {".docx", ".pptx", ".odt", ".odp", ".ods", ".epub"}
_OURS = "weft-comments.xml"
# what says a language or a direction: attributes, and elements
_TONGUE = re.compile(
    r"(?:lang|dir|rtl|language|country|script|rfc-language-tag|writing-mode"
    r"|page-progression-direction)(?:-asian|-complex)?"
)
_TONGUE_ELEMENTS = ("lang", "bidi", "language", "themeFontLang")
_MARKS = ("commentRangeStart", "commentRangeEnd", "commentReference")


def _settled(content: bytes) -> bytes:
    """A document without what says its languages, and without the comments of Weft."""
    buffer = BytesIO()
    with ZipFile(BytesIO(content)) as old, ZipFile(buffer, "w") as new:
        numbers = _our_comments(old)
        for info in old.infolist():
            member = old.read(info)
            if info.filename.endswith(_OURS):
                continue
            if info.filename.endswith((".xml", ".xhtml", ".rels", ".opf", ".ncx")):
                member = _without_tongue(member, numbers)
            new.writestr(info, member)
    return buffer.getvalue()


def _our_comments(archive: ZipFile) -> set[str]:
    """The numbers of Weft's comments in a Word document."""
    found = set()
    for name in archive.namelist():
        if name.endswith("comments.xml"):
            for comment in etree.fromstring(archive.read(name)).iter("{*}comment"):
                told = {
                    etree.QName(key).localname: value for key, value in comment.items()
                }
                if told.get("author") == "Weft":
                    found.add(told["id"])
    return found


def _without_tongue(content: bytes, numbers: Container[str]) -> bytes:
    if not content.strip():  # as some programs have members
        return content
    root = etree.fromstring(content, etree.XMLParser(recover=True, huge_tree=True))
    for element in list(root.iter(etree.Element)):
        for key in list(element.attrib):
            if _TONGUE.fullmatch(etree.QName(key).localname):
                del element.attrib[key]
        if _is_ours(element, numbers):
            _remove(element)
    return etree.tostring(root)


def _is_ours(element: etree._Element, numbers: Container[str]) -> bool:
    name = etree.QName(element).localname
    told = {etree.QName(key).localname: value for key, value in element.items()}
    if name in _TONGUE_ELEMENTS:
        return True
    if name in _MARKS or name == "comment":
        return told.get("id") in numbers
    if name == "annotation":
        return element.findtext("{*}creator") in (None, "Weft")
    return any(str(value).endswith(_OURS) for value in told.values())


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if before is None:
        parent.text = (parent.text or "") + (element.tail or "")
    else:
        before.tail = (before.tail or "") + (element.tail or "")
    parent.remove(element)
