"""The steps that change text before a tokenizer's own JSON pipeline sees it.

Unicode normal forms and lower-casing are part of `tokenizer.json`. What that file cannot express is
a named step here, and its package and version are kept beside the model.

The word steps, nltk and spaCy, rewrite each line as their words with one space between them; an end
of line is a word of its own. Neither needs a download. nltk's tokenizer takes what it is given for
one sentence: a full stop inside a line stays with its word, and straight quotation marks become ``
and ''. spaCy's rules are those that it has for text of any language ("xx"), since a side's settings
name none: it parts punctuation from words, but leaves contractions such as don't whole.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module, metadata
from itertools import groupby
from typing import NamedTuple

from weft.config import SideSection
from weft.packages import loaded

Step = Callable[[str], str]

_SURROGATE = re.compile("[\ud800-\udfff]")
# characters; spaCy's time grows with their square, so longer runs are left as they are
_LONGEST_WORD = 256


class _NamedStep(NamedTuple):
    """A step of an optional package, which is loaded by name and only when asked for."""

    name: str
    package: str
    extra: str
    load: Callable[[], Step]


def load_steps(settings: SideSection) -> tuple[dict[str, str], list[Step]]:
    """Return the steps that the settings ask for: their names with versions, and the functions in
    order.

    Raises MissingPackage or UnfitPackage where a step needs a package that is not installed, or is
    of another version.
    """
    versions: dict[str, str] = {}
    functions: list[Step] = []
    for key, step in _chosen(settings):
        loaded(key, step.package, step.extra)
        functions.append(step.load())
        versions[step.name] = metadata.version(step.package)
    return versions, functions


def has_spaced_words(settings: SideSection) -> bool:
    """Return whether a step puts one space between all words, ends of lines among them."""
    return settings.words in _WORD_STEPS


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot hold, by U+FFFD; all other text is unchanged."""
    return _SURROGATE.sub("\ufffd", text)


def _chosen(settings: SideSection) -> Iterator[tuple[str, _NamedStep]]:
    """Yield each step with the setting that asks for it."""
    if settings.simplified:
        yield "simplified = true", _SIMPLIFIED
    if settings.words in _WORD_STEPS:
        yield f'words = "{settings.words}"', _WORD_STEPS[settings.words]


def _load_opencc() -> Step:
    converter = import_module("opencc").OpenCC("t2s")
    convert: Step = converter.convert
    return convert


def _load_nltk() -> Step:
    return _word_step(import_module("nltk.tokenize").NLTKWordTokenizer().tokenize)


def _load_spacy() -> Step:
    tokenizer = import_module("spacy").blank("xx").tokenizer
    return _word_step(lambda text: [word.text for word in tokenizer(text)])


def _word_step(words_of: Callable[[str], Iterable[str]]) -> Step:
    def step(text: str) -> str:
        words: list[str] = []
        for number, line in enumerate(text.split("\n")):
            words += ["\n"] if number else []
            words += _line_words(line, words_of)
        return " ".join(words)

    return step


def _line_words(line: str, words_of: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield the words of one line. White space reaches the tokenizer as single spaces: it decides
    nothing else.
    """
    for is_long, group in groupby(
        line.split(), key=lambda word: len(word) > _LONGEST_WORD
    ):
        run = list(group)
        yield from run if is_long else words_of(" ".join(run))


_SIMPLIFIED = _NamedStep("opencc t2s", "opencc", "zh", _load_opencc)
_WORD_STEPS = {
    "nltk": _NamedStep("nltk NLTKWordTokenizer", "nltk", "classic", _load_nltk),
    "spacy": _NamedStep("spacy xx", "spacy", "classic", _load_spacy),
}
