"""Random numbers of samples, which depend on the seed, the text, the sample and the place alone.

They are counter-based (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3"): a number
is computed from what it belongs to, and no state goes from one to the next. So it is the same in
any batch, on any machine and in any language that has SHA-256:

    the first 53 bits of SHA-256("SEED SAMPLE PLACE ID ID ...") / 2^53

The text in parentheses is ASCII, its whole numbers are decimal: SEED that of the call, SAMPLE and
PLACE counted from 0, and the ids that the model reads: of a source, with eos at their end; or of
the text that is continued, with the symbol that it begins with.
"""

from collections.abc import Sequence
from hashlib import sha256

_BITS = 53  # of a double's fraction


class Draws:
    """The numbers of one sample of a text, one for each place."""

    def __init__(self, seed: int, ids: Sequence[int], sample: int = 0) -> None:
        self.seed = seed
        self.sample = sample
        self._ids = " ".join(map(str, ids))

    def at(self, place: int) -> float:
        """Return the number of a place, from [0, 1)."""
        text = f"{self.seed} {self.sample} {place} {self._ids}"
        digest = sha256(text.encode()).digest()
        first_64_bits = int.from_bytes(digest[:8])
        first_bits = first_64_bits >> (64 - _BITS)
        return first_bits / 2**_BITS
