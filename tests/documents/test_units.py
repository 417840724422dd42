"""Units of a memory without their markup, as documents have their segments."""

from weft.documents.units import words_of_unit


def test_markup_is_taken_out_on_both_sides() -> None:
    for source, target, expected in (
        ("Hello {0}!", "Hallo {0}!", [("Hello!", "Hallo!")]),
        ("Click <b>here</b>", "<b>Hier</b> klicken", [("Click here", "Hier klicken")]),
        ("See {0} the cats", "看{0}貓 {1} 狗", [("See the cats", "看貓 狗")]),
        ("Tom &amp; Ann", "Tom &amp; Anna", [("Tom & Ann", "Tom & Anna")]),
        (
            "See :ref:`the part <x>`.",
            "Siehe :ref:`den Teil <x>`.",
            [("See the part.", "Siehe den Teil.")],
        ),
    ):
        assert words_of_unit(source, target) == expected


def test_what_has_none_or_does_not_go_together_is_left_out() -> None:
    assert words_of_unit("Plain text.", "Klartext.") == []
    assert words_of_unit("{0}", "{0}") == []
    assert words_of_unit("Hello {0}", "{0}") == []
