"""Rows that say the same again, exactly or but for a word.

Two texts that differ in one word, put in, left out, exchanged or moved, are alike once the right
word of each is left out (the deletion neighbourhood of Mor and Fraenkel 1982, "A hash code method
for detecting and correcting spelling errors", over words instead of letters). So each text is
hashed as it is and without each of its words in turn, and texts that share such a hash are near
each other; no two need be compared.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from weft.data.check.words import Hashes, Ids, Words, mixed

# in a shorter text one word is too much of it for the rest to say "the same again"
MIN_WORDS = 8
_LONG_WORDS = 40  # from here on two texts may differ in more words
_SHINGLE = 4  # words
_NUM_KEYS = 6  # smallest hashes of shingles that long texts are looked up by
_ALIKE = 0.8  # of the words of two long texts together, those that they share
_BASE = 0x9E3779B97F4A7C15 | 1  # odd, so that it has an inverse modulo 2^64
_INVERSE = np.uint64(pow(_BASE, -1, 2**64))


def repeats(keys: Iterable[object]) -> tuple[list[int], list[int]]:
    """Rows whose key has occurred before, and for each of them the row where it occurred first."""
    first: dict[object, int] = {}
    again, before = [], []
    for index, key in enumerate(keys):
        other = first.setdefault(key, index)
        if other != index:
            again.append(index)
            before.append(other)
    return again, before


def near_repeats(words: Words) -> dict[int, int]:
    """Texts that differ from an earlier one in a word (of long texts, in a few): each with one such
    earlier text.

    Digits aside a text that is the same is none: that is for `repeats` to find.
    """
    short = _near_short(words)
    return {**_near_long(words), **short}


def _near_short(words: Words) -> dict[int, int]:
    """Texts of 8 to 39 words that share a hash with one word left out."""
    chosen = np.flatnonzero((words.counts >= MIN_WORDS) & (words.counts < _LONG_WORDS))
    if len(chosen) < 2:
        return {}
    whole, without = _neighbourhoods(words, chosen)
    owners = np.concatenate([chosen, np.repeat(chosen, words.counts[chosen])])
    keys = np.concatenate([whole, without])
    order = np.lexsort((owners, keys))
    keys, owners = keys[order], owners[order]
    new = np.concatenate([[True], keys[1:] != keys[:-1]])
    first = owners[np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))]
    text_hash = np.zeros(len(words.counts), np.uint64)
    text_hash[chosen] = whole
    near = (first != owners) & (text_hash[first] != text_hash[owners])
    found: dict[int, int] = {}
    for later, earlier in zip(owners[near].tolist(), first[near].tolist(), strict=True):
        found[later] = min(earlier, found.get(later, earlier))
    return found


def _neighbourhoods(words: Words, chosen: Ids) -> tuple[Hashes, Hashes]:
    """Return a hash of each chosen text, and one of it without each of its words; order of words
    counts.
    """
    taken = np.zeros(len(words.counts), np.bool_)
    taken[chosen] = True
    ids = words.ids[np.repeat(taken, words.counts)]
    counts = words.counts[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.arange(len(ids)) - np.repeat(starts, counts)
    powers = np.cumprod(np.full(int(counts.max()) + 1, np.uint64(_BASE)))
    # the text is the sum of its words' hashes times a power for the place
    terms = mixed(ids) * powers[place]
    running = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
    before = running[:-1] - np.repeat(running[starts], counts)
    whole = running[starts + counts] - running[starts]
    after = np.repeat(whole, counts) - before - terms
    # what follows the word moves one place forward
    return mixed(whole, 1), mixed(before + after * _INVERSE, 1)


def _near_long(words: Words) -> dict[int, int]:
    """Texts of 40 words or more that share a rare shingle and four fifths of their words.

    Shingles are looked up by the smallest of their hashes (Broder 1997, "On the resemblance and
    containment of documents").
    """
    chosen = np.flatnonzero(words.counts >= _LONG_WORDS)
    if len(chosen) < 2:
        return {}
    shingles = _shingles(mixed(words.ids))
    first: dict[int, int] = {}
    found: dict[int, int] = {}
    for text in chosen.tolist():
        own = shingles[words.starts[text] : words.starts[text + 1] - _SHINGLE + 1]
        keys = np.partition(own, _NUM_KEYS - 1)[:_NUM_KEYS].tolist()
        shared = Counter(first[key] for key in keys if key in first)
        # one alone is a common phrase
        for other in sorted(other for other, times in shared.items() if times > 1):
            if (
                _likeness(words, text, other) >= _ALIKE
                and words.folded[text] != words.folded[other]
            ):
                found[text] = other
                break
        for key in keys:
            first.setdefault(key, text)
    return found


def _shingles(hashed: Hashes) -> Hashes:
    """Return a hash of the four words from each place on; those that reach into the next text are
    not used.
    """
    found = hashed.copy()
    for place in range(1, _SHINGLE):
        found[:-place] = mixed(found[:-place] ^ hashed[place:])
    return found


def _likeness(words: Words, a: int, b: int) -> float:
    """Words that two texts share, by all that they have (Jaccard)."""
    one, two = (
        set(words.ids[words.starts[i] : words.starts[i + 1]].tolist()) for i in (a, b)
    )
    return len(one & two) / len(one | two)


def conflicts(keys: Sequence[object], values: Sequence[object]) -> list[int]:
    """Rows whose key has occurred before with another value."""
    first: dict[object, object] = {}
    return [
        i
        for i, (key, value) in enumerate(zip(keys, values, strict=True))
        if first.setdefault(key, value) != value
    ]
