"""The servers that serving.py measures, as processes, and a client of them."""

import asyncio
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from decoding_peers import flat

from weft.kernels.machine import machine_for_use
from weft.tasks.translation import Translation

HERE = Path(__file__).resolve().parent
BEAM_SIZE = 4  # LibreTranslate's least, and ours beside it


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


@contextmanager
def serving(
    folder: Path, served: Path, peer: Path | None, kind: str
) -> Iterator[list[Server]]:
    """Weft's server, and the peer's where there is one."""
    task = Translation.load(folder, machine_for_use())
    languages = (task.config.src_lang, task.config.tgt_lang)
    orders = {"Weft": [sys.executable, "-m", "weft", "serve", str(served), "--port"]}
    with tempfile.TemporaryDirectory(prefix="weft-serving-") as scratch:
        if peer is not None:
            orders["LibreTranslate"] = order_of_peer(peer, task, folder, Path(scratch))
        servers: list[Server] = []
        try:
            for name, order in orders.items():
                port = free_port()
                more = [kind] if name == "LibreTranslate" else []
                log = Path(scratch, f"{name}.log")
                process = started([*order, str(port), *more], log)
                servers.append(Server(name, port, *languages, process))
                wait_for(port, process, log)
            yield servers
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait(40)


def with_beam_of_peer(folder: Path, scratch: Path) -> Path:
    """A copy of a model's folder whose beam is LibreTranslate's."""
    copy = scratch / folder.name
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("run"))
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config["decoding"]["beam_size"] = BEAM_SIZE
    content = json.dumps(config).encode()
    (copy / "config.json").write_bytes(content)
    manifest = json.loads((copy / "manifest.json").read_text("utf-8"))
    digest = hashlib.sha256(content).hexdigest()
    manifest["files"]["config.json"] = {"size": len(content), "sha256": digest}
    (copy / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return copy


def order_of_peer(
    peer: Path, task: Translation, folder: Path, scratch: Path
) -> list[str]:
    """How the peer's server is started with the same weights, up to its port."""
    weights, model = str(scratch / "weights.npz"), str(scratch / "model")
    np.savez(weights, **dict(flat(task.weights)))
    convert = [str(peer), str(HERE / "ctranslate2_model.py"), weights, model]
    subprocess.run(convert, check=True)
    files = [str(folder / name) for name in task.config.tokenizer_files()]
    script = str(HERE / "serving_libretranslate.py")
    languages = [task.config.src_lang, task.config.tgt_lang]
    return [str(peer), script, model, ",".join(files), *languages]


def started(order: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """A process of two threads that writes to a log."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    with log.open("wb") as written:
        return subprocess.Popen(order, stdout=written, stderr=written, env=environment)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
