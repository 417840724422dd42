"""Built-in corpora: parallel sentences from Weft's own grammar, and a toy of two sentences.

The grammar stands in the TOML files of this folder: word lists (people, nouns, adjectives, phrases,
verbs) and sentence patterns (daily, things, clauses).
"""

from dataclasses import dataclass
from functools import lru_cache
from random import Random

from weft.data.builtin.lexicon import PATTERN_FILES, load_lexicon, read_tables
from weft.data.builtin.patterns import (
    Pattern,
    Sentence,
    compile_pattern,
    derive,
    shuffled,
)
from weft.data.builtin.splits import held_out
from weft.errors import UsageError

__all__ = ["NAMES", "Splits", "Triple", "everyday", "pairs"]

NAMES: tuple[str, ...] = ("everyday", "toy-de-en")

SEED = 20170612
COUNT = 170  # sentences drawn from a pattern that does not say
HELD_OUT = 500

TOY = [
    {"de": "ich mochte ein bier", "en": "i want a beer ."},
    {"de": "ich mochte ein cola", "en": "i want a coke ."},
]


@dataclass(frozen=True)
class Triple:
    """A sentence in English, Chinese and German, and the pattern it was made from."""

    en: str
    zh: str
    de: str
    pattern: str


@dataclass(frozen=True)
class Splits:
    """Sentence pairs, source first. In the toy, all three are the same two pairs."""

    train: list[tuple[str, str]]
    dev: list[tuple[str, str]]
    test: list[tuple[str, str]]


@lru_cache(maxsize=1)
def _patterns() -> list[Pattern]:
    lexicon = load_lexicon()
    paradigms = read_tables("people.toml")["paradigms"]
    tables = [table for name in PATTERN_FILES for table in read_tables(name)["pattern"]]
    return [compile_pattern(table, lexicon, paradigms, COUNT) for table in tables]


@lru_cache(maxsize=1)
def _sentences() -> list[Sentence]:
    """Generate all sentences, none of which shares its English, Chinese or German text with
    another.
    """
    random = Random(SEED)
    seen: set[str] = set()
    sentences = []
    for pattern in _patterns():
        left = pattern.count
        for sentence in derive(pattern, random) if left else ():
            texts = {sentence.en.lower(), sentence.zh, sentence.de.lower() + " "}
            if seen & texts:
                continue
            seen |= texts
            sentences.append(sentence)
            left -= 1
            if left == 0:
                break
    return sentences


@lru_cache(maxsize=1)
def _split_indices() -> tuple[list[int], list[int], list[int]]:
    """Split `_sentences`: return the indices of train (shuffled), dev and test."""
    sentences = _sentences()
    random = Random(SEED + 1)
    dev, test = held_out(sentences, HELD_OUT, random)
    held = dev | test
    train = [index for index in range(len(sentences)) if index not in held]
    return (
        shuffled(train, random),
        shuffled(sorted(dev), random),
        shuffled(sorted(test), random),
    )


def everyday() -> list[Triple]:
    """List every triple of the everyday corpus, in the order of its patterns.

    No English, Chinese or German text occurs twice.
    """
    return [Triple(item.en, item.zh, item.de, item.pattern) for item in _sentences()]


def pairs(name: str, src_lang: str = "en", tgt_lang: str = "zh") -> Splits:
    """Return a built-in corpus, split: `everyday` between any two of en, zh, de; `toy-de-en`
    between de and en.

    In `everyday`, each sentence of dev and test holds two content words that no sentence of train
    has together; all its words and characters occur in train. Raises UsageError for an unknown name
    or language.
    """
    if name not in NAMES:
        raise UsageError(
            f"no built-in corpus is called {name!r}; choose one of: {', '.join(NAMES)}"
        )
    languages = ("de", "en") if name == "toy-de-en" else ("en", "zh", "de")
    for lang in (src_lang, tgt_lang):
        if lang not in languages:
            raise UsageError(
                f"corpus {name!r} has no language {lang!r}; choose two of: {', '.join(languages)}"
            )
    if src_lang == tgt_lang:
        raise UsageError(
            f"source and target language are both {src_lang!r}; choose two of: {', '.join(languages)}"
        )
    if name == "toy-de-en":
        toy = [(row[src_lang], row[tgt_lang]) for row in TOY]
        return Splits(toy, list(toy), list(toy))
    train, dev, test = _split_indices()
    return Splits(
        train=_pairs(train, src_lang, tgt_lang),
        dev=_pairs(dev, src_lang, tgt_lang),
        test=_pairs(test, src_lang, tgt_lang),
    )


def _pairs(indices: list[int], src_lang: str, tgt_lang: str) -> list[tuple[str, str]]:
    sentences = [_sentences()[i] for i in indices]
    return [(getattr(each, src_lang), getattr(each, tgt_lang)) for each in sentences]
