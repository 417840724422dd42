"""A translation as a document takes it: nothing lost, and each doubt a sentence."""

import math
from dataclasses import replace

import pytest

from weft.predict.document import for_document
from weft.predict.prediction import Prediction
from weft.predict.terms import TermUse
from weft.predict.words import SourceWord, WordReport


def prediction(text: str, **marks: object) -> Prediction:
    return Prediction(text, -1.0, 1, [], [math.log(0.25), math.log(0.25)], **marks)  # type: ignore[arg-type]


def test_a_sound_translation_has_no_remarks() -> None:
    found = for_document("cat", prediction("Katze"))
    assert (found.text, found.doubt.remarks) == ("Katze", ())
    assert found.doubt.confidence == pytest.approx(0.25)


def test_what_is_not_answered_stays() -> None:
    found = for_document("cat", prediction(" ", empty=True))
    assert (found.text, found.alignment) == ("cat", ())
    assert "the source stands here" in found.doubt.remarks[0]
    assert for_document("", Prediction("", None, 0, [], [])).doubt.confidence is None


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ({"source_cut": True}, "too long"),
        ({"output_limit": "model.max_len"}, "was cut"),
        ({"repetition": True}, "again and again"),
        ({"empty": True}, "one of the sentences"),
        ({"short": True}, "shorter"),
        ({"unsure": True}, "less sure"),
        ({"unknown_words": ["w"] * 12}, "w, w and 2 more."),
    ],
)
def test_every_mark_is_a_remark(marks: dict[str, object], said: str) -> None:
    (remark,) = for_document("a cat", prediction("Katze", **marks)).doubt.remarks
    assert said in remark
    assert remark[0].isupper()
    assert remark.endswith(".")


def test_what_became_of_a_term_is_a_remark() -> None:
    used = TermUse("cat", 2, 5, ("Katze",), "Katze", "used", "t.tsv:1")
    lost = replace(used, used="", status="missing", reason="it is not there")
    uses = [used, lost]
    (remark,) = for_document("a cat", prediction("Hund", terms=uses)).doubt.remarks
    assert remark == "Term cat (t.tsv:1): missing; it is not there."


def test_words_become_an_alignment() -> None:
    sources = [SourceWord(1, "cat", 2, 5), SourceWord(0, "a", 0, 1)]
    words = [WordReport("Katze", 0, 5, -1.0, sources), WordReport(".", 5, 6, 0.0, [])]
    found = for_document("a cat", prediction("Katze.", words=words))
    assert found.alignment == [(2, 5, 0, 5), (0, 1, 0, 5)]
