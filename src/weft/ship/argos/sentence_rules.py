"""The rules of `weft.data.segment` as a graph of ONNX, which reads a text character by character.

Argos Translate has the ends of sentences found by a network that a package brings, in the folder
`minisbd`; where there is none it downloads one. This one has learned nothing: it has tables of what
characters are, and looks at those around each place. So it finds what Weft's own splitter finds,
but in longer runs of marks than `RUN`, and in numbers of items of which one follows the other.

Shapes: B texts, L characters.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.data.segment import sentence_rules
from weft.ship.argos.characters import Characters, characters_of
from weft.ship.argos.text_in_graph import Text, Word
from weft.ship.onnx.graph import Graph, Value

# words that `weft.data.segment` treats alike
_CLOCK = ("a.m", "p.m")
_STREET = "str"  # ends the first word of "Hauptstr. 5"
_MOST = 1_000_000  # characters that are read at a time
# the numbers that say what a character is: nothing, or the last of a sentence
_NUM_CLASSES = 3


def write_rules(path: Path, language: str) -> None:
    """Write the graph for texts of a language (BCP-47)."""
    rules = sentence_rules(language)
    words = (*rules["abbreviations"], *rules["numbered"], *rules["beginners"])
    characters = characters_of(rules, (*words, *_CLOCK, _STREET))
    graph = Graph({})
    units = graph.input("units", "int64", "texts", "characters")
    graph.input("features", "float32", "texts", "characters", "features")
    ends = Ends(Text(graph, units, characters), rules).found()
    none = graph.op("Mul", ends.to("float32"), 0.0)
    classes = [none + 0.5, none, ends.to("float32")]
    scores = graph.join([part.unsqueezed(2) for part in classes], 2)
    graph.output("scores", scores, "texts", "characters", _NUM_CLASSES)
    graph.write(path, "sentences", _facts(language, characters))


def _facts(language: str, characters: Characters) -> Mapping[str, str]:
    """Return what the reader of such a network finds in its file: settings, and ids by
    characters.
    """
    config = {"max_seqlen": _MOST, "batch_size": 1, "feat_funcs": []}
    vocabulary = {"lang": "", "_unit2id": dict(characters.ids)}
    return {
        "lang_code": language,
        "config": json.dumps(config),
        "vocab": json.dumps(vocabulary, ensure_ascii=False),
    }


class Ends:
    """The places where sentences end: their last characters but white space."""

    def __init__(self, text: Text, rules: Mapping[str, Any]) -> None:
        self.text = text
        self.rules = rules
        self.is_ = text.is_

    def found(self) -> Value:
        """Return whether each character ends a sentence."""
        wide = self._wide_run()
        without_items = self._all(wide, None)
        return self._all(wide, without_items)

    def _all(self, wide: Value, before: Value | None) -> Value:
        """Return the ends, where numbers of items stand behind those `before`; None: without
        items.
        """
        is_ = self.is_
        asked = is_("exclaims") & is_("unspaced", 1)
        narrow = self._narrow(before) & ~wide
        return (wide & self._ends_wide()) | asked | narrow

    # A mark that needs no space behind it
    # ----------------------------------------------------------------------------------

    def _wide_run(self) -> Value:
        """Return where a run of marks with a wide one among them, and what closes it, is over."""
        is_ = self.is_
        text = self.text
        mark = text.last(~is_("closing"))
        first = text.at(text.last(~is_("narrow")), mark) + 1
        last_wide = text.at(text.last(is_("wide")), mark)
        goes_on = is_("closing", 1) | (is_("narrow", 1) & mark.equals(text.places))
        return (last_wide >= first) & ~goes_on

    def _ends_wide(self) -> Value:
        """Return whether what follows such a run lets the sentence end."""
        is_ = self.is_
        pause = is_("pause", 1) | (is_("space", 1) & is_("pause", 2))
        quoted = is_("quote") & is_("particle", 1)
        return ~(pause | quoted)

    # A mark with a space behind it
    # ----------------------------------------------------------------------------------

    def _narrow(self, before: Value | None) -> Value:
        is_ = self.is_
        text = self.text
        guillemet = is_("guillemet", 1) & (is_("space", 2) | is_("nothing", 2))
        closes = is_("closing") | is_("either") | (is_("space") & guillemet)
        mark = text.last(~closes)
        first = text.at(text.last(~is_("narrow")), mark) + 1
        is_run = text.at(is_("narrow"), mark) & is_("space", 1)
        is_over = is_run & ~text.true_beside(closes, 1)
        other = text.last(~is_("asks"))
        asks = (first > other) & is_("small", 2)
        return is_over & (asks | (~self._goes_on() & self._ends(first, before)))

    def _goes_on(self) -> Value:
        """Return whether a small letter follows, or a dash and one: "Stop! — he said"."""
        is_ = self.is_

        def small(offset: int) -> Value:
            return is_("small", offset) & ~is_("capital", offset + 1)

        behind_dash = (~is_("space", 3) & small(3)) | (is_("space", 3) & small(4))
        return (~is_("dash", 2) & small(2)) | (is_("dash", 2) & behind_dash)

    def _ends(self, first: Value, before: Value | None) -> Value:
        """Return whether the marks that begin at a place end a sentence, if no small letter
        follows.
        """
        is_ = self.is_
        text = self.text
        several = text.at(is_("dot", 1), first) & (text.places > first)
        is_dot = text.at(is_("dot"), first) & ~several
        asks = text.last(is_("questions")) >= first
        return ~is_dot | asks | self._dot_ends(first, before)

    # A dot, by the word before it
    # ----------------------------------------------------------------------------------

    def _dot_ends(self, first: Value, before: Value | None) -> Value:
        """Return whether the dots at places, which are alone, end a sentence."""
        text = self.text
        numbered = text.at(self._is_numbered, first) & self.is_("digit", 2)
        unfinished = text.at(self._is_unfinished, first)
        number = text.at(self._goes_on_after_number(before), first)
        if self.rules["ordinals"]:
            number = number & ~self._begins
        return ~(numbered | unfinished | number)

    @cached_property
    def _word(self) -> Word:
        return self.text.word_before()

    @cached_property
    def _is_numbered(self) -> Value:
        """Return whether a number follows the word before: "Kap.", "Hauptstr."."""
        is_street = self._word.begins(_STREET[::-1])
        return is_street | self._word.among("numbered", self.rules["numbered"])

    @cached_property
    def _is_unfinished(self) -> Value:
        """Return whether the word before is an abbreviation, or initials and no last word."""
        abbreviated = self._word.among("abbreviations", self.rules["abbreviations"])
        return abbreviated | (self._is_initial & ~self._is_last)

    @cached_property
    def _is_initial(self) -> Value:
        """Return whether the word before is letters with dots between: "J", "U.S"."""
        is_ = self.is_
        is_letter = is_("letter") & (is_("boundary", -1) | is_("dot", -1))
        behind = is_("letter", -1) | (is_("vowel", -1) & is_("letter", -2))
        is_vowel = is_("vowel") & behind
        is_dot = is_("dot") & (is_("letter", -1) | is_("vowel", -1)) & is_("letter", 1)
        return self._word.all(is_letter | is_vowel | is_dot)

    @cached_property
    def _is_last(self) -> Value:
        """Return whether such a word may as well be the last: a unit, a time, a small word."""
        is_ = self.is_
        is_small = is_("small", -1)
        unit = is_small & is_("space", -2) & is_("digit", -3)
        single = self._word.has_length(1) & (is_("word", -1) | unit)
        clock = self._word.among("clock", _CLOCK) & is_small & is_("small", -3)
        return single | clock

    def _goes_on_after_number(self, before: Value | None) -> Value:
        """Return whether the word before is a short number that may be an ordinal, or in other
        languages one with which the sentence begins.
        """
        is_ = self.is_
        one = self._word.has_length(1) & is_("digit", -1)
        two = self._word.has_length(2) & is_("digit", -1) & is_("digit", -2)
        if self.rules["ordinals"]:
            return one | two
        return (one & self._begins_behind(-2, before)) | (
            two & self._begins_behind(-3, before)
        )

    def _begins_behind(self, offset: int, before: Value | None) -> Value:
        """Return whether a sentence begins behind the character so many places behind each, by
        the ends `before`.
        """
        is_ = self.is_
        begins = is_("nothing", offset)
        begins = begins | (is_("space", offset) & is_("nothing", offset - 1))
        if before is None:
            return begins
        beside = self.text.true_beside
        behind_space = is_("space", offset) & beside(before, offset - 1)
        return begins | beside(before, offset) | behind_space

    @cached_property
    def _begins(self) -> Value:
        """Return whether a word follows that stands after no ordinal."""
        if not self.rules["beginners"]:
            return self.is_("nothing")
        following = self.text.word_from(2)
        return following.among("beginners", self.rules["beginners"])
