"""What a model looks at while it writes: which source token each target token comes from, and what is left out.

The attention is that of the decoder's last layer over the source, the mean of its heads.

Shapes: T target tokens, S source tokens, end symbols included; B rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

Look: TypeAlias = Callable[[Int[Tensor, "B S"], Int[Tensor, "B T"]], Float[Tensor, "B T S"]]
"""The attention at each row of target ids, which begins with bos, over a row of source ids; padding is 0."""


@dataclass(frozen=True)
class Link:
    """A target token and the source token that had the most attention as it was written, and where they stand."""

    target: int
    source: int
    target_token: str
    source_token: str


def links(
    attention: Float[Tensor, "T S"], tgt: Sequence[str], src: Sequence[str], before: tuple[int, int] = (0, 0)
) -> list[Link]:
    """One for each target token; of equals the first source. `before`: how many of either side precede these."""
    best: list[int] = attention.argmax(1).tolist()
    first_tgt, first_src = before
    return [Link(first_tgt + t, first_src + s, tgt[t], src[s]) for t, s in enumerate(best)]


def coverage(attention: Float[Tensor, "T S"]) -> float:
    """The sum over source tokens of log(min(their attention in all, 1)): 0 where none was passed over.

    Source: Wu et al. 2016, "Google's Neural Machine Translation System", equation 14, cp / beta.
    """
    in_all = attention.double().sum(0).clamp(min=torch.finfo(torch.float32).tiny, max=1.0)
    return math.fsum(in_all.log().tolist())
