"""The file of what a model folder knows of its languages: an array for each, by its code.

What the arrays mean is for `weft.data.profile` to say, which also checks them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from weft.errors import FolderError
from weft.folder import durable
from weft.folder.arrays import arrays_of
from weft.folder.mapped import mapped

_MOST_BYTES = 2**20
_MOST_LANGUAGES = 100


def write_profiles(path: Path, profiles: Mapping[str, NDArray[np.uint8]]) -> None:
    """Write the arrays of languages by their codes."""
    with durable.replacing(path) as temporary:
        arrays = {code: np.ascontiguousarray(rows) for code, rows in profiles.items()}
        save_file(arrays, temporary)


def read_profiles(path: Path) -> dict[str, NDArray[Any]]:
    """Read arrays of languages by their codes, as `profiles_of` does."""
    return profiles_of(mapped(path), path)


def profiles_of(content: memoryview, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of languages in a file that is mapped, by their codes.

    Raises FolderError, with the name `path`, where it is too large or no safetensors file.
    """
    if len(content) > _MOST_BYTES:
        raise FolderError(
            f"{path}: {len(content):,} bytes; expected at most {_MOST_BYTES:,}"
        )
    arrays = arrays_of(content, path)
    if len(arrays) > _MOST_LANGUAGES:
        raise FolderError(
            f"{path}: {len(arrays):,} languages; expected at most {_MOST_LANGUAGES}"
        )
    # of their own memory: they outlive the file
    return {code: np.array(arrays[code]) for code in sorted(arrays)}
