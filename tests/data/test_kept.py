"""Forms of what a translation has as its source does."""

import pytest

from weft.data.kept import bare, form_of, learn_forms


@pytest.mark.parametrize(
    ("run", "form"),
    [
        ("``x``", "``a"),
        (":class:`list`", ":a:`a"),
        ("%1", "%0"),
        ("%s", "%a"),
        ("{0}", "{0"),
        ("#", "#"),
        ("list", ""),
        (":ref:`a b`", ":a:`a"),
        ("``a // b``", "``a"),
        ("``-``", "``a"),
        ("{ a }", ""),
        ("https://x.org", "://"),
        ("", ""),
    ],
)
def test_a_form_is_the_signs_and_what_follows(run: str, form: str) -> None:
    assert form_of(run) == form


def test_marks_of_the_sentence_are_left_out() -> None:
    assert bare("(``x``),") == "``x``"
    assert bare(":func:`y`.") == ":func:`y`"


def test_a_form_is_known_that_stands_on_both_sides_nearly_always() -> None:
    src = [f"press %{n} now" for n in range(300)]
    tgt = [f"jetzt %{n} drücken" for n in range(300)]
    assert learn_forms(src, tgt) == ("%0",)
    # one in five of them is lost
    lost = [text.replace("%", "") if n % 5 == 0 else text for n, text in enumerate(tgt)]
    assert learn_forms(src, lost) == ()
    assert learn_forms(src[:100], tgt[:100]) == ()
