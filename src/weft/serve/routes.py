"""The routes of fixed paths, found at once, and the refusals of a path that no route has.

The framework asks all routes one after the other whether they are meant, and wraps the one that is.
For a short text that was a quarter of the server's work.
"""

from collections.abc import Awaitable, Callable, Iterable
from inspect import iscoroutinefunction, signature

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.serve.refusals import InvalidRequest, Refusal
from weft.serve.visits import NO_ROUTE, route_of

Answering = Callable[[Request], Awaitable[Response]]


class NotFound(Refusal):
    """A path that no route has."""

    status = 404
    code = "not_found"

    def __init__(self) -> None:
        """Say where the paths are listed."""
        super().__init__("there is nothing at this path; GET /openapi.json lists all")


class WrongMethod(Refusal):
    """A path that is asked with a method that it does not have."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        """Name the methods that it has."""
        super().__init__(f"this path takes {allowed or 'another method'}")
        self.allowed = allowed


class FixedRoutes:
    """Calls the routes whose paths have no parameters; all else is for the application behind."""

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        """Take those routes of the routers that read their request themselves."""
        self._app = app
        self._found: dict[tuple[str, str], tuple[APIRoute, Answering]] = {}
        for router in routers:
            for route in router.routes:
                if isinstance(route, APIRoute):
                    self._take(route)

    def _take(self, route: APIRoute) -> None:
        answering = _answering(route)
        if answering is not None and "{" not in route.path:
            for method in route.methods or ():
                self._found.setdefault((method, route.path), (route, answering))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, HEAD as GET. What a route raises goes on to the guards."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # the server itself leaves the body out, as it goes by the method that it was asked with
            reading = {**scope, "method": "GET"}
            try:
                await self(reading, receive, send)
            finally:
                scope.update(reading | {"method": "HEAD"})
            return
        found = None
        if scope["type"] == "http":
            found = self._found.get((scope["method"], scope["path"]))
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["route"], answering = found
        try:
            response = await answering(Request(scope, receive, send))
        except HTTPException as error:
            raise as_refusal(error) from None
        await response(scope, receive, send)


def route_finder(routes: Iterable[BaseRoute]) -> Callable[[Scope], str]:
    """Return what names the route of a request as it is written in the program, also where the
    request was refused before any route was asked.
    """
    written = [route for route in routes if isinstance(route, Route)]

    def find(scope: Scope) -> str:
        name = route_of(scope)
        if name != NO_ROUTE:
            return name
        meant = (one for one in written if one.matches(scope)[0] is not Match.NONE)
        route = next(meant, None)
        return NO_ROUTE if route is None else route.path

    return find


def methods_of(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """List the methods that the path of a request has, on all of its routes."""
    methods: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            methods.update(route.methods or ())
    if "GET" in methods:
        methods.add("HEAD")
    return ", ".join(sorted(methods))


def _answering(route: APIRoute) -> Answering | None:
    """Return what answers a request by itself; None where the framework reads it for the route."""
    endpoint = route.endpoint
    if not iscoroutinefunction(endpoint):
        return None
    kinds = [one.annotation for one in signature(endpoint).parameters.values()]
    if kinds == [Request]:
        return endpoint
    return _without_request(endpoint) if not kinds else None


def _without_request(endpoint: Callable[[], Awaitable[Response]]) -> Answering:
    async def answer(_request: Request) -> Response:
        return await endpoint()

    return answer


def as_refusal(error: HTTPException, methods: str = "") -> Refusal:
    """Return what the framework refuses as a refusal; `methods` are those that the path has."""
    if error.status_code == 404:
        return NotFound()
    if error.status_code == 405:
        return WrongMethod(methods or (error.headers or {}).get("Allow", ""))
    refusal = InvalidRequest("the request cannot be read")
    refusal.status = error.status_code
    return refusal
