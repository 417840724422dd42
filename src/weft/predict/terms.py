"""A glossary's terms in rows: as the tokens that a search must write, and as they were written."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from weft.data.glossary import (
    Glossary,
    Occurrence,
    Standing,
    alike,
    find_words,
    lowered_text,
    word_with,
)
from weft.data.hints import TermHint, target_ids
from weft.data.scripts import is_spaceless_letter
from weft.data.spans import TokenSpans
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.decoder import Tokens
from weft.decoding.forms import Term, Terms
from weft.decoding.terms import MOST_TERMS
from weft.predict.alignment import Floats, words_of

TermStatus: TypeAlias = Literal["used", "missing", "doubled", "elsewhere", "avoided"]
"""What became of a term: it stands once; it does not stand there, or more often than in the source,
or not where its source word was translated, as far as the alignment knows; or a word stands there
that must not be used.
"""


@dataclass(frozen=True)
class TermUse:
    """A term of a text, and what became of it.

    `start` and `end` are its characters in the text. `used` is what stands in the translation, ""
    for nothing, and `place` its characters there. `where` is the row of the glossary, `reason` says
    why it is not as demanded.
    """

    source: str
    start: int
    end: int
    wanted: tuple[str, ...]
    used: str
    status: TermStatus
    where: str
    reason: str = ""
    place: tuple[int, int] = (0, 0)

    def to_json(self) -> dict[str, Any]:
        """Return it as a plain dictionary, without its place in the translation."""
        fields = asdict(self)
        del fields["place"]
        return fields


@dataclass(frozen=True)
class TermFinder:
    """A glossary for a pair of tokenizers.

    The terms of a row have at most `room` tokens in all; those that come after are left out. With
    `has_spaces`, there are some between the words of the target. It `binds` the search to the
    terms, or `marks` them in the source for the model to read, or both.
    """

    glossary: Glossary
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    room: int
    has_spaces: bool = True
    binds: bool = True
    marks: bool = False

    def find(self, ids: tuple[int, ...], line: str) -> "RowTerms | None":
        """Return the terms of a line, whose ids are a row's; None where it has none."""
        occurrences = tuple(self.glossary.find(line))
        return RowTerms(line, ids, occurrences, self) if occurrences else None

    def forms(self, occurrence: Occurrence) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of each target; a capital at its head where the source has one."""
        forms: list[tuple[int, ...]] = []
        for target in occurrence.targets:
            for spelling in _capitals(target, occurrence):
                forms += self._encoded(spelling)
        return tuple(dict.fromkeys(forms))

    def avoided(self, occurrence: Occurrence) -> list[tuple[int, ...]]:
        """Return the tokens of what must not be used."""
        runs = []
        for text in occurrence.avoided:
            for spelling in dict.fromkeys((text, text[:1].upper() + text[1:])):
                runs += self._encoded(spelling)
        return runs

    def _encoded(self, text: str) -> list[tuple[int, ...]]:
        """Return the tokens of a text inside of another one, those that give it back."""
        tokenizer = self.tgt_tokenizer
        ways = [tokenizer.encode_inside(text)]
        if not self.has_spaces:
            ways.append(tokenizer.encode_going_on(text))
        # it may be the first word
        if not tokenizer.settings.leading_space:
            ways.append(tokenizer.encode(text))
        return [
            tuple(ids) for ids in ways if ids and tokenizer.decode(ids).strip() == text
        ]


@dataclass(frozen=True)
class RowTerms:
    """The terms of a row, found in its line once; equal for equal lines.

    `needed` are those that the search writes, `avoided` the runs of tokens that it does not.
    """

    line: str
    ids: tuple[int, ...] = field(compare=False, repr=False)
    occurrences: tuple[Occurrence, ...] = field(compare=False, repr=False)
    finder: TermFinder = field(compare=False, repr=False)

    @cached_property
    def needed(self) -> Terms | None:
        """Return the terms that fit into the row; None for none."""
        return self.needed_of(range(len(self.occurrences)))

    def needed_of(self, numbers: Collection[int]) -> Terms | None:
        """Return those of some terms that fit into the row; None for none."""
        terms = tuple(
            one
            for number, one in enumerate(self._each)
            if one is not None and number in numbers
        )
        inner = _inner_of(self.finder.tgt_tokenizer)
        return Terms(terms, inner) if terms else None

    @cached_property
    def avoided(self) -> tuple[tuple[int, ...], ...]:
        """Return the runs of tokens that must not be written, each once."""
        runs = map(self.finder.avoided, self.occurrences[:MOST_TERMS])
        return tuple(dict.fromkeys(chain.from_iterable(runs)))

    @cached_property
    def _each(self) -> list[Term | None]:
        """List what the search writes for each term; None where it cannot."""
        terms: list[Term | None] = []
        num_tokens = 0
        for occurrence, span, forms in zip(
            self.occurrences[:MOST_TERMS], self._spans, self._forms, strict=False
        ):
            if span is None or not forms:
                terms.append(None)
                continue
            num_tokens += min(map(len, forms))
            if num_tokens > self.finder.room:
                break
            terms.append(Term(forms, span, _is_open(occurrence)))
        return terms + [None] * (len(self.occurrences) - len(terms))

    @cached_property
    def _spans(self) -> list[tuple[int, int] | None]:
        """List the tokens of each term."""
        spans = TokenSpans(self.finder.src_tokenizer, self.ids[:-1], self.line)
        return [spans.of(one.start, one.end) for one in self.occurrences]

    @cached_property
    def _forms(self) -> list[tuple[tuple[int, ...], ...]]:
        return list(map(self.finder.forms, self.occurrences))

    @cached_property
    def _groups(self) -> list[list[int]]:
        return alike(self.occurrences)

    @cached_property
    def hints(self) -> tuple[TermHint, ...]:
        """Return the terms, each with its first target, as a model reads them that has learned
        to.

        It reads no term whose ending is not that of the glossary: the target's is not known.
        """
        hints: list[TermHint] = []
        for occurrence, span in zip(self.occurrences, self._spans, strict=True):
            if span is None or _has_other_ending(occurrence):
                continue
            spellings = _capitals(occurrence.targets[0], occurrence)
            # at its head a line has the capital of any first word
            target = spellings[0] if occurrence.start else spellings[-1]
            ids = target_ids(self.finder.tgt_tokenizer, target)
            if ids and (not hints or span[0] >= hints[-1].end):
                hints.append(TermHint(*span, ids))
        return tuple(hints)

    def lacks(self, translation: str) -> bool:
        """Return whether a translation lacks a term, or has a word to avoid."""
        found = self._found(translation)
        return any(one.wrong or one.is_missing for one in found)

    def lacking(self, translation: str) -> frozenset[int]:
        """Return the numbers of the terms that a translation lacks, and of those that share a
        target with one of these: which of them stands there is not known.
        """
        found = self._found(translation)
        return frozenset(
            number
            for group in self._groups
            if any(found[number].is_missing for number in group)
            for number in group
        )

    def rivals(self, tokens: Sequence[int], support: Floats) -> list[tuple[int, ...]]:
        """Return the words that stood in the places of missing terms, by their first tokens: in a
        free translation, of whose `tokens` each source token supports each so much (T, S).
        """
        needed = self.needed.terms if self.needed else ()
        begins = {form[0] for term in needed for form in term.forms}
        found = self._found(self.finder.tgt_tokenizer.decode(tokens))
        rivals: list[tuple[int, ...]] = []
        for span, one in zip(self._spans, found, strict=True):
            if span is None or one.places:
                continue
            rival = self._rival(span, tokens, support)
            if rival is not None and rival not in begins:
                rivals.append((rival,))
        return rivals

    def _rival(
        self, span: tuple[int, int], tokens: Sequence[int], support: Floats
    ) -> int | None:
        """Return the first token of the word that the source tokens of a term wrote; None where
        they wrote none, or its token stands elsewhere, too.
        """
        spelled = self.finder.tgt_tokenizer.spell_each(tokens)
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
        translation: str,
        tokens: Sequence[int],
        support: Floats | None,
        is_given: bool = False,
    ) -> Iterator[TermUse]:
        """Yield what became of the terms, places counted in the line.

        `tokens` are those of the translation, `support` (T, S) how much each source token supports
        each of them, if known. One that `is_given` was not searched, but taken from a memory.
        """
        found = self._found(translation)
        spans = TokenSpans(self.finder.tgt_tokenizer, tokens, translation)
        for number, (occurrence, one) in enumerate(
            zip(self.occurrences, found, strict=True)
        ):
            used = one.own
            wrote = [spans.of(place.start, place.end) for place in one.places]
            status, reason = self._status(number, one, translation, wrote, support)
            if reason and is_given:
                reason = "the unit of the memory has it so"
            if status == "missing":
                reason += _remedy(occurrence, translation)
            yield TermUse(
                occurrence.source,
                occurrence.start,
                occurrence.end,
                occurrence.targets,
                translation[used.start : used.end] if used else "",
                status,
                occurrence.entries[0].where,
                reason,
                (used.start, used.end) if used else (0, 0),
            )

    def _status(
        self,
        number: int,
        found: "_Found",
        translation: str,
        wrote: Sequence[tuple[int, int] | None],
        support: Floats | None,
    ) -> tuple[TermStatus, str]:
        """Return what became of a term, and the reason; `wrote` are the tokens of its words."""
        if found.wrong:
            wrong = found.wrong[0]
            return "avoided", f"{translation[wrong.start : wrong.end]} must not be used"
        if found.is_missing:
            return "missing", self._why_missing(number)
        if found.is_doubled:
            return "doubled", f"it stands {len(found.places)} times"
        if support is not None and not self._is_in_place(number, wrote, support):
            return (
                "elsewhere",
                "the model seems to have written it for other words of the source",
            )
        return "used", ""

    def _why_missing(self, number: int) -> str:
        if self._spans[number] is None:
            return "the model did not read this far"
        if not self.finder.binds:
            return "the model read it and did not write it"
        if not self._forms[number]:
            return "the model's tokens cannot write it as it stands"
        if self._each[number] is None:
            return "the sentence has too many terms"
        return "it does not stand there as a word"

    def _is_in_place(
        self, number: int, wrote: Sequence[tuple[int, int] | None], support: Floats
    ) -> bool:
        """Return whether tokens of its words come from the tokens of the term, or from none."""
        span = self._spans[number]
        if span is None:
            return False
        first, last = span
        for tokens in wrote:
            if tokens is None:
                continue
            sums = support[slice(*tokens), :-1].sum(0)
            if not sums.any() or first <= int(sums.argmax()) < last:
                return True
        return False

    def _found(self, translation: str) -> list["_Found"]:
        """Return what a translation has of each term."""
        standing = find_words(translation, self.occurrences)
        found: dict[int, _Found] = {}
        for group in self._groups:
            of_group = _words_of(self.occurrences[number].targets for number in group)
            places = [one for one in standing if one.word in of_group]
            for rank, number in enumerate(group):
                occurrence = self.occurrences[number]
                is_missing = rank >= len(places) or not _those_of(
                    places, occurrence.targets
                )
                found[number] = _Found(
                    places,
                    _those_of(standing, occurrence.avoided),
                    is_missing,
                    is_doubled=len(places) > len(group),
                    own=None if is_missing else places[rank],
                )
        return [found[number] for number in range(len(self.occurrences))]


@dataclass(frozen=True)
class _Found:
    """The places of a term's targets, and of those of the terms that share one with it; and those
    of its avoided words. One of the first is its `own`.
    """

    places: list[Standing]
    wrong: list[Standing]
    is_missing: bool
    is_doubled: bool
    own: Standing | None = None


def _words_of(texts: Iterable[Sequence[str]]) -> set[str]:
    return set(map(lowered_text, chain.from_iterable(texts)))


def _those_of(standing: Sequence[Standing], words: Sequence[str]) -> list[Standing]:
    """Return the places of some words."""
    wanted = _words_of([words])
    return [one for one in standing if one.word in wanted]


def _remedy(occurrence: Occurrence, translation: str) -> str:
    """Return what to write into the glossary where a longer word stands in a term's place; nothing
    where none does.
    """
    for target in occurrence.targets:
        longer = word_with(translation, target)
        if longer.lower().startswith(target.lower()):
            return f"; for {longer} to count, too, give the row inflection: yes"
        if longer:
            return f"; for {longer} to count, too, write {target}|{longer}"
    return ""


def _is_open(occurrence: Occurrence) -> bool:
    """Return whether the target may go on: it may be inflected, or its script has no spaces."""
    ends = [target[-1:] for target in occurrence.targets]
    return occurrence.inflected or any(
        is_spaceless_letter(end) or not end.isalnum() for end in ends
    )


def _inner_of(tokenizer: Tokenizer) -> Tokens:
    """List the ids that go on with a word: of each tokenizer once, whatever the glossary."""
    found = _INNER.get(tokenizer)
    if found is None:
        ids = range(EOS_ID + 1, tokenizer.vocab_size)
        is_inner = np.array(list(map(_is_inner, tokenizer.spell_each(ids))), np.bool_)
        found = np.flatnonzero(is_inner).astype(np.int32) + (EOS_ID + 1)
        _INNER[tokenizer] = found
    return found


_INNER: WeakKeyDictionary[Tokenizer, Tokens] = WeakKeyDictionary()


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


def _has_other_ending(occurrence: Occurrence) -> bool:
    """Return whether a term stands in the text with an ending that the glossary does not have."""
    sources = (source for entry in occurrence.entries for source in entry.sources)
    return lowered_text(occurrence.source) not in map(lowered_text, sources)
