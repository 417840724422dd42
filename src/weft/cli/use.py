"""Verbs that use a model but for translations: generate, classify."""

import json
from collections.abc import Iterator
from itertools import islice, repeat, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.answer_lines import classified_line
from weft.cli.answers import (
    AnswerTable,
    answer_form,
    label_cells,
    label_columns,
    named_row,
    refuse_other_form,
    write_answers,
)
from weft.cli.guesses import GuessedLabels
from weft.cli.models import facts_of, naming_options, opened, refuse_idle
from weft.cli.on import BlockRows, Files, On, Workers, say_doubtful, spread_of
from weft.cli.options import (
    AsJson,
    Folder,
    Input,
    Kernels,
    MinP,
    Output,
    Precision,
    Texts,
    TopK,
    TopP,
)
from weft.cli.streams import (
    is_table,
    reading_lines,
    reading_rows,
    refuse_broken,
    sink,
)
from weft.console.wording import remark
from weft.errors import UsageError
from weft.folder.model_files import refuse_other_task

if TYPE_CHECKING:
    from weft.predict.classifier import Classification


def classify(
    folder: Folder,
    text: Texts = None,
    input_file: Input = None,
    output_file: Output = None,
    all_labels: Annotated[
        bool,
        typer.Option("--all", help="Write the probability of every label."),
    ] = False,
    kernels: Kernels = "auto",
    on: On = None,
    workers: Workers = None,
    block_rows: BlockRows = None,
    as_json: AsJson = False,
) -> None:
    """Classify texts: label and probability for each line; for a table, the table with both."""
    refuse_other_task(folder, "classification")
    if (spread := spread_of(on, workers, block_rows)) is not None:
        files = spread.files(text, input_file, output_file, as_json)
        _classify_on(files, folder, kernels, all_labels, as_json)
        return
    from weft.tasks.classification import Classification

    def load() -> Classification:
        task = opened(folder, kernels=kernels)
        assert isinstance(task, Classification)
        return task

    task: Classification | None = None
    form = None
    if input_file is not None and not text and is_table(input_file):
        task = load()
        column = task.config.text_column
        if not as_json:
            form = answer_form(input_file, output_file, column)
        reading = reading_rows(input_file, output_file, column, form is not None)
    else:
        reading = reading_lines(text, input_file, output_file)
    with reading as source:
        refuse_other_form(output_file, input_file, as_json, form is not None)
        task = task or load()
        model = task.predictor()
        facts: dict[str, Any] = {}
        # an interrupted table cannot be continued: its lines are not its rows
        if input_file is not None and form is None:
            facts = facts_of(folder, source.sha256)
            facts |= {"all": all_labels, "json": as_json}
        labels = model.labels if all_labels else []
        separator = task.config.label_separator or ""
        table = None
        if form is not None:
            table = AnswerTable(form, label_columns(labels))
        guesses = GuessedLabels(source.unit)

        def answers(first: int) -> Iterator[tuple[str, list[str]]]:
            rest, texts = tee(islice(source.lines, first, None))
            rows: Iterator[Any] = repeat(None)
            if source.rows is not None:
                rows = islice(source.rows, first, None)
            found = model.classify_stream(rest, chunk=source.chunk)
            triples = zip(found, texts, rows, strict=False)
            for number, (answer, line, row) in enumerate(triples, start=first + 1):
                guesses.see_label(answer, number, line, named_row(number, row, form))
                if table is not None:
                    cells = label_cells(answer, line, labels, separator)
                    output = table.row(row, cells)
                else:
                    output = classified_line(answer, all_labels, as_json, row)
                yield output, _doubts_of_label(answer, source.chunk == 1)

        head = table.head() if table is not None else ""
        write_answers(answers, source, output_file, as_json, facts, guesses, head)


def _classify_on(
    files: Files, folder: Path, kernels: str, all_labels: bool, as_json: bool
) -> None:
    """Classify the lines of files in blocks, by several workers."""
    from weft.cli.works import classifying

    work = classifying(folder, kernels, all_labels, as_json)
    say_doubtful(files.answer(work, ".jsonl" if as_json else ".tsv"), as_json)


def generate(
    folder: Folder,
    prompts: Annotated[
        list[str] | None,
        typer.Option("--prompt", help="Text to continue. Default: a new document."),
    ] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of tokens. Default: from the recipe."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Sampling temperature; 0 is greedy. Default: from the recipe.",
        ),
    ] = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(
            help="Above 1, tokens that already occurred become less likely. "
            "Default: from the recipe."
        ),
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="Stop before this text; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    draft: Annotated[
        str | None,
        typer.Option(
            help='Speculative decoding with "prompt": the text so far proposes tokens; '
            "the text stays the same."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Generate text from a prompt; it is printed token by token."""
    refuse_other_task(folder, "language-modelling")
    if prompts and len(prompts) > 1:
        raise UsageError(
            "--prompt is given more than once; give one, and run the command once for each"
        )
    prompt = "".join(prompts or ())
    refuse_broken({"--prompt": prompt, "--stop": "".join(stop or ())})
    model = opened(folder, precision, kernels).predictor()
    refuse_idle(precision, model.engine)
    settings: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "stop": stop or (),
        "seed": seed,
        "draft": draft,
    }
    with sink(None) as out, naming_options(settings):
        if as_json:
            generation = model.generate(prompt, **settings)
            value = {"prompt": prompt, **generation.to_json()}
            out.write(json.dumps(value, ensure_ascii=False) + "\n")
            return
        # wrong settings are refused here, before anything is written
        pieces = model.stream(prompt, **settings)
        if not model.fits(prompt):
            remark("weft: the prompt is longer than the window; only its end is read")
        out.write(prompt)
        for piece in pieces:
            out.write(piece)
            out.flush()
        out.write("\n")


def _doubts_of_label(answer: "Classification", is_typed: bool) -> list[str]:
    """Return the doubts about an answer; what is counted at the end, only on a terminal."""
    doubts = []
    if answer.truncated:
        doubts.append("truncated: only what the model reads at most was classified")
    if answer.nothing_known and is_typed:
        doubts.append(
            "nothing known: no word of it was seen in training, and the label is a guess"
        )
    return doubts
