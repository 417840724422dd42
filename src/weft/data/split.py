"""The split of pairs into training and held-out parts: a repeated sentence is never in both."""

import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain

from weft.errors import UsageError

MIN_PAIRS = 200  # below this nothing is held out
# a group may fill a twentieth of a held-out part; a quarter if it would otherwise stay too small
GROUP_DIVISORS = (20, 4)
Group = list[int]  # the pairs that stay together


class _FoldTable(dict[int, str | None]):
    """A table of characters, filled on demand: punctuation becomes a space, invisible format
    characters go.
    """

    def __missing__(self, code: int) -> str | None:
        letter = chr(code)
        category = unicodedata.category(letter)
        folded: str | None = letter
        if category[0] == "P":
            folded = " "
        elif category == "Cf":
            folded = None
        self[code] = folded
        return folded


_FOLD = _FoldTable()
# the same for ASCII, in which nothing goes: a byte for each byte
_ASCII = "".join(map(chr, range(128)))
_ASCII_TABLE = bytes.maketrans(
    _ASCII.encode(), _ASCII.lower().translate(_FOLD).encode()
)


def fold(text: str) -> str:
    """Return the form by which texts are compared for duplicates: NFC, case folded, punctuation and
    white space as single spaces.

    Text of punctuation alone keeps it, so that "?" and "!" stay different.
    """
    if text.isascii():
        folded = text.lower()
        plain = text.encode().translate(_ASCII_TABLE).decode()
        return " ".join(plain.split() or folded.split())
    folded = unicodedata.normalize("NFC", text).casefold()
    words = folded.translate(_FOLD).split()
    return " ".join(words or folded.split())


def default_size(num_pairs: int) -> int:
    """Choose how many pairs to hold out: 4 %, at least 20 and at most 1,000."""
    size = max(20, num_pairs // 25)
    return min(1000, size)


def held_out_sizes(
    total: int, dev_size: int | None, test_size: int | None, unit: str
) -> tuple[int, int]:
    """Return how many of all pairs or rows dev and test have; a size of None depends on the total.

    Raises UsageError if nothing would be left to train on.
    """
    default = default_size(total)
    dev_size = default if dev_size is None else dev_size
    test_size = default if test_size is None else test_size
    if dev_size + test_size >= total:
        raise UsageError(
            f"data.dev_size = {dev_size} and data.test_size = {test_size} leave none of {total} {unit} "
            "for training"
        )
    return dev_size, test_size


def hold_out(
    src: Sequence[str],
    tgt: Sequence[str],
    dev_size: int,
    test_size: int,
    seed: int,
    made: Sequence[int] = (),
    is_one: bool = False,
) -> tuple[list[int], list[int], list[int]]:
    """Divide the pairs: return the indices of training, dev and test pairs, each in rising order.

    Pairs that share a folded source or target, directly or through others, form a group that stays
    together. Groups are taken in the order of a keyed hash of their text, so the same pairs are
    held out whatever the order of the file. A group too large for its part stays in training; a
    part may stay below its size.

    Pairs that are `made` count for nothing in this: none is held out, and those of a group that is
    are in no part. With `is_one`, a text on one side is the same as on the other.
    """
    sources = list(map(fold, src))
    targets = list(map(fold, tgt))
    roots = _roots(sources, targets, is_one)
    members: dict[int, Group] = {}
    for index, root in enumerate(roots):
        if not (made and made[index]):
            members.setdefault(root, []).append(index)
    pairs = zip(sources, targets, strict=True)
    keys = [keyed_hash(seed, *pair) for pair in pairs]
    order = sorted(members.values(), key=lambda group: min(keys[i] for i in group))
    test, order = _take(order, test_size)
    dev, order = _take(order, dev_size)
    held_out = {roots[i] for i in chain(dev, test)}
    train = [i for i, root in enumerate(roots) if root not in held_out]
    return train, dev, test


def _roots(
    sources: Sequence[str], targets: Sequence[str], is_one: bool = False
) -> list[int]:
    """Find for each pair the smallest index in its connected component (union-find with path
    halving).
    """
    parent = list(range(len(sources)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[str, int] = {}
    for side in (sources, targets):
        if not is_one:
            first = {}
        for index, text in enumerate(side):
            other = first.setdefault(text, index)
            if other != index:
                smaller, larger = sorted((find(other), find(index)))
                parent[larger] = smaller
    return [find(i) for i in range(len(sources))]


def keyed_hash(seed: int, *folded: str) -> bytes:
    """Return a place in an order that seed and text alone decide."""
    text = "\n".join((str(seed), *folded))
    content = text.encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).digest()


def hash_row(row: Sequence[str]) -> bytes:
    """Hash one row as it stands, with the lengths of its texts, so that no text can stand for a
    border between two.
    """
    digest = blake2b(digest_size=16)
    for text in row:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.digest()


def _take(order: list[Group], size: int) -> tuple[list[int], list[Group]]:
    """Fill one part with groups from the front; return its pairs, and the groups that are left."""
    taken: list[int] = []
    for divisor in GROUP_DIVISORS:
        largest = max(1, size // divisor)
        left = []
        for group in order:
            room = size - len(taken)
            if len(group) <= min(largest, room):
                taken += group
            else:
                left.append(group)
        order = left
    return sorted(taken), order
