"""The replies of the dialects: JSON in UTF-8, and the headers of a refusal."""

import json
import math
from typing import Any

from starlette.responses import Response

from weft.serve.refusals import Refusal

# The charset is said, as some clients take Latin-1 for what JSON is in without it (OmegaT's do).
_JSON = "application/json; charset=utf-8"
_LONGEST_WAIT = (
    120  # seconds until a busy server has room: clients that are told more give up
)


def reply(content: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # a half character cannot come in; one that a model wrote must not break the answer
    return Response(text.encode("utf-8", "replace"), status, media_type=_JSON)


def refuse_with(content: Any, refusal: Refusal, status: int | None = None) -> Response:
    """Return a refusal in the words of a dialect, with its status or another."""
    response = reply(content, refusal.status if status is None else status)
    seconds = getattr(refusal, "retry_after", None)
    if seconds is not None:
        longest = _LONGEST_WAIT if refusal.status == 503 else math.inf
        wait = min(max(math.ceil(seconds), 1), longest)
        response.headers["Retry-After"] = str(wait)
    return response


def standard_error(refusal: Refusal) -> Response:
    """Return a refusal in the shape of our own routes, which is OpenAI's too."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    error = {
        "message": refusal.message,
        "type": kind,
        "param": refusal.param,
        "code": refusal.code,
    }
    return refuse_with({"error": error}, refusal)
