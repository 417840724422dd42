"""The tokenizers of a large text are those of a sample of its rows, whatever learns them."""

from pathlib import Path

import pytest

from weft.config import SideSection, TokenizerSection
from weft.data import crew, learning
from weft.data.builtin import everyday
from weft.data.column import Column, ColumnWriter
from weft.data.learning import learn_tokenizers
from weft.data.tokenizer import build_tokenizers
from weft.errors import DataError

SRC = [triple.de for triple in everyday()]
TGT = [triple.en for triple in everyday()]
APART = TokenizerSection(
    joint=False, src=SideSection(vocab_size=400), tgt=SideSection(kind="character")
)


def column(file: Path, texts: list[str]) -> Column:
    writer = ColumnWriter(file)
    writer.extend(texts)
    return writer.close()


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_large_text_has_the_tokenizers_of_a_small_one(
    count: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(crew.VARIABLE, count)
    src = column(tmp_path / "src.txt", SRC)
    tgt = column(tmp_path / "tgt.txt", TGT)
    for section in (APART, TokenizerSection()):
        large = learn_tokenizers(section, src, tgt)
        small = build_tokenizers(section, SRC, TGT)
        assert [one.to_json() for one in large] == [one.to_json() for one in small]
        assert [one.notes for one in large] == [one.notes for one in small]
        assert (large[0] is large[1]) == (small[0] is small[1])


def test_of_a_larger_one_a_sample_is_learned_from_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "1")
    src = column(tmp_path / "src.txt", SRC)
    tgt = column(tmp_path / "tgt.txt", TGT)
    monkeypatch.setattr(learning, "MOST_BYTES", src.size // 3 + 1)
    sampled, _ = learn_tokenizers(APART, src, tgt)
    third, _ = build_tokenizers(APART, SRC[::3], TGT)
    assert sampled.to_json() == third.to_json()
    said = f"learned from {len(SRC[::3]):,} evenly spaced texts of {len(SRC):,}"
    assert sampled.notes[-1] == f"tokenizer.src: {said}"


def test_words_that_hardly_recur_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "1")
    texts = ["ab", "cde", "ab cde", "語 ab", "ab", "fg"]
    every = column(tmp_path / "src.txt", texts)
    # 2 + 3 + 3 + 2 bytes; of every other one 2 + 3, of every fourth 2
    for most, stride in ((10, 1), (9, 2), (5, 2), (4, 4), (1, 8)):
        monkeypatch.setattr(learning, "MOST_DISTINCT", most)
        (sample,) = learning._sampled([every], True)
        assert sample == texts[::stride]
    (whole,) = learning._sampled([every], False)
    assert whole == texts


def test_a_side_without_text_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "2")
    src = column(tmp_path / "src.txt", [""] * 3)
    tgt = column(tmp_path / "tgt.txt", TGT[:3])
    with pytest.raises(DataError, match=r"tokenizer\.src: there is no text"):
        learn_tokenizers(APART, src, tgt)
