"""The translations of clients' texts: what is no text in them stays as it is.

A client's text is a small document: lines, tags, placeholders. A model reads its segments; line
breaks, blank lines, indents and tags come back (`weft.documents`).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from weft.documents.document import TextDocument, Written
from weft.documents.document import Translated as Aligned
from weft.documents.driver import (
    mended_segment,
    needs_alignment,
    texts_of,
    unchanged,
)
from weft.documents.formats.text.plain import read_plain
from weft.documents.kept import read_by
from weft.documents.numbers import Numbers
from weft.documents.writing import Mended, write_segment
from weft.errors import UsageError
from weft.predict.document import aligned, for_document
from weft.predict.memory_use import MemoryUse
from weft.predict.prediction import Prediction
from weft.predict.settings import USUAL, DecodingSettings
from weft.predict.terms import TermUse
from weft.serve.catalogue import Catalogue, ServedModel
from weft.serve.dialects.file_report import FileAnswer, report_of
from weft.serve.dialects.remarks import marks_of
from weft.serve.glossaries import USUAL as USUAL_TERMS
from weft.serve.glossaries import Binding
from weft.serve.jobs import Caller
from weft.serve.limits import Limits
from weft.serve.reading import Opened
from weft.serve.refusals import Impossible, InvalidRequest, UnknownPair
from weft.serve.service import SURE, Service, Translated, refuse_undetected
from weft.serve.visits import charge

Read = Callable[[str], TextDocument]

_ANY = "any language"
_QUICK = 5_000  # characters, which are read into documents between two other requests


@dataclass(frozen=True)
class Wish:
    """The wishes of a client: what it wants to know of translations, and how they are found.

    `read` says what its texts are. `alternatives` is how many others it wants beside each,
    `binding` which terms.
    """

    read: Read = read_plain
    alternatives: int = 0
    words: bool = False
    memory: bool = False
    model: str | None = None
    settings: DecodingSettings = USUAL
    binding: Binding = USUAL_TERMS


@dataclass(frozen=True)
class Answer:
    """The translation of a text, and what is known of each of its segments.

    `confidence` is None where the client said the language. `predictions` are those of the
    document's segments, and `mended` what they became; none where nothing was translated, as the
    languages are the same.
    """

    text: str
    src: str
    confidence: float | None
    document: TextDocument
    predictions: tuple[Prediction, ...] = ()
    mended: tuple[Mended, ...] = ()
    models: tuple[str, ...] = ()

    def alternatives(self, most: int) -> list[str]:
        """Return other translations, the best first, each once and without the one in `text`."""
        others = [row["text"] for row in self.n_best(most + 1)[1:]]
        return [text for text in others if text.strip()][:most]

    def n_best(self, most: int) -> list[dict[str, Any]]:
        """Return the translation and others, with their scores, each text once.

        The j-th joins the j-th of each segment. Only the first has its tags by the alignment.
        """
        found: dict[str, float | None] = {self.text: self.score()}
        n_bests = [prediction.n_best for prediction in self.predictions]
        for number in range(1, max(map(len, n_bests), default=0)):
            chosen = [n_best[min(number, len(n_best) - 1)] for n_best in n_bests]
            others = [Aligned(one.text) for one in chosen]
            text = self.document.write(
                [Written(text) for text in _written(self.document, others)]
            )
            found.setdefault(text, _mean([one.score for one in chosen]))
        rows = [{"text": text, "score": score} for text, score in found.items()]
        return rows[:most]

    def score(self) -> float | None:
        """Return the mean score of its segments; None where nothing was translated."""
        scores = [prediction.score for prediction in self.predictions]
        return _mean([score for score in scores if score is not None])

    def quality(self) -> float | None:
        """Return the share of its words that is expected to be right; None where that is not known
        of all its segments.
        """
        known = [one.quality for one in self.predictions if one.tokens]
        if not known or None in known:
            return None
        return _mean([quality for quality in known if quality is not None])

    def marks(self) -> list[str]:
        """Return what may be wrong with it, in words that do not change."""
        has_numbers = any(one.numbers for one in self.mended)
        return marks_of(self.predictions, has_numbers)

    def numbers(self) -> Numbers:
        """Return the numbers of all segments that differ in the translation, or did."""
        found = [one.numbers for one in self.mended]
        return Numbers(
            tuple(chain.from_iterable(one.put_back for one in found)),
            tuple(chain.from_iterable(one.missing for one in found)),
            tuple(chain.from_iterable(one.added for one in found)),
        )

    def terms(self) -> list[TermUse] | None:
        """Return what became of a glossary's terms in all segments; None where there is none."""
        found = [one.terms for one in self.predictions if one.terms is not None]
        return list(chain.from_iterable(found)) if found else None

    def memory(self) -> list[MemoryUse]:
        """Return the units of a memory that were taken for its segments, or are near."""
        uses = (prediction.memory or [] for prediction in self.predictions)
        return list(chain.from_iterable(uses))

    def from_memory(self) -> str:
        """Return how much of it was taken from a memory: all, part, or nothing."""
        if not any(use.taken for use in self.memory()):
            return "nothing"
        if all(one.is_taken for one in self.predictions if one.segments):
            return "all"
        return "part"

    def unknown_words(self) -> list[str]:
        """Return the words that the model never saw in training, each once."""
        words = chain.from_iterable(
            prediction.unknown_words for prediction in self.predictions
        )
        return list(dict.fromkeys(words))


def _mean(scores: Sequence[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True)
class _Guess:
    """The language of a text, and how sure that is; None where the client said it."""

    src: str
    confidence: float | None = None


async def translate_texts(
    service: Service,
    texts: Sequence[str],
    languages: tuple[str | None, str],
    caller: Caller,
    wish: Wish | None = None,
) -> list[Answer]:
    """Translate texts from a language, or each from the one that it is in.

    `languages` are codes of the models. A text in the target's language stays as it is.
    """
    wish = wish or Wish()
    charge(texts)
    documents = await _read(texts, wish.read)
    return await _translate_documents(service, documents, languages, caller, wish)


async def translate_file(
    service: Service,
    document: Opened,
    languages: tuple[str | None, str],
    caller: Caller,
    wish: Wish | None = None,
) -> FileAnswer:
    """Translate a file, as `translate_texts` does a text, and say what came of it."""
    wish = wish or Wish()
    charge(document.texts)
    texts = list(dict.fromkeys(document.texts))
    src, tgt = languages
    if src is None:
        (guess,) = _guess(service, ["\n".join(texts)], tgt)
        src = guess.src
    if not texts or service.catalogue.is_same(src, tgt):
        return FileAnswer((await document.written(None)).content)
    document = await document.read_by(
        forms_for(service.catalogue, (src, tgt), wish.model)
    )
    texts = list(dict.fromkeys(document.texts))
    needed = document.needs_alignment
    found = await _translate(service, texts, needed, (src, tgt), caller, wish)
    filled = await document.written(
        [_in_document(text, found[text], (src, tgt)) for text in texts]
    )
    predictions = {text: one.prediction for text, one in found.items()}
    return FileAnswer(
        filled.content, report_of(document.texts, predictions, filled.numbers)
    )


async def translate_between(
    service: Service, text: str, model: ServedModel, caller: Caller
) -> str:
    """Return what a model writes of a text, for the next model of two to translate."""
    documents = await _read([text], read_plain)
    languages = (model.src, model.tgt)
    wish = Wish(model=model.id)
    (answer,) = await _translate_documents(service, documents, languages, caller, wish)
    return answer.text


async def _translate_documents(
    service: Service,
    documents: Sequence[TextDocument],
    languages: tuple[str | None, str],
    caller: Caller,
    wish: Wish,
) -> list[Answer]:
    """Translate documents, as `translate_texts` does texts."""
    src, tgt = languages
    documents = list(documents)
    guesses = [_Guess(src)] * len(documents) if src else []
    if src is None:
        plain = ["\n".join(texts_of(document)) for document in documents]
        guesses = _guess(service, plain, tgt)
    done: dict[tuple[str, str], Translated] = {}
    for language in dict.fromkeys(guess.src for guess in guesses):
        places = [i for i, guess in enumerate(guesses) if guess.src == language]
        is_empty = not any(documents[place].segments for place in places)
        if is_empty or service.catalogue.is_same(language, tgt):
            continue
        forms = forms_for(service.catalogue, (language, tgt), wish.model)
        for place in places:
            documents[place] = read_by(documents[place], forms)
        own = [documents[place] for place in places]
        texts = list(dict.fromkeys(chain.from_iterable(map(texts_of, own))))
        needed = any(map(needs_alignment, own))
        found = await _translate(service, texts, needed, (language, tgt), caller, wish)
        done |= {(language, text): one for text, one in found.items()}
    return [
        _answer(document, guess, tgt, done)
        for document, guess in zip(documents, guesses, strict=True)
    ]


async def _read(texts: Sequence[str], read: Read) -> list[TextDocument]:
    """Read texts as documents, long ones in a thread. Raises InvalidRequest."""

    def read_all() -> list[TextDocument]:
        return [read(text) for text in texts]

    try:
        if sum(map(len, texts)) <= _QUICK:
            return read_all()
        return await asyncio.to_thread(read_all)
    except UsageError as error:
        raise InvalidRequest(str(error)) from None


def _answer(
    document: TextDocument,
    guess: _Guess,
    tgt: str,
    done: dict[tuple[str, str], Translated],
) -> Answer:
    """Return the translation of a document from those of its texts."""
    texts = [segment.text for segment in document.segments]
    found = [done[guess.src, text] for text in texts if (guess.src, text) in done]
    if len(found) < len(texts) or not found:
        text = unchanged(document)
        return Answer(text, guess.src, guess.confidence, document)
    languages = (guess.src, tgt)
    mended = [
        mended_segment(segment, _aligned(one, languages))
        for segment, one in zip(document.segments, found, strict=True)
    ]
    return Answer(
        text=document.write([Written(one.text()) for one in mended]),
        src=guess.src,
        confidence=guess.confidence,
        document=document,
        predictions=tuple(one.prediction for one in found),
        mended=tuple(mended),
        models=found[0].models,
    )


def _aligned(one: Translated, languages: tuple[str, str]) -> Aligned:
    """Return a translation with its alignment; that of a second model is not with the source."""
    return _of_source(aligned(one.prediction, languages), one)


def _in_document(text: str, one: Translated, languages: tuple[str, str]) -> Aligned:
    """Return a translation as a file takes it, with what a person should check."""
    return _of_source(for_document(text, one.prediction, languages), one)


def _of_source(found: Aligned, one: Translated) -> Aligned:
    return found if len(one.models) == 1 else replace(found, alignment=(), stands={})


def _written(document: TextDocument, translated: Iterable[Aligned]) -> list[str]:
    """Return the translations of segments as they stand in a document, with their tags."""
    pairs = zip(document.segments, translated, strict=True)
    return [write_segment(*pair) for pair in pairs]


async def _translate(
    service: Service,
    texts: Sequence[str],
    needs_alignment: bool,
    languages: tuple[str, str],
    caller: Caller,
    wish: Wish,
) -> dict[str, Translated]:
    """Translate texts of a language, each once, in parts that the service takes at once."""
    *_, model = route_of(service.catalogue, languages, wish.model)
    settings = _settings(needs_alignment, model, wish)
    done: dict[str, Translated] = {}
    for part in _parts(texts, service.limits):
        translated = await service.translate(
            part,
            *languages,
            caller,
            settings=settings,
            model=wish.model,
            binding=wish.binding,
        )
        done |= zip(part, translated, strict=True)
    return done


def forms_for(
    catalogue: Catalogue, languages: tuple[str, str], name: str | None
) -> tuple[str, ...]:
    """Return the forms of placeholders that all models read which translate a text, one after the
    other. Raises UnknownModel and UnknownPair.
    """
    route = route_of(catalogue, languages, name)
    first, *others = [set(model.predictor.kept_forms) for model in route]
    return tuple(sorted(first.intersection(*others)))


def route_of(
    catalogue: Catalogue, languages: tuple[str, str], name: str | None
) -> tuple[ServedModel, ...]:
    """Return the model of a name, or those that translate a pair one after the other."""
    if name is not None:
        return (catalogue.model(name, "translation"),)
    return catalogue.route(*languages)


def _settings(
    needs_alignment: bool, model: ServedModel, wish: Wish
) -> DecodingSettings:
    """Return the settings that give what is wished: an alignment where it is of use, and a beam
    that holds the alternatives.
    """
    settings = wish.settings
    wanted: dict[str, Any] = {}
    if needs_alignment and can_align(model):
        wanted["alignments"] = True
    if wish.words:
        refuse_without_words(model)
        wanted["alignments"] = True
    if wish.alternatives:
        count = wish.alternatives + 1
        wanted["n_best"] = count
        if settings.beam_size is None and settings.sampling is None:
            wanted["beam_size"] = max(model.predictor.decoding.beam_size, count)
    return replace(settings, **wanted) if wanted else settings


def _parts(texts: Sequence[str], limits: Limits) -> list[list[str]]:
    """Return texts in parts within the limits of a request."""
    parts: list[list[str]] = []
    room = 0
    for text in texts:
        room -= len(text)
        if not parts or room < 0 or len(parts[-1]) == limits.max_texts:
            parts.append([])
            room = limits.max_characters - len(text)
        parts[-1].append(text)
    return parts


def _guess(service: Service, plain: Sequence[str], tgt: str) -> list[_Guess]:
    """Return the language of each text, of those that are translated into `tgt` and itself.

    A text that says too little by itself, such as a name, is in the language of all together.
    Raises UnknownPair where nothing is translated into `tgt`, and Undetected.
    """
    sources = service.catalogue.sources(tgt)
    if not sources:
        raise UnknownPair(_ANY, tgt)
    most = service.limits.max_text

    def guess(text: str) -> _Guess:
        if not text:
            return _Guess(sources[0], 0.0)
        return _Guess(*service.source_of(text[:most], sources, [tgt]))

    guesses = list(map(guess, plain))
    if len(plain) > 1 and any(map(_is_weak, guesses)):
        together = guess("\n".join(plain))
        for place, own in enumerate(guesses):
            if _is_weak(own):
                guesses[place] = together
    refuse_undetected((own.src for own in guesses), sources)
    return guesses


def _is_weak(guess: _Guess) -> bool:
    return (guess.confidence or 0.0) < SURE


def refuse_without_words(model: ServedModel) -> None:
    """Raise Impossible for a model that cannot say which words belong together."""
    if not can_align(model):
        raise Impossible(
            "words: this kind of model does not say which words belong together",
            "words",
        )


def can_align(model: ServedModel) -> bool:
    """Return whether a model knows which words belong together; recurrent ones do not."""
    knows: bool = model.predictor.can_align
    return knows
