"""The formats of documents: a row says all that a command or a server needs to know of one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import PurePath

from weft.documents.document import Document, Reading, TextDocument
from weft.documents.formats.bilingual import tmx, xliff
from weft.documents.formats.office import docx, epub, odf, pptx, xlsx
from weft.documents.formats.programs import (
    android,
    apple_strings,
    fluent,
    json_files,
    po,
    qt,
    xcstrings,
)
from weft.documents.formats.text import markdown, plain, subtitles, tables
from weft.documents.formats.web import html
from weft.errors import UsageError

Open = Callable[[bytes, Reading], Document[bytes]]
Read = Callable[[str], TextDocument]


@dataclass(frozen=True)
class Format:
    """A format of documents.

    `endings` are those of file names, with the dot. `open` reads a file from its bytes; `read`
    text, where a piece of it alone means something. `needs` are the packages without which it
    cannot be read, by the names that they are imported with. With `has_columns`, `Reading.columns`
    say which of its columns or keys are translated.
    """

    name: str
    endings: tuple[str, ...]
    open: Open
    read: Read | None = None
    needs: tuple[str, ...] = ()
    has_columns: bool = False

    @property
    def missing(self) -> list[str]:
        """List the packages that it needs and that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


FORMATS = {
    row.name: row
    for row in (
        Format("text", (".txt",), plain.open_plain, plain.read_plain),
        Format("html", (".html", ".htm"), html.open_html, html.read_html),
        Format(
            "markdown",
            (".md", ".markdown"),
            markdown.open_markdown,
            needs=("markdown_it",),
        ),
        Format("json", (".json", ".arb"), json_files.open_json, has_columns=True),
        Format("json lines", (".jsonl",), json_files.open_json_lines, has_columns=True),
        Format("csv", (".csv",), tables.open_csv, has_columns=True),
        Format("tsv", (".tsv",), tables.open_tsv, has_columns=True),
        Format("fluent", (".ftl",), fluent.open_fluent, needs=("fluent.syntax",)),
        Format("strings", (".strings",), apple_strings.open_strings),
        Format("stringsdict", (".stringsdict",), apple_strings.open_stringsdict),
        Format("xcstrings", (".xcstrings",), xcstrings.open_xcstrings),
        Format("po", (".po", ".pot"), po.open_po),
        Format("srt", (".srt",), subtitles.open_srt),
        Format("vtt", (".vtt",), subtitles.open_vtt),
        Format("docx", (".docx",), docx.open_docx),
        Format("odf", (".odt", ".ods", ".odp"), odf.open_odf),
        Format("epub", (".epub",), epub.open_epub),
        Format("pptx", (".pptx",), pptx.open_pptx),
        Format("xlsx", (".xlsx",), xlsx.open_xlsx),
        Format("xliff", (".xlf", ".xliff"), xliff.open_xliff),
        Format("tmx", (".tmx",), tmx.open_tmx_document),
        Format("ts", (".ts",), qt.open_qt),
        Format("android", (".xml",), android.open_android),
    )
}


def endings() -> list[str]:
    """List the endings of all files that can be opened with what is installed."""
    return [
        ending for row in FORMATS.values() if not row.missing for ending in row.endings
    ]


def endings_of_text() -> list[str]:
    """List those of files that are divided into texts, each of which is translated alone."""
    rows = [row for row in FORMATS.values() if row.read and not row.missing]
    return [ending for row in rows for ending in row.endings]


def format_of(name: str) -> Format:
    """Return the format that a file's name says.

    Raises UsageError for any other ending, and for a format whose packages are not installed.
    """
    ending = PurePath(name).suffix.lower()
    row = next((row for row in FORMATS.values() if ending in row.endings), None)
    if row is None:
        listed = ", ".join(endings())
        raise UsageError(f"{name}: documents have one of the endings {listed}")
    if row.missing:
        raise UsageError(
            f"{name}: reading {ending} needs {', '.join(row.missing)}; pip install 'weft-text[documents]'"
        )
    return row
