"""A process of a crew: does the tasks that it reads, a line of JSON each, and says when it has."""

import json
import signal
import sys

from weft.data.check.near import compare
from weft.data.check.stretches import CHECK
from weft.data.clean.stretches import MEND, REALIGN
from weft.data.crew import Job
from weft.data.encoding import encode_stretch
from weft.data.learning import learn_side
from weft.data.measures import MEASURE

JOBS: dict[str, Job] = {
    "check": CHECK,
    "compare": compare,
    "encode": encode_stretch,
    "learn": learn_side,
    "measure": MEASURE,
    "mend": MEND,
    "realign": REALIGN,
}


def main() -> None:
    """Serve until there are no more tasks, or the process that gives them has gone.

    An error ends the process: the other one does the task again, and finds the error itself.
    """
    # Ctrl-C is for the process that started this one, which ends it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        JOBS[asked["job"]](asked["task"])
        print("done", flush=True)


if __name__ == "__main__":
    main()
