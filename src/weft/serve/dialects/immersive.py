"""The dialect of custom services of the Immersive Translate extension: a list of texts at
`/immersive`. Tags (`<b0>`) and placeholders (`{0}`) in them come back.
"""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.serve.bodies import MissingField, read_fields
from weft.serve.dialects.answers import translate_texts
from weft.serve.dialects.codes import AUTO, served_language
from weft.serve.dialects.described import TEXT, TEXTS, body
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.replies import refuse_with, reply
from weft.serve.dialects.sizes import check_size
from weft.serve.refusals import Refusal
from weft.serve.service import Service
from weft.serve.visits import caller_of

_PATH = "/immersive"


@dataclass(frozen=True)
class Immersive:
    """The route over a service."""

    service: Service

    def router(self) -> APIRouter:
        """Return the route."""
        router = APIRouter()
        fields = {"source_lang": TEXT, "target_lang": TEXT, "text_list": TEXTS}
        extra = body(fields, ["target_lang", "text_list"])
        router.add_api_route(
            _PATH, self.translate, methods=["POST"], openapi_extra=extra
        )
        return router

    async def translate(self, request: Request) -> Response:
        """Translate a list of texts."""
        fields = await read_fields(request, self.service.limits)
        if fields.value("text_list") in (None, []):
            raise MissingField("text_list")
        texts = fields.texts("text_list")
        check_size(texts, self.service.limits, "text_list")
        catalogue = self.service.catalogue
        source = fields.text("source_lang", "") or AUTO
        src = None
        if source.lower() != AUTO:
            src = served_language(catalogue, source, "source_lang")
        tgt = served_language(catalogue, fields.text("target_lang"), "target_lang")
        caller = caller_of(request)
        answers = await translate_texts(self.service, texts, (src, tgt), caller)
        return reply(
            {
                "translations": [
                    {"detected_source_lang": answer.src, "text": answer.text}
                    for answer in answers
                ]
            }
        )


def immersive() -> Dialect:
    """Return the dialect."""
    return Dialect(
        name="immersive-translate",
        routes=lambda service: Immersive(service).router(),
        owns=lambda path: path.rstrip("/") == _PATH,
        refuse=_refuse,
    )


def _refuse(refusal: Refusal) -> Response:
    return refuse_with({"error": refusal.message}, refusal)
