"""Structure and words survive any translation: 500 samples, and fragments that hypothesis makes."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_samples import RULES, Rule, Sample, nested, samples, sentence  # tools/
from weft.documents.document import Document, Kind, Segment
from weft.documents.driver import translate_document
from weft.documents.registry import FORMATS
from weft.documents.writing import write_segment

SAMPLES = samples()
WORD = re.compile(r"\w+")
Tag = tuple[str, tuple[tuple[str, str | None], ...]]


def read(name: str) -> Callable[[str], Document[str]]:
    found = FORMATS[name].read
    assert found is not None
    return found


READ = {name: read(name) for name in ("html", "text")}


def tree(text: str) -> Counter[tuple[Tag, ...]]:
    """The tags of HTML, each with those that it is in, as the standard library reads them."""
    return Tree(text).inside


class Tree(HTMLParser):
    """Counts tags; one that is not well nested is an error."""

    VOID = ("img", "br", "hr", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: Counter[tuple[Tag, ...]] = Counter()
        self.opened: list[Tag] = []
        self.feed(text)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        entry = (tag, tuple(attrs))
        self.inside[(*self.opened, entry)] += 1
        if tag not in self.VOID:
            self.opened.append(entry)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside[(*self.opened, (tag, tuple(attrs)))] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop()[0] == tag


def bare(written: str, segment: Segment) -> str:
    """What was written, without the items; a space is where one stood between words."""
    for item in sorted(segment.items, key=lambda item: -len(item.raw)):
        assert item.raw in written
        separates = item.is_point and (
            item.kind is not Kind.EMPTY or item.end > item.start
        )
        written = written.replace(item.raw, " " if separates else "", 1)
    return unescape(written) if segment.escapes else written


@pytest.mark.parametrize("rule", RULES)
def test_samples_keep_their_structure_and_the_words_of_the_translation(
    rule: str,
) -> None:
    wrong = {
        sample.text: faults
        for sample in SAMPLES
        if (faults := list(faults_of(sample, RULES[rule])))
    }
    assert wrong == {}


def faults_of(sample: Sample, translate: Rule) -> Iterator[str]:
    """Everything that a sample has lost in its translation."""
    document = READ[sample.format](sample.text)
    written = translate_document(document, lambda texts: list(map(translate, texts)))
    for placeholder in sample.placeholders:
        if written.count(placeholder) != sample.text.count(placeholder):
            yield f"{placeholder} in {written}"
    if sample.format == "html" and tree(written) != tree(sample.text):
        yield f"the tags of {written}"
    for segment in document.segments:
        translated = translate(segment.text).text
        found = bare(write_segment(segment, translate(segment.text)), segment)
        if "".join(found.split()) != "".join(translated.split()):
            yield f"the letters of {found}"
        if translate is RULES["chinese"]:
            continue  # a placeholder may stand between two letters
        if WORD.findall(found) != WORD.findall(translated):
            yield f"the words of {found}"


def test_the_samples_have_what_they_are_for() -> None:
    assert len(SAMPLES) == 500
    items = [
        item.kind
        for sample in SAMPLES
        for segment in READ[sample.format](sample.text).segments
        for item in segment.items
    ]
    assert min(Counter(items)[kind] for kind in Kind) > 50
    assert len({sample.text for sample in SAMPLES}) > 490


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rule=st.sampled_from(sorted(RULES)),
    depth=st.integers(1, 6),
)
def test_nested_tags_stay_nested(seed: int, rule: str, depth: int) -> None:
    chance = random.Random(seed)
    words = [word for _ in range(3) for word in sentence(chance)]
    inner = " ".join(nested(words, chance, 1, depth))
    source = f"<div>Well, {inner}.</div>"
    document = READ["html"](source)
    written = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
    assert tree(written) == tree(source)
    assert (
        re.sub("<[^>]*>", "", written).split()
        == RULES[rule](document.segments[0].text).text.split()
    )
