"""Translation memories as documents: units that lack a language get it, all else stays."""

import os
import re
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from document_differ import diff_memory  # tools/
from document_samples import RULES, reverse, upper
from weft.documents.document import Doubt, Reading, Translated, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.bilingual.tmx import open_tmx_document
from weft.documents.formats.bilingual.units import Bilingual
from weft.errors import UsageError

MEMORY = """\
<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en"
 srclang="en-US" datatype="text"/><body>
<tu tuid="1">
  <tuv xml:lang="en-US"><prop type="p">a</prop><seg>The old man</seg></tuv>
  <tuv xml:lang="de-DE"><seg>Der alte Mann</seg></tuv>
</tu>
<tu tuid="2">
  <tuv xml:lang="en-US">
    <seg>A <bpt i="1" x="1">&lt;b></bpt>red<ept i="1">&lt;/b></ept> car &amp; <hi>two dogs</hi> <ph x="2">{x}</ph></seg>
  </tuv>
  <tuv xml:lang="fr"><seg>Une voiture</seg></tuv>
</tu>
<tu tuid="3"><tuv xml:lang="en-US"><seg>An empty one</seg></tuv><tuv xml:lang="de"><note>n</note><seg> </seg></tuv></tu>
<tu tuid="4"><tuv xml:lang="EN-GB"><seg>Another region</seg></tuv><tuv xml:lang="de"/></tu>
<tu tuid="5"><tuv xml:lang="fr"><seg>Sans source</seg></tuv></tu>
<tu tuid="6"><tuv lang="en"><seg>1984</seg></tuv></tu>
<tu tuid="7"><tuv xml:lang="en-US"><seg>with <it pos="begin" x="1">&lt;i><sub>a title</sub></it>text</seg></tuv>
<tuv xml:lang="de"><prop type="q">b</prop></tuv></tu>
</body></tmx>
"""


def opened(text: str, target: str = "", source: str = "") -> Bilingual:
    return open_tmx_document(text.encode(), Reading("a.tmx", source, target))


def translated(text: str, rule: str, target: str = "") -> str:
    document = opened(text, target)
    content = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
    return content.decode()


def segs(text: str) -> dict[str, dict[str, str]]:
    """The text of each unit by language, as lxml reads it."""
    return {
        unit.get("tuid"): {
            tuv.get("{http://www.w3.org/XML/1998/namespace}lang") or tuv.get("lang"): "".join(seg.itertext())
            for tuv in unit.iter("tuv")
            for seg in tuv.iter("seg")
        }
        for unit in etree.fromstring(text.encode()).iter("tu")
    }  # fmt: skip


def test_units_without_the_language_get_it() -> None:
    document = opened(MEMORY, "de")
    assert [segment.text for segment in document.segments] == [
        *("A red car & two dogs", "An empty one", "Another region", "with text"),
    ]
    assert [document.place(number) for number in range(4)] == [
        *("line 9", "line 15", "line 16", "line 19"),
    ]
    found = translated(MEMORY, "upper", "de")
    assert segs(found)["1"] == segs(MEMORY)["1"]
    assert segs(found)["2"]["de"] == "A <b>RED</b> CAR & TWO DOGS {x}"
    assert segs(found)["3"]["de"] == "AN EMPTY ONE"
    assert segs(found)["4"]["de"] == "ANOTHER REGION"
    assert segs(found)["5"] == {"fr": "Sans source"}
    assert segs(found)["6"] == {"en": "1984", "de": "1984"}
    assert diff_memory(MEMORY.encode(), found.encode()) == []
    etree.fromstring(found.encode())
    notes = [(note.place, note.text) for note in document.notes]
    assert notes == [
        ("line 17", "the unit has no text in en-US"),
        ("line 19", "text in <sub> is not translated"),
    ]


def test_a_new_translation_is_laid_out_like_its_source() -> None:
    found = translated(MEMORY, "upper", "de")
    assert (
        '</seg>\n  </tuv>\n  <tuv xml:lang="de">\n    <seg>A <bpt i="1" x="1">&lt;b></bpt>RED<ept i="1">&lt;/b>'
        '</ept> CAR &amp; <hi>TWO DOGS</hi> <ph x="2">{x}</ph></seg>\n  </tuv>\n  <tuv xml:lang="fr">'
    ) in found
    assert '<tuv lang="en"><seg>1984</seg></tuv><tuv lang="de"><seg>1984</seg></tuv>' in found  # fmt: skip
    assert '<tuv xml:lang="de"><note>n</note><seg>AN EMPTY ONE</seg></tuv>' in found
    assert '<tuv xml:lang="de"><seg>ANOTHER REGION</seg></tuv>' in found
    assert '<prop type="q">b</prop><seg>WITH' in found
    # but for what is new, the file is what it was
    bare = re.sub(r'\n  <tuv xml:lang="de">\n.*?</tuv>', "", found, flags=re.DOTALL)
    assert bare.split("<tu ")[:3] == MEMORY.split("<tu ")[:3]


def test_languages_are_those_of_the_header_and_of_the_only_other() -> None:
    two = MEMORY.replace('xml:lang="fr"', 'xml:lang="de"')
    assert [segment.text for segment in opened(two).segments] == [
        *("An empty one", "Another region", "with text"),
    ]
    assert opened(two, "en", "de").segments[0].text == "Sans source"
    some = MEMORY.replace("en-US", "*all*", 1)
    assert opened(some, "de", "en").segments == opened(MEMORY, "de").segments
    with pytest.raises(UsageError) as caught:
        opened(MEMORY)
    assert str(caught.value).endswith("the file has EN-GB, de, de-DE, en, en-US, fr")
    with pytest.raises(UsageError, match="say the languages"):
        opened(MEMORY.replace('srclang="en-US"', ""), "de")


def test_doubts_become_notes() -> None:
    document = opened(MEMORY, "de")
    doubt = Doubt(("It may be < wrong.",), 0.2)
    found = document.write(
        [Written(segment.source, doubt) for segment in document.segments]
    ).decode()
    note = "<note>It may be &lt; wrong. Confidence: 20%.</note><seg>"
    assert found.count(note) == 4
    assert diff_memory(MEMORY.encode(), found.encode()) == []


@pytest.mark.parametrize("rule", RULES)
def test_structure_survives_any_translation(rule: str) -> None:
    found = translated(MEMORY, rule, "de")
    assert diff_memory(MEMORY.encode(), found.encode()) == []


def test_the_same_words_leave_the_file_as_it_was() -> None:
    document = opened(MEMORY, "de")
    assert unchanged(document) == MEMORY.encode()
    same = translate_document(document, lambda texts: list(map(Translated, texts)))
    assert same == MEMORY.encode()


def test_what_is_refused() -> None:
    for text, said in (
        ("\n<xliff/>", "a.tmx:2: begins with <xliff>; TMX begins with <tmx>"),
        ("<tmx><body>", "a.tmx:1: not well-formed XML"),
        ('<!DOCTYPE tmx [<!ENTITY a "b">]><tmx/>', "a.tmx:1: the document type has"),
    ):
        with pytest.raises(UsageError) as caught:
            opened(text, "de")
        assert str(caught.value).startswith(said)
    assert opened("<tmx/>").segments == ()


PARTS = [
    *("<tu>", "</tu>", "<tuv xml:lang='en'>", "<tuv xml:lang='de'>", "<tuv>", "</tuv>", "<seg>", "</seg>", "<seg/>"),
    *("<tuv lang='en'>", "</seg></tuv></tu><tu><tuv xml:lang='en'><seg>", "<bpt i='1'>", "</bpt>", "<ept i='1'/>"),
    *("<hi>", "</hi>", "<ph/>", "<ut>x</ut>", "a word", "\n", "&amp;", "<![CDATA[b]]>", "%1", "<note/>"),
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=10),
    is_wrapped=st.booleans(),
    answer=st.text(max_size=8),
)
def test_damaged_files_come_back_or_are_refused(
    parts: list[str], is_wrapped: bool, answer: str
) -> None:
    inner = "".join(parts)
    if is_wrapped:
        inner = f"<tu><tuv xml:lang='en'><seg>{inner}</seg></tuv></tu>"
    text = f"<tmx><header srclang='en'/><body>{inner}</body></tmx>"
    try:
        etree.fromstring(text.encode())
    except etree.XMLSyntaxError:
        with pytest.raises(UsageError):
            opened(text, "de")
        return
    document = opened(text, "de")
    assert unchanged(document) == text.encode()
    for translations in (
        translate_document(document, lambda texts: [Translated(answer)] * len(texts)),
        translate_document(document, lambda texts: list(map(reverse, texts))),
    ):
        etree.fromstring(translations)


@pytest.mark.long
def test_time_is_proportional_to_size() -> None:
    units = [MEMORY[MEMORY.index("<tu ") : MEMORY.index("</body>")]]

    def seconds(number: int) -> float:
        text = MEMORY.replace("</body>", "".join(units * number) + "</body>")
        begin = process_time()
        document = opened(text, "de")
        translate_document(document, lambda texts: list(map(upper, texts)))
        return process_time() - begin

    seconds(10)
    assert seconds(200) < 25 * max(seconds(20), 0.02)


def memory() -> bytes:
    folder = Path(os.environ.get("WEFT_DATA", "")) / "tico19-tmx"
    path = folder / "all.en-fr.tmx"
    if not os.environ.get("WEFT_DATA") or not path.is_file():
        pytest.skip(f"no TMX at {folder}; set WEFT_DATA to the folder of corpora")
    return path.read_bytes()


def test_a_memory_as_it_was_exported() -> None:
    content = memory()
    units = content.split(b"<tu ")
    content = b"<tu ".join(units[:200]) + b"</body></tmx>"
    assert not open_tmx_document(content, Reading("a.tmx")).segments
    document = open_tmx_document(content, Reading("a.tmx", target="de"))
    assert len(document.segments) == 199
    found = translate_document(document, lambda texts: list(map(reverse, texts)))
    assert diff_memory(content, found) == []


@pytest.mark.long
def test_a_memory_of_thousands_of_units() -> None:
    content = memory()
    document = open_tmx_document(content, Reading("a.tmx", target="de"))
    assert len(document.segments) == 3071
    found = translate_document(document, lambda texts: list(map(reverse, texts)))
    assert diff_memory(content, found) == []
    again = open_tmx_document(found, Reading("a.tmx", target="de"))
    assert not again.segments
