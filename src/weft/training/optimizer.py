"""The optimizer of a recipe, and its state as plain tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from weft.config import TrainingSection
from weft.errors import FolderError


def build_optimizer(model: nn.Module, settings: TrainingSection) -> torch.optim.Optimizer:
    """Adam, AdamW or SGD over all parameters; weight decay touches matrices, never biases and norms."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=settings.momentum, fused=True)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.eps, fused=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as named tensors, `<parameter number>.<name>`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": value.detach().contiguous()
        for number, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave. Raises FolderError where it belongs to another model."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    for index, values in state.items():
        if index >= len(parameters) or any(v.ndim and v.shape != parameters[index].shape for v in values.values()):
            raise FolderError(f"optimizer state {index} does not fit the model; the checkpoint is not this run's")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
