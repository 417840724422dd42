"""Keys: who may use the server, how often and how much.

A key is 32 random bytes, so that its SHA-256 can be kept in its place: nobody guesses it, nor reads
it from the file. A line of the file is a name, the digest, and limits:

    # name  digest  limits
    laptop  sha256:9f86...  requests=60 characters=500000 tokens=100000

Requests are those of a minute, characters and tokens those of a day.
"""

import hmac
import logging
import math
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.errors import FolderError, UsageError
from weft.serve.accounts import Accounts, Allowance
from weft.serve.bodies import Fields, read_fields
from weft.serve.limits import Limits
from weft.serve.refusals import InvalidRequest, TooManyRequests, Unauthorized
from weft.serve.visits import name_client

_LOG = logging.getLogger("weft.serve")
_KEY_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_LIMIT = re.compile(r"(requests|characters|tokens)=([1-9][0-9]{0,11})")
_LIMITS = "requests=60, characters=500000 and tokens=100000, each once,"
_SCHEMES = ("bearer", "deepl-auth-key")
_OLD_NAME = "auth_key"
_TOKEN = "tokenCode"  # what OPUS-CAT calls a key
_NO_TOKENS = ("0", '""')  # what its plug-ins send without one
_CHECK_SECONDS = 1.0  # how often the file is looked at
_MOST_BUCKETS = 10_000


class MissingKey(Unauthorized):
    """A request without a key, where one is needed."""

    code = "key_required"

    def __init__(self) -> None:
        """Say where a key goes."""
        super().__init__(
            "a key is needed: send Authorization: Bearer KEY", "Authorization"
        )


class WrongKey(Unauthorized):
    """A key that the server does not know."""

    code = "invalid_key"

    def __init__(self) -> None:
        """Say that the key is unknown."""
        super().__init__("the key is not valid", "Authorization")


@dataclass(frozen=True)
class Key:
    """A client that has a key."""

    name: str
    digest: bytes
    requests: int | None = None  # per minute; None for the server's own limit
    allowance: Allowance = field(default_factory=Allowance)


def new_key(name: str) -> tuple[str, str]:
    """Make a key: return it, and its line of the file. Raises UsageError for a bad name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"a key's name has up to 40 letters, digits, dots, - and _, unlike {name!r:.60}"
        )
    key = f"weft-{token_urlsafe(_KEY_BYTES)}"
    return key, f"{name} sha256:{_digest(key).hex()}"


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def read_keys(path: Path) -> list[Key]:
    """Read a file of keys.

    Raises FolderError where it cannot be read, and UsageError for a line that is none, a name that
    occurs twice, no keys at all, and a file that others may write to.
    """
    try:
        mode = path.stat().st_mode
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{path} cannot be read: {_reason(error)}") from None
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH | stat.S_IROTH):
        raise UsageError(
            f"{path} may be read or changed by other users; chmod 600 {path}"
        )
    found: dict[str, Key] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            key = _parse(words, f"{path}:{number}")
            if key.name in found:
                raise UsageError(f"{path}:{number}: {key.name} has a key already")
            found[key.name] = key
    if not found:
        raise UsageError(f"{path} has no keys; weft serve --new-key NAME makes one")
    return list(found.values())


def _reason(error: Exception) -> str:
    return "it is not UTF-8" if isinstance(error, ValueError) else str(error.args[-1])


def _parse(words: list[str], where: str) -> Key:
    """Return the key of a line. Raises UsageError."""
    digest = _DIGEST.fullmatch(words[1]) if len(words) > 1 else None
    if digest is None or not _NAME.fullmatch(words[0]):
        raise UsageError(
            f"{where}: not NAME sha256:DIGEST; weft serve --new-key NAME makes a line"
        )
    limits: dict[str, int] = {}
    for word in words[2:]:
        limit = _LIMIT.fullmatch(word)
        if limit is None or limit[1] in limits:
            raise UsageError(f"{where}: {word!r:.40} is no limit here; {_LIMITS} are")
        limits[limit[1]] = int(limit[2])
    requests = limits.pop("requests", None)
    return Key(words[0], bytes.fromhex(digest[1]), requests, Allowance(**limits))


class Keys:
    """The keys of a file. Its changes count within a second; a file that is damaged does not."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the file. Raises as `read_keys` does."""
        self._path = path
        self._clock = clock
        self._state = self._file_state()
        self._keys = read_keys(path)
        self._looked = clock()

    def find(self, key: str) -> Key | None:
        """Return whose key it is; None for nobody's. How long it takes says nothing of the keys."""
        self.follow()
        asked = _digest(key)
        found = None
        for known in self._keys:
            if hmac.compare_digest(known.digest, asked):
                found = known
        return found

    def follow(self) -> None:
        """Read the file again where it has changed; at most once a second."""
        now = self._clock()
        if now - self._looked < _CHECK_SECONDS:
            return
        self._looked = now
        state = self._file_state()
        if state == self._state:
            return
        self._state = state
        try:
            self._keys = read_keys(self._path)
        except (FolderError, UsageError) as error:
            _LOG.warning("the keys stay as they were: %s", error)
        else:
            _LOG.info("read %d keys anew", len(self._keys))

    def _file_state(self) -> tuple[int, ...]:
        try:
            state = self._path.stat()
        except OSError:
            return ()
        return state.st_mtime_ns, state.st_size, state.st_ino, state.st_mode


class Rates:
    """The rate at which each client may ask: `rate` a minute, some at once and then evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without clients."""
        self._clock = clock
        self._free_at: dict[str, float] = {}

    def spend(self, client: str, rate: int | None) -> None:
        """Count a request. Raises TooManyRequests, with the seconds until there is room.

        The generic cell rate algorithm (ITU-T I.371): a time for each client, which each request
        moves on by 60 / rate seconds, and which may be a minute ahead of the clock.
        """
        if rate is None:
            return
        now = self._clock()
        gap = 60 / rate
        after = max(self._free_at.get(client, now), now) + gap
        # the room of a minute, as a float has it
        if after - now > 60 + gap / 2:
            raise TooManyRequests(math.ceil(after - now - 60))
        if len(self._free_at) >= _MOST_BUCKETS:
            self._forget(now)
        self._free_at[client] = after

    def _forget(self, now: float) -> None:
        """Drop the clients that have their whole room again; if there are none, all."""
        kept = {client: time for client, time in self._free_at.items() if time > now}
        self._free_at = kept if len(kept) < _MOST_BUCKETS else {}


class Gate:
    """Lets in who has a key, or everybody where there are none, as often as allowed."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        keys: Keys | None,
        is_open: Callable[[str, str], bool],
    ) -> None:
        """Wrap an application; `is_open` says of a method and a path that they need no key."""
        self._app = app
        self._limits = limits
        self._keys = keys
        self._is_open = is_open
        self._rates = Rates()
        self._accounts = Accounts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in. Raises Unauthorized and TooManyRequests."""
        if scope["type"] == "http" and not self._is_open(
            scope["method"], scope["path"]
        ):
            request = Request(scope, receive)
            await self._check(request)
        await self._app(scope, receive, send)

    async def _check(self, request: Request) -> None:
        rate = self._limits.requests_per_minute
        if self._keys is None:
            client = request.client
            self._rates.spend(client.host if client else "", rate)
            return
        given = await self._given(request)
        if not given:
            raise MissingKey
        key = self._keys.find(given)
        if key is None:
            raise WrongKey
        account = self._accounts.of(key.name, key.allowance)
        name_client(request, key.name, account)
        self._rates.spend(key.name, key.requests or rate)

    async def _given(self, request: Request) -> str:
        """Return the key that a request comes with; empty without one."""
        key = key_in_head(request.scope)
        if key:
            return key
        try:
            fields = await read_fields(request, self._limits)
            return fields.text("api_key", "") or _old_key(request, fields)
        except InvalidRequest:
            return ""


def _old_key(request: Request, fields: Fields) -> str:
    """Return the key where DeepL's clients of before 2026 had it in the body; empty without one.

    They could also have it in the address, which DeepL itself gave up first: proxies log it.
    """
    return "" if _OLD_NAME in request.query_params else fields.text(_OLD_NAME, "")


def key_in_head(scope: Scope) -> str:
    """Return the key in the headers or the query string; empty without one."""
    headers = Headers(scope=scope)
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() in _SCHEMES and key.strip():
        return key.strip()
    if key := headers.get("x-api-key", "").strip():
        return key
    if not scope["query_string"]:
        return ""
    query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=None)
    token = query.get(_TOKEN, [""])[0]
    return query.get("api_key", [""])[0] or ("" if token in _NO_TOKENS else token)


def refuse_open_door(host: str, keys: Any, is_open: bool) -> None:
    """Raise UsageError where other machines could use the server without a key, unasked."""
    if keys is None and not is_open and not is_loopback(host):
        raise UsageError(
            f"--host {host} lets other machines in: give --keys FILE (weft serve --new-key NAME makes a key),"
            " or --no-keys where everybody may use it"
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    return host in ("localhost", "::1") or host.startswith("127.")
