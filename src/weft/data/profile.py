"""The profile of a language: how often its text has which n-grams of letters, so far as is worth
keeping.

It holds hashes and counts, no text. Profiles of several models of one language add up.
"""

import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.grams import (
    NO_SCRIPT,
    NUM_KEYS,
    SPACELESS,
    Grams,
    Ints,
    grams_of,
    script_of,
    without_accents,
)
from weft.data.languages import UNKNOWN
from weft.errors import FolderError

Floats = NDArray[np.float64]

MOST_GRAMS = 12_000  # the most frequent, of a text with more
MOST_ROWS = 2 * MOST_GRAMS  # of a profile in a file
_ENOUGH = 400_000  # letters that are read of a text
_ENOUGH_ROWS = 100_000  # of a text with more, evenly spaced ones
_LONG = 1000  # letters of a text of which more may be passed over
_ACCENTLESS = 0.125  # the weight of text without its accents, beside that with them
_FOREIGN = 0.25  # of a side's letters: in fewer, the other side's script is not its own
_FEW = 30.0  # letters that a vocabulary of letters is taken to be learned from
_UNSEEN = 0.01  # the share of letters that a vocabulary has not
_STEPS = 8  # levels of counts to one that is twice as high
_LAST_GAP = 255  # between keys; a wider one is written in several rows


def _named(name: str) -> int:
    return zlib.crc32(name.encode()) % NUM_KEYS


# Keys of what is counted besides n-grams: letters, spaces included, and different ones among them.
ALL_LETTERS = _named("letters")
DIFFERENT_LETTERS = _named("different letters")
_FACTS = (ALL_LETTERS, DIFFERENT_LETTERS)


def key_of_script(script: str) -> int:
    """Return the key of the number of letters of a script."""
    return _named(f"script {script}")


@dataclass(frozen=True)
class Profile:
    """Counts by key, in the order of the keys; what is not among them was hardly ever seen."""

    keys: Ints
    counts: Floats

    def joined(self, other: "Profile | None") -> "Profile":
        """Add the counts of another text in the same language."""
        if other is None:
            return self
        counts = np.zeros(NUM_KEYS)
        counts[self.keys] = self.counts
        counts[other.keys] += other.counts
        return _of_counts(counts)

    def to_array(self) -> NDArray[np.uint8]:
        """Return the profile as a file holds it: rows of how far a key is from the one before it,
        and the level of its count.

        Of more than MOST_GRAMS n-grams it has the most frequent.
        """
        kept = _most_frequent(self.keys, self.counts)
        keys = self.keys[kept]
        levels = np.rint(_STEPS * np.log2(1 + self.counts[kept]))
        gaps = np.diff(keys, prepend=0)
        skips = gaps // _LAST_GAP
        ends = np.cumsum(1 + skips) - 1
        size = len(keys) + int(skips.sum())
        rows = np.full((size, 2), (_LAST_GAP, 0), np.uint8)
        rows[ends, 0] = gaps % _LAST_GAP
        rows[ends, 1] = np.minimum(levels, 255)
        return rows

    @classmethod
    def from_array(cls, rows: NDArray[np.uint8], where: str) -> "Profile":
        """Read what `to_array` gave. Raises FolderError, beginning with `where`, for any other."""
        is_profile = (
            rows.dtype == np.uint8 and rows.ndim == 2 and rows.shape[1:] == (2,)
        )
        if not is_profile or not 0 < len(rows) <= MOST_ROWS:
            found = f"{rows.dtype} {rows.shape}"
            raise FolderError(
                f"{where}: {found} is no profile of a language; the file is damaged"
            )
        gaps, levels = rows.astype(np.int64).T
        is_end = gaps < _LAST_GAP
        keys = np.cumsum(gaps)[is_end]
        counts = np.exp2(levels[is_end] / _STEPS) - 1
        are_sorted = bool((np.diff(keys) > 0).all()) and (keys < NUM_KEYS).all()
        facts = counts[np.isin(keys, _FACTS)]
        if not are_sorted or len(facts) < len(_FACTS) or not facts.all():
            raise FolderError(
                f"{where}: its n-grams are not in order; the file is damaged"
            )
        return cls(keys, counts)


def learn_profiles(
    sides: Sequence[tuple[str, Sequence[str]]],
) -> dict[str, Profile]:
    """Learn the profile of each language from text: by its code, all texts that are in it.

    Of a side in an unknown language nothing is learned. Rows that are the same on both sides are in
    one language or in none, and do not count. Nor do letters in the main script of the other side,
    where a side has few of them, words that were left as they are: only how many there are is kept.
    """
    sides = [
        (code, texts[:: -(-len(texts) // _ENOUGH_ROWS) or 1]) for code, texts in sides
    ]
    known = [side for side in sides if side[0] != UNKNOWN]
    rows = [texts for _, texts in sides]
    if len(rows) == 2 and sides[0][0] != sides[1][0]:
        known = [(code, _own_rows(texts, *rows)) for code, texts in known]
    scripts = {code: _scripts(texts) for code, texts in known}
    found: dict[str, Profile] = {}
    for code, texts in known:
        foreign = NO_SCRIPT
        for other in scripts.keys() - {code}:
            foreign = _foreign_script(scripts[code], scripts[other])
        profile = _learn(texts, foreign, scripts[code].get(foreign, 0))
        if profile is not None:
            found[code] = profile.joined(found.get(code))
    return found


def profile_of_pieces(pieces: Iterable[str]) -> Profile | None:
    """Guess a profile by the pieces of a vocabulary, the most frequent first; None where they hold
    no letters.

    The frequency of a piece is taken to be inverse to its rank (Zipf's law).
    """
    counts = np.zeros(NUM_KEYS)
    words = [unicodedata.normalize("NFKC", piece).lower() for piece in pieces]
    words = [word for word in words if _is_word(word)]
    grams = grams_of("\n".join(words))
    if not len(grams):
        return None
    weights = 1 / (np.arange(len(words)) + 10.0)
    is_space = np.array([name == NO_SCRIPT for name in grams.scripts])[grams.script]
    number = np.cumsum(is_space) - is_space  # of the word of each letter
    weights = weights[number]
    # letters alone say nothing of what follows them, so they must be few beside what smooths
    has_more = bool((grams.keys[1] >= 0).any())
    total = _ENOUGH if has_more else _FEW
    weights *= total / weights.sum()
    _count(counts, grams, weights)
    counts[DIFFERENT_LETTERS] = _UNSEEN * total
    return _of_counts(counts)


def _is_word(piece: str) -> bool:
    """Return whether a piece has letters alone."""
    return piece != "" and all(script_of(letter) != NO_SCRIPT for letter in piece)


def _own_rows(
    texts: Sequence[str], src: Sequence[str], tgt: Sequence[str]
) -> Sequence[str]:
    """Return the texts of one side whose row is not the same on both."""
    triples = zip(texts, src, tgt, strict=True)
    return [text for text, one, other in triples if one != other]


def _learn(texts: Sequence[str], foreign: str, share: float) -> Profile | None:
    """Learn from a sample of texts, without letters of a foreign script, which have this share of
    it; None without letters.
    """
    counts = np.zeros(NUM_KEYS)
    text = "\n".join(_sample(texts))
    grams = grams_of(text, foreign)
    if not len(grams):
        return None
    _count(counts, grams, np.ones(len(grams)))
    if not text.isascii():
        bare = grams_of(without_accents(text), foreign)
        accentless = np.zeros(NUM_KEYS)
        _count(accentless, bare, np.full(len(bare), _ACCENTLESS))
        for key in _facts(grams):  # of the text itself
            accentless[key] = 0
        counts += accentless
    if foreign != NO_SCRIPT:
        counts[key_of_script(foreign)] = np.rint(share * counts[ALL_LETTERS])
    return _of_counts(counts)


def _count(counts: Floats, grams: Grams, weights: Floats) -> None:
    """Add up n-grams, letters and scripts, each letter with a weight."""
    weights = np.where(grams.keys[0] >= 0, weights, 0)
    for keys in grams.keys:
        is_there = keys >= 0
        counts += np.bincount(keys[is_there], weights[is_there], NUM_KEYS)
    for key, number in _facts(grams, weights).items():
        counts[key] = number


def _facts(grams: Grams, weights: Floats | None = None) -> dict[int, float]:
    """Count letters, different ones, and those of each script, by their keys."""
    different = len(np.unique(grams.keys[0]))
    shares = np.bincount(grams.script, weights, len(grams.scripts))
    facts = {ALL_LETTERS: float(shares.sum()), DIFFERENT_LETTERS: float(different)}
    for name, number in zip(grams.scripts, shares.tolist(), strict=True):
        if name != NO_SCRIPT and number:
            facts[key_of_script(name)] = number
    return facts


def _of_counts(counts: Floats) -> Profile:
    """Return the profile of counts by key."""
    keys = np.flatnonzero(counts)
    return Profile(keys, counts[keys])


def _most_frequent(keys: Ints, counts: Floats) -> Ints:
    """Return the places of the keys to keep, in order: of what is no n-gram all."""
    is_fact = np.isin(keys, _FACTS)
    order = np.lexsort((keys, -counts, ~is_fact))
    return np.sort(order[:MOST_GRAMS])


def _sample(texts: Sequence[str]) -> list[str]:
    """Return evenly spaced texts of _ENOUGH letters in all; of a few long ones their beginnings."""
    every = max(-(-sum(map(len, texts)) // _ENOUGH), 1)
    some = texts[::every]
    most = max(_LONG, _ENOUGH // max(len(some), 1))
    return [text[:most] for text in some]


def _scripts(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each script in a sample of texts."""
    grams = grams_of("\n".join(_sample(texts)))
    numbers = np.bincount(grams.script, minlength=len(grams.scripts))
    letters = dict(zip(grams.scripts, numbers.tolist(), strict=True))
    letters.pop(NO_SCRIPT, None)
    total = max(sum(letters.values()), 1)
    return {name: number / total for name, number in letters.items()}


def _foreign_script(own: dict[str, float], other: dict[str, float]) -> str:
    """Return the main script of the other side where it is not this one's; "" else."""
    if not own or not other:
        return NO_SCRIPT
    main = max(other, key=lambda name: (other[name], name))
    ours = max(own, key=lambda name: (own[name], name))
    is_own = own.get(main, 0) >= _FOREIGN
    if is_own or main == ours or {main, ours} <= SPACELESS:
        return NO_SCRIPT
    return main
