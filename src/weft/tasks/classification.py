"""Classification with a model in a folder: its tokenizer, its labels and its scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from weft.config import ClassificationRecipe
from weft.data.check.finding import counted
from weft.data.check.rows import check_against, refuse_untrainable
from weft.data.known import KnownWords
from weft.data.labelled import LabelledText, read_labelled
from weft.data.texts import Sources, Texts, gather_rows
from weft.data.tokenizer import BOS_ID, Tokenizer
from weft.engine.bindings import computer_of, what_computes, why_no_engine
from weft.engine.classifier import NativeClassifier, native_classifier_of
from weft.engine.plain_models import PlainClassifier
from weft.engine.weights import ClassifierWeights
from weft.evaluation.classification import ClassificationScores, classification_scores
from weft.folder.layout import WORK
from weft.folder.model_folder import ClassificationConfig
from weft.kernels.machine import Machine
from weft.predict.classifier import Classification as Answer
from weft.predict.classifier import Classifier, ClassifierModel
from weft.predict.doubts import Doubts
from weft.predict.parameters import (
    Parameters,
    classifier_parameters,
    stored_shapes,
)
from weft.predict.weights import classifier_weights
from weft.tasks.task import (
    Portrait,
    Task,
    load_known,
    open_with_tokenizer,
)


@dataclass(frozen=True, kw_only=True)
class Classification(Task[ClassificationRecipe, LabelledText]):
    """Classification: one label for each text, or any number of them."""

    name: ClassVar[str] = "classification"
    unit: ClassVar[str] = "rows"
    few_rows: ClassVar[int] = 200
    keeps_words: ClassVar[bool] = True

    config: ClassificationConfig
    tokenizers: tuple[Tokenizer]
    machine: Machine
    weights: ClassifierWeights | None = None
    known: KnownWords | None = None

    @classmethod
    def gather(
        cls, recipe: ClassificationRecipe, given: Sources
    ) -> Texts[LabelledText]:
        texts = gather_rows(recipe.data, given)
        refuse_untrainable(texts.train)
        parts = (
            (part, name)
            for part, name in ((texts.dev, "dev"), (texts.test, "test"))
            if part is not None
        )
        known = known_labels(texts.train)
        notes = [
            note for part, name in parts for note in check_against(known, part, name)
        ]
        return replace(texts, notes=(*texts.notes, *notes))

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored, config, tokenizer = open_with_tokenizer(
            folder, ClassificationConfig, WORK[cls.name]
        )
        arrays = stored.weights(stored_shapes(parameters_of(config)))
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            machine=machine,
            weights=classifier_weights(config.model, arrays),
            known=load_known(stored),
        )

    def read(self, data: Sequence[str]) -> LabelledText:
        config = self.config
        columns = (config.text_column, config.label_column, config.label_separator)
        return read_labelled(data, *columns, settable=False)

    def evaluate(self, text: LabelledText) -> ClassificationScores:
        """Classify the texts and score the answers. Raises DataError for a label that the model
        does not know.
        """
        check_against(self.config.labels, text, "the text")
        return self.score(text)[0]

    def score(
        self, text: LabelledText, num_samples: int = 0
    ) -> tuple[ClassificationScores, list[Answer]]:
        """Evaluate, and keep the answers to the first texts; of the others only probabilities."""
        config = self.config
        found = np.empty((len(text), len(config.labels)))
        samples: list[Answer] = []
        num_cut = 0
        for row, answer in zip(
            found, self.predictor().classify_stream(text.texts), strict=True
        ):
            row[:] = list(answer.probabilities.values())
            num_cut += answer.truncated
            if len(samples) < num_samples:
                samples.append(answer)
        scores = classification_scores(
            found, self._truth(text), config.labels, config.multi_label
        )
        cut = (
            [f"{counted(num_cut, 'texts')} cut at {config.max_len} tokens"]
            if num_cut
            else []
        )
        return replace(scores, notes=(*scores.notes, *cut)), samples

    @staticmethod
    def overlap_rows(text: LabelledText) -> Sequence[Sequence[str]]:
        return [(one,) for one in text.texts]

    def texts_by_language(
        self, text: LabelledText
    ) -> Sequence[tuple[str, Sequence[str]]]:
        return [(self.config.lang, text.texts)]

    def sides(
        self, text: LabelledText
    ) -> Sequence[tuple[str, Tokenizer, Sequence[str]]]:
        return [("text", self.tokenizers[0], text.texts)]

    @property
    def labels(self) -> Sequence[str]:
        return self.config.labels

    def _model(self) -> ClassifierModel:
        """Return the model as a classifier has it: its engine where there is one, else its own
        steps in NumPy.
        """
        assert self.weights is not None
        return native_classifier_of(self.weights) or PlainClassifier(self.weights)

    def predictor(self) -> Classifier:
        model = self._model()
        # PyTorch has threads of its own; a mean of vectors is too short to share out
        takes_threads = isinstance(model, NativeClassifier | PlainClassifier)
        is_bag = self.weights is not None and self.weights.encoder is None
        return Classifier(
            model,
            self.tokenizers[0],
            labels=self.config.labels,
            multi_label=self.config.multi_label,
            max_len=self.config.max_len,
            too_long=self.config.too_long,
            first_token=self._first_id is not None,
            workers=self.machine.threads if takes_threads and not is_bag else 1,
            doubts=Doubts(self.known, self.config.low_confidence),
        )

    def why_no_engine(self) -> str:
        if self.weights is None or self.weights.encoder is None:
            return ""
        return why_no_engine(self.weights.encoder)

    def what_computes(self) -> str:
        if self.weights is None:
            return super().what_computes()
        if self.weights.encoder is None:
            return "NumPy, which a mean of vectors needs alone"
        return what_computes(self.weights.encoder)

    def computer(self) -> str:
        if self.weights is None:
            return super().computer()
        if self.weights.encoder is None:
            return "numpy"
        return computer_of(self.weights.encoder)

    def portrait(self) -> Portrait:
        title = f"Classification: {', '.join(self.labels[:10])}"
        use = [
            'weft classify THIS_FOLDER "A text."',
            "weft evaluate THIS_FOLDER rows.tsv",
        ]
        return Portrait(title, self._shape(), use, self._sizes())

    def _sizes(self) -> dict[str, int | str]:
        """Return the numbers of the model's shape."""
        shape = self.config.model
        kind = "encoder" if shape.num_encoder_layers else "mean"
        if kind == "encoder" and shape.ngrams > 1:
            kind = "encoder-mean"
        return {
            "kind": kind,
            "layers": shape.num_encoder_layers,
            "width": shape.d_model,
            "ngrams": shape.ngrams,
        }

    def _shape(self) -> str:
        """Say in words what the model is."""
        shape = self.config.model
        mean = "the mean" if shape.ngram_weights == "equal" else "the weighted mean"
        bag = f"{mean} of tokens"
        if shape.ngrams > 1:
            bag = f"{mean} of n-grams of up to {shape.ngrams} tokens"
        width = f"(width {shape.d_model})"
        if not shape.num_encoder_layers:
            return f"{bag.capitalize()} {width}"
        layers = counted(shape.num_encoder_layers, "layers")
        encoder = f"A Transformer encoder of {layers} {width}"
        return f"{encoder} and {bag}" if shape.ngrams > 1 else encoder

    @property
    def _first_id(self) -> int | None:
        return BOS_ID if self.config.model.pooling == "first" else None

    def _truth(self, text: LabelledText) -> npt.NDArray[Any]:
        return truth(text, self.config.labels, self.config.multi_label)


def known_labels(text: LabelledText) -> list[str]:
    """Return the different labels of a text, sorted."""
    return sorted({label for labels in text.labels for label in labels})


def truth(
    text: LabelledText, labels: Sequence[str], multi_label: bool
) -> npt.NDArray[Any]:
    """Return the class number of each text; for several labels, a row of zeros and ones each."""
    number = {label: i for i, label in enumerate(labels)}
    if not multi_label:
        return np.array([number[one] for (one,) in text.labels], dtype=np.int64)
    hot = np.zeros((len(text), len(labels)), dtype=np.float32)
    for row, some in enumerate(text.labels):
        hot[row, [number[label] for label in some]] = 1.0
    return hot


def parameters_of(config: ClassificationConfig) -> Parameters:
    """Yield the learned parameters of the model that a config describes."""
    return classifier_parameters(config.model, config.vocab_size, len(config.labels))
