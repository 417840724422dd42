"""A model that was written in another form: which array is which, and which id is which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.ship.opened import Floats, Row
from weft.ship.tensors import Tensor
from weft.ship.tokenizers.ids import IdMap

# the largest difference of logits that rounding alone makes in float32
TOLERANCE = 1e-4
# types of weights without a scale of their own
_AS_THEY_STAND = ("float32", "float16")
# added to the logits of ids that are never written
NEVER = -1e9


@dataclass(frozen=True)
class Written:
    """A model in another form.

    `tensors` are all arrays of its files. `ids` say where Weft's ids stand there; around those of a
    text its tokenizer puts `before` and `after`, in its own numbers. `form` names the class or
    format, `precision` the type of its weights. A `loose` array, named as there, cannot be mapped
    back to the last bit, but to this difference; `why_loose` says why. In float32 the logits may
    differ by the `tolerance`, which rounding makes; where the program computes something else, if
    only a little, `approximate` says what, and logits and searches are measured alone. The logits
    of `banned` ids of the target, in Weft's numbers, are so low there that none is ever written.
    """

    form: str
    tensors: Sequence[Tensor]
    ids: IdMap
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    precision: str = "float32"
    loose: Mapping[str, float] = field(default_factory=dict)
    why_loose: str = ""
    tolerance: float = TOLERANCE
    approximate: str = ""
    banned: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Return whether what is computed must be equal but for rounding: weights that are computed
        with as they stand there, and the same function of them.
        """
        return self.precision in _AS_THEY_STAND and not self.approximate

    @property
    def is_rounded(self) -> bool:
        """Return whether arrays have lost bits to a precision with fewer of them."""
        return self.precision != "float32" and bool(self.loose)

    def ids_of_source(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return a source's ids in the numbers of this form."""
        return tuple(self.ids.to("src", ids).tolist())

    def to_target(self, row: Row) -> Row:
        """Return a row of Weft's ids in the numbers of this form."""
        tgt_in = self.ids.to("tgt", row.tgt_in).tolist()
        return Row(self.ids_of_source(row.ids), tuple(tgt_in))

    def own_logits(self, logits: Floats) -> Floats:
        """Return logits of Weft's ids alone, in their order; of a classifier they are as they
        are.
        """
        if logits.ndim == 1:
            return logits
        return np.take(logits, self.ids.tgt, -1)

    def without_banned(self, logits: Floats) -> Floats:
        """Return the logits of all ids of Weft's but the banned ones."""
        banned = list(self.banned)
        return np.delete(logits, banned, -1) if banned else logits

    def lets_through(self, logits: Floats) -> bool:
        """Return whether a banned id could be written, by the logits of Weft's ids."""
        banned = logits[..., list(self.banned)]
        return bool((banned > NEVER / 2).any())
