"""OpenAI's API, for language models: completions, also streamed, and the list of models."""

import asyncio
import json
import logging
import math
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from weft.serve.bodies import Fields, read_fields
from weft.serve.catalogue import ServedModel
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.openai_answer import (
    ChoiceMaker,
    choices_of,
    finish_reason,
    usage_of,
)
from weft.serve.dialects.openai_request import (
    CompletionRequest,
    chosen_model,
    read_request,
)
from weft.serve.dialects.openai_tokens import PATHS, token_routes
from weft.serve.refusals import (
    Broken,
    Gone,
    Impossible,
    Overloaded,
    Refusal,
    TooManyRequests,
    UnknownModel,
    UsedUp,
)
from weft.serve.service import Service
from weft.serve.visits import caller_of, current_visit
from weft.serve.writing import Part, WrittenText

_LOG = logging.getLogger("weft.serve")
_PATHS = (
    "/v1/completions",
    "/v1/models",
    "/v1/chat",
    "/v1/embeddings",
    "/v1/responses",
    *PATHS,
)
# what a client asks for whose address lacks the /v1
_NEARBY = (
    ("POST", "/completions"),
    ("POST", "/chat/completions"),
    ("GET", "/models"),
)
_LONGEST_WAIT = 120  # seconds: a client that is told to wait longer gives up
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
# what takes so long to encode, or to be named, that others should not wait for it
_MANY_CHARACTERS = 20_000
_MANY_TOKENS = 200

Chunks = AsyncIterator[tuple[int, Part | WrittenText]]


class WithoutVersion(Refusal):
    """A path of the API without what it begins with."""

    status = 404
    code = "not_found"

    def __init__(self) -> None:
        """Say how the address of a client ends."""
        super().__init__("the paths here begin with /v1: base_url ends in /v1")


def openai() -> Dialect:
    """Return the dialect."""
    return Dialect("openai", routes, owns, refuse)


def owns(path: str) -> bool:
    """Return whether a path is one of OpenAI's."""
    is_nearby = any(path == near for _, near in _NEARBY)
    return is_nearby or any(path == own or path.startswith(f"{own}/") for own in _PATHS)


def refuse(refusal: Refusal) -> Response:
    """Write a refusal in OpenAI's shape; say when, and whether, to come again."""
    headers = {}
    if refusal.status in (429, 503):
        seconds = math.ceil(getattr(refusal, "retry_after", 5.0))
        longest = math.inf if isinstance(refusal, UsedUp) else _LONGEST_WAIT
        headers["retry-after"] = str(min(max(1, seconds), longest))
    if refusal.status >= 429 and not _helps_again(refusal):
        headers["x-should-retry"] = "false"
    return JSONResponse({"error": _error_of(refusal)}, refusal.status, headers)


def _helps_again(refusal: Refusal) -> bool:
    """Return whether the same request can succeed later: not if it is slow or wrong in itself."""
    return (
        isinstance(refusal, Overloaded | TooManyRequests) or refusal.code == "stopping"
    )


def _error_of(refusal: Refusal) -> dict[str, Any]:
    usual = "server_error" if refusal.status >= 500 else "invalid_request_error"
    return {
        "message": refusal.message,
        "type": _TYPES.get(refusal.status, usual),
        "param": refusal.param,
        "code": "invalid_api_key" if refusal.status == 401 else refusal.code,
    }


def routes(service: Service) -> APIRouter:
    """Return the routes over a service."""
    router = APIRouter(tags=["OpenAI"])
    router.include_router(token_routes(service))

    @router.post("/v1/completions", openapi_extra=_DESCRIPTION)
    async def completions(request: Request) -> Response:
        """Continue prompts with a language model, or score them (`echo` with `logprobs`)."""
        return await _complete(service, request)

    @router.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        """Refuse: these models know no dialogue."""
        raise Impossible(
            "these models have no chat template; send the text to continue to POST /v1/completions"
        )

    async def nearby(request: Request) -> Response:
        """Say what is wrong with the address of a client."""
        raise WithoutVersion

    for method, path in _NEARBY:
        router.add_api_route(path, nearby, methods=[method], include_in_schema=False)

    @router.get("/v1/models")
    async def models(request: Request) -> Response:
        """List the models."""
        served = service.catalogue.models.values()
        return JSONResponse({"object": "list", "data": [_card(one) for one in served]})

    @router.get("/v1/models/{id:path}")
    async def model(request: Request) -> Response:
        """Describe a model."""
        name = request.path_params["id"]
        if name not in service.catalogue.models:
            raise UnknownModel(name)
        return JSONResponse(_card(service.catalogue.models[name]))

    return router


def _card(model: ServedModel) -> dict[str, Any]:
    card = {
        "id": model.id,
        "object": "model",
        "created": model.created,
        "owned_by": "weft",
        "task": model.kind,
    }
    if model.writer is not None:
        card["max_model_len"] = model.predictor.window_len
    return card


async def _complete(service: Service, request: Request) -> Response:
    fields = await read_fields(request, service.limits)
    asked = await _read(service, fields)
    caller = caller_of(request)
    head = {
        "id": f"cmpl-{uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": asked.model.id,
    }
    if asked.is_stream:
        chunks = service.stream(asked.model, asked.orders(), caller)
        # what fails before the first token has a status of its own
        first = await anext(chunks)
        events = _events(asked, head, first, chunks)
        return StreamingResponse(events, media_type="text/event-stream")
    texts = await service.write(asked.model, asked.orders(), caller)
    usage = usage_of(asked, texts)
    _note(usage["prompt_tokens"], usage["completion_tokens"], texts)
    if asked.logprobs is None or usage["total_tokens"] < _MANY_TOKENS:
        return _answer(asked, head, texts, usage)
    return await asyncio.to_thread(_answer, asked, head, texts, usage)


def _answer(
    asked: CompletionRequest,
    head: dict[str, Any],
    texts: Sequence[WrittenText],
    usage: dict[str, int],
) -> Response:
    choices = choices_of(asked, texts)
    return JSONResponse({**head, "choices": choices, "usage": usage})


async def _read(service: Service, fields: Fields) -> CompletionRequest:
    """Read the request; in another thread where it is long."""
    model = chosen_model(service.catalogue, fields)
    limits = service.limits
    prompt = fields.value("prompt")
    several = prompt if isinstance(prompt, list) else [prompt]
    size = sum(len(one) for one in several if isinstance(one, str | list))
    if size < _MANY_CHARACTERS:
        return read_request(fields, model, limits)
    return await asyncio.to_thread(read_request, fields, model, limits)


async def _events(
    asked: CompletionRequest,
    head: dict[str, Any],
    first: tuple[int, Part | WrittenText],
    chunks: Chunks,
) -> AsyncIterator[bytes]:
    """Yield the chunks of a stream as server-sent events; a fault is the last of them."""
    try:
        async for event in _chunks(asked, head, first, chunks):
            yield event
        yield b"data: [DONE]\n\n"
    except Gone:
        return
    except Refusal as refusal:
        yield _event({"error": _error_of(refusal)})
    except Exception as error:
        # its message may hold the text of a client
        _LOG.error("a stream failed: %s", type(error).__name__)
        yield _event({"error": _error_of(Broken("the server failed at this text"))})


async def _chunks(
    asked: CompletionRequest,
    head: dict[str, Any],
    first: tuple[int, Part | WrittenText],
    chunks: Chunks,
) -> AsyncIterator[bytes]:
    makers = [
        ChoiceMaker(asked, prompt, number * asked.n + sample)
        for number, prompt in enumerate(asked.prompts)
        for sample in range(asked.n)
    ]
    texts: list[WrittenText] = []
    num_noted = 0
    async for index, chunk in _and_then(first, chunks):
        finish = None
        if isinstance(chunk, WrittenText):
            texts.append(chunk)
            finish = finish_reason(chunk)
        part = chunk if isinstance(chunk, Part) else Part("", ())
        num_noted += len(part.tokens)
        _note(0, len(part.tokens))
        maker = makers[index]
        if part.text or part.tokens or finish or maker.is_echo_due:
            choice = maker.choice(part, finish)
            yield _event({**head, "choices": [choice], **_usage(asked, None)})
    usage = usage_of(asked, texts)
    rest = usage["completion_tokens"] - num_noted
    _note(usage["prompt_tokens"], rest, texts)
    if asked.has_usage:
        yield _event({**head, "choices": [], **_usage(asked, usage)})


def _usage(asked: CompletionRequest, usage: dict[str, int] | None) -> dict[str, Any]:
    """Return the usage as a field of a chunk; null in all but the last, where it is asked for."""
    return {"usage": usage} if asked.has_usage else {}


async def _and_then(first: tuple[int, Any], rest: Chunks) -> Chunks:
    yield first
    async for other in rest:
        yield other


def _event(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return f"data: {text}\n\n".encode()


def _note(read: int, written: int, texts: Sequence[WrittenText] = ()) -> None:
    """Note the work for the log and the metrics."""
    visit = current_visit()
    if visit is None:
        return
    first_tokens = [text.first_token for text in texts if text.first_token is not None]
    if visit.first_token is None:
        visit.first_token = min(first_tokens, default=None)
    is_cut = any(text.finish == "length" for text in texts)
    visit.note(read=read, written=written, is_cut=is_cut)


_STRINGS = {
    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}
_IDS = {"type": "array", "items": {"type": "integer"}}
_NUMBER = {"type": "number"}
_WHOLE = {"type": "integer"}
_FLAG = {"type": "boolean"}
_DESCRIPTION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "model": {"type": "string"},
                        "prompt": {
                            "oneOf": [
                                *_STRINGS["oneOf"],
                                _IDS,
                                {"type": "array", "items": _IDS},
                            ]
                        },
                        "max_tokens": {"type": "integer", "default": 16},
                        "temperature": {"type": "number", "default": 1},
                        "top_p": _NUMBER,
                        "top_k": _WHOLE,
                        "min_p": _NUMBER,
                        "repetition_penalty": _NUMBER,
                        "presence_penalty": _NUMBER,
                        "frequency_penalty": _NUMBER,
                        "logit_bias": {
                            "type": "object",
                            "additionalProperties": _NUMBER,
                        },
                        "n": _WHOLE,
                        "best_of": _WHOLE,
                        "logprobs": _WHOLE,
                        "echo": _FLAG,
                        "seed": _WHOLE,
                        "stop": _STRINGS,
                        "stream": _FLAG,
                        "stream_options": {
                            "type": "object",
                            "properties": {"include_usage": _FLAG},
                        },
                    },
                }
            }
        },
    }
}
