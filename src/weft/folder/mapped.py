"""Files mapped into memory: read from the disk where and when their bytes are used."""

import mmap
import os
from pathlib import Path

from weft.errors import FolderError


def mapped(path: Path) -> memoryview:
    """Map a file, to be read alone. Raises FolderError where it cannot be read."""
    if not path.is_file():
        raise FolderError(f"{path}: missing; the folder is incomplete or not Weft's")
    try:
        with path.open("rb") as file:
            if not file.seek(0, os.SEEK_END):  # nothing to map
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FolderError(f"{path}: cannot be read ({reason})") from None
