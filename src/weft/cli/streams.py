"""Where a verb's lines come from and go to: arguments, files, pipes, a terminal."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

import typer

from weft.errors import DataError, UsageError


@contextlib.contextmanager
def reading_lines(
    text: list[str] | None, input_file: Path | None, output_file: Path | None
) -> Iterator[tuple[Iterator[str], int]]:
    """The lines to work on, and how many to take at a time: one on a terminal, where a person waits for each.

    Raises UsageError where the arguments contradict each other, DataError for malformed text before any line
    is handed out.
    """
    if text and input_file:
        raise UsageError("give texts or --input, not both")
    if input_file and output_file and output_file.exists() and output_file.samefile(input_file):
        raise UsageError(f"--output {output_file} is the input itself; it would be lost; give another name")
    with source(text, input_file) as stream:
        if not is_terminal(stream):
            refuse_malformed(stream, input_file)
        yield (line for _, line in lines(stream, input_file)), 1 if is_terminal(stream) else 1024


@contextlib.contextmanager
def source(text: list[str] | None, path: Path | None) -> Iterator[BinaryIO]:
    """The input as bytes that can be read twice: arguments, a file, or all of a piped standard input."""
    if path is not None:
        if not path.is_file():
            raise UsageError(f"--input {path}: no such file")
        with path.open("rb") as file:
            yield file
    elif not text and sys.stdin.isatty():
        print("weft: reading from the terminal, a line each; Ctrl-D ends", file=sys.stderr)
        yield sys.stdin.buffer
    else:
        with tempfile.SpooledTemporaryFile(max_size=2**26) as spool:
            for line in text or ():
                one_line = line.replace("\r\n", " ").replace("\r", " ").replace("\n", " ")
                spool.write(one_line.encode("utf-8", "surrogateescape") + b"\n")
            if not text:
                while block := sys.stdin.buffer.read(2**20):
                    spool.write(block)
            spool.seek(0)
            yield spool  # type: ignore[misc]


@contextlib.contextmanager
def sink(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears when it is complete."""
    from weft import durable

    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
    else:
        if path.is_dir():
            raise UsageError(f"{path}: is a folder; name a file in it")
        with durable.replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            yield file


def lines(source: BinaryIO, path: Path | None) -> Iterator[tuple[int, str]]:
    """Numbered lines; only \\n and \\r\\n end one. Raises DataError with the line that is not UTF-8."""
    offset = 0  # of the line's first byte, as the readers of training text count
    for number, raw in enumerate(source, start=1):
        content = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        try:
            yield number, content.decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"{path or 'standard input'}:{number}"
            raise DataError(f"{where}: not UTF-8 at byte {offset + error.start}; save the text as UTF-8") from None
        offset += len(raw)


def refuse_malformed(source: BinaryIO, path: Path | None) -> None:
    """Read everything once, so that nothing is written before a malformed line is found."""
    for _ in lines(source, path):
        pass
    source.seek(0)


def refuse_broken(texts: dict[str, str]) -> None:
    """Raise DataError for an argument, by its name, that was not UTF-8: Python has lone surrogates then."""
    for name, text in texts.items():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise DataError(f"{name}: not UTF-8 ({text!r:.60}); give it as UTF-8") from None


def is_terminal(source: BinaryIO) -> bool:
    return source is sys.stdin.buffer and sys.stdin.isatty()
