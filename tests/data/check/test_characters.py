"""Characters are counted text by text, whatever the blocks that they are counted in."""

import pytest

from weft.data.check.characters import foreign_letters, letters_of


def test_letters_by_script_and_what_is_foreign() -> None:
    texts = ["hello world"] * 99 + ["привет wy"]
    scripts = letters_of(texts)
    assert scripts == {"LATIN": 992, "CYRILLIC": 6}
    letters, foreign = foreign_letters(texts, scripts)
    assert (letters[0], foreign[0], letters[-1], foreign[-1]) == (10, 0, 8, 6)
    nothing, none = foreign_letters(texts[:9], scripts)
    assert (nothing.sum(), none.sum()) == (0, 0)
    assert letters_of(["1 + 2", ""]) == {}


def test_texts_of_many_blocks_are_counted_each_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.data.check.characters._BLOCK_CHARS", 7)
    texts = ["abc", "", "de", "fghijklmnop", "", "qж"]
    _, foreign = foreign_letters(texts, letters_of(["abc"]))
    assert foreign.tolist() == [0, 0, 0, 0, 0, 1]
    assert letters_of(texts) == {"LATIN": 17, "CYRILLIC": 1}
    letters, foreign = foreign_letters(texts, letters_of(["жжж"]))
    assert letters.tolist() == [3, 0, 2, 11, 0, 2]
    assert foreign.tolist() == [3, 0, 2, 11, 0, 1]
