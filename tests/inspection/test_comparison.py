"""How two models' answers are shown beside each other."""

from weft.inspection.comparison import Difference


def test_an_empty_answer_is_shown_as_one() -> None:
    lines = Difference(
        "test.en:7", "A dog.", "Ein Hund.", "Ein Hund.", "", -100.0, "chrF"
    ).lines()
    assert lines == [
        "test.en:7  -100.00 chrF",
        "  text   A dog.",
        "  wanted Ein Hund.",
        "  first  Ein Hund.",
        "  second (empty)",
    ]


def test_what_has_no_right_answer_shows_none() -> None:
    lines = Difference(
        "a.txt:1", "Text.", "", "2.1 bits a byte", "2.0 bits a byte", 0.1, "bits a byte"
    ).lines()
    assert [line.split()[0] for line in lines[1:]] == ["text", "first", "second"]
