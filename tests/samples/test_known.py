"""The words that the everyday corpus teaches: what counts as one, which of a sentence's are not among them."""

import pytest

from weft import samples
from weft.samples.known import KINDS, MOST, KnownWords, words


@pytest.mark.parametrize(
    ("text", "lang", "found"),
    [
        ("It's Tom, 30 years old.", "en", ["It", "s", "Tom", "30", "years", "old"]),
        ("Das Mädchen schläft.", "de", ["Das", "Mädchen", "schläft"]),
        ("我喝3杯茶，Tom也喝。", "zh", ["我", "喝", "3", "杯", "茶", "Tom", "也", "喝"]),
    ],
)
def test_words(text: str, lang: str, found: list[str]) -> None:
    assert words(text, lang) == found


def test_what_was_never_seen_is_named_once_and_in_order() -> None:
    known = KnownWords("en", ["My father is reading a book.", "The dog sleeps."])
    assert known.unseen("The boy is reading the boy a Dog.") == ["boy", "the", "Dog"]
    assert known.unseen("My dog sleeps.") == []


@pytest.mark.parametrize("lang", ["en", "zh", "de"])
def test_every_kind_is_shown_by_words_that_occur(lang: str) -> None:
    train = [pair[0] for pair in samples.pairs("everyday", lang, "en" if lang != "en" else "zh").train]
    known = KnownWords(lang, train)
    shown = known.kinds()
    assert list(shown) == list(KINDS)
    whole = " ".join(train).lower()
    for kind, some in shown.items():
        assert 6 <= len(some) <= MOST, kind
        assert len(set(some)) == len(some)
        for part in (part for word in some for part in word.replace("…", " ").split()):
            assert part.lower() in whole
