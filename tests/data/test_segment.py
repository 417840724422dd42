"""Running text is cut where sentences end, and nothing is lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data.segment import split_sentences


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
        ("Am 3. Mai kam er. Er ging.", ["Am 3. Mai kam er. ", "Er ging."]),
        ("In 1999. Then 2000.", ["In 1999. ", "Then 2000."]),
        ("你好。我很好！“是吗？”他说。", ["你好。", "我很好！", "“是吗？”", "他说。"]),
        ("「はい。」と言った。彼は去った。", ["「はい。」と言った。", "彼は去った。"]),
        ("यह है। वह है।", ["यह है। ", "वह है।"]),
        ("هل أنت بخير؟ نعم.", ["هل أنت بخير؟ ", "نعم."]),
        (
            "Привет. Как дела? И. П. Павлов.",
            ["Привет. ", "Как дела? ", "И. П. Павлов."],
        ),
        ("A title\n\nA paragraph", ["A title\n\n", "A paragraph"]),
        ("  One.  Two.  ", ["  One.  ", "Two.  "]),
        ("no end", ["no end"]),
        ("   ", ["   "]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


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
    ],
)
def test_time_is_linear(text: str) -> None:
    start = time.perf_counter()
    split_sentences(text)
    assert time.perf_counter() - start < 2
