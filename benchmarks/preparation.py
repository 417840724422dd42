"""The way from files of pairs to the first training step: `python benchmarks/preparation.py`.

Says how long each stage takes, and the most memory that all processes of the run have together.
The corpus is KFTT and the German-English pairs of Tatoeba, out of the folder that WEFT_DATA names.
Of more pairs than they have, each further one is the first half of one pair and the second half of
another, on both sides: new sentences of known words. The parent writes the two files, starts the
run in another process, and adds up the memory of that and of all that it starts.
"""

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.__main__ import main as weft
from weft.console import stages
from weft.training.trainer import Trainer

CORPORA = (("kftt/train", "ja", "en"), ("tatoeba-de-en/train", "de", "en"))
SIDES = ("src", "tgt")
_STEP = 104_729  # rows between the two halves of a new sentence, times the round
_WORD = re.compile(r"\s*[a-zA-ZÀ-ÿ']+|\s*\d+|\s*\S")
_EVERY = 0.5  # seconds between two looks at the memory, which cost time themselves


def main() -> None:
    """Write the files and measure, or be the run that is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--recipe", default="en-de-fast")
    parser.add_argument("--keep", type=Path, help="write the files here and keep them")
    parser.add_argument("--run", type=Path, help="be the run (internal)")
    asked = parser.parse_args()
    if asked.run:
        prepare(asked.run, asked.recipe)
        return
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        folder = asked.keep or Path(scratch)
        if not (folder / "text.tgt").is_file():
            folder.mkdir(exist_ok=True)
            write_corpus(folder, asked.pairs)
        size = sum(file.stat().st_size for file in files_in(folder)) / 2**20
        print(f"{asked.pairs:,} pairs, {size:,.0f} MiB", flush=True)
        measure(folder, asked.recipe)


def files_in(folder: Path) -> list[Path]:
    """Return the files of both sides."""
    return [folder / f"text.{side}" for side in SIDES]


def write_corpus(folder: Path, count: int) -> None:
    """Write so many pairs to two aligned files."""
    known = list(known_pairs())
    src, tgt = files_in(folder)
    with (
        src.open("w", encoding="utf-8", newline="\n") as sources,
        tgt.open("w", encoding="utf-8", newline="\n") as targets,
    ):
        for number in range(count):
            turn, row = divmod(number, len(known))
            pair = known[row]
            if turn:
                pair = crossed(pair, known[(row + turn * _STEP) % len(known)])
            sources.write(f"{pair[0]}\n")
            targets.write(f"{pair[1]}\n")


def known_pairs() -> Iterator[tuple[str, str]]:
    """Yield the pairs of the corpora that have text on both sides."""
    data = Path(os.environ.get("WEFT_DATA", "."))
    for name, *langs in CORPORA:
        src_file, tgt_file = (data / f"{name}.{lang}.gz" for lang in langs)
        with gzip.open(src_file, "rb") as src, gzip.open(tgt_file, "rb") as tgt:
            for pair in zip(src, tgt, strict=True):
                texts = tuple(line.decode("utf-8").strip() for line in pair)
                if all(texts):
                    yield texts[0], texts[1]


def crossed(one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    """Return the first half of one pair and the second half of another, on both sides."""
    return half(one[0], other[0]), half(one[1], other[1])


def half(one: str, other: str) -> str:
    """Join the first half of one text's words and the second half of another's."""
    first = _WORD.findall(one)
    second = _WORD.findall(other)
    words = [*first[: -(-len(first) // 2)], *second[len(second) // 2 :]]
    return "".join(words).strip()


def measure(folder: Path, recipe: str) -> None:
    """Print the stages of a run, and the most memory of all its processes."""
    print("   clock  processors  memory  stage", flush=True)
    spent = []
    for stage in stages_of(folder, recipe):
        print(stage.row(), flush=True)
        spent.append(stage)
    seconds = sum(stage.seconds for stage in spent)
    processors = sum(stage.processors for stage in spent)
    print(f"{seconds:8.1f} s {processors:8.1f} s  in all")
    for name in ("resident", "unique"):
        most = max(getattr(stage, name) for stage in spent)
        print(f"most memory, {name}: {most / 2**20:,.0f} MiB")


@dataclass(frozen=True)
class Spent:
    """The seconds and the bytes that a stage has taken, of all processes together."""

    stage: str
    seconds: float
    processors: float
    resident: int
    unique: int

    def row(self) -> str:
        """Return a line of the table."""
        times = f"{self.seconds:8.1f} s {self.processors:8.1f} s"
        return f"{times} {self.unique >> 20:6,} MiB  {self.stage}"


class Watch:
    """The time and the memory of a process and of all that it starts, while it runs."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._over = threading.Event()
        self._most = [0, 0]
        self._began = time.monotonic()
        self._before = 0.0
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def taken(self, stage: str) -> Spent:
        """Return what was taken since the last call."""
        now = time.monotonic()
        used = processor_of(self._process)
        times = now - self._began, used - self._before
        spent = Spent(stage, *times, *self._most)
        self._most = [0, 0]
        self._began = now
        self._before = used
        return spent

    def end(self) -> None:
        """Look no longer."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_EVERY):
            seen = memory_of(self._process)
            self._most = list(map(max, self._most, seen))


def stages_of(folder: Path, recipe: str) -> Iterator[Spent]:
    """Start the run; yield what each of its stages has taken, up to the first step."""
    command = [sys.executable, __file__, "--run", str(folder), "--recipe", recipe]
    stage = "starting"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        watch = Watch(run.pid)
        for line in run.stdout:
            yield watch.taken(stage)
            stage = line.strip()
            if stage == FIRST_STEP:
                break
        watch.end()
        run.kill()


FIRST_STEP = "first step"


def memory_of(root: int) -> tuple[int, int]:
    """Add up the memory of a process and of all that it started: resident, and with each shared
    page counted once.
    """
    resident = unique = 0
    for process in family(root):
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text("ascii")
        except OSError:  # it has just ended
            continue
        kib = dict(re.findall(r"^(\w+): +(\d+) kB", rollup, re.MULTILINE))
        resident += 1024 * int(kib.get("Rss", 0))
        unique += 1024 * int(kib.get("Pss", 0))
    return resident, unique


def processor_of(root: int) -> float:
    """Add up the seconds of processors that a process and all that it started have taken."""
    ticks = 0
    for process in family(root):
        try:
            stat = Path(f"/proc/{process}/stat").read_text("utf-8")
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))  # its own, and of those that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def family(root: int) -> list[int]:
    """Return a process and all that it started, and so on."""
    found = [root]
    for process in found:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                children = (task / "children").read_text("ascii")
                found.extend(map(int, children.split()))
        except OSError:
            continue
    return found


def prepare(folder: Path, recipe: str) -> None:
    """Train up to the first step; print each stage when it begins."""

    class Told(stages.StageLine):
        """A status line that prints each stage."""

        def enter(self, stage: str, at_once: bool = False) -> None:
            if stage:
                print(stage, flush=True)

    def first_step(_: object) -> None:
        print(FIRST_STEP, flush=True)
        time.sleep(60)

    stages._shown.append(Told(sys.stderr))
    Trainer._take_step = first_step  # type: ignore[method-assign, assignment]
    sys.argv = [
        "weft",
        "train",
        ",".join(map(str, files_in(folder))),
        "--recipe",
        recipe,
        "--output",
        str(folder / "run"),
        "--set",
        "data.src_lang=ja",
        "--set",
        "data.tgt_lang=en",
        "--fresh",
        "--allow-bad-data",
    ]
    weft()


if __name__ == "__main__":
    main()
