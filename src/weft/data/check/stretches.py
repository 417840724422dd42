"""The check of a large text of pairs: stretch by stretch in several processes, in bounded memory.

What concerns a row and its neighbours is looked for in each stretch, with what the whole text says
of its languages and scripts. What concerns rows far from each other is found by hashes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.check.characters import letters_of
from weft.data.check.finding import (
    MOST_PLACES,
    NUM_EXAMPLES,
    Evidence,
    Example,
    Finding,
    Rows,
    Share,
    Shown,
    as_read,
    counted,
    gravest_first,
)
from weft.data.check.language_identification import look_at_languages
from weft.data.check.near import near_pairs
from weft.data.check.pairs import (
    CLOSE,
    MANY,
    MUCH,
    WRONG_SHARE,
    PairText,
    about_codes,
    about_one_text,
    about_repeats,
    look_at_sides,
    look_at_writing,
)
from weft.data.check.repeats import Repeats
from weft.data.check.sides import SideModel
from weft.data.check.writing import stride_of
from weft.data.column import Column
from weft.data.corpus import ParallelText
from weft.data.crew import Portable, Task, work
from weft.data.equals import Hashes, later_of_equals
from weft.data.home import Home, told_of_disk
from weft.data.measures import (
    Measures,
    describe,
    open_stretch,
    stretches,
)

STRETCH = 25_000  # rows of a task
# rows of a text that are looked at closely, in stretches from its first row to its last
MOST_CLOSE = 200_000


def look_over_large(
    text: ParallelText, model: SideModel, in_all: bool = False
) -> list[Finding]:
    """Check a large text of pairs, measured, as `look_over` does; findings come gravest first.

    All of its stretches may be looked at closely.
    """
    rows = Rows(len(text), "pairs", text.where, lambda i: (text.src[i], text.tgt[i]))
    agree, written = _by_stretch(text, model, rows, in_all)
    measures = text.measures
    assert measures is not None
    findings = [
        *as_read(rows, text.files, text.dropped, text.notes),
        *look_at_languages(text, rows),
        *agree,
        *_repeated(text, measures, rows),
        *_one_text(measures, rows),
        *written,
        *about_codes(text),
    ]
    return gravest_first(findings)


def columns_of(text: ParallelText) -> list[Column]:
    """Return the sides of a large text."""
    assert isinstance(text.src, Column)
    assert isinstance(text.tgt, Column)
    return [text.src, text.tgt]


def _by_stretch(
    text: ParallelText, model: SideModel, rows: Rows, in_all: bool
) -> tuple[list[Finding], list[Finding]]:
    """Return what was found in all stretches: how the sides agree, and how lines are written."""
    home = Home()
    tasks = tasks_about(text, model, home)
    close = tasks if in_all else _chosen(tasks)
    for task in tasks:
        task["closely"] = task in close
    # those that take longest come first
    work("check", CHECK, sorted(tasks, key=_is_quick), "pairs")
    found: list[list[Finding]] = [[], []]
    for task in tasks:
        content = json.loads(found_in(task))
        for kept, part in zip(found, content, strict=True):
            kept += [_read_finding(finding, task["first"]) for finding in part]
    looked_at = replace(rows, size=sum(task["last"] - task["first"] for task in close))
    if looked_at.size < rows.size:
        some = f" of the {looked_at.size:,} looked at for this"
        looked_at = replace(looked_at, among=some)
    agree, written = (list(_merged(part, rows, looked_at)) for part in found)
    return [*agree, *_sampled(text, looked_at)], written


def tasks_about(text: ParallelText, model: SideModel, home: Home) -> list[Task]:
    """Return a task for each stretch of a large text; what they share lies in a folder."""
    np.save(home.path / "model.npy", model.to_array(), allow_pickle=False)
    for name in ("lines", "file_of"):
        numbers = np.asarray(getattr(text, name), np.int32)
        np.save(home.path / f"{name}.npy", numbers, allow_pickle=False)
    assert text.measures is not None
    copies = np.flatnonzero(text.measures.side(0) == text.measures.side(1))
    np.save(home.path / "copies.npy", copies, allow_pickle=False)
    columns = columns_of(text)
    common = {
        "columns": describe(columns, home.path),
        "folder": str(home.path),
        "files": text.files,
        "by_unit": sorted(text.by_unit),
        "languages": [text.src_lang, text.tgt_lang],
        "scripts": [letters_of(side, stride_of(side)) for side in columns],
    }
    return [{**common, **stretch} for stretch in stretches(len(text), STRETCH)]


def _chosen(tasks: Sequence[Task]) -> list[Task]:
    """Choose the stretches that are looked at closely, the first and the last among them."""
    most = max(MOST_CLOSE // STRETCH, 2)
    if len(tasks) <= most:
        return list(tasks)
    steps = len(tasks) - 1
    return [tasks[n * steps // (most - 1)] for n in range(most)]


def _is_quick(task: Task) -> bool:
    return not task["closely"]


def _sampled(text: ParallelText, looked_at: Rows) -> Iterator[Finding]:
    """Say what was looked for in some pairs alone."""
    if looked_at.among:
        yield Finding(
            "note",
            "looked-at",
            f"{', '.join(text.files)}: {', '.join(CLOSE)} were looked for in {looked_at.size:,} of "
            f"{counted(len(text), 'pairs')}, in stretches from the first to the last; all else in all of them",
            "to look at other pairs closely, check a part of the text by itself",
            looked_at.size,
        )


def pairs_in(task: Task) -> PairText:
    """Return the pairs of a stretch, measured."""
    first, last = task["first"], task["last"]
    folder = Path(task["folder"])
    src, tgt = (open_stretch(each, first, last) for each in task["columns"])
    lines, file_of = (
        np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)[
            first:last
        ].tolist()
        for name in ("lines", "file_of")
    )
    src_lang, tgt_lang = task["languages"]
    text = ParallelText(
        src=src,
        tgt=tgt,
        lines=lines,
        files=task["files"],
        file_of=file_of,
        dropped={},
        src_lang=src_lang,
        tgt_lang=tgt_lang,
        by_unit=frozenset(task["by_unit"]),
    )
    model = SideModel.from_array(np.load(folder / "model.npy", allow_pickle=False))
    copies = np.load(folder / "copies.npy", mmap_mode="r", allow_pickle=False)
    begin, end = np.searchsorted(copies, [first, last])
    own = copies[begin:end] - first
    return PairText(text, model, own.tolist())


def check_stretch(task: Task) -> str:
    """Check a stretch of a text; return what was found."""
    pairs = pairs_in(task)
    scripts = [Counter[str](side) for side in task["scripts"]]
    found = (look_at_sides(pairs, task["closely"]), look_at_writing(pairs, scripts))
    return json.dumps([list(map(_plain, findings)) for findings in found])


def keep_found(task: Task, found: str) -> None:
    """Write what was found in a stretch into the folder of its task."""
    with told_of_disk():
        _output(task).write_text(found, "utf-8")


def found_in(task: Task) -> str:
    """Read what was found in a stretch."""
    return _output(task).read_text("utf-8")


def _output(task: Task) -> Path:
    return Path(task["folder"]) / f"{task['first']}.json"


CHECK = Portable(check_stretch, keep_found)


def _plain(finding: Finding) -> dict[str, Any]:
    return asdict(finding)


def _read_finding(kept: dict[str, Any], first: int) -> Finding:
    """Return a finding of a stretch that begins with row `first`, in the numbers of the whole."""
    finding = Finding(**kept)
    share = None
    if finding.share is not None:
        of_share: dict[str, Any] = {**kept["share"]}
        shown = [
            Shown(first + row, _read_evidence(evidence), badness)
            for row, evidence, badness in of_share.pop("shown")
        ]
        share = Share(shown=tuple(shown), **of_share)
    examples = [
        Example(where, text, about, tuple((a, b) for a, b in marked))
        for where, text, about, marked in finding.examples
    ]
    return replace(
        finding,
        rows=tuple(first + row for row in finding.rows),
        examples=tuple(examples),
        places=tuple(finding.places),
        share=share,
    )


def _read_evidence(kept: Sequence[Any]) -> Evidence:
    about, starts, sizes = kept
    return Evidence(about, tuple(starts), tuple(sizes))


def _merged(
    findings: Sequence[Finding], every: Rows, looked_at: Rows
) -> Iterator[Finding]:
    """Make one finding of all that have the same code: of every row, or of those that were looked
    at closely.
    """
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    for code, parts in by_code.items():
        rows = looked_at if code in CLOSE else every
        found = [row for part in parts for row in part.rows]
        shares = [part.share for part in parts if part.share is not None]
        if not shares:
            yield _joined(parts, rows)
            continue
        shown = [each for share in shares for each in share.shown]
        if shares[0].by_badness:
            shown.sort(key=lambda each: -each.badness)
        share = replace(shares[0], shown=tuple(shown[:NUM_EXAMPLES]))
        yield rows.finding(found, code, share)


def _joined(parts: Sequence[Finding], rows: Rows) -> Finding:
    """Join findings that are about a stretch each: fatal where they are about much of the text."""
    count = sum(part.count for part in parts)
    more = len(parts) - 1
    also = f"; so in {more} more stretches of the text" if more else ""
    if rows.among:
        also += f"; {counted(rows.size, rows.unit)} were looked at for this"
    return replace(
        parts[0],
        severity="fatal" if count > WRONG_SHARE * rows.size else "warning",
        message=parts[0].message + also,
        count=count,
        rows=tuple(row for part in parts for row in part.rows),
        examples=tuple(each for part in parts for each in part.examples)[:NUM_EXAMPLES],
        places=tuple(each for part in parts for each in part.places)[:MOST_PLACES],
    )


def _repeated(text: ParallelText, measures: Measures, rows: Rows) -> Iterator[Finding]:
    """Find pairs that occur again, or nearly, and sources with several translations."""
    again, first = later_of_equals(measures.row)
    near, near_to = near_pairs(columns_of(text), measures)
    is_new = ~np.isin(near, again)
    later, before = later_of_equals(measures.side(0))
    tgt = measures.side(1)
    several = np.setdiff1d(later[tgt[later] != tgt[before]], again, assume_unique=True)
    yield from about_repeats(
        rows,
        Repeats(again.tolist(), first.tolist()),
        Repeats(near[is_new].tolist(), near_to[is_new].tolist()),
        several.tolist(),
    )


def _one_text(measures: Measures, rows: Rows) -> Iterator[Finding]:
    """Find a text that stands beside many different ones on the other side."""
    is_distinct = np.ones(rows.size, np.bool_)
    is_distinct[later_of_equals(measures.row)[0]] = False
    for name, side, others in (("target", 1, "sources"), ("source", 0, "targets")):
        hashes = measures.side(side)
        distinct = hashes[is_distinct]
        distinct.sort()
        one, times = _most_frequent(distinct)
        if times >= MANY and times > MUCH * len(distinct):
            found = np.flatnonzero(hashes == one).tolist()
            yield from about_one_text(rows, name, others, times, found)


def _most_frequent(ordered: Hashes) -> tuple[np.uint64, int]:
    """Return which of sorted hashes is there most often, and how often, if it is more than MUCH of
    them.
    """
    # so long a run has one of these places
    every = max(int(MUCH * len(ordered)), 1)
    some = np.unique(ordered[::every])
    begins = np.searchsorted(ordered, some)
    counts = np.searchsorted(ordered, some, "right") - begins
    place = counts.argmax()
    return some[place], int(counts[place])
