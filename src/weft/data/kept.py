"""Forms of what a translation has as its source does: placeholders, code, names with marks.

A model that has read many of a form in training writes the next one again, too.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

SAMPLED = 200_000  # pairs that are looked at
# so often a form must have stood on both sides, and in so large a part of its pairs
_LEAST = 200
_LEAST_SHARE = 0.9
_RUN = re.compile(r"\S+")
_ADDRESS = re.compile(r"\w+://")
_SIGN = re.compile(r"[`{}%<>@\\$#]|://")
_OPENING = "([\"'“‘«„（「『【《"
_CLOSING = ".,;:!?)]\"'”’»…，。！？；：、）」』】》"
_FORM = re.compile(r"(?P<role>:[\w.+-]+:)?(?P<signs>([^\w\s])\3*+)", re.DOTALL)


def bare(run: str) -> str:
    """Return a run of characters without the marks of the sentence around it."""
    return run.lstrip(_OPENING).rstrip(_CLOSING)


def form_of(run: str) -> str:
    """Return the form of a bare run: the sign that it begins with, as often as it stands there, and
    whether a letter (a) or a digit (0) is next. An address of the web has a form of its own.

    "" where it begins with no sign, or has white space in it and does not end as it begins.

        >>> form_of(":class:`list`"), form_of("``-x``"), form_of("%1"), form_of("list")
        (':a:`a', '``a', '%0', '')
    """
    if _ADDRESS.match(run):
        return "://"
    found = _FORM.match(run)
    if found is None:
        return ""
    signs = found["signs"]
    is_closed = len(run) > 2 * len(signs) and run.endswith(signs)
    if any(map(str.isspace, run)) and not is_closed:
        return ""
    following = next(filter(str.isalnum, run[found.end() :]), "")
    kind = "0" if following.isdigit() else "a"
    is_all = not following and not is_closed
    if is_all:
        kind = ""
    role = ":a:" if found["role"] else ""
    return role + signs + kind


def places_of(text: str, forms: Collection[str]) -> dict[int, int]:
    """Return where each run of a text that has one of these forms begins, and where it ends.

    A run with white space in it is found as far as its first.
    """
    places = {}
    if forms and _SIGN.search(text):
        for found in _RUN.finditer(text):
            run = bare(found[0])
            if form_of(run) in forms:
                start = found.start() + found[0].index(run)
                places[start] = start + len(run)
    return places


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
