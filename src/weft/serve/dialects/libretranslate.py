"""LibreTranslate's dialect: its routes, shapes, texts of errors and statuses.

Source: the replies of LibreTranslate 1.9.6, and the clients that read them. Bodies are JSON, forms
of both kinds and the query string. What clients of LibreTranslate do not know is given only to who
asks for it (`words`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.data.languages import english_name
from weft.documents.formats.text.plain import read_plain
from weft.documents.formats.web.html import read_html
from weft.documents.registry import endings
from weft.serve.bodies import Fields, MissingField, NotJson, read_fields
from weft.serve.dialects.answers import Answer, Wish, translate_texts
from weft.serve.dialects.codes import AUTO, served_language
from weft.serve.dialects.described import (
    FLAG,
    TEXT,
    TEXT_OR_TEXTS,
    WHOLE,
    body,
    query,
)
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.downloads import Downloads
from weft.serve.dialects.files import Files
from weft.serve.dialects.replies import refuse_with, reply
from weft.serve.dialects.sizes import TooLong, check_size
from weft.serve.dialects.suggestions import Suggestions
from weft.serve.dialects.words import words_of
from weft.serve.refusals import (
    Forbidden,
    InvalidRequest,
    Refusal,
    TooManyRequests,
    Unauthorized,
    UnknownPair,
)
from weft.serve.service import Service
from weft.serve.visits import caller_of

_FORMATS = ("text", "html")
_PATHS = ("translate", "detect", "languages", "suggest", "translate_file")
_FOLDERS = ("/download_file/", "/frontend/")
_MANY = 2**31
_SIDES = ["q", "source", "target"]
_TRANSLATE = {
    "q": TEXT_OR_TEXTS,
    "source": TEXT,
    "target": TEXT,
    "format": {"enum": list(_FORMATS)},
    "alternatives": WHOLE,
    "words": FLAG,
    "api_key": TEXT,
}
_SUGGEST = dict.fromkeys(("q", "s", "source", "target"), TEXT)
_NO_KEY = "Please contact the server operator to get an API key"
_TYPING_PAUSE = 500  # milliseconds, after which LibreTranslate's own page asks


@dataclass(frozen=True)
class LibreTranslate:
    """The routes over a service. Suggestions are kept where there is a file for them."""

    service: Service
    suggestions: Suggestions | None
    needs_key: bool
    downloads: Downloads

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        for method, path, route, extra in (
            (
                "POST",
                "/translate",
                self.translate,
                body(_TRANSLATE, _SIDES, forms=True),
            ),
            # as OmegaT's plug-in asks
            ("GET", "/translate", self.translate_query, query(_TRANSLATE, _SIDES)),
            ("POST", "/detect", self.detect, body({"q": TEXT}, ["q"], forms=True)),
            ("GET", "/languages", self.languages, None),
            ("GET", "/frontend/settings", self.settings, None),
            ("POST", "/suggest", self.suggest, body(_SUGGEST, [*_SUGGEST], forms=True)),
        ):
            router.add_api_route(path, route, methods=[method], openapi_extra=extra)
        Files(self.service, self.downloads).add_to(router)
        return router

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts."""
        fields = await read_fields(request, self.service.limits)
        texts = _given_texts(fields, "q")
        source = _given(fields, "source")
        target = _given(fields, "target")
        wish = self._wish(fields)
        check_size(texts, self.service.limits, "q")
        catalogue = self.service.catalogue
        src = None
        if source.lower() != AUTO:
            src = served_language(catalogue, source, "source")
        tgt = served_language(catalogue, target, "target")
        caller = caller_of(request)
        answers = await translate_texts(self.service, texts, (src, tgt), caller, wish)
        return reply(_translations(answers, wish, src is None, fields.is_list("q")))

    async def translate_query(self, request: Request) -> Response:
        """Translate a text of the query string."""
        return await self.translate(request)

    async def detect(self, request: Request) -> Response:
        """Say in which language a text is."""
        fields = await read_fields(request, self.service.limits)
        texts = _given_texts(fields, "q")
        check_size(texts, self.service.limits, "q")
        guesses = self.service.detect("\n".join(texts))
        return reply([_detected(*guess) for guess in guesses])

    async def languages(self) -> Response:
        """List the languages, and into which each is translated."""
        catalogue = self.service.catalogue
        return reply(
            [
                _named(code) | {"targets": catalogue.targets(code)}
                for code in catalogue.languages()
            ]
        )

    async def settings(self) -> Response:
        """Say what pages must know of the server."""
        pairs = self.service.catalogue.pairs()
        src, tgt = pairs[0] if pairs else (AUTO, AUTO)
        return reply(
            {
                "charLimit": self.service.limits.max_text,
                "frontendTimeout": _TYPING_PAUSE,
                "apiKeys": self.needs_key,
                "keyRequired": self.needs_key,
                "suggestions": self.suggestions is not None,
                "filesTranslation": True,
                "supportedFilesFormat": endings(),
                "language": {"source": _named(src), "target": _named(tgt)},
            }
        )

    async def suggest(self, request: Request) -> Response:
        """Keep a better translation, for whoever trains the model next."""
        if self.suggestions is None:
            raise Forbidden("Suggestions are disabled on this server.")
        fields = await read_fields(request, self.service.limits)
        texts = [_given(fields, name) for name in ("q", "s")]
        for name, text in zip(("q", "s"), texts, strict=True):
            if not text.strip():
                raise MissingField(name)
        codes = [_given(fields, name) for name in ("source", "target")]
        check_size(texts, self.service.limits, "q")
        catalogue = self.service.catalogue
        src = served_language(catalogue, codes[0], "source")
        tgt = served_language(catalogue, codes[1], "target")
        await self.suggestions.add((src, tgt), (texts[0], texts[1]))
        return reply({"success": True})

    def _wish(self, fields: Fields) -> Wish:
        """Return what is asked for besides the translation."""
        kind = fields.text("format", "") or "text"
        if kind not in _FORMATS:
            raise InvalidRequest("format must be text or html", "format")
        return Wish(
            read=read_html if kind == "html" else read_plain,
            alternatives=self._num_alternatives(fields),
            words=fields.flag("words"),
        )

    def _num_alternatives(self, fields: Fields) -> int:
        """Return how many other translations are asked for; a number below 0 means none."""
        if "alternatives" in fields.values and not fields.has("alternatives"):
            raise InvalidRequest("alternatives must be a whole number", "alternatives")
        wanted = max(0, fields.number("alternatives", -_MANY, _MANY, 0))
        most = self.service.limits.max_alternatives
        if wanted > most:
            raise InvalidRequest(
                f"alternatives parameter must be <= {most}", "alternatives"
            )
        return wanted


def libretranslate(
    suggestions: Suggestions | None = None, needs_key: bool = False
) -> Dialect:
    """Return the dialect. `needs_key` says whether requests must have one."""
    downloads = Downloads()
    return Dialect(
        name="libretranslate",
        routes=lambda service: LibreTranslate(
            service, suggestions, needs_key, downloads
        ).router(),
        owns=_owns,
        refuse=_refuse,
    )


def _owns(path: str) -> bool:
    return path.strip("/") in _PATHS or path.startswith(_FOLDERS)


def _given_texts(fields: Fields, name: str) -> list[str]:
    """Return a text or several; raise MissingField for an empty one and for an empty list."""
    if fields.value(name) in ("", [], None):
        raise MissingField(name)
    return fields.texts(name)


def _given(fields: Fields, name: str) -> str:
    found = fields.text(name)
    if not found:
        raise MissingField(name)
    return found


def _named(code: str) -> dict[str, Any]:
    return {"code": code, "name": english_name(code)}


def _detected(language: str, confidence: float | None) -> dict[str, Any]:
    """Return a language with its confidence in percent, as LibreTranslate counts it."""
    percent = round(100 * (confidence or 0.0), 1)
    return {"confidence": percent, "language": language}


def _translations(
    answers: Sequence[Answer], wish: Wish, is_detected: bool, is_list: bool
) -> dict[str, Any]:
    """Return the translations: lists for a list, else what stands in them."""
    lists: dict[str, list[Any]] = {"translatedText": [one.text for one in answers]}
    if is_detected:
        lists["detectedLanguage"] = [
            _detected(one.src, one.confidence) for one in answers
        ]
    if wish.alternatives:
        # there are none for HTML: the text is the same, and its tags say nothing of a choice
        most = 0 if wish.read is read_html else wish.alternatives
        lists["alternatives"] = [one.alternatives(most) for one in answers]
    if wish.words:
        lists["words"] = [words_of(one) for one in answers]
    if is_list:
        return lists
    return {name: values[0] for name, values in lists.items()}


def _refuse(refusal: Refusal) -> Response:
    """Return a refusal with the texts and the statuses that clients of LibreTranslate know."""
    if isinstance(refusal, Unauthorized):
        is_wrong = refusal.code == "invalid_key"
        words = "Invalid API key" if is_wrong else _NO_KEY
        return refuse_with({"error": words}, refusal, 403 if is_wrong else 400)
    status = 400 if isinstance(refusal, TooLong) else refusal.status
    return refuse_with({"error": _words(refusal)}, refusal, status)


def _words(refusal: Refusal) -> str:
    if isinstance(refusal, MissingField):
        return f"Invalid request: missing {refusal.param} parameter"
    if isinstance(refusal, TooLong):
        sizes = f"request ({refusal.size}) exceeds text limit ({refusal.limit})"
        return f"Invalid request: {sizes}"
    if isinstance(refusal, TooManyRequests):
        return f"Slowdown: {refusal.message}"
    if isinstance(refusal, UnknownPair):
        src, tgt = refusal.src, refusal.tgt
        return (
            f"{english_name(tgt)} ({tgt}) is not available as a target language"
            f" from {english_name(src)} ({src})"
        )
    if type(refusal) in (InvalidRequest, NotJson):
        return f"Invalid request: {refusal.message}"
    return refusal.message
