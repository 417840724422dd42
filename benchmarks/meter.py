"""Measure a training program of any kind from outside: tokens a second without padding, and the
peak of memory.

    python benchmarks/meter.py --entries N [--pad N] [--warm S] [--window S] [--windows N] PROGRAM
    -- ARGUMENTS...

Tokens are counted where they enter an embedding table of N entries, updates where any torch
optimizer steps. After some seconds of steady updates, windows are timed, each from an update to
another; then one JSON line is printed and the process ends.
"""

import argparse
import json
import os
import resource
import runpy
import statistics
import sys
import time

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class Meter:
    """Counts tokens and updates."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.tokens = self.padded = self.updates = 0
        self.speeds: list[float] = []
        self.warm = False
        self.began = 0.0  # of warming up, then of the window

    def install(self) -> None:
        """Watch every module and every optimizer of the process."""
        torch.nn.modules.module.register_module_forward_pre_hook(self._count)
        register_optimizer_step_post_hook(self._step)

    def _count(self, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if (
            isinstance(module, torch.nn.Embedding)
            and module.num_embeddings == self.asked.entries
        ):
            self.tokens += int((inputs[0] != self.asked.pad).sum())
            self.padded += inputs[0].numel()

    def _step(self, *_: object) -> None:
        self.updates += 1
        now = time.perf_counter()
        if not self.began:
            self._begin(now)
        elif not self.warm:
            if now - self.began >= self.asked.warm:
                self.warm = True
                self._begin(now)
        elif now - self.began >= self.asked.window:
            self.speeds.append(self.tokens / (now - self.began))
            if len(self.speeds) == self.asked.windows:
                self._end()
            self._begin(now)

    def _begin(self, now: float) -> None:
        self.began, self.tokens, self.padded, self.updates = now, 0, 0, 0

    def _end(self) -> None:
        facts = {
            "tok_per_s": round(statistics.median(self.speeds)),
            "windows": [round(speed) for speed in self.speeds],
            "padded_share": round(1 - self.tokens / self.padded, 3),
            "tok_per_update": round(self.tokens / self.updates),
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        print(json.dumps(facts), flush=True)
        os._exit(0)


def main() -> None:
    """Run the program with the hooks in place."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--entries",
        type=int,
        required=True,
        help="of the embedding table that is watched",
    )
    parser.add_argument("--pad", type=int, default=0, help="the id that does not count")
    parser.add_argument(
        "--warm", type=float, default=6, help="seconds before the first window"
    )
    parser.add_argument("--window", type=float, default=4, help="seconds")
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("program", help="a module, or a file that ends in .py")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked = parser.parse_args(sys.argv[1:end])
    Meter(asked).install()
    sys.argv = [asked.program, *sys.argv[end + 1 :]]
    if asked.program.endswith(".py"):
        runpy.run_path(asked.program, run_name="__main__")
    else:
        runpy.run_module(asked.program, run_name="__main__")


if __name__ == "__main__":
    main()
