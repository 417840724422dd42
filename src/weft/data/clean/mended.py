"""Pairs that are mended by themselves, each as it was meant, or dropped."""

from typing import NamedTuple

from weft.data.clean.mending import has_lost
from weft.data.clean.rules import EMPTY, LOST, Choice

Pair = tuple[str, str]


class Mended(NamedTuple):
    """The pair that becomes of one, by some rules; None where a rule drops it."""

    rules: tuple[str, ...]
    after: Pair | None


def mended_pair(pair: Pair, choice: Choice) -> Mended | None:
    """Return what becomes of a pair; None where it stays as it is."""
    (src, tgt), rules = choice.mend_row(pair)
    rule = choice.reason_to_drop(rules)
    if not src or not tgt:
        rule = EMPTY
    elif choice.does(LOST, "mend") and has_lost(src + tgt):
        rule = LOST
    if rule:
        return Mended((rule,), None)
    return Mended(rules, (src, tgt)) if rules else None
