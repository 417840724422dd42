"""Runs `weft` in a process of its own that is killed at an operation on files, or whose files
cannot grow.

    python counted.py ASKED ARGUMENTS...

ASKED is a JSON object: `at`, the number of the operation below the folder `below` at which the
process kills itself, from 1 on; `most`, the bytes that a file may have, of its workers too; and
`large`, the number of rows from which on a text is a large one. The last line of standard output
says how many operations there were.
"""

import json
import os
import resource
import runpy
import signal
import sys
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
WRITING = os.O_WRONLY | os.O_RDWR


def main() -> None:
    asked = json.loads(sys.argv.pop(1))
    if large := asked.get("large"):
        make_large(large)
    if most := asked.get("most"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    count = watch(asked["below"], asked.get("at"))
    try:
        runpy.run_module("weft", run_name="__main__", alter_sys=True)
    finally:
        print(f"operations: {count[0]}")


def make_large(rows: int) -> None:
    """Let texts of so many rows lie on disk, and be worked on in stretches of a quarter."""
    from weft.data import base, column, measures
    from weft.data.check import stretches

    column.LARGE = base.LARGE = rows
    column._BLOCK = rows // 4
    measures.STRETCH = stretches.STRETCH = rows // 4


def watch(below: str, at: int | None) -> list[int]:
    """Count operations that change files, and die at the one that is asked for."""
    count = [0]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        path = changed_path(event, arguments)
        if path is None or not os.path.abspath(path).startswith(below):
            return
        count[0] += 1
        if count[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def changed_path(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The path of an operation that changes something; None for any other event."""
    if event == "open":
        path, mode, flags = arguments
        writes = bool(flags & WRITING) or bool(mode and set(str(mode)) & set("wax+"))
        return os.fsdecode(path) if writes and isinstance(path, str | bytes) else None
    return os.fsdecode(arguments[0]) if event in CHANGES else None


if __name__ == "__main__":
    main()
