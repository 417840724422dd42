"""The keys by which llama.cpp tokenizes, and what is known of how it does."""

from collections.abc import Callable

import pytest

from weft.config import SideSection
from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer, train_tokenizer
from weft.errors import UsageError
from weft.ship.tokenizers.gguf_tokens import ReadByLlamaCpp, token_keys

Trained = Callable[[str], Tokenizer]
KEY = "tokenizer.ggml."
TEXTS = ("the tide 34 tis नमस्ते", "'tis the tide, नमस्ते of 034 in 34") * 5


@pytest.fixture(scope="module")
def without_space() -> Tokenizer:
    """Return a tokenizer that puts no space before a text."""
    settings = SideSection(kind="bpe", vocab_size=400, leading_space=False)
    return train_tokenizer(TEXTS, settings)


def test_the_keys_have_every_piece_in_its_place(without_space: Tokenizer) -> None:
    keys = token_keys(without_space, EOS_ID)
    size = without_space.vocab_size
    pieces = keys[f"{KEY}tokens"]
    assert len(pieces) == len(keys[f"{KEY}token_type"]) == size
    assert keys[f"{KEY}token_type"][:5] == [5, 5, 5, 5, 1]
    for text in TEXTS:
        ids = without_space.encode(text)
        joined = "".join(pieces[i] for i in ids).replace("Ġ", " ")
        assert joined.isascii() or len(joined) == len(text.encode())
    assert keys[f"{KEY}bos_token_id"] == EOS_ID
    assert token_keys(without_space, BOS_ID)[f"{KEY}bos_token_id"] == BOS_ID
    for merge in keys[f"{KEY}merges"]:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= set(pieces)


def test_ids_are_weft_s_where_both_cut_alike(without_space: Tokenizer) -> None:
    read = ReadByLlamaCpp(without_space)
    for text in ("the tide", " the  tide,", "in 198 the 'tis", "\tnaïve\n\n", ""):
        assert read.encode(text) == without_space.encode(text), text
        assert read.reads_otherwise(text) == "", text


def test_it_is_known_which_texts_are_read_otherwise(without_space: Tokenizer) -> None:
    read = ReadByLlamaCpp(without_space)
    for text, why in (
        ("नमस्ते", "combining marks"),
        ("12345", "numbers of more than three digits"),
        ("'tide", "words that an apostrophe begins"),
        ("nai\u0308ve", "letters that another normal form of Unicode has"),
    ):
        assert read.encode(text) != without_space.encode(text), text
        assert read.reads_otherwise(text) == why


def test_a_text_is_given_with_the_space_that_the_tokenizer_puts_before_it(
    trained: Trained,
) -> None:
    tokenizer = trained("bpe")
    read = ReadByLlamaCpp(tokenizer)
    for text in ("Der Hund", " Der  Hund", "1984, 34", ""):
        assert read.given(text) == (f" {text}" if text else "")
        assert read.encode(text) == tokenizer.encode(text), text
        assert read.reads_otherwise(text) == "", text


def test_what_llama_cpp_has_not_is_refused(trained: Trained) -> None:
    for name, why in (
        ("bpe-lower", "tokenizer.lowercase.*lowercase = false"),
        ("unigram", 'kind = "unigram".*kind = "bpe"'),
        ("word", 'kind = "word"'),
        ("character", 'kind = "character"'),
        ("byte", 'kind = "byte"'),
    ):
        with pytest.raises(UsageError, match=why):
            token_keys(trained(name), BOS_ID)
