"""The verdict on a language model: its loss on dev, beside that of counting tokens and pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from weft.data.documents import Documents
from weft.run.judging.judgement import NOT_YET, USABLE, Judgement, not_judged
from weft.tasks.language_modelling import LanguageModelling

MOST_CHARACTERS = 4_000_000  # of training text are counted; of dev a tenth of it
# a pair's probability: this share of how often it followed, the rest of the token's own frequency
PAIRS = 0.8


@dataclass(frozen=True)
class Yardsticks:
    """Losses on dev, in nats a token: of guessing, of counting tokens and of counting pairs."""

    guessing: float
    tokens: float
    pairs: float


def judge_language_model(
    task: LanguageModelling,
    train: Documents,
    dev: Documents,
    loss: float | None,
    by_heart: bool,
) -> Judgement:
    """Return the verdict by the `loss` on dev of the step that is the model, in nats a token."""
    if loss is None:
        return not_judged("dev was not scored")
    encode = task.tokenizers[0].encode_batch
    seen = encode(_beginnings(train, MOST_CHARACTERS))
    unseen = encode(_beginnings(dev, MOST_CHARACTERS // 10))
    if sum(map(len, unseen)) < 2 or sum(map(len, seen)) < 2:
        return not_judged("dev has no text to judge by")
    unit = "character" if task.config.tokenizer.kind == "character" else "token"
    beside = yardsticks(seen, unseen, task.config.vocab_size)
    return judge(loss, beside, unit, by_heart)


def judge(loss: float, beside: Yardsticks, unit: str, by_heart: bool) -> Judgement:
    """Return the verdict by a loss on dev, in nats a token, which is called `unit`."""
    if loss >= beside.tokens:
        verdict = NOT_YET
        what = f"how often each {unit} occurs"
        first = _no_better(loss, beside.tokens, what, unit)
    elif loss >= beside.pairs:
        verdict = NOT_YET
        what = f"which {unit} follows which"
        first = _no_better(loss, beside.pairs, what, unit)
    else:
        verdict = USABLE
        first = f"for text like the training text: it predicts better than pairs of {unit}s do"
    unsure = (
        f"the next {unit} of dev is as unsure to it as one among {_among(loss)} equally likely ones ({loss:.2f} nats); "
        f"among {_among(beside.pairs)} where pairs are counted, {_among(beside.tokens)} where {unit}s are, "
        f"{_among(beside.guessing)} by guessing"
    )
    says = [first, unsure]
    if by_heart:
        says.append(
            "it learns the training text by heart: on dev the loss has risen; longer training does not help"
        )
    figures = {
        "loss": round(loss, 4),
        "guessing_loss": round(beside.guessing, 4),
        "tokens_loss": round(beside.tokens, 4),
        "pairs_loss": round(beside.pairs, 4),
        "by_heart": by_heart,
    }
    return Judgement(verdict, says, figures)


def yardsticks(
    seen: Sequence[Sequence[int]], unseen: Sequence[Sequence[int]], vocab_size: int
) -> Yardsticks:
    """Count in `seen` and score `unseen`; both are documents of token ids.

    Each token counts once more than it was seen. A pair's probability is a mixture of what followed
    its first token and of how frequent its second one is.
    """
    counts = np.bincount(_flat(seen), minlength=vocab_size) + 1.0
    own = counts / counts.sum()
    before, after = _pairs(seen)
    keys, times = np.unique(before * vocab_size + after, return_counts=True)
    followed = np.bincount(before, minlength=vocab_size)
    first, second = _pairs(unseen)
    asked = first * vocab_size + second
    hits = np.zeros(len(asked), np.int64)
    if len(keys):
        index = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        hits = np.where(keys[index] == asked, times[index], 0)
    share = np.where(followed[first] > 0, PAIRS, 0.0)
    conditional = hits / np.maximum(followed[first], 1)
    mixed = share * conditional + (1 - share) * own[second]
    tokens = float(-np.log(own[second]).mean())
    pairs = float(-np.log(mixed).mean())
    return Yardsticks(math.log(vocab_size), tokens, pairs)


def _pairs(
    rows: Sequence[Sequence[int]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first and the second tokens of all pairs that follow each other."""
    first = [row[:-1] for row in rows]
    second = [row[1:] for row in rows]
    return _flat(first), _flat(second)


def _flat(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.array(list(chain.from_iterable(rows)), np.int64)


def _beginnings(text: Documents, characters: int) -> list[str]:
    """Return the beginnings of documents, until there are enough characters."""
    beginnings = []
    for document in text.texts:
        if characters <= 0:
            break
        beginnings.append(document[:characters])
        characters -= len(document)
    return beginnings


def _no_better(loss: float, counting: float, what: str, unit: str) -> str:
    how = "worse than" if loss > counting else "no better than"
    return f"{how} counting {what}: {loss:.2f} against {counting:.2f} nats a {unit}"


def _among(loss: float) -> str:
    return f"{math.exp(min(loss, 50.0)):,.0f}"
