"""Workbooks: texts of cells are translated, and whatever formulas name stays."""

from io import BytesIO

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.worksheet.table import Table

from document_samples import RULES, same, upper  # tools/
from office_differ import diff_xlsx  # tools/
from office_samples import A, S, docx, members, xlsx, zipped  # tools/
from weft.documents.document import Reading, Translated
from weft.documents.driver import texts_of, translate_document, unchanged
from weft.documents.formats.office.package import PackageDocument
from weft.documents.formats.office.xlsx import open_xlsx
from weft.errors import UsageError


def opened(content: bytes) -> PackageDocument:
    return open_xlsx(content, Reading("a.xlsx"))


def loud(content: bytes) -> bytes:
    return translate_document(opened(content), lambda found: list(map(upper, found)))


def cells(*texts: str) -> str:
    """A row of cells, each with what is in it."""
    found = "".join(f'<c r="{chr(65 + n)}1" {text}</c>' for n, text in enumerate(texts))
    return f'<sheetData><row r="1">{found}</row></sheetData>'


def shared(number: int) -> str:
    return f't="s"><v>{number}</v>'


STRINGS = (
    "<si><t>Apples</t></si><si><t>unused</t></si>"
    "<si><r><t xml:space='preserve'>ripe </t></r><r><rPr><b/></rPr><t>re</t></r><r><rPr><b/></rPr><t>d</t></r></si>"
    "<si><t>12,5</t></si><si><t xml:space='preserve'>First line\nSecond. \nThird</t></si>"
)
FORMULA = '><f>IF(A1="Yes",1,0)</f><v>1</v>'
BOOK = xlsx(
    {
        "Prices": cells(shared(0), shared(2), shared(3), shared(4), FORMULA),
        "Sheet2": cells(
            shared(0), 't="inlineStr"><is><t>in the cell</t></is>', "><v>7</v>"
        ),
    },
    STRINGS,
)


def test_strings_are_translated_once_each() -> None:
    document = opened(BOOK)
    assert [segment.text for segment in document.segments] == [
        *("Apples", "ripe red", "First line Second.", "Third", "in the cell"),
    ]
    places = [document.place(n) for n in range(5)]
    assert places[0] == "sheet Prices, cell A1"
    assert places[4] == "sheet Sheet2, cell B1"
    assert [note.text for note in document.notes] == [
        "names of sheets stay, as formulas name them: Prices"
    ]
    assert unchanged(document) == BOOK
    found = members(loud(BOOK))
    assert "<si><t>APPLES</t></si><si><t>unused</t></si>" in found["xl/sharedStrings.xml"]  # fmt: skip
    assert (
        '<si><r><t xml:space="preserve">RIPE </t></r><r><rPr><b/></rPr><t>RED</t></r></si>'
        in found["xl/sharedStrings.xml"]
    )
    assert '<t xml:space="preserve">FIRST LINE\nSECOND. \nTHIRD</t>' in found["xl/sharedStrings.xml"]  # fmt: skip
    assert "<is><t>IN THE CELL</t></is>" in found["xl/worksheets/sheet2.xml"]


@pytest.mark.parametrize("name", list(RULES))
def test_any_translation_leaves_the_rest(name: str) -> None:
    rule = RULES[name]
    found = translate_document(opened(BOOK), lambda texts: list(map(rule, texts)))
    assert diff_xlsx(BOOK, found) == []


def test_no_text_becomes_a_formula() -> None:
    for sign in "=+-@":
        text = f'{sign}HYPERLINK("x")'
        answers = [Translated(text)] * 5
        found = translate_document(opened(BOOK), lambda _, told=answers: told)
        for sheet, cell in (("Prices", "A1"), ("Sheet2", "B1")):
            read = openpyxl.load_workbook(BytesIO(found))[sheet][cell]
            assert read.value == text
            assert f"<f>{text}" not in members(found)["xl/worksheets/sheet2.xml"]
        assert 't="inlineStr"' in members(found)["xl/worksheets/sheet2.xml"]


def test_what_formulas_tables_and_filters_name_stays() -> None:
    strings = "".join(
        f"<si><t>{text}</t></si>" for text in ("Yes", "Name", "Open", "North", "free")
    )
    rows = cells(*map(shared, range(5)), FORMULA)
    rows += '<autoFilter ref="A1:B2"><filterColumn colId="0"><filters><filter val="Open"/></filters></filterColumn>'
    rows += '</autoFilter><dataValidations><dataValidation prompt="pick"><formula1>"North, South"</formula1>'
    rows += "</dataValidation></dataValidations><headerFooter><oddHeader>&amp;LConfidential</oddHeader></headerFooter>"
    columns = '<tableColumns><tableColumn id="1" name="Name"/></tableColumns>'
    table = f'<table xmlns="{S}" id="1" name="T" ref="B1:B2">{columns}</table>'
    document = opened(xlsx({"Sheet1": rows}, strings, {"table": table}))
    assert texts_of(document) == ["free"]
    notes = {note.place: note.text for note in document.notes}
    assert notes["sheet Sheet1, cell A1"] == "stays, as a formula or a filter names it: Yes"  # fmt: skip
    assert notes["sheet Sheet1, cell B1"] == "stays, as it heads a column of a table: Name"  # fmt: skip
    assert {"sheet Sheet1, cell C1", "sheet Sheet1, cell D1"} < set(notes)
    told = {note.text for note in document.notes if note.place == "sheet Sheet1"}
    assert told == {
        "headers and footers of pages stay as they are",
        "messages on what may be entered stay as they are",
    }


def test_text_in_shapes() -> None:
    drawing = (
        f'<xdr:wsDr xmlns:xdr="x" xmlns:a="{A}"><xdr:txBody><a:p><a:r><a:rPr lang="en-US"/><a:t>in a </a:t></a:r>'
        '<a:r><a:rPr lang="en-GB" err="1"/><a:t>shape</a:t></a:r></a:p></xdr:txBody></xdr:wsDr>'
    )
    content = xlsx({"Sheet1": cells()}, "", {"drawing": drawing})
    document = open_xlsx(content, Reading("a.xlsx", target="de"))
    assert texts_of(document) == ["in a shape"]
    assert document.place(0) == "sheet Sheet1, drawing"
    found = members(translate_document(document, lambda _: [upper("in a shape")]))
    assert found["xl/drawing1.xml"].count('<a:r><a:rPr lang="de"/><a:t>IN A SHAPE') == 1


def test_readings_in_japanese_go_with_a_note() -> None:
    strings = "<si><t>課きく</t><rPh sb='0' eb='1'><t>カ</t></rPh><phoneticPr fontId='1'/></si>"
    content = xlsx({"Sheet1": cells(shared(0))}, strings)
    document = opened(content)
    assert texts_of(document) == ["課きく"]
    assert [note.place for note in document.notes] == ["sheet Sheet1, cell A1"]
    assert unchanged(document) == content
    found = translate_document(document, lambda _: [Translated("lesson")])
    assert "<si><t>lesson</t></si>" in members(found)["xl/sharedStrings.xml"]


def test_what_openpyxl_makes() -> None:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.append(["Name", "Amount"])
    sheet.append(["red apples", 5])
    sheet.append(["=A2", "text with {0}"])
    sheet["C1"] = CellRichText(["a ", TextBlock(InlineFont(b=True), "bold"), " word"])
    sheet.add_table(Table(displayName="T", ref="A1:B3"))
    buffer = BytesIO()
    made.save(buffer)
    document = opened(buffer.getvalue())
    assert texts_of(document) == ["a bold word", "red apples", "text with"]
    found = loud(buffer.getvalue())
    assert diff_xlsx(buffer.getvalue(), found) == []
    read = openpyxl.load_workbook(BytesIO(found), rich_text=True).active
    assert read["A1"].value == "Name"
    assert read["A2"].value == "RED APPLES"
    assert read["A3"].value == "=A2"
    assert read["B3"].value == "TEXT WITH {0}"
    assert [str(part) for part in read["C1"].value] == ["A ", "BOLD", " WORD"]


def test_what_is_refused() -> None:
    def said(content: bytes) -> str:
        with pytest.raises(UsageError) as caught:
            opened(content)
        return str(caught.value)

    assert "is no document of Excel" in said(docx("<w:p/>"))
    bad = members(BOOK)
    for name, content in (
        ("xl/worksheets/sheet1.xml", "<a>"),
        ("xl/worksheets/sheet1.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
        ("xl/worksheets/sheet1.xml", "<?xml version='1.0' encoding='utf-7'?><a/>"),
        ("xl/worksheets/sheet1.xml", "<a>" * 300),
        ("xl/sharedStrings.xml", "<a>"),
        ("xl/workbook.xml", "<a/>x"),
    ):
        assert said(zipped(bad | {name: content})).startswith(f"a.xlsx, {name}:1: ")


def test_a_large_sheet_is_gone_through_quickly() -> None:
    rows = "".join(f'<row><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(50_000))
    content = xlsx({"Sheet1": f"<sheetData>{rows}</sheetData>"}, STRINGS)
    document = opened(content)
    assert [same(text).text for text in texts_of(document)] == ["Apples"]
