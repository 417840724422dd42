"""A file of a million lines, killed twice: `python benchmarks/million_lines.py MODEL`.

`weft translate MODEL --input ... --output ...` on lines of the built-in corpus, in English: once
undisturbed, and once killed (SIGKILL) at about a third and two thirds, each time given again. Said
is how long each took, the peak of memory (beside that for a hundredth of the lines), and whether
both outputs are the same, byte for byte, a line for each line.
"""

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from weft.data.builtin import everyday


def write_lines(path: Path, count: int) -> None:
    """Sentences of the corpus in random order, in ones and twos, so that few lines are the same."""
    draw = random.Random(1)
    sentences = [triple.en for triple in everyday()]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for _ in range(count):
            file.write(" ".join(draw.choices(sentences, k=draw.randint(1, 2))) + "\n")


def translate(
    command: Sequence[str], partial: Path, size: int | None
) -> tuple[float, float, bool]:
    """Seconds, peak memory in MiB, and whether it ended by itself: killed once the partial file is
    so large.
    """
    began, peak = time.monotonic(), 0.0
    with (
        partial.with_suffix(".said").open("w+b") as said,
        subprocess.Popen(command, stderr=said) as process,
    ):
        while process.poll() is None:
            peak = max(peak, memory_of(process.pid))
            if size is not None and partial.is_file() and partial.stat().st_size > size:
                process.kill()
                process.wait()
            time.sleep(0.2)
        code = process.returncode
        if code not in (0, -9):
            raise SystemExit(partial.with_suffix(".said").read_text("utf-8"))
    return time.monotonic() - began, peak, code == 0


def memory_of(process: int) -> float:
    """The peak so far, in MiB; 0 for a process that has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text("utf-8")
    except OSError:
        return 0.0
    return next(
        (
            int(line.split()[1]) / 1024
            for line in status.split("\n")
            if line.startswith("VmHWM")
        ),
        0.0,
    )


def digest(path: Path) -> tuple[str, int]:
    """SHA-256 of a file, and its lines."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    with path.open("rb") as file:
        return found, sum(1 for _ in file)


def main() -> None:
    """Translate, kill, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "model", type=Path, help="a folder that translates from English"
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--beam-size", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        found = {}
        for name, count, kills in (
            ("a hundredth", asked.lines // 100, 0),
            ("undisturbed", asked.lines, 0),
            ("killed twice", asked.lines, 2),
        ):
            source, output = (Path(scratch) / f"{name}.{end}" for end in ("en", "out"))
            write_lines(source, count)
            program = [
                sys.executable,
                "-m",
                "weft",
                "translate",
                str(asked.model),
                "--beam-size",
                str(asked.beam_size),
            ]
            command = [*program, "--input", str(source), "--output", str(output)]
            partial = output.with_name(f"{output.name}.partial")
            whole = found["undisturbed"][1] if kills else 0
            for kill in (*range(1, kills + 1), None):
                size = None if kill is None else whole * kill // (kills + 1)
                seconds, peak, ended = translate(command, partial, size)
                how = (
                    "ended" if ended else f"killed at {partial.stat().st_size:,} bytes"
                )
                print(
                    f"{name}: {how} after {seconds:,.1f} s, peak {peak:,.0f} MiB",
                    flush=True,
                )
                if ended is not (kill is None):
                    raise SystemExit("a kill came too late")
            hashed, lines = digest(output)
            found[name] = (hashed, output.stat().st_size)
            print(
                f"{name}: {lines:,} lines out for {count:,} in, sha256 {hashed[:16]}",
                flush=True,
            )
    same = found["undisturbed"] == found["killed twice"]
    print(f"killed twice and undisturbed are {'identical' if same else 'DIFFERENT'}")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
