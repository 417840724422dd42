"""How long until a translator is good: `python benchmarks/time_to_quality.py`.

Seconds from the command to a saved model that reaches a cased sacreBLEU of 33 on Multi30k's val
set, English to German, with beam 5. Weft is `weft train --recipe en-de` on the raw text, from the
command to its end: its tokenizer, its own evaluations (greedy) and the publishing of the model are
on the clock, and the published model is scored by `weft evaluate`. EOLE trains in bfloat16 by the
peers' configuration on pieces that are there already, and its first checkpoint that is good enough
counts; each is translated and scored while its clock and its training stand still. They take turns,
and each turn has another seed.

Needs the peers' scripts (WEFT_PEERS, else ../shared/peers beside the project), what they install
(PEERS_ROOT) and the data that they prepare; else EOLE is skipped, saying so. PEERS_THREADS is its
number of threads, else the number of cores. Nothing else should run meanwhile.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu
from side_by_side import (
    DATA,
    INSTALLED,
    PEER_ENV,
    PEERS,
    PEERS_DATA,
    THREADS,
    as_settings,
    end_group,
    end_on_sigterm,
    say,
)

from weft.folder.model_folder import RunFolder

POLL = 0.1  # seconds
TEXTS = {
    name: [DATA / "multi30k" / f"{name}.{lang}" for lang in ("en", "de")]
    for name in ("train", "val")
}
EOLE = INSTALLED / "eole" / "bin" / "python"
SHAPE = {"@SIZE@": "small", "@L@": "3", "@D@": "256", "@FF@": "1024"}
# as the peers' measure of quality has it
RECIPE = {"@STEPS@": "100000", "@DTYPE@": "bf16", "@LR@": "0.7"}


@dataclass(frozen=True)
class Reached:
    """A saved model: seconds from the command, step, BLEU on val, and the most memory until
    then.
    """

    seconds: float
    step: int
    bleu: float
    peak_mib: int


class Run:
    """A training program under way, with a clock that can stand still."""

    def __init__(self, command: Sequence[str], env: dict[str, str], log: Path) -> None:
        self.log, self.output = log, log.open("w")
        self.started, self.paused, self.peak_mib = time.time(), 0.0, 0
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **env},
            stdout=self.output,
            stderr=self.output,
            start_new_session=True,
        )

    def clock(self, moment: float | None = None) -> float:
        """Seconds that it has been running, until now or until a moment since it was last
        paused.
        """
        return (moment or time.time()) - self.started - self.paused

    def while_paused(self, work: Callable[[], float]) -> float:
        """The result of some work that the run waits for."""
        began = time.time()
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            return work()
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)
            self.paused += time.time() - began

    def _note_peak(self) -> None:
        """The most memory that it has had; nothing says so any more once it has ended."""
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            self.peak_mib = int(status.partition("VmHWM:")[2].split()[0]) // 1024

    def until(
        self, target: float, limit: float, news: Callable[[], Reached | None]
    ) -> Reached | None:
        """The first saved model that is good enough, then end the run; None where none was before
        `limit`.
        """
        try:
            while self.clock() < limit:
                self._note_peak()
                running = self.process.poll() is None
                found = news()
                if found is not None:
                    say(f"  {found.seconds:.0f} s, step {found.step}: {found.bleu:.1f}")
                    if found.bleu >= target:
                        return found
                elif not running:
                    say(
                        f"  it has ended: {self.log.read_text('utf-8', 'replace')[-300:].strip()}"
                    )
                    break
                else:
                    time.sleep(POLL)
            return None
        finally:
            end_group(self.process)
            self.output.close()


def train_weft(
    asked: argparse.Namespace, seed: int, scratch: Path, limit: float
) -> Reached | None:
    """Weft's own command, to its end; what its evaluations say on the way is told."""
    text = {name: ",".join(map(str, paths)) for name, paths in TEXTS.items()}
    given = ["--train", text["train"], "--dev", text["val"]]
    settings = as_settings(
        f"training.eval_every={asked.weft_every}", f"training.seed={seed}", *asked.set
    )
    command = [
        sys.executable,
        "-m",
        "weft",
        "train",
        "--recipe",
        "en-de",
        *given,
        *settings,
    ]
    out = scratch / "run"
    run = Run(
        [*command, "--output", str(out)], {"CUDA_VISIBLE_DEVICES": ""}, scratch / "log"
    )
    told, over = 0, False

    def news() -> Reached | None:
        nonlocal told, over
        metrics = RunFolder(out).metrics
        lines = metrics.read_text("utf-8").split("\n")[:-1] if metrics.is_file() else []
        for line in map(json.loads, lines):
            if "dev_bleu" in line and line["step"] > told:
                told = line["step"]
                say(
                    f"  {run.clock():.0f} s, step {told}: {line['dev_bleu']:.1f}, greedy"
                )
        if over or run.process.poll() != 0:
            return None
        over, seconds = True, run.clock()
        return Reached(seconds, told, score_weft(out, text["val"]), run.peak_mib)

    return run.until(asked.target, limit, news)


def score_weft(model: Path, text: str) -> float:
    """BLEU of a published model, beam 5."""
    command = [
        sys.executable,
        "-m",
        "weft",
        "evaluate",
        str(model),
        text,
        "--beam-size",
        "5",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Weft cannot evaluate: {done.stderr[-300:]}")
    return float(json.loads(done.stdout)["bleu"])


def train_eole(
    asked: argparse.Namespace, seed: int, scratch: Path, limit: float
) -> Reached | None:
    """EOLE's own command; what it saves is scored while it waits."""
    values = {
        **SHAPE,
        **RECIPE,
        "@ROOT@": str(scratch),
        "@DATA@": str(PEERS_DATA),
        "@SAVE@": str(asked.eole_every),
    }
    text = (
        (PEERS / "configs" / "eole.yaml")
        .read_text("utf-8")
        .replace("seed: 1\n", f"seed: {seed}\n")
    )
    for word, value in values.items():
        text = text.replace(word, value)
    (scratch / "work").mkdir()
    (scratch / "eole.yaml").write_text(text, "utf-8")
    run = Run(
        eole("train", "--config", str(scratch / "eole.yaml")), PEER_ENV, scratch / "log"
    )
    told = 0

    def news() -> Reached | None:
        nonlocal told
        saved = sorted(
            int(path.name[5:]) for path in scratch.glob("work/eole_small/step_*")
        )
        config = (
            scratch
            / "work"
            / "eole_small"
            / f"step_{saved[-1] if saved else 0}"
            / "config.json"
        )
        # the last of its files
        if not saved or saved[-1] <= told or not _is_written(config):
            return None
        told = saved[-1]
        seconds, peak = run.clock(config.stat().st_mtime), run.peak_mib
        return Reached(
            seconds, told, run.while_paused(lambda: score_eole(config.parent)), peak
        )

    return run.until(asked.target, limit, news)


def score_eole(model: Path) -> float:
    """BLEU of a checkpoint on val, beam 5."""
    output = model.with_name("translated")
    command = eole(
        *(
            "predict",
            "--model_path",
            str(model),
            "--src",
            str(PEERS_DATA / "tok" / "val.en"),
        ),
        *(
            "--output",
            str(output),
            "--beam_size",
            "5",
            "--batch_size",
            "64",
            "--batch_type",
            "sents",
        ),
        *("--max_length", "100", "--world_size", "1"),
    )
    done = subprocess.run(
        command,
        env={**os.environ, **PEER_ENV},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"EOLE cannot translate: {done.stderr[-300:]}")
    lines = output.read_text("utf-8").split("\n")[:-1]
    texts = [line.replace(" ", "").replace("▁", " ").strip() for line in lines]
    references = TEXTS["val"][1].read_text("utf-8").split("\n")[: len(texts)]
    return sacrebleu.corpus_bleu(texts, [[line.strip() for line in references]]).score


def eole(*arguments: str) -> list[str]:
    """A command of EOLE's."""
    return [
        str(EOLE),
        str(PEERS / "run_torch_compat.py"),
        "eole.bin.main:main",
        *arguments,
    ]


def _is_written(path: Path) -> bool:
    try:
        json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return True


def row(name: str, turns: Sequence[Reached | None]) -> str:
    """Of the table; a turn that did not get there counts as endless."""
    seconds = [turn.seconds if turn else float("inf") for turn in turns]
    each = ", ".join(
        f"{t.seconds:.0f} s (step {t.step}: {t.bleu:.1f})" if t else "not reached"
        for t in turns
    )
    median = statistics.median(seconds)
    peak = max((turn.peak_mib for turn in turns if turn), default=0)
    return f"| {name} | {'not reached' if median == float('inf') else f'{median:.0f} s'} | {each} | {peak:,} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--target", type=float, default=33.0, help="BLEU on val")
    parser.add_argument(
        "--limit", type=float, default=2400, help="seconds of training, at most"
    )
    parser.add_argument(
        "--times",
        type=float,
        help="EOLE's limit as a multiple of what Weft took in the same round",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--first",
        type=int,
        default=1,
        help="round to begin with, whose number is its seed",
    )
    parser.add_argument(
        "--weft-every", type=int, default=250, help="steps between its evaluations"
    )
    parser.add_argument(
        "--eole-every", type=int, default=100, help="steps between its checkpoints"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="more settings for Weft",
    )
    asked = parser.parse_args()
    end_on_sigterm()
    contestants: dict[str, Callable[..., Reached | None]] = {
        "Weft": train_weft,
        "EOLE bf16": train_eole,
    }
    if absent := [
        path for paths in TEXTS.values() for path in paths if not path.is_file()
    ]:
        parser.exit(0, f"skipped: {absent[0]} is absent\n")
    needed = (EOLE, PEERS / "run_torch_compat.py", PEERS_DATA / "tok" / "train.en")
    if absent := [path for path in needed if not path.exists()]:
        say(f"EOLE: skipped: {absent[0]} is absent")
        del contestants["EOLE bf16"]
    found: dict[str, list[Reached | None]] = {name: [] for name in contestants}
    for number in range(asked.first, asked.rounds + 1):
        limit = asked.limit
        for name, train in contestants.items():
            say(f"round {number}: {name}, at most {limit:.0f} s")
            with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
                found[name].append(train(asked, number, Path(scratch), limit))
            if asked.times and (reached := found[name][-1]):
                limit = min(asked.limit, asked.times * reached.seconds)
    print(f"\n| BLEU {asked.target:g}, {THREADS} threads | median | each | peak MiB |")
    print("|---|---|---|---|")
    for name, turns in found.items():
        print(row(name, turns))
    if all(all(turns) for turns in found.values()) and len(found) > 1:
        ours, theirs = found.values()
        ratios = [
            b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True) if a and b
        ]
        print(f"\nEOLE's time is {statistics.median(ratios):.2f} times Weft's.")


if __name__ == "__main__":
    main()
