"""What of HTML is translated, and how the rest comes back."""

import re

import pytest

from document_samples import reverse, upper  # tools/
from weft.documents.document import Reading, Translated, Written
from weft.documents.driver import (
    needs_alignment,
    texts_of,
    translate_document,
    unchanged,
)
from weft.documents.formats.web.html import open_html, read_html
from weft.documents.formats.web.markup import Markup, attributes, scan
from weft.errors import UsageError


def texts(source: str) -> list[str]:
    return [segment.text for segment in read_html(source).segments]


def loud(source: str) -> str:
    return translate_document(read_html(source), lambda found: list(map(upper, found)))


def turned(source: str) -> str:
    """The document in which the words of each segment have changed their order."""
    return translate_document(
        read_html(source), lambda found: list(map(reverse, found))
    ).replace("'s", "")


def test_block_tags_divide_and_inline_tags_do_not() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>A page</title></head>"
        "<body><h1>Big <i>head</i></h1>loose<ul><li>one<li>two</ul>"
    )
    assert texts(page) == ["A page", "Big head", "loose", "one", "two"]
    assert loud(page) == (
        "<!DOCTYPE html><html><head><title>A PAGE</title></head>"
        "<body><h1>BIG <i>HEAD</i></h1>LOOSE<ul><li>ONE<li>TWO</ul>"
    )


@pytest.mark.parametrize(
    ("tag", "told"),
    [
        ('<html lang="en">', '<html lang="de">'),
        ("<HTML class=x LANG=en-GB>", '<HTML class=x LANG="de">'),
        (
            "<html xml:lang='en' data-lang='en' lang='en'>",
            '<html xml:lang="de" data-lang=\'en\' lang="de">',
        ),
        ("<html>", "<html>"),
        (
            "<!-- <html lang=en> --><html lang=''>",
            '<!-- <html lang=en> --><html lang="de">',
        ),
    ],
)
def test_a_page_says_that_it_is_in_the_language_of_its_translation(
    tag: str, told: str
) -> None:
    rest = '<p lang="en">Big <i lang="fr">tête</i></p></html>'
    document = open_html(f"{tag}{rest}".encode(), Reading("a.html", target="de"))
    assert unchanged(document).decode() == f"{told}{rest}"


def test_pieces_with_several_roots_and_without_any() -> None:
    assert loud("<p>one</p>\n<p>two</p>") == "<p>ONE</p>\n<p>TWO</p>"
    assert loud("only <b>words</b>") == "ONLY <b>WORDS</b>"
    assert loud("") == ""
    assert loud(" \n") == " \n"


def test_what_is_never_translated() -> None:
    for source in (
        "<script>if (a < b) alert('word')</script>",
        "<style>p { color: red }</style>",
        "<pre>some code</pre>",
        "<textarea>a text</textarea>",
        "<!-- a comment -->",
        '<p translate="no">a name</p>',
        "<div class='x notranslate'>a <p>name</p></div>",
        "<p TRANSLATE=NO>a name",
        "<![CDATA[ some data ]]>",
        "<?php echo 'word' ?>",
        '<img alt="a picture" title="its title">',
        "<p>12,5 € &amp; 30 %</p>",
        "<p>https://example.org/a?b=c</p>",
        "<svg><text>word</text></svg>",
    ):
        assert texts(source) == [], source
        assert loud(source) == source


def test_an_excluded_element_ends_where_the_next_block_begins() -> None:
    assert loud("<li translate=no>a<li>b") == "<li translate=no>a<li>B"
    assert loud("<p class=notranslate>a<b>c</b><p>b</p>") == (
        "<p class=notranslate>a<b>c</b><p>B</p>"
    )


def test_words_that_are_kept_stand_in_their_sentence() -> None:
    for kept in (
        "<code>x &lt; y</code>",
        "<kbd>Ctrl</kbd>",
        '<span translate="no">Weft</span>',
        '<b class="notranslate">a <i>b</i></b>',
        '<a href="u" class="u-url mention">@<span>ann</span></a>',
        '<a href="h"><span class="invisible">https://</span><span>b.org/x</span></a>',
        "me@example.org",
        "{0}",
    ):
        source = f"<p>press {kept} twice</p>"
        assert texts(source) == ["press twice"], kept
        assert loud(source) == f"<p>PRESS {kept} TWICE</p>"
        assert turned(source) == f"<p>twice {kept} press</p>"


def test_elements_of_asked_names_are_kept() -> None:
    source = "<p>press <X>a <b>b</b></X> twice</p>"
    document = read_html(source, kept=["x"])
    assert [segment.text for segment in document.segments] == ["press twice"]
    written = translate_document(document, lambda found: list(map(upper, found)))
    assert written == "<p>PRESS <X>a <b>b</b></X> TWICE</p>"
    assert texts(source) == ["press a b twice"]


def test_tags_follow_their_words() -> None:
    assert turned('<p>the <a href="u">red</a> car</p>') == (
        '<p>car <a href="u">red</a> the</p>'
    )
    assert turned("<b>one two</b> three") == "three <b>two one</b>"
    assert turned("<i>a <b>b</b></i> c") == "c <i><b>b</b> a</i>"


def test_tags_end_before_the_marks_that_they_end_before() -> None:
    assert loud("see <b>this</b>, and (<i>that</i>).") == (
        "SEE <b>THIS</b>, AND (<i>THAT</i>)."
    )
    assert loud("<b>this,</b> too") == "<b>THIS,</b> TOO"


def test_white_space_stays_outside_or_inside_of_tags() -> None:
    assert loud("one <b>two</b> three") == "ONE <b>TWO</b> THREE"
    assert loud("one<b> two </b>three") == "ONE<b> TWO </b>THREE"
    assert loud("  <p>\n one\n<b>two</b>\t</p> ") == "  <p>\n ONE\n<b>TWO</b>\t</p> "
    assert texts("one\n   <b> two</b>") == ["one two"]


def test_a_tag_inside_a_word_goes_around_the_whole_word() -> None:
    assert texts("un<b>believ</b>able story") == ["unbelievable story"]
    assert loud("un<b>believ</b>able story") == "<b>UNBELIEVABLE</b> STORY"


def test_entities_are_read_and_written() -> None:
    assert texts("salt &amp; pepper &lt; 5&nbsp;&euro;") == ["salt & pepper < 5 €"]
    assert loud("salt &amp; pepper &lt; five") == "SALT &amp; PEPPER &lt; FIVE"
    assert loud("a &#38; b") == "A &#38; B"
    assert loud("x > y and R&D") == "X > Y AND R&amp;D"
    assert loud("x &gt; y") == "X &gt; Y"
    quoted = translate_document(
        read_html("say &quot;yes&quot;"), lambda found: [Translated('ja "ja" & <b>')]
    )
    assert quoted == "ja &quot;ja&quot; &amp; &lt;b&gt;"


def test_a_no_break_space_stays_between_its_words() -> None:
    assert texts("10&nbsp;km away") == ["10 km away"]
    assert loud("10&nbsp;km away") == "10&nbsp;KM AWAY"
    assert turned("10&nbsp;km away") == "away km 10"
    assert loud("10\xa0km away") == "10\xa0KM AWAY"


def test_a_line_break_stands_between_words_and_divides_sentences() -> None:
    assert texts("one two<br>three") == ["one two three"]
    assert loud("one two<br />three") == "ONE TWO<br />THREE"
    assert loud("one two <br/>\nthree") == "ONE TWO <br/>\nTHREE"
    assert texts("Hello there.<br>How are you?") == ["Hello there.", "How are you?"]
    assert texts("<i>Oh!<br>Who is it</i>") == ["Oh!", "Who is it"]
    assert texts("a verse<br><br>another one") == ["a verse", "another one"]


def test_tags_that_are_not_nested_end_a_segment() -> None:
    for source in ("a <b>b <i>c</b> d</i> e", "a </b> b", "a <b>b<p>c</b> d"):
        assert loud(source) == source.upper().replace("<B>", "<b>").replace(
            "</B>", "</b>"
        ).replace("<I>", "<i>").replace("</I>", "</i>").replace("<P>", "<p>")
    assert texts("a <b>b <i>c</b> d</i> e") == ["a", "b", "c", "d", "e"]


def test_empty_tags_and_comments_stand_between_words() -> None:
    assert loud('see <x id="12"></x> there') == 'SEE <x id="12"></x> THERE'
    assert loud("one<!-- two -->three") == "<!-- two -->ONETHREE"
    assert loud("a <b0></b0>file") == "A <b0></b0>FILE"
    assert texts("a (<x id='1'/>) file") == ["a file"]


def test_an_answer_without_words_or_alignment_keeps_the_tags() -> None:
    document = read_html("one <b>two</b> <img> three {0} x")
    assert (
        translate_document(document, lambda _: [Translated("")]) == "<b></b><img> {0}"
    )
    assert (
        translate_document(document, lambda _: [Translated("eins zwei drei x")])
        == "eins <b>zwei</b> <img> drei {0} x"
    )


def test_tokens_are_those_of_a_browser() -> None:
    def kinds(text: str) -> list[tuple[str, str]]:
        return [(token.kind.value, token.raw) for token in scan(text)]

    for text, expected in (
        ("a < b", [("text", "a < b")]),
        ("<a x='>'>", [("start", "<a x='>'>")]),
        ('<a ="x>y', [("start", '<a ="x>'), ("text", "y")]),
        ("<a b=c'>'", [("start", "<a b=c'>"), ("text", "'")]),
        ("x <b", [("text", "x "), ("other", "<b")]),
        ("</>y", [("other", "</>"), ("text", "y")]),
        ("<!-->y", [("other", "<!-->"), ("text", "y")]),
        ("<!--a--!>y", [("other", "<!--a--!>"), ("text", "y")]),
        ("<!--a->", [("other", "<!--a->")]),
        ("<!x>y", [("other", "<!x>"), ("text", "y")]),
        ("<Style>a<b></STYLE >", [("start", "<Style>"), ("other", "a<b>"), ("end", "</STYLE >")]),
    ):  # fmt: skip
        assert kinds(text) == expected, text
    assert next(scan("<SPAN>")).name == "span"
    assert next(scan("<a>")).kind is Markup.START
    found = attributes("<a B='1' c=2 d  e = \"f>\" b=3/>")
    assert found == {"b": "1", "c": "2", "d": "", "e": "f>"}


def test_each_text_is_asked_for_once() -> None:
    document = read_html("<p>yes</p><p>yes</p><p>no <b>way</b></p>")
    assert texts_of(document) == ["yes", "no way"]
    assert needs_alignment(document)
    assert not needs_alignment(read_html("<p>yes</p>"))
    for answers in ([], [Translated("a")] * 3):
        with pytest.raises(UsageError, match=f"^{len(answers)} translations for .* 2 "):
            translate_document(document, lambda _, answers=answers: answers)
    with pytest.raises(UsageError, match=r"^1 translations for 3 segments"):
        document.write([Written("a")])


def test_a_file_stays_in_its_encoding() -> None:
    def file(content: bytes) -> bytes:
        document = open_html(content, Reading("a.html"))
        return translate_document(document, lambda _: [Translated("Käse")])

    assert file(b"<p>cheese") == b"<p>K&#228;se"
    assert (
        file(b"<meta charset=utf-8><p>cheese") == "<meta charset=utf-8><p>Käse".encode()
    )
    assert file("<p>chéese\r\n".encode()) == "<p>Käse\r\n".encode()
    assert file(b'<meta charset="latin1">cheese') == b'<meta charset="latin1">K&#228;se'
    with pytest.raises(UsageError, match=r"^a\.html: byte 4 is not UTF-8; save"):
        open_html(b"<p>\xe4", Reading("a.html"))
    with pytest.raises(UsageError, match=r"^a\.html: .* charset is latin1, but"):
        open_html('<meta charset="latin1">ä'.encode(), Reading("a.html"))


def test_white_space_around_items_is_that_of_their_neighbours() -> None:
    def one(
        source: str, translation: str, *alignment: tuple[int, int, int, int]
    ) -> str:
        answer = Translated(translation, alignment)
        return translate_document(read_html(source), lambda _: [answer])

    # from before a word to before a comma; at an edge it stays there
    near = [(0, 3, 0, 3), (4, 7, 4, 7)]
    assert one("one <x/> two.", "ein, zwei.", *near) == "ein <x/>, zwei."
    assert one("one two <x/>", "ein zwei.", (0, 3, 0, 3), (4, 7, 4, 9)) == (
        "ein zwei. <x/>"
    )
    # between tags there is one space, outside of them
    assert one(
        "<b>one <x/> two</b> three", "drei zwei", (0, 3, 0, 4), (4, 7, 5, 9)
    ) in ("<b>drei <x/> zwei</b>",)
    # from beside a mark to between two words
    assert one("one ({0}), two", "ein zwei", (0, 4, 0, 3), (5, 8, 4, 8)) == (
        "ein ({0}) zwei"
    )


def test_white_space_after_a_tag_stays_where_an_empty_one_is_inside_it() -> None:
    source = "<p>see <b>this<!-- c --></b> page</p>"
    written = translate_document(read_html(source), lambda s: list(map(upper, s)))
    assert written == "<p>SEE <b>THIS<!-- c --></b> PAGE</p>"


@pytest.mark.parametrize(
    "label",
    [
        '<a class="sdfootnoteanc" name="b" href="#a"><sup>1</sup></a>',
        '<a class="sdendnoteanc" name="b" href="#a"><sup>iv</sup></a>',
        '<sup id="b"><a epub:type="noteref" href="#a">i</a></sup>',
        '<sup><a href="page.html#a">[2]</a></sup>',
        "<sup>*</sup>",
        '<a href="#a" class="footnote-backref">↩</a>',
        '<a href="#a">↩&nbsp;<sup>1</sup></a>',
    ],
)
def test_the_label_of_a_note_is_no_word_and_follows_its_own(label: str) -> None:
    source = f"<p>They look at the water{label} and talk.</p>"
    assert texts(source) == ["They look at the water and talk."]
    assert loud(source) == f"<p>THEY LOOK AT THE WATER{label} AND TALK.</p>"


def test_a_label_at_the_head_of_a_note_stays_there() -> None:
    label = '<a class="sdendnotesym" name="a" href="#b">i</a>'
    assert texts(f"<p>{label}The lake is old.</p>") == ["The lake is old."]


@pytest.mark.parametrize(
    "source",
    ["the 4<sup>th</sup> of May", 'see <a href="#b">A</a> and <a href="#c">B</a>'],
)
def test_raised_letters_and_links_of_a_letter_are_text(source: str) -> None:
    assert texts(f"<p>{source}</p>") == [re.sub("<[^>]*>", "", source)]


def test_a_placeholder_between_tags_keeps_the_space_that_is_inside_of_them() -> None:
    """Books by LibreOffice have every stretch of a paragraph in a tag, with the space in it."""
    link = '<a href="mailto:a@b.org"><span>a@b.org</span></a>'
    source = f"<p><span>or write to </span>{link}<span> today.</span></p>"
    assert loud(source) == f"<p><span>OR WRITE TO </span>{link}<span> TODAY.</span></p>"
    source = f"<p><span>or write to </span>{link}<span>.</span></p>"
    assert texts(source) == ["or write to."]
    assert loud(source) == f"<p><span>OR WRITE TO </span>{link}<span>.</span></p>"
