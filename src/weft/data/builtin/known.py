"""Some of the words that the everyday corpus teaches in one language, by kind."""

import re
from collections.abc import Callable, Iterator

from weft.data.builtin.lexicon import WORD_FILES, read_tables

MOST = 12  # words of a kind that are shown

# A kind: the tables of the word lists, and which of their classes it is made of.
KINDS: dict[str, tuple[tuple[str, str], ...]] = {
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
    """Some of the words of the lists that are known, by kind."""
    tables = {
        key: rows for name in WORD_FILES for key, rows in read_tables(name).items()
    }
    found = {}
    for kind, parts in KINDS.items():
        listed = list(
            dict.fromkeys(
                word for part in parts for word in _listed(tables, *part, lang)
            )
        )
        known = list(filter(is_known, listed))
        found[kind] = known[:: -(-len(known) // MOST) or 1]
    return found


def _listed(
    tables: dict[str, dict[str, object]], table: str, classes: str, lang: str
) -> Iterator[str]:
    """Yield the words of some classes of a table, as a dictionary has them."""
    for name in classes.split():
        entry = tables[table][name]
        rows = entry["rows"] if isinstance(entry, dict) else entry
        assert isinstance(rows, list)
        for row in rows:
            english, chinese, german = [
                column.strip()
                for column in row.split("|")
                if column.strip() not in AGREES
            ][:3]
            yield {
                "en": _english(english),
                "zh": _chinese(chinese, table),
                "de": _german(german, table),
            }[lang]


AGREES = {"1s", "2s", "m", "f", "1p", "3p"}  # the first column of people


def _english(text: str) -> str:
    head, _, rest = text.partition(" ")
    return (
        f"{head.partition('/')[0]} {rest.partition('/')[0]}".strip()
        .removeprefix("+")
        .removeprefix("the ")
    )


def _chinese(text: str, table: str) -> str:
    text = text.partition("/")[0].replace("+", "").replace("_", "…")
    return text.partition(" ")[0] if table in ("nouns", "relations") else text


def _german(text: str, table: str) -> str:
    if table == "verbs":
        verb, _, complement = text.partition(" : ")
        before = complement.partition(", ")[0]
        return f"{before} {verb.partition(' ')[0].replace('-', '')}".strip()
    text = text.partition("/")[0]
    return re.sub(r"^(der|die|das|pl) ", "", text)
