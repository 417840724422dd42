"""A translation, and what is to be said about it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from weft.predict.alignment import Link


@dataclass(frozen=True)
class Alternative:
    """A translation among several of a text."""

    text: str
    score: float


@dataclass(frozen=True)
class Prediction:
    """A translation.

    `score` is what translations were ranked by: the length-normalised log-probability, with the
    coverage penalty if one was given, or the mean utility of minimum Bayes risk; the mean over
    `segments` where a long text was translated in several; None for a text with nothing in it.
    Samples are not ranked, and have the first. `truncated` says that source or translation was cut
    at a limit, `source_cut` that it was the source (whose translation may have been as well),
    `repetition` that the translation says the same again and again (`repeats`), `short` that it has
    far fewer tokens for its source than any in training, `unsure` that its tokens are less probable
    than those of 19 in 20 translations of dev. `unknown_words` are those of the text that were
    never seen in training. `n_best` starts with the translation itself; of several segments its
    j-th entry joins the j-th of each. `tokens` are the target tokens in readable form, end symbols
    included; `token_log_probs` are their log-probabilities, in nats. `alignments`, where they were
    asked for, have one link for each target token; the tokens of segments are counted one after the
    other.
    """

    text: str
    score: float | None
    truncated: bool
    segments: int
    n_best: list[Alternative]
    token_log_probs: list[float]
    tokens: list[str] = field(default_factory=list)
    repetition: bool = False
    short: bool = False
    source_cut: bool = False
    unsure: bool = False
    unknown_words: list[str] = field(default_factory=list)
    alignments: list[Link] | None = None

    @property
    def confidence(self) -> float | None:
        """Return the mean log-probability of its tokens, in nats; None where it has none."""
        if not self.token_log_probs:
            return None
        return sum(self.token_log_probs) / len(self.token_log_probs)

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; `alignments` only where they were asked for."""
        fields = asdict(self)
        if self.alignments is None:
            del fields["alignments"]
        return fields


def repeats(ids: Sequence[int], longest: int = 16) -> bool:
    """Return whether a run of tokens repeats itself without a gap.

    A run of up to `longest` tokens stands there three times, a single token seven times.
    """
    for period in range(1, longest + 1):
        run = 0
        for here, before in zip(ids[period:], ids, strict=False):
            run = run + 1 if here == before else 0
            if run >= max(2 * period, 6):
                return True
    return False
