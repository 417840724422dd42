"""Training, dev and test text checked together: each by itself, and what they share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from weft.data.check.documents import look_over_documents
from weft.data.check.finding import (
    Evidence,
    Finding,
    Rows,
    Severity,
    counted,
    gravest_first,
)
from weft.data.check.pairs import PairText, look_over_pairs
from weft.data.check.rows import look_over_labelled, missing_labels, unknown_labels
from weft.data.check.sides import SideModel
from weft.data.check.stretches import look_over_large
from weft.data.check.words import Vocabulary, Words
from weft.data.corpus import ParallelText, measured
from weft.data.documents import Documents
from weft.data.equals import Hashes, Positions, places_of, sorted_once
from weft.data.labelled import LabelledText, label_counts
from weft.data.measures import hash_texts
from weft.data.split import fold

# of dev or test in training: from here on the score is one of memory
MEMORY_SHARE = 0.5
# of more than this it is a warning, and matters to the score
WARN_SHARE = 0.01
_FEWEST = 20  # rows or lines, of which a share can be told
_LEAST_LINE = 30  # letters of a line of a document; shorter ones recur by chance

T = TypeVar("T", ParallelText, Documents, LabelledText)


@dataclass(frozen=True)
class Overlap:
    """The rows of a text that occur in another: `exact` untouched, `folded` without case, spaces
    and punctuation.

    `folded` has the exact ones as well; `first` says for each of it where the other text has it
    first. `one_side` are pairs of which only the source or only the target occurs.
    """

    exact: list[int]
    folded: list[int]
    first: list[int]
    one_side: list[int]


@dataclass(frozen=True)
class View:
    """The rows of a part as they are compared with other parts: pairs, or texts alone; untouched
    and folded.
    """

    texts: Sequence[tuple[str, ...]]
    folded: Sequence[tuple[str, ...]]
    rows: Rows


class LargeView:
    """A large text of pairs as it is compared with others: by the hashes of its rows."""

    def __init__(self, text: ParallelText) -> None:
        assert text.measures is not None
        self.measures = text.measures
        self.rows = Rows(
            len(text), "pairs", text.where, lambda i: (text.src[i], text.tgt[i])
        )

    def overlap(self, view: View) -> Overlap:
        """Find the rows of `view` that occur in this text."""
        hashes = hash_texts(map("\t".join, view.folded))
        shared, own = _shared_hashes(self.measures.row, hashes)
        order = np.argsort(own, kind="stable")
        begins = np.searchsorted(own, hashes, sorter=order)
        ends = np.searchsorted(own, hashes, "right", sorter=order)
        folded = np.flatnonzero(ends > begins).tolist()
        exact = []
        for i in folded:
            places = shared[order[begins[i] : ends[i]]].tolist()
            if any(self.rows.show(j) == view.texts[i] for j in places):
                exact.append(i)
        has_side = np.zeros(len(hashes), np.bool_)
        for number, side in enumerate(zip(*view.folded, strict=True)):
            of_side = hash_texts(side)
            _, own = _shared_hashes(self.measures.side(number), of_side)
            has_side |= np.isin(of_side, own)
        has_side[folded] = False
        first = shared[order[begins[folded]]].tolist()
        return Overlap(exact, folded, first, np.flatnonzero(has_side).tolist())


def _shared_hashes(many: Hashes, few: Hashes) -> tuple[Positions, Hashes]:
    """Return the places at which `many` hashes are among `few`, and those that stand there."""
    places = places_of(sorted_once(few), many)
    return places, many[places]


def overlap(other: View | LargeView, view: View) -> Overlap:
    """Find the rows of `view` that occur in `other`."""
    if isinstance(other, LargeView):
        return other.overlap(view)
    place: dict[tuple[str, ...], int] = {}
    for index, row in enumerate(other.folded):
        place.setdefault(row, index)
    columns: list[set[str]] = []
    if len(view.folded[0]) > 1:
        columns = list(map(set, zip(*other.folded, strict=True)))
    folded: list[int] = []
    one_side: list[int] = []
    for index, row in enumerate(view.folded):
        if row in place:
            folded.append(index)
        elif _any_in(row, columns):
            one_side.append(index)
    exact = set(other.texts)
    return Overlap(
        exact=[i for i in folded if view.texts[i] in exact],
        folded=folded,
        first=[place[view.folded[i]] for i in folded],
        one_side=one_side,
    )


def examine_pairs(
    train: ParallelText,
    dev: ParallelText | None = None,
    test: ParallelText | None = None,
) -> list[Finding]:
    """Check the parts of a translation's text, each alone and together; findings come gravest
    first.
    """
    model = SideModel(train.src, train.tgt)
    own: list[Finding] = []
    views: dict[str, View | LargeView] = {}
    for name, part in _given(train, dev, test):
        if name == "train" and part.is_large:
            large = part if part.measures else measured(part)
            found = look_over_large(large, model)
            views[name] = LargeView(large)
        else:
            pairs = PairText(part, model)
            found = look_over_pairs(pairs, name == "train")
            views[name] = pair_view(pairs)
        own += [replace(finding, part=name) for finding in found]
    return gravest_first([*own, *_between(views)])


def examine_directions(
    train: ParallelText,
    dev: ParallelText | None = None,
    test: ParallelText | None = None,
) -> list[Finding]:
    """Check the parts of a text of several pairs of languages, each two by themselves."""
    if not train.pairs:
        return examine_pairs(train, dev, test)
    findings: list[Finding] = []
    for pair in train.directions:
        others = [part and part.of(pair) for part in (dev, test)]
        findings += examine_pairs(train.of(pair), *(part or None for part in others))
    return gravest_first(findings)


def examine_documents(
    train: Documents, dev: Documents | None = None, test: Documents | None = None
) -> list[Finding]:
    """Check the parts of a language model's text, each alone and together; findings come gravest
    first.
    """
    parts = dict(_given(train, dev, test))
    own = [
        replace(finding, part=name)
        for name, documents in parts.items()
        for finding in look_over_documents(documents, name == "train")
    ]
    views = {name: _line_view(part) for name, part in parts.items()}
    return gravest_first([*own, *_between(views)])


def examine_rows(
    train: LabelledText,
    dev: LabelledText | None = None,
    test: LabelledText | None = None,
) -> list[Finding]:
    """Check the parts of a classifier's text, each alone and together; findings come gravest
    first.
    """
    known = list(label_counts(train))
    findings: list[Finding] = []
    views: dict[str, View] = {}
    for name, part in _given(train, dev, test):
        words = Words(part.texts, Vocabulary())
        own = look_over_labelled(part, words, name == "train")
        if name != "train":
            own += [
                *unknown_labels(known, part, name),
                *missing_labels(known, part, name),
            ]
        findings += [replace(finding, part=name) for finding in own]
        views[name] = _row_view(part, words)
    return gravest_first([*findings, *_between(views)])


def pair_view(pairs: PairText) -> View:
    """Return the pairs as they are compared."""
    folded = list(zip(pairs.src.folded, pairs.tgt.folded, strict=True))
    return View(list(pairs.text.rows()), folded, pairs.rows)


def _row_view(text: LabelledText, words: Words) -> View:
    """Return the texts without their labels, as they are compared."""
    rows = Rows(len(text), "rows", text.where, lambda i: (text.texts[i],))
    return View(_columns(text.texts), _columns(words.folded), rows)


def _line_view(documents: Documents) -> View:
    """Return the longer lines of all documents, as they are compared: one document may hold a whole
    book.
    """
    lines: list[str] = []
    places: list[str] = []
    for i, text in enumerate(documents.texts):
        name = documents.files[documents.file_of[i]]
        for number, line in enumerate(text.split("\n"), start=documents.lines[i]):
            if len(line) >= _LEAST_LINE:
                lines.append(line)
                places.append(f"{name}:{number}")
    rows = Rows(len(lines), "lines", places.__getitem__, lambda i: (lines[i],))
    return View(_columns(lines), _columns(map(fold, lines)), rows)


def _columns(texts: Iterable[str]) -> list[tuple[str, ...]]:
    return [(text,) for text in texts]


def _any_in(row: tuple[str, ...], columns: Sequence[set[str]]) -> bool:
    return any(text in column for text, column in zip(row, columns, strict=False))


def _given(train: T | None, dev: T | None, test: T | None) -> Iterator[tuple[str, T]]:
    parts = (("train", train), ("dev", dev), ("test", test))
    yield from ((name, part) for name, part in parts if part is not None)


def _between(views: Mapping[str, View | LargeView]) -> Iterator[Finding]:
    """Report what dev and test share with training, and with each other."""
    names = list(views)
    for name in names[1:]:
        yield from _shared(views["train"], views[name], "training", name)
    if {"dev", "test"} <= views.keys():
        yield from _shared(views["dev"], views["test"], "dev", "test")


def _shared(
    other: View | LargeView, view: View | LargeView, other_name: str, name: str
) -> Iterator[Finding]:
    assert isinstance(view, View)  # training alone may be large
    rows = view.rows
    if not rows.size or not other.rows.size:
        return
    found = overlap(other, view)
    if found.folded:
        share = len(found.folded) / rows.size
        severity: Severity = "warning" if share > WARN_SHARE else "note"
        is_memory = share >= MEMORY_SHARE and rows.size >= _FEWEST
        if is_memory and other_name == "training":
            severity = "fatal"
        first = found.folded[0]
        first_of = dict(zip(found.folded, found.first, strict=True))
        part = f"{len(found.folded):,} of {counted(rows.size, rows.unit)} of {name} ({100 * share:.1f} %)"
        yield Finding(
            severity,
            f"{name}-in-{other_name}",
            f"{rows.where(first)}: {part} are also in the {other_name} text, {len(found.exact):,} of them "
            f"exactly (the first at {other.rows.where(found.first[0])})",
            f"remove them from one of the two; otherwise the scores on {name} are too good",
            len(found.folded),
            tuple(found.folded),
            rows.examples(
                found.folded,
                lambda i: Evidence(
                    f"in {other_name} at {other.rows.where(first_of[i])}"
                ),
            ),
            part=name,
            places=rows.places(found.folded),
        )
    if found.one_side and other_name == "training":
        finding = next(
            rows.shares(
                found.one_side,
                f"{name}-half-in-{other_name}",
                f"one side of the pair is also in the {other_name} text, with another translation",
                f"nothing to do if the text is like that; otherwise hold out {name} by sentences",
                0.2,
            )
        )
        yield replace(finding, part=name)
