"""The classes of transformers that models of Weft fit, and the choice among them."""

from weft.ship.huggingface.bart_family import Blenderbot, Marian, Pegasus
from weft.ship.huggingface.home import Home
from weft.ship.huggingface.t5gemma import T5Gemma
from weft.ship.source import Source

# in the order in which they are tried
HOMES: tuple[Home, ...] = (
    Blenderbot(),
    Pegasus(),
    Marian(),
    T5Gemma(),
)


def home_of(source: Source) -> Home | None:
    """Return the first class that computes a model; None where none does."""
    for home in HOMES:
        if not list(home.reasons(source)):
            return home
    return None


def why_no_home(source: Source) -> str:
    """Say why no class computes a model, by the one that lacks least; "" where one does."""
    if home_of(source) is not None:
        return ""
    reasons = {home: list(home.reasons(source)) for home in HOMES}
    nearest = min(reasons, key=lambda home: len(reasons[home]))
    return f"the nearest class is {nearest.architecture}, but {'; '.join(reasons[nearest])}"
