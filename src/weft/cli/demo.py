"""The first verb that a person tries: demo."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.train import CONTINUED, say
from weft.console import stages
from weft.console.wording import say_lines
from weft.errors import UsageError
from weft.packages import require_torch

if TYPE_CHECKING:
    from weft.data.builtin import Splits
    from weft.data.known import KnownWords
    from weft.predict.translator import Translator
    from weft.run.record import Verdict

LANGUAGES = {"en": "English", "zh": "Chinese", "de": "German"}
SHOWN = 8  # held-out sentences with their translations
# mean log-probability of a token; of the held-out sentences one in a hundred is below it
UNSURE = -1.1

Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LANGUAGE",
        help="Source language: en, zh or de. Default: en, or zh with --to en.",
    ),
]
Target = Annotated[
    str,
    typer.Option("--to", metavar="LANGUAGE", help="Target language: zh, de or en."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", help=f"{CONTINUED} Default: under runs/."),
]


def demo(src: Source = None, tgt: Target = "zh", output: Output = None) -> None:
    """Train a translator on the built-in corpus, score it, and try it on your own sentences."""
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
    verdict = _train(out, _settings(src, tgt))
    model = weft.load(out)
    _tell(
        f"\nHeld-out sentences ({verdict.test['num_sentences']}): BLEU {verdict.test['bleu']:.1f}, "
        f"chrF {verdict.test['chrf']:.1f}. None of them, on either side, was seen in training:\n"
    )
    text = builtin.pairs("everyday", src, tgt)
    shown = text.test[:SHOWN]
    predictions = model.translate([sentence for sentence, _ in shown])
    for (sentence, reference), prediction in zip(shown, predictions, strict=True):
        print(f"{sentence}\n  {prediction.text}")
        if reference != prediction.text:
            print(f"  (reference: {reference})")
    if sys.stdin.isatty() and sys.stdout.isatty():
        _converse(model, text, src)
    example = text.test[SHOWN][0]
    _tell(
        f"\nThe model is in {out}. Next:\n"
        f'  weft translate {out} "{example}"\n'
        f'  weft inspect {out} "{example}" --output inside.html\n'
        "  weft train your-pairs.tsv\n"
        f"  {_otherwise(src, tgt, out)}"
    )


def _train(out: Path, settings: list[str]) -> "Verdict":
    """Train as `weft.train` does; a run that is stopped names the command that continues it."""
    began = time.monotonic()
    require_torch("weft demo")
    with stages.showing("loading PyTorch"):
        from weft.run.request import Request
        from weft.run.train import train

        command = shlex.join(["weft", *sys.argv[1:]])
        request = Request.by_name(
            "demo", settings, out=out, command=command, began=began
        )
        return train(request)


def _tell(text: str) -> None:
    """Print on standard output, so that a file has it beside the sentences."""
    say_lines(text.split("\n"), sys.stdout)


def _settings(src: str, tgt: str) -> list[str]:
    """Return the settings for two languages: Chinese is read by characters, others by words."""
    settings = [f"data.src_lang={src}", f"data.tgt_lang={tgt}"]
    for side, lang in (("src", src), ("tgt", tgt)):
        kind = "character" if lang == "zh" else "word"
        settings.append(f"tokenizer.{side}.kind={kind}")
    return settings


def _otherwise(src: str, tgt: str, out: Path) -> str:
    """Return a command that trains the same with one setting changed."""
    usual = _settings("en", "zh")  # those of the recipe
    changed = [each for each in _settings(src, tgt) if each not in usual]
    words = ["weft", "train", "--recipe", "demo"]
    for setting in (*changed, "model.num_heads=1"):
        words += ["--set", setting]
    return shlex.join([*words, "--output", f"{out}-one-head"])


def _converse(model: "Translator", text: "Splits", src: str) -> None:
    """Translate the lines that the user types, until an empty one."""
    from weft.data.builtin.known import words_by_kind
    from weft.data.known import KnownWords

    known = KnownWords.of(sentence for sentence, _ in text.train)
    say(
        f"\nYour turn. The model knows {_amount(known, src)} and no others; some of them:\n"
    )
    kinds = words_by_kind(src, lambda words: not known.unknown(words))
    for kind, words in kinds.items():
        say(f"  {kind:8} {', '.join(words)}")
    examples = iter(text.test[SHOWN:])
    while True:
        example, _ = next(examples, text.test[0])
        say(f"\nTry, for example: {example}")
        sentence = _asked(LANGUAGES[src])
        if not sentence:
            return
        for line in answer(model, known, sentence):
            print(line)


def _amount(known: "KnownWords", src: str) -> str:
    unit = "characters" if src == "zh" else "words and their forms"
    return f"{len(known.hashes):,} {unit}"


def _asked(language: str) -> str:
    try:
        return input(f"A sentence in {language} (an empty line ends): ").strip()
    except EOFError:
        return ""


def answer(model: "Translator", known: "KnownWords", sentence: str) -> list[str]:
    """Return the lines for a sentence: its translation and the doubts about it."""
    (prediction,) = model.translate([sentence])
    lines = [f"  {prediction.text}"]
    if unseen := known.unknown(sentence):
        lines.append(f"  (never seen: {', '.join(unseen)} - the model guesses there)")
    if prediction.score is not None and prediction.score < UNSURE:
        lines.append(
            f"  (the model is not sure of this: {prediction.score:.2f} nats a token)"
        )
    return lines
