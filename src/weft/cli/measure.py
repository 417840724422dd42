"""Verbs that evaluate models: evaluate, compare, score."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.answer_lines import scored_line
from weft.cli.models import (
    glossary_for,
    naming_options,
    opened,
    refuse_both,
    refuse_idle,
    refuse_missing_terms,
    refuse_unsaid_language,
    tagged,
    together,
    toward,
)
from weft.cli.on import BlockRows, On, Workers, spread_of
from weft.cli.options import (
    AsJson,
    BeamSize,
    Ensemble,
    Folder,
    GlossaryFiles,
    Kernels,
    LengthPenalty,
    Mbr,
    NoGlossary,
    Output,
    Precision,
    Tag,
    To,
    UsesShortlist,
    UtilityName,
)
from weft.cli.recipe import refuse_missing_text
from weft.cli.streams import print_json, reading_lines, sink
from weft.console import stages
from weft.console.wording import say_lines
from weft.errors import UsageError
from weft.folder.durable import sha256_of
from weft.folder.layout import holds_model_or_run, refuse_no_model
from weft.folder.model_files import refuse_other_task

if TYPE_CHECKING:
    from weft.data.corpus import ParallelText
    from weft.data.glossary import Glossary
    from weft.evaluation.terms import TermScores
    from weft.predict.language_model import LanguageModel
    from weft.predict.prediction import Prediction
    from weft.predict.translator import Translator
    from weft.tasks.task import Scored
    from weft.tasks.translation import Translation

_AT_A_TIME = (
    256  # texts that are translated together; the count rises after each such chunk
)


def evaluate(
    folder: Folder,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text like the training text. Default: the run's held-out text."
        ),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    mbr: Mbr = None,
    utility: UtilityName = None,
    ensemble: Ensemble = None,
    shortlist: UsesShortlist = None,
    glossary: GlossaryFiles = None,
    no_glossary: NoGlossary = False,
    to: To = None,
    tag: Tag = None,
    precision: Precision = "float32",
    kernels: Kernels = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a model on text: BLEU and chrF, loss and perplexity, or accuracy and F1."""
    refuse_no_model(folder)
    refuse_missing_text(data or ())
    terms_of = _Terms(folder, tuple(glossary or ()), no_glossary, tag, to)
    terms_of.refuse_missing()
    decoding: dict[str, Any] = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "mbr": mbr,
        "utility": utility,
        "shortlist": shortlist,
    }
    computing = (precision, kernels)
    with stages.showing("loading the model"):
        scored, terms, notes = _scored(
            folder, data or [], decoding, ensemble or [], computing, terms_of, as_json
        )
    if as_json:
        of_terms = {name: scores.to_json() for name, scores in terms.items()}
        more = {"terms": of_terms} if terms else {}
        notes = [*scored.contamination, *notes]
        print_json({**scored.to_json(), **more, "notes": notes})
        return
    for line in scored.lines():
        print(line)
    for line in _term_lines(terms):
        print(line)
    for note in notes:
        print(f"note: {note}")


@dataclass(frozen=True)
class _Terms:
    """The glossary that translations are scored with, that of files or else of a pack; the tag of
    the text that they are to be like, and the language to write.
    """

    folder: Path
    paths: Sequence[Path]
    leaves: bool
    tag: str | None = None
    to: str | None = None

    def refuse_missing(self) -> None:
        """Raise UsageError where a file is missing, or none is to be used."""
        refuse_both("glossary", self.paths, self.leaves)
        refuse_missing_terms(self.paths)

    def read(
        self, model: "Translator", decoding: dict[str, Any]
    ) -> tuple["Glossary | None", str]:
        """Return it with what it is known by; a pack's is not used for samples."""
        from weft.tasks.packed import packed_glossary

        if self.paths:
            hashes = [sha256_of(path)[:16] for path in self.paths]
            return glossary_for(model, self.paths), "+".join(hashes)
        if self.leaves or decoding["mbr"] is not None:
            return None, ""
        glossary = packed_glossary(self.folder)
        return glossary, glossary.sha256[:16] if glossary else ""


def _scored(
    folder: Path,
    data: list[str],
    decoding: dict[str, Any],
    others: list[Path],
    computing: tuple[str, str],
    terms_of: "_Terms",
    as_json: bool,
) -> tuple["Scored", dict[str, "TermScores"], list[str]]:
    """Return the scores, those of a glossary's terms without and with it, and the notes on them;
    print first whether the text was trained on.

    `others` are the models of an ensemble; `computing` is the precision and the kernels.
    """
    from weft.data.check.finding import counted
    from weft.run.begun import HELD_OUT, held_out
    from weft.tasks.task import training_hashes
    from weft.tasks.translation import Translation

    task = opened(folder, *computing)
    precision, _ = computing
    if not isinstance(task, Translation):
        asked = {**decoding, "tag": terms_of.tag, "to": terms_of.to}
        _refuse_decoding(folder, task.name, asked, others, precision, terms_of.paths)
    elif terms_of.to is not None:
        task = toward(task, terms_of.to)
    own: list[str] = []
    if data:
        text = task.read(data)
    else:
        part, text = held_out(folder)
        own.append(HELD_OUT[part])
        if terms_of.to is not None:
            assert isinstance(task, Translation)
            text = text.of(task.directions[0])
    trained_on = training_hashes(folder)
    if not as_json:
        for note in [*own, *task.shared_rows(text, trained_on)]:
            stages.say(f"note: {note}")
    stages.enter(f"scoring {counted(len(text), task.unit)}")
    settings: dict[str, Any] = {}
    terms: dict[str, TermScores] = {}
    if isinstance(task, Translation):
        settings |= decoding
        model = together(task, others, *computing)
        refuse_idle(precision, model.engine)
        model = tagged(model, terms_of.tag)
        if model.tag is not None:
            settings["tag"] = model.tag
        glossary, digest = terms_of.read(model, decoding)
        if glossary is not None:
            settings["glossary"] = digest
        with naming_options([*decoding, "glossary"]):
            predictions, terms = _translated(task, model, text, decoding, glossary)
        scores: Any = task.scores_of(text, predictions)
    else:
        scores = task.evaluate(text)
    if others:
        settings["models"] = 1 + len(others)
    scored = task.scored(text, scores, trained_on, settings)
    notes = [*own, *task.doubts(text, trained_on), *scored.to_json().get("notes", ())]
    return scored, terms, notes


def _translated(
    task: "Translation",
    model: "Translator",
    text: "ParallelText",
    decoding: dict[str, Any],
    glossary: "Glossary | None",
) -> tuple[list["Prediction"], dict[str, "TermScores"]]:
    """Return the translations, and the scores of a glossary's terms without and with it.

    Only sources with terms are translated twice: the others have the same translation.
    """
    if glossary is not None and model.can_align:
        decoding = {**decoding, "alignments": True}
    if glossary is not None and task.config.directions:
        raise UsageError("glossary: it is for one direction; say which by --to")
    bound = model.with_glossary(glossary)
    glossary = bound.glossary
    stream = _in_directions(bound, text, decoding)
    shown = stages.counted(stream, task.unit, every=1, total=len(text))
    found = dict(shown)
    predictions = [found[row] for row in range(len(text))]
    if glossary is None:
        return predictions, {}
    stages.enter("translating without the glossary")
    free = list(predictions)
    having = [number for number, src in enumerate(text.src) if glossary.find(src)]
    sources = [text.src[number] for number in having]
    again = model.translate_stream(sources, **decoding, chunk=_AT_A_TIME)
    for number, prediction in zip(having, again, strict=True):
        free[number] = prediction
    both = {"without": free, "with": predictions}
    scores = {
        name: task.term_scores(text, each, glossary) for name, each in both.items()
    }
    return predictions, scores


def _in_directions(
    model: "Translator", text: "ParallelText", decoding: dict[str, Any]
) -> Iterator[tuple[int, "Prediction"]]:
    """Yield the translation of each source with its number, direction by direction."""
    for pair in text.directions:
        rows = text.rows_of(pair)
        chosen = model.toward(pair[1], pair[0]) if model.directions else model
        sources = [text.src[row] for row in rows]
        stream = chosen.translate_stream(sources, **decoding, chunk=_AT_A_TIME)
        yield from zip(rows, stream, strict=True)


def _term_lines(terms: dict[str, "TermScores"]) -> list[str]:
    from weft.evaluation.terms import term_table

    return term_table(terms) if terms else []


def _refuse_decoding(
    folder: Path,
    task: str,
    decoding: dict[str, Any],
    others: list[Path],
    precision: str,
    glossaries: Sequence[Path],
) -> None:
    """Raise UsageError for an option of translators with a model for another task."""
    names = [name for name, value in decoding.items() if value is not None]
    if others:
        names.append("ensemble")
    if glossaries:
        names.append("glossary")
    if names:
        why = "searches nothing"
    elif precision != "float32":
        names.append("precision")
        why = "is scored in float32"
    else:
        return
    option = names[0].replace("_", "-")
    raise UsageError(f"--{option}: {folder} holds a model for {task}, which {why}")


def compare(
    first: Annotated[Path, typer.Argument(help="A model folder.")],
    second: Annotated[
        Path, typer.Argument(help="Another model folder, for the same task.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text like the training text. Default: the first run's held-out text."
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            help="Training pairs: compare also by the words' frequency in them."
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, help="Number of bootstrap resamples.")
    ] = 1000,
    show: Annotated[
        int,
        typer.Option(min=0, help="Rows to show that differ most, in each direction."),
    ] = 5,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    to: To = None,
    as_json: AsJson = False,
) -> None:
    """Compare two models: which is better, by how much, where, and whether it is chance."""
    for folder in (first, second):
        refuse_no_model(folder)
        refuse_unsaid_language(folder, to)
    for item in data or ():
        if holds_model_or_run(Path(item)):
            raise UsageError(
                f"{item}: is a third model, and two are compared; compare several in pairs, each with the text"
            )
    refuse_missing_text([*(data or ()), *(train or ())])
    with stages.showing("loading PyTorch"):
        from weft.looking import compare_models

        decoding = {"beam_size": beam_size, "length_penalty": length_penalty}
        with naming_options([*decoding, "to"]):
            comparison = compare_models(
                (first, second),
                data or (),
                train=train or (),
                samples=samples,
                show=show,
                decoding=decoding,
                to=to,
                sets_threads=True,
            )
    if as_json:
        print_json(comparison.to_json())
        return
    say_lines(comparison.lines(), sys.stdout)


def score(
    folder: Folder,
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            help="File with one text per line, with --on several. Default: standard input."
        ),
    ] = None,
    output_file: Output = None,
    kernels: Kernels = "auto",
    on: On = None,
    workers: Workers = None,
    block_rows: BlockRows = None,
    as_json: AsJson = False,
) -> None:
    """Score each line with a language model: log-probability, perplexity and text."""
    refuse_other_task(folder, "language-modelling")
    if (spread := spread_of(on, workers, block_rows)) is not None:
        files = spread.files(data, None, output_file, as_json)
        from weft.cli.works import scoring

        work = scoring(folder, kernels, as_json)
        _say_sums(files.answer(work, ".jsonl" if as_json else ".tsv"))
        return
    path = _only_file(data or ())
    with stages.showing("loading the model"):
        task = opened(folder, kernels=kernels)
        model = task.predictor()
        stages.enter("")  # the user may be asked to type lines
        sums = _score_lines(model, path, output_file, as_json)
    _say_sums(sums)


def _only_file(data: Sequence[Path]) -> Path | None:
    """Return the file that is named, if any. Raises UsageError for several, or one that is not
    there.
    """
    if len(data) > 1:
        raise UsageError(
            f"{data[1]}: one file is scored at a time; --on local takes several"
        )
    for path in data:
        if path.is_file():
            return path
        why = "no such file; a text itself goes to standard input"
        if path.is_dir():
            why = "is a folder; name a file in it"
        raise UsageError(f"{path}: {why}")
    return None


def _score_lines(
    model: "LanguageModel", data: Path | None, output: Path | None, as_json: bool
) -> Counter[str]:
    """Write each line's score; return the sums over all lines, as `scored_line` has them.

    A terminal that shows the scores needs no status line.
    """
    sums: Counter[str] = Counter()
    with reading_lines(None, data, output) as source, sink(output) as out:
        is_typed = source.chunk == 1
        is_shown = output is None and sys.stdout.isatty()
        stages.enter("" if is_typed or is_shown else "scoring")
        for line in stages.counted(source.lines, "lines", every=1):
            text, own = scored_line(model, line, as_json)
            out.write(text)
            sums.update(own)
            if is_typed:
                out.flush()
    return sums


def _say_sums(sums: Mapping[str, float]) -> None:
    """Say how many lines were blank, and what a token has on average."""
    num_blank = int(sums.get("blank", 0))
    num_tokens = int(sums.get("tokens", 0))
    if num_blank:
        were = "line was" if num_blank == 1 else "lines were"
        print(f"{num_blank:,} blank {were} not scored", file=sys.stderr)
    if num_tokens:
        mean = sums["log_prob"] / num_tokens
        print(f"{num_tokens:,} tokens, mean {mean:.4f} nats a token", file=sys.stderr)
