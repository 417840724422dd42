"""Numbers and placeholders exchanged in a translation, only where that is safe."""

from hypothesis import given
from hypothesis import strategies as st

from weft.data.substitution import form_of, has_slots, substituted


def test_forms() -> None:
    assert form_of("Page 3 of 1,200") == form_of("Page 12 of 1.5")
    assert form_of("Page 3") != form_of("Page {0}")
    assert form_of("Hello %s") == form_of("Hello {name}")
    assert form_of("第3章") == form_of("第12章")
    # a number within a word is a part of the word
    assert form_of("3rd, SHA256") == "3rd, SHA256"
    assert has_slots("a 3")
    assert not has_slots("a3")


def test_what_is_safe_is_exchanged() -> None:
    for source, target, text, new, language in (
        ("Page 3 of 12.", "Seite 3 von 12.", "Page 5 of 12.", "Seite 5 von 12.", "de"),
        ("From 3 to 5", "De 3 à 5", "From 5 to 3", "De 5 à 3", "fr"),
        ("At 12:30", "Um 12:30", "At 9:45", "Um 9:45", "de"),
        ("Hi {0}, 4 %s", "Hallo {0}, 4 %s", "Hi {1}, 7 %s", "Hallo {1}, 7 %s", "de"),
        ("第3章", "Chapter 3", "第12章", "Chapter 12", "en"),
        ("3 files", "3個文件", "1 files", "1個文件", "zh"),
        ("3 files", "3 файла", "3 files", "3 файла", "ru"),
        ("24 files", "24 файла", "34 files", "34 файла", "ru"),
    ):
        assert substituted(source, target, text, language) == new, text


def test_what_may_depend_on_a_number_is_not_exchanged() -> None:
    for why, source, target, text, language in (
        ("twice in the source", "3 and 3", "3 und 4", "5 and 3", "de"),
        ("twice in the target", "3 apples", "3 Äpfel, 3", "5 apples", "de"),
        ("not in the target", "3 apples", "drei Äpfel", "5 apples", "de"),
        ("another form there", "1,500 m", "1.500 m", "2,500 m", "de"),
        ("other marks", "999 m", "999 m", "1,000 m", "de"),
        ("singular", "5 apples", "5 Äpfel", "1 apples", "de"),
        ("zero", "5 pommes", "5 pommes", "0 pommes", "fr"),
        ("few", "5 files", "5 файлов", "3 files", "ru"),
        ("as one", "25 files", "25 файлов", "31 files", "ru"),
        ("unknown language", "25 files", "25 x", "31 files", ""),
        ("unknown language", "25 files", "25 x", "31 files", "und"),
        ("article", "第7", "a 7", "第8", "en"),
        ("cut article", "il 7", "l'7", "il 8", "it"),
        ("ending", "in 5", "5:ssä", "in 6", "fi"),
        ("part of a word", "5", "5th", "6", "en"),
    ):
        assert substituted(source, target, text, language) is None, why


OTHER = {"12": "15", "24": "34", "{0}": "{1}", "%s": "{name}", "3.5": "4.25"}
PARTS = st.sampled_from([*OTHER, "cat", "a", "l'", "-", "第", "."])
LINES = st.lists(PARTS, max_size=8)


@given(LINES, LINES, st.lists(st.booleans(), min_size=8, max_size=8), st.text("derz"))
def test_what_was_exchanged_can_be_put_back(
    source: list[str], target: list[str], is_changed: list[bool], language: str
) -> None:
    old = " ".join(source)
    changes = zip(source, is_changed, strict=False)
    new = " ".join(OTHER.get(part, part) if yes else part for part, yes in changes)
    before = " ".join(target)
    assert substituted(old, before, old, language) == before
    found = substituted(old, before, new, language)
    if found is not None:
        assert form_of(found) == form_of(before)
        assert substituted(new, found, old, language) == before
