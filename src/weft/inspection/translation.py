"""A translator at work on a text: its vectors, the attention of all layers and heads, its steps and
its beam.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
Shapes: the legend in `weft.model.attention`.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.inspection.beam import BeamTree, grow_tree
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
from weft.model.recurrent import DotAttention, Seq2SeqRecurrent
from weft.predict.alignment import WordAlignment, align_words
from weft.predict.text import one_line
from weft.tasks.trainable_translation import TrainableTranslation

Family: TypeAlias = Literal["transformer", "additive", "dot"]


@dataclass(frozen=True, eq=False)
class TranslationInspection:
    """A translation and how the model came to it.

    Of a text that is translated in several `segments`, `text` is the first one, and all else is of
    that alone. Source pieces and ids end with eos, target ones too, unless `finished` is False:
    then the translation was cut at its limit. `cut` says that it was longer than `max_src_len`
    tokens and only its start was translated. `chosen[t]` is target token t as it was chosen,
    `alternatives[t]` are the most probable tokens at its place.

    The maps are of shape (layers, H, queries, keys); their rows sum to 1. Row t of `cross` and
    `decoder` is what the model attended to while it wrote target token t. The keys of `cross` and
    `encoder` are the source tokens; those of `decoder` are what was written before: bos at first,
    then target token t at key t + 1. Recurrent models have `cross` alone, of one layer and one
    head; the others are empty. `family` is the kind of model: a Transformer, or a recurrent one
    with additive or dot-product attention.

    `src_vectors` and `tgt_vectors` have a row for each source token, and for bos and each target
    token but the last. `alignment` is that of the decoder's last layer, the mean of its heads.
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
    family: Family
    encoder: Float[Tensor, "layers H S S"]
    decoder: Float[Tensor, "layers H T T"]
    cross: Float[Tensor, "layers H T S"]
    src_vectors: Vectors
    tgt_vectors: Vectors
    beam: BeamTree
    alignment: WordAlignment
    max_src_len: int
    cut: bool
    finished: bool
    segments: int

    @property
    def notes(self) -> list[str]:
        """Say what a reader must know beside it."""
        shown = "what is shown, the translation too, is of"
        notes = []
        if self.segments > 1:
            notes.append(
                f"the text is translated in {self.segments} segments; {shown} the first alone"
            )
        if self.cut:
            count = self.max_src_len - 1
            notes.append(f"the text was cut after {count} tokens; {shown} these alone")
        if not self.finished:
            notes.append("the translation found no end and was cut at its limit")
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; weights and probabilities are rounded to four
        decimals.
        """
        return {
            "task": "translation",
            "family": self.family,
            "text": self.text,
            "translation": self.translation,
            "src_lang": self.src_lang,
            "tgt_lang": self.tgt_lang,
            "cut": self.cut,
            "max_src_len": self.max_src_len,
            "finished": self.finished,
            "segments": self.segments,
            "source": {
                "pieces": self.src_pieces,
                "ids": self.src_ids,
                "vectors": self.src_vectors.to_json(),
            },
            "target": {
                "pieces": self.tgt_pieces,
                "ids": self.tgt_ids,
                "probabilities": [round(c.probability, 4) for c in self.chosen],
                "alternatives": [
                    [c.to_json() for c in row] for row in self.alternatives
                ],
                "vectors": self.tgt_vectors.to_json(),
            },
            "attention": {
                "cross": rounded(self.cross.tolist()),
                "encoder": rounded(self.encoder.tolist()),
                "decoder": rounded(self.decoder.tolist()),
            },
            "beam": self.beam.to_json(),
            "alignment": self.alignment.to_json(),
        }


def inspect_translation(
    task: TrainableTranslation, text: str, beam_size: int | None = None
) -> TranslationInspection:
    """Translate a text as `Translator` does, then look at the model once more while it writes that
    translation; of a text that is translated in several segments, only the first one.

    A segment of more than `MAX_TOKENS` tokens is cut there, or where the model's own limit comes
    first. Raises UsageError for a text with nothing in it or an impossible beam_size.
    """
    translator = task.predictor()
    segments = translator.segments(text)
    first = segments[0] if segments else ""
    line, ids = some_text(first, task.tokenizers[0])
    limit = min(MAX_TOKENS, task.config.max_src_len, task.model.max_len)
    row = [*ids[: limit - 1], EOS_ID]
    with evaluating(task.model):
        hypothesis = translator.search(row, beam_size)
        tgt_ids = hypothesis.ids
        if hypothesis.finished:
            tgt_ids = [*tgt_ids, EOS_ID]
        record, probabilities = _record(task, row, tgt_ids)
        vectors = _vectors(task, row, [BOS_ID, *tgt_ids[:-1]])
        beam = grow_tree(task, row, beam_size or task.config.decoding.beam_size)
    src_tokenizer, tgt_tokenizer = task.tokenizers
    pieces = tgt_tokenizer.pieces(tgt_ids)
    cross = stacked(record.cross)
    src_spelled = [src_tokenizer.spell([i], begins=False) for i in row]
    spelled = [tgt_tokenizer.spell([i], begins=False) for i in tgt_ids]
    ends = hypothesis.finished, True
    return TranslationInspection(
        text=line,
        translation=one_line(tgt_tokenizer.decode(hypothesis.ids)),
        src_lang=task.config.src_lang,
        tgt_lang=task.config.tgt_lang,
        src_ids=row,
        src_pieces=src_tokenizer.pieces(row),
        tgt_ids=tgt_ids,
        tgt_pieces=pieces,
        chosen=[
            Choice(p, i, float(row[i]))
            for p, i, row in zip(pieces, tgt_ids, probabilities, strict=True)
        ],
        alternatives=alternatives(tgt_tokenizer, probabilities),
        family=_family(task),
        encoder=stacked(record.encoder),
        decoder=stacked(record.decoder),
        cross=cross,
        src_vectors=vectors[0],
        tgt_vectors=vectors[1],
        beam=beam,
        alignment=align_words(cross[-1].mean(0).numpy(), spelled, src_spelled, ends),
        max_src_len=limit,
        cut=len(ids) >= limit,
        finished=hypothesis.finished,
        segments=len(segments),
    )


def _family(task: TrainableTranslation) -> Family:
    if not isinstance(task.model, Seq2SeqRecurrent):
        return "transformer"
    return "dot" if isinstance(task.model.attention, DotAttention) else "additive"


def _record(
    task: TrainableTranslation, src: list[int], tgt: list[int]
) -> tuple[AttentionRecord, Float[Tensor, "T V"]]:
    """Run the model once over source and translation, and record its attention.

    Returns also the probabilities at each target token.
    """
    record = AttentionRecord()
    src_batch = torch.tensor([src], device=task.machine.device)
    tgt_in = torch.tensor([[BOS_ID, *tgt[:-1]]], device=task.machine.device)
    logits = task.model(src_batch, tgt_in, record)
    return record, logits[0].float().softmax(-1)


def _vectors(
    task: TrainableTranslation, src: list[int], tgt_in: list[int]
) -> tuple[Vectors, Vectors]:
    rows = [torch.tensor([ids], device=task.machine.device) for ids in (src, tgt_in)]
    model = task.model
    if isinstance(model, Seq2SeqRecurrent):
        tables = (model.src_embedding, model.tgt_embedding)
        src_part, tgt_part = (
            Vectors((table(row)[0] * model.scale).float().cpu(), None)
            for table, row in zip(tables, rows, strict=True)
        )
        return src_part, tgt_part
    src_part = embedded(model.src_embedding, rows[0])
    tgt_part = embedded(model.tgt_embedding, rows[1])
    return src_part, tgt_part
