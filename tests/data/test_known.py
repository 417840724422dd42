"""Which words a model has seen."""

import pytest

from weft.data.known import KnownWords, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The boy's key, (beer)!", ["the", "boy", "s", "key", "beer"]),
        ("E-Gitarre für 5 Euro und 2nd", ["e", "gitarre", "für", "euro", "und"]),
        ("猫好 abc。", ["猫", "好", "abc"]),
        ("हिन्दी में।", ["हिन्दी", "में"]),
        ("e\u0301te\u0301 ọ̀rẹ́", ["\u00e9t\u00e9", "ọ̀rẹ́"]),
        ("Press <b>OK</b> <x id='1'/>now, 3<4 a<b", ["press", "ok", "now", "a<b"]),
        ("... 12 !", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


def test_what_was_seen_is_known_in_any_case_and_beside_any_mark() -> None:
    known = KnownWords.of(["The dog sees a cat.", "Ein Hund"])
    assert known.unknown("(THE) Hund: a boy, a key; a boy") == ["boy", "key"]
    assert known.unknown("The dog sees a cat.") == []
    assert not known.knows_nothing_of("xyz dog")
    assert all(known.knows_nothing_of(text) for text in ("asdf qwer", "", "12 !"))


def test_an_unknown_word_is_named_as_the_text_writes_it() -> None:
    known = KnownWords.of(["der Hund"])
    text = "Die STRAßE, der HUND und die «Straße» <B>Ärger</B> E\u0301té"
    assert known.unknown(text) == ["Die", "STRAßE", "und", "Ärger", "Été"]


def test_joined_they_know_what_either_knows() -> None:
    both = KnownWords.of(["one two"]).joined(KnownWords.of(["three"]))
    assert both.unknown("one two three four") == ["four"]
    assert KnownWords.of(["one"]).joined(None).unknown("two") == ["two"]


def test_many_words_are_found_again() -> None:
    words = [
        f"wort{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}"
        for i in range(5000)
    ]
    known = KnownWords.of([" ".join(words)])
    assert known.unknown(" ".join(words)) == []
    assert known.unknown("nochnie gesehen") == ["nochnie", "gesehen"]
