"""The lines that a verb reads and writes: arguments, files, pipes, a terminal."""

import contextlib
import io
import itertools
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import typer

from weft.cli.named_files import refuse_files_as_texts, refuse_missing
from weft.console.wording import remark
from weft.data.plain_lines import lines
from weft.errors import DataError, Interrupted, UsageError

CHUNK = 1024  # lines that are processed together
FEW = 20


@dataclass(frozen=True)
class Lines:
    """The texts to process.

    `chunk` is how many to take at a time: one on a terminal, where a person waits for each.
    `count` and `sha256` of all texts are known unless they come from a terminal. `rows` are the
    rows of the table that the texts are from: a mapping by column, or all cells. `unit` is what
    messages call a text: line or row.
    """

    lines: Iterator[str]
    chunk: int
    count: int | None = None
    sha256: str = ""
    rows: Iterator[Any] | None = None
    unit: str = "line"

    @property
    def is_short(self) -> bool:
        """Return whether the texts are so few that something may be said of each."""
        return self.chunk == 1 or (self.count or FEW + 1) <= FEW


@contextlib.contextmanager
def reading_lines(
    text: list[str] | None,
    input_file: Path | None,
    output_file: Path | None,
    has_columns: bool = False,
) -> Iterator[Lines]:
    """Yield the lines of arguments, a file or standard input.

    `has_columns` says whether the verb has the option --column. Raises UsageError for contradictory
    arguments, and DataError for malformed text before the first line is yielded.
    """
    if text and input_file:
        raise UsageError("give texts or --input, not both")
    refuse_files_as_texts(text or ())
    refuse_same_file(input_file, output_file)
    with source(text, input_file) as stream:
        if not text and not is_terminal(stream):
            look_at_kind(stream, input_file, has_columns)
        rest = (line for _, line in lines(stream, input_file))
        if is_terminal(stream):
            yield Lines(rest, 1)
        else:
            yield Lines(rest, CHUNK, *refuse_malformed(stream, input_file))


@contextlib.contextmanager
def reading_rows(
    input_file: Path, output_file: Path | None, column: str, as_cells: bool = False
) -> Iterator[Lines]:
    """Yield the texts of a table's column, one a row, with the rows; also empty texts.

    With `as_cells`, for CSV and TSV, a row is the list of its cells. Raises DataError for a
    malformed table before the first text is yielded.
    """
    from weft.data.labelled import read_cell_texts, read_texts

    refuse_same_file(input_file, output_file)
    dropped: Counter[str] = Counter()
    pairs: Iterator[tuple[str, Any]] = read_texts(input_file, column, dropped)
    count, digest = _measured(text for text, _ in pairs)
    _say_dropped(input_file, dropped)
    if as_cells:
        pairs = read_cell_texts(input_file, column)
    else:
        pairs = read_texts(input_file, column, Counter())
    first, second = itertools.tee(pairs)
    texts = (text for text, _ in first)
    rows = (row for _, row in second)
    yield Lines(texts, CHUNK, count, digest, rows, "row")


@contextlib.contextmanager
def reading_column(
    input_file: Path, output_file: Path | None, column: str, as_cells: bool = False
) -> Iterator[Lines]:
    """Yield the texts of a table's column, which is named or numbered; raise as `reading_rows`."""
    from weft.data.labelled import name_of_column, read_column

    refuse_missing(input_file, "--input")
    name = name_of_column(input_file, column)
    if as_cells and name is not None:
        with reading_rows(input_file, output_file, name, as_cells) as source:
            yield source
        return
    refuse_same_file(input_file, output_file)
    dropped: Counter[str] = Counter()
    notes: list[str] = []
    count, digest = _measured(read_column(input_file, column, dropped, notes))
    for note in notes:
        remark(f"weft: {note}")
    _say_dropped(input_file, dropped)
    texts = read_column(input_file, column, Counter(), [])
    yield Lines(texts, CHUNK, count, digest, unit="row")


def _measured(texts: Iterable[str]) -> tuple[int, str]:
    """Return the number of texts and their SHA-256."""
    count = 0
    digest = sha256()
    for count, text in enumerate(texts, start=1):  # noqa: B007
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return count, digest.hexdigest()


def _say_dropped(input_file: Path, dropped: Mapping[str, int]) -> None:
    for reason, number in dropped.items():
        remark(f"weft: {input_file}: rows left out: {number:,} ({reason})")


def is_table(path: Path | None) -> bool:
    """Return whether a file exists and has the name of a table: CSV, TSV or JSON lines."""
    from weft.data.formats.filetype import type_of_name

    kind = type_of_name(path) if path is not None and path.is_file() else None
    return kind is not None and kind.table != ""


def look_at_kind(
    stream: BinaryIO, path: Path | None, has_columns: bool = False
) -> None:
    """Raise DataError for a file that is not plain text; remark on text of a special format.

    A table in a pipe, which has no name, is taken as lines.
    """
    one_column = "one column: --input FILE --column NAME, or its number"
    from weft.data.formats.filetype import (
        HEAD_BYTES,
        better_first,
        describe,
        how_to_translate,
        type_of,
        type_of_content,
    )

    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    kind = type_of_content(head)
    if path is not None:
        kind = type_of(path)
    name = path or "standard input"
    if kind is None:
        if has_columns and _has_tabs(head):
            remark(
                f"weft: {name}: every line has a TAB and is taken as it is; {one_column}"
            )
        return
    if path is not None and kind.name == "tsv" and b"\t" not in head:
        return
    if kind.is_text or (path is None and kind.name in ("json", "jsonl")):
        remark(
            f"weft: {name} looks like {kind.words}; its lines are taken as they are; "
            f"else {kind.remedy}{how_to_translate(kind, path)}"
        )
        return
    remedy = better_first(kind, path)
    if is_table(path):
        remedy = kind.remedy
        if has_columns:
            remedy = f"for {one_column}"
        remedy += "; or give it as standard input, for its lines as they are"
    what = kind.words
    if path is not None:
        what = describe(path, kind)
    raise DataError(f"{name}: is {what}, not one text a line; {remedy}")


def _has_tabs(head: bytes) -> bool:
    """Return whether there are several complete lines, and a TAB in each that is not blank."""
    complete = head.split(b"\n")[:-1]
    texts = [line.strip() for line in complete if line.strip()]
    return len(texts) > 1 and all(b"\t" in text for text in texts)


def refuse_same_file(input_file: Path | None, output_file: Path | None) -> None:
    """Raise UsageError where the output would be written over the input."""
    if input_file is None or output_file is None:
        return
    if output_file.exists() and output_file.samefile(input_file):
        raise UsageError(
            f"--output {output_file} is the input itself; it would be lost; give another name"
        )


@contextlib.contextmanager
def source(text: list[str] | None, path: Path | None) -> Iterator[BinaryIO]:
    """Yield the input as bytes that can be read twice: arguments, a file, or all of a pipe.

    A terminal can be read once only.
    """
    if path is not None:
        refuse_missing(path, "--input")
        with path.open("rb") as file:
            yield file
    elif not text and sys.stdin.isatty():
        remark("weft: reading from the terminal, a line each; Ctrl-D ends")
        yield sys.stdin.buffer
    else:
        with tempfile.SpooledTemporaryFile(max_size=2**26) as spool:
            for line in text or ():
                one_line = re.sub("\r\n|\r|\n", " ", line)
                spool.write(one_line.encode("utf-8", "surrogateescape") + b"\n")
            if not text:
                while block := sys.stdin.buffer.read(2**20):
                    spool.write(block)
            spool.seek(0)
            yield spool  # type: ignore[misc]


@contextlib.contextmanager
def sink(path: Path | None) -> Iterator[TextIO]:
    """Yield standard output, or a file that appears when it is complete."""
    from weft.folder import durable

    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
    else:
        refuse_no_file(path)
        with (
            durable.replacing(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as file,
        ):
            yield file


def print_json(value: Any) -> None:
    """Print a line of JSON on standard output, in UTF-8 whatever the terminal's encoding is."""
    with sink(None) as out:
        out.write(json.dumps(value, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def growing_sink(
    path: Path | None, facts: Mapping[str, Any]
) -> Iterator[tuple[TextIO, int]]:
    """Yield a sink and the number of lines that it holds already.

    With a path and `facts`, an interrupted output is continued after its last complete line. Raises
    UsageError where it was begun with other facts.
    """
    from weft.folder import durable

    if path is None or not facts:
        if path is not None:
            durable.refuse_begun(path)
        with sink(path) as out:
            yield out, 0
        return
    refuse_no_file(path)
    with durable.growing(path, facts) as (file, done):
        if done:
            remark(f"weft: {path}: continues after line {done:,}")
        out = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield out, done
            out.flush()
        except KeyboardInterrupt:
            if not file.seek(0, os.SEEK_END):  # there is nothing to continue
                raise
            raise Interrupted(
                f"{path}: interrupted; the same command continues it"
            ) from None
        finally:
            out.detach()


def refuse_no_file(path: Path) -> None:
    """Raise UsageError or FolderError where no file can be written at a path."""
    from weft.folder import durable

    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    durable.refuse_no_place(path)


def refuse_existing(path: Path) -> None:
    """Raise UsageError where a file would be lost, which somebody may have corrected."""
    if path.exists():
        raise UsageError(
            f"--output {path}: exists already; give another name, or remove it first"
        )


@contextlib.contextmanager
def progress(
    count: int | None, done: int, units: str = "lines", fewest: int = CHUNK
) -> Iterator[Callable[[], None]]:
    """Show a progress bar while the block runs; yield a function to call after each line.

    There is no bar without a terminal, or for fewer than `fewest` lines or other units.
    """
    if count is None or count < fewest or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(units),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count, completed=done)
        yield lambda: bar.advance(task)


def refuse_malformed(source: BinaryIO, path: Path | None) -> tuple[int, str]:
    """Read all lines, and return their number and SHA-256.

    So a malformed line is found before any output is written. Raises DataError for one.
    """
    count = 0
    digest = sha256()
    for count, line in lines(source, path):  # noqa: B007
        digest.update(line.encode() + b"\n")
    source.seek(0)
    return count, digest.hexdigest()


def refuse_broken(texts: dict[str, str]) -> None:
    """Raise DataError for an argument that was not UTF-8; Python then has surrogates in it."""
    for name, text in texts.items():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise DataError(
                f"{name}: not UTF-8 ({text!r:.60}); give it as UTF-8"
            ) from None


def is_terminal(source: BinaryIO) -> bool:
    return source is sys.stdin.buffer and sys.stdin.isatty()
