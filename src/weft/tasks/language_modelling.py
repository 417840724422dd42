"""Language modelling with a model in a folder: its tokenizer, its windows and its scores."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from weft.config import LanguageRecipe
from weft.console import stages
from weft.data.check.finding import counted
from weft.data.documents import Documents, read_documents
from weft.data.store import TextStore, prepare_text_store
from weft.data.streams import ScoredWindow, has_ends, scored_windows
from weft.data.texts import Sources, Texts, gather_documents
from weft.data.tokenizer import Tokenizer
from weft.engine.bindings import computer_of, what_computes, why_no_engine
from weft.engine.plain_models import PlainWriter
from weft.engine.weights import Weights
from weft.engine.writer import writer_of
from weft.evaluation.language import LanguageScores, language_scores
from weft.folder.layout import WORK
from weft.folder.model_folder import LanguageConfig
from weft.kernels.machine import Machine
from weft.predict.language_model import CausalModel, LanguageModel
from weft.predict.parameters import Parameters, causal_parameters, stored_shapes
from weft.predict.weights import causal_weights
from weft.tasks.task import (
    Portrait,
    Task,
    open_with_tokenizer,
)

_NO_IDS = np.zeros(0, np.int64)
_NO_LOSSES = np.zeros(0)


@dataclass(frozen=True)
class DocumentLosses:
    """The ids (N) of a document, and the loss of each in nats; that of the end symbol follows where
    training has one.
    """

    ids: NDArray[np.int64]
    losses: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LanguageModelling(Task[LanguageRecipe, Documents]):
    """Language modelling: the next token at every position."""

    name: ClassVar[str] = "language-modelling"
    unit: ClassVar[str] = "documents"
    effect_of_overlap: ClassVar[str] = "loss and perplexity are too low"

    config: LanguageConfig
    tokenizers: tuple[Tokenizer]
    machine: Machine
    weights: Weights | None = None

    @classmethod
    def gather(cls, recipe: LanguageRecipe, given: Sources) -> Texts[Documents]:
        return gather_documents(recipe.data, given)

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored, config, tokenizer = open_with_tokenizer(
            folder, LanguageConfig, WORK[cls.name]
        )
        arrays = stored.weights(stored_shapes(parameters_of(config)))
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            machine=machine,
            weights=causal_weights(config.model, arrays),
        )

    def read(self, data: Sequence[str]) -> Documents:
        return read_documents(data, self.config.documents, self.config.raw)

    def evaluate(self, text: Documents) -> LanguageScores:
        """Score every token once, in windows of the length that the model was trained on."""
        with TemporaryDirectory() as scratch:
            store = self._store(Path(scratch), "text", text, "")
            losses = self._losses(store)
            return language_scores(math.fsum(losses), len(losses), store.num_bytes)

    def losses_by_document(self, text: Documents) -> list[DocumentLosses]:
        """Return the losses of each document's tokens: those whose sum `LanguageModelling.evaluate`
        gives.

        Raises DataError and DivergedError as `evaluate`.
        """
        found = [DocumentLosses(_NO_IDS, _NO_LOSSES)] * len(text)
        with TemporaryDirectory() as scratch:
            store = self._store(Path(scratch), "text", text, "")
            losses = np.array(self._losses(store))
            language_scores(math.fsum(losses), len(losses), store.num_bytes)
            num_ends = has_ends(store, self.config.packing == "packed")
            ends = np.cumsum(store.lens + num_ends)
            by_document = np.split(losses, ends[:-1])
            for place, row in enumerate(store.rows.tolist()):
                ids = np.array(store.ids_of(place), np.int64)
                found[row] = DocumentLosses(ids, by_document[place])
        return found

    def _losses(self, store: TextStore) -> list[float]:
        """Return the losses of all labels, in nats, in the order of the text.

        Several threads read a window each.
        """
        model = self.predictor()
        is_packed = self.config.packing == "packed"
        windows = [*scored_windows(store, self.config.window_len, is_packed)]

        def losses(window: ScoredWindow) -> list[float]:
            found = model.label_log_probs(
                window.inputs.tolist(), window.labels.tolist()
            )
            return (-found[window.num_seen :]).tolist()

        all_losses: list[float] = []
        with ThreadPoolExecutor(self.machine.threads) as pool:
            scored = pool.map(losses, windows)
            total = len(windows)
            for some in stages.counted(scored, "windows", every=1, total=total):
                all_losses += some
        return all_losses

    @staticmethod
    def overlap_rows(text: Documents) -> Sequence[Sequence[str]]:
        return [(document,) for document in text.texts]

    def texts_by_language(self, text: Documents) -> Sequence[tuple[str, Sequence[str]]]:
        return [(self.config.lang, text.texts)]

    def sides(self, text: Documents) -> Sequence[tuple[str, Tokenizer, Sequence[str]]]:
        return [("text", self.tokenizers[0], text.texts)]

    def predictor(self) -> LanguageModel:
        return LanguageModel(
            self._model(),
            self.tokenizers[0],
            decoding=self.config.decoding,
            packed=self.config.packing == "packed",
            window_len=self.config.window_len,
        )

    def _model(self) -> CausalModel[Any]:
        """Return the model as a writer of text has it: its engine where there is one, else its own
        steps in NumPy.
        """
        assert self.weights is not None
        writer = writer_of(self.weights, self.machine.precision)
        return writer or PlainWriter(self.weights)

    def why_no_engine(self) -> str:
        return "" if self.weights is None else why_no_engine(self.weights)

    def what_computes(self) -> str:
        if self.weights is None:
            return super().what_computes()
        return what_computes(self.weights)

    def computer(self) -> str:
        return "torch" if self.weights is None else computer_of(self.weights)

    def portrait(self) -> Portrait:
        shape = self.config.model
        layers = counted(shape.num_decoder_layers, "layers")
        use = [
            'weft generate THIS_FOLDER --prompt "A beginning"',
            "weft score THIS_FOLDER text.txt",
        ]
        return Portrait(
            "Language model",
            f"A causal Transformer of {layers} (width {shape.d_model})",
            use,
            {
                "kind": "causal",
                "layers": shape.num_decoder_layers,
                "width": shape.d_model,
            },
        )

    def _store(self, stores: Path, name: str, text: Documents, key: str) -> TextStore:
        return prepare_text_store(
            stores,
            name,
            text.texts,
            self.tokenizers[0],
            max_len=None,
            too_long="keep",
            text_key=key,
        )


def parameters_of(config: LanguageConfig) -> Parameters:
    """Yield the learned parameters of the model that a config describes."""
    return causal_parameters(config.model, config.vocab_size)
