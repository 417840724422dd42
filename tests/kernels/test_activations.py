"""Every activation and norm of the table works in all engines, or falls back and says so."""

import sys
from collections.abc import Callable
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
from weft.engine.weights import build_engine, why_no_engine
from weft.kernels import activations, operations
from weft.kernels.activations import ACTIVATIONS, GATES, NORMS, Activation, Norm
from weft.kernels.machine import choose_machine
from weft.model.layers import FeedForward, GatedFeedForward
from weft.model.transformer import Seq2SeqTransformer
from weft.tasks.translation import Translation

SMALL = {"d_model": 24, "d_ff": 40, "num_heads": 2, "dropout": 0.0}
SRC, TGT = [5, 7, 9, 1], [2, 4, 6, 8]
IN_RECIPES = get_args(LayerShape.model_fields["activation"].annotation)


class LengthNorm(nn.RMSNorm):
    """x divided by its length. It is an RMSNorm by type alone: it has no weights."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=-1)


def build_length_norm(width: int, eps: float, bias: bool) -> LengthNorm:
    return LengthNorm()


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


def test_what_a_recipe_may_name_is_the_table() -> None:
    assert set(IN_RECIPES) <= ACTIVATIONS.keys() | GATES.keys()
    assert ACTIVATIONS.keys() | GATES.keys() <= {*IN_RECIPES, *GATES.values()}
    assert set(get_args(LayerShape.model_fields["norm"].annotation)) == NORMS.keys()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_feed_forward_part_of_each_activation(name: str) -> None:
    part = FeedForward(shape(activation=name))
    native_node = "FeedForwardBackward" in names_in_graph(part(torch.randn(2, 3, 24)))
    assert native_node == (ACTIVATIONS[name].power is not None)
    assert_same_as_plain(part)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_gate_of_each_activation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GATES, "gated", name)
    part = GatedFeedForward(shape(activation="gated"))
    native_node = "GatedBackward" in names_in_graph(part(torch.randn(2, 3, 24)))
    assert native_node == (ACTIVATIONS[name].number is not None)
    assert_same_as_plain(part)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", [*ACTIVATIONS, *GATES])
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


def test_without_native_code_pytorch_computes_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ACTIVATIONS, "mish", Activation(nn.Mish))
    monkeypatch.setitem(GATES, "mishglu", "mish")
    for name, build in (("mish", FeedForward), ("mishglu", GatedFeedForward)):
        part = build(shape(activation=name))
        assert "GatedBackward" not in names_in_graph(part(torch.randn(2, 3, 24)))
        assert_same_as_plain(part)
    model = Seq2SeqTransformer(shape(activation="mish"), 31, 31, joint=True)
    assert build_engine(model, "cpu", "float32") is None
    assert why_no_engine(model, "cpu", "float32") == "mish has no native code"


@pytest.mark.parametrize("name", ["relu2", "rms"])
def test_a_run_with_an_entry_without_native_code(
    name: str,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A new entry trains and translates with kernels "auto"; what PyTorch computes is said.

    It takes the place of one that has native code, whose name a recipe may use.
    """

    monkeypatch.setitem(ACTIVATIONS, "relu2", Activation(nn.Mish))
    monkeypatch.setitem(NORMS, "rms", Norm(LengthNorm, build_length_norm))
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
    said = f"{name} has no native code; PyTorch computes it, which takes longer"
    assert said in verdict.notes
    model = Translation.load(out, choose_machine("float32")).model
    assert {nn.Mish, LengthNorm} & {type(module) for module in model.modules()}
    text = "cat sees dog."
    (translation,) = weft.load(out).translate([text])
    (plain,) = weft.load(out, kernels="torch").translate([text])
    assert translation.text == plain.text
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
    entry = Norm(LengthNorm, build_length_norm)
    monkeypatch.setitem(NORMS, "other", entry)
    x = torch.randn(5, 24, requires_grad=True)
    norm = entry.build(24, 1e-5, False)
    assert activations.norm_name(norm) == "other"
    assert "NormBackward" not in names_in_graph(operations.normed(x, norm))
    model = Seq2SeqTransformer(shape(norm="other"), 31, 31, joint=True)
    assert build_engine(model, "cpu", "float32") is None
    assert why_no_engine(model, "cpu", "float32") == "the norm other has no native code"


def test_a_number_without_native_code_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the numbers of vectors.h end with the table's: each, and no more, is in both."""
    numbers = [entry.number for entry in ACTIVATIONS.values()]
    known = sorted(number for number in numbers if number is not None)
    assert known == list(range(len(known)))
    monkeypatch.setitem(ACTIVATIONS, "silu", Activation(nn.SiLU, number=len(known)))
    part = GatedFeedForward(shape(activation="swiglu"))
    with pytest.raises(RuntimeError, match="native kernels failed"):
        part(torch.randn(2, 3, 24))
    model = Seq2SeqTransformer(shape(activation="swiglu"), 31, 31, joint=True)
    with pytest.raises(RuntimeError, match="decoding engine failed"):
        assert_engine_gives_the_models_log_probs(model)
