"""Values: what is decoded is encoded again, and what is unchanged stays as it stands."""

from collections.abc import Sequence
from time import process_time

from document_samples import upper  # tools/
from weft.documents.document import Doubt, Translated, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.text.messages import choices_in, read_message
from weft.documents.formats.text.plain import read_plain
from weft.documents.formats.text.values import Collector, Value, ValuesDocument, joined


def doubled(text: str, doubts: Sequence[Doubt]) -> str:
    said = "".join(remark for doubt in doubts for remark in doubt.remarks)
    return f"{text}{said}".replace("'", "''")


def document(*texts: str) -> ValuesDocument:
    found = Collector()
    for text in texts:
        found.keep("'")
        found.add(text, read_plain(text.replace("''", "'")), doubled)
        found.keep("'\n")
    return found.document()


def test_a_value_is_decoded_and_encoded() -> None:
    found = document("it''s me", "5", "a\nb")
    assert [segment.text for segment in found.segments] == ["it's me", "a", "b"]
    assert [found.place(number) for number in range(3)] == [
        "line 1",
        "line 3",
        "line 3",
    ]
    assert unchanged(found) == b"'it''s me'\n'5'\n'a\nb'\n"
    loud = translate_document(found, lambda texts: list(map(upper, texts)))
    assert loud == b"'IT''S ME'\n'5'\n'A\nB'\n"


def test_an_unchanged_value_stays_as_it_is_written() -> None:
    assert unchanged(document("it's me")) == b"'it's me'\n"
    assert document("it's", "us").write([Written("it's"), Written("US")]) == b"'it's'\n'US'\n"  # fmt: skip


def test_doubts_reach_what_encodes() -> None:
    doubt = Doubt((" (doubted)",))
    new = translate_document(document("me"), lambda _: [Translated("x", doubt=doubt)])
    assert new == b"'x (doubted)'\n"


def test_an_empty_translation_leaves_the_text_and_line_breaks_are_spaces() -> None:
    assert document("a", "b").write([Written(" "), Written("c\n\nd")]) == b"'a'\n'c d'\n"  # fmt: skip


def test_values_inside_stand_in_their_places() -> None:
    text = "a {n, select, x {b} other {b}} c {n, select, x {b} other {b}}"
    value = Value(text, read_message(text), doubled, inside=tuple(choices_in(text)))
    assert [segment.text for segment in value.segments] == ["a c", "b", "b", "b", "b"]
    written = [Written(s.source.replace("a", "A")) for s in value.segments[:1]]
    written += [Written(f"b{number}") for number in range(4)]
    assert value.write(written) == (
        "A {n, select, x {b0} other {b1}} c {n, select, x {b2} other {b3}}"
    )
    assert value.write([Written(s.source) for s in value.segments]) == text


def test_documents_are_joined_with_what_is_between() -> None:
    found = joined([read_plain(" a "), read_plain("5"), read_plain("b")], "|")
    assert [segment.text for segment in found.segments] == ["a", "b"]
    assert found.write([Written("x"), Written("y")]) == " x |5|y"
    assert joined([]).write([]) == ""


def test_places_of_many_segments_are_found_at_once() -> None:
    found = document(*["a"] * 20_000)
    begin = process_time()
    assert found.place(19_999) == "line 20000"
    assert len({found.place(number) for number in range(20_000)}) == 20_000
    assert process_time() - begin < 5
