"""What must hold of recurrent models, whatever their shape; `model` runs over both cells,
attentions and depths.

Sizes are distinct primes, so that a wrong axis cannot cancel out; weights are far from their start
values.
"""

import math
from copy import deepcopy
from functools import cache
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from weft.config import RecurrentSection
from weft.decoding.decoder import Hypothesis
from weft.decoding.reference import beam_search, greedy_search
from weft.engine.torch_steps import TorchCache, numpy_step
from weft.model.attention import AttentionRecord
from weft.model.recurrent import (
    AdditiveAttention,
    DotAttention,
    RecurrentCache,
    Seq2SeqRecurrent,
    attention_weights,
    init_recurrent_weights,
)

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SRC_VOCAB, TGT_VOCAB, D, R = 23, 29, 11, 13
SRC = torch.tensor(
    [[4, 9, 22, 1, 7, 7, 15], [8, 3, 17, 0, 0, 0, 0], [19, 5, 2, 11, 0, 0, 0]]
)
TGT_IN = torch.tensor([[2, 28, 5, 9, 14], [2, 6, 6, 21, 3], [2, 17, 26, 4, 12]])
BOS, EOS = 2, 3
CASES = list(product(("gru", "lstm"), ("dot", "additive"), (1, 2)))


def small(joint: bool = False, **values: object) -> Seq2SeqRecurrent:
    torch.manual_seed(7)
    shape = {"d_model": D, "d_hidden": R, "dropout": 0.0, **values}
    section = RecurrentSection(kind="recurrent", **shape)  # type: ignore[arg-type]
    return Seq2SeqRecurrent(
        section, TGT_VOCAB if joint else SRC_VOCAB, TGT_VOCAB, joint
    )


@cache
def built(cell: str, attention: str, layers: int) -> Seq2SeqRecurrent:
    """A model with noise added to every parameter: no bias is zero, no gate starts open."""
    model = small(
        cell=cell,
        attention=attention,
        num_encoder_layers=layers,
        num_decoder_layers=layers,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def model(request: pytest.FixtureRequest) -> Seq2SeqRecurrent:
    return deepcopy(built(*request.param))


def assert_equal_caches(found: RecurrentCache, expected: RecurrentCache) -> None:
    """Equal but for what stands at padding, which nothing looks at."""
    assert found.length == expected.length
    assert torch.equal(found.memory_padding, expected.memory_padding)
    real = ~expected.memory_padding
    torch.testing.assert_close(found.memory[real], expected.memory[real], **CLOSE)
    torch.testing.assert_close(
        found.memory_key[real], expected.memory_key[real], **CLOSE
    )
    for a, b in zip(found.state, expected.state, strict=True):
        torch.testing.assert_close(a, b, **CLOSE)


def softmax(*scores: float) -> list[float]:
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


def nothing_hidden(width: int) -> Tensor:
    return torch.zeros(1, width, dtype=torch.bool)


def test_dot_attention_by_hand() -> None:
    """Keys (0, 1) and (2, 3), query (0.4, 0.5): products 0.5 and 2.3, over the root of R = 2."""
    key, query = torch.arange(4.0).view(1, 2, 2), torch.tensor([[[0.4, 0.5]]])
    attention = DotAttention()
    assert attention.keys(key) is key
    weights = attention(query, key, nothing_hidden(2))
    expected = softmax(0.5 / math.sqrt(2), 2.3 / math.sqrt(2))
    torch.testing.assert_close(weights, torch.tensor([[expected]]))


def test_additive_attention_by_hand() -> None:
    """Both matrices are [[0, 1], [2, 3]] and v is (1, 2): (1, 0) becomes (0, 2), (0, 1) becomes (1,
    3).
    """
    attention = AdditiveAttention(2)
    with torch.no_grad():
        attention.query.weight.copy_(torch.arange(4.0).view(2, 2))
        attention.key.weight.copy_(torch.arange(4.0).view(2, 2))
        attention.energy.weight.copy_(torch.arange(2.0).view(1, 2) + 1)
    # the query becomes (-1, -3)
    memory, query = torch.eye(2)[None], torch.tensor([[[0.0, -1.0]]])
    key = attention.keys(memory)
    assert key.tolist() == [[[0, 2], [1, 3]]]
    first = math.tanh(0 - 1) + 2 * math.tanh(2 - 3)
    second = math.tanh(1 - 1) + 2 * math.tanh(3 - 3)
    weights = attention(query, key, nothing_hidden(2))
    torch.testing.assert_close(weights, torch.tensor([[softmax(first, second)]]))


def test_attention_weights_are_for_what_is_not_padding() -> None:
    scores = torch.tensor([[[1.0, 9.0, 2.0]], [[4.0, 5.0, 6.0]]])
    padding = torch.tensor([[False, True, False], [False, False, True]])
    first, second = softmax(1, 2), softmax(4, 5)
    expected = torch.tensor([[[first[0], 0, first[1]]], [[*second, 0]]])
    torch.testing.assert_close(attention_weights(scores, padding), expected)


def test_attention_weights_where_all_is_padding() -> None:
    scores = torch.ones(1, 2, 3, requires_grad=True)
    weights = attention_weights(scores, torch.ones(1, 3, dtype=torch.bool))
    weights.sum().backward()
    assert (weights == 0).all()
    assert scores.grad is not None
    assert (scores.grad == 0).all()


def gru_step(x: Tensor, h: Tensor, p: dict[str, Tensor]) -> Tensor:
    """torch.nn.GRU's formula for one position of one sentence."""
    of_x, of_h = p["weight_ih"] @ x + p["bias_ih"], p["weight_hh"] @ h + p["bias_hh"]
    (rx, zx, nx), (rh, zh, nh) = of_x.chunk(3), of_h.chunk(3)
    reset, update = torch.sigmoid(rx + rh), torch.sigmoid(zx + zh)
    return (1 - update) * torch.tanh(nx + reset * nh) + update * h


def lstm_step(
    x: Tensor, h: Tensor, c: Tensor, p: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """torch.nn.LSTM's formula for one position of one sentence."""
    i, f, g, o = (
        p["weight_ih"] @ x + p["bias_ih"] + p["weight_hh"] @ h + p["bias_hh"]
    ).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def unrolled(
    layers: nn.Module, suffix: str, vectors: Tensor, state: list[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """What one layer in one direction says at each position, and its last state."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    p = {name: getattr(layers, f"{name}_{suffix}") for name in names}
    seen = []
    for x in vectors:
        state = (
            [gru_step(x, *state, p)]
            if len(state) == 1
            else list(lstm_step(x, *state, p))
        )
        seen.append(state[0])
    return torch.stack(seen), state


def read_by_formula(
    model: Seq2SeqRecurrent, src: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """The encoder's states in both directions, and the ends of its last layer."""
    x, zeros = (
        model.src_embedding.weight[src] * math.sqrt(D),
        [torch.zeros(R)] * len(model.bridge),
    )
    for number in range(model.encoder.num_layers):
        forward, end_forward = unrolled(model.encoder, f"l{number}", x, zeros)
        backward, end_backward = unrolled(
            model.encoder, f"l{number}_reverse", x.flip(0), zeros
        )
        x = torch.cat([forward, backward.flip(0)], 1)
    return x, [torch.cat(pair) for pair in zip(end_forward, end_backward, strict=True)]


def states_by_formula(model: Seq2SeqRecurrent, src: Tensor, tgt_in: Tensor) -> Tensor:
    """The attentional states of one sentence without padding, by the papers' formulas one position
    at a time.
    """
    read, ends = read_by_formula(model, src)
    memory, x = model.memory(read), model.tgt_embedding.weight[tgt_in] * math.sqrt(D)
    first = [
        torch.tanh(linear(end))
        for linear, end in zip(model.bridge.values(), ends, strict=True)
    ]
    for number in range(model.decoder.num_layers):
        state = [part[number * R : (number + 1) * R] for part in first]
        x, _ = unrolled(model.decoder, f"l{number}", x, state)
    states = []
    for h in x:
        if isinstance(model.attention, AdditiveAttention):
            sums = [
                model.attention.query.weight @ h + model.attention.key.weight @ m
                for m in memory
            ]
            scores = torch.stack(
                [model.attention.energy.weight[0] @ torch.tanh(s) for s in sums]
            )
        else:
            scores = torch.stack([h @ m / math.sqrt(R) for m in memory])
        context = sum(w * m for w, m in zip(scores.softmax(0), memory, strict=True))
        states.append(torch.tanh(model.combine(torch.cat([context, h]))))
    return torch.stack(states)


@torch.no_grad()
def test_states_follow_the_formulas(model) -> None:
    states = model.states(SRC, TGT_IN)
    for row, length in enumerate((7, 3, 4)):
        expected = states_by_formula(model, SRC[row, :length], TGT_IN[row])
        torch.testing.assert_close(states[row], expected, **CLOSE)


def test_forward_is_output_of_states(model) -> None:
    logits, states = model(SRC, TGT_IN), model.states(SRC, TGT_IN)
    assert logits.shape == (3, 5, TGT_VOCAB)
    assert states.shape == (3, 5, D)
    assert torch.equal(model.output(states), logits)
    torch.testing.assert_close(model.output(states[:, -1]), logits[:, -1], **CLOSE)
    assert logits.isfinite().all()
    assert logits.std() > 0.1


def test_encode_gives_the_memory(model) -> None:
    assert model.encode(SRC).shape == (3, 7, R)
    assert torch.equal(model.encode(SRC), model.prefill(SRC).memory)


def test_record_holds_the_cross_weights(model) -> None:
    record = AttentionRecord()
    logits = model(SRC, TGT_IN, record)
    assert torch.equal(logits, model(SRC, TGT_IN))
    assert (record.encoder, record.decoder) == ([], [])
    (weights,) = record.cross
    assert weights.shape == (3, 1, 5, 7)
    assert not weights.requires_grad
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 5), **CLOSE)
    assert (weights.masked_select((SRC == 0)[:, None, None]) == 0).all()
    assert (weights.masked_select((SRC != 0)[:, None, None]) > 0).all()


def test_more_padding_changes_nothing(model) -> None:
    logits = model(SRC, TGT_IN)
    torch.testing.assert_close(
        model(nn.functional.pad(SRC, (0, 6)), TGT_IN), logits, **CLOSE
    )
    torch.testing.assert_close(model(SRC[1:2, :3], TGT_IN[1:2]), logits[1:2], **CLOSE)


def test_content_of_padding_is_never_read(model) -> None:
    real, memory, states = SRC != 0, model.encode(SRC), model.states(SRC, TGT_IN)
    with torch.no_grad():
        model.src_embedding.weight[0] = torch.linspace(-3, 5, D)
    assert torch.equal(model.encode(SRC)[real], memory[real])
    assert torch.equal(model.states(SRC, TGT_IN), states)


def test_pad_id_is_the_one_given() -> None:
    section = RecurrentSection(kind="recurrent", d_model=D, d_hidden=R, dropout=0.0)
    model = Seq2SeqRecurrent(section, SRC_VOCAB, TGT_VOCAB, joint=False, pad_id=5)
    src = torch.tensor([[4, 0, 5, 5]])
    assert model.prefill(src).memory_padding.tolist() == [[False, False, True, True]]
    torch.testing.assert_close(
        model.encode(src)[:, :2], model.encode(src[:, :2]), **CLOSE
    )


def test_permuted_batch_permutes_the_output(model) -> None:
    order = torch.tensor([2, 0, 1])
    logits = model(SRC, TGT_IN)
    torch.testing.assert_close(model(SRC[order], TGT_IN[order]), logits[order], **CLOSE)
    assert (logits[order] - logits).abs().amax((1, 2)).min() > 1e-2


def test_future_cannot_reach_the_past(model) -> None:
    before = model(SRC, TGT_IN)
    changed = TGT_IN.clone()
    changed[:, 3:] = changed[:, 3:] % (TGT_VOCAB - 1) + 1
    after = model(SRC, changed)
    torch.testing.assert_close(after[:, :3], before[:, :3], **CLOSE)
    assert (after[:, 3] - before[:, 3]).abs().amax(-1).min() > 1e-3


def test_both_ends_of_the_source_reach_every_target_position(model) -> None:
    for place in (0, 2):
        changed = SRC.clone()
        changed[:, place] = changed[:, place] % (SRC_VOCAB - 1) + 1
        difference = model(changed, TGT_IN) - model(SRC, TGT_IN)
        assert (difference.abs().amax(-1) > 1e-4).all()


def test_memory_is_read_in_both_directions(model) -> None:
    """A changed word in the middle changes the memory before it and after it, in its own row
    alone.
    """
    changed = SRC.clone()
    changed[0, 3] = 20
    difference = (model.encode(changed) - model.encode(SRC)).abs().amax(-1)
    assert (difference[0] > 1e-5).all()
    assert (difference[1:] < 1e-6).all()


@pytest.mark.parametrize("pieces", [[1] * 5, [2, 1, 2]], ids=["one by one", "several"])
def test_cached_equals_uncached(model, pieces: list[int]) -> None:
    expected = model.states(SRC, TGT_IN)
    cache, seen = model.prefill(SRC), 0
    assert cache.length == 0
    for length in pieces:
        states, cache = model.decode(TGT_IN[:, seen : seen + length], cache)
        torch.testing.assert_close(states, expected[:, seen : seen + length], **CLOSE)
        seen += length
        assert cache.length == seen


def test_recorded_decoding_records_the_new_positions(model) -> None:
    whole, parts = AttentionRecord(), AttentionRecord()
    model(SRC, TGT_IN, whole)
    _, cache = model.decode(TGT_IN[:, :2], model.prefill(SRC))
    model.decode(TGT_IN[:, 2:], cache, parts)
    torch.testing.assert_close(parts.cross[0], whole.cross[0][:, :, 2:], **CLOSE)


def test_decoding_leaves_the_old_cache_as_it_was(model) -> None:
    _, cache = model.decode(TGT_IN[:, :2], model.prefill(SRC))
    first, _ = model.decode(TGT_IN[:, 2:4], cache)
    model.decode(TGT_IN[:, 3:], cache)
    again, _ = model.decode(TGT_IN[:, 2:4], cache)
    assert cache.length == 2
    assert torch.equal(first, again)


@pytest.mark.parametrize(
    "rows", [[2, 0, 1], [1, 1, 0, 2, 2]], ids=["reorder", "repeat"]
)
def test_cached_equals_uncached_after_select(model, rows: list[int]) -> None:
    chosen = torch.tensor(rows)
    src, tgt_in = SRC[chosen], TGT_IN[chosen]
    _, cache = model.decode(TGT_IN[:, :2], model.prefill(SRC))
    _, cache = model.decode(tgt_in[:, 2:3], cache.select(chosen))
    states, cache = model.decode(tgt_in[:, 3:], cache)
    torch.testing.assert_close(states, model.states(src, tgt_in)[:, 3:], **CLOSE)
    assert_equal_caches(cache, model.decode(tgt_in, model.prefill(src))[1])


def test_select_can_leave_no_row(model) -> None:
    cache = model.prefill(SRC).select(torch.tensor([], dtype=torch.long))
    assert cache.memory_padding.shape == (0, 7)
    assert cache.state[0].shape[1] == 0


def test_select_gives_a_copy(model) -> None:
    cache = model.prefill(SRC)
    copy = cache.select(torch.tensor([0, 1, 2]))
    with torch.inference_mode():
        for tensor in (*copy.state, copy.memory, copy.memory_key, copy.memory_padding):
            tensor.zero_()
    assert_equal_caches(cache, model.prefill(SRC))


def test_caches_are_frozen(model) -> None:
    with pytest.raises(AttributeError):
        model.prefill(SRC).length = 3


@pytest.mark.parametrize(("encoder", "decoder"), [(1, 3), (3, 1)])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_depths_are_free_of_each_other(cell: str, encoder: int, decoder: int) -> None:
    model = small(cell=cell, num_encoder_layers=encoder, num_decoder_layers=decoder)
    assert (model.encoder.num_layers, model.decoder.num_layers) == (encoder, decoder)
    assert [part.shape for part in model.prefill(SRC).state] == [(decoder, 3, R)] * (
        1 + (cell == "lstm")
    )
    _, cache = model.decode(TGT_IN[:, :3], model.prefill(SRC))
    states, _ = model.decode(TGT_IN[:, 3:], cache)
    torch.testing.assert_close(states, model.states(SRC, TGT_IN)[:, 3:], **CLOSE)


def search(
    model: Seq2SeqRecurrent, beam_size: int, n_best: int = 1
) -> list[list[Hypothesis]]:
    """Greedy for a beam of 0."""

    def step(ids: Tensor, cache: RecurrentCache) -> tuple[Tensor, RecurrentCache]:
        states, cache = model.decode(ids[:, None], cache)
        return model.output(states[:, -1]), cache

    rules = {
        "bos_id": BOS,
        "eos_id": EOS,
        "max_lens": [9, 2, 6],
        "banned_ids": (0, BOS),
    }
    with torch.inference_mode():
        start = TorchCache(model.prefill(SRC), "cpu")
        if not beam_size:
            return [
                [one]
                for one in greedy_search(
                    numpy_step(step), start, **rules, length_penalty=1.0
                )
            ]
        return beam_search(
            numpy_step(step),
            start,
            **rules,
            beam_size=beam_size,
            length_penalty=1.0,
            n_best=n_best,
        )


def test_a_beam_of_one_is_greedy(model) -> None:
    greedy = search(model, 0)
    assert search(model, 1) == greedy
    assert len({tuple(one.ids) for (one,) in greedy}) > 1


@torch.no_grad()
def test_searches_find_what_forward_scores(model) -> None:
    """Rows leave, are repeated and change places while searched; each keeps to its own source."""
    found = search(model, 5, n_best=3)
    assert [len(some) for some in found] == [3, 3, 3]
    for row, some in enumerate(found):
        for hypothesis in some:
            ids = [*hypothesis.ids, EOS] if hypothesis.finished else hypothesis.ids
            log_probs = model(SRC[row : row + 1], torch.tensor([[BOS, *ids[:-1]]]))[
                0
            ].log_softmax(-1)
            expected = [float(log_probs[t, i]) for t, i in enumerate(ids)]
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-4)


def test_every_parameter_learns(model) -> None:
    model(SRC, TGT_IN).logsumexp(-1).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 1e-7, name


def test_a_source_of_padding_alone(model) -> None:
    """Finite logits and gradients, and the other rows as they were."""
    expected = model(SRC, TGT_IN)
    src = SRC.clone()
    src[1] = 0
    logits = model(src, TGT_IN)
    torch.testing.assert_close(logits[[0, 2]], expected[[0, 2]], **CLOSE)
    logits.square().mean().backward()
    assert logits.isfinite().all()
    assert all(
        p.grad is not None and p.grad.isfinite().all() for p in model.parameters()
    )


def test_autocast_keeps_the_recurrence_in_full_precision(model) -> None:
    expected = model(SRC, TGT_IN)
    with torch.autocast("cpu", torch.bfloat16):
        cache = model.prefill(SRC)
        steps = []
        for t in range(5):
            states, cache = model.decode(TGT_IN[:, t : t + 1], cache)
            steps.append(model.output(states))
        logits = model.output(model.states(SRC, TGT_IN))
    assert logits.dtype == torch.bfloat16
    assert all(part.dtype == torch.float32 for part in cache.state)
    torch.testing.assert_close(
        logits.float(),
        expected,
        rtol=0.05,
        atol=0.05 * float(expected.detach().abs().max()),
    )
    torch.testing.assert_close(torch.cat(steps, 1), logits, rtol=0.02, atol=0.05)


def test_gradients_under_autocast(model) -> None:
    model(SRC, TGT_IN).logsumexp(-1).mean().backward()
    expected = nn.utils.parameters_to_vector([p.grad for p in model.parameters()])
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model.output(model.states(SRC, TGT_IN)).float().logsumexp(-1).mean()
    loss.backward()
    found = nn.utils.parameters_to_vector([p.grad for p in model.parameters()])
    assert found.dtype == torch.float32
    assert torch.cosine_similarity(found, expected, 0) > 0.99


@pytest.mark.parametrize("layers", [1, 2])
def test_dropout_acts_in_training_alone(layers: int) -> None:
    shape = {"num_encoder_layers": layers, "num_decoder_layers": layers}
    model = small(dropout=0.5, **shape)
    assert not torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))
    assert model.encoder.dropout == model.decoder.dropout == (0.5 if layers == 2 else 0)
    model.eval()
    torch.testing.assert_close(model(SRC, TGT_IN), small(**shape)(SRC, TGT_IN), **CLOSE)


def test_dropout_reaches_what_the_projection_reads() -> None:
    states = small(dropout=0.5).states(SRC, TGT_IN)
    assert 0.2 < (states == 0).float().mean() < 0.8


def test_max_len_is_no_limit_of_the_model() -> None:
    model = small(max_len=4)
    assert model.max_len == 4
    assert model(SRC, TGT_IN).shape == (3, 5, TGT_VOCAB)


def test_one_vocabulary_has_one_size() -> None:
    with pytest.raises(ValueError, match="23 and 29"):
        Seq2SeqRecurrent(RecurrentSection(kind="recurrent"), 23, 29, joint=True)


@pytest.mark.parametrize(
    ("joint", "tied", "matrices"),
    [(True, True, 1), (True, False, 3), (False, True, 2), (False, False, 3)],
)
def test_tying_shares_storage(joint: bool, tied: bool, matrices: int) -> None:
    model = small(joint, tie_embeddings=tied)
    source, target = model.src_embedding.weight, model.tgt_embedding.weight
    assert (source is target) == (joint and tied)
    assert (model.projection.weight is target) == tied
    assert (
        len({m.data_ptr() for m in (source, target, model.projection.weight)})
        == matrices
    )


def parameter_names(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters()}


def layer_names(stack: str, suffix: str) -> set[str]:
    return {
        f"{stack}.{kind}_{what}_{suffix}"
        for kind in ("weight", "bias")
        for what in ("ih", "hh")
    }


def test_parameter_names_are_the_keys_of_saved_weights() -> None:
    linear = {
        f"{name}.{what}"
        for name in ("memory", "bridge.hidden", "combine")
        for what in ("weight", "bias")
    }
    common = {"tgt_embedding.weight", "projection.bias", *linear}
    common |= (
        layer_names("encoder", "l0")
        | layer_names("encoder", "l0_reverse")
        | layer_names("decoder", "l0")
    )
    attention = {f"attention.{name}.weight" for name in ("query", "key", "energy")}
    apart = {"src_embedding.weight", "projection.weight"}
    assert parameter_names(small(joint=True, attention="dot")) == common
    assert (
        parameter_names(small(joint=True, attention="additive")) == common | attention
    )
    assert (
        parameter_names(small(attention="dot", tie_embeddings=False)) == common | apart
    )
    cell = {"bridge.cell.weight", "bridge.cell.bias"}
    assert (
        parameter_names(small(joint=True, attention="dot", cell="lstm"))
        == common | cell
    )


def test_state_is_every_parameter_and_nothing_else(model) -> None:
    assert set(model.state_dict()) == {
        name for name, _ in model.named_parameters(remove_duplicate=False)
    }


def big(cell: str, tied: bool = False) -> Seq2SeqRecurrent:
    torch.manual_seed(9)
    section = RecurrentSection(
        kind="recurrent",
        cell=cell,
        d_model=67,
        d_hidden=53,
        num_encoder_layers=2,
        tie_embeddings=tied,
    )
    return Seq2SeqRecurrent(section, 307, 401, joint=False)


def assert_glorot(matrix: Tensor) -> None:
    bound = math.sqrt(6 / sum(matrix.shape))
    assert 0.9 * bound < matrix.abs().max().item() <= bound
    assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.15)


@pytest.mark.parametrize(("cell", "gates"), [("gru", 3), ("lstm", 4)])
def test_start_values_of_recurrent_layers(cell: str, gates: int) -> None:
    model = big(cell)
    for layers in (model.encoder, model.decoder):
        for name, parameter in layers.named_parameters():
            for number, gate in enumerate(parameter.detach().chunk(gates)):
                if name.startswith("weight_hh"):
                    torch.testing.assert_close(gate @ gate.T, torch.eye(53), **CLOSE)
                elif name.startswith("weight_ih"):
                    assert_glorot(gate)
                else:
                    forget = (
                        cell == "lstm" and name.startswith("bias_ih") and number == 1
                    )
                    assert (gate == (1 if forget else 0)).all()


@pytest.mark.parametrize("tied", [True, False])
def test_start_values_of_everything_else(tied: bool) -> None:
    model = big("gru", tied)
    for embedding in (model.src_embedding, model.tgt_embedding):
        assert embedding.weight.std().item() == pytest.approx(67**-0.5, rel=0.03)
    linears = [
        m
        for m in model.modules()
        if isinstance(m, nn.Linear) and min(m.weight.shape) > 1
    ]
    # memory, bridge, two of the attention, combine, projection
    assert len(linears) == 6
    for linear in linears:
        if not (tied and linear is model.projection):
            assert_glorot(linear.weight.detach())
        assert linear.bias is None or (linear.bias == 0).all()


def test_start_values_are_drawn_from_the_seed() -> None:
    def values(seed: int) -> Tensor:
        model = small()
        torch.manual_seed(seed)
        init_recurrent_weights(model)
        return nn.utils.parameters_to_vector(model.parameters())

    assert torch.equal(values(1), values(1))
    assert not torch.equal(values(1), values(2))
