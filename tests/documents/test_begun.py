"""Translations that a person has begun: what they wrote stays, the rest has the other items."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.documents.begun import begin
from weft.documents.document import Segment, Translated
from weft.documents.formats.text.plain import read_plain
from weft.documents.kept import read_by
from weft.documents.writing import write_begun

TEXT = "Hello {name}, how <b>are you</b> today?"
WHOLE = "Hallo, wie geht es dir heute?"
# how to geht, are to geht, you to dir, today to heute
LINKS = [(0, 6, 0, 6), (7, 10, 7, 10), (11, 14, 11, 15), (15, 18, 19, 22)]
LINKS += [(19, 25, 23, 29)]


def segment_of(text: str = TEXT) -> Segment:
    (segment,) = read_plain(text).segments
    return segment


@pytest.mark.parametrize(
    ("prefix", "plain", "rest"),
    [
        ("", "", ["{name}", "<b>", "</b>"]),
        ("Hallo {name}, wie", "Hallo, wie", ["<b>", "</b>"]),
        ("Hallo {name} ", "Hallo ", ["<b>", "</b>"]),
        ("Hallo, wie <b>", "Hallo, wie ", ["{name}", "</b>"]),
        ("Hallo, wie <b>es</b> geht", "Hallo, wie es geht", ["{name}"]),
        ("Hallo {name}<b>es</b> da", "Hallo es da", []),
        ("{name} <b>Wie", "Wie", ["</b>"]),
        ("Hallo {other} {name} {name}", "Hallo {other} {name}", ["<b>", "</b>"]),
    ],
)
def test_what_is_there_is_taken_out_and_the_rest_is_to_come(
    prefix: str, plain: str, rest: list[str]
) -> None:
    begun = begin(segment_of(), prefix)
    assert [item.raw for item in begun.segment.items] == rest
    assert begun.text == plain


@pytest.mark.parametrize(
    ("prefix", "written"),
    [
        ("", "Hallo {name}, wie <b>geht es dir</b> heute?"),
        ("Hallo {name}, w", "Hallo {name}, wie <b>geht es dir</b> heute?"),
        # nothing goes into what is there, nor into the word that is half there
        ("Hallo, wie geht es d", "Hallo, wie geht es dir {name} <b>heute</b>?"),
        ("Hallo, wie <b>geht ", "Hallo, wie <b>geht {name} es dir</b> heute?"),
    ],
)
def test_the_rest_goes_where_its_words_went_but_not_before(
    prefix: str, written: str
) -> None:
    begun = begin(segment_of(), prefix)
    assert write_begun(begun, Translated(WHOLE, LINKS)) == written
    assert written.startswith(prefix)


def test_what_the_model_reads_stands_where_it_writes_it() -> None:
    (segment,) = read_by(read_plain("Use {x} with {y} now"), ("{a",)).segments
    begun = begin(segment, "Mit {y} ")
    assert begun.text == "Mit {y} "
    found = write_begun(begun, Translated("Mit {y} nimm {y} jetzt"))
    assert found.startswith("Mit {y} ")
    assert (found.count("{x}"), found.count("{y}")) == (1, 1)


words = st.lists(st.sampled_from(["{0}", "<b>", "</b>", "<i>", "</i>", "a", "b,", "c"]))


@given(words, words, st.integers(0, 20))
def test_whatever_is_begun_each_item_stands_once(
    source: list[str], target: list[str], place: int
) -> None:
    plain = " ".join(word for word in target if word[0] not in "{<")
    for segment in read_plain(" ".join(source)).segments:
        prefix = " ".join(target)[:place]
        begun = begin(segment, prefix)
        found = write_begun(begun, Translated(begun.text + plain))
        assert found.startswith(prefix)
        for raw in {item.raw for item in segment.items}:
            # one may stand in another: {0} in <b> {0} </b>
            own = sum(item.raw.count(raw) for item in segment.items)
            assert max(1, prefix.count(raw)) <= found.count(raw)
            assert found.count(raw) <= max(own, prefix.count(raw))
