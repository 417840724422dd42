"""Translation with a model in a folder: its tokenizers, its engine and its scores."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from weft.config import (
    LimitingKey,
    PairsSection,
    RecurrentSection,
    TranslationRecipe,
)
from weft.data.check.finding import counted
from weft.data.check.language_identification import wrong_way_round
from weft.data.corpus import ParallelText, read_pairs
from weft.data.directions import Direction, choose_pair, describe, read_directions
from weft.data.glossary import Glossary
from weft.data.known import KnownWords
from weft.data.languages import direction
from weft.data.marks import marks_among
from weft.data.overlap import TextHashes
from weft.data.texts import Sources, Texts, gather_pairs
from weft.data.tokenizer import Tokenizer
from weft.data.train_text import parse_texts
from weft.decoding.shortlist import Shortlist
from weft.engine.bindings import (
    computer_of,
    engine_of,
    what_computes,
    why_no_engine,
)
from weft.engine.forced import forced_attention_of, forced_shares_of
from weft.engine.plain import PlainTransformer
from weft.engine.plain_steps import (
    cross_attention_of,
    source_shares_of,
    steps_of,
)
from weft.engine.weights import Weights
from weft.errors import FolderError
from weft.evaluation.metrics import (
    TranslationScores,
    mean_scores,
    pair_scores,
    translation_scores,
)
from weft.evaluation.terms import AlignedWord, TermScores, TermText, term_scores
from weft.folder import model_folder
from weft.folder.arrays import Arrays
from weft.folder.layout import WORK
from weft.folder.model_folder import (
    LogisticSection,
    QualitySection,
    StoredModel,
    TranslationConfig,
)
from weft.kernels.machine import Machine
from weft.predict.doubts import Doubts
from weft.predict.evidence import (
    OMISSION_FEATURES,
    SENTENCE_FEATURES,
    WORD_FEATURES,
)
from weft.predict.parameters import (
    Parameters,
    recurrent_parameters,
    seq2seq_parameters,
    stored_shapes,
)
from weft.predict.prediction import (
    HOW_TO_CHANGE,
    HOW_TO_END_REPETITION,
    HOW_TO_READ_ALL,
    Prediction,
)
from weft.predict.quality import Logistic, Quality
from weft.predict.rows import Member
from weft.predict.segments import RowLengths
from weft.predict.translator import Translator
from weft.predict.weights import seq2seq_weights
from weft.tasks.task import (
    Portrait,
    Task,
    config_of,
    load_known,
    load_tokenizers,
    refuse_other_size,
)

# so many sources or targets, of which so small a share differ, are rather labels
_MANY = 20
_SAME = 0.1


@dataclass(frozen=True, kw_only=True)
class Translation(Task[TranslationRecipe, ParallelText]):
    """Translation: an encoder-decoder and its two tokenizers (one object twice where joint)."""

    name: ClassVar[str] = "translation"
    unit: ClassVar[str] = "pairs"
    few_rows: ClassVar[int] = 5000
    keeps_words: ClassVar[bool] = True

    config: TranslationConfig
    tokenizers: tuple[Tokenizer, Tokenizer]
    machine: Machine
    weights: Weights | None = None
    shortlist: Shortlist | None = None
    known: KnownWords | None = None

    @classmethod
    def gather(cls, recipe: TranslationRecipe, given: Sources) -> Texts[ParallelText]:
        return gather_pairs(recipe.data, given)

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored = model_folder.open_model_folder(folder)
        config = config_of(stored, TranslationConfig, WORK[cls.name])
        tokenizers = load_both_tokenizers(stored, config)
        shapes = stored_shapes(parameters_of(config), config.weights == "int8")
        weights = weights_of(config, stored.weights(shapes))
        return cls(
            config=config,
            tokenizers=tokenizers,
            machine=machine,
            weights=weights,
            shortlist=load_shortlist(stored),
            known=load_known(stored),
        )

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Return source and target of each direction in which the model translates."""
        config = self.config
        return config.directions or ((config.src_lang, config.tgt_lang),)

    def toward(self, to: str | None, source: str | None = None) -> Self:
        """Return the model as it translates into one of its languages; None: as it is.

        Where it does so from several, `source` says from which. Raises UsageError where it does not
        know the direction.
        """
        if to is None:
            return self
        src_lang, tgt_lang = choose_pair(self.directions, to, source)
        chosen = {"src_lang": src_lang, "tgt_lang": tgt_lang, "directions": ()}
        return replace(self, config=self.config.model_copy(update=chosen))

    def read(self, data: Sequence[str]) -> ParallelText:
        if self.config.directions:
            return read_directions(parse_texts(data), PairsSection(directions="each"))
        return read_pairs(data, self.config.src_lang, self.config.tgt_lang)

    def evaluate(self, text: ParallelText, **decoding: Any) -> TranslationScores:
        """Translate the sources and score them; `decoding` as `Translator.translate` takes it."""
        return self.scores_of(text, self.translated(text, **decoding))

    def translated(self, text: ParallelText, **decoding: Any) -> list[Prediction]:
        """Translate the sources of a text, each into the language of its target."""
        found: dict[int, Prediction] = {}
        for model, rows, sources in each_direction(self.predictor(), text):
            found |= zip(rows, model.translate(sources, **decoding), strict=True)
        return [found[row] for row in range(len(text))]

    def scores_of(
        self, text: ParallelText, predictions: Sequence[Prediction]
    ) -> TranslationScores:
        """Return the scores of translations of the sources, with notes on what was cut."""
        translations = [prediction.text for prediction in predictions]
        scores = self.scores_of_texts(text, translations)
        return replace(
            scores,
            notes=(*scores.notes, *_cut_notes(predictions, self.config.limiting_key)),
        )

    def scores_of_texts(
        self, text: ParallelText, translations: Sequence[str]
    ) -> TranslationScores:
        """Return the scores of translations that are no more than text.

        The references are compared in the form that the model writes.
        """
        if len(text.directions) > 1:
            return self._scores_of_each(text, translations)
        writers = self.tokenizers[1:]
        references = in_forms_of(writers, text.tgt)
        language = text.tgt_lang if self.config.directions else self.config.tgt_lang
        scores = translation_scores(translations, references, language)
        notes = (*scores.notes, *form_notes(writers, text.tgt))
        return replace(scores, notes=notes)

    def _scores_of_each(
        self, text: ParallelText, translations: Sequence[str]
    ) -> TranslationScores:
        """Return the scores of each direction, and their means."""
        found = {}
        for pair in text.directions:
            written = [translations[row] for row in text.rows_of(pair)]
            found[direction(*pair)] = self.scores_of_texts(text.of(pair), written)
        return mean_scores(found)

    def term_scores(
        self, text: ParallelText, predictions: Sequence[Prediction], glossary: Glossary
    ) -> TermScores:
        """Return what became of a glossary's terms; with alignments their places are better known.

        The references are compared in the form that the model writes.
        """
        references = in_forms_of(self.tokenizers[1:], text.tgt)
        texts = [
            replace(term_text(*row), where=text.where(number))
            for number, row in enumerate(
                zip(text.src, references, predictions, strict=True)
            )
        ]
        return term_scores(glossary, texts, self.config.tgt_lang)

    def computed(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the precision, and how translations are searched for."""
        search = self.config.decoding.model_dump(
            include={"beam_size", "length_penalty"}
        )
        changed = {key: value for key, value in asked.items() if value is not None}
        return {"precision": self._kind, **search, **changed}

    def doubts(self, text: ParallelText, trained_on: TextHashes | None) -> list[str]:
        """Note also sides the wrong way round, and a table of labels, which reads like pairs."""
        notes = super().doubts(text, trained_on)
        src_lang, tgt_lang = self.config.src_lang, self.config.tgt_lang
        is_one = not self.config.directions
        if is_one and (said := wrong_way_round(text, src_lang, tgt_lang)):
            notes.append(
                f"{said}; the model translates {src_lang} to {tgt_lang}: give the sides in that order"
            )
        for name, side in (("sources", text.src), ("targets", text.tgt)):
            if len(side) >= _MANY and (kinds := len(set(side))) <= _SAME * len(side):
                notes.append(
                    f"{len(side):,} {name} are but {kinds:,} different texts: are they labels?"
                )
        return notes

    @staticmethod
    def overlap_rows(text: ParallelText) -> Sequence[Sequence[str]]:
        return list(zip(text.src, text.tgt, strict=True))

    @classmethod
    def hashes(cls, text: ParallelText) -> TextHashes:
        if text.measures is None:
            return super().hashes(text)
        return TextHashes.of_hashes(text.measures.row)

    def texts_by_language(
        self, text: ParallelText
    ) -> Sequence[tuple[str, Sequence[str]]]:
        if not text.pairs:
            return [(self.config.src_lang, text.src), (self.config.tgt_lang, text.tgt)]
        by_language: dict[str, list[str]] = {}
        for pair in text.directions:
            part = text.of(pair)
            for code, side in zip(pair, (part.src, part.tgt), strict=True):
                by_language.setdefault(code, []).extend(side)
        return list(by_language.items())

    def sides(
        self, text: ParallelText
    ) -> Sequence[tuple[str, Tokenizer, Sequence[str]]]:
        src, tgt = self.tokenizers
        return [("source", src, text.src), ("target", tgt, text.tgt)]

    def predictor(self) -> Translator:
        """Return a translator: over an engine where this machine has one, else the model's own
        steps.
        """
        config = self.config
        return Translator(
            self._member(),
            *self.tokenizers,
            decoding=config.decoding,
            languages=(config.src_lang, config.tgt_lang),
            # a model of single sentences would silently drop all that follows the first
            lengths=RowLengths(
                config.max_src_len,
                config.usual_src_len,
                by_sentence=config.single_sentences,
            ),
            workers=self.machine.threads if self.machine.device == "cpu" else 1,
            utilities_of=pair_scores,
            shortlist=self.shortlist,
            uses_shortlist=config.shortlist == "on",
            least_ratio=config.least_ratio,
            doubts=Doubts(self.known, config.low_confidence, quality_of(config)),
            takes_terms=config.takes_terms,
            takes_match=config.takes_match,
            kept_forms=config.kept_forms,
            marks=config.marks,
            directions=config.directions,
        )

    def portrait(self) -> Portrait:
        src_lang, tgt_lang = self.config.src_lang, self.config.tgt_lang
        if self.config.directions:
            return self._portrait_of_several()
        use = [
            'weft translate THIS_FOLDER "A sentence."',
            f"weft evaluate THIS_FOLDER source.{src_lang},reference.{tgt_lang}",
        ]
        title = f"Translation, {direction(src_lang, tgt_lang)}"
        sizes = self._sizes()
        return Portrait(title, self._shape(sizes), use, sizes)

    def _portrait_of_several(self) -> Portrait:
        (src_lang, tgt_lang), *_ = self.directions
        use = [
            f'weft translate THIS_FOLDER --to {tgt_lang} "A sentence."',
            f"weft evaluate THIS_FOLDER source.{src_lang},reference.{tgt_lang}",
        ]
        title = f"Translation, {describe(self.directions)}"
        sizes = self._sizes()
        return Portrait(title, self._shape(sizes), use, sizes)

    def _sizes(self) -> dict[str, int | str]:
        """Return the numbers of the model's shape."""
        shape = self.config.model
        layers = f"{shape.num_encoder_layers}+{shape.num_decoder_layers}"
        if isinstance(shape, RecurrentSection):
            return {
                "kind": "recurrent",
                "layers": layers,
                "width": shape.d_hidden,
                "attention": shape.attention,
            }
        return {
            "kind": "transformer",
            "layers": layers,
            "width": shape.d_model,
            "heads": shape.num_heads,
        }

    def _shape(self, sizes: Mapping[str, int | str]) -> str:
        """Say in words what the model is."""
        layers = f"{sizes['layers']} layers (width {sizes['width']}"
        if sizes["kind"] == "recurrent":
            return f"A recurrent network of {layers}, {sizes['attention']} attention)"
        heads = counted(int(sizes["heads"]), "heads")
        return f"A Transformer of {layers}, {heads})"

    def _member(self) -> Member:
        """Return the model as the search has it: its engine where there is one, else its own steps
        in NumPy.
        """
        weights = self.weights
        assert weights is not None
        plain = PlainTransformer(weights)
        engine = engine_of(weights, self._kind)
        return Member(
            self.config.model.max_len,
            steps_of(plain),
            engine,
            forced_attention_of(engine) if engine else cross_attention_of(plain),
            forced_shares_of(engine) if engine else source_shares_of(lambda: weights),
            engine.memories.want if engine else None,
        )

    def why_no_engine(self) -> str:
        return "" if self.weights is None else why_no_engine(self.weights)

    def what_computes(self) -> str:
        if self.weights is None:
            return super().what_computes()
        return what_computes(self.weights)

    def computer(self) -> str:
        return "torch" if self.weights is None else computer_of(self.weights)

    @property
    def _kind(self) -> str:
        """Return the kind of the engine's products: int8 for an int8 folder in float32."""
        is_int8 = self.config.weights == "int8" and self.machine.precision == "float32"
        return "int8" if is_int8 else self.machine.precision


def each_direction(
    model: Translator, text: ParallelText
) -> Iterator[tuple[Translator, Sequence[int], Sequence[str]]]:
    """Yield for each direction of a text what translates so, the numbers of its pairs, and their
    sources.
    """
    if not model.directions:
        yield model, range(len(text)), text.src
        return
    for src_lang, tgt_lang in text.directions:
        rows = text.rows_of((src_lang, tgt_lang))
        sources = [text.src[row] for row in rows]
        yield model.toward(tgt_lang, src_lang), rows, sources


def in_forms_of(writers: Sequence[Tokenizer], texts: Sequence[str]) -> list[str]:
    """Return texts in the form that the writers' models give their translations, each after the
    other.

    One text may be written in several sequences of code points: an accented letter as one or as
    two, a Chinese character in full or simplified. Case and words stay, of which the signature of a
    score speaks.
    """
    formed = list(texts)
    for writer in {writer.form: writer for writer in writers}.values():
        formed = list(map(writer.in_form, formed))
    return formed


def term_text(source: str, reference: str, prediction: Prediction) -> TermText:
    """Return a translation as its terms are judged: by what the model says that their words come
    from, not by what they are demanded for.
    """
    words = None
    if prediction.words is not None:
        words = []
        for word in prediction.words:
            seen = word.looked_at if word.term else word.sources
            sources = tuple((one.start, one.end) for one in seen)
            words.append(AlignedWord(word.start, word.end, sources))
    return TermText(source, reference, prediction.text, words)


def form_notes(
    writers: Sequence[Tokenizer], references: Sequence[str]
) -> Iterator[str]:
    """Say how many references `in_forms_of` changes, if any."""
    pairs = zip(references, in_forms_of(writers, references), strict=True)
    changed = sum(before != after for before, after in pairs)
    if changed:
        forms = dict.fromkeys(writer.form for writer in writers if writer.form)
        yield (
            f"{changed:,} of {counted(len(references), 'references')} were brought to {' and '.join(forms)}, "
            "as the translations are written, before they were compared"
        )


def load_both_tokenizers(
    stored: StoredModel, config: TranslationConfig
) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of a folder, one twice where both sides share it.

    Raises FolderError where they are not the model's.
    """
    loaded = load_tokenizers(stored)
    sizes = (config.src_vocab_size, config.tgt_vocab_size)
    for tokenizer, size in zip(loaded, sizes, strict=False):
        refuse_other_size(stored, tokenizer, size)
    if marks_among(loaded[0].marks) != config.marks:
        raise FolderError(
            f"{stored.folder}: the marks of its config are not those of its tokenizer; restore the folder"
        )
    return loaded[0], loaded[-1]


def load_shortlist(stored: StoredModel) -> Shortlist | None:
    """Return the shortlist of a folder; None where it has none."""
    arrays = stored.shortlist()
    return None if arrays is None else Shortlist(**arrays)


def parameters_of(config: TranslationConfig) -> Parameters:
    """Yield the learned parameters of the model that a config describes."""
    shape = config.model
    sizes = (config.src_vocab_size, config.tgt_vocab_size)
    if isinstance(shape, RecurrentSection):
        return recurrent_parameters(shape, *sizes, config.joint)
    return seq2seq_parameters(shape, *sizes, config.joint)


def quality_of(config: TranslationConfig) -> Quality | None:
    """Return how a model estimates the quality of its translations; None where it does not.

    Raises FolderError where that needs what this version does not know.
    """
    section = config.quality
    if section is None:
        return None
    try:
        omission = None
        if section.omission is not None:
            omission = _logistic(OMISSION_FEATURES, section.omission)
        return Quality(
            _logistic(WORD_FEATURES, section.words),
            _logistic(SENTENCE_FEATURES, section.sentences),
            omission,
            section.least_omission,
        )
    except ValueError as error:
        raise FolderError(
            f"{model_folder.CONFIG}: quality: {error}; install a newer weft-text"
        ) from None


def section_of(quality: Quality) -> QualitySection:
    """Return estimates of quality in the form that a folder keeps."""

    def kept(model: Logistic, names: Sequence[str]) -> LogisticSection:
        return LogisticSection(bias=round(model.bias, 5), weights=model.named(names))

    omission = None
    if quality.omission is not None:
        omission = kept(quality.omission, OMISSION_FEATURES)
    return QualitySection(
        words=kept(quality.words, WORD_FEATURES),
        sentences=kept(quality.sentences, SENTENCE_FEATURES),
        omission=omission,
        least_omission=round(quality.least_omission, 5),
    )


def _logistic(names: Sequence[str], section: LogisticSection) -> Logistic:
    return Logistic.of(names, section.bias, section.weights)


def weights_of(config: TranslationConfig, arrays: Arrays) -> Weights:
    """Return the weights of the Transformer that a config describes, from a folder's arrays."""
    assert not isinstance(config.model, RecurrentSection)
    return seq2seq_weights(config.model, arrays)


def _cut_notes(
    predictions: Sequence[Prediction], limiting_key: LimitingKey
) -> Iterator[str]:
    """Say how many sources were cut, how many translations repeat themselves and how many others
    were cut, and what to do about it.
    """
    count = len(predictions)
    sources = sum(prediction.source_cut for prediction in predictions)
    if sources:
        yield (
            f"{sources:,} of {count:,} sources have a sentence longer than the model reads, whose end was not "
            f"translated; {HOW_TO_READ_ALL[limiting_key]}"
        )
    again = sum(prediction.repetition for prediction in predictions)
    if again:
        yield f"{again:,} of {count:,} translations say the same again and again; {HOW_TO_END_REPETITION}"
    # what repeats itself goes on up to any limit
    others = [one for one in predictions if not one.repetition]
    limits = Counter(prediction.output_limit for prediction in others)
    for limit in HOW_TO_CHANGE:
        number = limits[limit]
        if not number:
            continue
        yield (
            f"{number:,} of {count:,} translations came to no end and were cut at their limit; "
            f"{HOW_TO_CHANGE[limit]}"
        )
