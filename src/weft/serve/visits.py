"""Notes on a request while it is answered; the log and the metrics tell them afterwards."""

import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from secrets import token_hex
from typing import Any

from starlette.requests import Request
from starlette.types import Scope

from weft.serve.accounts import Account
from weft.serve.jobs import Caller
from weft.serve.limits import Limits

_VISIT = "weft.visit"  # the key of a request's scope
NO_ROUTE = "none"
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_LEFT = 499
# Ids of requests: of which start of the server, and which of its requests.
_START = token_hex(4)
_NUMBERS = count(1)
# The request whose answer is being worked out, for who has no other way to it.
_CURRENT: ContextVar["Visit | None"] = ContextVar("weft.visit", default=None)


@dataclass
class Visit:
    """A request: nothing in it is text, a key or an address, but the caller's name."""

    caller: Caller
    method: str
    id: str = field(default_factory=lambda: f"{_START}{next(_NUMBERS):08x}")
    began: float = field(default_factory=time.monotonic)
    status: int = 0  # 0 until the answer has begun
    code: str = ""  # of a refusal
    is_over: bool = False  # whether the answer is whole
    account: Account | None = None  # of its key

    # What its work was, told by `note`; moments are of time.monotonic.
    is_work: bool = False
    tokens_read: int = 0
    tokens_written: int = 0
    is_cut: bool = False  # whether an output ended at its limit
    turn: float | None = None  # when its first row began
    first_token: float | None = None

    def note(
        self,
        *,
        read: int = 0,
        written: int = 0,
        is_cut: bool = False,
        turn: float | None = None,
    ) -> None:
        """Note that a model works for the request, as soon and as often as something is known."""
        self.is_work = True
        self.tokens_read += read
        self.tokens_written += written
        self.is_cut = self.is_cut or is_cut
        if turn is not None:
            self.turn = min(turn, self.turn or turn)
        if written and self.first_token is None:
            self.first_token = time.monotonic()

    def close(self) -> None:
        """Count its tokens in the account of its key."""
        if self.account is not None:
            self.account.add_tokens(self.tokens_read + self.tokens_written)

    def shown_method(self) -> str:
        """Return the method; `other` for one that the client made up."""
        return self.method if self.method in _METHODS else "other"

    def final_status(self) -> int:
        """Return the status, 499 of a client that left before it had one."""
        return self.status or _LEFT

    def finished_reason(self) -> str:
        """Return why it ended, in vLLM's words."""
        if self.caller.left.is_set() or not self.status:
            return "abort"
        if self.code or self.status >= 400:
            return "error"
        return "length" if self.is_cut else "stop"

    def seconds(self) -> float:
        """Return how long the request has taken until now."""
        return time.monotonic() - self.began


def begin_visit(scope: Scope, limits: Limits) -> Visit:
    """Begin a request; it is for its address, unless a key names its client."""
    client = scope.get("client")
    caller = Caller(
        client=str(client[0]) if client else "",
        deadline=time.monotonic() + limits.deadline,
    )
    visit = Visit(caller, scope["method"])
    scope[_VISIT] = visit
    _CURRENT.set(visit)
    return visit


def current_visit() -> Visit | None:
    """Return the request that the running task works for; None outside of requests."""
    return _CURRENT.get()


def visit_of(request: Request) -> Visit:
    """Return what is known of a request; without the guards, a visit with the usual limits."""
    visit = request.scope.get(_VISIT)
    return visit if isinstance(visit, Visit) else begin_visit(request.scope, Limits())


def caller_of(request: Request) -> Caller:
    """Return whom a request's work is for: what a route hands to the service."""
    return visit_of(request).caller


def name_client(request: Request, name: str, account: Account) -> None:
    """Note whose key a request has: what is fair is fair between keys, not addresses."""
    visit = visit_of(request)
    visit.caller = replace(visit.caller, client=name)
    visit.account = account


def charge(texts: Iterable[str] = ()) -> None:
    """Take the characters of texts from the account of the running request's key.

    Raises UsedUp where they, or its tokens, are used up.
    """
    visit = current_visit()
    if visit is not None and visit.account is not None:
        visit.account.take(sum(map(len, texts)))


def route_of(scope: Scope) -> str:
    """Return the route as it is written in the program, without what its address holds."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", NO_ROUTE))
