"""Folders that are being written: a lock on each says that its writer lives."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def being_written(folder: Path, mode: int = 0o777) -> Iterator[None]:
    """Make a folder, and hold a lock on it while the block runs.

    The system frees a lock when its process ends, however it ends. `mode` says who may read the
    folder, as far as the umask lets them. Raises OSError.
    """
    if fcntl is None:
        folder.mkdir(mode, parents=True)
        yield
        return
    descriptor = _made(folder, mode)
    try:
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the folders whose names begin so, and whose writers were killed.

    Where the operating system or the file system has no locks they are left.
    """
    if fcntl is None:
        return
    for folder in parent.glob(f"{prefix}*"):
        # one that is being written, or was removed meanwhile, is no concern here
        with contextlib.suppress(OSError):
            _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    """Remove a folder that nobody has a lock on. Raises OSError where somebody has."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _made(folder: Path, mode: int) -> int:
    """Make a folder; return a descriptor of it, which holds a lock where there are locks.

    Before it is locked, another process may take it for one whose writer was killed, and remove it.
    """
    while True:
        folder.mkdir(mode, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # some network file systems have none
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, folder):
                return descriptor
            os.close(descriptor)


def _is_at(descriptor: int, folder: Path) -> bool:
    """Return whether an open folder is still the one of that name."""
    try:
        there = folder.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
