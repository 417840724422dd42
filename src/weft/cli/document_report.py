"""The report of weft translate on a document: doubts, what is not translated, how much is."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.done import AllDone, Done
from weft.cli.doubts import near_matches
from weft.cli.guesses import Guesses
from weft.cli.models import Opened
from weft.cli.review import of_whole
from weft.cli.streams import sink
from weft.console.wording import remark

if TYPE_CHECKING:
    from weft.documents.document import Document, Segment, Translated
    from weft.documents.writing import Mended
    from weft.inspection.review import Reviewed

_MOST_SHOWN = 20  # notes and doubts that are printed one by one
_MOST_NEAR = 5  # units of a memory


def report(
    document: "Document[bytes]",
    done: AllDone,
    output: Path,
    found: Opened,
    as_json: bool,
    review: Path | None = None,
) -> None:
    """Print what the model doubts, what is not translated, and how much is; the segments, too,
    where they are asked for.
    """
    if as_json:
        with sink(None) as out:
            for line in _objects(document, done):
                out.write(line)
    else:
        where = f"{review} has" if review is not None else "--json or --review lists"
        _show(_doubtful(document, done), f"doubts; {where} them all")
        near = _near(document, done)
        _show(near, f"near matches; {where} them all", _MOST_NEAR)
    guesses = Guesses(unit="")
    for number, text in first_places(document):
        one = done.of[text]
        guesses.see(one, number, document.place(number))
        guesses.unaligned += one.is_unaligned
        guesses.see_words(word.get("quality") for word in one.words or ())
        if one.terms is not None:
            guesses.see_terms(use["status"] for use in one.terms)
        guesses.see_memory(one.uses, bool(one.taken))
        guesses.see_source(text, found.model.glossary)
    for line in guesses.few() if as_json else guesses.lines():
        remark(f"weft: {line}")
    notes = [f"{note.place}: {note.text}" for note in document.notes]
    _show(notes, "such places")
    remark(f"weft: {output}: {_summary(document, found)}")


def _objects(document: "Document[bytes]", done: AllDone) -> Iterator[str]:
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


def reviewed_text(
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
    """Return the doubts about the numbers and tags of a segment, as the terminal has doubts."""
    doubts = [f"numbers: {_as_doubt(remark)}" for remark in mended.number_remarks()]
    if mended.is_placed_anew:
        from weft.documents.writing import PLACED_ANEW

        doubts.append(f"memory: {_as_doubt(PLACED_ANEW)}")
    return doubts


def _as_doubt(remark: str) -> str:
    return remark[0].lower() + remark[1:].rstrip(".")


def first_places(document: "Document[bytes]") -> Iterator[tuple[int, str]]:
    """Yield each text once, with the number of the first segment that has it."""
    seen: set[str] = set()
    for number, segment in enumerate(document.segments):
        if segment.text not in seen:
            seen.add(segment.text)
            yield number, segment.text


def _doubtful(document: "Document[bytes]", done: AllDone) -> list[str]:
    """Return the doubts about translations, each with its place."""
    return [
        f"{document.place(number)}: {doubt}"
        for number, text in first_places(document)
        for doubt in [*done.of[text].doubts, *_of_numbers(done.mended[number])]
    ]


def _near(document: "Document[bytes]", done: AllDone) -> list[str]:
    """Return what a memory offers for texts, each with its place."""
    return [
        f"{document.place(number)}: {match}"
        for number, text in first_places(document)
        for match in near_matches(done.of[text].uses)
    ]


def _show(lines: Sequence[str], what: str, most: int = _MOST_SHOWN) -> None:
    """Print the first lines, and how many more there are."""
    for line in lines[:most]:
        remark(f"weft: {line}")
    if len(lines) > most:
        remark(f"weft: {len(lines) - most:,} more {what}")


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
    repeats = count - sum(1 for _ in first_places(document))
    segments = _counted(count, "segment")
    parts = [_counted(sentences, "sentence")]
    if repeats:
        parts.append(_counted(repeats, "repeat"))
    return f"{segments} translated ({', '.join(parts)})"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
