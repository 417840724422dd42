"""Text in, labels out.

What a text becomes depends on that text and the settings alone, never on the other texts beside it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, chain, islice, pairwise
from typing import Any, Literal, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.data.known import KnownWords
from weft.data.tokenizer import BOS_ID, Tokenizer
from weft.errors import DivergedError, OutOfMemoryError, UsageError
from weft.predict.batching import in_batches, in_halves, padded
from weft.predict.text import evaluating, one_line

THRESHOLD = 0.5  # of a label among several
# characters that are encoded together: their tokens take some hundred megabytes
_CHUNK = 2**20


class ClassifierModel(Protocol):
    """What a classifier asks of a model: one row of logits a text, padding is 0."""

    training: bool

    def train(self, mode: bool = True) -> Any:
        """As `torch.nn.Module.train`."""
        ...

    def __call__(self, ids: Int[Tensor, "B L"], /) -> Float[Tensor, "B C"]:
        """Logits of each label."""
        ...


@dataclass(frozen=True)
class Classification:
    """The label of a text and its probability; of several labels all of at least one half.

    For one label `labels` holds the most probable alone, the first of equals. For several it may be
    empty; `label` joins them by commas, and `probability` is the least of theirs, 0.0 where there
    is none. `truncated` says that the text was cut at the model's limit, `windows` in how many
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


class Classifier:
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
        device: torch.device | str = "cpu",
        known: KnownWords | None = None,
        low_confidence: float | None = None,
    ) -> None:
        """`max_len` tokens are read of a text, or at a time; `first_token` puts bos before each.

        `known` are the words of the training text; below a probability of `low_confidence` an
        answer is unsure.
        """
        self.model, self.tokenizer = model, tokenizer
        self.labels, self.multi_label = list(labels), multi_label
        self.max_len, self.too_long, self.first_token = max_len, too_long, first_token
        self.device = torch.device(device)
        self.known, self.low_confidence = known, low_confidence

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
        lines = (
            one_line(text) for text in ([texts] if isinstance(texts, str) else texts)
        )
        return [
            answer
            for some in _chunks(lines)
            for answer in self._classify(some, batch_tokens)
        ]

    def classify_stream(
        self, texts: Iterable[str], *, chunk: int = 1024
    ) -> Iterator[Classification]:
        """As `classify`, `chunk` texts at a time: any number of texts in the memory of one
        chunk.
        """
        if chunk < 1:
            raise UsageError(f"chunk = {chunk}: it must be at least 1")
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self.classify(some) for some in chunks)

    def _classify(
        self, lines: Sequence[str], batch_tokens: int
    ) -> list[Classification]:
        encoded = self._encode(lines)
        pieces = [self._pieces(ids) for ids in encoded]
        found = self._probabilities(
            [piece for some in pieces for piece in some], batch_tokens
        )
        ends = accumulate(map(len, pieces), initial=0)
        return [
            self._with_doubts(
                line,
                self._answer(
                    found[start:end].mean(0),
                    end - start,
                    len(ids) > (end - start) * self.max_len,
                ),
            )
            for (start, end), ids, line in zip(
                pairwise(ends), encoded, lines, strict=True
            )
        ]

    def _with_doubts(self, line: str, answer: Classification) -> Classification:
        """With the words that training never had, and whether the model is less sure than on
        dev.
        """
        unknown = self.known.unknown(line) if self.known is not None else []
        nothing = (
            not line.strip()
            if self.known is None
            else self.known.knows_nothing_of(line)
        )
        unsure = nothing or (
            self.low_confidence is not None and answer.probability < self.low_confidence
        )
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

    def _probabilities(
        self, rows: list[list[int]], batch_tokens: int
    ) -> Float[Tensor, "rows C"]:
        first = [BOS_ID] if self.first_token else []
        found = torch.empty(len(rows), len(self.labels), dtype=torch.float64)
        widths = [len(first) + len(row) for row in rows]
        with evaluating(self.model):
            for batch in in_batches(range(len(rows)), widths.__getitem__, batch_tokens):
                logits = self._logits([first + rows[i] for i in batch])
                found[batch] = (
                    logits.sigmoid() if self.multi_label else logits.softmax(-1)
                )
        if not found.isfinite().all():
            raise DivergedError(
                "the model's output is not a number; train it anew, or use an earlier checkpoint"
            )
        return found

    def _logits(self, rows: list[list[int]]) -> Float[Tensor, "B C"]:
        """Return the logits of rows; where memory does not suffice, of half of them at a time."""
        return torch.cat(in_halves(rows, self._logits_at_once, _too_large))

    def _logits_at_once(self, rows: list[list[int]]) -> Float[Tensor, "B C"]:
        return self.model(padded(rows).to(self.device)).double().cpu()

    def _answer(
        self, probabilities: Float[Tensor, " C"], windows: int, cut: bool
    ) -> Classification:
        values = dict(zip(self.labels, probabilities.tolist(), strict=True))
        best = max(values, key=lambda label: values[label])
        labels = (
            [label for label, p in values.items() if p >= THRESHOLD]
            if self.multi_label
            else [best]
        )
        return Classification(
            label=", ".join(labels),
            labels=labels,
            probability=min((values[label] for label in labels), default=0.0),
            probabilities=values,
            truncated=cut,
            windows=windows,
        )


def _too_large(row: list[int]) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"no memory to classify {len(row)} tokens; train with a smaller data.max_len"
    )


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts in lists of bounded size; one of more than _CHUNK characters is alone."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        if chunk and size + len(text) > _CHUNK:
            yield chunk
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk
