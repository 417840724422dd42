"""The command line in this process, with its streams as bytes; and as a process of its own."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from weft.__main__ import main
from weft.config import LayerShape, Recipe

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
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Run `weft ARGUMENTS...`, given standard input, without a new process."""

    def call(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["weft", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
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
            whole, input=stdin, capture_output=True, timeout=timeout, check=False, env=environment
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode("utf-8"))

    return call


RUN = {
    "training.eval_every": 2,
    "training.save_every": 2,
    "training.keep_checkpoints": 3,
    "training.num_samples": 1,
    "training.warmup_steps": 1,
    "training.precision": "float32",
    "training.threads": 1,
}


def sizes_shrunk(recipe: Recipe) -> dict[str, object]:
    """Values that leave a recipe's structure and make its sizes tiny."""
    tree = recipe.model_dump(mode="json")
    model, batches = tree["model"], tree["batches"]
    found: dict[str, object] = dict(RUN)
    if isinstance(recipe.model, LayerShape):
        heads = recipe.model.num_heads
        width = heads * (8 if heads < 4 else 4)
        found |= {"model.d_model": width, "model.d_ff": 2 * width, "model.max_len": min(model["max_len"], 300)}
        found |= {"model.head_dim": 2 * width // heads} if recipe.model.head_dim else {}
    else:
        found |= {"model.d_model": 16, "model.d_hidden": 24}
    for key in ("num_encoder_layers", "num_decoder_layers"):
        found |= {f"model.{key}": min(model[key], 2)} if key in model else {}
    found |= {"model.ngram_buckets": 500} if model.get("ngrams", 1) > 1 else {}
    tokenizer = tree["tokenizer"]
    sides = {"tokenizer.src": tokenizer["src"], "tokenizer.tgt": tokenizer["tgt"]} if "src" in tokenizer else {}
    for where, side in (sides or {"tokenizer": tokenizer}).items():
        found |= {f"{where}.vocab_size": 300} if side["kind"] == "bpe" else {}
    if "window_len" in batches:
        found |= {"batches.window_len": min(batches["window_len"], 48), "batches.batch_size": 2}
    elif batches["batch_size"]:
        found |= {"batches.batch_size": min(batches["batch_size"], 16)}
    else:
        found |= {"batches.tokens_per_batch": 400}
    found |= {
        "translation": {"decoding.max_len_ratio": 0.5, "decoding.max_len_extra": 4},
        "language-modelling": {"decoding.max_new_tokens": 12},
        "classification": {},
    }[recipe.task]
    return found


@pytest.fixture(scope="session")
def shrink() -> Callable[[Recipe], dict[str, object]]:
    """The sizes, by their keys, that make a recipe tiny; its structure stays."""
    return sizes_shrunk
