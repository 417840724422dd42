"""Texts end to end: what the padded form gives, without its padding, whatever the model and
whichever kernel.
"""

import inspect
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from weft.config import CausalSection, ClassifierSection, Seq2SeqSection
from weft.kernels import varlen
from weft.model.attention import attention
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.packing import PackedMask, Packing, packed_attention
from weft.model.transformer import Seq2SeqTransformer

CLOSE = {"rtol": 1e-3, "atol": 1e-4}
VOCAB, MAX_LEN, H, K = 29, 13, 3, 8
SRC_LENS, TGT_LENS = (7, 3, 4, 1), (2, 6, 3, 5)
Shake = Callable[[nn.Module], Any]
SHAPE: dict[str, Any] = {
    "d_model": 26,
    "num_heads": H,
    "head_dim": K,
    "d_ff": 17,
    "max_len": MAX_LEN,
    "dropout": 0.0,
}


def drawn(lens: tuple[int, ...], seed: int) -> Tensor:
    """Ids from 1, padded with 0 on the right, one column wider than the longest."""
    ids = torch.randint(
        1,
        VOCAB,
        (len(lens), max(lens) + 1),
        generator=torch.Generator().manual_seed(seed),
    )
    return ids.masked_fill(torch.arange(ids.shape[1]) >= torch.tensor(lens)[:, None], 0)


def gradients(model: nn.Module, states: Tensor) -> dict[str, Tensor]:
    """Of a sum in which each number of the states has a weight of its own."""
    weights = torch.randn(states.shape[-2:], generator=torch.Generator().manual_seed(3))
    (states.reshape(weights.shape) * weights).sum().backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def one_by_one(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    window_size: tuple[int, int],
) -> Tensor:
    """What torch's `varlen_attn` documents, a text at a time."""
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32
    assert (max_q, max_k) == (int(cu_seq_q.diff().max()), int(cu_seq_k.diff().max()))
    out = []
    for i in range(len(cu_seq_q) - 1):
        q = query[cu_seq_q[i] : cu_seq_q[i + 1]].transpose(0, 1)[None]
        k, v = (
            x[cu_seq_k[i] : cu_seq_k[i + 1]].transpose(0, 1)[None] for x in (key, value)
        )
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
        out.append(
            attention(q, k, v, mask.tril() if window_size == (-1, 0) else mask)[0][
                0
            ].transpose(0, 1)
        )
    return torch.cat(out)


@pytest.fixture(params=["plain", "variable lengths"])
def kernel(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Both ways through `packed_attention`; the numbers of calls of the second one's kernel are
    appended.
    """
    calls: list[int] = []

    def counted(*arguments: Any, **more: Any) -> Tensor:
        calls.append(1)
        return one_by_one(*arguments, **more)

    if request.param == "variable lengths":
        monkeypatch.setattr(varlen, "_varlen_attn", counted)
        monkeypatch.setattr(varlen, "fits", lambda *heads: True)
    return calls


def test_where_tokens_lie() -> None:
    packing = Packing.of(drawn((2, 3), 1) != 0)
    assert packing.places.tolist() == [0, 1, 4, 5, 6]
    assert packing.slots.tolist() == [0, 1, 3, 4, 5]
    assert packing.bounds.tolist() == [0, 2, 5]
    assert (packing.longest, packing.num_texts) == (3, 2)
    assert packing.padding().tolist() == [[False, False, True], [False, False, False]]


def test_several_texts_in_a_row_and_one_of_nothing() -> None:
    real = torch.tensor([[True, True, True, False], [True, True, False, False]])
    packing = Packing.of(real, torch.tensor([1, 2, 0, 2]))
    assert packing.bounds.tolist() == [0, 1, 3, 3, 5]
    assert packing.slots.tolist() == [0, 2, 3, 6, 7]
    x = torch.arange(8.0).view(2, 4)
    assert packing.pack(x).tolist() == [[0, 1, 2, 4, 5]]
    assert packing.spread(packing.pack(x)).tolist() == [[0, 0], [1, 2], [0, 0], [4, 5]]
    assert packing.gather(packing.spread(packing.pack(x))).tolist() == [[0, 1, 2, 4, 5]]


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_each_text_alone(causal: bool, kernel: list[int]) -> None:
    mine, theirs = (
        Packing.of(drawn(lens, 2) != 0)
        for lens in ((5, 1, 4), (5, 1, 4) if causal else (2, 3, 6))
    )
    query = torch.randn(1, H, int(mine.bounds[-1]), K)
    key, value = torch.randn(2, 1, H, int(theirs.bounds[-1]), K)
    found = packed_attention(query, key, value, PackedMask(mine, theirs, causal))
    for i in range(3):
        here, there = (
            slice(int(s.bounds[i]), int(s.bounds[i + 1])) for s in (mine, theirs)
        )
        mask = torch.ones(
            query[:, :, here].shape[2], key[:, :, there].shape[2], dtype=torch.bool
        )
        alone, _ = attention(
            query[:, :, here],
            key[:, :, there],
            value[:, :, there],
            mask.tril() if causal else mask,
        )
        torch.testing.assert_close(found[:, :, here], alone, **CLOSE)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_translator_gives_the_same_states_and_gradients(
    shake: Shake, norm_first: bool, positions: Any, kernel: list[int]
) -> None:
    torch.manual_seed(21)
    shape = Seq2SeqSection(
        **SHAPE,
        num_encoder_layers=2,
        num_decoder_layers=2,
        norm_first=norm_first,
        positions=positions,
    )
    model = shake(Seq2SeqTransformer(shape, VOCAB, VOCAB, joint=True))
    src, tgt_in = drawn(SRC_LENS, 4), drawn(TGT_LENS, 5)
    packings = Packing.of(src != 0), Packing.of(tgt_in != 0)
    same_states(
        model,
        lambda m: m.states(src, tgt_in),
        lambda m: m.packed_states(src, tgt_in, packings),
        tgt_in != 0,
    )
    # each layer's, if any: two in the encoder, two of each kind in the decoder
    assert sum(kernel) in (0, 6)


MODELS = [
    {},
    {"positions": "learned", "norm_first": False},
    {"positions": "rotary", "ngrams": 2, "match_lengths": (1,)},
]


@pytest.mark.parametrize("values", MODELS, ids=str)
@pytest.mark.parametrize("apart", [False, True])
def test_a_language_model_gives_the_same_states_and_gradients(
    shake: Shake, values: dict[str, Any], apart: bool, kernel: list[int]
) -> None:
    """Rows of one document, or of several that must not see each other."""
    torch.manual_seed(22)
    model = shake(
        CausalTransformer(CausalSection(**SHAPE, num_decoder_layers=2, **values), VOCAB)
    )
    ids = drawn((7, 4, 6), 6)
    segments = torch.tensor(
        [[1] * 4 + [2] * 3 + [0], [1] * 4 + [0] * 4, [1, 2, 2, 3, 3, 3, 0, 0]]
    )
    packing = Packing.of(ids != 0, torch.tensor([4, 3, 4, 1, 2, 3]) if apart else None)
    given = segments if apart else None
    same_states(
        model,
        lambda m: m.states(ids, given),
        lambda m: m.packed_states(ids, given, packing),
        ids != 0,
    )


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_classifier_gives_the_same_states_and_gradients(
    shake: Shake, pooling: Any, kernel: list[int]
) -> None:
    torch.manual_seed(23)
    shape = ClassifierSection(
        **SHAPE, num_encoder_layers=2, pooling=pooling, ngrams=2, ngram_buckets=97
    )
    model, ids = shake(TransformerClassifier(shape, VOCAB, 5)), drawn(SRC_LENS, 7)
    packing = Packing.of(ids != 0)
    same_states(
        model, lambda m: m.states(ids), lambda m: m.states(ids, packing=packing), None
    )


def same_states(
    model: nn.Module,
    padded: Callable[[Any], Tensor],
    packed: Callable[[Any], Tensor],
    real: Tensor | None,
) -> None:
    expected, found, other = padded(model), None, deepcopy(model)
    expected = expected if real is None else expected[real]
    found = packed(other)
    torch.testing.assert_close(found.reshape(expected.shape), expected, **CLOSE)
    before, after = gradients(model, expected), gradients(other, found)
    assert before.keys() == after.keys()
    assert all(g.isfinite().all() for g in after.values())
    for name, gradient in before.items():
        torch.testing.assert_close(
            after[name], gradient, msg=lambda m, name=name: f"{name}: {m}", **CLOSE
        )


def test_dropout_of_weights_takes_the_plain_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        varlen, "fits", lambda *heads: pytest.fail("the kernel has no dropout")
    )
    packing = Packing.of(drawn((5, 3), 8) != 0)
    query = torch.randn(1, H, 8, K)
    kept, dropped = (
        packed_attention(query, query, query, PackedMask(packing, packing), p)
        for p in (1e-9, 0.5)
    )
    assert not torch.allclose(kept, dropped)


def test_the_kernel_is_not_taken_on_a_processor() -> None:
    heads = torch.randn(3, 8, H, K).bfloat16()
    assert not varlen.fits(*heads)


@pytest.mark.skipif(
    varlen._varlen_attn is None, reason="this PyTorch has no varlen_attn"
)
def test_the_kernel_is_called_as_torch_has_it() -> None:
    given = inspect.signature(varlen._varlen_attn).bind(
        *"qkv", *"qk", 5, 7, window_size=(-1, 0)
    )
    names = [
        "query",
        "key",
        "value",
        "cu_seq_q",
        "cu_seq_k",
        "max_q",
        "max_k",
        "window_size",
    ]
    assert list(given.arguments) == names


@pytest.mark.skipif(
    not varlen.is_available(torch.device("cuda")), reason="no GPU with flash attention"
)
@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_agrees_with_the_plain_form(causal: bool) -> None:
    gpu = torch.device("cuda")
    packing = Packing.of(drawn((5, 1, 11), 9) != 0, device=gpu)
    heads = [
        torch.randn(1, H, 17, 16, device=gpu, dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    ]
    mask = PackedMask(packing, packing, causal)
    found = packed_attention(*heads, mask)
    to = torch.autograd.grad(found.sum(), heads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(varlen, "fits", lambda *heads: False)
        expected = packed_attention(*heads, mask)
    for a, b in zip(
        (found, *to),
        (expected, *torch.autograd.grad(expected.sum(), heads)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=0.02, atol=0.02)
