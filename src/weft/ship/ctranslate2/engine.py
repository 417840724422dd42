"""A translator that CTranslate2 has loaded: it takes and gives tokens by their names.

Shapes: V vocabulary, T target ids.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.console import stages
from weft.ship.opened import Floats, Row, Wanted

# a row that is forced ends with an id that it does not have, and is never cut
_FORCED = {"beam_size": 1, "min_decoding_length": 0, "max_input_length": 0}


class TranslatingEngine:
    """A loaded translator, and the names of the ids of its sides; one that `adds_eos` puts the end
    behind a source by itself.
    """

    def __init__(
        self,
        translator: Any,
        src: Sequence[str],
        tgt: Sequence[str],
        adds_eos: bool = False,
    ) -> None:
        self.translator = translator
        self.src = src
        self.tgt = tgt
        self.num_added = 1 if adds_eos else 0
        self.id_of = {name: number for number, name in enumerate(tgt)}

    def logits(self, row: Row) -> Floats:
        """Return the logits after each id that the decoder has read (T, V)."""
        written = [self.tgt[number] for number in row.tgt_in[1:]]
        (found,) = self.translator.translate_batch(
            [self.tokens(row.ids)],
            target_prefix=[written],
            max_decoding_length=len(written) + 1,
            end_token=self.tgt[0],
            return_logits_vocab=True,
            **_FORCED,
        )
        steps = found.logits[0]
        return np.stack([np.asarray(step) for step in steps])

    def search(
        self, rows: Sequence[Wanted], beam_size: int, **settings: Any
    ) -> list[list[int]]:
        """Search as `Opened.search` does; `settings` may keep ids from being written."""
        return [
            self.translated(
                row.ids,
                beam_size=beam_size,
                length_penalty=0,
                min_decoding_length=0,
                max_decoding_length=row.limit,
                **settings,
            )
            for row in stages.each(rows, "rows")
        ]

    def translated(self, ids: Sequence[int], **settings: Any) -> list[int]:
        """Return the ids of the best translation."""
        tokens = [self.tokens(ids)]
        (found,) = self.translator.translate_batch(
            tokens, max_input_length=0, **settings
        )
        return [self.id_of[name] for name in found.hypotheses[0]]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the names of a source's ids, as many as are given to the translator."""
        end = len(ids) - self.num_added
        return [self.src[number] for number in ids[:end]]
