"""Sentence patterns: templates in three languages, filled side by side from the same slots.

A template holds text and fields in braces: `{slot}`, `{slot.form}`, `{slot.form+adjective}`, each
with `@slot` or `@1s` where it agrees with a person, and `{=be@slot}` for a word of the paradigm
table.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from weft.data.builtin.lexicon import Lexicon
from weft.data.builtin.words import AGREEMENT, LANGUAGES, Filler, Form, described

Slots = dict[str, Filler]
Render = Callable[[Slots], str]
FIELD = re.compile(r"\{([^}]+)\}")
Item = TypeVar("Item")
# draws for each sentence asked of a pattern before it is taken to be exhausted
ATTEMPTS = 40


@dataclass(frozen=True)
class Sentence:
    """A derivation: its text in three languages and the content words of its slots."""

    en: str
    zh: str
    de: str
    pattern: str
    units: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Pattern:
    """A compiled sentence pattern; `count` sentences are drawn from it."""

    name: str
    slots: dict[str, list[Filler]]
    templates: dict[str, list[str | Render]]
    count: int
    words: frozenset[str]


def _agreement(name: str) -> Callable[[Slots], int]:
    if name in AGREEMENT:
        index = AGREEMENT.index(name)
        return lambda slots: index
    return lambda slots: slots[name].agr


def _field(lang: str, text: str, paradigms: dict[str, dict[str, str]]) -> Render:
    """Return the function that renders one field, its braces left out."""
    head, _, agreeing = text.partition("@")
    agr = _agreement(agreeing) if agreeing else None
    if head.startswith("="):
        words = [word.replace("_", " ") for word in paradigms[lang][head[1:]].split()]
        if agr is None:
            raise ValueError(f"{{{text}}} needs a person to agree with")
        return lambda slots: words[agr(slots)]
    name, _, form = head.partition(".")
    form, _, modifier = form.partition("+")
    if modifier:
        return lambda slots: described(lang, slots[name], form, slots[modifier])

    def render(slots: Slots) -> str:
        value: Form = slots[name].forms[lang][form]
        if isinstance(value, str):
            return value
        if agr is None:
            raise ValueError(f"{{{text}}} needs a person to agree with")
        return value[agr(slots)]

    return render


def compile_pattern(
    table: dict[str, Any],
    lexicon: Lexicon,
    paradigms: dict[str, dict[str, str]],
    count: int,
) -> Pattern:
    """Build a pattern from its TOML table: `id`, `slots`, one template a language and, if not
    `count`, its own.
    """
    templates: dict[str, list[str | Render]] = {}
    for lang in LANGUAGES:
        pieces = FIELD.split(table[lang])
        templates[lang] = [
            _field(lang, piece, paradigms) if index % 2 else piece
            for index, piece in enumerate(pieces)
        ]
    slots = {name: lexicon.select(names) for name, names in table["slots"].items()}
    literal = re.sub(r"[^a-z' ]", "", FIELD.sub(" ", table["en"]).lower())
    return Pattern(
        name=table["id"],
        slots=slots,
        templates=templates,
        count=table.get("count", count),
        words=frozenset(literal.split()),
    )


def render(pattern: Pattern, lang: str, slots: Slots) -> str:
    """Write the sentence that `slots` make in `lang`, tidied: one space, a capital first."""
    parts = []
    for part in pattern.templates[lang]:
        parts.append(part if isinstance(part, str) else part(slots))
    text = "".join(parts)
    if lang == "zh":
        return text
    text = " ".join(text.split())
    for mark in ".,?!":
        text = text.replace(" " + mark, mark)
    return text[0].upper() + text[1:]


class Deck:
    """Deals the items of a list in random order, every item once before any comes again."""

    def __init__(self, items: list[Filler], random: Random) -> None:
        """Take the items, which stay as they are."""
        self._items = items
        self._random = random
        self._left: list[Filler] = []

    def deal(self) -> Filler:
        """Return the next item."""
        if not self._left:
            self._left = shuffled(self._items, self._random)
        return self._left.pop()


def shuffled(items: list[Item], random: Random) -> list[Item]:
    """Return a copy of `items` in random order, the same for every Python version (only `random()`
    is drawn).
    """
    copy = list(items)
    for last in range(len(copy) - 1, 0, -1):
        other = int(random.random() * (last + 1))
        copy[last], copy[other] = copy[other], copy[last]
    return copy


def _compatible(fillers: list[Filler]) -> bool:
    """Return whether no content word comes in twice (nobody's mother helps his mother)."""
    seen: set[str] = set()
    for filler in fillers:
        for unit in filler.units:
            if seen & unit:
                return False
            seen |= unit
    return len({filler.key for filler in fillers}) == len(fillers)


def derive(pattern: Pattern, random: Random) -> Iterator[Sentence]:
    """Yield distinct derivations of `pattern` without end, or until its combinations seem used
    up.
    """
    decks = {name: Deck(fillers, random) for name, fillers in pattern.slots.items()}
    seen: set[tuple[str, ...]] = set()
    failures = 0
    while failures < ATTEMPTS:
        slots = {name: deck.deal() for name, deck in decks.items()}
        key = tuple(filler.key for filler in slots.values())
        if key in seen or not _compatible(list(slots.values())):
            failures += 1
            continue
        seen.add(key)
        failures = 0
        en, zh, de = (render(pattern, lang, slots) for lang in LANGUAGES)
        units = tuple(unit for filler in slots.values() for unit in filler.units)
        yield Sentence(en, zh, de, pattern.name, (*units, pattern.words))
