"""Numbers of a text are in its translation, whatever the model made of them."""

import re
from collections.abc import Sequence

from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document
from weft.documents.formats.programs.po import open_po
from weft.documents.formats.text.plain import read_plain
from weft.documents.formats.web.html import read_html
from weft.documents.writing import Mended, mend, write_segment

Link = tuple[int, int, int, int]


def written(
    source: str, translation: str, alignment: list[tuple[int, int, int, int]]
) -> str:
    (segment,) = read_html(source).segments
    return write_segment(segment, Translated(translation, alignment))


def test_numbers_that_are_there_stay_as_the_model_wrote_them() -> None:
    for translation in ("1.000 Leute um 12.30", "um 12:30 1 000 Leute 1000 1230"):
        found = written("1,000 people at 12:30", translation, [])
        assert found == translation or "1 000" in translation
    assert written("two of 12 people", "zwei von zwölf", []) == "zwei von zwölf"


def test_digits_in_a_name_are_no_number() -> None:
    assert written("the x86_64 and SHA512 of 1000km", "der Weg", []) == "der Weg"
    assert written("in 1984 there", "1984年", []) == "1984年"
    assert written("在1984年 there", "in time", []).count("1984") == 1


def test_a_changed_number_is_replaced() -> None:
    assert written("in 1984 and 2001", "in 1948 und 2001", []) == "in 1984 und 2001"
    alignment = [(0, 2, 0, 2), (3, 7, 3, 8), (8, 11, 9, 12), (12, 15, 13, 16)]
    found = written("in 1984 the <b>man</b>", "in 19845 der Tag", alignment)
    assert found == "in 1984 der <b>Tag</b>"


def test_a_lost_number_is_put_back_beside_its_neighbours() -> None:
    alignment = [(0, 3, 0, 3), (4, 7, 4, 8), (13, 17, 9, 13)]
    assert written("The man 1234 runs", "Der Mann läuft", alignment) == (
        "Der Mann 1234 läuft"
    )
    found = written("The <i>man</i> {0} 1234 <b>runs</b>", "Der Mann läuft", [])
    assert found.count("1234") == found.count("{0}") == 1
    assert found.index("<b>") < found.index("</b>")
    assert found.index("<i>") < found.index("</i>")
    assert written("on 1999 and 2005", "", []) == "1999 2005"


def test_tags_keep_their_partners_beside_lost_numbers() -> None:
    source = "100 <b>a 200 <i>b</i> 300</b> c 400 <u>d</u>"
    found = written(source, "eins zwei drei vier", [])
    for number in ("100", "200", "300", "400"):
        assert found.count(number) == 1
    tags = [part.split(">")[0] for part in found.split("<")[1:]]
    assert tags == ["b", "i", "/i", "/b", "u", "/u"]


def test_many_lost_numbers_take_no_long_time() -> None:
    source = "a " + "1234 x " * 5_000
    assert written(source, "nichts", []).count("1234") == 5_000


def test_the_parts_of_a_telephone_number_stay_together() -> None:
    alignment = [(0, 3, 0, 3), (4, 10, 4, 8), (11, 13, 9, 12)]
    found = written("The number is 030 123456.", "Die Zahl ist.", alignment)
    assert "030 123456" in found
    found = written("call <b>0171</b> 5552368 now", "ruf an", [])
    assert found.count("0171") == found.count("5552368") == 1


def mended(source: str, translation: str, alignment: Sequence[Link] = ()) -> Mended:
    (segment,) = read_html(source).segments
    languages = ("en", "de")
    return mend(segment, Translated(translation, alignment, languages=languages))


def test_what_was_put_back_is_said() -> None:
    found = mended("the version needs 512 MB", "die Version braucht 52 MB")
    assert found.text() == "die Version braucht 512 MB"
    assert list(found.numbers.remarks()) == ["A number was put back: 512."]
    found = mended("in 1984 and 2001 there", "dort")
    assert list(found.numbers.remarks()) == ["Numbers were put back: 1984 and 2001."]
    found = mended("the room has 45 chairs", "das Zimmer hat Stühle")
    assert found.numbers.put_back == ("45",)
    assert not mended("the two of 12", "die zwei von zwölf").numbers


def test_a_number_for_no_reason_is_said_and_stays() -> None:
    found = mended("it needs 512 MB", "es braucht 512 52 MB")
    assert found.text() == "es braucht 512 52 MB"
    (said,) = found.numbers.remarks()
    assert said == "Numbers differ: the translation has 52, the source does not."


def test_a_changed_number_is_found_by_the_alignment() -> None:
    alignment = [(0, 2, 0, 2), (7, 9, 6, 8)]
    found = mended("45 and 38 men or 1984", "54 und 83 Leute", alignment)
    assert found.text().replace("1984 ", "") == "45 und 38 Leute"
    assert found.text().count("1984") == 1


def test_plain_text_stays_as_the_model_wrote_it_and_is_doubted() -> None:
    (segment,) = read_plain("it needs 512 MB").segments
    found = mend(segment, Translated("es braucht 52 MB"))
    assert found.text() == "es braucht 52 MB"
    (said,) = found.doubt.remarks
    assert said == "Numbers differ: the source has 512, the translation 52."


def test_a_telephone_number_that_was_torn_apart_is_put_together() -> None:
    for number in ("030 123456", "+49 30 123456", "0171 / 5552368"):
        torn = number.replace("/", "oder").replace(" ", " halb ")
        found = mended(f"Call us at {number} now.", f"Ruf uns um {torn} sieben an.")
        assert number in found.text()
        assert found.numbers.put_back == (number,)
        assert re.findall("[+0-9]+", found.text()) == re.findall("[+0-9]+", number)
    found = mended("Call 030 123456.", "Ruf 030/123456 an.")
    assert not found.numbers


def test_a_link_to_a_telephone_keeps_its_number() -> None:
    source = 'Call <a href="tel:+4930123456">030 123456</a> now.'
    (segment,) = read_html(source).segments
    assert "123456" not in segment.text
    found = written(source, "Ruf jetzt an.", [])
    assert '<a href="tel:+4930123456">030 123456</a>' in found
    (segment,) = read_html('Call <a href="tel:+49">the office</a> now.').segments
    assert segment.text == "Call the office now."


def test_the_remark_is_the_comment_of_the_format() -> None:
    content = b'msgid ""\nmsgstr ""\n\nmsgid "needs 512 MB"\nmsgstr ""\n'
    document = open_po(content, Reading("a.po", "en", "de"))
    found = translate_document(document, lambda texts: [Translated("braucht 52 MB")])
    assert ": A number was put back: 512." in found.decode()
    assert "#, fuzzy" in found.decode()


def test_a_translation_is_shown_as_it_is_written() -> None:
    source = "The <b>file</b> {0} has 512 <code>x&lt;y</code> and 1984 bytes."
    (segment,) = read_html(source).segments
    text = "Die Datei hat 52 und Bytes."
    words = [(place.start(), place.end()) for place in re.finditer(r"\w+", text)]
    number = segment.text.index("512")
    links = [(number, number + 3, 14, 16)]
    shown = mend(segment, Translated(text, links, words=words)).shown()
    assert "<" not in shown.text.replace("x<y", "")
    assert {"{0}", "512", "x<y", "1984"} <= set(shown.text.rstrip(".").split())
    named = [shown.text[start:end] for start, end in shown.words]
    assert named == ["Die", "Datei", "hat", "512", "und", "Bytes"]
