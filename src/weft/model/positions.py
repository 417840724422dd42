"""The position of a token: a vector added to its embedding, or an angle of queries and keys.

Shapes: the legend in `weft.model.attention`. Source: Vaswani et al. 2017, section 3.5; the angles
are later work, see `rotate`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.kernels import operations


def sinusoids(
    num_positions: int, d_model: int, base: float = 10_000.0
) -> Float[Tensor, "L D"]:
    """Compute sin(pos / base^(2i/D)) in dimension 2i, its cos in 2i + 1 (section 3.5).

    The rows are the positions pos, from 0 on; D is even.
    """
    position = torch.arange(num_positions, dtype=torch.float64)
    dimension = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    frequency = base ** (-dimension / d_model)
    angle = position[:, None] * frequency
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)
    return pairs.flatten(1).float()


def segment_positions(segments: Int[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """Count positions from 0 within their own segments; a segment is a run of equal numbers."""
    index = torch.arange(segments.shape[1], device=segments.device)
    # the first segment begins at index 0 and needs no mark
    first = segments[:, :1]
    begins = segments.diff(dim=1, prepend=first) != 0
    # of each position, the index at which its segment began
    beginning = (index * begins).cummax(dim=1).values
    return index - beginning


class Positions(nn.Module):
    """A table of one vector a position, which embeddings add to the tokens' vectors.

    SinusoidalPositions computes it, LearnedPositions learns it, NoPositions has zeros.
    """

    table: Tensor

    def forward(self, length: int, first: int = 0) -> Float[Tensor, "L D"]:
        """Return the vectors of `length` positions from `first` on.

        Raises ValueError beyond the last one.
        """
        end = first + length
        # a slice would silently be shorter, and one row of it broadcast
        self._refuse_beyond(end)
        return self.table[first:end]

    def at(self, places: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
        """Return the vector of each place. Raises ValueError for rows longer than the table."""
        # the largest place would say more, but to read it is to wait for the GPU
        self._refuse_beyond(places.shape[1])
        return F.embedding(places, self.table)

    def _refuse_beyond(self, needed: int) -> None:
        max_len = len(self.table)
        if needed > max_len:
            raise ValueError(
                f"{needed} positions needed, but model.max_len is {max_len}"
            )


class SinusoidalPositions(Positions):
    """The paper's `sinusoids`; nothing of them is learned or saved."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        table = sinusoids(max_len, d_model)
        self.register_buffer("table", table, persistent=False)


class NoPositions(Positions):
    """Zeros: nothing is added to an embedding where attention rotates queries and keys."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        # one column, which is broadcast to D
        table = torch.zeros(1, 1).expand(max_len, 1)
        self.register_buffer("table", table, persistent=False)


class LearnedPositions(Positions):
    """Learned vectors, the paper's other choice (section 3.5; row E of its Table 3)."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        table = torch.empty(max_len, d_model)
        self.table = nn.Parameter(table)


def angles(
    position: Float[Tensor, "L"],
    head_dim: int,
    base: float = 10_000.0,
) -> tuple[Float[Tensor, "L _"], Float[Tensor, "L _"]]:
    """Compute cosine and sine of the angle pos / base^(2i/d_k) of each position's pair i."""
    dimension = torch.arange(
        0,
        head_dim,
        2,
        dtype=position.dtype,
        device=position.device,
    )
    frequency = base ** (-dimension / head_dim)
    angle = position[:, None] * frequency
    return angle.cos(), angle.sin()


def rotate(
    x: Float[Tensor, "B H L d_k"], first: int = 0, base: float = 10_000.0
) -> Float[Tensor, "B H L d_k"]:
    """Turn each vector by its position: rotary positions, which no embedding adds.

    Number i of the first half and number i of the second are a pair, which is turned by the angle
    pos / base^(2i/d_k); d_k is even. The product of a turned query and a turned key depends on how
    far apart they stand, not on where. Source: Su et al. 2021, "RoFormer: Enhanced Transformer with
    Rotary Position Embedding", equation 34.
    """
    precise = torch.promote_types(x.dtype, torch.float32)
    length = x.shape[-2]
    head_dim = x.shape[-1]
    position = torch.arange(
        first,
        first + length,
        dtype=precise,
        device=x.device,
    )
    cos, sin = angles(position, head_dim, base)
    return operations.rotated(x, cos, sin)
