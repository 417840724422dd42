"""A translation, and the marks that say what may be wrong with it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from weft.config import LimitingKey
from weft.data.numbers import Difference
from weft.predict.alignment import Link
from weft.predict.memory_use import MemoryUse
from weft.predict.terms import TermUse
from weft.predict.words import SourceWord, WordReport

OutputLimit: TypeAlias = Literal[
    "decoding.max_len_ratio", "model.max_len", "exhaustive"
]
"""The setting that allows a translation no more tokens: `decoding.max_len_ratio` together with
`decoding.max_len_extra`, `model.max_len` or `DecodingSettings.exhaustive`.
"""
# what a reader of a message can do about each limit
HOW_TO_CHANGE: dict[OutputLimit, str] = {
    "decoding.max_len_ratio": "weft train --from with a larger decoding.max_len_ratio or max_len_extra raises it",
    "model.max_len": "translate shorter texts, or train a new model with a larger model.max_len",
    "exhaustive": "a larger number for exhaustive allows longer ones",
}
# and about translations that repeat themselves, most of which are cut for that
HOW_TO_END_REPETITION = (
    "train longer or on more text; until then weft translate --no-repeat-ngrams 3"
)
# and about a source that was cut, by the recipe key that allows no longer one
HOW_TO_READ_ALL: dict[LimitingKey, str] = {
    "data.max_len": "make it several sentences, or train with a larger data.max_len",
    "model.max_len": "make it several sentences, or train a new model with a larger model.max_len",
}


@dataclass(frozen=True)
class Alternative:
    """A translation among several of a text.

    `truncated` says the same as in `Prediction`: the source or this translation was cut.
    """

    text: str
    score: float
    truncated: bool


@dataclass(frozen=True)
class Prediction:
    """A translation.

    `score` is what translations were ranked by: the length-normalised log-probability, with the
    coverage penalty if one was given, or the mean utility of minimum Bayes risk; the mean over
    `segments` where a long text was translated in several; None for a text with nothing in it.
    Samples are not ranked; they have the first of these.

    Two things may be cut, each for itself. `source_cut` says that the end of a sentence was not
    read. `output_limit` names the limit at which the translation was cut, that of the first such
    segment; None where it came to its end.

    `empty` says that the model answered nothing to the text, or to one of its segments.
    `repetition` says that the translation says the same again and again (`repeats`), `short` that
    it has less than 0.7 times the tokens for its source that nearly all pairs in training have (a
    smaller loss has no mark), `unsure` that its tokens are less probable than those of 19 in 20
    translations of dev. `unknown_words` are those of the text that were never seen in training.

    `n_best` starts with the translation itself; of several segments its j-th entry joins the j-th
    of each. Those of a search are different token sequences, but two may read alike; samples may be
    equal. Minimum Bayes risk counts equal samples as one, so that it may have fewer than were asked
    for, and all of them different.

    `tokens` are the target tokens in readable form, end symbols included; `token_log_probs` are
    their log-probabilities, in nats. `alignments`, where they were asked for, have one link for
    each target token; the tokens of segments are counted one after the other. `words` come with
    them: those of the translation, each with its place, its probability and its source words.
    `terms` are those of the glossary that the text has, where there is one.

    `numbers` are those that the text has and the translation has not, or the other way round, as
    far as they are no words; None where they are the same.

    `memory` has the units of a translation memory that were taken and those that are near, where
    there is one. A segment that was taken has a score of 0, and so have its tokens: it is certain.

    `quality` is the share of its words that is expected to be right, by what the model has learned
    of itself on dev; None where it has not. With alignments, or where doubts were asked for, such a
    model says the quality of every word, the source words that may be `omitted`, nothing having
    been written from them, and the phrases that are `doubled`, said twice though the source does
    not.
    """

    text: str
    score: float | None
    segments: int
    n_best: list[Alternative]
    token_log_probs: list[float]
    tokens: list[str] = field(default_factory=list)
    empty: bool = False
    repetition: bool = False
    short: bool = False
    source_cut: bool = False
    output_limit: OutputLimit | None = None
    unsure: bool = False
    unknown_words: list[str] = field(default_factory=list)
    alignments: list[Link] | None = None
    words: list[WordReport] | None = None
    terms: list[TermUse] | None = None
    memory: list[MemoryUse] | None = None
    quality: float | None = None
    omitted: list[SourceWord] | None = None
    doubled: list[str] | None = None
    numbers: Difference | None = None

    @property
    def is_taken(self) -> bool:
        """Return whether all of it was taken from a memory, and nothing searched."""
        taken = [use for use in self.memory or () if use.taken]
        return len(taken) == self.segments > 0

    @property
    def output_cut(self) -> bool:
        """Return whether the translation itself came to no end before its limit."""
        return self.output_limit is not None

    @property
    def truncated(self) -> bool:
        """Return whether anything was cut: the source, the translation, or both.

        False does not say that the limit had no effect. A search puts every hypothesis that ended
        before all that were cut, so that under a tight limit it returns a poor translation that
        ended rather than a more probable one that did not.
        """
        return self.source_cut or self.output_cut

    @property
    def is_unaligned(self) -> bool:
        """Return whether alignments were asked for, and no token comes from any of the source."""
        return self.alignments == [] and bool(self.tokens)

    @property
    def confidence(self) -> float | None:
        """Return the mean log-probability of its tokens, in nats; None where it has none."""
        if not self.token_log_probs:
            return None
        return sum(self.token_log_probs) / len(self.token_log_probs)

    def to_json(self) -> dict[str, Any]:
        """Return the fields and `truncated` as a plain dictionary.

        It has `alignments`, `words`, `terms` and `memory` only where they were asked for,
        `quality`, `omitted` and `doubled` only where they are known, `numbers` where they differ.
        """
        head = {"text": self.text, "score": self.score, "truncated": self.truncated}
        fields = head | asdict(self)
        if self.numbers is None:
            del fields["numbers"]
        else:
            fields["numbers"] = self.numbers.to_json()
        for name in ("alignments", "quality", "omitted", "doubled"):
            if fields[name] is None:
                del fields[name]
        if self.terms is None:
            del fields["terms"]
        else:
            fields["terms"] = [use.to_json() for use in self.terms]
        if self.memory is None:
            del fields["memory"]
        else:
            fields["memory"] = [use.to_json() for use in self.memory]
        if self.words is None:
            del fields["words"]
        else:
            fields["words"] = [word.to_json() for word in self.words]
        return fields


# tokens, one after the other, that are the same as those before them
_SHORTEST_RUN = 6


def repeats(ids: Sequence[int], longest: int = 16) -> bool:
    """Return whether a run of tokens repeats itself without a gap.

    That is a single token seven times, two tokens four times, or 3 to `longest` tokens three times.
    """
    return next(_runs(ids, longest), None) is not None


def repeated(ids: Sequence[int], longest: int = 16) -> set[int]:
    """Return the places of the tokens that say again what stands before them, in runs that
    `repeats` finds.
    """
    places: set[int] = set()
    for end, length in _runs(ids, longest):
        places.update(range(end - length, end))
    return places


def _runs(ids: Sequence[int], longest: int) -> Iterator[tuple[int, int]]:
    """Yield where each run that is long enough ends so far, and how many of its tokens repeat."""
    # each token of a run stands somewhere before, too
    if len(ids) - len(set(ids)) < _SHORTEST_RUN:
        return
    for period in range(1, longest + 1):
        run = 0
        pairs = zip(ids[period:], ids, strict=False)
        for place, (here, before) in enumerate(pairs, start=period + 1):
            run = run + 1 if here == before else 0
            if run >= max(2 * period, _SHORTEST_RUN):
                yield place, run
