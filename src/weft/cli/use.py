"""Verbs that use a model: translate, evaluate."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer

from weft.errors import DataError, UsageError

if TYPE_CHECKING:
    from weft.predict import Prediction

Folder = Annotated[Path, typer.Argument(help="A model folder.")]
BeamSize = Annotated[int | None, typer.Option("--beam-size", min=1, help="1 is greedy; else the recipe's.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


def translate(
    folder: Folder,
    text: Annotated[
        list[str] | None, typer.Argument(help="Sentences; without any, --input or standard input.")
    ] = None,
    input_file: Annotated[Path | None, typer.Option("--input", help="A text file, one sentence a line.")] = None,
    output_file: Annotated[
        Path | None, typer.Option("--output", help="Where to write; else standard output.")
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: Annotated[float | None, typer.Option(help="0 prefers short; else the recipe's.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Alternatives: line number, score and text, by tabs.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Translate: one line out for each line in, in order."""
    import weft

    if text and input_file:
        raise UsageError("give sentences or --input, not both")
    if input_file and output_file and output_file.exists() and output_file.samefile(input_file):
        raise UsageError(f"--output {output_file} is the input itself; it would be lost; give another name")
    with _source(text, input_file) as source:
        lines = (line for _, line in _lines(source, input_file))
        if not _is_terminal(source):
            _refuse_malformed(source, input_file)
        model = weft.load(folder)
        chunk = 1 if _is_terminal(source) else 1024
        predictions = model.translate_stream(
            lines, beam_size=beam_size, length_penalty=length_penalty, n_best=n_best, chunk=chunk
        )
        with _sink(output_file) as sink:
            for number, prediction in enumerate(predictions, start=1):
                sink.write(_shown(number, prediction, n_best, as_json))
                sink.flush() if chunk == 1 else None
                if prediction.truncated and not as_json:
                    print(f"weft: line {number}: truncated, too long for the model", file=sys.stderr)


def evaluate(
    folder: Folder,
    data: Annotated[list[str], typer.Argument(help="Text with references: pairs.tsv, a,b or TMX.")],
    beam_size: BeamSize = None,
    as_json: AsJson = False,
) -> None:
    """Score a model's translations with sacreBLEU: BLEU and chrF, with their signatures."""
    from dataclasses import asdict

    from weft.data.corpus import read_pairs
    from weft.data.overlap import TextHashes, contamination_notes
    from weft.machine import choose_machine
    from weft.model_folder import run_files
    from weft.tasks import Translation
    from weft.tasks import evaluate as score

    task = Translation.load(folder, choose_machine("float32"))
    text = read_pairs(data, task.config.src_lang, task.config.tgt_lang)
    scores, _ = score(task, text, beam_size=beam_size)
    hashes = run_files(folder).train_hashes
    notes = [
        *text.notes,
        *(f"left out: {n:,} pairs ({why})" for why, n in text.dropped.items() if n),
        *scores.notes,
    ]
    if hashes.is_file():
        notes += contamination_notes(TextHashes.load(hashes), text)
    else:
        notes.append("not checked for overlap with training: the folder has no run/train-hashes.npy")
    if as_json:
        print(json.dumps({**asdict(scores), "notes": notes}, ensure_ascii=False))
        return
    print(f"BLEU  {scores.bleu:6.2f}  {scores.bleu_signature}")
    print(f"BLEU  {scores.bleu_lc:6.2f}  {scores.bleu_lc_signature}")
    print(f"chrF  {scores.chrf:6.2f}  {scores.chrf_signature}")
    print(f"{scores.num_sentences:,} sentences, references sha256 {scores.references_sha256[:16]}")
    for note in notes:
        print(f"note: {note}")


@contextlib.contextmanager
def _source(text: list[str] | None, path: Path | None) -> Iterator[BinaryIO]:
    """The input as bytes that can be read twice: arguments, a file, or all of a piped standard input."""
    if path is not None:
        if not path.is_file():
            raise UsageError(f"--input {path}: no such file")
        with path.open("rb") as file:
            yield file
    elif not text and sys.stdin.isatty():
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
def _sink(path: Path | None) -> Iterator[TextIO]:
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
        with durable.replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            yield file


def _lines(source: BinaryIO, path: Path | None) -> Iterator[tuple[int, str]]:
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


def _refuse_malformed(source: BinaryIO, path: Path | None) -> None:
    """Read everything once, so that nothing is written before a malformed line is found."""
    for _ in _lines(source, path):
        pass
    source.seek(0)


def _is_terminal(source: BinaryIO) -> bool:
    return source is sys.stdin.buffer and sys.stdin.isatty()


def _shown(number: int, prediction: "Prediction", n_best: int, as_json: bool) -> str:
    if as_json:
        return json.dumps(prediction.to_json(), ensure_ascii=False) + "\n"
    if n_best == 1:
        return prediction.text + "\n"
    rows = [f"{number}\t{a.score:.4f}\t{a.text}\n" for a in prediction.n_best]
    return "".join(rows) or f"{number}\t\t\n"
