"""The words that the everyday corpus teaches in one language: some of each kind, and whether a word is one."""

import re
from collections.abc import Iterable, Iterator

from weft.samples.lexicon import WORD_FILES, read_tables

LETTERS = re.compile(r"[^\W\d_]+|\d+")  # as the tokenizer of words cuts: runs of letters, or of digits
CHARACTERS = re.compile(r"[㐀-鿿]|[^\W\d_㐀-鿿]+|\d+")
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


class KnownWords:
    """What occurs in the training sentences of one language; in Chinese each character counts as a word."""

    def __init__(self, lang: str, sentences: Iterable[str]) -> None:
        self.lang = lang
        self.words = {word for sentence in sentences for word in words(sentence, lang)}

    def unseen(self, text: str) -> list[str]:
        """The words of a text that never occurred, written as there, each once and in order."""
        return list(dict.fromkeys(word for word in words(text, self.lang) if word not in self.words))

    def kinds(self) -> dict[str, list[str]]:
        """Some of the words that occurred, by kind."""
        tables = {key: rows for name in WORD_FILES for key, rows in read_tables(name).items()}
        found = {}
        for kind, parts in KINDS.items():
            listed = list(dict.fromkeys(word for part in parts for word in _listed(tables, *part, self.lang)))
            known = [word for word in listed if not self.unseen(word)]
            found[kind] = known[:: -(-len(known) // MOST) or 1]
        return found


def words(text: str, lang: str) -> list[str]:
    """Runs of letters or digits; of Chinese its characters."""
    return (CHARACTERS if lang == "zh" else LETTERS).findall(text)


def _listed(tables: dict[str, dict[str, object]], table: str, classes: str, lang: str) -> Iterator[str]:
    """The words of some classes of a table, as a dictionary has them."""
    for name in classes.split():
        entry = tables[table][name]
        rows = entry["rows"] if isinstance(entry, dict) else entry
        assert isinstance(rows, list)
        for row in rows:
            english, chinese, german = [
                column.strip() for column in row.split("|") if column.strip() not in AGREES
            ][:3]
            yield {"en": _english(english), "zh": _chinese(chinese, table), "de": _german(german, table)}[lang]


AGREES = {"1s", "2s", "m", "f", "1p", "3p"}  # the first column of people


def _english(text: str) -> str:
    head, _, rest = text.partition(" ")
    return f"{head.partition('/')[0]} {rest.partition('/')[0]}".strip().removeprefix("+").removeprefix("the ")


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
