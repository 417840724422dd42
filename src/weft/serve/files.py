"""The files of the page, as browsers get them: those of the package, and the pictures of an
inspection as a module of their own.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from weft.inspection.assets import SCRIPTS, asset, bare
from weft.serve.catalogue import Catalogue
from weft.serve.history import history_route

_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_SHARED = (
    "base.css",
    "inspect.css",
    "sections.css",
)  # that the page has in common with others
_ALONE = "alone.js"  # is of an inspection that is a file
_EXPORTS = "export { begin, listen, repaint };\n"


@dataclass(frozen=True)
class File:
    """The content of a file, its type, and a tag that is another for other content."""

    content: bytes
    type: str
    tag: str


def page_routes(catalogue: Catalogue, show_samples: bool = False) -> list[BaseRoute]:
    """Return the routes of the page: its files, and how the models of the server were trained.

    `show_samples` also shows the text that a run tried its model on, which is of its own data.
    """
    return [
        Route("/", _front, methods=["GET"]),
        Route("/page/{name:path}", _file, methods=["GET"]),
        history_route(catalogue, show_samples),
    ]


@cache
def page_files() -> dict[str, File]:
    """Return the files by their paths below /page/."""
    folder = resources.files("weft") / "page" / "serve"
    own = [f"serve/{entry.name}" for entry in folder.iterdir() if entry.is_file()]
    files = {name: _as_file(name, asset(name)) for name in (*_SHARED, *own)}
    for name, content in (
        ("inspect/pictures.js", _pictures_script()),
        ("inspect/pictures.html", _pictures_markup()),
    ):
        files[name] = _as_file(name, content)
    return files


def _pictures_script() -> str:
    """Return the scripts of an inspection as one module."""
    scripts: Sequence[str] = [asset(name) for name in SCRIPTS if name != _ALONE]
    return bare("".join(scripts)) + _EXPORTS


def _pictures_markup() -> str:
    """Return the elements that the pictures are drawn in."""
    found = re.search(r"<main(.*)</main>\n", asset("inspect.html"), re.S)
    assert found is not None
    return (
        f"<section{found[1]}</section>\n"  # they stand in the main part of another page
    )


def _as_file(name: str, content: str) -> File:
    body = content.encode("utf-8")
    media = _TYPES[name.rpartition(".")[2]]
    return File(body, media, f'"{hashlib.sha256(body).hexdigest()[:20]}"')


async def _front(request: Request) -> Response:
    return _answer(request, page_files()["serve/index.html"])


async def _file(request: Request) -> Response:
    found = page_files().get(request.path_params["name"])
    if found is None:
        return Response("there is no such file", 404, media_type="text/plain")
    return _answer(request, found)


def _answer(request: Request, file: File) -> Response:
    """Return a file, or that the browser has it already."""
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.type)
