"""What serving.py measures of servers; each measure prints its own lines or table."""

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from serving_servers import Client, Reply, Server
from side_by_side import say

from weft.documents.formats.text.plain import read_plain

CLIENTS = (1, 8, 32, 128)
SETTINGS: list[dict[str, int]] = [
    {},
    {"beam_size": 1},
    {"beam_size": 2, "n_best": 2},
    {"beam_size": 5},
]


OVERLOAD = 40  # sentences of each request too many


@dataclass
class Bench:
    """All that the measurements share."""

    sentences: list[str]
    servers: list[Server]
    rounds: int
    model: Any

    @property
    def ours(self) -> Server:
        return self.servers[0]


def table(*heads: str) -> None:
    """Begin a table."""
    print()
    row(*heads)
    print("|---" * len(heads) + "|")


def row(*cells: str) -> None:
    """A row of a table."""
    print(f"| {' | '.join(cells)} |")


def ms(seconds: Sequence[float], percent: float) -> float:
    """A percentile in milliseconds."""
    return 1000 * float(np.percentile(seconds, percent)) if seconds else float("nan")


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over rounds of how many times as much ours is."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


async def in_parallel(server: Server, sentences: Sequence[str], clients: int) -> float:
    """Sentences a second of so many clients, each of which asks one after the other."""
    rest = iter(sentences)

    async def work() -> None:
        client = Client(server)
        for sentence in rest:
            reply = await client.ask(server.request(sentence))
            assert reply.status == 200, reply.content
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(clients)))
    return len(sentences) / (time.perf_counter() - began)


async def alike(bench: Bench) -> None:
    """How alike the servers translate: of other weights, times would mean nothing."""
    texts = []
    for server in bench.servers:
        client = Client(server)
        replies = [await client.ask(server.request(s)) for s in bench.sentences[:200]]
        client.close()
        texts.append([reply.json["translatedText"] for reply in replies])
    equal = sum(one == other for one, other in zip(*texts, strict=True))
    words = [sum(len(text.split()) for text in some) for some in texts]
    print(f"{equal} of {len(texts[0])} translations are equal; words: {words}")


async def throughput(bench: Bench) -> None:
    """Sentences a second by the number of clients."""
    speeds: dict[tuple[str, int], list[float]] = {}
    on_file: list[float] = []
    for number in range(bench.rounds):
        began = time.perf_counter()
        bench.model.translate(bench.sentences)
        on_file.append(len(bench.sentences) / (time.perf_counter() - began))
        for clients in CLIENTS:
            for server in bench.servers:
                some = bench.sentences[: 200 if clients == 1 else 1000]
                speed = await in_parallel(server, some, clients)
                speeds.setdefault((server.name, clients), []).append(speed)
        say(f"round {number + 1} of {bench.rounds}")
    names = [server.name for server in bench.servers]
    heads = [f"{name}, sentences/s" for name in names]
    table("clients", *heads, "Weft, times the peer", "Weft, of the engine on a file")
    for clients in CLIENTS:
        found = [speeds[name, clients] for name in names]
        times = "-" if len(found) == 1 else f"{median_ratio(found[0], found[1]):.1f}"
        share = median_ratio(found[0], on_file)
        cells = [f"{statistics.median(each):,.0f}" for each in found]
        row(str(clients), *cells, times, f"{share:.0%}")
    print(f"\nThe engine on a file: {statistics.median(on_file):,.0f} sentences/s.")


async def latency(bench: Bench) -> None:
    """One client by itself, beside the engine called directly."""
    directly: list[float] = []
    served: dict[str, list[float]] = {server.name: [] for server in bench.servers}
    clients = [Client(server) for server in bench.servers]
    for sentence in bench.sentences[: 100 * bench.rounds]:
        began = time.perf_counter()
        bench.model.translate([sentence])
        directly.append(time.perf_counter() - began)
        for client in clients:
            reply = await client.ask(client.server.request(sentence))
            served[client.server.name].append(reply.seconds)
    table("one client", "p50, ms", "p95, ms", "p99, ms")
    for name, seconds in {"the engine, called directly": directly, **served}.items():
        row(name, *(f"{ms(seconds, percent):.1f}" for percent in (50, 95, 99)))
    more = [a - b for a, b in zip(served[bench.ours.name], directly, strict=True)]
    print(f"\nServed less directly, of the same sentence: p50 {ms(more, 50):+.1f} ms.")


async def fairness(bench: Bench) -> None:
    """One client's single sentences, alone and while another has 10,000 waiting."""
    table(
        "server",
        "one client alone, p99 ms",
        "beside 10,000 sentences of another, p99 ms",
        "times",
    )
    for server in bench.servers:
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(bench.rounds):
            alone.append(ms(await one_by_one(server, bench.sentences), 99))
            flood = asyncio.ensure_future(many_lists(server, bench.sentences, 10_000))
            await asyncio.sleep(1.0)
            beside.append(ms(await one_by_one(server, bench.sentences, flood), 99))
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
            await asyncio.sleep(1.0)
        medians = [statistics.median(alone), statistics.median(beside)]
        times = median_ratio(beside, alone)
        row(server.name, *(f"{number:.1f}" for number in (*medians, times)))


async def one_by_one(
    server: Server, sentences: Sequence[str], flood: asyncio.Future[None] | None = None
) -> list[float]:
    """The seconds of each of 100 requests of one client, of those while the flood goes on."""
    client = Client(server)
    seconds: list[float] = []
    for sentence in sentences[:100]:
        if flood is not None and flood.done():
            break
        seconds.append((await client.ask(server.request(sentence))).seconds)
    client.close()
    return seconds


async def many_lists(server: Server, sentences: Sequence[str], count: int) -> None:
    """A client that sends lists of 100 sentences, eight at a time, from another address."""
    lists = [list(sentences[i % 10 * 100 :][:100]) for i in range(count // 100)]
    rest = iter(lists)

    async def work() -> None:
        client = Client(server)
        client.reader, client.writer = await asyncio.open_connection(
            "127.0.0.1", server.port, local_addr=("127.0.0.2", 0)
        )
        try:
            for texts in rest:
                await client.ask(server.request(texts))
        finally:
            client.close()

    await asyncio.gather(*(work() for _ in range(8)))


async def overload(bench: Bench) -> None:
    """Ten times as many sentences a second as can be translated, for twenty seconds.

    They come in requests of 40. When no more come, one is sent again and again until it is
    accepted: so long should Retry-After have said.
    """
    server = bench.ours
    before = [(await one_request(server, s)).seconds for s in bench.sentences[:50]]
    rate = 10 * await in_parallel(server, bench.sentences, 32)
    say(f"{rate:,.0f} sentences a second")
    replies = await at_a_rate(server, bench.sentences, rate / OVERLOAD)
    accepted = [reply for reply in replies if reply.status == 200]
    refused = [reply for reply in replies if reply.status in (429, 503)]
    other = {reply.status for reply in replies} - {200, 429, 503}
    print(
        f"\naccepted {len(accepted):,}, refused {len(refused):,}, other {sorted(other)}"
    )
    took = [reply.seconds for reply in accepted]
    print(f"accepted: p50 {ms(took, 50):,.0f} ms, all within {max(took):.1f} s")
    took = [reply.seconds for reply in refused]
    print(f"refused within: p50 {ms(took, 50):.1f} ms, p99 {ms(took, 99):.1f} ms")
    while any((await gauges(server)).values()):
        await asyncio.sleep(1)
    after = [(await one_request(server, s)).seconds for s in bench.sentences[:50]]
    print(
        f"a lone sentence before: p50 {ms(before, 50):.1f} ms, afterwards {ms(after, 50):.1f} ms"
    )


async def at_a_rate(
    server: Server, sentences: Sequence[str], rate: float
) -> list[Reply]:
    """The replies to so many requests a second, for twenty seconds, each of a client of its own.

    Prints how long a request is refused afterwards, and how long the last refusals said.
    """
    tasks: list[asyncio.Task[Reply]] = []
    began = time.perf_counter()
    for number in range(int(20 * rate)):
        wait = began + number / rate - time.perf_counter()
        await asyncio.sleep(max(0.0, wait))
        first = number * OVERLOAD % len(sentences)
        texts = list(sentences[first : first + OVERLOAD])
        tasks.append(asyncio.ensure_future(one_request(server, texts)))
    told: list[float] = []
    began = time.perf_counter()
    while (reply := await one_request(server, sentences[:400])).status == 503:
        seconds = time.perf_counter() - began
        told.append(seconds + float(reply.headers["retry-after"]))
        await asyncio.sleep(0.25)
    seconds = time.perf_counter() - began - reply.seconds
    if told:
        print(
            f"\na request of 400 sentences was accepted {seconds:.1f} s after the last one of the others;"
            f" told: {min(told):.1f} to {max(told):.1f}"
        )
    return await asyncio.gather(*tasks)


async def one_request(server: Server, text: str | Sequence[str]) -> Reply:
    """A client that comes, asks once and goes."""
    client = Client(server)
    try:
        return await client.ask(server.request(text))
    finally:
        client.close()


async def leavers(bench: Bench) -> None:
    """Clients that leave while their text is translated."""
    server = bench.ours
    text = " ".join(bench.sentences[:60])
    writers = []
    for _ in range(32):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(server.request(text))
        writers.append(writer)
    await asyncio.sleep(0.3)
    before = await gauges(server)
    for writer in writers:
        writer.close()
    began = time.perf_counter()
    after = before
    while any(after.values()) and time.perf_counter() - began < 10:
        after = await gauges(server)
    seconds = time.perf_counter() - began
    print(
        f"\nbefore leaving {before}; all gone {1000 * seconds:.0f} ms after 32 clients left"
    )


async def gauges(server: Server) -> dict[str, float]:
    """What runs and waits."""
    client = Client(server)
    reply = await client.ask(
        f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    )
    client.close()
    lines = reply.content.decode().split("\n")
    wanted = ("weft:num_rows_running", "weft:num_rows_waiting")
    return {
        line.split("{")[0].split(" ")[0]: float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith(wanted)
    }


async def same(bench: Bench) -> None:
    """20,000 requests of 32 clients, of several settings, beside the engine alone."""
    server = bench.ours
    rng = random.Random(1)
    alone = [answers_alone(bench, options) for options in SETTINGS]
    # what stands before a text, as "# " does, is not for the model
    whole = [text for text in bench.sentences if is_one_segment(text)]
    draws = range(20_000)
    asked = [(rng.choice(whole), rng.randrange(len(SETTINGS))) for _ in draws]
    rest = iter(asked)
    wrong: list[str] = []

    async def work() -> None:
        client = Client(server)
        for sentence, number in rest:
            body = {"texts": [sentence], "source": server.src, "target": server.tgt}
            request = server.post("/v1/translate", {**body, **SETTINGS[number]})
            (found,) = (await client.ask(request)).json["translations"]
            n_best = [(other["text"], other["score"]) for other in found["n_best"]]
            if (found["text"], found["score"], n_best) != alone[number][sentence]:
                wrong.append(sentence)
        client.close()

    await asyncio.gather(*(work() for _ in range(32)))
    print(f"\n20,000 requests: {len(wrong)} differ in a text or a score")


def is_one_segment(text: str) -> bool:
    """Whether a model reads all of a text, as it stands."""
    segments = read_plain(text).segments
    return [segment.text for segment in segments] == [text.strip()]


def answers_alone(bench: Bench, options: dict[str, int]) -> dict[str, Any]:
    """What the engine gives by itself: text, score and others of each sentence."""
    answers = {}
    translations = bench.model.translate(bench.sentences, **options)
    for sentence, found in zip(bench.sentences, translations, strict=True):
        # a server gives each text once, also where several sequences of tokens read alike
        n_best: dict[str, float] = {}
        for other in found.n_best:
            n_best.setdefault(other.text, other.score)
        answers[sentence] = (found.text, found.score, list(n_best.items()))
    return answers


MEASURES: dict[str, Callable[[Bench], Coroutine[Any, Any, None]]] = {
    measure.__name__: measure
    for measure in (throughput, latency, fairness, overload, leavers, same)
}
