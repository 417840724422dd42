"""Connections that are not waited for without end.

Neither an idle connection nor half a body ends by itself, nor does an answer that the client does
not read. One slow client holds nobody up, but many would use up the machine's connections.
"""

import asyncio
import contextlib
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from weft.serve.limits import Limits

_SLOW = b'{"error":"the request took too long to arrive"}'


class Connection(H11Protocol):
    """A connection of uvicorn whose every phase has a deadline.

    What arrives in drops does not move the deadline: it is one of the whole head, or body.
    """

    limits = Limits()  # a subclass has others

    def __init__(self, *given: Any, **named: Any) -> None:
        """Begin without a deadline."""
        super().__init__(*given, **named)
        self._phase = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request; refuse a connection too many."""
        super().connection_made(_Joining(transport, self.loop))  # type: ignore[arg-type]
        if len(self.connections) > self.limits.max_connections:
            transport.abort()
            return
        self._enter("head", self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the deadlines."""
        self._enter("lost", None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what has arrived, and wait for the rest of it."""
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that nobody wanted."""
        super().on_response_complete()
        self._follow()

    def shutdown(self) -> None:
        """End with the answer under way, when the server ends."""
        with contextlib.suppress(h11.LocalProtocolError):
            super().shutdown()
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
            self._follow()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._drop_unread()
        seconds = self.limits.write_seconds
        self._unread = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, as the client reads."""
        self._drop_unread()
        super().resume_writing()

    def _drop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _follow(self) -> None:
        """Find the phase that the connection is in by now."""
        limits = self.limits
        state = self.conn.their_state
        if self.transport.is_closing():
            self._enter("closing", limits.write_seconds)
        elif state is h11.SEND_BODY:
            self._enter("body", limits.body_seconds)
        elif state is not h11.IDLE:
            self._enter("work", None)
        elif self.conn.trailing_data[0] or self.cycle is None:
            self._enter("head", limits.head_seconds)
        else:
            self._enter("idle", limits.idle_seconds)

    def _enter(self, phase: str, seconds: float | None) -> None:
        if phase == self._phase:
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Close the connection, with a word where half a head has arrived.

        What is closed already, and not read by the client, is given up.
        """
        if self.transport.is_closing():
            self.transport.abort()
            return
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            headers = [("content-type", "application/json"), ("connection", "close")]
            for event in (
                h11.Response(status_code=408, headers=headers),
                h11.Data(data=_SLOW),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._follow()


class _Joining:
    """A transport that sends what is written in one turn of the event loop together.

    The head of an answer and its body are two writes of uvicorn: two calls of the system, and two
    packets.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._written: list[bytes] = []

    def write(self, data: bytes) -> None:
        if data:
            if not self._written:
                self._loop.call_soon(self._send)
            self._written.append(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._written:
            self._transport.write(b"".join(self._written))
            self._written.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def connection_within(limits: Limits) -> type[Connection]:
    """Return the connections of a server with other limits."""
    return type("Connection", (Connection,), {"limits": limits})
