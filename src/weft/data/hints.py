"""Hints in a source row: terms that its translation must have, and the translation of a sentence
much like it.

A model that was trained on hints reads them beside the source. They need no ids of their own: unk,
bos and eos never stand inside a source row, so that they can be the brackets.

- A term is `unk`, target words and `eos`, in the place of its source words (Dinu et al. 2019,
  "Training Neural Machine Translation To Apply Terminology Constraints", train by replace). Beside
  source words whose translation it knows, a model would not learn to look at the target's.
- Of a match, `bos` and its target stand behind the whole sentence (Bulte and Tezcan 2019, "Neural
  Fuzzy Repair").

Target words in the source need a tokenizer that both sides share. The plain row is that without
hints; its tokens are what all places count. Shapes: S tokens of the plain row, H of that with
hints; in both the last is eos.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.scripts import is_spaceless_letter
from weft.data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer

_BRACKETS = 2  # of a term


@dataclass(frozen=True)
class TermHint:
    """The `target` ids that the tokens of a plain row from `begin` to before `end` must become."""

    begin: int
    end: int
    target: tuple[int, ...]

    @property
    def length(self) -> int:
        """Return how many tokens of a row it is."""
        return len(self.target) + _BRACKETS

    @property
    def added(self) -> int:
        """Return by how many tokens a row becomes longer; negative where it becomes shorter."""
        return self.length - (self.end - self.begin)


@dataclass(frozen=True)
class Hints:
    """The hints of a row: terms in the order of their places, none within another, and the target
    ids of a match.
    """

    terms: tuple[TermHint, ...] = ()
    match: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms or self.match)

    @property
    def num_tokens(self) -> int:
        """Return how many tokens the hints add to a row; fewer than none where they are shorter
        than what they stand for.
        """
        of_terms = sum(term.added for term in self.terms)
        return of_terms + (len(self.match) + 1 if self.match else 0)

    def within(self, room: int) -> "Hints":
        """Return as many of these hints as add no more than `room` tokens: terms before the match,
        the first before the last.
        """
        if self.num_tokens <= room:
            return self
        kept: list[TermHint] = []
        for term in self.terms:
            if term.added > room:
                break
            room -= term.added
            kept.append(term)
        is_fitting = len(kept) == len(self.terms) and len(self.match) < room
        return Hints(tuple(kept), self.match if is_fitting else ())

    def write(self, ids: Sequence[int]) -> list[int]:
        """Return a plain row without its eos, with the hints in it."""
        written: list[int] = []
        place = 0
        for term in self.terms:
            written += ids[place : term.begin]
            written += [UNK_ID, *term.target, EOS_ID]
            place = term.end
        written += ids[place:]
        if self.match:
            written += [BOS_ID, *self.match]
        return written

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """Return the tokens with hints that stand for some of the plain row, as first and the one
        after the last; a term that begins or ends there is among them as a whole.
        """
        first, last = begin, end
        for term in self.terms:
            if (
                term.begin < begin
            ):  # of one that is not over there, the beginning counts
                first += term.added if term.end <= begin else term.begin - begin
            if term.begin < end:
                last += term.added + max(term.end - end, 0)
        return first, last

    def fold(self, support: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what tokens with hints support (T, H) as support by the plain row's tokens (T, S).

        That of a term's target is its source's, that of a match is nobody's.
        """
        folded: NDArray[np.float32] = support @ self._folding(support.shape[1])
        return folded

    def _folding(self, num_hinted: int) -> NDArray[np.float32]:
        """Return the share of each token's support that each token of the plain row gets (H, S)."""
        num_plain = num_hinted - self.num_tokens
        folding = np.zeros((num_hinted, num_plain), np.float32)
        row = place = 0
        for term in self.terms:
            _keep(folding[row:], place, term.begin)
            row += term.begin - place
            block = folding[row : row + term.length, term.begin : term.end]
            block[:] = _folding_of(term)
            row += term.length
            place = term.end
        _keep(folding[row:], place, num_plain - 1)
        folding[-1, -1] = 1
        return folding


def target_ids(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Return the ids of a term's target as a hint has them; none where they do not give it back.

    In a script without spaces they are those of a text that goes on.
    """
    text = text.strip()
    if is_spaceless_letter(text[:1] or " "):
        ids = tokenizer.encode_going_on(text)
    else:
        ids = tokenizer.encode_inside(text)
    return tuple(ids) if tokenizer.decode(ids).strip() == text else ()


def _keep(folding: NDArray[np.float32], begin: int, end: int) -> None:
    """Let tokens of the plain row keep their own support; the first is that of the first row."""
    places = np.arange(begin, end)
    folding[places - begin, places] = 1


def _folding_of(term: TermHint) -> NDArray[np.float32]:
    """Return what the tokens of a term with its brackets give to its source tokens: those of the
    target from left to right, the brackets to all alike.
    """
    size = term.end - term.begin
    count = len(term.target)
    bracket = np.full((1, size), 1 / size, np.float32)
    ends = np.arange(1, count + 1)[:, None] / count
    places = np.arange(1, size + 1) / size
    both = np.minimum(ends, places) - np.maximum(ends - 1 / count, places - 1 / size)
    target = count * np.maximum(both, 0)
    return np.concatenate([bracket, target, bracket], dtype=np.float32)
