"""A GGUF file, opened by llama.cpp; its arrays by the package gguf."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.tokenizer import Tokenizer
from weft.ship.certificate.used import NEW_TOKENS
from weft.ship.gguf.library import PACKAGE, Context, Model
from weft.ship.gguf.precisions import read_as
from weft.ship.opened import Floats, Opened, Row, Wanted
from weft.ship.target import load, versions_of
from weft.ship.tensors import Array
from weft.ship.tokenizers.gguf_tokens import ReadByLlamaCpp


class OpenedByLlamaCpp(Opened):
    """A language model; what is compared is computed in float32, what a person gets as llama.cpp
    does it by itself.
    """

    def __init__(
        self, path: Path, tokenizer: Tokenizer, length: int, num_threads: int
    ) -> None:
        self.path = path
        self.reader = ReadByLlamaCpp(tokenizer)
        self.length = length
        self.num_threads = num_threads

    @property
    def versions(self) -> Mapping[str, str]:
        return versions_of("gguf", PACKAGE)

    def arrays(self) -> Iterator[tuple[str, Array]]:
        reader: Any = load("gguf").GGUFReader(self.path)
        for tensor in reader.tensors:
            content = np.array(tensor.data)
            yield tensor.name, read_as(content, tensor.tensor_type.name)

    def encode(self, text: str) -> list[int]:
        return self._model.tokenize(self.reader.given(text))

    def reads_otherwise(self, text: str) -> str:
        _, *found = self.encode(text)
        if found != self.reader.encode(text):
            return ""
        return self.reader.reads_otherwise(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self._model.detokenize(ids)

    def logits(self, row: Row) -> Floats:
        self._exact.forget()
        return self._exact.read(row.ids)

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        assert beam_size == 1, "llama.cpp has no beams"
        return [self._exact.go_on(row.ids, row.limit) for row in rows]

    def use(self, texts: Sequence[str]) -> list[Any]:
        found = []
        for text in texts:
            ids = self.encode(text)
            written = self._as_it_comes.go_on(ids, NEW_TOKENS)
            found.append(self._model.detokenize(written))
        return found

    @cached_property
    def _model(self) -> Model:
        return Model(self.path)

    @cached_property
    def _exact(self) -> Context:
        return Context(self._model, self.length, self.num_threads, is_exact=True)

    @cached_property
    def _as_it_comes(self) -> Context:
        return Context(self._model, self.length, self.num_threads, is_exact=False)
