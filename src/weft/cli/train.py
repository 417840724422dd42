"""Verbs that train a model: train, finish."""

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import Settings
from weft.cli.recipe import (
    choose_recipe,
    columns_read,
    refuse_missing_text,
    refuse_other_text,
    refuse_two_sides,
    usual_folder,
)
from weft.cli.streams import progress
from weft.console import stages
from weft.console.wording import say_lines
from weft.data.train_text import MonoText, names_of, parse_texts, refuse_worth
from weft.errors import LeftAtOnce, UsageError
from weft.folder.layout import RunFolder, is_finished, refuse_no_folder
from weft.packages import require_torch

if TYPE_CHECKING:
    from weft.run.course.material import MonoUse
    from weft.run.record import Verdict
    from weft.run.request import Request

CONTINUED = "Model folder; an unfinished run in it is continued."
Output = Annotated[Path, typer.Option("--output", help=CONTINUED)]

RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="Name of a packaged recipe, a TOML file, or a run's recipe.json.",
    ),
]
Dev = Annotated[
    str | None, typer.Option("--dev", help="Dev text, which selects the best step.")
]
Test = Annotated[
    str | None, typer.Option("--test", help="Test text, scored once at the end.")
]
AllowBadData = Annotated[
    bool,
    typer.Option(
        "--allow-bad-data",
        help="Train on text with fatal problems (see weft check); the card records it.",
    ),
]
AllowDataChange = Annotated[
    bool,
    typer.Option(
        "--allow-data-change",
        help="Continue a run on different text; the card records it.",
    ),
]
Glossary = Annotated[
    list[str] | None,
    typer.Option(
        "--glossary",
        help="Terms to mark in a share of the pairs (data.terms): TSV, CSV or TBX.",
    ),
]
Mono = Annotated[
    list[str] | None,
    typer.Option(
        "--mono",
        help="More text in one language of the pairs, a sentence a line, as yo=news.txt; repeatable. It is used in "
        "several steps, what helps on dev.",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        min=1,
        metavar="N",
        help="With --mono: rounds of back-translation, each by the models of the one before. Default: 1.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="With --mono: draw the other side at random; better from some 500,000 pairs on.",
    ),
]
Denoise = Annotated[
    bool,
    typer.Option(
        "--denoise",
        help="With --mono: try to start from a model that restores text with masked spans.",
    ),
]
StartFrom = Annotated[
    Path | None,
    typer.Option(
        "--from", help="Start from the weights of this model folder, or of this pack."
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Start over; a run in --output is moved aside, not removed.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Also report precision, threads and the share of the machine's peak speed.",
    ),
]
Reverse = Annotated[
    bool,
    typer.Option(
        "--reverse",
        help="Read the pairs from target to source, whatever their form: train the other direction.",
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        min=0.1,
        metavar="N",
        help="Finish within N minutes, scoring included: plans steps and schedule.",
    ),
]

TRIES = {
    "translation": 'weft translate {} "..."',
    "language-modelling": 'weft generate {} --prompt "..."',
    "classification": 'weft classify {} "..."',
}


def train(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Training text: pairs (TSV, CSV, TMX, XLIFF, PO, JSONL, Parquet, or two files as a,b), documents, or "
            "labelled rows (CSV, TSV, JSONL); also .gz. FILE@WEIGHT:TAG weighs and marks its pairs."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", help=f"{CONTINUED} Default: runs/, with the text's name."
        ),
    ] = None,
    recipe: RecipeName = None,
    train: Annotated[
        list[str] | None,
        typer.Option("--train", hidden=True, help="The same as DATA; repeatable."),
    ] = None,
    dev: Dev = None,
    test: Test = None,
    glossary: Glossary = None,
    mono: Mono = None,
    rounds: Rounds = None,
    sample: Sample = False,
    denoise: Denoise = False,
    start_from: StartFrom = None,
    settings: Settings = None,
    reverse: Reverse = False,
    fresh: Fresh = False,
    allow_data_change: AllowDataChange = False,
    allow_bad_data: AllowBadData = False,
    verbose: Verbose = False,
    minutes: Minutes = None,
) -> None:
    """Train a model on your text, or continue a run that was stopped."""
    began = time.monotonic()
    require_torch("weft train")
    if data and train:
        raise UsageError(
            f"unexpected {data[0]!r}: give every text without --train; two aligned files are joined by a comma: "
            "weft train a.en,a.de"
        )
    sources = parse_texts([*(data or ()), *(train or ())])
    more = tuple(map(MonoText.parse, mono or ()))
    for item in (dev, test):
        refuse_worth(item)
    texts = names_of(sources)
    settings = _with_reverse(settings or [], reverse)
    chosen = choose_recipe(recipe, settings, texts, start_from)
    refuse_other_text(texts, dev, test, chosen.recipe, output)
    if recipe is None:
        refuse_two_sides(texts, settings)
    terms = _only_glossary(glossary or ())
    if not more and (rounds or sample or denoise):
        raise UsageError(
            "--rounds, --sample and --denoise are for text in one language; give --mono, too"
        )
    refuse_missing_text([*texts, dev, test, terms, *(text.data for text in more)])
    if more:
        from weft.data.mono import refuse_beside, refuse_foreign  # with NumPy

        refuse_beside(chosen.recipe, start_from, allow_data_change)
        refuse_foreign(more, texts[0], chosen.recipe)
    out = output or usual_folder(texts, recipe, reverse)
    if is_first_process():
        for line in (*chosen.said, *columns_read(chosen.recipe, texts)):
            say(line)
        if output is None:
            say(f"the model goes to {out}; --output names another folder")

    with stages.showing("loading PyTorch"):
        from weft.run.request import Request

        request = Request(
            recipe=chosen.recipe,
            out=out,
            train=sources,
            dev=dev,
            test=test,
            glossary=terms,
            start_from=start_from,
            command=shlex.join(["weft", *sys.argv[1:]]),
            fresh=fresh,
            allow_data_change=allow_data_change,
            allow_bad_data=allow_bad_data,
            notes=chosen.doubts,
            minutes=minutes,
            began=began,
            own_keys=chosen.own_keys,
        )
        use = None
        if more:
            from weft.run.course.material import MonoUse

            use = MonoUse(more, rounds or 1, sample, denoise)
        verdict = _trained(request, use, verbose)
    say_ended(verdict, chosen.recipe.task, out)


def _trained(request: "Request", use: "MonoUse | None", verbose: bool) -> "Verdict":
    """Train as asked, in steps where there is text in one language."""
    if use is not None:
        from weft.run.course.course import train_in_steps

        with saying_what_is_kept():
            return train_in_steps(request, use, verbose=verbose, progress=progress)
    from weft.run.train import train as run_training

    with saying_what_is_lost(request.out):
        return run_training(request, verbose=verbose)


def _with_reverse(settings: list[str], reverse: bool) -> list[str]:
    """Return the settings with that of the other direction, where it is asked for."""
    if not reverse:
        return settings
    for setting in settings:
        if setting.split("=")[0].strip() == "data.directions":
            raise UsageError(f"--reverse and --set {setting}: leave out one of them")
    return [*settings, "data.directions=reverse"]


def _only_glossary(names: Sequence[str]) -> str | None:
    """Return the file of terms, if one is given. Raises UsageError for several."""
    if len(names) > 1:
        raise UsageError(
            f"--glossary is given {len(names)} times; put the terms into one file"
        )
    return names[0] if names else None


def finish(
    folder: Annotated[Path, typer.Argument(help="The folder of an unfinished run.")],
) -> None:
    """Make a model of an unfinished run; the run can still be continued afterwards."""
    refuse_no_folder(folder)
    require_torch("weft finish")
    with stages.showing("loading PyTorch"):
        from weft.folder.model_folder import RunFolder
        from weft.run.finishing import finish as finish_run
        from weft.run.origin import read_task

        verdict = finish_run(folder)
        task = read_task(RunFolder(folder))
    say_ended(verdict, task, folder)


def say_ended(verdict: "Verdict", task: str, out: Path) -> None:
    """Say how a run ended and how to try its model; of several processes, the first does."""
    if not is_first_process():
        return
    if verdict.test_summary:
        say(f"test: {verdict.test_summary}")
    ended = f"{verdict.reason}; the model is in {out}"
    if 0 < verdict.best_step < verdict.step:
        ended += f"; its weights are those of step {verdict.best_step:,}"
    say(f"{ended}; try:")
    say(f"  {TRIES[task].format(shlex.quote(str(out)))}{_language_to_try(out)}")


def _language_to_try(out: Path) -> str:
    """Return the option by which a model of several directions is told the language to write."""
    from weft.folder.model_files import files_of
    from weft.folder.model_folder import TranslationConfig, config_in

    config = config_in(files_of(out))
    if isinstance(config, TranslationConfig) and config.directions:
        return f" --to {config.tgt_lang}"
    return ""


@contextlib.contextmanager
def saying_what_is_lost(out: Path) -> Iterator[None]:
    """Raise LeftAtOnce in the place of a KeyboardInterrupt, where the run has saved nothing yet."""
    try:
        yield
    except KeyboardInterrupt:
        checkpoints = RunFolder(out).checkpoints
        kept = [*checkpoints.glob("step-*"), *checkpoints.glob("damaged-step-*")]
        if kept or is_finished(out):
            raise
        raise LeftAtOnce(
            "left at once; nothing was saved yet, and the same command begins again"
        ) from None


@contextlib.contextmanager
def saying_what_is_kept() -> Iterator[None]:
    """Raise LeftAtOnce in the place of a KeyboardInterrupt: the steps that are done are kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise LeftAtOnce(
            "left at once; the steps that are done are kept, and the same command goes on"
        ) from None


def is_first_process() -> bool:
    """Return whether this is the first, or only, of the processes that torchrun starts."""
    return os.environ.get("RANK", "0") == "0"


def say(text: str) -> None:
    """Print lines on standard error."""
    say_lines(text.split("\n"), sys.stderr)
