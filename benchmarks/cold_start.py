"""How long a new process takes to its first translation: `python benchmarks/cold_start.py MODEL
[--text TEXT] [--ctranslate2 PYTHON] [--rounds 9]`.

Processes take turns, round after round: `weft translate`, the same from Python, the bare imports of
the packages that Weft needs, and CTranslate2 with the same weights, by a Python that has it (it is
given the ids, and has no tokenizer to load). Printed for each: the median of the processor time
(user and system) and of the time by the clock, in seconds, and the most memory, in MiB.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
FROM_PYTHON = (
    "import sys, weft; print(weft.load(sys.argv[1]).translate(sys.argv[2])[0].text)"
)
IMPORTS = "import numpy, safetensors, tokenizers, pydantic, typer"
# prints the ids; what measures loads nothing, for a process inherits the memory of its parent
CONVERT = """
import sys
from pathlib import Path
import numpy as np
from decoding_peers import flat
from weft.tasks.opening import load_task
task = load_task(Path(sys.argv[1]))
np.savez(sys.argv[3], **dict(flat(task.weights)))
print(*task.tokenizers[0].encode(sys.argv[2]), 3)
"""
BY_CTRANSLATE2 = """
import sys, ctranslate2
model = ctranslate2.Translator(sys.argv[1], device="cpu", intra_threads=1)
print(model.translate_batch([sys.argv[2].split()], beam_size=4)[0].hypotheses[0])
"""


def main() -> None:
    """Measure all in turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path, help="a translator's folder")
    parser.add_argument("--text", default="The old man reads a book.")
    parser.add_argument("--ctranslate2", help="a Python that has CTranslate2")
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-start-") as scratch:
        orders = commands(asked.model, asked.text, asked.ctranslate2, Path(scratch))
        found: dict[str, list[tuple[float, float, float]]] = {n: [] for n in orders}
        for order in orders.values():  # bytecode and files are warm in every round
            measure(order)
        for _ in range(asked.rounds):
            for name, order in orders.items():
                found[name].append(measure(order))
    print("| process | processor time, s | by the clock, s | peak MiB |")
    print("|---|---|---|---|")
    for name, rounds in found.items():
        cpu, wall, memory = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        print(f"| {name} | {cpu:.3f} | {wall:.3f} | {memory:.0f} |")


def commands(
    model: Path, text: str, other: str | None, scratch: Path
) -> dict[str, Sequence[str]]:
    """Return what is measured, by name."""
    python = sys.executable
    found: dict[str, Sequence[str]] = {
        "`weft translate`": (python, "-m", "weft", "translate", str(model), text),
        "`weft.load(...).translate(...)`": (
            python,
            "-c",
            FROM_PYTHON,
            str(model),
            text,
        ),
        "bare imports of the packages": (python, "-c", IMPORTS),
        "`python -c pass`": (python, "-c", "pass"),
    }
    if other:
        paths = [str(scratch / "weights.npz"), str(scratch / "converted")]
        order = [python, "-c", CONVERT, str(model), text, paths[0]]
        made = subprocess.run(
            order, check=True, cwd=HERE, capture_output=True, text=True
        )
        ids = made.stdout.strip()
        order = [other, str(HERE / "ctranslate2_model.py"), *paths]
        subprocess.run(order, check=True)
        found["CTranslate2, the same weights"] = (
            other,
            "-c",
            BY_CTRANSLATE2,
            paths[1],
            ids,
        )
        found["bare import of CTranslate2"] = (other, "-c", "import ctranslate2")
    return found


def measure(order: Sequence[str]) -> tuple[float, float, float]:
    """Return processor time and time by the clock in seconds, and the most memory in MiB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    process = subprocess.Popen(order, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if status:
        sys.exit(f"failed: {' '.join(order)}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
