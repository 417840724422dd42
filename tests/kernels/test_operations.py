"""Native operations do what the plain ones do, forward and backward, and their dropout is what it
says.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from weft.config import CausalSection, ClassifierSection, Seq2SeqSection
from weft.kernels import native, operations, training
from weft.kernels.activations import ACTIVATIONS
from weft.kernels.modules import ACTIVATION_MODULES, SquaredReLU
from weft.model import attention as plain_attention
from weft.model.attention import attention_mask
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.positions import rotate
from weft.model.transformer import Seq2SeqTransformer
from weft.training.loss import CrossEntropy, divergence, smoothed_cross_entropy

ROWS, WIDTH, WIDE = 37, 19, 53  # primes: nothing fits a vector
CLOSE = {torch.float32: 2e-5, torch.bfloat16: 0.03}
TYPES = [torch.float32, torch.bfloat16]
WITH_NATIVE_CODE = [
    name for name, entry in ACTIVATIONS.items() if entry.number is not None
]


@pytest.fixture(autouse=True)
def kernels(take_kernels: Callable[..., None]) -> None:
    """Native operations for one test."""
    take_kernels(True)
    torch.manual_seed(3)


def both(
    work: Callable[[], list[Tensor]], low: torch.dtype, products: str = "onednn"
) -> tuple[list[Tensor], list[Tensor]]:
    """What `work` gives by the native and by the plain operations, in a type of products."""
    results = []
    for wanted in (True, False):
        autocast = torch.autocast("cpu", low, enabled=low != torch.float32)
        with operations.using(wanted, products), autocast:
            results.append([t.detach().float().clone() for t in work()])
    return results[0], results[1]


def assert_close(found: list[Tensor], expected: list[Tensor], low: torch.dtype) -> None:
    assert len(found) == len(expected)
    for a, b in zip(
        (t.detach() for t in found), (t.detach() for t in expected), strict=True
    ):
        assert a.shape == b.shape
        assert (a - b).abs().max() <= CLOSE[low] * max(1.0, float(b.abs().max()))


def gradients(out: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """Of a sum in which every number has its own weight."""
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape)
    return [out, *torch.autograd.grad((out.float() * weights).sum(), inputs)]


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "shapes",
    [[(WIDTH, WIDE)], [(WIDTH, 5), (WIDTH, 31), (WIDTH, 7)], [(64, 64), (64, 64)]],
)
def test_linear_layers(
    shapes: list[tuple[int, int]], bias: bool, low: torch.dtype
) -> None:
    layers = [nn.Linear(*shape, bias=bias) for shape in shapes]
    x = torch.randn(3, ROWS, shapes[0][0], requires_grad=True)
    parameters = [p for layer in layers for p in layer.parameters()]

    def work() -> list[Tensor]:
        parts = operations.linears(x, *layers)
        return [*parts, *gradients(torch.cat(parts, -1), [x, *parameters])]

    assert_close(*both(work, low), low)


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward(bias: bool, squared: bool, low: torch.dtype) -> None:
    inner, outer = nn.Linear(WIDTH, WIDE, bias=bias), nn.Linear(WIDE, WIDTH, bias=bias)
    x = torch.randn(3, ROWS, WIDTH, requires_grad=True)
    inputs = [x, *inner.parameters(), *outer.parameters()]
    kept, power = nn.Dropout(0.0), SquaredReLU() if squared else nn.ReLU()
    assert_close(
        *both(
            lambda: gradients(
                operations.feed_forward(x, inner, power, kept, outer), inputs
            ),
            low,
        ),
        low,
    )


def test_where_onednn_has_no_bfloat16_the_products_are_pytorchs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "_onednn_has", lambda kind: False)
    inner, outer = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)
    x = torch.randn(3, ROWS, WIDTH, requires_grad=True)
    inputs = [x, *inner.parameters(), *outer.parameters()]
    kept, low = nn.Dropout(0.0), torch.bfloat16
    assert_close(
        *both(
            lambda: gradients(
                operations.feed_forward(x, inner, nn.ReLU(), kept, outer), inputs
            ),
            low,
        ),
        low,
    )


@pytest.mark.parametrize(
    ("low", "products"), [(torch.bfloat16, "blas"), (torch.float32, "onednn")]
)
def test_products_that_are_not_the_default_ones_are_taken(
    low: torch.dtype, products: str
) -> None:
    layer, x = nn.Linear(WIDTH, WIDE), torch.randn(ROWS, WIDTH, requires_grad=True)
    with torch.autocast("cpu", low, enabled=low != torch.float32):
        assert (
            type(operations.linear(x, layer).grad_fn).__name__ == "LinearsBackward"
        ) == (low != torch.float32)
        assert training.HAS_ONEDNN, "in every build of PyTorch that is tested"
        with operations.using(True, products):
            assert "Linears" in type(operations.linear(x, layer).grad_fn).__name__


@pytest.mark.parametrize("power", [1, 2])
def test_dropout_in_feed_forward_zeroes_the_same_numbers_on_the_way_back(
    power: int,
) -> None:
    inner, outer = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDE, bias=False)
    nn.init.eye_(outer.weight)
    x = torch.randn(ROWS, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        out = operations.feed_forward(
            x, inner, SquaredReLU() if power == 2 else nn.ReLU(), nn.Dropout(0.5), outer
        )
        plain = inner(x).relu().float()
    passed = out.detach() > 0
    assert torch.equal(passed, passed & (plain > 0))
    assert 0.3 < passed.sum() / (plain > 0).sum() < 0.7
    assert torch.allclose(out[passed].float(), 2 * plain[passed] ** power, rtol=0.02)
    out.float().sum().backward()
    assert inner.bias.grad is not None
    grads = 2 * power * plain ** (power - 1) * passed
    assert torch.allclose(inner.bias.grad, grads.sum(0), rtol=0 if power == 1 else 0.01)


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize(
    "norm",
    [nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH, bias=False), nn.RMSNorm(WIDTH, eps=1e-5)],
    ids=str,
)
def test_norms(norm: nn.LayerNorm | nn.RMSNorm, low: torch.dtype) -> None:
    nn.init.uniform_(norm.weight, 0.5, 2.0)
    x = (torch.randn(5, ROWS, WIDTH) * 3 + 1).requires_grad_()
    found, expected = both(
        lambda: gradients(operations.normed(x, norm), [x, *norm.parameters()]), low
    )
    assert_close(found, expected, low)


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("name", WITH_NATIVE_CODE)
def test_gates(name: str, low: torch.dtype) -> None:
    """Also at its ends, where little or all goes through, and of tensors that do not lie side by
    side.
    """
    activation = ACTIVATION_MODULES[name]()
    x = torch.cat(
        [torch.linspace(-100, 100, 3 * WIDE).view(3, WIDE), torch.randn(ROWS, WIDE) * 3]
    )
    gate, inner = (part.to(low).requires_grad_() for part in (x, torch.randn_like(x)))
    out = operations.gated(gate, inner, activation)
    assert "Gated" in type(out.grad_fn).__name__
    expected = activation(gate.float()) * inner.float()
    assert_close(gradients(out, [gate, inner]), gradients(expected, [gate, inner]), low)
    beside = torch.stack(
        [torch.randn_like(gate), inner.detach(), gate.detach()], dim=1
    ).requires_grad_()
    _, other, one = beside.unbind(1)
    found = gradients(operations.gated(one, other, activation), [beside])
    assert_close(
        found, gradients(activation(one.float()) * other.float(), [beside]), low
    )


@pytest.mark.parametrize("low", TYPES)
def test_rotation(low: torch.dtype) -> None:
    x = torch.randn(3, 7, 2, 24, dtype=low).transpose(1, 2).requires_grad_()
    out = rotate(x, 5)
    assert "Rotated" in type(out.grad_fn).__name__
    with operations.using(False):
        expected = gradients(rotate(x.float(), 5), [x])
    assert_close(gradients(out, [x]), expected, low)


@pytest.mark.parametrize("low", TYPES)
def test_attention(low: torch.dtype) -> None:
    for queries, keys, width in ((7, 11, 5), (16, 16, 32), (33, 50, 24)):
        tensors = [
            torch.randn(3, 2, n, width, dtype=low).requires_grad_()
            for n in (queries, keys, keys)
        ]
        padding = torch.arange(keys) >= torch.tensor([keys, keys - 3, 2])[:, None]
        blind = torch.ones(queries, keys, dtype=torch.bool)
        blind[1] = False  # a query that sees nothing
        future = torch.rand(3, 1, queries, keys) > 0.5
        for mask in (
            None,
            attention_mask(padding),
            attention_mask(padding, queries, keys),
            blind,
            future,
        ):
            out = operations.attention(*tensors, mask)
            expected = plain_attention.attention(*[t.float() for t in tensors], mask)[0]
            assert_close(gradients(out, tensors), gradients(expected, tensors), low)


def test_dropout_of_attention_is_that_of_its_seed() -> None:
    tensors = [torch.randn(2, 3, n, 8).requires_grad_() for n in (5, 13, 13)]
    torch.manual_seed(7)
    out = operations.attention(*tensors, None, 0.3)
    torch.manual_seed(7)
    factors = training.dropout_factors(
        2 * 3 * 5, 13, 0.3, int(torch.randint(2**62, ()))
    ).view(2, 3, 5, 13)
    assert 0.05 < (factors == 0).float().mean() < 0.55
    weights = ((tensors[0] / 8**0.5) @ tensors[1].transpose(-2, -1)).softmax(
        -1
    ) * factors
    assert_close(
        gradients(out, tensors), gradients(weights @ tensors[2], tensors), torch.float32
    )


@pytest.mark.parametrize("low", TYPES)
def test_a_sum_with_dropout_is_that_of_its_seed(low: torch.dtype) -> None:
    x, y = (
        torch.randn(ROWS, WIDTH, requires_grad=True),
        torch.randn(ROWS, WIDTH, dtype=low, requires_grad=True),
    )
    torch.manual_seed(11)
    out = operations.add_dropped(x, y, nn.Dropout(0.25))
    torch.manual_seed(11)
    factors = training.dropout_factors(ROWS, WIDTH, 0.25, int(torch.randint(2**62, ())))
    assert_close(
        gradients(out, [x, y]), gradients(x + y.float() * factors, [x, y]), low
    )


def test_dropout_keeps_its_share_and_knows_no_pattern() -> None:
    size, p = 1000, 0.1
    kept = [
        (training.dropout_factors(size, size, p, seed) > 0).double()
        for seed in (1, 2, 2**61)
    ]
    deviation = (p * (1 - p)) ** 0.5
    for mask in kept:
        assert abs(mask.mean() - (1 - p)) < 5 * deviation / size
        normal = (mask - (1 - p)) / deviation
        # of columns and rows: none is privileged
        for lines in (normal.sum(0), normal.sum(1)):
            assert abs((lines.square().mean() / size) - 1) < 0.3
        for other in (
            normal.roll(1, 0),
            normal.roll(1, 1),
            normal.roll((1, 1), (0, 1)),
            normal.T,
        ):
            assert abs((normal * other).mean()) < 5 / size
    assert abs(((kept[0] - 0.9) * (kept[1] - 0.9)).mean() / deviation**2) < 5 / size
    assert training.dropout_factors(3, 5, 0.0, 4).eq(1).all()


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("bias", [True, False])
def test_cross_entropy(bias: bool, low: torch.dtype) -> None:
    projection = nn.Linear(WIDTH, 97, bias=bias)
    states, labels = (
        torch.randn(601, WIDTH, requires_grad=True),
        torch.randint(0, 97, (601,)),
    )
    assert (labels == 0).any(), "some are padding"
    inputs = [states, *projection.parameters()]
    for smoothing in (0.0, 0.1):
        with torch.autocast("cpu", low, enabled=low != torch.float32):
            loss, nll = operations.cross_entropy(
                states, projection, labels, smoothing, 0
            )
            expected, expected_nll = smoothed_cross_entropy(
                projection(states), labels, smoothing
            )
        assert torch.allclose(loss, expected, rtol=1e-3)
        assert torch.allclose(nll, expected_nll, rtol=1e-3)
        found = torch.autograd.grad(loss / 7, inputs)
        assert_close(list(found), list(torch.autograd.grad(expected / 7, inputs)), low)


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("bias", [True, False])
def test_r_drop(bias: bool, low: torch.dtype) -> None:
    """Of more rows than are taken at a time, against the divergence by PyTorch's operations."""
    projection = nn.Linear(WIDTH, 97, bias=bias)
    states, labels = (
        torch.randn(602, WIDTH, requires_grad=True),
        torch.randint(0, 97, (301,)),
    )
    assert (labels == 0).any(), "some are padding"
    inputs = [states, *projection.parameters()]
    for smoothing in (0.0, 0.1):
        with torch.autocast("cpu", low, enabled=low != torch.float32):
            loss, nll = operations.cross_entropy(
                states, projection, labels.repeat(2), smoothing, 0, 3.0
            )
            logits = projection(states).float()
        both, both_nll = smoothed_cross_entropy(logits, labels.repeat(2), smoothing)
        apart = divergence(*logits.chunk(2))[labels != 0].sum()
        expected = both / 2 + apart * 3 / 4
        assert torch.allclose(loss, expected, rtol=1e-3)
        assert torch.allclose(nll, both_nll / 2, rtol=1e-3)
        assert apart > loss / 10, "it counts"
        found = torch.autograd.grad(loss / 7, inputs)
        assert_close(list(found), list(torch.autograd.grad(expected / 7, inputs)), low)


def test_memory_that_is_used_again_belongs_to_one_loss_at_a_time() -> None:
    projection, labels = nn.Linear(WIDTH, 97), torch.randint(1, 97, (50,))
    states = [torch.randn(50, WIDTH, requires_grad=True) for _ in range(3)]

    def grads(order: Sequence[int]) -> list[Tensor]:
        """Gradients of the projection where all losses are there before the first goes back."""
        losses = {
            i: operations.cross_entropy(states[i], projection, labels, 0.1, 0)[0]
            for i in order
        }
        return [torch.autograd.grad(losses[i], projection.weight)[0] for i in order]

    alone = [grads([i])[0] for i in range(3)]
    assert all(torch.equal(a, b) for a, b in zip(alone, grads([0, 1, 2]), strict=True))
    loss, _ = operations.cross_entropy(states[0], projection, labels, 0.1, 0)
    torch.autograd.grad(loss, projection.weight, retain_graph=True)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(loss, projection.weight)


def test_the_norm_of_many_tensors() -> None:
    many = [
        torch.randn(*shape)
        for shape in ((3,), (WIDE, ROWS), (0,), (200, 300), (1, 1, 7))
    ]
    many.append(torch.randn(40, 50).t())
    expected = torch.cat([t.flatten() for t in many]).double().norm().float()
    assert torch.allclose(operations.total_norm(many), expected, rtol=1e-6)
    many[3][7, 5] = torch.inf
    assert operations.total_norm(many) == torch.inf
    many[3][7, 5] = torch.nan
    assert operations.total_norm(many).isnan()
    assert operations.total_norm([]) == 0
    halves = [t.bfloat16() for t in many[:2]]
    assert torch.equal(operations.total_norm(halves), nn.utils.get_total_norm(halves))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_stays_none(value: float) -> None:
    x = torch.randn(ROWS, WIDTH, dtype=torch.bfloat16)
    x[5, 3] = value
    zeros = torch.zeros(ROWS, WIDTH)
    assert (
        not operations.add_dropped(zeros, x.requires_grad_(), nn.Dropout(0.0))
        .isfinite()
        .all()
    )
    layers = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        assert (
            not operations.feed_forward(
                x, layers[0], nn.ReLU(), nn.Dropout(0.1), layers[1]
            )
            .isfinite()
            .all()
        )
        loss, _ = operations.cross_entropy(
            x, nn.Linear(WIDTH, 97), torch.ones(ROWS, dtype=torch.int64), 0.1, 0
        )
    assert not loss.isfinite()
    heads = x.detach().view(1, 1, ROWS, WIDTH).requires_grad_()
    assert not operations.attention(heads, heads, heads).isfinite().all()


def test_gelu_of_infinity_is_its_limit() -> None:
    """As PyTorch's own in double precision, and in float32 where it takes one number at a time."""
    x = torch.full((ROWS, WIDTH), torch.inf, requires_grad=True)
    out = operations.gated(x, torch.ones(ROWS, WIDTH), nn.GELU())
    assert torch.equal(out.double(), nn.GELU()(x.detach().double()))
    assert operations.gated(-x, torch.ones(ROWS, WIDTH), nn.GELU()).isnan().all()


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("products", ["blas", "onednn"])
def test_no_rows_at_all_give_none(low: torch.dtype, products: str) -> None:
    inner, outer = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)
    x = torch.zeros(3, 0, WIDTH, requires_grad=True)

    def work() -> list[Tensor]:
        out = operations.feed_forward(x, inner, nn.ReLU(), nn.Dropout(0.3), outer)
        two = operations.linears(x, inner, inner)
        return gradients(
            torch.cat([out, *two], dim=-1),
            [x, *inner.parameters(), *outer.parameters()],
        )

    found, expected = both(work, low, products)
    assert [t.shape for t in found] == [t.shape for t in expected]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_nothing_to_look_at_gives_nothing() -> None:
    query = torch.randn(2, 3, 5, 8, requires_grad=True)
    nothing = torch.zeros(2, 3, 0, 8, requires_grad=True)
    out = operations.attention(
        query, nothing, nothing, torch.zeros(5, 0, dtype=torch.bool)
    )
    assert torch.equal(out, torch.zeros(2, 3, 5, 8))


OUT_OF_MEMORY = """
import resource, sys, torch
from pathlib import Path
from weft.kernels import operations
using = operations.using(True)
using.__enter__()
torch.set_num_threads(2)

def limit(more):
    held = int(Path("/proc/self/status").read_text().partition("VmSize:")[2].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (held + more, resource.RLIM_INFINITY))

def failed(work):
    try:
        work()
    except MemoryError:
        return True
    return False

x = torch.randn(1, 4, 6000, 8, requires_grad=True)
mask = torch.ones(6000, 6000, dtype=torch.bool).tril()  # of its own for every query: 144 MB for each thread
out = operations.attention(x, x, x, mask)
limit(60 << 20)
print(failed(lambda: out.sum().backward()), failed(lambda: operations.attention(x, x, x, mask)))
"""


def test_a_status_says_what_went_wrong() -> None:
    library = native.load()
    native.refuse_failure(library, 0, "a test")
    with pytest.raises(MemoryError, match="a test"):
        native.refuse_failure(library, 1, "a test")
    x = torch.zeros(1)
    for number in (-1, 99):
        words = f"native kernels failed: vectors.h has no code for activation number {number};"
        with pytest.raises(RuntimeError, match=words):
            training.call("gated", x, x, x, x, 1, 1, 1, number)


@pytest.mark.long
def test_a_kernel_for_whose_threads_memory_does_not_suffice_is_an_error_and_no_abort() -> (
    None
):
    """In a process of its own with little address space left: it ends well, and has seen a
    MemoryError twice.
    """
    done = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr


SHAPES = [
    Seq2SeqSection(d_model=32, d_ff=64, num_heads=4, dropout=0.0, norm_first=first)
    for first in (True, False)
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_translation_model(shape: Seq2SeqSection) -> None:
    model = Seq2SeqTransformer(shape, 41, 41, joint=True)
    src, tgt = torch.randint(1, 41, (5, 11)), torch.randint(1, 41, (5, 7))
    src[2, 6:] = tgt[1, 4:] = 0

    def work() -> list[Tensor]:
        model.zero_grad()
        sums = CrossEntropy(0.1)(
            model.states(src, tgt), model.output, tgt, model.projection
        )
        sums.loss_sum.backward()
        return [
            sums.loss_sum / 30,
            sums.nll_sum / 30,
            *(p.grad for p in model.parameters() if p.grad is not None),
        ]

    for products in ("blas", "onednn"):
        found, exact = both(work, torch.float32, products)
        assert_close(found, exact, torch.float32)
    rounded, rounded_plain = both(work, torch.bfloat16)
    assert error(rounded, exact) < 1.2 * error(rounded_plain, exact), (
        "no less precise than PyTorch's own bfloat16"
    )


def error(found: list[Tensor], exact: list[Tensor]) -> float:
    """Of all numbers together, relative to their size."""
    difference = torch.cat(
        [(a - b).flatten() for a, b in zip(found, exact, strict=True)]
    )
    return float(difference.norm() / torch.cat([b.flatten() for b in exact]).norm())


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_whole_language_model(positions: str) -> None:
    shape = CausalSection(
        d_model=32,
        d_ff=64,
        num_heads=4,
        dropout=0.0,
        positions=positions,
        activation="gelu",
    )
    model = CausalTransformer(shape, 41)
    ids = torch.randint(1, 41, (3, 19))
    segments = torch.tensor([[1] * 5 + [2] * 14] * 3)

    def work() -> list[Tensor]:
        model.zero_grad()
        loss = CrossEntropy()(
            model.states(ids, segments), model.output, ids, model.projection
        ).loss_sum
        loss.backward()
        return [loss / 50, *(p.grad for p in model.parameters() if p.grad is not None)]

    for products in ("blas", "onednn"):
        assert_close(*both(work, torch.float32, products), torch.float32)


def test_a_whole_classifier() -> None:
    shape = ClassifierSection(
        d_model=32, d_ff=64, num_heads=4, dropout=0.0, num_encoder_layers=2
    )
    model = TransformerClassifier(shape, 41, 3)
    ids = torch.randint(1, 41, (3, 19))
    ids[1, 9:] = 0

    def work() -> list[Tensor]:
        model.zero_grad()
        out = model(ids)
        out.square().sum().backward()
        return [out, *(p.grad for p in model.parameters() if p.grad is not None)]

    assert_close(*both(work, torch.float32), torch.float32)


def test_the_number_of_threads_changes_no_bit() -> None:
    threads = torch.get_num_threads()
    norm, projection = nn.LayerNorm(64), nn.Linear(64, 1000)
    x, labels = (
        torch.randn(40, 31, 64, requires_grad=True),
        torch.randint(0, 1000, (1240,)),
    )
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        torch.manual_seed(1)
        heads = operations.normed(x, norm).view(40, 31, 4, 16).transpose(1, 2)
        states = (
            operations.attention(heads, heads, heads, None, 0.1)
            .transpose(1, 2)
            .flatten(2)
            .contiguous()
        )
        states = operations.add_dropped(x, states, nn.Dropout(0.1))
        logits = projection(states.detach()).flatten(0, 1).detach()
        losses = torch.empty(1240, 2)
        training.call(
            "cross_entropy", logits, logits, None, labels, losses, 1240, 1000, 0.1, 0
        )
        results.append([*gradients(states, [x, *norm.parameters()]), losses])
    torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_nothing_native_is_done_where_no_gradient_is_asked_for_or_in_double_precision() -> (
    None
):
    assert not operations.is_native(torch.randn(3).double())
    with torch.no_grad():
        assert not operations.is_native(torch.randn(3))
    assert operations.is_native(torch.randn(3))
    assert operations.fits_attention(*[torch.randn(3)] * 3)
    assert not operations.fits_attention(
        torch.randn(3), torch.randn(3), torch.randn(3).bfloat16()
    )
    with operations.using(False):
        assert not operations.is_native(torch.randn(3))
    assert operations.is_native(torch.randn(3))
