"""The first verb that a person tries: demo."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.train import GOES_ON, say
from weft.console.wording import say_lines
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.data.builtin import Splits
    from weft.data.known import KnownWords
    from weft.predict.translator import Translator

LANGUAGES = {"en": "English", "zh": "Chinese", "de": "German"}
SHOWN = 8  # held-out sentences with their translations
# mean log-probability of a token; of the held-out sentences one in a hundred is below it
UNSURE = -1.1

Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LANGUAGE",
        help="en, zh or de; else en, or zh where --to is en.",
    ),
]
Target = Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="zh, de or en.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", help=f"{GOES_ON[:-1]}; else runs/demo and the languages."),
]


def demo(src: Source = None, tgt: Target = "zh", output: Output = None) -> None:
    """Train a translator on the built-in corpus, score it, and try it with sentences of your
    own.
    """
    src = src or ("zh" if tgt == "en" else "en")
    for option, lang in (("--from", src), ("--to", tgt)):
        if lang not in LANGUAGES:
            raise UsageError(
                f"{option} {lang}: the built-in corpus has {', '.join(LANGUAGES)}"
            )
    if src == tgt:
        raise UsageError(
            f"--from {src} --to {tgt}: the two are one language; change one"
        )
    import weft
    from weft.data import builtin

    out = output or Path(
        "runs/demo" if (src, tgt) == ("en", "zh") else f"runs/demo-{src}-{tgt}"
    )
    say(
        f"Training a translator, {LANGUAGES[src]} to {LANGUAGES[tgt]}, on Weft's own corpus of everyday sentences."
    )
    verdict = weft.train(recipe="demo", out=out, settings=_settings(src, tgt))
    model = weft.load(out)
    _tell(
        f"\nHeld-out sentences ({verdict.test['num_sentences']}): BLEU {verdict.test['bleu']:.1f}, "
        f"chrF {verdict.test['chrf']:.1f}. None of them, on either side, was seen in training:\n"
    )
    text = builtin.pairs("everyday", src, tgt)
    shown = text.test[:SHOWN]
    for (sentence, reference), prediction in zip(
        shown, model.translate([s for s, _ in shown]), strict=True
    ):
        print(
            f"{sentence}\n  {prediction.text}"
            + _unless_equal(reference, prediction.text)
        )
    if sys.stdin.isatty() and sys.stdout.isatty():
        _converse(model, text, src)
    example = text.test[SHOWN][0]
    _tell(
        f"\nThe model is in {out}. Next:\n"
        f'  weft translate {out} "{example}"\n'
        f'  weft inspect {out} "{example}" --output inside.html\n'
        "  weft train your-pairs.tsv"
    )


def _tell(text: str) -> None:
    """Print what the demo shows, on standard output beside the sentences: a file has all of it."""
    say_lines(text.split("\n"), sys.stdout)


def _settings(src: str, tgt: str) -> list[str]:
    """Return the recipe's, for the languages: Chinese by characters, the others by words."""
    kinds = [f"tokenizer.{side}.kind={'character' if lang == 'zh' else 'word'}" for side, lang in
             (("src", src), ("tgt", tgt))]  # fmt: skip
    return [f"data.src_lang={src}", f"data.tgt_lang={tgt}", *kinds]


def _unless_equal(reference: str, translation: str) -> str:
    return "" if reference == translation else f"\n  (reference: {reference})"


def _converse(model: "Translator", text: "Splits", src: str) -> None:
    """Translate what the person types, until an empty line; say where the model can only guess."""
    from weft.data.builtin.known import words_by_kind
    from weft.data.known import KnownWords

    known = KnownWords.of(sentence for sentence, _ in text.train)
    say(
        f"\nYour turn. The model knows {_amount(known, src)} and no others; some of them:\n"
    )
    for kind, words in words_by_kind(
        src, lambda words: not known.unknown(words)
    ).items():
        say(f"  {kind:8} {', '.join(words)}")
    offers = iter(text.test[SHOWN:])
    while True:
        say(f"\nTry, for example: {next(offers, text.test[0])[0]}")
        asked = _asked(LANGUAGES[src])
        if not asked:
            return
        for line in answer(model, known, asked):
            print(line)


def _amount(known: "KnownWords", src: str) -> str:
    return f"{len(known.hashes):,} {'characters' if src == 'zh' else 'words and their forms'}"


def _asked(language: str) -> str:
    try:
        return input(f"A sentence in {language} (an empty line ends): ").strip()
    except EOFError:
        return ""


def answer(model: "Translator", known: "KnownWords", asked: str) -> list[str]:
    """Return the translation, and what is doubtful about it."""
    (prediction,) = model.translate([asked])
    lines = [f"  {prediction.text}"]
    unseen = known.unknown(asked)
    if unseen:
        lines.append(f"  (never seen: {', '.join(unseen)} - the model guesses there)")
    if prediction.score is not None and prediction.score < UNSURE:
        lines.append(
            f"  (the model is not sure of this: {prediction.score:.2f} nats a token)"
        )
    return lines
