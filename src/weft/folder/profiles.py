"""The file of what a model folder knows of its languages: an array for each, by its code.

What the arrays mean is for `weft.data.profile` to say, which also checks them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from weft.errors import FolderError
from weft.folder import durable

_MOST_BYTES = 2**20
_MOST_LANGUAGES = 100


def write_profiles(path: Path, profiles: Mapping[str, NDArray[np.uint8]]) -> None:
    """Write the arrays of languages by their codes."""
    with durable.replacing(path) as temporary:
        arrays = {code: np.ascontiguousarray(rows) for code, rows in profiles.items()}
        save_file(arrays, temporary)


def read_profiles(path: Path) -> dict[str, NDArray[Any]]:
    """Read arrays of languages by their codes.

    Raises FolderError where the file is missing, too large or no safetensors file.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise FolderError(
                f"{path}: {size:,} bytes; expected at most {_MOST_BYTES:,}"
            )
        arrays = load_file(path)
    except (SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
        raise FolderError(
            f"{path}: not sound profiles of languages ({str(error)[:100]})"
        ) from None
    if len(arrays) > _MOST_LANGUAGES:
        raise FolderError(
            f"{path}: {len(arrays):,} languages; expected at most {_MOST_LANGUAGES}"
        )
    return dict(sorted(arrays.items()))
