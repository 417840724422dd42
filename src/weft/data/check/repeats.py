"""Rows that say the same again, exactly or but for a word.

Two texts that differ in one word, put in, left out, exchanged or moved, are alike once the right
word of each is left out (the deletion neighbourhood of Mor and Fraenkel 1982, "A hash code method
for detecting and correcting spelling errors", over words instead of letters). So each text is
hashed as it is and without each of its words in turn, and texts that share such a hash are near
each other; no two need be compared.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from weft.data.check.finding import NUM_EXAMPLES
from weft.data.check.words import GOLDEN, Hashes, Ids, Words, mixed

Near = dict[int, int]  # from a text to an earlier one that is like it

# in a shorter text one word is too much of it for the rest to say "the same again"
MIN_WORDS = 8
_LONG_WORDS = 40  # from here on two texts may differ in more words
_SHINGLE = 4  # words
_NUM_KEYS = 6  # smallest hashes of shingles that long texts are looked up by
_ALIKE = 0.8  # of the words of two long texts together, those that they share
_BASE = GOLDEN
# it has one, as it is odd
_INVERSE = np.uint64(pow(_BASE, -1, 2**64))


class Repeats(NamedTuple):
    """Rows that repeat earlier ones, in their order, and for each the first such."""

    rows: list[int]
    first: list[int]

    def shown(self) -> Near:
        """Return those that a finding shows."""
        some = zip(self.rows[:NUM_EXAMPLES], self.first, strict=False)
        return dict(some)


def repeats(keys: Iterable[object]) -> Repeats:
    """Find the rows whose key has occurred before, and where it occurred first."""
    first: dict[object, int] = {}
    again, before = [], []
    for index, key in enumerate(keys):
        other = first.setdefault(key, index)
        if other != index:
            again.append(index)
            before.append(other)
    return Repeats(again, before)


def near_repeats(words: Words) -> Near:
    """Find the texts that differ from an earlier one in a word (of long texts, in a few).

    Returns for each such text the earlier one. Texts that are the same after folding are left to
    `repeats`.
    """
    short = _near_short(words)
    return {**_near_long(words), **short}


def _near_short(words: Words) -> Near:
    """Find near repeats among texts of 8 to 39 words: two of them share a hash with one word left
    out.
    """
    counts = words.counts
    is_chosen = (counts >= MIN_WORDS) & (counts < _LONG_WORDS)
    chosen = np.flatnonzero(is_chosen)
    if len(chosen) < 2:
        return {}
    intact, shortened = _neighbourhoods(words, chosen)
    keys = np.concatenate([intact, shortened])
    owners_of_shortened = np.repeat(chosen, counts[chosen])
    owners = np.concatenate([chosen, owners_of_shortened])
    order = np.lexsort((owners, keys))
    keys = keys[order]
    owners = owners[order]

    # of each run of equal keys the text that comes first
    position = np.arange(len(keys))
    position[1:][keys[1:] == keys[:-1]] = 0
    run_start = np.maximum.accumulate(position)
    first = owners[run_start]

    text_hash = np.zeros(len(counts), np.uint64)
    text_hash[chosen] = intact
    is_same = text_hash[first] == text_hash[owners]
    is_near = (first != owners) & ~is_same
    later_texts = owners[is_near].tolist()
    earlier_texts = first[is_near].tolist()
    near: Near = {}
    for later, earlier in zip(later_texts, earlier_texts, strict=True):
        earliest = near.get(later, earlier)
        near[later] = min(earlier, earliest)
    return near


def _neighbourhoods(words: Words, chosen: Ids) -> tuple[Hashes, Hashes]:
    """Hash each chosen text as it is, and without each of its words in turn; the order of words
    counts.
    """
    is_chosen = np.zeros(len(words.counts), np.bool_)
    is_chosen[chosen] = True
    is_of_chosen = np.repeat(is_chosen, words.counts)
    ids = words.ids[is_of_chosen]
    counts = words.counts[chosen]
    ends = np.cumsum(counts)
    starts = ends - counts
    start_of_own = np.repeat(starts, counts)
    place = np.arange(len(ids)) - start_of_own
    longest = int(counts.max())
    bases = np.full(longest + 1, _BASE, np.uint64)
    powers = np.cumprod(bases)

    # the text is the sum of its words' hashes times a power for the place
    terms = mixed(ids) * powers[place]
    running = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(terms, out=running[1:])
    total = running[ends] - running[starts]
    before = running[:-1] - running[start_of_own]
    after = np.repeat(total, counts) - before
    after -= terms

    # what follows the word moves one place forward
    shortened = before + after * _INVERSE
    return mixed(total, 1), mixed(shortened, 1)


def _near_long(words: Words) -> Near:
    """Find near repeats among texts of 40 words or more: they share rare shingles and four fifths
    of their words.

    Shingles are looked up by the smallest of their hashes (Broder 1997, "On the resemblance and
    containment of documents").
    """
    chosen = np.flatnonzero(words.counts >= _LONG_WORDS)
    if len(chosen) < 2:
        return {}
    shingles = _shingles(mixed(words.ids))
    first: dict[int, int] = {}
    near: Near = {}
    for text in chosen.tolist():
        start = words.starts[text]
        end = words.starts[text + 1] - _SHINGLE + 1
        smallest_first = np.partition(shingles[start:end], _NUM_KEYS - 1)
        keys = smallest_first[:_NUM_KEYS].tolist()
        shared = Counter(first[key] for key in keys if key in first)
        for other in sorted(shared):
            if shared[other] == 1:
                continue  # a common phrase
            if words.folded[text] == words.folded[other]:
                continue
            if _likeness(words, text, other) >= _ALIKE:
                near[text] = other
                break
        for key in keys:
            first.setdefault(key, text)
    return near


def _shingles(hashed: Hashes) -> Hashes:
    """Hash the four words from each place on; the last three places of a text reach into the next
    one, and are not used.
    """
    shingles = hashed.copy()
    for place in range(1, _SHINGLE):
        begun = shingles[:-place]
        begun[:] = mixed(begun ^ hashed[place:])
    return shingles


def _likeness(words: Words, a: int, b: int) -> float:
    """Divide the number of words that two texts share by the number that either has (Jaccard)."""
    ids_a = _ids(words, a)
    ids_b = _ids(words, b)
    shared = len(ids_a & ids_b)
    return shared / len(ids_a | ids_b)


def _ids(words: Words, text: int) -> set[int]:
    start = words.starts[text]
    end = words.starts[text + 1]
    return set(words.ids[start:end].tolist())


def conflicts(keys: Sequence[object], values: Sequence[object]) -> list[int]:
    """Find the rows whose key has occurred before with another value."""
    first: dict[object, object] = {}
    rows = []
    for row, key in enumerate(keys):
        value = values[row]
        if first.setdefault(key, value) != value:
            rows.append(row)
    return rows
