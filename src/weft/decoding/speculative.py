"""Speculative decoding: one step of the model gives several tokens, the same as single steps would.

A draft proposes what may come next. The model reads all of it in one step and takes its own token
at each position, up to the first that the draft did not foresee. A proposed token is accepted only
where it equals the model's own: the most probable, or the one that this position's number draws. So
the text is the same as without a draft. (The sources' rejection sampling keeps its distribution
alone.)

Sources: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding"; Chen et
al. 2023, "Accelerating Large Language Model Decoding with Speculative Sampling"; Saxena 2023,
"Prompt Lookup Decoding".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Protocol, TypeVar, runtime_checkable

from weft.decoding.sampling import Chooser, Place, Steps

C = TypeVar("C", bound="Cache")

# The most tokens proposed at a time. The next proposal has twice as many and one as were right.
MOST = 7


@runtime_checkable
class Cache(Protocol):
    """The past positions of one text, as a model keeps them."""

    def until(self: C, length: int) -> C:
        """Return a cache of the first `length` positions alone."""
        ...


@runtime_checkable
class Draft(Protocol):
    """A way to propose how one text may go on."""

    def propose(self, ids: Sequence[int], place: int, count: int) -> list[int]:
        """Propose at most `count` tokens after `ids`, all of the text so far, of which the last
        `place` are new.
        """
        ...


@dataclass
class Tally:
    """The numbers of tokens that were proposed, and that were accepted."""

    proposed: int = 0
    accepted: int = 0


class PromptLookup:
    """Proposes what followed the last time that the newest tokens stood in the text, the longest
    run of them.
    """

    def __init__(self, longest: int = 8, shortest: int = 2) -> None:
        self.runs = range(longest, shortest - 1, -1)
        # an id is a character here, so that a run is found as fast as a word
        self._text = ""

    def propose(self, ids: Sequence[int], place: int, count: int) -> list[int]:
        """Propose what followed the longest run of the newest tokens where it stood last.

        What followed is repeated where it is shorter than `count`.
        """
        self._text += "".join(map(chr, ids[len(self._text) :]))
        for size in self.runs:
            if size >= len(ids):
                continue
            start = self._text.rfind(self._text[-size:], 0, -1)
            if start >= 0:
                end = start + size
                following = ids[end : end + count]
                return list(islice(cycle(following), count))
        return []


def speculative_tokens(
    steps: Steps[C],
    cache: C,
    draft: Draft,
    choose: Chooser,
    tally: Tally,
    *,
    text: Sequence[int],
    first: int,
    place: int,
    max_new_tokens: int,
    eos_id: int,
) -> Iterator[tuple[int, float]]:
    """Go on from a text: new tokens and their log-probabilities, those of `sampling.sample_tokens`,
    until eos.

    `cache` knows the text from `first` on but for its last token; the last `place` of its tokens
    are new already. One step takes a token and all that is proposed after it, never more than
    `max_new_tokens` can use.
    """
    text = list(text)
    limit = max_new_tokens
    count = 1
    while limit > 0:
        proposed = (
            draft.propose(text, place, min(count, limit - 1)) if limit > 1 else []
        )
        logits, cache = steps([text[-1], *proposed], cache)
        tally.proposed += len(proposed)
        right = 0
        for i, foreseen in enumerate([*proposed, None]):
            token, log_prob = choose(logits[i], Place(text, first, place))
            text.append(token)
            place += 1
            limit -= 1
            right += token == foreseen
            tally.accepted += token == foreseen
            yield token, log_prob
            if token == eos_id:
                return
            if token != foreseen:
                break
        cache = cache.until(len(text) - 1 - first)
        count = min(1 + 2 * right, MOST)
