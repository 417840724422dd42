"""A translation memory of a million made-up units: `python benchmarks/memories.py`.

Prints the seconds that it takes to read a TMX file and to index it, those of the processor alone,
the most memory that the process had, and the processor's time for a query: for a text that is a
unit's source, for one that differs in a number, and for one with two other words. The made-up words
are as frequent as Zipf has it, and half of the units in `--spaceless` are of Chinese letters.
"""

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles

from weft.data.memory import Memory, read_memory

NUM_WORDS = 200_000
NUM_LETTERS = 3_000  # of Chinese
QUERIES = 500
_LETTERS = "etaoinshrdlcumwfgypbvk"
_WORD = re.compile(r"[\u4e00-\u9fff]|[a-z]+|\d+|\W+")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--spaceless", action="store_true", help="half is Chinese")
    parser.add_argument("--file", type=Path, help="measure this one (internal)")
    asked = parser.parse_args()
    if asked.file:
        measure(asked.file)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made-up.tmx"
        write_units(path, asked.units, asked.spaceless)
        command = [sys.executable, __file__, "--file", str(path)]
        subprocess.run(command, check=True)


def measure(path: Path) -> None:
    """Print what a memory takes; the process does nothing else."""
    begin = time.perf_counter()
    memory = read_memory([str(path)], "en", "de")
    read = time.perf_counter()
    memory.prepare()
    ready = time.perf_counter()
    processor = time.process_time()
    queries = list(queries_of(memory))
    size = path.stat().st_size / 2**20
    print(f"{len(memory):,} units, {size:,.0f} MiB of TMX")
    print(f"read in {read - begin:.1f} s, indexed in {ready - read:.1f} s more")
    print(f"processor time: {processor:.1f} s")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # KiB on Linux
    print(f"most memory: {most:,.0f} MiB")
    print("| query | found | median | 95 % within |")
    print("|---|---|---|---|")
    print(row("exact", memory.exact, queries[0::3]))
    print(row("another number", memory.repaired, queries[1::3]))
    print(row("two other words", lambda text: memory.near(text, 3, 0.5), queries[2::3]))


def row(kind: str, find: Callable[[str], object], queries: Sequence[str]) -> str:
    """Return a row of the table: how many queries find a unit, and in what time."""
    times = []
    found = 0
    for query in queries:
        begin = time.process_time()
        found += bool(find(query))
        times.append(1000 * (time.process_time() - begin))
    late = quantiles(times, n=20)[-1]
    return f"| {kind} | {found} of {len(queries)} | {median(times):.2f} ms | {late:.2f} ms |"


def queries_of(memory: Memory) -> Iterator[str]:
    """Yield sources of units: as they are, with another number, with two other words."""
    draw = random.Random(2)
    for _ in range(QUERIES):
        match = None
        while match is None:
            number = draw.randrange(len(memory))
            match = memory.unit(number)
            if not any(map(str.isdigit, match.source)):
                match = None
        words = _WORD.findall(match.source)
        yield match.source
        yield "".join("4096" if word.isdigit() else word for word in words)
        places = [place for place, word in enumerate(words) if word.isalpha()]
        for place in draw.sample(places, 2):
            words[place] = "x"
        yield "".join(words)


def write_units(path: Path, count: int, spaceless: bool) -> None:
    """Write a TMX file of made-up units."""
    draw = random.Random(1)
    sides = [Words(draw, NUM_WORDS), Words(draw, NUM_WORDS)]
    letters = Letters(draw)
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">')
        file.write('<header srclang="en"/><body>\n')
        for number in range(count):
            src, tgt = (side.sentence() for side in sides)
            if spaceless and number % 2:
                src = letters.sentence()
            page = draw.randrange(1000) if number % 3 == 0 else None
            if page is not None:
                src = f"{src} {page}"
                tgt = f"{tgt} {page}"
            file.write(
                f'<tu><tuv xml:lang="en"><seg>{src} .</seg></tuv>'
                f'<tuv xml:lang="de"><seg>{tgt} .</seg></tuv></tu>\n'
            )
        file.write("</body></tmx>\n")


class Words:
    """Made-up words, the n-th of them 1/n times as frequent as the first."""

    def __init__(self, draw: random.Random, count: int) -> None:
        self._draw = draw
        self._words = [
            "".join(draw.choices(_LETTERS, k=draw.randint(2, 9))) for _ in range(count)
        ]
        self._sums = list(accumulate(1 / rank for rank in range(1, count + 1)))

    def sentence(self) -> str:
        """Return a sentence of 4 to 20 words."""
        count = self._draw.randint(4, 20)
        return " ".join(
            self._draw.choices(self._words, cum_weights=self._sums, k=count)
        )


class Letters:
    """Chinese letters, as frequent as the words."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._letters = [chr(0x4E00 + number) for number in range(NUM_LETTERS)]
        self._sums = list(accumulate(1 / rank for rank in range(1, NUM_LETTERS + 1)))

    def sentence(self) -> str:
        """Return a sentence of 6 to 40 letters."""
        count = self._draw.randint(6, 40)
        return "".join(
            self._draw.choices(self._letters, cum_weights=self._sums, k=count)
        )


if __name__ == "__main__":
    main()
