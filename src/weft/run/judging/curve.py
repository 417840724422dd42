"""What the evaluations of a run say of its end: still getting better, or learning by heart."""

from collections.abc import Mapping, Sequence

FEWEST = 3  # evaluations from which on a curve says anything
# a last third that is better than what came before by this share was still getting better
GAIN = 0.02
BY_HEART = 1.05  # a dev loss that rose to so many times its least
LEAST_BLEU = 1.0
APART = 0.7  # and a training loss at so small a share of it


def still_improves(scores: Sequence[float], is_loss: bool) -> bool:
    """Return whether the best of the last third of the evaluations beats all before it by
    `GAIN`.
    """
    if len(scores) < FEWEST:
        return False
    first = len(scores) - max(len(scores) // 3, 1)
    before, last = scores[:first], scores[first:]
    if is_loss:
        return min(last) < min(before) * (1 - GAIN)
    return max(last) > max(before) * (1 + GAIN)


def before_decay(
    evaluations: Sequence[Mapping[str, float]], rates: Sequence[tuple[int, float]]
) -> Sequence[Mapping[str, float]]:
    """Return the evaluations up to the last step at the highest learning rate; all, where those are
    fewer than `FEWEST`.

    While the rate falls every curve gets better, however long the training was: of a schedule that
    stays before it falls, the stay tells whether more steps would help. `rates` are of some steps.
    """
    highest = max((rate for _, rate in rates), default=0.0)
    last = max((step for step, rate in rates if rate >= highest), default=0)
    stayed = [line for line in evaluations if line["step"] <= last]
    return stayed if len(stayed) >= FEWEST else evaluations


def learned_by_heart(dev: Sequence[float], train: Sequence[float]) -> bool:
    """Return whether the dev loss has risen from its least while that of training fell far below
    it.
    """
    return (
        len(dev) >= FEWEST
        and bool(train)
        and dev[-1] > BY_HEART * min(dev)
        and train[-1] < APART * dev[-1]
    )


def deciding(evaluations: Sequence[Mapping[str, float]]) -> tuple[list[float], bool]:
    """Return the values that choose the best step, and whether they are losses: the first after the
    step's number.

    BLEU below `LEAST_BLEU` is chance, and the loss decides.
    """
    keys = [key for line in evaluations for key in line if key != "step"]
    key = keys[0] if keys else ""
    found = [line[key] for line in evaluations if key in line]
    if key == "dev_bleu" and max(found) < LEAST_BLEU:
        key = next((other for other in keys if other.endswith("loss")), key)
        found = [line[key] for line in evaluations if key in line]
    return found, key.endswith("loss")
