"""Archives made to harm, or damaged: each is read in time proportional to its size, or refused."""

from collections.abc import Callable
from io import BytesIO
from time import process_time
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_samples import reverse, same, unaligned  # tools/
from office_samples import A, S, docx, epub, odf, pptx, xlsx, zipped  # tools/
from weft.documents.document import Reading
from weft.documents.driver import translate_document, unchanged
from weft.documents.registry import format_of
from weft.errors import UsageError

R_W = '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">a </w:t></w:r>'
PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'
Build = Callable[[str], bytes]
BUILDERS: dict[str, Build] = {
    "a.docx": lambda part: docx(f"<w:p>{part}</w:p>"),
    "a.pptx": lambda part: pptx([f"<p:sp><p:txBody><a:p>{part}</a:p></p:txBody></p:sp>"]),
    "a.xlsx": lambda part: xlsx(
        {"Sheet1": '<sheetData><row><c r="A1" t="s"><v>0</v></c></row></sheetData>'}, f"<si>{part}</si>"
    ),
    "a.odt": lambda part: odf("text", f"<text:p>{part}</text:p>"),
    "a.epub": lambda part: epub({"a.xhtml": PAGE.format(f"<p>{part}</p>")}),
}  # fmt: skip
PARTS = {
    "a.docx": [
        *("<w:r><w:t>word </w:t></w:r>", R_W, "<w:ins><w:r><w:t>x</w:t></w:r></w:ins>"),
        *("<w:r><w:tab/></w:r>", "<w:bookmarkStart w:id='1'/>", "<w:bookmarkEnd w:id='1'/>"),
        *("<w:bookmarkStart w:id='2'/>", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'),
        *('<w:r><w:fldChar w:fldCharType="end"/></w:r>', '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'),
        "<w:r><w:instrText>HYPERLINK</w:instrText></w:r>",
        "<w:hyperlink><w:bookmarkEnd w:id='2'/><w:r><w:t>y</w:t></w:r></w:hyperlink>",
        *("<w:r><w:br/></w:r>", "<w:r/>", "<w:hyperlink><w:bookmarkStart w:id='1'/></w:hyperlink>"),
        *("<!-- c -->", "<w:sdt/>", "<w:r><w:t/></w:r>", " x "),
        "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>in</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>",
        *("<w:p/>", '<w:hyperlink><w:r><w:fldChar w:fldCharType="begin"/></w:r></w:hyperlink>'),
        "<w:del><w:r/></w:del>",
    ],
    "a.pptx": [
        *("<a:r><a:t>word </a:t></a:r>", "<a:r><a:rPr b='1'/><a:t>x</a:t></a:r>", "<a:br/>"),
        *("<a:fld><a:t>7</a:t></a:fld>", "<a:r/>", "<a:r><a:t/></a:r>", "<a:pPr/>", "<a:endParaRPr/>"),
        *("<a:r><a:t>a\tb_x000B_c</a:t></a:r>", "<m:x xmlns:m='u'/>"),
    ],
    "a.xlsx": [
        *("<t>word</t>", "<r><t>a </t></r>", "<r><rPr><b/></rPr><t>b\n</t></r>", "<t/>", "<r/>"),
        *("<t>_x000D_x</t>", "<rPh><t>k</t></rPh>", "<t>&#10;c</t>", "<phoneticPr/>", "<t>=A1</t>"),
        "<t> </t>",
    ],
    "a.odt": [
        *("word ", "<text:span text:style-name='T1'>x</text:span>", "<text:s/>", "<text:s text:c='3'/>"),
        *("<text:tab/>", "  ", "<text:line-break/>", "<text:bookmark-start text:name='b'/>"),
        *("<text:bookmark-end text:name='b'/>", "<text:a>y</text:a>"),
        *("<text:note><text:note-body><text:p>n</text:p></text:note-body></text:note>", "<text:span/>"),
        *("<text:change-end/>", "<text:a><text:bookmark-end text:name='b'/></text:a>", "<text:p>in</text:p>"),
        *("<office:annotation/>", "<text:ruby/>", "<text:s text:c='99999999999999999999'/>"),
        *("<text:span><text:span>z</text:span></text:span>", "<![CDATA[<c>]]>"),
    ],
    "a.epub": [
        *("word ", "<b>x</b>", "<br/>", "<a href='u'>1</a>", "<sup>2</sup>", "<script/>", "<i>", "</i>"),
        *("&amp;", "&nbsp;", "<p>", "<![CDATA[c]]>", "<!-- c -->", "<span/>", "<a href='u'>(3)</a>"),
        *("<title/>", "</p>", "<x", "<br>"),
    ],
}  # fmt: skip
NAMES = list(PARTS)


def opened_or_refused(name: str, content: bytes) -> bool:
    """Whether it was read: then it comes back, and any translation of it can be read again."""
    try:
        document = format_of(name).open(content, Reading(name))
    except UsageError as error:
        said = str(error)
    else:
        said = ""
    assert said == "" or said.startswith(name)
    assert "\n" not in said
    if said:
        return False
    assert unchanged(document) == content
    assert translate_document(document, lambda t: list(map(same, t))) == content
    for rule in (reverse, unaligned):
        out = translate_document(document, lambda t, rule=rule: list(map(rule, t)))
        format_of(name).open(out, Reading(name, target="ar"))
    return True


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_odd_paragraphs_come_back(name: str, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from(PARTS[name]), max_size=12))
    assert opened_or_refused(name, BUILDERS[name]("".join(parts)))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_with_a_line(name: str, data: st.DataObject) -> None:
    whole = BUILDERS[name]("".join(PARTS[name][:3]))
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    opened_or_refused(name, bytes(damaged[:end]) if end % 3 == 0 else bytes(damaged))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_damaged_members_are_refused_with_a_line(name: str, data: st.DataObject) -> None:  # fmt: skip
    with ZipFile(BytesIO(BUILDERS[name]("".join(PARTS[name][:3])))) as archive:
        found = {member: archive.read(member) for member in archive.namelist()}
    member = data.draw(st.sampled_from(sorted(found)))
    content = bytearray(found[member])
    start = data.draw(st.integers(0, len(content)))
    content[start : start + data.draw(st.integers(0, 40))] = data.draw(
        st.sampled_from([b"", b"<", b"&x;", b"<a>", b"</w:p>", b"\0", b"\xff", b"x='1'"])
    )  # fmt: skip
    if data.draw(st.booleans()):
        del found[member]
    else:
        found[member] = bytes(content)
    opened_or_refused(name, zipped(found))


@pytest.mark.parametrize("name", NAMES)
def test_time_is_proportional_to_size(name: str) -> None:
    for part in PARTS[name]:
        if name == "a.epub" and part in ("<i>", "<p>", "<x"):
            continue  # of tests/documents/test_hostile.py
        content = BUILDERS[name](part * 300)
        begin = process_time()
        document = format_of(name).open(content, Reading(name))
        for rule in (reverse, unaligned):
            translate_document(document, lambda t, rule=rule: list(map(rule, t)))
        assert process_time() - begin < 5, part


def test_deep_nesting_is_read_or_refused() -> None:
    for depth in (40, 60, 500):
        box = "<w:p><w:r><w:t>x</w:t><w:pict>" * depth + "</w:pict></w:r></w:p>" * depth
        assert opened_or_refused("a.docx", docx(box)) == (depth < 90)
        around = "<w:ins>" * depth + R_W + "</w:ins>" * depth
        assert opened_or_refused("a.docx", docx(f"<w:p>{around}</w:p>")) == (depth < 250)  # fmt: skip
        spans = "<text:span>a" * depth + "</text:span>" * depth
        assert opened_or_refused("a.odt", odf("text", f"<text:p>{spans}</text:p>")) == (depth < 250)  # fmt: skip


def test_what_leads_outside_is_never_followed() -> None:
    for target in (
        "../../../etc/passwd",
        "file:///etc/passwd",
        "https://example.org/x",
        "/nowhere",
    ):
        drawing = f'<a:p xmlns:a="{A}"><a:r><a:t>in it</a:t></a:r></a:p>'
        content = xlsx({"Sheet1": "<sheetData/>"}, "", {"drawing": f'<x xmlns="{S}">{drawing}</x>'})  # fmt: skip
        with ZipFile(BytesIO(content)) as archive:
            found = {member: archive.read(member) for member in archive.namelist()}
        rels = "xl/worksheets/_rels/sheet1.xml.rels"
        found[rels] = found[rels].replace(b"../drawing1.xml", target.encode())
        document = format_of("a.xlsx").open(zipped(found), Reading("a.xlsx"))
        assert document.segments == ()
