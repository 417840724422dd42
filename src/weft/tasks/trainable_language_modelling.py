"""Language modelling as a training run has it: a causal Transformer, its windows, its loss and its
scores on dev.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import torch

from weft.config import LanguageRecipe
from weft.console import stages
from weft.data.check.finding import counted
from weft.data.documents import Documents, from_documents
from weft.data.languages import UNKNOWN
from weft.data.store import TextStore
from weft.data.texts import Texts
from weft.data.tokenizer import PAD_ID, Tokenizer, build_tokenizer
from weft.data.windows import PackedBatches, StreamBatches, WindowBatch, scoring_windows
from weft.engine.from_model import build_writer
from weft.engine.torch_steps import TorchWriter
from weft.errors import UsageError
from weft.evaluation.language import LanguageScores, language_scores
from weft.folder import model_folder
from weft.folder.layout import WORK
from weft.folder.model_folder import FolderConfig, LanguageConfig, RunFolder
from weft.kernels import torch_machine
from weft.kernels.machine import Machine
from weft.model.causal import CausalTransformer
from weft.model.flops import Cost, causal_cost
from weft.predict.language_model import CausalModel
from weft.predict.parameters import Parameters
from weft.tasks.language_modelling import LanguageModelling, parameters_of
from weft.tasks.task import open_with_tokenizer
from weft.tasks.trainable import (
    Prepared,
    TrainableTask,
    keep_model_of,
    keep_samples,
    load_into,
    refuse_other_kind,
)
from weft.training.loss import CrossEntropy, LossSums, twice

_SCORED_TOKENS = 8192  # of one batch while scoring
_PROMPT_CHARS = 80
_TRIAL_CHARS = 2000  # of a document, that are scored to foresee how long all takes


@dataclass(frozen=True, kw_only=True)
class TrainableLanguageModelling(
    LanguageModelling, TrainableTask[LanguageRecipe, Documents, WindowBatch]
):
    """Language modelling with a model of PyTorch, and its loss."""

    model: CausalTransformer
    loss: CrossEntropy

    @classmethod
    def resolve(
        cls,
        recipe: LanguageRecipe,
        texts: Texts[Documents],
        start: FolderConfig | None,
        where: str,
    ) -> LanguageRecipe:
        if start is None:
            return recipe
        kept = keep_model_of(recipe, start, where)
        window_len = recipe.batches.window_len
        if window_len > kept.model.max_len:
            raise UsageError(
                f"batches.window_len = {window_len} is longer than the {kept.model.max_len} positions of {where}; "
                "set it to as many or fewer"
            )
        return kept

    @classmethod
    def learn_tokenizers(
        cls, recipe: LanguageRecipe, texts: Texts[Documents]
    ) -> tuple[Tokenizer, ...]:
        return (build_tokenizer(recipe.tokenizer, texts.train.texts),)

    @classmethod
    def build(
        cls,
        recipe: LanguageRecipe,
        texts: Texts[Documents],
        tokenizers: tuple[Tokenizer, ...],
        machine: Machine,
    ) -> Self:
        (tokenizer,) = tokenizers
        config = LanguageConfig(
            weft_version=model_folder.VERSION,
            task="language-modelling",
            lang=recipe.data.lang or UNKNOWN,
            vocab_size=tokenizer.vocab_size,
            documents=recipe.data.documents,
            raw=recipe.data.raw,
            packing=recipe.batches.packing,
            window_len=recipe.batches.window_len,
            model=recipe.model,
            tokenizer=tokenizer.settings,
            tokenizer_steps=tokenizer.steps,
            weights="float32",
            decoding=recipe.decoding,
        )
        torch.manual_seed(recipe.training.seed)
        model = _build_model(config).to(torch_machine.prepare(machine))
        settings = recipe.training
        loss = CrossEntropy(settings.label_smoothing, PAD_ID, settings.r_drop)
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            model=model,
            machine=machine,
            loss=loss,
        )

    @classmethod
    def untrained(
        cls, config: FolderConfig, tokenizers: tuple[Tokenizer, ...], machine: Machine
    ) -> Self:
        config, (tokenizer,) = refuse_other_kind(config, LanguageConfig), tokenizers
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            model=_build_model(config).to(torch_machine.prepare(machine)),
            machine=machine,
            loss=CrossEntropy(),
        )

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored, config, tokenizer = open_with_tokenizer(
            folder, LanguageConfig, WORK[cls.name]
        )
        model = load_into(
            stored, lambda: _build_model(config), parameters_of(config), machine
        )
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            model=model,
            machine=machine,
            loss=CrossEntropy(),
        )

    def prepare(
        self, stores: Path, texts: Texts[Documents], recipe: LanguageRecipe
    ) -> Prepared[WindowBatch]:
        store = self._store(
            stores, "train", texts.train, texts.fingerprint(texts.train)
        )
        kind = StreamBatches if self.config.packing == "stream" else PackedBatches
        batches = kind(
            store,
            self.config.window_len,
            recipe.batches.batch_size,
            recipe.training.seed,
        )
        lost = (
            f"left out of training: {counted(n, 'documents')} ({why})"
            for why, n in store.dropped.items()
            if n
        )
        notes = (*lost, *self.kernel_notes())
        return Prepared(batches, self._describe(store), notes)

    def compute_loss(self, batch: WindowBatch) -> LossSums:
        with torch_machine.autocast(self.machine):
            return self._loss(batch, self.loss)

    def flops(self, batch: WindowBatch) -> float:
        cost = self._cost.of(tgt_lens=batch.lens())
        return 2 * cost if self.loss.r_drop else cost

    @cached_property
    def _cost(self) -> Cost:
        return causal_cost(self.model)

    def dev_evaluation(
        self, files: RunFolder, texts: Texts[Documents], recipe: LanguageRecipe
    ) -> "DevEvaluation | None":
        if texts.dev is None:
            return None
        store = self._store(
            files.stores, "dev", texts.dev, texts.fingerprint(texts.dev)
        )
        return DevEvaluation(
            self, texts.dev, store, files.samples, recipe.training.num_samples
        )

    def evaluate(self, text: Documents) -> LanguageScores:
        """Score every token once, in windows of the length that the model was trained on."""
        with TemporaryDirectory() as scratch:
            return self.score_store(self._store(Path(scratch), "text", text, ""))

    def scoring_seconds(self, text: Documents, on_dev: bool) -> float:
        """Estimate the seconds by the beginnings of a few documents.

        On dev text is also generated from some of them.
        """
        self.model.eval()
        texts = [part[:_TRIAL_CHARS] for part in text.texts[:4]]
        # the first call loads and compiles, and would be scaled up to the whole text
        self.evaluate(from_documents([max(texts, key=len)[:_PROMPT_CHARS]], "trial"))
        started = time.perf_counter()
        self.evaluate(from_documents(texts, "trial"))
        seconds = (
            (time.perf_counter() - started)
            * sum(map(len, text.texts))
            / sum(map(len, texts))
        )
        if on_dev:
            started = time.perf_counter()
            self.predictor().generate(
                texts[0][:_PROMPT_CHARS], max_new_tokens=60, seed=1
            )
            seconds += 4 * (time.perf_counter() - started)
        self.model.train()
        return seconds

    def score_store(self, store: TextStore) -> LanguageScores:
        """Evaluate the model on text that is encoded already."""
        self.model.eval()
        with torch.inference_mode():
            windows = stages.counted(self._windows(store), "batches", every=1)
            sums = [self._loss(batch, CrossEntropy()) for batch in windows]
        loss = math.fsum(float(s.nll_sum) for s in sums)
        return language_scores(loss, sum(s.num_tokens for s in sums), store.num_bytes)

    def _model(self) -> CausalModel[Any]:
        where = self.machine
        writer = None
        if not where.plain:
            writer = build_writer(self.model, where.device, where.precision)
        return writer or TorchWriter(self.model, where.device)

    def parameters(self) -> Parameters:
        return parameters_of(self.config)

    def _loss(self, batch: WindowBatch, loss: CrossEntropy) -> LossSums:
        device = torch.device(self.machine.device)
        if loss.r_drop:
            segments = None if batch.segments is None else twice(batch.segments)[0]
            tgt_in, tgt_out = twice(batch.tgt_in, batch.tgt_out)
            batch = WindowBatch(tgt_in, tgt_out, segments, 2 * batch.num_tgt_tokens)
        segments = None if batch.segments is None else batch.segments.to(device)
        tgt_in = batch.tgt_in.to(device)
        tgt_out = batch.tgt_out.to(device)
        states = self.model.states(tgt_in, segments)
        return loss(states, self.model.output, tgt_out, self.model.projection)

    def _windows(self, store: TextStore) -> Iterator[WindowBatch]:
        return scoring_windows(
            store,
            self.config.window_len,
            _SCORED_TOKENS,
            self.config.packing == "packed",
        )

    def _describe(self, store: TextStore) -> str:
        kind = self.config.tokenizer.kind
        return (
            f"{counted(len(store), 'documents')}, {store.num_tokens:,} tokens ({kind}, "
            f"{self.config.vocab_size:,} entries), windows of {self.config.window_len}"
        )


@dataclass(frozen=True)
class DevEvaluation:
    """Scores a language model on dev while it trains; the loss decides.

    Each time, what it writes on from the beginnings of the first documents is added to `samples`.
    """

    task: TrainableLanguageModelling
    text: Documents
    store: TextStore
    samples: Path
    num_samples: int

    def __call__(self, step: int) -> Mapping[str, float]:
        with torch_machine.autocast(self.task.machine):
            scores = self.task.score_store(self.store)
        keep_samples(self.samples, step, self._continuations())
        return {
            "dev_loss": scores.loss,
            "dev_bits_per_byte": scores.bits_per_byte,
            "dev_perplexity": scores.perplexity,
        }

    def _continuations(self) -> Iterator[Mapping[str, str]]:
        model = self.task.predictor()
        for text in self.text.texts[: self.num_samples]:
            prompt = text[:_PROMPT_CHARS]
            yield {
                "prompt": prompt,
                "text": model.generate(prompt, max_new_tokens=60, seed=1).text,
            }


def _build_model(config: LanguageConfig) -> CausalTransformer:
    return CausalTransformer(config.model, config.vocab_size, PAD_ID)
