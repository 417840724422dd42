"""Characters followed through normalization, worked out by hand."""

import pytest
from tokenizers import normalizers

from weft.config import SideSection
from weft.data.places import Characters, starts_after
from weft.data.tokenizer import train_tokenizer

TEXTS = ["Der Hund läuft, und die Katze.", "中文也有字。 12"] * 3


@pytest.mark.parametrize(
    ("text", "normal", "starts"),
    [
        ("aé b", "aé b", [0, 1, 2, 3]),
        ("xe\u0301y", "xéy", [0, 1, 3]),
        ("ﬁn", "fin", [0, 0, 1]),
        ("\u0130b", "i\u0307b", [0, 0, 1]),
        ("㌀a", "アパートa", [0, 0, 0, 0, 1]),
        ("各각z", "各각z", [0, 1, 2]),
        ("\u1100\u1161\u11a8z", "각z", [0, 3]),
        ("a\nb", "a\nb", [0, 1, 2]),
        ("😀ﬃ.", "😀ffi.", [0, 1, 1, 1, 2]),
        ("", "", []),
    ],
)
def test_each_character_comes_from_the_one_it_was_made_of(
    text: str, normal: str, starts: list[int]
) -> None:
    steps = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    assert steps.normalize_str(text) == normal
    assert Characters(steps).starts(text) == starts


def test_marks_that_are_put_in_order_are_not_counted_backwards() -> None:
    text = "e\u0301\u0327\u0323o"
    starts = Characters(normalizers.NFC()).starts(text)
    assert starts == sorted(starts)
    assert (starts[0], starts[-1]) == (0, 4)


@pytest.mark.parametrize(
    ("text", "changed", "starts"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("a  b", "a b", [0, 1, 3]),
        ('"a"', "`` a ''", [0, 0, 0, 1, 2, 2, 2]),
        ("a,b", "a , b", [0, 0, 1, 1, 2]),
        ("漢字体", "汉字体", [0, 1, 2]),
        ("", "x", [0]),
        ("ab", "", []),
    ],
)
def test_what_changed_is_found_by_comparison(
    text: str, changed: str, starts: list[int]
) -> None:
    assert starts_after(text, changed) == starts


@pytest.mark.parametrize(
    ("kind", "text", "at"),
    [
        ("bpe", "  ﬁn 中", {"f": 2, "i": 2, "n": 3, "中": 5}),
        ("word", "ﬁn\n中", {"f": 0, "i": 0, "n": 1, "中": 3}),
        ("character", "Ｄer \ud800x", {"d": 0, "e": 1, "\ufffd": 4, "x": 5}),
        ("byte", "Ｄer", {"d": 0, "e": 1, "r": 2}),
    ],
)
def test_of_every_kind_of_tokenizer(kind: str, text: str, at: dict[str, int]) -> None:
    """Also of those that put a space before the text."""
    settings = {"kind": kind, "vocab_size": 300, "unicode": "NFKC", "lowercase": True}
    tokenizer = train_tokenizer(TEXTS, SideSection.model_validate(settings))
    normal = tokenizer.normalize(text)
    starts = tokenizer.starts(text)
    assert {one: starts[normal.index(one)] for one in at} == at


@pytest.mark.parametrize("kind", ["bpe", "word", "character", "byte", "unigram"])
def test_a_text_that_stays_as_it_is_has_its_own_places(kind: str) -> None:
    """As those of a longer text, which are followed character by character."""
    settings = {"kind": kind, "vocab_size": 300}
    tokenizer = train_tokenizer(TEXTS, SideSection.model_validate(settings))
    for text in ("a b", "Der Hund, z.B. hier.", "x", "(a-b) c's 3.14 `d`"):
        normal = tokenizer.normalize(text)
        followed = tokenizer.starts(f"{text} \u00fc")
        assert tokenizer.starts(text) == followed[: len(normal)], text
    assert tokenizer.starts("") == []


def test_words_of_another_package_are_found_where_they_stood() -> None:
    pytest.importorskip(
        "nltk", reason="nltk is not installed (pip install '.[classic]')"
    )
    settings = {"kind": "word", "words": "nltk", "vocab_size": 300}
    tokenizer = train_tokenizer(TEXTS, SideSection.model_validate(settings))
    text = 'He  said: "Don\'t go,  Anna."'
    normal = tokenizer.normalize(text)
    starts = tokenizer.starts(text)
    assert "``" in normal
    for word in ("said", "Anna", "go"):
        assert starts[normal.index(word)] == text.index(word)
    assert starts[normal.index("``")] == text.index('"')
