"""Files of the byte kind and of words by white space, damaged."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from weft.config import SideSection
from weft.data import tokenizer as tokenizer_module
from weft.data.pipeline import MAX_PIECE_BYTES
from weft.data.tokenizer import load_tokenizer, train_tokenizer
from weft.errors import FolderError

Change = Callable[[dict[str, Any]], Any]
TEXTS = ["the dog sees the hen", "don't <unk> me\nagain"]
BYTES = SideSection(kind="byte")
RUNS = SideSection(kind="word", words="whitespace", vocab_size=400)


def _swap(tree: dict[str, Any], a: str, b: str) -> None:
    vocab = tree["model"]["vocab"]
    vocab[a], vocab[b] = vocab[b], vocab[a]


BYTE_CHANGES: dict[str, Change] = {
    "one piece more": lambda tree: tree["model"]["vocab"].update({"ab": 260}),
    "a byte missing": lambda tree: tree["model"]["vocab"].pop("a"),
    "two bytes exchanged": lambda tree: _swap(tree, "a", "b"),
    "a special piece exchanged": lambda tree: _swap(tree, "<pad token>", "a"),
    "a merge": lambda tree: tree["model"]["merges"].append(["a", "b"]),
    "a leading space": lambda tree: tree["normalizer"]["normalizers"].append(
        {"type": "Prepend", "prepend": " "}
    ),
    "a space stripped": lambda tree: tree["decoder"]["decoders"].append(
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    ),
    "byte fallback": lambda tree: tree["model"].update({"byte_fallback": True}),
    "another pattern": lambda tree: tree.update(
        {
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": "(a+)+$"},
                "behavior": "Isolated",
                "invert": False,
            }
        }
    ),
}


@pytest.mark.parametrize("name", BYTE_CHANGES)
def test_a_changed_byte_file_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = train_tokenizer(TEXTS, BYTES)
    whole = tokenizer.to_json()
    assert load_tokenizer(whole, tokenizer.settings, "here").to_json() == whole
    tree = json.loads(whole)
    BYTE_CHANGES[name](tree)
    assert tree != json.loads(whole)  # the fault has landed
    # nothing may be built from it
    monkeypatch.setattr(tokenizer_module, "Tokenizer", None)
    with pytest.raises(
        FolderError, match=r"^model/tokenizer\.json: [^\n]*; restore the original file$"
    ):
        load_tokenizer(json.dumps(tree), tokenizer.settings, "model/tokenizer.json")


def test_a_file_with_other_words_than_the_settings_say_is_refused() -> None:
    unicode = train_tokenizer(TEXTS, RUNS.model_copy(update={"words": "unicode"}))
    runs = train_tokenizer(TEXTS, RUNS)
    for tokenizer, other in ((unicode, runs), (runs, unicode)):
        with pytest.raises(
            FolderError,
            match="'pre_tokenizer' is not what Weft writes for a word tokenizer",
        ):
            load_tokenizer(tokenizer.to_json(), other.settings, "here")
        assert (
            load_tokenizer(tokenizer.to_json(), tokenizer.settings, "here").sha256
            == tokenizer.sha256
        )


@pytest.mark.parametrize("words", ["unicode", "whitespace"])
def test_no_word_is_learned_that_a_reader_would_refuse(words: str) -> None:
    settings = RUNS.model_copy(update={"words": words})
    # the space before it is one more
    fits, too_long = "x" * (MAX_PIECE_BYTES - 1), "é" * (MAX_PIECE_BYTES // 2)
    tokenizer = train_tokenizer([f"{fits} {too_long}"] * 3, settings)
    assert len(tokenizer.encode(fits)) == 1
    assert len(tokenizer.encode(too_long)) == 1 + len(too_long)
    again = load_tokenizer(tokenizer.to_json(), tokenizer.settings, "here")
    assert again.decode(again.encode(f"{too_long} {fits}")) == f"{too_long} {fits}"
