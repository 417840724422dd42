"""A language model at work on a text: its vectors, the attention of all layers and heads, and the
next tokens.

Shapes: the legend in `weft.model.attention`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from weft.data.tokenizer import BOS_ID
from weft.inspection.tokens import (
    MAX_TOKENS,
    Choice,
    Vectors,
    alternatives,
    embedded,
    rounded,
    some_text,
    stacked,
)
from weft.model.attention import AttentionRecord
from weft.model.mode import evaluating
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling

NUM_NEXT = 20


@dataclass(frozen=True, eq=False)
class LanguageInspection:
    """A text as the model reads it.

    Pieces and ids begin with a symbol that is not of the text. `start` says what it is: the one
    that every "document" begins with, or the one that stands "between" documents.

    `chosen[t]` is token t + 1 as it stands there, `alternatives[t]` are the most probable ones at
    its place, `next` those after the last. `decoder` has the maps, of shape (layers, H, T, T): what
    the model attended to when it had read each token.
    """

    text: str
    lang: str
    ids: list[int]
    pieces: list[str]
    chosen: list[Choice]
    alternatives: list[list[Choice]]
    next: list[Choice]
    decoder: Float[Tensor, "layers H T T"]
    vectors: Vectors
    max_len: int
    cut: bool
    start: str = "document"

    @property
    def notes(self) -> list[str]:
        """Say what a reader must know beside it."""
        return [f"the text was cut after {self.max_len - 1} tokens"] if self.cut else []

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; weights and probabilities are rounded to four
        decimals.
        """
        return {
            "task": "language-modelling",
            "text": self.text,
            "lang": self.lang,
            "cut": self.cut,
            "start": self.start,
            "max_len": self.max_len,
            "tokens": {
                "pieces": self.pieces,
                "ids": self.ids,
                "probabilities": [round(c.probability, 4) for c in self.chosen],
                "alternatives": [
                    [c.to_json() for c in row] for row in self.alternatives
                ],
                "vectors": self.vectors.to_json(),
            },
            "next": [c.to_json() for c in self.next],
            "attention": {"decoder": rounded(self.decoder.tolist())},
        }


def inspect_language(task: TrainableLanguageModelling, text: str) -> LanguageInspection:
    """Read a text and look at the model meanwhile.

    A text of more than `MAX_TOKENS` tokens is cut there, or where the model's window ends. Raises
    UsageError for a text with nothing in it.
    """
    (tokenizer,) = task.tokenizers
    model = task.model
    line, ids = some_text(text, tokenizer)
    limit = min(MAX_TOKENS, task.config.window_len)
    row = [task.predictor().start_id, *ids[: limit - 1]]
    record = AttentionRecord()
    with evaluating(model):
        batch = torch.tensor([row], device=task.machine.device)
        probabilities = model(batch, None, record)[0].float().softmax(-1).cpu()
        parts = {"ngrams": model.ngrams, "matches": model.matches}
        beside = {
            name: part(batch, len(row), None)
            for name, part in parts.items()
            if part is not None
        }
        vectors = embedded(model.embedding, batch, beside)
    pieces = tokenizer.pieces(row)
    return LanguageInspection(
        text=line,
        lang=task.config.lang,
        ids=row,
        pieces=pieces,
        chosen=[
            Choice(p, i, float(q[i]))
            for p, i, q in zip(pieces[1:], row[1:], probabilities[:-1], strict=True)
        ],
        alternatives=alternatives(tokenizer, probabilities[:-1]),
        next=alternatives(tokenizer, probabilities[-1:], NUM_NEXT)[0],
        decoder=stacked(record.decoder),
        vectors=vectors,
        max_len=limit,
        cut=len(ids) >= limit,
        start="document" if row[0] == BOS_ID else "between",
    )
