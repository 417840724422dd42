"""A translation as a document takes it: with its alignment, and with what a person should check."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from weft.documents.document import Doubt, Offer, Translated
from weft.predict.prediction import Prediction
from weft.predict.words import SourceWord

_MOST_WORDS = 10  # that a remark names


def for_document(
    text: str, prediction: Prediction, languages: tuple[str, str] = ("", "")
) -> Translated:
    """Return the translation of a segment's text; languages are BCP-47, empty where unknown.

    Where the model answers nothing the text itself stays, with a remark: no document loses what it
    says.
    """
    doubt = Doubt(
        tuple(remarks(text, prediction)),
        confidence_of(prediction),
        tuple(_offers(text, prediction)),
        _taken(prediction),
        _where(prediction),
    )
    if text.strip() and not prediction.text.strip():
        return Translated(text, (), doubt)
    return replace(aligned(prediction, languages), doubt=doubt)


def aligned(
    prediction: Prediction, languages: tuple[str, str] = ("", "")
) -> Translated:
    """Return a translation with its alignment, and how it stands in the files of a memory that it
    was taken from.
    """
    stands: dict[str, str] = {}
    if prediction.is_taken and prediction.memory and len(prediction.memory) == 1:
        stands = dict(reversed(prediction.memory[0].stands))
    return Translated(
        prediction.text,
        alignment_of(prediction),
        stands=stands,
        languages=languages,
        words=places_of(prediction),
    )


def places_of(prediction: Prediction) -> list[tuple[int, int]]:
    """Return where the words of a translation are in it; none where the model was not asked."""
    return [(word.start, word.end) for word in prediction.words or ()]


def alignment_of(prediction: Prediction) -> list[tuple[int, int, int, int]]:
    """Return pairs of words, by their places in the source and in the translation; none where the
    model was not asked.
    """
    return [
        (source.start, source.end, word.start, word.end)
        for word in prediction.words or ()
        for source in word.sources
    ]


def remarks(text: str, prediction: Prediction) -> Iterator[str]:
    """Yield what a person should check, each a sentence."""
    if prediction.source_cut:
        yield "A sentence is too long for the model; its end is not translated."
    if prediction.output_limit is not None:
        yield "The translation came to no end and was cut."
    if prediction.repetition:
        yield "It says the same again and again."
    if text.strip() and not prediction.text.strip():
        yield "The model answers nothing; the source stands here."
    elif prediction.empty:
        yield "The model answers nothing to one of the sentences, which is missing."
    elif prediction.short:
        yield "It is far shorter than usual; something may be missing."
    yield from _of_phrases(prediction)
    if prediction.unsure:
        yield "The model is less sure than usual."
    for use in prediction.memory or ():
        if use.taken and use.kind == "repaired":
            yield f"With other numbers than in the translation memory, {use.where}: {use.source}"
    if words := prediction.unknown_words:
        named = ", ".join(words[:_MOST_WORDS])
        if len(words) > _MOST_WORDS:
            named += f" and {len(words) - _MOST_WORDS} more"
        yield f"Never seen in training: {named}."


def _of_phrases(prediction: Prediction) -> Iterator[str]:
    """Yield what may be left out, what is said twice, and the terms that are not as demanded."""
    if prediction.omitted:
        yield f"Nothing seems to be written from: {in_words(prediction.omitted)}."
    for phrase in prediction.doubled or ():
        yield f"It says a phrase twice: {phrase}."
    for use in prediction.terms or ():
        if use.reason:
            yield f"Term {use.source} ({use.where}): {use.status}; {use.reason}."


def _offers(text: str, prediction: Prediction) -> Iterator[Offer]:
    """Yield what a memory has for a text, and not for one of its sentences alone."""
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    for use in prediction.memory or ():
        if not use.taken and (use.start, use.end) == (start, end):
            yield Offer(use.source, use.target, use.score, use.where)


def _taken(prediction: Prediction) -> str:
    """Return how the whole translation was taken from a memory; empty where it was not."""
    if not prediction.is_taken:
        return ""
    kinds = {use.kind for use in prediction.memory or () if use.taken}
    return "repaired" if "repaired" in kinds else "exact"


def _where(prediction: Prediction) -> str:
    """Return the places of the units that a whole translation was taken from; empty for none."""
    if not prediction.is_taken:
        return ""
    places = (use.where for use in prediction.memory or () if use.taken)
    return ", ".join(dict.fromkeys(places))


def in_words(omitted: Sequence[SourceWord]) -> str:
    """Return source words as they stand, an ellipsis between those that are apart."""
    said = ""
    before = -1
    for word in omitted:
        if said:
            said += " " if word.number == before + 1 else " ... "
        said += word.text
        before = word.number
    return said


def confidence_of(prediction: Prediction) -> float | None:
    """Return the quality of a translation: the share of its words that is expected to be right.
    Where the model does not know that, the probability of a token, the geometric mean of all; None
    where a memory had the translation.
    """
    if prediction.quality is not None:
        return prediction.quality
    log_prob = None if prediction.is_taken else prediction.confidence
    return None if log_prob is None else math.exp(log_prob)
