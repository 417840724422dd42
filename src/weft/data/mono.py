"""Text in one language, beside pairs: `yo=news.txt` on the command line."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from weft.data import languages
from weft.data.corpus import fold, read_sources
from weft.errors import UsageError

HELD_OUT, KNOWN, REPEATED = (
    "held out of the pairs, for dev or test",
    "in the pairs already",
    "there before",
)


@dataclass(frozen=True)
class MonoText:
    """A file of sentences in one language (BCP-47)."""

    lang: str
    data: str

    @classmethod
    def parse(cls, written: str) -> "MonoText":
        """Read LANGUAGE=FILE. Raises UsageError for anything else."""
        name, found, data = written.partition("=")
        lang = languages.canonical(name.strip())
        if not found or not data.strip() or lang is None:
            raise UsageError(
                f"--mono {written}: write the language and the file, such as yo=news.txt"
            )
        return cls(lang, data.strip())

    def is_in(self, lang: str) -> bool:
        """Return whether the text is in a language, whatever its region or script is said to be."""
        return languages.primary(self.lang) == languages.primary(lang)


@dataclass(frozen=True)
class Sentences:
    """Sentences of one language, each another one, and how many were left out, by why."""

    lines: list[str]
    left_out: dict[str, int]
    notes: tuple[str, ...]


def read_mono(
    texts: Sequence[MonoText], held_out: Collection[str], known: Collection[str]
) -> Sentences:
    """Read and join texts in one language.

    A line is left out whose folded form (`weft.data.split.fold`) is among those that are `held_out`
    of the pairs, or is `known` from the pairs, or was there before. Raises DataError for what is no
    text.
    """
    lines: list[str] = []
    notes: list[str] = []
    left_out = Counter[str]()
    seen: set[str] = set()
    for text in texts:
        read = read_sources([text.data], text.lang)
        left_out.update(read.dropped)
        notes += read.notes
        for line in read.lines:
            form = fold(line)
            if why := _why_not(form, held_out, known, seen):
                left_out[why] += 1
                continue
            seen.add(form)
            lines.append(line)
    return Sentences(lines, dict(left_out), tuple(notes))


def _why_not(
    form: str, held_out: Collection[str], known: Collection[str], seen: Collection[str]
) -> str:
    """Return why a line is left out; "" where it is not."""
    if form in held_out:
        return HELD_OUT
    if form in known:
        return KNOWN
    return REPEATED if form in seen else ""
