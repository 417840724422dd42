"""The server's process: its sockets, its signals, its end."""

import asyncio
import contextlib
import errno
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from weft.errors import UsageError, WeftError
from weft.serve.connections import connection_within
from weft.serve.guards import told
from weft.serve.keys import Keys
from weft.serve.service import Service

_LOG = logging.getLogger("weft.serve")
# Loggers of packages, whose messages hold addresses, or parts of requests.
_SILENT = ("uvicorn", "python_multipart", "asyncio")
_BACKLOG = 256
_LEFT = 130
_WATCH_SECONDS = 1.0
_DRAIN_TICK = 0.05  # seconds between two looks at whether the work is done
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ThreadEnded(WeftError):
    """A thread of the pool that has ended by a mistake: the server is not whole any more."""


def bound_sockets(host: str, ports: Sequence[int]) -> list[socket.socket]:
    """Take the ports of an address; port 0 is any free one.

    Raises UsageError for a port that is taken, not permitted or given twice, and a host that is
    none.
    """
    for port in ports:
        if port and ports.count(port) > 1:
            raise UsageError(
                f"port {port} is given twice; --port and each --also-port need numbers of their own"
            )
    found: list[socket.socket] = []
    try:
        for port in ports:
            found.append(_bound(host, port))
    except UsageError:
        for other in found:
            other.close()
        raise
    return found


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host,
            port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,
            flags=socket.AI_PASSIVE,
        )[0]
    except (OSError, UnicodeError):
        raise UsageError(f"--host {host} is no address of this machine") from None
    # asyncio sends at once, without Nagle's delay of 40 ms, where it knows that this is TCP
    listener = socket.socket(family, kind, protocol)
    # a port whose last connections are still closing may be taken again, one in use may not
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(0)
    except OSError as error:
        listener.close()
        raise UsageError(_why_not(host, port, error)) from None
    return listener


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken by another program; give --port another number"
    if error.errno == errno.EACCES:
        return f"port {port} needs special rights; give --port a number from 1024 on"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host} is no address of this machine"
    return f"port {port} of {host} cannot be taken: {error.strerror}"


def listen(
    app: ASGIApp,
    service: Service,
    sockets: Sequence[socket.socket],
    drain_seconds: float = 30.0,
    proxies: Sequence[str] = (),
    say: Callable[[str], None] = print,
    keys: Keys | None = None,
    opened: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal comes, finish what runs, and return.

    A second signal ends the process at once, with exit code 130. `proxies` are the addresses of
    proxies whose word is taken for who asks; the file of `keys` is looked after; `opened` is
    called as soon as requests are answered and signals heeded. Raises ThreadEnded where the
    server cannot go on.
    """
    for name in _SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    limits = service.limits
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=connection_within(limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        backlog=_BACKLOG,
        timeout_keep_alive=int(limits.idle_seconds) + 1,
        h11_max_incomplete_event_size=limits.max_head,
    )
    server = _Server(config, service, drain_seconds, say, keys, opened)
    asyncio.run(server.run_within(list(sockets)))
    service.pool.stop()
    if server.has_failed:
        raise ThreadEnded("a thread of the server has ended by a mistake; see its log")


class _Server(uvicorn.Server):
    """uvicorn's server with signals of our own, and an eye on the models."""

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        drain_seconds: float,
        say: Callable[[str], None],
        keys: Keys | None = None,
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._opened = opened
        self._keys = keys
        self._service = service
        self._drain_seconds = drain_seconds
        self._say = say
        self.has_failed = False

    async def run_within(self, sockets: list[socket.socket]) -> None:
        """Serve in the running event loop."""
        asyncio.get_running_loop().set_exception_handler(_log_mistake)
        watching = asyncio.create_task(self._watch())
        try:
            await self.serve(sockets)
        finally:
            watching.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the doors, and only then say so: a signal that comes after it is heeded."""
        await super().startup(sockets)
        self._opened()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more work, and finish what there is; meanwhile say that the server ends."""
        pool = self._service.pool
        pool.refuse_more()
        until = time.monotonic() + self._drain_seconds
        if not pool.is_idle:
            self._say("stopping: what runs is finished; Ctrl-C again leaves at once")
        while not (pool.is_idle or self.force_exit) and time.monotonic() < until:
            await asyncio.sleep(_DRAIN_TICK)
        left = math.ceil(until - time.monotonic())
        self.config.timeout_graceful_shutdown = max(1, left)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let the first signal end the server, and a second one the process."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals come to the main thread alone
            return
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os.write(sys.stderr.fileno(), b"weft: left at once\n")
            os._exit(_LEFT)
        self.should_exit = True

    async def _watch(self) -> None:
        """Look after the threads, the keys, and models whose folders hold another one by now."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if not self._service.pool.is_whole:
                # what waits for that thread would wait for ever
                self.has_failed = self.should_exit = self.force_exit = True
            if self._keys is not None:
                self._keys.follow()
            for name in await self._service.renew():
                model = self._service.catalogue.models[name]
                _LOG.info("%s has a new model; now %s", name, model.described())
                if model.doubt:
                    _LOG.warning("%s", model.doubt)


def _log_mistake(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Note an error that nobody waits for, without its message, which may hold a text."""
    error = context.get("exception")
    if error is not None and not isinstance(error, (ConnectionError, TimeoutError)):
        _LOG.error("a mistake of the server: %s", told(error))
