"""Whole hypotheses read in one step: their attention and shares are the plain pass's, in every kind
of product, and each row's own.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from shrunk import sizes_shrunk
from weft.config import Seq2SeqSection
from weft.decoding.decoder import Hypothesis, StepInput
from weft.decoding.search import search_all
from weft.decoding.sentences import BeamSettings, Sentence
from weft.engine.bindings import KINDS, Engine, Session
from weft.engine.forced import forced_attention_of, forced_shares_of
from weft.engine.from_model import weights_of
from weft.engine.memories import Memories
from weft.engine.plain import PlainTransformer
from weft.engine.plain_steps import cross_attention_of, source_shares_of
from weft.engine.stream import source_shares
from weft.engine.weights import Linear, Weights
from weft.model.transformer import Seq2SeqTransformer
from weft.recipes.file import load_recipe, recipe_names, with_values

VOCAB, BOS, EOS = 47, 2, 3
SRC = np.array(
    [
        [5, 7, 9, 11, 12, 13, 14, 15, EOS],
        [8, EOS, 0, 0, 0, 0, 0, 0, 0],
        [EOS, 0, 0, 0, 0, 0, 0, 0, 0],
        [20, 21, 22, 20, EOS, 0, 0, 0, 0],
    ]
)
TGT_OUT = np.array([[4, 6, 8, 30, EOS], [EOS, 0, 0, 0, 0], [9, 9, EOS, 0, 0], [30, 31, 32, 33, 46]])  # fmt: skip
TGT = np.array([[BOS, 4, 6, 8, 30], [BOS, 0, 0, 0, 0], [BOS, 9, 9, 0, 0], [BOS, 30, 31, 32, 33]])  # fmt: skip


pytestmark = pytest.mark.usefixtures("need_engine")


def shaken(shape: Seq2SeqSection) -> Weights:
    """Random weights far from their start values, gains and biases too."""
    torch.manual_seed(3)
    model: nn.Module = Seq2SeqTransformer(shape, VOCAB, VOCAB, shape.tie_embeddings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    assert isinstance(model, Seq2SeqTransformer)
    return weights_of(model.eval())


def packaged() -> dict[str, Seq2SeqSection]:
    """The packaged recipes with a Transformer's decoder over a source, made tiny."""
    found = {}
    for name in recipe_names():
        recipe = load_recipe(name)
        tiny = with_values(recipe, sizes_shrunk(recipe))
        if isinstance(tiny.model, Seq2SeqSection):
            found[name] = tiny.model
    return found


# more heads than a register has numbers, a number of heads that fills no register, one head
OTHERS: dict[str, dict[str, Any]] = {
    "20 heads": {"d_model": 40, "d_ff": 30, "num_heads": 20, "head_dim": 4},
    "3 heads": {
        "d_model": 26,
        "d_ff": 17,
        "num_heads": 3,
        "head_dim": 13,
        "embedding_norm": True,
    },
    "1 head": {"d_model": 34, "d_ff": 33, "num_heads": 1},
    "query-key norm": {
        "d_model": 32,
        "d_ff": 24,
        "num_heads": 4,
        "num_key_value_heads": 2,
        "norm": "rms",
        "activation": "swiglu",
        "query_key_norm": True,
        "sandwich_norm": True,
        "bias": False,
        "positions": "rotary",
    },
}


def shapes() -> dict[str, Seq2SeqSection]:
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2, "max_len": 20}
    made = {name: Seq2SeqSection(**layers, **each) for name, each in OTHERS.items()}
    return packaged() | made


SHAPES = shapes()


def plain_attention(weights: Weights) -> np.ndarray:
    found = cross_attention_of(PlainTransformer(weights))(SRC, TGT)
    return np.where((TGT == 0)[:, :, None], 0, found)


def test_there_are_layers_of_every_kind() -> None:
    assert len(packaged()) >= 8
    found = SHAPES.values()
    assert {shape.norm for shape in found} == {"layer", "rms"}
    assert {"rotary", "sinusoidal"} <= {shape.positions for shape in found}
    for switch in ("query_key_norm", "embedding_norm", "norm_first"):
        assert {getattr(shape, switch) for shape in found} == {True, False}


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_the_attention_of_the_plain_pass(name: str) -> None:
    weights = shaken(SHAPES[name])
    expected = plain_attention(weights)
    found = forced_attention_of(Engine(weights))(SRC, TGT)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-6)
    # heads look somewhere, else all would agree
    assert expected.max() > 1.5 / SRC.shape[1]


@pytest.mark.parametrize("name", SHAPES)
def test_in_fewer_bits_it_is_near_to_that(name: str) -> None:
    weights = shaken(SHAPES[name])
    exact = plain_attention(weights)
    is_padding = (TGT == 0)[:, :, None] | (SRC == 0)[:, None]
    for kind, bound in (("bfloat16", 0.02), ("int8", 0.06)):
        found = forced_attention_of(Engine(weights, kind))(SRC, TGT)
        assert 0 < np.abs(found - exact).max() < bound, kind
        assert found[TGT != 0].sum(-1) == pytest.approx(1, abs=1e-5)
        assert not found[is_padding].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_the_same_bit_for_bit_alone_one_by_one_and_with_its_log_probabilities(
    kind: str,
) -> None:
    engine = Engine(shaken(SHAPES["en-de-modern"]), kind)
    together = forced_attention_of(engine)(SRC, TGT)
    for row, (src, tgt) in enumerate(zip(SRC, TGT, strict=True)):
        ids = src[src != 0].tolist()
        width = len(ids)
        alone = forced_attention_of(engine)(src[None, :width], tgt[None])
        assert np.array_equal(alone[0], together[row, :, :width])
        plain = engine.session(1, 1)
        looking = engine.session(1, 1)
        for session in (plain, looking):
            session.read([0], [ids])
        for place, token in enumerate(tgt[tgt != 0]):
            zero = np.zeros(1, np.int64)
            inputs = StepInput(
                zero,
                zero,
                zero + place,
                np.array([token], np.int32),
                np.zeros((1, place + 1), np.int32),
            )
            seen = np.full((1, width + 3), np.nan, np.float32)
            found = looking.step(inputs, 4, all_log_probs=True, attention=seen)
            expected = plain.step(inputs, 4, all_log_probs=True)
            assert np.array_equal(seen[0, :width], together[row, place, :width])
            assert not seen[0, width:].any()
            for ours, theirs in zip(found, expected, strict=True):
                assert np.array_equal(ours, theirs)


def test_without_room_for_a_source_nothing_is_written() -> None:
    session = Engine(shaken(SHAPES["en-de"])).session(1, 1)
    session.read([0], [[5, 6, EOS]])
    zero = np.zeros(1, np.int64)
    tokens = np.array([BOS], np.int32)
    inputs = StepInput(zero, zero, zero, tokens, np.zeros((1, 1), np.int32))
    narrow = np.full((1, 2), 7, np.float32)
    with pytest.raises(RuntimeError, match="no room for a source"):
        session.step(inputs, 1, attention=narrow)
    assert (narrow == 7).all()


@pytest.mark.parametrize("name", SHAPES)
def test_shares_are_those_of_the_plain_pass(name: str) -> None:
    """Pre- and post-norm, with norms of queries and keys and of what sublayers give."""
    weights = shaken(SHAPES[name])
    plain, plain_evenness = source_shares_of(lambda: weights)(SRC, TGT, TGT_OUT)
    for row, (src, tgt) in enumerate(zip(SRC, TGT_OUT, strict=True)):
        expected = source_shares(
            weights, src[src != 0].tolist(), tgt[tgt != 0].tolist()
        )
        part = plain[row, : len(expected), : expected.shape[1]]
        np.testing.assert_allclose(part, expected, atol=1e-6)
        assert np.count_nonzero(plain[row]) == expected.size
    assert np.abs(plain).max() > 0.5
    assert (plain < 0).any()
    for kind, bound in (("float32", 5e-6), ("bfloat16", 0.06), ("int8", 0.12)):
        shares, evenness = forced_shares_of(Engine(weights, kind))(SRC, TGT, TGT_OUT)
        assert shares.dtype == evenness.dtype == np.float32
        np.testing.assert_allclose(shares, plain, atol=bound, err_msg=kind)
        np.testing.assert_allclose(evenness, plain_evenness, atol=bound, err_msg=kind)
        assert not shares[plain == 0].any()
    # a source of its end alone leaves nothing to choose between
    assert plain_evenness[2].tolist() == [0.0] * 5
    assert 0.2 < plain_evenness[0].min() <= plain_evenness.max() < 1


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_a_row_are_the_same_bit_for_bit_alone(kind: str) -> None:
    engine = Engine(shaken(SHAPES["seq2seq-transformer"]), kind)
    shares, evenness = forced_shares_of(engine)(SRC, TGT, TGT_OUT)
    for row, src in enumerate(SRC):
        width = np.count_nonzero(src)
        inputs = src[None, :width], TGT[row][None], TGT_OUT[row][None]
        alone, alone_evenness = forced_shares_of(engine)(*inputs)
        assert np.array_equal(alone[0], shares[row, :, :width])
        assert np.array_equal(alone_evenness[0], evenness[row])
    # what was looked at before leaves nothing behind
    again = forced_attention_of(engine)(SRC, TGT)
    assert again[TGT != 0].sum(-1) == pytest.approx(1, abs=1e-5)


def test_a_decoder_that_looks_at_all_alike_is_even() -> None:
    """Without keys every score is 0; the shares are then those of the values alone."""
    weights = shaken(SHAPES["en-de"])
    layers = []
    for layer in weights.decoder:
        cross = layer.cross_attention
        assert cross is not None
        assert cross.key.bias is not None
        silent = Linear(0 * cross.key.stored, 0 * cross.key.bias)
        layers.append(replace(layer, cross_attention=replace(cross, key=silent)))
    flat = replace(weights, decoder=tuple(layers))
    for shares_of in (forced_shares_of(Engine(flat)), source_shares_of(lambda: flat)):
        _, evenness = shares_of(SRC, TGT, TGT_OUT)
        assert evenness[0] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_the_search_has_read_is_not_encoded_again(kind: str) -> None:
    """The shares are then the same bit for bit; each source is kept once, and only if wanted."""
    weights = shaken(SHAPES["en-de-modern"])
    expected = forced_shares_of(Engine(weights, kind))(SRC, TGT, TGT_OUT)
    engine = Engine(weights, kind)
    sources = [row[row != 0].tolist() for row in SRC]
    for source in sources[:3]:
        engine.memories.want(source)
    session = engine.session(4, 2)
    session.read([2, 0, 1, 3], sources)
    # what these slots read next changes nothing of what was kept
    session.read([2, 0], [[9, 9, EOS], [8, EOS]])
    encoded: list[int] = []
    read = Session.read

    def counted(self: Session, indices: Any, sources: Any, *more: Any) -> None:
        encoded.append(len(sources))
        read(self, indices, sources, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "read", counted)
        for found_in in (1, 4):
            found = forced_shares_of(engine)(SRC, TGT, TGT_OUT)
            assert encoded.pop() == found_in
            for ours, theirs in zip(found, expected, strict=True):
                assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["en-de", "en-de-modern"])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_search_records_the_shares_that_another_pass_reads(
    name: str, kind: str, beam_size: int
) -> None:
    """Bit for bit, of all kept hypotheses, with a prefix too, and where others come and go."""
    engine = Engine(shaken(SHAPES[name]), kind)
    sources = [row[row != 0].tolist() for row in SRC]
    sentences = [
        Sentence(n, ids, 3 + 3 * n, [9, 4, 6][:n], records=n != 1)
        for n, ids in enumerate(sources)
    ]
    beams = BeamSettings(BOS, EOS, beam_size, n_best=beam_size)
    # a budget of two sentences at a time, so that slots are used again
    found = search_all(engine, sentences, beams, 1, 12 * beam_size)
    assert all(one.shares is None for one in found[1])
    ours = [(n, one) for n in (0, 2, 3) for one in found[n]]
    assert len(ours) == 3 * beam_size
    assert {one.finished for _, one in ours} >= {False}
    for number, one in ours:
        expected = read_again(engine, sources[number], one)
        assert one.shares is not None
        for mine, theirs in zip(one.shares, expected, strict=True):
            assert np.array_equal(mine, theirs[0])


def read_again(engine: Engine, source: list[int], one: Hypothesis) -> tuple[Any, Any]:
    """Return the shares of a hypothesis by a pass of its own."""
    written = [*one.ids, EOS] if one.finished else one.ids
    rows = ([source], [[BOS, *written[:-1]]], [written])
    return forced_shares_of(engine)(*map(np.array, rows))


def test_memories_are_of_what_is_wanted_and_no_more_than_there_is_room_for() -> None:
    memories = Memories(most_bytes=10)
    assert memories.wanted([[1, 2]]) == {}
    memories.want([1, 2])
    memories.want((3,))
    assert memories.wanted([[5], np.array([3], np.int32), [1, 2]]) == {
        1: (3,),
        2: (1, 2),
    }
    memories.put((3,), np.full(6, 3, np.uint8))
    memories.put((1, 2), np.full(4, 1, np.uint8))
    assert memories.wanted([[3], [1, 2]]) == {}
    memories.put((4,), np.full(3, 4, np.uint8))
    # the oldest gave way
    assert memories.take([3]) is None
    kept = memories.take([1, 2])
    assert kept is not None
    assert kept.tolist() == [1] * 4
    assert memories.take([1, 2]) is None
    memories.put((5,), np.zeros(11, np.uint8))
    assert memories.take([5]) is None
    assert memories.take([4]) is None
    # who gave up the search wants nothing any more
    memories.want([6])
    assert memories.take([6]) is None
    assert memories.wanted([[6]]) == {}
