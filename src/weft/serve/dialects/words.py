"""The words of a translation as a client sees them: with their places in its own text and in what
it gets back, the probability of each, and the words that it comes from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.documents.document import Segment
from weft.documents.formats.web.html import decoded_spans
from weft.predict.words import SourceWord
from weft.serve.dialects.answers import Answer

Range = tuple[int, int]
_HIDDEN = "\0"  # in the place of tags, where no word is to be found


@dataclass(frozen=True)
class Pieces:
    """Both sides of a translation in pieces, whose spaces are written as ▁, and pairs of pieces
    that belong together.
    """

    source: list[str]
    target: list[str]
    pairs: list[tuple[int, int]]


def words_of(answer: Answer) -> list[dict[str, Any]]:
    """Return the words of a translation in their order, with their quality where it is known.
    Characters are counted in Unicode.
    """
    rows = []
    for word in _placed(answer):
        row: dict[str, Any] = {
            "text": word.text,
            "start": word.start,
            "end": word.end,
            "probability": word.probability,
            "source": [list(place) for place in word.source],
        }
        if word.quality is not None:
            row["quality"] = word.quality
        rows.append(row)
    return rows


def aligned_pieces(source: str, answer: Answer) -> Pieces:
    """Divide a text and its translation into words, for tools that put tags back by them.

    Where there is no alignment, each side is a single piece.
    """
    words = list(_placed(answer))
    sources = sorted({place for word in words for place in word.source})
    if not sources:
        return Pieces([_spelled(source)], [_spelled(answer.text)], [(0, 0)])
    numbers = {place: number for number, place in enumerate(sources)}
    pairs = [
        (numbers[place], number)
        for number, word in enumerate(words)
        for place in word.source
    ]
    targets = [(word.start, word.end) for word in words]
    return Pieces(
        list(_cut(source, sources)), list(_cut(answer.text, targets)), sorted(pairs)
    )


@dataclass(frozen=True)
class _Word:
    """A word of a translation, by its places in what the client sent and gets."""

    text: str
    start: int
    end: int
    probability: float
    source: tuple[Range, ...]
    quality: float | None = None


def _placed(answer: Answer) -> Iterator[_Word]:
    """Yield the words of all segments, in their order, at their places in the whole texts.

    Both texts have the words of the segments in between tags, placeholders and white space. Where
    two models translated, the second's source words are none of the client's.
    """
    document = answer.document
    is_direct = len(answer.models) == 1
    src_start = tgt_start = 0
    rows = zip(document.segments, answer.predictions, answer.mended, strict=False)
    for number, (segment, prediction, mended) in enumerate(rows):
        written = mended.text()
        src_start += len(document.skeleton[number])
        tgt_start += len(document.skeleton[number])
        words = prediction.words or ()
        source = _Places(segment, segment.text, segment.source)
        # numbers may have been put back
        target = _Places(mended.segment, mended.translated.text, written)
        for word, place in zip(words, mended.translated.words, strict=True):
            found = target.of(*place)
            if found is not None:
                sources = word.sources if is_direct else ()
                yield _Word(
                    target.text[slice(*place)],
                    tgt_start + found[0],
                    tgt_start + found[1],
                    word.probability,
                    tuple(_moved(sources, source, src_start)),
                    word.quality,
                )
        src_start += len(segment.source)
        tgt_start += len(written)


def _moved(
    words: Sequence[SourceWord], places: "_Places", start: int
) -> Iterator[Range]:
    """Yield where source words stand in the whole text."""
    for word in words:
        found = places.of(word.start, word.end)
        if found is not None:
            yield (start + found[0], start + found[1])


class _Places:
    """The places of a text's characters in a stretch of a document, which has the same characters
    in the same order, with tags, entities and other white space.
    """

    def __init__(self, segment: Segment, text: str, stretch: str) -> None:
        """Find them; none, where the characters are not the same."""
        self.text = text
        self._is_same = stretch == text
        self._spans = {} if self._is_same else _spans(segment, text, stretch)

    def of(self, start: int, end: int) -> Range | None:
        """Return the place of a word of the text."""
        if start >= end:
            return None
        if self._is_same:
            return (start, end)
        first, last = self._spans.get(start), self._spans.get(end - 1)
        return (first[0], last[1]) if first and last else None


def _spans(segment: Segment, text: str, stretch: str) -> dict[int, Range]:
    """Return where each solid character of a text is written in a stretch of its document."""
    hidden = _hidden(stretch, [item.raw for item in segment.items])
    spans = [(place, place + 1) for place in range(len(hidden))]
    if segment.escapes:
        hidden, spans = decoded_spans(hidden)
    own, there = _solid(text), _solid(hidden)
    if _letters(text, own) != _letters(hidden, there):
        return {}
    return {i: spans[j] for i, j in zip(own, there, strict=True)}


def _hidden(text: str, tags: Sequence[str]) -> str:
    """Put something in the place of tags that no word has, of the same length."""
    for tag in tags:
        text = text.replace(tag, _HIDDEN * len(tag), 1)
    return text


def _letters(text: str, places: Sequence[int]) -> list[str]:
    return [text[place] for place in places]


def _solid(text: str) -> list[int]:
    """Return the places of the characters that are neither white space nor hidden."""
    return [
        place
        for place, character in enumerate(text)
        if character != _HIDDEN and not character.isspace()
    ]


def _cut(text: str, places: Sequence[Range]) -> Iterator[str]:
    """Yield the pieces of a text that end where the places do; the last has all that follows."""
    ends = [end for _, end in places[:-1]]
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        yield _spelled(text[start:end])


def _spelled(text: str) -> str:
    return text.replace(" ", "▁")
