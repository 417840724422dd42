"""Where text and model meet: each task binds batches, model, loss and metrics, plainly.

A task is built for training from a recipe, or loaded for use from a model folder; both give the same object.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from weft import durable, model_folder
from weft.config import Recipe, SideSection, TokenizerSection
from weft.data.batches import Batch, padded_batches
from weft.data.corpus import ParallelText
from weft.data.store import ParallelStore
from weft.data.tokenizer import PAD_ID, Tokenizer, load_tokenizer
from weft.errors import FolderError
from weft.evaluation.metrics import TranslationScores, perplexity, translation_scores
from weft.machine import Machine
from weft.model.transformer import Seq2SeqTransformer
from weft.model_folder import FolderConfig
from weft.predict import Prediction, Translator
from weft.training.log import drop_lines_after
from weft.training.loss import CrossEntropy, LossSums


@dataclass(frozen=True)
class Translation:
    """Translation: an encoder-decoder, its two tokenizers (one object twice where joint), and its loss."""

    config: FolderConfig
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    model: Seq2SeqTransformer
    machine: Machine
    loss: CrossEntropy

    @classmethod
    def build(
        cls,
        recipe: Recipe,
        languages: tuple[str, str],
        tokenizers: tuple[Tokenizer, Tokenizer],
        machine: Machine,
    ) -> "Translation":
        """A new model with fresh weights, drawn from the recipe's seed."""
        src_tokenizer, tgt_tokenizer = tokenizers
        joint = src_tokenizer is tgt_tokenizer
        config = FolderConfig(
            weft_version=model_folder.VERSION,
            task="translation",
            src_lang=languages[0],
            tgt_lang=languages[1],
            joint=joint,
            src_vocab_size=src_tokenizer.vocab_size,
            tgt_vocab_size=tgt_tokenizer.vocab_size,
            max_src_len=min(recipe.data.max_len + 1, recipe.model.max_len),
            model=recipe.model,
            tokenizer=TokenizerSection(joint=joint, src=src_tokenizer.settings, tgt=tgt_tokenizer.settings),
            tokenizer_steps={**src_tokenizer.steps, **tgt_tokenizer.steps},
            decoding=recipe.decoding,
        )
        torch.manual_seed(recipe.training.seed)
        model = _build_model(config).to(machine.prepare())
        return cls(config, *tokenizers, model, machine, CrossEntropy(recipe.training.label_smoothing, PAD_ID))

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> "Translation":
        """A trained model. Raises FolderError where the folder is damaged, foreign or unfinished."""
        stored = model_folder.open_model_folder(folder)
        tokenizers = _load_tokenizers(stored)
        with torch.device("meta"):  # what the config claims is allocated only if the weights are that large
            stored.refuse_unfit(_build_model(stored.config))
        model = _build_model(stored.config)
        stored.load_weights(model)
        return cls(stored.config, *tokenizers, model.to(machine.prepare()).eval(), machine, CrossEntropy())

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Source and target tokenizer."""
        return self.src_tokenizer, self.tgt_tokenizer

    def compute_loss(self, batch: Batch) -> LossSums:
        """The loss of one micro-batch, in the machine's precision."""
        device = torch.device(self.machine.device)
        src, tgt_in, tgt_out = (ids.to(device) for ids in (batch.src, batch.tgt_in, batch.tgt_out))
        with self.machine.autocast():
            return self.loss(self.model.states(src, tgt_in), self.model.output, tgt_out)

    def mean_loss(self, store: ParallelStore, tokens_per_batch: int = 4096) -> float:
        """Unsmoothed cross-entropy in nats a target token, the end symbol counted."""
        plain = replace(self, loss=CrossEntropy())
        with torch.inference_mode():
            sums = [plain.compute_loss(batch) for batch in padded_batches(store, tokens_per_batch)]
        return sum(float(s.nll_sum) for s in sums) / max(sum(s.num_tokens for s in sums), 1)

    def translator(self) -> Translator:
        """Text in, text out, by this model."""
        return Translator(
            self.model,
            self.src_tokenizer,
            self.tgt_tokenizer,
            decoding=self.config.decoding,
            src_lang=self.config.src_lang,
            tgt_lang=self.config.tgt_lang,
            max_src_len=self.config.max_src_len,
            device=torch.device(self.machine.device),
        )

    def save(self, folder: Path, facts: Mapping[str, Any], card: str) -> None:
        """Write the model folder."""
        weights = {name: p.detach() for name, p in self.model.named_parameters()}
        files = _tokenizer_files(*self.tokenizers)
        model_folder.save_model_folder(folder, self.config, weights, files, card, facts)


@dataclass(frozen=True)
class DevEvaluation:
    """Scores a translation model on dev while it trains: greedy BLEU, which decides, then loss and perplexity.

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
            predictions = self.task.translator().translate(self.text.src, beam_size=1)
        hypotheses = [p.text for p in predictions]
        # In the model's own normal form: traditional references must not count against simplified output.
        references = [self.task.tgt_tokenizer.normalize(text) for text in self.text.tgt]
        scores = translation_scores(hypotheses, references, self.task.config.tgt_lang)
        self._keep_samples(step, hypotheses)
        return {"dev_bleu": scores.bleu, "dev_loss": loss, "dev_perplexity": perplexity(loss, 1)}

    def _keep_samples(self, step: int, hypotheses: list[str]) -> None:
        drop_lines_after(step - 1, self.samples)  # of a step that is done again
        """Add to the samples of earlier steps; what a run that was killed had said of later ones goes."""
        old = self.samples.read_text("utf-8").split("\n")[:-1] if self.samples.is_file() else []
        rows = zip(self.text.src, self.text.tgt, hypotheses, strict=True)
        new = [
            json.dumps({"step": step, "src": src, "reference": tgt, "translation": text}, ensure_ascii=False)
            for src, tgt, text in islice(rows, self.num_samples)
        ]
        kept = [line for line in old if json.loads(line)["step"] < step]
        durable.write_text(self.samples, "".join(line + "\n" for line in [*kept, *new]))


def evaluate(task: Translation, text: ParallelText, **decoding: Any) -> tuple[TranslationScores, list[Prediction]]:
    """Translate the sources and score them against the targets; `decoding` as `Translator.translate` takes it."""
    predictions = task.translator().translate(text.src, **decoding)
    return translation_scores([p.text for p in predictions], text.tgt, task.config.tgt_lang), predictions


def write_tokenizers(folder: Path, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Keep a run's tokenizers, with their settings, in a new folder."""
    sides = [t.settings.model_dump(mode="json") for t in tokenizers]
    facts = {"joint": tokenizers[0] is tokenizers[1], "settings": sides, "notes": [t.notes for t in tokenizers]}
    with durable.writing_folder(folder, facts) as temporary:
        for name, content in _tokenizer_files(*tokenizers).items():
            (temporary / name).write_bytes(content)


def read_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """What `write_tokenizers` wrote. Raises FolderError where it is damaged."""
    manifest = durable.read_manifest(folder)
    sides = [SideSection.model_validate(side) for side in manifest["settings"]]
    loaded = [
        load_tokenizer((folder / name).read_bytes(), side, str(folder / name))
        for name, side in zip(manifest["files"], sides, strict=False)
    ]
    return loaded[0], loaded[-1]


def _tokenizer_files(src: Tokenizer, tgt: Tokenizer) -> dict[str, bytes]:
    if src is tgt:
        return {model_folder.JOINT_TOKENIZER: src.to_json().encode()}
    return {
        model_folder.SRC_TOKENIZER: src.to_json().encode(),
        model_folder.TGT_TOKENIZER: tgt.to_json().encode(),
    }


def _load_tokenizers(stored: model_folder.StoredModel) -> tuple[Tokenizer, Tokenizer]:
    sections = stored.config.tokenizer
    settings = [sections.src] if stored.config.joint else [sections.src, sections.tgt]
    loaded = [
        load_tokenizer(content, side, str(stored.folder / name))
        for (name, content), side in zip(stored.tokenizers.items(), settings, strict=True)
    ]
    _refuse_other_sizes(stored, loaded)
    if {**loaded[0].steps, **loaded[-1].steps}.keys() != stored.config.tokenizer_steps.keys():
        raise FolderError(
            f"{stored.folder / model_folder.CONFIG}: tokenizer_steps are not those of its tokenizers"
        )
    return loaded[0], loaded[-1]


def _refuse_other_sizes(stored: model_folder.StoredModel, tokenizers: list[Tokenizer]) -> None:
    config = stored.config
    for tokenizer, size in zip(tokenizers, (config.src_vocab_size, config.tgt_vocab_size), strict=False):
        if tokenizer.vocab_size != size:
            raise FolderError(
                f"{stored.folder}: a tokenizer has {tokenizer.vocab_size} pieces, the model {size}; "
                "the files belong to different models"
            )


def _build_model(config: FolderConfig) -> Seq2SeqTransformer:
    return Seq2SeqTransformer(config.model, config.src_vocab_size, config.tgt_vocab_size, config.joint, PAD_ID)
