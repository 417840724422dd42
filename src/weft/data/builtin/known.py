"""The words that the everyday corpus teaches in one language, by kind: a choice of them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from weft.data.builtin.lexicon import WORD_FILES, read_tables

MOST = 12  # words of a kind that are shown

Part = tuple[str, str]  # a table of the word lists, and some of its classes
KINDS: dict[str, tuple[Part, ...]] = {
    "people": (("people", "role name"), ("relations", "relative acquaintance")),
    "food": (("nouns", "drink food produce dish"),),
    "things": (("nouns", "reading writing clothes furniture_top device small own"),),
    "animals": (("nouns", "animal wild"),),
    "places": (("nouns", "rooms building"),),
    "doing": (("verbs", "meal cooking text homely pastime chore"),),
    "being": (("adjectives", "colour quality beast state interest"),),
    "when": (("phrases", "habit past soon"),),
}


def words_by_kind(lang: str, is_known: Callable[[str], bool]) -> dict[str, list[str]]:
    """Choose words of the lists that are known, by kind."""
    tables: dict[str, Any] = {}
    for name in WORD_FILES:
        tables |= read_tables(name)
    by_kind = {}
    for kind, parts in KINDS.items():
        listed = [word for part in parts for word in _listed(tables, *part, lang)]
        known = list(filter(is_known, dict.fromkeys(listed)))
        stride = -(-len(known) // MOST) or 1
        by_kind[kind] = known[::stride]
    return by_kind


def _listed(
    tables: dict[str, Any], table: str, classes: str, lang: str
) -> Iterator[str]:
    """Yield the words of some classes of a table, as a dictionary has them."""
    for name in classes.split():
        entry = tables[table][name]
        rows = entry["rows"] if isinstance(entry, dict) else entry
        assert isinstance(rows, list)
        for row in rows:
            columns = [column.strip() for column in row.split("|")]
            if columns[0] in AGREES:
                del columns[0]
            english, chinese, german = columns[:3]
            words = {
                "en": _english(english),
                "zh": _chinese(chinese, table),
                "de": _german(german, table),
            }
            yield words[lang]


AGREES = {"1s", "2s", "m", "f", "1p", "3p"}  # the first column of people


def _english(text: str) -> str:
    head, _, rest = text.partition(" ")
    head = head.partition("/")[0]
    rest = rest.partition("/")[0]
    words = f"{head} {rest}".strip()
    return words.removeprefix("+").removeprefix("the ")


def _chinese(text: str, table: str) -> str:
    text = text.partition("/")[0]
    text = text.replace("+", "").replace("_", "…")
    if table in ("nouns", "relations"):
        return text.partition(" ")[0]
    return text


def _german(text: str, table: str) -> str:
    if table == "verbs":
        verb, _, complement = text.partition(" : ")
        before = complement.partition(", ")[0]
        return f"{before} {verb.partition(' ')[0].replace('-', '')}".strip()
    text = text.partition("/")[0]
    return re.sub(r"^(der|die|das|pl) ", "", text)
