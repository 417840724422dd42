"""Terms that an output must have, in tokens: the forms of each, and what of them some tokens have.

Shapes: N tokens of all forms of a sentence, E forms.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from weft.decoding.decoder import Ids, Indices, Tokens
from weft.decoding.extensions import Flags

IDLE = -1
"""The place in the forms of an output that is inside of none."""


@dataclass(frozen=True)
class Term:
    """A term that an output must have: one of its `forms`, sequences of tokens.

    `span` has the source tokens that it translates: the first, and the one after the last. None: a
    form may begin anywhere. Of a term that is `open` the last word may go on.
    """

    forms: tuple[tuple[int, ...], ...]
    span: tuple[int, int] | None = None
    open: bool = False


@dataclass(frozen=True)
class Terms:
    """The terms of a sentence, each at a place of its own in the output.

    None of the `inner` ids, which go on with a word, may follow the last token of a form, unless
    its term is open.
    """

    terms: tuple[Term, ...]
    inner: Ids = field(default=(), compare=False)

    @cached_property
    def forms(self) -> "Forms":
        """Return the forms of all terms in one array."""
        return Forms.of(self.terms, self.inner)

    def moved(self, place: Callable[[int, int], tuple[int, int]]) -> "Terms":
        """Return the same terms, their source tokens at other places."""
        moved = []
        for term in self.terms:
            span = None if term.span is None else place(*term.span)
            moved.append(replace(term, span=span))
        return Terms(tuple(moved), self.inner)

    @property
    def lengths(self) -> list[int]:
        """Count the tokens of each term's shortest form."""
        return [min(map(len, term.forms)) for term in self.terms]

    def after(self, ids: Sequence[int]) -> tuple[int, int, int]:
        """Return what an output has after tokens that it did not choose: its place in the forms,
        the terms that are written, as bits, and how many tokens are left at least.

        Each token belongs to one form. Where they end with the beginning of one, the output is
        inside of it.
        """
        met = 0
        place = 0
        end = 0
        while place < len(ids):
            found = self._form_at(ids, place, met)
            if found is None:
                place += 1
                continue
            number, length = found
            met |= 1 << number
            place += length
            end = place
        left = 0
        for number, length in enumerate(self.lengths):
            if not met >> number & 1:
                left += length
        begun = self._begun(ids[end:], met)
        longest = max(begun, default=(0, IDLE, 0))
        return longest[1], met, left - longest[2]

    def _begun(self, ids: Sequence[int], met: int) -> Iterator[tuple[int, int, int]]:
        """Yield the beginnings of unmet forms that these ids end with: the number of their tokens,
        the place in the forms behind them, and how many of the term's least tokens they save.
        """
        first = 0
        for number, term in enumerate(self.terms):
            least = self.lengths[number]
            for form in term.forms:
                count = _ends_with(ids, form)
                if count and not met >> number & 1:
                    saved = least - len(form) + count
                    yield count, first + count, saved
                first += len(form)

    def _form_at(
        self, ids: Sequence[int], place: int, met: int
    ) -> tuple[int, int] | None:
        """Return the term whose form stands at a place, and its length; the longest one."""
        found = None
        for number, term in enumerate(self.terms):
            for form in term.forms:
                here = tuple(ids[place : place + len(form)])
                is_longer = found is None or len(form) > found[1]
                if here == form and is_longer and not met >> number & 1:
                    found = (number, len(form))
        return found


def _ends_with(ids: Sequence[int], form: Sequence[int]) -> int:
    """Count the tokens of a form's longest beginning that some ids end with; not the whole form."""
    most = min(len(form) - 1, len(ids))
    for count in range(most, 0, -1):
        end = tuple(ids[-count:])
        if end == form[:count]:
            return count
    return 0


@dataclass(frozen=True)
class Forms:
    """The tokens of all forms, end to end (N): whose term they are, which end their form, and with
    it the word, how many tokens follow in it, and how many the shortest form of the term has.

    `first` has the places where forms begin (E), `spans` those of their terms, 0 and -1 for any.
    The first tokens of those that are `inner` go on with a word.
    """

    tokens: Tokens
    terms: Indices
    is_last: Flags
    is_closed: Flags
    rest: Indices
    least: Indices
    first: Indices
    spans: Indices
    is_inner: Flags

    @property
    def begins(self) -> Indices:
        """Return the first source token of each form's term."""
        return self.spans[:, 0]

    @property
    def ends(self) -> Indices:
        """Return the one after its last."""
        return self.spans[:, 1]

    @classmethod
    def of(cls, terms: Sequence[Term], inner: Ids = ()) -> "Forms":
        """Join the forms of some terms end to end."""
        rows: list[tuple[int, int, bool, bool, int, int]] = []
        first = []
        spans = []
        for number, term in enumerate(terms):
            least = min(map(len, term.forms))
            for form in term.forms:
                first.append(len(rows))
                spans.append(term.span or (0, -1))
                for place, token in enumerate(form):
                    rest = len(form) - place - 1
                    is_last = rest == 0
                    is_closed = is_last and not term.open
                    rows.append((token, number, is_last, is_closed, rest, least))
        columns = list(zip(*rows, strict=True))
        return cls(
            np.array(columns[0], np.int32),
            np.array(columns[1], np.int64),
            np.array(columns[2], np.bool_),
            np.array(columns[3], np.bool_),
            np.array(columns[4], np.int64),
            np.array(columns[5], np.int64),
            np.array(first, np.int64),
            np.array(spans, np.int64).reshape(-1, 2),
            np.isin(np.array(columns[0])[first], np.asarray(inner)),
        )
