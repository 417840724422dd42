"""Files that are written together: all of them appear, or none."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from weft.errors import FolderError
from weft.folder.durable import TEMPORARY, sync
from weft.folder.unfinished import being_written, remove_abandoned

_PREFIX = f"{TEMPORARY}together-"


@contextlib.contextmanager
def written_together(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary path for each of `paths`, beside it; what is written there replaces all of
    them at the end of the block.

    Until then each path is as it was. Whoever stops the writer while it renames leaves too few
    files, never an old one beside a new one, and never another without the first; what a killed
    writer left is removed by the next.
    Raises FolderError where one cannot be written.
    """
    parents = list(dict.fromkeys(path.parent for path in paths))
    rooms = {parent: parent / f"{_PREFIX}{uuid.uuid4().hex}" for parent in parents}
    temporary = [rooms[path.parent] / path.name for path in paths]
    try:
        with contextlib.ExitStack() as stack:
            for parent, room in rooms.items():
                remove_abandoned(parent, _PREFIX)
                stack.enter_context(being_written(room))
            yield temporary
            for path in temporary:
                sync(path)
            for path in reversed(paths):
                path.unlink(missing_ok=True)
            for path, new in zip(paths, temporary, strict=True):
                os.replace(new, path)
            for parent in parents:
                sync(parent)
    except OSError as error:
        raise FolderError(
            f"{paths[0]}: cannot be written ({error.strerror or error})"
        ) from error
    finally:
        for room in rooms.values():
            shutil.rmtree(room, ignore_errors=True)
