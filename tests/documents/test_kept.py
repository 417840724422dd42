"""Placeholders that the model reads, and writes where they belong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.documents.document import Segment, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.programs.restructured import read_restructured
from weft.documents.formats.web.html import read_html
from weft.documents.kept import ReadDocument, repair_kept, spans, with_kept
from weft.documents.writing import write_segment

FORMS = ("``a", ":a:`a")
TEXT = "If *either* (``x``) or :func:`y` is ``0``, :func:`y` ends."


def read(text: str = TEXT) -> Segment:
    (segment,) = read_restructured(text).segments
    return with_kept(segment, FORMS)


def written(text: str) -> str:
    return write_segment(read(), Translated(text))


def test_what_has_a_known_form_stands_in_the_text() -> None:
    segment = read()
    assert segment.text == "If either (``x``) or :func:`y` is, :func:`y` ends."
    assert segment.kept == (":func:`y`", "``x``")
    assert [item.raw for item in segment.items] == ["*", "*", "``0``"]
    opening, closing, number = segment.items
    assert segment.text[opening.start : closing.start] == "either"
    assert segment.text[: number.start].endswith(" is")
    assert opening.partner == 1
    assert closing.partner == 0


def test_a_segment_without_a_known_form_is_as_it_was() -> None:
    (segment,) = read_restructured(TEXT).segments
    assert with_kept(segment, ("%a",)) is segment


def test_it_stays_where_the_model_writes_it_as_the_document_writes_it() -> None:
    found = written("Ist :func:`y` oder (``x``), :func:`y`.")
    assert found.count(":func:`y`") == 2
    assert found.count("``x``") == 1
    assert "\\`" not in found


def test_what_the_model_loses_is_placed_and_what_it_says_too_often_goes() -> None:
    found = written("Es ist ``x`` und ``x`` da, :func:`y`.")
    assert found.count("``x``") == 1
    assert found.count(":func:`y`") == 2


def test_no_tag_goes_into_it() -> None:
    segment = read("see *this* ``x.y``")
    links = [(4, 8, 2, 4)]
    assert write_segment(segment, Translated("``x.y`` da", links)) == "*``x.y``* da"
    links = [(4, 8, 8, 10)]
    assert write_segment(segment, Translated("``x.y`` da", links)) == "``x.y`` *da*"


def test_alignments_follow_what_is_taken_out() -> None:
    segment = read("see ``x`` there")
    translated = Translated("``x`` siehe ``x`` dort", [(0, 3, 6, 11), (10, 15, 18, 22)])
    _, repaired = repair_kept(segment, translated)
    assert repaired.text == "``x`` siehe dort"
    ends = [repaired.text[start:end] for _, _, start, end in repaired.alignment]
    assert ends == ["siehe", "dort"]


def test_a_document_is_written_as_it_was() -> None:
    document = ReadDocument(
        read_html("<p>Say {name} <b>hello</b> &amp; go</p>"), ("{a",)
    )
    (segment,) = document.segments
    assert segment.text == "Say {name} hello & go"
    assert unchanged(document) == "<p>Say {name} <b>hello</b> &amp; go</p>"
    found = translate_document(
        document, lambda _: [Translated("Hallo {name} & los", [(11, 16, 0, 5)])]
    )
    assert found == "<p><b>Hallo</b> {name} &amp; los</p>"
    assert document.place(0) == "line 1"
    assert list(document.notes) == []


words = st.lists(
    st.sampled_from(["``x``", ":func:`y`", "*bold*", "word", "``0``", ",", "(a)"]),
    min_size=1,
    max_size=12,
)


@given(words, words)
def test_whatever_the_model_says_each_stands_as_often_as_before(
    source: list[str], target: list[str]
) -> None:
    for segment in read_restructured(" ".join(source)).segments:
        found = with_kept(segment, FORMS)
        text = " ".join(target)
        assert len(spans(found.text, found.kept)) <= len(source)
        written = write_segment(found, Translated(text))
        for raw in found.kept:
            assert written.count(raw) == segment.source.count(raw)


def test_a_pair_goes_around_its_own_text_where_that_stands_in_the_translation() -> None:
    (segment,) = read_restructured("see `Ann Lee <x>`_ and *go home* now").segments
    links = [(0, 3, 0, 5), (12, 15, 6, 9), (16, 18, 20, 24), (24, 27, 10, 19)]
    found = write_segment(
        segment, Translated("siehe und jetzt bei Ann Lee heim", links)
    )
    assert "`Ann Lee <x>`_" in found


def test_a_pair_goes_around_its_text_where_that_stands_as_often_in_pairs() -> None:
    (segment,) = read_restructured("real numbers have the part *real* of them").segments
    links = [(0, 4, 0, 1), (22, 26, 5, 8), (27, 31, 8, 9)]
    assert segment.text[27:31] == "real"
    found = write_segment(segment, Translated("实数具有这个部分 real 啊", links))
    assert found == "实数具有这个部分 *real* 啊"


@pytest.mark.parametrize(
    "links",
    [
        # the words of the pair, and one before it
        [(4, 8, 3, 4), (4, 8, 5, 6), (9, 20, 6, 8)],
        # and the last one not
        [(4, 8, 5, 6), (9, 20, 6, 7)],
    ],
)
def test_a_pair_begins_and_ends_at_a_gap(
    links: list[tuple[int, int, int, int]],
) -> None:
    (segment,) = read_restructured("all :ref:`rich comparisons <x>` work").segments
    around = [(0, 3, 0, 2), (21, 25, 9, 11)]
    found = write_segment(
        segment, Translated("全部六个 富比较 有效", [*around, *links])
    )
    assert found == "全部六个 :ref:`富比较 <x>` 有效"


def test_a_placeholder_goes_into_a_gap() -> None:
    (segment,) = read_restructured("more is at https://a.b/c now.").segments
    links = [(0, 4, 0, 2), (5, 7, 4, 6), (8, 10, 2, 3), (11, 14, 6, 7)]
    translated = Translated("更多在 找到了。", links)
    assert write_segment(segment, translated) == "更多在 https://a.b/c 找到了。"
    # beside a tag it is no gap of a placeholder
    (segment,) = read_restructured("*more* is at https://a.b/c now.").segments
    translated = Translated(
        "更多 在找到了。", [(0, 4, 0, 2), (8, 10, 4, 6), (11, 14, 6, 7)]
    )
    found = write_segment(segment, translated)
    assert found.startswith("*更多* 在")
