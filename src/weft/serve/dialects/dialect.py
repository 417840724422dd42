"""The parts of a dialect."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from weft.serve.refusals import Refusal
from weft.serve.service import Service


@dataclass(frozen=True)
class Dialect:
    """A way to speak with the server.

    `routes` are its routes over a service. `owns` says whether a path is its own, as also a path of
    its that does not exist is refused in its shape; `refuse` writes a refusal in that shape.
    """

    name: str
    routes: Callable[[Service], APIRouter]
    owns: Callable[[str], bool]
    refuse: Callable[[Refusal], Response]
