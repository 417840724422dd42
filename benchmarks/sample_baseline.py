"""How far memory alone gets on the built-in corpus: the translation of the nearest training
sentence.

For every English test sentence, finds the training sentence with the fewest word edits and answers
with its translation; prints sacreBLEU for Chinese and German. A model is worth its score only above
these figures.

    python benchmarks/sample_baseline.py
"""

import argparse
from collections import Counter, defaultdict

import sacrebleu

from weft.data import builtin

TOKENIZE = {"zh": "zh", "de": "13a"}


def edit_distance(one: list[str], other: list[str]) -> int:
    """Fewest insertions, deletions and replacements of words that turn `one` into `other`."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, candidate in enumerate(other, start=1):
            diagonal, row[j] = (
                row[j],
                min(row[j] + 1, row[j - 1] + 1, diagonal + (word != candidate)),
            )
    return row[-1]


class Memory:
    """Training sentences, found again by their words."""

    def __init__(self, sentences: list[list[str]]) -> None:
        """`sentences` are lists of words."""
        self.sentences = sentences
        self.where: dict[tuple[str, int], list[int]] = defaultdict(list)
        for index, words in enumerate(sentences):
            for key in self._numbered(words):
                self.where[key].append(index)

    @staticmethod
    def _numbered(words: list[str]) -> list[tuple[str, int]]:
        """Every word with how often it came before, so that common words can be counted by common
        keys.
        """
        seen: Counter[str] = Counter()
        keys = []
        for word in words:
            keys.append((word, seen[word]))
            seen[word] += 1
        return keys

    def nearest(self, words: list[str]) -> int:
        """Index of the sentence with the fewest edits; of equals, the first.

        Exact: a distance is at least the longer length less the words in common, so that candidates
        taken in the order of this bound need no further look once it reaches the best distance.
        """
        common: Counter[int] = Counter()
        for key in self._numbered(words):
            common.update(self.where[key])
        bounds = sorted(
            (max(len(words), len(self.sentences[i])) - n, i) for i, n in common.items()
        )
        best, answer = len(words) + 1, 0
        for bound, index in bounds:
            if bound > best:
                break
            distance = edit_distance(words, self.sentences[index])
            best, answer = min((best, answer), (distance, index))
        return answer


def main() -> None:
    """Print the baseline's BLEU for English to Chinese and to German."""
    argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0]
    ).parse_args()
    for lang, tokenize in TOKENIZE.items():
        splits = builtin.pairs("everyday", "en", lang)
        memory = Memory([source.lower().split() for source, _ in splits.train])
        answers = [
            splits.train[memory.nearest(source.lower().split())][1]
            for source, _ in splits.test
        ]
        score = sacrebleu.corpus_bleu(
            answers, [[target for _, target in splits.test]], tokenize=tokenize
        )
        exact = sum(
            answer == target
            for answer, (_, target) in zip(answers, splits.test, strict=True)
        )
        print(
            f"en-{lang}: BLEU {score.score:.1f}, {exact} of {len(answers)} sentences exactly right"
        )


if __name__ == "__main__":
    main()
