"""The type of a file, by its content where that is certain, else by its name."""

import codecs
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from weft.data.formats.cells import find_delimiter
from weft.data.formats.registry import FILE_TYPES, FileType
from weft.data.formats.source import open_file, read_head
from weft.errors import DataError

HEAD_BYTES = 65_536  # that are looked at
_SAME = 3  # first letters of endings of one program: doc, docx
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TABLES = {  # by the delimiter of CSV, where it is no comma
    ";": "a table of cells between semicolons",
    "\t": FILE_TYPES["tsv"].words,
}
_NO_REMEDIES: Mapping[str, str] = MappingProxyType({})
_QT = re.compile(r"(?:<\?xml[^<>]*>\s*)?<(?:!DOCTYPE )?TS\b")
_TIMES = re.compile(r"\d+[ ]*\r?\n\d+:\d\d:\d\d[,.]\d{1,3}[ ]*-->")
_OBJECT = re.compile(r'\[?\s*\{\s*"[^"\n]{0,200}"\s*:')


def type_of(path: Path) -> FileType | None:
    """Return the type of a file; None for plain text. Raises DataError where it cannot be read."""
    named = type_of_name(path)
    if named is not None and named.named_first:
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
        own = kind.remedy + how_to_translate(kind, path)
        remedy = remedies.get(kind.name, own)
        raise DataError(f"{path}: is {describe(path, kind)}, not {wanted}; {remedy}")
    if not read_head(path):
        raise DataError(f"{path}: is empty (0 bytes)")
    return kind


def describe(path: Path, kind: FileType) -> str:
    """Say what a file of a type is, in words that stand after "is"; of CSV with its separator."""
    if kind.table != "csv":
        return kind.words
    try:
        delimiter, _ = find_delimiter(path, ())
    except DataError:
        return kind.words
    stands_there = delimiter.encode() in read_head(path, HEAD_BYTES)
    return _TABLES.get(delimiter, kind.words) if stands_there else kind.words


def how_to_translate(kind: FileType, path: Path | None) -> str:
    """Say how weft translate takes a file as a document, behind another remedy; "" where it does
    not. Without a path, the file came by a pipe.
    """
    if not kind.translated:
        return ""
    ending = path.suffix.lower().removeprefix(".") if path else ""
    if path and ending in kind.translated:
        return f"; weft translate FOLDER {path} translates it"
    if path and ending in kind.endings:  # of an older kind
        begins = ending[:_SAME]
        newer = next((one for one in kind.translated if one.startswith(begins)), "")
        return f"; saved as .{newer}, weft translate translates it" if newer else ""
    name = f"FILE.{kind.translated[0]}"
    return f"; named {name}, weft translate FOLDER {name} translates it"


def better_first(kind: FileType, path: Path | None) -> str:
    """Return the remedy for a file that is read as lines, and how weft translate takes it as a
    document: that first where its format has a newer kind, which keeps all as it stands.
    """
    how = how_to_translate(kind, path)
    if how.startswith("; saved as"):
        return f"{how.removeprefix('; ')}; else {kind.remedy}"
    return kind.remedy + how


def type_of_name(path: Path) -> FileType | None:
    """Return the type that a file's name says; None for one that says nothing, or plain text."""
    stem, ending = split_ending(path.name.lower().removesuffix(".gz"))
    for kind in FILE_TYPES.values():
        if stem and ending in kind.endings:
            return kind
    return None


def split_ending(name: str) -> tuple[str, str]:
    """Split a file's name into its stem and its ending, without the dot between: `pairs.en-de` and
    `tsv`.

    The ending is the longest that a row of the registry has, else what is behind the last dot; ""
    where there is no dot.
    """
    known = {ending for kind in FILE_TYPES.values() for ending in kind.endings}
    for dot in re.finditer(r"\.", name):
        if name[dot.end() :].lower() in known:
            return name[: dot.start()], name[dot.end() :]
    if "." not in name:
        return name, ""
    stem, _, ending = name.rpartition(".")
    return stem, ending


def type_of_content(head: bytes) -> FileType | None:
    """Return the type that the first bytes of an unpacked file show beyond doubt.

    None where they might be plain text.
    """
    for kind in FILE_TYPES.values():
        if head.startswith(kind.signatures):
            return kind
    text = decode_head(head).lstrip()
    for look in (_qt, _tagged, _messages, _subtitles, _json):
        if name := look(text):
            return FILE_TYPES[name]
    return None


def decode_head(head: bytes) -> str:
    """Return the text that a file begins with; a letter that is not UTF-8 becomes U+FFFD."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return head.removeprefix(mark).decode(encoding, "replace")
    if head[:4].count(0):  # of UTF-16 without a mark, as XML may be
        return head.replace(b"\0", b"").decode("ascii", "replace")
    return head.decode("utf-8", "replace")


def _qt(text: str) -> str:
    """Return "ts" for messages of Qt; by their name they might be a program's source."""
    return "ts" if _QT.match(text) else ""


def _tagged(text: str) -> str:
    """Find the type of tagged text: XML by its root, HTML also by its document type."""
    start = text[:14].lower()
    if start == "<!doctype html":
        return "html"
    by_root = {kind.root: kind.name for kind in FILE_TYPES.values() if kind.root}
    beginnings = [f"<{root}" for root in by_root]
    if not start.startswith(("<?xml", "<!doctype", *beginnings)):
        return ""
    roots = "|".join(by_root)
    tag = re.search(rf"<(?:\w{{1,40}}:)?({roots})\b", text, re.IGNORECASE)
    return by_root[tag[1].lower()] if tag else "xml"


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
