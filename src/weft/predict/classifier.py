"""Text in, labels out.

What a text becomes depends on that text and the settings alone, never on the other texts beside it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.data.tokenizer import BOS_ID, Tokenizer
from weft.engine.batched import padded
from weft.errors import DivergedError, OutOfMemoryError, UsageError
from weft.predict.batching import in_batches, in_halves, in_threads
from weft.predict.doubts import Doubts
from weft.predict.inside import LooksInside
from weft.predict.languages import TellsLanguages
from weft.predict.text import one_line

Ids: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.floating[Any]]
Doubles: TypeAlias = NDArray[np.float64]

THRESHOLD = 0.5  # of a label among several
# characters that are encoded together: their tokens take some hundred megabytes
_CHUNK = 2**20


class ClassifierModel(Protocol):
    """A model as a classifier needs it.

    It is in use whatever its caller does with it meanwhile: one that is being trained computes
    without dropout here.
    """

    def logits(self, ids: Ids, /) -> Floats:
        """Return the logits of each label (B, C) for texts (B, L), which are filled up with 0 on
        the right. Raises MemoryError.
        """
        ...


@dataclass(frozen=True)
class Classification:
    """The label of a text and its probability; of several labels all of at least one half.

    For one label `labels` holds the most probable alone, the first of equals. For several it may be
    empty; `label` joins them by commas, and `probability` is their least, 0.0 where there is
    none. `truncated` says that the text was cut at the model's limit, `windows` in how many
    pieces it was read. `unknown_words` are those that were never seen in training, `nothing_known`
    says that there is no other word: the label is a guess. `unsure` says that it is one, or that
    the model is less sure of it than of 19 in 20 texts of dev.
    """

    label: str
    labels: list[str]
    probability: float
    probabilities: dict[str, float]
    truncated: bool
    windows: int
    unknown_words: list[str] = field(default_factory=list)
    nothing_known: bool = False
    unsure: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return asdict(self)


class Classifier(TellsLanguages, LooksInside):
    """Classifies with a built model and its tokenizer."""

    def __init__(
        self,
        model: ClassifierModel,
        tokenizer: Tokenizer,
        *,
        labels: Sequence[str],
        multi_label: bool,
        max_len: int,
        too_long: Literal["cut", "windows"],
        first_token: bool,
        workers: int = 1,
        doubts: Doubts | None = None,
    ) -> None:
        """Set the model, its tokenizer and its labels.

        `max_len` tokens are read of a text, or at a time; `first_token` puts bos before each. So
        many `workers` read at once, if the model lets several threads use it.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.labels = list(labels)
        self.multi_label = multi_label
        self.max_len = max_len
        self.too_long = too_long
        self.first_token = first_token
        self.workers = workers
        self.doubts = doubts or Doubts()

    def classify(
        self, texts: str | Sequence[str], *, batch_tokens: int = 8192
    ) -> list[Classification]:
        """Classify one text or several: one answer for each, in the same order.

        A text too long for the model is cut, and its answer says so; or read in windows, whose
        probabilities are averaged, as the model was trained. `batch_tokens` limits the padded
        tokens that are read at a time. Raises UsageError where it is below 1, DivergedError for a
        model whose output is not a number, OutOfMemoryError where a single row does not fit into
        memory.
        """
        if batch_tokens < 1:
            raise UsageError(f"batch_tokens = {batch_tokens}: it must be at least 1")
        texts = [texts] if isinstance(texts, str) else texts
        lines = map(one_line, texts)
        return [
            answer
            for chunk in _chunks(lines)
            for answer in self._classify(chunk, batch_tokens)
        ]

    def classify_stream(
        self, texts: Iterable[str], *, chunk: int = 1024
    ) -> Iterator[Classification]:
        """Classify any number of texts as `classify` does, in the memory of `chunk` texts."""
        if chunk < 1:
            raise UsageError(f"chunk = {chunk}: it must be at least 1")
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self.classify(part) for part in chunks)

    def _classify(
        self, lines: Sequence[str], batch_tokens: int
    ) -> list[Classification]:
        encoded = self._encode(lines)
        pieces = [self._pieces(ids) for ids in encoded]
        rows = list(chain.from_iterable(pieces))
        probabilities = self._probabilities(rows, batch_tokens)
        answers: list[Classification] = []
        end = 0
        for line, ids, own in zip(lines, encoded, pieces, strict=True):
            start = end
            end += len(own)
            is_cut = len(ids) > len(own) * self.max_len
            mean = probabilities[start:end].mean(0)
            answer = self._answer(mean, len(own), is_cut)
            answers.append(self._with_doubts(line, answer))
        return answers

    def _with_doubts(self, line: str, answer: Classification) -> Classification:
        """Add the words that training never had, and whether the model is less sure than on dev."""
        known = self.doubts.known
        unknown = self.doubts.unknown_words(line)
        nothing = not line.strip()
        if known is not None:
            nothing = known.knows_nothing_of(line)
        unsure = nothing or self.doubts.is_unsure(answer.probability)
        if not (unknown or unsure):
            return answer
        return replace(
            answer, unknown_words=unknown, nothing_known=nothing, unsure=unsure
        )

    def _encode(self, lines: Sequence[str]) -> list[list[int]]:
        if len(lines) == 1 and len(lines[0]) > _CHUNK:
            return [self.tokenizer.encode_long(lines[0])]
        return self.tokenizer.encode_batch(lines)

    def _pieces(self, ids: list[int]) -> list[list[int]]:
        """Return the rows that one text becomes; never none."""
        if self.too_long == "cut" or len(ids) <= self.max_len:
            return [ids[: self.max_len]]
        return [
            ids[start : start + self.max_len]
            for start in range(0, len(ids), self.max_len)
        ]

    def _probabilities(self, rows: list[list[int]], batch_tokens: int) -> Doubles:
        """Return the probability of each label for each row, (rows, C)."""
        first = [BOS_ID] if self.first_token else []
        filled = [first + row for row in rows]
        probabilities = np.empty((len(rows), len(self.labels)))
        normalize = sigmoid if self.multi_label else softmax

        def work(batch: list[int]) -> None:
            logits = self._logits([filled[i] for i in batch])
            probabilities[batch] = normalize(logits)

        numbers = range(len(rows))
        batches = in_batches(numbers, lambda i: len(filled[i]), batch_tokens)
        in_threads(work, batches, self.workers)
        if not np.isfinite(probabilities).all():
            raise DivergedError(
                "the model's output is not a number; train it again, or use an earlier checkpoint"
            )
        return probabilities

    def _logits(self, rows: list[list[int]]) -> Doubles:
        """Return the logits of rows, (B, C); where memory does not suffice, of half of them at a
        time.
        """
        return np.concatenate(in_halves(rows, self._logits_at_once, _too_large))

    def _logits_at_once(self, rows: list[list[int]]) -> Doubles:
        logits = self.model.logits(padded(rows))
        return logits.astype(np.float64)

    def _answer(
        self, probabilities: Doubles, windows: int, cut: bool
    ) -> Classification:
        values = dict(zip(self.labels, probabilities.tolist(), strict=True))
        if self.multi_label:
            labels = [label for label, p in values.items() if p >= THRESHOLD]
        else:
            labels = [max(values, key=lambda label: values[label])]
        return Classification(
            label=", ".join(labels),
            labels=labels,
            probability=min((values[label] for label in labels), default=0.0),
            probabilities=values,
            truncated=cut,
            windows=windows,
        )


def softmax(logits: Doubles) -> Doubles:
    """Return the probabilities of each row (B, C), one of which holds; NaN without numbers."""
    with np.errstate(invalid="ignore"):
        best = logits.max(-1, keepdims=True)
        powers = np.exp(logits - best)
        return powers / powers.sum(-1, keepdims=True)


def sigmoid(logits: Doubles) -> Doubles:
    """Return the probability of each label (B, C), each of which holds or not."""
    # the exponential of a negative number is never infinite
    power = np.exp(-np.abs(logits))
    of_size = 1 / (1 + power)
    return np.where(logits >= 0, of_size, power * of_size)


def _too_large(row: list[int]) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"no memory to classify {len(row)} tokens; train with a smaller data.max_len"
    )


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in lists of up to _CHUNK characters; a text of more is alone."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        if chunk and size + len(text) > _CHUNK:
            yield chunk
            chunk = []
            size = 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk
