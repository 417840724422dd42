"""Servers of tiny models, as processes of their own: for the tests of what speaks with them.

The fixtures `server` and `launch` of tests/conftest.py are what tests use:

    def test_it_answers(server: Running) -> None:
        answer = server.asked("/translate", {"q": "A man.", ...})

`server` is one process for all tests: translators `en-de`, `de-en` and `en-zh`, a language model
`plays`, a classifier `languages`, all of a few steps, so that what they write means nothing. A
test that stops its server, or starts it with options, uses `launch("--deadline", "1")`; one that
looks at a text under way, `launch(slow=True)`.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import weft
from shrunk import sizes_shrunk
from weft.data import builtin
from weft.recipes.file import load_recipe

TRANSLATORS = ("en-de", "de-en", "en-zh")
MODELS = (*TRANSLATORS, "plays", "languages")
_ROWS = 80  # of each text
_SLOW = Path(__file__).with_name("slow_server.py")
_SHOWN = re.compile(r"^open (http://\S+)/$", re.MULTILINE)


@dataclass
class Running:
    """A server's process; `url` has no slash at its end."""

    process: subprocess.Popen[str]
    log: Path
    url: str = ""
    models: dict[str, Path] = field(default_factory=dict)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port, for a socket."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def asked(self, path: str, body: Any = None) -> Any:
        """Return the JSON that the server answers; a refusal fails the test with its reason."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            with urlopen(Request(self.url + path, content, headers)) as answer:
                return json.load(answer)
        except HTTPError as refused:
            with refused:
                raise AssertionError(refused.read().decode()) from None

    def said(self) -> str:
        """Return what the server has written until now: announcements and the log."""
        return self.log.read_text("utf-8")

    def stop(self, seconds: float = 60) -> int:
        """End the server; return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def train_models(folder: Path) -> dict[str, Path]:
    """Train the tiny models in a folder, and return the folder of each by its name."""
    for pair in TRANSLATORS:
        _train_translator(folder, pair)
    sentences = [src for src, _ in builtin.pairs("everyday", "en", "de").train[:_ROWS]]
    text = folder / "plays.txt"
    text.write_text("\n\n".join(sentences) + "\n", "utf-8")
    _train(folder / "plays", "causal-lm", text)
    rows = [
        f'"{src}",English\n"{tgt}",German\n'
        for src, tgt in builtin.pairs("everyday", "en", "de").train[:_ROWS]
    ]
    table = folder / "languages.csv"
    table.write_text("text,label\n" + "".join(rows), "utf-8")
    _train(folder / "languages", "classify-modern", table)
    return {name: folder / name for name in MODELS}


def _train_translator(folder: Path, pair: str) -> None:
    src, _, tgt = pair.partition("-")
    rows = [f"{a}\t{b}\n" for a, b in builtin.pairs("everyday", src, tgt).train[:_ROWS]]
    text = folder / f"pairs.{pair}.tsv"
    text.write_text("".join(rows), "utf-8")
    _train(folder / pair, "en-de", text, {"data.src_lang": src, "data.tgt_lang": tgt})


def _train(
    out: Path, recipe: str, text: Path, languages: dict[str, str] | None = None
) -> None:
    settings = {
        **sizes_shrunk(load_recipe(recipe)),
        "training.max_steps": 2,
        "data.builtin": "none",
        **(languages or {}),
    }
    weft.train(
        recipe=recipe,
        train=str(text),
        out=out,
        settings=[f"{key}={value}" for key, value in settings.items()],
        allow_bad_data=True,
        quiet=True,
    )


def launch(
    models: dict[str, Path],
    log: Path,
    options: Sequence[str] = (),
    names: Sequence[str] = MODELS,
    seconds: float = 300,
    slow: bool = False,
) -> Running:
    """Start a server at a free port, and wait until it says where it is."""
    folders = [str(models[name]) for name in names]
    program = [str(_SLOW)] if slow else ["-m", "weft"]
    order = [sys.executable, *program, "serve", *folders]
    port = [] if "--port" in options else ["--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with log.open("w", encoding="utf-8") as written:
        process = subprocess.Popen(
            [*order, *port, *options],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            text=True,
            env=environment,
        )
    running = Running(process, log, models=models)
    until = time.monotonic() + seconds
    while not (found := _SHOWN.search(running.said())):
        if process.poll() is not None or time.monotonic() > until:
            running.process.kill()
            process.wait()
            raise AssertionError(f"the server did not start: {running.said()}")
        time.sleep(0.05)
    running.url = found[1]
    return running
