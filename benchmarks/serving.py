"""How fast and how fair `weft serve` is, beside LibreTranslate's own server over CTranslate2 with
the same weights: `python benchmarks/serving.py FOLDER --peer PYTHON [--only NAME ...]`.

FOLDER holds a translator whose weights CTranslate2 can have (ctranslate2_model.py says which).
Sentences are the first column of --text, each a request of its own. Both servers run beside each
other, and take turns, round after round; who is not asked stands still. PYTHON has LibreTranslate's
packages; without --peer Weft is measured alone. The client is this process: it costs both servers
alike. Nothing else should run meanwhile.

    throughput  sentences a second of 1, 8, 32 and 128 clients, and of the engine on a file
    latency     a lone client, and the engine called directly
    fairness    one client's single sentences while another sends thousands
    overload    ten times what can be done: what is accepted, refused, and told
    leavers     clients that leave: what is still worked on
    same        20,000 sentences served, beside what the engine gives alone
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from decoding_peers import flat
from side_by_side import DATA, refuse_missing, say

import weft
from weft.kernels.machine import machine_for_use
from weft.tasks.translation import Translation

HERE = Path(__file__).resolve().parent
TEXT = DATA / "multi30k" / "test_2016_flickr.en"
CLIENTS = (1, 8, 32, 128)
MEASURES = ("throughput", "latency", "fairness", "overload", "leavers", "same")


@dataclass
class Server:
    """A server under way, and how it is asked."""

    name: str
    port: int
    src: str
    tgt: str
    process: subprocess.Popen[bytes]

    def request(self, text: str | Sequence[str], **more: Any) -> bytes:
        """A request of LibreTranslate's shape, as bytes."""
        body = {"q": text, "source": self.src, "target": self.tgt, **more}
        return self.post("/translate", body)

    def post(self, path: str, body: Any) -> bytes:
        """Any request with a body of JSON."""
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


@dataclass
class Reply:
    """An answer: its status, its headers, its content, and the seconds that it took."""

    status: int
    headers: dict[str, str]
    content: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Client:
    """A connection that is kept open."""

    server: Server
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes) -> Reply:
        """Send a request and read its reply."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.server.port
            )
        assert self.reader is not None
        began = time.perf_counter()
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        content = await self.reader.readexactly(int(headers["content-length"]))
        seconds = time.perf_counter() - began
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Reply(int(first.split()[1]), headers, content, seconds)

    def close(self) -> None:
        """Leave."""
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


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


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    folder: Path, served: Path, peer: Path | None, kind: str
) -> Iterator[list[Server]]:
    """Weft's server, and the peer's where there is one."""
    task = Translation.load(folder, machine_for_use())
    languages = (task.config.src_lang, task.config.tgt_lang)
    with tempfile.TemporaryDirectory(prefix="weft-serving-") as scratch:
        port = free_port()
        ours = [sys.executable, "-m", "weft", "serve", str(served)]
        commands = {"Weft": ([*ours, "--port", str(port)], port)}
        if peer is not None:
            port = free_port()
            weights = f"{scratch}/weights.npz"
            np.savez(weights, **dict(flat(task.weights)))
            convert = [str(peer), str(HERE / "ctranslate2_model.py"), weights]
            subprocess.run([*convert, f"{scratch}/model"], check=True)
            files = ",".join(
                str(folder / name) for name in task.config.tokenizer_files()
            )
            script = str(HERE / "serving_libretranslate.py")
            theirs = [str(peer), script, f"{scratch}/model", files, *languages]
            commands["LibreTranslate"] = ([*theirs, str(port), kind], port)
        servers: list[Server] = []
        try:
            for name, (command, port) in commands.items():
                log = open(f"{scratch}/{name}.log", "wb")  # noqa: SIM115
                env = {**os.environ, "OMP_NUM_THREADS": "2"}
                process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
                servers.append(Server(name, port, *languages, process))
                wait_for(port, process, Path(log.name))
            yield servers
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait(40)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server listens."""
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"a server ended: {log.read_text()[-500:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("a server does not listen after a minute")


async def in_parallel(
    server: Server, sentences: Sequence[str], clients: int
) -> tuple[float, list[Reply]]:
    """The seconds in which so many clients have had all sentences, and the replies."""
    rest = iter(sentences)
    replies: list[Reply] = []

    async def work() -> None:
        client = Client(server)
        for sentence in rest:
            reply = await client.ask(server.request(sentence))
            assert reply.status == 200, reply.content
            replies.append(reply)
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(clients)))
    return time.perf_counter() - began, replies


async def throughput(bench: Bench) -> None:
    """Sentences a second by the number of clients."""
    print(
        "\n| clients | " + " | ".join(f"{s.name}, sentences/s" for s in bench.servers),
        end="",
    )
    print(" | Weft, times the peer | Weft, of the engine on a file |")
    print("|---|" + "---|" * (len(bench.servers) + 2))
    speeds: dict[tuple[str, int], list[float]] = {}
    on_file: list[float] = []
    for number in range(bench.rounds):
        began = time.perf_counter()
        bench.model.translate(bench.sentences)
        on_file.append(len(bench.sentences) / (time.perf_counter() - began))
        for clients in CLIENTS:
            for server in bench.servers:
                count = min(len(bench.sentences), 200 if clients == 1 else 1000)
                if server is not bench.ours:
                    count = min(count, 100 if clients == 1 else 200)
                seconds, _ = await in_parallel(server, bench.sentences[:count], clients)
                speeds.setdefault((server.name, clients), []).append(count / seconds)
        say(f"round {number + 1} of {bench.rounds}")
    for clients in CLIENTS:
        ours = speeds[bench.ours.name, clients]
        cells = [
            f"{statistics.median(speeds[s.name, clients]):,.0f}" for s in bench.servers
        ]
        times = "-"
        if len(bench.servers) > 1:
            theirs = speeds[bench.servers[1].name, clients]
            times = f"{statistics.median(a / b for a, b in zip(ours, theirs, strict=True)):.1f}"
        share = statistics.median(a / b for a, b in zip(ours, on_file, strict=True))
        print(f"| {clients} | {' | '.join(cells)} | {times} | {share:.0%} |")
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
    print("\n| one client | p50, ms | p95, ms | p99, ms |\n|---|---|---|---|")
    for name, seconds in {"the engine, called directly": directly, **served}.items():
        print(
            f"| {name} | "
            + " | ".join(f"{ms(seconds, q):.1f}" for q in (50, 95, 99))
            + " |"
        )
    more = [a - b for a, b in zip(served[bench.ours.name], directly, strict=True)]
    print(f"\nServed less directly, of the same sentence: p50 {ms(more, 50):+.1f} ms.")


async def fairness(bench: Bench) -> None:
    """One client's single sentences, alone and while another has 10,000 waiting."""
    print(
        "\n| server | one client alone, p99 ms | beside 10,000 sentences of another, p99 ms | times |"
    )
    print("|---|---|---|---|")
    for server in bench.servers:
        ratios: list[tuple[float, float]] = []
        for _ in range(bench.rounds):
            one = Client(server)
            alone = [
                (await one.ask(server.request(sentence))).seconds
                for sentence in bench.sentences[:100]
            ]
            flood = asyncio.ensure_future(many_lists(server, bench.sentences, 10_000))
            await asyncio.sleep(1.0)
            beside: list[float] = []
            for sentence in bench.sentences[:100]:
                if flood.done():
                    break
                beside.append((await one.ask(server.request(sentence))).seconds)
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
            one.close()
            await asyncio.sleep(1.0)
            ratios.append((ms(alone, 99), ms(beside, 99)))
        first = statistics.median(a for a, _ in ratios)
        second = statistics.median(b for _, b in ratios)
        times = statistics.median(b / a for a, b in ratios)
        print(f"| {server.name} | {first:.1f} | {second:.1f} | {times:.1f} |")


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
    """Ten times as many requests a second as can be answered, for twenty seconds."""
    server = bench.ours
    seconds, _ = await in_parallel(server, bench.sentences[:1000], 32)
    rate = 10 * 1000 / seconds
    say(f"{rate:,.0f} requests a second")
    tasks: list[asyncio.Task[tuple[float, Reply]]] = []
    began = time.perf_counter()
    for number in range(int(20 * rate)):
        wait = began + number / rate - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        elif number % 64 == 0:
            await asyncio.sleep(0)
        sentence = bench.sentences[number % len(bench.sentences)]
        tasks.append(asyncio.ensure_future(one_request(server, sentence, began)))
    done = await asyncio.gather(*tasks, return_exceptions=True)
    replies = [one for one in done if not isinstance(one, BaseException)]
    lost = len(done) - len(replies)
    accepted = [r for _, r in replies if r.status == 200]
    refused = [(at, r) for at, r in replies if r.status in (429, 503)]
    other = [r.status for _, r in replies if r.status not in (200, 429, 503)]
    print(
        f"\naccepted {len(accepted):,}, refused {len(refused):,}, other {other[:5]}, connections lost {lost}"
    )
    if accepted:
        took = [reply.seconds for reply in accepted]
        print(f"accepted: p50 {ms(took, 50):,.0f} ms, p99 {ms(took, 99):,.0f} ms")
    if refused:
        told = [float(reply.headers["retry-after"]) for _, reply in refused]
        took = [reply.seconds for _, reply in refused]
        quick = f"refused within: p50 {ms(took, 50):.1f} ms, p99 {ms(took, 99):.1f} ms"
        print(f"{quick}; Retry-After {min(told):.0f} to {max(told):.0f} s")
    await asyncio.sleep(2)
    lone = [
        (await Client(server).ask(server.request(s))).seconds
        for s in bench.sentences[:50]
    ]
    print(f"two seconds after: p50 {ms(lone, 50):.1f} ms")


async def one_request(
    server: Server, sentence: str, began: float
) -> tuple[float, Reply]:
    """A client that comes, asks once and goes."""
    client = Client(server)
    at = time.perf_counter() - began
    try:
        return at, await client.ask(server.request(sentence))
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
    settings = [{}, {"beam_size": 1}, {"beam_size": 2, "n_best": 2}, {"beam_size": 5}]
    wanted: dict[tuple[str, int], Any] = {}
    for number, options in enumerate(settings):
        for sentence, found in zip(
            bench.sentences,
            bench.model.translate(bench.sentences, **options),
            strict=True,
        ):
            n_best = [(other.text, other.score) for other in found.n_best]
            wanted[sentence, number] = (found.text, found.score, n_best)
    asked = [
        (rng.choice(bench.sentences), rng.randrange(len(settings)))
        for _ in range(20_000)
    ]
    rest = iter(asked)
    wrong: list[str] = []

    async def work() -> None:
        client = Client(server)
        for sentence, number in rest:
            body = {"texts": [sentence], "source": server.src, "target": server.tgt}
            request = server.post("/v1/translate", {**body, **settings[number]})
            (found,) = (await client.ask(request)).json["translations"]
            n_best = [(other["text"], other["score"]) for other in found["n_best"]]
            got = (found["text"], found["score"], n_best)
            if got != wanted[sentence, number]:
                wrong.append(sentence)
        client.close()

    await asyncio.gather(*(work() for _ in range(32)))
    print(f"\n20,000 requests: {len(wrong)} differ in a text or a score")


def ms(seconds: Sequence[float], percent: float) -> float:
    """A percentile in milliseconds."""
    return 1000 * float(np.percentile(seconds, percent)) if seconds else float("nan")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--served", type=Path, help="its int8 form, for Weft to serve")
    parser.add_argument("--peer", type=Path, help="a Python with LibreTranslate")
    parser.add_argument("--kind", default="int8", help="the peer's products")
    parser.add_argument("--text", type=Path, default=TEXT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    asked = parser.parse_args()
    refuse_missing(asked.text)
    lines = asked.text.read_text("utf-8").split("\n")[:1000]
    sentences = [line.split("\t")[0] for line in lines if line.strip()]
    served = asked.served or asked.folder
    with serving(asked.folder, served, asked.peer, asked.kind) as servers:
        bench = Bench(sentences, servers, asked.rounds, weft.load(served))
        for name in asked.only:
            measure: Callable[[Bench], Awaitable[None]] = globals()[name]
            asyncio.run(measure(bench))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
