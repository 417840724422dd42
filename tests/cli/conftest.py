"""The command line in this process, with its streams as bytes; and as a process of its own."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from shrunk import sizes_shrunk
from weft.__main__ import main
from weft.config import Recipe

STAGE = re.compile(r" \.\.\.( [\d,]+ \w+)?( \(\d+ s\))?$")


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard output; only \\n ends one, and the last must end."""
        assert self.out == b"" or self.out.endswith(b"\n")
        return self.out.decode("utf-8").split("\n")[:-1]

    @property
    def messages(self) -> list[str]:
        """Lines of standard error, but those on what is being done."""
        assert self.err == "" or self.err.endswith("\n")
        return [line for line in self.err.split("\n")[:-1] if not STAGE.search(line)]


Command = Callable[..., Ended]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Run `weft ARGUMENTS...`, given standard input, without a new process."""

    def call(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["weft", *map(str, arguments)])
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        )
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capfdbinary.readouterr()
        return Ended(int(caught.value.code or 0), out, err.decode("utf-8"))

    return call


@pytest.fixture
def process() -> Command:
    """Run `weft ARGUMENTS...` as a process."""

    def call(*arguments: object, stdin: bytes = b"", timeout: float = 120) -> Ended:
        whole = [sys.executable, "-m", "weft", *map(str, arguments)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            whole,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
            env=environment,
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode("utf-8"))

    return call


@pytest.fixture(scope="session")
def shrink() -> Callable[[Recipe], dict[str, object]]:
    """The sizes, by their keys, that make a recipe tiny; its structure stays."""
    return sizes_shrunk
