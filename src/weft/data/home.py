"""A folder among the system's temporary ones, for what is needed no longer than the process runs;
or in a place that other machines can read, too.

It is locked by who made it (`weft.folder.unfinished`); so what a killed process left is known, and
removed by the next.
"""

import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path

from weft.errors import FolderError
from weft.folder.unfinished import being_written, remove_abandoned

_PREFIX = "weft-large-"
_PRIVATE = 0o700  # others may use the same folder for what is temporary
_place: ContextVar[Path | None] = ContextVar("place", default=None)


class Home:
    """A folder that goes with the last who holds it."""

    def __init__(self) -> None:
        """Make the folder. Raises FolderError where there is no room for it."""
        place = _parent()
        remove_abandoned(place, _PREFIX)
        self.path = place / f"{_PREFIX}{uuid.uuid4().hex}"
        with told_of_disk(), ExitStack() as stack:
            stack.enter_context(being_written(self.path, _PRIVATE))
            weakref.finalize(self, _remove, self.path, stack.pop_all())


@contextmanager
def homes_in(folder: Path) -> Iterator[None]:
    """Make all such folders in another one while the block runs."""
    before = _place.set(folder.resolve())
    try:
        yield
    finally:
        _place.reset(before)


def _parent() -> Path:
    return _place.get() or Path(tempfile.gettempdir())


@contextmanager
def told_of_disk() -> Iterator[None]:
    """Turn an error of the system, such as a full disk, into a FolderError."""
    try:
        yield
    except OSError as error:
        other = "name another --output"
        if _place.get() is None:
            other = "name another folder by the variable TMPDIR"
        raise FolderError(
            f"{_parent()}: a large text cannot be kept there while it is used ({error.strerror or error}); free some "
            f"space, or {other}"
        ) from None


def _remove(folder: Path, lock: ExitStack) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.close()
