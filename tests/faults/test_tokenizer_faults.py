"""Text that imitates pieces, vocabularies larger than the data, and tokenizer files made to do
harm.
"""

import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tokenizers import Tokenizer as RustTokenizer

from weft.config import SideSection, TokenizerSection, TranslationRecipe
from weft.data import tokenizer as tokenizer_module
from weft.data import tokenizer_file, vocabulary
from weft.data.pipeline import BYTE_PIECES, SMALLEST, SPECIALS
from weft.data.tokenizer import (
    Tokenizer,
    build_tokenizers,
    load_tokenizer,
    train_tokenizer,
)
from weft.errors import DataError, FolderError, UsageError
from weft.recipes.file import with_values

KINDS = ("bpe", "unigram", "character", "word")
IMITATIONS = ("</s>", "<pad>", "<s>", "<unk>", "<0x41>", "<0x00>", *SPECIALS)
TEXTS = ["the dog sees the hen", "the hen sees the dog", "der Hund 狗", *IMITATIONS] * 3


@cache
def _tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer(
        TEXTS, SideSection.model_validate({"kind": kind, "vocab_size": 400})
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", IMITATIONS)
def test_D7_names_of_pieces_in_text_are_ordinary_text(kind: str, name: str) -> None:
    """They stand in the training text too, so that each had its chance to become a piece under its
    own name.
    """
    tokenizer = _tokenizer(kind)
    for text in (
        name,
        f"a {name} b",
        f"{name}{name}",
        f"{name[:3]} {name[3:]}",
        f"  {name}",
    ):
        ids = tokenizer.encode(text)
        assert min(ids) >= 4
        assert tokenizer.decode(ids) == text
        # all its characters were seen: no byte piece may occur
        if kind in ("character", "word"):
            assert min(ids) >= SMALLEST


def test_D7_names_of_special_pieces_have_an_inner_space_that_no_pre_token_has() -> None:
    for kind in ("bpe", "unigram", "word"):
        pre_tokenizer = RustTokenizer.from_str(_tokenizer(kind).to_json()).pre_tokenizer
        for text in (*SPECIALS, " ".join(SPECIALS), "a  b\t c"):
            assert not any(
                " " in piece[1:] and piece.strip()
                for piece, _ in pre_tokenizer.pre_tokenize_str(text)
            )
    assert all(" " in name[1:-1] for name in SPECIALS)


@pytest.mark.parametrize("kind", ["character", "word"])
def test_D7_a_byte_piece_stands_for_its_byte_and_its_name_for_text(kind: str) -> None:
    tokenizer = _tokenizer(kind)
    byte = 4 + BYTE_PIECES.index("<0x41>")
    prefix = tokenizer.encode("") or []
    assert tokenizer.decode([*prefix, byte]) == "A"
    assert byte not in tokenizer.encode("<0x41>")
    assert byte in tokenizer.encode("A")  # a letter that the texts do not have


@pytest.mark.parametrize("kind", KINDS)
def test_D8_a_vocabulary_larger_than_the_text_allows_is_reduced_and_reported(
    kind: str,
) -> None:
    section = SideSection.model_validate({"kind": kind, "vocab_size": 32_000})
    tokenizer = train_tokenizer(
        [f"line {i} of one hundred" for i in range(100)], section
    )
    assert SMALLEST < tokenizer.vocab_size < 1000
    assert len(tokenizer.notes) == 1
    assert "32,000" in tokenizer.notes[0]
    assert f"{tokenizer.vocab_size:,}" in tokenizer.notes[0]


@pytest.mark.parametrize("kind", KINDS)
def test_D8_a_size_that_was_chosen_automatically_needs_no_report(kind: str) -> None:
    side = SideSection.model_validate({"kind": kind})
    src, tgt = build_tokenizers(
        TokenizerSection(joint=False, src=side, tgt=side), TEXTS, TEXTS
    )
    assert src.notes == tgt.notes == []


@pytest.mark.parametrize("kind", KINDS)
def test_D8_one_short_text_is_enough_for_a_tokenizer(kind: str) -> None:
    for text in ("a", " ", "\0", "語"):
        tokenizer = train_tokenizer([text], SideSection.model_validate({"kind": kind}))
        assert tokenizer.decode(tokenizer.encode(f"{text} x")) == f"{text} x"


@pytest.mark.parametrize("kind", KINDS)
def test_D8_too_small_a_vocabulary_is_refused_with_the_smallest(kind: str) -> None:
    """Special pieces and bytes alone are so many; a recipe is refused before a folder is made."""
    small = {"tokenizer.kind": kind, "tokenizer.vocab_size": SMALLEST - 1}
    with pytest.raises(
        UsageError,
        match=rf"tokenizer\.vocab_size = {SMALLEST - 1}: .* from {SMALLEST} to",
    ):
        with_values(TranslationRecipe(), small)
    side = SideSection.model_validate({"kind": kind, "vocab_size": SMALLEST})
    assert train_tokenizer(TEXTS, side).vocab_size == SMALLEST


@pytest.mark.parametrize("kind", KINDS)
def test_D8_unseen_scripts_and_emoji_need_no_unknown_id(kind: str) -> None:
    tokenizer = _tokenizer(kind)
    for text in ("👩‍🔬 ü ж", "עברית", "ภาษา", "\U0010ffff"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert 1 not in tokenizer.encode(text)


def test_D8_a_panic_in_training_is_an_ordinary_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object) -> None:
        raise PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(vocabulary, "_bpe", panic)
    with pytest.raises(DataError, match="the tokenizers library failed"):
        train_tokenizer(TEXTS, SideSection(kind="bpe"))


Tree = dict[str, Any]
Change = Callable[[Tree], object]


def _shift_ids(tree: Tree) -> None:
    tree["model"]["vocab"] = {
        piece: number + 1 for piece, number in tree["model"]["vocab"].items()
    }


def _swap(tree: Tree, a: int, b: int) -> None:
    vocab = tree["model"]["vocab"]
    numbers = {a: b, b: a}
    tree["model"]["vocab"] = {
        piece: numbers.get(number, number) for piece, number in vocab.items()
    }


def _add_piece(piece: str) -> Change:
    return lambda tree: tree["model"]["vocab"].update(
        {piece: len(tree["model"]["vocab"])}
    )


def _set_model(**values: Any) -> Change:
    return lambda tree: tree["model"].update(values)


NESTED = {
    "type": "Split",
    "pattern": {"Regex": "(a+)+$"},
    "behavior": "Isolated",
    "invert": False,
}
BOMB = {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}
CHANGES: dict[str, Change] = {
    "nested quantifier in the pre-tokenizer": lambda tree: tree.update(
        pre_tokenizer=NESTED
    ),
    "foreign normalizer": lambda tree: tree.update(normalizer=BOMB),
    "foreign decoder": lambda tree: tree.update(decoder=BOMB),
    "post-processor": lambda tree: tree.update(post_processor={"type": "ByteLevel"}),
    "truncation": lambda tree: tree.update(truncation={"max_length": 1}),
    "added token": lambda tree: tree["added_tokens"].append(
        {"id": 4, "content": "a", "special": True}
    ),
    "unknown part": lambda tree: tree.update(extra=1),
    "missing part": lambda tree: tree.pop("decoder"),
    "no model": lambda tree: tree.update(model=None),
    "other model": _set_model(type="WordPiece"),
    "other option": _set_model(dropout=0.5),
    "an option more": _set_model(cache_capacity=2**40),
    "false as 0": _set_model(fuse_unk=0),
    "ids from 1": _shift_ids,
    "id outside the embedding": lambda tree: tree["model"]["vocab"].update(Ġthe=10**9),
    "negative id": lambda tree: tree["model"]["vocab"].update(Ġthe=-1),
    "true as id": lambda tree: tree["model"]["vocab"].update({"!": True}),
    "specials moved": lambda tree: _swap(tree, 0, 270),
    "byte missing": lambda tree: _swap(tree, 10, 270),
    "vocabulary as list": _set_model(vocab=[]),
    "no vocabulary": lambda tree: tree["model"].pop("vocab"),
    "piece of 100 KB": _add_piece("a" * 100_000),
    "empty piece": _add_piece(""),
    "piece outside the alphabet": _add_piece("a b"),
    "piece with a surrogate": _add_piece("\ud800"),
    "merge of unknown pieces": lambda tree: tree["model"]["merges"].append(
        ["no", "piece"]
    ),
    "merge into an unknown piece": lambda tree: tree["model"]["merges"].append(
        ["!", "#"]
    ),
    "merge of itself": lambda tree: tree["model"]["merges"].append(["", "a"]),
    "merge of three": lambda tree: tree["model"]["merges"].append(["t", "h", "e"]),
    "merge as string": lambda tree: tree["model"]["merges"].append("t h"),
    "merge twice": lambda tree: tree["model"]["merges"].append(
        tree["model"]["merges"][0]
    ),
    "merges as object": _set_model(merges={}),
}


def _refused(content: str | bytes, kind: str) -> str:
    start = time.perf_counter()
    with pytest.raises(FolderError) as caught:
        load_tokenizer(content, _tokenizer(kind).settings, "model/tokenizer.json")
    assert time.perf_counter() - start < 5
    message = str(caught.value)
    assert message.startswith("model/tokenizer.json: ")
    assert "\n" not in message
    assert len(message) < 300
    return message


@pytest.mark.parametrize("name", CHANGES)
def test_M4_a_changed_bpe_file_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _tokenizer("bpe").to_json()
    assert load_tokenizer(whole, _tokenizer("bpe").settings, "here").to_json() == whole
    tree = json.loads(whole)
    CHANGES[name](tree)
    assert json.dumps(tree) != json.dumps(json.loads(whole))  # the fault has landed
    # nothing may be built from it
    monkeypatch.setattr(tokenizer_module, "Tokenizer", None)
    _refused(json.dumps(tree), "bpe")


@pytest.mark.parametrize(
    "score", ["0.5", "1e999", "-1e9", "NaN", "true", '"0"', "null", "-" + "9" * 400]
)
def test_M4_unigram_scores_that_are_no_log_probabilities_are_refused(
    score: str,
) -> None:
    tree = json.loads(_tokenizer("unigram").to_json())
    tree["model"]["vocab"][-1][1] = "SCORE"
    _refused(json.dumps(tree).replace('"SCORE"', score), "unigram")


def test_M4_unigram_pieces_are_checked_like_others() -> None:
    whole = json.loads(_tokenizer("unigram").to_json())
    for number, entry in (
        (-1, ["a" * 100_000, -1.0]),
        (-1, ["a b", -1.0]),
        (0, ["x", 0.0]),
        (-2, ["!", -1.0]),
    ):
        tree = json.loads(json.dumps(whole))
        tree["model"]["vocab"][number] = entry
        _refused(json.dumps(tree), "unigram")
    whole["model"]["unk_id"] = 10**6
    _refused(json.dumps(whole), "unigram")


@pytest.mark.parametrize("kind", ["character", "word"])
def test_M4_character_and_word_files_have_no_merges(kind: str) -> None:
    tree = json.loads(_tokenizer(kind).to_json())
    tree["model"]["merges"] = [["t", "h"]]
    _refused(json.dumps(tree), kind)
    tree = json.loads(_tokenizer(kind).to_json())
    tree["model"]["ignore_merges"] = not tree["model"]["ignore_merges"]
    _refused(json.dumps(tree), kind)


def test_M4_a_character_is_one_character() -> None:
    tree = json.loads(_tokenizer("character").to_json())
    _add_piece("ab")(tree)
    assert "more than one character" in _refused(json.dumps(tree), "character")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe{}",
        b"[]",
        b"null",
        b"{",
        b"{}",
        b'{"model": {}}',
        b"[" * 100_000,
        b'{"model":' * 50_000,
        b'{"a": 1, "a": 1}',
        b"1" * 10_000,
        '{"model": "\ud800"}',
    ],
)
def test_M4_what_is_no_tokenizer_file_is_refused(content: str | bytes) -> None:
    _refused(content, "bpe")


def test_M4_deep_nesting_inside_a_part_is_refused() -> None:
    tree = json.loads(_tokenizer("bpe").to_json())
    tree["normalizer"] = "DEEP"
    for depth in (50, *range(850, 1000, 3), 5_000):
        _refused(json.dumps(tree).replace('"DEEP"', "[" * depth + "]" * depth), "bpe")


def test_M4_a_key_given_twice_is_refused() -> None:
    whole = _tokenizer("bpe").to_json()
    doubled = whole.replace('"version":"1.0"', '"version":"1.0","normalizer":null', 1)
    assert doubled != whole
    assert "twice" in _refused(doubled, "bpe")


def test_M4_too_large_a_file_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_file, "MAX_BYTES", 1000)
    monkeypatch.setattr(json, "loads", None)
    assert "1,000 allowed" in _refused(b" " * 1001, "bpe")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_M4_a_file_of_another_kind_is_refused(kind: str, other: str) -> None:
    if kind != other:
        _refused(_tokenizer(other).to_json(), kind)


def test_M4_other_normalization_than_the_settings_say_is_refused() -> None:
    tokenizer = _tokenizer("bpe")
    changed = tokenizer.settings.model_copy(update={"lowercase": True})
    with pytest.raises(FolderError, match="'normalizer' is not what Weft writes"):
        load_tokenizer(tokenizer.to_json(), changed, "tokenizer.json")
    with pytest.raises(FolderError, match=r"config\.json"):
        load_tokenizer(tokenizer.to_json(), SideSection(), "tokenizer.json")


def test_M4_a_panic_while_loading_is_an_ordinary_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr(tokenizer_module, "Tokenizer", panic)
    whole, settings = _tokenizer("bpe").to_json(), _tokenizer("bpe").settings
    with pytest.raises(FolderError, match="the tokenizers library failed"):
        load_tokenizer(whole, settings, "tokenizer.json")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "unit",
    [
        *(" ", "\u0301", "語", "aaaaaaab"),
        *(
            pytest.param(unit, marks=pytest.mark.long)
            for unit in ("a", "a ", " \n", "1", "-", "\0")
        ),
    ],
)
def test_M4_long_runs_are_encoded_in_linear_time(kind: str, unit: str) -> None:
    tokenizer = _tokenizer(kind)
    text = unit * (100_000 // len(unit))
    start = time.perf_counter()
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)
    assert time.perf_counter() - start < 5
