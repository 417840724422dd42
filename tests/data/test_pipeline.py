"""Where words end by pattern, where a text may be cut, and the alphabet of bytes."""

import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from weft.config import SideSection
from weft.data.pipeline import (
    BYTE_PIECES,
    SMALLEST,
    SPECIALS,
    byte_letters,
    cut_text,
    piece_bytes,
    smallest_pieces,
    tokenizer_tree,
    with_other_beginning,
    word_pattern,
)

RUNS = SideSection(kind="word", words="whitespace")
KINDS = ("bpe", "unigram", "character", "word", "byte")


def _runs(text: str) -> list[str]:
    splitter = pre_tokenizers.Split(Regex(word_pattern(RUNS)), "isolated")
    return [piece for piece, _ in splitter.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" <unk> don't @-@ (x)!", [" <unk>", " don't", " @-@", " (x)!"]),
        (" a\nb \nc", [" a", "\n", "b", " \n", "c"]),
        (" a\n\n \n b", [" a", "\n", "\n", " \n", " b"]),
        (" a   b\t c\td ", [" a", "  ", " b", "\t", " c", "\t", "d", " "]),
        (" a  \n\t\nb\r\n", [" a", " ", " \n", "\t", "\n", "b", "\r", "\n"]),
        (
            " <0x41> a<0x41>\t<0x41>\n<0xab>b",
            [" <0x41>", " a<0x41>", "\t", "<", "0x41>", "\n", "<", "0xab>b"],
        ),
        (" 你好 世界\u3000x", [" 你好", " 世界", "\u3000", "x"]),
    ],
)
def test_words_are_runs_between_white_space(text: str, words: list[str]) -> None:
    assert _runs(text) == words


@given(text=st.text(alphabet="ab<0x4F>\n\r\t \u00a0語\u0301", max_size=20))
def test_runs_lose_nothing_and_never_name_a_byte(text: str) -> None:
    words = _runs(text)
    assert "".join(words) == text
    assert not any(
        len(word.encode()) == 6 and word.startswith("<0x") and word.endswith(">")
        for word in words
    )
    assert not any(
        word[1:].strip() and (" " in word[1:] or "\n" in word) for word in words
    )


def test_a_text_is_cut_before_white_space_that_ends_a_word() -> None:
    assert list(cut_text("ab cd\n\nef", 1)) == ["ab", " cd", "\n\nef"]
    assert list(cut_text("ab cd\n\nef", 3)) == ["ab cd", "\n\nef"]
    assert list(cut_text("ab cd\n\nef", 6)) == ["ab cd\n\nef"]
    assert list(cut_text("  a  b", 1)) == ["  a", "  b"]
    assert list(cut_text("", 5)) == [""]
    # no white space to the library
    assert list(cut_text("abc\u2028\x1ddef", 1)) == ["abc\u2028\x1ddef"]


def test_a_text_is_cut_before_the_end_of_a_line() -> None:
    assert list(cut_text("a b\nc d \r\n\n e\nf", 1, at_line_ends=True)) == [
        "a b",
        "\nc d",
        " \r\n\n e",
        "\nf",
    ]
    assert list(cut_text("a b c", 1, at_line_ends=True)) == ["a b c"]


@given(
    text=st.text(alphabet="ab \n\r\t\u3000", max_size=60),
    length=st.integers(1, 9),
    lines=st.booleans(),
)
def test_parts_are_the_text_and_long_enough(
    text: str, length: int, lines: bool
) -> None:
    parts = list(cut_text(text, length, lines))
    assert "".join(parts) == text
    assert all(len(part) >= length for part in parts[:-1])
    for part, later in pairwise(parts):
        assert not part[-1].isspace()
        assert later[0] in " \t\r\n"


@pytest.mark.long
def test_no_character_is_normalized_to_something_that_ends_in_white_space() -> None:
    """Nor does white space that a text is cut at change: so normalization does not see over a
    cut.
    """
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if not character.isspace():
            forms = (
                unicodedata.normalize("NFKC", character),
                unicodedata.normalize("NFC", character),
            )
            assert not any(
                form[-1].isspace() for form in (*forms, character.lower())
            ), hex(number)
    marks = [chr(number) for number in range(0x300, 0x370)]
    for space in " \t\r\n":
        for mark in marks:
            for form in ("NFC", "NFKC"):
                assert (
                    unicodedata.normalize(form, f"a{space}{mark}")
                    == f"a{space}{unicodedata.normalize(form, mark)}"
                )


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_vocabulary_has_each_byte_once(kind: str) -> None:
    pieces = smallest_pieces(kind)
    assert len(pieces) == len(set(pieces)) == SMALLEST
    assert pieces[:4] == list(SPECIALS)
    assert sorted(piece_bytes(piece, kind) for piece in pieces[4:]) == [
        bytes([byte]) for byte in range(256)
    ]
    assert (pieces[4:] == list(BYTE_PIECES)) == (kind in ("character", "word"))


def test_pieces_of_the_byte_kind_are_in_the_order_of_the_bytes() -> None:
    assert [piece_bytes(piece, "byte") for piece in smallest_pieces("byte")[4:]] == [
        bytes([b]) for b in range(256)
    ]
    assert byte_letters("A é") == "".join(
        smallest_pieces("byte")[4 + byte] for byte in "A é".encode()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_leading_space_is_put_and_taken_off_where_the_kind_joins_it(
    kind: str,
) -> None:
    has_space = kind in ("bpe", "unigram", "word")
    steps = {True: ["NFC", "Lowercase", "Prepend"], False: ["NFC", "Lowercase"]}
    for asked in (True, False):
        settings = SideSection.model_validate(
            {"kind": kind, "lowercase": True, "leading_space": asked}
        )
        tree = tokenizer_tree(settings, {})
        found = [step["type"] for step in tree["normalizer"]["normalizers"]]
        assert found == steps[asked and has_space]
        decoders = [step["type"] for step in tree["decoder"]["decoders"]]
        assert ("Strip" in decoders) == (asked and has_space)
        if has_space:
            other = with_other_beginning(tree, settings)
            assert {key for key in tree if tree[key] != other[key]} == {"normalizer"}
            found = [step["type"] for step in other["normalizer"]["normalizers"]]
            assert found == steps[not asked]
