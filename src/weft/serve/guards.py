"""The guards before every route: who may ask, from where, how much and how long.

These are wrappers of an ASGI application, as they hold whatever the routes do. The outermost is
`Entrance`.
"""

import asyncio
import logging
import re
import traceback
from collections.abc import Callable, Collection
from functools import lru_cache
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.serve.bodies import close_files
from weft.serve.limits import Limits, shown_size
from weft.serve.refusals import Forbidden, Gone, Refusal, TooLarge
from weft.serve.visits import Visit, begin_visit, route_of

_LOG = logging.getLogger("weft.serve")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_EXTENSIONS = ("chrome-extension", "moz-extension", "safari-web-extension")
_READING = ("GET", "HEAD", "OPTIONS")
# The page runs its own files alone, and nothing frames it.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
# of every answer that has no other, as ASGI sends them
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
Refuser = Callable[
    [str, Refusal], Response
]  # writes a refusal as the path's clients read it
Watcher = Callable[
    [Visit, str], None
]  # is told of a request and its route when it is over


class Fault(Refusal):
    """A mistake of the server. What it was is in the log, under the number of the request."""

    status = 500
    code = "internal_error"

    def __init__(self, number: str) -> None:
        """Name the number of the request."""
        super().__init__(
            f"the server made a mistake; its log has it as request {number}"
        )


class Entrance:
    """Answers every request: by the routes, else with a refusal in the shape of the path."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        refuse: Refuser,
        watch: Watcher,
        find: Callable[[Scope], str] = route_of,
    ) -> None:
        """Wrap an application; `find` names the route of a request."""
        self._app = app
        self._limits = limits
        self._refuse = refuse
        self._watch = watch
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = begin_visit(scope, self._limits)
        inbox = _Inbox(scope, receive, visit, self._limits)
        sending = _sending(visit, inbox, send)
        try:
            await self._answer(scope, visit, inbox, sending)
        finally:
            inbox.close()
            close_files(scope)
            self._watch(visit, self._find(scope))

    async def _answer(
        self, scope: Scope, visit: Visit, inbox: "_Inbox", send: Send
    ) -> None:
        try:
            await self._app(scope, inbox.receive, send)
        except (Gone, ClientDisconnect):
            visit.code = Gone.code
            if not visit.status:
                await Response(status_code=Gone.status)(scope, inbox.receive, send)
        except Refusal as refusal:
            await self._say(scope, visit, refusal, inbox, send)
        except Exception as error:
            if visit.caller.left.is_set():
                visit.code = Gone.code
                return
            _LOG.error("request %s: %s", visit.id, told(error))
            await self._say(scope, visit, Fault(visit.id), inbox, send)

    async def _say(
        self,
        scope: Scope,
        visit: Visit,
        refusal: Refusal,
        inbox: "_Inbox",
        send: Send,
    ) -> None:
        """Answer with a refusal; cut an answer that has begun, as it must not look whole."""
        visit.code = refusal.code
        if not visit.status:
            response = self._refuse(scope["path"], refusal)
            await response(scope, inbox.receive, send)


class _Inbox:
    """The messages of a client: its body, of a bounded size, and then that it has left.

    While the routes work, nobody else listens for that.
    """

    def __init__(
        self, scope: Scope, receive: Receive, visit: Visit, limits: Limits
    ) -> None:
        self._receive = receive
        self._visit = visit
        self._left = visit.caller.left
        self._watching: asyncio.Task[None] | None = None
        self.is_read = False  # whether the body has arrived, or the client has left
        self._room = most_bytes(scope, limits)
        self._most = self._room
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and len(length) < 20:
            self._expected = int(length)
        else:
            self._expected = 0

    async def receive(self) -> Message:
        if self._watching is not None:
            await self._left.wait()
            return {"type": "http.disconnect"}
        if self._expected > self._most:
            raise self._too_large()
        message = await self._next()
        if message["type"] == "http.disconnect":
            self._left.set()
            return message
        self._room -= len(message.get("body", b""))
        if self._room < 0:
            raise self._too_large()
        if self.is_read:
            self._watching = asyncio.create_task(self._watch())
        return message

    async def read_out(self) -> None:
        """Take what a refused client still sends: a connection that closes on unread bytes is
        reset, and the answer lost. How long that may take is the connection's limit.
        """
        while not self.is_read:
            await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self.is_read = not message.get("more_body", False)
        return message

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._visit.is_over:
            self._left.set()

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {shown_size(self._most)}")


def most_bytes(scope: Scope, limits: Limits) -> int:
    """Return how large the body of a request may be: a form may come with a file."""
    kind = Headers(scope=scope).get("content-type", "")
    is_form = kind.lower().startswith("multipart/")
    return limits.max_body + (limits.max_file if is_form else 0)


def _sending(visit: Visit, inbox: _Inbox, send: Send) -> Send:
    """Return a sender that adds the headers of every answer and notes its status.

    An answer to half a request is sent at once, and ends when the request has.
    """

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            visit.status = message["status"]
            headers = message["headers"]
            own = {name for name, _ in headers}
            missing = [pair for pair in _HEADERS if pair[0] not in own]
            number = (b"x-request-id", visit.id.encode())
            message["headers"] = [*headers, number, *missing]
        elif message.get("more_body", False):
            # the server takes parts for a client that has left without a word
            await asyncio.sleep(0)
            if visit.caller.left.is_set():
                raise ClientDisconnect
        else:
            visit.is_over = True
            if not inbox.is_read:
                await send({**message, "more_body": True})
                await inbox.read_out()
                message = {"type": "http.response.body"}
        await send(message)

    return sending


def told(error: BaseException) -> str:
    """Return where an error happened, without its message: that may hold a client's text."""
    lines = [type(error).__name__]
    for frame in traceback.extract_tb(error.__traceback__):
        lines.append(f"  {frame.filename}:{frame.lineno} in {frame.name}")
    for reason in (error.__cause__, error.__context__):
        if reason is not None:
            lines += [f"  after {line}" for line in told(reason).split("\n")]
            break
    return "\n".join(lines)


class Doors:
    """Lets in requests for this host alone, and from no foreign web page.

    A web page that a person visits can send requests to servers of the person's own machine, and by
    a name that changes its address (DNS rebinding) read the answers. A program sends no Origin.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], origins: Collection[str] = ()
    ) -> None:
        """Set the names that the server has, `*` for any, and the foreign pages that may use it."""
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in. Raises Forbidden."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._is_ours(host):
            raise Forbidden(
                "this host name is not served here; the server's --allow-host NAME adds it"
            )
        origin = headers.get("origin", "").lower()
        if origin and self._is_allowed(origin):
            await self._answer_foreign(origin, scope, receive, send)
            return
        if _is_foreign(origin, host) or (not origin and _is_hidden(headers, scope)):
            raise Forbidden(
                "web pages of other sites may not use this server; its --cors-origin ORIGIN lets one in"
            )
        await self._app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        """Return whether a Host header is for this server: an address cannot be a changing name."""
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found["name"]
        return "*" in self._hosts or name in self._hosts or _is_address(name)

    def _is_allowed(self, origin: str) -> bool:
        return "*" in self._origins or origin in self._origins

    async def _answer_foreign(
        self, origin: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a page of another site that the server allows."""
        granted = {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "retry-after, x-request-id",
            "cross-origin-resource-policy": "cross-origin",
            "vary": "Origin",
        }

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(granted)
            await send(message)

        asked = Headers(scope=scope).get("access-control-request-method")
        if scope["method"] == "OPTIONS" and asked:
            await _permission()(scope, receive, sending)
        else:
            await self._app(scope, receive, sending)


def _permission() -> Response:
    """Return the answer to a browser that asks whether a page may ask."""
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST",
            "access-control-allow-headers": "authorization, content-type, x-api-key",
            "access-control-max-age": "600",
        },
    )


def _is_foreign(origin: str, host: str) -> bool:
    """Return whether a page of another site asks.

    The scheme is not compared, as that of a proxy in front is another. An extension of the browser
    is a program of the person.
    """
    scheme, _, site = origin.partition("://")
    if not origin or scheme in _EXTENSIONS:
        return False
    return site != host.lower()


def _is_hidden(headers: Headers, scope: Scope) -> bool:
    """Return whether a foreign page asks without an Origin, as for an image or a script.

    Every browser of today says so, in Sec-Fetch-Site. That a person follows a link is no harm.
    """
    site = headers.get("sec-fetch-site", "none")
    is_link = headers.get("sec-fetch-mode") == "navigate"
    if site in ("none", "same-origin"):
        return False
    return not (is_link and scope["method"] in _READING)


@lru_cache(maxsize=64)
def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
