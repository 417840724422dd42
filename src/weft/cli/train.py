"""Verbs that make a model: demo, train."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.run_record import Verdict

Out = Annotated[Path, typer.Option("--out", help="Folder of the model; the same folder goes on where it stopped.")]

RecipeName = Annotated[str | None, typer.Option("--recipe", help="A packaged recipe's name, or a TOML file.")]
Dev = Annotated[str | None, typer.Option("--dev", help="Text that chooses the best step.")]
Test = Annotated[str | None, typer.Option("--test", help="Text that is scored once, at the end.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="section.key=value of the recipe; repeatable.")]
AllowBadData = Annotated[
    bool, typer.Option("--allow-bad-data", help="Train on text that the data doctor refuses; it is recorded.")
]

TRIES = {
    "translation": 'weft translate {} "..."',
    "language-modelling": 'weft generate {} --prompt "..."',
    "classification": 'weft classify {} "..."',
}


def demo(out: Out = Path("runs/demo")) -> None:
    """Train English to Chinese on the built-in corpus, score it, translate."""
    import weft
    from weft import samples

    say("Training an English-Chinese translator on Weft's own corpus of everyday sentences.")
    verdict = weft.train(recipe="demo", out=out)
    model = weft.load(out)
    say(
        f"\nHeld-out sentences ({verdict.test['num_sentences']}): BLEU {verdict.test['bleu']:.1f}, "
        f"chrF {verdict.test['chrf']:.1f}. None of them, on either side, was seen in training:\n"
    )
    shown = samples.pairs("everyday", "en", "zh").test[:8]
    for (src, tgt), prediction in zip(shown, model.translate([s for s, _ in shown]), strict=True):
        print(f"{src}\n  {prediction.text}" + ("" if prediction.text == tgt else f"\n  (reference: {tgt})"))
    if sys.stdin.isatty() and sys.stdout.isatty():
        asked = typer.prompt("\nYour own sentence, in English", default="", show_default=False)
        if asked.strip():
            print(f"  {model.translate(asked)[0].text}")
    say(
        f"\nThe model is in {out}. Next:\n"
        f'  weft translate {out} "My sister is drinking tea in the kitchen."\n'
        f'  weft inspect {out} "My sister is drinking tea in the kitchen." --output inside.html\n'
        "  weft train --train your-pairs.tsv --out runs/yours"
    )


def train(
    out: Out,
    stray: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    recipe: RecipeName = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            "--train",
            help="Text: pairs (TSV, a,b or TMX), documents, or rows (CSV, TSV, JSONL); also .gz; repeatable.",
        ),
    ] = None,
    dev: Dev = None,
    test: Test = None,
    start_from: Annotated[
        Path | None, typer.Option("--from", help="Start from the weights of this model folder.")
    ] = None,
    settings: Settings = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew; a run that --out holds is set aside, not removed.")
    ] = False,
    allow_data_change: Annotated[
        bool, typer.Option("--allow-data-change", help="Go on with a run on other text; the card records it.")
    ] = False,
    allow_bad_data: AllowBadData = False,
) -> None:
    """Train a model from your text, or go on with a run that was stopped."""
    from weft.recipe_file import load_recipe
    from weft.run import Request
    from weft.run import train as run_training

    if stray:
        remedy = "join two aligned files by a comma (--train a.en,a.de), and give several texts one --train each"
        if any("=" not in setting for setting in settings or ()):
            remedy = "write --set section.key=value"
        raise UsageError(f"unexpected {stray[0]!r}: {remedy}")
    wanted = load_recipe(recipe, settings or ())
    verdict = run_training(
        Request(
            recipe=wanted,
            out=out,
            train=tuple(train or ()),
            dev=dev,
            test=test,
            start_from=start_from,
            command=shlex.join(["weft", *sys.argv[1:]]),
            fresh=fresh,
            allow_data_change=allow_data_change,
            allow_bad_data=allow_bad_data,
        )
    )
    say_ended(verdict, wanted.task, out)


def say_ended(verdict: "Verdict", task: str, out: Path) -> None:
    """How a run ended, and what to do with its model; of several processes the first speaks."""
    if os.environ.get("RANK", "0") != "0":
        return
    if verdict.test_summary:
        say(f"test: {verdict.test_summary}")
    weights = (
        f"; its weights are those of step {verdict.best_step:,}" if 0 < verdict.best_step < verdict.step else ""
    )
    say(f"{verdict.reason}; the model is in {out}{weights}; try: {TRIES[task].format(out)}")


def say(text: str) -> None:
    """For the person, not for a pipe."""
    print(text, file=sys.stderr, flush=True)
