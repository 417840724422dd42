"""A folder opened by CTranslate2: its engine computes, `tokenizers` reads the texts.

Shapes: L ids, D d_model, C labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from tokenizers import Tokenizer

from weft.console import stages
from weft.ship.certificate.used import NEW_TOKENS
from weft.ship.ctranslate2.engine import TranslatingEngine
from weft.ship.ctranslate2.model_file import MODEL, read_model
from weft.ship.ctranslate2.quantized import numbers_of
from weft.ship.ctranslate2.settings import never_written, read_settings
from weft.ship.ctranslate2.vocabulary import read_names
from weft.ship.opened import Floats, Opened, Row, Wanted
from weft.ship.target import load, versions_of
from weft.ship.tensors import Array
from weft.ship.tokenizers.hub import TOKENIZER

TGT_TOKENIZER = "target_tokenizer.json"
HEAD = "head.npz"


class OpenedByCTranslate2(Opened):
    """A model that the engine has loaded; `engine` is its class for this kind of model."""

    engine: ClassVar[str]
    bans_first = True

    def __init__(self, place: Path, compute_type: str = "default") -> None:
        self.place = place
        self.settings = read_settings(place)
        kind = getattr(load("ctranslate2"), self.engine)
        self.model: Any = kind(str(place), compute_type=compute_type, intra_threads=1)
        self.tokenizer: Any = Tokenizer.from_file(str(place / TOKENIZER))

    @property
    def versions(self) -> Mapping[str, str]:
        return versions_of("ctranslate2", "tokenizers")

    def arrays(self) -> Iterator[tuple[str, Array]]:
        yield from numbers_of(read_model(self.place / MODEL)).items()

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids)
        return text

    def read(self, text: str) -> list[int]:
        """Return the ids of a text, as many as the model reads."""
        self.tokenizer.enable_truncation(self.settings["max_ids"])
        ids = self.encode(text)
        self.tokenizer.no_truncation()
        return ids


class OpenedTranslator(OpenedByCTranslate2):
    """A translator, with a vocabulary for each side or one for both."""

    engine = "Translator"

    def __init__(self, place: Path, compute_type: str = "default") -> None:
        super().__init__(place, compute_type)
        src = read_names(place, "source")
        tgt = read_names(place, "target")
        self.translator = TranslatingEngine(self.model, src, tgt)
        path = place / TGT_TOKENIZER
        self.writer: Any = self.tokenizer
        if path.is_file():
            self.writer = Tokenizer.from_file(str(path))

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.writer.decode(ids)
        return text

    def logits(self, row: Row) -> Floats:
        return self.translator.logits(row)

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        never = never_written(self.settings)
        return self.translator.search(rows, beam_size, **never)

    def use(self, texts: Sequence[str]) -> list[Any]:
        search = self.settings["search"]
        found = []
        for text in stages.each(texts, "texts"):
            ids = self.read(text)
            written = self.translator.translated(ids, **search)
            found.append(self.decode(written))
        return found


class OpenedWriter(OpenedByCTranslate2):
    """A language model; what a person gets is compared without chance."""

    engine = "Generator"

    def __init__(self, place: Path, compute_type: str = "default") -> None:
        super().__init__(place, compute_type)
        self.names = read_names(place, "")

    def logits(self, row: Row) -> Floats:
        (logits,) = np.asarray(self.model.forward_batch([list(row.ids)]))
        found: Floats = logits
        return found

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        assert beam_size == 1
        return [self._greedy(row.ids, row.limit) for row in rows]

    def use(self, texts: Sequence[str]) -> list[Any]:
        penalty = self.settings["search"]["repetition_penalty"]
        found = []
        for text in stages.each(texts, "texts"):
            begun = self.read(text)
            written = self._greedy(begun, NEW_TOKENS, repetition_penalty=penalty)
            found.append(self.decode(written))
        return found

    def _greedy(self, ids: Sequence[int], limit: int, **settings: Any) -> list[int]:
        tokens = [self.names[number] for number in ids]
        (found,) = self.model.generate_batch(
            [tokens],
            sampling_topk=1,
            max_length=limit,
            include_prompt_in_result=False,
            **never_written(self.settings),
            **settings,
        )
        written: list[int] = found.sequences_ids[0]
        return written


class OpenedClassifier(OpenedByCTranslate2):
    """A classifier: the engine computes its states, NumPy the rest, as the card says it."""

    engine = "Encoder"

    def __init__(self, place: Path, compute_type: str = "default") -> None:
        super().__init__(place, compute_type)
        self.head = self._read_head()

    def arrays(self) -> Iterator[tuple[str, Array]]:
        yield from super().arrays()
        yield from self._read_head().items()

    def _read_head(self) -> dict[str, Array]:
        with np.load(self.place / HEAD, allow_pickle=False) as head:
            return dict(head)

    def logits(self, row: Row) -> Floats:
        weight = self.head["weight"]
        logits: Floats = weight @ self._vector(row) + self.head["bias"]
        return logits

    def use(self, texts: Sequence[str]) -> list[Any]:
        found = []
        for text in texts:
            ids = self.read(text)
            row = Row(tuple(ids))
            found.append(self._labels(self.logits(row)))
        return found

    def _vector(self, row: Row) -> Floats:
        """Return the vector of a text; zeros where it has no ids."""
        if not row.ids:
            return np.zeros_like(self.head["weight"][0])
        output = self.model.forward_batch([list(row.ids)])
        (states,) = np.asarray(output.last_hidden_state)
        is_mean = self.settings["pooling"] == "mean"
        vector: Floats = states.mean(0) if is_mean else states[0]
        return vector

    def _labels(self, logits: Floats) -> list[str]:
        labels = self.settings["labels"]
        if self.settings["multi_label"]:
            return [labels[i] for i in np.flatnonzero(logits >= 0)]
        return [labels[int(logits.argmax())]]
