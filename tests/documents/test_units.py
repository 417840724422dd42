"""Units of a memory without their markup, as documents have their segments; and with it, where the
document has the same.
"""

import pytest

from weft.documents.document import Translated
from weft.documents.driver import translate_document
from weft.documents.formats.programs.restructured import read_restructured
from weft.documents.formats.text.messages import read_message
from weft.documents.formats.web.html import read_html
from weft.documents.kept import read_by
from weft.documents.standing import as_it_stood
from weft.documents.units import parts_for, words_of_unit

FORMS = ("``a",)


def test_markup_is_taken_out_on_both_sides() -> None:
    for source, target, expected in (
        ("Hello {0}!", "Hallo {0}!", ("Hello!", "Hallo!")),
        ("Click <b>here</b>", "<b>Hier</b> klicken", ("Click here", "Hier klicken")),
        ("See {0} the cats", "看{0}貓 {1} 狗", ("See the cats", "看貓 狗")),
        ("Tom &amp; Ann", "Tom &amp; Anna", ("Tom & Ann", "Tom & Anna")),
        ("A *red* door", "Eine *rote* Tür", ("A red door", "Eine rote Tür")),
        ("See :ref:`p <x>`.", "Siehe :ref:`q <x>`.", ("See p.", "Siehe q.")),
    ):
        parts = words_of_unit(source, target)
        assert expected in [(part.source, part.target) for part in parts], source
        (part,) = [part for part in parts if part.source == expected[0]]
        assert (part.raw_source, part.raw_target) == (source, target)


def test_what_a_model_reads_stays_in_the_words() -> None:
    source = "Use *the* ``x`` now"
    target = "Nimm *das* ``x`` jetzt"
    for forms, expected in (
        ((), ("Use the now", "Nimm das jetzt")),
        (FORMS, ("Use the ``x`` now", "Nimm das ``x`` jetzt")),
    ):
        parts = parts_for(forms)(source, target)
        assert expected in [(part.source, part.target) for part in parts]
        assert {(part.raw_source, part.raw_target) for part in parts} == {
            (source, target)
        }
    # several models of a pair know different forms
    both = parts_for((), FORMS)(source, target)
    assert {"Use the now", "Use the ``x`` now"} <= {part.source for part in both}
    # a unit that is its own text says still how it stands
    parts = parts_for(FORMS)("Use ``x``", "Nimm ``x``")
    assert ("Use ``x``", "Nimm ``x``") in [
        (part.source, part.raw_target) for part in parts
    ]


def test_what_has_none_or_does_not_go_together_is_left_out() -> None:
    assert words_of_unit("Plain text.", "Klartext.") == []
    assert words_of_unit("{0}", "{0}") == []
    assert words_of_unit("Hello {0}", "{0}") == []


@pytest.mark.parametrize(
    ("read", "source", "target", "kept"),
    [
        (read_message, "Hi {0} and {1}!", "{1} und {0}: hallo!", True),
        (read_message, "Hi {0} and {0}!", "{0} und {0}: hallo!", True),
        (read_html, "A <b>cat</b>", "Eine <b>Katze</b>", True),
        (read_restructured, "In :ref:`this`, {0}", "{0} in :ref:`this`", True),
        # a placeholder less, one more, another one
        (read_message, "Hi {0} and {1}!", "{1}: hallo!", False),
        (read_message, "Hi {0}!", "{0}, {1}: hallo!", False),
        (read_message, "Hi {0}!", "{1}: hallo!", False),
        # what the document would have to escape
        (read_html, "A <b>cat</b>", "Eine <b>Katze</b> & ein Hund", False),
        # without markup it is written as any text
        (read_message, "A cat", "Eine Katze", False),
    ],
)
def test_a_target_stands_as_it_stood_where_it_has_the_same_markup(
    read, source: str, target: str, kept: bool
) -> None:  # type: ignore[no-untyped-def]
    (segment,) = read(source).segments
    found = as_it_stood(segment, {source: target})
    assert found == (target if kept else None)
    assert as_it_stood(segment, {f"{source} ": target}) is None


def test_a_target_stands_as_it_stood_with_what_the_model_reads() -> None:
    source = "Use ``x``"
    (segment,) = read_by(read_restructured(source), FORMS).segments
    assert segment.text == source
    for target, kept in (
        ("``x`` nimm", True),
        ("``y`` nimm", False),
        ("nimm", False),
        ("*nimm* ``x``", False),
    ):
        found = as_it_stood(segment, {source: target})
        assert found == (target if kept else None)


def test_a_document_takes_the_target_with_its_markup() -> None:
    document = read_message("Hi {0} and {1}!")

    def translate(texts: list[str]) -> list[Translated]:
        stands = {"Hi {0} and {1}!": "{1} und {0}: hallo!"}
        return [Translated("hallo", stands=stands) for _ in texts]

    assert translate_document(document, translate) == "{1} und {0}: hallo!"
