"""The files of a model by their names, in a folder or in a pack: who reads them need not know
which.

A pack is what `weft pack` writes: one archive (`weft.folder.archive`) of a model's files alone,
which are read where they lie in it. Its members are those of `MEMBERS`, in this order.
"""

import hashlib
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.archive import read_archive
from weft.folder.durable import MANIFEST
from weft.folder.exported import refuse_exported
from weft.folder.layout import (
    CARD,
    CONFIG,
    GLOSSARY,
    LANGUAGES,
    MEMORY,
    SHORTLIST,
    SRC_TOKENIZER,
    TGT_TOKENIZER,
    TOKENIZER,
    WEIGHTS,
    WORDS,
    WORK,
    is_pack,
    refuse_no_model,
)
from weft.folder.mapped import mapped

MEMBERS = (
    *(MANIFEST, CARD, CONFIG, TOKENIZER, SRC_TOKENIZER, TGT_TOKENIZER),
    *(LANGUAGES, WORDS, SHORTLIST, GLOSSARY, MEMORY, WEIGHTS),
)
_MOST_CARD = 2**20


class ModelFiles(ABC):
    """The files of a model; `path` is the folder or the pack that they are in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, name: str) -> Path:
        """Return what a file is called in messages."""
        return self.path / name

    @abstractmethod
    def __contains__(self, name: str) -> bool:
        """Return whether there is a file of this name."""

    @abstractmethod
    def mapped(self, name: str) -> memoryview:
        """Map the content of a file. Raises FolderError where it is missing."""

    def listed(self, name: str) -> memoryview | None:
        """Map a file that the manifest lists, unchecked; None where it lists none of this name.

        Raises FolderError where the manifest is damaged, or the file missing.
        """
        manifest = self.json(MANIFEST)
        if name not in durable.listed_files(manifest, self.path):
            return None
        return self.mapped(name)

    @abstractmethod
    def manifest(self) -> dict[str, Any]:
        """Return the manifest; every file that it lists is checked against it.

        Raises FolderError for the first that is missing or differs in size or content.
        """

    def written(self) -> float:
        """Return when the model was written, in seconds since 1970. Raises OSError."""
        return self.place(MANIFEST).stat().st_mtime

    def read(self, name: str, limit: int = 64 * 2**20) -> bytes:
        """Read a file of at most `limit` bytes.

        Raises FolderError where it is missing or larger.
        """
        content = self.mapped(name)
        if len(content) > limit:
            raise FolderError(
                f"{self.place(name)}: {len(content):,} bytes; expected at most {limit:,}"
            )
        return bytes(content)

    def json(self, name: str, limit: int = 64 * 2**20) -> Any:
        """Read JSON of at most `limit` bytes. Raises FolderError where it is missing, too large or
        malformed.
        """
        return durable.parse_json(self.read(name, limit), self.place(name))

    def weights_sha256(self) -> str:
        """Return the SHA-256 of the weights, which are checked against the manifest, as is all."""
        return str(self.manifest()["files"][WEIGHTS]["sha256"])

    def digest(self) -> str:
        """Return the SHA-256 of the manifest, which lists the hashes of the other files."""
        return hashlib.sha256(self.read(MANIFEST)).hexdigest()


class FolderFiles(ModelFiles):
    """The files of a model in a folder, which may have others beside them."""

    def __contains__(self, name: str) -> bool:
        return self.place(name).is_file()

    def mapped(self, name: str) -> memoryview:
        return mapped(self.place(name))

    def manifest(self) -> dict[str, Any]:
        return durable.read_manifest(self.path)


class PackFiles(ModelFiles):
    """The files of a model in a pack. Raises FolderError where the file is no sound pack."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._members = read_archive(mapped(path))
        except ValueError as error:
            raise self._unsound(str(error)) from None
        for name in self._members:
            if name not in MEMBERS:
                raise self._unsound(f"{name[:60]!r} is no file of a model")
        if [*self._members] != [name for name in MEMBERS if name in self._members]:
            raise self._unsound("its files are in another order")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def mapped(self, name: str) -> memoryview:
        if name not in self._members:
            raise FolderError(f"{self.place(name)}: missing; the pack is not whole")
        _, content = self._members[name]
        return content

    def manifest(self) -> dict[str, Any]:
        manifest = self.json(MANIFEST)
        listed = durable.listed_files(manifest, self.path)
        for name, entry in listed.items():
            if name not in self:
                raise durable.missing_file(self.place(name))
            content = self.mapped(name)
            is_same = len(content) == entry.get("size")
            if not is_same or _sha256(content) != entry.get("sha256"):
                raise durable.changed_file(self.place(name))
        for name, (member, content) in self._members.items():
            if name not in listed and zlib.crc32(content) != member.crc:
                raise self._unsound(f"{name} differs from its CRC")
        return dict(manifest)

    def written(self) -> float:
        return self.path.stat().st_mtime

    def _unsound(self, why: str) -> FolderError:
        return FolderError(
            f"{self.path}: not a pack as weft pack writes it ({why}); copy it again, or pack the folder anew"
        )


def files_of(path: Path) -> ModelFiles:
    """Return the files of the model in a folder or a pack.

    Raises FolderError where there is none, only an export of one, or the pack is damaged.
    """
    refuse_no_model(path)
    if is_pack(path):
        return PackFiles(path)
    refuse_exported(path)
    return FolderFiles(path)


def read_card(path: Path) -> str:
    """Return the card of the model in a folder or a pack; "" where there is none to be read."""
    try:
        return files_of(path).read(CARD, _MOST_CARD).decode("utf-8", "replace")
    except FolderError:
        return ""


def task_of(path: Path) -> str:
    """Return the task of a model, from its config; raise FolderError where there is no model."""
    config = files_of(path).json(CONFIG, limit=2**20)
    return str(config.get("task")) if isinstance(config, dict) else ""


def refuse_other_task(path: Path, task: str, verb: str | None = None) -> None:
    """Raise UsageError where a model is for another task, FolderError where there is none.

    `verb` says what it cannot do, by default the work of the task. Other problems of its files are
    found when it is loaded.
    """
    own = task_of(path)
    if own in WORK and own != task:
        raise UsageError(
            f"{path}: holds a model for {own}, which cannot {verb or WORK[task]}"
        )


def _sha256(content: memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
