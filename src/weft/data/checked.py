"""The findings of the check of a large text, kept with a run: when that is resumed, the same text
is not checked again.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from weft.data.check.finding import Finding
from weft.data.corpus import ParallelText, fingerprint
from weft.errors import FolderError
from weft.folder.durable import read_json, write_json
from weft.folder.version import installed_version

_BLOCK = 1 << 16  # numbers that are hashed at a time
_KEPT = ("severity", "code", "message", "remedy", "count", "part")


def key_of(parts: Sequence[ParallelText | None]) -> str:
    """Return what the findings follow from: the text of all parts, where each row stands, what
    reading said, and Weft's version.
    """
    described: list[object] = [installed_version()]
    for part in parts:
        described.append(part and _describe(part))
    content = json.dumps(described)
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _describe(text: ParallelText) -> list[object]:
    places = sha256()
    for numbers in (text.lines, text.file_of):
        for start in range(0, len(numbers), _BLOCK):
            content = np.asarray(numbers[start : start + _BLOCK], np.int64)
            places.update(content.data)
    return [
        fingerprint(text),
        places.hexdigest(),
        text.files,
        text.pairs,
        sorted(text.by_unit),
        text.dropped,
        text.notes,
        dict(text.coded),
    ]


def read_checked(path: Path | None, key: str) -> list[Finding] | None:
    """Return the findings that were kept with this key, without their rows; None where there are
    none.
    """
    if path is None or not path.is_file():
        return None
    try:
        kept = read_json(path)
        is_same = kept["key"] == key
        found = [Finding(**finding) for finding in kept["findings"]]
    except (FolderError, KeyError, TypeError):  # then the text is checked again
        return None
    return found if is_same else None


def write_checked(path: Path, key: str, findings: Sequence[Finding]) -> None:
    """Keep findings, as far as a run tells them."""
    kept = []
    for finding in findings:
        said = {name: getattr(finding, name) for name in _KEPT}
        kept.append(said)
    content = {"key": key, "findings": kept}
    write_json(path, content)
