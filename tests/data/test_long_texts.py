"""Texts of many megabytes: encoded in parts, with the ids of the whole, in linear time."""

import time
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pushed import of_which
from weft.config import SideSection
from weft.data import tokenizer as tokenizer_module
from weft.data.tokenizer import Tokenizer, train_tokenizer

KINDS = ("bpe", "unigram", "character", "word", "byte")
SIDES: dict[str, dict[str, object]] = {
    **{kind: {"kind": kind, "vocab_size": 330} for kind in KINDS},
    "NFKC": {"kind": "bpe", "vocab_size": 330, "unicode": "NFKC", "lowercase": True},
    "raw": {"kind": "unigram", "vocab_size": 330, "unicode": "raw"},
    "whitespace": {
        "kind": "word",
        "words": "whitespace",
        "unicode": "NFKC",
        "vocab_size": 330,
    },
    "bare": {"kind": "bpe", "leading_space": False, "vocab_size": 330},
    "nltk": {"kind": "word", "words": "nltk", "vocab_size": 330},
    "bare nltk": {
        "kind": "word",
        "words": "nltk",
        "leading_space": False,
        "vocab_size": 330,
    },
    "spacy": {
        "kind": "word",
        "words": "spacy",
        "vocab_size": 330,
        "unicode": "NFKC",
        "lowercase": True,
    },
    "simplified": {"kind": "character", "simplified": True, "vocab_size": 330},
}
PACKAGE_OF = {
    "nltk": "nltk",
    "bare nltk": "nltk",
    "spacy": "spacy",
    "simplified": "opencc",
}
PARTS = (
    "word",
    "ΟΔΟΣ",
    "Σ",
    "e",
    "語",
    "漢語學習",
    "don't.",
    '"x"',
    "<0x41>",
    "3.14",
    "\u0301",
    "\u00a8",
    "\ufe70",
    "\ufdfa",
    "\u1161",
    *(
        " ",
        " ",
        "  ",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        " \n",
        "\n ",
        "\u00a0",
        "\u3000",
        "\x85",
        "\u2028",
    ),
    *("\x1c", "\0", "\u200b", "\ufeff", "\ud800"),
)


@cache
def _tokenizer(name: str) -> Tokenizer:
    if name in PACKAGE_OF:
        pytest.importorskip(
            PACKAGE_OF[name], reason=f"{PACKAGE_OF[name]} is not installed"
        )
    return train_tokenizer(
        ["".join(PARTS) * 2, "the dog sees the hen"],
        SideSection.model_validate(SIDES[name]),
    )


@pytest.mark.parametrize("name", SIDES)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=40))
@example(parts=["don't.", " ", "word", "\n", "don't.", " \n", "word"])
@example(parts=['"x"', "\x1c", '"x"', "\r\n", "\n", "\u00a8", " ", "\u00a8"])
def test_a_long_text_has_the_ids_of_the_whole(
    name: str, monkeypatch: pytest.MonkeyPatch, parts: list[str]
) -> None:
    tokenizer, text = _tokenizer(name), "".join(parts)
    for length in (1, 7):
        monkeypatch.setattr(tokenizer_module, "_PART", length)
        assert tokenizer.encode_long(text) == tokenizer.encode(text)


@pytest.mark.parametrize("name", SIDES)
def test_a_long_text_is_encoded_in_several_parts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = _tokenizer(name)
    text = "".join(f"Line {i}, with “words” and 漢語.\r\n\n" for i in range(1_000))
    whole, prepare = tokenizer.encode(text), tokenizer._prepare
    sizes: list[int] = []

    def prepare_and_count(part: str) -> str:
        sizes.append(len(part))
        return prepare(part)

    monkeypatch.setattr(tokenizer_module, "_PART", 3_000)
    monkeypatch.setattr(tokenizer, "_prepare", prepare_and_count)
    assert tokenizer.encode_long(text) == whole
    assert sum(sizes) == len(text)
    assert len(sizes) > tokenizer_module._PARTS_AT_ONCE + 1
    assert all(3_000 <= size < 3_100 for size in sizes[:-1])


@pytest.mark.parametrize("name", SIDES)
def test_nothing_has_no_ids(name: str) -> None:
    assert _tokenizer(name).encode_long("") == []


@pytest.mark.parametrize("name", of_which([*KINDS, "whitespace"], "bpe", "unigram"))
def test_one_word_of_half_a_megabyte_is_read_and_shown_in_linear_time(
    name: str,
) -> None:
    tokenizer = _tokenizer(name)
    text = "aé" * 170_000
    start = time.process_time()
    assert tokenizer.decode(tokenizer.encode_long(text)) == text
    assert time.process_time() - start < 4


def test_labels_of_many_ids_take_linear_time() -> None:
    tokenizer = _tokenizer("byte")
    ids = tokenizer.encode("a語" * 50_000)
    start = time.process_time()
    assert len(tokenizer.pieces(ids)) == len(ids) == 200_000
    assert time.process_time() - start < 5
