"""Translations of documents of office programs, as LibreOffice opens them."""

import shutil
import subprocess
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest

from document_samples import upper  # tools/
from weft.documents.document import Reading
from weft.documents.driver import translate_document
from weft.documents.registry import format_of

SOFFICE = shutil.which("soffice")
# a flat file of XML for each kind of document
FLAT = {".docx": "fodt", ".odt": "fodt", ".xlsx": "fods", ".ods": "fods"}
FLAT |= {".pptx": "fodp", ".odp": "fodp"}
WORDS = ("a heading", "some bold words", "a cell")


def made_docx() -> bytes:
    made = docx.Document()
    made.add_heading("a heading")
    paragraph = made.add_paragraph("some ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" words")
    made.add_table(1, 1).cell(0, 0).text = "a cell"
    return saved(made)


def made_xlsx() -> bytes:
    made = openpyxl.Workbook()
    for text in WORDS:
        made.active.append([text, 5, "=B1"])
    return saved(made)


def made_pptx() -> bytes:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "a heading"
    frame = slide.shapes.add_textbox(0, 0, 99, 99).text_frame
    for text in ("some ", "bold", " words"):
        frame.paragraphs[0].add_run().text = text
    frame.paragraphs[0].runs[1].font.bold = True
    slide.shapes.add_table(1, 1, 0, 0, 99, 99).table.cell(0, 0).text = "a cell"
    return saved(made)


def saved(made: object) -> bytes:
    buffer = BytesIO()
    made.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


def converted(path: Path, ending: str) -> Path:
    """A file that LibreOffice has written from another one."""
    assert SOFFICE
    profile = f"-env:UserInstallation=file://{path.parent}/profile"
    folder = path.parent / ending
    subprocess.run(
        [SOFFICE, profile, "--headless", "--convert-to", ending, "--outdir", folder, path],
        check=True,
        capture_output=True,
        timeout=300,
    )  # fmt: skip
    return folder / f"{path.stem}.{ending}"


def translated(path: Path) -> Path:
    """A file whose texts are in capitals, of which a reader has read nothing else."""
    document = format_of(path.name).open(path.read_bytes(), Reading(path.name))
    assert [segment.text for segment in document.segments][:3] == list(WORDS)
    out = path.with_stem("loud")
    out.write_bytes(translate_document(document, lambda t: list(map(upper, t))))
    return out


@pytest.mark.long
@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
@pytest.mark.parametrize("name", ["docx", "xlsx", "pptx"])
def test_both_formats_of_a_kind(name: str, tmp_path: Path) -> None:
    build = {"docx": made_docx, "xlsx": made_xlsx, "pptx": made_pptx}[name]
    first = tmp_path / f"a.{name}"
    first.write_bytes(build())
    other = converted(first, {"docx": "odt", "xlsx": "ods", "pptx": "odp"}[name])
    for path in (first, other):
        out = translated(path)
        shown = converted(out, FLAT[path.suffix]).read_text("utf-8")
        for text in WORDS[::2]:
            assert f">{text.upper()}<" in shown, path
        assert ">BOLD<" in shown or ">SOME BOLD WORDS<" in shown
