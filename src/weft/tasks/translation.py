"""Translation: an encoder-decoder, its two tokenizers, its loss and its scores, bound plainly."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor

from weft.config import (
    LimitingKey,
    RecurrentSection,
    TokenizerSection,
    TranslationRecipe,
)
from weft.data.batches import Batch, Batches, padded_batches
from weft.data.check.finding import counted
from weft.data.check.language_identification import wrong_way_round
from weft.data.corpus import ParallelText, read_pairs
from weft.data.known import KnownWords
from weft.data.languages import UNKNOWN, direction, how_to_name
from weft.data.overlap import TextHashes
from weft.data.segment import split_sentences
from weft.data.store import ParallelStore, prepare_store
from weft.data.texts import Sources, Texts, gather_pairs
from weft.data.tokenizer import PAD_ID, Tokenizer, build_tokenizers
from weft.decoding.decoder import Engine
from weft.decoding.shortlist import Shortlist
from weft.engine.from_model import build_engine, is_sharded, why_no_engine
from weft.errors import UsageError
from weft.evaluation.metrics import (
    TranslationScores,
    pair_scores,
    perplexity,
    translation_scores,
)
from weft.folder import model_folder
from weft.folder.layout import WORK
from weft.folder.model_folder import FolderConfig, RunFolder, TranslationConfig
from weft.kernels.machine import Machine
from weft.model.attention import AttentionRecord
from weft.model.flops import Cost, seq2seq_cost
from weft.model.recurrent import Seq2SeqRecurrent
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.alignment import Floats, Ids
from weft.predict.doubts import Doubts
from weft.predict.prediction import HOW_TO_CHANGE, HOW_TO_READ_ALL, Prediction
from weft.predict.rows import Member
from weft.predict.segments import RowLengths
from weft.predict.translator import LONG_SOURCE, Translator
from weft.recipes.file import with_values
from weft.tasks.task import (
    Portrait,
    Prepared,
    Task,
    config_knowing,
    config_of,
    keep_model_of,
    keep_samples,
    load_into,
    load_known,
    load_tokenizers,
    refuse_other_kind,
    refuse_other_size,
)
from weft.training.loss import CrossEntropy, LossSums, twice

Seq2Seq = Seq2SeqTransformer | Seq2SeqRecurrent
_NEARLY_ALL = 0.95  # share of single sentences
_ENOUGH_LONG = 100  # pairs that say which ratio of lengths is usual
SAMPLED = 5000  # sources that say how long they usually are; at most twice as many
# so many sources or targets, of which so small a share differ, are rather labels
_MANY = 20
_SAME = 0.1


@dataclass(frozen=True)
class Translation(Task[TranslationRecipe, ParallelText, Batch]):
    """Translation: an encoder-decoder, its two tokenizers (one object twice where joint), and its
    loss.
    """

    name: ClassVar[str] = "translation"
    unit: ClassVar[str] = "pairs"
    few_rows: ClassVar[int] = 5000
    keeps_words: ClassVar[bool] = True
    has_int8: ClassVar[bool] = True

    config: TranslationConfig
    tokenizers: tuple[Tokenizer, Tokenizer]
    model: Seq2Seq
    machine: Machine
    loss: CrossEntropy
    shortlist: Shortlist | None = None
    known: KnownWords | None = None

    @classmethod
    def gather(cls, recipe: TranslationRecipe, given: Sources) -> Texts[ParallelText]:
        return gather_pairs(recipe.data, given)

    @classmethod
    def resolve(
        cls,
        recipe: TranslationRecipe,
        texts: Texts[ParallelText],
        start: FolderConfig | None,
        where: str,
    ) -> TranslationRecipe:
        langs = [texts.train.src_lang, texts.train.tgt_lang]
        if start is None:
            return with_values(
                recipe, {"data.src_lang": langs[0], "data.tgt_lang": langs[1]}
            )
        assert isinstance(start, TranslationConfig)
        own = [start.src_lang, start.tgt_lang]
        if any(
            lang not in (UNKNOWN, known) for lang, known in zip(langs, own, strict=True)
        ):
            raise UsageError(
                f"{where} translates {' to '.join(own)}, the text is {' to '.join(langs)}; "
                "give text in its languages"
            )
        recipe = with_values(recipe, {"data.src_lang": own[0], "data.tgt_lang": own[1]})
        return keep_model_of(recipe, start, where)

    @classmethod
    def learn_tokenizers(
        cls, recipe: TranslationRecipe, texts: Texts[ParallelText]
    ) -> tuple[Tokenizer, ...]:
        return build_tokenizers(recipe.tokenizer, texts.train.src, texts.train.tgt)

    @classmethod
    def build(
        cls,
        recipe: TranslationRecipe,
        texts: Texts[ParallelText],
        tokenizers: tuple[Tokenizer, ...],
        machine: Machine,
    ) -> Self:
        src, tgt = tokenizers
        joint = src is tgt
        config = TranslationConfig(
            weft_version=model_folder.VERSION,
            task="translation",
            src_lang=str(recipe.data.src_lang),
            tgt_lang=str(recipe.data.tgt_lang),
            joint=joint,
            src_vocab_size=src.vocab_size,
            tgt_vocab_size=tgt.vocab_size,
            max_src_len=(most := min(recipe.data.max_len + 1, recipe.model.max_len)),
            usual_src_len=_usual_len(texts.train.src, src, most),
            single_sentences=_are_single(texts.train.src),
            least_ratio=_least_ratio(texts.train, src, tgt),
            model=recipe.model,
            tokenizer=TokenizerSection(joint=joint, src=src.settings, tgt=tgt.settings),
            tokenizer_steps={**src.steps, **tgt.steps},
            weights="float32",
            shortlist="none",
            decoding=recipe.decoding,
        )
        torch.manual_seed(recipe.training.seed)
        model = _build_model(config).to(machine.prepare())
        settings = recipe.training
        loss = CrossEntropy(settings.label_smoothing, PAD_ID, settings.r_drop)
        return cls(config, (src, tgt), model, machine, loss)

    @classmethod
    def untrained(
        cls, config: FolderConfig, tokenizers: tuple[Tokenizer, ...], machine: Machine
    ) -> Self:
        src, tgt = tokenizers
        own = refuse_other_kind(config, TranslationConfig)
        model = _build_model(own).to(machine.prepare())
        return cls(own, (src, tgt), model, machine, CrossEntropy())

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored = model_folder.open_model_folder(folder)
        config = config_of(stored, TranslationConfig, WORK[cls.name])
        loaded = load_tokenizers(stored)
        for tokenizer, size in zip(
            loaded, (config.src_vocab_size, config.tgt_vocab_size), strict=False
        ):
            refuse_other_size(stored, tokenizer, size)
        model = load_into(stored, lambda: _build_model(config), machine)
        arrays = model_folder.read_shortlist(folder, config)
        shortlist = None
        if arrays:
            by_name = {name: array.numpy() for name, array in arrays.items()}
            shortlist = Shortlist(**by_name)
        return cls(
            config,
            (loaded[0], loaded[-1]),
            model,
            machine,
            CrossEntropy(),  # in use nothing is smoothed
            shortlist,
            load_known(stored),
        )

    def prepare(
        self, stores: Path, texts: Texts[ParallelText], recipe: TranslationRecipe
    ) -> Prepared[Batch]:
        store = self._store(stores, "train", texts.train, texts)
        size, seed = recipe.batches, recipe.training.seed
        batches = Batches(store, size.tokens_per_batch, size.batch_size, seed)
        lost = (
            f"left out of training: {counted(n, 'pairs')} ({why})"
            for why, n in store.dropped.items()
            if n
        )
        notes = (*lost, *self.kernel_notes())
        return Prepared(batches, self._describe(store), notes)

    def compute_loss(self, batch: Batch) -> LossSums:
        device = torch.device(self.machine.device)
        sides: tuple[Tensor, ...] = (batch.src, batch.tgt_in, batch.tgt_out)
        sides = twice(*sides) if self.loss.r_drop else sides
        src, tgt_in, tgt_out = (ids.to(device) for ids in sides)
        with self.machine.autocast():
            states = self.model.states(src, tgt_in)
            return self.loss(states, self.model.output, tgt_out, self.model.projection)

    def flops(self, batch: Batch) -> float:
        cost = self._cost.of(
            (batch.src != PAD_ID).sum(1), (batch.tgt_out != PAD_ID).sum(1)
        )
        return 2 * cost if self.loss.r_drop else cost

    @cached_property
    def _cost(self) -> Cost:
        """Return what training costs; nothing is counted for a recurrent model.

        Its layers take one token after another, far from any peak.
        """
        return (
            seq2seq_cost(self.model)
            if isinstance(self.model, Seq2SeqTransformer)
            else Cost()
        )

    def mean_loss(self, store: ParallelStore, tokens_per_batch: int = 4096) -> float:
        """Compute the unsmoothed cross-entropy in nats a target token, the end symbol counted."""
        plain = replace(self, loss=CrossEntropy())
        with torch.inference_mode():
            sums = [
                plain.compute_loss(batch)
                for batch in padded_batches(store, tokens_per_batch)
            ]
        return sum(float(s.nll_sum) for s in sums) / max(
            sum(s.num_tokens for s in sums), 1
        )

    def dev_evaluation(
        self, files: RunFolder, texts: Texts[ParallelText], recipe: TranslationRecipe
    ) -> "DevEvaluation | None":
        if texts.dev is None:
            return None
        store = self._store(files.stores, "dev", texts.dev, texts)
        return DevEvaluation(
            self, texts.dev, store, files.samples, recipe.training.num_samples
        )

    def read(self, data: Sequence[str]) -> ParallelText:
        return read_pairs(data, self.config.src_lang, self.config.tgt_lang)

    def evaluate(self, text: ParallelText, **decoding: Any) -> TranslationScores:
        """Translate the sources and score them; `decoding` as `Translator.translate` takes it."""
        return self.scores_of(text, self.predictor().translate(text.src, **decoding))

    def score_piece(self, text: ParallelText, rows: int, on_dev: bool) -> None:
        """Estimate the seconds of scoring, with translations as long as the sources.

        What a model writes that has learned nothing has no end.
        """
        short = self.config.decoding.model_copy(
            update={"max_len_ratio": 1.0, "max_len_extra": 2}
        )
        brief = replace(self, config=self.config.model_copy(update={"decoding": short}))
        brief.evaluate(text.select(range(rows)), **({"beam_size": 1} if on_dev else {}))

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
        """Return the scores of translations that are no more than text."""
        return translation_scores(translations, text.tgt, self.config.tgt_lang)

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
        if said := wrong_way_round(text, src_lang, tgt_lang):
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

    def sides(
        self, text: ParallelText
    ) -> Sequence[tuple[str, Tokenizer, Sequence[str]]]:
        src, tgt = self.tokenizers
        return [("source", src, text.src), ("target", tgt, text.tgt)]

    def knowing(self, known: KnownWords | None, low_confidence: float | None) -> Self:
        return replace(
            self, config=config_knowing(self.config, known, low_confidence), known=known
        )

    def predictor(self) -> Translator:
        """Return a translator: over an engine where this machine has one, else the model's own
        steps.
        """
        config = self.config
        device = torch.device(self.machine.device)
        return Translator(
            Member(self.model, device, self._engine(), self.cross_attention),
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
            utilities=pair_scores(config.tgt_lang),
            shortlist=self.shortlist,
            uses_shortlist=config.shortlist == "on",
            least_ratio=config.least_ratio,
            doubts=Doubts(self.known, config.low_confidence),
        )

    def portrait(self) -> Portrait:
        src_lang, tgt_lang = self.config.src_lang, self.config.tgt_lang
        use = [
            'weft translate THIS_FOLDER "A sentence."',
            f"weft evaluate THIS_FOLDER source.{src_lang},reference.{tgt_lang}",
        ]
        title = f"Translation, {direction(src_lang, tgt_lang)}"
        return Portrait(title, self._shape(), use)

    def _shape(self) -> str:
        """Say in words what the model is."""
        shape = self.config.model
        layers = f"{shape.num_encoder_layers}+{shape.num_decoder_layers}"
        if isinstance(shape, RecurrentSection):
            return f"A recurrent network of {layers} layers (width {shape.d_hidden}, {shape.attention} attention)"
        heads = counted(shape.num_heads, "heads")
        return f"A Transformer of {layers} layers (width {shape.d_model}, {heads})"

    def _engine(self) -> Engine | None:
        """Return the native engine; None where PyTorch decodes, as on a GPU."""
        if (
            not isinstance(self.model, Seq2SeqTransformer)
            or is_sharded(self.model)
            or self.machine.plain
        ):
            return None
        return build_engine(self.model, self.machine.device, self._kind)

    def cross_attention(self, src: Ids, tgt_in: Ids) -> Floats:
        """Return the last layer's cross-attention (B, T, S) after each target token, the mean of
        its heads.
        """
        record = AttentionRecord()
        model: Any = self.model  # of two kinds, each with a cache of its own
        device = self.machine.device
        cache = model.prefill(torch.from_numpy(src).to(device))
        model.decode(torch.from_numpy(tgt_in).to(device), cache, record)
        mean = record.cross[-1].mean(1)  # B H T S -> B T S
        return cast(Floats, mean.float().cpu().numpy())

    def why_no_engine(self) -> str:
        """Say why this CPU translates without an engine; "" where none is missing or wanted."""
        model = self.model
        if not isinstance(model, Seq2SeqTransformer) or self.machine.plain:
            return ""
        return why_no_engine(model, self.machine.device, self._kind)

    @property
    def _kind(self) -> str:
        """Return the kind of the engine's products: int8 for an int8 folder in float32."""
        is_int8 = self.config.weights == "int8" and self.machine.precision == "float32"
        return "int8" if is_int8 else self.machine.precision

    def _store(
        self, stores: Path, name: str, text: ParallelText, texts: Texts[ParallelText]
    ) -> ParallelStore:
        return prepare_store(
            stores,
            name,
            (text.src, text.tgt),
            self.tokenizers,
            max_len=self.config.max_src_len - 1,
            limiting_key=self.config.limiting_key,
            text_key=texts.fingerprint(text),
        )

    def _describe(self, store: ParallelStore) -> str:
        config, side = self.config, self.config.tokenizer
        kinds = (
            f"joint {side.src.kind}"
            if config.joint
            else f"{side.src.kind} to {side.tgt.kind}"
        )
        sizes = f"{config.src_vocab_size:,}" + (
            "" if config.joint else f" and {config.tgt_vocab_size:,}"
        )
        langs = (config.src_lang, config.tgt_lang)
        return (
            f"{direction(*langs)}{how_to_name(*langs)}: {len(store):,} pairs, {store.num_src_tokens:,} source and "
            f"{store.num_tgt_tokens:,} target tokens ({kinds}, {sizes} entries)"
        )


@dataclass(frozen=True)
class DevEvaluation:
    """Scores a translation model on dev while it trains: greedy BLEU, which decides, then loss and
    perplexity.

    Each time, the first translations are added to `samples`, one JSON object a line.
    """

    task: Translation
    text: ParallelText
    store: ParallelStore
    samples: Path
    num_samples: int

    def __call__(self, step: int) -> Mapping[str, float]:
        loss = self.task.mean_loss(self.store)
        with self.task.machine.autocast():
            predictions = self.task.predictor().translate(self.text.src, beam_size=1)
        hypotheses = [p.text for p in predictions]
        # In the model's own normal form: traditional references must not count against simplified
        # output.
        references = [self.task.tokenizers[1].normalize(text) for text in self.text.tgt]
        scores = translation_scores(hypotheses, references, self.task.config.tgt_lang)
        rows = zip(self.text.src, self.text.tgt, hypotheses, strict=True)
        samples = (
            {"src": a, "reference": b, "translation": c}
            for a, b, c in islice(rows, self.num_samples)
        )
        keep_samples(self.samples, step, samples)
        return {
            "dev_bleu": scores.bleu,
            "dev_loss": loss,
            "dev_perplexity": perplexity(loss, 1),
        }


def _cut_notes(
    predictions: Sequence[Prediction], limiting_key: LimitingKey
) -> Iterator[str]:
    """Say how many sources and how many translations were cut, and what to do about it."""
    count = len(predictions)
    sources = sum(prediction.source_cut for prediction in predictions)
    if sources:
        yield (
            f"{sources:,} of {count:,} sources have a sentence longer than the model reads, whose end was not "
            f"translated; {HOW_TO_READ_ALL[limiting_key]}"
        )
    limits = Counter(prediction.output_limit for prediction in predictions)
    for limit in HOW_TO_CHANGE:
        number = limits[limit]
        if not number:
            continue
        yield (
            f"{number:,} of {count:,} translations came to no end and were cut at their limit; "
            f"{HOW_TO_CHANGE[limit]}"
        )


def _usual_len(sources: Sequence[str], tokenizer: Tokenizer, most: int) -> int:
    """Return the length that all sources but one in a thousand have, in ids with eos.

    At most `most`.
    """
    some = tokenizer.encode_batch(sources[:: max(len(sources) // SAMPLED, 1)])
    lengths = sorted(len(ids) + 1 for ids in some)
    return max(2, min(most, lengths[-1 - len(lengths) // 1000]))


def _are_single(sources: Sequence[str]) -> bool:
    """Return whether nearly all sources are one sentence each, as far as punctuation tells."""
    some = sources[:: max(len(sources) // SAMPLED, 1)]
    return sum(len(split_sentences(text)) <= 1 for text in some) >= _NEARLY_ALL * len(
        some
    )


def _least_ratio(text: ParallelText, src: Tokenizer, tgt: Tokenizer) -> float:
    """Return the target ids for each source id that all pairs but one in two hundred have.

    0 where too few sources are long.
    """
    every = max(len(text) // SAMPLED, 1)
    both = zip(
        src.encode_batch(text.src[::every]),
        tgt.encode_batch(text.tgt[::every]),
        strict=True,
    )
    ratios = sorted(
        len(tgt_ids) / len(src_ids)
        for src_ids, tgt_ids in both
        if len(src_ids) >= LONG_SOURCE
    )
    return ratios[len(ratios) // 200] if len(ratios) >= _ENOUGH_LONG else 0.0


def _build_model(config: TranslationConfig) -> Seq2Seq:
    sizes = (config.src_vocab_size, config.tgt_vocab_size, config.joint, PAD_ID)
    if isinstance(config.model, RecurrentSection):
        return Seq2SeqRecurrent(config.model, *sizes)
    return Seq2SeqTransformer(config.model, *sizes)
