"""The descriptions of requests for /openapi.json: bodies are read by hand, so that they are also
described by hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
FILE: Schema = {"type": "string", "format": "binary"}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
TEXT_OR_TEXTS: Schema = {"oneOf": [TEXT, TEXTS]}

_JSON = "application/json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def body(
    fields: Mapping[str, Schema],
    required: Sequence[str] = (),
    *,
    json: bool = True,
    forms: bool = False,
) -> dict[str, Any]:
    """Describe a body with these fields, as an addition to a route's description."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(fields)}
    if required:
        schema["required"] = list(required)
    kinds = [_JSON] if json else []
    if forms:
        kinds += _FORMS
    content = {kind: {"schema": schema} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}


def query(fields: Mapping[str, Schema], required: Sequence[str] = ()) -> dict[str, Any]:
    """Describe the fields of a query string, likewise."""
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": name in required,
                "schema": schema,
            }
            for name, schema in fields.items()
        ]
    }
