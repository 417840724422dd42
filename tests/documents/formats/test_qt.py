"""Messages of Qt: unfinished ones are translated, finished and vanished ones stay."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from document_differ import diff_units  # tools/
from document_samples import RULES, reverse
from weft.documents.document import Doubt, Reading, Translated, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.bilingual.units import Bilingual
from weft.documents.formats.programs.qt import open_qt
from weft.errors import UsageError

MESSAGES = """\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en_US">
<context>
    <name>Main window</name>
    <message>
        <location filename="../a.cpp" line="+12"/>
        <source>&amp;Open the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Done &apos;already&apos;</source>
        <translation>Schon fertig</translation>
    </message>
    <message>
        <source>Gone words</source>
        <translation type="vanished">Weg</translation>
    </message>
    <message>
        <source>Old words</source>
        <translation type="obsolete"></translation>
    </message>
    <message>
        <source>A guess of &lt;b&gt;two&lt;/b&gt; words: %1</source>
        <comment>Disambiguation</comment>
        <translatorcomment>a person</translatorcomment>
        <translation type="unfinished">Ein Tip</translation>
    </message>
    <message numerus="yes">
        <source>%n old file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n new file(s)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First line.
Second line</source>
        <translation/>
    </message>
    <message><source>No translation<byte value="x7"/></source></message>
    <message>
        <source>Variants here</source>
        <translation type="unfinished" variants="yes"><lengthvariant>lang</lengthvariant></translation>
    </message>
    <message>
        <source>100 %</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
"""


def opened(text: str, target: str = "", source: str = "") -> Bilingual:
    return open_qt(text.encode(), Reading("a.ts", source, target))


def translated(text: str, rule: str = "upper", target: str = "") -> str:
    document = opened(text, target)
    content = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
    return content.decode()


def message(source: str, target: str = "", rule: str = "upper") -> str:
    """The translation of a message, as it is written."""
    text = f'<TS><context><message><source>{source}</source><translation type="unfinished"/></message></context></TS>'
    found = translated(text, rule, target)
    return re.sub(r".*<translation>(.*?)</translation>.*", r"\1", found, flags=re.DOTALL)  # fmt: skip


def test_only_unfinished_messages_are_segments() -> None:
    assert [segment.text for segment in opened(MESSAGES).segments] == [
        *("Open the file", "A guess of two words:", "old file(s)", "new file(s)"),
        *("First line.", "Second line", "No translation"),
    ]
    assert opened(MESSAGES).place(1) == "line 23"


def test_translations_are_written_and_nothing_else_is_changed() -> None:
    found = translated(MESSAGES)
    assert diff_units(MESSAGES.encode(), found.encode()) == []
    root = etree.fromstring(found.encode())
    assert [
        (one.get("type"), (one.text or "").strip()) for one in root.iter("translation")
    ] == [
        (None, "&OPEN THE FILE"),
        (None, "Schon fertig"),
        ("vanished", "Weg"),
        ("obsolete", ""),
        (None, "A GUESS OF <b>TWO</b> WORDS: %1"),
        ("unfinished", ""),
        ("unfinished", ""),
        (None, "FIRST LINE.\nSECOND LINE"),
        (None, "NO TRANSLATION"),
        ("unfinished", ""),
        (None, "100 %"),
    ]
    forms = [form.text for form in root.iter("numerusform")]
    assert forms == ["%n OLD FILE(S)"] * 2 + ["%n NEW FILE(S)"] * 2
    assert (
        '<translation type="unfinished">\n            <numerusform>%n NEW FILE(S)</numerusform>\n'
        "            <numerusform>%n NEW FILE(S)</numerusform>\n        </translation>"
    ) in found
    byte = '<byte value="x7"/>'
    assert f"n{byte}</source><translation>NO TRANSLATION{byte}</" in found
    notes = [(note.place, note.text) for note in opened(MESSAGES).notes]
    assert notes == [
        ("line 29", "its 2 plural forms are one translation; check them"),
        ("line 36", "its 2 plural forms are one translation; check them"),
        ("line 46", "has variants by length, which are not translated"),
    ]


def test_plural_forms_are_as_many_as_the_language_has() -> None:
    for target, number in (("ja", 1), ("ru", 3), ("ar", 6), ("sl-SI", 4), ("cy", 5)):
        bare = re.sub(r' language="\w+"', "", MESSAGES)
        bare = bare.replace("Schon fertig", "").replace(">Weg<", "><")
        found = translated(bare, target=target)
        assert found.count("<numerusform>%n NEW") == number, target
        state = ' type="unfinished"' if number > 1 else ""
        assert f"<translation{state}>\n            <numerusform>%n NEW" in found
        assert f'language="{target.replace("-", "_")}"' in found
    missing = MESSAGES.replace(
        '<translation type="unfinished">\n            <numerusform></numerusform>',
        "<translation>\n            <numerusform>Alt</numerusform>",
    )
    assert "<numerusform>Alt</numerusform>\n            <numerusform>%n OLD" in translated(missing)  # fmt: skip


def test_the_mark_of_a_key_goes_with_its_word() -> None:
    assert message("Save &amp;as now", rule="reverse") == "now's &amp;as's Save's"
    assert message("for %1ms of Argon2%1") == "FOR %1MS OF ARGON2%1"
    assert message("E&amp;xit") == "&amp;EXIT"
    assert message("Salt &amp;&amp; pepper") == "SALT &amp;&amp; PEPPER"
    assert message("Q &amp; a") == "Q &amp; A"
    assert message("&lt;b&gt;&amp;One&lt;/b&gt; two").startswith("&lt;b&gt;&amp;ONE")
    assert message("Save &amp;as...", "ja", "chinese").endswith("(&amp;A)...")
    assert message("&amp;Open", "zh_CN", "chinese").endswith("。(&amp;O)")


def test_line_breaks_written_as_tags_divide_like_others() -> None:
    text = MESSAGES.replace("Gone words", "").replace(
        "A guess of", "You may&lt;br>stop here.&lt;br>&lt;br/>Go on."
    )
    assert [segment.text for segment in opened(text).segments][1:4] == [
        *("You may stop here.", "Go on. two words:", "old file(s)"),
    ]


def test_rich_text_as_designers_write_it() -> None:
    head = '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.0//EN" "http://www.w3.org/TR/REC-html40/strict.dtd">\n<html>'
    head += '<head><meta name="qrichtext" content="1" /><style type="text/css">\np { color: red; }\n</style>'
    head += "</head><body style=\" font-family:'Ubuntu'; font-size:11pt;\">\n<!-- a comment -->"
    body = '<p align="center">Read <span style=" font-weight:600;">this page</span> now.</p><p>Or not.</p></body></html>'
    text = head + body
    for mark, entity in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ('"', "&quot;"),
        ("'", "&apos;"),
    ):
        text = text.replace(mark, entity)
    whole = f"<TS><context><message><source>{text}</source></message></context></TS>"
    assert [segment.text for segment in opened(whole).segments] == [
        "Read this page now.",
        "Or not.",
    ]
    found = etree.fromstring(translated(whole).encode()).findtext(".//translation")
    for old, new in (
        ("Read", "READ"),
        ("this page", "THIS PAGE"),
        ("now", "NOW"),
        ("Or not", "OR NOT"),
    ):
        body = body.replace(old, new)
    assert found == head + body


def test_doubts_leave_a_message_unfinished() -> None:
    document = opened(MESSAGES)
    doubt = Doubt(("It may be wrong.",), 0.5)
    found = document.write(
        [Written(segment.source, doubt) for segment in document.segments]
    ).decode()
    said = "It may be wrong. Confidence: 50%."
    assert (
        f'<translatorcomment>{said}</translatorcomment>\n        <translation type="unfinished">&amp;Open'
        in found
    )
    assert f"<translatorcomment>a person\n{said}</translatorcomment>" in found
    assert '<translation type="unfinished">First line.' in found
    assert diff_units(MESSAGES.encode(), found.encode()) == []


@pytest.mark.parametrize("rule", RULES)
def test_structure_survives_any_translation(rule: str) -> None:
    found = translated(MESSAGES, rule)
    assert diff_units(MESSAGES.encode(), found.encode()) == []


def test_the_same_words_leave_the_file_as_it_was() -> None:
    document = opened(MESSAGES, "de")
    assert unchanged(document) == MESSAGES.encode()
    same = translate_document(document, lambda texts: list(map(Translated, texts)))
    assert same == MESSAGES.encode()


def test_languages() -> None:
    with pytest.raises(UsageError, match="has translations into de_DE, not into fr"):  # fmt: skip
        opened(MESSAGES, "fr")
    with pytest.raises(UsageError, match="is in en_US, not in it"):
        opened(MESSAGES, "de", "it")
    bare = MESSAGES.replace("Schon fertig", "")
    assert 'language="pt_BR" sourcelanguage="en_US"' in translated(bare, target="pt-BR")


def test_what_is_no_file_of_messages_is_refused() -> None:
    for content, said in (
        (b"import { a } from './a';\n", "a.ts: is not XML as messages of Qt are; a .ts of TypeScript"),
        (b"G@\x00\x10", "a.ts: is not XML"),
        (b"", "a.ts: is not XML"),
        (b"<tsx/>", "a.ts:1: begins with <tsx>; messages of Qt begin with <TS>"),
        (b"<TS><context>", "a.ts:1: not well-formed XML"),
        (b"<T>(x: T) => x;", "a.ts:1: not well-formed XML"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            open_qt(content, Reading("a.ts"))
        assert str(caught.value).startswith(said)
    for encoding in ("utf-16", "utf-8-sig"):
        content = MESSAGES.replace(' encoding="utf-8"', "").encode(encoding)
        assert unchanged(open_qt(content, Reading("a.ts"))) == content


PARTS = [
    *("<source>", "</source>", "<source/>", "<translation>", "</translation>", "<translation type='unfinished'/>"),
    *("<numerusform>", "</numerusform>", "<numerusform/>", "</message><message numerus='yes'>", "&amp;", "&amp;Key"),
    *("a word", "\n", "%n", "%L1", "&lt;b&gt;", "&lt;/b&gt;", "<translatorcomment/>", "<byte value='x1'/>", "..."),
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=10),
    target=st.sampled_from(["de", "ja"]),
    is_wrapped=st.booleans(),
    answer=st.text(max_size=8),
)
def test_damaged_files_come_back_or_are_refused(
    parts: list[str], target: str, is_wrapped: bool, answer: str
) -> None:
    inner = "".join(parts)
    if is_wrapped:
        inner = f"<source>{inner}</source>"
    text = f"<TS><context><message>{inner}</message></context></TS>"
    try:
        etree.fromstring(text.encode())
    except etree.XMLSyntaxError:
        with pytest.raises(UsageError):
            opened(text, target)
        return
    document = opened(text, target)
    assert unchanged(document) == text.encode()
    for written in (
        translate_document(document, lambda texts: [Translated(answer)] * len(texts)),
        translate_document(document, lambda texts: list(map(reverse, texts))),
    ):
        etree.fromstring(written)
