"""The verb that translates: texts, lines, the rows of a table, a document."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.answer_lines import translated_line
from weft.cli.answers import (
    TRANSLATION_COLUMNS,
    AnswerTable,
    answer_form,
    named_row,
    refuse_other_form,
    translation_cells,
    write_answers,
)
from weft.cli.document import Asked, translate_document
from weft.cli.document_names import document_of
from weft.cli.doubts import doubts_of, near_matches
from weft.cli.guesses import Guesses
from weft.cli.models import Translators, naming_options
from weft.cli.on import BlockRows, Files, On, Workers, say_doubtful, spread_of
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
    GlossaryFiles,
    InputOrDocument,
    Kernels,
    LengthPenalty,
    Mbr,
    MemoryFiles,
    MinP,
    NoGlossary,
    NoMemory,
    NoRepeatNgrams,
    NumBest,
    OutputOrDocument,
    Precision,
    Prefix,
    ReviewFile,
    Seed,
    Tag,
    Temperature,
    TextsOrDocument,
    To,
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
from weft.cli.streams import Lines, reading_column, reading_lines, refuse_broken
from weft.errors import UsageError
from weft.folder.model_files import refuse_other_task

if TYPE_CHECKING:
    from weft.data.formats.table_form import TableForm
    from weft.predict.settings import DecodingSettings

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
    glossary: GlossaryFiles = None,
    no_glossary: NoGlossary = False,
    memory: MemoryFiles = None,
    no_memory: NoMemory = False,
    to: To = None,
    tag: Tag = None,
    given: GivenFile = None,
    review: ReviewFile = None,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    on: On = None,
    workers: Workers = None,
    block_rows: BlockRows = None,
    as_json: AsJson = False,
) -> None:
    """Translate texts, a line of output for each line or table row; or a document as it stands."""
    refuse_other_task(folder, "translation")
    refuse_broken({"--prefix": prefix})
    spread = spread_of(on, workers, block_rows)
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
    # samples are bound by no glossary that is not asked for
    is_drawn = settings.sampling is not None or exhaustive is not None
    models = Translators(
        folder,
        ensemble or [],
        precision,
        kernels,
        tuple(glossary or ()),
        tuple(memory or ()),
        no_glossary or (is_drawn and not glossary),
        no_memory,
        tag,
        to,
    )
    models.refuse_missing()
    names = tuple(columns or ())
    if spread is not None:
        beside: dict[str, Any] = {
            "--column": names,
            "--document": as_document,
            "--given": given,
        }
        beside["--review"] = review
        files = spread.files(text, input_file, output_file, as_json, beside)
        _translate_on(files, models, settings, as_json)
        return
    document = document_of(text or [], input_file, names, as_document)
    if document is not None:
        _refuse_given(given)
        asked = Asked(document, output_file, names, as_json, review)
        translate_document(asked, models, settings)
        return
    texts = _Asked(input_file, output_file, n_best, as_json, given, review)
    _translate_texts(text, names, texts, models, settings)


def _translate_on(
    files: Files,
    models: Translators,
    settings: "DecodingSettings",
    as_json: bool,
) -> None:
    """Translate the lines of files in blocks, by several workers."""
    from weft.cli.works import translating
    from weft.predict.settings import DecodingSettings

    with naming_options(DecodingSettings.__dataclass_fields__):
        work = translating(models, settings, as_json)
    suffix = ".txt" if settings.n_best == 1 else ".tsv"
    say_doubtful(files.answer(work, ".jsonl" if as_json else suffix), as_json)


@dataclass(frozen=True)
class _Asked:
    """Options beside the translations of lines or of a table's rows; `form` is that of the table to
    write.
    """

    input_file: Path | None
    output_file: Path | None
    n_best: int
    as_json: bool
    given: Path | None
    review: Path | None
    form: "TableForm | None" = None

    @property
    def can_continue(self) -> bool:
        """Return whether an interrupted output can be continued: not that of a table, whose lines
        are not its rows, and not with a page, which has all of them.
        """
        is_lines = self.form is None and (self.n_best == 1 or self.as_json)
        is_alone = self.review is None and self.given is None
        return self.input_file is not None and is_lines and is_alone


def _translate_texts(
    text: list[str] | None,
    columns: Sequence[str],
    asked: _Asked,
    models: Translators,
    settings: "DecodingSettings",
) -> None:
    """Translate lines, or the column of a table that is asked for."""
    source, output = asked.input_file, asked.output_file
    column = _only_column(columns, text, source)
    if column is not None:
        _refuse_given(asked.given)
    form = _table_form(source, output, column, asked.n_best, asked.as_json)
    has_table = form is not None
    if source is not None and column is not None:
        reading = reading_column(source, output, column, has_table)
    else:
        reading = reading_lines(text, source, output, has_columns=True)
    with reading as lines:
        refuse_other_form(output, source, asked.as_json, has_table, _FOR_TABLE)
        _translate_lines(lines, models, settings, replace(asked, form=form))


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
            guesses.see_source(line, model.glossary)
            said = doubts_of(prediction, line, found.task.config, settings)
            if source.is_short:
                said += near_matches(prediction.memory)
            if page is not None:
                place = name or f"{source.unit} {number}"
                page.add(reviewed(place, line, prediction, said))
            if table is not None:
                output = table.row(row, translation_cells(prediction, said))
            elif written is not None and not as_json:
                output = judged_line(prediction, said)
            else:
                output = translated_line(number, prediction, asked.n_best, as_json)
            yield output, said

    head = table.head() if table is not None else ""
    write_answers(answers, source, asked.output_file, as_json, facts, guesses, head)
    if page is not None:
        close_review(page)


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
