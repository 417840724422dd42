"""Requests that nobody should send: each is answered, in the dialect's own shape, and never with a
fault of the server. What was sent is not repeated.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from weft.serve.limits import Limits

from .conftest import MODELS, StandIn, all_dialects, small_app

SECRET = "Geheimnis, das in keiner Antwort stehen darf"

# Every route that reads a body, with its fields, and the key of its errors.
ROUTES: dict[str, tuple[tuple[str, ...], str]] = {
    "/translate": (
        ("q", "source", "target", "format", "alternatives", "words"),
        "error",
    ),
    "/detect": (("q",), "error"),
    "/suggest": (("q", "s", "source", "target"), "error"),
    "/translate_file": (("file", "source", "target"), "error"),
    "/v2/translate": (
        ("text", "source_lang", "target_lang", "tag_handling", "ignore_tags"),
        "message",
    ),
    "/v2/languages": (("type",), "message"),
    "/MtRestService/PreOrderBatch": (("input",), "Message"),
    "/MtRestService/TranslatePost": (("input", "srcLangCode", "modelTag"), "Message"),
    "/": (("inputs", "parameters", "options"), "error"),
    "/models/stars": (("inputs", "parameters"), "error"),
    "/immersive": (("source_lang", "target_lang", "text_list"), "error"),
    "/classify": (("model", "input"), "error"),
    "/predict": (("inputs", "raw_scores", "truncate"), "error"),
    "/v1/translate": (
        (
            "texts",
            "text",
            "source",
            "target",
            "n_best",
            "temperature",
            "words",
            "prefix",
        ),
        "error",
    ),
    "/v1/detect": (("text",), "error"),
    "/v1/complete": (("text", "prefix", "source", "target", "alternatives"), "error"),
    "/v1/inspect": (("model", "text", "parts"), "error"),
    "/v1/segments": (("file",), "error"),
    "/v1/terms": (("file", "source", "target"), "error"),
}
ODD_BODIES: list[tuple[str, bytes]] = [
    ("application/json", body)
    for body in (
        b"",
        b"{",
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"[" * 5000,
        b'{"q":' * 5000 + b"1" + b"}" * 5000,
        b'{"q": "\\ud800", "source": "en", "target": "de"}',
        b'{"q": NaN}',
        b'{"q": "a", "alternatives": 1e400}',
        b'{"q": "a", "alternatives": ' + b"9" * 5000 + b"}",
        b'{"q": "a", "q": "b"}',
        b'{"q": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b'{"q": "a\\u0000b", "source": "en", "target": "de"}',
    )
] + [
    ("", b"q=a"),
    ("text/plain", b'{"q": "a", "source": "en", "target": "de"}'),
    ("application/json; charset=utf-16", b"{}"),
    ("application/x-www-form-urlencoded", b"q=%ff&source=en&target=de"),
    ("application/x-www-form-urlencoded", b"&&&=;%"),
    ("multipart/form-data", b"--x\r\n"),
    ("multipart/form-data; boundary=x", b"--x\r\ncontent-disposition: form-data\r\n"),
    ("multipart/form-data; boundary=x", b"nothing"),
    ("application/xml", b"<q>a</q>"),
]


@pytest.fixture(scope="module")
def ask() -> Iterator[TestClient]:
    """A client that stays open: opening one costs more than a request."""
    service = StandIn(MODELS, Limits(max_text=200, max_texts=5, max_body=2**16))
    with TestClient(small_app(service, all_dialects())) as client:
        yield client


def check(path: str, reply: Any) -> None:
    """An answer, or a refusal in the dialect's shape that repeats nothing."""
    assert reply.status_code < 500
    if reply.status_code >= 400:
        key = ROUTES[path][1]
        assert key in reply.json()
        assert SECRET not in reply.text
        if path == "/classify" or path.startswith("/v1/"):
            error = reply.json()[key]
            assert set(error) == {"message", "type", "param", "code"}
            assert "\n" not in error["message"]
        else:
            assert isinstance(reply.json()[key], str)


@pytest.mark.parametrize("path", ROUTES)
def test_odd_bodies_are_refused(
    ask: TestClient, path: str, subtests: pytest.Subtests
) -> None:
    for kind, body in ODD_BODIES:
        with subtests.test(f"{kind} {body[:20]!r}"):
            headers = {"content-type": kind} if kind else {}
            check(path, ask.post(path, content=body, headers=headers))


@pytest.mark.parametrize("path", ROUTES)
def test_values_of_every_type_in_every_field(ask: TestClient, path: str) -> None:
    fields, _ = ROUTES[path]
    good = {"q": "a", "source": "en", "target": "de", "inputs": "a", "text": "a"}
    good |= {"target_lang": "de", "text_list": ["a"], "input": "a"}
    whole = {name: good[name] for name in fields if name in good}
    for name in fields:
        for value in (
            *(None, True, -1, 1.5, 10**30, "", " ", "x" * 300, "\x00"),
            *(
                [],
                [None],
                [[]],
                [["a"]],
                ["a", "b"],
                ["a"] * 9,
                [SECRET, 5],
                {},
                {SECRET: {}},
            ),
        ):
            check(path, ask.post(path, json={**whole, name: value}))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["en", "de", "auto", "html", "xml", "", "a b", SECRET]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def requests_of_json(draw: st.DrawFn) -> tuple[str, Any]:
    """A path, and a body whose fields have their own names more often than not."""
    path = draw(st.sampled_from(list(ROUTES)))
    names = st.sampled_from(ROUTES[path][0]) | st.text(max_size=5)
    body = draw(st.dictionaries(names, json_values, max_size=6) | json_values)
    return path, body


@given(asked=requests_of_json())
@settings(max_examples=30, deadline=None)
def test_any_json_is_answered(ask: TestClient, asked: tuple[str, Any]) -> None:
    path, body = asked
    check(path, ask.post(path, json=body))


@pytest.mark.long
@given(asked=requests_of_json())
@settings(max_examples=2000, deadline=None)
def test_much_json_is_answered(ask: TestClient, asked: tuple[str, Any]) -> None:
    path, body = asked
    check(path, ask.post(path, json=body))
