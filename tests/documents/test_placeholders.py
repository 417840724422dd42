"""What is found as a placeholder or an address, and what is not."""

from weft.documents.placeholders import find_kept


def found(text: str) -> list[str]:
    return [text[start:stop] for start, stop in find_kept(text)]


def test_placeholders_of_many_languages_and_programs() -> None:
    for one in (
        *("{}", "{0}", "{name}", "{user.name!r}", "{price:.2f}", "{{ x }}", "{% if x %}", "${HOME}", "#{x}", "%{x}"),
        *("%s", "%d", "%1$s", "%05.2f", "%lld", "%@", "%(name)s", "%PATH%", "$name", "$t(key)", "[X12X]", "`a b`"),
        *("%d%%", "$NAME$", ":smile:", "@ann", "@ann@b.example", "#weft", "me.you+x@example.co.uk", "&#123456789;"),
        "``a b``",
        *("https://a.org/b?c=d&amp;e#f", "http://a.org/x_(y)", "www.a.org", "ftp://a.org/"),
        "{n, plural, =0 {no {x}} one {# a} other {# b}}",
        "{g, select, male {he} other {they}}",
        "{0, number, percent}",
    ):  # fmt: skip
        assert found(one) == [one]
        assert found(f"see {one} now") == [one], one


def test_words_numbers_and_marks_are_not() -> None:
    for text in (
        *("100% der Leute", "5 % off", "a 50%discount", "3 > 2", "12:30:45", "#1", "9:00: start", "a@b", "50$"),
        *("rock&roll", "&#39;", "&amp;", "and/or", "{see below}", "{", "}{", "a: b: c", "$5", "ein #", "x_y"),
    ):  # fmt: skip
        assert found(text) == [], text


def test_an_address_ends_before_the_marks_of_its_sentence() -> None:
    assert found("see https://a.org/b. Then (www.a.org), too") == [
        *("https://a.org/b", "www.a.org"),
    ]
    assert found("&quot;https://a.org&quot;") == ["https://a.org"]
    assert found("请看https://a.org/b。谢谢") == []
    assert found("请看 https://a.org/b。谢谢") == ["https://a.org/b"]


def test_placeholders_with_marks_between_are_one() -> None:
    assert found("{0}/{1} and %s:%d, {a}{b}") == ["{0}/{1}", "%s:%d", "{a}{b}"]
    assert found("{0} {1}") == ["{0}", "{1}"]


def test_a_message_with_a_choice_that_never_ends_is_text() -> None:
    assert found("{n, plural, one {# a}") == []
    assert found("{0} {n, plural, one {# a}") == ["{0}"]
