"""XLIFF: units without a translation get one; all others, and every other byte, stay."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from document_differ import diff_units  # tools/
from document_samples import RULES, reverse, upper
from weft.documents.document import Doubt, Offer, Reading, Translated, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.bilingual.units import Bilingual
from weft.documents.formats.bilingual.xliff import open_xliff
from weft.errors import UsageError

ONE = """\
<?xml version="1.0" encoding="utf-8"?>\r
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <!-- a comment -->
  <file original='a.c' source-language="en" target-language="de" datatype="plaintext">
    <body>
      <trans-unit id="done">
        <source>Old man</source>
        <target>Alter Mann</target>
      </trans-unit>
      <trans-unit id="missing">
        <source>The <g id="1">red <x id="2"/> car</g> &amp; the %1 dogs</source>
        <note>by a developer</note>
      </trans-unit>
      <trans-unit id="empty">
        <source>A <bpt id="1">&lt;b></bpt>big<ept id="1">&lt;/b></ept> house<it id="3" pos="open">&lt;i></it></source>
        <target/>
        <alt-trans match-quality="50"><source>A house</source><target>Ein Haus</target></alt-trans>
      </trans-unit>
      <trans-unit id="new" xml:space="preserve">
        <source>Two  words here</source>
        <target state="new" resname='r'>Two  words here</target>
      </trans-unit>
      <group translate="no">
        <trans-unit id="kept"><source>keep me</source></trans-unit>
        <trans-unit id="asked" translate="yes"><source>ask me</source></trans-unit>
      </group>
      <trans-unit id="no" translate="no"><source>not me</source></trans-unit>
      <trans-unit id="approved" approved="yes">
        <source>stay as you are</source><target state="new">bleib</target></trans-unit>
      <trans-unit id="number"><source>42</source></trans-unit>
      <trans-unit id="sub"><source>see <ph id="1">[<sub>a title</sub>]</ph> there</source></trans-unit>
      <trans-unit id="term">
        <source>the <mrk mtype="protected">WEFT</mrk> and <mrk mtype="term">loom</mrk> now</source></trans-unit>
      <trans-unit id="review">
        <source>old one</source><target state="needs-review-translation">altes</target></trans-unit>
    </body>
  </file>
</xliff>
"""
SEGMENTED = """\
<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<x:file original="a" source-language="en" datatype="html"><x:body>
<x:trans-unit id="1">
  <x:source>One cat. <x:g id="1">Two dogs. Three</x:g> birds.</x:source>
  <x:seg-source>[1] <x:g id="1">[2] [3]</x:g> birds.</x:seg-source>
</x:trans-unit>
<x:trans-unit id="2">
  <x:source>One cat. Two <x:x id="1"/> dogs. Three birds.</x:source>
  <x:seg-source>[1] [4] [5]</x:seg-source>
  <x:target>[6] [7] [8]</x:target>
</x:trans-unit>
</x:body></x:file></x:xliff>
"""
MARKS = [
    *("a One cat.", "b Two dogs.", "c Three", 'b Two <x:x id="1"/> dogs.'),
    *("c Three birds.", "a Eine Katze.", "b ", "c Drei."),
]  # fmt: skip
for number, mark in enumerate(MARKS, 1):
    name, _, words = mark.partition(" ")
    SEGMENTED = SEGMENTED.replace(
        f"[{number}]", f'<x:mrk mid="{name}" mtype="seg">{words}</x:mrk>'
    )
TWO = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
 <file id="f1" translate="yes">
  <unit id="u1">
    <originalData><data id="d1">&lt;b></data></originalData>
    <segment id="s1">
      <source>The <pc id="1" dataRefStart="d1">old</pc> man <ph id="2"/> sits.</source>
    </segment>
    <ignorable><source> </source></ignorable>
    <segment id="s2" state="final"><source>Done already.</source><target>Schon fertig.</target></segment>
    <segment id="s3" state="initial" subState="my:x">
      <source>A <sc id="5"/>wide<ec startRef="5"/> street</source>
      <target>A wide street</target>
    </segment>
  </unit>
  <unit id="u2"><notes><note>a hint</note></notes>
    <segment><source>Keep <mrk id="m1" translate="no">this name</mrk> and \
<sm id="m2" translate="no"/>that one<em startRef="m2"/> here<cp hex="0007"/></source><target/></segment>
  </unit>
  <group id="g" translate="no"><unit id="u3"><segment><source>not me</source></segment></unit></group>
  <unit id="u4"><segment><source>2024</source></segment></unit>
  <unit id="u5"><segment state="reviewed"><source>left out</source></segment></unit>
 </file>
</xliff>
"""
DONE = 'state="translated" state-qualifier="leveraged-mt"'
IT = '<it id="3" pos="open">&lt;i></it>'
FILES = {"1.2": ONE, "segmented": SEGMENTED, "2.0": TWO}


def opened(text: str, target: str = "", source: str = "") -> Bilingual:
    return open_xliff(text.encode(), Reading("a.xlf", source, target))


def translated(text: str, rule: str = "upper", target: str = "") -> str:
    document = opened(text, target)
    content = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
    return content.decode()


def element(text: str, unit: str, name: str = "target") -> etree._Element:
    root = etree.fromstring(re.sub(r"<\?.*?\?>", "", text).encode())
    found = root.xpath(f"//*[local-name()='{name}'][ancestor::*[@id='{unit}']]")
    return found[0]


def test_only_what_has_no_translation_is_a_segment() -> None:
    assert [segment.text for segment in opened(ONE).segments] == [
        *("The red car & the dogs", "A big house", "Two  words here", "ask me", "see there"),
        "the and loom now",
    ]  # fmt: skip
    assert [segment.text for segment in opened(SEGMENTED).segments] == [
        *("One cat.", "Two dogs.", "Three", "Two dogs."),
    ]
    assert [segment.text for segment in opened(TWO).segments] == [
        *("The old man sits.", "A wide street", "Keep and here"),
    ]


def test_targets_are_written_and_nothing_else_is_changed() -> None:
    found = translated(ONE)
    lines = found.split("\n")
    before = ONE.split("\n")
    changed = [line for line in lines if line not in before]
    assert [line.strip() for line in changed[:3]] == [
        f'<target {DONE}>THE <g id="1">RED <x id="2"/> CAR</g> &amp; THE %1 DOGS</target>',
        f'<target {DONE}>A <bpt id="1">&lt;b></bpt>BIG<ept id="1">&lt;/b></ept> HOUSE{IT}</target>',
        '<target state="translated" resname=\'r\' state-qualifier="leveraged-mt">TWO WORDS HERE</target>',
    ]
    # but for the targets in it, the file is what it was
    found = found.replace('<target state="translated">42</target>', "")
    bare = re.sub(r"\s*<target[^<>]*state-qualifier[^\n]*?</target>", "", found)
    rest = re.sub(r"\s*<target(/>| state=\"new\" resname[^\n]*?</target>)", "", ONE)
    assert bare == rest
    assert element(translated(ONE), "number").text == "42"
    assert element(found, "approved").text == "bleib"
    assert '<mrk mtype="protected">WEFT</mrk>' in found
    assert "<sub>a title</sub>" in found


def test_segments_of_a_unit_are_filled_where_they_are_missing() -> None:
    found = translated(SEGMENTED, target="de")
    assert 'target-language="de"' in found
    whole = re.sub(r'<x:mrk mid="(.)" mtype="seg">(.*?)</x:mrk>', r"\1(\2)", found)
    assert (
        f'</x:seg-source>\n  <x:target {DONE}>a(ONE CAT.) <x:g id="1">b(TWO DOGS.) c(THREE)</x:g> birds.</x:target>'
        in whole
    )
    assert 'a(Eine Katze.) b(TWO <x:x id="1"/> DOGS.) c(Drei.)</x:target>' in whole
    assert opened(SEGMENTED).notes == ()
    lost = opened(SEGMENTED.replace('<x:mrk mid="c" mtype="seg">Drei.</x:mrk>', ""))
    assert [(note.place, note.text) for note in lost.notes] == [
        ("line 7, unit 2", "the target has no place for the segment c")
    ]


def test_version_2_has_its_states_and_codes() -> None:
    found = translated(TWO)
    assert '<segment id="s1" state="translated">\n      <source>' in found
    assert (
        '</source>\n      <target>THE <pc id="1" dataRefStart="d1">OLD</pc> MAN <ph id="2"/> SITS.</target>'
        in found
    )
    assert '<segment id="s3" state="translated">' in found
    assert '<target>A <sc id="5"/>WIDE<ec startRef="5"/> STREET</target>' in found
    assert (
        'KEEP <mrk id="m1" translate="no">this name</mrk> AND '
        '<sm id="m2" translate="no"/>that one<em startRef="m2"/> HERE<cp' in found
    )
    assert element(found, "u4").text == "2024"
    assert '<unit id="u3"><segment><source>not me</source></segment></unit>' in found
    assert [note.text for note in opened(TWO).notes] == [
        "is reviewed, though it has no translation; it stays"
    ]


def test_doubts_become_states_and_notes() -> None:
    doubt = Doubt(("It may be wrong.", "It is <short>."), 0.432)
    for text in (ONE, SEGMENTED):
        document = opened(text)
        found = document.write(
            [Written(segment.source, doubt) for segment in document.segments]
        ).decode()
        assert 'state="needs-review-translation"' in found
        assert 'state="translated"' not in found or text is ONE
        assert (
            'note from="Weft" annotates="target">It may be wrong. It is &lt;short&gt;. Confidence: 43%.</'
            in found
        )
        assert ('<alt-trans match-quality="43%" origin="Weft"><target>' in found) == (text is ONE)  # fmt: skip
        assert diff_units(text.encode(), found.encode()) == []
    document = opened(TWO)
    written = [Written(segment.source, doubt) for segment in document.segments]
    found = document.write(written).decode()
    assert 'state="translated" subState="weft:doubtful"' in found
    assert (
        '<unit id="u1">\n    <notes><note appliesTo="target" category="weft">Segment s1: It may be wrong. '
        'It is &lt;short&gt;. Confidence: 43%.</note><note appliesTo="target" category="weft">Segment s3: It may'
    ) in found
    assert "<note>a hint</note><note appliesTo=" in found
    assert diff_units(TWO.encode(), found.encode()) == []


def test_what_a_memory_offers_stands_beside_the_target() -> None:
    near = Offer("An <old> one\0", "Ein altes & gutes", 0.833, 'a "b".tmx:7')
    doubt = Doubt(offers=(near,))
    document = opened(ONE)
    written = [Written(segment.source, doubt) for segment in document.segments]
    found = document.write(written).decode()
    tree = etree.fromstring(found.encode())
    space = {"x": "urn:oasis:names:tc:xliff:document:1.2"}
    offered = tree.findall(".//x:alt-trans[@match-quality='83%']", space)
    assert len(offered) == len(document.segments)
    for one in offered:
        assert one.get("origin") == near.where
        assert [part.text for part in one] == ["An <old> one\ufffd", near.target]
        unit = one.getparent()
        assert unit is not None
        (target,) = unit.findall("x:target", space)
        assert target.get("state") == "translated"
    assert diff_units(ONE.encode(), found.encode()) == []
    document = opened(SEGMENTED)
    written = [Written(segment.source, doubt) for segment in document.segments]
    assert "alt-trans" not in document.write(written).decode()
    document = opened(TWO)
    written = [Written(segment.source, doubt) for segment in document.segments]
    found = document.write(written).decode()
    note = 'Segment s1: Translation memory, a "b".tmx:7 (83%): An &lt;old&gt; one'
    assert note.replace('"', "&quot;") in found or note in found
    assert 'subState="weft' not in found
    assert diff_units(TWO.encode(), found.encode()) == []


def test_what_was_taken_from_a_memory_is_qualified_so() -> None:
    for taken, qualifier in (("exact", "exact-match"), ("repaired", "fuzzy-match")):
        document = opened(ONE)
        doubt = Doubt(taken=taken)
        written = [Written(segment.source, doubt) for segment in document.segments]
        found = document.write(written).decode()
        assert f'state-qualifier="{qualifier}"' in found
        assert "leveraged-mt" not in found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", FILES)
def test_structure_survives_any_translation(name: str, rule: str) -> None:
    text = FILES[name]
    found = translated(text, rule)
    assert diff_units(text.encode(), found.encode()) == []
    # nothing but doubts is left to do
    assert not opened(found).segments or "segmented" in name or rule == "silent"


def test_the_same_words_leave_the_file_as_it_was() -> None:
    for text in FILES.values():
        for target in ("", "de"):
            document = opened(text, target)
            assert unchanged(document) == text.encode()
            same = translate_document(document, lambda texts: list(map(Translated, texts)))  # fmt: skip
            assert same == text.encode()
            assert document.place(0).startswith("line ")
    assert opened(ONE).place(1) == "line 14"


def test_what_the_file_says_of_its_languages() -> None:
    for text, asked in ((ONE, "fr"), (TWO, "fr")):
        with pytest.raises(UsageError, match="translations into de, not into fr"):
            opened(text, asked)
        with pytest.raises(UsageError, match="is in en, not in it"):
            opened(text, "de", "it")
        assert opened(text, "de-AT", "en-US").segments
    without = TWO.replace(' trgLang="de"', "")
    assert 'srcLang="en" trgLang="fr">' in translated(without, target="fr")
    assert "trgLang" in opened(without).notes[-1].text
    assert opened(without, "fr").notes == opened(TWO).notes
    lang = ONE.replace("<source>ask", '<source xml:lang="en">ask')
    assert '<target xml:lang="de" state="translated"' in translated(lang)


def test_line_breaks_divide_messages_where_a_line_does_not_go_on() -> None:
    def texts(source: str, space: str = "") -> list[str]:
        unit = f'<trans-unit id="1"{space}><source>{source}</source></trans-unit>'
        document = opened(f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>')  # fmt: skip
        return [segment.text for segment in document.segments]

    assert texts("Turn on %@\nSwitch on %@\n") == ["Turn on", "Switch on"]
    assert texts("Drop files\nhere") == ["Drop files here"]
    assert texts("One.\n\nTwo") == ["One.", "Two"]
    assert texts("One\n    Two three") == ["One Two three"]
    assert texts("One\n    Two", ' xml:space="preserve"') == ["One", "Two"]
    assert texts("One&#10;Two") == ["One", "Two"]
    long = "A sentence of many words that goes on in the line that follows this"
    assert texts(f"{long}\nOne.") == [f"{long} One."]


def test_markup_in_the_text_is_no_word() -> None:
    def written(source: str) -> str:
        unit = f'<trans-unit id="1"><source>{source}</source></trans-unit>'
        text = f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>'
        found = translated(text, "reverse")
        return re.sub(r".*?<target[^<>]*>(.*?)</target>.*", r"\1", found)

    assert written('go to &lt;a href="x"&gt;the shop&lt;/a&gt; now') == (
        "now's &lt;a href=\"x\"&gt;shop's the's&lt;/a&gt; to's go's"
    )
    assert written("Tom &amp;amp; Ann &lt;br/> x").startswith("x's &lt;br/> Ann's &amp;amp;'s")  # fmt: skip
    assert written("&lt;p>One two&lt;/p>&lt;p>a b&lt;/p>") == "&lt;p>two's One's&lt;/p>&lt;p>b's a's&lt;/p>"  # fmt: skip
    assert written("press &lt;code>x y&lt;/code> now").count("&lt;code>x y&lt;/code>") == 1  # fmt: skip
    assert written("<![CDATA[a <b>b</b> & c]]>") == "<![CDATA[c's &'s <b>b's</b> a's]]>"
    assert (
        written("<g id='1'><![CDATA[a <b>b</b>]]></g>")
        == "<g id='1'><![CDATA[<b>b's</b> a's]]></g>"
    )
    mixed = (
        '<trans-unit id="1"><source>words <![CDATA[a & b]]> here</source></trans-unit>'
    )
    (note,) = opened(f'<xliff version="1.2"><file>{mixed}</file></xliff>').notes
    assert note.text == "its section of CDATA is not translated"
    latin = '<?xml version="1.0" encoding="iso-8859-1"?><xliff version="1.2"><file><body><trans-unit id="1">'
    latin += "<source><![CDATA[a b]]></source></trans-unit></body></file></xliff>"
    found = translate_document(opened(latin), lambda _: [Translated("ä ]]> 漢")])
    assert element(found.decode("latin-1"), "1").text == "ä ]]> 漢"
    # halves of pairs that Angular writes, and pairs that cross
    half = '<x id="START_B"/>red<x id="CLOSE_B"/>'
    assert written(f"a {half} b") == 'b\'s <x id="START_B"/>red\'s<x id="CLOSE_B"/> a\'s'  # fmt: skip
    half = '<x id="START_TAG_B_1"/>red<x id="CLOSE_TAG_B"/> hat'
    assert written(f"a {half}").startswith("hat's <x id=\"START_TAG_B_1\"/>red's<x")
    crossed = '<bx id="1"/>a <bx id="2"/>b<ex id="1"/> c<ex id="2"/>'
    for tag in re.findall("<[^<>]*>", crossed):
        assert written(crossed).count(tag) == 1


def test_a_message_that_chooses_is_translated_text_by_text() -> None:
    def read(source: str) -> Bilingual:
        unit = f'<trans-unit id="1"><source>{source}</source></trans-unit>'
        return opened(f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>')

    days = '{N, plural, =0 {just now} =1 {one {unit} ago} other {<x id="I"/> days, # hours ago}}'
    document = read(days)
    assert [segment.text for segment in document.segments] == [
        *("just now", "one ago", "days, hours ago"),
    ]
    found = translate_document(document, lambda texts: list(map(upper, texts)))
    upper_case = '{N, plural, =0 {JUST NOW} =1 {ONE {unit} AGO} other {<x id="I"/> DAYS, # HOURS AGO}}'
    assert f">{upper_case}</target>" in found.decode()
    nested = "{g, select, male {{n, plural, one {his <b>cat</b>} other {his cats}}} other {a cat}}"
    assert [segment.text for segment in read(nested).segments] == [
        *("his cat", "his cats", "a cat"),
    ]
    assert document.notes == ()
    # amid other words it stays, and so does what never ends
    amid = read("You have {n, plural, one {a cat} other {# cats}} here")
    assert [segment.text for segment in amid.segments] == ["You have here"]
    assert [note.text for note in amid.notes] == ["the choice in it is not translated"]
    assert len(read("a cat {n, plural, one {a}").segments) == 1
    bare = read("{n, plural, other {#}}")
    assert bare.segments == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<xliff version="1.1"/>', "a.xlf:1: is XLIFF 1.1; the versions 1.2, 2.0, 2.1 are read"),
        ('<xliff version="2.2"/>', "a.xlf:1: is XLIFF 2.2; the versions"),
        ("\n<xliff/>", "a.xlf:2: is XLIFF without a version"),
        ('<tmx version="1.4"/>', "a.xlf:1: begins with <tmx>; XLIFF begins with <xliff>"),
        ('<xliff version="1.2"><file>', "a.xlf:1: not well-formed XML"),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]><xliff version="1.2"/>', "a.xlf:1: the document type has"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        opened(text)
    assert str(caught.value).startswith(said)


PARTS = [
    *("<source>", "</source>", "<target>", "</target>", "<target/>", "<seg-source>", "</seg-source>", "<g id='1'>"),
    *("</g>", "<mrk mtype='seg' mid='1'>", "<mrk mtype='seg' mid='1'/>", "</mrk>", "<bpt id='1'>", "</bpt>", "<x/>"),
    *("<ex id='1'/>", "<bx id='1'/>", "</trans-unit><trans-unit id='2'>", "<!-- c -->", "<![CDATA[a <b> ]]>", "a word"),
    *("&lt;b>", "&lt;/b&gt;", "\n", "\r\n\r\n", "  ", "%1", "{0}", "&amp;nbsp;", "&#160;", "漢字", "<segment>"),
    *("<note/>", "<pc id='2'>", "</pc>", "<sc id='3'/>", "<ec startRef='3'/>", "<sm id='4' translate='no'/>"),
    *("<cp hex='1'/>", "</segment>", "<em startRef='4'/>", "&lt;p>", "<?pi?>", "Turn on."),
]  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=12),
    version=st.sampled_from(["1.2", "2.1"]),
    answer=st.text(max_size=12),
)
def test_damaged_files_come_back_or_are_refused(
    parts: list[str], version: str, answer: str
) -> None:
    unit = "trans-unit" if version == "1.2" else "unit"
    inner = "".join(parts).replace("trans-unit", unit)
    if "<segment>" not in inner and version == "2.1":
        inner = f"<segment>{inner}</segment>"
    body = f"<{unit} id='1'><source>x {inner}</{unit}>"
    if inner.count("<source>") == inner.count("</source>"):
        body = f"<{unit} id='1'>{inner}</{unit}>"
    text = f'<xliff version="{version}"><file>{body}</file></xliff>'
    try:
        etree.fromstring(text.encode())
    except etree.XMLSyntaxError:
        with pytest.raises(UsageError):
            opened(text)
        return
    document = opened(text)
    assert unchanged(document) == text.encode()
    doubt = Doubt((answer,), 0.5)
    doubted = [Written(one.escape(answer), doubt) for one in document.segments]
    for written in (
        translate_document(document, lambda texts: [Translated(answer)] * len(texts)),
        translate_document(document, lambda texts: list(map(reverse, texts))),
        document.write(doubted),
    ):
        etree.fromstring(written)


def real_files() -> list[Path]:
    folder = Path(os.environ.get("WEFT_DATA", "")) / "formats" / "xliff"
    found = sorted(folder.glob("*.xliff"))
    if not os.environ.get("WEFT_DATA") or not found:
        pytest.skip(f"no XLIFF at {folder}; set WEFT_DATA to the folder of corpora")
    return found


def test_files_of_a_program_keep_their_structure() -> None:
    for path in real_files():
        content = path.read_bytes()
        document = open_xliff(content, Reading(path.name))
        assert unchanged(document) == content
        assert bool(document.segments) == (".ja." in path.name)
        if not document.segments:
            continue
        found = translate_document(document, lambda texts: list(map(upper, texts)))
        assert diff_units(content, found) == []
        # as if nothing had been translated yet
        bare = re.sub(rb"\s*<target>.*?</target>", b"", content, flags=re.DOTALL)
        document = open_xliff(bare, Reading(path.name))
        found = translate_document(document, lambda texts: list(map(reverse, texts)))
        assert diff_units(bare, found) == []
        assert len(etree.fromstring(found).findall(".//{*}target")) == 556


@pytest.mark.parametrize("kept", ["%1%", "(%1%)", "%1%2", "%L1"])
def test_placeholders_of_a_percentage(kept: str) -> None:
    (segment,) = opened(
        ONE.replace(
            "Old man</source>\n        <target>Alter Mann</target>",
            f"Save {kept} now</source>",
        )
    ).segments[:1]
    assert segment.text == "Save now"
    assert "".join(item.raw for item in segment.items) == kept
