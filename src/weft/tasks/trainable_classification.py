"""Classification as a training run has it: an encoder, its batches, its loss and its scores on
dev.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt
import torch
from torch.nn.functional import one_hot

from weft.config import ClassificationRecipe
from weft.data.check.finding import counted
from weft.data.check.rows import alike_labels
from weft.data.known import KnownWords
from weft.data.label_batches import LabelBatch, LabelBatches, padded_label_batches
from weft.data.labelled import LabelledText, named, quoted
from weft.data.languages import UNKNOWN
from weft.data.normalize import replace_surrogates
from weft.data.store import TextStore, prepare_text_store
from weft.data.texts import Texts
from weft.data.tokenizer import PAD_ID, Tokenizer, build_tokenizer
from weft.engine.from_model import build_classifier
from weft.engine.torch_steps import TorchClassifier
from weft.errors import UsageError
from weft.folder import model_folder
from weft.folder.layout import WORK
from weft.folder.model_folder import ClassificationConfig, FolderConfig, RunFolder
from weft.kernels import torch_machine
from weft.kernels.machine import Machine
from weft.model.classifier import TransformerClassifier
from weft.model.flops import Cost, classifier_cost
from weft.model.ngrams import NgramBag
from weft.predict.classifier import Classification as Answer
from weft.predict.classifier import ClassifierModel
from weft.predict.parameters import Parameters
from weft.predict.quality import Quality
from weft.tasks.classification import (
    Classification,
    known_labels,
    parameters_of,
    truth,
)
from weft.tasks.task import (
    load_known,
    open_with_tokenizer,
)
from weft.tasks.trainable import (
    Prepared,
    TrainableTask,
    config_knowing,
    keep_model_of,
    keep_samples,
    load_into,
    refuse_other_kind,
)
from weft.training.loss import ClassLoss, LossSums, twice

_SCORED_TOKENS = 8192  # of one batch while scoring
_SHOWN_CHARS = 200  # of a sample
_MOST_NAMED = 5  # labels that a remedy names


@dataclass(frozen=True, kw_only=True)
class TrainableClassification(
    Classification, TrainableTask[ClassificationRecipe, LabelledText, LabelBatch]
):
    """Classification with a model of PyTorch, and its loss."""

    model: TransformerClassifier
    loss: ClassLoss

    @classmethod
    def resolve(
        cls,
        recipe: ClassificationRecipe,
        texts: Texts[LabelledText],
        start: FolderConfig | None,
        where: str,
    ) -> ClassificationRecipe:
        # refused before anything of the run is written
        class_weights(recipe, texts.train)
        if start is None:
            return recipe
        assert isinstance(start, ClassificationConfig)
        given = known_labels(texts.train)
        if difference := _difference(start.labels, given):
            remedy = _for_other_labels(start.labels, given)
            raise UsageError(
                f"--from {where}: a model's labels are fixed, and the text {difference}; {remedy}"
            )
        return keep_model_of(recipe, start, where)

    @classmethod
    def learn_tokenizers(
        cls, recipe: ClassificationRecipe, texts: Texts[LabelledText]
    ) -> tuple[Tokenizer, ...]:
        return (build_tokenizer(recipe.tokenizer, texts.train.texts),)

    @classmethod
    def build(
        cls,
        recipe: ClassificationRecipe,
        texts: Texts[LabelledText],
        tokenizers: tuple[Tokenizer, ...],
        machine: Machine,
    ) -> Self:
        (tokenizer,) = tokenizers
        config = ClassificationConfig(
            weft_version=model_folder.VERSION,
            task="classification",
            lang=recipe.data.lang or UNKNOWN,
            vocab_size=tokenizer.vocab_size,
            text_column=recipe.data.text_column,
            label_column=recipe.data.label_column,
            label_separator=recipe.data.label_separator,
            labels=known_labels(texts.train),
            multi_label=texts.train.multi_label,
            max_len=_max_len(recipe),
            too_long=recipe.data.too_long,
            model=recipe.model,
            tokenizer=tokenizer.settings,
            tokenizer_steps=tokenizer.steps,
            weights="float32",
        )
        weights = class_weights(recipe, texts.train)
        settings = recipe.training
        loss = ClassLoss(
            settings.label_smoothing, config.multi_label, weights, settings.r_drop
        )
        torch.manual_seed(recipe.training.seed)
        model = _build_model(config)
        if config.multi_label:
            _begin_at_shares(model, truth(texts.train, config.labels, True))
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            model=model.to(torch_machine.prepare(machine)),
            machine=machine,
            loss=loss,
        )

    @classmethod
    def untrained(
        cls, config: FolderConfig, tokenizers: tuple[Tokenizer, ...], machine: Machine
    ) -> Self:
        config, (tokenizer,) = (
            refuse_other_kind(config, ClassificationConfig),
            tokenizers,
        )
        model = _build_model(config).to(torch_machine.prepare(machine))
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            model=model,
            machine=machine,
            loss=ClassLoss(0.0, config.multi_label),
        )

    @classmethod
    def load(cls, folder: Path, machine: Machine) -> Self:
        stored, config, tokenizer = open_with_tokenizer(
            folder, ClassificationConfig, WORK[cls.name]
        )
        model = load_into(
            stored, lambda: _build_model(config), parameters_of(config), machine
        )
        return cls(
            config=config,
            tokenizers=(tokenizer,),
            model=model,
            machine=machine,
            loss=ClassLoss(0.0, config.multi_label),
            known=load_known(stored),
        )

    def prepare(
        self, stores: Path, texts: Texts[LabelledText], recipe: ClassificationRecipe
    ) -> Prepared[LabelBatch]:
        store = self._store(stores, "train", texts.train, texts)
        size = recipe.batches
        labels = self._truth(texts.train)
        seed = recipe.training.seed
        if self.model.bag is not None and self.model.bag.lacks_weights:
            self._weigh(self.model.bag, store, texts.train)
        batches = LabelBatches(
            store,
            labels,
            size.tokens_per_batch,
            size.batch_size,
            seed,
            first_id=self._first_id,
        )
        notes = (*self._lost(store), *self.kernel_notes())
        return Prepared(batches, self._describe(store, texts.train), notes)

    def _weigh(self, bag: NgramBag, store: TextStore, text: LabelledText) -> None:
        """Set the weights of a bag's rows by the text that it is trained on."""
        num_labels = len(self.config.labels)

        def texts() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            for batch in padded_label_batches(
                store, self._truth(text), _SCORED_TOKENS, first_id=self._first_id
            ):
                has = (
                    batch.labels
                    if self.config.multi_label
                    else one_hot(batch.labels, num_labels)
                )
                yield batch.ids, has.bool()

        bag.weigh(texts)

    def compute_loss(self, batch: LabelBatch) -> LossSums:
        device = torch.device(self.machine.device)
        ids, labels = (
            twice(batch.ids, batch.labels)
            if self.loss.r_drop
            else (batch.ids, batch.labels)
        )
        with torch_machine.autocast(self.machine):
            states = self.model.states(ids.to(device))
            return self.loss(states, self.model.output, labels.to(device))

    def flops(self, batch: LabelBatch) -> float:
        cost = self._cost.of((batch.ids != PAD_ID).sum(1))
        return 2 * cost if self.loss.r_drop else cost

    @cached_property
    def _cost(self) -> Cost:
        return classifier_cost(self.model)

    def dev_evaluation(
        self, files: RunFolder, texts: Texts[LabelledText], recipe: ClassificationRecipe
    ) -> "DevEvaluation | None":
        if texts.dev is None:
            return None
        store = self._store(files.stores, "dev", texts.dev, texts)
        return DevEvaluation(
            self, texts.dev, store, files.samples, recipe.training.num_samples
        )

    def mean_loss(self, store: TextStore, text: LabelledText) -> float:
        """Compute the unweighted, unsmoothed cross-entropy in nats a text."""
        plain = replace(self, loss=ClassLoss(0.0, self.config.multi_label))
        batches = padded_label_batches(
            store, self._truth(text), _SCORED_TOKENS, first_id=self._first_id
        )
        with torch.inference_mode():
            sums = [plain.compute_loss(batch) for batch in batches]
        return sum(float(s.nll_sum) for s in sums) / max(
            sum(s.num_tokens for s in sums), 1
        )

    @property
    def loss_of_guessing(self) -> float:
        """Return the loss of guessing among the labels, in nats; where a text may have several, of
        guessing yes or no for each.
        """
        if self.config.multi_label:
            return len(self.labels) * math.log(2)
        return math.log(max(len(self.labels), 2))

    @property
    def loss_untrained(self) -> float:
        return self.loss_of_guessing

    def knowing(
        self,
        known: KnownWords | None,
        low_confidence: float | None,
        quality: Quality | None = None,
    ) -> Self:
        return replace(
            self, config=config_knowing(self.config, known, low_confidence), known=known
        )

    def _model(self) -> ClassifierModel:
        where = self.machine
        native = None
        if not where.plain:
            native = build_classifier(self.model, where.device)
        return native or TorchClassifier(self.model, where.device)

    def parameters(self) -> Parameters:
        return parameters_of(self.config)

    def _store(
        self, stores: Path, name: str, text: LabelledText, texts: Texts[LabelledText]
    ) -> TextStore:
        return prepare_text_store(
            stores,
            name,
            text.texts,
            self.tokenizers[0],
            max_len=self.config.max_len,
            too_long=self.config.too_long,
            text_key=texts.fingerprint(text),
        )

    def _describe(self, store: TextStore, text: LabelledText) -> str:
        config = self.config
        counts = Counter(label for labels in text.labels for label in labels)
        shown = ", ".join(f"{label} {counts[label]:,}" for label in config.labels[:10])
        more = (
            f" and {len(config.labels) - 10:,} more" if len(config.labels) > 10 else ""
        )
        return (
            f"{counted(len(text), 'texts')}, {store.num_tokens:,} tokens ({config.tokenizer.kind}, "
            f"{config.vocab_size:,} entries); {counted(len(config.labels), 'labels')}: {shown}{more}"
        )

    def _lost(self, store: TextStore) -> list[str]:
        notes = [
            f"left out of training: {counted(n, 'texts')} ({why})"
            for why, n in store.dropped.items()
            if n
        ]
        if store.num_cut:
            how = "cut there" if self.config.too_long == "cut" else "read in windows"
            notes.append(
                f"{counted(store.num_cut, 'texts')} longer than {self.config.max_len} tokens, {how}"
            )
        return notes


@dataclass(frozen=True)
class DevEvaluation:
    """Scores a classifier on dev while it trains: the score that decides, then the loss and others.

    Accuracy decides. Where a text may have several labels, micro-F1 does: of a young model hardly
    a text has all of its labels right, which says little.

    Each time, the first answers are added to `samples`.
    """

    task: TrainableClassification
    text: LabelledText
    store: TextStore
    samples: Path
    num_samples: int

    def __call__(self, step: int) -> Mapping[str, float]:
        with torch_machine.autocast(self.task.machine):
            scores, answers = self.task.score(self.text, self.num_samples)
        keep_samples(self.samples, step, self._shown(answers))
        loss = self.task.mean_loss(self.store, self.text)
        accuracy = {"dev_accuracy": scores.accuracy}
        macro_f1 = {"dev_macro_f1": scores.macro_f1}
        if not self.task.config.multi_label:
            return {**accuracy, "dev_loss": loss, **macro_f1}
        decides = {"dev_micro_f1": scores.micro_f1}
        return {**decides, "dev_loss": loss, **accuracy, **macro_f1}

    def _shown(self, answers: Sequence[Answer]) -> Iterator[Mapping[str, Any]]:
        for text, labels, answer in zip(
            self.text.texts, self.text.labels, answers, strict=False
        ):
            yield {
                "text": replace_surrogates(text[:_SHOWN_CHARS]),
                "label": list(labels),
                "predicted": answer.labels,
                "probability": answer.probability,
            }


def class_weights(
    recipe: ClassificationRecipe, text: LabelledText
) -> torch.Tensor | None:
    """Return a factor for the loss of each label, 1 on average over the training text; None where
    all are alike.

    "balanced" is the inverse of the square root of how many rows a label has. By the plain inverse
    all labels together would count alike, one of two rows as much as one of a thousand, and those
    two rows would decide.

    Raises UsageError where the recipe's table does not name exactly the labels of the text.
    """
    table = recipe.training.class_weights
    if table is None:
        return None
    labels = known_labels(text)
    counts = Counter(label for some in text.labels for label in some)
    if table == "balanced":
        table = {label: counts[label] ** -0.5 for label in labels}
    if difference := _difference(table, labels):
        raise UsageError(
            f"training.class_weights: the text {difference}; give each of its labels a weight"
        )
    mean = sum(table[label] * counts[label] for label in labels) / sum(counts.values())
    return torch.tensor([table[label] / mean for label in labels])


def _difference(known: Collection[str], given: Sequence[str]) -> str:
    """Say in which labels a text differs from those that are known; "" where in none."""
    more = sorted(set(given) - set(known))
    fewer = sorted(set(known) - set(given))
    parts = [(more, "has {} as well"), (fewer, "has no {}")]
    return " and ".join(
        words.format(named(labels)) for labels, words in parts if labels
    )


def _for_other_labels(known: Sequence[str], given: Sequence[str]) -> str:
    """Say what to do where a text has not the labels of the model to start from."""
    anew = (
        "leave --from out to train a new model of all rows, the old and the new ones (with --fresh where --output "
        "holds a run)"
    )
    alike = alike_labels({**dict.fromkeys(known, 1), **dict.fromkeys(given, 0)})
    own = [
        (label, group[0])
        for group in alike
        for label in group
        if label not in known and group[0] in known
    ]
    ways = (
        [
            f"write {', '.join(f'{quoted(new)} as {quoted(old)}' for new, old in own[:_MOST_NAMED])}"
        ]
        if own
        else []
    )
    return ", or ".join(
        [
            *ways,
            *(
                ["add rows with what is missing"]
                if set(known) - set(given) and not own
                else []
            ),
            anew,
        ]
    )


def _max_len(recipe: ClassificationRecipe) -> int:
    """Return how many tokens are read at a time; only an encoder has positions that could run
    out.
    """
    model = recipe.model
    if not model.num_encoder_layers:
        return recipe.data.max_len
    return min(recipe.data.max_len, model.max_len - (model.pooling == "first"))


def _begin_at_shares(model: TransformerClassifier, has: npt.NDArray[Any]) -> None:
    """Set the biases of a new model so that each label is as probable as it is frequent.

    `has` is 1 where a text has a label, (texts, labels); each label counts half a text more than it
    has. With biases of 0 a new model gives each text half of all labels by chance, and the first
    steps do nothing but unlearn them (Lin et al. 2017, "Focal loss for dense object detection",
    section 3.3).
    """
    shares = (has.sum(0) + 0.5) / (len(has) + 1)
    log_odds = torch.logit(torch.tensor(shares, dtype=torch.float32))
    with torch.no_grad():
        model.projection.bias.copy_(log_odds)


def _build_model(config: ClassificationConfig) -> TransformerClassifier:
    return TransformerClassifier(config.model, config.vocab_size, len(config.labels))
