"""One process of several that torchrun starts: trains as the command line does, and does what a
test asks.

torchrun --nproc-per-node N one_of_many.py '{"out": ..., "train": ..., "settings": [...], "kill":
[RANK, STEP],
                                             "spoil": [RANK, STEP], "rows": FOLDER, "terminate":
                                             STEP}'
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from weft.data.train_text import TrainText
from weft.errors import WeftError
from weft.folder.model_folder import RunFolder
from weft.recipes.file import load_recipe
from weft.run.request import Request
from weft.run.train import train
from weft.training import trainer
from weft.training.log import Log

RANK = int(os.environ.get("RANK", "0"))


def main() -> int:
    asked = json.loads(sys.argv[1])
    acts = {"kill": kill, "spoil": spoil, "rows": keep_rows, "terminate": terminate}
    for what, act in acts.items():
        if what in asked:
            act(asked[what])
    out = Path(asked["out"])
    try:
        train(
            Request(
                recipe=load_recipe(None, asked["settings"]),
                out=out,
                train=(TrainText(asked["train"]),),
            ),
            Log(RunFolder(out).metrics, every=1, quiet=True),
        )
    except WeftError as error:
        print(f"rank {RANK}: weft: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def before(rank: int, step: int, act: Any) -> None:
    """Let something happen in one process before the first micro-batch of a step."""
    forward = trainer.Trainer._forward_backward

    def passing(self: Any, *arguments: Any) -> float:
        if (RANK, self.progress.step + 1) == (rank, step):
            act(self)
        return forward(self, *arguments)

    trainer.Trainer._forward_backward = passing


def kill(when: list[int]) -> None:
    before(*when, lambda self: os.kill(os.getpid(), signal.SIGKILL))


def terminate(step: int) -> None:
    """Send SIGTERM to torchrun, as a cluster does whose time is up, and wait until it has come."""

    def ask(self: Any) -> None:
        os.kill(os.getppid(), signal.SIGTERM)
        while not self._stop_asked:
            time.sleep(0.01)

    before(0, step, ask)


def spoil(when: list[int]) -> None:
    """Make the loss of one process NaN."""

    def poison(self: Any) -> None:
        good = self.compute_loss

        def bad(batch: Any) -> Any:
            sums = good(batch)
            return type(sums)(
                sums.loss_sum * torch.tensor(float("nan")),
                sums.nll_sum,
                sums.num_tokens,
            )

        self.compute_loss = bad

    before(*when, poison)


def keep_rows(folder: str) -> None:
    """Write down which rows of the text this process trained on, a line a micro-batch."""
    forward = trainer.Trainer._forward_backward

    def passing(self: Any, place: tuple[int, int], batch: Any, tokens: float) -> float:
        with (Path(folder) / f"rank-{RANK}").open("a") as file:
            file.write(json.dumps([*place, batch.rows.tolist()]) + "\n")
        return forward(self, place, batch, tokens)

    trainer.Trainer._forward_backward = passing


if __name__ == "__main__":
    sys.exit(main())
