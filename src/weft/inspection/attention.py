"""What a translation model looks at while it translates one text: every layer, every head, every token.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
Shapes: the legend in `weft.model.attention`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from weft.data.normalize import replace_surrogates
from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from weft.errors import UsageError
from weft.model.attention import AttentionRecord
from weft.predict.text import evaluating, one_line
from weft.tasks.translation import Translation

MAX_SRC_LEN = 128  # tokens of a source that is looked at, eos counted
NUM_ALTERNATIVES = 5


@dataclass(frozen=True)
class Choice:
    """A token that could stand at one place, with its probability there."""

    piece: str
    id: int
    probability: float


@dataclass(frozen=True, eq=False)
class TranslationAttention:
    """One translation and what the model looked at.

    Source pieces and ids end with eos, target ones too, unless `finished` is False: then the translation was cut
    at its limit. `cut` says that the text was longer than `max_src_len` tokens and only its start was translated.
    `chosen[t]` is target token t as it was chosen, `alternatives[t]` are the most probable tokens at its place.

    The maps are of shape (layers, H, queries, keys); their rows sum to 1. Row t of `cross` and `decoder` is what
    the model looked at while it wrote target token t. The keys of `cross` and `encoder` are the source tokens;
    those of `decoder` are what was written before: bos at first, then target token t at key t + 1. Recurrent
    models have `cross` alone, of one layer and one head; the others are empty.
    """

    text: str
    translation: str
    src_lang: str
    tgt_lang: str
    src_ids: list[int]
    src_pieces: list[str]
    tgt_ids: list[int]
    tgt_pieces: list[str]
    chosen: list[Choice]
    alternatives: list[list[Choice]]
    encoder: Float[Tensor, "layers H S S"]
    decoder: Float[Tensor, "layers H T T"]
    cross: Float[Tensor, "layers H T S"]
    max_src_len: int
    cut: bool
    finished: bool

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary; weights and probabilities are rounded to four decimals."""
        return {
            "text": self.text,
            "translation": self.translation,
            "src_lang": self.src_lang,
            "tgt_lang": self.tgt_lang,
            "cut": self.cut,
            "max_src_len": self.max_src_len,
            "finished": self.finished,
            "source": {"pieces": self.src_pieces, "ids": self.src_ids},
            "target": {
                "pieces": self.tgt_pieces,
                "ids": self.tgt_ids,
                "probabilities": [round(c.probability, 4) for c in self.chosen],
                "alternatives": [[_choice_to_json(c) for c in row] for row in self.alternatives],
            },
            "attention": {
                "cross": _rounded(self.cross.tolist()),
                "encoder": _rounded(self.encoder.tolist()),
                "decoder": _rounded(self.decoder.tolist()),
            },
        }


def inspect_translation(task: Translation, text: str, beam_size: int | None = None) -> TranslationAttention:
    """Translate a text as `Translator` does, then look at the model once more while it writes that translation.

    A text of more than `MAX_SRC_LEN` tokens is cut there, or where the model's own limit comes first.
    Raises UsageError for a text with nothing in it or an impossible beam_size.
    """
    line = one_line(replace_surrogates(text))
    ids = task.tokenizers[0].encode(line)
    if not line or not ids:
        raise UsageError("there is no text to inspect; give a sentence")
    limit = min(MAX_SRC_LEN, task.config.max_src_len, task.model.max_len)
    row = [*ids[: limit - 1], EOS_ID]
    with evaluating(task.model):
        found = task.predictor().search(row, beam_size)
        tgt_ids = [*found.ids, EOS_ID] if found.finished else found.ids
        record, probabilities = _look(task, row, tgt_ids)
    pieces = task.tokenizers[1].pieces(tgt_ids)
    return TranslationAttention(
        text=line,
        translation=one_line(task.tokenizers[1].decode(found.ids)),
        src_lang=task.config.src_lang,
        tgt_lang=task.config.tgt_lang,
        src_ids=row,
        src_pieces=task.tokenizers[0].pieces(row),
        tgt_ids=tgt_ids,
        tgt_pieces=pieces,
        chosen=[Choice(p, i, float(row[i])) for p, i, row in zip(pieces, tgt_ids, probabilities, strict=True)],
        alternatives=_alternatives(task.tokenizers[1], probabilities),
        encoder=_stacked(record.encoder),
        decoder=_stacked(record.decoder),
        cross=_stacked(record.cross),
        max_src_len=limit,
        cut=len(ids) >= limit,
        finished=found.finished,
    )


def _look(task: Translation, src: list[int], tgt: list[int]) -> tuple[AttentionRecord, Float[Tensor, "T V"]]:
    """One recorded forward pass over source and translation, and the probabilities at each target token."""
    record = AttentionRecord()
    rows = (torch.tensor([ids], device=task.machine.device) for ids in (src, [BOS_ID, *tgt[:-1]]))
    return record, task.model(*rows, record)[0].float().softmax(-1)


def _alternatives(tokenizer: Tokenizer, probabilities: Float[Tensor, "T V"]) -> list[list[Choice]]:
    """The most probable tokens at each place, first the most probable; of equal ones the lower id."""
    values, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    tops = zip(ids[:, :NUM_ALTERNATIVES].tolist(), values[:, :NUM_ALTERNATIVES].tolist(), strict=True)
    return [
        [Choice(tokenizer.pieces([i])[0], i, p) for i, p in zip(row_ids, row, strict=True)]
        for row_ids, row in tops
    ]


def _stacked(maps: list[Tensor]) -> Float[Tensor, "layers H L L2"]:
    """The only sentence of each layer's maps, on the processor; no layer where nothing was looked at."""
    if not maps:
        return torch.empty(0, 1, 0, 0)
    return torch.stack([layer[0].float().cpu() for layer in maps])


def _choice_to_json(choice: Choice) -> dict[str, Any]:
    return {"piece": choice.piece, "id": choice.id, "probability": round(choice.probability, 4)}


def _rounded(value: Any) -> Any:
    return [_rounded(v) for v in value] if isinstance(value, list) else round(value, 4)
