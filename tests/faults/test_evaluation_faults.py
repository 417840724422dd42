"""Row X2 of the fault table: bad input to evaluation ends in a clean error or a warning."""

import pytest
import sacrebleu

from weft.errors import DataError
from weft.evaluation.metrics import translation_scores

TEXT = ["The cat sat on the mat.", "It rains, but we go.", "Nobody knows why."]


@pytest.mark.parametrize(("hypotheses", "references"), [(2, 3), (3, 2), (0, 3), (3, 0)])
def test_x2_other_counts_are_an_error_with_both_counts(hypotheses, references):
    with pytest.raises(
        DataError, match=f"^{hypotheses} hypotheses and {references} references: .*"
    ) as error:
        translation_scores(TEXT[:hypotheses], TEXT[:references], "en")
    assert error.value.exit_code == 3
    assert "\n" not in str(error.value)


def test_x2_nothing_to_score_is_an_error():
    with pytest.raises(DataError, match="nothing to score"):
        translation_scores([], [], "en")


@pytest.mark.parametrize("name", ["hypotheses", "references"])
@pytest.mark.parametrize(
    "tokenised",
    [
        ["The cat sat on the mat .", "It rains , but we go .", "Nobody knows why ."],
        ["The c@@ at sat on the m@@ at.", "It rains, but we go.", "Nobody knows why."],
        ["▁The ▁cat ▁sat ▁on ▁the ▁mat.", "It rains, but we go.", "Nobody knows why."],
    ],
)
def test_x2_tokenised_text_is_scored_with_a_warning(name, tokenised, caplog):
    texts = {"hypotheses": TEXT, "references": TEXT} | {name: tokenised}
    (note,) = translation_scores(texts["hypotheses"], texts["references"], "en").notes
    assert note.startswith(f"the {name} look tokenised in ")
    assert translation_scores(TEXT, TEXT, "en").notes == ()
    assert not caplog.records


def test_x2_a_stray_mark_is_no_reason_to_warn():
    texts = TEXT * 20
    assert (
        translation_scores([*texts[:-1], "Nobody knows why ."], texts, "en").notes == ()
    )
    assert (
        translation_scores(
            ["It costs .5 euros ... or not."], ["It costs .5 euros ... or so."], "en"
        ).notes
        == ()
    )


def test_x2_empty_hypotheses_are_counted_and_scored_as_sacrebleu_does():
    hypotheses = [TEXT[0], "", " \t"]
    scores = translation_scores(hypotheses, TEXT, "en")
    assert scores.num_empty == 2
    assert "2 of 3 hypotheses are empty" in scores.notes
    assert scores.bleu == sacrebleu.corpus_bleu(hypotheses, [TEXT]).score
    nothing = translation_scores(["", "", ""], TEXT, "en")
    assert (nothing.bleu, nothing.chrf, nothing.num_empty) == (0, 0, 3)


def test_x2_odd_text_is_scored():
    for odd in ("\ud800", "\x00", "a\u2028b", "e" + "\u0301" * 10_000):
        assert 0 <= translation_scores([odd, "yes"], ["no", odd], "zh").bleu <= 100
