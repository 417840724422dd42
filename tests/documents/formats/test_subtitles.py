"""Subtitles: cues are translated, their times and settings stay, their lines are balanced."""

import re

import pysubs2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_subtitles  # tools/
from document_samples import RULES, reverse, upper
from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.text.subtitles import open_srt, open_vtt
from weft.documents.formats.text.wrapping import balance
from weft.errors import UsageError

SRT = """\
1
00:00:01,000 --> 00:00:03,500
<i>Hello, my friends,
how are you today?</i>

2
00:00:04,000 --> 00:00:06,000 X1:1 X2:2 Y1:3 Y2:4
- Who is there?
- It is me,
  the old man.

3
00:00:07,000 --> 00:00:08,000
{\\an8}A short one

4
00:00:09,000 --> 00:00:10,000
12:30

5
00:00:11,000 --> 00:00:12,000
one 1,000 two
"""
VTT = """\
WEBVTT - Some title

STYLE
::cue(b) { color: red }

NOTE
a comment
--> here

intro
00:01.000 --> 00:04.000 align:start position:10%
<v Mary Ann>Fish &amp; chips are &lt;good&gt;</v>

00:00:05.000 --> 00:00:07.000
<c.loud>Now</c> <00:00:06.000>then, <ruby>字<rt>zì</rt></ruby> end
"""


def srt(text: str) -> list[str]:
    return [s.text for s in open_srt(text.encode(), Reading("a.srt")).segments]


def written(content: str, rule: str, ending: str = ".srt") -> str:
    read = open_srt if ending == ".srt" else open_vtt
    document = read(content.encode(), Reading("a" + ending))
    return translate_document(
        document, lambda texts: list(map(RULES[rule], texts))
    ).decode()


def test_a_cue_is_a_segment_and_a_speaker_of_a_dialogue_is_one() -> None:
    assert srt(SRT) == [
        "Hello, my friends, how are you today?",
        "Who is there?",
        "It is me, the old man.",
        "A short one",
        "one 1,000 two",
    ]


def test_all_but_the_words_stays() -> None:
    loud = written(SRT, "upper")
    assert "<i>HELLO, MY FRIENDS,\nHOW ARE YOU TODAY?</i>\n" in loud
    assert "- WHO IS THERE?\n- IT IS ME,\nTHE OLD MAN.\n" in loud
    assert "{\\an8}A SHORT ONE" in loud
    assert "X1:1 X2:2" in loud
    for rule in RULES:
        for text, ending in ((SRT, ".srt"), (VTT, ".vtt")):
            new = written(text, rule, ending)
            assert diff_subtitles(text.encode(), new.encode(), ending) == [], rule


def test_web_vtt_keeps_styles_comments_names_and_moments() -> None:
    document = open_vtt(VTT.encode(), Reading("a.vtt"))
    assert [segment.text for segment in document.segments] == [
        "Fish & chips are <good>",
        "Now then, 字 end",
    ]
    loud = written(VTT, "upper", ".vtt")
    assert "<v Mary Ann>FISH &amp; CHIPS ARE &lt;GOOD&gt;</v>" in loud
    assert "<c.loud>NOW</c> <00:00:06.000>THEN, <ruby>字<rt>zì</rt></ruby> END" in loud
    assert loud.split("\n\n")[:3] == VTT.split("\n\n")[:3]
    assert document.place(1) == "cue 2, line 15"


def test_a_translation_has_about_as_many_lines_of_equal_length() -> None:
    line = "wir gehen heute alle zusammen in den großen Park am Fluss"
    assert balance(line, 2, 42) == [
        "wir gehen heute alle zusammen",
        "in den großen Park am Fluss",
    ]
    assert balance(line, 1, 60) == [line]
    assert len(balance(line, 1, 42)) == 2
    assert balance("Ja.", 2, 42) == ["Ja."]
    assert balance("Nein, nein. Ich komme", 2, 42) == ["Nein, nein.", "Ich komme"]
    parts = balance("我们今天一起去河边的大公园，好吗？", 2, 42)
    assert len(parts) == 2
    assert parts[1][0] not in "，？"
    tags = balance("<v Mary Ann Smith of Nowhere>go on</v>", 2, 42, None)
    assert len(tags) == 2


def test_a_line_does_not_end_in_a_tag() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n<font color='red' size='2'>a b\nc</font>\n"
    )
    assert "<font color='red' size='2'>A\nB C</font>\n" in written(
        text, "upper"
    ) or "<font color='red' size='2'>A B\nC</font>\n" in written(text, "upper")


def test_what_the_words_say_is_no_mark_of_the_format() -> None:
    arrow = [Translated("a --> b\n\nc")]
    text = "1\n00:00:01,000 --> 00:00:02,000\nHello\n"
    document = open_srt(text.encode(), Reading("a.srt"))
    assert translate_document(document, lambda _: arrow) == (
        text.replace("Hello", "a -- > b c").encode()
    )
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n"
    document = open_vtt(text.encode(), Reading("a.vtt"))
    new = translate_document(document, lambda _: arrow)
    assert new == text.replace("Hello", "a --&gt; b c").encode()


def test_windows_line_ends_stay() -> None:
    new = written(SRT.replace("\n", "\r\n"), "reverse")
    assert new.count("\r\n") == new.count("\n") > 20
    assert len(pysubs2.SSAFile.from_string(new)) == 5


def test_a_file_without_empty_lines_between_cues_is_read() -> None:
    text = "1\n0:0:1,0 --> 0:0:2,0\nHi\n".replace("0:0:", "00:00:0")
    text += "2\n00:00:02,000 --> 00:00:03,000\nthere\n"
    assert srt(text) == ["Hi", "there"]


def test_text_outside_of_cues_is_noted() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nHi\n\nlost words\n\n2\n00:00:03,000 --> 00:00:04,000\nyou\n"
    document = open_srt(text.encode(), Reading("a.srt"))
    (note,) = document.notes
    assert note.place == "line 5"
    assert open_srt(SRT.encode(), Reading("a.srt")).notes == ()


def test_other_files_are_refused_in_a_line() -> None:
    with pytest.raises(UsageError, match=r"^a\.srt:1: no times"):
        open_srt(b"Hello there", Reading("a.srt"))
    with pytest.raises(UsageError, match=r"^a\.vtt:1: a file of WebVTT begins"):
        open_vtt(b"1\n00:01.000 --> 00:02.000\nHello\n", Reading("a.vtt"))
    with pytest.raises(UsageError, match=r"byte 1 is not UTF-8"):
        open_srt(b"\xff", Reading("a.srt"))


TIMES = re.compile(r"[\ufeff\s]*([\d:]+[.,]\d+ --> [\d:]+[.,]\d+)(?:\s|$)")


def times_in(content: bytes) -> list[str]:
    lines = re.split(r"[\r\n]", content.decode())
    return [match[1] for line in lines if (match := TIMES.match(line))]


PARTS = [
    *("1\n", "\n", "\r\n", "\r", "00:00:01,000 --> 00:00:02,000\n", "00:01.000 --> 00:02.000 line:1\n", "-->", "- "),
    *("<i>", "</i>", "<v A B>", "</v>", "<00:01.000>", "{\\an8}", "<ruby>a<rt>b</rt></ruby>", "&amp;", "&nbsp;", "<"),
    *("word", "two words", "NOTE\n", "STYLE\n", "漢字", "♪ ", "\ufeff", "\0", "{0}", " ", "<c.x>", "</c>", "—"),
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=16), rule=st.sampled_from(sorted(RULES)))  # fmt: skip
def test_damaged_files_come_back_as_they_are(parts: list[str], rule: str) -> None:
    times = "00:00:01.000 --> 00:00:02.000"
    for head, read in ((f"{times}\n", open_srt), ("WEBVTT\n\n", open_vtt)):
        content = (head + "".join(parts)).encode()
        document = read(content, Reading("a"))
        assert unchanged(document) == content
        same = translate_document(document, lambda texts: list(map(Translated, texts)))
        assert same == content
        new = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
        assert times_in(new) == times_in(content)


def test_large_files_are_read_in_time_proportional_to_their_size() -> None:
    for part in (
        "<i>",
        "{\\",
        "- a\n",
        "<",
        "a ",
        "00:00:01,000 --> 00:00:02,000\n",
        "漢",
        "&amp;",
    ):
        content = (SRT + "9\n00:00:01,000 --> 00:00:02,000\n" + part * 3_000).encode()
        document = open_srt(content, Reading("a"))
        assert unchanged(document) == content
        for rule in (upper, reverse):
            translate_document(
                document, lambda texts, rule=rule: list(map(rule, texts))
            )
