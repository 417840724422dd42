"""The server's application: the routes of all dialects, behind the guards."""

import logging
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from weft.documents.registry import endings, endings_of_text
from weft.folder.version import installed_version
from weft.serve.dialects.dialect import Dialect
from weft.serve.guards import Doors, Entrance, Fault
from weft.serve.keys import Gate, Keys
from weft.serve.limits import Limits
from weft.serve.metrics import CONTENT_TYPE, Metrics
from weft.serve.refusals import Gone, InvalidRequest, Refusal
from weft.serve.routes import (
    FixedRoutes,
    WrongMethod,
    as_refusal,
    methods_of,
    route_finder,
)
from weft.serve.service import Service
from weft.serve.visits import Visit, visit_of

_LOG = logging.getLogger("weft.serve")
# What needs no key: the page, which then asks for one, and what says that the server is there.
_OPEN = ("/", "/health", "/ready", "/languages", "/frontend/settings", "/favicon.ico")
_PAGE = "/page/"
_BODIES = ("GET", "HEAD")
_STRING = {"type": "string"}


@dataclass(frozen=True)
class Settings:
    """Who may use the server, and with what keys."""

    hosts: tuple[str, ...] = ("localhost",)
    origins: tuple[str, ...] = ()
    keys: Keys | None = None


def build_app(
    service: Service,
    dialects: Sequence[Dialect],
    settings: Settings | None = None,
    pages: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """Build the application of a service; `pages` are routes of files for browsers."""
    settings = settings or Settings()
    metrics = Metrics(service.pool.load)
    refuse = _refuser(dialects)
    routes: list[BaseRoute] = []  # all of them, as soon as there are some
    app = FastAPI(
        title="Weft",
        version=installed_version(),
        docs_url=None,  # they would load programs from other sites
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
        exception_handlers=_handlers(refuse, routes),
    )
    routers = [_own_routes(app, service, dialects, metrics, settings)]
    routers += [dialect.routes(service) for dialect in dialects]
    for router in routers:
        app.include_router(router)
    _add_pages(app, pages)
    routes += [*chain.from_iterable(one.routes for one in routers), *pages]
    quick = FixedRoutes(app, routers)
    gate = Gate(quick, service.limits, settings.keys, _is_open)
    doors = Doors(gate, settings.hosts, settings.origins)
    return Entrance(
        doors, service.limits, refuse, _watcher(metrics), route_finder(routes)
    )


def _add_pages(app: FastAPI, pages: Sequence[BaseRoute]) -> None:
    """Add routes of files, which are then counted by their names as all others are."""
    for page in pages:
        if isinstance(page, Route):
            app.add_api_route(
                page.path,
                page.endpoint,
                methods=list(page.methods or ()),
                include_in_schema=False,
                response_model=None,
            )


# Its spans and logs would hold addresses and messages.
_NO_TELEMETRY: Any = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def _is_open(method: str, path: str) -> bool:
    """Return whether a request needs no key."""
    return method in _BODIES and (path in _OPEN or path.startswith(_PAGE))


def _own_routes(
    app: FastAPI,
    service: Service,
    dialects: Sequence[Dialect],
    metrics: Metrics,
    settings: Settings,
) -> APIRouter:
    """Return the routes that say how the server is."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> Response:
        """Say that the server is alive."""
        return JSONResponse({"status": "ok"})

    @router.get("/ready")
    async def ready() -> Response:
        """Say whether the server takes work: 503 while it ends."""
        if service.pool.is_stopping:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok"})

    @router.get("/info")
    async def info() -> Response:
        """Describe the models, the limits and the ways to ask."""
        return JSONResponse(
            {
                "name": "weft",
                "version": installed_version(),
                "models": _models(service),
                "pairs": service.catalogue.pairs(),
                "glossaries": _glossaries(service),
                "limits": _shown_limits(service.limits),
                "formats": endings(),
                "text_formats": endings_of_text(),
                "dialects": [dialect.name for dialect in dialects],
                "needs_key": settings.keys is not None,
            }
        )

    @router.get("/metrics")
    async def numbers() -> Response:
        """Give the numbers of the server, for Prometheus."""
        return Response(metrics.page(), media_type=CONTENT_TYPE)

    @router.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        """Describe all routes."""
        return JSONResponse(_described(app))

    return router


def _described(app: FastAPI) -> dict[str, Any]:
    """Return the description of all routes, also of what they read of a path by hand."""
    description = app.openapi()
    for path, methods in description["paths"].items():
        for operation in methods.values():
            parameters = operation.setdefault("parameters", [])
            known = {parameter["name"] for parameter in parameters}
            parameters += [
                {"name": name, "in": "path", "required": True, "schema": _STRING}
                for name in re.findall(r"{(\w+)}", path)
                if name not in known
            ]
    return description


def _models(service: Service) -> list[dict[str, Any]]:
    """Return what strangers may know of the models."""
    found = []
    for model in service.catalogue.models.values():
        about: dict[str, Any] = {"id": model.id, "task": model.kind}
        if model.src:
            about |= {"source": model.src, "target": model.tgt}
        found.append(about | {"card": model.card})
    return found


def _glossaries(service: Service) -> list[dict[str, Any]]:
    """Return the names of the glossaries, and the pairs of languages that each is for."""
    return [
        {"name": one.name, "pairs": list(one.by_pair)}
        for one in service.glossaries.served.values()
    ]


def _shown_limits(limits: Limits) -> dict[str, Any]:
    """Return the limits that clients can keep to."""
    hidden = ("seconds", "max_head", "max_connections")
    return {
        name: value
        for name, value in asdict(limits).items()
        if not name.endswith(hidden)
    }


def _refuser(dialects: Sequence[Dialect]) -> Callable[[str, Refusal], Response]:
    """Return what writes a refusal in the shape of the dialect that owns a path."""

    def refuse(path: str, refusal: Refusal) -> Response:
        owner = next((d for d in dialects if d.owns(path)), None)
        response = owner.refuse(refusal) if owner else _plainly(refusal)
        retry_after = getattr(refusal, "retry_after", None)
        if retry_after is not None:
            response.headers.setdefault("retry-after", str(math.ceil(retry_after)))
        if response.status_code == 401:
            response.headers.setdefault("www-authenticate", "Bearer")
        if isinstance(refusal, WrongMethod) and refusal.allowed:
            response.headers.setdefault("allow", refusal.allowed)
        return response

    return refuse


def _plainly(refusal: Refusal) -> Response:
    """Write a refusal where no dialect owns the path."""
    return JSONResponse(
        {"error": refusal.message, "code": refusal.code}, refusal.status
    )


def _handlers(
    refuse: Callable[[str, Refusal], Response], routes: Sequence[BaseRoute]
) -> dict[Any, Any]:
    """Return what answers the errors of routes."""

    async def say(request: Request, refusal: Refusal) -> Response:
        visit_of(request).code = refusal.code
        return refuse(request.scope["path"], refusal)

    async def say_http(request: Request, error: HTTPException) -> Response:
        methods = methods_of(routes, request.scope)
        return await say(request, as_refusal(error, methods))

    async def say_invalid(request: Request, error: RequestValidationError) -> Response:
        place = error.errors()[0]["loc"][-1] if error.errors() else "the request"
        return await say(request, InvalidRequest(f"{place} is missing or wrong"))

    async def say_left(request: Request, error: Exception) -> Response:
        visit_of(request).code = Gone.code
        return Response(status_code=Gone.status)

    async def say_fault(request: Request, error: Exception) -> Response:
        return await say(request, Fault(visit_of(request).id))

    return {
        Refusal: say,
        HTTPException: say_http,
        RequestValidationError: say_invalid,
        Gone: say_left,
        ClientDisconnect: say_left,
        Exception: say_fault,  # which is logged further out
    }


def _watcher(metrics: Metrics) -> Callable[[Visit, str], None]:
    """Return what counts and logs a request that is over."""

    def watch(visit: Visit, route: str) -> None:
        visit.close()
        metrics.add(visit, route)
        _LOG.info(
            "%s %s %d%s %.0f ms%s",
            visit.shown_method(),
            route,
            visit.final_status(),
            f" {visit.code}" if visit.code else "",
            1000 * visit.seconds(),
            f" {visit.tokens_written} tokens" if visit.tokens_written else "",
        )

    return watch
