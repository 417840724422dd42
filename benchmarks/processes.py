"""How training scales from one process to two on this machine: `python benchmarks/processes.py`.

`weft train` at its defaults on Multi30k, English to German, with two micro-batches an update: by
one process on one thread, by one on two threads, and by two processes (`torchrun`, gloo) on one
thread each, with ddp and with fsdp. They take turns; tokens a second, without padding, come from
the run's own log, the first hundred steps left out. Nothing else should run meanwhile.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import DATA, as_settings, say

from weft.folder.model_folder import RunFolder

TEXT = ",".join(str(DATA / "multi30k" / f"train.{lang}") for lang in ("en", "de"))
SIZES = {"small": (256, 3), "base": (512, 6)}
TORCHRUN = (
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "-m",
    "weft",
)
ALONE = (sys.executable, "-m", "weft")
FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "one process, one thread": (ALONE, ("training.threads=1",)),
    "one process, two threads": (ALONE, ("training.threads=2",)),
    "two processes, ddp": (TORCHRUN, ("training.threads=1",)),
    "two processes, fsdp": (TORCHRUN, ("training.threads=1", "training.parallel=fsdp")),
}


def speed(form: str, size: str, steps: int, warm: int) -> float:
    """Tokens a second. Raises RuntimeError with the run's last words where it fails."""
    program, settings = FORMS[form]
    width, layers = SIZES[size]
    common = [
        f"model.d_model={width}",
        f"model.d_ff={4 * width}",
        f"model.num_encoder_layers={layers}",
        f"model.num_decoder_layers={layers}",
        "training.grad_accum_steps=2",
        f"training.max_steps={steps}",
        "training.save_every=1000000",
        "data.dev_size=0",
        "data.test_size=0",
    ]
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        out = Path(scratch) / "run"
        command = [
            *program,
            "train",
            "--train",
            TEXT,
            "--output",
            str(out),
            *as_settings(*common, *settings),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        lines = [
            json.loads(line)
            for line in RunFolder(out).metrics.read_text("utf-8").split("\n")[:-1]
        ]
    logged = [
        line for line in lines if "tokens_per_second" in line and line["step"] > warm
    ]
    return statistics.median(line["tokens_per_second"] for line in logged)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--warm", type=int, default=100, help="steps that do not count")
    asked = parser.parse_args()
    if not Path(TEXT.split(",", maxsplit=1)[0]).is_file():
        parser.exit(0, f"skipped: {TEXT} is absent\n")
    for size in asked.sizes:
        found: dict[str, list[float]] = {form: [] for form in FORMS}
        for number in range(1, asked.rounds + 1):
            for form, speeds in found.items():
                speeds.append(speed(form, size, asked.steps, asked.warm))
                say(f"round {number}: {size}, {form}: {speeds[-1]:,.0f} tokens/s")
        print(
            f"| {size} | tokens/s | lowest to highest | times the first |\n|---|---|---|---|"
        )
        first = next(iter(found.values()))
        for form, speeds in found.items():
            ratio = statistics.median(a / b for a, b in zip(speeds, first, strict=True))
            middle = statistics.median(speeds)
            print(
                f"| {form} | {middle:,.0f} | {min(speeds):,.0f} to {max(speeds):,.0f} | {ratio:.2f} |"
            )


if __name__ == "__main__":
    main()
