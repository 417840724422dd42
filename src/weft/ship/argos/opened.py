"""A package read anew from its file.

Its weights, pieces and searches are those of the libraries that Argos Translate takes: CTranslate2
and sentencepiece.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.data.tokenizer import EOS_ID
from weft.ship.argos import running
from weft.ship.argos.package import MODEL, Package
from weft.ship.ctranslate2 import model_file
from weft.ship.ctranslate2.engine import TranslatingEngine
from weft.ship.ctranslate2.quantized import numbers_of
from weft.ship.opened import Floats, Opened, Row, Wanted
from weft.ship.target import versions_of
from weft.ship.tensors import Array
from weft.ship.tokenizers.sentencepiece_file import ReadBySentencePiece

_LIBRARIES = ("ctranslate2", "sentencepiece", "onnxruntime")


class OpenedPackage(Opened):
    """A translator in a package; `pieces` read and write with the package's own pieces."""

    bans_first = True

    def __init__(self, package: Package, pieces: ReadBySentencePiece) -> None:
        self.package = package
        self.pieces = pieces
        self.files = package.read_all(MODEL)
        translator = running.loaded(package, "default")
        self.engine = TranslatingEngine(
            translator,
            self._names("source"),
            self._names("target"),
            adds_eos=True,
        )

    @property
    def versions(self) -> Mapping[str, str]:
        names = list(_LIBRARIES)
        if running.is_installed():
            names.insert(0, running.distribution())
        return versions_of(*names)

    def arrays(self) -> Iterator[tuple[str, Array]]:
        content = self.package.read(f"{MODEL}/{model_file.MODEL}")
        numbers = np.frombuffer(content, np.uint8)
        where = str(self.package.path)
        arrays = model_file.arrays_in(numbers, where)
        yield from numbers_of(arrays).items()

    def encode(self, text: str) -> list[int]:
        # as a sentence is found in a text
        ids = self.pieces.encode(text.strip())
        return [*ids, EOS_ID]

    def reads_otherwise(self, text: str) -> str:
        if any(end in text for end in "\r\n"):
            return "lines, which are translated one by one"
        return self.pieces.reads_otherwise(text.strip())

    def writes_otherwise(self, text: str) -> str:
        return self.pieces.writes_otherwise(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.pieces.decode(ids)

    def logits(self, row: Row) -> Floats:
        return self.engine.logits(row)

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        return self.engine.search(rows, beam_size)

    def use(self, texts: Sequence[str]) -> list[Any]:
        return running.use(self.package, texts)

    def _names(self, side: str) -> list[str]:
        """Return the names of the ids of a side; one file has those of both where they are the
        same.
        """
        files = [f"{side}_vocabulary.json", "shared_vocabulary.json"]
        content = next(self.files[name] for name in files if name in self.files)
        names: list[str] = json.loads(content)
        return names
