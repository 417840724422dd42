"""The use of a model by Weft, and its score: beside those of another form."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.evaluation.metrics import translation_scores
from weft.ship.certificate.trial import Trial
from weft.ship.source import Source
from weft.tasks.classification import Classification
from weft.tasks.task import Task
from weft.tasks.translation import Translation, in_forms_of

NEW_TOKENS = 24  # of a continuation


def used_by_weft(task: Task[Any, Any], texts: Sequence[str]) -> list[Any]:
    """Return what Weft's own verbs give for the texts: translations, labels, or greedy
    continuations.
    """
    predictor = task.predictor()
    if isinstance(task, Translation):
        return [found.text for found in predictor.translate(texts)]
    if isinstance(task, Classification):
        return [found.labels for found in predictor.classify(texts)]
    return [
        predictor.generate(text, temperature=0.0, max_new_tokens=NEW_TOKENS).text
        for text in texts
    ]


def scores_of(
    source: Source, trial: Trial, found: Sequence[Any]
) -> Mapping[str, float]:
    """Return BLEU of translations; other tasks have no score here."""
    if not trial.references:
        return {}
    task = source.task
    assert isinstance(task, Translation)
    references = in_forms_of(task.tokenizers[1:], trial.references)
    scores = translation_scores(found, references, task.config.tgt_lang)
    return {"BLEU": scores.bleu}
