"""Plain text: lines are translated, all between them stays."""

import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_samples import Rule, reverse, upper  # tools/
from weft.documents.document import Reading, TextDocument, Translated, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.text.plain import open_plain, read_plain
from weft.documents.formats.web.html import read_html
from weft.documents.registry import FORMATS, endings, format_of
from weft.errors import UsageError


def texts(source: str) -> list[str]:
    return [segment.text for segment in read_plain(source).segments]


def loud(source: str) -> str:
    return translate_document(read_plain(source), lambda found: list(map(upper, found)))


def test_a_line_is_a_segment_and_white_space_stays() -> None:
    source = "\ufeff  one two\r\n\r\n\tthree\n\n\n four \rfive\x0bsix  \n"
    assert texts(source) == ["one two", "three", "four", "five", "six"]
    assert loud(source) == source.upper()


def test_columns_and_marks_of_lists_stay() -> None:
    assert texts("- one\n  * two\n> > three\n# four\n5. five") == [
        *("one", "two", "three", "four", "5. five"),
    ]
    assert texts("name\tprice\nred car      ten  euros") == [
        *("name", "price", "red car", "ten  euros"),
    ]
    assert texts("-5 degrees\n*bold* word") == ["-5 degrees", "*bold* word"]


def test_lines_without_letters_stay() -> None:
    for source in ("12:30 - 14:00", "***", "{0}", "https://a.org", "50 %", " \t"):
        assert texts(source) == []
        assert loud(source) == source


def test_tags_of_subtitles_and_messages() -> None:
    assert loud("<i>Hello<br />there</i>") == "<i>HELLO<br />THERE</i>"
    assert loud("see <b0>this</b0> page") == "SEE <b0>THIS</b0> PAGE"
    assert texts("a List<String> x, a < b and c > d") == ["a List x, a < b and c > d"]
    assert (
        loud("see [url=$u]this [b]page[/b][/url]")
        == "SEE [url=$u]THIS [b]PAGE[/b][/url]"
    )
    assert texts("a [b] c [/d] e") == ["a [b] c [/d] e"]
    assert loud("see <0>this</0> page") == "SEE <0>THIS</0> PAGE"
    assert loud("salt &amp; R&D") == "SALT &AMP; R&D"


def test_elements_with_code_in_them_are_tags_as_a_whole() -> None:
    """Of XLIFF, then of TMX; both kinds of reader."""
    old = ('<bpt id="1">&lt;b&gt;</bpt>', '<ept id="1">&lt;/b&gt;</ept>')
    new = ("<bpt i='2' x='1'>{\\b </bpt>", "<ept i='2'>}</ept>")
    for read in (read_plain, read_html):
        for opening, closing in (old, new):
            source = f'see {opening}this page{closing} on <ph id="7">[tag]</ph> now'
            document = read(source)
            (segment,) = document.segments
            assert segment.text == "see this page on now"
            kinds = [item.kind.value for item in segment.items]
            assert kinds == ["open", "close", "kept"]
            turned = translate_document(document, lambda s: list(map(reverse, s)))
            assert turned.count(f"{opening}page's this's{closing}") == 1
        inner = f"a {old[0]}b {new[0]}c d{new[1]}{old[1]} e"
        (segment,) = read(inner).segments
        assert segment.text == "a b c d e"
        assert [item.partner for item in segment.items] == [3, 2, 1, 0]
        assert [s.text for s in read('a <it pos="open">x</it>b <it>c</it>').segments] == ["a b c"]  # fmt: skip
        for whole in ("<bpt>a b", "a</ept> b", "<ph>a b"):
            texts = [segment.text for segment in read(whole).segments]
            assert " ".join(texts) == "a b"


def test_a_line_of_elements_without_end_is_read_at_once() -> None:
    assert texts("<bpt>" * 50_000 + "a") == ["a"]


def test_placeholders_come_back_where_their_neighbours_are() -> None:
    turned = translate_document(
        read_plain("Hello {name}, see %s now!"), lambda found: list(map(reverse, found))
    )
    assert turned.count("{name}") == turned.count("%s") == 1
    assert loud("Hello {name}!") == "HELLO {name}!"
    assert loud("{user}: hello (%s)") == "{user}: HELLO (%s)"
    assert texts("{user}: hello (%s)") == ["hello"]
    assert texts("Well, {name}!") == ["Well!"]
    assert loud("Well, {name}!") == "WELL, {name}!"


def test_a_file_is_utf_8() -> None:
    content = "\ufeffgrün\r\n".encode()
    document = open_plain(content, Reading("a.txt"))
    assert document.write([Written("rot")]) == "\ufeffrot\r\n".encode()
    with pytest.raises(
        UsageError, match=r"^a\.txt: byte 3 is not UTF-8; save the file"
    ):
        open_plain(b"gr\xfcn", Reading("a.txt"))


def test_a_character_that_utf_8_lacks_does_not_stop_a_file() -> None:
    document = open_plain(b"green", Reading("a.txt"))
    assert translate_document(document, lambda _: [Translated("\ud800x")]) == b"?x"


def test_formats_are_found_by_the_ending_of_a_name() -> None:
    assert format_of("a.b/Page.HTML") is FORMATS["html"]
    assert format_of("x.txt") is FORMATS["text"]
    assert endings()[:3] == [".txt", ".html", ".htm"]
    for name in ("x.exe", "txt", ""):
        with pytest.raises(UsageError, match=r"endings \.txt, \.html, \.htm"):
            format_of(name)


@pytest.mark.parametrize("read", [read_plain, read_html])
def test_a_comma_before_a_placeholder_is_that_of_the_script(
    read: Callable[[str], TextDocument],
) -> None:
    for source, text, expected in (
        ("Well, {name}!", "好！", "好，{name}！"),
        ("Well; {name}!", "好！", "好；{name}！"),
        ("Well, {name}!", "え！", "え、{name}！"),
        ("Well, {name}!", "네!", "네, {name}!"),
        ("Well, {name}!", "Gut!", "Gut, {name}!"),
        ("Well (:smile:)!", "好！", "好 (:smile:)！"),
    ):
        found = translate_document(
            read(source), lambda _, text=text: [Translated(text)]
        )
        assert found == expected


FIRST = (
    "This paragraph has lines that a program has filled, so that none of them could have taken "
    "the first word of the one that follows it, which is how a person sees that it is one text."
)
QUOTED = (
    "A quoted one, too, with a mark before each of its lines, which is as wide as the others, "
    "since the same program has filled all of them in the end, and has left out none."
)
LISTED = (
    "An item of a list whose lines hang below its first word, as they do in many files."
)
ROWS = """\
Roses are red and violets are bluer than any roses I know of,
Sugar is sweet and honey is sweeter than all that I have had,
And so are you, my dear, and so are those that went before us.

Name   Price
one apple   two pears
Ann Example
12 Long Street
Some Town
"""
FILLED = "\n".join(
    [
        "A TITLE OF ITS OWN\n",
        textwrap.fill(FIRST, 70, initial_indent="  ") + "\n",
        textwrap.fill(QUOTED, 70, initial_indent="> ", subsequent_indent="> ") + "\n",
        textwrap.fill(LISTED, 70, initial_indent="- ", subsequent_indent="  ") + "\n",
        ROWS,
    ]
)


def test_a_filled_paragraph_is_a_segment() -> None:
    document = open_plain(FILLED.encode(), Reading("a.txt"))
    found = [segment.text for segment in document.segments]
    assert found[1:4] == [FIRST, QUOTED, LISTED]
    assert len(found) == 4 + 3 + 4 + 3
    assert document.place(2) == "line 7"


def test_a_filled_paragraph_is_filled_anew() -> None:
    document = open_plain(FILLED.encode(), Reading("a.txt"))
    assert unchanged(document) == FILLED.encode()
    loud = translate_document(document, lambda found: list(map(upper, found)))
    assert loud.decode() == FILLED.upper()
    long = translate_document(
        document, lambda found: [Translated(f"{text} {text}") for text in found]
    ).decode()
    lines = long.split("\n")
    assert max(map(len, lines[2:7])) <= 70
    assert [line[:2] for line in lines if "mark" in line or "wide" in line] == ["> "] * 4  # fmt: skip
    windows = FILLED.replace("\n", "\r\n").encode()
    document = open_plain(windows, Reading("a.txt"))
    assert unchanged(document) == windows
    again = translate_document(document, lambda found: list(map(upper, found)))
    assert again == windows.upper()


def test_lines_that_a_person_has_divided_stay_lines() -> None:
    for rows in (
        (
            "Shall I compare thee to a summer's day, my dear old friend?",
            "Thou art more lovely and more temperate than all of those.",
            "Rough winds do shake the darling buds of May, as they must.",
        ),
        (
            "first of all we went to the market, which was quite far away",
            "then home",
            "and after that we slept for as long as anybody could ever do",
        ),
        ("one two three four", "five six seven eight", "nine ten eleven"),
    ):
        text = "\n".join(rows)
        document = open_plain(text.encode(), Reading("a.txt"))
        assert len(document.segments) == 3


WORDS = ["a", "word", "<b>", "</b>", "{0}", "longer,", "漢字", "\n", "\n> ", "\n  "]
WORDS += ["- ", "\r\n", "\t"]


@settings(max_examples=100, deadline=None)
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=60),
    rule=st.sampled_from([upper, reverse]),
)
def test_any_file_comes_back_as_it_is(words: list[str], rule: Rule) -> None:
    filled = "the words of a paragraph that is filled\n" * 2
    content = ("> " + " ".join(words) + "\n" + filled + " ".join(words)).encode()
    document = open_plain(content, Reading("a.txt"))
    assert unchanged(document) == content
    same = translate_document(document, lambda found: list(map(Translated, found)))
    assert same == content
    new = translate_document(document, lambda found: list(map(rule, found)))
    assert len(new) >= len(content) // 2


def test_of_a_list_of_placeholders_one_mark_is_left() -> None:
    document = read_plain("It can be {a}, {b}, {c}, and {d} now.")
    assert [one.text for one in document.segments] == ["It can be, and now."]
    written = translate_document(document, lambda texts: list(map(upper, texts)))
    assert written == "IT CAN BE {a}, {b}, {c}, AND {d} NOW."


@pytest.mark.parametrize("mark", [":", ",", " -", " –", " ---"])
def test_a_mark_after_a_placeholder_at_the_head_stays_there(mark: str) -> None:
    document = read_plain(f"{{name}}{mark} the old house")
    assert [one.text for one in document.segments] == ["the old house"]


@pytest.mark.parametrize("kept", ["({a}, {b}, {c})", "{a} / {b}", "“{a}; {b}”"])
def test_a_list_in_brackets_is_one_placeholder_with_them(kept: str) -> None:
    source = f"the files {kept} are old, and so is {{d}}."
    (segment,) = read_plain(source).segments
    assert segment.text == "the files are old, and so is."
    assert [item.raw for item in segment.items] == [kept, "{d}"]
    assert loud(source) == f"THE FILES {kept} ARE OLD, AND SO IS {{d}}."
