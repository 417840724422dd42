"""A server under mixed traffic for an hour: nothing grows, nothing fails that should not, and after
ten times too much it is as quick as before. WEFT_SOAK_MINUTES shortens it.
"""

import asyncio
import json
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tiny_server import Running

pytestmark = pytest.mark.long
MINUTES = float(os.environ.get("WEFT_SOAK_MINUTES", "60"))
SENTENCES = [
    "my friend reads a book .",
    "the cat sleeps",
    "we go to the market tomorrow",
]


def post(path: str, content: bytes) -> bytes:
    """A request with a body that is called JSON."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    )
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


BAD = [
    post("/translate", b"{q}"),
    post("/translate", b'{"q": 5 }'),
    post("/v1/completions", b"null"),
    b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"DELETE /translate HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
]
# what a server that has too much to do may answer
PLANNED = (429, 503)


@dataclass
class Seen:
    """What clients and the observer have seen."""

    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0  # connections that ended without an answer to a good request
    memory: list[tuple[float, int]] = field(default_factory=list)  # seconds, bytes
    descriptors: list[int] = field(default_factory=list)


def resident(pid: int) -> int:
    """The memory of a process, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def good(rng: random.Random) -> bytes:
    """A request that can be answered: one sentence, or several, of any length."""
    count = rng.choice((1, 1, 1, 5, 20))
    texts = [
        " ".join(rng.choices(SENTENCES, k=rng.choice((1, 2)))) for _ in range(count)
    ]
    body = {"q": texts if count > 1 else texts[0], "source": "en", "target": "de"}
    return post("/translate", json.dumps(body).encode())


async def ask(port: int, request: bytes, patience: float = 30.0) -> int | None:
    """The status of one answer; None where the connection ends without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience)
        return int(head.split(b" ", 2)[1])
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        return None
    finally:
        writer.close()


async def leave(port: int, request: bytes, rng: random.Random) -> None:
    """Send some of a request, or all of it, and leave."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request[: rng.randrange(1, len(request) + 1)])
    await asyncio.sleep(rng.random() / 20)
    writer.close()


async def client(port: int, seen: Seen, until: float, seed: int) -> None:
    """A client that does what clients do, most of it right."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        kind = rng.random()
        if kind < 0.7:
            status = await ask(port, good(rng))
            seen.lost += status is None
        elif kind < 0.85:
            status = await ask(port, rng.choice(BAD))
        else:
            await leave(port, good(rng), rng)
            continue
        if status is not None:
            seen.statuses[status] += 1
        await asyncio.sleep(rng.random() / 50)


async def flood(port: int, seen: Seen, seconds: float) -> None:
    """Far more requests than can be answered, as fast as this process sends them."""
    until = time.monotonic() + seconds
    rng = random.Random(0)

    async def work() -> None:
        while time.monotonic() < until:
            status = await ask(port, good(rng), 90)
            if status is not None:
                seen.statuses[status] += 1

    await asyncio.gather(*(work() for _ in range(400)))


async def lone(port: int) -> float:
    """The median seconds of a lone client."""
    took = []
    for _ in range(20):
        began = time.monotonic()
        assert await ask(port, good(random.Random(3))) == 200
        took.append(time.monotonic() - began)
    return statistics.median(took)


async def observe(pid: int, seen: Seen, until: float) -> None:
    began = time.monotonic()
    while time.monotonic() < until:
        seen.memory.append((time.monotonic() - began, resident(pid)))
        await asyncio.sleep(2)


async def soak(port: int, pid: int) -> tuple[Seen, float, list[float]]:
    """Mixed traffic, with a flood at each tenth of the time."""
    seen = Seen()
    before = await lone(port)
    ends = time.monotonic() + 60 * MINUTES
    after: list[float] = []
    watching = asyncio.ensure_future(observe(pid, seen, ends))
    while time.monotonic() < ends:
        until = min(ends, time.monotonic() + 6 * MINUTES)
        await asyncio.gather(*(client(port, seen, until, seed) for seed in range(12)))
        await flood(port, seen, min(20.0, 2 * MINUTES))
        await asyncio.sleep(2)
        after.append(await lone(port))
        seen.descriptors.append(open_files(pid))
    await watching
    return seen, before, after


def test_an_hour_of_mixed_traffic(launch: Callable[..., Running]) -> None:
    server = launch()
    seen, before, after = asyncio.run(soak(server.address[1], server.process.pid))
    unplanned = {
        status: count
        for status, count in seen.statuses.items()
        if status >= 500 and status not in PLANNED
    }
    assert unplanned == {}
    assert seen.statuses[200] > 100
    assert seen.lost == 0
    assert max(after) < 3 * before + 0.05
    # its second half has no more open than its first
    half = len(seen.descriptors) // 2
    assert max(seen.descriptors[half:]) <= max(seen.descriptors[: half + 1]) + 2
    seconds, sizes = np.array([m for m in seen.memory if m[0] > 15 * MINUTES]).T
    slope = np.polyfit(seconds, sizes, 1)[0] * 3600 / 2**20
    assert slope < max(10.0, 60 / MINUTES * 10), f"{slope:.1f} MiB an hour"
