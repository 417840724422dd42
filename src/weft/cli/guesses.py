"""The notes at the end of a verb on the texts in which the model guessed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from weft.data.glossary import Glossary
    from weft.predict.classifier import Classification
    from weft.predict.memory_use import MemoryUse
    from weft.predict.prediction import Prediction

MOST_SHOWN = 10  # words that are named
MOST_NUMBERS = 5  # lines that are named
MOST_KEPT = 10_000  # words that are counted
MOST_LOOKED_AT = 1_000  # texts in which the other side of a glossary is looked for
USUALLY_UNSURE = (
    0.1  # the share of unsure answers that needs no note; of dev, 0.05 are unsure
)


class Answer(Protocol):
    """A translation or a classification."""

    @property
    def unknown_words(self) -> Sequence[str]: ...
    @property
    def unsure(self) -> bool: ...


class Guesses:
    """The words that were never seen in training, and the answers that are unusually unsure.

    `unit` is what a text is: a line, or a row of a table; "" where its name says that.
    """

    def __init__(self, unit: str = "line") -> None:
        self.unit = unit
        self.words: dict[str, None] = {}
        self.numbers: list[str] = []  # of the first lines with such words
        # terms of a glossary, by what became of them; None without one
        self.terms: Counter[str] | None = None
        self.is_reversed = False  # whether words of the glossary's targets are there
        self.memory: Counter[str] | None = (
            None  # of texts, by what a memory has of them
        )
        self.unsure_names: dict[str, None] = {}
        self.texts = self.with_unknown = self.unsure = self.unaligned = 0
        self.num_words = self.doubtful = 0
        self.right = 0.0  # of the words, as many as are expected to be

    def see(
        self, answer: Answer, number: int, name: str = "", is_guess: bool = True
    ) -> list[str]:
        """Count the answer to text `number`; return its unknown words that were not seen before.

        `name` stands for the number in notes. `is_guess` says whether unknown words, where it has
        any, make the answer a guess.
        """
        new = [word for word in answer.unknown_words if word not in self.words]
        if len(self.words) < MOST_KEPT:
            self.words.update(dict.fromkeys(new))
        self.texts += 1
        if answer.unknown_words and is_guess:
            self.with_unknown += 1
            if len(self.numbers) < MOST_NUMBERS:
                self.numbers.append(name or str(number))
        self.unsure += answer.unsure
        if answer.unsure and len(self.unsure_names) <= MOST_NUMBERS:
            self.unsure_names[name or str(number)] = None
        return new

    def see_translation(
        self, prediction: "Prediction", number: int, name: str = ""
    ) -> None:
        """Count a translation, and what became of the glossary's terms and of the memory."""
        self.see(prediction, number, name)
        self.see_words(word.quality for word in prediction.words or ())
        self.unaligned += prediction.is_unaligned
        if prediction.terms is not None:
            self.see_terms(use.status for use in prediction.terms)
        self.see_memory(prediction.memory, prediction.is_taken)

    def see_terms(self, statuses: Iterable[str]) -> None:
        """Count what became of the terms of a text."""
        if self.terms is None:
            self.terms = Counter()
        self.terms.update(statuses)

    def see_source(self, text: str, glossary: "Glossary | None") -> None:
        """Look whether a text has words of the wrong side of a glossary, as long as it has none of
        the right one.
        """
        is_open = not self.terms and not self.is_reversed
        if glossary is not None and is_open and self.texts <= MOST_LOOKED_AT:
            self.is_reversed = bool(glossary.reversed.find(text))

    def see_words(self, qualities: Iterable[float | None]) -> None:
        """Count the words of a translation, and those that are rather wrong than right."""
        from weft.predict.quality import DOUBTFUL

        known = [quality for quality in qualities if quality is not None]
        self.num_words += len(known)
        self.doubtful += sum(quality < DOUBTFUL for quality in known)
        self.right += sum(known)

    def see_memory(self, uses: Sequence["MemoryUse"] | None, is_taken: bool) -> None:
        """Count a text by what a memory has of it; None: there is no memory."""
        if uses is None:
            return
        if self.memory is None:
            self.memory = Counter()
        taken = [use for use in uses if use.taken]
        self.memory["texts"] += 1
        self.memory["whole"] += is_taken
        self.memory["in part"] += bool(taken) and not is_taken
        self.memory["repaired"] += any(use.kind == "repaired" for use in taken)
        self.memory["near"] += bool(uses) and not taken

    def lines(self) -> list[str]:
        """Return the notes on all texts seen; none where nothing was guessed."""
        return [
            *self._of_words(),
            *self._of_unsure(),
            *self._of_quality(),
            *self._of_use(),
        ]

    def few(self) -> list[str]:
        """Return the notes that are no summary of what each line of JSON says, too."""
        return [*self.of_alignments(), *self._of_use()]

    def _of_use(self) -> list[str]:
        return [*self.of_terms(), *self.of_memory()]

    def of_memory(self) -> list[str]:
        """Say how many texts were taken from a memory, and for how many it has something near."""
        counts = self.memory
        if counts is None:
            return []
        texts = "texts" if counts["texts"] > 1 else "text"
        taken = f"{counts['whole']:,} of {counts['texts']:,} {texts} taken"
        if counts["repaired"]:
            taken += f" ({counts['repaired']:,} with other numbers)"
        parts = [taken]
        if counts["in part"]:
            parts.append(f"{counts['in part']:,} in part")
        if counts["near"]:
            parts.append(f"near matches for {counts['near']:,} more")
        return [f"memory: {', '.join(parts)}"]

    def _of_words(self) -> list[str]:
        if not self.words:
            return []
        count = len(self.words)
        counted = f"{count:,} words were" if count > 1 else "1 word was"
        named = ", ".join(list(self.words)[:MOST_SHOWN])
        if count > MOST_SHOWN:
            named += f" and {count - MOST_SHOWN:,} more"
        seen = f"note: {counted} never seen in training: {named}"
        return [f"{seen}; {self._where_it_guesses()}"]

    def _where_it_guesses(self) -> str:
        """Say in which texts the unknown words make the answer a guess."""
        where = ""
        if self.texts > 1:
            where = f", in {self._num_guessed()}"
        return f"the model guesses there{where}"

    def _num_guessed(self) -> str:
        """Return how many of how many texts are guessed, and the first of them."""
        which = _which(self.unit, self.numbers, self.with_unknown)
        return f"{self.with_unknown:,} of {self.texts:,} texts ({which})"

    def _of_unsure(self) -> list[str]:
        if self.unsure <= USUALLY_UNSURE * self.texts:
            return []
        if self.texts == 1:
            return [
                "note: of this text the model is less sure than usual; look it over"
            ]
        first = list(self.unsure_names)[:MOST_NUMBERS]
        which = _which(self.unit, first, len(self.unsure_names))
        texts = f"{self.unsure:,} of {self.texts:,} texts ({which})"
        them = "them" if self.unsure > 1 else "it"
        return [f"note: of {texts} the model is less sure than usual; look {them} over"]

    def _of_quality(self) -> list[str]:
        """Say how many words are doubtful, and how many are expected to be right in all."""
        if not self.doubtful:
            return []
        share = self.right / self.num_words
        are = "are" if self.doubtful > 1 else "is"
        counted = f"{self.doubtful:,} of the {self.num_words:,} words that the model chose itself"
        said = f"note: {counted} {are} rather wrong than right"
        return [
            f"{said}, and {share:.0%} of all may be right; with --json each says how sure it is"
        ]

    def of_terms(self) -> list[str]:
        """Say how many terms of a glossary the texts have, and what became of them."""
        if self.terms is None:
            return []
        if not self.terms:
            none = "glossary: none of its terms is in the source"
            if self.is_reversed:
                none += "; words of its other side are: exchange its columns"
            return [none]
        total = self.terms.total()
        parts = [f"{count:,} {status}" for status, count in self.terms.most_common()]
        counted = f"{total:,} terms" if total > 1 else "1 term"
        return [f"glossary: {counted} in the source: {', '.join(parts)}"]

    def of_alignments(self) -> list[str]:
        """Say once in how many texts alignments were asked for and none was found."""
        if not self.unaligned:
            return []
        which = ""
        if self.texts > 1:
            which = f" of {self.unaligned:,} of {self.texts:,} texts"
        return [
            f"note: no word{which} is aligned: the model looks at all words of the source alike"
        ]


def mostly_unknown(answer: Answer, text: str) -> bool:
    """Return whether more than half of a text's different words were never seen in training."""
    if not answer.unknown_words:
        return False
    from weft.data.known import words_of

    num_words = len(set(words_of(text)))
    return 2 * len(answer.unknown_words) > num_words


class GuessedLabels(Guesses):
    """The guesses of a classifier: also texts without a known word, without a label, or empty."""

    def __init__(self, unit: str = "line") -> None:
        super().__init__(unit)
        self.nothing_known: list[str] = []  # the first lines of such texts
        self.empty: list[str] = []
        self.without_label: list[str] = []
        self.with_nothing = self.num_empty = self.num_without_label = 0

    def see_label(
        self, answer: "Classification", number: int, text: str, name: str = ""
    ) -> None:
        """Count the answer to text `number`; a certain guess is not counted as unsure, too.

        A label is a guess where most of the text's words are unknown: it is chosen by all of them.
        """
        if text.strip() and not answer.labels:
            self.num_without_label += 1
            if len(self.without_label) < MOST_NUMBERS:
                self.without_label.append(name or str(number))
        if not answer.nothing_known:
            self.see(answer, number, name, mostly_unknown(answer, text))
            return
        self.see(replace(answer, unsure=False), number, name)
        if text.strip():
            self.with_nothing += 1
            numbers = self.nothing_known
        else:
            self.num_empty += 1
            numbers = self.empty
        if len(numbers) < MOST_NUMBERS:
            numbers.append(name or str(number))

    def lines(self) -> list[str]:
        """Return the notes on all texts seen, the worst first."""
        notes = []
        if self.with_nothing:
            which = self._texts(self.with_nothing, self.nothing_known)
            notes.append(
                f"note: of {which} the model knows no word; what it answers there is a guess"
            )
        if self.num_empty:
            is_or_are = "are" if self.num_empty > 1 else "is"
            which = self._texts(self.num_empty, self.empty)
            notes.append(
                f"note: {which} {is_or_are} empty; what the model answers there is a guess"
            )
        if self.num_without_label:
            gets = "get" if self.num_without_label > 1 else "gets"
            which = self._texts(self.num_without_label, self.without_label)
            notes.append(
                f"note: {which} {gets} no label: none has a probability of one half"
            )
        return [*notes, *super().lines()]

    def _where_it_guesses(self) -> str:
        """Say in which texts the unknown words are most of the words."""
        if not self.with_unknown:
            return "the model answers by the other words"
        texts = "this text"
        if self.texts > 1:
            texts = self._num_guessed()
        return f"they are most of the words of {texts}, and the label there is a guess"

    def _texts(self, number: int, names: Sequence[str]) -> str:
        """Return how many of how many texts they are, and the first of them."""
        if self.texts == 1:
            return "this text"
        which = _which(self.unit, names, number)
        return f"{number:,} of {self.texts:,} texts ({which})"


def _which(unit: str, names: Sequence[str], number: int) -> str:
    """Return the names of the first of `number` lines or rows."""
    units = f"{unit}s " if number > 1 else f"{unit} "
    has_commas = any(", " in name for name in names)
    comma = "; " if has_commas else ", "
    more = f"{comma}..." if number > len(names) else ""
    return f"{units if unit else ''}{comma.join(names)}{more}"
