"""The program `weft`, whose language models take a tenth of a second for each token.

A text of a tiny model is over before a test has looked whether it is under way. Here it lasts, on
whatever machine: a server that is told to stop, or whose client leaves, is in the middle of it.
"""

import time
from collections.abc import Sequence

from weft.__main__ import main
from weft.serve.jobs import Job
from weft.serve.writing import WritingBatch

STEP = 0.1  # seconds
_step = WritingBatch.step


def _slow_step(batch: WritingBatch, jobs: Sequence[Job]) -> None:
    time.sleep(STEP)
    _step(batch, jobs)


WritingBatch.step = _slow_step  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
