"""A document that weft translate reads and writes again, in its own form."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.document_report import first_places, report, reviewed_text
from weft.cli.done import AllDone, kept_texts, translate_rest
from weft.cli.models import Opened, Translators
from weft.cli.review import close_review, open_review
from weft.cli.streams import refuse_existing, refuse_no_file, refuse_same_file
from weft.console.wording import remark
from weft.errors import DataError, Interrupted, UsageError

if TYPE_CHECKING:
    from weft.documents.document import Document
    from weft.documents.registry import Format
    from weft.predict.settings import DecodingSettings


@dataclass(frozen=True)
class Asked:
    """A document to translate, and what is asked for beside it."""

    path: Path
    output: Path | None
    columns: tuple[str, ...]
    as_json: bool
    review: Path | None = None


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
        refuse_existing(asked.output)
    found = models.open(of_document=True)
    output = asked.output or _usual_name(asked.path, found)
    content = _read(asked.path)
    document = ReadDocument(_opened(row, content, asked, found), found.model.kept_forms)
    page = None
    if asked.review is not None:
        page = open_review(asked.review, asked.path, output, found)
    settings = _with_alignments(document, settings, found, asked)
    facts = models.facts(sha256(content).hexdigest(), settings, found)
    facts |= {"json": asked.as_json, "columns": list(asked.columns)}
    done = _write(document, output, settings, found, facts)
    report(document, done, output, found, asked.as_json, asked.review)
    if page is not None:
        for number, text in first_places(document):
            segment = document.segments[number]
            place = document.place(number)
            mended = done.mended[number]
            page.add(reviewed_text(place, segment, done.of[text], mended))
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
    asked: Asked,
) -> "DecodingSettings":
    """Return the settings, with alignments where they are of use and the model has them: also for
    a page or JSON, which mark words.
    """
    from weft.documents.driver import needs_alignment

    is_needed = needs_alignment(document)
    if not found.model.can_align:
        if is_needed:
            remark(
                "weft: note: this model does not say which words belong together; "
                "tags and placeholders inside sentences go to proportional places"
            )
        return settings
    marks_words = asked.as_json or asked.review is not None
    wanted = is_needed or marks_words or settings.alignments
    return replace(settings, alignments=wanted)


def _write(
    document: "Document[bytes]",
    output: Path,
    settings: "DecodingSettings",
    found: Opened,
    facts: Mapping[str, Any],
) -> AllDone:
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
        done = kept_texts(file, output, texts[:count])
        try:
            translate_rest(texts[count:], file, done, settings, found)
        except KeyboardInterrupt:
            if not done:
                raise
            kept = f"{len(done):,} of {len(texts):,} texts are kept"
            raise Interrupted(
                f"{output}: interrupted; {kept}, and the same command continues it"
            ) from None
        languages = _languages(found)
        every = mended(document, [done[text].translated(languages) for text in texts])
        durable.write_bytes(output, write_mended(document, every))
    return AllDone(done, every)
