"""Terms of a glossary in the translations of a test set: whether each stands there as often as it
should, and in its place.

A term of a source counts where the reference has it: one of its targets, as a whole word. A term
that is twice in the source and once in the reference counts once. What the reference says
otherwise is counted apart, as nobody knows where it would belong.

The two measures of Alam et al. 2021, "On the Evaluation of Machine Translation for Terminology
Consistency", are exact match, the share of the terms that stand anywhere, each place being one
term's alone; and window overlap, how many of the n words on either side of a term in the reference
stand there in the translation, too. They take the mean of the latter over sentences; here it is
over terms, and 0 for one that is missing.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from weft.data.check.finding import counted
from weft.data.glossary import (
    Glossary,
    Occurrence,
    Standing,
    alike,
    are_joined,
    find_words,
    lowered_text,
)
from weft.evaluation.metrics import TranslationScores, translation_scores

WINDOWS = (2, 3)
"""Words on either side of a term that are compared with the reference's."""
LEAST_OVERLAP = 0.5
"""Of the wider window: with so much of it, a term is in its place, whatever the alignment says."""
LEAST_UNALIGNED = 0.2
"""The same where no alignment is known: one word of five."""
_MOST_FAULTS = 10  # that a person is shown


@dataclass(frozen=True)
class AlignedWord:
    """A word of a translation, its characters from `start` to before `end`, and those of the source
    words that it comes from.
    """

    start: int
    end: int
    sources: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TermText:
    """A source, its reference and its translation; `words` are the translation's, if the model
    aligns them. `where` is the place of the source.
    """

    source: str
    reference: str
    translation: str
    words: Sequence[AlignedWord] | None = None
    where: str = ""


@dataclass(frozen=True)
class TermFault:
    """A term that is not as it should be: `status` is a count of `TermCounts`.

    `source` is the word in the source; `words` are those that were wanted, or to be avoided.
    """

    where: str
    status: str
    source: str
    words: tuple[str, ...]


@dataclass
class TermCounts:
    """The fates of the terms of some sources.

    `num_terms` count: `right` stand as often as they should and in their place, `doubled` more
    often than in the source and in the reference, `misplaced` elsewhere, and `missing` nowhere.
    Each is one of these. `not_in_reference` are those that do not count. `exact` stand anywhere. Of
    the `avoidable`, for which words must not be used, `avoided` have such a word nevertheless, and
    more often than the reference. `overlaps` are the sums of window overlaps, by the size of the
    window. `faults` are the terms that are not right, one by one.
    """

    num_terms: int = 0
    not_in_reference: int = 0
    right: int = 0
    doubled: int = 0
    misplaced: int = 0
    missing: int = 0
    exact: int = 0
    avoidable: int = 0
    avoided: int = 0
    overlaps: dict[int, float] = field(
        default_factory=lambda: dict.fromkeys(WINDOWS, 0.0)
    )
    faults: list[TermFault] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class TermScores:
    """The counts of a test set, and BLEU and chrF of the `num_sentences` that have terms all of
    which count; None where there is none.

    A sentence with a term that its reference lacks is none of these: to be right it must differ
    from the reference.
    """

    counts: TermCounts
    num_sentences: int
    sentences: TranslationScores | None

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares of the terms that count, by name, from 0 to 1."""
        counts = self.counts
        total = max(counts.num_terms, 1)
        shares = {
            "right": counts.right / total,
            "doubled": counts.doubled / total,
            "misplaced": counts.misplaced / total,
            "missing": counts.missing / total,
            "avoided_words": counts.avoided / max(counts.avoidable, 1),
            "exact_match": counts.exact / total,
        }
        for window, overlap in counts.overlaps.items():
            shares[f"window_overlap_{window}"] = overlap / total
        return shares

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; `accuracy` and all shares are from 0 to 1."""
        counts = asdict(self.counts)
        del counts["overlaps"]
        faults = counts.pop("faults")
        found = self.sentences
        return {
            "counts": counts | {"num_sentences": self.num_sentences},
            **self.shares,
            "bleu": found.bleu if found else None,
            "chrf": found.chrf if found else None,
            "faults": faults,
        }


def term_scores(
    glossary: Glossary, texts: Sequence[TermText], tgt_lang: str
) -> TermScores:
    """Score the terms in translations; `tgt_lang` (BCP-47) chooses BLEU's words."""
    counts = TermCounts()
    scored = []
    for text in texts:
        before = counts.num_terms, counts.not_in_reference
        _count(counts, glossary.find(text.source), text)
        if counts.num_terms > before[0] and counts.not_in_reference == before[1]:
            scored.append(text)
    found = None
    if scored:
        translations = [text.translation for text in scored]
        references = [text.reference for text in scored]
        found = translation_scores(translations, references, tgt_lang)
    return TermScores(counts, len(scored), found)


def _count(
    counts: TermCounts, occurrences: Sequence[Occurrence], text: TermText
) -> None:
    if not occurrences:
        return
    wanted = find_words(text.reference, occurrences)
    given = find_words(text.translation, occurrences)
    sides = _Sides(text)
    for numbers in alike(occurrences):
        group = [occurrences[number] for number in numbers]
        words: set[str] = set()
        for occurrence in group:
            words.update(map(lowered_text, occurrence.targets))
        _count_group(counts, group, _those(wanted, words), _those(given, words), sides)
    for occurrence in occurrences:
        avoided = set(map(lowered_text, occurrence.avoided))
        counts.avoidable += bool(avoided)
        if len(_those(given, avoided)) > len(_those(wanted, avoided)):
            counts.avoided += 1
            fault = TermFault(
                text.where, "avoided", occurrence.source, occurrence.avoided
            )
            counts.faults.append(fault)


def _count_group(
    counts: TermCounts,
    group: Sequence[Occurrence],
    wanted: Sequence[Standing],
    given: Sequence[Standing],
    sides: "_Sides",
) -> None:
    """Count terms that share targets, by the places of these in reference and translation."""
    num_terms = min(len(group), len(wanted))
    counts.num_terms += num_terms
    counts.not_in_reference += len(group) - num_terms
    pairs = sides.pairs(wanted, given)[:num_terms]
    counts.exact += len(pairs)
    missing = num_terms - len(pairs)
    counts.missing += missing
    counts.faults += _faults("missing", missing, group, sides.text)
    for first, second in pairs:
        for window in WINDOWS:
            counts.overlaps[window] += sides.overlap(first, second, window)
    too_many = len(given) - max(len(group), len(wanted))
    doubled = min(max(too_many, 0), len(pairs))
    counts.doubled += doubled
    counts.faults += _faults("doubled", doubled, group, sides.text)
    for first, second in pairs[: len(pairs) - doubled]:
        if sides.is_in_place(first, second, group):
            counts.right += 1
        else:
            counts.misplaced += 1
            counts.faults += _faults("misplaced", 1, group, sides.text)


def _faults(
    status: str, number: int, group: Sequence[Occurrence], text: TermText
) -> list[TermFault]:
    """Return so many terms of a group as not right; it is not known which of them are."""
    return [
        TermFault(text.where, status, one.source, one.targets) for one in group[:number]
    ]


def _those(standing: Sequence[Standing], words: set[str]) -> list[Standing]:
    return [one for one in standing if one.word in words]


@dataclass(frozen=True)
class _Sides:
    """A text whose terms are judged by their places."""

    text: TermText

    @cached_property
    def _reference(self) -> "_Words":
        return _Words(self.text.reference)

    @cached_property
    def _translation(self) -> "_Words":
        return _Words(self.text.translation)

    def pairs(
        self, wanted: Sequence[Standing], given: Sequence[Standing]
    ) -> list[tuple[Standing, Standing]]:
        """Join the places of a term in the reference to those in the translation: those with the
        most overlap first, none twice.
        """
        if len(wanted) == len(given) == 1:
            return [(wanted[0], given[0])]
        window = WINDOWS[-1]
        by_overlap = sorted(
            product(wanted, given),
            key=lambda pair: -self.overlap(pair[0], pair[1], window),
        )
        pairs = []
        taken: set[tuple[str, int]] = set()
        for first, second in by_overlap:
            both = {("reference", first.start), ("translation", second.start)}
            if taken.isdisjoint(both):
                taken |= both
                pairs.append((first, second))
        return pairs

    def overlap(self, wanted: Standing, given: Standing, window: int) -> float:
        """Return which share of the words around a term in the reference stands around it here; 1
        where it has none.
        """
        here = self._translation.around(given, window)
        there = self._reference.around(wanted, window)
        if not there:
            return 1.0
        return (here & there).total() / there.total()

    def is_in_place(
        self, wanted: Standing, given: Standing, group: Sequence[Occurrence]
    ) -> bool:
        """Return whether a term stands where it belongs: a word of it comes from the source's, or
        enough of the words around it are the reference's.
        """
        if self._comes_from(given, group):
            return True
        least = LEAST_UNALIGNED if self.text.words is None else LEAST_OVERLAP
        return self.overlap(wanted, given, WINDOWS[-1]) >= least

    def _comes_from(self, given: Standing, group: Sequence[Occurrence]) -> bool:
        sources: list[tuple[int, int]] = []
        for word in self.text.words or ():
            if word.start < given.end and word.end > given.start:
                sources += word.sources
        return any(
            start < one.end and end > one.start
            for one, (start, end) in product(group, sources)
        )


class _Words:
    """The words of a text, without marks; in scripts without spaces each character is one."""

    def __init__(self, text: str) -> None:
        self._spans = list(_spans(text))
        self._words = [text[start:end] for start, end in self._spans]

    def around(self, place: Standing, window: int) -> Counter[str]:
        """Count the words that stand next to a place, so many on either side."""
        before = bisect_right(self._spans, place.start, key=lambda span: span[1])
        behind = bisect_left(self._spans, place.end, key=lambda span: span[0])
        first = self._words[max(before - window, 0) : before]
        return Counter(first + self._words[behind : behind + window])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each word begins and ends."""
    start = 0
    for place in range(1, len(text) + 1):
        if place < len(text) and are_joined(text[place - 1], text[place]):
            continue
        if text[start].isalnum():
            yield start, place
        start = place


def term_table(columns: Mapping[str, TermScores]) -> list[str]:
    """Write scores of the same terms side by side, for a person, in lines."""
    scores = list(columns.values())
    counts = scores[0].counts
    total = counts.num_terms + counts.not_in_reference
    total = counts.num_terms + counts.not_in_reference
    lines = [
        f"terms {counts.num_terms:,} of {total:,} in the sources are in the references and count"
    ]
    if not counts.num_terms:
        return lines
    lines.append(_row("", [f"{name:>9}" for name in columns]))
    for name in scores[0].shares:
        if name == "avoided_words" and not counts.avoidable:
            continue
        cells = [f"{100 * each.shares[name]:7.1f} %" for each in scores]
        said = _NAMES.get(name) or _window_name(name)
        if name == "avoided_words":
            said += f", of {counts.avoidable:,} with one"
        lines.append(_row(said, cells))
    found = [each.sentences for each in scores if each.sentences]
    if found:
        lines.append(_row("BLEU", [f"{one.bleu:7.2f}  " for one in found]))
        lines.append(_row("chrF", [f"{one.chrf:7.2f}  " for one in found]))
        sentences = counted(scores[0].num_sentences, "sentences")
        lines.append(f"      BLEU and chrF of {sentences} whose terms all count")
    return [*lines, *_fault_lines(columns)]


def _fault_lines(columns: Mapping[str, TermScores]) -> Iterator[str]:
    """Yield the first faults of the last column, each with its place."""
    name = list(columns)[-1]
    faults = columns[name].counts.faults
    if faults:
        yield f"not right {name} the glossary ({len(faults):,}):"
    for one in faults[:_MOST_FAULTS]:
        yield f"      {one.where}: {one.source}: {one.status}: {' or '.join(one.words)}"
    if len(faults) > _MOST_FAULTS:
        yield f"      {len(faults) - _MOST_FAULTS:,} more; --json lists them all"


_NAMES = {
    "right": "as often as it should, in its place",
    "doubled": "doubled",
    "misplaced": "misplaced",
    "missing": "missing",
    "avoided_words": "a word to avoid",
    "exact_match": "exact match",
}


def _window_name(name: str) -> str:
    return f"window overlap, {name.rsplit('_', 1)[1]} words"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"      {name:<38}{'  '.join(cells)}".rstrip()
