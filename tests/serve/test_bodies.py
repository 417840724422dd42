"""What is read of a request: the fields, whatever form they come in, and nothing that hurts."""

import asyncio
import json
from collections.abc import Iterable
from urllib.parse import quote

import pytest
from starlette.requests import Request

from weft.serve.bodies import (
    Fields,
    MissingField,
    NotJson,
    close_files,
    read_fields,
    read_json,
)
from weft.serve.limits import Limits
from weft.serve.refusals import InvalidRequest, Refusal, TooLarge
from weft.serve.uploads import safe_name

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=XX"


def request(
    body: bytes | Iterable[bytes] = b"",
    kind: str | None = JSON,
    query: str = "",
    method: str = "POST",
) -> Request:
    """A request whose body arrives in the given pieces."""
    pieces = [body] if isinstance(body, bytes) else list(body)
    waiting = iter(pieces)
    sent = 0

    async def receive() -> dict[str, object]:
        nonlocal sent
        sent += 1
        more = sent < len(pieces)
        return {"type": "http.request", "body": next(waiting), "more_body": more}

    headers = [] if kind is None else [(b"content-type", kind.encode())]
    scope = {
        "type": "http",
        "method": method,
        "path": "/",
        "query_string": query.encode(),
        "headers": headers,
    }
    return Request(scope, receive)


def fields(*given: object, limits: Limits | None = None, **named: object) -> Fields:
    asked = request(*given, **named)  # type: ignore[arg-type]
    return asyncio.run(read_fields(asked, limits or Limits()))


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    more = "" if filename is None else f'; filename="{filename}"'
    head = f'--XX\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return head.encode() + content + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--XX--\r\n"


def test_the_same_fields_come_in_four_forms() -> None:
    same = [
        fields(json.dumps({"q": "Grüße & mehr", "n": 2}).encode()),
        fields(f"q={quote('Grüße & mehr')}&n=2".encode(), FORM),
        fields(form(part("q", "Grüße & mehr".encode()), part("n", b"2")), MULTIPART),
        fields(b"", None, f"q={quote('Grüße & mehr')}&n=2"),
        fields(b"", JSON, f"q={quote('Grüße & mehr')}&n=2"),
        fields(b"", None, f"q={quote('Grüße & mehr')}&n=2", method="GET"),
    ]
    for found in same:
        assert found.text("q") == "Grüße & mehr"
        assert found.texts("q") == ["Grüße & mehr"]
        assert not found.is_list("q")
        assert found.number("n", 0, 5) == 2
        assert found.real("n", 0, 5) == 2.0


def test_lists_are_those_of_json_and_fields_that_occur_again() -> None:
    for found in (
        fields(b'{"q": ["a", "b"]}'),
        fields(b"q=a&q=b", FORM),
        fields(form(part("q", b"a"), part("q", b"b")), MULTIPART),
        fields(b"", None, "q=a&q=b"),
    ):
        assert found.is_list("q")
        assert found.texts("q") == ["a", "b"]
    assert fields(b"q=a&q=b", FORM).text("q") == "a"
    with pytest.raises(InvalidRequest, match="q must be a string"):
        fields(b'{"q": ["a", "b"]}').text("q")
    assert fields(b'{"q": []}').texts("q") == []


def test_the_body_is_stronger_than_the_query_string() -> None:
    found = fields(b'{"q": "body"}', JSON, "q=query&source=de")
    assert (found.text("q"), found.text("source")) == ("body", "de")


def test_what_is_missing_is_named_and_null_is_missing() -> None:
    found = fields(b'{"q": null, "parameters": {"n": "x"}}')
    assert not found.has("q")
    for ask in (found.text, found.texts, found.file):
        with pytest.raises(MissingField, match="q is missing") as caught:
            ask("q")
        assert caught.value.param == "q"
    assert found.text("q", "default") == "default"
    assert found.number("q", 0, 5, 3) == 3
    inner = found.inner("parameters")
    with pytest.raises(InvalidRequest, match=r"parameters\.n must be a whole number"):
        inner.number("n", 0, 5)
    with pytest.raises(MissingField, match=r"parameters\.m is missing"):
        inner.text("m")
    assert found.inner("absent").values == {}
    with pytest.raises(InvalidRequest, match="must be an object"):
        fields(b'{"parameters": [1]}').inner("parameters")


def test_numbers_flags_and_words_are_read_strictly(subtests: pytest.Subtests) -> None:
    for wrong in (
        '"x"', "true", "[1]", "{}", "1.5", "6", "-1", "1e300", '"1_0"', '"٣"', '" "',
        '"99999999999999999999999"', "9" * 4000,
    ):  # fmt: skip
        with subtests.test(wrong[:30]), pytest.raises(InvalidRequest) as caught:
            fields(f'{{"n": {wrong}}}'.encode()).number("n", 0, 5)
        assert caught.value.param == "n"
    for right, number in (("5", 5), ("2.0", 2), ('"4"', 4), ('" 4"', 4), ('"-0"', 0)):
        with subtests.test(right):
            found = fields(f'{{"n": {right}}}'.encode())
            assert found.number("n", 0, 5) == number
    for wrong in ('"x"', "true", "[1]", '"nan"', '"inf"', "2.1", "-0.1", "9" * 400):
        with subtests.test(wrong), pytest.raises(InvalidRequest):
            fields(f'{{"n": {wrong}}}'.encode()).real("n", 0, 2)
    assert fields(b'{"n": ""}').number("n", 0, 5, 1) == 1
    assert fields(b'{"n": "0.5"}').real("n", 0, 1) == 0.5
    for word, truth in (("true", True), ('"on"', True), ('"FALSE"', False)):
        assert fields(f'{{"n": {word}}}'.encode()).flag("n") is truth
    assert fields(b"{}").flag("n", True) is True
    for wrong in ('"maybe"', "1", "[]"):
        with pytest.raises(InvalidRequest, match="true or false"):
            fields(f'{{"n": {wrong}}}'.encode()).flag("n")
    assert fields(b'{"f": "html"}').choice("f", ("text", "html"), "text") == "html"
    assert fields(b"{}").choice("f", ("text", "html"), "text") == "text"
    with pytest.raises(InvalidRequest, match="f must be one of text, html"):
        fields(b'{"f": "secret"}').choice("f", ("text", "html"))


HOSTILE: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"secret", JSON),
    "half an object": (b'{"secret": ', JSON),
    "a list": (b'["secret"]', JSON),
    "null": (b"null", JSON),
    "a string": (b'"secret"', JSON),
    "a key twice": (b'{"secret": 1, "secret": 2}', JSON),
    "a key twice inside": (b'{"a": [{"secret": 1, "secret": 2}]}', JSON),
    "NaN": (b'{"q": NaN}', JSON),
    "infinity": (b'{"q": -Infinity}', JSON),
    "a large number": (b'{"q": 1e400}', JSON),
    "a long number": (b'{"q": ' + b"9" * 5000 + b"}", JSON),
    "half a character": (b'{"q": "secret \\ud800"}', JSON),
    "half a character in a key": (b'{"secret \\udc00": 1}', JSON),
    "half a character inside": (b'{"q": [{"a": ["\\uD800"]}]}', JSON),
    "deep lists": (b'{"q": ' + b"[" * 100_000, JSON),
    "deep lists, closed": (b'{"q":' + b"[" * 50_000 + b"]" * 50_000 + b"}", JSON),
    "deep objects": (b'{"a":' * 100_000, JSON),
    "not UTF-8": (b'{"q": "secret \xff"}', JSON),
    "UTF-16": ('{"q": "secret"}'.encode("utf-16"), JSON),
    "another charset": (b'{"q": "secret"}', f"{JSON}; charset=latin-1"),
    "another type": (b'{"q": "secret"}', "text/plain"),
    "a type that is none": (b'{"q": "secret"}', "\xff;;;="),
    "no type": (b'{"q": "secret"}', ""),
    "JSON called a form": (b' {"q": "secret"}', FORM),
    "a form that is not UTF-8": (b"q=secret%ff", FORM),
    "a form with raw bytes": (b"q=secret\xff", FORM),
    "half a character in a form": (b"q=%ED%A0%80", FORM),
    "a form without a boundary": (form(part("q", b"secret")), "multipart/form-data"),
    "a long boundary": (b"secret", f"multipart/form-data; boundary={'s' * 300}"),
    "a form that is cut": (part("q", b"secret"), MULTIPART),
    "no form": (b"secret", MULTIPART),
    "a part without a name": (
        form(b"--XX\r\nContent-Disposition: form-data\r\n\r\nsecret\r\n"),
        MULTIPART,
    ),
    "a part without headers": (form(b"--XX\r\n\r\nsecret\r\n"), MULTIPART),
    "a part that is not UTF-8": (form(part("q", b"secret\xff")), MULTIPART),
    "many headers": (b"--XX\r\n" + b"A: secret\r\n" * 100, MULTIPART),
    "a long header": (b"--XX\r\nA: " + b"secret" * 1000, MULTIPART),
    "a file twice": (
        form(part("f", b"secret", "a.txt"), part("f", b"secret", "b.txt")),
        MULTIPART,
    ),
}


def test_hostile_bodies_are_refused_in_one_line_without_an_echo(
    subtests: pytest.Subtests,
) -> None:
    for name, (body, kind) in HOSTILE.items():
        with subtests.test(name):
            asked = request(body, kind)
            with pytest.raises(InvalidRequest) as caught:
                asyncio.run(read_fields(asked, Limits()))
            close_files(asked.scope)
            said = caught.value.message
            assert said
            assert "\n" not in said
            assert "secret" not in said
            assert caught.value.status == 400
    with pytest.raises(NotJson):
        fields(b"secret")


def test_hostile_query_strings_are_refused() -> None:
    for query in ("q=%ff", "q=%ED%A0%80"):
        for method in ("GET", "POST"):
            with pytest.raises(InvalidRequest):
                fields(b"", None, query, method)


def test_a_body_of_get_is_read_if_it_can_be_and_never_hurts() -> None:
    assert fields(b"type=target", FORM, "", "GET").text("type") == "target"
    assert fields(b'{"a": "b"}', JSON, "", "GET").text("a") == "b"
    for body, kind in HOSTILE.values():
        assert fields(body, kind, "q=kept", "GET").values == {"q": "kept"}


def test_sizes_are_counted_while_the_body_arrives() -> None:
    limits = Limits(max_body=1000, max_file=3000, max_texts=10)
    read: list[int] = []

    def arriving(piece: bytes, head: bytes = b"") -> Iterable[bytes]:
        yield head
        for i in range(100):
            read.append(i)
            yield piece

    pieces = {
        JSON: arriving(b"x" * 100),
        FORM: arriving(b"q=" + b"x" * 98),
        MULTIPART: arriving(b"x" * 100, part("q", b"x")[:-2]),
    }
    for kind, body in pieces.items():
        del read[:]
        asked = lazily(body, kind)
        with pytest.raises(TooLarge, match="1000 bytes"):
            asyncio.run(read_fields(asked, limits))
        assert len(read) <= 11
    del read[:]
    asked = lazily(arriving(b"x" * 100, part("f", b"x", "a.txt")[:-2]), MULTIPART)
    with pytest.raises(TooLarge, match="3000 bytes"):
        asyncio.run(read_fields(asked, limits))
    assert 29 <= len(read) <= 31
    close_files(asked.scope)
    for body, kind in (
        (b"&".join([b"q=x"] * 111), FORM),
        (form(*[part("q", b"")] * 111), MULTIPART),
    ):
        with pytest.raises(TooLarge):
            fields(body, kind, limits=Limits(max_texts=10))


def lazily(body: Iterable[bytes], kind: str) -> Request:
    waiting = iter(body)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": next(waiting), "more_body": True}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"content-type", kind.encode())],
    }
    return Request(scope, receive)


def test_a_file_is_kept_until_the_request_ends() -> None:
    content = bytes(range(256)) * 8192  # larger than is kept in memory
    body = form(part("source", b"en"), part("file", content, "../../a b.txt"))
    pieces = [body[i : i + 65_536] for i in range(0, len(body), 65_536)]
    asked = request(pieces, MULTIPART)
    found = asyncio.run(read_fields(asked, Limits()))
    upload = found.file("file")
    assert (upload.name, upload.size) == ("a b.txt", len(content))
    assert upload.file.read() == content
    assert found.text("source") == "en"
    close_files(asked.scope)
    assert upload.file.closed


def test_names_of_files_are_safe_anywhere() -> None:
    for name, safe in {
        "report.docx": "report.docx",
        "/etc/passwd": "passwd",
        "..\\..\\boot.ini": "boot.ini",
        "..": "file",
        "": "file",
        "a\x00b\nc\u202e.txt": "abc.txt",
        'x"; filename="y': "x; filename=y",
        "Grüße 你好.txt": "Grüße 你好.txt",
        "a" * 300 + ".html": "a" * 95 + ".html",
    }.items():
        assert safe_name(name) == safe


def test_what_was_read_stays_with_the_request() -> None:
    async def twice() -> None:
        asked = request(b'{"q": "a"}')
        assert (await read_fields(asked, Limits())).text("q") == "a"
        assert (await read_fields(asked, Limits())).text("q") == "a"
        assert await read_json(asked, Limits()) == {"q": "a"}
        other = Request(asked.scope, asked.receive)
        assert (await read_fields(other, Limits())).text("q") == "a"

    asyncio.run(twice())


def test_a_body_of_json_may_be_of_any_type_where_a_route_takes_it() -> None:
    assert asyncio.run(read_json(request(b"\xef\xbb\xbf[1]"), Limits())) == [1]
    with pytest.raises(Refusal):
        asyncio.run(read_json(request(b""), Limits()))
