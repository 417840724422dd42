"""Whether whole documents survive their translation: `python benchmarks/real_documents.py FOLDER
FILES...`.

Each file is translated as `weft translate FOLDER FILE` does it, with the doubts written into it.
For each format the table has

- the segments, and the files whose structure is as it was: all that is neither words nor language
  nor a comment of Weft's (tools/structure_differ.py);
- what validators say: msgfmt of catalogues, EPUBCheck of books (`--epubcheck JAR`), the schema of
  XLIFF (`--schema XSD`, for each version one), others' readers of the rest. A file that was not
  valid before, and has no new faults, counts as valid, and is told;
- whether LibreOffice opens and converts documents of office programs and pages, without complaint;
- the share of texts whose words are those of the same text translated alone, as plain text.
  Others' readers (tools/plain_readers.py) take both out of the documents; placeholders and numbers
  do not count.

Of files of two languages that lack nothing, `--emptied` takes the translations away first.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import weft
from weft.documents.document import Document, Reading, Translated
from weft.documents.driver import fill_document, texts_of
from weft.documents.registry import format_of
from weft.errors import UsageError
from weft.predict.document import for_document
from weft.predict.settings import DecodingSettings

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from made_documents import convert
from plain_readers import read_pairs
from structure_differ import diff_document
from validators import Validators, emptied

WORDS = re.compile(r"[^\W\d_]+")
OFFICE = {".docx": "pdf", ".odt": "pdf", ".pptx": "pdf", ".odp": "pdf", ".xlsx": "pdf"}
OFFICE |= {".ods": "pdf", ".html": "txt"}


@dataclass
class Row:
    """What is known of the files of a format."""

    files: int = 0
    segments: int = 0
    kept: int = 0
    valid: int = 0
    invalid_before: int = 0
    opened: int = 0
    texts: int = 0
    same: int = 0
    faults: list[str] = field(default_factory=list)

    def cells(self, ending: str) -> list[str]:
        """Return the cells of the table."""
        valid = f"{self.valid} of {self.files}"
        if self.invalid_before:
            valid += f" ({self.invalid_before} were not)"
        opened = f"{self.opened} of {self.files}" if ending in OFFICE else "-"
        share = f"{self.same / self.texts:.1%}" if self.texts else "-"
        counts = [str(self.files), f"{self.segments:,}", f"{self.kept} of {self.files}"]
        return [ending, *counts, valid, opened, f"{share} of {self.texts:,}"]


class Answers:
    """The translations of a model, each text once; as documents have them, and plain."""

    def __init__(self, folder: str, beam_size: int | None) -> None:
        self.model = weft.load(folder)
        options = {} if beam_size is None else {"beam_size": beam_size}
        self._plain = DecodingSettings(**options)
        self._aligned = DecodingSettings(**options, alignments=True)
        self._for_documents: dict[str, Translated] = {}
        self._alone: dict[str, str] = {}

    def of(self, document: Document[bytes]) -> list[Translated]:
        """Translate the texts of a document."""
        texts = texts_of(document)
        new = [text for text in texts if text not in self._for_documents]
        found = self.model.translate_stream(new, self._aligned, chunk=128)
        for text, prediction in zip(new, found, strict=True):
            self._for_documents[text] = for_document(text, prediction)
        return [self._for_documents[text] for text in texts]

    def alone(self, texts: Iterable[str]) -> dict[str, str]:
        """Translate texts as they are."""
        new = [text for text in dict.fromkeys(texts) if text not in self._alone]
        found = self.model.translate_stream(new, self._plain, chunk=128)
        for text, prediction in zip(new, found, strict=True):
            self._alone[text] = prediction.text or text
        return self._alone


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a translator's folder")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--beam-size", type=int)
    parser.add_argument(
        "--target", default="", help="the language where a file says none"
    )
    parser.add_argument("--epubcheck", type=Path, help="EPUBCheck, a JAR")
    parser.add_argument("--schema", type=Path, action="append", default=[])
    parser.add_argument("--emptied", action="store_true", help="take translations away")
    parser.add_argument("--without-office", action="store_true", help="no LibreOffice")
    parser.add_argument("--wrong", type=int, default=0, help="show so many that differ")
    parser.add_argument("--keep", type=Path, help="a folder for the translations")
    asked = parser.parse_args()
    answers = Answers(asked.folder, asked.beam_size)
    checks = Validators(asked.epubcheck, asked.schema)
    rows: defaultdict[str, Row] = defaultdict(Row)
    with TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        pairs = list(translated(asked, answers, folder, rows))
        for before, after in pairs:
            judge(before, after, rows[after.suffix], answers, checks, asked.wrong)
        if not asked.without_office:
            open_all([after for _, after in pairs], rows, folder)
    print_table(rows)


def translated(
    asked: argparse.Namespace, answers: Answers, folder: Path, rows: dict[str, Row]
) -> Iterator[tuple[bytes, Path]]:
    """Yield each file's bytes, and its translation."""
    for number, path in enumerate(asked.files):
        content = path.read_bytes()
        if asked.emptied:
            content = emptied(content, path.suffix)
        target = asked.target or answers.model.tgt_lang
        reading = Reading(path.name, answers.model.src_lang, target, columns_of(path))
        row = rows[path.suffix]
        row.files += 1
        document = opened(content, reading)
        row.segments += len(document.segments)
        out = folder / f"{number}-{path.stem}{path.suffix}"
        out.write_bytes(fill_document(document, answers.of(document)))
        yield content, out


def opened(content: bytes, reading: Reading) -> Document[bytes]:
    """Read a document; one that says another target language than the model's keeps it, for its
    structure is what is measured.
    """
    read = format_of(reading.name).open
    try:
        return read(content, reading)
    except UsageError as error:
        print(f"{error}; read all the same", file=sys.stderr)
        return read(content, replace(reading, target=""))


def columns_of(path: Path) -> tuple[str, ...]:
    """Return the columns of a table that are translated: those that our own have."""
    return ("text",) if path.suffix in (".csv", ".tsv") else ()


def judge(
    before: bytes,
    path: Path,
    row: Row,
    answers: Answers,
    checks: Validators,
    most: int,
) -> None:
    """Compare a document with its translation."""
    after = path.read_bytes()
    faults = diff_document(before, after, path.suffix)
    row.kept += not faults
    was_wrong = checks.complaints(before, path.suffix)
    new = [
        text for text in checks.complaints(after, path.suffix) if text not in was_wrong
    ]
    row.valid += not new
    row.invalid_before += bool(was_wrong)
    for fault in (*faults, *new)[:most]:
        print(f"{path.name}: {fault}"[:400], file=sys.stderr)
    try:
        pairs = list(read_pairs(before, after, path.suffix))
    except ValueError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return
    alone = answers.alone(source for source, _ in pairs)
    for source, found in pairs:
        is_same = words(found) == words(alone[source])
        row.texts += 1
        row.same += is_same
        if not is_same and most > 0:
            most -= 1
            print(f"{path.name}:", source, found, alone[source], "", sep="\n", file=sys.stderr)  # fmt: skip


def words(text: str) -> list[str]:
    """Return the words of a text, without numbers."""
    return WORDS.findall(text)


def open_all(paths: Sequence[Path], rows: dict[str, Row], folder: Path) -> None:
    """Let LibreOffice convert documents."""
    by_ending: defaultdict[str, list[Path]] = defaultdict(list)
    for path in paths:
        if path.suffix in OFFICE:
            by_ending[path.suffix].append(path)
    for ending, found in by_ending.items():
        try:
            out = folder / f"opened{ending}"
            out.mkdir(exist_ok=True)
            rows[ending].opened = len(convert(found, OFFICE[ending], out))
        except RuntimeError as error:
            print(f"{ending}: {error}", file=sys.stderr)


def print_table(rows: dict[str, Row]) -> None:
    """Print the rows as Markdown."""
    print("| format | files | segments | structure kept | valid | opened | words as in plain text |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for ending, row in sorted(rows.items()):
        print(f"| {' | '.join(row.cells(ending))} |")


if __name__ == "__main__":
    main()
