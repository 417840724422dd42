"""Where a token stands: a vector for each position, added to the embeddings.

Shapes: the legend in `weft.model.attention`.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def sinusoids(num_positions: int, d_model: int, base: float = 10_000.0) -> Float[Tensor, "L D"]:
    """sin(pos / base^(2i/D)) in dimension 2i, its cos in 2i + 1 (Vaswani et al. 2017, section 3.5)."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class SinusoidalPositions(nn.Module):
    """The paper's fixed positions; nothing of them is learned or saved."""

    table: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(max_len, d_model), persistent=False)

    def forward(self, length: int, first: int = 0) -> Float[Tensor, "L D"]:
        """Vectors of the positions first, ..., first + length - 1. Raises ValueError beyond the last one."""
        return _rows(self.table, length, first)


class LearnedPositions(nn.Module):
    """One learned vector a position."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model))

    def forward(self, length: int, first: int = 0) -> Float[Tensor, "L D"]:
        """Vectors of the positions first, ..., first + length - 1. Raises ValueError beyond the last one."""
        return _rows(self.table, length, first)


def _rows(table: Tensor, length: int, first: int) -> Tensor:
    if first + length > len(table):  # a slice would silently be shorter, and one row of it broadcast
        raise ValueError(f"{first + length} positions needed, but model.max_len is {len(table)}")
    return table[first : first + length]
