"""The language of a text, told among a few that are known by their profiles.

A text is scored by each language as a model of letters: the probability of each letter after the
up to three before it, from counts that are interpolated with those of shorter n-grams (Dirichlet
smoothing, as in MacKay and Peto 1995, "A hierarchical Dirichlet language model"). Beside the
languages stands none of them: letters in a row without regard to their neighbours. Any word of a
text may be foreign, so that one name or one borrowed word outvotes nothing.

All scores are made from counts of one language alone and the same hashes, so that profiles of any
models can be put together.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from weft.data.grams import NO_SCRIPT, ORDERS, SPACELESS, Grams, Ints, grams_of
from weft.data.languages import UNKNOWN
from weft.data.profile import (
    ALL_LETTERS,
    DIFFERENT_LETTERS,
    Floats,
    Profile,
    key_of_script,
)

_READ = 5000  # letters of a longer text are its language
_SMOOTHING = 8.0  # counts that the shorter n-gram has a say of
# of a text, at most; of a script that the language has not, a thousandth
_FOREIGN_WORDS = 0.02
_RARE_SCRIPT = 1e-3  # of a language's letters
_UNSEEN_SCRIPT = 1e-6
_USUAL = "LATIN"  # words in it are in texts of any language
_USUAL_SHARE = 1e-4
_ANY_SCRIPT = 1 / 30  # the share of each in a text of which nothing is known
_ANY_LETTER = 0.02  # of letters in none of the languages, of all scripts alike
_WORD_ALONE = 0.3  # of such a letter that is a word, as that says more
_PRIOR_OF_NONE = -5.0  # log-odds
# letters of a script, about; a space is one of ten characters
_LETTERS = {"CJK": 8000, "HANGUL": 2000}
_FEW_LETTERS = 100
_SPACE = 0.1


@dataclass(frozen=True)
class Detector:
    """Tells languages apart, by what is counted of each.

    `counts` (keys + 1, languages) has a row for each of `keys`, and zeros in the last.
    """

    profiles: Mapping[str, Profile]
    languages: tuple[str, ...]
    keys: Ints
    counts: Floats

    @classmethod
    def of(cls, profiles: Mapping[str, Profile]) -> "Detector":
        """Return the detector of languages with these profiles."""
        languages = tuple(sorted(profiles))
        own = [profiles[language] for language in languages]
        keys = np.zeros(0, np.int64)
        if own:
            keys = np.unique(np.concatenate([profile.keys for profile in own]))
        counts = np.zeros((len(keys) + 1, len(own)))
        for column, profile in enumerate(own):
            counts[np.searchsorted(keys, profile.keys), column] = profile.counts
        return cls(profiles, languages, keys, counts)

    @classmethod
    def joined(cls, detectors: Iterable["Detector"]) -> "Detector":
        """Return one for the languages of all; counts of a language that several have add up."""
        together: dict[str, Profile] = {}
        for detector in detectors:
            for language, profile in detector.profiles.items():
                together[language] = profile.joined(together.get(language))
        return cls.of(together)

    def detect(
        self, text: str, among: Container[str] | None = None
    ) -> list[tuple[str, float]]:
        """Return each language, of those `among`, with the confidence that the text is in it, from
        0 to 1, the best first.

        What is missing to 1 in all is the confidence that it is in none of them. A text without
        letters is in none.
        """
        grams = grams_of(text[:_READ])
        asked = [among is None or code in among for code in self.languages]
        codes = list(compress(self.languages, asked))
        shares = np.zeros(len(codes))
        if len(grams) and codes:
            scores = self._scores(grams)[[*asked, True]]
            shares = np.exp(scores - scores.max())
            shares = (shares / shares.sum())[:-1]
        found = zip(codes, shares.tolist(), strict=True)
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def best(self, text: str) -> tuple[str, float]:
        """Return the language of a text with its confidence; "und" where none is the likeliest."""
        found = self.detect(text)
        none = max(1 - sum(share for _, share in found), 0.0)
        if not found or none >= found[0][1]:
            return UNKNOWN, none
        return found[0]

    def _scores(self, grams: Grams) -> Floats:
        """Return the log-probability of a text by each language, and last by none of them."""
        shares = self._shares(grams)
        alone, in_none = self._alone(grams, shares)
        chances = self._after_context(grams, alone)
        begins = np.flatnonzero(np.diff(grams.words, prepend=-1))
        by_language = np.add.reduceat(np.log(chances), begins)
        by_none = np.add.reduceat(np.log(in_none), begins)
        own_script = np.minimum.reduceat(shares[grams.script], begins)
        foreign = _FOREIGN_WORDS * (own_script + _UNSEEN_SCRIPT)
        foreign /= own_script + _RARE_SCRIPT
        if_own = by_language + np.log1p(-_FOREIGN_WORDS)
        if_foreign = by_none[:, None] + np.log(foreign)
        by_word = np.logaddexp(if_own, if_foreign)
        of_none = by_none.sum() + _PRIOR_OF_NONE
        return np.append(by_word.sum(0), of_none)

    def _shares(self, grams: Grams) -> Floats:
        """Return the share of each script of a text in each language (scripts, languages); that of
        the space is 1.
        """
        keys = [key_of_script(name) for name in grams.scripts]
        total, *numbers = self._counts_of(np.array([ALL_LETTERS, *keys]))
        shares: Floats = np.array(numbers) / total
        shares[grams.scripts.index(NO_SCRIPT)] = 1.0
        if _USUAL in grams.scripts:
            latin = grams.scripts.index(_USUAL)
            shares[latin] = np.maximum(shares[latin], _USUAL_SHARE)
        return shares

    def _alone(self, grams: Grams, shares: Floats) -> tuple[Floats, Floats]:
        """Return the chances of each letter, whatever is before it: in each language (N,
        languages), and in none of them (N).

        A letter that a language never had is any of its script's. That of the space says nothing,
        as a vocabulary may have none.
        """
        sizes = [_LETTERS.get(name, _FEW_LETTERS) for name in grams.scripts]
        of_script = 1 / np.array(sizes)
        facts = np.array([ALL_LETTERS, DIFFERENT_LETTERS])
        total, different = self._counts_of(facts)
        unseen = shares + _ANY_SCRIPT / total
        unseen *= of_script[:, None]
        alone = self._counts_of(grams.keys[0])
        alone += different * unseen[grams.script]
        alone /= total + different
        any_letter = _ANY_SCRIPT * of_script[grams.script]
        in_none = (1 - _ANY_LETTER) * alone.max(1)
        in_none += _ANY_LETTER * any_letter
        in_none[_are_words(grams)] *= _WORD_ALONE
        is_space = grams.script == grams.scripts.index(NO_SCRIPT)
        alone[is_space] = in_none[is_space] = _SPACE
        return alone, in_none

    def _after_context(self, grams: Grams, alone: Floats) -> Floats:
        """Return the chance of each letter (N, languages) after those before it, from its chance
        alone.
        """
        chances = alone
        # what follows a letter that is a word has far more forms
        is_word = _are_words(grams)[:, None]
        for order in range(1, ORDERS):
            before = self._counts_of(grams.contexts[order])
            ended = self._counts_of(grams.keys[order])
            seen = np.minimum(ended, before)
            weight = _SMOOTHING + is_word * before
            longer = seen + weight * chances
            longer /= before + weight
            is_there = grams.keys[order] >= 0
            chances = np.where(is_there[:, None], longer, chances)
        return chances

    def _counts_of(self, keys: Ints) -> Floats:
        """Return the counts (keys, languages); zeros for a key that no language has."""
        places = np.searchsorted(self.keys, keys)
        places = np.minimum(places, len(self.keys) - 1)
        is_known = self.keys[places] == keys
        return self.counts[np.where(is_known, places, len(self.keys))]


def _are_words(grams: Grams) -> NDArray[np.bool_]:
    """Return which letters (N) are of scripts where each stands for a word."""
    return np.array([name in SPACELESS for name in grams.scripts])[grams.script]
