"""A language model at work on a text: its vectors, the attention of all layers and heads, and the
next tokens.

Shapes: T tokens, H heads, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.data.tokenizer import BOS_ID
from weft.engine.ngrams import beside
from weft.engine.plain import PlainTransformer, softmax
from weft.engine.record import Record
from weft.engine.weights import Floats
from weft.inspection.own_pass import language_weights
from weft.inspection.tokens import (
    HEAD,
    USUAL,
    Choice,
    Limits,
    Vectors,
    alternatives,
    chosen,
    embedded,
    rounded,
    some_text,
    stacked,
)
from weft.tasks.language_modelling import LanguageModelling

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
    decoder: Floats
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
            **HEAD,
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


def inspect_language(
    task: LanguageModelling, text: str, limits: Limits = USUAL
) -> LanguageInspection:
    """Read a text and look at the model meanwhile.

    A text of more than `limits.tokens` tokens is cut there, or where the model's window ends.
    Raises UsageError for a text with nothing in it.
    """
    (tokenizer,) = task.tokenizers
    weights = language_weights(task)
    line, ids = some_text(text, tokenizer)
    limit = min(limits.tokens, task.config.window_len)
    row = [task.predictor().start_id, *ids[: limit - 1]]
    batch = np.array([row])
    others = beside(weights, batch, len(row))
    model = PlainTransformer(weights)
    record = Record()
    states, _ = model.decode(batch, model.start(1), others, record)
    probabilities = softmax(model.output(states[0]))
    own = None if others is None else others[0]
    parts = {"ngrams": weights.ngrams, "matches": weights.matches}
    names = [name for name, part in parts.items() if part is not None]
    assert weights.tgt is not None
    pieces = tokenizer.pieces(row)
    before = probabilities[:-1]
    return LanguageInspection(
        text=line,
        lang=task.config.lang,
        ids=row,
        pieces=pieces,
        chosen=chosen(pieces[1:], row[1:], before),
        alternatives=alternatives(tokenizer, before, limits.alternatives),
        next=alternatives(tokenizer, probabilities[-1:], NUM_NEXT)[0],
        decoder=stacked(record.decoder),
        vectors=embedded(weights.tgt, weights.embedding_scale, row, limits, own, names),
        max_len=limit,
        cut=len(ids) >= limit,
        start="document" if row[0] == BOS_ID else "between",
    )
