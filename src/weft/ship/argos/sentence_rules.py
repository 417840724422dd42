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


def write_rules(path: Path, language: str) -> None:
    """Write the graph for texts of a language (BCP-47)."""
    rules = sentence_rules(language)
    words = [*rules["abbreviations"], *rules["numbered"], *rules["beginners"]]
    characters = characters_of(rules, [*words, *_CLOCK, _STREET])
    graph = Graph({})
    units = graph.input("units", "int64", "texts", "characters")
    graph.input("features", "float32", "texts", "characters", "features")
    text = Text(graph, units, characters)
    ends = Ends(text, rules).found().to("float32")
    # of nothing, of a word's end, which is never told, and of a sentence's end
    nothing = ends * 0.0
    scores = [nothing + 0.5, nothing, ends]
    joined = graph.join([score.unsqueezed(2) for score in scores], 2)
    graph.output("scores", joined, "texts", "characters", len(scores))
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
        without_items = self._ends_behind(None)
        return self._ends_behind(without_items)

    def _ends_behind(self, before: Value | None) -> Value:
        """Return the ends, where the numbers of items stand behind those `before`; None: where they
        begin a text.
        """
        is_ = self.is_
        asked = is_("exclaims") & is_("unspaced", 1)
        narrow = self._narrow(before) & ~self._wide_run
        wide = self._wide_run & self._ends_wide
        return wide | asked | narrow

    # A mark that needs no space behind it
    # ----------------------------------------------------------------------------------

    @cached_property
    def _wide_run(self) -> Value:
        """Return where a run of marks with a wide one among them, and what closes it, is over."""
        is_ = self.is_
        text = self.text
        mark = text.last(~is_("closing"))
        first = self._first(mark)
        wide = text.last(is_("wide"))
        has_wide = text.at(wide, mark) >= first
        next_mark = is_("narrow", 1) & mark.equals(text.places)
        goes_on = is_("closing", 1) | next_mark
        return has_wide & ~goes_on

    @cached_property
    def _ends_wide(self) -> Value:
        """Return whether what follows such a run lets the sentence end."""
        is_ = self.is_
        pause = is_("pause", 1)
        later_pause = is_("space", 1) & is_("pause", 2)
        quoted = is_("quote") & is_("particle", 1)
        return ~(pause | later_pause | quoted)

    def _first(self, mark: Value) -> Value:
        """Return the place of the first mark of a run, by that of the last."""
        text = self.text
        others = text.last(~self.is_("narrow"))
        return text.at(others, mark) + 1

    # A mark with a space behind it
    # ----------------------------------------------------------------------------------

    def _narrow(self, before: Value | None) -> Value:
        """Return where such marks, and what closes them, end a sentence."""
        is_ = self.is_
        first = self._first(self._mark)
        only_asks = first > self.text.last(~is_("asks"))
        asks = only_asks & is_("small", 2)
        ends = ~self._goes_on & self._ends(first, before)
        return self._is_over & (asks | ends)

    @cached_property
    def _closes(self) -> Value:
        """Return what closes a sentence: a quotation mark, or in French the space before one."""
        is_ = self.is_
        is_free = is_("space", 2) | is_("nothing", 2)
        before = is_("space") & is_("guillemet", 1)
        return is_("closing") | is_("either") | (before & is_free)

    @cached_property
    def _mark(self) -> Value:
        """Return the place of the last mark before what closes it."""
        return self.text.last(~self._closes)

    @cached_property
    def _is_over(self) -> Value:
        """Return where marks and what closes them are over, and white space follows."""
        is_ = self.is_
        text = self.text
        is_mark = text.at(is_("narrow"), self._mark)
        goes_on = text.true_beside(self._closes, 1)
        return is_mark & is_("space", 1) & ~goes_on

    @cached_property
    def _goes_on(self) -> Value:
        """Return whether a small letter follows, or a dash and one: "Stop! — he said"."""
        is_ = self.is_
        dash = is_("dash", 2)
        behind = ~is_("space", 3) & self._small(3)
        later = is_("space", 3) & self._small(4)
        direct = ~dash & self._small(2)
        return direct | (dash & (behind | later))

    def _small(self, offset: int) -> Value:
        """Return whether a word begins there with a small letter, unlike iPad."""
        is_name = self.is_("capital", offset + 1)
        return self.is_("small", offset) & ~is_name

    def _ends(self, first: Value, before: Value | None) -> Value:
        """Return whether the marks that begin at a place end a sentence, if no small letter
        follows.
        """
        is_ = self.is_
        text = self.text
        next_dot = text.at(is_("dot", 1), first)
        several = next_dot & (text.places > first)
        is_dot = text.at(is_("dot"), first) & ~several
        asks = text.last(is_("questions")) >= first
        return ~is_dot | asks | self._dot_ends(first, before)

    # A dot, by the word before it
    # ----------------------------------------------------------------------------------

    def _dot_ends(self, first: Value, before: Value | None) -> Value:
        """Return whether the dots at places, which are alone, end a sentence."""
        text = self.text
        numbered = text.at(self._is_numbered, first)
        by_number = numbered & self.is_("digit", 2)
        unfinished = text.at(self._is_unfinished, first)
        number = text.at(self._goes_on_after_number(before), first)
        if self.rules["ordinals"]:
            number = number & ~self._begins
        return ~(by_number | unfinished | number)

    @cached_property
    def _word(self) -> Word:
        return self.text.word_before()

    @cached_property
    def _is_numbered(self) -> Value:
        """Return whether a number follows the word before: "Kap.", "Hauptstr."."""
        backwards = _STREET[::-1]
        is_street = self._word.begins(backwards)
        return is_street | self._word.among("numbered", self.rules["numbered"])

    @cached_property
    def _is_unfinished(self) -> Value:
        """Return whether the word before is an abbreviation, or initials and no last word."""
        words = self.rules["abbreviations"]
        abbreviated = self._word.among("abbreviations", words)
        initials = self._is_initial & ~self._is_last
        return abbreviated | initials

    @cached_property
    def _is_initial(self) -> Value:
        """Return whether the word before is letters with dots between: "J", "U.S"."""
        is_ = self.is_
        begins = is_("boundary", -1) | is_("dot", -1)
        is_letter = is_("letter") & begins
        second = is_("vowel", -1) & is_("letter", -2)
        is_vowel = is_("vowel") & (is_("letter", -1) | second)
        spelled = is_("letter", -1) | is_("vowel", -1)
        is_dot = is_("dot") & spelled & is_("letter", 1)
        return self._word.all(is_letter | is_vowel | is_dot)

    @cached_property
    def _is_last(self) -> Value:
        """Return whether such a word may as well be the last: a unit, a time, a small word."""
        is_ = self.is_
        is_small = is_("small", -1)
        counted = is_("space", -2) & is_("digit", -3)
        unit = is_small & counted
        single = self._word.has_length(1) & (is_("word", -1) | unit)
        is_time = self._word.among("clock", _CLOCK)
        clock = is_time & is_small & is_("small", -3)
        return single | clock

    def _goes_on_after_number(self, before: Value | None) -> Value:
        """Return whether the word before is a short number that may be an ordinal, or in other
        languages one with which the sentence begins.
        """
        is_digit = self.is_("digit", -1)
        one = is_digit & self._word.has_length(1)
        two = is_digit & self.is_("digit", -2) & self._word.has_length(2)
        if self.rules["ordinals"]:
            return one | two
        first_of_one = self._begins_behind(-2, before)
        first_of_two = self._begins_behind(-3, before)
        return (one & first_of_one) | (two & first_of_two)

    def _begins_behind(self, offset: int, before: Value | None) -> Value:
        """Return whether a sentence begins behind the character so many places behind each, by
        the ends `before`.
        """
        is_ = self.is_
        space = is_("space", offset)
        begins = is_("nothing", offset)
        begins = begins | (space & is_("nothing", offset - 1))
        if before is None:
            return begins
        direct = self.text.true_beside(before, offset)
        behind_space = space & self.text.true_beside(before, offset - 1)
        return begins | direct | behind_space

    @cached_property
    def _begins(self) -> Value:
        """Return whether a word follows that stands after no ordinal."""
        words = self.rules["beginners"]
        if not words:
            return self.is_("nothing")
        following = self.text.word_from(2)
        return following.among("beginners", words)
