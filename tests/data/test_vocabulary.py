"""What a vocabulary is learned from: bounded samples of texts, and bounded parts of documents."""

from itertools import pairwise

import pytest

from weft.config import SideSection
from weft.data import vocabulary
from weft.data.vocabulary import (
    LONGEST_PART,
    document_parts,
    sample_texts,
    train_vocabulary,
)

DOCUMENT = "".join(f"line {i} of a long document, word{i % 97}\n" for i in range(2_000))


def test_a_sample_is_evenly_spaced_and_bounded_in_characters() -> None:
    texts = [f"{i:05d}" for i in range(1_000)]
    kept, total = sample_texts(texts, characters=150)
    assert total == 1_000
    assert 15 <= len(kept) <= 30
    assert len({int(b) - int(a) for a, b in pairwise(kept)}) == 1
    assert sample_texts(texts, characters=5_000) == (texts, 1_000)


def test_a_text_larger_than_the_bound_is_kept_all_the_same() -> None:
    assert sample_texts(["x" * 100], characters=10) == (["x" * 100], 1)
    kept, total = sample_texts(["x" * 100] * 50, characters=10)
    assert (len(kept), total) == (1, 50)


def test_long_documents_are_learned_from_in_parts() -> None:
    unbroken = "x" * (2 * LONGEST_PART + 7)
    texts = ["", "short", DOCUMENT, unbroken, "y" * LONGEST_PART]
    parts = list(document_parts(texts))
    assert "".join(parts) == "".join(texts)
    assert max(map(len, parts)) == LONGEST_PART
    assert parts[:2] == ["", "short"]
    assert parts[-1] == texts[-1]
    assert parts[-4:-1] == ["x" * LONGEST_PART, "x" * LONGEST_PART, "x" * 7]
    inside = parts[2:-4]
    assert len(inside) > 5
    assert all(
        later[0] in " \n" and not part[-1].isspace() for part, later in pairwise(inside)
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "character", "byte"])
def test_the_lists_that_the_library_gets_do_not_change_what_is_learned(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SideSection.model_validate({"kind": kind})
    texts = [
        f"{a} {b}{a} {b}." for a in ("ab", "bc", "語") for b in ("xy", "yz", "zz")
    ] * 5
    whole = train_vocabulary(texts, settings, 300)
    monkeypatch.setattr(vocabulary, "_CHUNK_CHARACTERS", 20)
    assert all(sum(map(len, chunk)) <= 20 for chunk in vocabulary._chunks(texts))
    assert [text for chunk in vocabulary._chunks(texts) for text in chunk] == texts
    assert train_vocabulary(texts, settings, 300) == whole


def test_one_text_larger_than_a_list_is_a_list_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vocabulary, "_CHUNK_CHARACTERS", 5)
    assert list(vocabulary._chunks(["ab", "cdefghi", "j", "k"])) == [
        ["ab"],
        ["cdefghi"],
        ["j", "k"],
    ]
    assert list(vocabulary._chunks([])) == []
