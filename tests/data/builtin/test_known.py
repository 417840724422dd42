"""The words that the everyday corpus teaches, by kind."""

import pytest

from weft.data import builtin
from weft.data.builtin.known import KINDS, MOST, words_by_kind
from weft.data.known import KnownWords


@pytest.mark.parametrize("lang", ["en", "zh", "de"])
def test_every_kind_is_shown_by_words_that_occur(lang: str) -> None:
    train = [
        pair[0]
        for pair in builtin.pairs(
            "everyday", lang, "en" if lang != "en" else "zh"
        ).train
    ]
    known = KnownWords.of(train)
    shown = words_by_kind(lang, lambda words: not known.unknown(words))
    assert list(shown) == list(KINDS)
    whole = " ".join(train).lower()
    for kind, some in shown.items():
        assert 6 <= len(some) <= MOST, kind
        assert len(set(some)) == len(some)
        for part in (part for word in some for part in word.replace("…", " ").split()):
            assert part.lower() in whole


def test_words_that_are_not_known_are_not_shown() -> None:
    assert words_by_kind("en", lambda word: word == "bread")["food"] == ["bread"]
    assert not any(words_by_kind("de", lambda word: False).values())
