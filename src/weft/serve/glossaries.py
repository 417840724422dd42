"""The glossaries of a server, and those that come with a request.

A file is for the languages that it names, or for all; the first one of a pair binds every
translation of it, unless a request names another one, brings its own, or wants none.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from weft.data.check.finding import counted
from weft.data.glossary import Glossary, glossary_of, pairs_in, read_glossary
from weft.data.languages import pair_of, primary
from weft.errors import DataError, UsageError
from weft.serve.refusals import InvalidRequest, Refusal, TooLarge, shown

Pair: TypeAlias = tuple[str, str]

_SENT = "glossary"  # where the terms of a request are from, and the name of its field
_SHORT = 200  # characters of a term
_MOST_BYTES = 1_000_000  # of a file of terms that comes with a request
_GZIP = b"\x1f\x8b"


class UnknownGlossary(Refusal):
    """A name that no glossary has, or one of other languages."""

    status = 404
    code = "glossary_not_found"

    def __init__(self, name: str, pair: Pair) -> None:
        """Name the glossary and the languages."""
        between = f"from {shown(pair[0])} to {shown(pair[1])}"
        super().__init__(f"there is no glossary {shown(name)} {between}", _SENT)


@dataclass(frozen=True)
class Binding:
    """The terms for the translations of a request: those of the server's first glossary for the
    languages, or of the one of a `name`, "" for none; or its own `rows`, as a table has them.
    """

    name: str | None = None
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def is_asked(self) -> bool:
        """Return whether a glossary is asked for."""
        return bool(self.name or self.rows)


USUAL = Binding()
NONE = Binding("")


@dataclass(frozen=True)
class ServedGlossary:
    """A file of terms, read for each of the pairs that it is for; or those that the pack of a
    `model` has with it.
    """

    name: str
    path: Path
    by_pair: dict[Pair, Glossary]
    created: float  # seconds since 1970
    model: str = ""


@dataclass(frozen=True)
class Glossaries:
    """The glossaries in the order of the command line, by their names; behind them those of packs,
    by the names of their models.
    """

    served: dict[str, ServedGlossary] = field(default_factory=dict)

    def along(self, packed: Iterable[ServedGlossary]) -> "Glossaries":
        """Return those of the command line, and these in the place of other packs'."""
        given = {name: one for name, one in self.served.items() if not one.model}
        return Glossaries({one.name: one for one in packed} | given)

    def find(self, binding: Binding, pair: Pair, model: str = "") -> Glossary | None:
        """Return what binds a translation by a model. Raises UnknownGlossary, and InvalidRequest
        for rows that are no terms.
        """
        if binding.rows:
            return _own(binding.rows, pair)
        if binding.name is None:
            return self.usual(pair, model)
        if not binding.name:
            return None
        found = self.served.get(binding.name)
        if found is None or pair not in found.by_pair:
            raise UnknownGlossary(binding.name, pair)
        return found.by_pair[pair]

    def usual(self, pair: Pair, model: str = "") -> Glossary | None:
        """Return the first glossary for a pair, else that of the model's own pack, if there is
        one.
        """
        known = [one for one in self.served.values() if pair in one.by_pair]
        given = [one for one in known if not one.model]
        own = [one for one in known if one.model == model != ""]
        return next((one.by_pair[pair] for one in [*given, *own]), None)


def open_glossaries(
    words: Sequence[str], pairs: Iterable[Pair], say: Callable[[str], None]
) -> Glossaries:
    """Read the files of a command line for the pairs of the models, and say what is in them:
    `FILE`, `NAME=FILE` or `NAME:en-de=FILE`.

    Raises UsageError where two have one name, where languages cannot be read, and for a file that
    is for none of the pairs; DataError for what cannot be read.
    """
    pairs = list(pairs)
    found: dict[str, ServedGlossary] = {}
    for word in words:
        name, path, said = _named(word)
        if name in found:
            raise UsageError(
                f"--glossary {word}: another glossary is named {name} already; give it a name by NAME={path}"
            )
        if not path.is_file():
            raise UsageError(f"--glossary {path}: no such file")
        own = _alike(pairs, said) if said else pairs_in(path, pairs)
        if not own:
            have = ", ".join("-".join(pair) for pair in pairs)
            raise UsageError(
                f"--glossary {word}: it is for none of the languages here, which are {have}"
            )
        by_pair = {pair: read_glossary(path, *pair) for pair in own}
        for line in _described(path, by_pair):
            say(line)
        found[name] = ServedGlossary(name, path, by_pair, path.stat().st_mtime)
    return Glossaries(found)


def _described(path: Path, by_pair: Mapping[Pair, Glossary]) -> Iterator[str]:
    """Yield how many terms a file has for each pair, and what is doubtful, once for all of them."""
    for pair, glossary in by_pair.items():
        terms = counted(len(glossary.entries), "terms")
        yield f"glossary {'-'.join(pair)}: {terms} of {path}"
    notes = chain.from_iterable(glossary.notes for glossary in by_pair.values())
    for note in dict.fromkeys(notes):
        yield f"{path}: {note}"


def _alike(pairs: Sequence[Pair], said: Pair) -> list[Pair]:
    """Return the pairs of the same two languages, whatever their regions."""
    src, tgt = map(primary, said)
    return [pair for pair in pairs if [*map(primary, pair)] == [src, tgt]]


def _named(word: str) -> tuple[str, Path, Pair | None]:
    """Read `FILE`, `NAME=FILE` or `NAME:en-de=FILE`; without a name it is the file's own."""
    name, equals, rest = word.partition("=")
    if not equals or Path(word).is_file():
        return Path(word).stem, Path(word), None
    name, colon, languages = name.partition(":")
    path = Path(rest)
    pair = pair_of(languages) if colon else None
    if colon and pair is None:
        raise UsageError(
            f"--glossary {word}: {languages!r} names no two languages; write them as in {name}:en-de={path}"
        )
    return name or path.stem, path, pair


def sent_terms(name: str, content: bytes, pair: Pair) -> Glossary:
    """Read a file of terms that a client sent, by its name. Raises InvalidRequest and TooLarge."""
    if len(content) > _MOST_BYTES:
        raise TooLarge(f"a file of terms has at most {_MOST_BYTES:,} bytes")
    if content.startswith(_GZIP):  # small, and large once it is unpacked
        raise InvalidRequest(f"{name}: packed with gzip; unpack it", "file")
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            found = read_glossary(path, *pair)
        except DataError as error:
            raise InvalidRequest(_without(folder, str(error)), "file") from None
    notes = [_without(folder, note) for note in found.notes]
    return replace(found, notes=tuple(notes))


def _without(folder: str, said: str) -> str:
    """Return what is said of files in a folder, and commands with their names, without the folder:
    it is the server's.
    """
    return said.replace(f"{folder}{os.sep}", "")


def _own(rows: Sequence[Sequence[str]], pair: Pair) -> Glossary:
    """Return the terms that came with a request. Raises InvalidRequest."""
    if any(len(cell) > _SHORT for row in rows for cell in row):
        raise InvalidRequest(f"{_SENT}: a term has at most {_SHORT} characters", _SENT)
    try:
        return glossary_of(enumerate(rows, start=1), _SENT, pair)
    except DataError as error:
        raise InvalidRequest(str(error), _SENT) from None
