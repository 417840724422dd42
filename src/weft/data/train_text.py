"""A training text as a person names it, and what is known of the rows of its files.

On the command line pairs are `FILE@WEIGHT:TAG`, where weight and tag may be left out: `news.tsv@2`,
`bible.tsv@0.5:bible`, `bible.tsv@:bible`. A file of that very name is that file. Text in one
language is `LANGUAGE=FILE`: `yo=news.txt`.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.data import languages
from weft.errors import DataError, FolderError, UsageError

# a text that is read more often than that in an epoch is rather a mistake in typing
MOST_WEIGHT = 1000
OTHER = "other"  # in the weights of a mixture: all texts whose tag is not named
MADE = "made"  # there: those whose sources a machine made
_NAMED = re.compile(r"(?P<data>.+)@(?P<weight>[^:@]*)(?::(?P<tag>.*))?")
_TAG = re.compile(r"\w[\w.-]{0,39}")
_FORM = (
    f"write FILE@WEIGHT:TAG, a weight above 0 and at most {MOST_WEIGHT} and a tag of letters and digits, of which one "
    "may be left out: news.tsv@2, bible.tsv@0.5:bible, bible.tsv@:bible"
)


@dataclass(frozen=True)
class Worth:
    """The worth of all rows of a file: how often an epoch reads each of them (`weight`), the
    name that marks them for the model (`tag`), and whether a machine `made` their sources.
    """

    weight: float = 1.0
    tag: str | None = None
    made: bool = False

    def describe(self) -> str:
        """Say in words what differs from a plain text; "" where nothing does."""
        said = []
        if self.weight != 1:
            said.append(f"weight {self.weight:g}")
        if self.tag is not None:
            said.append(f"tag {self.tag}")
        if self.made:
            said.append("sources made by a machine")
        return ", ".join(said)


PLAIN = Worth()


@dataclass(frozen=True)
class TrainText:
    """A training text: `data` is one file, or two aligned files joined by a comma.

    An epoch reads each row `weight` times. The model reads the `tag` before most of its rows, and
    can be asked to translate as that text does. `made` says that a machine wrote the sources, which
    the model is told, too.
    """

    data: str
    weight: float = 1.0
    tag: str | None = None
    made: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for a weight or a tag that cannot be."""
        if not 0 < self.weight <= MOST_WEIGHT:
            raise UsageError(
                f"{self.data}: the weight {self.weight:g} is not above 0 and at most {MOST_WEIGHT}; leave a text "
                "out that should not be read"
            )
        if self.tag in (OTHER, MADE):
            what = "all texts that are not named"
            if self.tag == MADE:
                what = "those whose sources a machine made"
            raise UsageError(
                f"{self.data}: in a mixture, {self.tag} stands for {what}; give it another tag"
            )
        if self.tag is not None and not _TAG.fullmatch(self.tag):
            raise UsageError(
                f"{self.data}: the tag {self.tag!r} is not made of letters, digits, '.', '-' and '_', 40 at most"
            )

    @classmethod
    def parse(cls, written: str) -> "TrainText":
        """Read what stands on a command line.

        Raises UsageError where behind a file that is there stands neither weight nor tag, or a tag
        without its @.
        """
        found = _NAMED.fullmatch(written)
        if _is_there(written):
            return cls(written)
        if found is None:
            _refuse_tag_alone(written)
            return cls(written)
        data, weight, tag = found.group("data", "weight", "tag")
        number = _number(weight)
        if (number is None and weight) or (not weight and not tag):
            if _is_there(data):
                raise UsageError(f"{written}: {_FORM}")
            return cls(written)  # a name with @ of a file that is missing
        return cls(data, 1.0 if number is None else number, tag or None)

    @property
    def worth(self) -> Worth:
        """Return what is known of its rows."""
        return Worth(self.weight, self.tag, self.made)

    def to_json(self) -> str | dict[str, Any]:
        """Return the text as a run keeps it: its name alone where nothing else is said of it."""
        if self.worth == PLAIN:
            return self.data
        kept: dict[str, Any] = {"data": self.data, "weight": self.weight}
        if self.tag is not None:
            kept["tag"] = self.tag
        if self.made:
            kept["made"] = True
        return kept

    @classmethod
    def from_json(cls, kept: Any) -> "TrainText":
        """Read what `to_json` gave. Raises FolderError for anything else."""
        if isinstance(kept, str):
            return cls(kept)
        try:
            return cls(**kept)
        except TypeError:
            raise FolderError(
                f"{kept!r:.80} does not name a training text; restore the record of the run"
            ) from None


def parse_texts(
    texts: str | TrainText | Iterable[str | TrainText],
) -> tuple[TrainText, ...]:
    """Return the texts that are named, as on a command line or as values."""
    if isinstance(texts, str | TrainText):
        texts = [texts]
    return tuple(
        text if isinstance(text, TrainText) else TrainText.parse(text) for text in texts
    )


@dataclass(frozen=True)
class MonoText:
    """A file of sentences in one language (BCP-47)."""

    lang: str
    data: str

    @classmethod
    def parse(cls, written: str) -> "MonoText":
        """Read LANGUAGE=FILE. Raises UsageError for anything else."""
        name, found, data = (part.strip() for part in written.partition("="))
        lang = languages.canonical(name)
        if not found or not data or lang is None:
            why = ""
            if found:
                why = "the file is missing; " if lang else f"{name!r} is no language; "
            raise UsageError(
                f"--mono {written}: {why}write the language and the file, such as yo=news.txt"
            )
        refuse_worth(data)
        return cls(lang, data)

    def is_in(self, lang: str) -> bool:
        """Return whether the text is in a language, whatever its region or script is said to be."""
        return languages.primary(self.lang) == languages.primary(lang)


def refuse_other_languages(texts: Iterable[MonoText], pair: tuple[str, str]) -> None:
    """Raise UsageError for text in one language that is in neither of the two of pairs."""
    for text in texts:
        if not any(map(text.is_in, pair)):
            raise UsageError(
                f"--mono {text.lang}={text.data}: the pairs are {pair[0]} to {pair[1]}; give text in one of these"
            )


def refuse_worth(written: str | None) -> None:
    """Raise UsageError where a weight or a tag stands behind a file that is read without either."""
    found = _NAMED.fullmatch(written or "")
    if found and _is_there(found["data"]) and not _is_there(found[0]):
        raise UsageError(
            f"{written}: weights and tags are for the pairs that weft train learns from; give {found['data']} alone"
        )


def split_at_comma(item: str) -> list[Path]:
    """Return one path, or the two that a comma joins; a file that exists may have a comma in its
    name.
    """
    cuts = [i for i, character in enumerate(item) if character == ","]
    if not item.strip():
        raise UsageError("an empty name among the data; name a file")
    if not cuts or os.path.exists(item):
        return [Path(item)]
    ways = [(item[:i].strip(), item[i + 1 :].strip()) for i in cuts]
    both = [way for way in ways if all(way) and all(map(os.path.exists, way))]
    if not both and len(ways) > 1:
        raise DataError(
            f"{item}: no such files; join exactly two aligned files with one comma"
        )
    way = both[0] if both else ways[0]
    if not all(way):
        raise DataError(
            f"{item}: a file name is missing next to the comma; write train.en,train.de"
        )
    return [Path(name) for name in way]


def names_of(texts: Iterable[TrainText]) -> tuple[str, ...]:
    """Return the files of texts, as they were named."""
    return tuple(text.data for text in texts)


def _is_there(data: str) -> bool:
    """Return whether a name is that of a file, or of two that a comma joins."""
    return os.path.exists(data) or all(map(os.path.exists, data.split(",")))


def _refuse_tag_alone(written: str) -> None:
    """Raise UsageError for the name of a file that is there, and a tag without @ behind it."""
    data, _, tag = written.rpartition(":")
    if data and _is_there(data) and _TAG.fullmatch(tag):
        raise UsageError(
            f"{written}: no such file; a tag stands behind @: {data}@:{tag}"
        )


def _number(written: str) -> float | None:
    """Return a weight as a number; None where it is none."""
    return float(written) if re.fullmatch(r"\d+(\.\d+)?|\.\d+", written) else None
