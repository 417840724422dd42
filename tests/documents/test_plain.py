"""Plain text: lines are translated, all between them stays."""

import pytest

from document_samples import reverse, upper  # tools/
from weft.documents.document import Translated
from weft.documents.driver import translate_document
from weft.documents.plain import open_plain, read_plain
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
    assert loud("salt &amp; R&D") == "SALT &AMP; R&D"


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
    document = open_plain(content, "a.txt")
    assert document.write(["rot"]) == "\ufeffrot\r\n".encode()
    with pytest.raises(
        UsageError, match=r"^a\.txt: byte 3 is not UTF-8; save the file"
    ):
        open_plain(b"gr\xfcn", "a.txt")


def test_a_character_that_utf_8_lacks_does_not_stop_a_file() -> None:
    document = open_plain(b"green", "a.txt")
    assert translate_document(document, lambda _: [Translated("\ud800x")]) == b"?x"


def test_formats_are_found_by_the_ending_of_a_name() -> None:
    assert format_of("a.b/Page.HTML") is FORMATS["html"]
    assert format_of("x.txt") is FORMATS["text"]
    assert endings() == [".txt", ".html", ".htm"]
    for name in ("x.docx", "txt", ""):
        with pytest.raises(UsageError, match=r"endings \.txt, \.html, \.htm$"):
            format_of(name)
