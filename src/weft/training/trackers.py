"""Programs that draw a run's curves: TensorBoard, where it is installed.

It belongs to the extra `track` and is not imported before the first line is logged. It is sent what
goes to metrics.jsonl, under the names `training/...` and `dev/...`.
"""

import os
import platform
import shlex
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol


class Tracker(Protocol):
    """Takes the lines of a run, from the first after `rewind` to `close`; the first line opens
    it.
    """

    @property
    def name(self) -> str: ...
    def describe(self) -> str: ...
    def rewind(self, step: int) -> None: ...
    def line(self, line: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


def find_trackers(tensorboard: Path) -> list[Tracker]:
    """List what draws curves: TensorBoard's files in a folder, where it is installed."""
    return [TensorBoard(tensorboard)] if find_spec("tensorboard") else []


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a line but its step, each under its name."""
    kind = "training" if "loss" in line else "dev"
    numbers = {
        key: value
        for key, value in line.items()
        if key != "step" and isinstance(value, int | float)
    }
    return {
        f"{kind}/{key.removeprefix('dev_')}": float(value)
        for key, value in numbers.items()
    }


class TensorBoard:
    """A file of events for each start of the run, which stays open.

    TensorFlow, which `torch.utils.tensorboard` would import where it is installed, is not needed:
    records are written through TensorBoard's own writer into a plain file, and no thread is
    started.
    """

    name = "TensorBoard"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._step = 0
        self._file: Any = None
        self._writer: Any = None

    def describe(self) -> str:
        """Say how to see it."""
        return f"TensorBoard: tensorboard --logdir {shlex.quote(str(self.folder))}"

    def rewind(self, step: int) -> None:
        """Let what earlier starts wrote of steps after `step` disappear, once there is something
        new.
        """
        self._step = step

    def line(self, line: Mapping[str, Any]) -> None:
        """Write one event with all numbers of a line, at once on its way to the disk."""
        if self._file is None:
            self._open()
        values = [
            {"tag": name, "simple_value": number}
            for name, number in scalars(line).items()
        ]
        self._write(step=line["step"], summary={"value": values})

    def close(self) -> None:
        """Close the file; the next line, if there is one, begins another."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        """Begin a file as TensorBoard does: its version, then the step from which a run resumes."""
        record_writer = import_module("tensorboard.summary.writer.record_writer")
        self.folder.mkdir(parents=True, exist_ok=True)
        number = len([*self.folder.iterdir()])  # of two starts in one second
        # files are read in the order of their names
        started = f"{int(time.time()):010d}.{number:04d}"
        self._file = (
            self.folder
            / f"events.out.tfevents.{started}.{platform.node()}.{os.getpid()}"
        ).open("xb")
        self._writer = record_writer.RecordWriter(self._file)
        self._write(file_version="brain.Event:2")
        if self._step:
            self._write(step=self._step + 1, session_log={"status": "START"})

    def _write(self, **event: Any) -> None:
        made = import_module("tensorboard.compat.proto.event_pb2").Event(
            wall_time=time.time(), **event
        )
        self._writer.write(made.SerializeToString())
        self._file.flush()
