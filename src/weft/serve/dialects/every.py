"""The dialects of the server, in the order in which their routes are tried."""

from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.openai import openai


def every_dialect() -> list[Dialect]:
    """Return the dialects."""
    return [openai()]
