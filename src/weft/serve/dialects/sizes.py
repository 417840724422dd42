"""The limits of the texts of a request."""

from collections.abc import Sequence

from weft.serve.limits import Limits
from weft.serve.refusals import TooLarge


class TooLong(TooLarge):
    """A text or a list above a limit; both in the unit that the limit counts."""

    def __init__(self, what: str, size: int, limit: int, param: str) -> None:
        """Say what is too long, how long it is and may be."""
        super().__init__(f"{what}: {size:,}; at most {limit:,} are taken", param)
        self.size = size
        self.limit = limit


def check_size(texts: Sequence[str], limits: Limits, param: str) -> None:
    """Raise TooLong where the texts of a field are above the limits."""
    sizes = [len(text) for text in texts]
    rows = (
        ("texts", len(sizes), limits.max_texts),
        ("characters of a text", max(sizes, default=0), limits.max_text),
        ("characters in all", sum(sizes), limits.max_characters),
    )
    for what, size, limit in rows:
        if size > limit:
            raise TooLong(what, size, limit, param)
