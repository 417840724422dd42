"""The optimizer of a recipe, and its state as plain tensors."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from weft.config import TrainingSection
from weft.errors import FolderError
from weft.kernels import operations
from weft.training.distributed import full_tensor, like


def build_optimizer(
    model: nn.Module, settings: TrainingSection
) -> torch.optim.Optimizer:
    """Build Adam, AdamW, SGD or Muon; weight decay touches matrices, never biases and norms.

    Adam with betas 0.9 and 0.98 and eps 1e-9, the defaults, is that of Vaswani et al. 2017, section
    5.3.
    """
    learned = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = (
        [p for p in learned if p.ndim > 1],
        [p for p in learned if p.ndim <= 1],
    )
    if settings.optimizer == "muon":
        is_hidden = _hidden_weights(model)
        hidden = [p for p in matrices if id(p) in is_hidden]
        others = [p for p in matrices if id(p) not in is_hidden]
        return MuonAdamW(hidden, _decayed(others, vectors, settings), settings)
    groups = _decayed(matrices, vectors, settings)
    if settings.optimizer == "sgd":
        # PyTorch has no fused SGD of sharded parameters
        fused = not any(map(operations.is_spread, matrices))
        return torch.optim.SGD(
            groups, lr=settings.learning_rate, momentum=settings.momentum, fused=fused
        )
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind(
        groups,
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.eps,
        fused=True,
    )


class MuonAdamW(torch.optim.Optimizer):
    """Muon for the matrices between layers, AdamW for embeddings, output, biases and norms; one
    state, one rate.

    Muon (Jordan et al. 2024) steps along the momentum made orthogonal; its steps are scaled to the
    size of AdamW's (Liu et al. 2025, "Muon is scalable for LLM training", section 2.2), so that
    both take the same rate.
    """

    def __init__(
        self,
        hidden: list[nn.Parameter],
        others: list[dict[str, Any]],
        settings: TrainingSection,
    ) -> None:
        rate, decay = settings.learning_rate, settings.weight_decay
        self.parts = (
            torch.optim.Muon(
                hidden, lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw"
            ),
            torch.optim.AdamW(
                others, lr=rate, betas=settings.betas, eps=settings.eps, fused=True
            ),
        )
        super().__init__(
            [group for part in self.parts for group in part.param_groups], {}
        )
        self._share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Step both parts; `closure` must be None."""
        for part in self.parts:
            part.step(closure)  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._share()

    def _share(self) -> None:
        """Let the parts work on this optimizer's groups and state."""
        count = len(self.parts[0].param_groups)
        for part, groups in zip(
            self.parts,
            (self.param_groups[:count], self.param_groups[count:]),
            strict=True,
        ):
            part.param_groups = groups
            part.state = self.state


def _hidden_weights(model: nn.Module) -> set[int]:
    """Return the weights of linear layers but the output, each by its identity."""
    linear = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    return {id(m.weight) for name, m in linear.items() if name != "projection"}


def _decayed(
    matrices: list[nn.Parameter], vectors: list[nn.Parameter], settings: TrainingSection
) -> list[dict[str, Any]]:
    return [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's state as named tensors, `<parameter number>.<name>`.

    Of several processes, each must ask.
    """
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": full_tensor(value)
        for number, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], begun: bool = True
) -> None:
    """Put back what `optimizer_tensors` gave, once the optimizer has `begun`.

    Raises FolderError where it belongs to another model, or lacks what this optimizer keeps.
    """
    expected = _state_names(optimizer) if begun else {}
    for key in expected.keys() - tensors.keys():
        raise FolderError(
            f"optimizer state {key} is missing; the checkpoint is incomplete"
        )
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        parameter = expected.get(key)
        if parameter is None or (value.ndim and value.shape != parameter.shape):
            raise FolderError(
                f"optimizer state {key} does not fit the model; the checkpoint is not this run's"
            )
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = (
            like(value, parameter) if value.ndim else value
        )
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _state_names(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Map every name that `optimizer_tensors` gives after a step to its parameter."""
    numbered = enumerate(
        (group, p) for group in optimizer.param_groups for p in group["params"]
    )
    return {f"{i}.{name}": p for i, (group, p) in numbered for name in _kept(group)}


def _kept(group: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is kept of each parameter of a group: moments for Adam, momentum for SGD and
    Muon.
    """
    if "betas" in group:
        return ("step", "exp_avg", "exp_avg_sq")
    return ("momentum_buffer",) if group["momentum"] else ()
