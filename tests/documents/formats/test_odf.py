"""OpenDocument: spans that look alike are one text; styles, numbers and formulas stay."""

from xml.etree import ElementTree

import pytest

from document_samples import RULES, Rule, reverse, upper  # tools/
from office_differ import diff_odf  # tools/
from office_samples import docx, members, odf, zipped  # tools/
from weft.documents.document import Doubt, Reading, Translated
from weft.documents.driver import texts_of, translate_document, unchanged
from weft.documents.formats.office.odf import open_odf
from weft.documents.formats.office.package import PackageDocument
from weft.errors import UsageError

AUTOMATIC = (
    '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="00a"/></style:style>'
    '<style:style style:name="T2" style:family="text"><style:text-properties fo:font-weight="bold"'
    ' style:font-weight-asian="bold" officeooo:rsid="00b"/></style:style>'
    '<style:style style:name="T3" style:family="text"><style:text-properties fo:font-weight="bold"'
    ' fo:language="en" fo:country="GB" style:font-weight-asian="bold"/></style:style>'
)
NOTE = (
    '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
    "<text:p>the note</text:p></text:note-body></text:note>"
)
MARKED = "<text:bookmark-start text:name='b'/>more<text:bookmark-end text:name='b'/>"
FRAME = "<draw:frame><svg:title>alt</svg:title><draw:text-box><text:p>the box</text:p></draw:text-box></draw:frame>"
COMMENT = (
    "<office:annotation office:name='n'><text:p>a comment</text:p></office:annotation>"
)
LINK = '<text:a xlink:href="https://example.org/">the page</text:a>'


def span(text: str, style: str) -> str:
    return f'<text:span text:style-name="{style}">{text}</text:span>'


def opened(body: str, target: str = "", kind: str = "text") -> PackageDocument:
    return open_odf(
        odf(kind, body, automatic=AUTOMATIC), Reading("a.odt", target=target)
    )


def texts(body: str, kind: str = "text") -> list[str]:
    return texts_of(opened(body, kind=kind))[:-1]  # without the title


def translated(body: str, rule: Rule = upper, kind: str = "text") -> str:
    document = opened(body, kind=kind)
    found = translate_document(document, lambda told: list(map(rule, told)))
    content = members(found)["content.xml"]
    return content.partition(f"<office:{kind}>")[2].partition(f"</office:{kind}>")[0]


BODIES = [
    f"<text:h text:outline-level='1'>A {span('head', 'T1')}{span('ing', 'T1')}</text:h>",
    f"<text:p>one {span('bo', 'T2')}{span('ld', 'T3')} word{NOTE} and {LINK}.</text:p>",
    "<text:p>  page <text:page-number>7</text:page-number> of<text:s text:c='2'/>it<text:tab/>next\n column</text:p>",
    f"<text:p>a line<text:line-break/>and {MARKED}</text:p>",
    "<text:p>old <text:change-start text:change-id='c'/>new <text:change-end text:change-id='c'/>end</text:p>",
    f"<text:p>in {FRAME}it</text:p>",
    f"<text:p>seen {COMMENT}words<office:annotation-end office:name='n'/> here</text:p>",
    "<text:list><text:list-item><text:p>an item</text:p></text:list-item></text:list>",
]


def test_spans_that_look_alike_are_one_text() -> None:
    assert texts(BODIES[0]) == ["A heading"]
    assert translated(BODIES[0]) == "<text:h text:outline-level='1'>A HEADING</text:h>"
    assert texts(BODIES[1]) == ["one bold word and the page.", "the note"]
    found = translated(BODIES[1])
    assert f"ONE {span('BOLD', 'T2')} WORD<text:note " in found
    assert "<text:p>THE NOTE</text:p>" in found
    assert (
        '<text:a xlink:href="https://example.org/">THE PAGE</text:a>.</text:p>' in found
    )
    turned = translated(BODIES[1], reverse)
    assert span("bold's", "T2") in turned


def test_what_stands_between_words() -> None:
    assert texts(BODIES[2]) == ["page of it", "next column"]
    assert translated(BODIES[2]) == (
        "<text:p>PAGE <text:page-number>7</text:page-number> OF IT<text:tab/>NEXT COLUMN</text:p>"
    )
    assert texts(BODIES[3]) == ["a line and more"]
    assert "<text:bookmark-start text:name='b'/>MORE<text:bookmark-end" in translated(
        BODIES[3]
    )
    assert texts(BODIES[5]) == ["in it", "the box"]
    document = opened(BODIES[6])
    assert texts(BODIES[6]) == ["seen words here"]
    assert "</office:annotation>WORDS<office:annotation-end" in translated(BODIES[6])
    assert [note.text for note in document.notes] == ["comments stay as they are"]


def test_a_bookmark_that_ends_twice() -> None:
    end = "<text:bookmark-end text:name='b'/>"
    body = f"<text:p>a {MARKED}<text:a>b {end}</text:a> word</text:p>"
    assert texts(body) == ["a moreb word"]
    assert translated(body).count(end) == 2


def test_tracked_changes() -> None:
    gone = "<text:p>gone words</text:p>"
    changes = f"<text:tracked-changes><text:changed-region text:id='d'><text:deletion>{gone}</text:deletion>"
    changes += "</text:changed-region></text:tracked-changes>"
    body = f"{changes}<text:p>still <text:change text:change-id='d'/>here</text:p>{BODIES[4]}"
    document = opened(body)
    assert texts_of(document)[:-1] == ["still here", "old new end"]
    assert [(note.place, note.text) for note in document.notes] == [
        ("paragraph 1", "deleted text stays: gone words")
    ]
    found = translated(body)
    assert found.startswith(changes)
    new = "<text:change-start text:change-id='c'/>NEW <text:change-end text:change-id='c'/>"
    assert new in found


@pytest.mark.parametrize("name", list(RULES))
def test_any_translation_leaves_the_structure(name: str) -> None:
    content = odf("text", "".join(BODIES), automatic=AUTOMATIC)
    document = open_odf(content, Reading("a.odt"))
    assert unchanged(document) == content
    found = translate_document(document, lambda told: list(map(RULES[name], told)))
    assert diff_odf(content, found) == []


SHEET = (
    '<table:table table:name="Prices"><table:table-row><table:table-cell office:value-type="string"><text:p>Apples'
    '</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="5"><text:p>5 kg</text:p>'
    "</table:table-cell></table:table-row><table:table-row table:number-rows-repeated='3'><table:table-cell"
    ' table:number-columns-repeated="27"/></table:table-row><table:table-row><table:table-cell'
    ' table:formula="of:=IF([.A1]=&quot;Yes&quot;;1;0)" office:value-type="string"><text:p>result</text:p>'
    '</table:table-cell><table:table-cell table:number-columns-repeated="26"/><table:table-cell office:value-type='
    '"string"><office:annotation><text:p>why</text:p></office:annotation><text:p>two</text:p><text:p>lines</text:p>'
    '</table:table-cell><table:table-cell office:value-type="string"><text:p>Yes</text:p></table:table-cell>'
    "</table:table-row></table:table>"
)


def test_a_spreadsheet() -> None:
    document = opened(SHEET, kind="spreadsheet")
    found = [(document.place(n), s.text) for n, s in enumerate(document.segments)]
    assert found == [
        ("sheet Prices, cell A1", "Apples"),
        ("sheet Prices, cell AB5", "two"),
        ("sheet Prices, cell AB5", "lines"),
        ("title", "A title"),
    ]
    assert {(note.place, note.text) for note in document.notes} == {
        ("workbook", "names of sheets stay, as formulas name them: Prices"),
        ("sheet Prices, cell AC5", "stays, as a formula or a filter names it: Yes"),
        ("document", "comments stay as they are"),
    }
    content = odf("spreadsheet", SHEET)
    out = translate_document(
        open_odf(content, Reading("a.ods")), lambda told: list(map(upper, told))
    )
    assert diff_odf(content, out) == []
    root = ElementTree.fromstring(members(out)["content.xml"])
    shown = [
        p.text for p in root.iter("{urn:oasis:names:tc:opendocument:xmlns:text:1.0}p")
    ]
    assert shown == ["APPLES", "5 kg", "result", "why", "TWO", "LINES", "Yes"]


def test_a_presentation() -> None:
    body = "".join(
        f"<draw:page draw:name='p{n}'><draw:frame><draw:text-box><text:p>on {n}</text:p></draw:text-box></draw:frame>"
        f"<presentation:notes><draw:frame><text:p>said {n}</text:p></draw:frame></presentation:notes></draw:page>"
        for n in ("one", "two")
    )
    document = opened(body, kind="presentation")
    assert texts_of(document) == ["on one", "said one", "on two", "said two", "A title"]
    places = [document.place(n) for n in range(4)]
    assert places == ["slide 1", "slide 1, notes", "slide 2", "slide 2, notes"]


STYLES = (
    '<style:default-style style:family="paragraph"><style:paragraph-properties style:writing-mode="lr-tb"/>'
    '<style:text-properties fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"'
    ' style:language-complex="hi" style:country-complex="IN"/></style:default-style><style:master-page>'
    "<style:header><text:p>the head</text:p></style:header><draw:frame><text:p>left alone</text:p></draw:frame>"
    "</style:master-page>"
)


def test_styles_say_the_language() -> None:
    content = odf("text", "", STYLES, AUTOMATIC)
    for target, told in (
        ("de", 'fo:language="de" fo:country="none" style:language-asian="zh"'),
        ("pt-BR", 'fo:language="pt" fo:country="BR"'),
        ("ja", 'fo:country="US" style:language-asian="ja" style:country-asian="none"'),
        ("ar", 'style:language-complex="ar" style:country-complex="none"'),
    ):
        document = open_odf(content, Reading("a.odt", target=target))
        assert texts_of(document) == ["the head", "A title"]
        found = members(unchanged(document))
        assert told in found["styles.xml"]
        assert ('style:writing-mode="rl-tb"' in found["styles.xml"]) == (target == "ar")
        assert f"<dc:language>{target}</dc:language>" in found["meta.xml"]
    assert document.place(0) == "header or footer, paragraph 1"


def test_doubts_are_comments() -> None:
    document = opened(f"<text:p>words{NOTE}</text:p>")
    doubt = Doubt(("A number is lost.",), 0.5)
    answers = [Translated(text, doubt=doubt) for text in ("Worte", "Note", "Titel")]
    found = members(translate_document(document, lambda _: answers))["content.xml"]
    author = '<dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">Weft</dc:creator>'
    comment = f"<office:annotation>{author}<text:p>A number is lost. (50%)</text:p></office:annotation>"
    assert f"<text:p>{comment}Worte<text:note " in found
    assert "<text:note-body><text:p>Note</text:p>" in found


def test_what_is_refused() -> None:
    def said(content: bytes) -> str:
        with pytest.raises(UsageError) as caught:
            open_odf(content, Reading("a.odt"))
        return str(caught.value)

    assert "is no document of LibreOffice" in said(docx("<w:p/>"))
    assert "is no document of LibreOffice" in said(odf("chart", ""))
    locked = members(odf("text", "")) | {
        "META-INF/manifest.xml": "<m><encryption-data/></m>"
    }
    assert said(zipped(locked)) == "a.odt: is encrypted; save it without a password"
    assert said(odf("text", "<text:p>")).startswith("a.odt, content.xml:2: not well")
    with_macros = members(odf("text", "")) | {"Basic/script-lc.xml": "<x/>"}
    assert "has macros" in said(zipped(with_macros))
