"""Presentations: text of slides, tables, notes, charts and diagrams; masters stay."""

from io import BytesIO

import pptx as reader  # python-pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from document_samples import RULES, reverse, upper  # tools/
from office_differ import diff_pptx  # tools/
from office_samples import docx, members, pptx  # tools/
from weft.documents.document import Reading
from weft.documents.driver import texts_of, translate_document, unchanged
from weft.documents.formats.office.package import PackageDocument
from weft.documents.formats.office.pptx import open_pptx
from weft.errors import UsageError


def opened(content: bytes, target: str = "") -> PackageDocument:
    return open_pptx(content, Reading("a.pptx", target=target))


def shape(*paragraphs: str) -> str:
    inside = "".join(f"<a:p>{paragraph}</a:p>" for paragraph in paragraphs)
    return f"<p:sp><p:txBody><a:bodyPr/>{inside}</p:txBody></p:sp>"


def run(text: str, look: str = "") -> str:
    return f"<a:r><a:rPr {look}/><a:t>{text}</a:t></a:r>"


SLIDES = [
    shape(run("A ", 'lang="en-US" dirty="0"') + run("title", 'lang="en-GB" err="1"'))
    + shape(
        '<a:pPr lvl="1"/>' + run("one ") + run("bold", 'b="1"') + run(" word") + "<a:endParaRPr/>",
        run("first") + "<a:br><a:rPr/></a:br>" + run("second"),
        '<a:fld id="{1}" type="slidenum"><a:rPr/><a:t>7</a:t></a:fld>',
    ),
    "<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p>" + run("a cell") + "</a:p></a:txBody></a:tc></a:tr></a:tbl>"
    '<p:cNvPr id="4" name="x" descr="a dog"/></p:graphicFrame>',
]  # fmt: skip
EXTRA = {
    "notesSlide": shape(run("a note")),
    "chart": f"<a:p>{run('its title')}</a:p><strCache/>",
    "diagramData": f"<a:p>{run('a box')}</a:p>",
    "diagramDrawing": f"<a:p>{run('a box')}</a:p>",
    "comments": "<x/>",
}
SHOW = pptx(SLIDES, EXTRA, shape(run("Confidential"))
    + '<p:sp><p:ph/><a:t>Click</a:t></p:sp>')  # fmt: skip


def translated(content: bytes, target: str = "") -> dict[str, str]:
    document = opened(content, target)
    return members(translate_document(document, lambda t: list(map(upper, t))))


def test_slides_in_their_order_with_all_that_belongs_to_them() -> None:
    document = opened(SHOW)
    found = [(document.place(n), s.text) for n, s in enumerate(document.segments)]
    assert found == [
        ("slide 1", "a cell"),
        ("slide 2", "A title"),
        ("slide 2", "one bold word"),
        ("slide 2", "first second"),
        ("slide 2, chart", "its title"),
        ("slide 2, diagram", "a box"),
        ("slide 2, diagram", "a box"),
        ("slide 2, notes", "a note"),
    ]
    assert [(note.place, note.text) for note in document.notes] == [
        ("slide 1", "alternative texts of pictures stay: 1"),
        ("slide 2, chart", "names of a chart's series and categories stay, as its table has them"),
        ("slide 2", "comments stay as they are"),
        ("master 1", "text on the master and its layouts stays: 1 times"),
    ]  # fmt: skip
    assert unchanged(document) == SHOW


def test_runs_that_look_alike_are_one_text() -> None:
    found = translated(SHOW, "de")["ppt/slides/slide1.xml"]
    assert (
        '<a:p><a:r><a:rPr lang="de" dirty="0"/><a:t>A TITLE</a:t></a:r></a:p>' in found
    )
    assert '<a:rPr b="1"/><a:t>BOLD</a:t>' in found
    assert '<a:p><a:pPr lvl="1"/>' in found
    assert "WORD</a:t></a:r><a:endParaRPr/></a:p>" in found
    assert "FIRST</a:t></a:r><a:br><a:rPr/></a:br><a:r>" in found


def test_right_to_left_and_back() -> None:
    found = translated(SHOW, "ar")["ppt/slides/slide1.xml"]
    assert '<a:pPr lvl="1" algn="r" rtl="1"/>' in found
    assert '<a:p><a:pPr algn="r" rtl="1"/><a:r>' in found
    turned = pptx([shape('<a:pPr algn="r" rtl="1"/>' + run("one"))])
    back = translated(turned, "de")["ppt/slides/slide1.xml"]
    assert '<a:pPr algn="l" rtl="0"/>' in back


@pytest.mark.parametrize("name", ["upper", "reverse", "unaligned", "chinese", "shuffled"])  # fmt: skip
def test_any_translation_leaves_what_python_pptx_makes(name: str) -> None:
    made = reader.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "The title"
    paragraph = slide.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    paragraph.add_run().text = "some "
    bold = paragraph.add_run()
    bold.text = "bold"
    bold.font.bold = True
    paragraph.add_run().text = " words\vand more"
    slide.shapes.add_table(1, 1, 0, 0, 9, 9).table.cell(0, 0).text = "a cell"
    slide.notes_slide.notes_text_frame.text = "a note"
    data = CategoryChartData()
    data.categories = ["East"]
    data.add_series("Sales", (1,))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(1), Inches(1), data).chart  # fmt: skip
    chart.has_title = True
    chart.chart_title.text_frame.text = "the chart"
    buffer = BytesIO()
    made.save(buffer)
    content = buffer.getvalue()
    document = opened(content)
    found = ["The title", "some bold words and more", "a cell", "the chart", "a note"]
    assert texts_of(document) == found
    rule = RULES[name]
    found = translate_document(document, lambda texts: list(map(rule, texts)))
    assert diff_pptx(content, found) == []
    again = reader.Presentation(BytesIO(found)).slides[0]
    assert again.shapes.title.text_frame.text == rule("The title").text
    assert again.notes_slide.notes_text_frame.text == rule("a note").text
    assert again.shapes[2].table.cell(0, 0).text == rule("a cell").text
    (bold,) = [r for r in again.shapes[1].text_frame.paragraphs[0].runs if r.font.bold]
    if name in ("upper", "reverse"):
        assert bold.text == (upper if name == "upper" else reverse)("bold").text


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a\.pptx: is no document of PowerPoint; "):
        opened(docx("<w:p/>"))
    with pytest.raises(
        UsageError, match=r"^a\.pptx, ppt/slides/slide1\.xml:2: not well"
    ):
        opened(pptx(["<p:sp>"]))
