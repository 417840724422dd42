"""Words of a pair of texts that are each other's translations.

A word is what begins behind white space or a mark; in scripts without spaces, a token.

Shapes: S and T content tokens of both sides, or the words that have some.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.data.links import Flags, Floats, Positions, TokenLinks
from weft.data.scripts import is_mark, is_spaceless_letter
from weft.data.tokenizer import Tokenizer

MOST_WORDS = 4  # of a phrase
_LEAST_LINK = 0.5  # how likely words belong together, at the least


@dataclass(frozen=True)
class Phrase:
    """Tokens of the source, from `begin` to before `end`, and those of the target that translate
    them.
    """

    begin: int
    end: int
    tgt_begin: int
    tgt_end: int

    def joined(self, following: "Phrase") -> "Phrase | None":
        """Return this phrase and one behind it as one; None where they are not neighbours on both
        sides.
        """
        first, second = sorted((self, following), key=lambda one: one.tgt_begin)
        if self.end != following.begin or first.tgt_end != second.tgt_begin:
            return None
        return Phrase(self.begin, following.end, first.tgt_begin, second.tgt_end)


@dataclass(frozen=True)
class WordForms:
    """The tokens of a vocabulary as parts of words: whether each begins one, is one alone, and has
    letters.
    """

    begins: Flags
    alone: Flags
    has_letter: Flags

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "WordForms":
        """Look at how each token is spelled."""
        spelled = tokenizer.spell_each(range(tokenizer.vocab_size))
        forms = np.array(list(map(_form_of, spelled)), np.bool_)
        return cls(*forms.T)

    def words(self, ids: Positions) -> Positions:
        """Return the number of each token's word."""
        alone = self.alone[ids]
        begins = self.begins[ids] | alone
        begins[1:] |= alone[:-1]
        begins[:1] = True
        numbers: Positions = np.cumsum(begins) - 1
        return numbers


def _form_of(spelled: bytes) -> tuple[bool, bool, bool]:
    """Return whether a token begins a word, is one alone, and has a letter."""
    text = spelled.decode("utf-8", "replace")
    solid = text.strip()
    if "\ufffd" in text:  # bytes of a character, which go on with what is before them
        return text[:1].isspace(), False, False
    is_alone = not solid or all(map(is_mark, solid))
    is_alone = is_alone or is_spaceless_letter(solid[0])
    has_letter = any(map(str.isalpha, solid))
    return text[:1].isspace(), is_alone, has_letter


def find_phrases(
    src_ids: Sequence[int], tgt_ids: Sequence[int], links: TokenLinks, forms: WordForms
) -> list[Phrase]:
    """Return the phrases of a pair in the source's order: each of content words that belong to each
    other and to no other, and stand side by side.
    """
    src = np.asarray(src_ids, np.int64)
    tgt = np.asarray(tgt_ids, np.int64)
    src_words = forms.words(src)
    tgt_words = forms.words(tgt)
    is_src = links.src_content[src]
    is_tgt = links.tgt_content[tgt]
    if not is_src.any() or not is_tgt.any():
        return []
    scores = links.between(src[is_src], tgt[is_tgt])
    of_words, src_content, tgt_content = _by_word(
        scores, src_words[is_src], tgt_words[is_tgt]
    )
    phrases = []
    for sources, targets in _groups(_best(of_words)):
        begin, end = _tokens(src_content[sources], src_words)
        tgt_begin, tgt_end = _tokens(tgt_content[targets], tgt_words)
        if begin < end and tgt_begin < tgt_end:
            phrases.append(Phrase(begin, end, tgt_begin, tgt_end))
    return phrases


def _by_word(
    scores: Floats, src_words: Positions, tgt_words: Positions
) -> tuple[Floats, Positions, Positions]:
    """Return how likely words belong together, by their tokens (S, T); and the words' numbers."""
    src_numbers, src_firsts, src_sizes = np.unique(
        src_words, return_index=True, return_counts=True
    )
    tgt_numbers, tgt_firsts, tgt_sizes = np.unique(
        tgt_words, return_index=True, return_counts=True
    )
    of_sources = np.add.reduceat(scores, src_firsts, 0)
    sums = np.add.reduceat(of_sources, tgt_firsts, 1)
    sizes = np.maximum.outer(src_sizes, tgt_sizes)
    return sums / sizes, src_numbers, tgt_numbers


def _best(scores: Floats) -> Flags:
    """Return which words belong together: likely enough, and for one of them most likely."""
    likely = np.where(scores >= _LEAST_LINK, scores, np.nan)
    of_source = scores.max(1)[:, None]
    of_target = scores.max(0)
    # nothing is equal to what is no number
    return (likely == of_source) | (likely == of_target)


def _groups(linked: Flags) -> list[tuple[Positions, Positions]]:
    """Return sources and targets that are linked to each other and to no others."""
    groups = []
    left = set(np.flatnonzero(linked.any(1)).tolist())
    while left:
        sources = np.array([min(left)])
        targets = np.flatnonzero(linked[sources].any(0))
        grown = np.flatnonzero(linked[:, targets].any(1))
        while len(grown) > len(sources):
            sources = grown
            targets = np.flatnonzero(linked[sources].any(0))
            grown = np.flatnonzero(linked[:, targets].any(1))
        groups.append((sources, targets))
        left -= set(sources.tolist())
    return groups


def _tokens(numbers: Positions, words: Positions) -> tuple[int, int]:
    """Return the tokens of some words: the first, and the one after the last; none where they do
    not stand side by side, or are too many.
    """
    count = len(numbers)
    first = int(numbers[0])
    behind = first + count
    if numbers[-1] != behind - 1 or count > MOST_WORDS:
        return 0, 0
    begin, end = np.searchsorted(words, [first, behind])
    return int(begin), int(end)
