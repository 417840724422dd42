"""Translation as a training run has it: an encoder-decoder, its batches, its loss and its scores on
dev.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from weft.config import (
    PairsSection,
    RecurrentSection,
    TokenizerSection,
    TranslationRecipe,
)
from weft.data.batches import Batch, Batches, padded_batches
from weft.data.check.finding import counted
from weft.data.corpus import ParallelText
from weft.data.directions import describe
from weft.data.hinting import MARKED, MATCHED, TERMS, Hinting
from weft.data.kept import learn_forms
from weft.data.known import KnownWords
from weft.data.languages import UNKNOWN, direction, how_to_name
from weft.data.learning import learn_tokenizers
from weft.data.marks import Marking, marks_among, marks_needed, with_marks
from weft.data.segment import split_sentences
from weft.data.sources import mixtures_of, source_notes
from weft.data.store import ParallelStore, prepare_store
from weft.data.texts import Texts
from weft.data.tokenizer import PAD_ID, Tokenizer
from weft.engine.bindings import Engine
from weft.engine.forced import forced_attention_of, forced_shares_of
from weft.engine.from_model import (
    build_engine,
    is_sharded,
    weights_of,
    why_no_engine,
)
from weft.engine.plain_steps import source_shares_of
from weft.engine.torch_steps import cross_attention_of, steps_of
from weft.errors import UsageError
from weft.evaluation.metrics import perplexity, translation_scores
from weft.folder import model_folder
from weft.folder.layout import WORK
from weft.folder.model_folder import FolderConfig, RunFolder, TranslationConfig
from weft.kernels import torch_machine
from weft.kernels.machine import Machine
from weft.model.flops import Cost, seq2seq_cost
from weft.model.recurrent import Seq2SeqRecurrent
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.alignment import SourceShares
from weft.predict.parameters import Parameters
from weft.predict.quality import Quality
from weft.predict.rows import Member
from weft.predict.translator import LONG_SOURCE
from weft.recipes.file import with_values
from weft.tasks.task import config_of, load_known
from weft.tasks.trainable import (
    Prepared,
    TrainableTask,
    config_knowing,
    keep_model_of,
    keep_samples,
    load_into,
    refuse_other_kind,
)
from weft.tasks.translation import (
    Translation,
    load_both_tokenizers,
    load_shortlist,
    parameters_of,
    section_of,
)
from weft.training.loss import CrossEntropy, LossSums, twice
from weft.training.mixtures import Stage

Seq2Seq = Seq2SeqTransformer | Seq2SeqRecurrent
_NEARLY_ALL = 0.95  # share of single sentences
_ENOUGH_LONG = 100  # pairs that say which ratio of lengths is usual
SAMPLED = 5000  # sources that say how long they usually are; at most twice as many


@dataclass(frozen=True, kw_only=True)
class TrainableTranslation(
    Translation, TrainableTask[TranslationRecipe, ParallelText, Batch]
):
    """Translation with a model of PyTorch, and its loss."""

    model: Seq2Seq
    loss: CrossEntropy

    @classmethod
    def resolve(
        cls,
        recipe: TranslationRecipe,
        texts: Texts[ParallelText],
        start: FolderConfig | None,
        where: str,
    ) -> TranslationRecipe:
        langs = [texts.train.src_lang, texts.train.tgt_lang]
        if texts.train.pairs:
            return cls._resolve_several(recipe, texts.train, start, where)
        if start is None:
            return with_values(
                recipe, {"data.src_lang": langs[0], "data.tgt_lang": langs[1]}
            )
        assert isinstance(start, TranslationConfig)
        own = [start.src_lang, start.tgt_lang]
        if (langs[0], langs[1]) in start.directions:
            own = langs
        if any(
            lang not in (UNKNOWN, known) for lang, known in zip(langs, own, strict=True)
        ):
            raise UsageError(
                f"{where} translates {' to '.join(own)}, the text is {' to '.join(langs)}; "
                "give text in its languages"
            )
        if recipe.data.has_hints and not start.joint:
            raise UsageError(
                f"{where} has a tokenizer for each side, and data.terms and data.memory need one for both; start from "
                "a model with a joint one, or leave them out"
            )
        recipe = with_values(recipe, {"data.src_lang": own[0], "data.tgt_lang": own[1]})
        return keep_model_of(recipe, start, where)

    @classmethod
    def _resolve_several(
        cls,
        recipe: TranslationRecipe,
        text: ParallelText,
        start: FolderConfig | None,
        where: str,
    ) -> TranslationRecipe:
        """Return the recipe for text of several directions, whose languages its files say."""
        if start is None:
            return recipe
        assert isinstance(start, TranslationConfig)
        known = start.directions or ((start.src_lang, start.tgt_lang),)
        if not set(known) & set(text.directions):
            raise UsageError(
                f"{where} translates {describe(known)}, the text is {describe(text.directions)}; give text of one of "
                "its directions, too"
            )
        if not start.joint:
            raise UsageError(
                f"{where} has a tokenizer for each side, and several directions need one for both; start from a model "
                "with a joint one"
            )
        return keep_model_of(recipe, start, where)

    @classmethod
    def learn_tokenizers(
        cls, recipe: TranslationRecipe, texts: Texts[ParallelText]
    ) -> tuple[Tokenizer, ...]:
        is_several = len(texts.train.directions) > 1
        if is_several and recipe.tokenizer.joint is False:
            raise UsageError(
                "several directions need one tokenizer for both sides; set tokenizer.joint = true"
            )
        tokenizers = learn_tokenizers(
            recipe.tokenizer,
            texts.train.src,
            texts.train.tgt,
            needs_joint=recipe.data.has_hints or is_several,
        )
        return with_marks(tokenizers, marks_needed(texts.train))

    @classmethod
    def keep_tokenizers(
        cls, tokenizers: tuple[Tokenizer, ...], texts: Texts[ParallelText]
    ) -> tuple[Tokenizer, ...]:
        src, tgt = tokenizers
        return with_marks((src, tgt), marks_needed(texts.train))

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
        marks = marks_among(src.marks)
        most = min(recipe.data.max_len + 1, recipe.model.max_len - marks.most)
        langs = (str(recipe.data.src_lang), str(recipe.data.tgt_lang))
        directions: tuple[tuple[str, str], ...] = ()
        if texts.train.pairs:
            directions = tuple(texts.train.directions)
            langs = directions[0]
        config = TranslationConfig(
            weft_version=model_folder.VERSION,
            task="translation",
            src_lang=langs[0],
            tgt_lang=langs[1],
            joint=joint,
            src_vocab_size=src.vocab_size,
            tgt_vocab_size=tgt.vocab_size,
            max_src_len=most,
            usual_src_len=_usual_len(texts.train.src, src, most),
            single_sentences=_are_all_single(texts.train, langs[0]),
            least_ratio=_least_ratio_of_all(texts.train, src, tgt),
            kept_forms=learn_forms(texts.train.src, texts.train.tgt),
            takes_terms=recipe.data.terms > 0,
            takes_match=recipe.data.memory > 0,
            marks=marks,
            directions=directions,
            model=recipe.model,
            tokenizer=TokenizerSection(joint=joint, src=src.settings, tgt=tgt.settings),
            tokenizer_steps={**src.steps, **tgt.steps},
            weights="float32",
            shortlist="none",
            decoding=recipe.decoding,
        )
        torch.manual_seed(recipe.training.seed)
        model = _build_model(config).to(torch_machine.prepare(machine))
        settings = recipe.training
        loss = CrossEntropy(settings.label_smoothing, PAD_ID, settings.r_drop)
        return cls(
            config=config,
            tokenizers=(src, tgt),
            model=model,
            machine=machine,
            loss=loss,
        )

    @classmethod
    def untrained(
        cls, config: FolderConfig, tokenizers: tuple[Tokenizer, ...], machine: Machine
    ) -> Self:
        src, tgt = tokenizers
        own = refuse_other_kind(config, TranslationConfig)
        model = _build_model(own).to(torch_machine.prepare(machine))
        return cls(
            config=own,
            tokenizers=(src, tgt),
            model=model,
            machine=machine,
            loss=CrossEntropy(),
        )

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored = model_folder.open_model_folder(folder)
        config = config_of(stored, TranslationConfig, WORK[cls.name])
        tokenizers = load_both_tokenizers(stored, config)
        model = load_into(
            stored, lambda: _build_model(config), parameters_of(config), machine
        )
        return cls(
            config=config,
            tokenizers=tokenizers,
            model=model,
            machine=machine,
            loss=CrossEntropy(),  # in use nothing is smoothed
            shortlist=load_shortlist(stored),
            known=load_known(stored),
        )

    def prepare(
        self, stores: Path, texts: Texts[ParallelText], recipe: TranslationRecipe
    ) -> Prepared[Batch]:
        hinting = self._hinting(texts, recipe) if recipe.data.has_hints else None
        seed_of_text = recipe.data.seed
        store = self._store(stores, "train", texts.train, texts, seed_of_text, hinting)
        size, seed = recipe.batches, recipe.training.seed
        sizes = (size.tokens_per_batch, size.batch_size, seed)
        stages = []
        data = recipe.data
        mixtures = mixtures_of(texts.train, data.mixtures, data.temperature)
        for mixture in mixtures:
            batches = Batches(store, *sizes, mixture.rows(texts.train, store))
            said = mixture.describe(texts.train, store) if len(mixtures) > 1 else ""
            stages.append(Stage(mixture.until, batches, said))
        lost = (
            f"left out of training: {counted(n, 'pairs')} ({why})"
            for why, n in store.dropped.items()
            if n
        )
        notes = (
            *lost,
            *source_notes(texts.train, store, mixtures),
            *_stage_notes(stages),
            *_hint_notes(store, recipe.data),
            *self.kernel_notes(),
        )
        first = stages[0].batches
        return Prepared(first, self._describe(store), notes, tuple(stages))

    def compute_loss(self, batch: Batch) -> LossSums:
        device = torch.device(self.machine.device)
        sides: tuple[Tensor, ...] = (batch.src, batch.tgt_in, batch.tgt_out)
        sides = twice(*sides) if self.loss.r_drop else sides
        src, tgt_in, tgt_out = (ids.to(device) for ids in sides)
        with torch_machine.autocast(self.machine):
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
        store = self._store(files.stores, "dev", texts.dev, texts, recipe.data.seed)
        return DevEvaluation(
            self, texts.dev, store, files.samples, recipe.training.num_samples
        )

    def score_piece(self, text: ParallelText, rows: int, on_dev: bool) -> None:
        """Estimate the seconds of scoring, with translations as long as the sources.

        What a model writes that has learned nothing has no end.
        """
        short = self.config.decoding.model_copy(
            update={"max_len_ratio": 1.0, "max_len_extra": 2}
        )
        brief = replace(self, config=self.config.model_copy(update={"decoding": short}))
        brief.evaluate(text.select(range(rows)), **({"beam_size": 1} if on_dev else {}))

    def knowing(
        self,
        known: KnownWords | None,
        low_confidence: float | None,
        quality: Quality | None = None,
    ) -> Self:
        config = config_knowing(self.config, known, low_confidence)
        section = None if quality is None else section_of(quality)
        config = config.model_copy(update={"quality": section})
        return replace(self, config=config, known=known)

    def _engine(self) -> Engine | None:
        """Return the native engine; None where PyTorch decodes, as on a GPU."""
        if (
            not isinstance(self.model, Seq2SeqTransformer)
            or is_sharded(self.model)
            or self.machine.plain
        ):
            return None
        return build_engine(self.model, self.machine.device, self._kind)

    def _member(self) -> Member:
        device = self.machine.device
        engine = self._engine()
        if engine is None:
            cross_attention = cross_attention_of(self.model, device)
        else:
            cross_attention = forced_attention_of(engine)
        return Member(
            self.config.model.max_len,
            steps_of(self.model, device),
            engine,
            cross_attention,
            self._source_shares(engine),
            None if engine is None else engine.memories.want,
        )

    def _source_shares(self, engine: Engine | None) -> SourceShares | None:
        """Return what computes the shares of source tokens; None where the model has none."""
        if engine is not None:
            return forced_shares_of(engine)
        model = self.model
        if not isinstance(model, Seq2SeqTransformer) or is_sharded(model):
            return None
        return source_shares_of(lambda: weights_of(model))

    def parameters(self) -> Parameters:
        return parameters_of(self.config)

    def why_no_engine(self) -> str:
        model = self.model
        if not isinstance(model, Seq2SeqTransformer) or self.machine.plain:
            return ""
        return why_no_engine(model, self.machine.device, self._kind)

    def _hinting(
        self, texts: Texts[ParallelText], recipe: TranslationRecipe
    ) -> Hinting:
        data = recipe.data
        return Hinting(
            texts.train,
            self.tokenizers[0],
            data.terms,
            data.memory,
            data.seed,
            self.config.max_src_len - 1,
            texts.glossary,
        )

    def _store(
        self,
        stores: Path,
        name: str,
        text: ParallelText,
        texts: Texts[ParallelText],
        seed: int,
        hinting: Hinting | None = None,
    ) -> ParallelStore:
        marking = None
        if marks_needed(text) or self.config.marks.languages:
            marking = Marking(text, self.tokenizers[0], seed)
        return prepare_store(
            stores,
            name,
            (text.src, text.tgt),
            self.tokenizers,
            max_len=self.config.max_src_len - 1,
            limiting_key=self.config.limiting_key,
            text_key=texts.fingerprint(text),
            hinting=hinting,
            marking=marking,
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
        named = f"{direction(*langs)}{how_to_name(*langs)}"
        if config.directions:
            named = describe(config.directions)
        return (
            f"{named}: {len(store):,} pairs, {store.num_src_tokens:,} source and "
            f"{store.num_tgt_tokens:,} target tokens ({kinds}, {sizes} entries)"
        )


@dataclass(frozen=True)
class DevEvaluation:
    """Scores a translation model on dev while it trains: greedy BLEU, which decides, then loss and
    perplexity.

    Each time, the first translations are added to `samples`, one JSON object a line.
    """

    task: TrainableTranslation
    text: ParallelText
    store: ParallelStore
    samples: Path
    num_samples: int

    def __call__(self, step: int) -> Mapping[str, float]:
        loss = self.task.mean_loss(self.store)
        with torch_machine.autocast(self.task.machine):
            predictions = self.task.translated(self.text, beam_size=1)
        hypotheses = [p.text for p in predictions]
        # In the model's own normal form: traditional references must not count against simplified
        # output.
        references = [self.task.tokenizers[1].normalize(text) for text in self.text.tgt]
        scores = {}
        for pair in self.text.directions:
            chosen = self.text.rows_of(pair)
            written = [hypotheses[i] for i in chosen]
            wanted = [references[i] for i in chosen]
            scores[pair] = translation_scores(written, wanted, pair[1]).bleu
        rows = zip(self.text.src, self.text.tgt, hypotheses, strict=True)
        samples = (
            {"src": a, "reference": b, "translation": c}
            for a, b, c in islice(rows, self.num_samples)
        )
        keep_samples(self.samples, step, samples)
        own = {}
        if len(scores) > 1:
            own = {f"dev_bleu_{a}_to_{b}": bleu for (a, b), bleu in scores.items()}
        return {
            "dev_bleu": sum(scores.values()) / len(scores),
            "dev_loss": loss,
            "dev_perplexity": perplexity(loss, 1),
            **own,
        }


def _stage_notes(stages: Sequence[Stage[Batch]]) -> Iterator[str]:
    """Say which mixture of the sources is read up to which share of the steps."""
    if len(stages) == 1:
        return
    for number, stage in enumerate(stages, start=1):
        until = f"up to {stage.until:.0%} of the steps"
        yield f"mixture {number}, {until}: {stage.description}"


def _hint_notes(store: ParallelStore, data: PairsSection) -> Iterator[str]:
    """Say in how many pairs the model reads hints."""
    hinted = store.hinted
    if data.terms:
        terms = counted(hinted[TERMS], "terms")
        yield f"data.terms = {data.terms}: {terms} are marked in {counted(hinted[MARKED], 'pairs')}"
    if data.memory:
        pairs = counted(hinted[MATCHED], "pairs")
        yield f"data.memory = {data.memory}: {pairs} have the match beside them that is nearest among the others"


def _usual_len(sources: Sequence[str], tokenizer: Tokenizer, most: int) -> int:
    """Return the length that all sources but one in a thousand have, in ids with eos.

    At most `most`.
    """
    some = tokenizer.encode_batch(sources[:: max(len(sources) // SAMPLED, 1)])
    lengths = sorted(len(ids) + 1 for ids in some)
    return max(2, min(most, lengths[-1 - len(lengths) // 1000]))


def _are_single(sources: Sequence[str], language: str) -> bool:
    """Return whether nearly all sources are one sentence each, as far as punctuation tells.

    They are divided as a translator of this language (BCP-47) divides its texts.
    """
    some = sources[:: max(len(sources) // SAMPLED, 1)]
    single = sum(len(split_sentences(text, language)) <= 1 for text in some)
    return single >= _NEARLY_ALL * len(some)


def _are_all_single(text: ParallelText, language: str) -> bool:
    """Return whether the sources of each direction are single sentences; `language` is the source's
    where there is one direction.
    """
    if not text.pairs:
        return _are_single(text.src, language)
    return all(_are_single(text.of(pair).src, pair[0]) for pair in text.directions)


def _least_ratio_of_all(text: ParallelText, src: Tokenizer, tgt: Tokenizer) -> float:
    """Return the least ratio of all directions."""
    parts = [text]
    if text.pairs:
        parts = [text.of(pair) for pair in text.directions]
    return min(_least_ratio(part, src, tgt) for part in parts)


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
