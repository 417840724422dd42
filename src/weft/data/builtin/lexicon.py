"""The grammar's word lists, read from the TOML files of this folder into fillers."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain
from typing import Any

from weft.data.builtin.words import Filler, adjective, noun, person, phrase, verb_phrase

WORD_FILES = (
    "people.toml",
    "nouns.toml",
    "adjectives.toml",
    "phrases.toml",
    "verbs.toml",
)
PATTERN_FILES = ("daily.toml", "things.toml", "clauses.toml")


def read_tables(name: str) -> dict[str, Any]:
    """Read a TOML file of this package."""
    path = files("weft.data.builtin") / name
    return tomllib.loads(path.read_text(encoding="utf-8"))


class Lexicon:
    """Every class of fillers by name; a slot names one class or several, separated by spaces."""

    def __init__(self, tables: dict[str, Any]) -> None:
        """Build all classes from the TOML tables people, relations, nouns, groups, adjectives,
        phrases, verbs, unions.
        """
        self.classes: dict[str, list[Filler]] = {}
        self.unions: dict[str, str] = tables["unions"]
        for name, rows in tables["people"].items():
            self._add(name, [person(row) for row in rows])
        for table, people in (("relations", True), ("nouns", False)):
            for name, rows in tables[table].items():
                self._add(name, [noun(row, people) for row in rows])
        nouns = {
            filler.key: filler
            for table in ("relations", "nouns")
            for name in tables[table]
            for filler in self.classes[name]
        }
        for name, keys in tables["groups"].items():
            self._add(name, [nouns[key] for key in keys])
        for name, rows in tables["adjectives"].items():
            self._add(name, [adjective(row) for row in rows])
        for name, table in tables["phrases"].items():
            columns = table["columns"]
            content = table["content"]
            self._add(name, [phrase(row, columns, content) for row in table["rows"]])
        for name, rows in tables["verbs"].items():
            phrases = map(self._verb_phrases, rows)
            self._add(name, list(chain.from_iterable(phrases)))

    def _add(self, name: str, fillers: list[Filler]) -> None:
        if name in self.classes:
            raise ValueError(f"class {name} is defined twice")
        self.classes[name] = fillers

    def _verb_phrases(self, row: str) -> Iterator[Filler]:
        """Yield the verb alone, or with every object of the classes in its fourth column
        ("drink:bare fruit:def").
        """
        objects = row.split("|")[3].split() if row.count("|") == 3 else []
        if not objects:
            yield verb_phrase(row)
        for spec in objects:
            name, _, kind = spec.partition(":")
            for thing in self.select(name):
                yield verb_phrase(row, thing, kind)

    def select(self, names: str) -> list[Filler]:
        """Return the fillers of the classes and unions in `names`, each once, in order."""
        chosen: dict[str, Filler] = {}
        for name in names.split():
            if name in self.unions:
                members = self.select(self.unions[name])
            else:
                members = self.classes[name]
            for filler in members:
                chosen.setdefault(filler.key, filler)
        return list(chosen.values())


def load_lexicon() -> Lexicon:
    """Load the lexicon of the everyday corpus."""
    tables: dict[str, Any] = {}
    for name in WORD_FILES:
        tables |= read_tables(name)
    return Lexicon(tables)
