"""Connections over real sockets: the slow, the silent, the hostile and those that leave."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from served import in_thread
from weft.serve.connections import connection_within
from weft.serve.guards import Entrance
from weft.serve.limits import Limits
from weft.serve.refusals import Gone, Refusal
from weft.serve.visits import Visit, caller_of

LIMITS = Limits(
    head_seconds=1.0,
    body_seconds=1.2,
    idle_seconds=1.5,
    write_seconds=1.0,
    max_head=4096,
    max_connections=8,
)
SLACK = 30.0  # seconds on a busy machine
PLAIN = b"POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


class Answers:
    """An application that answers, works, streams, and notes who has left."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.left: list[str] = []
        self.seen: list[tuple[str, int, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()
        caller = caller_of(request)
        response: Response = PlainTextResponse(f"answer to {scope['path']}")
        if scope["path"] == "/work":
            self.begun.append("work")
            await asyncio.wait_for(caller.left.wait(), 2 * SLACK)
            self.left.append("work")
            raise Gone
        if scope["path"] == "/flood":
            response = StreamingResponse(self.flood())
        if scope["path"] == "/stream":
            response = StreamingResponse(self.drip(caller))
        await response(scope, receive, send)

    async def flood(self) -> Any:
        while True:
            yield b"x" * 65_536

    async def drip(self, caller: Any) -> Any:
        yield b"first"
        self.begun.append("stream")
        await asyncio.wait_for(caller.left.wait(), 2 * SLACK)
        self.left.append("stream")

    def watch(self, visit: Visit, route: str) -> None:
        self.seen.append((visit.method, visit.final_status(), visit.code))


def refuse(path: str, refusal: Refusal) -> Response:
    return PlainTextResponse(refusal.message, refusal.status)


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def served(answers: Answers) -> Iterator[tuple[str, int]]:
    """A server in a thread of this process; its address."""
    config = uvicorn.Config(
        Entrance(answers, LIMITS, refuse, answers.watch),
        loop="asyncio",
        http=connection_within(LIMITS),
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=60,
        h11_max_incomplete_event_size=LIMITS.max_head,
        timeout_graceful_shutdown=2,
    )
    with in_thread(config) as address:
        yield address


@pytest.fixture
def connection(served: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.create_connection(served, timeout=SLACK) as one:
        yield one


def rest(one: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = b""
    while piece := one.recv(65_536):
        received += piece
    return received


def seconds_until_closed(one: socket.socket) -> tuple[float, bytes]:
    began = time.monotonic()
    received = rest(one)
    return time.monotonic() - began, received


def post(path: bytes, body: bytes = b"") -> bytes:
    return PLAIN % (path, len(body)) + body


def answer(one: socket.socket) -> bytes:
    """One answer, whose body is what the path says."""
    received = b""
    while b"answer to" not in received:
        piece = one.recv(4096)
        assert piece, received
        received += piece
    return received


def test_a_silent_connection_is_closed(connection: socket.socket) -> None:
    seconds, received = seconds_until_closed(connection)
    assert received == b""
    assert 0.9 < seconds < SLACK


def test_a_head_in_drops_is_not_waited_for(connection: socket.socket) -> None:
    """A slow loris: each drop would move a deadline that counts from the last byte."""
    began = time.monotonic()
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    connection.settimeout(0.05)
    received = b""
    while time.monotonic() - began < SLACK:
        try:
            connection.sendall(b"X-A: b\r\n")
            received = connection.recv(4096)
            break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    assert 0.9 < time.monotonic() - began < SLACK
    assert received == b"" or received.startswith(b"HTTP/1.1 408 ")


def test_half_a_body_is_not_waited_for(
    connection: socket.socket, answers: Answers
) -> None:
    before = len(answers.seen)
    connection.sendall(PLAIN % (b"a", 1000) + b"half")
    seconds, received = seconds_until_closed(connection)
    assert received == b""
    assert 1.1 < seconds < SLACK
    # a request of the test before may be noted late
    wait_for(lambda: ("POST", 499, "gone") in answers.seen[before:])


def test_an_idle_connection_is_closed_and_a_used_one_is_kept(
    connection: socket.socket,
) -> None:
    began = time.monotonic()
    while time.monotonic() - began < 2.0:
        connection.sendall(post(b"a"))
        assert b"answer to /a" in answer(connection)
        time.sleep(0.2)
    seconds, received = seconds_until_closed(connection)
    assert received == b""
    assert 1.0 < seconds < SLACK


def test_a_body_that_nobody_wants_is_thrown_away_and_not_kept(
    served: tuple[str, int],
) -> None:
    """The answer comes before the body; then the client sends on and on."""
    with socket.create_connection(served, timeout=SLACK) as one:
        one.sendall(PLAIN % (b"a", 10**13))
        began = time.monotonic()
        sent = 0
        received = b""
        one.settimeout(0.05)
        while time.monotonic() - began < SLACK:
            try:
                sent += one.send(b"x" * 65_536)
            except TimeoutError:
                pass
            except ConnectionError:
                break
        else:
            pytest.fail("the connection stays open")
        one.settimeout(SLACK)
        try:
            received = one.recv(4096)
        except ConnectionError:
            received = b""
    assert sent < 10**13
    assert received == b"" or received.startswith(b"HTTP/1.1 413 ")


def test_a_client_that_reads_nothing_is_given_up(
    connection: socket.socket, answers: Answers
) -> None:
    before = len(answers.seen)
    connection.sendall(post(b"flood"))
    # a request of the test before may be noted late
    wait_for(lambda: ("POST", 200, "gone") in answers.seen[before:])


@pytest.mark.parametrize("path", [b"work", b"stream"])
def test_the_work_of_a_client_that_leaves_ends(
    served: tuple[str, int], answers: Answers, path: bytes
) -> None:
    name = path.decode()
    before = answers.left.count(name)
    with socket.create_connection(served, timeout=SLACK) as one:
        one.sendall(post(path))
        if path == b"stream":
            received = b""
            while b"first" not in received:
                received += one.recv(4096)
        wait_for(lambda: answers.begun.count(name) == before + 1)
        time.sleep(0.1)
        assert answers.left.count(name) == before
    wait_for(lambda: answers.left.count(name) == before + 1)


def test_a_large_head_is_refused(connection: socket.socket) -> None:
    connection.sendall(b"GET /" + b"a" * 8000 + b" HTTP/1.1\r\n\r\n")
    assert rest(connection).startswith(b"HTTP/1.1 400 ")


def test_what_is_no_http_is_refused(served: tuple[str, int]) -> None:
    for data in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        with socket.create_connection(served, timeout=SLACK) as one:
            one.sendall(data)
            received = rest(one)
        assert received.startswith(b"HTTP/1.1 400 ") or received == b""
    with socket.create_connection(served, timeout=SLACK) as one:
        one.sendall(post(b"alive"))
        assert b"answer to /alive" in answer(one)


def test_requests_sent_at_once_are_answered_in_order(
    connection: socket.socket,
) -> None:
    connection.sendall(post(b"1", b"a") + post(b"2", b"bc") + post(b"3"))
    received = b""
    while received.count(b"answer to") < 3:
        received += connection.recv(4096)
    order = [received.index(b"answer to /%d" % i) for i in (1, 2, 3)]
    assert order == sorted(order)


def test_connections_are_counted(served: tuple[str, int]) -> None:
    """One too many is closed at once, and there is room again later."""
    wait_for(lambda: how_many_answer(served, 9) == 8)
    wait_for(lambda: how_many_answer(served, 1) == 1)


def how_many_answer(served: tuple[str, int], count: int) -> int:
    """How many of so many connections at once the server answers; those of before may be open."""
    opened = [socket.create_connection(served, timeout=SLACK) for _ in range(count)]
    try:
        return sum(not refused(one) for one in opened)
    finally:
        for one in opened:
            one.close()


def refused(one: socket.socket) -> bool:
    """Whether the server has closed a connection."""
    try:
        one.sendall(post(b"a"))
        return one.recv(4096) == b""
    except ConnectionError:
        return True


def wait_for(condition: Any) -> None:
    until = time.monotonic() + SLACK
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
