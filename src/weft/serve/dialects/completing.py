"""A translation that a person has begun, gone on with: tags and placeholders come back in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.documents.begun import Begun, begin
from weft.documents.document import TextDocument, Written
from weft.documents.document import Translated as Aligned
from weft.documents.formats.text.plain import read_plain
from weft.documents.kept import read_by
from weft.documents.writing import Mended, write_begun
from weft.predict.completion import Completion
from weft.predict.document import aligned
from weft.predict.prediction import Prediction
from weft.predict.settings import DecodingSettings
from weft.predict.words import WordReport
from weft.serve.catalogue import ServedModel
from weft.serve.dialects.answers import Answer
from weft.serve.dialects.words import words_of
from weft.serve.glossaries import Binding
from weft.serve.jobs import Caller
from weft.serve.service import Service


@dataclass(frozen=True)
class Order:
    """A text of one line, what its translation begins with, and what else is wanted."""

    text: str
    prefix: str
    alternatives: int
    settings: DecodingSettings
    binding: Binding


async def complete_text(
    service: Service, model: ServedModel, order: Order, caller: Caller
) -> tuple[Completion, list[dict[str, Any]]]:
    """Go on with a translation; return it and its words, at their places in both texts.

    Of a text with tags or placeholders the model reads its segment, and what the prefix has of
    these stays where it is.
    """
    document = read_by(read_plain(order.text), model.predictor.kept_forms)
    begun = _begun_in(document, order.prefix)
    if begun is None:
        found = await _completed(service, model, order, caller)
        return found, [_word(word) for word in found.prediction.words or ()]
    (segment,) = document.segments
    inner = replace(order, text=segment.text, prefix=begun.text)
    found = await _completed(service, model, inner, caller)
    others = await _others(service, model, segment.text, found, caller)
    translated = aligned(found.prediction)
    written = write_begun(begun, translated)
    answer = Answer(
        text=document.write([Written(written)]),
        src=model.src,
        confidence=None,
        document=document,
        predictions=(found.prediction,),
        mended=(Mended(segment, translated, stood=written),),
        models=(model.id,),
    )
    alternatives = [
        replace(word, translation=document.write([Written(write_begun(begun, other))]))
        for word, other in zip(found.alternatives, others, strict=True)
    ]
    whole = Completion(answer.text, found.prediction, alternatives)
    return whole, words_of(answer)


def _begun_in(document: TextDocument, prefix: str) -> Begun | None:
    """Return how a prefix begins the translation of a document's only segment; None where nothing
    but that segment is in it, or the prefix leaves out what stands before.
    """
    if len(document.segments) != 1:
        return None
    (segment,) = document.segments
    head, tail = document.skeleton
    if not (segment.items or segment.kept or head.strip() or tail.strip()):
        return None
    if head.startswith(prefix):
        prefix = head
    if not prefix.startswith(head):
        return None
    inner = prefix.removeprefix(head)
    return begin(segment, inner.removesuffix(tail) if tail.strip() else inner)


async def _completed(
    service: Service, model: ServedModel, order: Order, caller: Caller
) -> Completion:
    return await service.complete(
        order.text,
        order.prefix,
        model,
        caller,
        alternatives=order.alternatives,
        settings=order.settings,
        binding=order.binding,
    )


async def _others(
    service: Service,
    model: ServedModel,
    text: str,
    found: Completion,
    caller: Caller,
) -> list[Aligned]:
    """Return the other translations, with alignments where the model has them."""
    texts = [word.translation for word in found.alternatives]
    read: Sequence[Prediction] = ()
    if texts and model.predictor.can_align:
        read = await service.read(text, texts, model, caller)
    known = {one.text: aligned(one) for one in read}
    return [known.get(text, Aligned(text)) for text in texts]


def _word(word: WordReport) -> dict[str, Any]:
    return {
        "text": word.text,
        "start": word.start,
        "end": word.end,
        "probability": word.probability,
        "source": [[source.start, source.end] for source in word.sources],
    }
