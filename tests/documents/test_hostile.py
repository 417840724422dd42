"""Documents made to harm: each is read and written in time proportional to its size."""

from time import process_time

import pytest

from document_samples import unaligned, upper  # tools/
from weft.documents.document import Reading, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.registry import FORMATS, format_of
from weft.errors import UsageError

PIECES = [name for name, row in FORMATS.items() if row.read]
SIZE = 50_000
# each is repeated to this size; what makes many tags or placeholders 500 times
CHEAP = [
    *("<", "<a ", "<!--", "<![CDATA[", "<!", "</", "<script>", '<a x="', "<a x=' ", "&", "&#", "&#9", "{", "{a,"),
    *("{n,plural,a{", "{{b}", "https://", "a@", "#", "#1", "%", "%1", ":", ":aa", "$(", "%(a", "`", " ", "\n", "."),
    *("\0", "\ud800", "漢", "-", "- ", "word ", "[X1", "<a><!--", "a\xad"),
]  # fmt: skip
DEAR = [
    *("x <b>", "x </b>", "x <b>y</b> ", "<b>x <i>y z</b> ", "a<!-- x -->", "<script>x</script>a ", "<code>a</code> b "),
    *("<code>", "<b translate=no>x ", "a&nbsp;", "{0}", "{0} x ", ": {0}, ", "a<br>", "<p>a", "<i></i>", "漢<b>字</b>"),
    *("<a>", "</a>", "<li translate=no>", "<x/>a", "&#32;", "a` ", "@a "),
]  # fmt: skip


def seconds(name: str, text: str) -> float:
    """The CPU time to read a document and to write two translations of it."""
    begin = process_time()
    read = FORMATS[name].read
    assert read is not None
    document = read(text)
    for rule in (upper, unaligned):
        translate_document(document, lambda texts, rule=rule: list(map(rule, texts)))
    segments = [Written(segment.source) for segment in document.segments]
    assert document.write(segments) == text
    return process_time() - begin


@pytest.mark.parametrize("name", PIECES)
def test_one_thing_again_and_again(name: str) -> None:
    assert seconds(name, "<" * 1_000_000) < 5
    for part in CHEAP:
        text = part * (SIZE // len(part))
        assert seconds(name, text) < 5, part


@pytest.mark.parametrize("name", PIECES)
def test_many_tags_and_placeholders(name: str) -> None:
    for part in DEAR:
        assert seconds(name, part * 500) < 5, part


@pytest.mark.parametrize("name", PIECES)
def test_deep_nesting(name: str) -> None:
    for inside in ("x y", "", "<img>"):
        assert seconds(name, deep(5_000, inside)) < 5, inside
    words = "<b>w " * 1_000 + "</b>" * 1_000
    assert seconds(name, f"a {words} z") < 5


@pytest.mark.long
@pytest.mark.parametrize("name", PIECES)
def test_nesting_as_deep_as_a_body_allows(name: str) -> None:
    assert seconds(name, deep(100_000, "x y")) < 60


def deep(depth: int, inside: str) -> str:
    return f"a {'<b>' * depth}{inside}{'</b>' * depth} z"


# formats of XML with one text in each
FILES = {
    "a.xlf": '<xliff version="1.2"><file><body><trans-unit><source>{}</source></trans-unit></body></file></xliff>',
    "b.xlf": '<xliff version="2.0"><file><unit><segment><source>{}</source></segment></unit></file></xliff>',
    "a.tmx": '<tmx><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu></body></tmx>',
    "a.ts": "<TS><context><message><source>{}</source></message></context></TS>",
    "a.xml": '<resources><string name="a">{}</string></resources>',
}
OFTEN = [
    "&lt;a x=\\&quot;",
    "&lt;b&gt;x ",
    "&amp;a",
    "a\n",
    "<g id='1'>a</g> ",
    "\\\\n",
]
MANY = [
    *("&lt;!", "&lt;", "&lt;a ", "&lt;a b", "{n,plural,", "{a,select,b{", "{a}", "&lt;style a&gt;x"),
    *("&lt;code&gt;", '&lt;a x="', "&lt;/b&gt;", "&amp;nbsp;", "&#32;", "%1 ", "%", "\n"),
    *("\\", "\\n", "\\u00", "\\u0041", '"', "\\@a", "http://..", "<bx id='1'/>a ", "<ex id='1'/>a ", "<x id='1'/>"),
    *("<bx id='1'/>a <bx id='2'/>b <ex id='1'/>", "<mrk mtype='seg' mid='1'>a</mrk>", "<![CDATA[a <b>]]>", "<b>x</b> "),
    *("<bpt i='1'>x</bpt>a", "<sm id='1' translate='no'/>a", "<em startRef='1'/>a", "<li>a</li>", "a&amp;b ", "..."),
    *("</source></trans-unit><trans-unit><source>a", "</string><string name='a'>b", "<g id='1'>a <x/></g>"),
    "</seg></tuv></tu><tu><tuv xml:lang='en'><seg>a",
]  # fmt: skip


def seconds_of_file(name: str, part: str, size: int) -> float:
    """The CPU time to read a file in which a part is repeated, and to translate it."""
    content = FILES[name].format(part * (size // len(part))).encode()
    begin = process_time()
    try:
        document = format_of(name).open(content, Reading(name, target="de"))
    except UsageError:  # of another format's elements
        return process_time() - begin
    for rule in (upper, unaligned):
        translate_document(document, lambda texts, rule=rule: list(map(rule, texts)))
    assert unchanged(document) == content
    return process_time() - begin


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_files_with_one_thing_again_and_again(name: str) -> None:
    for part in OFTEN:
        assert seconds_of_file(name, part, 4_000) < 5, part


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_files_with_many_things_again_and_again(name: str) -> None:
    for part in MANY:
        seconds_of_file(name, part, 1_000)
        # a busy machine may hold up one of three
        assert any(grows_little(name, part) for _ in range(3)), part


def grows_little(name: str, part: str) -> bool:
    small, large = (seconds_of_file(name, part, size) for size in (10_000, 40_000))
    return large < 12 * max(small, 0.02)
