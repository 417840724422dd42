"""Letters that a text goes on with, as a limit on its tokens: every id that can be part of them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.decoder import Tokens


class Spellings:
    """The bytes of every ordinary id of a tokenizer, in their order."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Look at all ids: a few milliseconds for each thousand."""
        self.vocab_size = tokenizer.vocab_size
        self.of_id: dict[int, bytes] = {}
        pairs = []
        for i in range(EOS_ID + 1, self.vocab_size):
            letters = tokenizer.spell([i], begins=False)
            self.of_id[i] = letters
            pairs.append((letters, i))
        pairs.sort()
        self._letters = [letters for letters, _ in pairs]
        self._ids = [i for _, i in pairs]

    def part_of(self, letters: bytes) -> list[int]:
        """List the ids that a text with these letters ahead can go on with.

        They say some of them, the first ones, or all and perhaps more.
        """
        ids = self._exactly_from(letters, goes_on=True)
        for end in range(1, len(letters)):
            ids += self._exactly_from(letters[:end], goes_on=False)
        return ids

    def _exactly_from(self, letters: bytes, goes_on: bool) -> list[int]:
        """List the ids that are these letters, or begin with them where they may go on."""
        first = bisect_left(self._letters, letters)
        last = first
        for other in islice(self._letters, first, None):
            is_part = other.startswith(letters) if goes_on else other == letters
            if not is_part:
                break
            last += 1
        return self._ids[first:last]


@dataclass(frozen=True)
class LetterStem:
    """The letters that an output goes on with after its prefix."""

    letters: bytes
    spellings: Spellings
    _known: dict[int, Tokens] = field(default_factory=dict, compare=False)

    def banned(self, tokens: Sequence[int]) -> Tokens | None:
        """Return the ids that cannot come after these tokens; None once the letters are said."""
        num_said = 0
        for token in tokens:
            num_said += len(self.spellings.of_id.get(token, b""))
            if num_said >= len(self.letters):
                return None
        if num_said not in self._known:
            possible = self.spellings.part_of(self.letters[num_said:])
            is_banned = np.ones(self.spellings.vocab_size, np.bool_)
            is_banned[possible] = False
            ids = np.flatnonzero(is_banned)
            self._known[num_said] = ids.astype(np.int32)
        return self._known[num_said]

    def behind(self, token: int) -> "LetterStem | None":
        """Return what is left of the letters behind a token; None for nothing."""
        rest = self.letters[len(self.spellings.of_id.get(token, b"")) :]
        return LetterStem(rest, self.spellings) if rest else None

    @cached_property
    def possible(self) -> list[int]:
        """List every id that may be part of the letters."""
        return list(dict.fromkeys(self._possible()))

    def _possible(self) -> Iterator[int]:
        for place in range(len(self.letters)):
            yield from self.spellings.part_of(self.letters[place:])
