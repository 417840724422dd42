"""What a second worker gains: `python benchmarks/ray_workers.py MODEL`, with the extra ray.

Two verbs, each by one worker of one thread and by two, in turns; and once more by two, of which one
is killed with -9 in the middle: `weft translate MODEL --on ray` of Multi30k's English training
text, repeated until there are enough lines, and `weft clean --on ray` of its pairs, each two of
them joined in other ways until there are enough. By default a block takes a minute or more. The
clock runs from the beginning of the first block to the end of the last, as the manifest has them,
so that the start of Ray and of the model stand apart, and reading before; what the command does
between two rounds of a cleaning counts. Every output must be the same, and that of the verb alone.
Nothing else should run meanwhile.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from side_by_side import DATA, say

TEXT = {lang: DATA / "multi30k" / f"train.{lang}" for lang in ("en", "de")}
STEP = 7_919  # lines between the two sentences of a pair, times the round


@dataclass(frozen=True)
class Verb(ABC):
    """A verb at work on `rows` rows of `source`, in blocks of `block`."""

    source: Path
    rows: int
    block: int

    @property
    @abstractmethod
    def words(self) -> list[str]:
        """The command, without its output."""

    @abstractmethod
    def place(self, scratch: Path, name: str) -> Path:
        """The output by workers."""

    @abstractmethod
    def written(self, out: Path) -> bytes:
        """The lines of an output, by workers or alone."""

    @abstractmethod
    def blocks(self, out: Path) -> list[dict[str, Any]]:
        """What the manifest says of each block."""

    @abstractmethod
    def worker_at_work(self, out: Path) -> str | None:
        """The worker of a block that is finished, in the middle of the work; None before."""


@dataclass(frozen=True)
class Translate(Verb):
    model: Path
    beam_size: int

    @property
    def words(self) -> list[str]:
        options = ["--input", str(self.source), "--beam-size", str(self.beam_size)]
        return ["translate", str(self.model), *options]

    def place(self, scratch: Path, name: str) -> Path:
        return scratch / f"{name}.txt"

    def written(self, out: Path) -> bytes:
        return out.read_bytes()

    def blocks(self, out: Path) -> list[dict[str, Any]]:
        manifest = shards_of(out) / "manifest.json"
        return list(json.loads(manifest.read_text("utf-8"))["shards"])

    def worker_at_work(self, out: Path) -> str | None:
        finished = lines_of(shards_of(out) / "finished.jsonl")[1:]
        if len(finished) < self.rows // self.block // 2:
            return None
        return str(finished[-1]["worker"])


@dataclass(frozen=True)
class Clean(Verb):
    @property
    def words(self) -> list[str]:
        return ["clean", str(self.source)]

    def place(self, scratch: Path, name: str) -> Path:
        return scratch / name

    def written(self, out: Path) -> bytes:
        files = sorted(out.glob("*.tsv")) if out.is_dir() else [out]
        # each begins with the languages
        return b"".join(file.read_bytes().partition(b"\n")[2] for file in files)

    def blocks(self, out: Path) -> list[dict[str, Any]]:
        return list(json.loads((out / "manifest.json").read_text("utf-8"))["blocks"])

    def worker_at_work(self, out: Path) -> str | None:
        journals = out.with_name(f"{out.name}.work").glob("*-check/finished.jsonl")
        for journal in sorted(journals):
            if finished := lines_of(journal)[1:]:
                return str(finished[-1]["worker"])
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--block", type=int, default=16_384, help="lines of a block")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="pairs of a block")
    parser.add_argument("--pair-blocks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--only", choices=["translate", "clean"])
    asked = parser.parse_args()
    for path in TEXT.values():
        if not path.is_file():
            sys.exit(f"{path} is absent; WEFT_DATA names the folder of the corpora")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        folder = Path(scratch)
        if asked.only != "clean":
            measure(translating(asked, folder), asked.rounds, folder)
        if asked.only != "translate":
            measure(cleaning(asked, folder), asked.rounds, folder)


def translating(asked: argparse.Namespace, folder: Path) -> Verb:
    """Write the lines, from the beginning of the text again as often as needed."""
    count = asked.block * asked.blocks
    lines = TEXT["en"].read_bytes().split(b"\n")[:-1]
    source = folder / "in.txt"
    with source.open("wb") as file:
        for number in range(count):
            file.write(lines[number % len(lines)] + b"\n")
    return Translate(source, count, asked.block, asked.model, asked.beam_size)


def cleaning(asked: argparse.Namespace, folder: Path) -> Verb:
    """Write the pairs; of each round, a pair is one pair and another behind it, on both sides."""
    count = asked.pairs * asked.pair_blocks
    texts = [TEXT[lang].read_bytes().replace(b"\t", b" ") for lang in ("en", "de")]
    sides = [text.split(b"\n")[:-1] for text in texts]
    size = len(sides[0])
    source = folder / "pairs.en-de.tsv"
    with source.open("wb") as file:
        for number in range(count):
            turn, one = divmod(number, size)
            other = (one + (turn + 1) * STEP) % size
            joined = [side[one] + b" " + side[other] for side in sides]
            file.write(b"\t".join(joined) + b"\n")
    return Clean(source, count, asked.pairs)


def measure(verb: Verb, rounds: int, scratch: Path) -> None:
    """Print the seconds of every round, and what came of the kill."""
    name = verb.words[0]
    alone = scratch / f"alone-{name}.tsv"
    command = [*program(), *verb.words, "--output", str(alone)]
    subprocess.run(command, env=one_thread(), check=True, stdout=subprocess.DEVNULL)
    wanted = verb.written(alone)
    times: dict[int, list[float]] = {1: [], 2: []}
    for number in range(rounds):
        for workers, seconds in times.items():
            out = verb.place(scratch, f"{name}-{number}-{workers}")
            seconds.append(run(verb, out, workers))
            refuse_other(verb, out, wanted)
    out = verb.place(scratch, f"{name}-killed")
    seconds = run(verb, out, 2, kills=True)
    refuse_other(verb, out, wanted)
    say(f"{name}: two workers, one killed with -9: {seconds:.1f} s, output identical")
    one, two = (statistics.median(times[workers]) for workers in (1, 2))
    say(
        f"{name}: two workers are {one / two:.2f} times as fast as one ({one:.1f} s, {two:.1f} s)"
    )


def program() -> list[str]:
    return [sys.executable, "-m", "weft"]


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "WEFT_PROCESSES": "1"}


def run(verb: Verb, out: Path, workers: int, kills: bool = False) -> float:
    """Seconds from the beginning of the first block to the end of the last."""
    began = time.time()
    on = ["--on", "ray", "--workers", str(workers), "--block", str(verb.block)]
    process = subprocess.Popen(
        [*program(), *verb.words, "--output", str(out), *on],
        env=one_thread(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if kills:
        kill_a_worker(verb, process, out)
    _, err = process.communicate()
    if process.returncode:
        sys.exit(err)
    whole = time.time() - began
    blocks = verb.blocks(out)
    first = min(block["began"] for block in blocks)
    last = max(block["began"] + block["seconds"] for block in blocks)
    each = [block["seconds"] for block in blocks]
    sizes = verb.source.stat().st_size, len(verb.written(out))
    busy = sum(each) / (workers * (last - first))
    say(
        f"{verb.words[0]}, {workers} workers: {last - first:.1f} s, {verb.rows / (last - first):,.0f} rows/s; "
        f"{len(each)} blocks of {min(each):.1f} to {max(each):.1f} s, workers busy {busy:.0%}; "
        f"{whole:.1f} s in all, {first - began:.1f} s before; {sizes[0]:,} bytes in, {sizes[1]:,} out"
    )
    return last - first


def kill_a_worker(verb: Verb, process: subprocess.Popen[str], out: Path) -> None:
    """Kill the worker of a finished block in the middle of the work."""
    while process.poll() is None:
        worker = verb.worker_at_work(out)
        if worker is not None:
            os.kill(int(worker.partition("@")[0]), signal.SIGKILL)
            return
        time.sleep(0.2)
    sys.exit("the work ended before a worker could be killed")


def shards_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.shards")


def lines_of(journal: Path) -> list[Any]:
    """The values of the whole lines of a journal; none while it is not there."""
    try:
        lines = journal.read_text("utf-8").split("\n")[:-1]
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def refuse_other(verb: Verb, out: Path, wanted: bytes) -> None:
    """End where an output is not that of the verb alone."""
    if verb.written(out) != wanted:
        sys.exit(f"{out}: differs from what the verb writes alone")


if __name__ == "__main__":
    main()
