"""The numbers in a text."""

import re

Number = tuple[int, re.Match[str]]  # its value, and where it stands

_NUMBER = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)|\d{1,18}")


def numbers_in(text: str) -> list[Number]:
    """Return the numbers in a text, in any script's digits, and where they stand.

    What groups their digits does not count: 1,000 is 1.000.
    """
    matches = _NUMBER.finditer(text)
    return [(_value(match[0]), match) for match in matches]


def _value(number: str) -> int:
    digits = filter(str.isdecimal, number)
    ungrouped = "".join(digits)
    return int(ungrouped)
