"""Scores of sums: sacreBLEU's own, whole and with a row left out; ratios by hand."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from weft.evaluation.summed import (
    bleu_of_sums,
    bleu_rows,
    chrf_of_sums,
    chrf_rows,
    ratio_of_sums,
)

REFERENCES = [
    "Die Katze sieht den großen Hund.",
    "Ein Mann steht auf der Straße und liest eine Zeitung.",
    "Ja.",
    "Zwei Kinder spielen im Garten hinter dem Haus.",
]
# exact, partly right, with nothing right, empty
WRITTEN = [
    ["Die Katze sieht den großen Hund.", "Ein Mann liest die Zeitung.", "Nein!", ""],
    [
        "Katze sieht Hund",
        "Ein Mann steht auf der Straße.",
        "Ja.",
        "Zwei Kinder im Haus",
    ],
    ["x", "y", "z", "w"],
    ["Die x", "y", "z", "w"],
]


@pytest.mark.parametrize("written", WRITTEN)
def test_translations_as_sacrebleu_scores_them(
    written: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    bleu, chrf = bleu_rows(written, REFERENCES, "de"), chrf_rows(written, REFERENCES)
    assert (bleu.shape, chrf.shape) == ((4, 10), (4, 18))
    assert caplog.messages == []
    left_out = [None, *range(4)]
    kept = [[row for row in range(4) if row != out] for out in left_out]
    of_bleu = bleu_of_sums(np.stack([bleu[rows].sum(0) for rows in kept]))
    of_chrf = chrf_of_sums(np.stack([chrf[rows].sum(0) for rows in kept]))
    for place, rows in enumerate(kept):
        texts = [written[row] for row in rows]
        wanted = [[REFERENCES[row] for row in rows]]
        assert of_bleu[place] == pytest.approx(BLEU().corpus_score(texts, wanted).score)
        assert of_chrf[place] == pytest.approx(CHRF().corpus_score(texts, wanted).score)


def test_chinese_is_counted_by_its_characters() -> None:
    rows = bleu_rows(["我想喝茶。"], ["我想喝水。"], "zh")
    assert rows[0].tolist() == [4, 2, 1, 0, 5, 4, 3, 2, 5, 5]


def test_ratios_by_hand() -> None:
    assert ratio_of_sums(np.array([[3.0, 4.0], [1.0, 8.0]])).tolist() == [0.75, 0.125]
