"""The table of file types: a row says all that the house knows of one.

To read a further format, write its reader in a module beside this one and give the type its row.
"""

from dataclasses import dataclass
from typing import Literal

from weft.data.formats.jsonl import open_jsonl
from weft.data.formats.pairs import PairReader
from weft.data.formats.parquet import open_parquet
from weft.data.formats.po import open_po
from weft.data.formats.tmx import open_tmx
from weft.data.formats.tsv import open_csv, open_tsv
from weft.data.formats.xliff import open_xliff

_PAIRS = "it holds sentence pairs; use it alone, to train a translator"
_TAKE_OUT = "take its text out first (pandoc -t plain does)"
_EXPORT = "export it as TMX, or write source<TAB>target lines"
_COLUMN = "take the column of the text out of it"
_SAVE = "save it as plain text, in UTF-8"


@dataclass(frozen=True, kw_only=True)
class FileType:
    """A type of file that is not plain text.

    name: one word of small letters that code calls it by; if it holds pairs, the help and the pages
    do too, so it is no word that they have anyway. words: stand after "is" in messages. remedy: how
    it becomes text, or what to do with it elsewhere. endings: without the first dot; one may have
    several parts (`talk.json`), and the longest one counts.

    A file is recognized by its content: the first bytes (`signatures`), or the tag that XML begins
    with (`root`). Else by the ending of its name. If `named_first` its name counts first: its bytes
    say less, or look like another type's.

    task: the one that a file is most likely for; "" where that is open. read_pairs: opens it as
    pairs; None for a type that holds none. has_sentences: its lines may also be sentences, of one
    language or of one of two aligned files. table: how its rows are written, "" for a type without
    rows. translated: the endings of those of its files that weft translate reads and writes again
    as documents. documents: whether a language model trains on its text: "yes"; "raw": as it
    stands, with data.raw alone; "no". is_text: a person may want its lines to be translated or
    classified as they are.
    """

    name: str
    words: str
    remedy: str
    endings: tuple[str, ...] = ()
    signatures: tuple[bytes, ...] = ()
    root: str = ""
    named_first: bool = False
    task: Literal["", "translation", "classification"] = ""
    read_pairs: PairReader | None = None
    has_sentences: bool = False
    table: Literal["", "csv", "tsv", "json"] = ""
    translated: tuple[str, ...] = ()
    documents: Literal["yes", "raw", "no"] = "raw"
    is_text: bool = False


_ROWS = (
    FileType(
        name="tmx",
        words="a translation memory (TMX)",
        remedy=_PAIRS,
        endings=("tmx",),
        root="tmx",
        task="translation",
        read_pairs=open_tmx,
        translated=("tmx",),
    ),
    FileType(
        name="xliff",
        words="XLIFF",
        remedy=_PAIRS,
        endings=("xlf", "xliff", "sdlxliff", "mqxliff", "mxliff"),
        root="xliff",
        task="translation",
        read_pairs=open_xliff,
        translated=("xlf", "xliff"),
    ),
    FileType(
        name="po",
        words="a PO file, the messages of a program",
        remedy=_PAIRS,
        endings=("po", "pot"),
        task="translation",
        read_pairs=open_po,
        translated=("po", "pot"),
    ),
    FileType(
        name="ftl",
        words="a Fluent file, the messages of a program",
        remedy=_EXPORT,
        endings=("ftl",),
        task="translation",
        is_text=True,
        translated=("ftl",),
    ),
    FileType(
        name="ts",
        words="a Qt translation file, the messages of a program",
        remedy=_EXPORT,
        task="translation",
        translated=("ts",),
    ),
    FileType(
        name="strings",
        words="a file of strings (Apple), the messages of a program",
        remedy=_EXPORT,
        endings=("strings", "stringsdict", "xcstrings"),
        translated=("strings", "stringsdict", "xcstrings"),
        is_text=True,
    ),
    FileType(
        name="csv",
        words="a comma-separated table",
        remedy=_COLUMN,
        endings=("csv",),
        task="classification",
        read_pairs=open_csv,
        table="csv",
    ),
    FileType(
        name="tsv",
        words="a table of cells between TABs",
        remedy=_COLUMN,
        endings=("tsv",),
        read_pairs=open_tsv,
        has_sentences=True,
        table="tsv",
        documents="yes",
    ),
    FileType(
        name="json",
        words="JSON",
        remedy="take the text out of it",
        endings=("json", "arb"),
        task="classification",
        table="json",
        translated=("json", "arb"),
    ),
    FileType(
        name="jsonl",
        words="JSON, an object a line",
        remedy="take the text out of it",
        endings=("jsonl", "ndjson"),
        task="classification",
        read_pairs=open_jsonl,
        table="json",
    ),
    FileType(
        name="srt",
        words="subtitles (SRT)",
        remedy="remove the numbers and times, one sentence per line",
        endings=("srt",),
        is_text=True,
        translated=("srt",),
    ),
    FileType(
        name="vtt",
        words="subtitles (WebVTT)",
        remedy="remove the times, one sentence per line",
        endings=("vtt",),
        is_text=True,
        translated=("vtt",),
    ),
    FileType(
        name="html",
        words="an HTML page",
        remedy=_TAKE_OUT,
        endings=("html", "htm", "xhtml"),
        root="html",
        is_text=True,
        translated=("html", "htm", "xhtml"),
    ),
    FileType(
        name="xml",
        words="XML",
        remedy="take its text out first",
        endings=("xml",),
        read_pairs=open_tmx,
        documents="yes",
        is_text=True,
    ),
    FileType(
        name="markdown",
        words="Markdown",
        remedy=_TAKE_OUT,
        endings=("md", "markdown"),
        read_pairs=open_tsv,
        has_sentences=True,
        documents="yes",
        is_text=True,
        translated=("md", "markdown"),
    ),
    FileType(
        name="rtf",
        words="a text with formatting (RTF)",
        remedy=f"{_SAVE}; saved as .docx, weft translate translates it",
        endings=("rtf",),
        signatures=(b"{\\rtf",),
        documents="no",
    ),
    FileType(
        name="pdf",
        words="a PDF",
        remedy="take its text out first (pdftotext does)",
        endings=("pdf",),
        signatures=(b"%PDF-",),
        documents="no",
    ),
    FileType(
        name="office",
        words="an office document",
        remedy=_SAVE,
        endings=("doc", "docm", "docx", "odt", "ppt", "pptm", "pptx", "odp"),
        signatures=(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",),
        named_first=True,
        documents="no",
        translated=("docx", "pptx", "odt", "odp"),
    ),
    FileType(
        name="sheet",
        words="a spreadsheet",
        remedy="save it as CSV UTF-8 and give that file",
        endings=("xls", "xlsm", "xlsx", "ods"),
        named_first=True,
        documents="no",
        translated=("xlsx", "ods"),
    ),
    FileType(
        name="epub",
        words="a book (EPUB)",
        remedy=_TAKE_OUT,
        endings=("epub",),
        named_first=True,
        documents="no",
        translated=("epub",),
    ),
    FileType(
        name="parquet",
        words="a file of columns (Parquet or Arrow)",
        remedy="write it as CSV or JSON Lines",
        read_pairs=open_parquet,
        endings=("parquet", "arrow", "feather"),
        signatures=(b"PAR1", b"ARROW1"),
        named_first=True,
        documents="no",
    ),
    FileType(
        name="zip",
        words="a zip archive or an office document",
        remedy="unpack it, or save it as plain text, in UTF-8",
        signatures=(b"PK\x03\x04",),
        documents="no",
    ),
    FileType(
        name="packed",
        words="packed or an archive",
        remedy="unpack it first and give the text file in it",
        endings=("zip", "tar", "tgz", "7z", "rar", "bz2", "xz", "zst"),
        signatures=(b"\x1f\x8b",),
        named_first=True,
        documents="no",
    ),
)
FILE_TYPES = {kind.name: kind for kind in _ROWS}
