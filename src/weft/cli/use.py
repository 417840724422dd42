"""Verbs that use a model: translate, generate, classify."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.answers import (
    TRANSLATION_COLUMNS,
    AnswerTable,
    answer_form,
    label_cells,
    label_columns,
    named_row,
    refuse_other_form,
    translation_cells,
)
from weft.cli.document import Asked, document_of, translate_document
from weft.cli.doubts import doubts_of, near_matches
from weft.cli.guesses import GuessedLabels, Guesses
from weft.cli.models import Translators, facts_of, naming_options, opened, refuse_idle
from weft.cli.options import (
    Alignments,
    AsDocument,
    AsJson,
    BeamSize,
    Columns,
    CoveragePenalty,
    Doubts,
    Ensemble,
    Exhaustive,
    Folder,
    GivenFile,
    GlossaryFile,
    Input,
    InputOrDocument,
    Kernels,
    LengthPenalty,
    Mbr,
    MemoryFiles,
    MinP,
    NoRepeatNgrams,
    NumBest,
    Output,
    OutputOrDocument,
    Precision,
    Prefix,
    ReviewFile,
    Seed,
    Temperature,
    Texts,
    TextsOrDocument,
    TopK,
    TopP,
    UsesShortlist,
    UtilityName,
)
from weft.cli.review import (
    close_review,
    given_lines,
    judged_line,
    open_review,
    reviewed,
    score_stream,
)
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
    from weft.data.formats.table_form import TableForm
    from weft.predict.classifier import Classification
    from weft.predict.prediction import Prediction
    from weft.predict.settings import DecodingSettings

MOST_DOUBTS = 20  # printed one by one
_FOR_TABLE = "for a table give --column NAME and a name that ends in .csv"


def translate(
    folder: Folder,
    text: TextsOrDocument = None,
    input_file: InputOrDocument = None,
    output_file: OutputOrDocument = None,
    columns: Columns = None,
    as_document: AsDocument = False,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: NumBest = 1,
    exhaustive: Exhaustive = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    seed: Seed = None,
    mbr: Mbr = None,
    utility: UtilityName = None,
    coverage_penalty: CoveragePenalty = 0.0,
    alignments: Alignments = False,
    doubts: Doubts = True,
    ensemble: Ensemble = None,
    prefix: Prefix = "",
    no_repeat_ngrams: NoRepeatNgrams = 0,
    shortlist: UsesShortlist = None,
    glossary: GlossaryFile = None,
    memory: MemoryFiles = None,
    given: GivenFile = None,
    review: ReviewFile = None,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    as_json: AsJson = False,
) -> None:
    """Translate texts, a line of output for each line or table row; or a document as it stands."""
    refuse_other_task(folder, "translation")
    refuse_broken({"--prefix": prefix})
    if alignments and not as_json:
        raise UsageError("--alignments are written with --json alone; give that too")
    from weft.predict.settings import DecodingSettings

    with naming_options(DecodingSettings.__dataclass_fields__):
        settings = DecodingSettings(
            beam_size=beam_size,
            length_penalty=length_penalty,
            n_best=n_best,
            exhaustive=exhaustive,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            mbr=mbr,
            utility=utility,
            coverage_penalty=coverage_penalty,
            alignments=alignments,
            doubts=doubts or review is not None,
            prefix=prefix,
            no_repeat_ngrams=no_repeat_ngrams,
            shortlist=shortlist,
        )
    models = Translators(
        folder, ensemble or [], precision, kernels, glossary, tuple(memory or ())
    )
    names = tuple(columns or ())
    document = document_of(text or [], input_file, names, as_document)
    if document is not None:
        _refuse_given(given)
        asked = Asked(document, output_file, names, as_json, review)
        translate_document(asked, models, settings)
        return
    column = _only_column(names, text, input_file)
    if column is not None:
        _refuse_given(given)
    form = _table_form(input_file, output_file, column, n_best, as_json)
    if input_file is not None and column is not None:
        reading = reading_column(input_file, output_file, column, form is not None)
    else:
        reading = reading_lines(text, input_file, output_file, has_columns=True)
    asked_lines = _Asked(input_file, output_file, form, n_best, as_json, given, review)
    with reading as source:
        has_table = form is not None
        refuse_other_form(output_file, input_file, as_json, has_table, _FOR_TABLE)
        _translate_lines(source, models, settings, asked_lines)


@dataclass(frozen=True)
class _Asked:
    """Options beside the translations of lines or of a table's rows."""

    input_file: Path | None
    output_file: Path | None
    form: "TableForm | None"
    n_best: int
    as_json: bool
    given: Path | None
    review: Path | None

    @property
    def can_continue(self) -> bool:
        """Return whether an interrupted output can be continued: not that of a table, whose lines
        are not its rows, and not with a page, which has all of them.
        """
        is_lines = self.form is None and (self.n_best == 1 or self.as_json)
        is_alone = self.review is None and self.given is None
        return self.input_file is not None and is_lines and is_alone


def _translate_lines(
    source: Lines, models: Translators, settings: "DecodingSettings", asked: _Asked
) -> None:
    """Translate lines or rows, or judge the translations that are given, and write each."""
    from weft.predict.settings import DecodingSettings

    found = models.open()
    model = found.model
    form, as_json = asked.form, asked.as_json
    facts: dict[str, Any] = {}
    if asked.can_continue:
        facts = models.facts(source.sha256, settings, found) | {"json": as_json}
    table = AnswerTable(form, TRANSLATION_COLUMNS) if form is not None else None
    guesses = Guesses(source.unit)
    written = None
    if asked.given is not None:
        written = given_lines(asked.given, source.count)
    page = None
    if asked.review is not None:
        page = open_review(asked.review, asked.input_file, asked.output_file, found)
        settings = replace(settings, alignments=model.can_align)

    def answers(first: int) -> Iterator[tuple[str, list[str]]]:
        rest, texts = tee(islice(source.lines, first, None))
        rows: Iterator[Any] = source.rows or repeat(None)
        with naming_options(DecodingSettings.__dataclass_fields__):
            predictions = model.translate_stream(rest, settings, chunk=source.chunk)
        if written is not None:
            predictions = score_stream(model, rest, written, settings)
        triples = zip(predictions, texts, rows, strict=False)
        for number, (prediction, line, row) in enumerate(triples, start=first + 1):
            name = named_row(number, row, form)
            guesses.see_translation(prediction, number, name)
            said = doubts_of(prediction, line, found.task.config, settings)
            if source.is_short:
                said += near_matches(prediction)
            if page is not None:
                place = name or f"{source.unit} {number}"
                page.add(reviewed(place, line, prediction, said))
            if table is not None:
                output = table.row(row, translation_cells(prediction, said))
            elif written is not None and not as_json:
                output = judged_line(prediction, said)
            else:
                output = _translated(number, prediction, asked.n_best, as_json)
            yield output, said

    head = table.head() if table is not None else ""
    _write(answers, source, asked.output_file, as_json, facts, guesses, head)
    if page is not None:
        close_review(page)


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
    as_json: AsJson = False,
) -> None:
    """Classify texts: label and probability for each line; for a table, the table with both."""
    refuse_other_task(folder, "classification")
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
                    output = _classified(answer, all_labels, as_json, row)
                yield output, _doubts_of_label(answer, source.chunk == 1)

        head = table.head() if table is not None else ""
        _write(answers, source, output_file, as_json, facts, guesses, head)


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


def _write(
    answers: Callable[[int], Iterator[tuple[str, list[str]]]],
    source: Lines,
    output_file: Path | None,
    as_json: bool,
    facts: dict[str, Any],
    guesses: Guesses,
    head: str = "",
) -> None:
    """Write the head and the answers; print doubts and guesses on standard error.

    `answers(n)` yields each answer after the first n, with its doubts. With `facts`, on which the
    output depends, an interrupted file is continued.
    """
    told = 0
    unit = source.unit
    is_typed = source.chunk == 1
    with (
        growing_sink(output_file, facts) as (out, done),
        progress(source.count, done) as advance,
    ):
        out.write(head)
        for number, (text, doubts) in enumerate(answers(done), start=done + 1):
            out.write(text)
            advance()
            if is_typed:
                out.flush()
            for doubt in [] if as_json else doubts:
                told += 1
                if told <= MOST_DOUBTS or is_typed:
                    remark(f"weft: {unit} {number}: {doubt}")
    if told > MOST_DOUBTS and not is_typed:
        more = f"{told - MOST_DOUBTS:,} more such doubts"
        remark(f"weft: {more}; with --json each line says what is doubtful about it")
    for line in guesses.few() if as_json else guesses.lines():
        remark(f"weft: {line}")


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


def _only_column(
    names: Sequence[str], text: Sequence[str] | None, input_file: Path | None
) -> str | None:
    """Return the column of a table that is asked for, if any. Raises UsageError."""
    if not names:
        return None
    if text or input_file is None:
        raise UsageError("--column is one of a table's; give the table by --input FILE")
    if len(names) > 1:
        raise UsageError(
            f"--column is given {len(names)} times; one column gets a translation beside it, "
            "and with --document all of them are translated where they stand"
        )
    return names[0]


def _refuse_given(given: Path | None) -> None:
    """Raise UsageError for translations that are given where none can be."""
    if given is not None:
        raise UsageError(
            "--given is for lines of text; leave it out for a document or a table"
        )


def _table_form(
    input_file: Path | None,
    output_file: Path | None,
    column: str | None,
    n_best: int,
    as_json: bool,
) -> "TableForm | None":
    """Return the form of the table to write; None for lines. Raises UsageError."""
    form = None
    if input_file is not None and input_file.is_file() and column and not as_json:
        form = answer_form(input_file, output_file, column, "--column")
    if form is not None and n_best > 1:
        raise UsageError(
            f"--n-best {n_best}: a table gets one translation a row; "
            f"with --json and an --output .jsonl all are written"
        )
    return form


def _translated(
    number: int, prediction: "Prediction", n_best: int, as_json: bool
) -> str:
    if as_json:
        return json.dumps(prediction.to_json(), ensure_ascii=False) + "\n"
    if n_best == 1:
        return prediction.text + "\n"
    if not prediction.n_best:
        return f"{number}\t\t\n"
    rows = ""
    for alternative in prediction.n_best:
        text = alternative.text.replace("\t", " ")
        rows += f"{number}\t{alternative.score:.4f}\t{text}\n"
    return rows


def _classified(
    answer: "Classification",
    all_labels: bool,
    as_json: bool,
    row: Mapping[str, Any] | None,
) -> str:
    if as_json:
        value = answer.to_json()
        if row is not None:
            value = {"row": row, **value}
        if not all_labels:
            del value["probabilities"]
        return json.dumps(value, ensure_ascii=False) + "\n"
    if not all_labels:
        return f"{answer.label}\t{answer.probability:.4f}\n"
    ranked = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
    cells = [f"{label} {probability:.4f}" for label, probability in ranked]
    return "\t".join(cells) + "\n"
