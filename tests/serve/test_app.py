"""The application in this process: who is let in, in what shape it refuses, what it tells."""

import asyncio
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.testclient import TestClient

from weft.serve.app import Settings, build_app
from weft.serve.bodies import read_fields
from weft.serve.dialects.dialect import Dialect
from weft.serve.glossaries import Glossaries
from weft.serve.limits import Limits
from weft.serve.pool import Load
from weft.serve.refusals import Gone, Overloaded
from weft.serve.visits import caller_of, current_visit

SECRET = "Geheimnis"
JSON = {"content-type": "application/json"}


class Service:
    """As much of a service as the application itself looks at."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pool = SimpleNamespace(load=lambda: Load(6, 5, 2, 1), is_stopping=False)
        self.catalogue = SimpleNamespace(models={}, pairs=list)
        self.glossaries = Glossaries()


def routes(service: Any) -> APIRouter:
    router = APIRouter()

    @router.post("/shout/{loudness}")
    async def shout(request: Request) -> Response:
        fields = await read_fields(request, service.limits)
        client = caller_of(request).client
        return JSONResponse({"shouted": fields.text("q").upper(), "for": client})

    @router.post("/shout/it/wrong")
    async def wrong(request: Request) -> Response:
        fields = await read_fields(request, service.limits)
        raise KeyError(fields.text("q"))

    @router.post("/shout/it/busy")
    async def busy(request: Request) -> Response:
        raise Overloaded(2.3)

    @router.post("/shout/it/gone")
    async def gone(request: Request) -> Response:
        raise Gone

    @router.post("/shout/it/teapot")
    async def teapot(request: Request) -> Response:
        raise HTTPException(418, SECRET)

    @router.post("/shout/it/number")
    async def number(n: int) -> Response:
        return JSONResponse({"n": n})

    @router.post("/shout/it/slowly")
    async def slowly(request: Request) -> Response:
        await read_fields(request, service.limits)

        async def parts() -> Any:
            yield b"one "
            visit = current_visit()
            assert visit is not None
            visit.note(read=3, written=2, turn=visit.began + 0.01)
            yield b"two"
            if "break" in request.query_params:
                raise ValueError(SECRET)

        return StreamingResponse(parts())

    return router


SHOUTING = Dialect(
    name="shouting",
    routes=routes,
    owns=lambda path: path.startswith("/shout"),
    refuse=lambda refusal: JSONResponse({"NO": refusal.message}, refusal.status),
)


def client_of(settings: Settings | None = None, **limits: Any) -> TestClient:
    service: Any = Service(Limits(**limits))
    app = build_app(service, [SHOUTING], settings)
    client = TestClient(app, base_url="http://localhost")
    client.app_state["service"] = service
    return client


@pytest.fixture
def client() -> TestClient:
    return client_of()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "weft.serve"):
        yield caplog


def test_what_is_refused_has_the_shape_of_the_paths_owner(client: TestClient) -> None:
    for method, path, body, status in (
        ("POST", "/shout/3", {}, 400),
        ("POST", "/shout/3/4/5", {}, 404),
        ("POST", "/shout/it/teapot", {}, 418),
        ("POST", "/shout/it/busy", {}, 503),
        ("POST", "/shout/it/wrong", {"q": SECRET}, 500),
        ("POST", "/shout/it/number?n=Geheimnis", {}, 400),
        ("DELETE", "/shout/3", None, 405),
    ):
        answer = client.request(method, path, json=body)
        assert answer.status_code == status
        assert list(answer.json()) == ["NO"]
        assert SECRET not in answer.text
    for method, path, status, code in (
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/shou", 404, "not_found"),
        ("GET", "/health/", 404, "not_found"),
        ("POST", "/health", 405, "method_not_allowed"),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status
        assert answer.json()["code"] == code
    assert client.post("/health").headers["allow"] == "GET, HEAD"
    assert client.post("/shout/it/busy").headers["retry-after"] == "3"


def test_a_body_is_not_read_further_than_its_limit() -> None:
    client = client_of(max_body=1000, max_file=2000)
    read: list[int] = []

    def body() -> Iterator[bytes]:
        for i in range(50):
            read.append(i)
            yield b" " * 100

    answer = client.post("/shout/3", content=body(), headers=JSON)
    assert answer.status_code == 413
    assert list(answer.json()) == ["NO"]
    # a length that is told is believed where it is too much, and nowhere else
    told = {**JSON, "content-length": "5000"}
    answer = client.post("/shout/3", content=b"{}", headers=told)
    assert answer.status_code == 413
    answer = client.post(
        "/shout/3", content=b" " * 2000, headers={**JSON, "content-length": "10"}
    )
    assert answer.status_code == 413


def test_an_error_is_logged_with_its_place_and_without_its_text(
    client: TestClient, log: pytest.LogCaptureFixture
) -> None:
    answer = client.post("/shout/it/wrong?note=Geheimnis", json={"q": SECRET})
    number = answer.headers["x-request-id"]
    assert number in answer.json()["NO"]
    (error,) = [one for one in log.records if one.levelname == "ERROR"]
    said = error.getMessage()
    assert number in said
    assert "KeyError" in said
    assert "test_app.py" in said
    assert "in wrong" in said
    assert SECRET not in log.text


def test_a_line_of_the_log_tells_the_route_and_nothing_of_the_client(
    client: TestClient, log: pytest.LogCaptureFixture
) -> None:
    headers = {"authorization": f"Bearer {SECRET}", "user-agent": SECRET}
    client.post("/shout/Geheimnis?q=Geheimnis", json={"q": SECRET}, headers=headers)
    client.get("/Geheimnis")
    client.request("GEHEIMNIS", "/shout/3")
    client.post("/shout/it/slowly", json={})
    lines = [one.getMessage() for one in log.records if one.name == "weft.serve"]
    told = [line.partition(" ms")[0].rsplit(" ", 1)[0] for line in lines]
    assert told == [
        "POST /shout/{loudness} 200",
        "GET none 404 not_found",
        "other /shout/{loudness} 405 method_not_allowed",
        "POST /shout/it/slowly 200",
    ]
    assert lines[3].endswith("ms 2 tokens")
    assert "testclient" not in "".join(lines)


def test_a_refused_request_is_logged_with_its_route_and_why(
    client: TestClient, log: pytest.LogCaptureFixture
) -> None:
    client.post("/shout/3", headers={"origin": "http://evil.example"})
    client.get("/health", headers={"host": "evil.example"})
    client.post("/Geheimnis", headers={"host": "evil.example"})
    told = [one.getMessage().partition(" ms")[0] for one in log.records]
    assert [line.rsplit(" ", 1)[0] for line in told] == [
        "POST /shout/{loudness} 403 forbidden",
        "GET /health 403 forbidden",
        "POST none 403 forbidden",
    ]


def test_the_numbers_are_named_as_vllm_names_them_and_hold_no_text() -> None:
    client = client_of()
    client.post("/shout/Geheimnis", json={"q": SECRET})
    client.post("/shout/it/slowly", json={})
    client.post("/shout/it/gone", json={})
    client.request("GEHEIMNIS", "/shout/3")
    client.get("/Geheimnis", headers={"x-api-key": SECRET})
    page = client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    numbers = dict(
        line.rsplit(" ", 1) for line in page.text.split("\n") if line[:1] not in "#"
    )
    assert numbers["weft:num_requests_running"] == "2.0"
    assert numbers["weft:num_requests_waiting"] == "1.0"
    assert numbers["weft:num_rows_running"] == "6.0"
    assert numbers["weft:num_rows_waiting"] == "5.0"
    assert numbers['weft:request_success_total{finished_reason="stop"}'] == "1.0"
    assert numbers["weft:prompt_tokens_total"] == "3.0"
    assert numbers["weft:generation_tokens_total"] == "2.0"
    for name in ("e2e_request_latency", "time_to_first_token", "request_queue_time"):
        assert numbers[f"weft:{name}_seconds_count"] == "1.0"
    of_shouts = 'weft:http_requests_total{method="POST",route="/shout/{loudness}"'
    assert numbers[f'{of_shouts},status="200"}}'] == "1.0"
    unknown = 'weft:http_requests_total{method="GET",route="none",status="404"}'
    assert numbers[unknown] == "1.0"
    assert SECRET.lower() not in page.text.lower()
    assert "testclient" not in page.text


def test_unknown_paths_make_no_new_series() -> None:
    client = client_of()
    client.get("/a")
    before = len(client.get("/metrics").text.split("\n"))
    for i in range(50):
        client.get(f"/a{i}")
        client.post(f"/shout/{i}", json={"q": "a"})
        client.request(f"M{i}", "/health")
    after = len(client.get("/metrics").text.split("\n"))
    assert after - before <= 4


def test_an_answer_that_breaks_off_is_not_taken_for_whole(
    client: TestClient, log: pytest.LogCaptureFixture
) -> None:
    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        is_read = False

        async def receive() -> dict[str, Any]:
            nonlocal is_read
            if is_read:
                await asyncio.Event().wait()
            is_read = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/shout/it/slowly",
            "query_string": b"break=1",
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
            "scheme": "http",
        }
        app: Any = client.app
        await app(scope, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 200
    assert b"".join(m.get("body", b"") for m in sent) == b"one two"
    assert all(message.get("more_body", True) for message in sent)
    assert "ValueError" in log.text
    assert SECRET not in log.text


def test_other_hosts_and_pages_of_other_sites_are_refused() -> None:
    """A page that a person visits must not use the person's server, by any name."""
    client = client_of(Settings(hosts=("localhost", "Weft.Example")))

    def status(host: str | None = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if host is not None:
            named["host"] = host
        answer = client.post("/shout/3", json={"q": "a"}, headers=named)
        if answer.status_code == 403:
            assert list(answer.json()) == ["NO"]
        return answer.status_code

    for host in (
        "localhost", "localhost:5000", "LOCALHOST:1", "127.0.0.1:5000", "[::1]:5000",
        "192.168.0.9", "weft.example",
    ):  # fmt: skip
        assert status(host) == 200, host
    for host in (
        "evil.example", "localhost.evil.example", "evil@localhost", "localhost/x",
        "localhost:x", "", "local host", "127.0.0.1.evil.example", "[::1", "localhost:",
    ):  # fmt: skip
        assert status(host) == 403, host
    for origin in ("http://localhost", "https://LOCALHOST", "chrome-extension://abc"):
        assert status(origin=origin) == 200, origin
    for origin in ("http://evil.example", "null", "http://localhost:3000", "file://"):
        assert status(origin=origin) == 403, origin
    assert status("weft.example", origin="https://weft.example") == 200
    for site in ("cross-site", "same-site"):
        assert status(sec_fetch_site=site) == 403
        assert client.get("/health", headers={"sec-fetch-site": site}).is_client_error
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/health", headers=link).status_code == 200
    assert client.post("/shout/3", headers=link).status_code == 403


def test_a_page_of_another_site_is_answered_where_the_server_allows_it() -> None:
    site = "https://page.example"
    asks = {
        "origin": site,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    assert "access-control-allow-origin" not in client_of().get("/health").headers
    assert client_of().options("/shout/3", headers=asks).status_code == 403
    client = client_of(Settings(origins=("https://Page.example/",)))
    permitted = client.options("/shout/3", headers=asks)
    assert permitted.status_code == 204
    assert permitted.headers["access-control-allow-origin"] == site
    assert "POST" in permitted.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in permitted.headers
    answer = client.post("/shout/3", json={"q": "a"}, headers={"origin": site})
    assert answer.json()["shouted"] == "A"
    assert answer.headers["access-control-allow-origin"] == site
    assert answer.headers["vary"] == "Origin"
    for other in ("https://page.example.evil", "http://page.example"):
        assert client.get("/health", headers={"origin": other}).status_code == 403
    anybody = client_of(Settings(origins=("*",)))
    answer = anybody.get("/health", headers={"origin": "https://any.example"})
    assert answer.headers["access-control-allow-origin"] == "https://any.example"


def test_every_answer_has_the_headers_that_keep_a_browser_safe(
    client: TestClient,
) -> None:
    for answer in (
        client.get("/health"),
        client.get("/nowhere"),
        client.post("/shout/it/wrong", json={"q": "a"}),
        client.get("/health", headers={"host": "evil.example"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert len(answer.headers["x-request-id"]) == 16
        assert "server" not in answer.headers


def test_the_server_says_how_it_is(client: TestClient) -> None:
    for path in ("/health", "/ready"):
        assert client.get(path).json() == {"status": "ok"}
        answer = client.request("GET", path, json={"q": "a"})
        assert answer.json() == {"status": "ok"}
    client.app_state["service"].pool.is_stopping = True
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 503
    info = client.get("/info").json()
    assert info["limits"]["max_texts"] == Limits().max_texts
    assert info["dialects"] == ["shouting"]
    assert "head_seconds" not in info["limits"]
    described = client.get("/openapi.json").json()
    (place,) = described["paths"]["/shout/{loudness}"]["post"]["parameters"]
    assert (place["name"], place["in"], place["required"]) == ("loudness", "path", True)
    assert client.get("/openapi.json").json() == described
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404
