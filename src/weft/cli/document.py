"""A document that weft translate reads and writes again, in its own form."""

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from weft.cli.doubts import doubts_of
from weft.cli.guesses import Guesses
from weft.cli.models import Opened, Translators, naming_options
from weft.cli.review import close_review, of_whole, open_review
from weft.cli.streams import progress, refuse_no_file, refuse_same_file, sink
from weft.console.wording import remark
from weft.errors import DataError, UsageError

if TYPE_CHECKING:
    from weft.documents.document import Document, Segment, Translated
    from weft.documents.registry import Format
    from weft.documents.writing import Mended
    from weft.inspection.review import Reviewed
    from weft.predict.memory_use import MemoryUse
    from weft.predict.prediction import Prediction
    from weft.predict.settings import DecodingSettings
    from weft.predict.words import SourceWord

_CHUNK = 128  # texts that an interruption may cost
_FEWEST = 50  # texts for which a bar is shown
_MOST_SHOWN = 20  # notes and doubts that are printed one by one
_PLAIN = (".txt",)  # endings of files that may as well be lines


@dataclass(frozen=True)
class Asked:
    """A document to translate, and what is asked for beside it."""

    path: Path
    output: Path | None
    columns: tuple[str, ...]
    as_json: bool
    review: Path | None = None


@dataclass(frozen=True)
class Done:
    """The translation of a text, as it is kept until all are done.

    `remarks` go into the document, `doubts` to the terminal. The alignment has places as
    `Translated` has them.
    """

    text: str
    score: float | None
    confidence: float | None
    remarks: list[str]
    doubts: list[str]
    unknown_words: list[str]
    unsure: bool
    is_unaligned: bool
    alignment: list[list[int]]
    words: list[dict[str, Any]] | None
    terms: list[dict[str, Any]] | None = None
    memory: list[dict[str, Any]] | None = None
    offers: list[dict[str, Any]] = field(default_factory=list)
    taken: str = ""
    stands: dict[str, str] = field(default_factory=dict)
    quality: float | None = None
    omitted: list[dict[str, Any]] | None = None
    doubled: list[str] | None = None

    @property
    def uses(self) -> "list[MemoryUse] | None":
        """Return what a memory has of it."""
        from weft.predict.memory_use import MemoryUse

        if self.memory is None:
            return None
        return [MemoryUse(**use) for use in self.memory]

    def translated(self, languages: tuple[str, str]) -> "Translated":
        """Return it as a document takes it; languages are BCP-47, empty where unknown."""
        from weft.documents.document import Doubt, Translated

        alignment = [(a, b, c, d) for a, b, c, d in self.alignment]
        doubt = Doubt.from_json(asdict(self))
        words = [(word["start"], word["end"]) for word in self.words or ()]
        return Translated(self.text, alignment, doubt, self.stands, languages, words)


@dataclass(frozen=True)
class _AllDone:
    """The translations of a document: `of` its texts, and as its segments are written."""

    of: Mapping[str, Done]
    mended: "Sequence[Mended]"


def document_of(
    texts: Sequence[str],
    input_file: Path | None,
    columns: Sequence[str],
    is_asked: bool,
) -> Path | None:
    """Return the file that is translated as a document; None for texts, lines and tables.

    Without being asked, that is a file whose ending says a format, but for plain text and tables.
    Raises UsageError where a document stands among other texts.
    """
    if texts and input_file is not None:
        raise UsageError("give texts or --input, not both")
    paths = [Path(text) for text in texts]
    if input_file is not None:
        paths = [input_file]
    if is_asked:
        if len(paths) != 1:
            raise UsageError("--document takes one file; give its name")
        if not os.path.isfile(paths[0]):
            raise UsageError(f"{paths[0]}: no such file; --document takes one")
        return paths[0]
    found = [path for path in paths if _is_document(path, columns)]
    if found and len(paths) > 1:
        raise UsageError(
            f"{found[0]} is a document: give it alone, and further ones with commands of their own"
        )
    for text in texts:
        if _may_be_missing(text):
            remark(f"weft: {text} is taken as a text: there is no such file")
    return found[0] if found else None


def _may_be_missing(text: str) -> bool:
    """Return whether a text looks like the name of a document that is not there."""
    from weft.documents.registry import FORMATS

    path = Path(text)
    endings = {ending for row in FORMATS.values() for ending in row.endings}
    is_name = path.suffix.lower() in endings and len(text.split()) == 1
    return is_name and not os.path.exists(path)


def _is_document(path: Path, columns: Sequence[str]) -> bool:
    from weft.documents.registry import FORMATS

    if not os.path.isfile(path):  # which takes any text
        return False
    ending = path.suffix.lower()
    is_known = any(ending in row.endings for row in FORMATS.values())
    return is_known and not _is_rather_lines(path, columns)


def _is_rather_lines(path: Path, columns: Sequence[str] = ()) -> bool:
    """Return whether a file is read as lines, or rows of a table, unless it is said to be a
    document. JSON is, where a column is asked for.
    """
    from weft.data.formats.filetype import type_of_name

    kind = type_of_name(path)
    if kind is None:
        return path.suffix.lower() in _PLAIN
    return kind.table != "" and (kind.name != "json" or bool(columns))


def translate_document(
    asked: Asked, models: Translators, settings: "DecodingSettings"
) -> None:
    """Translate a document into a file of the same format, and say what came of it."""
    from weft.documents.kept import ReadDocument
    from weft.documents.registry import format_of

    row = format_of(str(asked.path))
    _refuse_options(asked, row, settings)
    if asked.output is not None:
        _refuse_other_format(asked.output, row)
        refuse_same_file(asked.path, asked.output)
        refuse_no_file(asked.output)
    found = models.open(of_document=True)
    output = asked.output or _usual_name(asked.path, found)
    content = _read(asked.path)
    document = ReadDocument(_opened(row, content, asked, found), found.model.kept_forms)
    page = None
    if asked.review is not None:
        page = open_review(asked.review, asked.path, output, found)
    settings = _with_alignments(document, settings, found, asked.as_json)
    facts = models.facts(sha256(content).hexdigest(), settings, found)
    facts |= {"json": asked.as_json, "columns": list(asked.columns)}
    done = _write(document, output, settings, found, facts)
    _report(document, done, output, found, asked.as_json)
    if page is not None:
        for number, text in _first_places(document):
            one = done.of[text]
            segment = document.segments[number]
            place = document.place(number)
            page.add(_reviewed(place, segment, one, done.mended[number]))
        close_review(page)


def _refuse_options(asked: Asked, row: "Format", settings: "DecodingSettings") -> None:
    """Raise UsageError for options that mean nothing for a document."""
    if settings.n_best > 1:
        raise UsageError(
            f"--n-best {settings.n_best}: a document has one translation of each segment; leave it out"
        )
    if asked.columns and not row.has_columns:
        raise UsageError(
            f"--column: {asked.path} has no columns that could be chosen; leave it out"
        )


def _refuse_other_format(output: Path, row: "Format") -> None:
    """Raise UsageError for an output whose ending says another format than the input's."""
    if output.suffix.lower() not in row.endings:
        listed = " or ".join(row.endings)
        raise UsageError(
            f"--output {output}: the translation is written in the format of the document; name it {listed}"
        )


def _usual_name(path: Path, found: Opened) -> Path:
    """Return the name of the translation where none is given: `brief.de.docx` of `brief.docx` and
    of `brief.en.docx`.

    Raises UsageError where there is such a file, or the model does not say its languages.
    """
    src, tgt = _languages(found)
    if not tgt:
        raise UsageError(
            "the model does not say into which language it translates; name the file to write: --output FILE"
        )
    stem = path.stem
    if src:
        stem = stem.removesuffix(f".{src}")
    output = path.with_name(f"{stem}.{tgt}{path.suffix}")
    if output.exists():
        raise UsageError(
            f"{output}: exists already; name the file to write: --output FILE"
        )
    return output


def _languages(found: Opened) -> tuple[str, str]:
    """Return the languages of the model, empty where it does not say them."""
    from weft.data.languages import UNKNOWN

    config = found.task.config
    known = {UNKNOWN: ""}
    src, tgt = config.src_lang, config.tgt_lang
    return known.get(src, src), known.get(tgt, tgt)


def _read(path: Path) -> bytes:
    from weft.data.formats.source import open_file

    with open_file(path) as file:
        return file.read()


def _opened(
    row: "Format", content: bytes, asked: Asked, found: Opened
) -> "Document[bytes]":
    """Read a document. Raises DataError for a damaged one."""
    from weft.documents.document import Reading

    reading = Reading(str(asked.path), *_languages(found), columns=asked.columns)
    try:
        return row.open(content, reading)
    except UsageError as error:
        raise DataError(str(error)) from None


def _with_alignments(
    document: "Document[bytes]",
    settings: "DecodingSettings",
    found: Opened,
    as_json: bool,
) -> "DecodingSettings":
    """Return the settings, with alignments where they are of use and the model has them."""
    from weft.documents.driver import needs_alignment

    is_needed = needs_alignment(document)
    if not found.model.can_align:
        if is_needed:
            remark(
                "weft: note: this model does not say which words belong together; "
                "tags and placeholders inside sentences go to proportional places"
            )
        return settings
    wanted = is_needed or as_json or settings.alignments
    return replace(settings, alignments=wanted)


def _write(
    document: "Document[bytes]",
    output: Path,
    settings: "DecodingSettings",
    found: Opened,
    facts: Mapping[str, Any],
) -> "_AllDone":
    """Translate and write a document; return its translations.

    What is done is kept beside the output until that is written, so that the same command goes on
    after an interruption.
    """
    from weft.documents.driver import mended, texts_of, write_mended
    from weft.folder import durable

    texts = texts_of(document)
    with durable.collecting(output, facts) as (file, count):
        if count:
            remark(f"weft: {output}: continues after {count:,} of {len(texts):,} texts")
        done = _kept(file, output, texts[:count])
        try:
            _translate_rest(texts[count:], file, done, settings, found)
        except KeyboardInterrupt:
            if done:
                remark(
                    f"weft: {output}: interrupted; {len(done):,} of {len(texts):,} texts are kept, "
                    "and the same command continues it"
                )
            raise
        languages = _languages(found)
        every = mended(document, [done[text].translated(languages) for text in texts])
        durable.write_bytes(output, write_mended(document, every))
    return _AllDone(done, every)


def _kept(file: BinaryIO, output: Path, texts: Sequence[str]) -> dict[str, Done]:
    """Read the translations of texts that an interrupted command has left, a line each."""
    file.seek(0)
    try:
        found = [Done(**json.loads(line)) for line in islice(file, len(texts))]
    except (ValueError, TypeError):
        raise UsageError(
            f"{output}.partial: is damaged; remove it, and give the same command again"
        ) from None
    file.seek(0, io.SEEK_END)
    return dict(zip(texts, found, strict=True))


def _translate_rest(
    texts: Sequence[str],
    file: BinaryIO,
    done: dict[str, Done],
    settings: "DecodingSettings",
    found: Opened,
) -> None:
    """Translate texts, and keep each translation in `done` and as a line of the file."""
    from weft.predict.settings import DecodingSettings

    with naming_options(DecodingSettings.__dataclass_fields__):
        predictions = found.model.translate_stream(texts, settings, chunk=_CHUNK)
    total = len(done) + len(texts)
    with progress(total, len(done), "texts", _FEWEST) as advance:
        for text, prediction in zip(texts, predictions, strict=True):
            one = _done(text, prediction, settings, found)
            line = json.dumps(asdict(one)) + "\n"
            file.write(line.encode())
            file.flush()
            done[text] = one
            advance()


def _done(
    text: str, prediction: "Prediction", settings: "DecodingSettings", found: Opened
) -> Done:
    from weft.predict.document import for_document

    translated = for_document(text, prediction)
    words = None
    if prediction.words is not None:
        words = [word.to_json() for word in prediction.words]
    terms = None
    if prediction.terms is not None:
        terms = [use.to_json() for use in prediction.terms]
    memory = None
    if prediction.memory is not None:
        memory = [use.to_json() for use in prediction.memory]
    return Done(
        text=translated.text,
        score=prediction.score,
        confidence=translated.doubt.confidence,
        remarks=list(translated.doubt.remarks),
        doubts=doubts_of(prediction, text, found.task.config, settings, is_line=False),
        unknown_words=prediction.unknown_words,
        unsure=prediction.unsure,
        is_unaligned=prediction.is_unaligned,
        alignment=[list(link) for link in translated.alignment],
        words=words,
        terms=terms,
        memory=memory,
        offers=[asdict(offer) for offer in translated.doubt.offers],
        taken=translated.doubt.taken,
        stands=dict(translated.stands),
        quality=prediction.quality,
        omitted=_as_objects(prediction.omitted),
        doubled=prediction.doubled,
    )


def _as_objects(words: "Sequence[SourceWord] | None") -> list[dict[str, Any]] | None:
    if words is None:
        return None
    return [dict(vars(word)) for word in words]


def _report(
    document: "Document[bytes]",
    done: _AllDone,
    output: Path,
    found: Opened,
    as_json: bool,
) -> None:
    """Print what the model doubts, what is not translated, and how much is; the segments, too,
    where they are asked for.
    """
    if as_json:
        with sink(None) as out:
            for line in _objects(document, done):
                out.write(line)
    else:
        _show(_doubtful(document, done), "doubts; --json lists them all")
    guesses = Guesses(unit="")
    for number, text in _first_places(document):
        one = done.of[text]
        guesses.see(one, number, document.place(number))
        guesses.unaligned += one.is_unaligned
        guesses.see_words(word.get("quality") for word in one.words or ())
        if one.terms is not None:
            guesses.see_terms(use["status"] for use in one.terms)
        guesses.see_memory(one.uses, bool(one.taken))
    for line in guesses.few() if as_json else guesses.lines():
        remark(f"weft: {line}")
    notes = [f"{note.place}: {note.text}" for note in document.notes]
    _show(notes, "such places")
    remark(f"weft: {output}: {_summary(document, found)}")


def _objects(document: "Document[bytes]", done: _AllDone) -> Iterator[str]:
    """Yield a line of JSON for each segment, with its translation as it is written."""
    for number, segment in enumerate(document.segments):
        one = done.of[segment.text]
        mended = done.mended[number]
        shown = mended.shown()
        value = {
            "place": document.place(number),
            "source": segment.text,
            "text": shown.text,
            "score": one.score,
            "confidence": one.confidence,
            "doubts": mended.doubt.remarks,
            "unknown_words": one.unknown_words,
            "words": None if one.words is None else _at(one.words, shown),
        }
        more = {
            "terms": one.terms,
            "memory": one.memory,
            "quality": one.quality,
            "omitted": one.omitted,
            "doubled": one.doubled,
        }
        value |= {key: known for key, known in more.items() if known is not None}
        yield json.dumps(value, ensure_ascii=False) + "\n"


def _at(found: Sequence[dict[str, Any]], shown: "Translated") -> list[dict[str, Any]]:
    """Return words or terms at their places in a text as it is shown, those that are there."""
    placed = []
    for one, (start, end) in zip(found, shown.words, strict=False):
        if start < end:
            place = {"text": shown.text[start:end], "start": start, "end": end}
            placed.append(one | place)
    return placed


def _reviewed(
    place: str, segment: "Segment", one: Done, mended: "Mended"
) -> "Reviewed":
    """Return a segment and its translation as the page of the review shows them."""
    from weft.documents.writing import shown_source
    from weft.inspection.review import Reviewed

    doubts = [*one.doubts, *_of_numbers(mended)]
    shown = mended.shown()
    omitted = one.omitted or []
    terms = one.terms or []
    marks = [(mark["start"], mark["end"]) for mark in [*omitted, *terms]]
    source = shown_source(segment, marks)
    return Reviewed(
        place,
        source.text,
        shown.text,
        one.confidence,
        [*doubts, *of_whole(one.unsure, one.unknown_words)],
        _at(one.words or (), shown),
        _at(omitted, source),
        one.unknown_words,
        _at(terms, replace(source, words=source.words[len(omitted) :])),
        one.memory or (),
    )


def _of_numbers(mended: "Mended") -> list[str]:
    """Return the doubts about the numbers of a segment, as the terminal has doubts."""
    return [
        f"numbers: {remark[0].lower()}{remark[1:].rstrip('.')}"
        for remark in mended.numbers.remarks()
    ]


def _first_places(document: "Document[bytes]") -> Iterator[tuple[int, str]]:
    """Yield each text once, with the number of the first segment that has it."""
    seen: set[str] = set()
    for number, segment in enumerate(document.segments):
        if segment.text not in seen:
            seen.add(segment.text)
            yield number, segment.text


def _doubtful(document: "Document[bytes]", done: _AllDone) -> list[str]:
    """Return the doubts about translations, each with its place."""
    return [
        f"{document.place(number)}: {doubt}"
        for number, text in _first_places(document)
        for doubt in [*done.of[text].doubts, *_of_numbers(done.mended[number])]
    ]


def _show(lines: Sequence[str], what: str) -> None:
    """Print the first lines, and how many more there are."""
    for line in lines[:_MOST_SHOWN]:
        remark(f"weft: {line}")
    if len(lines) > _MOST_SHOWN:
        remark(f"weft: {len(lines) - _MOST_SHOWN:,} more {what}")


def _summary(document: "Document[bytes]", found: Opened) -> str:
    """Say how much was translated."""
    from weft.data.segment import split_sentences

    count = len(document.segments)
    if not count:
        return "nothing in it is to be translated; it is written as it is"
    language = found.task.config.src_lang
    sentences = sum(
        len(split_sentences(segment.text, language)) for segment in document.segments
    )
    repeats = count - sum(1 for _ in _first_places(document))
    segments = _counted(count, "segment")
    said = f"{segments} translated, of {_counted(sentences, 'sentence')}"
    return f"{said}; of these segments {repeats:,} repeat others" if repeats else said


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def about_documents() -> str:
    """Say for the help which files are documents."""
    from weft.documents.registry import FORMATS

    taken: list[str] = []
    asked: list[str] = []
    lacking: list[str] = []
    for row in FORMATS.values():
        for ending in row.endings:
            if row.missing:
                lacking.append(ending)
            elif _is_rather_lines(Path(f"a{ending}")):
                asked.append(ending)
            else:
                taken.append(ending)
    said = f"{', '.join(taken)}; with --document also {', '.join(asked)}"
    if lacking:
        said += f"; with the extra documents {', '.join(lacking)}"
    return f"Documents have one of these endings: {said}."
