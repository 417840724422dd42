"""Books: pages, tables of contents and the title are translated, and nothing else changes."""

import pytest

from document_samples import RULES, reverse, upper  # tools/
from office_differ import diff_epub  # tools/
from office_samples import docx, epub, members, zipped  # tools/
from weft.documents.document import Reading
from weft.documents.driver import texts_of, translate_document, unchanged
from weft.documents.formats.office.epub import open_epub
from weft.documents.formats.office.package import PackageDocument
from weft.errors import UsageError

PAGE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
    '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" xml:lang="en" lang="en">'
    '<head><title/><script src="a.js"/><link href="s.css"/></head><body><h1>Chapter <i>one</i></h1>\n'
    '<p>It was<a id="p1"/> a <b>dark</b> night<a epub:type="noteref" href="#n">1</a>.<br/>Rain &amp; wind</p>'
    '<p class="x"/><hr/><img src="i.png" alt="a dog"/><p><span/>He said<a href="b.xhtml">[2]</a> no.</p></body></html>\n'
)  # fmt: skip
NAV = (
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Contents</title></head><body><nav><ol>'
    '<li><a href="a.xhtml">Chapter one</a></li></ol></nav></body></html>'
)
BOOK = epub({"a.xhtml": PAGE, "nav.xhtml": NAV})
PAGE_MEMBER = "OEBPS/text/a.xhtml"


def opened(content: bytes, target: str = "") -> PackageDocument:
    return open_epub(content, Reading("a.epub", target=target))


def loud(content: bytes, target: str = "") -> dict[str, str]:
    document = opened(content, target)
    return members(translate_document(document, lambda t: list(map(upper, t))))


def test_pages_contents_and_the_title() -> None:
    document = opened(BOOK)
    assert [segment.text for segment in document.segments] == [
        *("A title", "Chapter one", "It was a dark night.", "Rain & wind", "He said no."),
        *("Contents", "Chapter one", "A title", "Chapter one"),
    ]  # fmt: skip
    assert document.place(0) == "title"
    assert document.place(2) == "OEBPS/text/a.xhtml, line 4"
    assert document.place(7) == "OEBPS/toc.ncx"
    assert [(note.place, note.text) for note in document.notes] == [
        (PAGE_MEMBER, "alternative texts of pictures stay: 1")
    ]
    assert unchanged(document) == BOOK
    found = loud(BOOK)
    assert found["OEBPS/toc.ncx"].count("<text>Ann</text>") == 1
    assert "<text>CHAPTER ONE</text>" in found["OEBPS/toc.ncx"]
    assert "<dc:title>A TITLE</dc:title>" in found["OEBPS/book.opf"]
    page = found[PAGE_MEMBER]
    assert '<head><title/><script src="a.js"/><link href="s.css"/></head>' in page
    assert (
        'NIGHT<a epub:type="noteref" href="#n">1</a>.<br/>RAIN &amp; WIND</p>' in page
    )
    assert (
        '<p class="x"/><hr/><img src="i.png" alt="a dog"/><p><span/>HE SAID<a' in page
    )


@pytest.mark.parametrize("name", list(RULES))
def test_any_translation_leaves_the_tags(name: str) -> None:
    found = translate_document(opened(BOOK), lambda t: list(map(RULES[name], t)))
    assert diff_epub(BOOK, found) == []


def test_a_page_that_is_no_xml_is_read_as_a_browser_does() -> None:
    page = PAGE.replace("<hr/>", "<p>an <i>open paragraph &nbsp; here</i><hr>")
    page = page.replace("<title/>", '<title/><style type="x"/>')
    content = epub({"a.xhtml": page})
    document = opened(content)
    assert unchanged(document) == content
    assert "an open paragraph here" in texts_of(document)
    assert "He said[2] no." in texts_of(document)
    assert document.notes[0].text.startswith("is no strict XHTML")
    turned = translate_document(document, lambda t: list(map(reverse, t)))
    assert (
        '<title/><style type="x"/><script src="a.js"/>' in members(turned)[PAGE_MEMBER]
    )


def test_the_language_and_the_direction_are_told() -> None:
    found = loud(BOOK, "de")
    assert "<dc:language>de</dc:language>" in found["OEBPS/book.opf"]
    assert 'xml:lang="de" lang="de">' in found[PAGE_MEMBER]
    assert 'xml:lang="de"><docTitle>' in found["OEBPS/toc.ncx"]
    assert "page-progression" not in found["OEBPS/book.opf"]
    found = loud(BOOK, "he")
    assert "<spine toc='ncx' page-progression-direction=\"rtl\">" in found["OEBPS/book.opf"]  # fmt: skip
    assert 'lang="he" dir="rtl"><head>' in found[PAGE_MEMBER]
    page = PAGE.replace(' lang="en"', ' dir="rtl"')
    spine = "<spine page-progression-direction='rtl'>"
    turned = epub({"a.xhtml": page}, spine=spine)
    found = loud(turned, "fr")
    assert 'progression-direction="ltr"' in found["OEBPS/book.opf"]
    assert 'dir="ltr"' in found[PAGE_MEMBER]


def test_numbers_of_notes_are_no_words() -> None:
    for mark, text in (
        ("<sup>1</sup>", "so it is"),
        ('<sup><a href="n">1</a></sup>', "so it is"),
        ('<a href="n"><sup>1</sup></a>', "so it is"),
        ('<a href="n">(12)</a>', "so it is"),
        ('<a role="doc-noteref" href="n">1</a>', "so it is"),
        (' <a href="n">1984</a>', "so 1984 it is"),
    ):
        page = PAGE.replace("He said", f"so{mark} it is<br/>")
        assert text in " ".join(texts_of(opened(epub({"a.xhtml": page})))), mark


def lock(algorithm: str) -> dict[str, str]:
    data = f'<e><EncryptedData><EncryptionMethod Algorithm="{algorithm}"/></EncryptedData></e>'
    return {"META-INF/encryption.xml": data}


def test_what_is_refused() -> None:
    def said(content: bytes) -> str:
        with pytest.raises(UsageError) as caught:
            opened(content)
        return str(caught.value)

    locked = epub({"a.xhtml": PAGE}, lock("http://www.w3.org/2001/04/xmlenc#aes128-cbc"))  # fmt: skip
    assert "is locked against copying" in said(locked)
    fonts = epub({"a.xhtml": PAGE}, lock("http://www.idpf.org/2008/embedding"))
    assert len(opened(fonts).segments) == 7
    assert "is no book in EPUB" in said(docx("<w:p/>"))
    broken = members(BOOK) | {"OEBPS/book.opf": "<package>"}
    assert said(zipped(broken)).startswith("a.epub, OEBPS/book.opf:1: not well-formed")


def test_pages_outside_of_the_spine_are_noted_and_addresses_never_fetched() -> None:
    package = members(BOOK)["OEBPS/book.opf"]
    package = package.replace('<itemref idref="a.xhtml"/>', "").replace(
        "<manifest>", '<manifest><item id="w" href="https://example.org/x.xhtml" media-type="application/xhtml+xml"/>'
    )  # fmt: skip
    document = opened(zipped(members(BOOK) | {"OEBPS/book.opf": package}))
    assert ("OEBPS/book.opf", "pages outside of the reading order stay: 1") in [
        (note.place, note.text) for note in document.notes
    ]


def test_a_table_of_contents_whose_title_is_an_empty_tag() -> None:
    """As LibreOffice writes one."""
    contents = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><docTitle><text/></docTitle><navMap><navPoint><navLabel>'
        "<text>Chapter one</text></navLabel></navPoint></navMap></ncx>"
    )
    book = epub({"a.xhtml": PAGE}, {"OEBPS/toc.ncx": contents})
    assert unchanged(opened(book)) == book
    told = contents.replace("Chapter one", "CHAPTER ONE")
    assert loud(book)["OEBPS/toc.ncx"] == told
