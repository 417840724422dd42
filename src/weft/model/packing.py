"""Texts end to end in one row, without their padding, and attention that keeps them apart.

Everything but attention treats positions one by one, and so takes such a row as it takes any.
Attention has a kernel for it on GPUs, unless its weights are dropped out; its plain form pads each
text in a row of its own. Shapes: the legend in `weft.model.attention`; N tokens of M texts, of
which the longest has L.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from weft.kernels import varlen


@dataclass(frozen=True)
class Packing:
    """Where the tokens of a padded batch stand once they lie end to end.

    `places` are theirs in the batch, row after row; `slots` theirs in a batch of one text a row, as
    wide as the longest of them; `bounds` is where each text begins in the packed row, and where the
    last one ends.
    """

    places: Int[Tensor, " N"]
    slots: Int[Tensor, " N"]
    bounds: Int[Tensor, " _"]
    longest: int

    @classmethod
    def of(
        cls,
        real: Bool[Tensor, "B T"],
        lens: Int[Tensor, " M"] | None = None,
        device: torch.device | None = None,
    ) -> "Packing":
        """Of a batch that has tokens where `real` says so, in texts of `lens` tokens; if None, a
        row is a text.

        Both lie on the processor (a GPU would have to be waited for); the packing is for `device`.
        """
        lens = real.sum(1) if lens is None else lens
        (places,) = real.flatten().nonzero(as_tuple=True)
        bounds, longest = F.pad(lens.cumsum(0), (1, 0)), int(lens.max())
        number = torch.arange(len(lens)).repeat_interleave(lens)
        slots = number * longest + torch.arange(len(places)) - bounds[number]
        where = [x.to(device) for x in (places, slots, bounds.int())]
        return cls(where[0], where[1], where[2], longest)

    @property
    def num_texts(self) -> int:
        """How many there are."""
        return len(self.bounds) - 1

    def pack(self, x: Shaped[Tensor, "B T *D"]) -> Shaped[Tensor, "1 N *D"]:
        """What stands at the tokens of the padded batch."""
        return x.flatten(0, 1)[self.places][None]

    def spread(self, x: Float[Tensor, "1 N *D"]) -> Float[Tensor, "M L *D"]:
        """Each text in a row of its own, with zeros behind."""
        room = x.new_zeros(self.num_texts * self.longest, *x.shape[2:])
        return room.index_copy(0, self.slots, x[0]).view(
            self.num_texts, self.longest, *x.shape[2:]
        )

    def gather(self, x: Float[Tensor, "M L *D"]) -> Float[Tensor, "1 N *D"]:
        """What `spread` has spread, end to end again."""
        return x.flatten(0, 1)[self.slots][None]

    def padding(self) -> Bool[Tensor, "M L"]:
        """Where in the spread batch there is no token."""
        lens = self.bounds.diff()[:, None]
        return torch.arange(self.longest, device=lens.device) >= lens


@dataclass(frozen=True)
class PackedMask:
    """What stands for a mask where texts are packed: a query sees the keys of its own text, if
    `causal` its past.

    Query and key texts are as many, and belong together one by one.
    """

    queries: Packing
    keys: Packing
    causal: bool = False

    def dense(self) -> Bool[Tensor, "M 1 _ S"]:
        """Return the mask of the spread batch."""
        visible = ~self.keys.padding()[:, None, None, :]
        if not self.causal:
            return visible
        ones = torch.ones(
            self.queries.longest,
            self.keys.longest,
            dtype=torch.bool,
            device=visible.device,
        )
        return visible & ones.tril()


def packed_attention(
    query: Float[Tensor, "1 H T K"],
    key: Float[Tensor, "1 H S K"],
    value: Float[Tensor, "1 H S K"],
    mask: PackedMask,
    dropout: float = 0.0,
) -> Float[Tensor, "1 H T K"]:
    """`weft.model.attention.attention` of packed texts, T tokens of queries and S of keys."""
    rows = [x.transpose(1, 2) for x in (query, key, value)]  # (1, N, H, K)
    if dropout == 0 and varlen.fits(*rows):
        bounds, longest = (
            (mask.queries.bounds, mask.keys.bounds),
            (mask.queries.longest, mask.keys.longest),
        )
        context = varlen.attention(
            rows[0][0], rows[1][0], rows[2][0], bounds, longest, mask.causal
        )
        return context[None].transpose(1, 2)
    sides = (mask.queries, mask.keys, mask.keys)
    spread = [
        side.spread(x).transpose(1, 2) for side, x in zip(sides, rows, strict=True)
    ]
    context = F.scaled_dot_product_attention(
        spread[0], spread[1], spread[2], mask.dense(), dropout
    )
    return mask.queries.gather(context.transpose(1, 2)).transpose(1, 2)
