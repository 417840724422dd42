"""The words of a translation as a client sees them: with their places in its own text and in what
it gets back, the probability of each, and the words that it comes from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

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
    """Return the words of a translation in their order. Characters are counted in Unicode."""
    return [
        {
            "text": word.text,
            "start": word.start,
            "end": word.end,
            "probability": word.probability,
            "source": [list(place) for place in word.source],
        }
        for word in _placed(answer)
    ]


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


def _placed(answer: Answer) -> Iterator[_Word]:
    """Yield the words of all segments, in their order, at their places in the whole texts.

    Both texts have the words of the segments in between tags, placeholders and white space. Where
    two models translated, the second's source words are none of the client's.
    """
    document = answer.document
    is_direct = len(answer.models) == 1
    src_start = tgt_start = 0
    rows = zip(document.segments, answer.predictions, answer.written, strict=False)
    for number, (segment, prediction, written) in enumerate(rows):
        src_start += len(document.skeleton[number])
        tgt_start += len(document.skeleton[number])
        tags = [item.raw for item in segment.items]
        words = prediction.words or ()
        sources = chain.from_iterable(word.sources for word in words if is_direct)
        asked = {(one.start, one.end) for one in sources}
        source = _places(segment.text, asked, _hidden(segment.source, tags))
        target = _places(
            prediction.text,
            {(word.start, word.end) for word in words},
            _hidden(written, tags),
        )
        for word in words:
            found = target.get((word.start, word.end))
            if found is not None:
                yield _Word(
                    word.text,
                    tgt_start + found[0],
                    tgt_start + found[1],
                    word.probability,
                    tuple(_moved(word.sources, source, src_start)),
                )
        src_start += len(segment.source)
        tgt_start += len(written)


def _moved(
    words: Sequence[SourceWord], places: dict[Range, Range], start: int
) -> Iterator[Range]:
    """Yield where source words stand in the whole text."""
    for word in words:
        found = places.get((word.start, word.end))
        if found is not None:
            yield (start + found[0], start + found[1])


def _hidden(text: str, tags: Sequence[str]) -> str:
    """Put something in the place of tags that no word has, of the same length."""
    for tag in tags:
        text = text.replace(tag, _HIDDEN * len(tag), 1)
    return text


def _places(text: str, asked: set[Range], whole: str) -> dict[Range, Range]:
    """Return for stretches of a text where they stand in a longer one, which has them in the same
    order.
    """
    found: dict[Range, Range] = {}
    at = 0
    for start, end in sorted(asked):
        place = whole.find(text[start:end], at)
        if place >= 0:
            at = place + end - start
            found[start, end] = (place, at)
    return found


def _cut(text: str, places: Sequence[Range]) -> Iterator[str]:
    """Yield the pieces of a text that end where the places do; the last has all that follows."""
    ends = [end for _, end in places[:-1]]
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        yield _spelled(text[start:end])


def _spelled(text: str) -> str:
    return text.replace(" ", "▁")
