"""The position of a token: a vector added to its embedding, or an angle of queries and keys.

Shapes: the legend in `weft.model.attention`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.kernels import operations


def sinusoids(
    num_positions: int, d_model: int, base: float = 10_000.0
) -> Float[Tensor, "L D"]:
    """Compute sin(pos / base^(2i/D)) in dimension 2i, its cos in 2i + 1 (section 3.5)."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def segment_positions(segments: Int[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """Count positions from 0 within their own segments; a segment is a run of equal numbers."""
    index = torch.arange(segments.shape[1], device=segments.device)
    # a row's own beginning is at 0 anyway
    begins = segments.diff(dim=1, prepend=segments[:, :1]) != 0
    return index - (index * begins).cummax(dim=1).values


class Positions(nn.Module):
    """A table of one vector a position; the two kinds below say where it comes from."""

    table: Tensor

    def forward(self, length: int, first: int = 0) -> Float[Tensor, "L D"]:
        """Return the vectors of `length` positions from `first` on.

        Raises ValueError beyond the last one.
        """
        # a slice would silently be shorter, and one row of it broadcast
        self._refuse_beyond(first + length)
        return self.table[first : first + length]

    def at(self, places: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
        """Return the vector of each place. A row must be no longer than the table, whatever its
        places are.
        """
        # says so without waiting for a GPU to tell the largest place
        self._refuse_beyond(places.shape[1])
        return F.embedding(places, self.table)

    def _refuse_beyond(self, needed: int) -> None:
        if needed > len(self.table):
            raise ValueError(
                f"{needed} positions needed, but model.max_len is {len(self.table)}"
            )


class SinusoidalPositions(Positions):
    """The paper's fixed positions; nothing of them is learned or saved."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(max_len, d_model), persistent=False)


class NoPositions(Positions):
    """Zeros for as many positions as there may be: the rotary kind is the attention's business."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer(
            "table", torch.zeros(1, 1).expand(max_len, 1), persistent=False
        )


class LearnedPositions(Positions):
    """A table of learned vectors, one a position."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model))


def angles(
    position: Float[Tensor, "L"], head_dim: int, base: float = 10_000.0
) -> tuple[Float[Tensor, "L _"], Float[Tensor, "L _"]]:
    """Compute cosine and sine of each position's angle for each pair of a head's numbers."""
    steps = torch.arange(0, head_dim, 2, dtype=position.dtype, device=position.device)
    angle = position[:, None] * base ** (-steps / head_dim)
    return angle.cos(), angle.sin()


def rotate(
    x: Float[Tensor, "B H L K"], first: int = 0, base: float = 10_000.0
) -> Float[Tensor, "B H L K"]:
    """Turn each vector by its position: the i-th number of each half make a pair, turned by pos /
    base^(2i/K).

    The product of a turned query and a turned key depends on how far apart they stand, not on
    where. K is even. Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position
    Embedding", equation 34.
    """
    precise = torch.promote_types(x.dtype, torch.float32)
    position = torch.arange(first, first + x.shape[-2], dtype=precise, device=x.device)
    return operations.rotated(x, *angles(position, x.shape[-1], base))
