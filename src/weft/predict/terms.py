"""A glossary's terms in rows: as the tokens that a search must write, and as they were written."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np

from weft.data.glossary import Glossary, Occurrence, are_joined, lowered_text
from weft.data.scripts import is_spaceless_letter
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.decoder import Tokens
from weft.decoding.terms import MOST_TERMS, Term, Terms
from weft.predict.alignment import Floats, words_of
from weft.predict.segments import SourceRow, joiner

TermStatus: TypeAlias = Literal["used", "missing", "doubled", "elsewhere", "avoided"]
"""What became of a term: it stands once; it does not stand there, or more often than in the source,
or not where its source word was translated, as far as the alignment knows; or a word stands there
that must not be used.
"""


@dataclass(frozen=True)
class TermUse:
    """A term of a text, and what became of it.

    `start` and `end` are its characters in the text. `used` is what stands in the translation, ""
    for nothing. `where` is the row of the glossary, `reason` says why it is not as demanded.
    """

    source: str
    start: int
    end: int
    wanted: tuple[str, ...]
    used: str
    status: TermStatus
    where: str
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class TermFinder:
    """A glossary for a pair of tokenizers and the target's language (BCP-47).

    The terms of a row have at most `room` tokens in all; those that come after are left out.
    """

    glossary: Glossary
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    tgt_lang: str
    room: int

    def with_terms(self, row: SourceRow, line: str) -> SourceRow:
        """Return the row of a line with the terms that the line has."""
        occurrences = self.glossary.find(line)
        if not occurrences:
            return row
        spans = _Spans(self.src_tokenizer, row.ids, line)
        terms = []
        avoided: list[tuple[int, ...]] = []
        num_tokens = 0
        for occurrence in occurrences[:MOST_TERMS]:
            avoided += self._avoided(occurrence)
            span = spans.of(occurrence.start, occurrence.end)
            forms = self._forms(occurrence)
            if span is None or not forms:
                continue
            num_tokens += min(map(len, forms))
            if num_tokens > self.room:
                break
            terms.append(Term(forms, span, self._is_open(occurrence)))
        needed = tuple(terms)
        return replace(
            row,
            terms=Terms(needed, self._inner) if needed else None,
            avoided=tuple(dict.fromkeys(avoided)),
        )

    def lacks_terms(self, line: str, translation: str) -> bool:
        """Return whether a translation lacks a term of its line, or has a word to avoid."""
        occurrences = self.glossary.find(line)
        for occurrence, often in zip(occurrences, _counts(occurrences), strict=True):
            found = _standing(occurrence.targets, translation, occurrence.inflected)
            wrong = _standing(occurrence.avoided, translation, occurrence.inflected)
            if wrong or len(found) < often:
                return True
        return False

    def bound(
        self, row: SourceRow, line: str, tokens: Sequence[int], support: Floats
    ) -> SourceRow:
        """Return the row with its terms, and without the words that stood in their places in a free
        translation: its tokens, and how much each source token supports each of them (T, S).
        """
        bound = self.with_terms(row, line)
        if bound.terms is None:
            return bound
        begins = {form[0] for term in bound.terms.terms for form in term.forms}
        translation = self.tgt_tokenizer.decode(tokens)
        avoided = list(bound.avoided)
        spans = _Spans(self.src_tokenizer, row.ids, line)
        for occurrence in self.glossary.find(line):
            span = spans.of(occurrence.start, occurrence.end)
            is_there = _standing(occurrence.targets, translation, occurrence.inflected)
            if span is None or is_there:
                continue
            rival = self._rival(span, tokens, support)
            if rival is not None and rival not in begins:
                avoided.append((rival,))
        return replace(bound, avoided=tuple(dict.fromkeys(avoided)))

    def _rival(
        self, span: tuple[int, int], tokens: Sequence[int], support: Floats
    ) -> int | None:
        """Return the first token of the word that the source tokens of a term wrote; None where
        they wrote none, or its token stands elsewhere, too.
        """
        spelled = self.tgt_tokenizer.spell_each(tokens)
        words, word_of = words_of(spelled)
        if not words:
            return None
        of_words = support[: len(tokens), :-1]
        main = of_words.argmax(1)
        first, last = span
        is_from = (main >= first) & (main < last)
        wrote = np.where(is_from, of_words.max(1), 0.0)
        of_word = np.bincount(word_of, wrote, len(words))
        best = int(of_word.argmax())
        token = tokens[word_of.index(best)]
        is_word = any(map(str.isalnum, words[best]))
        if not of_word[best] or not is_word or list(tokens).count(token) > 1:
            return None
        return token

    def uses(
        self,
        line: str,
        row: SourceRow,
        translation: str,
        tokens: Sequence[int],
        support: Floats | None,
    ) -> Iterator[TermUse]:
        """Yield what became of the terms of a row, places counted in its line.

        `tokens` are those of the translation, `support` (T, S) how much each source token supports
        each of them, if known.
        """
        occurrences = self.glossary.find(line)
        bound = self.with_terms(row, line)
        for occurrence, often in zip(occurrences, _counts(occurrences), strict=True):
            yield self._use(
                line, bound, occurrence, translation, tokens, support, often
            )

    def _use(
        self,
        line: str,
        row: SourceRow,
        occurrence: Occurrence,
        translation: str,
        tokens: Sequence[int],
        support: Floats | None,
        often: int,
    ) -> TermUse:
        wanted = occurrence.targets
        found = _standing(wanted, translation, occurrence.inflected)
        wrong = _standing(occurrence.avoided, translation, occurrence.inflected)
        status: TermStatus = "used"
        reason = ""
        if wrong:
            status = "avoided"
            reason = f"{wrong[0]} must not be used"
        elif not found:
            status = "missing"
            reason = self._why_missing(row, line, occurrence)
        elif len(found) > often:
            status = "doubled"
            reason = f"it stands {len(found)} times"
        elif support is not None and not self._is_in_place(
            row, line, occurrence, tokens, support
        ):
            status = "elsewhere"
            reason = "the alignment has it come from other words"
        return TermUse(
            occurrence.source,
            occurrence.start,
            occurrence.end,
            wanted,
            found[0] if found else "",
            status,
            occurrence.entries[0].where,
            reason,
        )

    def _why_missing(self, row: SourceRow, line: str, occurrence: Occurrence) -> str:
        spans = _Spans(self.src_tokenizer, row.ids, line)
        if spans.of(occurrence.start, occurrence.end) is None:
            return "the model did not read this far"
        if not self._forms(occurrence):
            return "the model's tokens cannot write it as it stands"
        needed = row.terms.terms if row.terms else ()
        if not any(set(term.forms) & set(self._forms(occurrence)) for term in needed):
            return "the sentence has too many terms"
        return "it stands there as a part of another word"

    def _is_in_place(
        self,
        row: SourceRow,
        line: str,
        occurrence: Occurrence,
        tokens: Sequence[int],
        support: Floats,
    ) -> bool:
        """Return whether a form's tokens come from the tokens of the term, or from none."""
        span = _Spans(self.src_tokenizer, row.ids, line).of(
            occurrence.start, occurrence.end
        )
        if span is None:
            return False
        first, last = span
        for form in self._forms(occurrence):
            for place in _places(tokens, form):
                sums = support[place : place + len(form), :-1].sum(0)
                if not sums.any() or first <= int(sums.argmax()) < last:
                    return True
        return False

    def _forms(self, occurrence: Occurrence) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of each target; a capital at its head where the source has one."""
        forms: list[tuple[int, ...]] = []
        for target in occurrence.targets:
            for spelling in _capitals(target, occurrence):
                forms += self._encoded(spelling)
        return tuple(dict.fromkeys(forms))

    def _encoded(self, text: str) -> list[tuple[int, ...]]:
        """Return the tokens of a text inside of another one, those that give it back."""
        ways = [self.tgt_tokenizer.encode(text)]
        if not joiner(self.tgt_lang):
            ways.append(self.tgt_tokenizer.encode_going_on(text))
        return [
            tuple(ids)
            for ids in ways
            if ids and self.tgt_tokenizer.decode(ids).strip() == text
        ]

    def _avoided(self, occurrence: Occurrence) -> list[tuple[int, ...]]:
        runs = []
        for text in occurrence.avoided:
            for spelling in dict.fromkeys((text, text[:1].upper() + text[1:])):
                runs += self._encoded(spelling)
        return runs

    def _is_open(self, occurrence: Occurrence) -> bool:
        """Return whether the target may go on: it may be inflected, or its script has no spaces."""
        ends = [target[-1:] for target in occurrence.targets]
        return occurrence.inflected or any(
            is_spaceless_letter(end) or not end.isalnum() for end in ends
        )

    @cached_property
    def _inner(self) -> Tokens:
        """List the target's ids that go on with a word."""
        ids = range(EOS_ID + 1, self.tgt_tokenizer.vocab_size)
        spelled = self.tgt_tokenizer.spell_each(ids)
        is_inner = np.array(list(map(_is_inner, spelled)), np.bool_)
        return np.flatnonzero(is_inner).astype(np.int32) + (EOS_ID + 1)


def _counts(occurrences: Sequence[Occurrence]) -> list[int]:
    """Return how many terms of a text have a target of each one."""
    targets = [frozenset(map(lowered_text, one.targets)) for one in occurrences]
    return [len(targets) - sum(map(own.isdisjoint, targets)) for own in targets]


def _is_inner(letters: bytes) -> bool:
    """Return whether a token begins with a letter or digit of a script with spaces, or with a byte
    of some character.
    """
    text = letters.decode("utf-8", "ignore")
    if not text:
        return bool(letters)
    return text[0].isalnum() and not is_spaceless_letter(text[0])


def _capitals(target: str, occurrence: Occurrence) -> tuple[str, ...]:
    """Return the spellings of a target: also with a capital, where the term begins with one in the
    text and not in the glossary.
    """
    has_capital = occurrence.source[:1].isupper()
    is_small = any(
        source[:1].islower() for entry in occurrence.entries for source in entry.sources
    )
    if has_capital and is_small and target[:1].islower():
        return target, target[0].upper() + target[1:]
    return (target,)


def _standing(wanted: Sequence[str], translation: str, inflected: bool) -> list[str]:
    """Return which of some words stand in a translation, each as often as it does; none within
    another.
    """
    found = []
    place = 0
    lowered = lowered_text(translation)
    by_length = sorted(wanted, key=len, reverse=True)
    while place < len(lowered):
        here = next(
            (
                word
                for word in by_length
                if lowered.startswith(lowered_text(word), place)
                and _is_whole(lowered, place, place + len(word), inflected)
            ),
            None,
        )
        if here is not None:
            found.append(translation[place : place + len(here)])
        place += len(here) if here else 1
    return found


def _is_whole(text: str, start: int, end: int, inflected: bool) -> bool:
    """Return whether the characters of a place are whole words; an inflected one may go on."""
    begins = start == 0 or not are_joined(text[start - 1], text[start])
    ends = inflected or end >= len(text) or not are_joined(text[end - 1], text[end])
    return begins and ends


def _places(tokens: Sequence[int], form: Sequence[int]) -> Iterator[int]:
    for place in range(len(tokens) - len(form) + 1):
        if tuple(tokens[place : place + len(form)]) == tuple(form):
            yield place


class _Spans:
    """The tokens of a row by the characters of its line."""

    def __init__(self, tokenizer: Tokenizer, ids: Sequence[int], line: str) -> None:
        self._ids = ids[:-1]  # without eos
        spelled = tokenizer.spell_each(self._ids)
        written = len(tokenizer.spell(self._ids))
        leading = sum(map(len, spelled)) - written
        # where each token ends among the bytes of the normalized line
        self._ends = [end - leading for end in accumulate(map(len, spelled))]
        normal = tokenizer.normalize(line)
        self._starts = tokenizer.starts(line)
        sizes = (len(character.encode("utf-8", "replace")) for character in normal)
        self._bytes = list(accumulate(sizes, initial=0))

    def of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first token of some characters and the one after their last; None where the
        row ends before them.
        """
        first = bisect_left(self._starts, start)
        last = bisect_left(self._starts, end)
        if last <= first or not self._ends:
            return None
        begin = bisect_right(self._ends, self._bytes[first])
        stop = bisect_left(self._ends, self._bytes[last])
        if stop >= len(self._ends) or begin > stop:
            return None
        return begin, stop + 1
