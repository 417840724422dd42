"""The data doctor: what in a corpus would make training wrong or a score meaningless."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from weft.data.alignment import Alignment, Shift
from weft.data.corpus import ParallelText, fold
from weft.data.split import MIN_PAIRS

LONG_CHARS = 2000
_RATIO_FACTOR = 4.0
_NUM_EXAMPLES = 5
# C0 but TAB, DEL, C1, the line separators that some tools split at, and the mark of a failed decoding.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufffd]")


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing: `message` is one line with file and line, `remedy` says what to do about it."""

    severity: Literal["note", "warning", "fatal"]
    code: str
    message: str
    remedy: str
    count: int


@dataclass(frozen=True)
class Overlap:
    """How much of a test set occurs in training. `exact` compares untouched text, `folded` as `fold` does.

    `examples` are `file:line` of a test pair and of a training pair like it; `pairs` the indices of all folded
    test pairs that occur, for whoever wants to score without them.
    """

    test_size: int
    exact_pairs: int
    exact_sources: int
    exact_targets: int
    folded_pairs: int
    folded_sources: int
    folded_targets: int
    examples: list[tuple[str, str]] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)


def overlap(train: ParallelText, test: ParallelText) -> Overlap:
    """Count the test pairs, sources and targets that also occur in training."""
    folded_src, folded_tgt = list(map(fold, test.src)), list(map(fold, test.tgt))
    train_src, train_tgt = list(map(fold, train.src)), list(map(fold, train.tgt))
    place: dict[tuple[str, str], int] = {}
    for index, pair in enumerate(zip(train_src, train_tgt, strict=True)):
        place.setdefault(pair, index)
    shared = [i for i, pair in enumerate(zip(folded_src, folded_tgt, strict=True)) if pair in place]
    return Overlap(
        test_size=len(test),
        exact_pairs=_count_in(zip(test.src, test.tgt, strict=True), zip(train.src, train.tgt, strict=True)),
        exact_sources=_count_in(test.src, train.src),
        exact_targets=_count_in(test.tgt, train.tgt),
        folded_pairs=len(shared),
        folded_sources=_count_in(folded_src, train_src),
        folded_targets=_count_in(folded_tgt, train_tgt),
        examples=[
            (test.where(i), train.where(place[folded_src[i], folded_tgt[i]])) for i in shared[:_NUM_EXAMPLES]
        ],
        pairs=shared,
    )


def look_over(text: ParallelText) -> list[Finding]:
    """Everything suspicious in one corpus, the gravest first. Cheap: about a second for 100,000 pairs."""
    findings = [
        *_too_small(text),
        *_out_of_step(text),
        *_untranslated(text),
        *_repeated(text),
        *_control_characters(text),
        *_long(text),
        *_as_read(text),
    ]
    return sorted(findings, key=lambda finding: ("fatal", "warning", "note").index(finding.severity))


def _count_in(some: Iterable[object], others: Iterable[object]) -> int:
    known = set(others)
    return sum(one in known for one in some)


def _too_small(text: ParallelText) -> Iterator[Finding]:
    if len(text) < MIN_PAIRS:
        yield Finding(
            "warning",
            "too-small",
            f"{', '.join(text.files)}: too small: {len(text)} pairs are too few to learn a language from",
            f"bring at least {MIN_PAIRS} pairs to try things out, and tens of thousands for usable translations",
            len(text),
        )


def _out_of_step(text: ParallelText) -> Iterator[Finding]:
    """Shifted lines; else sides that do not go together at all; and single pairs of very unlike lengths."""
    alignment = Alignment(text.src, text.tgt)
    shift = alignment.find_shift()
    if shift:
        yield _shifted(text, shift)
    elif len(text) >= MIN_PAIRS and alignment.seems_unrelated():
        yield Finding(
            "warning",
            "unrelated-sides",
            f"{text.where(0)}: length, numbers and question marks of the two sides agree no better than by chance",
            "make sure that both sides are in the same order and that line n translates line n",
            len(text),
        )
    odd = np.flatnonzero(np.abs(alignment.log_ratio) > np.log(_RATIO_FACTOR)).tolist()
    what = f"one side is over {_RATIO_FACTOR:g} times longer than pairs here usually are"
    yield from _shares(text, odd, "length-ratio", what, "look whether these lines translate each other", 0.05)


def _shifted(text: ParallelText, shift: Shift) -> Finding:
    lines = "line" if abs(shift.by) == 1 else "lines"
    direction = "after" if shift.by > 0 else "before"
    return Finding(
        "warning",
        "shifted-lines",
        f"{text.where(shift.first)}: from about here to {text.where(shift.last)} each source line fits the target "
        f"{abs(shift.by)} {lines} {direction} its own better: the sides seem shifted",
        "look for a line that is missing, doubled or broken in two near there, in one of the sides",
        shift.last - shift.first + 1,
    )


def _untranslated(text: ParallelText) -> Iterator[Finding]:
    same = [i for i, (src, tgt) in enumerate(zip(text.src, text.tgt, strict=True)) if src == tgt]
    remedy = "take out the pairs that were never translated, or the model learns to copy"
    yield from _shares(text, same, "untranslated", "source and target are the same", remedy, 0.05)


def _repeated(text: ParallelText) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    again = []
    for index, pair in enumerate(zip(map(fold, text.src), map(fold, text.tgt), strict=True)):
        if pair in seen:
            again.append(index)
        seen.add(pair)
    remedy = "drop repeats, or their weight in training is what you want"
    yield from _shares(text, again, "duplicates", "the pair has occurred before", remedy, 0.2)


def _control_characters(text: ParallelText) -> Iterator[Finding]:
    found = [
        i
        for i, (src, tgt) in enumerate(zip(text.src, text.tgt, strict=True))
        if _CONTROL.search(src) or _CONTROL.search(tgt)
    ]
    what = "control characters, unusual line separators or marks of failed decoding"
    remedy = "look how the text was converted to UTF-8"
    yield from _shares(text, found, "control-characters", what, remedy, 0.01)


def _long(text: ParallelText) -> Iterator[Finding]:
    found = [
        i
        for i, (src, tgt) in enumerate(zip(text.src, text.tgt, strict=True))
        if len(src) > LONG_CHARS or len(tgt) > LONG_CHARS
    ]
    what = f"longer than {LONG_CHARS:,} characters"
    yield from _shares(text, found, "long-lines", what, "split documents into sentences", 0.05)


def _as_read(text: ParallelText) -> Iterator[Finding]:
    for reason, count in sorted(text.dropped.items()):
        share = count / (len(text) + count)
        yield Finding(
            "warning" if share > 0.1 else "note",
            "dropped-pairs",
            f"{', '.join(text.files)}: {_count(count)} dropped: {reason}",
            "nothing to do if that was to be expected; else look at the files",
            count,
        )
    for note in text.notes:
        yield Finding("note", "as-read", note, "nothing to do if that is what you mean", 1)


def _shares(
    text: ParallelText, found: Sequence[int], code: str, what: str, remedy: str, limit: float
) -> Iterator[Finding]:
    """A note for pairs that have something, a warning above a share of the corpus; the first is named."""
    if found:
        share = len(found) / len(text)
        yield Finding(
            "warning" if share > limit else "note",
            code,
            f"{text.where(found[0])}: {what} ({_count(len(found))}, {share:.1%}; the first is named)",
            remedy,
            len(found),
        )


def _count(number: int) -> str:
    return "1 pair" if number == 1 else f"{number:,} pairs"
