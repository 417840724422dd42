"""The dialect of OPUS-CAT, an engine for translators' tools: its plug-ins for Trados, memoQ, OmegaT
and Wordfast ask for single sentences.

Trados and memoQ put tags back by the alignment that comes with a translation.
Source: Helsinki-NLP/OPUS-CAT at commit 767d2ce: the plug-ins, and the engine's
MachineTranslationController.cs.
"""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import PlainTextResponse, Response

from weft.serve.bodies import Fields, read_fields, read_json
from weft.serve.catalogue import ServedModel
from weft.serve.dialects.answers import Answer, Wish, can_align, translate_texts
from weft.serve.dialects.codes import served_language
from weft.serve.dialects.described import TEXT, TEXTS, query
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.replies import refuse_with, reply
from weft.serve.dialects.sizes import check_size
from weft.serve.dialects.words import aligned_pieces
from weft.serve.refusals import Forbidden, InvalidRequest, Refusal
from weft.serve.service import Service
from weft.serve.visits import caller_of

_ROOM = "mtrestservice"  # plug-ins write it MtRestService and MTRestService
_USUAL = "MtRestService"
_PAIR = dict.fromkeys(("srcLangCode", "trgLangCode", "modelTag"), TEXT)
_TEXT = {"input": TEXT, **_PAIR}
_LIST = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": TEXTS}},
    }
}
_PIECES = 1  # how OPUS-CAT numbers pieces whose spaces are written as ▁ (SentencePiece)
_UNSAID = '""'  # what memoQ's plug-in sends for no tag


class _Room(Convertor[str]):
    """The first part of a path, in any case."""

    regex = f"(?i:{_ROOM})"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("opuscat", _Room())


@dataclass(frozen=True)
class OpusCat:
    """The routes over a service."""

    service: Service

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        for room in (_USUAL, "{room:opuscat}"):
            for path in (f"/{room}", f"/{room}/"):
                router.add_api_route(path, self.there, include_in_schema=False)
        text, pair = query(_TEXT, ["input"]), query(_PAIR)
        for method, name, route, extra in (
            ("GET", "TranslateJson", self.translate, text),
            ("POST", "TranslatePost", self.translate, text),
            ("GET", "Translate", self.translate_text, text),
            ("GET", "TranslateParagraphJson", self.translate_text, text),
            ("GET", "TranslateStream", self.translate_stream, text),
            ("GET", "ListSupportedLanguagePairs", self.pairs, None),
            ("GET", "GetLanguagePairModelTags", self.tags, pair),
            ("GET", "CheckModelStatus", self.status, pair),
            ("POST", "PreOrderBatch", self.order, _LIST),
            ("POST", "Customize", self.customize, None),
        ):
            # no description can say a pattern: it has the usual spelling
            for room, is_described in ((_USUAL, True), ("{room:opuscat}", False)):
                router.add_api_route(
                    f"/{room}/{name}",
                    route,
                    methods=[method],
                    openapi_extra=extra,
                    include_in_schema=is_described,
                )
        return router

    async def there(self) -> Response:
        """Say that the plug-ins' address is right, to a person who opens it."""
        pairs = [f"{src}-{tgt}" for src, tgt in self.service.catalogue.pairs()]
        return reply(
            {"server": "weft", "for": "the plug-ins of OPUS-CAT", "pairs": pairs}
        )

    async def translate(self, request: Request) -> Response:
        """Translate a text, with its pieces and their alignment."""
        fields = await read_fields(request, self.service.limits)
        answer, source = await self._translated(request, fields, needs_words=True)
        return reply(_pair(source, answer))

    async def translate_text(self, request: Request) -> Response:
        """Translate a text, and return a string of JSON."""
        fields = await read_fields(request, self.service.limits)
        answer, _ = await self._translated(request, fields)
        return reply(answer.text)

    async def translate_stream(self, request: Request) -> Response:
        """Translate a text, and return it as it is."""
        fields = await read_fields(request, self.service.limits)
        answer, _ = await self._translated(request, fields)
        return PlainTextResponse(answer.text)

    async def pairs(self) -> Response:
        """List the pairs of languages."""
        pairs = self.service.catalogue.pairs()
        return reply([f"{src}-{tgt}" for src, tgt in pairs])

    async def tags(self, request: Request) -> Response:
        """List the models of a pair of languages, by which a plug-in may choose one."""
        fields = await read_fields(request, self.service.limits)
        return reply([model.id for model in self._models(fields)])

    async def status(self, request: Request) -> Response:
        """Say which model would translate a pair of languages."""
        fields = await read_fields(request, self.service.limits)
        models = self._models(fields)
        if not models:
            return reply("No model available for these languages.")
        chosen = self._chosen(fields, models)
        return reply(f"Model {chosen.id} for {chosen.src}-{chosen.tgt} will be used.")

    async def order(self, request: Request) -> Response:
        """Take note of texts that will soon be asked for: translating them takes no longer then."""
        texts = await read_json(request, self.service.limits)
        is_list = isinstance(texts, list) and bool(texts)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise InvalidRequest("the body must be a list of strings")
        return Response(status_code=200)

    async def customize(self) -> Response:
        """Refuse to train."""
        raise Forbidden(
            "models are not trained here; weft train --from goes on with one"
        )

    async def _translated(
        self, request: Request, fields: Fields, needs_words: bool = False
    ) -> tuple[Answer, str]:
        """Translate the text of a request; return it too."""
        text = fields.text("input", "")
        check_size([text], self.service.limits, "input")
        models = self._models(fields)
        if models:
            chosen = self._chosen(fields, models)
            languages = (chosen.src, chosen.tgt)
            words = needs_words and can_align(chosen)
            wish = Wish(words=words, model=chosen.id)
        else:  # over a third language, if at all
            languages = self._languages(fields)
            wish = Wish()
        caller = caller_of(request)
        (answer,) = await translate_texts(self.service, [text], languages, caller, wish)
        return answer, text

    def _models(self, fields: Fields) -> list[ServedModel]:
        """Return the models of the languages of a request; all, where it says none."""
        translators = list(self.service.catalogue.of("translation"))
        if not fields.text("srcLangCode", "") and not fields.text("trgLangCode", ""):
            return translators
        src, tgt = self._languages(fields)
        return [model for model in translators if (model.src, model.tgt) == (src, tgt)]

    def _languages(self, fields: Fields) -> tuple[str, str]:
        catalogue = self.service.catalogue
        src = fields.text("srcLangCode", "")
        tgt = fields.text("trgLangCode", "")
        return (
            served_language(catalogue, src, "srcLangCode"),
            served_language(catalogue, tgt, "trgLangCode"),
        )

    def _chosen(self, fields: Fields, models: list[ServedModel]) -> ServedModel:
        """Return the model that the tag names, else the first; the tag of a model that is gone does
        not stop a translator's work.
        """
        tag = fields.text("modelTag", "")
        if tag not in ("", _UNSAID):
            for model in models:
                if model.id == tag:
                    return model
        if not models:
            raise InvalidRequest("no model here translates")
        return models[0]


def opuscat() -> Dialect:
    """Return the dialect."""
    return Dialect(
        name="opus-cat",
        routes=lambda service: OpusCat(service).router(),
        owns=lambda path: path.lower().startswith(f"/{_ROOM}/"),
        refuse=_refuse,
    )


def _pair(source: str, answer: Answer) -> dict[str, Any]:
    """Return a translation as OPUS-CAT does."""
    pieces = aligned_pieces(source, answer)
    forth: dict[str, list[int]] = {}
    back: dict[str, list[int]] = {}
    for s, t in sorted(pieces.pairs):
        forth.setdefault(str(s), []).append(t)
        back.setdefault(str(t), []).append(s)
    return {
        "translation": answer.text,
        "Translation": answer.text,
        "SegmentedSourceSentence": pieces.source,
        "SegmentedTranslation": pieces.target,
        "SegmentedAlignmentSourceToTarget": forth,
        "SegmentedAlignmentTargetToSource": back,
        "AlignmentString": " ".join(f"{s}-{t}" for s, t in pieces.pairs),
        "Segmentation": _PIECES,
    }


def _refuse(refusal: Refusal) -> Response:
    return refuse_with({"Message": refusal.message}, refusal)
