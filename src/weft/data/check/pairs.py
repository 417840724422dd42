"""The checks of pairs, one short function each: what in parallel text would make training wrong."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from weft.data.check.alignment import Alignment, Shift
from weft.data.check.alignment.lengths import Lengths
from weft.data.check.alignment.side import log_lengths
from weft.data.check.finding import (
    Evidence,
    Finding,
    Rows,
    as_read,
    counted,
    gravest_first,
)
from weft.data.check.language_identification import look_at_languages
from weft.data.check.numbers import contradiction
from weft.data.check.repeats import (
    Near,
    Repeats,
    conflicts,
    near_repeats,
    repeats,
)
from weft.data.check.sides import SideModel, Sides, judge_sides
from weft.data.check.words import Vocabulary, Words
from weft.data.check.writing import (
    control_characters,
    long_texts,
    markup,
    misread,
    wrong_script,
)
from weft.data.corpus import ParallelText
from weft.data.numbers import Difference
from weft.data.split import MIN_PAIRS, fold

# of the pairs: from here on training would learn the mistake as well
WRONG_SHARE = 0.05
_UNLIKE_LENGTHS = 4.0  # spreads of the corpus's own length ratio
# and at least so many times longer, for where nearly all ratios are the same
_UNLIKE_FACTOR = 1.8
_RATIO_FACTOR = 4.0  # and this many times is unlike wherever ratios vary widely
# of the units of a translation memory: from here on what stood in their codes may be missed
_CODED_SHARE = 0.2
# a text beside so many others, and so great a share of the pairs, is no coincidence
MANY = 20
MUCH = 0.1
# of the pairs with numbers on both sides: from here on those that differ are no slips
_WAY_SHARE = 0.25
# what is found by a close look at both sides
CLOSE = ("shifted-lines", "unrelated-sides", "strangers", "numbers-differ")
_MOST_NUMBERS = 5  # of a side that are named
_LETTER = re.compile(r"[^\W\d_]{2}")


class PairText:
    """Pairs measured once for all checks; `model` tells the languages apart as the training text
    does, `copies` are the pairs whose sides are the same, where that is known.
    """

    def __init__(
        self,
        text: ParallelText,
        model: SideModel | None = None,
        copies: Sequence[int] | None = None,
    ) -> None:
        vocabulary = Vocabulary()
        self.text = text
        self.model = model or SideModel(text.src, text.tgt)
        self.sides = (text.src, text.tgt)
        self.rows = Rows(
            len(text), "pairs", text.where, lambda i: (text.src[i], text.tgt[i])
        )
        self.src = Words(text.src, vocabulary)
        self.tgt = Words(text.tgt, vocabulary)
        self._copies = copies

    @property
    def copies(self) -> Sequence[int]:
        """Return the pairs whose sides are the same when they are folded."""
        if self._copies is None:
            both = zip(self.src.folded, self.tgt.folded, strict=True)
            self._copies = [i for i, (src, tgt) in enumerate(both) if src == tgt]
        return self._copies

    @cached_property
    def alignment(self) -> Alignment:
        """Learn how the sides agree."""
        return Alignment(self.src, self.tgt)

    @cached_property
    def lengths(self) -> Lengths:
        """Measure the lengths of both sides."""
        return Lengths(*map(log_lengths, self.sides))

    @cached_property
    def shifts(self) -> list[Shift]:
        """Return the stretches that are out of step; `alignment` has learned from them then."""
        return self.alignment.find_shifts()


def look_over(text: ParallelText, model: SideModel | None = None) -> list[Finding]:
    """Check one corpus; findings come gravest first. 100,000 pairs take some seconds."""
    return look_over_pairs(PairText(text, model))


def look_over_pairs(pairs: PairText, in_training: bool = True) -> list[Finding]:
    """Check measured pairs as `look_over` does. Of dev and test, what concerns learning alone is
    left out.
    """
    text = pairs.text
    findings = [
        # how it was read, before what that may have caused
        *as_read(pairs.rows, text.files, text.dropped, text.notes),
        *(_too_small(pairs) if in_training else ()),
        *look_at_languages(text, pairs.rows, in_training),
        *look_at_sides(pairs),
        *_repeated(pairs),
        *_one_text(pairs),
        *look_at_writing(pairs),
        *about_codes(text),
    ]
    return gravest_first(findings)


def look_at_sides(pairs: PairText, closely: bool = True) -> Iterator[Finding]:
    """Find what shows in a pair and its neighbours that sides do not belong together; but for the
    findings of CLOSE where it need not be done closely, which takes several times as long.
    """
    judged = judge_sides(pairs.model, *pairs.sides)
    if closely:
        yield from _out_of_step(pairs)
    yield from _swapped(pairs, judged)
    yield from _untranslated(pairs, judged)
    yield from _unlike_lengths(pairs)
    if closely:
        yield from _unlike_numbers(pairs)


def look_at_writing(
    pairs: PairText, scripts: Sequence[Counter[str]] = ()
) -> Iterator[Finding]:
    """Find what shows in how a line is written; `scripts` are those of each side of the text that
    these are pairs of.
    """
    yield from wrong_script(pairs.rows, pairs.sides, scripts)
    yield from misread(pairs.rows, pairs.sides)
    yield from control_characters(pairs.rows, pairs.sides)
    yield from markup(pairs.rows, pairs.sides)
    yield from long_texts(pairs.rows, pairs.sides)


def _too_small(pairs: PairText) -> Iterator[Finding]:
    size = pairs.rows.size
    if size < MIN_PAIRS:
        yield Finding(
            "warning",
            "too-small",
            f"{', '.join(pairs.text.files)}: too small: {size} pairs are too few to learn a language from",
            f"use at least {MIN_PAIRS} pairs for a first try, and tens of thousands for usable translations",
            size,
        )


def _out_of_step(pairs: PairText) -> Iterator[Finding]:
    """Find shifted stretches; else sides that do not go together at all; else single pairs that
    look like strangers.
    """
    rows, alignment = pairs.rows, pairs.alignment
    shifts = pairs.shifts
    if shifts:
        yield _shifted(pairs, shifts)
    elif rows.size >= MIN_PAIRS and alignment.seems_unrelated():
        yield Finding(
            "fatal",
            "unrelated-sides",
            f"{rows.where(0)}: lengths, punctuation, numbers and names of the two sides agree no better than by chance",
            "make sure that both sides are in the same order and that line n translates line n (if a model "
            "produced one side, that it can translate such text)",
            rows.size,
            (),
            rows.examples(range(rows.size)),
        )
        return
    inside = {i for shift in shifts for i in range(shift.first, shift.last + 1)}
    strangers = [i for i in alignment.strangers() if i not in inside]
    what = "the two sides hardly look like translations of each other: they agree far less than other pairs"
    remedy = "check whether these lines translate each other"
    yield from rows.shares(strangers, "strangers", what, remedy, 0.05)


def _shifted(pairs: PairText, shifts: list[Shift]) -> Finding:
    rows = pairs.rows
    first = shifts[0]
    concerned = [i for shift in shifts for i in range(shift.first, shift.last + 1)]
    shift_at = {shift.first: shift for shift in shifts}

    def evidence(i: int) -> Evidence:
        shift = shift_at[i]
        return Evidence(f"to {_end(rows, shift)}, {_how_far(shift)}")

    more = f", and {_ranges(len(shifts) - 1)}" if len(shifts) > 1 else ""
    return Finding(
        "fatal" if len(concerned) > WRONG_SHARE * rows.size else "warning",
        "shifted-lines",
        f"{rows.where(first.first)}: from here to {rows.where(first.last)} each source line matches the target line "
        f"{_how_far(first)} better than its own: the sides are shifted{more} "
        f"({counted(len(concerned), 'pairs')}, {100 * len(concerned) / rows.size:.1f} %)",
        "look there for a line that is missing, repeated or split in two on one of the sides",
        len(concerned),
        tuple(concerned),
        rows.examples([shift.first for shift in shifts], evidence, len(shifts)),
        places=rows.places(concerned),
    )


def _end(rows: Rows, shift: Shift) -> str:
    """Say where a range ends, without the file where it begins in the same."""
    first = rows.where(shift.first)
    last = rows.where(shift.last)
    file, _, number = last.rpartition(":")
    if not first.startswith(f"{file}:"):
        return last
    return f"line {number}" if number.isdecimal() else number.strip()


def _how_far(shift: Shift) -> str:
    """Say how far from its source line a target line stands."""
    lines = "line" if abs(shift.by) == 1 else "lines"
    direction = "later" if shift.by > 0 else "earlier"
    return f"{abs(shift.by)} {lines} {direction}"


def _ranges(number: int) -> str:
    return "1 more range" if number == 1 else f"{number} more ranges"


def _swapped(pairs: PairText, judged: Sides) -> Iterator[Finding]:
    what = "source and target are swapped: each is in the language of the other"
    remedy = "swap the sides of these pairs, or remove them"
    yield from pairs.rows.shares(
        judged.swapped, "swapped-languages", what, remedy, 0.01, WRONG_SHARE
    )


def _untranslated(pairs: PairText, judged: Sides) -> Iterator[Finding]:
    """Find copies; and pairs that are no copies, but with both sides in one language."""
    same = [i for i in pairs.copies if _LETTER.search(fold(pairs.text.src[i]))]
    remedy = "remove the pairs that were never translated; otherwise the model learns to copy"
    yield from pairs.rows.shares(
        same, "untranslated", "source and target are the same", remedy, 0.05, 0.5
    )
    copies = set(same)
    other = [i for i in judged.same_language if i not in copies]
    what = "both sides are in the same language"
    yield from pairs.rows.shares(other, "same-language", what, remedy, 0.05, 0.5)


def _unlike_lengths(pairs: PairText) -> Iterator[Finding]:
    """Find pairs with one side far longer than is usual here: text that was cut off, glued together
    or left out.
    """
    lengths = pairs.lengths
    factor = np.exp(np.abs(lengths.log_ratio))
    odd = (np.abs(lengths.deviation) > _UNLIKE_LENGTHS) & (factor > _UNLIKE_FACTOR)
    found = np.flatnonzero(odd | (factor > _RATIO_FACTOR)).tolist()

    def badness(i: int) -> float:
        return float(factor[i])

    def evidence(i: int) -> Evidence:
        longer = "source" if lengths.log_ratio[i] > 0 else "target"
        return Evidence(f"{longer} {factor[i]:.1f} times as long as usual")

    what = "one side is far longer or shorter than usual in this text"
    remedy = "check whether a sentence is truncated or joined with the next one"
    yield from pairs.rows.shares(
        found, "length-ratio", what, remedy, 0.05, evidence=evidence, badness=badness
    )


def _unlike_numbers(pairs: PairText) -> Iterator[Finding]:
    """Find pairs whose numbers contradict each other; where there are many of them that is how the
    text translates, and is said once.
    """
    differ = pairs.alignment.numbers_differ()
    found = [i for i in differ if _contradiction(pairs, i)]
    what = "both sides have numbers, but not the same ones"
    remedy = "check which number is right; one that the other side writes as a word is no error"
    if len(found) > _WAY_SHARE * pairs.alignment.num_with_numbers:
        what = "numbers differ in so many pairs that this is how the text is written"
        remedy = "look at some: other calendars, units or page numbers are no error"
    yield from pairs.rows.shares(
        found,
        "numbers-differ",
        what,
        remedy,
        0.05,
        evidence=lambda i: _other_numbers(pairs, i),
    )


def _contradiction(pairs: PairText, i: int) -> Difference:
    text = pairs.text
    return contradiction(text.src[i], text.tgt[i], (text.src_lang, text.tgt_lang))


def _other_numbers(pairs: PairText, i: int) -> Evidence:
    """Return the numbers of each side of a pair that contradict the other's."""
    found = _contradiction(pairs, i)
    names: dict[str, str] = {}
    starts: list[int | None] = []
    sizes = []
    for name, numbers in (("source", found.missing), ("target", found.added)):
        written = list(dict.fromkeys(number.text for number in numbers))
        if written:
            names[name] = ", ".join(written[:_MOST_NUMBERS])
        first = min(numbers, key=lambda number: number.start, default=None)
        starts.append(None if first is None else first.start)
        sizes.append(0 if first is None else len(first.text))
    said = " against ".join(names.values())
    if len(names) == 1:
        said += f" in the {next(iter(names))} alone"
    return Evidence(said, pairs.rows.around(i, starts), tuple(sizes))


def _repeated(pairs: PairText) -> Iterator[Finding]:
    """Find pairs that occur again, as they are or but for a word on each side; and sources with
    several translations.
    """
    src = pairs.src.folded
    tgt = pairs.tgt.folded
    again = repeats(zip(src, tgt, strict=True))
    known = set(again.rows)
    near_src = near_repeats(pairs.src)
    near_tgt = near_repeats(pairs.tgt)
    candidates = sorted((near_src.keys() | near_tgt.keys()) - known)
    near = [i for i in candidates if _is_near(pairs, near_src, near_tgt, i)]
    near_to = near_tgt | near_src
    first = [near_to[i] for i in near]
    several = [i for i in conflicts(src, tgt) if i not in known]
    yield from about_repeats(pairs.rows, again, Repeats(near, first), several)


def about_repeats(
    rows: Rows, again: Repeats, near: Repeats, several: Sequence[int]
) -> Iterator[Finding]:
    """Report pairs that occur `again`; those `near` an earlier one; and those whose source has
    another translation before.
    """
    remedy = "remove duplicates, unless they should have more weight in training"
    what = "the pair has occurred before"
    first = rows.first_at(again.shown())
    yield from rows.shares(again.rows, "duplicates", what, remedy, 0.2, evidence=first)
    what = "the pair has occurred before, with a word different"
    first = rows.first_at(near.shown())
    yield from rows.shares(
        near.rows, "near-duplicates", what, remedy, 0.2, evidence=first
    )
    what = "the source has occurred before with another translation"
    remedy = "nothing to do if both are right; the model will give one of them"
    yield from rows.shares(several, "several-translations", what, remedy, 0.5)


def _one_text(pairs: PairText) -> Iterator[Finding]:
    """Find a text that stands beside many different ones on the other side: a model would learn to
    say it always.
    """
    sides = (
        ("target", pairs.tgt.folded, "sources"),
        ("source", pairs.src.folded, "targets"),
    )
    distinct = set(zip(pairs.tgt.folded, pairs.src.folded, strict=True))
    for place, (name, folded, others) in enumerate(sides):
        text, times = Counter(pair[place] for pair in distinct).most_common(1)[0]
        if text and times >= MANY and times > MUCH * len(distinct):
            found = [i for i, own in enumerate(folded) if own == text]
            yield from about_one_text(pairs.rows, name, others, times, found)


def about_one_text(
    rows: Rows, name: str, others: str, times: int, found: Sequence[int]
) -> Iterator[Finding]:
    """Report a text that stands on one side of all these rows, beside so many different ones."""
    what = f"the same {name} occurs with {times:,} different {others}"
    remedy = "check whether a column or a file was filled with one line; the model would learn to repeat it"
    yield from rows.shares(found, "one-text", what, remedy, MUCH, 0.5)


def about_codes(text: ParallelText) -> Iterator[Finding]:
    """Report the units of a translation memory that held codes; a warning where they are many."""
    count = sum(text.coded.values())
    if not count:
        return
    share = count / len(text)
    yield Finding(
        "warning" if share > _CODED_SHARE else "note",
        "inline-codes",
        f"{', '.join(text.coded)}: {counted(count, 'pairs')} ({100 * share:.1f} % of the text) had "
        "inline codes (tags of the original document), which were removed with their content",
        "this is for training alone, a translation memory keeps them; check some of these pairs: if the codes "
        "contained words, export the memory as plain text",
        count,
    )


def _is_near(pairs: PairText, near_src: Near, near_tgt: Near, i: int) -> bool:
    """Return whether a pair is near an earlier one on one side, and the same or near on the
    other.
    """
    if i in near_src and i in near_tgt:
        return near_src[i] == near_tgt[i]
    if i in near_src:
        return pairs.tgt.folded[i] == pairs.tgt.folded[near_src[i]]
    return pairs.src.folded[i] == pairs.src.folded[near_tgt[i]]
