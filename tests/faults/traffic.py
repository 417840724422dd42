"""What clients send to a server: good requests of every API, odd ones, and bad behaviour.

Everything goes over sockets of this module's own, a piece at a time: no client library sends half a
head, or reads nothing.
"""

import asyncio
import json
import random
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
HTML = "text/html"
SECRET = "Geheimnisse"  # in every odd body: it may stand in no answer and no log
PATIENCE = 300.0  # seconds for an answer
# after so many seconds without a word the server may soon close the connection
PAUSE = 5.0

ODD: list[tuple[str, bytes]] = [
    (JSON, b""),
    (JSON, b"Geheimnisse"),
    (JSON, b'{"Geheimnisse'),
    (JSON, b"null"),
    (JSON, b"[]"),
    (JSON, b'["Geheimnisse"]'),
    (JSON, b'{"q": "Geheimnisse", "q": "Geheimnisse"}'),
    (JSON, b'{"prompt": "Geheimnisse \\ud800", "q": "\\udfff"}'),
    (JSON, b'{"q": NaN, "n": Infinity, "input": -Infinity}'),
    (JSON, b'{"temperature": 1e400}'),
    (JSON, b'{"q": ' + b"[" * 100_000),
    (JSON, b'{"q":' * 20_000 + b"1" + b"}" * 20_000),
    (JSON, b'{"q": "Geheimnisse \xff"}'),
    (JSON, '{"q": "Geheimnisse"}'.encode("utf-16")),
    (f"{JSON}; charset=latin-1", b'{"q": "Geheimnisse"}'),
    ("text/plain", b'{"q": "Geheimnisse"}'),
    ("Geheimnisse", b"\x00\x01"),
    (FORM, b"q=%ff&text=Geheimnisse%ff"),
    (FORM, b"=&&;=Geheimnisse"),
    ("multipart/form-data", b"--Geheimnisse"),
    ("multipart/form-data; boundary=x", b"--x\r\nGeheimnisse"),
]
SCANS = (
    "/.env", "/.git/config", "/wp-login.php", "/cgi-bin/test.cgi", "//etc/passwd",
    "/../../etc/passwd", "/page/../../../../etc/passwd", "/page/%2e%2e/%2e%2e/setup.py",
    "/page/..%2f..%2fpyproject.toml", "/page//etc/passwd", "/page/\\..\\x", "/%00",
    "/page/%00", "/download_file/../../etc/passwd", "/download_file/%2e%2e%2fkeys.txt",
    "/v1/models/..%2f..%2fetc", "/translate/", "/?<script>", "/%ff%fe", "/" + "a" * 9000,
)  # fmt: skip
NO_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50) + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
)
BOTH = {"source": "en", "target": "de"}
TEXT = "A man and a woman are looking at the dog in the snow."
MARKUP = (
    '<p>A <b>man</b> reads {0} &amp; <a href="/x">a book</a>.</p><hr><p>Two dogs.</p>'
)
SENTENCES = [
    f"{who} {does} in the {where}."
    for who in ("A man", "Two dogs", "The old woman", "Anna")
    for does in ("is running", "reads a book", "looks at the house", "sleeps")
    for where in ("snow", "garden", "city")
]
_TYPE, _LENGTH = "Content-Type", "Content-Length"


def head(method: str, path: str, **headers: Any) -> bytes:
    """The head of a request; `content_type` becomes Content-Type."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    for name, value in headers.items():
        lines.append(f"{name.replace('_', '-').title()}: {value}")
    return "\r\n".join([*lines, "", ""]).encode()


def request(
    method: str, path: str, body: bytes = b"", content_type: str = JSON
) -> bytes:
    told = {"content_type": content_type, "content_length": len(body)}
    return head(method, path, **told) + body


def posted(path: str, value: Any) -> bytes:
    return request("POST", path, json.dumps(value).encode())


def form(path: str, **fields: str) -> bytes:
    return request("POST", path, urlencode(fields).encode(), FORM)


def file(name: str, content: str) -> bytes:
    """A file that LibreTranslate's address shall translate."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in BOTH.items()
    ]
    place = f'form-data; name="file"; filename="{name}"'
    parts.append(f"--x\r\nContent-Disposition: {place}\r\n\r\n{content}\r\n--x--\r\n")
    kind = "multipart/form-data; boundary=x"
    return request("POST", "/translate_file", "".join(parts).encode(), kind)


def texts_of(count: int, seed: int) -> list[str]:
    return random.Random(seed).choices(SENTENCES, k=count)


_OPUSCAT = urlencode({"input": TEXT, "srcLangCode": "en", "trgLangCode": "de"})
_WRITTEN = {"model": "plays", "prompt": "A man", "max_tokens": 24, "seed": 5}
_DEEPL = {"source_lang": "EN", "target_lang": "DE"}

# Each good request by its kind. Its answer is the same at all times.
GOOD: dict[str, bytes] = {
    "libretranslate": posted("/translate", {"q": TEXT, **BOTH}),
    "libretranslate, a form": form("/translate", q=TEXT, **BOTH),
    "libretranslate, a query": request(
        "GET", f"/translate?{urlencode({'q': TEXT, **BOTH})}"
    ),
    "libretranslate, detected": posted(
        "/translate", {"q": [TEXT, "Ein Mann liest."], "source": "auto", "target": "de"}
    ),
    "libretranslate, HTML": posted(
        "/translate", {"q": MARKUP, "format": "html", **BOTH}
    ),
    "libretranslate, alternatives": posted(
        "/translate", {"q": TEXT, "alternatives": 3, **BOTH}
    ),
    "libretranslate, 40 texts": posted("/translate", {"q": texts_of(40, 0), **BOTH}),
    "detect": posted("/detect", {"q": "Wo ist der Bahnhof?"}),
    "languages": request("GET", "/languages"),
    "deepl": posted("/v2/translate", {"text": [TEXT, "A dog."], **_DEEPL}),
    "deepl, tags": posted(
        "/v2/translate",
        {
            "text": [MARKUP],
            "tag_handling": "xml",
            "ignore_tags": ["a"],
            **_DEEPL,
        },
    ),
    "deepl, languages": request("GET", "/v2/languages?type=target"),
    "huggingface": posted("/models/mine", {"inputs": texts_of(3, 1)}),
    "immersive": posted(
        "/immersive",
        {
            "source_lang": "auto",
            "target_lang": "de",
            "text_list": ["<b0>A man</b0> reads.", "A dog {0}."],
        },
    ),
    "opuscat": request("GET", f"/MtRestService/TranslateJson?{_OPUSCAT}"),
    "own": posted(
        "/v1/translate", {"texts": texts_of(5, 2), "words": True, "n_best": 2, **BOTH}
    ),
    "own, samples": posted(
        "/v1/translate",
        {
            "text": TEXT,
            "target": "de",
            "model": "mine",
            "temperature": 1.0,
            "seed": 3,
        },
    ),
    "own, detect": posted("/v1/detect", {"text": TEXT}),
    "completion of a prefix": posted(
        "/v1/complete", {"text": TEXT, "prefix": "Ein", "alternatives": 2, **BOTH}
    ),
    "inspection of a translator": posted(
        "/v1/inspect", {"model": "en-de", "text": TEXT}
    ),
    "inspection of a language model": posted(
        "/v1/inspect", {"model": "plays", "text": "A man"}
    ),
    "inspection of a classifier": posted(
        "/v1/inspect", {"model": "languages", "text": TEXT}
    ),
    "completion": posted("/v1/completions", {**_WRITTEN, "n": 2, "logprobs": 2}),
    "completion, streamed": posted("/v1/completions", {**_WRITTEN, "stream": True}),
    "scores of a text": posted(
        "/v1/completions",
        {
            "model": "plays",
            "prompt": TEXT,
            "max_tokens": 0,
            "echo": True,
            "logprobs": 1,
        },
    ),
    "tokenize": posted("/tokenize", {"model": "plays", "prompt": TEXT}),
    "models": request("GET", "/v1/models"),
    "classify": posted("/classify", {"input": [TEXT, "Ein Mann."]}),
    "predict": posted("/predict", {"inputs": "Ein Mann."}),
    "page": request("GET", "/"),
    "script": request("GET", "/page/serve/app.js"),
}
FILES = {
    "a file of lines": file("a.txt", "A man.\n\nTwo dogs.\n" * 5),
    "a web page": file("a.html", f"<html><body>{MARKUP * 3}</body></html>"),
}
LOOKS = ("/health", "/ready", "/info", "/metrics", "/openapi.json", "/v2/usage")
# of which the two last hold the server up for as long as they are not looked at
LEFT = (
    GOOD["libretranslate, 40 texts"],
    posted(
        "/v1/completions", {**_WRITTEN, "prompt": ["A man"] * 30, "max_tokens": 200}
    ),
    posted("/v1/completions", {**_WRITTEN, "max_tokens": 200, "stream": True}),
    GOOD["inspection of a translator"],
    FILES["a web page"],
)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_planned(self) -> bool:
        """Whether there was too much to do, and when to come again is said."""
        later = self.headers.get("retry-after", "")
        return self.status == 503 and later.isdecimal() and 1 <= int(later) <= 120

    @property
    def meaning(self) -> Any:
        """What is the same each time: no number of the answer, no time."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            events = self.body.decode().split("\n\n")
            return [_lasting(event.removeprefix("data: ")) for event in events]
        return _lasting(self.body)


def _lasting(text: bytes | str) -> Any:
    try:
        return _without_numbers(json.loads(text))
    except ValueError:
        return text


def _without_numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_numbers(one) for one in value]
    if isinstance(value, dict):
        passing = ("id", "created", "created_at")
        kept = {key: one for key, one in value.items() if key not in passing}
        return {key: _without_numbers(one) for key, one in kept.items()}
    return value


def number(page: Reply, name: str) -> float:
    """The sum of the numbers of /metrics whose names begin so."""
    lines = page.body.decode().split("\n")
    return sum(float(line.split(" ")[-1]) for line in lines if line.startswith(name))


class Lost(Exception):
    """A connection that ended before the answer did."""


class TooSlow(Exception):
    """A connection that was lost to a client that said nothing for long: its machine is busy."""


@dataclass
class Seen:
    """What clients have seen: how many requests of each kind ended how, and what was wrong."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    right: dict[str, Any] = field(default_factory=dict)  # the answer of each kind

    def note(self, kind: str, outcome: object) -> None:
        self.counts[kind, str(outcome)] += 1

    def check(self, reply: Reply, kind: str, *allowed: int) -> bool:
        """Note an answer; whether it is one of those allowed and not put off."""
        self.note(kind, reply.status)
        if reply.is_planned:
            return False
        if reply.status not in allowed or SECRET.encode() in reply.body:
            self.wrong[f"{kind}: {reply.status} {reply.body[:200]!r}"] += 1
            return False
        return True

    def check_same(self, reply: Reply, kind: str) -> None:
        """Note an answer that has to be the first one of its kind."""
        if not self.check(reply, kind, 200):
            return
        if reply.meaning != self.right.setdefault(kind, reply.meaning):
            self.wrong[f"{kind}: another answer, {reply.body[:500]!r}"] += 1


@dataclass(frozen=True)
class Client:
    """A client at an address of its own, by which the server tells it from others."""

    server: tuple[str, int]
    address: str
    rng: random.Random
    seen: Seen

    @asynccontextmanager
    async def connected(
        self, buffer: int = 0
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A new connection, whose receiving buffer may be small."""
        one = socket.socket()
        if buffer:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        one.setblocking(False)
        one.bind((self.address, 0))
        try:
            await asyncio.get_running_loop().sock_connect(one, self.server)
            reader, writer = await asyncio.open_connection(
                sock=one, limit=buffer or 2**16
            )
        except BaseException:
            one.close()
            raise
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(writer.wait_closed(), PATIENCE)

    async def ask(self, data: bytes) -> Reply:
        """One request on a connection of its own."""
        since = time.monotonic()
        async with self.connected() as (reader, writer):
            return await answer(reader, writer, data, since)


async def answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    data: bytes,
    since: float,
) -> Reply:
    """The answer to a request on a connection that waits since a time. Raises Lost, or TooSlow."""
    is_slow = time.monotonic() - since > PAUSE
    try:
        writer.write(data)
        return await asyncio.wait_for(_read(reader), PATIENCE)
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
        lost = TooSlow if is_slow else Lost
        raise lost(f"{data[:60]!r}: {error!r}") from None


async def _read(reader: asyncio.StreamReader) -> Reply:
    first, *lines = (
        (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    )
    named = [line.partition(":") for line in lines if line]
    headers = {name.lower(): value.strip() for name, _, value in named}
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Reply(int(first.split(" ")[1]), headers, body)


async def good(client: Client) -> None:
    """Some good requests, one after the other on a connection."""
    since = time.monotonic()
    async with client.connected() as (reader, writer):
        for _ in range(client.rng.choice((1, 1, 3, 8))):
            kind = client.rng.choice(list(GOOD))
            reply = await answer(reader, writer, GOOD[kind], since)
            since = time.monotonic()
            client.seen.check_same(reply, kind)
            if reply.headers.get("connection") == "close":
                return


async def some_texts(client: Client) -> None:
    """A list of sentences; each has the translation that it has alone."""
    texts = client.rng.choices(SENTENCES, k=client.rng.randint(1, 30))
    reply = await client.ask(posted("/translate", {"q": texts, **BOTH}))
    check_texts(client.seen, reply, texts)


def check_texts(seen: Seen, reply: Reply, texts: list[str]) -> None:
    if seen.check(reply, "sentences", 200):
        translated = json.loads(reply.body)["translatedText"]
        if translated != [seen.right[text] for text in texts]:
            seen.wrong[f"sentences: {texts} became {translated}"] += 1


async def a_file(client: Client) -> None:
    """A file is sent, and what became of it is fetched."""
    kind = client.rng.choice(list(FILES))
    reply = await client.ask(FILES[kind])
    if client.seen.check(reply, kind, 200):
        url = json.loads(reply.body)["translatedFileUrl"]
        path = "/" + url.split("/", 3)[3]
        reply = await client.ask(request("GET", path))
        client.seen.check_same(reply, f"{kind}, fetched")


async def a_look(client: Client) -> None:
    path = client.rng.choice(LOOKS)
    client.seen.check(await client.ask(request("GET", path)), path, 200)


async def odd(client: Client) -> None:
    """A body that is not what the address takes."""
    kind, body = client.rng.choice(ODD)
    method, path = client.rng.choice(
        [data.split(b" ", 2)[:2] for data in GOOD.values()]
    )
    is_harmless = method == b"GET" or body in (b"", b"[]", b"=&&;=Geheimnisse")
    allowed = (*range(400, 500), *((200, 404) if is_harmless else ()))
    asked = request(method.decode(), path.decode(), body, kind)
    client.seen.check(await client.ask(asked), "an odd body", *allowed)


async def a_scan(client: Client) -> None:
    path = client.rng.choice(SCANS)
    allowed = (200,) if path.startswith("/?") else range(400, 500)
    client.seen.check(await client.ask(request("GET", path)), "a scan", *allowed)


async def too_large(client: Client) -> None:
    """A body of many megabytes, told or not; the connection may end before the answer."""
    kind = "a body too large"
    told: dict[str, Any] = {"content_length": 100 * 2**20}
    data = b"x" * 2**16
    if is_chunked := client.rng.random() < 0.5:
        told = {"transfer_encoding": "chunked"}
        data = b"10000\r\n" + data + b"\r\n"
    async with client.connected() as (reader, writer):
        with suppress(ConnectionError):
            writer.write(head("POST", "/translate", content_type=JSON, **told))
            for _ in range(60 if is_chunked else 1):
                writer.write(data)
                await writer.drain()
        try:
            client.seen.check(
                await answer(reader, writer, b"", time.monotonic()), kind, 413
            )
        except Lost:
            client.seen.note(kind, "closed")


async def no_http(client: Client) -> None:
    try:
        reply = await client.ask(client.rng.choice(NO_HTTP))
        client.seen.check(reply, "no HTTP", 400, 403, 431)
    except Lost:
        client.seen.note("no HTTP", "closed")


async def leave(client: Client) -> None:
    """Some of a request, or all of it; then nobody is there."""
    data = client.rng.choice(LEFT)
    if client.rng.random() < 0.4:
        data = data[: client.rng.randrange(1, len(data))]
    async with client.connected() as (_, writer):
        with suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        await asyncio.sleep(client.rng.random() / 3)
        writer.transport.abort()
    client.seen.note("a client that leaves", "left")


async def slow_reader(client: Client) -> None:
    """An answer that is read in drops is still whole."""
    kind = client.rng.choice(("completion, streamed", "script"))
    async with client.connected(buffer=2048) as (reader, writer):
        writer.write(GOOD[kind])
        received = bytearray()
        while b"\r\n\r\n" not in received:
            received += await _drop(reader)
        fed = asyncio.StreamReader()
        fed.feed_data(bytes(received))
        reading = asyncio.ensure_future(_read(fed))
        while not reading.done():
            fed.feed_data(await _drop(reader))
            await asyncio.sleep(0.005)
        client.seen.check_same(await reading, kind)


async def _drop(reader: asyncio.StreamReader) -> bytes:
    piece = await asyncio.wait_for(reader.read(1024), PATIENCE)
    if not piece:
        raise Lost("a slow reader's connection ended")
    return piece


async def half(client: Client) -> None:
    """Half a head or half a body, and then nothing, for as long as the server waits."""
    data = client.rng.choice(
        (
            b"",
            b"POST /tr",
            head("POST", "/translate", content_length=999) + b"{",
            head("POST", "/v1/completions", transfer_encoding="chunked") + b"5\r\n{",
        )
    )
    async with client.connected() as (reader, writer):
        writer.write(data)
        rest = await asyncio.wait_for(reader.read(), PATIENCE)
        if b" 5" in rest[:12]:
            client.seen.wrong[f"half a request: {rest[:200]!r}"] += 1
        client.seen.note("half a request", "closed")


async def read_nothing(client: Client) -> None:
    """Answers that are asked for and never read."""
    async with client.connected(buffer=2048) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(GOOD["script"] * 100)
        with suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(writer.drain(), PATIENCE)
            await asyncio.sleep(40)
        writer.transport.abort()
    client.seen.note("answers that are not read", "left")


Behaviour = Callable[[Client], Awaitable[None]]
# what clients do, and how often
USUAL: dict[Behaviour, int] = {
    good: 40,
    some_texts: 12,
    a_file: 6,
    a_look: 5,
    odd: 15,
    a_scan: 5,
    no_http: 4,
    leave: 8,
    slow_reader: 3,
    too_large: 2,
}
# what takes a client half a minute or more
LINGERING: dict[Behaviour, int] = {half: 4, read_nothing: 1}


async def behave(
    client: Client, behaviours: dict[Behaviour, int], until: float
) -> None:
    """Be a client until a time, by `asyncio`'s clock."""
    clock = asyncio.get_running_loop().time
    weights = list(behaviours.values())
    while clock() < until:
        (chosen,) = client.rng.choices(list(behaviours), weights)
        try:
            await chosen(client)
        except TooSlow:
            client.seen.note(chosen.__name__, "too slow")
        except (Lost, ConnectionError, TimeoutError) as error:
            client.seen.note(chosen.__name__, "lost")
            client.seen.wrong[f"{chosen.__name__}: {error!r}"] += 1
        await asyncio.sleep(client.rng.random() / 50)
