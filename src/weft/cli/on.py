"""The option --on: a verb's files are divided into blocks, which several workers answer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.answers import refuse_other_form
from weft.cli.named_files import refuse_missing
from weft.cli.streams import look_at_kind, progress, refuse_no_file, refuse_same_file
from weft.console.wording import remark
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.cluster.executor import Here
    from weft.cluster.on_ray import OnRay
    from weft.cluster.work import Work
    from weft.run.translations import Writer

BLOCK_ROWS = 8192  # a multiple of the lines that a verb takes at a time
_LOCAL = "local"
_RAY = "ray"
_SHARDS = ".shards"

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="Answer files in blocks by several workers: ray starts Ray on this machine, ray://HOST:PORT joins "
        "a cluster, local takes this process alone. --input may be a folder; --output is a folder of shards, "
        "or a file beside it.",
    ),
]
OnSentences = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="Have several workers translate, in blocks of sentences: ray starts Ray on this machine, "
        "ray://HOST:PORT joins a cluster, local takes this process alone.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="With --on: the number of workers. Default: as many as fit."
    ),
]
BlockRows = Annotated[
    int | None,
    typer.Option(
        "--block",
        min=1,
        help=f"With --on: lines that a worker takes at a time. Default: {BLOCK_ROWS:,}.",
    ),
]


@dataclass(frozen=True)
class Spread:
    """The place where a verb's work is done, by how many workers, in blocks of so many lines."""

    where: str
    workers: int | None
    block_rows: int

    def describe(self) -> str:
        """Say who does the work, with the threads of each."""
        from weft.kernels.machine import counted_threads, threads_asked

        if self.where == _LOCAL:
            return "this process"
        threads = counted_threads(threads_asked() or 1)
        if self.workers is None:
            return f"as many workers of {threads} as there are CPUs for"
        each = "worker" if self.workers == 1 else "workers"
        return f"{self.workers:,} {each} of {threads}"

    def executor(self) -> "Here | OnRay":
        """Return who does the work."""
        from weft.cluster.executor import Here
        from weft.cluster.on_ray import OnRay
        from weft.kernels.machine import threads_asked

        if self.where == _LOCAL:
            return Here()
        address = None if self.where == _RAY else self.where
        return OnRay(address, self.workers, threads_asked() or 1)

    def files(
        self,
        named: Sequence[str | Path] | None,
        input_file: Path | None,
        output: Path | None,
        as_json: bool,
        beside: Mapping[str, Any] | None = None,
    ) -> "Files":
        """Return the files that arguments or --input name, and those of --output; `beside` are
        other options that have no place with them.

        Raises UsageError, and DataError for a file that is no plain text.
        """
        _refuse_beside(beside or {})
        if named and input_file:
            raise UsageError("give files or --input, not both")
        asked = [Path(name) for name in named or ()]
        if input_file is not None:
            asked.append(input_file)
        if not asked:
            raise UsageError("--on reads files; give --input FILE, or a folder of them")
        if output is None:
            raise UsageError(
                "--on needs --output: a folder for the shards, or a file, such as out.txt"
            )
        inputs = [file for path in asked for file in _files_in(path, output)]
        for path in inputs:
            with path.open("rb") as stream:
                look_at_kind(stream, path)
        if output.is_dir() or not output.suffix:
            return Files(self, inputs, output, None)
        refuse_no_file(output)
        for path in inputs:
            refuse_same_file(path, output)
            refuse_other_form(output, path, as_json, False)
        shards = output.with_name(output.name + _SHARDS)
        return Files(self, inputs, shards, output)


def writer_for(spread: Spread | None) -> "Writer":
    """Return who writes the translations of a text: workers, or one after another without --on."""
    from weft.run.by_workers import ByWorkers
    from weft.run.translations import write_translations

    if spread is None:
        return write_translations
    return ByWorkers(spread.executor(), spread.block_rows, spread.describe())


def spread_of(
    on: str | None, workers: int | None, block_rows: int | None
) -> Spread | None:
    """Return where the work is to be done; None for the verb alone. Raises UsageError."""
    if on is None:
        for option, value in {"--workers": workers, "--block": block_rows}.items():
            if value is not None:
                raise UsageError(f"{option} goes with --on; give --on ray too")
        return None
    if on not in (_LOCAL, _RAY) and not on.startswith("ray://"):
        raise UsageError(f"--on {on}: must be ray, ray://HOST:PORT or local")
    if on == _LOCAL and workers is not None:
        raise UsageError(
            "--workers: --on local is this process alone; leave it out, or give --on ray"
        )
    return Spread(on, workers, block_rows or BLOCK_ROWS)


def _refuse_beside(given: Mapping[str, Any]) -> None:
    """Raise UsageError for the first option that has a value and does not go with --on."""
    for option, value in given.items():
        if value:
            raise UsageError(
                f"{option}: --on takes files of one text a line; leave one of the two out"
            )


@dataclass(frozen=True)
class Files:
    """The files to read, in their order, and what to write: a folder of shards, and a file of all
    where `joined` names one.
    """

    spread: Spread
    inputs: list[Path]
    shards: Path
    joined: Path | None

    def answer(self, work: "Work", suffix: str) -> dict[str, float]:
        """Write the shards and, where one is asked for, the file of all; return the sums over all
        lines. Raises WeftError, by kind.
        """
        from weft.cluster.block import divided
        from weft.cluster.shards import Request, write_shards
        from weft.data.check.finding import counted

        block_rows = self.spread.block_rows
        division = divided(self.inputs, block_rows)
        request = Request(work, division, block_rows, suffix)
        num_blocks = len(division.blocks)

        def begin(done: int) -> None:
            before = f" ({done:,} answered before)" if done else ""
            lines = counted(division.rows, "lines")
            blocks = counted(num_blocks, "blocks")
            by = self.spread.describe()
            remark(f"weft: {lines} in {blocks}{before}, by {by}")

        executor = self.spread.executor()
        with _advancing(division.rows) as advance:
            shards = write_shards(self.shards, request, executor, advance, begin)
        if self.joined is not None:
            shards.join(self.joined)
            remark(f"weft: wrote {self.joined}; its shards are in {self.shards}")
        else:
            remark(f"weft: wrote {num_blocks:,} shards in {self.shards}")
        return shards.sums


def _files_in(path: Path, output: Path) -> list[Path]:
    """Return a file, or those in a folder by their names; hidden ones are left out."""
    if not path.is_dir():
        refuse_missing(path, "--input")
        return [path]
    if output.parent.resolve() == path.resolve() and output.suffix:
        raise UsageError(
            f"--output {output}: it would be among the files that are read; give another folder"
        )
    entries = sorted(path.iterdir())
    files = [e for e in entries if e.is_file() and not e.name.startswith(".")]
    if not files:
        raise UsageError(f"--input {path}: there is no file in this folder")
    return files


@contextmanager
def _advancing(rows: int) -> "Iterator[Any]":
    """Show how many of the lines are answered; yield what is told of more of them."""
    with progress(rows, 0) as advance:

        def several(count: int) -> None:
            for _ in range(count):
                advance()

        yield several


def say_doubtful(sums: Mapping[str, float], as_json: bool) -> None:
    """Say how many answers are doubtful, where they do not say so themselves."""
    count = int(sums.get("doubtful", 0))
    if count and not as_json:
        lines = "answers are" if count > 1 else "answer is"
        remark(
            f"weft: {count:,} {lines} doubtful; with --json each line says what is doubtful about it"
        )
