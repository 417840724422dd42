"""Small documents of office programs, written by hand: archives, as those programs make them."""

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_CORE = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
_NAMES = f'xmlns:w="{W}" xmlns:r="{R}" xmlns:a="{A}"'
_NAMES += ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
_NAMES += (
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
)
_NAMES += (
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)
_NAMES += ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
_NAMES += ' xmlns:v="urn:schemas-microsoft-com:vml"'


def zipped(members: Mapping[str, str | bytes], stored: str = "") -> bytes:
    """An archive; the member `stored` is not compressed."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as out:
        for name, content in members.items():
            info = ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            info.compress_type = ZIP_STORED if name == stored else ZIP_DEFLATED
            out.writestr(info, content)
    return buffer.getvalue()


def members(content: bytes) -> dict[str, str]:
    """The members of an archive that are text."""
    with ZipFile(BytesIO(content)) as archive:
        return {
            name: archive.read(name).decode("utf-8", "replace")
            for name in archive.namelist()
        }


def relations(*rows: tuple[str, str]) -> str:
    """A member with relationships, of kinds and targets; one to an address is external."""
    found = []
    for number, (kind, target) in enumerate(rows, 1):
        address = _CORE if kind == "core-properties" else f"{R}/{kind}"
        mode = ' TargetMode="External"' if "://" in target else ""
        found.append(
            f'<Relationship Id="rId{number}" Type="{address}" Target="{target}"{mode}/>'
        )
    return f'{HEAD}<Relationships xmlns="{_RELATIONS}">{"".join(found)}</Relationships>'


def types(**by_part: str) -> str:
    """A member with the types of parts; in their names __ is for a dot, ___ for a slash."""
    rows = [
        f'<Override PartName="/{name.replace("___", "/").replace("__", ".")}" ContentType="{told}"/>'
        for name, told in by_part.items()
    ]
    default = '<Default Extension="xml" ContentType="application/xml"/>'
    return f'{HEAD}<Types xmlns="{_TYPES}">{default}{"".join(rows)}</Types>'


def core(title: str, language: str = "en-US") -> str:
    """The properties of a document."""
    return (
        f'{HEAD}<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
        f' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>'
        f"<dc:creator>Ann Author</dc:creator><dc:language>{language}</dc:language></cp:coreProperties>"
    )


def docx(body: str, extra: Mapping[str, str] | None = None, title: str = "") -> bytes:
    """A Word document; `extra` has parts by their kinds: `header`, `footnotes`."""
    rows = [(kind, f"{kind}1.xml") for kind in extra or {}]
    parts = {
        f"word/{kind}1.xml": f"{HEAD}<w:{kind} {_NAMES}>{content}</w:{kind}>"
        for kind, content in (extra or {}).items()
    }
    told = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    kinds = {f"word___{kind}1__xml": f"{told}.{kind}+xml" for kind in extra or {}}
    return zipped(
        {
            "[Content_Types].xml": types(
                word___document__xml=f"{told}.document.main+xml", **kinds
            ),
            "_rels/.rels": relations(
                ("officeDocument", "word/document.xml"),
                ("core-properties", "docProps/core.xml"),
            ),
            "word/document.xml": f"{HEAD}<w:document {_NAMES}><w:body>{body}<w:sectPr/></w:body></w:document>",
            "word/_rels/document.xml.rels": relations(
                *rows, ("hyperlink", "https://example.org/")
            ),
            **parts,
            "docProps/core.xml": core(title),
            "word/media/image1.png": b"\x89PNG\0\0",
        }
    )


S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def xlsx(
    sheets: Mapping[str, str],
    strings: str = "",
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """A workbook of sheets with these rows; `extra` has parts of the first sheet by their kinds."""
    names = f'xmlns="{S}" xmlns:r="{R}"'
    rows = [
        f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>'
        for n, name in enumerate(sheets, 1)
    ]
    parts = {
        f"xl/worksheets/sheet{n}.xml": f"{HEAD}<worksheet {names}>{content}</worksheet>"
        for n, content in enumerate(sheets.values(), 1)
    }
    for kind, content in (extra or {}).items():
        parts[f"xl/{kind}1.xml"] = f"{HEAD}{content}"
    kinds = [("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(rows) + 1)]
    told = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    return zipped(
        {
            "[Content_Types].xml": types(
                xl___workbook__xml=f"{told}.sheet.main+xml",
                xl___sharedStrings__xml=f"{told}.sharedStrings+xml",
                **{
                    f"xl___worksheets___sheet{n}__xml": f"{told}.worksheet+xml"
                    for n in range(1, len(rows) + 1)
                },
            ),
            "_rels/.rels": relations(("officeDocument", "/xl/workbook.xml")),
            "xl/workbook.xml": f"{HEAD}<workbook {names}><sheets>{''.join(rows)}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                *kinds, ("sharedStrings", "sharedStrings.xml")
            ),
            **parts,
            "xl/worksheets/_rels/sheet1.xml.rels": relations(
                *((kind, f"../{kind}1.xml") for kind in extra or {})
            ),
            "xl/sharedStrings.xml": f'{HEAD}<sst xmlns="{S}">{strings}</sst>',
        }
    )


P = "http://schemas.openxmlformats.org/presentationml/2006/main"


def pptx(
    slides: list[str], extra: Mapping[str, str] | None = None, master: str = ""
) -> bytes:
    """A presentation of slides with these shapes; `extra` has parts of the first slide by kinds."""
    names = f'xmlns:p="{P}" xmlns:a="{A}" xmlns:r="{R}"'
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in numbers[::-1])
    rows = [("slide", f"slides/slide{n}.xml") for n in numbers]
    parts = {
        f"ppt/slides/slide{n}.xml": f"{HEAD}<p:sld {names}><p:cSld><p:spTree>{content}</p:spTree></p:cSld></p:sld>"
        for n, content in zip(numbers, slides, strict=True)
    }
    for kind, content in (extra or {}).items():
        parts[f"ppt/{kind}1.xml"] = f"{HEAD}<part {names}>{content}</part>"
    told = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
    return zipped(
        {
            "[Content_Types].xml": types(ppt___presentation__xml=told),
            "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f"{HEAD}<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(
                *rows, ("slideMaster", "slideMaster1.xml")
            ),
            **parts,
            "ppt/slideMaster1.xml": f"{HEAD}<p:sldMaster {names}>{master}</p:sldMaster>",
            "ppt/slides/_rels/slide1.xml.rels": relations(
                *((kind, f"../{kind}1.xml") for kind in extra or {})
            ),
        }
    )


_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_ODF_NAMES = " ".join(
    f'xmlns:{prefix}="{_ODF}{name}:1.0"'
    for prefix, name in {
        **{
            name: name
            for name in ("office", "text", "table", "style", "meta", "presentation")
        },
        **{
            "draw": "drawing",
            "fo": "xsl-fo-compatible",
            "svg": "svg-compatible",
            "manifest": "manifest",
        },
    }.items()
)
_ODF_NAMES += ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:officeooo="http://openoffice.org/2009/office"'
_ODF_NAMES += ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:loext="urn:x"'


def odf(
    kind: str,
    body: str,
    styles: str = "",
    automatic: str = "",
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """A document of OpenDocument of a kind: text, spreadsheet, presentation."""
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document-content {_ODF_NAMES}>'
            f"<office:automatic-styles>{automatic}</office:automatic-styles><office:body><office:{kind}>{body}"
            f"</office:{kind}></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {_ODF_NAMES}>{styles}</office:document-styles>",
            "meta.xml": f"<office:document-meta {_ODF_NAMES}><office:meta><dc:title>A title</dc:title>"
            "<dc:language>en</dc:language></office:meta></office:document-meta>",
            **(extra or {}),
            "META-INF/manifest.xml": f"<manifest:manifest {_ODF_NAMES}/>",
        },
        "mimetype",
    )


def epub(
    pages: Mapping[str, str],
    extra: Mapping[str, str] | None = None,
    spine: str = "<spine toc='ncx'>",
) -> bytes:
    """A book of pages; `extra` are more members. The page `nav.xhtml` is a table of contents."""
    items = ""
    for name in pages:
        nav = ' properties="nav"' if name == "nav.xhtml" else ""
        items += f'<item id="{name}" href="text/{name}" media-type="application/xhtml+xml"{nav}/>'
    refs = "".join(f'<itemref idref="{n}"/>' for n in pages if n != "nav.xhtml")
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>A title</dc:title><dc:language>en</dc:language><dc:creator>Ann</dc:creator></metadata><manifest>"
        f'<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>{items}</manifest>{spine}{refs}</spine>'
        "</package>"
    )  # fmt: skip
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    )
    container += '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    ncx = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" xml:lang="en"><docTitle><text>A title</text></docTitle>'
        "<docAuthor><text>Ann</text></docAuthor><navMap><navPoint><navLabel><text>Chapter one</text></navLabel>"
        '<content src="text/a.xhtml"/></navPoint></navMap></ncx>'
    )
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/book.opf": f"{HEAD}{package}",
            "OEBPS/toc.ncx": f"{HEAD}{ncx}",
            **{f"OEBPS/text/{name}": content for name, content in pages.items()},
            **(extra or {}),
        },
        "mimetype",
    )
