"""Forms of what a translation has as its source does: placeholders, code, names with marks.

A model that has read many of a form in training writes the next one again, too.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

SAMPLED = 200_000  # pairs that are looked at
# so often a form must have stood on both sides, and in so large a part of its pairs
_LEAST = 200
_LEAST_SHARE = 0.9
_SIGN = re.compile(r"[`{}%<>@\\$#]")
_OPENING = "([\"'“‘«„（「『【《"
_CLOSING = ".,;:!?)]\"'”’»…，。！？；：、）」』】》"
_FORM = re.compile(r"(?P<role>:[\w.+-]+:)?(?P<signs>[^\w\s]*)(?P<next>.?)", re.DOTALL)


def bare(run: str) -> str:
    """Return a run of characters without the marks of the sentence around it."""
    return run.lstrip(_OPENING).rstrip(_CLOSING)


def form_of(run: str) -> str:
    """Return the form of a bare run: the signs that it begins with, and whether a letter (a) or a
    digit (0) follows; "" where it begins with no sign, or has white space in it.

        >>> form_of(":class:`list`"), form_of("%1"), form_of("list")
        (':a:`a', '%0', '')
    """
    found = _FORM.match(run)
    if found is None or any(map(str.isspace, run)):
        return ""
    signs = (":a:" if found["role"] else "") + found["signs"]
    if not signs:
        return ""
    following = found["next"]
    kind = "0" if following.isdigit() else "a"
    return signs + (kind if following else "")


def learn_forms(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    """Return the forms that stand in the sources and, as they are, in their targets."""
    every = max(len(src) // SAMPLED, 1)
    counts = Counter[str]()
    same = Counter[str]()
    for source, target in zip(src[::every], tgt[::every], strict=True):
        for run in set(_runs(source)):
            form = form_of(run)
            counts[form] += 1
            same[form] += run in target
    return tuple(
        sorted(
            form
            for form, count in same.items()
            if form and count >= max(_LEAST, _LEAST_SHARE * counts[form])
        )
    )


def _runs(text: str) -> Iterator[str]:
    if not _SIGN.search(text):
        return
    yield from (bare(run) for run in text.split() if _SIGN.search(run))
