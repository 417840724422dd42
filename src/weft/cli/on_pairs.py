"""The option --on of check and clean: the stretches of a large text of pairs go to several workers.

Shorter text is not divided. What workers have finished lies in a folder beside the output until
that is there.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.on import Spread, spread_of
from weft.console import stages
from weft.console.wording import remark
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.cluster.tasks import InBlocks
    from weft.config import Recipe

_BLOCK_PAIRS = 100_000
_WORK = ".work"

OnPairs = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="Have several workers do a text of 100,000 pairs or more, in blocks: ray starts Ray on this "
        "machine, ray://HOST:PORT joins a cluster, local takes this process alone.",
    ),
]
BlockPairs = Annotated[
    int | None,
    typer.Option(
        "--block",
        min=1,
        help=f"With --on: pairs that a worker takes at a time, about. Default: {_BLOCK_PAIRS:,}.",
    ),
]


def pairs_spread_of(
    on: str | None, workers: int | None, block_pairs: int | None
) -> Spread | None:
    """Return where the work is to be done; None for this machine's processes. Raises UsageError."""
    return spread_of(on, workers, block_pairs or (_BLOCK_PAIRS if on else None))


def refuse_no_pairs(spread: Spread | None, recipe: "Recipe") -> None:
    """Raise UsageError for other text than pairs, which is not divided."""
    if spread is not None and recipe.task != "translation":
        raise UsageError(
            f"--on {spread.where}: pairs alone are divided among workers; leave it out for documents and "
            "labelled rows"
        )


@contextmanager
def spread_over(
    spread: Spread | None,
    output: str | Path | None,
    read: Sequence[str],
    settings: Mapping[str, Any],
) -> Iterator["InBlocks | None"]:
    """Give the work on large texts to workers while the block runs, where any are asked for.

    What they have finished is found again by the same command, where it names an output. `read` is
    all DATA that is read; what is found follows from it and from the `settings`. Yields who keeps
    what they find.
    """
    if spread is None:
        yield None
        return
    from weft.cluster.tasks import InBlocks
    from weft.data.crew import given_to
    from weft.data.home import homes_in

    with ExitStack() as stack:
        if output is None:
            temporary = tempfile.TemporaryDirectory(prefix="weft-work-")
            folder = Path(stack.enter_context(temporary))
        else:
            first = Path(str(output).partition(",")[0])
            folder = first.with_name(f"{first.name}{_WORK}")
        stack.enter_context(stages.showing(""))
        workers = stack.enter_context(spread.executor().staying())
        stack.enter_context(homes_in(folder))
        by = spread.describe()
        blocks = InBlocks(
            workers,
            folder.resolve(),
            lambda: {"text": digests_of(read), "setting": dict(settings)},
            lambda said: stages.say(f"{said}, by {by}"),
            spread.block_rows,
        )
        with given_to(blocks):
            yield blocks
    if not blocks.entries:
        remark("weft: no text of 100,000 pairs or more: nothing was divided")
    shutil.rmtree(folder, ignore_errors=True)


def digests_of(read: Sequence[str]) -> list[str]:
    """Return the SHA-256 of each file of DATA."""
    from weft.folder.durable import sha256_of

    return [sha256_of(file) for item in read for file in files_of(item)]


def files_of(item: str) -> list[Path]:
    """Return the files of DATA: one, two that are joined by a comma, or those of a folder."""
    from weft.data.formats.shards import shards_of
    from weft.data.train_text import split_at_comma

    files = []
    for path in split_at_comma(item):
        files += shards_of(path) or [path]
    return files
