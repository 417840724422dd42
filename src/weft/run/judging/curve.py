"""The learning curve at the end of a run: still getting better, or learning by heart."""

from collections.abc import Mapping, Sequence

# A line for each: the step and its scores.
Evaluations = Sequence[Mapping[str, float]]

STAYED = 2  # logged steps at the highest rate that show that it stayed there
FEWEST = 3  # evaluations from which on a curve says anything
# a last third that is better than what came before by this share was still getting better
GAIN = 0.02
BY_HEART = 1.05  # a dev loss that rose to so many times its least
LEAST_BLEU = 5.0  # as the trainer has it
APART = 0.7  # and a training loss at so small a share of it


def still_improves(scores: Sequence[float], is_loss: bool, least: float = 0.0) -> bool:
    """Return whether the best of the last third of evaluations beats all before by `GAIN`, and a
    score by `least` at least.
    """
    count = len(scores)
    if count < FEWEST:
        return False
    third = max(count // 3, 1)
    before = scores[:-third]
    last = scores[-third:]
    if is_loss:
        wanted = min(before) * (1 - GAIN)
        return min(last) < wanted
    highest = max(before)
    wanted = max(highest * (1 + GAIN), highest + least)
    return max(last) > wanted


def has_room(
    evaluations: Evaluations, rates: Sequence[tuple[int, float]], least: float = 0.0
) -> bool:
    """Return whether more steps would help: dev got better until the learning rate fell, and then.

    A score must gain `least` at least.

    Where dev got no better while the rate fell, the model has learned what it can.
    """
    key = _deciding_key(evaluations)
    stayed = before_decay(evaluations, rates)
    before = _values(stayed, key)
    after = _values(evaluations[len(stayed) :], key)
    is_loss = key.endswith("loss")
    if not still_improves(before, is_loss, least):
        return False
    if not after:
        return True
    return min(after) <= min(before) if is_loss else max(after) >= max(before)


def before_decay(
    evaluations: Evaluations,
    rates: Sequence[tuple[int, float]],
) -> Evaluations:
    """Return the evaluations up to the last step at the highest learning rate.

    All are returned where those are fewer than `FEWEST`, or where the learning rate did not stay
    there: a cosine falls as soon as the warm-up ends.

    While the rate falls every curve gets better, however long the training was: of a schedule that
    stays before it falls, the stay tells whether more steps would help. `rates` are of some steps.
    """
    highest = max((rate for _, rate in rates), default=0.0)
    steps = [step for step, rate in rates if rate >= highest]
    if len(steps) < STAYED:
        return evaluations
    last = max(steps)
    stayed = [line for line in evaluations if line["step"] <= last]
    if len(stayed) < FEWEST:
        return evaluations
    return stayed


def learned_by_heart(dev: Sequence[float], train: Sequence[float]) -> bool:
    """Return whether the dev loss has risen from its least and that of training is far below."""
    if len(dev) < FEWEST or not train:
        return False
    has_risen = dev[-1] > BY_HEART * min(dev)
    is_apart = train[-1] < APART * dev[-1]
    return has_risen and is_apart


def deciding(evaluations: Evaluations) -> tuple[list[float], bool]:
    """Return the values that choose the best step, and whether they are losses."""
    key = _deciding_key(evaluations)
    return _values(evaluations, key), key.endswith("loss")


def _deciding_key(evaluations: Evaluations) -> str:
    """Return what chooses the best step: the first score after the step's number, "" for none.

    BLEU below `LEAST_BLEU` is chance: the loss decides.
    """
    keys = [key for line in evaluations for key in line if key != "step"]
    if not keys:
        return ""
    key = keys[0]
    if key == "dev_bleu" and max(_values(evaluations, key)) < LEAST_BLEU:
        losses = [other for other in keys if other.endswith("loss")]
        return losses[0] if losses else key
    return key


def _values(evaluations: Evaluations, key: str) -> list[float]:
    return [line[key] for line in evaluations if key in line]
