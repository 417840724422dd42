"""Writes hints into a share of the training pairs, so that a model learns to take them.

Which pairs have hints, and which, is a function of the seed and of a pair's number: a run that
begins again has the same. All other pairs stay plain, so that the model translates without hints,
too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.console import stages
from weft.data.corpus import ParallelText
from weft.data.glossary import Glossary, Occurrence, find_words, lowered_text
from weft.data.hints import Hints, TermHint, target_ids
from weft.data.links import Pair, TokenLinks, content_tokens, learn_links
from weft.data.memory import Memory
from weft.data.phrases import Phrase, WordForms, find_phrases
from weft.data.spans import TokenSpans
from weft.data.tokenizer import Tokenizer

MOST_TERMS = 3  # of a pair
LEAST_SCORE = 0.5  # of a match
TERMS, MARKED, MATCHED = COUNTED = ("terms", "marked", "matched")
_VERSION = 2  # of how hints are chosen: another one makes stores anew
_SAMPLED = 100_000  # pairs that say which words belong together
# what the random numbers of a run are drawn for
_FOR_TERMS, _FOR_MATCHES, _FOR_CHOICE = range(3)

Ids = Sequence[int]


@dataclass
class Hinting:
    """Hints for the pairs of a text: `terms` and `memory` are the shares that are to have some.

    Terms are those of a glossary; in pairs that have none of these, and without a glossary, they
    are words that belong together as far as the text tells. Matches are other pairs of the text.
    The tokenizer is that of both sides; no row with hints has more than `max_len` ids, without eos.
    `counts` says how many terms, pairs with terms and pairs with a match were written.
    """

    text: ParallelText
    tokenizer: Tokenizer
    terms: float
    memory: float
    seed: int
    max_len: int
    glossary: Glossary | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))

    @property
    def key(self) -> list[Any]:
        """Return what the hints follow from, beside the text and the tokenizer."""
        glossary = self.glossary and self.glossary.sha256
        return [_VERSION, self.terms, self.memory, self.seed, glossary]

    def write(
        self, rows: Sequence[int], src: Sequence[Ids], tgt: Sequence[Ids]
    ) -> list[Ids]:
        """Return the source ids of pairs with their hints; `rows` are their numbers in the text."""
        found = self.hints(rows, src, tgt)
        written: list[Ids] = []
        for ids, hints in zip(src, found, strict=True):
            written.append(hints.write(ids) if hints else ids)
        return written

    def hints(
        self, rows: Sequence[int], src: Sequence[Ids], tgt: Sequence[Ids]
    ) -> Iterator[Hints]:
        """Yield the hints of pairs, as `write` takes them."""
        for_terms, for_match = self._drawn
        having = [row for row in rows if for_match[row] < self.memory]
        matches = self._matches(having)
        pairs = zip(src, tgt, strict=True)
        for row, pair in zip(rows, pairs, strict=True):
            terms: tuple[TermHint, ...] = ()
            match: tuple[int, ...] = ()
            if for_terms[row] < self.terms:
                terms = self._terms_of(row, pair)
            if for_match[row] < self.memory:
                match = next(matches)
            room = self.max_len - len(pair[0])
            hints = Hints(terms, match).within(room)
            self._count(hints)
            yield hints

    def _count(self, hints: Hints) -> None:
        self.counts[MARKED] += bool(hints.terms)
        self.counts[TERMS] += len(hints.terms)
        self.counts[MATCHED] += bool(hints.match)

    @cached_property
    def _drawn(self) -> NDArray[np.float32]:
        """Draw a number for each pair and what it is drawn for."""
        drawn = []
        for use in (_FOR_TERMS, _FOR_MATCHES):
            rng = np.random.default_rng([self.seed, use])
            drawn.append(rng.random(len(self.text), np.float32))
        return np.stack(drawn)

    def _matches(self, numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the target ids of the best match of each pair, of other pairs; none for none."""
        sources = [self.text.src[n] for n in numbers]
        for match in self._memory.best_of_each(sources, LEAST_SCORE, numbers):
            ids: list[int] = []
            if match is not None:
                ids = self.tokenizer.encode(match.target)
            yield tuple(ids)

    def _terms_of(self, number: int, pair: Pair) -> tuple[TermHint, ...]:
        """Choose the terms of a pair."""
        rng = np.random.default_rng([self.seed, _FOR_CHOICE, number])
        most = int(rng.integers(1, MOST_TERMS + 1))
        found = list(self._of_glossary(number, pair[0]))
        if not found:
            phrases = find_phrases(*pair, self._links, self._forms)
            drawn = _drawn(phrases, most, rng)
            found = list(self._spelled(drawn, pair))
        order = rng.permutation(len(found))
        chosen = sorted(order[:most].tolist())
        return tuple(found[i] for i in chosen)

    def _of_glossary(self, number: int, src_ids: Ids) -> Iterator[TermHint]:
        """Yield the glossary's terms whose source and target stand in a pair."""
        if self.glossary is None:
            return
        line = self.text.src[number]
        occurrences = self.glossary.find(line)
        if not occurrences:
            return
        spans = TokenSpans(self.tokenizer, src_ids, line)
        for occurrence in occurrences:
            span = spans.of(occurrence.start, occurrence.end)
            ids = self._standing(occurrence, self.text.tgt[number])
            if span and ids:
                yield TermHint(*span, ids)

    def _standing(self, occurrence: Occurrence, target: str) -> tuple[int, ...]:
        """Return the ids of a term's target that stands in a text; none for none."""
        wanted = set(map(lowered_text, occurrence.targets))
        for one in find_words(target, [occurrence]):
            if one.word in wanted:
                return target_ids(self.tokenizer, target[one.start : one.end])
        return ()

    def _spelled(self, phrases: Sequence[Phrase], pair: Pair) -> Iterator[TermHint]:
        """Yield phrases as terms, their targets as they are written alone.

        One that stays as it is teaches nothing.
        """
        src_ids, tgt_ids = pair
        for phrase in phrases:
            source = src_ids[phrase.begin : phrase.end]
            target = tgt_ids[phrase.tgt_begin : phrase.tgt_end]
            text = self.tokenizer.decode(target)
            ids = target_ids(self.tokenizer, text)
            if ids and source != target:
                yield TermHint(phrase.begin, phrase.end, ids)

    @cached_property
    def _memory(self) -> Memory:
        return Memory.from_text(self.text)

    @cached_property
    def _forms(self) -> WordForms:
        return WordForms.of(self.tokenizer)

    @cached_property
    def _links(self) -> TokenLinks:
        """Learn which tokens belong together from evenly spaced pairs."""
        stages.enter("learning which words belong together")
        every = -(-len(self.text) // _SAMPLED)
        src = self.tokenizer.encode_batch(self.text.src[::every])
        tgt = self.tokenizer.encode_batch(self.text.tgt[::every])
        has_letter = self._forms.has_letter
        src_content = content_tokens(src, has_letter)
        tgt_content = content_tokens(tgt, has_letter)
        both = zip(src, tgt, strict=True)
        fitting = [pair for pair in both if max(map(len, pair)) <= self.max_len]
        learned = learn_links(fitting, src_content, tgt_content)
        stages.enter("encoding the text")
        return learned


def _drawn(
    phrases: Sequence[Phrase], most: int, rng: np.random.Generator
) -> list[Phrase]:
    """Draw at most so many phrases; each with the one behind it, if they are neighbours and chance
    has it.
    """
    drawn: list[Phrase] = []
    used: set[int] = set()
    for i in rng.permutation(len(phrases)).tolist():
        if i in used or len(drawn) == most:
            continue
        phrase = phrases[i]
        used.add(i)
        behind = i + 1
        both = None
        if behind < len(phrases) and behind not in used:
            both = phrase.joined(phrases[behind])
        if both is not None and rng.random() < 0.5:
            phrase = both
            used.add(behind)
        drawn.append(phrase)
    return sorted(drawn, key=lambda one: one.begin)
