"""The formats of documents: a row says all that a command or a server needs to know of one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import PurePath

from weft.documents.document import Document, Reading, TextDocument
from weft.documents.formats.android import open_android
from weft.documents.formats.apple_strings import open_strings, open_stringsdict
from weft.documents.formats.docx import open_docx
from weft.documents.formats.epub import open_epub
from weft.documents.formats.fluent import open_fluent
from weft.documents.formats.html import open_html, read_html
from weft.documents.formats.json_files import open_json, open_json_lines
from weft.documents.formats.markdown import open_markdown
from weft.documents.formats.odf import open_odf
from weft.documents.formats.plain import open_plain, read_plain
from weft.documents.formats.po import open_po
from weft.documents.formats.pptx import open_pptx
from weft.documents.formats.qt import open_qt
from weft.documents.formats.subtitles import open_srt, open_vtt
from weft.documents.formats.tables import open_csv, open_tsv
from weft.documents.formats.tmx import open_tmx_document
from weft.documents.formats.xcstrings import open_xcstrings
from weft.documents.formats.xliff import open_xliff
from weft.documents.formats.xlsx import open_xlsx
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
        Format("text", (".txt",), open_plain, read_plain),
        Format("html", (".html", ".htm"), open_html, read_html),
        Format("markdown", (".md", ".markdown"), open_markdown, needs=("markdown_it",)),
        Format("json", (".json", ".arb"), open_json, has_columns=True),
        Format("json lines", (".jsonl",), open_json_lines, has_columns=True),
        Format("csv", (".csv",), open_csv, has_columns=True),
        Format("tsv", (".tsv",), open_tsv, has_columns=True),
        Format("fluent", (".ftl",), open_fluent, needs=("fluent.syntax",)),
        Format("strings", (".strings",), open_strings),
        Format("stringsdict", (".stringsdict",), open_stringsdict),
        Format("xcstrings", (".xcstrings",), open_xcstrings),
        Format("po", (".po", ".pot"), open_po),
        Format("srt", (".srt",), open_srt),
        Format("vtt", (".vtt",), open_vtt),
        Format("docx", (".docx",), open_docx),
        Format("odf", (".odt", ".ods", ".odp"), open_odf),
        Format("epub", (".epub",), open_epub),
        Format("pptx", (".pptx",), open_pptx),
        Format("xlsx", (".xlsx",), open_xlsx),
        Format("xliff", (".xlf", ".xliff"), open_xliff),
        Format("tmx", (".tmx",), open_tmx_document),
        Format("ts", (".ts",), open_qt),
        Format("android", (".xml",), open_android),
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
