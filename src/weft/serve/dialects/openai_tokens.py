"""The tokenizer of a language model over HTTP, as vLLM has it: with these routes
lm-evaluation-harness needs no file of the model.
"""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from weft.data.pipeline import SPECIALS
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from weft.errors import UsageError
from weft.predict.language_model import LanguageModel
from weft.serve.bodies import Fields, read_fields
from weft.serve.dialects.openai_answer import name_of
from weft.serve.dialects.openai_request import chosen_model
from weft.serve.refusals import Impossible, InvalidRequest, TooLarge
from weft.serve.service import Service

PATHS = ("/tokenize", "/detokenize", "/tokenizer_info")


def token_routes(service: Service) -> APIRouter:
    """Return the routes over a service."""
    router = APIRouter(tags=["OpenAI"])

    @router.post("/tokenize")
    async def tokenize(request: Request) -> Response:
        """Turn a text into the ids of a language model."""
        model, fields = await _asked(service, request)
        return JSONResponse(_tokenized(model, fields, service.limits.max_text))

    @router.post("/detokenize")
    async def detokenize(request: Request) -> Response:
        """Turn ids into text; special ids are left out."""
        model, fields = await _asked(service, request)
        return JSONResponse(_detokenized(model, fields, service.limits.max_text))

    @router.get("/tokenizer_info")
    async def tokenizer_info(request: Request) -> Response:
        """Name the special tokens of a language model."""
        model, _ = await _asked(service, request)
        return JSONResponse(_info(model))

    return router


async def _asked(service: Service, request: Request) -> tuple[LanguageModel, Fields]:
    fields = await read_fields(request, service.limits)
    model = chosen_model(service.catalogue, fields)
    return model.predictor, fields


def _tokenized(model: LanguageModel, fields: Fields, most: int) -> dict[str, Any]:
    if fields.has("messages"):
        raise Impossible("these models have no chat template", "messages")
    text = fields.text("prompt")
    if len(text) > most:
        raise TooLarge(f"prompt: at most {most:,} characters", "prompt")
    ids = model.start(text)
    if not fields.flag("add_special_tokens", default=True):
        # no text but its name alone stands for a special token
        ids = [SPECIALS.index(text)] if text in SPECIALS else ids[1:]
    answer: dict[str, Any] = {
        "count": len(ids),
        "max_model_len": model.window_len,
        "tokens": ids,
    }
    if fields.flag("return_token_strs"):
        names = [name_of(model.tokenizer, token, begins=False) for token in ids]
        answer["token_strs"] = names
    return answer


def _detokenized(model: LanguageModel, fields: Fields, most: int) -> dict[str, Any]:
    ids = fields.value("tokens")
    is_list = isinstance(ids, list) and all(type(token) is int for token in ids)
    if not is_list:
        raise InvalidRequest("tokens must be a list of token ids", "tokens")
    if len(ids) > most:
        raise TooLarge(f"tokens: at most {most:,}", "tokens")
    try:
        model.start(ids)
    except UsageError as error:
        raise InvalidRequest(str(error), "tokens") from None
    return {"prompt": model.tokenizer.decode(ids)}


def _info(model: LanguageModel) -> dict[str, Any]:
    """Return the special tokens by their roles; a text begins with bos, else with eos."""
    begins_with_bos = model.start_id == BOS_ID
    return {
        "tokenizer_class": "Weft",
        "bos_token": SPECIALS[BOS_ID] if begins_with_bos else None,
        "eos_token": SPECIALS[EOS_ID],
        "unk_token": SPECIALS[UNK_ID],
        "pad_token": SPECIALS[PAD_ID],
        "model_max_length": model.window_len,
    }
