"""Weft's own routes: everything that its models can say, in JSON; and a file in its segments.

Fields that a route does not know are refused, so that a slip of the pen does not go unnoticed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.data.languages import UNKNOWN
from weft.documents.formats.text.plain import read_plain
from weft.documents.formats.web.html import read_html
from weft.errors import UsageError
from weft.predict.completion import Completion
from weft.predict.settings import DecodingSettings
from weft.serve.bodies import (
    Fields,
    MissingField,
    parse_object,
    read_body,
    read_fields,
)
from weft.serve.dialects.answers import (
    Answer,
    Wish,
    route_of,
    translate_between,
    translate_texts,
)
from weft.serve.dialects.codes import AUTO, refuse_other, served_language
from weft.serve.dialects.completing import Order, complete_text
from weft.serve.dialects.described import (
    FILE,
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    body,
)
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.files import divided
from weft.serve.dialects.remarks import numbers_row, terms_row, unit_row
from weft.serve.dialects.replies import reply, standard_error
from weft.serve.dialects.sizes import check_size
from weft.serve.dialects.terms import (
    GLOSSARY,
    SCHEMA,
    binding_of,
    refuse_many,
    row_of,
)
from weft.serve.dialects.words import words_of
from weft.serve.glossaries import sent_terms
from weft.serve.limits import Limits
from weft.serve.refusals import InvalidRequest, UnknownField
from weft.serve.service import TWO_MODELS, Service, refuse_undetected
from weft.serve.visits import caller_of

_PATHS = (
    "/v1/translate",
    "/v1/complete",
    "/v1/detect",
    "/v1/inspect",
    "/v1/segments",
    "/v1/terms",
)
_WHERE = ("model", "source", "target")
_FIELDS = {
    "texts": TEXTS,
    "text": TEXT,
    "format": {"enum": ["text", "html"]},
    "words": FLAG,
    "memory": FLAG,
    **dict.fromkeys(_WHERE, TEXT),
    "n_best": WHOLE,
    "beam_size": WHOLE,
    "length_penalty": NUMBER,
    "no_repeat_ngrams": WHOLE,
    "prefix": TEXT,
    "temperature": NUMBER,
    "top_k": WHOLE,
    "top_p": NUMBER,
    "min_p": NUMBER,
    "seed": WHOLE,
    GLOSSARY: SCHEMA,
}
_COMPLETE = {
    "text": TEXT,
    "prefix": TEXT,
    **dict.fromkeys(_WHERE, TEXT),
    "alternatives": WHOLE,
    "beam_size": WHOLE,
    GLOSSARY: SCHEMA,
}
_INSPECT = {"model": TEXT, "text": TEXT, "packed": FLAG, "parts": TEXTS}
_MANY = 10**6


@dataclass(frozen=True)
class Own:
    """The routes over a service."""

    service: Service

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1")
        file = body({"file": FILE}, ["file"], json=False, forms=True)
        table = {"file": FILE, "source": TEXT, "target": TEXT}
        terms = body(table, ["file"], json=False, forms=True)
        for path, route, extra in (
            ("/translate", self.translate, body(_FIELDS, ["target"])),
            ("/complete", self.complete, body(_COMPLETE, ["text", "target"])),
            ("/detect", self.detect, body({"text": TEXT}, ["text"])),
            ("/inspect", self.inspect, body(_INSPECT, ["model", "text"])),
            ("/segments", self.segments, file),
            ("/terms", self.terms, terms),
        ):
            router.add_api_route(path, route, methods=["POST"], openapi_extra=extra)
        return router

    async def translate(self, request: Request) -> Response:
        """Translate texts, with all that is known of the translations."""
        fields = await self._fields(request, tuple(_FIELDS))
        texts = _texts(fields, self.service.limits)
        wish = self._wish(fields, texts)
        languages = self._languages(fields, wish.model)
        caller = caller_of(request)
        answers = await translate_texts(self.service, texts, languages, caller, wish)
        is_detected = languages[0] is None
        rows = [_translation(answer, wish, is_detected) for answer in answers]
        return reply({"translations": rows})

    async def complete(self, request: Request) -> Response:
        """Translate a text so that its translation begins as a person wrote it."""
        fields = await self._fields(request, tuple(_COMPLETE))
        limits = self.service.limits
        text = _text(fields, limits)
        wish = Wish(read_plain, model=fields.text("model", "") or None)
        src, tgt = self._languages(fields, wish.model)
        if src is None:
            sources = self.service.catalogue.sources(tgt)
            src, _ = self.service.source_of(text, sources)
            refuse_undetected([src], sources)
        *before, served = route_of(self.service.catalogue, (src, tgt), wish.model)
        binding = binding_of(fields, limits)
        if before and binding.is_asked:
            raise InvalidRequest(TWO_MODELS, GLOSSARY)
        caller = caller_of(request)
        for model in before:
            text = await translate_between(self.service, text, model, caller)
        order = Order(
            text,
            fields.text("prefix", ""),
            fields.number("alternatives", 0, 3 * limits.max_alternatives, 0),
            DecodingSettings(
                beam_size=_beam_size(fields, limits),
                alignments=served.predictor.can_align,
            ),
            binding,
        )
        completion, words = await complete_text(self.service, served, order, caller)
        if before:  # whose source words are none of the client's
            words = [word | {"source": []} for word in words]
        names = [model.id for model in (*before, served)]
        completed = {**_completed(completion), "words": words}
        return reply({"source": src, "models": names, **completed})

    async def inspect(self, request: Request) -> Response:
        """Look inside a model at work on a text: the data of `weft inspect`."""
        fields = await self._fields(request, tuple(_INSPECT))
        text = _text(fields, self.service.limits)
        model = fields.text("model", "")
        if not model:
            raise MissingField("model")
        is_packed = fields.flag("packed")
        parts = fields.texts("parts", [])
        caller = caller_of(request)
        data = await self.service.inspect(model, text, caller, is_packed, parts)
        return reply(data)

    async def detect(self, request: Request) -> Response:
        """Say in which languages a text may be, the likeliest first."""
        fields = await self._fields(request, ("text",))
        text = _text(fields, self.service.limits)
        guesses = self.service.detect(text)
        return reply({"languages": [_guessed(*guess) for guess in guesses]})

    async def segments(self, request: Request) -> Response:
        """Divide a file into the texts to translate and what stands before, between and after.

        Each text is translated by itself, in the format of the file.
        """
        fields = await read_fields(request, self.service.limits)
        if fields.values:
            raise InvalidRequest("the field here is file")
        upload = fields.file("file")
        name, document, encoding = await asyncio.to_thread(divided, upload)
        return reply(
            {
                "format": name,
                "texts": [segment.source for segment in document.segments],
                "between": list(document.skeleton),
                "ascii": encoding == "ascii",
            }
        )

    async def terms(self, request: Request) -> Response:
        """Read a file as a glossary for a pair of languages, and return its terms."""
        limits = self.service.limits
        fields = await read_fields(request, limits)
        known = ("source", "target")
        for name in fields.values:
            if name not in known:
                raise UnknownField(name, known)
        upload = fields.file("file")
        src, tgt = (fields.text(name, UNKNOWN) for name in known)
        content = await asyncio.to_thread(upload.file.read)
        found = await asyncio.to_thread(sent_terms, upload.name, content, (src, tgt))
        refuse_many(len(found.entries), limits)
        return reply({"terms": list(map(row_of, found.entries)), "notes": found.notes})

    async def _fields(self, request: Request, names: Sequence[str]) -> Fields:
        """Read a body of JSON with these fields and no others."""
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
            raise InvalidRequest("send JSON, with Content-Type: application/json")
        values = parse_object(await read_body(request, self.service.limits))
        for name in values:
            if name not in names:
                raise UnknownField(name, names)
        return Fields(values)

    def _languages(self, fields: Fields, model: str | None) -> tuple[str | None, str]:
        """Return the languages; no source where it is to be found out. A model knows its own."""
        catalogue = self.service.catalogue
        source = fields.text("source", AUTO)
        target = fields.text("target", "")
        if model is not None:
            served = catalogue.model(model, "translation")
            if source.lower() != AUTO:
                refuse_other(served, source, served.src, "source")
            if target:
                refuse_other(served, target, served.tgt, "target")
            return served.src, served.tgt
        if not target:
            raise MissingField("target")
        src = None
        if source.lower() != AUTO:
            src = served_language(catalogue, source, "source")
        return src, served_language(catalogue, target, "target")

    def _wish(self, fields: Fields, texts: Sequence[str]) -> Wish:
        """Return what is asked for, and how translations are to be found."""
        limits = self.service.limits
        is_html = fields.choice("format", ("text", "html"), "text") == "html"
        prefix = fields.text("prefix", "")
        if prefix and is_html:
            raise InvalidRequest("prefix is for plain text", "prefix")
        if prefix and (len(texts) > 1 or len(texts[0].split("\n")) > 1):
            raise InvalidRequest("prefix is for one text of one line", "prefix")
        return Wish(
            read=read_html if is_html else read_plain,
            alternatives=fields.number("n_best", 1, limits.max_alternatives + 1, 1) - 1,
            words=fields.flag("words"),
            memory=fields.flag("memory"),
            model=fields.text("model", "") or None,
            settings=_settings(fields, limits),
            binding=binding_of(fields, limits),
        )


def own() -> Dialect:
    """Return the dialect."""
    return Dialect(
        name="weft",
        routes=lambda service: Own(service).router(),
        owns=lambda path: path.rstrip("/") in _PATHS,
        refuse=standard_error,
    )


def _text(fields: Fields, limits: Limits) -> str:
    """Return the one text, within the limits."""
    text = fields.text("text")
    check_size([text], limits, "text")
    return text


def _texts(fields: Fields, limits: Limits) -> list[str]:
    """Return the texts, within the limits."""
    name = "texts" if fields.has("texts") else "text"
    if name == "texts" and fields.has("text"):
        raise InvalidRequest("give text or texts, not both", "text")
    texts = fields.texts(name)
    if not texts:
        raise MissingField(name)
    check_size(texts, limits, name)
    return texts


def _settings(fields: Fields, limits: Limits) -> DecodingSettings:
    """Return the settings of the search, or of samples. Raises InvalidRequest."""
    given: dict[str, Any] = {"prefix": fields.text("prefix", "")}
    whole = {
        "beam_size": (1, limits.max_beam),
        "no_repeat_ngrams": (0, 100),
        "top_k": (1, _MANY),
        "seed": (0, 2**63 - 1),
    }
    real = {
        "length_penalty": (-10.0, 10.0),
        "temperature": (0.0, 100.0),
        "top_p": (0.0, 1.0),
        "min_p": (0.0, 1.0),
    }
    for name, (low, high) in whole.items():
        if fields.has(name):
            given[name] = fields.number(name, low, high)
    for name, ends in real.items():
        if fields.has(name):
            given[name] = fields.real(name, *ends)
    try:
        return DecodingSettings(**given)
    except UsageError as error:
        raise InvalidRequest(str(error)) from None


def _beam_size(fields: Fields, limits: Limits) -> int | None:
    """Return the beam that is asked for, if one is."""
    if not fields.has("beam_size"):
        return None
    return fields.number("beam_size", 1, limits.max_beam)


def _translation(answer: Answer, wish: Wish, is_detected: bool) -> dict[str, Any]:
    """Return all that is known of a translation."""
    row: dict[str, Any] = {
        "text": answer.text,
        "source": answer.src,
        "detected": _guessed(answer.src, answer.confidence) if is_detected else None,
        "models": list(answer.models),
        "score": answer.score(),
        "marks": answer.marks(),
        "unknown_words": answer.unknown_words(),
        "n_best": answer.n_best(wish.alternatives + 1),
    }
    if (quality := answer.quality()) is not None:
        row["quality"] = quality
    if numbers := answer.numbers():
        row["numbers"] = numbers_row(numbers)
    if wish.words:
        row["words"] = words_of(answer)
    if wish.memory:
        row["memory"] = list(map(unit_row, answer.memory()))
        row["from_memory"] = answer.from_memory()
    return row | terms_row(answer.terms())


def _completed(completion: Completion) -> dict[str, Any]:
    """Return a translation that was gone on with, and the words that may come next."""
    return {
        "text": completion.text,
        "alternatives": [
            {
                "text": word.text,
                "probability": word.probability,
                "translation": word.translation,
            }
            for word in completion.alternatives
        ],
        **terms_row(completion.prediction.terms),
    }


def _guessed(language: str, confidence: float | None) -> dict[str, Any]:
    return {"language": language, "confidence": confidence}
