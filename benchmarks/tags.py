"""Whether tags are put where a person put them: `python benchmarks/tags.py FOLDER FILE [FILE]`.

Each segment is one that a person has translated with all of its markup. The person's translation,
without the markup, is aligned with the source by a forced pass of the model, and the markup is put
into it as into any translation. A pair of tags is right where it has the same words in it as the
person's; what stands between words is right where it has the same words before it. Marks and spaces
do not count. A pair is near where it is right but for a single word or letter at one of its ends.

With --closed, a person's Chinese loses the spaces that it has where markup was, before the markup
is put into it: a model seldom writes them.

What the model reads, it writes itself. Of that, some are taken out of the person's translation one
by one and put before and after each of its words: one is right where no other place is more
probable for the model than the person's.

FILE is a PO catalogue of reStructuredText or an XLIFF 1.2 file of a pair of languages, or two FTL
files, the source's first.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fluent.syntax import FluentParser
from fluent.syntax.ast import Message

import weft
from weft.data.corpus import read_pairs
from weft.data.tokenizer import EOS_ID
from weft.decoding.decoder import Hypothesis
from weft.documents.document import Document, Kind, Reading, Segment, Translated
from weft.documents.formats.bilingual.xliff import open_xliff
from weft.documents.formats.programs.fluent import open_fluent
from weft.documents.formats.programs.restructured import (
    read_restructured,
    with_spaces,
)
from weft.documents.kept import Span, spans, with_kept
from weft.documents.words import is_wide, split_words
from weft.documents.writing import write_segment
from weft.predict import words
from weft.predict.forcing import forced_log_probs

MOST_READ = 2  # of a segment that are put elsewhere
# how Chinese and Japanese write the marks that an item comes with
WIDE_MARKS = {",": "，、", ";": "；", ":": "："}
HAN = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff"
GAP = re.compile(f"(?<=[{HAN}]) +(?=[{HAN}])")
UNIT = re.compile(
    r"<source>(?P<source>.*?)</source>\s*<target[^>]*>(?P<target>.*?)</target>", re.S
)
XLIFF = """<?xml version="1.0"?><xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file original="a" datatype="plaintext" source-language="en" target-language="xx"><body>
<trans-unit id="1"><source>{}</source></trans-unit></body></file></xliff>"""


@dataclass(frozen=True)
class Case:
    """A segment, what a person made of it, and how to read what stands there."""

    source: Segment
    target: Segment
    kind: str


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a translator's folder")
    parser.add_argument("files", nargs="+", help="PO, XLIFF, or two FTL")
    parser.add_argument("--segments", type=int, default=500)
    parser.add_argument("--wrong", type=int, default=0, help="show so many that differ")
    parser.add_argument("--closed", action="store_true", help="without gaps")
    asked = parser.parse_args()
    model = weft.load(asked.folder)
    forms = json.loads((Path(asked.folder) / "config.json").read_text())["kept_forms"]
    cases = cases_of([Path(file) for file in asked.files])
    random.Random(1).shuffle(cases)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    shown = 0
    for case in (read_case(case, forms) for case in cases[: asked.segments]):
        counts[case.kind].update(read_right(model, case))
        written = placed(model, without_gaps(case) if asked.closed else case)
        ours = read(with_marks(written, case.source), case.kind)
        right = judged(ours and with_kept(ours, forms), case.target)
        counts[case.kind].update(right)
        if shown < asked.wrong and right["wrong segments"]:
            shown += 1
            print(case.source.source, case.target.source, written, "", sep="\n")
    for kind, count in counts.items():
        print(kind)
        for name in ("segments", "pairs", "points", "read"):
            share = 100 * count[f"right {name}"] / max(1, count[name])
            print(f"  {name}: {count[name]}, right {share:.1f} %")
        near = 100 * count["near pairs"] / max(1, count["pairs"])
        print(f"  pairs right or near: {near:.1f} %")


def cases_of(files: Sequence[Path]) -> list[Case]:
    """Return the segments whose markup the person kept, each once."""
    cases: dict[tuple[str, str], Case] = {}
    for kind, source, target in raw_pairs(files):
        one, other = read(source, kind), read(target, kind)
        if one is None or other is None or not one.items or not other.text.strip():
            continue
        if Counter(raws(one)) == Counter(raws(other)) and one.text.strip():
            cases[source, target] = Case(one, other, kind)
    return list(cases.values())


def read_case(case: Case, forms: Sequence[str]) -> Case:
    """Return a case with what the model reads in its texts."""
    return replace(
        case,
        source=with_kept(case.source, forms),
        target=with_kept(case.target, forms),
    )


def raw_pairs(files: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of sources and targets as they stand in the files."""
    if files[0].suffix == ".ftl":
        source, target = map(patterns_of, files)
        yield from (
            ("ftl", source[key], target[key]) for key in source if key in target
        )
        return
    for file in files:
        if file.suffix == ".po":
            text = read_pairs([file])
            yield from (("po", *pair) for pair in zip(text.src, text.tgt, strict=True))
        else:
            for unit in UNIT.finditer(file.read_text("utf-8")):
                yield "xliff", unit["source"], unit["target"]


def patterns_of(file: Path) -> dict[str, str]:
    """Return the text of each message as it stands in a file of Fluent."""
    text = file.read_text("utf-8")
    resource = FluentParser().parse(text)
    return {
        entry.id.name: text[entry.value.span.start : entry.value.span.end]
        for entry in resource.body
        if isinstance(entry, Message) and entry.value is not None
    }


def read(text: str, kind: str) -> Segment | None:
    """Return the single segment of a text; None where it has several or none."""
    document: Document[str] | Document[bytes]
    if kind == "po":
        document = read_restructured(text)
    elif kind == "xliff":
        content = XLIFF.format(text).encode("utf-8")
        document = open_xliff(content, Reading("a.xliff", "en", "xx"))
    else:
        document = open_fluent(f"a = {text}\n".encode(), Reading("a.ftl"))
    segments = document.segments
    return segments[0] if len(segments) == 1 else None


def without_gaps(case: Case) -> Case:
    """Return a case without the spaces that the person's Chinese has where the markup was."""
    text = GAP.sub("", case.target.text)
    return replace(case, target=replace(case.target, text=text))


def with_marks(written: str, source: Segment) -> str:
    """Return a written segment with the marks that items come with as its source has them."""
    for item in source.items:
        for mark in WIDE_MARKS.get(item.raw[:1], ""):
            written = written.replace(mark + item.raw[1:].lstrip(), item.raw)
    return written


def raws(segment: Segment) -> list[str]:
    """Return the segment's items as they stand."""
    return [item.raw for item in segment.items]


def placed(model: weft.Translator, case: Case) -> str:
    """Return the person's translation with the source's markup put into it."""
    source, target = case.source.text, case.target.text
    row = [*model.src_tokenizer.encode(" ".join(source.split())), EOS_ID]
    ids = model.tgt_tokenizer.encode(" ".join(target.split()))
    hypothesis = Hypothesis(ids, 0.0, 0.0, [0.0] * (len(ids) + 1), finished=True)
    support = model.support(row, hypothesis)
    reporter = words.WordReporter(
        model.src_tokenizer, model.tgt_tokenizer, source, target
    )
    line = " ".join(source.split())
    told = hypothesis.token_log_probs
    reporter.add(words.Segment(line, 0, row, [*ids, EOS_ID], told, support))
    pairs = [
        (one.start, one.end, word.start, word.end)
        for word in reporter.reports
        for one in word.sources
    ]
    segment = replace(case.source, keeps_numbers=False)
    written = write_segment(segment, Translated(target, pairs))
    return with_spaces(written) if case.kind == "po" else written


def read_right(model: weft.Translator, case: Case) -> Counter[str]:
    """Count what the model reads in a segment, and what is most probable in the person's place.

    Of what stands there several times, the first is looked at.
    """
    counts: Counter[str] = Counter()
    engine = model.searcher
    source = [*model.src_tokenizer.encode(" ".join(case.source.text.split())), EOS_ID]
    text = case.target.text
    seen: set[str] = set()
    for span in spans(text, case.target.kept):
        if span.raw in seen or span.raw not in case.source.kept:
            continue
        seen.add(span.raw)
        counts["all read"] += 1
        if len(seen) > MOST_READ:
            continue
        texts = [text, *elsewhere(text, span)]
        targets = [[*model.tgt_tokenizer.encode(one), EOS_ID] for one in texts]
        log_probs = forced_log_probs(engine, [source] * len(targets), targets)
        totals = list(map(sum, log_probs))
        counts["read"] += 1
        counts["right read"] += totals[0] >= max(totals)
    return counts


def elsewhere(text: str, span: Span) -> Iterator[str]:
    """Yield a text with what is at a place moved to every other one between words."""
    rest = " ".join(
        (text[: span.start].rstrip() + " " + text[span.end :].lstrip()).split()
    )
    own = solid(text, span.start)
    places = {word.start for word in split_words(rest)} | {len(rest)}
    for place in sorted(places):
        if solid(rest, place) != own:
            yield " ".join((rest[:place], span.raw, rest[place:])).strip()


def judged(ours: Segment | None, theirs: Segment) -> Counter[str]:
    """Count the items of a segment, and those that are in their places."""
    counts = Counter({"segments": 1})
    found = places_of(ours) if ours is not None else {}
    wanted = places_of(theirs)
    for key, places in wanted.items():
        name = "pairs" if isinstance(places[0], tuple) else "points"
        counts[name] += len(places)
        same = Counter(places) & Counter(found.get(key, []))
        counts[f"right {name}"] += same.total()
        if name == "pairs":
            near = [one for one in places if is_near(one, found.get(key, []), theirs)]
            counts["near pairs"] += len(near)
    is_right = found == wanted
    counts["right segments"] += is_right
    counts["wrong segments"] += not is_right
    return counts


def places_of(segment: Segment) -> dict[str, list[object]]:
    """Return where the items of each form stand: the letters and digits before them, of a pair the
    words in it.
    """
    places: defaultdict[str, list[object]] = defaultdict(list)
    for item in segment.items:
        if item.kind is Kind.OPEN and item.partner is not None:
            end = segment.items[item.partner].start
            inside = (solid(segment.text, item.end), solid(segment.text, end))
            places[item.raw].append(inside)
        elif item.is_point:
            places[item.raw].append(solid(segment.text, item.start))
    for found in places.values():
        found.sort(key=str)
    return dict(places)


def is_near(place: object, found: Sequence[object], segment: Segment) -> bool:
    """Return whether a pair has the same words in it but for one at one of its ends."""
    assert isinstance(place, tuple)
    longest = longest_word(segment.text)
    for other in found:
        assert isinstance(other, tuple)
        if place == other:
            return True
        is_one = place[0] == other[0] or place[1] == other[1]
        if is_one and abs(sum(place) - sum(other)) <= longest:
            return True
    return False


def longest_word(text: str) -> int:
    """Return the letters of the longest word; one in a script without spaces."""
    if any(map(is_wide, text)):
        return 2
    return max(map(len, text.split()))


def solid(text: str, place: int) -> int:
    """Return how many letters and digits a text has before a place."""
    return sum(map(str.isalnum, text[:place]))


if __name__ == "__main__":
    main()
