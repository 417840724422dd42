"""Contestants measured side by side, for the scripts beside this one.

Each measurement is a process of its own that prints one JSON line with `tok_per_s` and
`peak_rss_mib`. Contestants take turns, round after round, so that a machine that grows slower or
faster does so for all of them.
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("WEFT_DATA", ROOT.parent / "shared" / "data"))
# the peers' scripts
PEERS = Path(os.environ.get("WEFT_PEERS", ROOT.parent / "shared" / "peers"))
# where their env.sh has the peers
INSTALLED = Path(os.environ.get("PEERS_ROOT", "/tmp/peers"))
PEERS_DATA = Path(os.environ.get("PEERS_DATA", INSTALLED / "data"))
CORES = len(os.sched_getaffinity(0))
THREADS = int(os.environ.get("PEERS_THREADS", CORES))
METER = Path(__file__).with_name("meter.py")

# What the peers' env.sh sets; Weft is left to choose its threads.
PEER_ENV = {
    **dict.fromkeys(
        ("PEERS_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS)
    ),
    "PEERS_ROOT": str(INSTALLED),
    "PEERS_DATA": str(PEERS_DATA),
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True)
class Contestant:
    """A command that measures itself; `{scratch}` in it is a new folder each time."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    def measure(self, limit: float) -> dict[str, Any]:
        """Its JSON line. Raises RuntimeError where there is none within `limit` seconds."""
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
            command = [part.replace("{scratch}", scratch) for part in self.command]
            env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **self.env}
            with open(
                f"{scratch}/output", "w+", encoding="utf-8", errors="replace"
            ) as output:
                said = _said(command, env, output, limit)
        lines = said.split("\n")
        found = [
            line.removeprefix("METER ")
            for line in lines
            if line.startswith(("{", "METER {"))
        ]
        if not found:
            raise RuntimeError(
                " / ".join([line.strip()[:150] for line in lines if line.strip()][-2:])
            )
        return json.loads(found[-1])


def weft(*arguments: str) -> list[str]:
    """The end of a command line: `weft train` on all of a text, with nothing between the steps."""
    settings = ("training.max_steps=1000000", "training.save_every=1000000")
    return [
        "weft",
        "--",
        "train",
        "--output",
        "{scratch}/run",
        *arguments,
        *as_settings(*settings),
    ]


def as_settings(*settings: str) -> list[str]:
    """Each behind its `--set`."""
    return [part for setting in settings for part in ("--set", setting)]


def in_turns(
    contestants: Sequence[Contestant], rounds: int, limit: float
) -> dict[str, list[dict[str, Any]]]:
    """The measurements of each, round after round; who fails is said, and takes no further part."""
    end_on_sigterm()
    found: dict[str, list[dict[str, Any]]] = {
        contestant.name: [] for contestant in contestants
    }
    for number in range(1, rounds + 1):
        for contestant in contestants:
            if len(found[contestant.name]) < number - 1:
                continue
            try:
                facts = contestant.measure(limit)
            except RuntimeError as error:
                say(f"{contestant.name}: failed: {error}")
                continue
            found[contestant.name].append(facts)
            speed = (
                f"{facts['tok_per_s']:,} tokens/s" if "tok_per_s" in facts else "done"
            )
            say(f"round {number}: {contestant.name}: {speed}")
    return found


def print_table(what: str, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Medians, fastest first. The ratio is the median over rounds of the first one's speed to this
    one's.
    """
    first, rounds = next(iter(found)), max(map(len, found.values()))
    whole = {name: turns for name, turns in found.items() if len(turns) == rounds > 0}
    speeds = {
        name: [facts["tok_per_s"] for facts in turns] for name, turns in whole.items()
    }
    print(
        f"\n| {what} | tokens/s | lowest to highest | an update | peak MiB | speed of {first}, times this |"
    )
    print("|---|---|---|---|---|---|")
    for name in sorted(whole, key=lambda name: -statistics.median(speeds[name])):
        ratio = "-"
        if first in whole:
            ratio = f"{statistics.median(a / b for a, b in zip(speeds[first], speeds[name], strict=True)):.2f}"
        median, lowest, highest = (
            f(speeds[name]) for f in (statistics.median, min, max)
        )
        peak = max(
            max(facts["peak_rss_mib"], facts.get("child_rss_mib", 0))
            for facts in whole[name]
        )
        update = whole[name][-1]["tok_per_update"]
        print(
            f"| {name} | {median:,.0f} | {lowest:,} to {highest:,} | {update:,} | {peak:,} | {ratio} |"
        )
    for name in found:
        if name not in whole:
            print(f"| {name} | failed | | | | |")
    sys.stdout.flush()


def refuse_missing(*paths: Path) -> None:
    """End with one line where a corpus is absent."""
    for path in paths:
        if not path.is_file():
            raise SystemExit(
                f"{path} is absent; set WEFT_DATA to the folder of the corpora, see benchmarks/README.md"
            )


def say(text: str) -> None:
    """One line for the person who waits."""
    print(text, file=sys.stderr, flush=True)


def _said(
    command: Sequence[str], env: Mapping[str, str], output: Any, limit: float
) -> str:
    """What a process writes until it ends or has to; it and its children are gone then."""
    process = subprocess.Popen(
        command, env=env, stdout=output, stderr=output, start_new_session=True
    )
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        output.write(f"\nstopped after {limit:.0f} seconds\n")
    finally:
        end_group(process)
    output.seek(0)
    return str(output.read())


def end_on_sigterm() -> None:
    """Let SIGTERM end the script as an error does, so that no process stays behind it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def end_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that leads a session, with its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
