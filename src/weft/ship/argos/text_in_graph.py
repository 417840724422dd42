"""The characters of texts in a graph of ONNX: what each is, and what stands beside it.

A truth or a number is computed for each character, all at once; a place is counted from 1.

Shapes: B texts, L characters, W words.
"""

from collections.abc import Iterator, Sequence
from functools import cache, cached_property, reduce
from itertools import accumulate
from operator import add, and_
from typing import Any

import numpy as np

from weft.ship.argos.characters import Characters
from weft.ship.onnx.graph import Graph, Value
from weft.ship.tensors import constant

RUN = 64  # characters, at most, that are looked through for the last one of a kind
LONGEST = 10  # letters of a word that can be known
_BASE = 64  # of the number of a word, in which each letter is a digit
_FAR = 16  # more than characters are looked back or ahead


class Text:
    """The characters of texts, `units` (B, L) by the ids of their kinds."""

    def __init__(self, graph: Graph, units: Value, characters: Characters) -> None:
        self.graph = graph
        self.units = units
        self.characters = characters
        self.is_ = cache(self._is)
        self.letter = cache(self._letter)

    @cached_property
    def places(self) -> Value:
        """Return the place of each character."""
        first = self.graph.ints(1)
        end = self.units.size(1) + first
        return self.graph.range(first, end)

    def beside(self, value: Value, offset: int) -> Value:
        """Return for each character the number of the one so many places behind it; 0 beyond the
        ends.
        """
        pads = self.graph.ints(0, _FAR, 0, _FAR)
        wide = self.graph.op("Pad", value, pads)
        start = _FAR + offset
        return wide.part(1, start, start - 2 * _FAR)

    def true_beside(self, truth: Value, offset: int) -> Value:
        """Return the same of truths."""
        numbers = truth.to("int64")
        found = self.beside(numbers, offset)
        return found.to("bool")

    def last(self, truth: Value) -> Value:
        """Return for each character the last place that a truth holds of, its own or one before; 0
        where there is none within a run.
        """
        graph = self.graph
        places = truth.to("int64") * self.places
        floats = places.to("float32")
        found = graph.op(
            "MaxPool",
            floats.unsqueezed(1),
            kernel_shape=[RUN],
            pads=[RUN - 1, 0],
        )
        row = graph.op("Squeeze", found, graph.ints(1))
        return row.to("int64")

    def at(self, value: Value, places: Value) -> Value:
        """Return the numbers or truths of the characters at places; beyond the ends, those of the
        nearest.
        """
        graph = self.graph
        last = self.units.size(1) - 1
        from_0 = graph.op("Max", places - 1, 0)
        indices = graph.op("Min", from_0, last)
        return graph.op("GatherElements", value, indices, axis=1)

    def word_before(self) -> "Word":
        """Return the word that ends right before each character, and begins behind a boundary."""
        offsets = range(-1, -LONGEST - 2, -1)
        parts = [~self.is_("boundary", offset) for offset in offsets]
        return Word(self, offsets, parts)

    def word_from(self, first: int) -> "Word":
        """Return the word of letters that begins so many places behind each character."""
        end = first + LONGEST + 1
        offsets = range(first, end)
        parts = [self.is_("letter", offset) for offset in offsets]
        return Word(self, offsets, parts)

    def _is(self, name: str, offset: int = 0) -> Value:
        """Return whether the character so many places behind each has a property."""
        kinds = self.characters.kinds
        table = np.array([name in kind.properties for kind in kinds])
        return self._of_table(f"is_{name}", table, offset)

    def _letter(self, offset: int) -> Value:
        """Return the number of the letter so many places behind each."""
        kinds = self.characters.kinds
        table = np.array([kind.letter for kind in kinds], np.int64)
        return self._of_table("letters", table, offset)

    def _of_table(self, name: str, table: Any, offset: int) -> Value:
        units = self.units
        if offset:
            units = self.beside(units, offset)
        rows = self.graph.array(constant(name, table))
        return rows.rows(units)


class Word:
    """The word beside each character, from the nearest letter on: its places are `offsets` away.

    It goes on as long as its `parts` do; one that fills all places is too long to be known.
    """

    def __init__(
        self, text: Text, offsets: Sequence[int], parts: Sequence[Value]
    ) -> None:
        self.text = text
        self.offsets = offsets
        self.inside = list(accumulate(parts, and_))

    def has_length(self, length: int) -> Value:
        """Return whether it has so many characters."""
        last = self.inside[length - 1]
        return last & ~self.inside[length]

    def among(self, name: str, words: Sequence[str]) -> Value:
        """Return whether it is one of some words, in whatever case."""
        numbers = [self._number_of(word) for word in words]
        array = np.array(numbers, np.int64)
        known = self.text.graph.array(constant(name, array))
        is_each = self._number.unsqueezed(2).equals(known)
        is_one = is_each.to("uint8").largest()
        return is_one.to("bool") & self._is_known

    def begins(self, letters: str) -> Value:
        """Return whether these are the nearest letters."""
        found = self.inside[len(letters) - 1]
        for letter, offset in zip(letters, self.offsets, strict=False):
            number = self.text.characters.letters[letter]
            found = found & self.text.letter(offset).equals(number)
        return found

    def all(self, truth: Value) -> Value:
        """Return whether a truth holds of each of its characters."""
        found = self._is_known
        for inside, offset in self._places():
            holds = self.text.true_beside(truth, offset)
            found = found & (~inside | holds)
        return found

    def _places(self) -> Iterator[tuple[Value, int]]:
        """Yield whether it goes so far, for each place of a word that can be known."""
        return zip(self.inside, self.offsets[:LONGEST], strict=False)

    @cached_property
    def _is_known(self) -> Value:
        first = self.inside[0]
        return first & ~self.inside[LONGEST]

    @cached_property
    def _number(self) -> Value:
        """Return the number whose digits are the letters, the nearest one the last."""
        digits = []
        for place, (inside, offset) in enumerate(self._places()):
            letter = self.text.letter(offset)
            digit = letter * inside.to("int64")
            digits.append(digit * _BASE**place)
        return reduce(add, digits)

    def _number_of(self, word: str) -> int:
        """Return the number that a word has here."""
        is_behind = self.offsets[0] > 0
        letters = word if is_behind else word[::-1]
        number = 0
        for letter in reversed(letters):
            number = number * _BASE + self.text.characters.letters[letter]
        return number
