"""The scores of evaluations on dev: which is the better one. Without PyTorch, so that a run can be
read without it.
"""

from collections.abc import Mapping

# a key beside the scores in a line of the log
EVALUATION_SECONDS = "evaluation_seconds"
# below it a score is chance, a few words that happen to be right, and the loss decides
LEAST = {"dev_bleu": 5.0}


def rank(scores: Mapping[str, float]) -> tuple[float, ...]:
    """Rank an evaluation; of two the better has the greater rank, of equal ones the first is
    kept.

    A young model's BLEU says nothing, and its loss alone tells progress.
    """
    return tuple(_rank_of(name, value) for name, value in [*scores.items()][:2])


def is_better(scores: Mapping[str, float], best: Mapping[str, float]) -> bool:
    """Return whether an evaluation is better than the best so far; any is better than none.

    An earlier version may have had other scores, or other ones first: those count that both have,
    in the order of the new evaluation.
    """
    common = {name: best[name] for name in scores if name in best}
    if not common:
        return True
    return rank({name: scores[name] for name in common}) > rank(common)


def is_decided_by_loss(scores: Mapping[str, float]) -> bool:
    """Return whether the first score is too low to say anything, so that the loss decides."""
    name, value = next(iter(scores.items()), ("", 0.0))
    return value < LEAST.get(name, value)


def _rank_of(name: str, value: float) -> float:
    if name.endswith("loss"):
        return -value
    return value if value >= LEAST.get(name, value) else 0.0
