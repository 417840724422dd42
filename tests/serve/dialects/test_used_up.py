"""Keys with a day's allowance: each dialect says in its own shape that it is used up."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from weft.serve.app import Settings, build_app
from weft.serve.keys import Keys, new_key
from weft.serve.pool import Load

from .conftest import StandIn, all_dialects

Client = Callable[[str], TestClient]


@pytest.fixture
def client(service: StandIn, tmp_path: Path) -> Client:
    """Return the client of a key with these limits."""
    pool: Any = SimpleNamespace(load=lambda: Load(0, 0, 0, 0), is_stopping=False)
    service.pool = pool

    def client_with(limits: str) -> TestClient:
        key, line = new_key("laptop")
        path = tmp_path / "keys.txt"
        path.write_text(f"{line} {limits}\n", "utf-8")
        path.chmod(0o600)
        app = build_app(service, all_dialects(), Settings(keys=Keys(path)))
        head = {"authorization": f"Bearer {key}"}
        return TestClient(app, base_url="http://localhost", headers=head)

    return client_with


BOTH = {"source": "en", "target": "de"}
LONG = "a b c d e"


def test_a_used_up_day_is_said_in_the_shape_of_each_dialect(client: Client) -> None:
    ask = client("characters=6")
    words = "this key has 6 of its 6 characters of today left"
    for path, body, status, read in (
        ("/translate", {"q": LONG, **BOTH}, 429, "error"),
        ("/v2/translate", {"text": [LONG], "target_lang": "DE"}, 456, "message"),
        ("/v1/translate", {"text": LONG, **BOTH}, 429, ""),
        ("/immersive", {"text_list": [LONG], "target_lang": "de"}, 429, "error"),
        ("/", {"inputs": LONG}, 429, "error"),
        ("/MtRestService/TranslatePost", {"input": LONG}, 429, "Message"),
    ):
        reply = ask.post(path, json=body)
        assert reply.status_code == status, path
        said = reply.json()
        assert (said[read] if read else said["error"]["message"]) == words, path
        assert 0 < int(reply.headers["retry-after"]) <= 86_400
    files = {"file": ("a.txt", LONG.encode())}
    reply = ask.post("/translate_file", data=BOTH, files=files)
    assert (reply.status_code, reply.json()) == (429, {"error": words})


def test_every_dialect_counts_and_deepl_shows_the_count(client: Client) -> None:
    ask = client("characters=20")
    usage = {"character_count": 0, "character_limit": 20}
    assert ask.get("/v2/usage").json() == usage
    for path, body in (
        ("/translate", {"q": ["a b", "c"], **BOTH}),
        ("/v2/translate", {"text": ["a b", "c"], "target_lang": "DE"}),
        ("/v1/translate", {"texts": ["a b", "c"], **BOTH}),
    ):
        assert ask.post(path, json=body).status_code == 200
        usage["character_count"] += 4
        assert ask.get("/v2/usage").json() == usage
    assert ask.post("/translate", json={"q": LONG, **BOTH}).status_code == 429
    assert ask.get("/v2/usage").json() == usage
    assert ask.post("/detect", json={"q": LONG}).status_code == 200
    without = client("requests=60").get("/v2/usage").json()
    assert without["character_limit"] > 10**9


def test_tokens_that_were_noted_count(client: Client, service: StandIn) -> None:
    ask = client("tokens=5")
    service.num_tokens = 6
    assert ask.post("/translate", json={"q": "a", **BOTH}).status_code == 200
    assert ask.post("/translate", json={"q": "a", **BOTH}).status_code == 429
