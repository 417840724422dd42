"""Held-out combinations: which sentences are kept from training, so that a score on them has to be
earned.
"""

from collections import Counter, defaultdict
from itertools import combinations
from random import Random

from weft.data.builtin.patterns import Sentence, shuffled
from weft.data.builtin.words import FUNCTION_WORDS, LANGUAGES

PUNCTUATION = ".,?!。，？！"

Pair = tuple[str, str]

LARGEST_GROUP = 14  # sentences that one held-out pair of words may take from training
PAIRS_A_WORD = 6  # held-out pairs that one word may be part of
# times that a word or character of a held-out sentence must stay in training
LEAST_IN_TRAINING = 6


def tokens(text: str, lang: str) -> list[str]:
    """Lower-cased words without their punctuation, or the characters of a Chinese text."""
    for mark in PUNCTUATION:
        text = text.replace(mark, "")
    return list(text.replace(" ", "")) if lang == "zh" else text.lower().split()


def word_pairs(sentence: Sentence) -> set[Pair]:
    """Every two content words of the sentence that different parts of the grammar chose."""
    pairs: set[Pair] = set()
    for one, other in combinations(sentence.units[:-1], 2):
        pairs |= {(min(a, b), max(a, b)) for a in one for b in other if a != b}
    return pairs


class _Index:
    """Which sentences hold a word, and how often every word or character is left in training."""

    def __init__(self, sentences: list[Sentence]) -> None:
        self.where: dict[str, set[int]] = defaultdict(set)
        for index, sentence in enumerate(sentences):
            for word in set(tokens(sentence.en, "en")).union(*sentence.units):
                self.where[word].add(index)
        self.sentences = sentences
        capitals = {
            word
            for item in sentences
            for word in item.en.split()[1:]
            if word[0].isupper()
        }
        self.names = {word.strip(PUNCTUATION).lower() for word in capitals}
        self.left = {
            lang: Counter(
                tokens(" ".join([getattr(item, lang) for item in sentences]), lang)
            )
            for lang in LANGUAGES
        }

    def together(self, pair: Pair) -> set[int]:
        """Return the sentences that hold both words, in whatever form and place."""
        return self.where[pair[0]] & self.where[pair[1]]

    def is_new(self, sentence: Sentence, group: set[int]) -> bool:
        """Return whether two content words of the sentence, as they are written, meet nowhere
        outside `group`.
        """
        words = (
            set(tokens(sentence.en, "en"))
            - FUNCTION_WORDS
            - self.names
            - sentence.units[-1]
        )
        return any(
            self.where[one] & self.where[other] <= group
            for one, other in combinations(words, 2)
        )

    def remove(self, indices: set[int]) -> bool:
        """Take sentences out of training; False, and nothing done, if a word or character got too
        rare.
        """
        for lang, left in self.left.items():
            loss = Counter(
                token
                for i in indices
                for token in tokens(getattr(self.sentences[i], lang), lang)
            )
            if any(
                left[token] - count < LEAST_IN_TRAINING for token, count in loss.items()
            ):
                return False
        for lang, left in self.left.items():
            left.subtract(
                token
                for i in indices
                for token in tokens(getattr(self.sentences[i], lang), lang)
            )
        return True


def held_out(sentences: list[Sentence], size: int, random: Random) -> list[set[int]]:
    """Two disjoint sets of about `size` indices, every sentence of a set with a pair of words found
    nowhere else.

    A pair is taken only if every word and character of its sentences stays often enough in the
    rest.
    """
    index = _Index(sentences)
    used: Counter[str] = Counter()
    sets: list[set[int]] = [set(), set()]
    for sentence in shuffled(sentences, random):
        pairs = sorted(word_pairs(sentence))
        if not pairs:
            continue
        pair = pairs[int(random.random() * len(pairs))]
        target = min(sets, key=len)
        if len(target) >= size:
            break
        group = index.together(pair)
        free = group.isdisjoint(sets[0]) and group.isdisjoint(sets[1])
        rare = (
            2 <= len(group) <= LARGEST_GROUP
            and max(used[word] for word in pair) < PAIRS_A_WORD
        )
        new = (
            free
            and rare
            and all(index.is_new(sentences[member], group) for member in group)
        )
        if new and index.remove(group):
            used.update(pair)
            target.update(group)
    return sets
