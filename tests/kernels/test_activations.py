"""Every activation and norm of the table works in all engines, or falls back and says so."""

import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import weft
from weft.__main__ import main
from weft.config import LayerShape, Seq2SeqSection
from weft.decoding.decoder import StepInput
from weft.engine import plain, weights
from weft.engine.from_model import build_engine, why_no_engine
from weft.kernels import native, operations
from weft.kernels.activations import ACTIVATIONS, GATES, NORMS, Activation, Norm
from weft.kernels.modules import (
    ACTIVATION_MODULES,
    NORM_MODULES,
    NormModule,
    activation_name,
    norm_name,
)
from weft.kernels.torch_machine import choose_machine
from weft.model.layers import FeedForward, GatedFeedForward
from weft.model.transformer import Seq2SeqTransformer
from weft.tasks.trainable_translation import TrainableTranslation

SMALL = {"d_model": 24, "d_ff": 40, "num_heads": 2, "dropout": 0.0}
SRC, TGT = [5, 7, 9, 1], [2, 4, 6, 8]
# Where e^x or e^-x of a formula is beyond float32, or beyond what vectors.h computes.
FAR = [sign * x for x in (20.0, 50.0, 90.0, 100.0, 1e4) for sign in (1, -1)]
IN_RECIPES = get_args(LayerShape.model_fields["activation"].annotation)
# A test below says so where two names have one module; the others pass over the second name.
OWN_NAMES = [
    name
    for name, module in ACTIVATION_MODULES.items()
    if activation_name(module()) == name
]


def relu(x: float) -> float:
    return max(x, 0.0)


def gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def relu2(x: float) -> float:
    return x * x if x > 0 else 0.0


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


# As the papers have them, in numbers: an activation's own, and for a gate that of the gate.
FORMULAS = {
    "relu": relu,
    "gelu": gelu,
    "relu2": relu2,
    "silu": silu,
    "swiglu": silu,
    "geglu": gelu,
}


class LengthNorm(nn.RMSNorm):
    """x divided by its length, times a gain."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=-1) * self.weight


def build_length_norm(width: int, eps: float, bias: bool) -> LengthNorm:
    return LengthNorm(width)


def length_norm(x: plain.Floats, norm: weights.Norm, eps: float) -> plain.Floats:
    """The same in NumPy."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True) * norm.gain


class Bent(nn.Module):
    """An activation that no paper has: x / (1 + |x|) + x."""

    def forward(self, x: Tensor) -> Tensor:
        return x / (1 + x.abs()) + x


def bent(x: plain.Floats) -> plain.Floats:
    """The same in NumPy."""
    return x / (1 + np.abs(x)) + x


@pytest.fixture(autouse=True)
def kernels(take_kernels: Callable[..., None]) -> None:
    """Native operations for one test."""
    take_kernels(True, "onednn")
    torch.manual_seed(3)


def shape(**settings: object) -> Seq2SeqSection:
    """A shape with what no recipe may name, too."""
    return Seq2SeqSection().model_copy(update={**SMALL, **settings})


def names_in_graph(out: Tensor) -> set[str]:
    names, nodes = set(), [out.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None:
            names.add(type(node).__name__)
            nodes += [before for before, _ in node.next_functions]
    return names


def gradients(part: nn.Module, x: Tensor) -> list[Tensor]:
    out = part(x)
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape)
    grads = torch.autograd.grad((out * weights).sum(), [x, *part.parameters()])
    return [out.detach(), *grads]


def assert_same_as_plain(part: nn.Module) -> None:
    """Forward and backward, by the kernels and by PyTorch."""
    x = (torch.randn(3, 11, 24) * 3).requires_grad_()
    found = gradients(part, x)
    with operations.using(False):
        expected = gradients(part, x)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def assert_same_as_plain_far_from_zero(activation: nn.Module) -> None:
    """Forward and backward of a gate; an error at one number is not lost in larger ones."""
    x = torch.tensor([FAR] * 3, requires_grad=True)
    other = torch.linspace(0.5, 2, x.numel()).view(x.shape).requires_grad_()
    results = []
    for is_native in (True, False):
        with operations.using(is_native):
            out = operations.gated(x, other, activation)
        results.append([out.detach(), *torch.autograd.grad(out.sum(), [x, other])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def assert_engine_gives_the_models_log_probs(model: Seq2SeqTransformer) -> None:
    engine = build_engine(model, "cpu", "float32")
    assert engine is not None
    session = engine.session(1, 1)
    session.read([0], [SRC])
    count = len(TGT)
    zeros = np.zeros(count, np.int64)
    tokens = np.array(TGT, np.int32)
    ancestors = np.zeros((count, count), np.int32)
    rows = StepInput(zeros, zeros, np.arange(count), tokens, ancestors)
    _, _, found = session.step(rows, 1, all_log_probs=True)
    assert found is not None
    with torch.inference_mode():
        expected = model(torch.tensor([SRC]), torch.tensor([TGT])).log_softmax(-1)
    torch.testing.assert_close(torch.from_numpy(found), expected[0], rtol=0, atol=1e-4)


def assert_in_both(
    one: str, names_of_one: Iterable[str], other: str, names_of_other: Iterable[str]
) -> None:
    """The same names in two places, which the message of a failure names."""
    names, others = set(names_of_one), set(names_of_other)
    assert not others - names, f"{one} lacks {others - names} of {other}"
    assert not names - others, f"{other} lacks {names - others} of {one}"


def test_what_a_recipe_may_name_is_the_table() -> None:
    for_recipes = ACTIVATIONS.keys() | GATES.keys()
    # a recipe need not name an activation that some gate has
    assert_in_both(
        "`LayerShape.activation` (config.py)",
        {*IN_RECIPES, *GATES.values()},
        "ACTIVATIONS and GATES (kernels/activations.py)",
        for_recipes,
    )
    norms = get_args(LayerShape.model_fields["norm"].annotation)
    table = "NORMS (kernels/activations.py)"
    assert_in_both("`LayerShape.norm` (config.py)", norms, table, NORMS)


def test_every_entry_has_a_module_and_a_formula_in_numpy() -> None:
    table = "ACTIVATIONS (kernels/activations.py)"
    modules = "ACTIVATION_MODULES (kernels/modules.py)"
    assert_in_both(modules, ACTIVATION_MODULES, table, ACTIVATIONS)
    formulas = "ACTIVATIONS (engine/plain.py)"
    assert_in_both(formulas, plain.ACTIVATIONS, table, ACTIVATIONS)
    table = "NORMS (kernels/activations.py)"
    assert_in_both("NORM_MODULES (kernels/modules.py)", NORM_MODULES, table, NORMS)
    assert_in_both("NORMS (engine/plain.py)", plain.NORMS, table, NORMS)


def test_every_entry_has_a_formula() -> None:
    missing = (ACTIVATIONS.keys() | GATES.keys()) - FORMULAS.keys()
    assert not missing, f"FORMULAS needs what {missing} must compute, from the paper"


def test_every_name_has_a_module_of_its_own() -> None:
    norms = {name: norm.module for name, norm in NORM_MODULES.items()}
    modules = {**ACTIVATION_MODULES, **norms}
    for name, module in modules.items():
        others = [
            other
            for other, known in modules.items()
            if known is module and other != name
        ]
        assert not others, (
            f"{name} and {others[0]} are one module, {module.__name__}; a model's name for it is found "
            "by its type: take one name, or write a class of its own"
        )


@pytest.mark.parametrize("name", FORMULAS)
def test_a_feed_forward_part_by_hand(name: str) -> None:
    """x: inner (2 x, -x), the gate (x, 3 x), outer weights (3, 5)."""
    formula = FORMULAS[name]
    is_gated = name in GATES
    part = (GatedFeedForward if is_gated else FeedForward)(
        shape(d_model=1, d_ff=2, num_heads=1, activation=name, bias=False)
    )
    with torch.no_grad():
        part.inner.weight.copy_(torch.tensor([[2.0], [-1.0]]))
        part.outer.weight.copy_(torch.tensor([[3.0, 5.0]]))
        if isinstance(part, GatedFeedForward):
            part.gate.weight.copy_(torch.tensor([[1.0], [3.0]]))
    inputs = [-4.0, -1.5, -0.25, 0.0, 0.25, 1.5, 4.0]
    expected = []
    for x in inputs:
        if is_gated:
            between = formula(x) * 2 * x, formula(3 * x) * -x
        else:
            between = formula(2 * x), formula(-x)
        expected.append([3 * between[0] + 5 * between[1]])
    x = torch.tensor([[[x] for x in inputs]])
    for is_native in (False, True):
        with operations.using(is_native):
            torch.testing.assert_close(part(x), torch.tensor([expected]))


@pytest.mark.parametrize("name", OWN_NAMES)
def test_a_feed_forward_part_of_each_activation(name: str) -> None:
    part = FeedForward(shape(activation=name))
    native_node = "FeedForwardBackward" in names_in_graph(part(torch.randn(2, 3, 24)))
    assert native_node == (ACTIVATIONS[name].power is not None)
    assert_same_as_plain(part)


@pytest.mark.parametrize("name", OWN_NAMES)
def test_a_gate_of_each_activation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GATES, "gated", name)
    part = GatedFeedForward(shape(activation="gated"))
    native_node = "GatedBackward" in names_in_graph(part(torch.randn(2, 3, 24)))
    assert native_node == (ACTIVATIONS[name].number is not None)
    assert_same_as_plain(part)
    assert_same_as_plain_far_from_zero(ACTIVATION_MODULES[name]())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", [*OWN_NAMES, *GATES])
def test_the_engine_computes_each_that_it_has_code_for(
    activation: str, norm: str
) -> None:
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Seq2SeqTransformer(
        shape(activation=activation, norm=norm, **layers), 31, 31, joint=True
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    entry = ACTIVATIONS[GATES.get(activation, activation)]
    if entry.number is None or NORMS[norm].centred is None:
        assert build_engine(model, "cpu", "float32") is None
        assert "has no native code" in why_no_engine(model, "cpu", "float32")
    else:
        assert_engine_gives_the_models_log_probs(model)


@pytest.mark.parametrize("activation", [*OWN_NAMES, *GATES])
def test_the_engine_computes_each_far_from_zero(activation: str) -> None:
    """Every part's numbers are those of FAR, and what else comes to them."""
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Seq2SeqTransformer(
        shape(activation=activation, **layers), 31, 31, joint=True
    ).eval()
    for part in model.modules():
        if isinstance(part, FeedForward | GatedFeedForward):
            inner = part.gate if isinstance(part, GatedFeedForward) else part.inner
            with torch.no_grad():
                inner.bias.copy_(torch.tensor(FAR).repeat(4))
    if ACTIVATIONS[GATES.get(activation, activation)].number is not None:
        assert_engine_gives_the_models_log_probs(model)


def test_without_native_code_pytorch_computes_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ACTIVATIONS, "bent", Activation())
    monkeypatch.setitem(ACTIVATION_MODULES, "bent", Bent)
    monkeypatch.setitem(GATES, "bentglu", "bent")
    for name, build in (("bent", FeedForward), ("bentglu", GatedFeedForward)):
        part = build(shape(activation=name))
        assert "GatedBackward" not in names_in_graph(part(torch.randn(2, 3, 24)))
        assert_same_as_plain(part)
    model = Seq2SeqTransformer(shape(activation="bent"), 31, 31, joint=True)
    assert build_engine(model, "cpu", "float32") is None
    assert why_no_engine(model, "cpu", "float32") == "bent has no native code"


@pytest.mark.parametrize("name", ["relu2", "rms"])
def test_a_run_with_an_entry_without_native_code(
    name: str,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A new entry trains and translates with kernels "auto"; that it is slow is said.

    It takes the place of one that has native code, whose name a recipe may use.
    """

    monkeypatch.setitem(ACTIVATIONS, "relu2", Activation())
    monkeypatch.setitem(ACTIVATION_MODULES, "relu2", Bent)
    monkeypatch.setitem(NORMS, "rms", Norm())
    monkeypatch.setitem(NORM_MODULES, "rms", NormModule(LengthNorm, build_length_norm))
    monkeypatch.setitem(plain.ACTIVATIONS, "relu2", bent)
    monkeypatch.setitem(plain.NORMS, "rms", length_norm)
    key = "model.activation" if name in ACTIVATIONS else "model.norm"
    out = tmp_path / "model"
    settings = (
        *tiny_settings,
        "training.kernels=auto",
        "training.max_steps=2",
        f"{key}={name}",
    )
    verdict = weft.train(out=out, train=write_pairs(60), settings=settings, quiet=True)
    assert verdict.outcome == "done"
    said = f"{name} has no native code; PyTorch computes it in training, and use takes longer"
    assert said in verdict.notes
    model = TrainableTranslation.load(out, choose_machine("float32")).model
    assert {Bent, LengthNorm} & {type(module) for module in model.modules()}
    text = "cat sees dog."
    (translation,) = weft.load(out).translate([text])
    (by_torch,) = weft.load(out, kernels="torch").translate([text])
    assert translation.text == by_torch.text
    monkeypatch.setattr(sys, "argv", ["weft", "translate", str(out), text])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code in (0, None)
    assert printed.out == f"{translation.text}\n"
    assert f"{name} has no native code" in printed.err


def test_a_norm_without_native_code_is_pytorchs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = NormModule(LengthNorm, build_length_norm)
    monkeypatch.setitem(NORMS, "other", Norm())
    monkeypatch.setitem(NORM_MODULES, "other", entry)
    x = torch.randn(5, 24, requires_grad=True)
    norm = entry.build(24, 1e-5, False)
    assert norm_name(norm) == "other"
    assert "NormBackward" not in names_in_graph(operations.normed(x, norm))
    model = Seq2SeqTransformer(shape(norm="other"), 31, 31, joint=True)
    assert build_engine(model, "cpu", "float32") is None
    assert why_no_engine(model, "cpu", "float32") == "the norm other has no native code"


def test_every_number_has_a_case_of_its_own() -> None:
    """In the source: a number without one would be computed as another activation."""
    source = (Path(native.__file__).parent / "vectors.h").read_text("utf-8")
    cases = re.findall(r"^ +case (\d+): return work\((\w+)\(\)\);$", source, re.M)
    count = len({entry.number for entry in ACTIVATIONS.values()} - {None})
    numbers = [int(number) for number, _ in cases]
    assert numbers == list(range(count)), "`with_activation` of vectors.h lacks a case"
    assert len({name for _, name in cases}) == count
    said = f"constexpr int64_t NUM_ACTIVATIONS = {count};"
    assert said in source, "vectors.h has another NUM_ACTIVATIONS"


def test_a_number_without_native_code_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the numbers of vectors.h end with the table's: each, and no more, is in both."""
    numbers = {entry.number for entry in ACTIVATIONS.values()}
    known = sorted(number for number in numbers if number is not None)
    assert known == list(range(len(known)))
    monkeypatch.setitem(ACTIVATIONS, "silu", Activation(number=len(known)))
    words = f"vectors.h has no code for activation number {len(known)}"
    part = GatedFeedForward(shape(activation="swiglu"))
    with pytest.raises(RuntimeError, match=f"native kernels failed: {words}"):
        part(torch.randn(2, 3, 24))
    model = Seq2SeqTransformer(shape(activation="swiglu"), 31, 31, joint=True)
    with pytest.raises(RuntimeError, match=f"the decoding engine failed: {words}"):
        assert_engine_gives_the_models_log_probs(model)
