"""Models of sentencepiece, as its own library reads them: Weft's ids, and Weft's text."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.config import SideSection
from weft.data.tokenizer import Tokenizer, train_tokenizer
from weft.errors import UsageError
from weft.predict.text import one_line
from weft.ship.tokenizers.odd_texts import ODD_TEXTS
from weft.ship.tokenizers.sentencepiece_file import (
    ReadBySentencePiece,
    SentencePieceFile,
    sentencepiece_file,
)

sentencepiece = pytest.importorskip(
    "sentencepiece", reason="sentencepiece reads what is written for it"
)
# pieces of several digits and of several spaces, and of parts of characters
TEXTS = ("in 1984 34 34 345 345   and   –‑— 中文也有字 1   2", "die Tür 45 im 234 ‑—‑")
SPACES = "spaces, often"  # a hundred of them
UNKNOWN = {"NUL", "characters beyond the first plane", "private characters"}
some_text = st.lists(
    st.one_of(
        st.sampled_from([*"1234567 –‑éä", "  ", "e\u0301", "345", " 34", "中文", "▁"]),
        st.text(st.characters(codec="utf-8", exclude_categories=("Cn", "Co", "Cs"))),
    ),
    max_size=8,
).map("".join)

Trained = Callable[[str], Tokenizer]


def learned(**keys: object) -> Tokenizer:
    section = SideSection.model_validate({"vocab_size": 420, **keys})
    return train_tokenizer(TEXTS * 4, section)


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return learned(kind="bpe")


@pytest.fixture(scope="module")
def bpe_file(bpe: Tokenizer) -> SentencePieceFile:
    return sentencepiece_file(bpe, bpe)


def wrong_texts(file: SentencePieceFile, src: Tokenizer, tgt: Tokenizer) -> set[str]:
    """The names of odd texts that are read or written otherwise."""
    read = ReadBySentencePiece(file, src)
    found = set()
    for odd in ODD_TEXTS:
        line = one_line(odd.text)
        if read.encode(line) != src.encode(line):
            assert read.reads_otherwise(line), odd.name
            found.add(odd.name)
        line = tgt.normalize(line)
        if read.decode(tgt.encode(line)) != line:
            assert read.writes_otherwise(line), odd.name
            found.add(odd.name)
    return found


def test_one_tokenizer(bpe: Tokenizer, bpe_file: SentencePieceFile) -> None:
    assert wrong_texts(bpe_file, bpe, bpe) == {*UNKNOWN, SPACES}


@pytest.fixture(scope="module")
def read(bpe: Tokenizer, bpe_file: SentencePieceFile) -> ReadBySentencePiece:
    return ReadBySentencePiece(bpe_file, bpe)


@settings(max_examples=60, deadline=None)
@given(text=some_text)
def test_any_text(bpe: Tokenizer, read: ReadBySentencePiece, text: str) -> None:
    line = one_line(text)
    assert read.encode(line) == bpe.encode(line) or read.reads_otherwise(line) in (
        "marks that no character has",
        "numbers of several scripts",
    )
    written = one_line(bpe.normalize(text))
    is_known = not read.writes_otherwise(written)
    assert (read.decode(bpe.encode(written)) == written) is is_known


def test_digits_are_cut_in_threes_by_second_names(
    bpe: Tokenizer, bpe_file: SentencePieceFile, read: ReadBySentencePiece
) -> None:
    for number in ("1984", "12345", "345345345", "a3453 34534,345"):
        assert read.encode(number) == bpe.encode(number), number
    processor = sentencepiece.SentencePieceProcessor(model_proto=bpe_file.content)
    places = processor.encode("12345", out_type=int)
    assert any(place >= bpe.vocab_size for place in places)
    names = [bpe_file.src_vocabulary[place] for place in places]
    assert names == processor.encode("12345", out_type=str)
    assert [bpe_file.src_rows[place] for place in places] == bpe.encode("12345")


def test_the_list_of_pieces_is_the_source_s_ids_then_further_names(
    bpe: Tokenizer, bpe_file: SentencePieceFile
) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=bpe_file.content)
    vocabulary = bpe_file.src_vocabulary
    assert vocabulary[: bpe.vocab_size] == list(bpe_file.src_names)
    assert [processor.id_to_piece(i) for i in range(len(vocabulary))] == vocabulary
    assert len(set(vocabulary)) == len(vocabulary) == len(bpe_file.src_rows)
    assert processor.pad_id() == 0
    assert processor.unk_id() == 1
    assert processor.bos_id() == 2
    assert processor.eos_id() == 3


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("character", "bpe"),
        pytest.param("bpe", "word", marks=pytest.mark.long),
        pytest.param("bpe", "character", marks=pytest.mark.long),
        pytest.param("unigram", "bpe", marks=pytest.mark.long),
    ],
)
def test_two_vocabularies(source: str, target: str) -> None:
    src, tgt = learned(kind=source), learned(kind=target, vocab_size=380)
    file = sentencepiece_file(src, tgt)
    expected = UNKNOWN if source == "character" else {*UNKNOWN, SPACES}
    assert wrong_texts(file, src, tgt) == expected
    assert len(set(file.tgt_names)) == len(file.tgt_names) == tgt.vocab_size


@pytest.mark.long
@pytest.mark.parametrize(
    "keys",
    [
        {"kind": "byte"},
        {"kind": "unigram"},
        {"kind": "bpe", "unicode": "raw"},
        {"kind": "bpe", "unicode": "NFKC", "lowercase": True},
        {"kind": "bpe", "leading_space": False},
        {"kind": "character", "unicode": "NFKC"},
    ],
)
def test_other_settings(keys: dict[str, object]) -> None:
    tokenizer = learned(**keys)
    file = sentencepiece_file(tokenizer, tokenizer)
    has_spaces = keys["kind"] in ("bpe", "unigram")
    expected = {*UNKNOWN, SPACES} if has_spaces else UNKNOWN
    assert wrong_texts(file, tokenizer, tokenizer) == expected


def test_it_is_known_which_texts_are_read_otherwise(read: ReadBySentencePiece) -> None:
    spaces = "a" + " " * 40 + "b"
    assert read.differing(["1984", spaces, "ab"]) == [spaces]
    assert read.reads_otherwise(spaces) == "several spaces at a time"
    assert read.writes_otherwise("a\0") == "characters of no known script"
    assert read.writes_otherwise("aé中") == ""


def test_words_are_refused(trained: Trained) -> None:
    with pytest.raises(UsageError, match=r'kind = "word".*kind = "bpe"'):
        sentencepiece_file(trained("word"), trained("bpe"))
