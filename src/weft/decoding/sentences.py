"""Sentences for a search, their settings, and the line in which they wait."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol, runtime_checkable

from weft.decoding.decoder import Ids, Tokens
from weft.decoding.forms import Terms
from weft.decoding.sampling import Sampling
from weft.errors import UsageError


@dataclass(frozen=True)
class BeamSettings:
    """The settings of a beam search; as the arguments of `reference.beam_search`.

    `no_repeat_ngrams` n above 0 lets no n tokens in a row occur twice in an output (Paulus et al.
    2018, "A Deep Reinforced Model for Abstractive Summarization", section 2.5).
    """

    bos_id: int
    eos_id: int
    beam_size: int = 1
    length_penalty: float = 0.0
    n_best: int = 1
    banned_ids: Sequence[int] = ()
    no_repeat_ngrams: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.beam_size:
            raise UsageError(
                f"n_best = {self.n_best} and beam_size = {self.beam_size}: n_best must be from 1 to beam_size"
            )


@dataclass(frozen=True)
class SampleSettings(BeamSettings):
    """The settings of sampling: `beam_size` samples of each sentence, all given, in the order of
    their numbers.

    A sample depends on the seed, the ids of its source, its own number and the position alone,
    neither on the sentences beside it nor on how many samples there are. Scores are those of a beam
    search.
    """

    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 1


@runtime_checkable
class Stem(Protocol):
    """A beginning that an output has after its prefix, by whichever tokens."""

    def banned(self, tokens: Sequence[int], /) -> Tokens | None:
        """Return the ids that cannot come after these, the first ones; None where all can."""
        ...


@dataclass(frozen=True)
class Sentence:
    """Ids of a source, its number, and how many new tokens its output may have, eos counted.

    Every output begins with `prefix`, however improbable; its tokens count as new ones. If
    `allowed` has ids, in ascending order, an output has no others; those of the prefix are among
    them. `settings` are its own, None those of the search. What follows the prefix begins with the
    `stem`; each sample begins there with its token of `branches`, where there are some. With
    `records`, its hypotheses have their shares if the decoder records them. Every output has all
    `terms`; those whose tokens are in the prefix are written there. None has
    any of the `avoided` runs of tokens.
    """

    number: int
    ids: Sequence[int]
    max_len: int
    prefix: Sequence[int] = ()
    allowed: Ids = ()
    settings: BeamSettings | None = None
    stem: Stem | None = None
    branches: Sequence[int] = ()
    records: bool = False
    terms: Terms | None = None
    avoided: Sequence[Sequence[int]] = ()


@runtime_checkable
class Line(Protocol):
    """Sentences that wait to be begun.

    `at_once` says that they begin as soon as there is a free index and room. Else a search waits
    for several, because reading several at once is faster.
    """

    at_once: bool

    def take(self, count: int, room: int, at_least_one: bool, /) -> list[Sentence]:
        """Take at most `count` sentences, of at most `room` source tokens together.

        With `at_least_one`, the first may be longer.
        """
        ...


class Waiting:
    """Sentences that wait, the longest first; any number of threads take from them."""

    at_once = False

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        # taken from the end; a long sentence that began last would keep the other threads waiting
        self._sentences = sorted(sentences, key=lambda sentence: len(sentence.ids))
        self._lock = Lock()
        self.stopped = False

    def take(self, count: int, room: int, at_least_one: bool) -> list[Sentence]:
        """Take the longest: at most `count`, of at most `room` padded tokens.

        With `at_least_one`, the first may be longer.
        """
        taken: list[Sentence] = []
        with self._lock:
            while self._sentences and len(taken) < count:
                first = taken[0] if taken else self._sentences[-1]
                longest = len(first.ids)
                is_too_long = longest * (len(taken) + 1) > room
                if is_too_long and (taken or not at_least_one):
                    break
                taken.append(self._sentences.pop())
        return taken

    def stop(self) -> None:
        """Stop every search that takes its sentences from here."""
        self.stopped = True
