"""Models in use that can be looked into."""

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import UsageError


class LooksInside:
    """A model that shows how it processes a text.

    `look_inside` does it for the folder that the model was loaded from; `weft.load` sets it.
    """

    look_inside: Callable[..., Any] | None = None

    def inspect(
        self, text: str | Sequence[str], beam_size: int | None = None, **limits: int
    ) -> Any:
        """Run the model on a text and return all that it did, a `weft.Inspection`: attention,
        shares, what each part would say, logits, as arrays with named axes. Of a list of texts it
        is a `weft.Inspections`, a sequence of these.

        `beam_size` is that of a translation's search, in the place of the model's own. `limits`
        bound its size: `tokens` of the text (128), `tgt_tokens` of the translation (512),
        `dimensions` of each vector (512), `alternatives` at a place (5), `choices` with their
        logits (50), `nearest` tokens (5), `labels` (5). A text of several sentences that are
        translated one by one is looked at in its first one.

        Raises UsageError for an empty text or list, for a limit below 1 or of another name, and for
        a model that `weft.load` did not give, such as an ensemble.
        """
        if self.look_inside is None:
            raise UsageError(
                "only a model that weft.load gave can be inspected; of an ensemble, inspect each"
            )
        return self.look_inside(text, beam_size, **limits)
