"""What a second worker gains: `python benchmarks/ray_workers.py MODEL`, with the extra ray.

`weft translate MODEL --on ray` of Multi30k's English training text, repeated until a block takes a
minute or more, by one worker of one thread and by two, in turns; and once more by two, of which one
is killed with -9 in the middle. The clock runs from the beginning of the first block to the end of
the last, as the manifest has them, so that the start of Ray and of the model stand apart. Every
output must be the same, byte for byte, and that of `weft translate` alone. Nothing else should run
meanwhile.
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
from pathlib import Path
from typing import Any

from side_by_side import DATA, say

TEXT = DATA / "multi30k" / "train.en"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--block", type=int, default=16_384, help="lines of a block")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=4)
    asked = parser.parse_args()
    if not TEXT.is_file():
        sys.exit(f"{TEXT} is absent; WEFT_DATA names the folder of the corpora")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        measure(asked, Path(scratch))


def measure(asked: argparse.Namespace, scratch: Path) -> None:
    """Print the seconds of every round, and what came of the kill."""
    source = scratch / "in.txt"
    write_source(source, asked.block * asked.blocks)
    alone = scratch / "alone.txt"
    subprocess.run(command(asked, source, alone), env=one_thread(), check=True)
    times: dict[int, list[float]] = {1: [], 2: []}
    for number in range(asked.rounds):
        for workers, seconds in times.items():
            out = scratch / f"{number}-{workers}.txt"
            seconds.append(run(asked, source, out, workers))
            refuse_other(out, alone)
    out = scratch / "killed.txt"
    seconds = run(asked, source, out, 2, kills=True)
    refuse_other(out, alone)
    say(f"two workers, one killed with -9: {seconds:.1f} s, output identical")
    one, two = (statistics.median(times[workers]) for workers in (1, 2))
    say(f"two workers are {one / two:.2f} times as fast as one ({one:.1f} s, {two:.1f} s)")  # fmt: skip


def write_source(path: Path, count: int) -> None:
    """Write so many lines of the text, from its beginning again as often as needed."""
    lines = TEXT.read_bytes().split(b"\n")[:-1]
    with path.open("wb") as file:
        for number in range(count):
            file.write(lines[number % len(lines)] + b"\n")


def command(asked: argparse.Namespace, source: Path, out: Path) -> list[str]:
    words = [sys.executable, "-m", "weft", "translate", str(asked.model)]
    files = ["--input", str(source), "--output", str(out)]
    return [*words, *files, "--beam-size", str(asked.beam_size)]


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def run(
    asked: argparse.Namespace,
    source: Path,
    out: Path,
    workers: int,
    kills: bool = False,
) -> float:
    """Seconds from the beginning of the first block to the end of the last."""
    began = time.time()
    on = ["--on", "ray", "--workers", str(workers), "--block", str(asked.block)]
    process = subprocess.Popen(
        [*command(asked, source, out), *on],
        env=one_thread(),
        stderr=subprocess.PIPE,
        text=True,
    )
    shards = out.with_name(f"{out.name}.shards")
    if kills:
        kill_a_worker(process, shards, asked.blocks // 2)
    _, err = process.communicate()
    if process.returncode:
        sys.exit(err)
    manifest = json.loads((shards / "manifest.json").read_text("utf-8"))
    blocks: list[dict[str, Any]] = manifest["shards"]
    first = min(block["began"] for block in blocks)
    last = max(block["began"] + block["seconds"] for block in blocks)
    each = [block["seconds"] for block in blocks]
    sizes = source.stat().st_size, out.stat().st_size
    rate = asked.block * asked.blocks / (last - first)
    say(
        f"{workers} workers: {last - first:.1f} s, {rate:,.0f} lines/s; a block {min(each):.1f} to {max(each):.1f} s; "
        f"start {first - began:.1f} s; {sizes[0]:,} bytes in, {sizes[1]:,} out"
    )
    return last - first


def kill_a_worker(process: subprocess.Popen[str], shards: Path, after: int) -> None:
    """Kill the worker of the last finished block once so many are finished."""
    journal = shards / "finished.jsonl"
    while process.poll() is None:
        lines = journal.read_text("utf-8").split("\n") if journal.exists() else []
        finished = lines[1:-1]
        if len(finished) >= after:
            worker = json.loads(finished[-1])["worker"]
            os.kill(int(worker.partition("@")[0]), signal.SIGKILL)
            return
        time.sleep(0.2)


def refuse_other(out: Path, alone: Path) -> None:
    """End where an output is not that of the verb alone."""
    if out.read_bytes() != alone.read_bytes():
        sys.exit(f"{out}: differs from what weft translate writes alone")


if __name__ == "__main__":
    main()
