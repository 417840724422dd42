"""Verbs that measure a model: evaluate, score."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.recipe import refuse_missing_text
from weft.cli.streams import print_json, reading_lines, sink
from weft.cli.use import (
    AsJson,
    BeamSize,
    Ensemble,
    Folder,
    IsShort,
    Kernels,
    LengthPenalty,
    Mbr,
    Precision,
    UtilityName,
    naming_options,
    refuse_idle,
    together,
)
from weft.console import stages
from weft.console.wording import say_lines
from weft.errors import UsageError
from weft.folder.layout import refuse_no_model, refuse_other_task

if TYPE_CHECKING:
    from weft.predict.language_model import LanguageModel
    from weft.tasks.task import Scored

_AT_A_TIME = 256  # texts that are translated before they are counted
_HELD_OUT = {
    "test": "no text was given: this is the run's own test text",
    "dev": "no text was given, and the run has no test text: this is its dev text, which chose the best step",
}


def evaluate(
    folder: Folder,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text of the kind that the model was trained on; else what its run held out."
        ),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    mbr: Mbr = None,
    utility: UtilityName = None,
    ensemble: Ensemble = None,
    shortlist: IsShort = None,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a model on text: BLEU and chrF; or loss and perplexity; or accuracy and F1."""
    refuse_no_model(folder)
    refuse_missing_text(data or ())
    asked: dict[str, Any] = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "mbr": mbr,
    }
    asked |= {"utility": utility, "shortlist": shortlist, "ensemble": ensemble}
    asked |= {} if precision == "float32" else {"precision": precision}
    with stages.showing("loading PyTorch"):
        scored, notes = _scored(
            folder, data or [], asked, (precision, kernels), as_json
        )
    if as_json:
        print_json({**scored.to_json(), "notes": [*scored.contamination, *notes]})
        return
    for line in [*scored.lines(), *(f"note: {note}" for note in notes)]:
        print(line)


def _scored(
    folder: Path,
    data: list[str],
    asked: dict[str, Any],
    computing: tuple[str, str],
    as_json: bool,
) -> tuple["Scored", list[str]]:
    """Return the scores and what else is to be said of them; a person hears first whether the text
    was trained on.

    `computing`: in which precision, and by whose kernels.
    """
    from weft.data.check.finding import counted
    from weft.kernels.machine import machine_for_command
    from weft.run.finishing import held_out
    from weft.tasks.choice import load_task
    from weft.tasks.task import training_hashes
    from weft.tasks.translation import Translation

    stages.enter("loading the model")
    with naming_options(["precision", "kernels"]):
        task = load_task(folder, machine_for_command(*computing))
    strays = [name for name, value in asked.items() if value is not None]
    if strays and not isinstance(task, Translation):
        option = strays[0].replace("_", "-")
        lacks = "is scored in float32" if option == "precision" else "searches nothing"
        raise UsageError(
            f"--{option}: {folder} holds a model for {task.name}, which {lacks}"
        )
    part, text = ("", task.read(data)) if data else held_out(folder)
    trained_on = training_hashes(folder)
    own = [_HELD_OUT[part]] if part else []
    for mark in [] if as_json else [*own, *task.shared_rows(text, trained_on)]:
        stages.say(f"note: {mark}")
    stages.enter(f"scoring {counted(len(text), task.unit)}")
    decoding: dict[str, Any] = {}
    if isinstance(task, Translation):
        decoding = {
            name: value
            for name, value in asked.items()
            if name not in ("ensemble", "precision")
        }
        model = together(task, asked["ensemble"] or [])
        refuse_idle(computing[0], model.engine)
        with naming_options(decoding):
            found = model.translate_stream(text.src, **decoding, chunk=_AT_A_TIME)
            scores: Any = task.scores_of(
                text, list(stages.counted(found, task.unit, every=1))
            )
    else:
        scores = task.evaluate(text)
    together_with = {"models": 1 + len(asked["ensemble"])} if asked["ensemble"] else {}
    scored = task.scored(text, scores, trained_on, {**decoding, **together_with})
    return scored, [
        *own,
        *task.doubts(text, trained_on),
        *scored.to_json().get("notes", ()),
    ]


def compare(
    first: Annotated[Path, typer.Argument(help="A model folder.")],
    second: Annotated[Path, typer.Argument(help="Another, for the same task.")],
    data: Annotated[
        list[str],
        typer.Argument(help="Text of the kind that the models were trained on."),
    ],
    train: Annotated[
        list[str] | None,
        typer.Option(
            help="The training pairs: compare by how often these have a word, too."
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, help="How often rows are drawn anew.")
    ] = 1000,
    show: Annotated[
        int, typer.Option(min=0, help="Rows that differ most, in either direction.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Compare two models: which is better, by how much, where, and whether it is chance."""
    for folder in (first, second):
        refuse_no_model(folder)
    refuse_missing_text([*data, *(train or ())])
    with stages.showing("loading PyTorch"):
        from weft.inspection.comparison import compare as run
        from weft.kernels.machine import machine_for_command

        found = run(
            first,
            second,
            data,
            machine_for_command(),
            train=train or (),
            samples=samples,
            show=show,
        )
    if as_json:
        print_json(found.to_json())
        return
    say_lines(found.lines(), sys.stdout)


def score(
    folder: Folder,
    data: Annotated[
        Path | None, typer.Argument(help="One text a line; else standard input.")
    ] = None,
    kernels: Kernels = "auto",
    as_json: AsJson = False,
) -> None:
    """Score each line by a language model: log-probability, perplexity and text, by tabs."""
    refuse_other_task(folder, "language-modelling")
    if data is not None and not data.is_file():
        why = "no such file; a text itself goes to standard input"
        if data.is_dir():
            why = "is a folder; name a file in it"
        raise UsageError(f"{data}: {why}")
    with stages.showing("loading PyTorch"):
        from weft.kernels.machine import machine_for_command
        from weft.tasks.language_modelling import LanguageModelling

        stages.enter("loading the model")
        with naming_options(["kernels"]):
            model = LanguageModelling.load(
                folder, machine_for_command(kernels=kernels)
            ).predictor()
        stages.enter("")  # a terminal may be asked for lines
        total, num_tokens = _score_lines(model, data, as_json)
    if num_tokens:
        print(
            f"{num_tokens:,} tokens, mean {total / num_tokens:.4f} nats a token",
            file=sys.stderr,
        )


def _score_lines(
    model: "LanguageModel", data: Path | None, as_json: bool
) -> tuple[float, int]:
    """Write each line's score; the sum of the log-probabilities, and of how many tokens.

    Where the scores come up on a terminal, they themselves show how far it is.
    """
    total, num_tokens = 0.0, 0
    with reading_lines(None, data, None) as source, sink(None) as out:
        stages.enter("" if source.chunk == 1 or sys.stdout.isatty() else "scoring")
        for line in stages.counted(source.lines, "lines", every=1):
            (found,) = model.score(line)
            total, num_tokens = total + found.log_prob, num_tokens + found.num_tokens
            shown = f"{found.log_prob:.4f}\t{found.perplexity:.2f}\t{line}"
            out.write(
                (json.dumps(found.to_json(), ensure_ascii=False) if as_json else shown)
                + "\n"
            )
            if source.chunk == 1:  # somebody waits for it
                out.flush()
    return total, num_tokens
