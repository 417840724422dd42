"""The lines that a verb reads and writes: arguments, files, pipes, a terminal."""

import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import typer

from weft.console.wording import remark
from weft.errors import DataError, UsageError

CHUNK = 1024  # lines that are worked on together


@dataclass(frozen=True)
class Lines:
    """The lines to work on, and how many to take at a time: one on a terminal, where a person waits
    for each.

    `count` and the SHA-256 of the whole are known of what is no terminal. `rows` are the rows of a
    table that the texts are from: every column by its name, or all cells; `unit` is what a text is
    called to a person.
    """

    lines: Iterator[str]
    chunk: int
    count: int | None = None
    sha256: str = ""
    rows: Iterator[Any] | None = None
    unit: str = "line"


@contextlib.contextmanager
def reading_lines(
    text: list[str] | None,
    input_file: Path | None,
    output_file: Path | None,
    has_columns: bool = False,
) -> Iterator[Lines]:
    """Read the lines of arguments, a file or standard input.

    `has_columns`: where the verb can take a table's column.

    Raises UsageError where the arguments contradict each other, DataError for malformed text before
    any line is handed out.
    """
    if text and input_file:
        raise UsageError("give texts or --input, not both")
    for name in filter(os.path.isfile, text or ()):
        remark(f"weft: {name} is taken as a text; --input {name} reads the file")
    _refuse_same_file(input_file, output_file)
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
    """Read the texts of a table's column, one a row, empty ones too.

    Raises DataError before any is given.

    `as_cells`, of CSV and TSV: the rows are lists of cells as they stand there.
    """
    from weft.data.labelled import read_cell_texts, read_texts

    _refuse_same_file(input_file, output_file)
    dropped: Counter[str] = Counter()
    size = _measured(text for text, _ in read_texts(input_file, column, dropped))
    _say_dropped(input_file, dropped)
    if as_cells:
        cell_texts, cells = itertools.tee(read_cell_texts(input_file, column))
        yield Lines(
            (text for text, _ in cell_texts),
            CHUNK,
            *size,
            (row for _, row in cells),
            "row",
        )
        return
    texts, rows = itertools.tee(read_texts(input_file, column, Counter()))
    yield Lines(
        (text for text, _ in texts), CHUNK, *size, (row for _, row in rows), "row"
    )


@contextlib.contextmanager
def reading_column(
    input_file: Path, output_file: Path | None, column: str
) -> Iterator[Lines]:
    """Read the texts of a table's column, by its name or number; raises as `reading_rows`."""
    from weft.data.labelled import read_column

    _refuse_no_input(input_file)
    _refuse_same_file(input_file, output_file)
    dropped, notes = Counter[str](), list[str]()
    size = _measured(read_column(input_file, column, dropped, notes))
    for note in notes:
        remark(f"weft: {note}")
    _say_dropped(input_file, dropped)
    yield Lines(
        read_column(input_file, column, Counter(), []), CHUNK, *size, unit="row"
    )


def _measured(texts: Iterable[str]) -> tuple[int, str]:
    """Count the texts, and hash them with SHA-256."""
    count, digest = 0, sha256()
    for count, text in enumerate(texts, start=1):  # noqa: B007
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return count, digest.hexdigest()


def _say_dropped(input_file: Path, dropped: Mapping[str, int]) -> None:
    for reason, number in dropped.items():
        remark(f"weft: {input_file}: rows left out: {number:,} ({reason})")


def is_table(path: Path | None) -> bool:
    """Return whether a file is named as a table of columns; lines with that ending are not."""
    from weft.data.formats.filetype import type_of_name

    kind = type_of_name(path) if path is not None and path.is_file() else None
    return kind is not None and kind.name in ("csv", "tsv", "json", "jsonl")


def look_at_kind(
    stream: BinaryIO, path: Path | None, has_columns: bool = False
) -> None:
    """Say what kind of file it seems to be, where its lines may be meant all the same; else raise
    DataError.

    What stands in a pipe has no name; a table there is taken as lines.
    """
    one_column = "one column: --input FILE --column NAME, or its number"
    from weft.data.formats.filetype import HEAD_BYTES, type_of_content, type_of_name

    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    kind = type_of_content(head) or (type_of_name(path) if path is not None else None)
    is_one_column = (
        path is not None
        and kind is not None
        and kind.name == "tsv"
        and b"\t" not in head
    )
    name = path or "standard input"
    if has_columns and kind is None and _has_tabs(head):
        remark(
            f"weft: {name}: every line has a TAB and is taken as it is; {one_column}"
        )
    if kind is None or is_one_column:
        return
    if kind.is_text or (path is None and kind.name in ("json", "jsonl")):
        remark(
            f"weft: {name} looks like {kind.words}; its lines are taken as they are; else {kind.remedy}"
        )
        return
    as_lines = (
        "; or give it as standard input, for its lines as they are"
        if is_table(path)
        else ""
    )
    remedy = f"for {one_column}" if has_columns and is_table(path) else kind.remedy
    raise DataError(f"{name}: is {kind.words}, not one text a line; {remedy}{as_lines}")


def _has_tabs(head: bytes) -> bool:
    """Return whether there are several lines, and a TAB in each that is whole and not empty."""
    some = [line for line in head.split(b"\n")[:-1] if line.strip()]
    return len(some) > 1 and all(b"\t" in line.strip() for line in some)


def _refuse_same_file(input_file: Path | None, output_file: Path | None) -> None:
    if (
        input_file
        and output_file
        and output_file.exists()
        and output_file.samefile(input_file)
    ):
        raise UsageError(
            f"--output {output_file} is the input itself; it would be lost; give another name"
        )


@contextlib.contextmanager
def source(text: list[str] | None, path: Path | None) -> Iterator[BinaryIO]:
    """Open the input as bytes that can be read twice: arguments, a file, or all of a pipe."""
    if path is not None:
        _refuse_no_input(path)
        with path.open("rb") as file:
            yield file
    elif not text and sys.stdin.isatty():
        remark("weft: reading from the terminal, a line each; Ctrl-D ends")
        yield sys.stdin.buffer
    else:
        with tempfile.SpooledTemporaryFile(max_size=2**26) as spool:
            for line in text or ():
                one_line = (
                    line.replace("\r\n", " ").replace("\r", " ").replace("\n", " ")
                )
                spool.write(one_line.encode("utf-8", "surrogateescape") + b"\n")
            if not text:
                while block := sys.stdin.buffer.read(2**20):
                    spool.write(block)
            spool.seek(0)
            yield spool  # type: ignore[misc]


def _refuse_no_input(path: Path) -> None:
    if not path.is_file():
        why = "is a folder; name a file in it" if path.is_dir() else "no such file"
        piped = path.exists() and not path.is_dir()
        raise UsageError(
            f"--input {path}: {'is no file; give it as standard input' if piped else why}"
        )


@contextlib.contextmanager
def sink(path: Path | None) -> Iterator[TextIO]:
    """Open standard output, or a file that appears when it is complete."""
    from weft.folder import durable

    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
    else:
        _refuse_no_file(path)
        with (
            durable.replacing(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as file,
        ):
            yield file


def print_json(value: Any) -> None:
    """Print one line of JSON on standard output, in UTF-8 whatever the terminal is."""
    with sink(None) as out:
        out.write(json.dumps(value, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def growing_sink(
    path: Path | None, facts: Mapping[str, Any]
) -> Iterator[tuple[TextIO, int]]:
    """Open a sink that goes on where it was interrupted; give how many lines it has.

    The same `facts` are needed for that.

    Without a path, or without `facts`, nothing is ever there. Raises UsageError where other facts
    began.
    """
    from weft.folder import durable

    if path is None or not facts:
        if path is not None:
            durable.refuse_begun(path)
        with sink(path) as out:
            yield out, 0
        return
    _refuse_no_file(path)
    with durable.growing(path, facts) as (file, done):
        if done:
            remark(f"weft: {path}: goes on after line {done:,}")
        out = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield out, done
            out.flush()
        except KeyboardInterrupt:
            remark(f"weft: {path}: interrupted; the same command goes on with it")
            raise
        finally:
            out.detach()


def _refuse_no_file(path: Path) -> None:
    from weft.folder import durable

    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    durable.refuse_no_place(path)


@contextlib.contextmanager
def progress(count: int | None, done: int) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal while the block runs; to be called after each line. Short work has
    none.
    """
    if count is None or count < CHUNK or not sys.stderr.isatty():
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
        TextColumn("lines"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count, completed=done)
        yield lambda: bar.advance(task)


def lines(source: BinaryIO, path: Path | None) -> Iterator[tuple[int, str]]:
    """Read numbered lines; only \n and \r\n end one.

    Raises DataError with the line that is not UTF-8.
    """
    from weft.data.formats.encoding import remedy

    offset = 0  # of the line's first byte, as the readers of training text count
    for number, raw in enumerate(source, start=1):
        content = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        try:
            yield number, content.decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"{path or 'standard input'}:{number}"
            what = remedy(path, _all_of(source) or raw)
            raise DataError(
                f"{where}: not UTF-8 at the text's byte {offset + error.start}; {what}"
            ) from None
        offset += len(raw)


def _all_of(source: BinaryIO) -> bytes:
    """Return the beginning of what can be read once more; nothing of a terminal."""
    if not source.seekable():
        return b""
    source.seek(0)
    return source.read(2**20)


def refuse_malformed(source: BinaryIO, path: Path | None) -> tuple[int, str]:
    """Read everything once, so that nothing is written before a malformed line is found; lines and
    SHA-256.
    """
    count, digest = 0, sha256()
    for count, line in lines(source, path):  # noqa: B007
        digest.update(line.encode() + b"\n")
    source.seek(0)
    return count, digest.hexdigest()


def refuse_broken(texts: dict[str, str]) -> None:
    """Raise DataError for an argument, by its name, that was not UTF-8: Python has lone surrogates
    then.
    """
    for name, text in texts.items():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise DataError(
                f"{name}: not UTF-8 ({text!r:.60}); give it as UTF-8"
            ) from None


def is_terminal(source: BinaryIO) -> bool:
    return source is sys.stdin.buffer and sys.stdin.isatty()
