"""The text of every predictor: single lines, sentences."""

import re

# A run of white space with a line break in it. It begins where the white space does: else a long
# run without a break would be searched anew from each of its spaces, in quadratic time.
LINE_BREAKS = re.compile(r"(?<!\s)\s*[\r\n]\s*")


_SENTENCE = 4  # characters at least
_LETTERS = 0.7  # their share that are letters
_WORDS = 3  # words that make a sentence, whatever numbers are among them
_WORD = re.compile(r"[^\W\d_]{2,}[.,;:!?]*")


def one_line(text: str) -> str:
    """Return a text as a single line, which models learn from: line breaks become spaces."""
    if "\n" in text or "\r" in text:
        text = LINE_BREAKS.sub(" ", text)
    return text.strip()


def looks_like_sentence(text: str) -> bool:
    """Return whether there are words and mostly letters: no time code, table, markup or code."""
    parts = text.split()
    words = sum(_WORD.fullmatch(part) is not None for part in parts)
    if words >= _WORDS and 2 * words >= len(parts):
        return True
    characters = [c for c in text if not c.isspace()]
    letters = sum(c.isalpha() or not c.isascii() for c in characters)
    is_long = len(characters) >= _SENTENCE
    return is_long and letters >= _LETTERS * len(characters)
