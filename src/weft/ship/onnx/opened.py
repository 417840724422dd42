"""Graphs opened by onnxruntime, and the loops beside them at work."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weft.console import stages
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Floats, Indices
from weft.decoding.search import search_all
from weft.decoding.sentences import BeamSettings, Sentence
from weft.engine.batched import Steps
from weft.predict.settings import BANNED
from weft.ship.certificate.used import NEW_TOKENS
from weft.ship.onnx.graph import read_arrays
from weft.ship.onnx.models import DECODER, ENCODER, MODEL
from weft.ship.opened import Opened, Row, Wanted
from weft.ship.target import load, versions_of
from weft.ship.tensors import Array

_AT_ONCE = 16  # texts


@dataclass(frozen=True)
class Files:
    """The files that a loop takes: the graphs by the names of models, and the tokenizer; and the
    settings, the content of config.json.
    """

    graphs: Mapping[str, Path]
    tokenizer: Path
    settings: Mapping[str, Any]


class OpenedByOnnxruntime(Opened):
    """A model whose graphs onnxruntime computes, used by the loop that goes with it."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.loop: Any = self._loop(files)

    def _loop(self, files: Files) -> Any:
        raise NotImplementedError

    @property
    def versions(self) -> Mapping[str, str]:
        return versions_of("onnxruntime", "onnx", "tokenizers")

    def arrays(self) -> Iterator[tuple[str, Array]]:
        for graph, path in self.files.graphs.items():
            for name, array in read_arrays(path):
                yield name_in(graph, name), array

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.loop.tokenizer.encode(text).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.loop.tokenizer.decode(ids)
        return text

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        assert beam_size == 1, "a loop is greedy"
        found: list[list[int]] = []
        for some in _some_at_a_time(rows):
            ids = [row.ids for row in some]
            limits = np.array([row.limit for row in some])
            found += self.loop.search(ids, limits)
        return found


class OpenedTranslator(OpenedByOnnxruntime):
    """A translator. Its beams are those of Weft's own search, by the steps of the graph."""

    def _loop(self, files: Files) -> Any:
        loops = load("weft.ship.onnx.loops.translate")
        return loops.Translator(
            files.graphs[ENCODER],
            files.graphs[DECODER],
            files.tokenizer,
            files.settings,
        )

    def logits(self, row: Row) -> Floats:
        cache = self._prefill([row.ids])
        tgt_in = np.array([row.tgt_in])
        (logits,), _ = self._step(tgt_in, cache)
        return logits

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        if beam_size == 1:
            return super().search(rows, beam_size)
        sentences = [Sentence(i, row.ids, row.limit) for i, row in enumerate(rows)]
        settings = BeamSettings(BOS_ID, EOS_ID, beam_size, banned_ids=BANNED)
        steps = Steps(self._prefill, self._newest_step)
        found = search_all(steps, sentences, settings)
        best = (found[place][0] for place in range(len(rows)))
        return [list(hypothesis.ids) for hypothesis in best]

    def use(self, texts: Sequence[str]) -> list[Any]:
        return _in_parts(self.loop.translate, texts)

    def _prefill(self, sources: Sequence[Sequence[int]]) -> "_Cache":
        inputs: dict[str, Array] = self.loop.begun(sources)
        return _Cache(inputs)

    def _newest_step(self, newest: Indices, cache: "_Cache") -> tuple[Floats, "_Cache"]:
        logits, longer = self._step(newest[:, None], cache)
        return logits[:, -1], longer

    def _step(self, ids: Indices, cache: "_Cache") -> tuple[Floats, "_Cache"]:
        """Read new ids (N, L); return the logits after each, and the longer cache."""
        inputs = dict(cache.inputs)
        logits: Floats = self.loop.step(ids, inputs)
        return logits, _Cache(inputs)


class OpenedWriter(OpenedByOnnxruntime):
    """A language model; what a person gets is compared without chance."""

    def _loop(self, files: Files) -> Any:
        loops = load("weft.ship.onnx.loops.generate")
        graph = files.graphs[MODEL]
        return loops.Writer(graph, files.tokenizer, files.settings)

    def logits(self, row: Row) -> Floats:
        inputs = self.loop.begun([row.ids])
        (logits,) = self.loop.step(inputs)
        found: Floats = logits
        return found

    def use(self, texts: Sequence[str]) -> list[Any]:
        generate = partial(self.loop.generate, max_new_tokens=NEW_TOKENS)
        return _in_parts(generate, texts)


class OpenedClassifier(OpenedByOnnxruntime):
    """A classifier."""

    def _loop(self, files: Files) -> Any:
        loops = load("weft.ship.onnx.loops.classify")
        graph = files.graphs[MODEL]
        return loops.Classifier(graph, files.tokenizer, files.settings)

    def logits(self, row: Row) -> Floats:
        (logits,) = self.loop.logits([row.ids])
        found: Floats = logits
        return found

    def use(self, texts: Sequence[str]) -> list[Any]:
        answers = self.loop.classify(texts)
        return [self.loop.labels(answer) for answer in answers]


OPENED: Mapping[str, type[OpenedByOnnxruntime]] = {
    "translation": OpenedTranslator,
    "language-modelling": OpenedWriter,
    "classification": OpenedClassifier,
}


def name_in(graph: str, name: str) -> str:
    """Return the name of an array among those of all graphs."""
    return f"{graph}: {name}"


@dataclass(frozen=True)
class _Cache:
    """The inputs of the next step of a translator, a row for each hypothesis."""

    inputs: Mapping[str, Array]

    def select(self, rows: Indices) -> "_Cache":
        """Keep, reorder or repeat rows."""
        chosen = {name: array[rows] for name, array in self.inputs.items()}
        return _Cache(chosen)


def _in_parts(use: Any, texts: Sequence[str]) -> list[Any]:
    """Use a model on texts, a few at a time."""
    found: list[Any] = []
    for some in _some_at_a_time(texts):
        found += use(some)
    return found


def _some_at_a_time(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the items, a few at a time."""
    starts = range(0, len(items), _AT_ONCE)
    for first in stages.each(starts, "batches"):
        end = first + _AT_ONCE
        yield items[first:end]
