"""Folders of shards: a text in several files, such as a data set of Hugging Face's `datasets`.

FOLDER is all of its files in the order of their names; of a data set with splits the split `train`.
FOLDER/SPLIT is another one, as `validation`: a folder of that name, or the files whose names begin
with it (`validation-00000-of-00002.parquet`), also in FOLDER/data.
"""

import re
from pathlib import Path

from weft.errors import DataError

_TRAIN = "train"
_INNER = ("", "data")  # folders within a data set that hold its files
_ABOUT = re.compile(
    r"(dataset_info|dataset_dict|manifest|state)\.json|.*\.(md|lock)|[._].*"
)
_SPLIT = re.compile(r"([A-Za-z]+)-\d+-of-\d+\..*")


def shards_of(path: Path) -> list[Path]:
    """Return the files of a folder or of a split; none for a file, and for what is not there.

    Raises DataError for a folder without files, or with several splits of which none is `train`.
    """
    try:
        if path.is_dir():
            return _of_folder(path)
        is_split = not path.exists() and path.parent.is_dir()
    except OSError:  # a name that cannot be: whoever opens it says so
        return []
    return _of_split(path.parent, path.name) if is_split else []


def _of_folder(folder: Path) -> list[Path]:
    if (folder / "dataset_dict.json").is_file() and (folder / _TRAIN).is_dir():
        return _of_folder(folder / _TRAIN)
    for inner in _INNER:
        files = _files(folder / inner)
        splits = {match[1] for file in files if (match := _SPLIT.fullmatch(file.name))}
        if _TRAIN in splits:
            return _of_split(folder, _TRAIN)
        if len(splits) > 1:
            named = " or ".join(f"{folder}/{split}" for split in sorted(splits))
            raise DataError(f"{folder}: has several splits; name one: {named}")
        if files:
            return files
    raise DataError(f"{folder}: is a folder without files of text; name a file")


def _of_split(folder: Path, split: str) -> list[Path]:
    for inner in _INNER:
        within = _files(folder / inner)
        shards = [file for file in within if _is_of(file.name, split)]
        if shards:
            return shards
    return []


def _is_of(name: str, split: str) -> bool:
    match = _SPLIT.fullmatch(name)
    return match is not None and match[1] == split


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder but those about it, in the order of their names."""
    if not folder.is_dir():
        return []
    files = [file for file in folder.iterdir() if file.is_file()]
    return sorted(file for file in files if not _ABOUT.fullmatch(file.name))
