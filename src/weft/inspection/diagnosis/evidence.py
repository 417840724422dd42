"""The evidence for causes: a model, what its run wrote down, and what it does with a text."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft.console import stages
from weft.data.check.finding import counted
from weft.data.overlap import TextHashes
from weft.evaluation.language import LanguageScores
from weft.inspection.diagnosis.labelling import POOR_GAIN, Labelling, is_poor_macro_f1
from weft.inspection.diagnosis.run import Run
from weft.inspection.diagnosis.sampling import MOST_ROWS, beginnings
from weft.inspection.probe import Probe, exchanged
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_translation import TrainableTranslation

POOR_BLEU = 15.0
# of a language model, as a share of the loss of guessing: ln of the vocabulary's size
POOR_LOSS = 0.65


@dataclass(frozen=True)
class Evidence:
    """A model, its run, and the text to try it on; None stands for no text.

    Each trial is made once, when it is first asked for.
    """

    task: TrainableTask[Any, Any, Any]
    run: Run
    given: Any = None
    # the hashes of the text that it was trained on
    trained_on: TextHashes | None = None

    @property
    def text(self) -> Any:
        """Return the text as the model should get it: with its sides in the model's order."""
        return exchanged(self.given) if self.is_exchanged else self.given

    @cached_property
    def probe(self) -> Probe | None:
        """Try a translator with the text as it should get it; None for others or without text."""
        if self.probe_as_given is None or not self.is_exchanged:
            return self.probe_as_given
        return self.probe_as_given.exchanged

    @cached_property
    def probe_as_given(self) -> Probe | None:
        """Try a translator with the text as it was given; None for others or without text."""
        if self.given is None or not isinstance(self.task, TrainableTranslation):
            return None
        return Probe(self.task, self.given.sample(MOST_ROWS))

    @cached_property
    def is_exchanged(self) -> bool:
        """Return whether a translator knows the text far better with its sides exchanged.

        One that knows neither order has a small difference too, and either way.
        """
        if self.probe_as_given is None:
            return False
        loss, _ = self.probe_as_given.loss_and_end
        swapped, _ = self.probe_as_given.exchanged.loss_and_end
        return swapped < 0.8 * loss and swapped < 0.9 * self.task.loss_of_guessing

    @cached_property
    def labelling(self) -> Labelling | None:
        """Try a classifier with the text; None for others or without text."""
        if self.given is None or not isinstance(self.task, TrainableClassification):
            return None
        return Labelling(self.task, self.given)

    @cached_property
    def is_poor_on_text(self) -> bool:
        """Return whether the model does badly on the text; False without text."""
        if self.probe is not None:
            return self.probe.bleu < POOR_BLEU
        if self.labelling is not None:
            return self.labelling.is_poor
        if self.given is None:
            return False
        stages.enter(f"scoring {counted(len(self.given), self.task.unit)}")
        scores = self.task.evaluate(beginnings(self.given))
        assert isinstance(scores, LanguageScores)
        return scores.loss > POOR_LOSS * self.task.loss_of_guessing

    @cached_property
    def is_poor_by_run(self) -> bool | None:
        """Return whether the model does badly by its run's figures; None where there are none.

        These are of test or else of dev; of a language model also of training.
        """
        verdict = self.run.verdict or {}
        test = verdict.get("test") or {}
        dev = verdict.get("dev") or {}
        if isinstance(self.task, TrainableTranslation):
            bleu = test.get("bleu", dev.get("dev_bleu"))
            return bleu < POOR_BLEU if isinstance(bleu, int | float) else None
        if isinstance(self.task, TrainableClassification):
            return self._is_poor_classifier(test, dev)
        losses = self.run.dev_losses or self.run.train_losses
        return (
            losses[-1][1] > POOR_LOSS * self.task.loss_of_guessing if losses else None
        )

    def _is_poor_classifier(
        self, test: Mapping[str, Any], dev: Mapping[str, Any]
    ) -> bool | None:
        """Return the same of a classifier: by accuracy, or by macro-F1 where that is known."""
        num_labels = len(self.task.labels)
        chance = 1 / num_labels
        right = test.get("accuracy", dev.get("dev_accuracy"))
        if not isinstance(right, int | float):
            return None
        if right - chance < POOR_GAIN * (1 - chance):
            return True
        macro_f1 = test.get("macro_f1", dev.get("dev_macro_f1"))
        if not isinstance(macro_f1, int | float):
            return False
        return is_poor_macro_f1(macro_f1, num_labels - test.get("num_absent", 0))
