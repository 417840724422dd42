"""The process of a run: `weft train`, which stops as by SIGTERM when the sweep is gone.

A sweep that is killed cannot stop its runs; each notices that it has another parent.
"""

import os
import signal
import threading
import time

from weft.__main__ import main

EVERY = 0.5  # seconds between two looks at the parent


def _stop_without(parent: int) -> None:
    """Wait until the parent is gone, then stop this process in order."""
    while os.getppid() == parent:
        time.sleep(EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    watch = threading.Thread(
        target=_stop_without, args=(os.getppid(),), name="parent", daemon=True
    )
    watch.start()
    main()
