"""The tokenizers that transformers reads: the ids and the text of Weft's own, for every kind."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.config import SideSection
from weft.data.pipeline import BYTE_PIECES, SPECIALS
from weft.data.tokenizer import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    train_tokenizer,
)
from weft.errors import UsageError
from weft.predict.text import one_line
from weft.ship.tokenizers.hub import (
    Files,
    classifier_files,
    language_model_files,
    translator_files,
)
from weft.ship.tokenizers.ids import IdMap, joined, same
from weft.ship.tokenizers.odd_texts import ODD_TEXTS

transformers = pytest.importorskip(
    "transformers", reason="transformers reads what is written for it"
)
ODD = [odd.text for odd in ODD_TEXTS]
MAX_LEN = 512
# of every class that takes Weft's models, as transformers calls it
MODEL_TYPES = (
    *("marian", "pegasus", "blenderbot", "t5gemma", "qwen3", "llama", "gpt2"),
    *("starcoder2", "bert", "megatron-bert", "eurobert"),
)
names = st.sampled_from([*SPECIALS, *BYTE_PIECES[60:70], "t ", "Hund", " ", "\n", "▁"])
made_of_names = st.lists(st.one_of(names, st.text(max_size=3)), max_size=8).map("".join)

Trained = Callable[[str], Tokenizer]


def read(files: Files, folder: Path, model_type: str = "") -> Any:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if model_type:
        config = json.dumps({"model_type": model_type})
        (folder / "config.json").write_text(config, "utf-8")
    return transformers.AutoTokenizer.from_pretrained(folder)


def spelled(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of ids with the leading space, if there is one."""
    return tokenizer.spell(ids, begins=False).decode("utf-8", "replace")


def test_a_translator_with_one_tokenizer(one: Tokenizer, tmp_path: Path) -> None:
    theirs = read(translator_files(one, one, same(one), MAX_LEN), tmp_path)
    for text in ODD:
        ids = one.encode(one_line(text))
        assert theirs(text)["input_ids"] == [*ids, EOS_ID], text
        output = [BOS_ID, *one.encode(text), EOS_ID, PAD_ID]
        assert theirs.decode(output, skip_special_tokens=True) == one.normalize(text)


def test_lines_stay_as_they_are_where_they_should(
    one: Tokenizer, tmp_path: Path
) -> None:
    files = translator_files(one, one, same(one), MAX_LEN, one_line=False)
    theirs = read(files, tmp_path)
    for text in ODD:
        assert theirs(text)["input_ids"] == [*one.encode(text), EOS_ID], text


@pytest.mark.parametrize("start_id", [BOS_ID, EOS_ID])
def test_a_language_model(one: Tokenizer, start_id: int, tmp_path: Path) -> None:
    theirs = read(language_model_files(one, start_id, MAX_LEN), tmp_path)
    for text in ODD:
        ids = one.encode(text)
        assert theirs(text)["input_ids"] == [start_id, *ids], text
        output = [start_id, *ids, EOS_ID]
        decoded = theirs.decode(output, skip_special_tokens=True)
        assert decoded == spelled(one, ids), text
    assert theirs.bos_token_id == start_id
    assert theirs.padding_side == theirs.truncation_side == "left"


def test_a_continuation_keeps_its_space(trained: Trained, tmp_path: Path) -> None:
    bpe = trained("bpe")
    theirs = read(language_model_files(bpe, BOS_ID, MAX_LEN), tmp_path)
    assert theirs.decode(bpe.encode("Hund")) == " Hund"


@pytest.mark.parametrize("first_token", [True, False])
def test_a_classifier(one: Tokenizer, first_token: bool, tmp_path: Path) -> None:
    files = classifier_files(one, MAX_LEN, first_token=first_token)
    theirs = read(files, tmp_path)
    first = [BOS_ID] if first_token else []
    for text in ODD:
        ids = one.encode(one_line(text))
        assert theirs(text)["input_ids"] == [*first, *ids], text


def test_long_texts_are_cut_as_weft_cuts_them(trained: Trained, tmp_path: Path) -> None:
    bpe = trained("bpe")
    text = "Der Hund läuft und die Katze läuft " * 3
    ids = bpe.encode(one_line(text))
    assert len(ids) > 12
    theirs = read(translator_files(bpe, bpe, same(bpe), 12), tmp_path)
    assert theirs(text, truncation=True)["input_ids"] == [*ids[:11], EOS_ID]
    theirs = read(classifier_files(bpe, 12, first_token=True), tmp_path)
    assert theirs(text, truncation=True)["input_ids"] == [BOS_ID, *ids[:11]]


@pytest.mark.parametrize(
    ("target", "own_eos"), [("character", False), ("bpe-lower", True)]
)
def test_two_vocabularies(
    one: Tokenizer, target: str, own_eos: bool, trained: Trained, tmp_path: Path
) -> None:
    tgt = trained(target)
    ids = joined(one, tgt, own_eos)
    theirs = read(translator_files(one, tgt, ids, MAX_LEN), tmp_path)
    assert len(theirs) == ids.size
    for text in ODD:
        source = [*one.encode(one_line(text)), EOS_ID]
        assert theirs(text)["input_ids"] == ids.to("src", source).tolist(), text
        written = [BOS_ID, *tgt.encode(text), EOS_ID]
        output = ids.to("tgt", written).tolist()
        decoded = theirs.decode(output, skip_special_tokens=True)
        assert decoded == tgt.normalize(text), text


def test_any_text_has_the_same_ids(trained: Trained, tmp_path: Path) -> None:
    for name in ("whitespace", "unigram"):
        src = trained(name)
        tgt = trained("word")
        ids = joined(src, tgt, own_eos=True)
        folder = tmp_path / name
        folder.mkdir()
        theirs = read(translator_files(src, tgt, ids, MAX_LEN), folder)
        check_any_text(theirs, src, tgt, ids)


@settings(max_examples=25, deadline=None)
@given(text=made_of_names)
def check_any_text(
    theirs: Any, src: Tokenizer, tgt: Tokenizer, ids: IdMap, text: str
) -> None:
    source = [*src.encode(one_line(text)), EOS_ID]
    assert theirs(text)["input_ids"] == ids.to("src", source).tolist()
    output = ids.to("tgt", tgt.encode(text)).tolist()
    assert theirs.decode(output) == tgt.normalize(text)


def test_the_special_pieces_have_their_places(trained: Trained, tmp_path: Path) -> None:
    src, tgt = trained("bpe"), trained("word")
    ids = joined(src, tgt, own_eos=True)
    theirs = read(translator_files(src, tgt, ids, MAX_LEN), tmp_path)
    assert theirs.pad_token_id == PAD_ID
    assert theirs.unk_token_id == UNK_ID
    assert theirs.bos_token_id == BOS_ID
    assert theirs.eos_token_id == EOS_ID
    assert theirs("Hund")["input_ids"][-1] == ids.src_eos == tgt.vocab_size + EOS_ID
    assert theirs.model_max_length == MAX_LEN
    assert "token_type_ids" not in theirs("Hund")
    batch = theirs(["Hund", "Hund Hund Hund"], padding=True)
    assert batch["input_ids"][0][-1] == PAD_ID


@pytest.mark.long
def test_no_class_of_a_model_brings_a_tokenizer_of_its_own(
    trained: Trained, tmp_path: Path
) -> None:
    bpe = trained("bpe")
    files = translator_files(bpe, bpe, same(bpe), MAX_LEN)
    for model_type in MODEL_TYPES:
        folder = tmp_path / model_type
        folder.mkdir()
        theirs = read(files, folder, model_type)
        for text in ODD:
            ids = [*bpe.encode(one_line(text)), EOS_ID]
            assert theirs(text)["input_ids"] == ids, (model_type, text)


def test_steps_that_no_other_program_has_are_refused(trained: Trained) -> None:
    pytest.importorskip("nltk", reason="nltk is not installed")
    words = SideSection(kind="word", words="nltk")
    src = train_tokenizer(["a b c"], words)
    tgt = trained("character")
    with pytest.raises(UsageError, match=r'tokenizer\.src\.words = "nltk".*"unicode"'):
        translator_files(src, tgt, joined(src, tgt, own_eos=False), MAX_LEN)
    with pytest.raises(UsageError, match=r'tokenizer\.words = "nltk"'):
        classifier_files(src, MAX_LEN, first_token=False)
    with pytest.raises(UsageError, match=r'tokenizer\.words = "nltk"'):
        language_model_files(src, BOS_ID, MAX_LEN)


def test_a_step_on_the_targets_side_is_for_training_alone(
    trained: Trained, tmp_path: Path
) -> None:
    pytest.importorskip("opencc", reason="opencc is not installed")
    simplified = SideSection(kind="character", simplified=True)
    tgt = train_tokenizer(["漢語", "中文"], simplified)
    src = trained("bpe")
    ids = joined(src, tgt, own_eos=False)
    theirs = read(translator_files(src, tgt, ids, MAX_LEN), tmp_path)
    assert theirs.decode(ids.to("tgt", tgt.encode("漢語")).tolist()) == "汉语"
    with pytest.raises(UsageError, match=r"tokenizer\.simplified = true"):
        translator_files(tgt, tgt, same(tgt), MAX_LEN)
