"""Running text is cut where sentences end, and nothing is lost."""

import time
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushed import of_which
from weft.data.segment import split_sentences

CASES = Path(__file__).parent / "sentences.txt"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("He paid $3.50. She paid 4.", ["He paid $3.50. ", "She paid 4."]),
        (
            "Dr. Smith met J. R. Ewing. They left.",
            ["Dr. Smith met J. R. Ewing. ", "They left."],
        ),
        (
            "The U.S. Army came. So, e.g. Bob fled.",
            ["The U.S. Army came. ", "So, e.g. Bob fled."],
        ),
        (
            '"Really?" she said. "Yes!" He nodded.',
            ['"Really?" she said. ', '"Yes!" ', "He nodded."],
        ),
        ("Well... I see. Wait... what?", ["Well... ", "I see. ", "Wait... what?"]),
        ("In 1999. Then 2000.", ["In 1999. ", "Then 2000."]),
        ("你好。我很好！“是吗？”他说。", ["你好。", "我很好！", "“是吗？”", "他说。"]),
        ("「はい。」と言った。彼は去った。", ["「はい。」と言った。", "彼は去った。"]),
        ("यह है। वह है।", ["यह है। ", "वह है।"]),
        ("هل أنت بخير؟ نعم.", ["هل أنت بخير؟ ", "نعم."]),
        (
            "Привет. Как дела? И. П. Павлов.",
            ["Привет. ", "Как дела? ", "И. П. Павлов."],
        ),
        ("Wait! cried he. yes. no.", ["Wait! cried he. yes. no."]),
        ("who is it? it is me", ["who is it? ", "it is me"]),
        ("“Who?” asked he (why?) once.", ["“Who?” asked he (why?) once."]),
        ("Hello!How are you?", ["Hello!How are you?"]),
        ("我买了。iPhone很好。", ["我买了。", "iPhone很好。"]),
        ("A title\n\nA paragraph", ["A title\n\n", "A paragraph"]),
        ("twelve\nyou left", ["twelve\n", "you left"]),
        ("twelve.\nyou left.", ["twelve.\n", "you left."]),
        ("12.\r\nYou left.", ["12.\r\n", "You left."]),
        ("Only Mr. \n Smith", ["Only Mr. \n ", "Smith"]),
        ("はい。\n、と", ["はい。\n", "、と"]),
        ("a\rb\r\n\n c\n", ["a\r", "b\r\n\n ", "c\n"]),
        ("\n a", ["\n a"]),
        ("  One.  Two.  ", ["  One.  ", "Two.  "]),
        ("no end", ["no end"]),
        ("   ", ["   "]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("de", "Am 3. Mai kam er. Er ging.", ["Am 3. Mai kam er. ", "Er ging."]),
        ("de-AT", "Am 3. Mai. Er", ["Am 3. Mai. ", "Er"]),
        ("deu", "Am 3. Mai", ["Am 3. Mai"]),
        ("pl", "XX. 3. Maja", ["XX. ", "3. Maja"]),
        ("hu", "Május 3. Ő", ["Május 3. Ő"]),
        ("de", "Er hat 100. Sie", ["Er hat 100. ", "Sie"]),
        ("de", "Er ist 12.\nSie", ["Er ist 12.\n", "Sie"]),
        ("en", "She is 12. He is 9. You", ["She is 12. ", "He is 9. ", "You"]),
        ("zh", "她12. 他", ["她12. ", "他"]),
        ("und", "She is 12. He", ["She is 12. ", "He"]),
        ("", "She is 12. He", ["She is 12. ", "He"]),
        ("en", "1. Go. 2. Come.", ["1. Go. ", "2. Come."]),
        ("en", "  1. Go.\n12. Come.", ["  1. Go.\n", "12. Come."]),
        (
            "de",
            "Kap. 5. Das gilt. Am 5. Juli",
            ["Kap. 5. ", "Das gilt. ", "Am 5. Juli"],
        ),
        (
            "fr",
            "« Oui. » Non. « Oui ? » dit-il",
            ["« Oui. » ", "Non. ", "« Oui ? » dit-il"],
        ),
        ("el", "Πού; Εδώ; ναι", ["Πού; ", "Εδώ; ναι"]),
        ("en", "Who; Me", ["Who; Me"]),
        ("zh", "好吗?好!", ["好吗?", "好!"]),
        (
            "en",
            "At 9 a.m. It ran 5 m. No. 5 won.",
            ["At 9 a.m. ", "It ran 5 m. ", "No. 5 won."],
        ),
    ],
)
def test_an_ordinals_dot_ends_no_sentence_where_the_language_writes_one(
    language: str, text: str, sentences: list[str]
) -> None:
    assert split_sentences(text, language) == sentences


def cases() -> Iterator[tuple[str, list[str]]]:
    """The sentences of each line of a file, with the language of the heading above it.

    They were written before any splitter was tried on them.
    """
    language = ""
    for line in CASES.read_text("utf-8").split("\n"):
        if line.startswith("# "):
            language = line[2:]
        elif line:
            yield language, line.split("‖")


def test_hand_written_texts_are_cut_where_a_person_cuts_them() -> None:
    """All but one in ten of all, and of each language most of the ends."""
    wrong = 0
    ends: dict[str, Counter[str]] = {}
    for language, wanted in cases():
        found = split_sentences("".join(wanted), language)
        wrong += found != wanted
        places = [set(accumulate(map(len, one[:-1]))) for one in (wanted, found)]
        count = ends.setdefault(language, Counter())
        count["wanted"] += len(places[0])
        count["found"] += len(places[1])
        count["both"] += len(places[0] & places[1])
    assert wrong <= 16, wrong
    assert len(ends) == 19
    for language, count in ends.items():
        assert count["both"] >= 0.8 * count["wanted"], language
        assert count["both"] >= 0.9 * count["found"], language


@given(st.text(st.one_of(st.sampled_from(" .!?。\"'」\n\raB3…"), st.characters())))
def test_joining_gives_the_text_back(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(pieces) == text
    assert all(pieces)


@pytest.mark.parametrize(
    "text",
    [
        "!" * 200_000 + "a",
        " " * 200_000,
        '."' * 100_000,
        "\n" * 200_000,
        "a. B" * 50_000,
        "1. A. " * 50_000,
        " " * 100_000 + "1. A. " * 50_000,
        "! »" * 100_000,
        "!?" * 100_000 + "好",
        "A. — " * 50_000,
    ],
)
@pytest.mark.parametrize("language", of_which(["en", "de"], "de"))
def test_time_is_linear(text: str, language: str) -> None:
    start = time.perf_counter()
    split_sentences(text, language)
    assert time.perf_counter() - start < 2
