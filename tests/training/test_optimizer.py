"""What decays and what does not, and an optimizer's state through tensors and back."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from weft.config import CausalSection, TrainingSection
from weft.errors import FolderError
from weft.model.causal import CausalTransformer
from weft.training.optimizer import (
    build_optimizer,
    load_optimizer_tensors,
    optimizer_tensors,
    set_learning_rate,
)

KINDS: list[dict[str, Any]] = [
    {"optimizer": "adam"},
    {"optimizer": "adamw", "weight_decay": 0.1},
    {"optimizer": "muon", "weight_decay": 0.1},
    {"optimizer": "sgd", "momentum": 0.9},
    {"optimizer": "sgd"},
]


def build() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 3))


def settings(**values: Any) -> TrainingSection:
    return TrainingSection.model_validate({"learning_rate": 0.01, **values})


def take_steps(
    model: nn.Module, optimizer: torch.optim.Optimizer, seed: int, count: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        ids = torch.randint(7, (4, 6), generator=generator)
        optimizer.zero_grad()
        model(ids).square().sum().backward()
        optimizer.step()


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_decay_touches_matrices_alone(kind: str) -> None:
    """With zero gradients what decays is multiplied by 1 - rate * decay, and the rest is left."""
    model = build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(2.0)
    optimizer = build_optimizer(
        model, settings(optimizer=kind, weight_decay=0.5, learning_rate=0.1)
    )
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        expected = 2.0 * (1 - 0.1 * 0.5) if parameter.ndim == 2 else 2.0
        torch.testing.assert_close(
            parameter.detach(), torch.full_like(parameter, expected), msg=name
        )


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_every_parameter_is_in_one_group(values: dict[str, Any]) -> None:
    model = build()
    groups = build_optimizer(model, settings(**values)).param_groups
    assert sorted(id(p) for group in groups for p in group["params"]) == sorted(
        map(id, model.parameters())
    )


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_the_recipe_reaches_adam(kind: str) -> None:
    optimizer = build_optimizer(
        build(), settings(optimizer=kind, betas=(0.5, 0.6), eps=1e-3)
    )
    assert type(optimizer) is (
        torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
    )
    assert all(
        g["betas"] == (0.5, 0.6) and g["eps"] == 1e-3 and g["lr"] == 0.01
        for g in optimizer.param_groups
    )


def test_muon_has_the_matrices_between_layers_alone() -> None:
    """Neither embeddings nor the output, which may be one matrix, nor what has one dimension."""
    model = CausalTransformer(
        CausalSection(d_model=6, d_ff=7, num_heads=2, num_decoder_layers=1), 11
    )
    muon = build_optimizer(model, settings(optimizer="muon")).param_groups[0]["params"]
    names = {id(p): name for name, p in model.named_parameters()}
    parts = {"query", "key", "value", "output", "inner", "outer"}
    assert {names[id(p)].split(".")[-2] for p in muon} == parts
    assert len(muon) == len(parts)
    assert all(p.ndim == 2 for p in muon)


def test_muon_takes_the_steps_of_its_parts() -> None:
    """torch's Muon for the linear layer and AdamW for the rest, each on its own, do the same."""
    values = {"weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-7}
    model, other = build(), build()
    take_steps(
        model,
        build_optimizer(model, settings(optimizer="muon", **values)),
        seed=5,
        count=3,
    )
    hidden = [other[2].weight]
    rest = [
        {"params": [other[0].weight]},
        {"params": [other[1].weight, other[1].bias, other[2].bias], "weight_decay": 0},
    ]
    muon = torch.optim.Muon(
        hidden, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
    )
    adamw = torch.optim.AdamW(rest, lr=0.01, fused=True, **values)
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        ids = torch.randint(7, (4, 6), generator=generator)
        other.zero_grad()
        other(ids).square().sum().backward()
        muon.step()
        adamw.step()
    for name, value in weights(model).items():
        assert torch.equal(value, weights(other)[name]), name


def test_the_recipe_reaches_sgd() -> None:
    optimizer = build_optimizer(build(), settings(optimizer="sgd", momentum=0.99))
    assert type(optimizer) is torch.optim.SGD
    assert all(
        g["momentum"] == 0.99 and g["dampening"] == 0 for g in optimizer.param_groups
    )


def test_the_rate_is_set_for_every_group() -> None:
    optimizer = build_optimizer(build(), settings())
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_state_goes_on_bit_for_bit_through_bytes(values: dict[str, Any]) -> None:
    model = build()
    optimizer = build_optimizer(model, settings(**values))
    take_steps(model, optimizer, seed=5, count=3)
    stored = load(save(optimizer_tensors(optimizer)))
    standing = weights(model)
    take_steps(model, optimizer, seed=6, count=3)

    other = build()
    other.load_state_dict(standing)
    resumed = build_optimizer(other, settings(**values))
    load_optimizer_tensors(resumed, stored)
    take_steps(other, resumed, seed=6, count=3)
    for name, value in weights(model).items():
        assert torch.equal(value, weights(other)[name]), name


@pytest.mark.parametrize("values", KINDS[:4], ids=str)
def test_the_state_matters(values: dict[str, Any]) -> None:
    """Without it, the next steps are others: so the test above can fail."""
    model = build()
    optimizer = build_optimizer(model, settings(**values))
    take_steps(model, optimizer, seed=5, count=3)
    other = build()
    other.load_state_dict(weights(model))
    take_steps(model, optimizer, seed=6, count=1)
    take_steps(other, build_optimizer(other, settings(**values)), seed=6, count=1)
    assert any(
        not torch.equal(value, weights(other)[name])
        for name, value in weights(model).items()
    )


def test_the_names_and_sizes_of_adams_state() -> None:
    model = build()
    optimizer = build_optimizer(model, settings())
    take_steps(model, optimizer, seed=5, count=2)
    tensors = optimizer_tensors(optimizer)
    assert sorted(tensors) == sorted(
        f"{i}.{name}" for i in range(5) for name in ("exp_avg", "exp_avg_sq", "step")
    )
    assert tensors["0.exp_avg"].shape == (7, 5)
    assert float(tensors["0.step"]) == 2.0


def alien(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    return [
        {**tensors, "0.exp_avg": torch.zeros(3, 3)},
        {**tensors, "9.exp_avg": torch.zeros(3)},
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_state_of_another_model_is_refused(which: int) -> None:
    model = build()
    optimizer = build_optimizer(model, settings())
    take_steps(model, optimizer, seed=5, count=1)
    with pytest.raises(FolderError, match="does not fit the model"):
        load_optimizer_tensors(optimizer, alien(optimizer_tensors(optimizer))[which])
