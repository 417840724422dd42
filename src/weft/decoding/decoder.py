"""The protocols between a search and a model, and the hypotheses that a search returns.

The search that runs knows a Decoder: it takes steps for many sentences at once, and an Engine makes
it. The plain ones know a Cache and a Step. `weft.engine` and `weft.model` implement these
protocols.

Shapes: R rows of one step of a decoder; N rows of a cache, M of those that are chosen from it; V
vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.int64]
Tokens: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float32]

Ids: TypeAlias = Sequence[int] | Tokens

C = TypeVar("C", bound="Cache")

FREE = -1  # in the place of an id: any may come next


@dataclass(frozen=True)
class StepInput:
    """The R rows of one step: each is the newest token of one hypothesis.

    `sentences` (R) are indices of sentences in the decoder, `beams` (R) those of hypotheses in the
    beam, `positions` (R) those of `tokens` (R) in the output, bos at 0.
    A row attends to its own position and to those before it. `ancestors[r, p]` is the beam index
    at which the hypothesis of row r stood when position p, an earlier one, was read. Several
    positions of one hypothesis may follow each other.
    `banned` has the ids that may not come next, row after row, and `ban_ends` (R) says where each
    row's end; None: nothing is banned. `forced` (R) has the ids that come next whatever is banned,
    FREE where any may; None: it may everywhere.
    """

    sentences: Indices
    beams: Indices
    positions: Indices
    tokens: Tokens
    ancestors: NDArray[np.int32]
    banned: Tokens = field(default_factory=lambda: np.empty(0, np.int32))
    ban_ends: Indices | None = None
    forced: Tokens | None = None

    def __len__(self) -> int:
        return len(self.sentences)


TopK: TypeAlias = tuple[Floats, Tokens, Floats | None]
"""Log-probabilities and ids of each row's k most probable next tokens (R k), -inf for none, of a
forced row its forced one alone; the log-probabilities of all tokens (R V), where they are asked
for.
"""


@dataclass(frozen=True)
class Beams:
    """The hypotheses of all sentences of a decoder: arrays that a step reads and changes.

    Shapes: S sentences, k hypotheses of each, T positions, L lengths. `lengths`, `sizes`,
    `max_lens`, `eos_ids` and `worst_scores` are (S), `penalties` (S L), `log_probs` and `newest`
    (S k), `tokens`, `ancestors` and `token_log_probs` (S k T); what they hold says
    `weft.decoding.places`.
    """

    lengths: Indices
    sizes: Indices
    max_lens: Indices
    eos_ids: Tokens
    penalties: Floats
    worst_scores: Floats
    log_probs: Floats
    token_log_probs: Floats
    newest: Tokens
    tokens: Tokens
    ancestors: Tokens


@dataclass(frozen=True)
class Advanced:
    """The A sentences of a step of beams, the widest of k: the scores of their hypotheses and which
    of them ended (A k), what no hypothesis that goes on can score above (A), and which sentences
    are broken (A), as their logits are not numbers.

    Without `events`, no hypothesis ended, and no sentence is broken or done.
    """

    scores: Floats
    ended: NDArray[np.bool_]
    bounds: Floats
    broken: NDArray[np.bool_]
    events: int = 1

    def of(self, sentences: NDArray[np.bool_]) -> "Advanced":
        """Return what is known of some sentences."""
        return Advanced(
            self.scores[sentences],
            self.ended[sentences],
            self.bounds[sentences],
            self.broken[sentences],
        )


@runtime_checkable
class Advances(Protocol):
    """A decoder that takes whole steps of beams by itself."""

    def advance(
        self, beams: Beams, active: Indices, width: int, banned: Tokens, /
    ) -> Advanced:
        """Extend the first `width` hypotheses of the active sentences (A) by a token each.

        No row may go on with a banned id. All of a broken sentence stays as it was. MemoryError,
        before anything has changed.
        """
        ...


@runtime_checkable
class Records(Protocol):
    """A decoder that keeps what sentences wrote from their sources."""

    def record(self, index: int, /) -> None:
        """Keep of the next steps of a sentence what `recorded_shares` are made of."""
        ...

    def recorded_shares(
        self, index: int, src_len: int, tokens: Tokens, ancestors: Tokens, /
    ) -> tuple[Floats, Floats]:
        """Return what each source token wrote into the logits of a hypothesis's tokens (T, S), and
        how even the looks were that wrote it (T). Raises MemoryError.
        """
        ...


@runtime_checkable
class Attends(Protocol):
    """A decoder whose steps also say where they look."""

    attends: bool

    def step(
        self,
        inputs: StepInput,
        k: int,
        /,
        *,
        all_log_probs: bool = False,
        attention: Floats | None = None,
    ) -> TopK:
        """Take one step as any decoder, and fill `attention` (R, S) with how much each row attends
        to each source token, 0 behind its own source.
        """
        ...


@runtime_checkable
class Decoder(Protocol):
    """Sentences under way, and their next tokens: all that the search knows of a model."""

    num_sentences: int
    beam_size: int
    # sentences are read when no other is under way, never beside others, and a step takes one
    # position of each hypothesis
    begins_together: bool

    def read(
        self,
        indices: Sequence[int],
        sources: Sequence[Sequence[int]],
        allowed: Sequence[Ids],
        /,
    ) -> None:
        """Encode source sentences, each at an index of its own, whose former sentence is gone.

        `allowed` has the ids that each output may have, none for any.
        """
        ...

    def step(
        self, inputs: StepInput, k: int, /, *, all_log_probs: bool = False
    ) -> TopK:
        """Take one step; return the k most probable next tokens of each row.

        With `all_log_probs`, the log-probabilities of all tokens come with them.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """A model in the form that decoders share."""

    def session(self, num_sentences: int, beam_size: int, /) -> Decoder:
        """Create a decoder of so many sentences with so many hypotheses each, for one thread at a
        time.
        """
        ...


@runtime_checkable
class Cache(Protocol):
    """The keys and values of past positions, or a recurrent state: one row for each hypothesis."""

    def select(self: C, rows: Indices, /) -> C:
        """Return a cache of these rows (M) in this order; a row may be left out or repeated."""
        ...


Step: TypeAlias = Callable[[Indices, C], tuple[Floats, C]]
"""Takes the newest id of each row (N) and the cache; returns the logits of the next token (N, V),
and the longer cache.
"""


@dataclass(frozen=True)
class Hypothesis:
    """An output of a search.

    `ids` are without bos and eos; `log_prob` is the sum of `token_log_probs`, eos included; `score`
    is the log-probability divided by the length penalty; `finished` says that it ended with eos,
    False that it was cut at the limit. `shares` are what each source token wrote into the logits of
    the tokens, eos included, and how even these looks were, where the search has recorded them.
    """

    ids: list[int]
    log_prob: float
    score: float
    token_log_probs: list[float]
    finished: bool
    shares: tuple[Floats, Floats] | None = field(
        default=None, compare=False, repr=False
    )


def length_penalties(alpha: float, longest: int) -> list[float]:
    """Return lp(n) = ((5 + n) / 6) ** alpha for n = 0 .. longest (Wu et al. 2016, equation 14); n
    counts eos.
    """
    return [((5 + n) / 6) ** alpha for n in range(longest + 1)]
