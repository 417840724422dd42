"""A language model at work on a text: its vectors, the attention of all layers and heads, and the
next tokens.

Shapes: T tokens, H heads, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.data.tokenizer import BOS_ID
from weft.engine.ngrams import beside
from weft.engine.plain import softmax
from weft.engine.stream import language_pass
from weft.engine.weights import Floats
from weft.inspection.insides import Insides, insides_of
from weft.inspection.model_map import ModelMap, map_of_writer
from weft.inspection.own_pass import language_weights
from weft.inspection.packing import plain
from weft.inspection.tokens import (
    HEAD,
    USUAL,
    Choice,
    Limits,
    Vectors,
    alternatives,
    chosen,
    embedded,
    some_text,
    stacked,
)
from weft.inspection.vocabulary import Lexicon, Shelf, lexicon_of
from weft.tasks.language_modelling import LanguageModelling

NUM_NEXT = 20


@dataclass(frozen=True, eq=False)
class LanguageInspection:
    """A text as the model reads it.

    Pieces and ids begin with a symbol that is not of the text. `start` says what it is: the one
    that every "document" begins with, or the one that stands "between" documents.

    `chosen[t]` is token t + 1 as it stands there, `alternatives[t]` are the most probable ones at
    its place, `next` those after the last. `decoder` has the maps, of shape (layers, H, T, T): what
    the model attended to when it had read each token. Row t of the `insides` is of the token that
    comes after token t; that of the last place is the most probable one. `model` is the model's
    map, `lexicon` names tokens.
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
    insides: Insides
    model: ModelMap
    lexicon: Lexicon
    start: str = "document"

    @property
    def notes(self) -> list[str]:
        """Say what a reader must know beside it."""
        return [f"the text was cut after {self.max_len - 1} tokens"] if self.cut else []

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; weights and probabilities are rounded to four
        decimals.
        """
        found: dict[str, Any] = plain(self.to_data())
        return found

    def to_data(self) -> dict[str, Any]:
        """Return the same as a dictionary with arrays, which `weft.inspection.packing` writes."""
        return {
            **HEAD,
            "task": "language-modelling",
            "text": self.text,
            "unknown_words": None,  # a language model keeps none
            "lang": self.lang,
            "cut": self.cut,
            "start": self.start,
            "max_len": self.max_len,
            "tokens": {
                "pieces": self.pieces,
                "ids": self.ids,
                "probabilities": [c.probability for c in self.chosen],
                "alternatives": [
                    [c.to_data() for c in row] for row in self.alternatives
                ],
                "vectors": self.vectors.to_data(),
            },
            "next": [c.to_data() for c in self.next],
            "attention": {"decoder": self.decoder},
            "model": self.model.to_data(),
            **self.insides.to_data(),
            **self.lexicon.to_data(),
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
    passed = language_pass(weights, row)
    probabilities = softmax(passed.logits)
    written = [*row[1:], int(passed.logits[-1].argmax())]
    insides = insides_of(passed, written, limits)
    others = beside(weights, np.array([row]), len(row))
    own = None if others is None else others[0]
    parts = {"ngrams": weights.ngrams, "matches": weights.matches}
    names = [name for name, part in parts.items() if part is not None]
    assert weights.tgt is not None
    pieces = tokenizer.pieces(row)
    before = probabilities[:-1]
    shape = task.config.model
    named = (insides.lens.ids, insides.choices.ids)
    shelf = Shelf(tokenizer, weights.tgt.tokens, row, named)
    return LanguageInspection(
        text=line,
        lang=task.config.lang,
        ids=row,
        pieces=pieces,
        chosen=chosen(pieces[1:], row[1:], before),
        alternatives=alternatives(tokenizer, before, limits.alternatives),
        next=alternatives(tokenizer, probabilities[-1:], NUM_NEXT)[0],
        decoder=stacked(passed.record.decoder),
        vectors=embedded(weights, weights.tgt, row, limits, own, names),
        max_len=limit,
        cut=len(ids) >= limit,
        insides=insides,
        model=map_of_writer(shape, weights, shape.tie_embeddings),
        lexicon=lexicon_of({"text": shelf}, limits.nearest),
        start="document" if row[0] == BOS_ID else "between",
    )
