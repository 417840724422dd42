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
    deciding = [*scores.items()][:2]
    ranks = [_rank_of(name, value) for name, value in deciding]
    return tuple(ranks)


def is_better(scores: Mapping[str, float], best: Mapping[str, float]) -> bool:
    """Return whether an evaluation is better than the best so far; any is better than none.

    An earlier version may have had other scores, or other ones first: those count that both have,
    in the order of the new evaluation.
    """
    names = [name for name in scores if name in best]
    if not names:
        return True
    now = {name: scores[name] for name in names}
    before = {name: best[name] for name in names}
    return rank(now) > rank(before)


def is_decided_by_loss(scores: Mapping[str, float]) -> bool:
    """Return whether the first score is too low to say anything, so that the loss decides."""
    if not scores:
        return False
    name, value = next(iter(scores.items()))
    least = LEAST.get(name, value)
    return value < least


def _rank_of(name: str, value: float) -> float:
    if name.endswith("loss"):
        return -value
    least = LEAST.get(name, value)
    if value < least:
        return 0.0
    return value
