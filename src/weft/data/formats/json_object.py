"""A JSON object of a line, for every format that has one.

A reader of pairs imports it, so it imports neither the registry nor what imports that.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from weft.errors import DataError

_MOST_CHARS = 40  # of a key that a message shows


def parse_object(where: str, line: str) -> dict[str, Any]:
    """Return the JSON object of a line; `where` is its file and number.

    Raises DataError for anything else, and for a key that occurs twice.
    """
    try:
        row = json.loads(line, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: not JSON: {error.msg} at column {error.colno}; write one object a line"
        ) from None
    except (ValueError, RecursionError) as error:
        reason = (
            "nested too deeply"
            if isinstance(error, RecursionError)
            else str(error).split(";", 1)[0]
        )
        raise DataError(f"{where}: JSON that cannot be read: {reason}") from None
    if not isinstance(row, dict):
        raise DataError(
            f"{where}: JSON, but not an object; write one object a line, as JSON Lines has it"
        )
    return row


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    again = first_repeated(key for key, _ in pairs)
    if again is not None:
        raise ValueError(f"the key {again[:_MOST_CHARS]!r} occurs twice in one object")
    return dict(pairs)


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first of the names that stand more than once; None where there is none."""
    for name, count in Counter(names).items():
        if count > 1:
            return name
    return None
