"""The server as a process: it starts, says where it is, and ends in grace."""

import json
import socket
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

from tiny_server import MODELS, Running
from weft.serve.keys import new_key
from weft.serve.listening import bound_sockets


def test_the_server_of_all_tests_has_a_model_of_every_task(server: Running) -> None:
    info = server.asked("/info")
    assert [model["id"] for model in info["models"]] == list(MODELS)
    tasks = {model["id"]: model["task"] for model in info["models"]}
    assert tasks["en-zh"] == "translation"
    assert tasks["plays"] == "language-modelling"
    assert tasks["languages"] == "classification"
    assert info["pairs"] == [["en", "de"], ["de", "en"], ["en", "zh"]]
    assert "en-de: translation en-de, by " in server.said()


def test_a_pair_without_a_model_is_translated_over_the_pivot(
    launch: Callable[..., Running],
) -> None:
    server = launch("--pivot", "en", names=("de-en", "en-zh"))
    asked = {"texts": ["Ein Mann."], "source": "de", "target": "zh"}
    (translation,) = server.asked("/v1/translate", asked)["translations"]
    assert translation["models"] == ["de-en", "en-zh"]
    targets = {one["code"]: one["targets"] for one in server.asked("/languages")}
    assert targets["de"] == ["en", "zh-Hans"] or targets["de"] == ["en", "zh"]


def test_answers_are_sent_at_once() -> None:
    """A lone client would wait 40 ms for the second packet of an answer."""
    (listener,) = bound_sockets("127.0.0.1", [0])
    with listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_refusal_reaches_a_client_that_is_still_sending(server: Running) -> None:
    """Such as a proxy, which sends the whole body before it reads, and asks to be left then."""
    size = 8 * 2**20  # more than sockets hold
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(server.address, timeout=20) as one:
        one.sendall(head.encode() + b"x" * size)
        received = b"".join(iter(lambda: one.recv(4096), b""))
    head_of_answer, _, body = received.partition(b"\r\n\r\n")
    assert head_of_answer.startswith(b"HTTP/1.1 413 ")
    assert "larger than 2 MiB" in json.loads(body)["error"]


def test_a_monitor_asks_by_head_and_a_wrong_method_is_told_all_others(
    server: Running,
) -> None:
    one = HTTPConnection(*server.address, timeout=20)
    for path, status in (
        ("/health", 200),
        ("/ready", 200),
        ("/", 200),
        ("/page/base.css", 200),
        ("/v1/models/plays", 200),
        ("/v1/models/none", 404),
        ("/detect", 405),
    ):
        lengths = []
        for method in ("HEAD", "GET"):
            one.request(method, path)
            answer = one.getresponse()
            assert answer.status == status, (method, path)
            lengths.append(answer.headers["content-length"])
            assert bool(answer.read()) == (method == "GET")
        assert lengths[0] == lengths[1]
    one.request("DELETE", "/translate")
    answer = one.getresponse()
    assert answer.headers["allow"] == "GET, HEAD, POST"
    assert "takes GET, HEAD, POST" in json.load(answer)["error"]
    one.close()
    assert "HEAD /v1/models/{id:path} 200" in server.said()


def test_a_line_of_the_keys_that_is_wrong_is_told_before_anybody_asks(
    launch: Callable[..., Running], tmp_path: Path
) -> None:
    keys = tmp_path / "keys.txt"
    _, line = new_key("laptop")
    keys.write_text(f"{line}\n")
    keys.chmod(0o600)
    server = launch("--keys", str(keys))
    keys.write_text(f"{line}\nphone sha256:short\n")
    until = time.monotonic() + 30
    while f"the keys stay as they were: {keys}:2" not in server.said():
        assert time.monotonic() < until, server.said()
        time.sleep(0.1)
