"""What must hold of the whole model, whatever its shape; `model` runs over sixteen of them."""

import math
from itertools import combinations, product

import pytest
import torch
from torch import Tensor, nn

from weft.config import Seq2SeqSection
from weft.model.attention import AttentionRecord
from weft.model.cache import DecoderCache
from weft.model.layers import DecoderLayer, EncoderLayer
from weft.model.positions import LearnedPositions, SinusoidalPositions
from weft.model.transformer import Seq2SeqTransformer, count_parameters, init_weights

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SRC_VOCAB, TGT_VOCAB, MAX_LEN = 23, 29, 19


def small(joint: bool = False, **values: object) -> Seq2SeqTransformer:
    torch.manual_seed(7)
    shape = {
        "d_model": 26,
        "num_heads": 2,
        "d_ff": 17,
        "max_len": MAX_LEN,
        "dropout": 0.0,
        **values,
    }
    section = Seq2SeqSection(**shape)  # type: ignore[arg-type]
    return Seq2SeqTransformer(
        section, TGT_VOCAB if joint else SRC_VOCAB, TGT_VOCAB, joint
    )


def assert_equal_caches(found: DecoderCache, expected: DecoderCache) -> None:
    assert torch.equal(found.memory_padding, expected.memory_padding)
    for a, b in zip(found.layers, expected.layers, strict=True):
        for x, y in ((a.past, b.past), (a.memory, b.memory)):
            torch.testing.assert_close(x.key, y.key, **CLOSE)
            torch.testing.assert_close(x.value, y.value, **CLOSE)


def test_cases_hold_every_setting_of_any_three_switches(all_cases) -> None:
    rows = [tuple(vars(case).values()) for case in all_cases]
    assert len(rows) == 16
    for three in combinations(range(8), 3):
        assert {tuple(row[i] for i in three) for row in rows} == set(
            product((False, True), repeat=3)
        )


def test_forward_is_output_of_states(model, batch) -> None:
    logits, states = (
        model(batch.src, batch.tgt_in),
        model.states(batch.src, batch.tgt_in),
    )
    assert logits.shape == (*batch.tgt_in.shape, TGT_VOCAB)
    assert torch.equal(model.output(states), logits)
    torch.testing.assert_close(model.output(states[:, -1]), logits[:, -1], **CLOSE)
    assert logits.isfinite().all()
    assert logits.std() > 0.1


def test_recorded_path_equals_fast_path(model, batch) -> None:
    torch.manual_seed(8)
    direction = torch.randn(*batch.tgt_in.shape, TGT_VOCAB)
    parameters = list(model.parameters())
    fast, slow = (
        model(batch.src, batch.tgt_in),
        model(batch.src, batch.tgt_in, AttentionRecord()),
    )
    torch.testing.assert_close(slow, fast, **CLOSE)
    of_fast = torch.autograd.grad(
        (fast * direction).mean(), parameters, allow_unused=True
    )
    of_slow = torch.autograd.grad(
        (slow * direction).mean(), parameters, allow_unused=True
    )
    for a, b in zip(of_slow, of_fast, strict=True):
        assert a is not None
        torch.testing.assert_close(a, b, **CLOSE)


def test_record_holds_every_layer_and_head(model, batch) -> None:
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    record = AttentionRecord()
    model(batch.src, batch.tgt_in, record)
    (b, s), t = batch.src.shape, batch.tgt_in.shape[1]
    heads = model.encoder[0].self_attention.num_heads
    assert [w.shape for w in record.encoder] == [(b, heads, s, s)]
    assert [w.shape for w in record.decoder] == [(b, heads, t, t)] * 2
    assert [w.shape for w in record.cross] == [(b, heads, t, s)] * 2
    padding = batch.src == 0
    for weights in record.encoder + record.decoder + record.cross:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    for weights in record.encoder + record.cross:
        assert (weights.transpose(1, 3)[padding] == 0).all()
    for weights in record.decoder:
        assert (weights.triu(1) == 0).all()
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before


def test_more_padding_changes_nothing(model, batch) -> None:
    wider = nn.functional.pad(batch.src, (0, 6))
    torch.testing.assert_close(
        model(wider, batch.tgt_in), model(batch.src, batch.tgt_in), **CLOSE
    )
    alone = model(batch.src[1:2, :3], batch.tgt_in[1:2])
    torch.testing.assert_close(alone, model(batch.src, batch.tgt_in)[1:2], **CLOSE)


def test_content_of_padding_is_never_looked_at(model, batch) -> None:
    """Another vector for the padding token changes its own memory, and nothing else."""
    weight, real = model.src_embedding.tokens.weight, batch.src != 0
    memory, states = model.encode(batch.src), model.states(batch.src, batch.tgt_in)
    with torch.no_grad():
        weight[0] = torch.linspace(-3, 5, weight.shape[1])
    changed = model.encode(batch.src)
    torch.testing.assert_close(changed[real], memory[real], **CLOSE)
    assert (changed[~real] - memory[~real]).abs().amax() > 1e-2
    torch.testing.assert_close(model.states(batch.src, batch.tgt_in), states, **CLOSE)


def test_permuted_batch_permutes_the_output(model, batch) -> None:
    order = torch.tensor([2, 0, 1])
    logits = model(batch.src, batch.tgt_in)
    torch.testing.assert_close(
        model(batch.src[order], batch.tgt_in[order]), logits[order], **CLOSE
    )
    assert (logits[order] - logits).abs().amax((1, 2)).min() > 1e-2


def test_future_cannot_reach_the_past(model, batch, subtests: pytest.Subtests) -> None:
    changed = batch.tgt_in.clone()
    changed[:, 3:] = changed[:, 3:] % (TGT_VOCAB - 1) + 1
    for record in (None, AttentionRecord()):
        with subtests.test(recorded=record is not None):
            before = model(batch.src, batch.tgt_in, record)
            after = model(batch.src, changed, record)
            torch.testing.assert_close(after[:, :3], before[:, :3], **CLOSE)
            assert (after[:, 3] - before[:, 3]).abs().amax(-1).min() > 1e-3


def test_gradients_do_not_come_from_the_future(model, batch) -> None:
    embedded: list[Tensor] = []
    handle = model.tgt_embedding.register_forward_hook(
        lambda _m, _a, out: embedded.append(out)
    )
    logits = model(batch.src, batch.tgt_in)
    handle.remove()
    (gradient,) = torch.autograd.grad(logits[:, 2].square().sum(), embedded)
    assert (gradient[:, 3:] == 0).all()
    assert (gradient[:, :3].abs().amax(-1) > 1e-6).all()


def test_source_words_reach_every_target_position(model, batch) -> None:
    changed = batch.src.clone()
    changed[:, 1] = changed[:, 1] % (SRC_VOCAB - 1) + 1
    difference = model(changed, batch.tgt_in) - model(batch.src, batch.tgt_in)
    assert (difference.abs().amax(-1) > 1e-4).all()


def test_cached_equals_uncached(model, batch, subtests: pytest.Subtests) -> None:
    expected = model.states(batch.src, batch.tgt_in)
    for pieces in ([1] * 5, [2, 1, 2]):
        with subtests.test(pieces=pieces):
            cache, seen = model.prefill(batch.src), 0
            for piece in batch.tgt_in.split(pieces, dim=1):
                states, cache = model.decode(piece, cache)
                end = seen + piece.shape[1]
                torch.testing.assert_close(states, expected[:, seen:end], **CLOSE)
                seen = end
                assert cache.length == seen


def test_recorded_decoding_records_the_new_positions(model, batch) -> None:
    whole, parts = AttentionRecord(), AttentionRecord()
    model(batch.src, batch.tgt_in, whole)
    _, cache = model.decode(batch.tgt_in[:, :2], model.prefill(batch.src))
    model.decode(batch.tgt_in[:, 2:], cache, parts)
    for a, b in zip(
        parts.decoder + parts.cross, whole.decoder + whole.cross, strict=True
    ):
        torch.testing.assert_close(a, b[:, :, 2:], **CLOSE)


def test_decoding_leaves_the_old_cache_as_it_was(model, batch) -> None:
    _, cache = model.decode(batch.tgt_in[:, :2], model.prefill(batch.src))
    first, _ = model.decode(batch.tgt_in[:, 2:4], cache)
    model.decode(batch.tgt_in[:, 3:], cache)
    again, _ = model.decode(batch.tgt_in[:, 2:4], cache)
    assert cache.length == 2
    assert torch.equal(first, again)


def test_cached_equals_uncached_after_select(
    model, batch, subtests: pytest.Subtests
) -> None:
    """Reordered rows, and repeated ones."""
    for rows in ([2, 0, 1], [1, 1, 0, 2, 2]):
        with subtests.test(rows=rows):
            chosen = torch.tensor(rows)
            src, tgt_in = batch.src[chosen], batch.tgt_in[chosen]
            _, cache = model.decode(batch.tgt_in[:, :2], model.prefill(batch.src))
            _, cache = model.decode(tgt_in[:, 2:3], cache.select(chosen))
            states, cache = model.decode(tgt_in[:, 3:], cache)
            expected = model.states(src, tgt_in)[:, 3:]
            torch.testing.assert_close(states, expected, **CLOSE)
            assert_equal_caches(cache, model.decode(tgt_in, model.prefill(src))[1])


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("recorded", [False, True], ids=["fast", "recorded"])
def test_a_source_of_padding_alone(batch, norm_first: bool, recorded: bool) -> None:
    """Finite logits and gradients, and the other rows as they were."""
    model = small(norm_first=norm_first)
    expected = model(batch.src, batch.tgt_in)
    src = batch.src.clone()
    src[1] = 0
    logits = model(src, batch.tgt_in, AttentionRecord() if recorded else None)
    torch.testing.assert_close(logits[[0, 2]], expected[[0, 2]], **CLOSE)
    logits.square().mean().backward()
    assert logits.isfinite().all()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


def test_every_parameter_learns(model, batch) -> None:
    """Each gets a gradient; the bias of keys alone does not, as a constant added to all scores
    cancels out.
    """
    model(batch.src, batch.tgt_in).logsumexp(-1).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert name.endswith("key.bias") or parameter.grad.abs().max() > 1e-6, name


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_acts_in_training_alone(batch, kind: str) -> None:
    model = small(**{kind: 0.5})
    assert not torch.equal(
        model(batch.src, batch.tgt_in), model(batch.src, batch.tgt_in)
    )
    model.eval()
    assert torch.equal(model(batch.src, batch.tgt_in), model(batch.src, batch.tgt_in))
    torch.testing.assert_close(
        model(batch.src, batch.tgt_in), small()(batch.src, batch.tgt_in), **CLOSE
    )


def test_embeddings_are_scaled_and_placed() -> None:
    ids = torch.tensor([[3, 5, 3]])
    for scaled in (True, False):
        model = small(scale_embeddings=scaled)
        embedding = model.tgt_embedding
        rows = embedding.tokens.weight[ids[0]] * (math.sqrt(26) if scaled else 1)
        torch.testing.assert_close(embedding(ids)[0], rows + embedding.positions(3))
        torch.testing.assert_close(
            embedding(ids, 4)[0], rows + embedding.positions(3, 4)
        )


def test_pad_id_is_the_one_given(batch) -> None:
    torch.manual_seed(7)
    shape = Seq2SeqSection(d_model=26, num_heads=2, d_ff=17, dropout=0.0)
    model = Seq2SeqTransformer(shape, SRC_VOCAB, TGT_VOCAB, joint=False, pad_id=5)
    assert model.prefill(torch.tensor([[4, 0, 5, 5]])).memory_padding.tolist() == [
        [False, False, True, True]
    ]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_max_len_is_a_clear_error(batch, positions: str) -> None:
    model = small(positions=positions)
    longest = torch.ones(1, MAX_LEN, dtype=torch.long)
    too_long = torch.ones(1, MAX_LEN + 2, dtype=torch.long)
    cache = model.prefill(longest)
    assert cache.memory_padding.shape == (1, MAX_LEN)
    with pytest.raises(
        ValueError, match=r"21 positions needed, but model.max_len is 19"
    ):
        model.encode(too_long)
    with pytest.raises(
        ValueError, match=r"21 positions needed, but model.max_len is 19"
    ):
        model.decode(too_long, cache)
    _, full = model.decode(longest, cache)
    with pytest.raises(
        ValueError, match=r"20 positions needed, but model.max_len is 19"
    ):
        model.decode(longest[:, :1], full)


def test_one_vocabulary_has_one_size() -> None:
    with pytest.raises(ValueError, match="23 and 29"):
        Seq2SeqTransformer(Seq2SeqSection(), 23, 29, joint=True)


@pytest.mark.parametrize(
    ("joint", "tied", "matrices"),
    [(True, True, 1), (True, False, 3), (False, True, 2), (False, False, 3)],
)
def test_tying_shares_storage_and_counts_once(
    joint: bool, tied: bool, matrices: int
) -> None:
    model = small(joint, tie_embeddings=tied)
    source, target = (
        model.src_embedding.tokens.weight,
        model.tgt_embedding.tokens.weight,
    )
    assert (source is target) == (joint and tied)
    assert (model.projection.weight is target) == tied
    assert (
        len({m.data_ptr() for m in (source, target, model.projection.weight)})
        == matrices
    )
    rest = sum(
        p.numel()
        for name, p in model.named_parameters()
        if "tokens" not in name and name != "projection.weight"
    )
    rows = {
        (True, True): 29,
        (True, False): 3 * 29,
        (False, True): 23 + 29,
        (False, False): 23 + 2 * 29,
    }
    assert count_parameters(model) == rest + rows[joint, tied] * 26


def test_count_by_hand() -> None:
    """One layer a stack, D = 2, one head, F = 3, V = 5, joint and tied, pre-norm, with biases."""
    shape = Seq2SeqSection(
        d_model=2, num_heads=1, d_ff=3, num_encoder_layers=1, num_decoder_layers=1
    )
    attention, feed_forward, norm = 4 * (4 + 2), 6 + 3 + 6 + 2, 4
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    model = Seq2SeqTransformer(shape, 5, 5, joint=True)
    assert count_parameters(model) == encoder + decoder + 2 * norm + 5 * 2 + 5


@pytest.mark.parametrize("norm_first", [True, False])
def test_final_norms_belong_to_pre_norm(norm_first: bool) -> None:
    model = small(norm_first=norm_first)
    kind = nn.LayerNorm if norm_first else nn.Identity
    assert isinstance(model.encoder_norm, kind)
    assert isinstance(model.decoder_norm, kind)


def test_recipe_decides_depth_and_positions() -> None:
    model = small(num_encoder_layers=5, num_decoder_layers=2, positions="learned")
    assert (len(model.encoder), len(model.decoder)) == (5, 2)
    assert isinstance(model.encoder[0], EncoderLayer)
    assert isinstance(model.src_embedding.positions, LearnedPositions)
    assert model.src_embedding.positions is not model.tgt_embedding.positions
    assert isinstance(small().src_embedding.positions, SinusoidalPositions)


def big(scaled: bool, tied: bool) -> Seq2SeqTransformer:
    torch.manual_seed(9)
    shape = Seq2SeqSection(
        d_model=64,
        d_ff=131,
        num_heads=4,
        positions="learned",
        scale_embeddings=scaled,
        tie_embeddings=tied,
    )
    return Seq2SeqTransformer(shape, 307, 401, joint=False)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_start_values_of_embeddings(scaled: bool, tied: bool) -> None:
    """D^-0.5 where they are scaled or tied; 1 where they are neither."""
    model = big(scaled, tied)
    expected = 64**-0.5 if scaled or tied else 1.0
    for embedding in (model.src_embedding, model.tgt_embedding):
        weight = embedding.tokens.weight
        assert weight.std().item() == pytest.approx(expected, rel=0.03)
        assert abs(weight.mean().item()) < 0.05 * expected
        assert embedding.positions.table.std().item() == pytest.approx(0.02, rel=0.03)


def test_start_values_of_matrices_and_biases() -> None:
    model = big(scaled=True, tied=False)
    matrices = [m for m in model.modules() if isinstance(m, nn.Linear)]
    assert len(matrices) == 3 * (4 + 2) + 3 * (8 + 2) + 1
    for matrix in matrices:
        bound = math.sqrt(6 / sum(matrix.weight.shape))
        assert 0.95 * bound < matrix.weight.abs().max().item() <= bound
        assert matrix.weight.std().item() == pytest.approx(
            bound / math.sqrt(3), rel=0.05
        )
        assert (matrix.bias == 0).all()
    for norm in model.modules():
        if isinstance(norm, nn.LayerNorm):
            assert (norm.weight == 1).all()
            assert (norm.bias == 0).all()


@pytest.mark.parametrize("tied", [True, False])
def test_init_range_draws_embeddings_and_output_evenly(tied: bool) -> None:
    """And nothing else: other matrices are as they would be without it."""
    torch.manual_seed(9)
    shape = {
        "d_model": 64,
        "d_ff": 131,
        "num_heads": 4,
        "positions": "learned",
        "tie_embeddings": tied,
    }
    model = Seq2SeqTransformer(
        Seq2SeqSection(**shape, init_range=0.08), 307, 401, joint=False
    )  # type: ignore[arg-type]
    for weight in (
        model.src_embedding.tokens.weight,
        model.tgt_embedding.tokens.weight,
        model.projection.weight,
    ):
        assert 0.0799 < weight.abs().max().item() <= 0.08
        assert weight.std().item() == pytest.approx(0.08 / math.sqrt(3), rel=0.03)
    assert (model.projection.bias == 0).all()
    inner = model.encoder[0].feed_forward.inner.weight
    assert inner.abs().max().item() > math.sqrt(6 / (64 + 131)) * 0.95
    assert model.src_embedding.positions.table.std().item() == pytest.approx(
        0.02, rel=0.03
    )


def test_start_values_are_drawn_from_the_seed() -> None:
    def values(seed: int) -> Tensor:
        model = small()
        torch.manual_seed(seed)
        init_weights(model, unit_embeddings=False)
        return nn.utils.parameters_to_vector(model.parameters())

    assert torch.equal(values(1), values(1))
    assert not torch.equal(values(1), values(2))


def test_state_is_every_parameter_and_nothing_else(model) -> None:
    assert set(model.state_dict()) == {
        name for name, _ in model.named_parameters(remove_duplicate=False)
    }


def test_names_of_saved_weights() -> None:
    """A model that was saved must stay loadable."""
    names = set(
        small(
            num_encoder_layers=1, num_decoder_layers=1, positions="learned"
        ).state_dict()
    )
    norms = {
        f"{side}_norm.{kind}"
        for side in ("encoder", "decoder")
        for kind in ("weight", "bias")
    }
    tables = {
        f"{side}_embedding.{kind}"
        for side in ("src", "tgt")
        for kind in ("tokens.weight", "positions.table")
    }
    heads = [
        f"{name}.{part}"
        for name in ("query", "key", "value", "output")
        for part in ("weight", "bias")
    ]
    matrices = [
        f"feed_forward.{name}.{part}"
        for name in ("inner", "outer")
        for part in ("weight", "bias")
    ]
    sides = {
        "encoder": ["self_attention"],
        "decoder": ["self_attention", "cross_attention"],
    }
    layers = {
        f"{side}.0.{name}"
        for side, attentions in sides.items()
        for name in [*(f"{a}.{h}" for a in attentions for h in heads), *matrices]
    }
    residuals = {
        f"{side}.0.residuals.{i}.norm.{kind}"
        for side, attentions in sides.items()
        for i in range(len(attentions) + 1)
        for kind in ("weight", "bias")
    }
    assert names == norms | tables | layers | residuals | {
        "projection.weight",
        "projection.bias",
    }


def test_rotary_positions_cached_and_in_their_places() -> None:
    """Order matters to both stacks; a cache gives what the whole gives; memory is looked at without
    turning.
    """
    model = small(positions="rotary", head_dim=8).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    generator = torch.Generator().manual_seed(1)
    src, tgt = (
        torch.randint(1, SRC_VOCAB, (2, n), generator=generator) for n in (7, 5)
    )
    expected, cache = model.states(src, tgt), model.prefill(src)
    first, cache = model.decode(tgt[:, :2], cache)
    rest, _ = model.decode(tgt[:, 2:], cache)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), expected, **CLOSE)
    assert (model.states(src.flip(1), tgt) - expected).abs().amax() > 1e-2
    swapped = model.states(src, tgt[:, [1, 0, 2, 3, 4]])
    assert (swapped[:, 4] - expected[:, 4]).abs().amax() > 1e-3
    layer = model.decoder[0]
    assert isinstance(layer, DecoderLayer)
    assert layer.self_attention.rotary
    assert not layer.cross_attention.rotary
    fast, slow = model(src, tgt), model(src, tgt, AttentionRecord())
    torch.testing.assert_close(slow, fast, **CLOSE)
