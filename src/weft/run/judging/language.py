"""The verdict on a language model: how well it foretells dev, beside counting tokens and pairs of
tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.data.documents import Documents
from weft.run.judging.judgement import NOT_YET, USABLE, Judgement, not_judged
from weft.tasks.language_modelling import LanguageModelling

MOST_CHARACTERS = 4_000_000  # of training text are counted; of dev a tenth of it
# share that what followed the token before has in the pair's probability; the rest is the token's
# own
PAIRS = 0.8


@dataclass(frozen=True)
class Yardsticks:
    """Losses on dev, in nats a token: of guessing, of counting tokens, and of counting pairs of
    tokens.
    """

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
    """By the `loss` on dev of the step that is the model."""
    if loss is None:
        return not_judged("dev was not scored")
    encode = task.tokenizers[0].encode_batch
    seen, unseen = (
        encode(_some(text, most)) for text, most in ((train, 1.0), (dev, 0.1))
    )
    if sum(map(len, unseen)) < 2 or sum(map(len, seen)) < 2:
        return not_judged("dev has no text to tell by")
    unit = "character" if task.config.tokenizer.kind == "character" else "token"
    beside = yardsticks(seen, unseen, task.config.vocab_size)
    return judge(loss, beside, unit, by_heart)


def judge(loss: float, beside: Yardsticks, unit: str, by_heart: bool) -> Judgement:
    """Return the verdict by a loss on dev, in nats a token, which is called `unit`."""
    if loss >= beside.tokens:
        verdict, first = (
            NOT_YET,
            _no_better(loss, beside.tokens, f"how often each {unit} occurs", unit),
        )
    elif loss >= beside.pairs:
        verdict, first = (
            NOT_YET,
            _no_better(loss, beside.pairs, f"which {unit} follows which", unit),
        )
    else:
        verdict, first = (
            USABLE,
            f"for text like the training text: it foretells more than pairs of {unit}s tell",
        )
    own, tokens, pairs, guessing = (
        _among(one) for one in (loss, beside.tokens, beside.pairs, beside.guessing)
    )
    unsure = (
        f"the next {unit} of dev is as unsure to it as one among {own} equally likely ones; among {pairs} where "
        f"pairs are counted, {tokens} where {unit}s are, {guessing} by guessing ({loss:.2f} nats)"
    )
    says = [first, unsure]
    if by_heart:
        says.append(
            "it learns the training text by heart: on dev the loss has risen; longer training does not help"
        )
    figures = {
        "loss": round(loss, 4),
        **{
            f"{name}_loss": round(getattr(beside, name), 4)
            for name in ("guessing", "tokens", "pairs")
        },
        "by_heart": by_heart,
    }
    return Judgement(verdict, says, figures)


def yardsticks(
    seen: Sequence[Sequence[int]], unseen: Sequence[Sequence[int]], vocab_size: int
) -> Yardsticks:
    """Count in `seen`, score `unseen`; both are documents of token ids, and each token counts once
    more than seen.

    A pair's probability is a mixture of what followed its first token and of how frequent its
    second one is.
    """
    counts = np.bincount(_flat(seen), minlength=vocab_size) + 1.0
    own = counts / counts.sum()
    before, after = _pairs(seen)
    keys, times = np.unique(before * vocab_size + after, return_counts=True)
    followed = np.bincount(before, minlength=vocab_size)
    first, second = _pairs(unseen)
    places = np.minimum(
        np.searchsorted(keys, first * vocab_size + second), max(len(keys) - 1, 0)
    )
    hits = (
        np.where(keys[places] == first * vocab_size + second, times[places], 0)
        if len(keys)
        else 0
    )
    share = np.where(followed[first] > 0, PAIRS, 0.0)
    mixed = share * hits / np.maximum(followed[first], 1) + (1 - share) * own[second]
    return Yardsticks(
        math.log(vocab_size),
        float(-np.log(own[second]).mean()),
        float(-np.log(mixed).mean()),
    )


def _pairs(
    rows: Sequence[Sequence[int]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each token but a document's first, and the one before it."""
    return _flat([row[:-1] for row in rows]), _flat([row[1:] for row in rows])


def _flat(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.array([i for row in rows for i in row], np.int64)


def _some(text: Documents, share: float) -> list[str]:
    """Return the beginnings of documents, until there are enough characters."""
    room, found = int(share * MOST_CHARACTERS), []
    for one in text.texts:
        if room <= 0:
            break
        found.append(one[:room])
        room -= len(one)
    return found


def _no_better(loss: float, counting: float, what: str, unit: str) -> str:
    how = "worse than" if loss > counting else "no better than"
    return f"{how} counting {what}: {loss:.2f} against {counting:.2f} nats a {unit}"


def _among(loss: float) -> str:
    return f"{math.exp(min(loss, 50.0)):,.0f}"
