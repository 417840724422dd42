"""Text in, labels out.

What a text becomes depends on that text and the settings alone, never on the other texts beside it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any, Literal, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.data.tokenizer import BOS_ID, PAD_ID, Tokenizer
from weft.errors import DivergedError
from weft.predict.text import evaluating, one_line

THRESHOLD = 0.5  # of a label among several


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
    """The label of a text and its probability; of several labels all above one half.

    `labels` and `probability` agree: for one label they are the most probable and its probability; for several,
    `probability` is the least of those given, 0.0 where none is. `truncated` says that the text was cut at the
    model's limit, `windows` into how many pieces it was read.
    """

    label: str
    labels: list[str]
    probability: float
    probabilities: dict[str, float]
    truncated: bool
    windows: int

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary."""
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
    ) -> None:
        """`max_len` tokens are read of a text, or at a time; `first_token` puts bos before each."""
        self.model, self.tokenizer = model, tokenizer
        self.labels, self.multi_label = list(labels), multi_label
        self.max_len, self.too_long, self.first_token = max_len, too_long, first_token
        self.device = torch.device(device)

    def classify(self, texts: str | Sequence[str], *, batch_tokens: int = 8192) -> list[Classification]:
        """Classify one text or several: one answer for each, in the same order.

        A text too long for the model is cut, and its answer says so; or read in windows, whose probabilities are
        averaged, as the model was trained. Raises DivergedError for a model whose output is not a number.
        """
        texts = [texts] if isinstance(texts, str) else texts
        encoded = self.tokenizer.encode_batch([one_line(text) for text in texts])
        pieces = [self._pieces(ids) for ids in encoded]
        rows = [piece for some in pieces for piece in some]
        probabilities = self._probabilities(rows, batch_tokens)
        ends = torch.tensor([len(some) for some in pieces]).cumsum(0).tolist()
        starts = [0, *ends[:-1]]
        return [
            self._answer(probabilities[start:end].mean(0), end - start, cut=len(ids) > self._read(end - start))
            for start, end, ids in zip(starts, ends, encoded, strict=True)
        ]

    def classify_stream(self, texts: Iterable[str], *, chunk: int = 1024) -> Iterator[Classification]:
        """As `classify`, `chunk` texts at a time."""
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self.classify(some) for some in chunks)

    def _pieces(self, ids: list[int]) -> list[list[int]]:
        """The rows that one text becomes; never none."""
        if self.too_long == "cut" or len(ids) <= self.max_len:
            return [ids[: self.max_len]]
        return [ids[start : start + self.max_len] for start in range(0, len(ids), self.max_len)]

    def _read(self, windows: int) -> int:
        return windows * self.max_len

    def _probabilities(self, rows: list[list[int]], batch_tokens: int) -> Float[Tensor, "rows C"]:
        first = [BOS_ID] if self.first_token else []
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        found = torch.empty(len(rows), len(self.labels), dtype=torch.float64)
        with evaluating(self.model):
            for batch in _batches(order, [len(row) + len(first) for row in rows], batch_tokens):
                logits = self.model(_padded([first + rows[i] for i in batch]).to(self.device)).double().cpu()
                found[batch] = logits.sigmoid() if self.multi_label else logits.softmax(-1)
        if not found.isfinite().all():
            raise DivergedError("the model's output is not a number; train it anew, or use an earlier checkpoint")
        return found

    def _answer(self, probabilities: Float[Tensor, " C"], windows: int, cut: bool) -> Classification:
        values = dict(zip(self.labels, probabilities.tolist(), strict=True))
        best = max(values, key=lambda label: values[label])
        labels = [label for label, p in values.items() if p >= THRESHOLD] if self.multi_label else [best]
        return Classification(
            label=", ".join(labels),
            labels=labels,
            probability=min((values[label] for label in labels), default=0.0),
            probabilities=values,
            truncated=cut,
            windows=windows,
        )


def _batches(order: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Rows of similar length together, the longest first, within the budget of padded tokens."""
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _padded(rows: list[list[int]]) -> Int[Tensor, "B L"]:
    width = max(1, *map(len, rows))
    return torch.tensor([row + [PAD_ID] * (width - len(row)) for row in rows])
