"""The combinations of words that are held out: sentences kept from training, so that a score on
them has to be earned.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations, product
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
    """Split a text into lower-cased words without their punctuation, or Chinese into its
    characters.
    """
    for mark in PUNCTUATION:
        text = text.replace(mark, "")
    if lang == "zh":
        return list(text.replace(" ", ""))
    return text.lower().split()


def word_pairs(sentence: Sentence) -> set[Pair]:
    """Return every two content words of the sentence that different parts of the grammar chose."""
    pairs: set[Pair] = set()
    for one, other in combinations(sentence.units[:-1], 2):
        for first, second in product(one, other):
            if first < second:
                pairs.add((first, second))
            elif second < first:
                pairs.add((second, first))
    return pairs


class _Index:
    """The sentences that hold each word, and how often every word or character is left in
    training.
    """

    def __init__(self, sentences: list[Sentence]) -> None:
        self.where: dict[str, set[int]] = defaultdict(set)
        for index, sentence in enumerate(sentences):
            words = set(tokens(sentence.en, "en"))
            for word in words.union(*sentence.units):
                self.where[word].add(index)
        self.sentences = sentences
        capitals = {
            word
            for item in sentences
            for word in item.en.split()[1:]
            if word[0].isupper()
        }
        self.names = {word.strip(PUNCTUATION).lower() for word in capitals}
        self.left: dict[str, Counter[str]] = {}
        everything = range(len(sentences))
        for lang in LANGUAGES:
            self.left[lang] = self._count(everything, lang)

    def _count(self, indices: Iterable[int], lang: str) -> Counter[str]:
        """Count the words or characters of some sentences."""
        counts: Counter[str] = Counter()
        for i in indices:
            text = getattr(self.sentences[i], lang)
            counts.update(tokens(text, lang))
        return counts

    def together(self, pair: Pair) -> set[int]:
        """Return the sentences that hold both words, in whatever form and place."""
        one, other = pair
        return self.where[one] & self.where[other]

    def is_new(self, sentence: Sentence, group: set[int]) -> bool:
        """Return whether two content words of the sentence, as they are written, meet nowhere
        outside `group`.
        """
        words = set(tokens(sentence.en, "en"))
        words -= FUNCTION_WORDS | self.names | sentence.units[-1]
        return any(self.together(pair) <= group for pair in combinations(words, 2))

    def remove(self, indices: set[int]) -> bool:
        """Take sentences out of training; return False, and do nothing, if a word or character
        would get too rare.
        """
        losses = {lang: self._count(indices, lang) for lang in LANGUAGES}
        for lang, loss in losses.items():
            left = self.left[lang]
            if any(left[token] - loss[token] < LEAST_IN_TRAINING for token in loss):
                return False
        for lang, loss in losses.items():
            self.left[lang].subtract(loss)
        return True


def held_out(sentences: list[Sentence], size: int, random: Random) -> list[set[int]]:
    """Choose two disjoint sets of about `size` indices, every sentence of a set with a pair of
    words found nowhere else.

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
        if not all(map(group.isdisjoint, sets)):
            continue
        if not 2 <= len(group) <= LARGEST_GROUP:
            continue
        if max(used[word] for word in pair) >= PAIRS_A_WORD:
            continue
        is_new = all(index.is_new(sentences[member], group) for member in group)
        if is_new and index.remove(group):
            used.update(pair)
            target.update(group)
    return sets
