"""Hugging Face's tasks at `/`: translation and text classification, by what the model is.

`/models/NAME` is the task of one of several models. Source: huggingface_hub's InferenceClient, and
what its parsers take.
"""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.serve.bodies import Fields, MissingField, read_fields
from weft.serve.catalogue import ServedModel
from weft.serve.dialects.answers import Wish, translate_texts
from weft.serve.dialects.classification import by_probability
from weft.serve.dialects.codes import refuse_other, served_language
from weft.serve.dialects.described import OBJECT, TEXT_OR_TEXTS, body
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.replies import refuse_with, reply
from weft.serve.dialects.sizes import check_size
from weft.serve.jobs import Caller
from weft.serve.refusals import Impossible, InvalidRequest, Refusal, UnknownModel
from weft.serve.service import Service
from weft.serve.visits import caller_of

_TASKS = ("translation", "classification")
_MANY = 1_000_000


@dataclass(frozen=True)
class HuggingFace:
    """The routes over a service."""

    service: Service

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        fields = {"inputs": TEXT_OR_TEXTS, "parameters": OBJECT}
        for path, route in (("/", self.first), ("/models/{name:path}", self.named)):
            router.add_api_route(
                path,
                route,
                methods=["POST"],
                openapi_extra=body(fields, ["inputs"]),
            )
        return router

    async def first(self, request: Request) -> Response:
        """Answer by the first model that has one of these tasks."""
        for model in self.service.catalogue.models.values():
            if model.kind in _TASKS:
                return await self._answer(request, model, is_chosen=False)
        raise Impossible(
            "no model translates or classifies; a language model is at /v1/completions"
        )

    async def named(self, request: Request, name: str) -> Response:
        """Answer by a model."""
        model = self.service.catalogue.models.get(name)
        if model is None:
            raise UnknownModel(name)
        if model.kind not in _TASKS:
            raise Impossible("a language model is at /v1/completions")
        return await self._answer(request, model, is_chosen=True)

    async def _answer(
        self, request: Request, model: ServedModel, is_chosen: bool
    ) -> Response:
        fields = await read_fields(request, self.service.limits)
        if fields.value("inputs") in (None, []):
            raise MissingField("inputs")
        texts = fields.texts("inputs")
        check_size(texts, self.service.limits, "inputs")
        parameters = fields.inner("parameters")
        caller = caller_of(request)
        if model.kind == "translation":
            chosen = model if is_chosen else None
            return await self._translate(texts, parameters, caller, chosen)
        return await self._classify(texts, parameters, caller, model)

    async def _translate(
        self,
        texts: list[str],
        parameters: Fields,
        caller: Caller,
        model: ServedModel | None,
    ) -> Response:
        """Translate by a model, or by the one that the languages choose."""
        src, tgt = self._languages(parameters, model)
        wish = Wish(model=model.id if model else None)
        answers = await translate_texts(self.service, texts, (src, tgt), caller, wish)
        return reply([{"translation_text": answer.text} for answer in answers])

    def _languages(
        self, parameters: Fields, model: ServedModel | None
    ) -> tuple[str, str]:
        """Return the languages that are asked for, else those of the model."""
        catalogue = self.service.catalogue
        pairs = [(model.src, model.tgt)] if model else catalogue.pairs()
        if not parameters.has("src_lang") and not parameters.has("tgt_lang"):
            return pairs[0]
        src = parameters.text("src_lang")
        tgt = parameters.text("tgt_lang")
        if model is not None:
            refuse_other(model, src, model.src, "parameters.src_lang")
            refuse_other(model, tgt, model.tgt, "parameters.tgt_lang")
            return model.src, model.tgt
        return (
            served_language(catalogue, src, "parameters.src_lang"),
            served_language(catalogue, tgt, "parameters.tgt_lang"),
        )

    async def _classify(
        self,
        texts: list[str],
        parameters: Fields,
        caller: Caller,
        model: ServedModel,
    ) -> Response:
        """Classify, and return a list of labels for each text."""
        _check_function(parameters, model)
        most = parameters.number("top_k", 1, _MANY, _MANY)
        answers, _ = await self.service.classify(model.id, texts, caller)
        return reply([by_probability(answer)[:most] for answer in answers])


def huggingface() -> Dialect:
    """Return the dialect."""
    return Dialect(
        name="huggingface",
        routes=lambda service: HuggingFace(service).router(),
        owns=lambda path: path == "/" or path.startswith("/models/"),
        refuse=_refuse,
    )


def _check_function(parameters: Fields, model: ServedModel) -> None:
    """Raise InvalidRequest for another function than the one that the model was trained with."""
    asked = parameters.text("function_to_apply", "")
    own = "sigmoid" if model.predictor.multi_label else "softmax"
    if asked not in ("", "default", own):
        raise InvalidRequest(
            f"parameters.function_to_apply must be {own} for this model",
            "parameters.function_to_apply",
        )


def _refuse(refusal: Refusal) -> Response:
    return refuse_with({"error": refusal.message}, refusal)
