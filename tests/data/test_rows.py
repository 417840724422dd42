"""Many texts at once have the ids that each has alone."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import pytest
import tokenizers

from weft.config import SideSection
from weft.data import rows as rows_module
from weft.data.rows import IdRows, encode_whole
from weft.data.tokenizer import Tokenizer, train_tokenizer

TEXTS = [
    "the cat sat on the mat , and the dog sat on the cat .",
    "The cat's 12,345 mats (all of them) were on the mat ...",
    "two  spaces and the\ttab , the cat and three   of them",
    " a space before the cat and the mat",
    "a space behind the cat and the mat ",
    "é composed and e\u0301 not , a\u00a0no-break space and the cat ´ ´x",
    "the mat <0x41> <0x42> < 0x43 <pad token> of the cat",
    "", " ", "\n", "cat", "the ş \u0301 the of \u200b a cat", "\ud800 lone the cat the mat",
    "İstanbul ΣΑΣ the cat sat ﬁne on ½ the ㌔ mat",
    "猫がマットの上に座った。犬も。", "漢字 と かな と the cat と 🐈 と 𠀋 の 字",
    "la la la the the the the cat",
]  # fmt: skip


def learned(**settings: object) -> Tokenizer:
    chosen = {"vocab_size": 330, **settings}
    return train_tokenizer(TEXTS * 2, SideSection.model_validate(chosen))


def expected(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "character", "byte"])
def test_many_texts_have_the_ids_that_each_has_alone(kind: str) -> None:
    for form, lowercase, leading_space in (
        ("NFC", False, True),
        ("NFKC", True, False),
        ("raw", True, True),
    ):
        tokenizer = learned(
            kind=kind, unicode=form, lowercase=lowercase, leading_space=leading_space
        )
        for _ in range(2):  # the second time all words are known
            assert tokenizer.encode_rows(TEXTS).lists() == expected(tokenizer, TEXTS)


def test_so_many_at_a_time_have_the_same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_CUT_AT_ONCE", 4)
    monkeypatch.setattr(rows_module, "_AT_ONCE", 3)
    monkeypatch.setattr(rows_module, "_TOGETHER", 2)
    tokenizer = learned(kind="bpe")
    for texts in (TEXTS, TEXTS[:4], []):
        assert tokenizer.encode_rows(texts).lists() == expected(tokenizer, texts)


def test_words_between_white_space_too() -> None:
    tokenizer = learned(kind="word", words="whitespace")
    assert tokenizer.encode_rows(TEXTS).lists() == expected(tokenizer, TEXTS)


def test_a_character_that_was_never_seen_is_spelled() -> None:
    tokenizer = learned(kind="character", vocab_size=300)
    texts = ["the cat", "ǿ", "the ǿ cat", "", "mat"]
    found = tokenizer.encode_rows(texts).lists()
    assert found == expected(tokenizer, texts)
    assert len(found[1]) == 2  # a byte each


def test_no_more_words_are_kept_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "MOST_WORDS", 30)
    tokenizer = learned(kind="bpe")
    encoder = tokenizer._rows
    assert isinstance(encoder, rows_module.WordEncoder)
    for turn in range(5):
        texts = [f"the cat and {turn}{n} x{n} of the mat" for n in range(4 + turn)]
        texts += ["the cat sat on the mat"] * (turn * 10)
        assert tokenizer.encode_rows(texts).lists() == expected(tokenizer, texts)
        assert len(encoder._numbers) == len(encoder._known) <= 30


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_new_words_are_encoded_many_as_one_text(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = learned(kind=kind, unicode="NFKC")._rows
    assert isinstance(encoder, rows_module.WordEncoder)
    words = [" the", " cat's", " 12,345", " 猫x", " ½", " x"] * 50
    one_by_one = encode_whole(encoder._inside, words).lists()
    nums: list[int] = []

    def counted(pipeline: tokenizers.Tokenizer, texts: Sequence[str]) -> IdRows:
        nums.append(len(texts))
        return encode_whole(pipeline, texts)

    monkeypatch.setattr(rows_module, "encode_whole", counted)
    assert encoder._encode_together(words).lists() == one_by_one
    assert nums == [3]
    # a first word without a space, and one that NFKC gives another space
    for other in ("the", " a´"):
        some = [*words[:9], other]
        expected = encode_whole(encoder._inside, some).lists()
        assert encoder._encode_together(some).lists() == expected
    assert nums == [3, 10, 1, 10]
    assert encoder._encode_together([]).lists() == []


def test_no_printable_character_ends_with_white_space_in_any_form() -> None:
    """Else a word could not be normalized without the one behind it."""
    for code in range(0x30000):
        letter = chr(code)
        if letter != " " and letter.isprintable():
            assert not unicodedata.normalize("NFKC", letter)[-1].isspace()


def test_rows_are_chosen_and_joined() -> None:
    rows = IdRows.of([[1, 2], [], [3], [4, 5, 6]])
    assert rows.lists() == [[1, 2], [], [3], [4, 5, 6]]
    assert rows.chosen(np.array([3, 1, 0])).lists() == [[4, 5, 6], [], [1, 2]]
    assert rows.summed(np.array([3, 1])).lists() == [[1, 2, 3], [4, 5, 6]]
    assert IdRows.of([]).lists() == []
