"""Strings of Android: what a program shows is translated, and Android reads what was meant."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from document_differ import diff_resources  # tools/
from document_samples import RULES, reverse
from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.bilingual.units import Bilingual
from weft.documents.formats.programs.android import open_android
from weft.errors import UsageError

STRINGS = r"""<?xml version="1.0" encoding="utf-8"?>
<!-- the strings -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2" xmlns:tools="http://schemas.android.com/tools" tools:locale="en">
    <string name="app" translatable="false">Weft Loom</string>
    <string name="hello">Hello, <xliff:g id="name" example="Ann">%1$s</xliff:g>! It\'s a <b>good</b> day</string>
    <string name="ref">@string/hello</string>
    <string name="attr">?android:attr/textColor</string>
    <string name="quoted">"It's the  old man's \"house\""</string>
    <string name="lines">First line.\nSecond line\u00A0here\u2026</string>
    <string name="html"><![CDATA[<a href=\"https://a.org/x\">A link</a> &amp; a <b>bold</b> word]]></string>
    <string name="escaped">&lt;a href=\"x\"&gt;Another link&lt;/a&gt; here</string>
    <string name="percent" formatted="false">%d of %d are done</string>
    <string name="at">\@ home with \@ann\?</string>
    <string name="list">Two things:<ul><li>one thing</li><li>another thing</li></ul></string>
    <string name="number">42</string>
    <string-array name="days">
        <item>the first day</item>
        <item>@string/hello</item>
    </string-array>
    <string-array name="codes" translatable="false"><item>a code</item></string-array>
    <plurals name="files">
        <item quantity="one">%d file is here</item>
        <item quantity="other">%d files are here</item>
    </plurals>
    <item name="extra" type="string">an extra text</item>
    <color name="red">#ff0000</color>
    <style name="s"><item name="android:fontFamily">sans serif</item></style>
</resources>
"""  # noqa: E501


def opened(text: str, target: str = "") -> Bilingual:
    return open_android(text.encode(), Reading("strings.xml", target=target))


def translated(text: str, rule: str = "upper", target: str = "") -> str:
    document = opened(text, target)
    content = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
    return content.decode()


def shown(element: etree._Element) -> str:
    """What a program shows of a string without tags, by the rules of aapt2."""
    text = "".join(element.itertext())
    found = ""
    is_quoted = False
    place = 0
    while place < len(text):
        character = text[place]
        if character == "\\":
            code = text[place + 1]
            if code == "u":
                found += chr(int(text[place + 2 : place + 6], 16))
                place += 4
            else:
                found += {"n": "\n", "t": "\t"}.get(code, code)
            place += 1
        elif character == '"':
            is_quoted = not is_quoted
        else:
            assert character != "'" or is_quoted, "an apostrophe without a backslash"
            found += character
        place += 1
    return found.strip()


def strings(text: str) -> dict[str, str]:
    root = etree.fromstring(text.encode())
    return {element.get("name"): shown(element) for element in root.iter("string")}


def one(content: str, rule: str = "upper") -> str:
    found = translated(f'<resources><string name="a">{content}</string></resources>', rule)  # fmt: skip
    return re.sub(r'.*<string name="a">(.*)</string>.*', r"\1", found, flags=re.DOTALL)


def test_what_a_program_shows_is_a_segment() -> None:
    assert [segment.text for segment in opened(STRINGS).segments] == [
        "Hello! It's a good day",
        "It's the  old man's \"house\"",
        *("First line.", "Second line here…", "A link & a bold word", "Another link here"),
        *("of are done", "@ home with?", "Two things:", "one thing", "another thing"),
        *("the first day", "file is here", "files are here", "an extra text"),
    ]  # fmt: skip


def test_strings_are_translated_in_their_place() -> None:
    found = translated(STRINGS)
    assert diff_resources(STRINGS.encode(), found.encode()) == []
    assert strings(found) == {
        "app": "Weft Loom",
        "hello": "HELLO, %1$s! IT'S A GOOD DAY",
        "ref": "@string/hello",
        "attr": "?android:attr/textColor",
        "quoted": "IT'S THE OLD MAN'S \"HOUSE\"",
        "lines": "FIRST LINE.\nSECOND LINE\xa0HERE…",
        "html": '<a href="https://a.org/x">A LINK</a> &amp; A <b>BOLD</b> WORD',
        "escaped": '<a href="x">ANOTHER LINK</a> HERE',
        "percent": "%d OF %d ARE DONE",
        "at": "@ HOME WITH @ann?",
        "list": "TWO THINGS:ONE THINGANOTHER THING",
        "number": "42",
    }
    assert r"IT\'S A <b>GOOD</b> DAY</string>" in found
    assert r'"IT' in found
    assert r"SECOND LINE\u00A0HERE\u2026" in found
    assert "<item>THE FIRST DAY</item>\n        <item>@string/hello</item>" in found
    assert "<item>a code</item>" in found
    assert '<item quantity="one">%d FILE IS HERE</item>' in found
    assert ">sans serif<" in found
    # but for its words, the file is what it was
    assert found.lower() == STRINGS.lower().replace("the  old", "the old")


def test_what_android_would_misread_is_escaped() -> None:
    assert one("one", "upper") == "ONE"
    for translation, written in (
        ('it\'s "so"', r"it\'s \"so\""),
        ("@home", r"\@home"),
        ("?", r"\?"),
        ("a\\b", r"a\\b"),
        ("a < b & c", "a &lt; b &amp; c"),
    ):
        text = "<resources><string name='a'>some words</string></resources>"
        document = opened(text)
        content = translate_document(document, lambda _, new=translation: [Translated(new)])  # fmt: skip
        assert f">{written}</string>" in content.decode()
        assert shown(etree.fromstring(content)[0]) == translation
    assert one(r"\@home alone") == r"\@home ALONE"
    assert one(r"a \\name\nand b") == r"A \\NAME\nAND B"
    assert one(r"\ud83d\ude00 ok") == "😀 OK"
    assert one(r"say \"https://a.org/x\" now") == r"SAY \"https://a.org/x\" NOW"
    assert one("%sMio. a %1$sb c") == "%sMIO. A %1$sB C"
    assert one("100%% sure") == "100%% SURE"
    assert one("<![CDATA[a]]> b").startswith("<![CDATA[a]]>")


def test_plurals_that_the_language_has_more_of_are_listed() -> None:
    assert opened(STRINGS, "de").notes == ()
    for target, missing in (("ru", "few, many"), ("ar", "zero, two, few, many")):
        (note,) = opened(STRINGS, target).notes
        assert (note.place, note.text) == (
            "line 21, files",
            f"has no form for {missing}, which {target} has",
        )
    assert 'tools:locale="ru"' in translated(STRINGS, target="ru")


@pytest.mark.parametrize("rule", RULES)
def test_structure_survives_any_translation(rule: str) -> None:
    found = translated(STRINGS, rule)
    assert diff_resources(STRINGS.encode(), found.encode()) == []
    strings(found)


def test_the_same_words_leave_the_file_as_it_was() -> None:
    document = opened(STRINGS, "de")
    assert unchanged(document) == STRINGS.encode()
    same = translate_document(document, lambda texts: list(map(Translated, texts)))
    assert same == STRINGS.encode()
    assert document.place(0) == "line 5"


def test_other_xml_is_refused() -> None:
    for text, said in (
        ("<html/>", "strings.xml:1: begins with <html>; of .xml, strings of Android are read, which begin"),
        ("<resources>", "strings.xml:1: not well-formed XML"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><resources/>', "strings.xml:1: the document type has"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            opened(text)
        assert str(caught.value).startswith(said)


PARTS = [
    *(r"\'", r"\"", '"', r"\n", r"\\", r"\u00e9", r"\u00A0", r"\@", "@a", "?", "&quot;", r"\&quot;", "&amp;amp;"),
    *("<b>", "</b>", "<li>", "</li>", "<br/>", "<![CDATA[<i>a</i>]]>", "&lt;b&gt;", "&lt;/b&gt;", "%1$s", "{0}"),
    *("a word", " ", "\n", "  ", "https://a.org/b.", "</string><string name='b'>", "<!-- c -->", "#tag", r"\#tag"),
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=10), answer=st.text(max_size=8))
def test_damaged_files_come_back_or_are_refused(parts: list[str], answer: str) -> None:
    text = f"<resources><string name='a'>{''.join(parts)}</string></resources>"
    try:
        etree.fromstring(text.encode())
    except etree.XMLSyntaxError:
        with pytest.raises(UsageError):
            opened(text)
        return
    document = opened(text)
    assert unchanged(document) == text.encode()
    for written in (
        translate_document(document, lambda texts: [Translated(answer)] * len(texts)),
        translate_document(document, lambda texts: list(map(reverse, texts))),
    ):
        etree.fromstring(written)
