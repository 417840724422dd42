"""What is told once, at the end, of the texts in which a model guesses."""

from collections.abc import Sequence
from typing import Protocol

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
    """Words that were never seen in training, and answers of which the model is less sure than usual."""

    def __init__(self, unit: str = "line") -> None:
        """Texts are lines, or rows of a table."""
        self.unit = unit
        self.words: dict[str, None] = {}
        self.numbers: list[int] = []  # of the first lines with such words
        self.texts = self.with_unknown = self.unsure = 0

    def see(self, answer: Answer, number: int) -> list[str]:
        """Count the answer to line `number`; its words that were not met before."""
        new = [word for word in answer.unknown_words if word not in self.words]
        if len(self.words) < MOST_KEPT:
            self.words.update(dict.fromkeys(new))
        self.texts += 1
        self.with_unknown += bool(answer.unknown_words)
        if answer.unknown_words and len(self.numbers) < MOST_NUMBERS:
            self.numbers.append(number)
        self.unsure += answer.unsure
        return new

    def lines(self) -> list[str]:
        """What to say of all that was seen; nothing where nothing was guessed."""
        return [*self._of_words(), *self._of_unsure()]

    def _of_words(self) -> list[str]:
        if not self.words:
            return []
        words, count = list(self.words), len(self.words)
        more = f" and {count - MOST_SHOWN:,} more" if count > MOST_SHOWN else ""
        found = f"{count:,} words were" if count > 1 else "1 word was"
        where = f", in {self.with_unknown:,} of {self.texts:,} texts ({self._which()})" if self.texts > 1 else ""
        named = f"{', '.join(words[:MOST_SHOWN])}{more}"
        return [f"note: {found} never seen in training: {named}; the model guesses there{where}"]

    def _which(self) -> str:
        """The numbers of the first lines with such words."""
        units = f"{self.unit}s" if self.with_unknown > 1 else self.unit
        more = ", ..." if self.with_unknown > len(self.numbers) else ""
        return f"{units} {', '.join(map(str, self.numbers))}{more}"

    def _of_unsure(self) -> list[str]:
        if self.unsure <= USUALLY_UNSURE * self.texts:
            return []
        which = f"of {self.unsure:,} of {self.texts:,} texts" if self.texts > 1 else "of this text"
        return [f"note: {which} the model is less sure than of 19 in 20 of its dev text; look them over"]
