"""Verbs that use a model: translate, generate, classify."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from itertools import islice, repeat, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.answers import AnswerTable, answer_form, named_row
from weft.cli.guesses import GuessedLabels, Guesses
from weft.cli.streams import (
    Lines,
    growing_sink,
    is_table,
    progress,
    reading_column,
    reading_lines,
    reading_rows,
    refuse_broken,
    sink,
)
from weft.console.wording import remark
from weft.errors import UsageError
from weft.folder.layout import refuse_other_task

if TYPE_CHECKING:
    from weft.predict.classifier import Classification
    from weft.predict.language_model import LanguageModel
    from weft.predict.prediction import Prediction
    from weft.predict.translator import Translator
    from weft.tasks.translation import Translation

MOST_DOUBTS = 20  # that are told one by one
Folder = Annotated[Path, typer.Argument(help="A model folder.")]
Texts = Annotated[
    list[str] | None,
    typer.Argument(help="Texts; without any, --input or standard input."),
]
Input = Annotated[
    Path | None, typer.Option("--input", help="A text file, one text a line.")
]
Output = Annotated[
    Path | None, typer.Option("--output", help="Where to write; else standard output.")
]
BeamSize = Annotated[
    int | None,
    typer.Option("--beam-size", min=1, help="1 is greedy; else the recipe's."),
]
TopK = Annotated[int | None, typer.Option(min=1, help="Draw from the k best tokens.")]
TopP = Annotated[
    float | None,
    typer.Option(help="Draw from the fewest tokens with this probability."),
]
MinP = Annotated[
    float | None, typer.Option(help="Leave out tokens below this share of the best's.")
]
LengthPenalty = Annotated[
    float | None, typer.Option(help="0 prefers short; else the recipe's.")
]
Mbr = Annotated[
    int | None,
    typer.Option(help="Draw so many samples and give the one most like the others."),
]
UtilityName = Annotated[
    str | None,
    typer.Option(help="What --mbr compares by: chrf, as it does else, or bleu."),
]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(help="Another model of the same tokenizers beside it; repeatable."),
]
IsShort = Annotated[
    bool | None,
    typer.Option(
        "--shortlist/--no-shortlist", help="Faster, where the folder has one."
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="Of products: float32, bfloat16, on a GPU float16; auto: the fastest. int8 folders: int8."
    ),
]
Kernels = Annotated[
    str,
    typer.Option(
        help="auto: an engine where there is one; torch: the model's own steps, to watch them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


def translate(
    folder: Folder,
    text: Texts = None,
    input_file: Input = None,
    output_file: Output = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="Of a table as --input: what to translate, by its name or number."
        ),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int,
        typer.Option(min=1, help="Alternatives: line number, score and text, by tabs."),
    ] = 1,
    exhaustive: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Try every translation of at most so many tokens; tiny vocabularies only.",
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Draw --n-best samples instead; 1: as the model has them."),
    ] = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Another seed, other samples; else 1.")
    ] = None,
    mbr: Mbr = None,
    utility: UtilityName = None,
    coverage_penalty: Annotated[
        float,
        typer.Option(
            help="Rank by how much of the source was looked at, too; 0: do not."
        ),
    ] = 0.0,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments", help="With --json: the source token of each target token."
        ),
    ] = False,
    ensemble: Ensemble = None,
    prefix: Annotated[
        str, typer.Option(help="What every translation begins with.")
    ] = "",
    no_repeat_ngrams: Annotated[
        int,
        typer.Option(
            min=0, help="Let no so many tokens in a row occur twice; 0: they may."
        ),
    ] = 0,
    shortlist: IsShort = None,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    as_json: AsJson = False,
) -> None:
    """Translate: one line out for each line or table row in, in order."""
    given = locals()
    refuse_other_task(folder, "translation")
    from weft.kernels.machine import machine_for_command
    from weft.predict.settings import DecodingSettings
    from weft.tasks.translation import Translation

    asked = {
        part.name: given[part.name]
        for part in fields(DecodingSettings)
        if part.name in given
    }
    refuse_broken({"--prefix": prefix})
    if alignments and not as_json:
        raise UsageError("--alignments are written with --json alone; give that too")
    if column is not None and (text or input_file is None):
        raise UsageError("--column is one of a table's; give the table by --input FILE")
    reading = (
        reading_column(input_file, output_file, column)
        if input_file is not None and column is not None
        else reading_lines(text, input_file, output_file, has_columns=True)
    )
    with reading as source:
        with naming_options(["precision", "kernels"]):
            machine = machine_for_command(precision, kernels)
        task = Translation.load(folder, machine)
        model = together(task, ensemble or [])
        refuse_idle(precision, model.engine)
        if reason := task.why_no_engine():
            remark(f"weft: without native kernels ({reason}) this takes longer")
        is_line_by_line = input_file is not None and (n_best == 1 or as_json)
        others = [_digest(other) for other in ensemble or []]
        facts = {
            **_facts(folder, source),
            **asked,
            "json": as_json,
            "engine": model.engine is not None,
        }
        facts |= {"ensemble": others, "precision": task.machine.precision}

        def shown(first: int) -> Iterator[tuple[str, list[str]]]:
            rest, texts = tee(islice(source.lines, first, None))
            with naming_options(asked):
                predictions: Iterator[Prediction] = model.translate_stream(
                    rest, **asked, chunk=source.chunk
                )
            for number, (found, line) in enumerate(
                zip(predictions, texts, strict=False), start=first + 1
            ):
                guesses.see(found, number)
                yield _translated(number, found, n_best, as_json), _doubts(found, line)

        guesses = Guesses()
        _write(
            shown,
            source,
            output_file,
            as_json,
            facts if is_line_by_line else {},
            guesses,
        )


def classify(
    folder: Folder,
    text: Texts = None,
    input_file: Input = None,
    output_file: Output = None,
    all_labels: Annotated[
        bool,
        typer.Option("--all", help="Every label's probability, not only the best."),
    ] = False,
    kernels: Kernels = "auto",
    as_json: AsJson = False,
) -> None:
    """Classify: label and probability for each line or row in; of a table to a table the rows with
    both beside.
    """
    refuse_other_task(folder, "classification")
    from weft.kernels.machine import machine_for_command
    from weft.tasks.classification import Classification

    def load() -> Classification:
        with naming_options(["kernels"]):
            return Classification.load(folder, machine_for_command(kernels=kernels))

    table = (
        input_file
        if input_file is not None and not text and is_table(input_file)
        else None
    )
    task = load() if table else None
    column = task.config.text_column if task else ""
    form = answer_form(table, output_file, column) if table and not as_json else None
    reading = (
        reading_rows(table, output_file, column, form is not None)
        if table
        else reading_lines(text, input_file, output_file)
    )
    with reading as source:
        task = task or load()
        model = task.predictor()
        asked = {**_facts(folder, source), "all": all_labels, "json": as_json}
        # the lines of a table are no rows to go on after
        facts = asked if input_file and form is None else {}
        separator, columns = (
            task.config.label_separator or "",
            model.labels if all_labels else [],
        )
        written = None if form is None else AnswerTable(form, columns, separator)

        def shown(first: int) -> Iterator[tuple[str, list[str]]]:
            rest, texts = tee(islice(source.lines, first, None))
            answers = model.classify_stream(rest, chunk=source.chunk)
            rows = (
                repeat(None)
                if source.rows is None
                else islice(source.rows, first, None)
            )
            for number, (answer, line, row) in enumerate(
                zip(answers, texts, rows, strict=False), start=first + 1
            ):
                guesses.see_label(answer, number, line, named_row(number, row, form))
                said = (
                    written.row(row, answer, line)
                    if written
                    else _classified(answer, all_labels, as_json, row)
                )
                yield said, _doubts_of_label(answer, source.chunk == 1)

        guesses = GuessedLabels(source.unit)
        _write(
            shown,
            source,
            output_file,
            as_json,
            facts,
            guesses,
            written.head() if written else "",
        )


def generate(
    folder: Folder,
    prompts: Annotated[
        list[str] | None, typer.Option("--prompt", help="What to write on from.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Else the recipe's.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="0 is greedy; else the recipe's.")
    ] = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Above 1 shuns what was said.")
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End before this text; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another text.")] = 1,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    draft: Annotated[
        str | None,
        typer.Option(
            help='The folder of a smaller model, or "prompt": proposes tokens; the text stays the same.'
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write on from a prompt; the text appears as it is written."""
    refuse_other_task(folder, "language-modelling")
    from weft.kernels.machine import machine_for_command
    from weft.tasks.language_modelling import LanguageModelling

    if prompts and len(prompts) > 1:
        raise UsageError(
            "--prompt is given more than once; give one, and run the command once for each"
        )
    prompt = "".join(prompts or ())
    refuse_broken({"--prompt": prompt, "--stop": "".join(stop or ())})
    with naming_options(["precision", "kernels"]):
        machine = machine_for_command(precision, kernels)

    def load(where: Path) -> "LanguageModel":
        return LanguageModelling.load(where, machine).predictor()

    model = load(folder)
    refuse_idle(precision, None if model.writer is model.model else model.writer)
    asked: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "stop": stop or (),
        "seed": seed,
        "draft": draft if draft is None or draft == "prompt" else load(Path(draft)),
    }
    with sink(None) as out, naming_options(asked):
        if as_json:
            found = model.generate(prompt, **asked)
            out.write(
                json.dumps({"prompt": prompt, **found.to_json()}, ensure_ascii=False)
                + "\n"
            )
            return
        # refuses what is wrong before anything is written
        pieces = model.stream(prompt, **asked)
        if not model.fits(prompt):
            remark(
                "weft: the prompt is longer than the window; only its end is in sight"
            )
        out.write(prompt)
        for piece in pieces:
            out.write(piece)
            out.flush()
        out.write("\n")


def _write(
    shown: Callable[[int], Iterator[tuple[str, list[str]]]],
    source: Lines,
    output_file: Path | None,
    as_json: bool,
    facts: dict[str, Any],
    guesses: Guesses,
    head: str = "",
) -> None:
    """Write each text from a line on below the head.

    On standard error stands what is doubtful about the first ones, and at the end what the model
    guessed.

    With `facts`, which say what is asked, a file that was interrupted goes on where it was.
    """
    told, unit = 0, source.unit
    with (
        growing_sink(output_file, facts) as (out, done),
        progress(source.count, done) as advance,
    ):
        out.write(head)
        for number, (text, doubts) in enumerate(shown(done), start=done + 1):
            out.write(text)
            advance()
            if source.chunk == 1:
                out.flush()
            for doubt in [] if as_json else doubts:
                told += 1
                if told <= MOST_DOUBTS or source.chunk == 1:
                    remark(f"weft: {unit} {number}: {doubt}")
    if told > MOST_DOUBTS and source.chunk > 1:
        more = f"{told - MOST_DOUBTS:,} more such doubts"
        remark(f"weft: {more}; with --json each line says what is doubtful about it")
    for line in [] if as_json else guesses.lines():
        remark(f"weft: {line}")


def _facts(folder: Path, source: Lines) -> dict[str, Any]:
    """Return what an output depends on beside the settings."""
    from weft.folder.model_folder import VERSION

    return {"version": VERSION, "model": _digest(folder), "input": source.sha256}


def _digest(folder: Path) -> str:
    """Hash all that a model folder holds."""
    from weft.folder import durable

    manifest = folder / durable.MANIFEST
    return durable.sha256_of(manifest) if manifest.is_file() else ""


def together(task: "Translation", folders: list[Path]) -> "Translator":
    """Return the model as one with those in the folders."""
    model = task.predictor()
    others = [type(task).load(folder, task.machine).predictor() for folder in folders]
    for folder, other in zip(folders, others, strict=True):
        if reason := model.difference(other):
            raise UsageError(f"--ensemble {folder}: {reason}")
    return model.ensemble(*others) if others else model


def refuse_idle(precision: str, engine: object | None) -> None:
    """Raise UsageError for a precision that nothing would have: PyTorch's own steps compute in
    float32.
    """
    if engine is None and precision not in ("float32", "auto"):
        raise UsageError(
            f"--precision {precision}: this model has no engine on this machine; leave it out"
        )


@contextmanager
def naming_options(names: Iterable[str]) -> Iterator[None]:
    """Name a setting in an error as its option is named.

    That is where it stands first, or has several words.
    """
    try:
        yield
    except UsageError as error:
        pattern = "|".join(
            rf"\b{name}\b" if "_" in name else rf"^{name}\b" for name in names
        )
        raise UsageError(
            re.sub(pattern, lambda m: "--" + m[0].replace("_", "-"), str(error))
        ) from None


def _doubts_of_label(answer: "Classification", is_typed: bool) -> list[str]:
    """Say what is doubtful; where a person waits for each answer also what is else told at the
    end.
    """
    cut = "truncated: only what the model reads at most was classified"
    nothing = (
        "nothing known: no word of it was seen in training, and the label is a guess"
    )
    return [
        *([cut] if answer.truncated else []),
        *([nothing] if answer.nothing_known and is_typed else []),
    ]


def _doubts(prediction: "Prediction", text: str) -> list[str]:
    from weft.predict.text import looks_like_sentence

    again = "repetition: it says the same again and again; "
    again += (
        "--no-repeat-ngrams 3 forbids that"
        if looks_like_sentence(text)
        else "its input is no sentence"
    )
    short = "short: far fewer words than translations have in training; it may have left something out"
    is_empty = not prediction.text.strip() and bool(text.strip())
    if is_empty:
        short = "empty: the model answers nothing; train it for longer, or on more text like this"
    cut = "truncated: "
    if prediction.source_cut:
        cut += "a sentence is longer than the model reads, and its end was not translated; make it several"
    else:
        cut += "the translation came to no end and was cut at its limit (decoding.max_len_ratio, max_len_extra)"
    return [
        *([cut] if prediction.truncated else []),
        *([again] if prediction.repetition else []),
        *([short] if prediction.short or is_empty else []),
    ]


def _translated(
    number: int, prediction: "Prediction", n_best: int, as_json: bool
) -> str:
    if as_json:
        return json.dumps(prediction.to_json(), ensure_ascii=False) + "\n"
    if n_best == 1:
        return prediction.text + "\n"
    found = [(a.score, a.text.replace("\t", " ")) for a in prediction.n_best]
    rows = [f"{number}\t{score:.4f}\t{text}\n" for score, text in found]
    return "".join(rows) or f"{number}\t\t\n"


def _classified(
    answer: "Classification",
    all_labels: bool,
    as_json: bool,
    row: Mapping[str, Any] | None,
) -> str:
    if as_json:
        found = answer.to_json() if row is None else {"row": row, **answer.to_json()}
        if not all_labels:
            del found["probabilities"]
        return json.dumps(found, ensure_ascii=False) + "\n"
    if not all_labels:
        return f"{answer.label}\t{answer.probability:.4f}\n"
    ranked = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
    return (
        "\t".join(f"{label} {probability:.4f}" for label, probability in ranked) + "\n"
    )
