"""The type of a file, by its content where that is certain, else by its name; and how it becomes
text.
"""

import codecs
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from weft.data.formats.source import open_file, read_head
from weft.errors import DataError

HEAD_BYTES = 65_536  # that are looked at
_TAKE_OUT = "take its text out first (pandoc -t plain does)"
_EXPORT = "export it as TMX, or write source<TAB>target lines"


@dataclass(frozen=True)
class FileType:
    """A type of file that is no plain text: `words` name it after "is", `remedy` says how it
    becomes text.

    `is_text` is true where a person may want its lines as they are.
    """

    name: str
    words: str
    remedy: str
    is_text: bool = False


FILE_TYPES = {
    kind.name: kind
    for kind in (
        FileType(
            "tmx",
            "a translation memory (TMX)",
            "it holds pairs: for translation, by itself",
        ),
        FileType("xliff", "XLIFF", _EXPORT),
        FileType(
            "po",
            "a PO file, the messages of a program",
            "export it as TMX (po2tmx does), or write source<TAB>target lines",
        ),
        FileType(
            "ftl", "a Fluent file, the messages of a program", _EXPORT, is_text=True
        ),
        FileType(
            "csv", "a comma-separated table", "take the column of the text out of it"
        ),
        FileType(
            "tsv",
            "a table of cells between TABs",
            "take the column of the text out of it",
        ),
        FileType("json", "JSON", "take the text out of it"),
        FileType("jsonl", "JSON, an object a line", "take the text out of it"),
        FileType(
            "srt",
            "subtitles (SRT)",
            "remove the numbers and times, one sentence per line",
            is_text=True,
        ),
        FileType(
            "vtt",
            "subtitles (WebVTT)",
            "remove the times, one sentence per line",
            is_text=True,
        ),
        FileType("html", "an HTML page", _TAKE_OUT, is_text=True),
        FileType("xml", "XML", "take its text out first", is_text=True),
        FileType("markdown", "Markdown", _TAKE_OUT, is_text=True),
        FileType(
            "rtf", "a text with formatting (RTF)", "save it as plain text, in UTF-8"
        ),
        FileType("pdf", "a PDF", "take its text out first (pdftotext does)"),
        FileType("office", "an office document", "save it as plain text, in UTF-8"),
        FileType("sheet", "a spreadsheet", "save it as CSV UTF-8 and give that file"),
        FileType("epub", "a book (EPUB)", _TAKE_OUT),
        FileType(
            "columns",
            "a file of columns (Parquet or Arrow)",
            "write it as CSV or JSON Lines",
        ),
        FileType(
            "zip",
            "a zip archive or an office document",
            "unpack it, or save it as plain text, in UTF-8",
        ),
        FileType(
            "packed",
            "packed or an archive",
            "unpack it first and give the text file in it",
        ),
    )
}
_SUFFIXES = {
    "tmx": "tmx",
    "xliff": "xlf xliff sdlxliff mqxliff mxliff",
    "po": "po pot",
    "ftl": "ftl",
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
    "jsonl": "jsonl ndjson",
    "srt": "srt",
    "vtt": "vtt",
    "html": "html htm xhtml",
    "xml": "xml",
    "markdown": "md markdown",
    "rtf": "rtf",
    "pdf": "pdf",
    "office": "doc docx odt ppt pptx odp",
    "sheet": "xls xlsx ods",
    "epub": "epub",
    "columns": "parquet arrow feather",
    "packed": "zip tar tgz 7z rar bz2 xz zst",
}
_BY_SUFFIX = {
    f".{suffix}": FILE_TYPES[name]
    for name, suffixes in _SUFFIXES.items()
    for suffix in suffixes.split()
}
# known by their names; their bytes say less
_OPAQUE = {"office", "sheet", "epub", "columns", "packed"}
_BINARY = (
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "packed"),
    (b"%PDF-", "pdf"),
    (b"{\\rtf", "rtf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office"),
    (b"PAR1", "columns"),
    (b"ARROW1", "columns"),
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NO_REMEDIES: Mapping[str, str] = MappingProxyType({})
_TIMES = re.compile(r"\d+[ ]*\r?\n\d+:\d\d:\d\d[,.]\d{1,3}[ ]*-->")
_ROOT = re.compile(r"<(?:\w{1,40}:)?(xliff|tmx|html)\b", re.IGNORECASE)
_OBJECT = re.compile(r'\[?\s*\{\s*"[^"\n]{0,200}"\s*:')


def type_of(path: Path) -> FileType | None:
    """Return the type of a file; None for plain text. Raises DataError where it cannot be read."""
    named = type_of_name(path)
    if named is not None and named.name in _OPAQUE:
        return named
    return type_of_content(read_head(path, HEAD_BYTES)) or named


def accepted_type(
    path: Path,
    accepted: Collection[str],
    wanted: str,
    remedies: Mapping[str, str] = _NO_REMEDIES,
) -> FileType | None:
    """Return the type of a file that is to be read as `wanted`; None for plain text.

    Raises DataError for a type that is not accepted, with what to do by `remedies` or else by the
    type itself, and for what is no file, is empty or cannot be read.
    """
    with open_file(path):
        if not path.is_file():
            raise DataError(
                f"{path}: is not a regular file; write the text to a file first"
            )
    kind = type_of(path)
    if kind is not None and kind.name not in accepted:
        raise DataError(
            f"{path}: is {kind.words}, not {wanted}; {remedies.get(kind.name, kind.remedy)}"
        )
    if not read_head(path):
        raise DataError(f"{path}: is empty (0 bytes)")
    return kind


def type_of_name(path: Path) -> FileType | None:
    """Return the type that a file's name says; None for one that says nothing, or plain text."""
    return _BY_SUFFIX.get(Path(path.name.lower().removesuffix(".gz")).suffix)


def type_of_content(head: bytes) -> FileType | None:
    """Return the type that the first bytes of an unpacked file show beyond doubt.

    None where they might be plain text.
    """
    for signature, name in _BINARY:
        if head.startswith(signature):
            return FILE_TYPES[name]
    text = _decoded(head).lstrip()
    for look in (_tagged, _messages, _subtitles, _json):
        if name := look(text):
            return FILE_TYPES[name]
    return None


def _decoded(head: bytes) -> str:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return head.removeprefix(mark).decode(encoding, "replace")
    if head[:4].count(0):  # of UTF-16 without a mark, as XML may be
        return head.replace(b"\0", b"").decode("ascii", "replace")
    return head.decode("utf-8", "replace")


def _tagged(text: str) -> str:
    """Find the type of tagged text: XML by its root, HTML also by its document type."""
    start = text[:14].lower()
    if start == "<!doctype html":
        return "html"
    if not start.startswith(("<?xml", "<!doctype", "<tmx", "<xliff", "<html")):
        return ""
    root = _ROOT.search(text)
    return root[1].lower() if root else "xml"


def _messages(text: str) -> str:
    """Return "po" for PO, which shows in the first line that is no comment."""
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            return "po" if line.startswith(('msgid "', 'msgctxt "', 'domain "')) else ""
    return ""


def _subtitles(text: str) -> str:
    if re.match(r"WEBVTT\b", text):
        return "vtt"
    return "srt" if _TIMES.match(text) else ""


def _json(text: str) -> str:
    """Return "jsonl" for one object in the first line, "json" for an array or object that goes over
    several.
    """
    if not _OBJECT.match(text):
        return ""
    first, _, rest = text.partition("\n")
    try:
        return "jsonl" if isinstance(json.loads(first), dict) else "json"
    except (ValueError, RecursionError):
        return "json" if rest else ""
