"""A translator that changes nothing gives every document back, byte for byte."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.documents.document import Reading, Translated, Written
from weft.documents.driver import translate_document
from weft.documents.registry import FORMATS
from weft.documents.writing import write_segment

PARTS = [
    *("<", ">", "<b>", "</b>", "<i x='>'>", "</i>", "<p>", "</p>", "<br>", "<br />", "<br/>", "<x id=\"1\"></x>"),
    *("<b0></b0>", "<img src=a alt='b'>", "<a href=\"u?a=1&amp;b\">", "</a>", "<!-- c -->", "<!--", "-->", "<!"),
    *("<![CDATA[ x ]]>", "<?php ?>", "</", "</>", "<script>", "</script>", "if (a<b) {}", "<pre>", "</pre>"),
    *("<code>", "</code>", "<P CLASS=notranslate>", "<span translate=no>", "</span>", "<td>", "<li>a", "<title>"),
    *("<textarea>", "</textarea>", "<a \"=", "='", "<svg/>", "<em/>", "&amp;", "&lt;", "&nbsp;", "&#8203;", "&#x"),
    *("&#99999999999;", "&notit;", "&", "&&", "a &amp b", "\xa0", "\xad", "\u3000", "\ufeff", "\0", "\ud800"),
    *("\r\n", "\n", "\r", "\t", " ", "  ", "    ", "\x0b", "\u2028", "word", "Hello", "two words", "don't", "."),
    *(", ", "!", "(", ")", "\"", "«", "»", "漢字", "かな", "नमस्ते", "{0}", "{name}", "{{x}}", "${y}", "%s"),
    *("%(n)d", "%1$s", "%", "{n, plural, one {# a} other {# b}}", "{", "}", "[X12X]", "https://a.b/c?d=1&amp;e."),
    *("me@x.org", "@me@b.c", "#tag", ":smile:", "`code`", "- ", "> ", "1. ", "9,000", "—", "…", "😀"),
]  # fmt: skip
DAMAGED = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)
PIECES = [name for name, row in FORMATS.items() if row.read]
ANY = st.one_of(DAMAGED, st.text(max_size=40))


def same(texts: list[str]) -> list[Translated]:
    return [Translated(text) for text in texts]


@pytest.mark.parametrize("name", PIECES)
@settings(max_examples=150, deadline=None)
@given(text=ANY)
def test_the_same_text_gives_the_same_document(name: str, text: str) -> None:
    read = FORMATS[name].read
    assert read is not None
    document = read(text)
    assert translate_document(document, same) == text
    assert (
        document.write([Written(segment.source) for segment in document.segments])
        == text
    )
    for segment in document.segments:
        assert any(map(str.isalpha, segment.text))
        assert segment.text == segment.text.strip()
        for item in segment.items:
            assert 0 <= item.start <= item.end <= len(segment.text)
            assert item.is_point or item.partner is not None


@pytest.mark.parametrize("name", PIECES)
@settings(max_examples=40, deadline=None)
@given(text=ANY)
def test_the_same_bytes_give_the_same_file(name: str, text: str) -> None:
    content = text.encode("utf-8", "replace")
    document = FORMATS[name].open(content, Reading("a file"))
    assert translate_document(document, same) == content


@pytest.mark.parametrize("name", PIECES)
@settings(max_examples=80, deadline=None)
@given(
    text=ANY, translation=st.text(max_size=20), numbers=st.lists(st.integers(-3, 30))
)
def test_any_answer_is_written_with_every_item_once(
    name: str, text: str, translation: str, numbers: list[int]
) -> None:
    read = FORMATS[name].read
    assert read is not None
    alignment = list(zip(*(numbers[place:] for place in range(4)), strict=False))
    for segment in read(text).segments:
        written = write_segment(segment, Translated(translation, alignment))
        items = {item.raw for item in segment.items}
        for raw in items:
            least = sum(item.raw == raw for item in segment.items)
            assert translation == segment.text or written.count(raw) >= least
