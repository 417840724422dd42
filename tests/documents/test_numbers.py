"""Numbers of a text are in its translation, whatever the model made of them."""

from weft.documents.document import Translated
from weft.documents.formats.web.html import read_html
from weft.documents.writing import write_segment


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
