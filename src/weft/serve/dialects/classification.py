"""Classification in two dialects: `/classify` as vLLM has it, and `/predict` as Text Embeddings
Inference does.

Both give the probability of every label; what else is known of an answer stands beside it.
"""

import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.predict.classifier import Classification
from weft.serve.bodies import Fields, MissingField, read_fields
from weft.serve.dialects.described import TEXT, TEXT_OR_TEXTS, TEXTS, body
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.replies import refuse_with, reply, standard_error
from weft.serve.dialects.sizes import check_size
from weft.serve.refusals import Impossible, InvalidRequest, Refusal, TooManyRequests
from weft.serve.service import Service
from weft.serve.visits import caller_of

_KIND = "classification"


def by_probability(answer: Classification) -> list[dict[str, Any]]:
    """Return all labels with their probabilities, the most probable first."""
    pairs = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
    return [{"label": label, "score": score} for label, score in pairs]


# vLLM


@dataclass(frozen=True)
class Classify:
    """The route `/classify` over a service."""

    service: Service

    def router(self) -> APIRouter:
        """Return the route."""
        router = APIRouter()
        extra = body({"model": TEXT, "input": TEXT_OR_TEXTS}, ["input"])
        router.add_api_route(
            "/classify", self.classify, methods=["POST"], openapi_extra=extra
        )
        return router

    async def classify(self, request: Request) -> Response:
        """Classify a text, or a list of texts."""
        fields = await read_fields(request, self.service.limits)
        texts = _filled(fields, "input")
        check_size(texts, self.service.limits, "input")
        name = fields.text("model", "") or None
        model = self.service.catalogue.model(name, _KIND)
        caller = caller_of(request)
        answers, num_tokens = await self.service.classify(model.id, texts, caller)
        usage = {
            "prompt_tokens": num_tokens,
            "total_tokens": num_tokens,
            "completion_tokens": 0,
            "prompt_tokens_details": None,
        }
        return reply(
            {
                "id": f"classify-{uuid4().hex}",
                "object": "list",
                "created": int(time.time()),
                "model": model.id,
                "data": [_row(*numbered) for numbered in enumerate(answers)],
                "usage": usage,
            }
        )


def classify() -> Dialect:
    """Return vLLM's dialect of classification."""
    return Dialect(
        name="vllm",
        routes=lambda service: Classify(service).router(),
        owns=lambda path: path.rstrip("/") == "/classify",
        refuse=standard_error,
    )


def _row(index: int, answer: Classification) -> dict[str, Any]:
    """Return an answer as vLLM does; behind `num_classes` stands what only Weft says."""
    return {
        "index": index,
        "label": answer.label,
        "probs": list(answer.probabilities.values()),
        "num_classes": len(answer.probabilities),
        "scores": by_probability(answer),
        "labels": answer.labels,
        "truncated": answer.truncated,
        "unsure": answer.unsure,
        "unknown_words": answer.unknown_words,
    }


def _filled(fields: Fields, name: str) -> list[str]:
    texts = fields.texts(name)
    if not texts:
        raise MissingField(name)
    return texts


# Text Embeddings Inference


@dataclass(frozen=True)
class Predict:
    """The route `/predict` over a service."""

    service: Service

    def router(self) -> APIRouter:
        """Return the route."""
        router = APIRouter()
        batch = {"type": "array", "items": TEXTS, "minItems": 1}
        extra = body({"inputs": {"oneOf": [TEXT, batch]}}, ["inputs"])
        router.add_api_route(
            "/predict", self.predict, methods=["POST"], openapi_extra=extra
        )
        return router

    async def predict(self, request: Request) -> Response:
        """Classify a text, or a list of lists of one text each."""
        fields = await read_fields(request, self.service.limits)
        if fields.flag("raw_scores"):
            raise Impossible("raw_scores: probabilities are all there is", "raw_scores")
        texts = _single_texts(fields)
        check_size(texts, self.service.limits, "inputs")
        answers, _ = await self.service.classify(None, texts, caller_of(request))
        scores = [by_probability(answer) for answer in answers]
        is_batch = isinstance(fields.value("inputs"), list)
        return reply(scores if is_batch else scores[0])


def predict() -> Dialect:
    """Return the dialect of Text Embeddings Inference."""
    return Dialect(
        name="text-embeddings-inference",
        routes=lambda service: Predict(service).router(),
        owns=lambda path: path.rstrip("/") == "/predict",
        refuse=_refuse_prediction,
    )


def _single_texts(fields: Fields) -> list[str]:
    """Return the texts of `inputs`: a string, or lists that each hold one. Two strings in one list
    are a pair, which such a model does not read.
    """
    value = fields.value("inputs")
    if value is None or value == []:
        raise MissingField("inputs")
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise InvalidRequest("inputs must be a string or a list", "inputs")
    if all(isinstance(part, str) for part in value):
        raise Impossible(
            'inputs: a list of strings is a pair of texts, and this model reads one; send [["first"], ["second"]]',
            "inputs",
        )
    return [_single_text(part) for part in value]


def _single_text(part: Any) -> str:
    """Return the text of a list that holds one."""
    if not isinstance(part, list) or not all(isinstance(one, str) for one in part):
        raise InvalidRequest(
            "inputs must be a string, or a list of lists of one string", "inputs"
        )
    if len(part) != 1:
        raise Impossible("inputs: the model reads one text, not a pair", "inputs")
    text: str = part[0]
    return text


def _refuse_prediction(refusal: Refusal) -> Response:
    kind = "Validation" if refusal.status < 500 else "Backend"
    if refusal.status == 503 or isinstance(refusal, TooManyRequests):
        kind = "Overloaded"
    return refuse_with({"error": refusal.message, "error_type": kind}, refusal)
