"""The server as a process: it starts, says where it is, and ends in grace."""

import json
import socket
from collections.abc import Callable

from tiny_server import MODELS, Running
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
    assert "larger than" in json.loads(body)["error"]
