"""A translator at work on a text: its vectors, the attention of all layers and heads, its steps and
its beam.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
Shapes: S source and T target tokens, H heads.
"""

from dataclasses import dataclass
from typing import Any

from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Hypothesis
from weft.engine.weights import Floats
from weft.inspection.beam import BeamTree, grow_tree
from weft.inspection.insides import Insides
from weft.inspection.model_map import ModelMap
from weft.inspection.own_pass import translation_view
from weft.inspection.packing import plain
from weft.inspection.tokens import (
    HEAD,
    USUAL,
    Choice,
    Limits,
    Vectors,
    alternatives,
    chosen,
    some_text,
    unknown_notes,
    unknown_words,
)
from weft.inspection.views import Family, TranslationView
from weft.inspection.vocabulary import Lexicon, Shelf, lexicon_of
from weft.predict.alignment import (
    WordAlignment,
    align_words,
    support_by_attention,
)
from weft.predict.rows import written
from weft.predict.text import one_line
from weft.predict.words import spelled
from weft.tasks.translation import Translation


@dataclass(frozen=True, eq=False)
class TranslationInspection:
    """A translation and how the model came to it.

    Of a text that is translated in several `segments`, `text` is the first one, and all else is of
    that alone. Source pieces and ids end with eos, target ones too, unless `finished` is False:
    then the translation was cut at its limit; or `tgt_cut` is True: then it has more tokens, which
    are not looked at. `cut` says that the text was longer than `max_src_len` tokens and only its
    start was translated. `chosen[t]` is target token t as it was chosen,
    `alternatives[t]` are the most probable tokens at its place.

    The maps are of shape (layers, H, queries, keys); their rows sum to 1. Row t of `cross` and
    `decoder` is what the model attended to while it wrote target token t. The keys of `cross` and
    `encoder` are the source tokens; those of `decoder` are what was written before: bos at first,
    then target token t at key t + 1. Recurrent models have `cross` alone, of one layer and one
    head; the others are empty. `family` is the kind of model: a Transformer, or a recurrent one
    with additive or dot-product attention.

    `src_vectors` and `tgt_vectors` have a row for each source token, and for bos and each target
    token but the last. `alignment` is by what each source word wrote into the logits, of a
    recurrent model by attention. `beam` is None where the translation was given. `insides` has all
    that the model did on the way, `model` is its map, `lexicon` names tokens. `unknown_words` are
    those of the text that training never had, None where its words are not kept.
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
    encoder: Floats
    decoder: Floats
    cross: Floats
    src_vectors: Vectors
    tgt_vectors: Vectors
    beam: BeamTree | None
    alignment: WordAlignment
    max_src_len: int
    cut: bool
    finished: bool
    segments: int
    insides: Insides
    model: ModelMap
    lexicon: Lexicon
    tgt_cut: bool = False
    unknown_words: list[str] | None = None

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
        if self.tgt_cut:
            count = len(self.tgt_ids)
            notes.append(
                f"the translation is longer; what is shown is of its first {count} tokens"
            )
        return notes + unknown_notes(self.unknown_words, "the model guesses there")

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
            "task": "translation",
            "family": self.family,
            "text": self.text,
            "unknown_words": self.unknown_words,
            "translation": self.translation,
            "src_lang": self.src_lang,
            "tgt_lang": self.tgt_lang,
            "cut": self.cut,
            "max_src_len": self.max_src_len,
            "finished": self.finished,
            "tgt_cut": self.tgt_cut,
            "segments": self.segments,
            "source": {
                "pieces": self.src_pieces,
                "ids": self.src_ids,
                "vectors": self.src_vectors.to_data(),
            },
            "target": {
                "pieces": self.tgt_pieces,
                "ids": self.tgt_ids,
                "probabilities": [c.probability for c in self.chosen],
                "alternatives": [
                    [c.to_data() for c in row] for row in self.alternatives
                ],
                "vectors": self.tgt_vectors.to_data(),
            },
            "attention": {
                "cross": self.cross,
                "encoder": self.encoder,
                "decoder": self.decoder,
            },
            "beam": self.beam and self.beam.to_data(),
            "alignment": self.alignment.to_json(),
            "model": self.model.to_data(),
            **self.insides.to_data(),
            **self.lexicon.to_data(),
        }


def inspect_translation(
    task: Translation,
    text: str,
    beam_size: int | None = None,
    limits: Limits = USUAL,
    instead: Hypothesis | None = None,
) -> TranslationInspection:
    """Translate a text as `Translator` does, then look at the model once more while it writes that
    translation; of a text that is translated in several segments, only the first one.

    A segment of more than `limits.tokens` tokens is cut there, or where the model's own limit comes
    first. `instead` is a translation to look at in place of the model's own, which is then not
    searched for. Raises UsageError for a text with nothing in it or an impossible beam_size.
    """
    translator = task.predictor()
    src_tokenizer, tgt_tokenizer = task.tokenizers
    config = task.config
    segments = translator.segments(text)
    first = segments[0] if segments else ""
    line, ids = some_text(first, src_tokenizer)
    limit = min(limits.tokens, config.max_src_len, config.model.max_len)
    plain = [*ids[: limit - 1], EOS_ID]
    # what the model reads, marks before it
    row = list(translator.row_of(plain).read)
    num_marks = len(row) - len(plain)
    hypothesis = instead or translator.search(plain, beam_size)
    whole = written(hypothesis)
    tgt_ids = whole[: limits.tgt_tokens]
    tgt_in = [BOS_ID, *tgt_ids[:-1]]
    view = translation_view(task)
    maps = view.look(row, tgt_ids, limits)
    src_vectors, tgt_vectors = view.vectors(row, tgt_in, limits)
    pieces = tgt_tokenizer.pieces(tgt_ids)
    tree = None
    if instead is None:
        width = beam_size or config.decoding.beam_size
        tree = grow_tree(task, view.steps, row, width, limits)
    if translator.can_align:
        support = translator.support(plain, hypothesis)
    else:
        support = support_by_attention(maps.cross[-1].mean(0))[:, num_marks:]
    is_whole = len(tgt_ids) == len(whole)
    return TranslationInspection(
        text=line,
        translation=one_line(tgt_tokenizer.decode(hypothesis.ids)),
        src_lang=config.src_lang,
        tgt_lang=config.tgt_lang,
        src_ids=row,
        src_pieces=src_tokenizer.pieces(row),
        tgt_ids=tgt_ids,
        tgt_pieces=pieces,
        chosen=chosen(pieces, tgt_ids, maps.probabilities),
        alternatives=alternatives(
            tgt_tokenizer, maps.probabilities, limits.alternatives
        ),
        family=view.family,
        encoder=maps.encoder,
        decoder=maps.decoder,
        cross=maps.cross,
        src_vectors=src_vectors,
        tgt_vectors=tgt_vectors,
        beam=tree,
        alignment=align_words(
            support[: len(tgt_ids)],
            spelled(tgt_tokenizer, tgt_ids),
            spelled(src_tokenizer, plain),
            (hypothesis.finished and is_whole, True),
        ),
        max_src_len=limit,
        cut=len(ids) >= limit,
        finished=hypothesis.finished,
        segments=len(segments),
        insides=maps.insides,
        model=view.drawn(task),
        lexicon=_lexicon(task, view, row, tgt_ids, maps.insides, limits),
        tgt_cut=not is_whole,
        unknown_words=unknown_words(task.known, line),
    )


def _lexicon(
    task: Translation,
    view: TranslationView,
    src: list[int],
    tgt: list[int],
    insides: Insides,
    limits: Limits,
) -> Lexicon:
    src_tokenizer, tgt_tokenizer = task.tokenizers
    src_table, tgt_table = view.tables
    others = (insides.lens.ids, insides.choices.ids)
    shelves = {
        "source": Shelf(src_tokenizer, src_table, src),
        "target": Shelf(tgt_tokenizer, tgt_table, tgt, others, is_read=False),
    }
    return lexicon_of(shelves, limits.nearest)
