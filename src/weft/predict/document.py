"""A translation as a document takes it: with its alignment, and with what a person should check."""

import math
from collections.abc import Iterator

from weft.documents.document import Doubt, Translated
from weft.predict.prediction import Prediction

_MOST_WORDS = 10  # that a remark names


def for_document(text: str, prediction: Prediction) -> Translated:
    """Return the translation of a segment's text.

    Where the model answers nothing the text itself stays, with a remark: no document loses what it
    says.
    """
    doubt = Doubt(tuple(remarks(text, prediction)), _probability(prediction))
    if text.strip() and not prediction.text.strip():
        return Translated(text, (), doubt)
    return Translated(prediction.text, alignment_of(prediction), doubt)


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
    if prediction.unsure:
        yield "The model is less sure than usual."
    if words := prediction.unknown_words:
        named = ", ".join(words[:_MOST_WORDS])
        if len(words) > _MOST_WORDS:
            named += f" and {len(words) - _MOST_WORDS} more"
        yield f"Never seen in training: {named}."


def _probability(prediction: Prediction) -> float | None:
    """Return the probability of a token of the translation, the geometric mean of all."""
    log_prob = prediction.confidence
    return None if log_prob is None else math.exp(log_prob)
