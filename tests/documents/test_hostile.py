"""Documents made to harm: each is read and written in time proportional to its size."""

from time import process_time

import pytest

from document_samples import unaligned, upper  # tools/
from weft.documents.document import Written
from weft.documents.driver import translate_document
from weft.documents.registry import FORMATS

PIECES = [name for name, row in FORMATS.items() if row.read]
SIZE = 50_000
# each is repeated to this size; what makes many tags or placeholders 500 times
CHEAP = [
    *("<", "<a ", "<!--", "<![CDATA[", "<!", "</", "<script>", '<a x="', "<a x=' ", "&", "&#", "&#9", "{", "{a,"),
    *("{n,plural,a{", "{{b}", "https://", "a@", "#", "#1", "%", "%1", ":", ":aa", "$(", "%(a", "`", " ", "\n", "."),
    *("\0", "\ud800", "漢", "-", "- ", "word ", "[X1", "<a><!--", "a\xad"),
]  # fmt: skip
DEAR = [
    *("x <b>", "x </b>", "x <b>y</b> ", "<b>x <i>y z</b> ", "a<!-- x -->", "<script>x</script>a ", "<code>a</code> b "),
    *("<code>", "<b translate=no>x ", "a&nbsp;", "{0}", "{0} x ", ": {0}, ", "a<br>", "<p>a", "<i></i>", "漢<b>字</b>"),
    *("<a>", "</a>", "<li translate=no>", "<x/>a", "&#32;", "a` ", "@a "),
]  # fmt: skip


def seconds(name: str, text: str) -> float:
    """The CPU time to read a document and to write two translations of it."""
    begin = process_time()
    read = FORMATS[name].read
    assert read is not None
    document = read(text)
    for rule in (upper, unaligned):
        translate_document(document, lambda texts, rule=rule: list(map(rule, texts)))
    segments = [Written(segment.source) for segment in document.segments]
    assert document.write(segments) == text
    return process_time() - begin


@pytest.mark.parametrize("name", PIECES)
def test_one_thing_again_and_again(name: str) -> None:
    assert seconds(name, "<" * 1_000_000) < 5
    for part in CHEAP:
        text = part * (SIZE // len(part))
        assert seconds(name, text) < 5, part


@pytest.mark.parametrize("name", PIECES)
def test_many_tags_and_placeholders(name: str) -> None:
    for part in DEAR:
        assert seconds(name, part * 500) < 5, part


@pytest.mark.parametrize("name", PIECES)
def test_deep_nesting(name: str) -> None:
    for inside in ("x y", "", "<img>"):
        assert seconds(name, deep(5_000, inside)) < 5, inside
    words = "<b>w " * 1_000 + "</b>" * 1_000
    assert seconds(name, f"a {words} z") < 5


@pytest.mark.long
@pytest.mark.parametrize("name", PIECES)
def test_nesting_as_deep_as_a_body_allows(name: str) -> None:
    assert seconds(name, deep(100_000, "x y")) < 60


def deep(depth: int, inside: str) -> str:
    return f"a {'<b>' * depth}{inside}{'</b>' * depth} z"
