"""What must hold of the decoder-only model, whatever its shape; `model` runs over twelve of
them.
"""

from copy import deepcopy
from functools import cache
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from weft.config import CausalSection
from weft.model.attention import AttentionRecord, MultiHeadAttention
from weft.model.cache import CausalCache
from weft.model.causal import CausalTransformer
from weft.model.layers import CausalLayer
from weft.model.transformer import count_parameters

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
B, T, VOCAB, MAX_LEN, LAYERS = 3, 7, 29, 13, 2
PAD, D, H, F = 0, 26, 2, 17
BUCKETS = 97

each_norm = pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])


def section(**values: object) -> CausalSection:
    shape = {
        "d_model": D,
        "num_heads": H,
        "d_ff": F,
        "num_decoder_layers": LAYERS,
        "max_len": MAX_LEN,
        "dropout": 0.0,
    }
    return CausalSection(**{**shape, **values})  # type: ignore[arg-type]


@cache
def build(
    norm_first: bool,
    positions: str,
    odd: bool,
    ngrams: int = 1,
    match_lengths: tuple[int, ...] = (),
) -> CausalTransformer:
    """Far from its start values, so that no bias is zero and no gain is one."""
    torch.manual_seed(21)
    shape = section(
        norm_first=norm_first,
        positions=positions,
        ngrams=ngrams,
        ngram_buckets=BUCKETS,
        match_lengths=match_lengths,
        activation="gelu" if odd else "relu",
        bias=not odd,
        tie_embeddings=odd ^ (positions == "learned"),
        scale_embeddings=not odd,
        num_heads=3 if odd else H,
        head_dim=8 if odd else 14,
    )
    return shaken(CausalTransformer(shape, VOCAB)).eval()


def shaken(model: CausalTransformer) -> CausalTransformer:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


SHAPES = [
    *product((True, False), ("sinusoidal", "learned"), (True, False)),
    (True, "rotary", True),
    (False, "rotary", False, 4),
    (True, "learned", True, 2),
    (True, "rotary", False, 3, (1, 2)),
]


@pytest.fixture(params=SHAPES, ids=str)
def model(request: pytest.FixtureRequest) -> CausalTransformer:
    return deepcopy(build(*request.param))


@pytest.fixture
def ids() -> Tensor:
    """The last two tokens of each row stood in it before."""
    drawn = torch.randint(1, VOCAB, (B, T), generator=torch.Generator().manual_seed(5))
    return torch.cat([drawn[:, :5], drawn[:, 1:3]], dim=1)


def test_forward_is_output_of_states(model: CausalTransformer, ids: Tensor) -> None:
    logits, states = model(ids), model.states(ids)
    assert logits.shape == (B, T, VOCAB)
    assert torch.equal(model.output(states), logits)
    torch.testing.assert_close(model.output(states[:, -1]), logits[:, -1], **CLOSE)
    assert logits.isfinite().all()
    assert logits.std() > 0.1


def copy_layer(ours: nn.Module, theirs: nn.TransformerEncoderLayer) -> None:
    """Theirs stacks the projections of queries, keys and values into one matrix."""
    assert isinstance(ours, CausalLayer)
    heads = ours.self_attention
    assert isinstance(heads, MultiHeadAttention)
    inputs = (heads.query, heads.key, heads.value)
    state = {
        "in_proj_weight": torch.cat([m.weight for m in inputs]),
        "out_proj.weight": heads.output.weight,
    }
    if heads.query.bias is not None:
        state |= {
            "in_proj_bias": torch.cat([m.bias for m in inputs]),
            "out_proj.bias": heads.output.bias,
        }
    theirs.self_attn.load_state_dict(state)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for residual, norm in zip(
        ours.residuals, (theirs.norm1, theirs.norm2), strict=True
    ):
        norm.load_state_dict(residual.norm.state_dict())


@each_norm
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_the_same_as_torchs_encoder_layers_under_a_causal_mask(
    ids: Tensor, norm_first: bool, activation: str, bias: bool
) -> None:
    torch.manual_seed(22)
    model = shaken(
        CausalTransformer(
            section(norm_first=norm_first, activation=activation, bias=bias), VOCAB
        )
    ).double()
    x = model.embedding(ids)
    hidden = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    for ours in model.decoder:
        theirs = nn.TransformerEncoderLayer(
            D,
            H,
            F,
            0.0,
            activation,
            batch_first=True,
            norm_first=norm_first,
            bias=bias,
            dtype=torch.float64,
        )
        copy_layer(ours, theirs)
        x = theirs(x, src_mask=hidden)
    if norm_first:
        x = nn.functional.layer_norm(
            x, (D,), model.decoder_norm.weight, model.decoder_norm.bias
        )
    expected = nn.functional.linear(
        x, model.embedding.tokens.weight, model.projection.bias
    )
    found = model(ids)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    weight = model.embedding.tokens.weight
    direction = torch.randn(found.shape, dtype=torch.float64)
    of_ours, of_theirs = (
        torch.autograd.grad((y * direction).sum(), weight)[0] for y in (found, expected)
    )
    torch.testing.assert_close(of_ours, of_theirs, rtol=1e-9, atol=1e-9)


def test_recorded_path_equals_fast_path(model: CausalTransformer, ids: Tensor) -> None:
    torch.manual_seed(8)
    direction, parameters = torch.randn(B, T, VOCAB), list(model.parameters())
    segments = torch.tensor([[1] * T, [1, 1, 1, 2, 2, 2, 2], [1, 2, 2, 2, 2, 0, 0]])
    for packed in (None, segments):
        fast, slow = model(ids, packed), model(ids, packed, AttentionRecord())
        with torch.no_grad():
            torch.testing.assert_close(model(ids, packed), fast, **CLOSE)
        torch.testing.assert_close(slow, fast, **CLOSE)
        of_fast = torch.autograd.grad((fast * direction).mean(), parameters)
        of_slow = torch.autograd.grad((slow * direction).mean(), parameters)
        for a, b in zip(of_slow, of_fast, strict=True):
            torch.testing.assert_close(a, b, **CLOSE)


def test_record_holds_every_layer_and_head(
    model: CausalTransformer, ids: Tensor
) -> None:
    record = AttentionRecord()
    model(ids, record=record)
    assert (record.encoder, record.cross) == ([], [])
    assert [w.shape for w in record.decoder] == [(B, model.num_heads, T, T)] * LAYERS
    for weights in record.decoder:
        torch.testing.assert_close(weights.sum(-1), torch.ones(B, model.num_heads, T))
        assert (weights.triu(1) == 0).all()


def test_future_cannot_reach_the_past(
    model: CausalTransformer, ids: Tensor, subtests: pytest.Subtests
) -> None:
    changed = ids.clone()
    changed[:, 3:] = changed[:, 3:] % (VOCAB - 1) + 1
    for record in (None, AttentionRecord()):
        with subtests.test(recorded=record is not None):
            before, after = model(ids, record=record), model(changed, record=record)
            torch.testing.assert_close(after[:, :3], before[:, :3], **CLOSE)
            assert (after[:, 3] - before[:, 3]).abs().amax(-1).min() > 1e-3


def test_the_past_reaches_every_later_position(
    model: CausalTransformer, ids: Tensor
) -> None:
    changed = ids.clone()
    changed[:, 1] = changed[:, 1] % (VOCAB - 1) + 1
    difference = (model(changed) - model(ids)).abs().amax(-1)
    assert (difference[:, 1:] > 1e-4).all()
    assert (difference[:, 0] < 1e-5).all()


def test_padding_on_the_right_changes_nothing(
    model: CausalTransformer, ids: Tensor
) -> None:
    wider = nn.functional.pad(ids, (0, 4), value=PAD)
    torch.testing.assert_close(model(wider)[:, :T], model(ids), **CLOSE)


def test_permuted_batch_permutes_the_output(
    model: CausalTransformer, ids: Tensor
) -> None:
    order, logits = torch.tensor([2, 0, 1]), model(ids)
    torch.testing.assert_close(model(ids[order]), logits[order], **CLOSE)
    assert (logits[order] - logits).abs().amax((1, 2)).min() > 1e-2


PACKINGS = [[(7,)], [(3, 4), (7,)], [(1, 1, 5), (2, 3, 2), (4,)]]


def test_packed_rows_give_the_logits_of_their_documents_alone(
    model: CausalTransformer, subtests: pytest.Subtests
) -> None:
    model.double()
    for rows in PACKINGS:
        with subtests.test(rows=rows):
            assert_packed_as_alone(model, rows)


def assert_packed_as_alone(
    model: CausalTransformer, rows: list[tuple[int, ...]]
) -> None:
    generator = torch.Generator().manual_seed(6)
    documents = [
        [torch.randint(1, VOCAB, (n,), generator=generator) for n in row]
        for row in rows
    ]
    packed, segments = (
        torch.zeros(len(rows), T, dtype=torch.long),
        torch.zeros(len(rows), T, dtype=torch.long),
    )
    for r, row in enumerate(documents):
        end = sum(len(d) for d in row)
        packed[r, :end] = torch.cat(row)
        segments[r, :end] = torch.cat(
            [torch.full((len(d),), i) for i, d in enumerate(row, start=1)]
        )
    logits = model(packed, segments)
    assert logits.isfinite().all()
    expected = [model(document[None])[0] for row in documents for document in row]
    torch.testing.assert_close(
        logits[segments > 0], torch.cat(expected), rtol=1e-12, atol=1e-12
    )
    if len(rows) > 1:
        assert (model(packed)[0, 3:] - logits[0, 3:]).abs().amax(-1).min() > 1e-4


def test_a_row_of_padding_alone_is_finite(
    model: CausalTransformer, ids: Tensor
) -> None:
    segments = torch.ones_like(ids)
    segments[1] = 0
    logits = model(ids, segments)
    logits.square().mean().backward()
    assert logits.isfinite().all()
    torch.testing.assert_close(logits[[0, 2]], model(ids)[[0, 2]], **CLOSE)
    assert all(
        p.grad is not None and p.grad.isfinite().all() for p in model.parameters()
    )


def test_cached_equals_uncached(
    model: CausalTransformer, ids: Tensor, subtests: pytest.Subtests
) -> None:
    """Read one by one, in several pieces and at once, after a prompt of some tokens or none."""
    expected = model.states(ids)
    for prompt, pieces in product((0, 1, 3), ([1] * T, [2, 1, 4], [T])):
        with subtests.test(prompt=prompt, pieces=pieces):
            cache, seen = model.prefill(ids[:, :prompt]), prompt
            assert cache.length == prompt
            for piece in ids[:, prompt:].split(cut(pieces, T - prompt), dim=1):
                states, cache = model.decode(piece, cache)
                end = seen + piece.shape[1]
                torch.testing.assert_close(states, expected[:, seen:end], **CLOSE)
                seen = end
                assert cache.length == seen
            assert seen == T


def cut(pieces: list[int], length: int) -> list[int]:
    """The first of the pieces, so many that they have this length together."""
    sizes: list[int] = []
    for piece in pieces:
        size = min(piece, length - sum(sizes))
        sizes += [size] if size else []
    return sizes


def test_an_empty_prompt_has_seen_nothing(model: CausalTransformer) -> None:
    cache = model.prefill(torch.zeros(B, 0, dtype=torch.long))
    assert cache.length == 0
    assert [layer.key.shape for layer in cache.layers] == [
        (B, model.num_heads, 0, model.head_dim)
    ] * LAYERS
    assert cache.select(torch.tensor([2, 2])).layers[1].value.shape[0] == 2


def test_decoding_leaves_the_old_cache_as_it_was(
    model: CausalTransformer, ids: Tensor
) -> None:
    cache = model.prefill(ids[:, :2])
    first, _ = model.decode(ids[:, 2:4], cache)
    model.decode(ids[:, 3:], cache)
    again, _ = model.decode(ids[:, 2:4], cache)
    assert cache.length == 2
    assert torch.equal(first, again)


def assert_equal_caches(found: CausalCache, expected: CausalCache) -> None:
    for a, b in zip(found.layers, expected.layers, strict=True):
        torch.testing.assert_close(a.key, b.key, **CLOSE)
        torch.testing.assert_close(a.value, b.value, **CLOSE)


def test_cached_equals_uncached_after_select(
    model: CausalTransformer, ids: Tensor, subtests: pytest.Subtests
) -> None:
    """Reordered rows, and repeated ones."""
    for rows in ([2, 0, 1], [1, 1, 0, 2, 2]):
        with subtests.test(rows=rows):
            chosen = torch.tensor(rows)
            cache = model.prefill(ids[:, :2]).select(chosen)
            _, cache = model.decode(ids[chosen, 2:4], cache)
            states, cache = model.decode(ids[chosen, 4:], cache)
            expected = model.states(ids[chosen])[:, 4:]
            torch.testing.assert_close(states, expected, **CLOSE)
            assert_equal_caches(cache, model.prefill(ids[chosen]))


def test_recorded_decoding_records_the_new_positions(
    model: CausalTransformer, ids: Tensor
) -> None:
    whole, prompt, rest = AttentionRecord(), AttentionRecord(), AttentionRecord()
    model(ids, record=whole)
    model.decode(ids[:, 3:], model.prefill(ids[:, :3], prompt), rest)
    for a, b, c in zip(whole.decoder, prompt.decoder, rest.decoder, strict=True):
        torch.testing.assert_close(b, a[:, :, :3, :3], **CLOSE)
        torch.testing.assert_close(c, a[:, :, 3:], **CLOSE)


def test_every_parameter_learns(model: CausalTransformer, ids: Tensor) -> None:
    """Each gets a gradient; the bias of keys alone does not, as a constant added to all scores
    cancels out.
    """
    model(ids).logsumexp(-1).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert name.endswith("key.bias") or parameter.grad.abs().max() > 1e-6, name


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_acts_in_training_alone(ids: Tensor, kind: str) -> None:
    torch.manual_seed(7)
    model = CausalTransformer(section(**{kind: 0.5}), VOCAB)
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_max_len_is_a_clear_error(positions: str) -> None:
    model = CausalTransformer(section(positions=positions, head_dim=8), VOCAB)
    longest, too_long = (
        torch.ones(1, n, dtype=torch.long) for n in (MAX_LEN, MAX_LEN + 2)
    )
    for read in (model, lambda ids: model(ids, torch.ones_like(ids))):
        with pytest.raises(
            ValueError, match=r"15 positions needed, but model.max_len is 13"
        ):
            read(too_long)
    with pytest.raises(
        ValueError, match=r"14 positions needed, but model.max_len is 13"
    ):
        model.decode(longest[:, :1], model.prefill(longest))


@pytest.mark.parametrize("tied", [True, False])
def test_tying_shares_storage_and_counts_once(tied: bool) -> None:
    """Pre-norm with biases: four attention matrices, two of the feed-forward, two norms a layer."""
    model = CausalTransformer(section(tie_embeddings=tied), VOCAB)
    assert (model.projection.weight is model.embedding.tokens.weight) == tied
    layer = 4 * (D * D + D) + (D * F + F + F * D + D) + 2 * 2 * D
    assert (
        count_parameters(model)
        == LAYERS * layer + 2 * D + VOCAB + (1 if tied else 2) * VOCAB * D
    )


@each_norm
def test_the_final_norm_belongs_to_pre_norm(norm_first: bool) -> None:
    model = CausalTransformer(section(norm_first=norm_first), VOCAB)
    assert isinstance(model.decoder_norm, nn.LayerNorm if norm_first else nn.Identity)


@pytest.mark.parametrize("tied", [True, False])
def test_init_range_draws_embedding_and_output_evenly(tied: bool) -> None:
    torch.manual_seed(10)
    model = CausalTransformer(section(init_range=0.125, tie_embeddings=tied), 401)
    for weight in (model.embedding.tokens.weight, model.projection.weight):
        assert 0.124 < weight.abs().max().item() <= 0.125
        assert weight.std().item() == pytest.approx(0.125 / 3**0.5, rel=0.03)
    assert (model.projection.bias == 0).all()


def test_state_is_every_parameter_and_nothing_else(model: CausalTransformer) -> None:
    assert set(model.state_dict()) == {
        name for name, _ in model.named_parameters(remove_duplicate=False)
    }
    assert model.pad_id == PAD
    assert model.max_len == MAX_LEN
