"""Tiny tokenizers of every kind, trained once a session."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from weft.config import SideSection
from weft.data.tokenizer import Tokenizer, train_tokenizer

TEXTS = (
    "Der Hund läuft, und die Katze läuft auch.",
    "Der Hund schläft; die Katze sieht den Hund.",
    "Don't say 'the dog' in 1984, 2001 or 12345.",
    "中文也有字。 ภาษาไทย <pad> </s> 12 123  x",
)
KINDS: dict[str, dict[str, Any]] = {
    "word": {"kind": "word"},
    "whitespace": {"kind": "word", "words": "whitespace"},
    "character": {"kind": "character"},
    "bpe": {"kind": "bpe"},
    "bpe-bare": {"kind": "bpe", "leading_space": False},
    "bpe-lower": {"kind": "bpe", "lowercase": True, "unicode": "NFKC"},
    "unigram": {"kind": "unigram"},
    "byte": {"kind": "byte"},
}

Trained = Callable[[str], Tokenizer]


@pytest.fixture(scope="session")
def trained() -> Trained:
    """Return a tokenizer for the name of its kind."""

    @cache
    def tokenizer(name: str) -> Tokenizer:
        settings = SideSection.model_validate({"vocab_size": 400, **KINDS[name]})
        return train_tokenizer(TEXTS * 3, settings)

    return tokenizer


@pytest.fixture(scope="session", params=KINDS)
def one(request: pytest.FixtureRequest, trained: Trained) -> Tokenizer:
    """Return the tokenizers of all kinds in turn."""
    return trained(request.param)
