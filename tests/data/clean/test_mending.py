"""What is mended is what was meant, and the check finds nothing of its kind in it any more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data.check.writing import MARKUP, first_misread, unseen_in
from weft.data.clean.mending import MENDS, has_lost, mend

ALL = tuple(MENDS)
MEANT = [
    ("CafÃ© fÃ¼r zwei", "Café für zwei", ["misread-encoding"]),
    ("CafÃƒÂ©", "Café", ["misread-encoding"]),  # twice over
    ("It is<br />new. <b>Really</b>, H<sub>2</sub>O", None, ["markup"]),
    (
        "Tom &amp; Jerry &lt;3 &#233;t&eacute;&nbsp;!",
        "Tom & Jerry <3 été !",
        ["markup"],
    ),
    ("&amp;lt;br&amp;gt;a&amp;amp;b", "a&b", ["markup"]),
    ("AT amp; T, quot;so quot;", 'AT & T, "so "', ["markup"]),
    ("zero\u200bwidth, bell\x07, \ufeffmark", None, ["control-characters"]),
    ("It\x92s \x93new\x94", "It\u2019s \u201cnew\u201d", ["control-characters"]),
    ("one\u2028two\rthree", "one two three", ["control-characters"]),
    ("two  spaces\tand \u00a0more", "two spaces and more", ["spaces"]),
    ("\u3000\u5168\u89d2", "\u5168\u89d2", ["spaces"]),
]
EXPECTED = {
    2: "It is new. Really, H2O",
    6: "zerowidth, bell, mark",
}


@pytest.mark.parametrize("case", range(len(MEANT)))
def test_texts_become_what_was_meant(case: int) -> None:
    text, meant, rules = MEANT[case]
    mended, changed = mend(text, ALL)
    assert mended == (meant or EXPECTED[case])
    assert list(changed) == rules


@pytest.mark.parametrize(
    "text",
    [
        "Ein Satz über Grüße: 5 < 6, R&D; a_b@c.de",
        "L'été, dit-il « là » à 10\u00a0000 m",
        "东京 の 天気",
        "ภาษา\u200bไทย",  # divided by it
    ],
)
def test_sound_text_stays(text: str) -> None:
    assert mend(text, ALL) == (text, ())


def test_a_rule_that_is_left_out_changes_nothing() -> None:
    assert mend("a<br>b  c", ("spaces",)) == ("a<br>b c", ("spaces",))


def test_letters_that_are_lost_stay_marked() -> None:
    mended, _ = mend("caf\ufffd\x07", ALL)
    assert mended == "caf\ufffd"
    assert has_lost(mended)


SIGNS = [
    "Ã",
    "©",
    "Â",
    "&",
    "amp;",
    "lt;",
    "#233;",
    "<",
    "br",
    ">",
    ";",
    "é",
    "a",
    "&nope;",
]
UNSEEN = [" ", "\t", "\x92", "\x81", "\u200b", "\u2028", "\r", "\ufffd"]
PIECES = st.sampled_from([*SIGNS, *UNSEEN])


@given(st.lists(PIECES, max_size=12).map("".join))
def test_mending_again_changes_nothing(text: str) -> None:
    mended, _ = mend(text.strip(), ALL)
    assert mend(mended, ALL) == (mended, ())
    assert MARKUP.search(mended) is None
    assert first_misread(mended) is None
    assert unseen_in(mended).sub("", mended).replace("\ufffd", "") == mended.replace(
        "\ufffd", ""
    )
