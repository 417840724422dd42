"""Verbs that use a model: translate, generate, classify."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.streams import reading_lines, refuse_broken, sink

if TYPE_CHECKING:
    from weft.predict.classifier import Classification
    from weft.predict.translator import Prediction

Folder = Annotated[Path, typer.Argument(help="A model folder.")]
Texts = Annotated[list[str] | None, typer.Argument(help="Texts; without any, --input or standard input.")]
Input = Annotated[Path | None, typer.Option("--input", help="A text file, one text a line.")]
Output = Annotated[Path | None, typer.Option("--output", help="Where to write; else standard output.")]
BeamSize = Annotated[int | None, typer.Option("--beam-size", min=1, help="1 is greedy; else the recipe's.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


def translate(
    folder: Folder,
    text: Texts = None,
    input_file: Input = None,
    output_file: Output = None,
    beam_size: BeamSize = None,
    length_penalty: Annotated[float | None, typer.Option(help="0 prefers short; else the recipe's.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Alternatives: line number, score and text, by tabs.")] = 1,
    exhaustive: Annotated[
        int | None,
        typer.Option(min=1, help="Try every translation of at most so many tokens; tiny vocabularies only."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Translate: one line out for each line in, in order."""
    from weft.machine import choose_machine
    from weft.tasks.translation import Translation

    with reading_lines(text, input_file, output_file) as (lines, chunk):
        model = Translation.load(folder, choose_machine("float32")).predictor()
        predictions = model.translate_stream(
            lines,
            beam_size=beam_size,
            length_penalty=length_penalty,
            n_best=n_best,
            exhaustive=exhaustive,
            chunk=chunk,
        )
        shown = ((_translated(i, p, n_best, as_json), p.truncated) for i, p in enumerate(predictions, start=1))
        _write(shown, output_file, as_json, at_once=chunk == 1)


def classify(
    folder: Folder,
    text: Texts = None,
    input_file: Input = None,
    output_file: Output = None,
    all_labels: Annotated[
        bool, typer.Option("--all", help="Every label's probability, not only the best.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Classify: one line out for each line in, label and probability by a tab."""
    from weft.machine import choose_machine
    from weft.tasks.classification import Classification

    with reading_lines(text, input_file, output_file) as (lines, chunk):
        model = Classification.load(folder, choose_machine("float32")).predictor()
        answers = model.classify_stream(lines, chunk=chunk)
        shown = ((_classified(answer, all_labels, as_json), answer.truncated) for answer in answers)
        _write(shown, output_file, as_json, at_once=chunk == 1)


def generate(
    folder: Folder,
    prompt: Annotated[str, typer.Option(help="What to write on from.")] = "",
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="Else the recipe's.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0 is greedy; else the recipe's.")] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the k best tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw from the fewest tokens with this probability.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Leave out tokens below this share of the best's.")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(help="Above 1 shuns what was said.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; repeatable.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another text.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write on from a prompt; the text appears as it is written."""
    from weft.machine import choose_machine
    from weft.tasks.language_modelling import LanguageModelling

    refuse_broken({"--prompt": prompt, "--stop": "".join(stop or ())})
    model = LanguageModelling.load(folder, choose_machine("float32")).predictor()
    asked: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "stop": stop or (),
        "seed": seed,
    }
    with sink(None) as out:
        if as_json:
            found = model.generate(prompt, **asked)
            out.write(json.dumps({"prompt": prompt, **found.to_json()}, ensure_ascii=False) + "\n")
            return
        pieces = model.stream(prompt, **asked)  # refuses what is wrong before anything is written
        if not model.fits(prompt):
            print("weft: the prompt is longer than the window; only its end is in sight", file=sys.stderr)
        out.write(prompt)
        for piece in pieces:
            out.write(piece)
            out.flush()
        out.write("\n")


def _write(shown: Iterator[tuple[str, bool]], output_file: Path | None, as_json: bool, at_once: bool) -> None:
    with sink(output_file) as out:
        for number, (text, truncated) in enumerate(shown, start=1):
            out.write(text)
            if at_once:
                out.flush()
            if truncated and not as_json:
                print(
                    f"weft: line {number}: truncated: cut at the longest length that the model reads or writes",
                    file=sys.stderr,
                )


def _translated(number: int, prediction: "Prediction", n_best: int, as_json: bool) -> str:
    if as_json:
        return json.dumps(prediction.to_json(), ensure_ascii=False) + "\n"
    if n_best == 1:
        return prediction.text + "\n"
    rows = [f"{number}\t{a.score:.4f}\t{a.text}\n" for a in prediction.n_best]
    return "".join(rows) or f"{number}\t\t\n"


def _classified(answer: "Classification", all_labels: bool, as_json: bool) -> str:
    if as_json:
        found = answer.to_json()
        if not all_labels:
            del found["probabilities"]
        return json.dumps(found, ensure_ascii=False) + "\n"
    if not all_labels:
        return f"{answer.label}\t{answer.probability:.4f}\n"
    ranked = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
    return "\t".join(f"{label} {probability:.4f}" for label, probability in ranked) + "\n"
