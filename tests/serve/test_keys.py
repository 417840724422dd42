"""Keys: made, read, compared, changed, and asked for at every door."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from weft.errors import FolderError, UsageError
from weft.serve import keys as keys_module
from weft.serve.accounts import Allowance
from weft.serve.app import Settings, build_app
from weft.serve.bodies import read_fields
from weft.serve.dialects.dialect import Dialect
from weft.serve.keys import (
    Keys,
    MissingKey,
    Rates,
    is_loopback,
    new_key,
    read_keys,
    refuse_open_door,
)
from weft.serve.limits import Limits
from weft.serve.pool import Load
from weft.serve.refusals import TooManyRequests, Unauthorized
from weft.serve.visits import caller_of


def write(path: Path, *lines: str, mode: int = 0o600) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    path.chmod(mode)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    return lambda *lines, **more: write(tmp_path / "keys.txt", *lines, **more)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_new_key_is_long_and_its_line_does_not_hold_it(
    file: Callable[..., Path],
) -> None:
    key, line = new_key("laptop")
    other, _ = new_key("laptop")
    assert key != other
    assert len(key) > 40
    assert key not in line
    limits = "tokens=7 requests=60 characters=500"
    keys = Keys(file("# people", "", f"{line} {limits}  # mine"))
    found = keys.find(key)
    assert found is not None
    assert (found.name, found.requests) == ("laptop", 60)
    assert found.allowance == Allowance(characters=500, tokens=7)
    for wrong in (other, key[:-1], key + "x", "", "\udcff", line, line.split(":")[1]):
        assert keys.find(wrong) is None
    for name in ("", "a b", "a#b", "ä", "x" * 41, "a\nb"):
        with pytest.raises(UsageError, match="letters, digits"):
            new_key(name)


def test_a_file_of_keys_that_is_wrong_is_refused_with_its_line(
    file: Callable[..., Path], tmp_path: Path
) -> None:
    _, line = new_key("a")
    digest = line.split()[1]
    for wrong in (
        ["just-a-key"],
        [line, "b sha256:abc"],
        [line, f"b {digest} requests=0"],
        [line, f"b {digest} requests=60 texts"],
        [line, f"b {digest} requests=60 requests=70"],
        [line, f"b {digest} characters=1.5"],
        [line, f"b/c {digest}"],
        [line, f"a {digest}"],
    ):
        with pytest.raises(UsageError) as caught:
            read_keys(file(*wrong))
        assert f"keys.txt:{len(wrong)}" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert digest not in str(caught.value)
    with pytest.raises(UsageError, match="--new-key"):
        read_keys(file("# nothing"))
    with pytest.raises(FolderError, match="cannot be read"):
        read_keys(tmp_path / "absent")
    (tmp_path / "keys.txt").write_bytes(b"\xff\n")
    with pytest.raises(FolderError, match="not UTF-8"):
        read_keys(tmp_path / "keys.txt")


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
def test_a_file_that_others_can_read_or_change_is_refused(
    file: Callable[..., Path],
) -> None:
    _, line = new_key("a")
    for mode in (0o644, 0o660, 0o602):
        with pytest.raises(UsageError, match="chmod 600"):
            read_keys(file(line, mode=mode))
    assert len(read_keys(file(line, mode=0o640))) == 1


def test_changes_of_the_file_count_within_a_second(file: Callable[..., Path]) -> None:
    key, line = new_key("a")
    other, other_line = new_key("b")
    clock = Clock()
    path = file(line)
    keys = Keys(path, clock)
    assert keys.find(other) is None
    file(line, other_line)
    os.utime(path, ns=(1, 1))
    assert keys.find(other) is None
    clock.now += 1
    assert keys.find(other) is not None
    file(other_line)
    clock.now += 1
    assert keys.find(key) is None
    assert keys.find(other) is not None
    file("damaged")
    clock.now += 1
    assert keys.find(other) is not None, "a damaged file locks nobody out"
    path.unlink()
    clock.now += 1
    assert keys.find(other) is not None


def test_every_key_is_compared_in_constant_time(
    file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long it takes must not say how far a guess is right, nor whose key it is."""
    made = [new_key(name) for name in "abc"]
    keys = Keys(file(*(line for _, line in made)))
    compared: list[tuple[bytes, bytes]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(keys_module.hmac, "compare_digest", compare)
    for key in (made[0][0], made[2][0], "wrong"):
        compared.clear()
        keys.find(key)
        assert len(compared) == 3
        assert {len(a) for pair in compared for a in pair} == {32}
    monkeypatch.undo()
    source = inspect.getsource(Keys.find)
    assert "==" not in source
    assert "break" not in source


def test_the_rate_is_a_minute_at_once_and_then_even() -> None:
    clock = Clock()
    rates = Rates(clock)
    for _ in range(60):
        rates.spend("a", 60)
    with pytest.raises(TooManyRequests) as caught:
        rates.spend("a", 60)
    assert caught.value.retry_after == 1
    rates.spend("b", 60)
    rates.spend("a", None)
    clock.now += 1.01
    rates.spend("a", 60)
    with pytest.raises(TooManyRequests):
        rates.spend("a", 60)
    clock.now += 3600
    for _ in range(60):
        rates.spend("a", 60)
    with pytest.raises(TooManyRequests):
        rates.spend("a", 60)


def test_the_rates_of_many_addresses_do_not_fill_the_memory() -> None:
    clock = Clock()
    rates = Rates(clock)
    for i in range(30_000):
        clock.now += 0.01
        rates.spend(str(i), 60)
    assert len(rates._free_at) <= 10_001


def test_other_machines_are_let_in_only_on_purpose() -> None:
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert is_loopback(host)
        refuse_open_door(host, None, False)
    for host in ("0.0.0.0", "::", "192.168.0.9", "weft.example", "1270.0.0.1"):
        assert not is_loopback(host)
        with pytest.raises(UsageError, match="--keys FILE"):
            refuse_open_door(host, None, False)
        refuse_open_door(host, "keys.txt", False)
        refuse_open_door(host, None, True)


def routes(service: Any) -> APIRouter:
    router = APIRouter()

    async def answer(request: Request) -> Response:
        fields = await read_fields(request, service.limits)
        return JSONResponse(
            {"for": caller_of(request).client, "q": fields.text("q", "")}
        )

    for path in ("/translate", "/languages", "/frontend/settings", "/v1/{name}"):
        router.add_api_route(path, answer, methods=["GET"])
        router.add_api_route(path, answer, methods=["POST"], include_in_schema=False)
    return router


def refuse(refusal: Any) -> Response:
    return JSONResponse({"NO": refusal.message, "code": refusal.code}, refusal.status)


def client_of(keys: Keys | None, **limits: Any) -> TestClient:
    pool = SimpleNamespace(load=lambda: Load(0, 0, 0, 0), is_stopping=False)
    catalogue = SimpleNamespace(models={}, pairs=list)
    service: Any = SimpleNamespace(
        limits=Limits(**limits), pool=pool, catalogue=catalogue
    )
    dialect = Dialect("d", routes, lambda path: path.startswith(("/t", "/v1")), refuse)
    return TestClient(
        build_app(service, [dialect], Settings(keys=keys)),
        base_url="http://localhost",
    )


def test_a_key_is_taken_wherever_a_client_puts_it(file: Callable[..., Path]) -> None:
    key, line = new_key("laptop")
    client = client_of(Keys(file(line)))
    form = {"q": "a", "api_key": key}
    old = {"q": "a", "auth_key": key}
    for answer in (
        client.post("/translate", json=old),
        client.post("/translate", data=old),
        client.post("/translate", json={}, headers={"authorization": f"Bearer {key}"}),
        client.post("/translate", headers={"authorization": f"bearer  {key} "}),
        client.post("/translate", headers={"authorization": f"DeepL-Auth-Key {key}"}),
        client.post("/translate", headers={"x-api-key": key}),
        client.post("/translate", json=form),
        client.post("/translate", data=form),
        client.post("/translate", files={"file": b"content"}, data=form),
        client.post("/translate", params=form),
        client.post("/translate", params={"tokenCode": key}),
        client.post("/translate", params={"tokenCode": "0", "api_key": key}),
        client.get("/translate", params=form),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json()["for"] == "laptop"


def test_every_route_but_a_few_needs_a_key(file: Callable[..., Path]) -> None:
    key, line = new_key("laptop")
    other, _ = new_key("other")
    client = client_of(Keys(file(line)))
    open_paths = {"/health", "/ready", "/languages", "/frontend/settings"}
    app: Any = client.app
    while not hasattr(app, "openapi"):
        app = app._app
    paths = set(app.openapi()["paths"]) | {"/openapi.json", "/nowhere"}
    assert paths > open_paths
    for path in sorted(paths):
        answer = client.get(path)
        assert (answer.status_code == 401) == (path not in open_paths), path
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["code"] == MissingKey.code
    for path in open_paths:
        assert client.post(path).status_code == 401, "only reading is open"
    for sent in (
        {"headers": {"authorization": f"Bearer {other}"}},
        {"headers": {"x-api-key": b"\xff"}},
        {"json": {"api_key": other}},
        {"params": {"api_key": key[:-1]}},
        {"params": {"tokenCode": other}},
    ):
        answer = client.post("/translate", **sent)  # type: ignore[arg-type]
        assert answer.status_code == Unauthorized.status
        assert answer.json()["code"] == "invalid_key"
        assert other not in answer.text
    for sent in (
        {"content": b"{", "headers": {"content-type": "application/json"}},
        {"json": {"api_key": [key]}},
        {"json": {"auth_key": [key]}},
        {"params": {"auth_key": key}},
        {"params": {"tokenCode": "0"}},
        {"params": {"tokenCode": '""'}},
        {"json": {"api_key": None}},
        {"json": [key]},
        {"headers": {"authorization": f"Basic {key}"}},
        {"headers": {"authorization": key}},
    ):
        answer = client.post("/translate", **sent)  # type: ignore[arg-type]
        assert answer.json()["code"] == MissingKey.code


def test_a_server_without_keys_takes_any(file: Callable[..., Path]) -> None:
    client = client_of(None)
    answer = client.post("/translate", headers={"authorization": "Bearer any"})
    assert answer.json()["for"] == "testclient"


def test_a_client_that_asks_too_often_is_told_when_to_come_again(
    file: Callable[..., Path],
) -> None:
    key, line = new_key("often")
    other, other_line = new_key("seldom")
    client = client_of(
        Keys(file(f"{line} requests=2", other_line)), requests_per_minute=3
    )

    def ask(key: str) -> Any:
        return client.post("/translate", headers={"x-api-key": key})

    assert [ask(key).status_code for _ in range(3)] == [200, 200, 429]
    assert [ask(other).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = ask(key)
    assert 0 < int(refused.headers["retry-after"]) <= 30
    assert list(refused.json()) == ["NO", "code"]
    assert client.get("/health").status_code == 200
    anybody = client_of(None, requests_per_minute=1)
    answers = [anybody.post("/translate").status_code for _ in range(2)]
    assert answers == [200, 429]
