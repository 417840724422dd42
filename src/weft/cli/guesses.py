"""The notes at the end on texts in which a model guesses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from weft.predict.classifier import Classification

MOST_SHOWN = 10  # words that are named
MOST_NUMBERS = 5  # lines that are named
MOST_KEPT = 10_000  # words that are counted
USUALLY_UNSURE = 0.1  # twice the share of dev that is: more unsure answers are told


class Answer(Protocol):
    """A translation or a classification."""

    @property
    def unknown_words(self) -> Sequence[str]: ...
    @property
    def unsure(self) -> bool: ...


class Guesses:
    """Words that were never seen in training, and answers of which the model is less sure than
    usual.
    """

    def __init__(self, unit: str = "line") -> None:
        """Begin to count; texts are lines, or rows of a table."""
        self.unit = unit
        self.words: dict[str, None] = {}
        self.numbers: list[str] = []  # of the first lines with such words
        self.texts = self.with_unknown = self.unsure = 0

    def see(self, answer: Answer, number: int, name: str = "") -> list[str]:
        """Count the answer to line `number`, which may be called otherwise; its words that were not
        met before.
        """
        new = [word for word in answer.unknown_words if word not in self.words]
        if len(self.words) < MOST_KEPT:
            self.words.update(dict.fromkeys(new))
        self.texts += 1
        self.with_unknown += bool(answer.unknown_words)
        if answer.unknown_words and len(self.numbers) < MOST_NUMBERS:
            self.numbers.append(name or str(number))
        self.unsure += answer.unsure
        return new

    def lines(self) -> list[str]:
        """Say what was guessed in all; nothing where nothing was."""
        return [*self._of_words(), *self._of_unsure()]

    def _of_words(self) -> list[str]:
        if not self.words:
            return []
        words, count = list(self.words), len(self.words)
        more = f" and {count - MOST_SHOWN:,} more" if count > MOST_SHOWN else ""
        found = f"{count:,} words were" if count > 1 else "1 word was"
        which = _which(self.unit, self.numbers, self.with_unknown)
        where = (
            f", in {self.with_unknown:,} of {self.texts:,} texts ({which})"
            if self.texts > 1
            else ""
        )
        named = f"{', '.join(words[:MOST_SHOWN])}{more}"
        return [
            f"note: {found} never seen in training: {named}; the model guesses there{where}"
        ]

    def _of_unsure(self) -> list[str]:
        if self.unsure <= USUALLY_UNSURE * self.texts:
            return []
        which = (
            f"of {self.unsure:,} of {self.texts:,} texts"
            if self.texts > 1
            else "of this text"
        )
        return [
            f"note: {which} the model is less sure than of 19 in 20 of its dev text; look them over"
        ]


class GuessedLabels(Guesses):
    """The guesses of classifications: also texts without a known word, and empty ones."""

    def __init__(self, unit: str = "line") -> None:
        super().__init__(unit)
        self.nothing_known: list[str] = []  # the first lines of such texts
        self.empty: list[str] = []
        self.with_nothing = self.num_empty = 0

    def see_label(
        self, answer: "Classification", number: int, text: str, name: str = ""
    ) -> None:
        """Count the answer to a text in line `number`; what is known to be a guess is not counted
        as unsure.
        """
        self.see(
            replace(answer, unsure=False) if answer.nothing_known else answer,
            number,
            name,
        )
        if not answer.nothing_known:
            return
        if text.strip():
            self.with_nothing += 1
            numbers = self.nothing_known
        else:
            self.num_empty += 1
            numbers = self.empty
        if len(numbers) < MOST_NUMBERS:
            numbers.append(name or str(number))

    def lines(self) -> list[str]:
        """Say what was guessed in all, the worst first."""
        found = []
        if self.with_nothing:
            which = self._texts(
                self.with_nothing, self.nothing_known, "of", "of this text"
            )
            found.append(
                f"note: {which} the model knows no word; what it answers there is a guess"
            )
        if self.num_empty:
            is_or_are = "are" if self.num_empty > 1 else "is"
            which = self._texts(self.num_empty, self.empty, "", "this text")
            found.append(
                f"note: {which} {is_or_are} empty; what the model answers there is a guess"
            )
        return [*found, *super().lines()]

    def _texts(self, number: int, names: Sequence[str], before: str, only: str) -> str:
        """Name the texts, and how many of how many they are."""
        if self.texts == 1:
            return only
        return f"{before} {number:,} of {self.texts:,} texts ({_which(self.unit, names, number)})".strip()


def _which(unit: str, names: Sequence[str], number: int) -> str:
    """Return the first of so many lines or rows, by number."""
    units = f"{unit}s" if number > 1 else unit
    more = ", ..." if number > len(names) else ""
    return f"{units} {', '.join(names)}{more}"
