"""A folder among the system's temporary ones, for what is needed no longer than the process runs;
or in a place that other machines can read, too.

It is locked by who made it. The system frees a lock when its process ends, however it ends; so what
a killed process left is known by its lock, and removed by the next.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from weft.errors import FolderError

try:
    import fcntl
except ImportError:  # no such locks, as on Windows: then nothing is removed
    fcntl = None  # type: ignore[assignment]

_PREFIX = "weft-text-"
_LOCK = "held"
_place: ContextVar[Path | None] = ContextVar("place", default=None)


class Home:
    """A folder that goes with the last who holds it."""

    def __init__(self) -> None:
        """Make the folder. Raises FolderError where there is no room for it."""
        _remove_left()
        with told_of_disk():
            place = _parent()
            place.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _try_lock(lock)
        weakref.finalize(self, _remove, self.path, lock)


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


def _remove(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_left() -> None:
    """Remove the folders whose processes have gone."""
    for folder in _parent().glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                if fcntl is not None and _try_lock(lock):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _try_lock(descriptor: int) -> bool:
    """Return whether a lock could be taken; a process that holds it keeps others out."""
    if fcntl is None:
        return False
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
