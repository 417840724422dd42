"""A document translated by whatever translates texts."""

from collections.abc import Callable, Sequence

from weft.documents.document import (
    Content_co,
    Document,
    Segment,
    Translated,
    Written,
)
from weft.documents.standing import as_it_stood
from weft.documents.writing import Mended, mend
from weft.errors import UsageError

Translate = Callable[[list[str]], Sequence[Translated]]


def texts_of(document: Document[Content_co]) -> list[str]:
    """List the texts of a document that are to be translated, each once."""
    return list(dict.fromkeys(segment.text for segment in document.segments))


def needs_alignment(document: Document[Content_co]) -> bool:
    """Return whether an alignment is of use: where there is something to place between words."""
    return any(segment.items or segment.spaces for segment in document.segments)


def unchanged(document: Document[Content_co]) -> Content_co:
    """Write a document without any translation, as it is."""
    return document.write([Written(segment.source) for segment in document.segments])


def fill_document(
    document: Document[Content_co], translated: Sequence[Translated]
) -> Content_co:
    """Write a document with the translations of its texts, those that `texts_of` lists.

    Raises UsageError unless there is one for each.
    """
    return write_mended(document, mended(document, translated))


def mended(
    document: Document[Content_co], translated: Sequence[Translated]
) -> list[Mended]:
    """Return the segments of a document with their translations, put right where that is needed.

    Raises UsageError unless there is one for each of its texts.
    """
    texts = texts_of(document)
    if len(translated) != len(texts):
        raise UsageError(
            f"{len(translated)} translations for the {len(texts)} texts of a document; give one for each"
        )
    found = dict(zip(texts, translated, strict=True))
    return [
        mended_segment(segment, found[segment.text]) for segment in document.segments
    ]


def mended_segment(segment: Segment, translated: Translated) -> Mended:
    """Return what a segment became: the target that a memory has of it as it stands, with its
    markup, else the translation, put right; so, too, where a number of that had to be.
    """
    mended = mend(segment, translated)
    stood = as_it_stood(segment, translated.stands)
    if stood is None or mended.numbers.put_back:
        return mended
    return Mended(segment, translated, mended.numbers, stood.text, stood.shown)


def write_mended(
    document: Document[Content_co], translations: Sequence[Mended]
) -> Content_co:
    """Write a document with what its segments became."""
    return document.write([Written(one.text(), one.doubt) for one in translations])


def translate_document(
    document: Document[Content_co], translate: Translate
) -> Content_co:
    """Translate a document: `translate` is called once with its texts, and answers each.

    A document without any text comes back as it is, and nothing is called.
    """
    texts = texts_of(document)
    return fill_document(document, translate(texts) if texts else [])
