"""A server under mixed traffic for a long time, and then under ten times too much: row S12.

Five minutes by themselves; WEFT_SOAK_MINUTES=60 makes an hour of it.
"""

import asyncio
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from tiny_server import Running

from . import traffic
from .traffic import (
    BOTH,
    FILES,
    GOOD,
    LINGERING,
    PATIENCE,
    SECRET,
    SENTENCES,
    USUAL,
    Client,
    Seen,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here"),
]
MINUTES = float(os.environ.get("WEFT_SOAK_MINUTES", "5"))
NUM_USUAL, NUM_LINGERING = 10, 8
BURSTS = 12  # in the whole time
BURST = 60  # requests
MAX_WAITING = 600  # texts
# MiB by which memory may rise in the second half; the allocator's pools, of several threads, fill
# in the first half of an hour
GROWTH = 4.0 if MINUTES >= 30 else 12.0
PEAK = 60.0  # MiB more, under the overload
SLACK = 5  # descriptors: how many connections there are at a moment is chance
OVERLOAD = 20.0  # seconds
# more than these the server closes at once; some of its thousand are other clients'
MAX_CONNECTIONS = 900
OVERLOAD_TEXTS = 100  # of a request


@dataclass(frozen=True)
class Sample:
    """What a process has at a moment; memory in MiB."""

    seconds: float
    memory: float
    descriptors: int
    threads: int


@dataclass
class Watch:
    """Samples of a process, one a second."""

    process: Path
    began: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)

    def sample(self) -> Sample:
        lines = (self.process / "status").read_text("ascii").split("\n")
        said = dict(line.split(":", 1) for line in lines if line)
        return Sample(
            time.monotonic() - self.began,
            int(said["VmRSS"].split()[0]) / 1024,
            len(os.listdir(self.process / "fd")),
            int(said["Threads"]),
        )

    def open_files(self) -> list[str]:
        """What the descriptors stand for."""
        names = []
        for one in (self.process / "fd").iterdir():
            with suppress(OSError):
                names.append(os.readlink(one))
        return sorted(names)

    async def go_on(self) -> None:
        while True:
            self.samples.append(self.sample())
            await asyncio.sleep(1)

    def halves(self) -> tuple[list[Sample], list[Sample]]:
        middle = self.samples[-1].seconds / 2
        first = [one for one in self.samples if one.seconds < middle]
        return first, self.samples[len(first) :]


def slope(samples: list[Sample]) -> float:
    """How memory grows, in MiB a second, by the straight line that fits best."""
    seconds = [one.seconds for one in samples]
    return float(np.polyfit(seconds, [one.memory for one in samples], 1)[0])


@dataclass
class Found:
    """What the soak was for."""

    seen: Seen
    watch: Watch
    quick: list[float] = field(default_factory=list)  # a lone client, before and after
    calm: list[Sample] = field(default_factory=list)  # before and after the traffic
    peak: float = 0.0  # memory under the overload
    capacity: float = 0.0  # texts a second
    offered: float = 0.0
    accepted: list[float] = field(default_factory=list)  # seconds of their answers
    health: list[float] = field(default_factory=list)


@dataclass
class Soak:
    """One server, its clients, and a model that is written anew under them."""

    server: Running
    model: Path
    seconds: float
    found: Found
    num_asking: int = 0  # requests of the overload that are not answered yet
    was_full: bool = False  # whether there were as many as the server takes at all

    def client(self, number: int) -> Client:
        """Make a client; the first one is alone at 127.0.0.1."""
        address = f"127.0.{number // 250}.{1 + number % 250}"
        rng = random.Random(number)
        return Client(self.server.address, address, rng, self.found.seen)

    async def run(self) -> None:
        found = self.found
        await self.learn()
        found.quick.append(await self.quickest())
        found.calm.append(found.watch.sample())
        await self.mixed()
        await self.until_calm()
        found.calm.append(found.watch.sample())
        found.capacity = await self.capacity()
        await self.overload()
        await self.until_calm()
        found.quick.append(await self.quickest())
        await self.learn()

    async def learn(self) -> None:
        """Ask everything of a server that does nothing else, and compare with the first time."""
        lone = self.client(0)
        for kind, data in GOOD.items():
            found = self.found.seen
            found.check_same(await lone.ask(data), kind)
        for _ in range(4 * len(FILES)):
            await traffic.a_file(lone)
        right = self.found.seen.right
        for text in SENTENCES:
            reply = await lone.ask(traffic.posted("/translate", {"q": text, **BOTH}))
            translated = json.loads(reply.body)["translatedText"]
            assert right.setdefault(text, translated) == translated

    async def quickest(self) -> float:
        """Measure a lone client: the seconds within which a tenth of its requests are answered."""
        lone = self.client(0)
        took = []
        for _ in range(100):
            began = time.monotonic()
            reply = await lone.ask(GOOD["libretranslate"])
            took.append(time.monotonic() - began)
            self.found.seen.check_same(reply, "libretranslate")
        return sorted(took)[10]

    async def mixed(self) -> None:
        """Every kind of traffic at once."""
        clock = asyncio.get_running_loop().time
        until = clock() + self.seconds
        behaving = [
            traffic.behave(self.client(1 + n), USUAL, until) for n in range(NUM_USUAL)
        ]
        behaving += [
            traffic.behave(self.client(50 + n), LINGERING, until)
            for n in range(NUM_LINGERING)
        ]
        beside = [
            self.found.watch.go_on(),
            self.write_anew(),
            self.bursts(),
            self.tell(),
        ]
        tasks = [asyncio.ensure_future(one) for one in beside]
        await asyncio.gather(*behaving)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with pytest.raises(asyncio.CancelledError):
                await task

    async def tell(self) -> None:
        """Say how it goes, once a minute: an hour is long."""
        while True:
            await asyncio.sleep(60)
            num = sum(self.found.seen.counts.values())
            wrong = sum(self.found.seen.wrong.values())
            last = self.found.watch.samples[-1]
            print(f"{num} requests, {wrong} wrong; {last}", flush=True)

    async def write_anew(self) -> None:
        """Replace a served model now and then; in between its folder is gone or damaged."""
        whole = self.model.with_name("whole")
        manifest = self.model / "manifest.json"
        copytree(self.model, whole)
        for number in range(1, 10**6):
            await asyncio.sleep(self.seconds / 40)
            if number % 2:
                shutil.rmtree(self.model)
            else:
                manifest.write_text("{", "utf-8")
            try:
                await asyncio.sleep(3)
            finally:
                shutil.rmtree(self.model, ignore_errors=True)
                copytree(whole, self.model)
                later = time.time() + 2 * number
                os.utime(manifest, (later, later))

    async def bursts(self) -> None:
        """Much more than can be done, of many clients at once."""
        while True:
            await asyncio.sleep(self.seconds / BURSTS * 0.8)
            asked = [self.one_of_burst(number) for number in range(BURST)]
            await asyncio.gather(*asked)
            await asyncio.sleep(self.seconds / BURSTS * 0.2)

    async def one_of_burst(self, number: int) -> None:
        client = self.client(100 + number % 30)
        texts = random.Random(number).choices(SENTENCES, k=40)
        try:
            reply = await client.ask(texts_asked(texts))
        except traffic.TooSlow:
            self.found.seen.note("sentences", "too slow")
            return
        except (traffic.Lost, ConnectionError) as error:
            self.found.seen.wrong[f"a burst: {error!r}"] += 1
            return
        traffic.check_texts(self.found.seen, reply, texts)

    async def until_calm(self) -> None:
        """Wait until nothing is worked on, and what clients have left open is closed."""
        until = time.monotonic() + PATIENCE
        while True:
            page = await self.client(0).ask(traffic.request("GET", "/metrics"))
            busy = traffic.number(page, "weft:num_requests_")
            is_calm = (
                self.found.watch.sample().descriptors <= self.found.calm[0].descriptors
            )
            if not busy and is_calm:
                return
            left = self.found.watch.open_files()
            assert time.monotonic() < until, f"{busy} texts; {left}"
            await asyncio.sleep(1)

    async def capacity(self) -> float:
        """Measure how many texts a second four clients get that ask again and again."""
        until = time.monotonic() + OVERLOAD / 2
        began = time.monotonic()

        async def again(number: int) -> int:
            done = 0
            while time.monotonic() < until:
                texts = self.client(number).rng.choices(SENTENCES, k=OVERLOAD_TEXTS)
                reply = await self.client(number).ask(texts_asked(texts))
                traffic.check_texts(self.found.seen, reply, texts)
                done += len(texts)
            return done

        done = await asyncio.gather(*(again(200 + number) for number in range(4)))
        return sum(done) / (time.monotonic() - began)

    async def overload(self) -> None:
        """Ask for ten times as much as can be done, for a while."""
        found = self.found
        each = OVERLOAD_TEXTS / (10 * found.capacity)  # seconds between two requests
        began = time.monotonic()
        tasks = [asyncio.ensure_future(self.look_after_health(began + OVERLOAD))]
        while (now := time.monotonic()) < began + OVERLOAD:
            while len(tasks) * each < now - began:
                asked = self.one_of_overload(300 + len(tasks))
                tasks.append(asyncio.ensure_future(asked))
            found.peak = max(found.peak, found.watch.sample().memory)
            await asyncio.sleep(0.02)
        found.offered = len(tasks) * OVERLOAD_TEXTS / (time.monotonic() - began)
        await asyncio.gather(*tasks)

    async def one_of_overload(self, number: int) -> None:
        client = self.client(number)
        texts = client.rng.choices(SENTENCES, k=OVERLOAD_TEXTS)
        seen = self.found.seen
        began = time.monotonic()
        self.num_asking += 1
        self.was_full |= self.num_asking > MAX_CONNECTIONS
        try:
            reply = await client.ask(texts_asked(texts))
        except (traffic.Lost, traffic.TooSlow, ConnectionError) as error:
            seen.note("ten-fold overload", "closed")
            if not self.was_full:
                seen.wrong[f"the overload: {error!r}"] += 1
            return
        finally:
            self.num_asking -= 1
        traffic.check_texts(seen, reply, texts)
        seen.note("ten-fold overload", reply.status)
        if reply.status == 200:
            self.found.accepted.append(time.monotonic() - began)

    async def look_after_health(self, until: float) -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            reply = await self.client(0).ask(traffic.request("GET", "/health"))
            self.found.seen.check(reply, "/health", 200)
            self.found.health.append(time.monotonic() - began)
            await asyncio.sleep(0.5)


def texts_asked(texts: list[str]) -> bytes:
    return traffic.posted("/translate", {"q": texts, **BOTH})


def report(found: Found) -> Iterator[str]:
    """What was found, for the one who waited for it."""
    kinds = sorted({kind for kind, _ in found.seen.counts})
    for kind in kinds:
        ends = {end: n for (of, end), n in found.seen.counts.items() if of == kind}
        yield f"{kind}: {', '.join(f'{n} {end}' for end, n in sorted(ends.items()))}"
    first, second = found.watch.halves()
    for half in (first, second):
        yield (
            f"memory {half[0].memory:.1f} to {half[-1].memory:.1f} MiB, at most"
            f" {max(one.memory for one in half):.1f}, slope {slope(half) * 3600:.2f} an hour;"
            f" descriptors {median(one.descriptors for one in half)} at most"
            f" {max(one.descriptors for one in half)};"
            f" threads at most {max(one.threads for one in half)}"
        )
    yield f"calm: {found.calm}"
    yield f"a lone client, before and after: {found.quick} s"
    yield (
        f"{found.capacity:.0f} texts a second, offered {found.offered:.0f}; answered in"
        f" {max(found.accepted, default=0):.1f} s at most; peak {found.peak:.1f} MiB;"
        f" health in {max(found.health, default=0):.2f} s at most"
    )
    yield f"wrong: {dict(found.seen.wrong)}"


def median(values: Iterator[int]) -> float:
    return float(np.median(list(values)))


@contextmanager
def told(found: Found) -> Iterator[None]:
    """Say what was found, whatever happens."""
    try:
        yield
    finally:
        print("\n".join(["", *report(found)]), flush=True)


def test_S12_mixed_traffic_leaves_nothing_behind(
    launch: Callable[..., Running], tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    model = tmp_path / "served"
    copytree(tiny_models["en-de"], model)
    server = launch(
        f"mine={model}",
        "--max-waiting",
        str(MAX_WAITING),
        names=("en-de", "de-en", "plays", "languages"),
    )
    watch = Watch(Path(f"/proc/{server.process.pid}"))
    found = Found(Seen(), watch)
    with told(found):
        asyncio.run(Soak(server, model, 60 * MINUTES, found).run())
    assert server.stop() == 0
    assert "Traceback" not in server.said()
    assert SECRET not in server.said()
    check(found)


def check(found: Found) -> None:
    """Nothing grows, nothing fails, and what was too much is forgotten."""
    assert found.seen.wrong == {}
    first, second = found.watch.halves()
    seconds = second[-1].seconds - second[0].seconds
    assert slope(second) * seconds < GROWTH, "memory grows"
    assert median(one.descriptors for one in second) <= SLACK + median(
        one.descriptors for one in first
    )
    # those that read files are made one by one, up to six
    assert max(one.threads for one in second) <= max(one.threads for one in first) + 6
    answered = found.seen.counts["ten-fold overload", "200"]
    assert answered == len(found.accepted) > 0
    refused = sum(
        found.seen.counts["ten-fold overload", how] for how in ("503", "closed")
    )
    assert refused > answered, "no overload"
    assert found.peak < found.calm[1].memory + PEAK
    before, after = found.quick
    assert after < 2 * before + 0.02
