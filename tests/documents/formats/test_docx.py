"""Word documents: runs that look alike are one text, and all else stays where it is."""

from dataclasses import replace
from io import BytesIO

import docx as reader  # python-docx
import pytest
from docx.text.paragraph import Paragraph

from document_samples import RULES, Rule, reverse, same, unaligned, upper  # tools/
from office_differ import diff_docx  # tools/
from office_samples import W, docx, members, types, zipped  # tools/
from weft.documents.document import Doubt, Reading
from weft.documents.driver import texts_of, translate_document, unchanged
from weft.documents.formats.office.docx import open_docx
from weft.documents.formats.office.package import PackageDocument
from weft.errors import UsageError


def opened(body: str, target: str = "") -> PackageDocument:
    return open_docx(docx(body), Reading("a.docx", target=target))


def texts(body: str) -> list[str]:
    return texts_of(opened(body))


def body_of(content: bytes) -> str:
    part = members(content)["word/document.xml"]
    return part.partition("<w:body>")[2].partition("<w:sectPr/></w:body>")[0]


def translated(body: str, rule: Rule = upper, target: str = "") -> str:
    document = opened(body, target)
    return body_of(translate_document(document, lambda found: list(map(rule, found))))


def run(text: str, look: str = "", rsid: str = "") -> str:
    properties = f"<w:rPr>{look}</w:rPr>" if look else ""
    revision = f' w:rsidR="{rsid}"' if rsid else ""
    return f'<w:r{revision}>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


BOLD = "<w:b/>"
TAB = "<w:r><w:tab/></w:r>"
NOTE = "<w:r><w:footnoteReference w:id='2'/></w:r>"
GONE = "<w:del w:id='2'><w:r><w:delText>gone</w:delText></w:r></w:del>"
CONTROL = f"<w:sdt><w:sdtPr/><w:sdtContent>{run('controlled')}</w:sdtContent></w:sdt>"


def mark(told: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{told}"/></w:r>'


def field(code: str, result: str) -> str:
    code = f"<w:r><w:instrText> {code} </w:instrText></w:r>"
    return mark("begin") + code + mark("separate") + result + mark("end")


BODIES = [
    f"<w:p>{run('Hel')}<w:proofErr w:type='spellStart'/>{run('lo ', rsid='00A')}{run('world', BOLD)}</w:p>",
    f"<w:tbl><w:tr><w:tc><w:p>{run('a cell')}</w:p></w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>",
    f"<w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr>{run('1.')}{TAB}{run('A heading')}</w:p>",
    f"<w:p>{run('see ')}<w:hyperlink r:id='rId1'>{run('this ', BOLD)}{run('page', BOLD)}</w:hyperlink>{run('.')}</w:p>",
    f"<w:p>{run('page ')}{field('PAGE', run('7'))}{run(' of it')}</w:p>",
    f"<w:p>{run('old ')}<w:ins w:id='1' w:author='A'>{run('new ')}</w:ins>{GONE}{run('end')}</w:p>",
    f"<w:p><w:bookmarkStart w:id='0' w:name='x'/>{run('one')}<w:bookmarkEnd w:id='0'/>{run(' two')}{NOTE}</w:p>",
    f"<w:p>{run('a')}<w:r><w:drawing><wp:inline><a:graphic/></wp:inline></w:drawing></w:r>{run(' picture')}</w:p>",
    f"<w:sdt><w:sdtContent><w:p>{CONTROL}</w:p></w:sdtContent></w:sdt>",
    "<w:p><w:r><w:t>  trimmed </w:t><w:br/><w:t>after a break</w:t></w:r></w:p>",
    f"<w:p>{run('x &amp; y &lt; z')}<w:r><w:t><![CDATA[ and <q>]]></w:t></w:r></w:p>",
    f"<w:p>{run('{0} files in ')}{run('%s', BOLD)}{run(' at https://example.org/a')}</w:p>",
]


def test_python_docx_reads_the_same_words() -> None:
    for body in BODIES[:4]:
        found = reader.Document(BytesIO(docx(body))).element.body.iter(f"{{{W}}}p")
        read = "".join(Paragraph(paragraph, None).text for paragraph in found)
        assert " ".join(texts(body)) == read.replace("1.\t", ""), body


def test_runs_that_look_alike_are_one_text() -> None:
    look = "<w:rFonts w:ascii='Arial'/><w:b/>"
    seen = f"{look}<w:lang w:val='en-GB'/><w:noProof/>"
    body = f"<w:p>{run('tran', look)}{run('sla', seen, '00B')}<w:proofErr w:type='gramEnd'/>{run('ted', look)}</w:p>"
    assert texts(body) == ["translated"]
    assert (
        translated(body)
        == f"<w:p><w:r><w:rPr>{look}</w:rPr><w:t>TRANSLATED</w:t></w:r></w:p>"
    )


def test_the_look_goes_where_its_words_go() -> None:
    body = f"<w:p>{run('a ')}{run('red', BOLD)}{run(' ca')}{run('r')}</w:p>"
    assert texts(body) == ["a red car"]
    found = translated(body, reverse)
    assert found == (
        '<w:p><w:r><w:t xml:space="preserve">car\'s </w:t></w:r>'
        "<w:r><w:rPr><w:b/></w:rPr><w:t>red's</w:t></w:r>"
        '<w:r><w:t xml:space="preserve"> a\'s</w:t></w:r></w:p>'
    )
    # white space has the look of the words around it
    spaced = f"<w:p>{run('one', BOLD)}{run(' ')}{run('two', BOLD)}</w:p>"
    assert translated(spaced).count("<w:r>") == 1


def test_what_most_words_look_like_is_the_look_of_the_paragraph() -> None:
    body = f"<w:p>{run('Note:', BOLD)}{run(' this is the longer part')}</w:p>"
    document = opened(body)
    assert [item.kind.value for item in document.segments[0].items] == ["open", "close"]
    assert translated(body, unaligned).count("<w:b/>") == 1
    every = f"<w:p>{run('all of ', BOLD)}{run('it', BOLD)}</w:p>"
    assert opened(every).segments[0].items == ()


def test_a_link_stays_around_its_words() -> None:
    found = translated(BODIES[3], reverse)
    assert ">page.'s this's</w:t></w:r></w:hyperlink>" in found
    assert found.count("<w:hyperlink r:id='rId1'><w:r><w:rPr><w:b/></w:rPr>") == 1


def test_fields_keep_their_code() -> None:
    assert texts(BODIES[4]) == ["page of it"]
    assert f"{field('PAGE', run('7'))}" in translated(BODIES[4])
    link = field('HYPERLINK "https://example.org/"', run("the page"))
    body = f"<w:p>{run('see ')}{link}{run(' now')}</w:p>"
    assert texts(body) == ["see the page now"]
    assert ">NOW SEE" not in (found := translated(body))
    assert f"{mark('separate')}<w:r><w:t>THE PAGE</w:t></w:r>{mark('end')}" in found
    simple = f"<w:p><w:fldSimple w:instr=' PAGE '>{run('seven')}</w:fldSimple>{run(' pages')}</w:p>"
    assert texts(simple) == ["pages"]
    simple = simple.replace(" PAGE ", " REF x ")
    assert texts(simple) == ["seven pages"]
    inside = (
        "<w:instrText>DATE</w:instrText>",
        "<w:t>May</w:t>",
        "<w:t xml:space='preserve'> it be</w:t>",
    )
    marks = [
        f"<w:fldChar w:fldCharType='{told}'/>" for told in ("begin", "separate", "end")
    ]
    mixed = [part for pair in zip(marks, inside, strict=True) for part in pair]
    whole = f"<w:r><w:rPr><w:i/></w:rPr>{''.join(mixed)}</w:r>"
    assert texts(f"<w:p>{whole}</w:p>") == ["it be"]
    assert '<w:t xml:space="preserve">May</w:t>' in translated(f"<w:p>{whole}</w:p>")


def test_words_that_a_field_takes_from_elsewhere_stay_and_are_listed() -> None:
    body = f"<w:p>{field('DOCVARIABLE Kind', run('Very &amp; urgent'))}</w:p>"
    body += f"<w:p>{field('DOCPROPERTY Size', run('12'))}</w:p>"
    document = opened(body)
    assert [segment.text for segment in document.segments] == []
    told = [str(note.text) for note in document.notes]
    assert told == ["the result of a field stays: Very & urgent"]


def test_a_table_of_contents() -> None:
    entry = (
        f"<w:p>{mark('begin')}<w:r><w:instrText>TOC \\o</w:instrText></w:r>{mark('separate')}"
        f"<w:hyperlink w:anchor='_Toc1'>{run('Introduction')}{TAB}{field('PAGEREF _Toc1', run('5'))}</w:hyperlink></w:p>"
        f"<w:p>{mark('end')}</w:p>"
    )
    assert texts(entry) == ["Introduction"]
    found = translated(entry)
    assert found.count("<w:t>INTRODUCTION</w:t><w:tab/>") == 1
    assert diff_docx(docx(entry), docx(found)) == []
    assert "PAGEREF _Toc1 </w:instrText>" in found


def test_tracked_changes() -> None:
    document = opened(BODIES[5])
    assert texts_of(document) == ["old new end"]
    assert [(note.place, note.text) for note in document.notes] == [
        ("paragraph 1", "deleted text stays: gone")
    ]
    found = translated(BODIES[5])
    assert "<w:ins w:id='1' w:author='A'><w:r>" in found
    assert "<w:delText>gone</w:delText>" in found
    moved = BODIES[5].replace("w:ins", "w:moveTo").replace("w:del ", "w:moveFrom ")
    assert texts(moved.replace("</w:del>", "</w:moveFrom>")) == ["old new end"]


def test_points_stand_between_their_words() -> None:
    found = translated(BODIES[6], reverse)
    start = "<w:bookmarkStart w:id='0' w:name='x'/>"
    assert f"{start}<w:r><w:t>one's</w:t></w:r><w:bookmarkEnd w:id='0'/>" in found
    assert "<w:footnoteReference w:id='2'/>" in found
    # a bookmark that is not nested with what it is in
    body = (
        f"<w:p><w:hyperlink>{run('a ')}<w:bookmarkStart w:id='1'/>{run('b ')}</w:hyperlink>"
        f"{run('c')}<w:bookmarkEnd w:id='1'/>{run(' d')}</w:p>"
    )
    assert texts(body) == ["a b c d"]
    assert translated(body).count("<w:bookmark") == 2
    assert texts(BODIES[7]) == ["a picture"]
    hyphen = "<w:p><w:r><w:t>co</w:t><w:noBreakHyphen/><w:t>opt so</w:t><w:softHyphen/><w:t>on</w:t></w:r></w:p>"
    assert texts(hyphen) == ["co-opt soon"]


def test_tabs_and_pages_divide_and_breaks_do_not() -> None:
    body = f"<w:p>{run('one')}{TAB}{run('two')}<w:r><w:br w:type='page'/></w:r>{run('three')}</w:p>"
    assert texts(body) == ["one", "two", "three"]
    assert translated(body).count("<w:tab/>") == 1
    assert texts(BODIES[9]) == ["trimmed after a break"]
    assert texts(BODIES[9].replace("trimmed ", "It ends. ")) == [
        "It ends.",
        "after a break",
    ]


def test_a_text_box_and_its_copy_for_other_programs() -> None:
    box = f"<w:txbxContent><w:p>{run('in ')}{run('the box')}</w:p></w:txbxContent>"
    drawn = f"<mc:Choice Requires='wps'><w:drawing><wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice>"
    old = f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback>"
    choice = f"<mc:AlternateContent>{drawn}{old}</mc:AlternateContent>"
    body = f"<w:p>{run('around ')}<w:r>{choice}</w:r>{run('it')}</w:p>"
    document = opened(body)
    assert [segment.text for segment in document.segments] == [
        "around it",
        "in the box",
        "in the box",
    ]
    assert [document.place(n) for n in range(3)] == [
        f"paragraph {n}" for n in (1, 2, 3)
    ]
    found = translated(body)
    assert (
        found.count("<w:txbxContent><w:p><w:r><w:t>IN THE BOX</w:t></w:r></w:p>") == 2
    )
    assert "AROUND" in found
    assert diff_docx(docx(body), docx(found)) == []
    # the paragraph around stays as it was where only the box is translated
    only = translate_document(
        document,
        lambda found: [upper(t) if "box" in t else same(t) for t in found],
    )
    told = box.replace(run("in ") + run("the box"), "<w:r><w:t>IN THE BOX</w:t></w:r>")
    assert body_of(only) == body.replace(box, told)


def test_content_controls() -> None:
    assert texts(BODIES[8]) == ["controlled"]
    chosen = BODIES[8].replace("<w:sdtPr/>", "<w:sdtPr><w:dropDownList/></w:sdtPr>")
    assert texts(chosen) == []


def test_right_to_left() -> None:
    look = '<w:b/><w:lang w:val="en"/>'
    body = (
        f"<w:p><w:pPr><w:keepNext/><w:jc w:val='left'/></w:pPr>{run('one', look)}</w:p>"
    )
    found = translated(body, target="ar")
    assert "<w:keepNext/><w:bidi/><w:jc w:val='left'/>" in found
    assert '<w:rPr><w:b/><w:rtl/><w:lang w:val="en" w:bidi="ar"/></w:rPr>' in found
    plain = translated(f"<w:p>{run('one')}</w:p>", target="he")
    assert plain == (
        "<w:p><w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:rtl/></w:rPr><w:t>ONE</w:t></w:r></w:p>"
    )
    back = translated(found, unaligned, target="de")
    assert "bidi/" not in back
    assert "rtl" not in back


def test_the_language_is_told() -> None:
    styles = "<w:rPrDefault><w:rPr><w:lang w:val='en-US' w:eastAsia='ja'/></w:rPr></w:rPrDefault>"
    content = docx(BODIES[0], {"styles": styles}, "A title")
    for target, told in (
        ("de", "<w:lang w:val=\"de\" w:eastAsia='ja'/>"),
        ("zh", "<w:lang w:val='en-US' w:eastAsia=\"zh\"/>"),
        ("fa", "<w:lang w:val='en-US' w:eastAsia='ja' w:bidi=\"fa\"/>"),
    ):
        document = open_docx(content, Reading("a.docx", target=target))
        found = members(translate_document(document, lambda t: list(map(upper, t))))
        assert told in found["word/styles1.xml"]
        assert f"<dc:language>{target}</dc:language>" in found["docProps/core.xml"]
        assert "<dc:title>A TITLE</dc:title>" in found["docProps/core.xml"]
        assert "<dc:creator>Ann Author</dc:creator>" in found["docProps/core.xml"]


def test_a_cell_is_found_by_its_table() -> None:
    def cell(*inside: str) -> str:
        return f"<w:tc>{''.join(inside)}</w:tc>"

    def paragraph(text: str) -> str:
        return f"<w:p>{run(text)}</w:p>"

    inner = f"<w:tbl><w:tr>{cell(paragraph('inner'))}</w:tr></w:tbl>"
    rows = [
        cell(paragraph("one")),
        cell(paragraph("two"), inner) + cell(paragraph("three")),
    ]
    table = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    body = f"{paragraph('head')}<w:tbl>{table}</w:tbl>{paragraph('tail')}"
    body += f"<w:tbl><w:tr>{cell(paragraph('last'))}</w:tr></w:tbl>"
    document = open_docx(docx(body), Reading("a.docx"))
    places = {
        segment.text: document.place(number)
        for number, segment in enumerate(document.segments)
    }
    assert places == {
        "head": "paragraph 1",
        "one": "table 1, row 1, cell 1",
        "two": "table 1, row 2, cell 1",
        "inner": "table 1, row 2, cell 1",
        "three": "table 1, row 2, cell 2",
        "tail": "paragraph 6",
        "last": "table 2, row 1, cell 1",
    }


def test_headers_and_notes_are_found_by_their_relations() -> None:
    parts = {
        kind: f"<w:p>{run(f'in {kind}')}</w:p>"
        for kind in ("header", "footnotes", "comments")
    }
    document = open_docx(docx(BODIES[0], parts), Reading("a.docx"))
    assert texts_of(document) == ["Hello world", "in header", "in footnotes"]
    assert document.place(1) == "header, paragraph 1"
    assert [note.text for note in document.notes] == ["comments stay as they are"]


@pytest.mark.parametrize("name", [name for name in RULES if name != "outside"])
def test_any_translation_leaves_the_structure(name: str) -> None:
    content = docx("".join(BODIES), title="A title")
    document = open_docx(content, Reading("a.docx"))
    assert unchanged(document) == content
    found = translate_document(document, lambda t: list(map(RULES[name], t)))
    assert diff_docx(content, found) == []
    again = reader.Document(BytesIO(found))
    assert len(again.paragraphs) == len(reader.Document(BytesIO(content)).paragraphs)


def test_what_python_docx_makes() -> None:
    made = reader.Document()
    made.add_heading("A heading", 1)
    paragraph = made.add_paragraph("some ")
    paragraph.add_run("bo").bold = True
    paragraph.add_run("ld").bold = True
    paragraph.add_run("\ttext\nmore")
    made.add_paragraph("an item", style="List Bullet")
    made.add_table(1, 1).cell(0, 0).text = "a cell"
    made.sections[0].footer.paragraphs[0].text = "a footer"
    buffer = BytesIO()
    made.save(buffer)
    document = open_docx(buffer.getvalue(), Reading("a.docx"))
    found = ["A heading", "some bold", "text more", "an item", "a cell", "a footer"]
    assert texts_of(document)[:6] == found
    found = translate_document(document, lambda t: list(map(upper, t)))
    again = reader.Document(BytesIO(found))
    assert [p.text for p in again.paragraphs] == [
        "A HEADING",
        "SOME BOLD\tTEXT\nMORE",
        "AN ITEM",
    ]
    assert [r.text for r in again.paragraphs[1].runs if r.bold] == ["BOLD"]
    assert again.tables[0].cell(0, 0).text == "A CELL"
    assert again.sections[0].footer.paragraphs[0].text == "A FOOTER"


def test_doubts_are_comments() -> None:
    doubt = Doubt(("A number is lost.", "Look at <it>."), 0.25)
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('inside')}</w:p></w:txbxContent></w:pict></w:r>"
    body = f"<w:p>{run('first')}{box}</w:p><w:p>{run('second')}</w:p>"
    one = "<w:comment w:id='7'><w:p><w:r><w:t>old</w:t></w:r></w:p></w:comment>"
    for parts, number in ((None, 1), ({"comments": one}, 8)):
        document = open_docx(docx(body, parts), Reading("a.docx"))
        answers = [upper(text) for text in texts_of(document)]
        answers = [
            replace(answers[0], doubt=doubt),
            replace(answers[1], doubt=doubt),
            answers[2],
        ]
        for _ in range(2):
            found = translate_document(document, lambda _, told=answers: told)
        told = f'w:id="{number}"'
        assert f"<w:p><w:commentRangeStart {told}/><w:r><w:t>FIRST" in body_of(found)
        assert body_of(found).count("commentReference") == 1
        comments = list(reader.Document(BytesIO(found)).comments)
        assert [c.comment_id for c in comments] == ([7, 8] if parts else [1])
        assert comments[-1].text == "A number is lost. Look at <it>. (25%)"
        assert comments[-1].author == "Weft"


def test_what_is_refused() -> None:
    def said(content: bytes) -> str:
        with pytest.raises(UsageError) as caught:
            open_docx(content, Reading("a.docx"))
        return str(caught.value)

    assert said(b"PK").startswith("a.docx: is not a whole archive")
    assert "is no document of Word" in said(zipped({"a.xml": "<a/>"}))
    assert "a.docx, word/document.xml:2: not well-formed" in said(docx("<w:p>"))
    parts = members(docx(""))
    told = "application/vnd.ms-word.document.macroEnabled.main+xml; wordprocessingml"
    parts["[Content_Types].xml"] = types(word___document__xml=told)
    assert "may have macros" in said(zipped(parts))
    parts = members(docx(""))
    head, _, rest = parts["word/document.xml"].partition("\n")
    parts["word/document.xml"] = f"{head}<!DOCTYPE x [<!ENTITY a 'b'>]>{rest}"
    assert "xml:1: the document type has declarations" in said(zipped(parts))
