"""Which pairs train, which are held out: repeated sentences never stand on both sides of the
line.
"""

import unicodedata
from collections.abc import Sequence
from hashlib import blake2b

MIN_PAIRS = 200  # below this nothing is held out
_LARGEST_SHARES = (
    20,
    4,
)  # a group may fill a twentieth of a held-out part; a quarter where else it stays unfilled


class _FoldTable(dict[int, str | None]):
    """Per character: punctuation becomes a space, invisible format characters go; filled on
    demand.
    """

    def __missing__(self, code: int) -> str | None:
        category = unicodedata.category(chr(code))
        folded = " " if category[0] == "P" else None if category == "Cf" else chr(code)
        self[code] = folded
        return folded


_FOLD = _FoldTable()


def fold(text: str) -> str:
    """Return the text as duplicates are compared: NFC, case folded, punctuation and white space as
    single spaces.

    Text of punctuation alone keeps it, so that "?" and "!" stay different.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    folded = text.casefold()
    return " ".join(folded.translate(_FOLD).split()) or " ".join(folded.split())


def default_size(num_pairs: int) -> int:
    """Held-out pairs if nothing is asked: 4 %, at least 20 and at most 1,000."""
    return min(1000, max(20, num_pairs // 25))


def hold_out(
    src: Sequence[str], tgt: Sequence[str], dev_size: int, test_size: int, seed: int
) -> tuple[list[int], list[int], list[int]]:
    """Indices of training, dev and test pairs, each in rising order.

    Pairs that share a folded source or target, directly or through others, form a group that stays
    together. Groups are taken in the order of a keyed hash of their text, so the same pairs are
    held out whatever the order of the file. A group too large for its part stays in training; a
    part may stay below its size.
    """
    sources, targets = list(map(fold, src)), list(map(fold, tgt))
    roots = _group(sources, targets)
    members: dict[int, list[int]] = {}
    for index, root in enumerate(roots):
        members.setdefault(root, []).append(index)
    keys = [keyed_hash(seed, *pair) for pair in zip(sources, targets, strict=True)]
    order = sorted(members.values(), key=lambda group: min(keys[i] for i in group))
    test, order = _take(order, test_size)
    dev, order = _take(order, dev_size)
    return sorted(i for group in order for i in group), dev, test


def _group(sources: Sequence[str], targets: Sequence[str]) -> list[int]:
    """For each pair the smallest index in its connected component (union-find with path
    halving).
    """
    parent = list(range(len(sources)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for side in (sources, targets):
        first: dict[str, int] = {}
        for index, text in enumerate(side):
            other = first.setdefault(text, index)
            if other != index:
                a, b = find(other), find(index)
                parent[max(a, b)] = min(a, b)
    return [find(i) for i in range(len(sources))]


def keyed_hash(seed: int, *folded: str) -> bytes:
    """Return a place in an order that seed and text alone decide."""
    text = "\n".join((str(seed), *folded))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _take(order: list[list[int]], size: int) -> tuple[list[int], list[list[int]]]:
    """Fill one part with groups from the front; what does not fit is left for the others."""
    taken: list[int] = []
    for share in _LARGEST_SHARES:
        largest, left = max(1, size // share), []
        for group in order:
            if len(group) <= min(largest, size - len(taken)):
                taken += group
            else:
                left.append(group)
        order = left
    return sorted(taken), order
