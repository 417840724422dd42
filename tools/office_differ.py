"""What a translation has changed in a document beside its words, as other programs read it."""

from collections import Counter
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile

import openpyxl
import pptx
from lxml import etree
from openpyxl.cell import Cell

# in which words stand, and what is said once for words that look alike
_TEXT = {"t", "r", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen"}


def member_differences(before: bytes, after: bytes) -> list[str]:
    """Members of an archive that are lost, new, at another place, or compressed otherwise."""
    with ZipFile(BytesIO(before)) as old, ZipFile(BytesIO(after)) as new:
        rows = [
            [(i.filename, i.compress_type, i.date_time) for i in archive.infolist()]
            for archive in (old, new)
        ]
        broken = new.testzip()
    found = [f"damaged: {broken}"] if broken else []
    if rows[0] != rows[1]:
        found.append(f"members: {rows[0]} and {rows[1]}")
    return found


def changed_members(before: bytes, after: bytes) -> list[str]:
    with ZipFile(BytesIO(before)) as old, ZipFile(BytesIO(after)) as new:
        return [name for name in old.namelist() if old.read(name) != new.read(name)]


def diff_docx(before: bytes, after: bytes) -> list[str]:
    """Differences of two Word documents beside the words of their runs."""
    found = member_differences(before, after)
    with ZipFile(BytesIO(before)) as old, ZipFile(BytesIO(after)) as new:
        for name in changed_members(before, after):
            if not name.endswith(".xml"):
                found.append(f"changed: {name}")
                continue
            lost = _shape(old.read(name)) - _shape(new.read(name))
            added = _shape(new.read(name)) - _shape(old.read(name))
            found += [f"{name}: lost {row}" for row in lost]
            found += [f"{name}: new {row}" for row in added]
    return found


def _shape(content: bytes) -> Counter[tuple[str, ...]]:
    """Every element of a part but runs and their text: its path, and its attributes."""
    shape: Counter[tuple[str, ...]] = Counter()
    for element in etree.fromstring(content).iter(etree.Element):
        name = etree.QName(element).localname
        if name in _TEXT or _is_inside_look(element):
            continue
        path = [
            f"{etree.QName(e).localname}"
            for e in [element, *element.iterancestors()]
            if etree.QName(e).localname not in _TEXT
        ]
        shape[(*path, str(sorted(element.attrib.items())))] += 1
    return shape


def _is_inside_look(element: etree._Element) -> bool:
    return any(etree.QName(e).localname == "rPr" for e in element.iterancestors())


def diff_xlsx(before: bytes, after: bytes) -> list[str]:
    """Compare two workbooks: all that openpyxl reads of a cell but its text."""
    found = member_differences(before, after)
    for name in changed_members(before, after):
        if not name.endswith(".xml"):
            found.append(f"changed: {name}")
    old, new = (openpyxl.load_workbook(BytesIO(content)) for content in (before, after))
    if old.sheetnames != new.sheetnames:
        found.append(f"sheets: {old.sheetnames} and {new.sheetnames}")
    for sheet in old.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                other = new[sheet.title][cell.coordinate]
                kept = cell.data_type != "s"
                if cell.data_type != other.data_type or cell._style != other._style:
                    found.append(f"{cell.coordinate}: its type or style")
                elif kept and _value(cell) != _value(other):
                    found.append(f"{cell.coordinate}: {cell.value} and {other.value}")
    return found


def _value(cell: Cell) -> object:
    """The value of a cell; of a formula of several cells its text."""
    return getattr(cell.value, "text", cell.value)


def diff_pptx(before: bytes, after: bytes) -> list[str]:
    """Compare two presentations: their elements, and the shapes that python-pptx reads."""
    found = diff_docx(before, after)
    old, new = (pptx.Presentation(BytesIO(content)) for content in (before, after))
    for number, (one, other) in enumerate(zip(old.slides, new.slides, strict=True), 1):
        shapes = [
            [(s.shape_id, s.name, s.shape_type) for s in slide.shapes]
            for slide in (one, other)
        ]
        if shapes[0] != shapes[1]:
            found.append(f"slide {number}: its shapes")
    return found


def diff_odf(before: bytes, after: bytes) -> list[str]:
    """Compare two documents of OpenDocument: all elements but spans and spaces, all attributes."""
    return [
        row
        for row in diff_docx(before, after)
        if "'span'" not in row and "('s'," not in row
    ]


def diff_epub(before: bytes, after: bytes) -> list[str]:
    """Compare two books: their members, and the tags of their pages."""
    found = member_differences(before, after)
    with ZipFile(BytesIO(before)) as old, ZipFile(BytesIO(after)) as new:
        first = new.infolist()[0]
        if (first.filename, first.compress_type) != ("mimetype", ZIP_STORED):
            found.append("mimetype is not the first member, or not stored")
        for name in changed_members(before, after):
            shapes = [_tags(archive.read(name)) for archive in (old, new)]
            if shapes[0] != shapes[1]:
                found.append(f"{name}: {shapes[0]} and {shapes[1]}")
    return found


def _tags(content: bytes) -> Counter[str]:
    """Every tag of a page with its attributes and what it is in, as lxml reads it."""
    root = etree.fromstring(content, etree.XMLParser(recover=True))
    tags: Counter[str] = Counter()
    for element in root.iter(etree.Element):
        path = "/".join(str(e.tag) for e in element.iterancestors())
        tags[f"{path} {element.tag} {sorted(element.attrib.items())}"] += 1
    return tags
