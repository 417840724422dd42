"""DeepL's dialect, version 2 of its API: texts, languages and usage.

Source: what the client deepl-python and Weblate send and read. What DeepL has and Weft lacks
(formality, context) is ignored where it only asks for more. Glossaries are those of the server's
start, each once for every pair of languages that it is for, under the id `NAME:en-de`.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.data.languages import english_name, primary
from weft.documents.formats.web.html import read_html
from weft.serve.bodies import Fields, MissingField, read_fields
from weft.serve.dialects.answers import Answer, Wish, translate_texts
from weft.serve.dialects.codes import served_language
from weft.serve.dialects.described import TEXT, TEXT_OR_TEXTS, body, query
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.replies import refuse_with, reply
from weft.serve.dialects.sizes import check_size
from weft.serve.glossaries import USUAL, Binding, Pair, ServedGlossary
from weft.serve.refusals import (
    Forbidden,
    InvalidRequest,
    Refusal,
    Unauthorized,
    UnknownLanguage,
    UsedUp,
)
from weft.serve.service import Service
from weft.serve.visits import caller_of, visit_of

_PREFIX = "/v2/"
_KINDS = ("source", "target")
_SIDES = ["text", "target_lang"]
_FIELDS = {
    "text": TEXT_OR_TEXTS,
    "source_lang": TEXT,
    "target_lang": TEXT,
    "tag_handling": {"enum": ["xml", "html"]},
    "ignore_tags": TEXT_OR_TEXTS,
    "glossary_id": TEXT,
    "auth_key": TEXT,
}
_NO_LIMIT = 10**12  # characters, where nothing is ever used up
_FIXED = "the glossaries are those of the server's start: weft serve --glossary FILE"
_QUOTA_EXCEEDED = 456  # DeepL's own status
# Clients of DeepL ask for English and Portuguese by their variants, and for no others.
_VARIANTS = {
    "en": {"EN-GB": "English (British)", "EN-US": "English (American)"},
    "pt": {"PT-BR": "Portuguese (Brazilian)", "PT-PT": "Portuguese (European)"},
    "zh": {"ZH": "Chinese", "ZH-HANS": "Chinese (simplified)"},
}


@dataclass
class DeepL:
    """The routes over a service, and how many characters they have translated."""

    service: Service
    _count: int = field(default=0)

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v2")
        kind = query({"type": {"enum": list(_KINDS)}})
        for method, path, route, extra in (
            ("POST", "/translate", self.translate, body(_FIELDS, _SIDES, forms=True)),
            ("GET", "/languages", self.languages, kind),
            # some clients post what asks for nothing but a list
            ("POST", "/languages", self.post_languages, kind),
            ("GET", "/usage", self.usage, None),
            ("GET", "/glossaries", self.glossaries, None),
            ("GET", "/glossaries/{glossary_id}", self.glossary, None),
            ("GET", "/glossaries/{glossary_id}/entries", self.entries, None),
            ("POST", "/glossaries", self.refuse_glossary, None),
            ("DELETE", "/glossaries/{glossary_id}", self.refuse_deletion, None),
            ("GET", "/glossary-language-pairs", self.glossary_pairs, None),
        ):
            router.add_api_route(path, route, methods=[method], openapi_extra=extra)
        return router

    async def translate(self, request: Request) -> Response:
        """Translate texts."""
        fields = await read_fields(request, self.service.limits)
        if fields.value("text") in (None, []):
            raise MissingField("text")
        texts = fields.texts("text")
        check_size(texts, self.service.limits, "text")
        src, tgt = self._languages(fields)
        caller = caller_of(request)
        wish = replace(_wish(fields), binding=self._binding(fields, src, tgt))
        answers = await translate_texts(self.service, texts, (src, tgt), caller, wish)
        sizes = [len(text) for text in texts]
        self._count += sum(sizes)
        rows = zip(answers, sizes, strict=True)
        return reply({"translations": [_translation(*row) for row in rows]})

    async def languages(self, request: Request) -> Response:
        """List the source languages, or the target languages."""
        fields = await read_fields(request, self.service.limits)
        kind = fields.choice("type", _KINDS, "source")
        pairs = self.service.catalogue.pairs()
        if kind == "source":
            return reply(_sources([src for src, _ in pairs]))
        return reply(_targets([tgt for _, tgt in pairs]))

    async def post_languages(self, request: Request) -> Response:
        """List the languages for a client that posts."""
        return await self.languages(request)

    async def usage(self, request: Request) -> Response:
        """Say how many characters the key has used today, or all clients since the start."""
        count = self._count
        most: int | None = None
        account = visit_of(request).account
        if account is not None:
            count = account.characters
            most = account.allowance.characters
        return reply({"character_count": count, "character_limit": most or _NO_LIMIT})

    async def glossaries(self) -> Response:
        """List the glossaries of the server."""
        return reply(
            {"glossaries": [_glossary(*one) for one in self._served().values()]}
        )

    async def glossary(self, glossary_id: str) -> Response:
        """Describe a glossary."""
        return reply(_glossary(*self._named(glossary_id)))

    async def entries(self, glossary_id: str) -> Response:
        """Give the terms of a glossary as a table, of alternatives the first."""
        served, pair = self._named(glossary_id)
        lines = []
        for entry in served.by_pair[pair].entries:
            for source in entry.sources:
                lines.append(f"{source}\t{(entry.targets or (source,))[0]}")
        return Response("\n".join(lines), media_type="text/tab-separated-values")

    async def glossary_pairs(self) -> Response:
        """List the languages of glossaries."""
        pairs = dict.fromkeys(pair for _, pair in self._served().values())
        listed = [{"source_lang": src, "target_lang": tgt} for src, tgt in pairs]
        return reply({"supported_languages": listed})

    async def refuse_glossary(self) -> Response:
        """Refuse to keep a glossary."""
        raise Forbidden(_FIXED)

    async def refuse_deletion(self, glossary_id: str) -> Response:
        """Refuse to forget a glossary."""
        raise Forbidden(_FIXED)

    def _served(self) -> dict[str, tuple[ServedGlossary, Pair]]:
        """Return the glossaries by their ids, one for each of their pairs of languages."""
        found = {}
        for served in self.service.glossaries.served.values():
            for src, tgt in served.by_pair:
                found[f"{served.name}:{src}-{tgt}"] = (served, (src, tgt))
        return found

    def _named(self, glossary_id: str) -> tuple[ServedGlossary, Pair]:
        found = self._served().get(glossary_id)
        if found is None:
            raise NoGlossary
        return found

    def _binding(self, fields: Fields, src: str | None, tgt: str) -> Binding:
        """Return which terms are asked for: the usual ones where none are.

        Raises InvalidRequest for a glossary without a source language, as DeepL does, and for one
        of other languages.
        """
        glossary_id = fields.text("glossary_id", "")
        if not glossary_id:
            return USUAL
        if src is None:
            raise InvalidRequest("glossary_id needs source_lang", "source_lang")
        served, pair = self._named(glossary_id)
        if pair != (src, tgt):
            raise InvalidRequest(
                f"the glossary is for {pair[0]} to {pair[1]}", "glossary_id"
            )
        return Binding(served.name)

    def _languages(self, fields: Fields) -> tuple[str | None, str]:
        """Return the languages; no source where it is to be found out."""
        catalogue = self.service.catalogue
        target = fields.text("target_lang")
        source = fields.text("source_lang", "")
        sources = [src for src, _ in catalogue.pairs()]
        targets = [tgt for _, tgt in catalogue.pairs()]
        src = None
        if source and source.lower() != "auto":
            src = served_language(catalogue, source, "source_lang", sources)
        return src, served_language(catalogue, target, "target_lang", targets)


class NoGlossary(Refusal):
    """An id that no glossary has."""

    status = 404
    code = "glossary_not_found"

    def __init__(self) -> None:
        """Say where they are listed."""
        super().__init__(
            "there is no such glossary; GET /v2/glossaries lists them", "glossary_id"
        )


def _glossary(served: ServedGlossary, pair: Pair) -> dict[str, Any]:
    src, tgt = pair
    created = datetime.fromtimestamp(served.created, UTC)
    return {
        "glossary_id": f"{served.name}:{src}-{tgt}",
        "name": served.name,
        "ready": True,
        "source_lang": src,
        "target_lang": tgt,
        "creation_time": created.isoformat(timespec="microseconds"),
        "entry_count": sum(
            len(entry.sources) for entry in served.by_pair[pair].entries
        ),
    }


def deepl() -> Dialect:
    """Return the dialect."""
    return Dialect(
        name="deepl",
        routes=lambda service: DeepL(service).router(),
        owns=lambda path: path.startswith(_PREFIX),
        refuse=_refuse,
    )


def _wish(fields: Fields) -> Wish:
    """Return how the texts are to be read: plain, or with tags."""
    kind = fields.text("tag_handling", "")
    if not kind:
        return Wish()
    if kind not in ("xml", "html"):
        raise InvalidRequest("tag_handling must be xml or html", "tag_handling")
    return Wish(read=partial(read_html, kept=_names(fields, "ignore_tags")))


def _names(fields: Fields, name: str) -> list[str]:
    """Return the names of tags, from a list or divided by commas."""
    words = ",".join(fields.texts(name, ())).split(",")
    return [word.strip() for word in words if word.strip()]


def _translation(answer: Answer, size: int) -> dict[str, Any]:
    return {
        "detected_source_language": primary(answer.src).upper(),
        "text": answer.text,
        "billed_characters": size,
    }


def _sources(codes: list[str]) -> list[dict[str, Any]]:
    """Return languages without their variants, each once."""
    languages = dict.fromkeys(primary(code) for code in codes)
    return [_language(code.upper(), english_name(code)) for code in languages]


def _targets(codes: list[str]) -> list[dict[str, Any]]:
    """Return languages, those in the place of which clients ask for variants with these."""
    names: dict[str, str] = {}
    for code in codes:
        names |= _VARIANTS.get(code, {code.upper(): english_name(code)})
    return [
        _language(code, name) | {"supports_formality": False}
        for code, name in names.items()
    ]


def _language(code: str, name: str) -> dict[str, Any]:
    return {"language": code, "name": name}


def _refuse(refusal: Refusal) -> Response:
    message = refusal.message
    if isinstance(refusal, UnknownLanguage):
        message = f"Value for '{refusal.param}' not supported."
    elif isinstance(refusal, MissingField):
        message = f"Parameter '{refusal.param}' not specified."
    status = refusal.status
    if isinstance(refusal, Unauthorized):
        status = 403
    elif isinstance(refusal, UsedUp):
        status = _QUOTA_EXCEEDED
    return refuse_with({"message": message}, refusal, status)
