"""The fields of a request, from its body and its query string.

They are read by hand, as clients of translation servers send the same fields as JSON, as a form and
in the query string, and as a refusal must neither echo what was sent nor fail on it.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from weft.serve.limits import Limits, shown_size
from weft.serve.refusals import InvalidRequest, TooLarge
from weft.serve.uploads import MultipartReader, Upload

_BODY = "weft.body"  # keys of a request's scope, for what was read
_FIELDS = "weft.fields"
_OTHER_FIELDS = 100  # of a form, besides its texts
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "DELETE")
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_TYPES = f"application/json, {_FORM} or {_MULTIPART}"
_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off", "")


class MissingField(InvalidRequest):
    """A field that must be given and is not, or is empty."""

    def __init__(self, name: str) -> None:
        """Name the field."""
        super().__init__(f"{name} is missing", name)


class NotJson(InvalidRequest):
    """A body that should be JSON and is not."""


class _Required:
    """The default of a field that has none."""


REQUIRED: Final = _Required()


@dataclass
class Fields:
    """The fields of a request by name: values of JSON, or the strings of a form.

    Of a form, a field that occurs several times is a list. In JSON, null stands for a field that is
    not there. The getters raise InvalidRequest for a value of another type or out of range, and
    MissingField for one that is absent and has no default.
    """

    values: dict[str, Any]
    files: dict[str, Upload] = field(default_factory=dict)
    inside: str = ""  # the name of the object that these are the fields of

    def has(self, name: str) -> bool:
        """Return whether the field is there and not null."""
        return self.values.get(name) is not None

    def value(self, name: str) -> Any:
        """Return a field as it was sent, of any type; None where it is absent."""
        return self.values.get(name)

    def is_list(self, name: str) -> bool:
        """Return whether the field is a list."""
        return isinstance(self.values.get(name), list)

    def text(self, name: str, default: str | _Required = REQUIRED) -> str:
        """Return a string; of a field of a form that occurs several times, the first."""
        value = self.values.get(name)
        if value is None:
            return self._default(name, default)
        if isinstance(value, list) and value and self._is_form(value):
            value = value[0]
        if not isinstance(value, str):
            self._refuse(name, "must be a string")
        return value

    def texts(
        self, name: str, default: Sequence[str] | _Required = REQUIRED
    ) -> list[str]:
        """Return the strings of a list; one string is a list of one."""
        value = self.values.get(name)
        if value is None:
            return list(self._default(name, default))
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in found):
            self._refuse(name, "must be a string or a list of strings")
        return found

    def number(
        self, name: str, low: int, high: int, default: int | _Required = REQUIRED
    ) -> int:
        """Return a whole number from `low` to `high`."""
        value = self.values.get(name)
        if value is None or value == "":
            return self._default(name, default)
        found = _whole(value)
        if found is None:
            self._refuse(name, "must be a whole number")
        if not low <= found <= high:
            self._refuse(name, f"must be from {low} to {high}")
        return found

    def real(
        self, name: str, low: float, high: float, default: float | _Required = REQUIRED
    ) -> float:
        """Return a number from `low` to `high`."""
        value = self.values.get(name)
        if value is None or value == "":
            return self._default(name, default)
        found = _real(value)
        if found is None:
            self._refuse(name, "must be a number")
        if not low <= found <= high:
            self._refuse(name, f"must be from {low:g} to {high:g}")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false, also from the words that forms have for them."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
            return value.lower() in _TRUE
        if not isinstance(value, bool):
            self._refuse(name, "must be true or false")
        return value

    def choice(
        self,
        name: str,
        choices: Sequence[str],
        default: str | _Required = REQUIRED,
    ) -> str:
        """Return one of several words."""
        found = self.text(name, default)
        if self.has(name) and found not in choices:
            self._refuse(name, f"must be one of {', '.join(choices)}")
        return found

    def inner(self, name: str) -> "Fields":
        """Return the fields of an object inside; none where it is absent."""
        value = self.values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self._refuse(name, "must be an object")
        return Fields(value, inside=self._named(name))

    def file(self, name: str) -> Upload:
        """Return an uploaded file."""
        if name not in self.files:
            raise MissingField(self._named(name))
        return self.files[name]

    def _is_form(self, value: Any) -> bool:
        return isinstance(value, _Repeated)

    def _default(self, name: str, default: Any) -> Any:
        if default is REQUIRED:
            raise MissingField(self._named(name))
        return default

    def _named(self, name: str) -> str:
        return f"{self.inside}.{name}" if self.inside else name

    def _refuse(self, name: str, reason: str) -> NoReturn:
        named = self._named(name)
        raise InvalidRequest(f"{named} {reason}", named)


class _Repeated(list[str]):
    """The values of a field that occurs several times in a form."""


async def read_fields(request: Request, limits: Limits) -> Fields:
    """Read the fields of the body and of the query string; the body's are the stronger ones.

    The body may be an object of JSON, or a form of either kind. A method that has no body may
    come with one all the same: it is read where it can be, and never refused. Later calls return
    the same fields. Raises InvalidRequest for what cannot be read and TooLarge.
    """
    found = request.scope.get(_FIELDS)
    if not isinstance(found, Fields):
        found = await _read(request, limits)
        request.scope[_FIELDS] = found
    return found


async def read_json(request: Request, limits: Limits) -> Any:
    """Read a body of JSON, of any type. Raises InvalidRequest and TooLarge."""
    return parse_json(await read_body(request, limits))


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read the body as it is. Raises TooLarge where it is above the limit.

    What was read stays with the request, for who reads it again.
    """
    body = request.scope.get(_BODY)
    if not isinstance(body, bytes):
        body = await _read_whole(request, limits.max_body)
        request.scope[_BODY] = body
    return body


async def _read_whole(request: Request, most: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise TooLarge(f"the body is larger than {shown_size(most)}")
    return bytes(body)


async def _read(request: Request, limits: Limits) -> Fields:
    most = limits.max_texts + _OTHER_FIELDS
    query = request.scope["query_string"]
    fields = _parse_form(query, most) if query else {}
    if request.method not in _WITHOUT_BODY:
        sent = await _read_sent(request, limits, most)
        return Fields(fields | sent.values, sent.files)
    body = await read_body(request, limits)
    try:
        kind, _ = _content_type(request)
        return Fields(fields | _parse(kind, body, most))
    except InvalidRequest:
        return Fields(fields)


async def _read_sent(request: Request, limits: Limits, most: int) -> Fields:
    """Read the body of a method that has one."""
    kind, boundary = _content_type(request)
    if kind != _MULTIPART:
        return Fields(_parse(kind, await read_body(request, limits), most))
    reader = MultipartReader(boundary, limits, most)
    request.scope.setdefault("weft.uploads", []).append(reader)
    async for piece in request.stream():
        reader.write(piece)
    reader.finish()
    return Fields(_by_name(reader.texts), reader.files)


def close_files(scope: Any) -> None:
    """Close the files that came with a request, which deletes them."""
    for reader in scope.get("weft.uploads", ()):
        reader.close()


def _parse(kind: str, body: bytes, most: int) -> dict[str, Any]:
    """Return the fields of a body by its type; none of an empty one."""
    if not body.strip():
        return {}
    if kind == "application/json" or kind.endswith("+json"):
        return parse_object(body)
    if kind != _FORM:
        raise InvalidRequest(f"the body's Content-Type must be {_TYPES}")
    if body.lstrip()[:1] == b"{":
        raise InvalidRequest(
            "the body looks like JSON; send it with Content-Type: application/json"
        )
    return _parse_form(body, most)


def _content_type(request: Request) -> tuple[str, bytes]:
    """Return the type of the body, and the boundary of a multipart form.

    Raises InvalidRequest where its text is not UTF-8.
    """
    kind, options = parse_options_header(request.headers.get("content-type"))
    charset = options.get(b"charset", b"utf-8").lower()
    if charset not in (b"utf-8", b"utf8", b"us-ascii"):
        raise InvalidRequest("the body must be UTF-8")
    return kind.decode("latin-1"), options.get(b"boundary", b"")


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the object of a body of JSON. Raises InvalidRequest for anything else."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object")
    return value


def parse_json(body: bytes) -> Any:
    """Return the value of a body of JSON. Raises InvalidRequest.

    Stricter than Python's parser: a key occurs once in an object, numbers are finite, and text
    holds no half characters.
    """
    text = decoded(body.removeprefix(b"\xef\xbb\xbf"))
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise NotJson(
            f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise InvalidRequest("the body's JSON is nested too deeply") from None
    except ValueError:  # a whole number of thousands of digits
        raise InvalidRequest("the body's JSON has a number that is too long") from None
    if "\\u" in text:
        _refuse_halves(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidRequest("the body's JSON has a key twice in one object")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidRequest("the body's JSON has a number that is too large")
    return number


def _refuse_constant(word: str) -> NoReturn:
    raise InvalidRequest("the body's JSON has a number that is not finite")


def _refuse_halves(value: Any) -> None:
    """Raise InvalidRequest where a string in `value` has half a character."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            refuse_half(part)


def refuse_half(text: str) -> None:
    """Raise InvalidRequest where a text has half a character, which UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            "the body's JSON has half of a character (a lone surrogate)"
        ) from None


def decoded(data: bytes) -> str:
    """Return the text of bytes. Raises InvalidRequest where they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("the request is not UTF-8") from None


def _parse_form(data: bytes, most: int) -> dict[str, Any]:
    """Return the fields of a form or a query string, of at most `most`."""
    try:
        pairs = parse_qsl(
            decoded(data),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=most,
        )
    except UnicodeDecodeError:
        raise InvalidRequest("the form is not UTF-8") from None
    except ValueError:
        raise TooLarge(f"the form has more than {most} fields") from None
    return _by_name(pairs)


def _by_name(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return fields by name: a string, or several."""
    several: dict[str, _Repeated] = {}
    for name, value in pairs:
        several.setdefault(name, _Repeated()).append(value)
    found: dict[str, Any] = {}
    for name, values in several.items():
        found[name] = values if len(values) > 1 else values[0]
    return found


def _whole(value: Any) -> int | None:
    """Return a whole number of JSON or of a form; None for anything else."""
    if isinstance(value, str) and len(value) <= 20 and value.isascii():
        digits = value.strip().removeprefix("-")
        return int(value) if digits.isdigit() else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole else None


def _real(value: Any) -> float | None:
    """Return a finite number of JSON or of a form; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
