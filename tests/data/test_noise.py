"""Noise spells the same, is drawn from (seed, epoch, row) alone, and is as strong as asked."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import tokenizers

from weft.config import SideSection
from weft.data.batches import Batch, Batches
from weft.data.label_batches import LabelBatches
from weft.data.noise import BpeCutter, Noise, padded_rows
from weft.data.store import ParallelStore, prepare_store, prepare_text_store
from weft.data.tokenizer import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    train_tokenizer,
)

WORDS = (
    "under",
    "standing",
    "underground",
    "standard",
    "ground",
    "groundwork",
    "workers",
    "it's",
    "naïve",
    "12345",
)
TEXTS = [
    f"{a} {b}, {c}!"
    for a in WORDS
    for b in WORDS
    for c in ("works", "understands", "語")
]


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_tokenizer(TEXTS, SideSection(kind="bpe", vocab_size=400))


@pytest.fixture(scope="module")
def characters() -> Tokenizer:
    return train_tokenizer(TEXTS, SideSection(kind="character", vocab_size=400))


def noise(
    *sides: Tokenizer,
    bpe: float = 0.0,
    word: float = 0.0,
    seed: int = 1,
    max_len: int = 99,
) -> Noise:
    return Noise(sides, bpe_dropout=bpe, word_dropout=word, seed=seed, max_len=max_len)


def array(ids: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.uint16]]":
    return np.array(ids, dtype=np.uint16)


# Words cut into other pieces


def test_without_dropout_the_pieces_are_the_tokenizers_own(bpe: Tokenizer) -> None:
    cutter = BpeCutter(bpe)
    for text in TEXTS:
        assert cutter.cut(bpe.encode(text), 0.0, Random(1).random) == bpe.encode(text)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_other_pieces_spell_the_same(bpe: Tokenizer, dropout: float) -> None:
    cutter, draw = BpeCutter(bpe), Random(2).random
    cut = [cutter.cut(bpe.encode(text), dropout, draw) for text in TEXTS]
    assert [bpe.decode(ids) for ids in cut] == TEXTS
    assert (
        sum(ids != bpe.encode(text) for ids, text in zip(cut, TEXTS, strict=True))
        > len(TEXTS) / 2
    )


def test_with_every_merge_left_out_each_byte_is_a_piece(bpe: Tokenizer) -> None:
    ids = BpeCutter(bpe).cut(bpe.encode("ground 語"), 0.999999999, Random(3).random)
    assert len(ids) == len(" ground 語".encode())


@pytest.mark.parametrize("dropout", [0.1, 0.4])
def test_it_is_as_strong_as_the_librarys_own_which_takes_no_seed(
    bpe: Tokenizer, dropout: float
) -> None:
    """The mean number of pieces over many draws, against `tokenizers.models.BPE(dropout=...)`.

    That is a little weaker than the paper's algorithm: coming upon a pair that is gone by then, it
    tries those that it had left out once more.
    """
    theirs = tokenizers.Tokenizer.from_str(bpe.to_json())
    theirs.model.dropout = dropout
    cutter, draw = BpeCutter(bpe), Random(4).random
    rounds, texts = 40, TEXTS[:60]
    ours = np.mean(
        [
            len(cutter.cut(bpe.encode(t), dropout, draw))
            for t in texts
            for _ in range(rounds)
        ]
    )
    expected = np.mean(
        [len(theirs.encode(t).ids) for t in texts for _ in range(rounds)]
    )
    plain = np.mean([len(bpe.encode(t)) for t in texts])
    assert expected > plain * 1.05
    assert 0.97 < (ours - plain) / (expected - plain) < 1.12


def test_what_ends_inside_a_character_keeps_its_pieces(bpe: Tokenizer) -> None:
    ids = bpe.encode("ground 鑿")[:-1]
    # the character is spelled in bytes
    assert len(bpe.encode("ground 鑿")) > len(bpe.encode("ground")) + 2
    cut = BpeCutter(bpe).cut(ids, 0.9, Random(5).random)
    assert cut[-3:] == ids[-3:]  # the space and the bytes
    assert bpe.decode(cut[:-3]) == "ground"
    assert len(cut) > len(ids)


def test_a_row_that_would_grow_too_long_keeps_its_pieces(bpe: Tokenizer) -> None:
    ids = bpe.encode(TEXTS[0])
    (cut, _), *_ = noise(bpe, bpe=0.9).of(0, 0, array(ids))
    (kept, _), *_ = noise(bpe, bpe=0.9, max_len=len(ids)).of(0, 0, array(ids))
    assert len(cut) > len(ids)
    assert kept == ids


# Words masked


def test_words_are_masked_as_often_as_asked_and_only_where_they_are_read(
    characters: Tokenizer,
) -> None:
    plain, drawn = (
        array([*range(10, 60)] * 20),
        noise(characters, characters, word=0.2, max_len=1000),
    )
    shares = []
    for row in range(30):
        for ids, read in drawn.of(0, row, plain, plain):
            assert ids == plain.tolist()
            assert all(a in (UNK_ID, b) for a, b in zip(read, ids, strict=True))
            shares.append(read.count(UNK_ID) / len(read))
    assert np.mean(shares) == pytest.approx(0.2, abs=0.01)


# What it is drawn from


def test_a_row_is_drawn_from_seed_epoch_and_number_alone(bpe: Tokenizer) -> None:
    ids = array(bpe.encode(" ".join(TEXTS[:3])))
    first = noise(bpe, bpe, bpe=0.3, word=0.3).of(2, 5, ids, ids)
    busy = noise(bpe, bpe, bpe=0.3, word=0.3)
    for row in range(4):
        busy.of(1, row, ids, ids)
    assert busy.of(2, 5, ids, ids) == first
    others = [
        busy.of(2, 6, ids, ids),
        busy.of(3, 5, ids, ids),
        noise(bpe, bpe, bpe=0.3, seed=2).of(2, 5, ids, ids),
    ]
    assert first not in others
    assert first[0] != first[1]  # nor are both sides drawn alike


def test_a_tokenizer_without_merges_keeps_its_pieces(
    bpe: Tokenizer, characters: Tokenizer
) -> None:
    ids = [array(t.encode(TEXTS[7])) for t in (characters, bpe)]
    (mine, _), (theirs, _) = noise(characters, bpe, bpe=0.8).of(0, 0, *ids)
    assert mine == ids[0].tolist()
    assert theirs != ids[1].tolist()


# Batches of it


@pytest.fixture
def pairs(tmp_path: Path, bpe: Tokenizer) -> ParallelStore:
    return prepare_store(tmp_path, "train", TEXTS, TEXTS[::-1], bpe, bpe, 60, "text")


def read(ids: "Batch | object", tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.decode([i for i in row if i > EOS_ID]) for row in ids.tolist()]  # type: ignore[attr-defined]


def test_pairs_in_a_noisy_batch_are_the_same_pairs(
    pairs: ParallelStore, bpe: Tokenizer
) -> None:
    batches = Batches(pairs, 600, None, 7, noise(bpe, bpe, bpe=0.2, max_len=60))
    plain = Batches(pairs, 600, None, 7)
    assert batches.num_batches(1) == plain.num_batches(1)
    for position in range(batches.num_batches(1)):
        batch, clean = batches.batch(1, position), plain.batch(1, position)
        assert batch.rows.tolist() == clean.rows.tolist()
        assert read(batch.src, bpe) == read(clean.src, bpe)
        assert (
            read(batch.tgt_out, bpe)
            == read(clean.tgt_out, bpe)
            == read(batch.tgt_in, bpe)
        )
        assert (batch.tgt_in[:, 0] == BOS_ID).all()
        assert ((batch.tgt_out == EOS_ID).sum(1) == 1).all()
        shifted = batch.tgt_in[:, 1:]
        assert bool((shifted == batch.tgt_out[:, :-1])[shifted != PAD_ID].all())
        assert (
            batch.num_src_tokens
            == int((batch.src != PAD_ID).sum())
            > clean.num_src_tokens
        )
        assert batch.num_tgt_tokens == int((batch.tgt_out != PAD_ID).sum())
        assert batch.src.shape[1] % 2 == 0 or batch.src.shape[1] == 61


def test_masked_words_are_labels_all_the_same(
    pairs: ParallelStore, bpe: Tokenizer
) -> None:
    noisy = Batches(pairs, 600, None, 7, noise(bpe, bpe, word=0.3, max_len=60)).batch(
        0, 0
    )
    plain = Batches(pairs, 600, None, 7).batch(0, 0)
    assert noisy.tgt_out.equal(plain.tgt_out)
    for ours, theirs in ((noisy.src, plain.src), (noisy.tgt_in, plain.tgt_in)):
        masked = ours != theirs
        assert 0.2 < float(masked.sum() / (theirs > EOS_ID).sum()) < 0.4
        assert set(ours[masked].tolist()) == {UNK_ID}
        assert bool((theirs[masked] > EOS_ID).all())


@pytest.mark.parametrize("first_id", [None, BOS_ID])
def test_texts_in_a_noisy_batch_are_the_same_texts(
    tmp_path: Path, bpe: Tokenizer, first_id: int | None
) -> None:
    store = prepare_text_store(
        tmp_path, "train", TEXTS, bpe, max_len=60, too_long="cut", text_key=""
    )
    labels = np.arange(len(TEXTS))
    noisy = LabelBatches(
        store, labels, 600, None, 3, first_id, noise(bpe, bpe=0.2, max_len=60)
    ).batch(0, 1)
    plain = LabelBatches(store, labels, 600, None, 3, first_id).batch(0, 1)
    assert noisy.labels.equal(plain.labels)
    assert read(noisy.ids, bpe) == read(plain.ids, bpe)
    assert not noisy.ids.equal(plain.ids)
    assert noisy.num_src_tokens == int((noisy.ids != PAD_ID).sum())
    if first_id is not None:
        assert (noisy.ids[:, 0] == first_id).all()


def test_rows_are_padded_to_an_even_width_within_a_limit() -> None:
    assert padded_rows([[5, 6, 7], [8]], 9).tolist() == [[5, 6, 7, 0], [8, 0, 0, 0]]
    assert padded_rows([[5, 6, 7], [8]], 3).tolist() == [[5, 6, 7], [8, 0, 0]]
