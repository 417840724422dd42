"""The verdict on a translator, by planted outcomes: each rule, and what decides where two hold."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from weft.evaluation.metrics import translation_scores
from weft.kernels.machine import Machine
from weft.predict.prediction import Prediction
from weft.run.judging.judgement import DRAFT, NOT_JUDGED, NOT_YET, USABLE, Judgement
from weft.run.judging.translation import judge, judge_translator, outcomes
from weft.tasks.trainable_translation import TrainableTranslation

PLAIN = Machine("cpu", "float32", 1, "tests are small")
REFERENCE = "the dog sees a small red cat"
KINDS = {
    "right": REFERENCE,
    "one word": "The dog sees a big red cat",
    "half": "the dog finds one big red cat",
    "wrong": "no horses of any kind are here at all",
    "short": "the dog",
    "empty": " ",
}


def said(kind: str) -> Prediction:
    repeated, cut = kind == "repeated", kind == "cut"
    text = KINDS.get(kind, REFERENCE)
    return Prediction(
        text,
        -0.2,
        1,
        [],
        [-0.1, -0.3],
        repetition=repeated,
        source_cut=kind == "source cut",
        output_limit="decoding.max_len_ratio" if cut else None,
    )


def verdict_on(
    counts: dict[str, int], copies: str = "nothing alike", improves: bool = False
) -> Judgement:
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    some = [said(kind) for kind in kinds]
    references = [REFERENCE] * len(kinds)

    def bleu_of(texts: Sequence[str]) -> float:
        return translation_scores(texts, references, "en").bleu

    found = judge(kinds, some, references, [copies] * len(kinds), "en", bleu_of)
    return found.with_curve("rises" if improves else "", ["more text"])


def test_every_outcome_is_counted_once() -> None:
    kinds = ["right", "one word", "half", "wrong", "short", "empty", "repeated", "cut"]
    found = outcomes([said(kind) for kind in kinds], [REFERENCE] * len(kinds), "en")
    assert (
        found.near,
        found.half,
        found.short,
        found.empty,
        found.repeated,
        found.cut,
    ) == (2, 3, 1, 1, 1, 1)
    assert (found.broken, found.count) == (4, 8)


def test_a_translation_of_a_source_that_was_cut_is_judged_by_its_words() -> None:
    found = outcomes([said("source cut"), said("cut")], [REFERENCE] * 2, "en")
    assert (found.cut, found.near) == (1, 1)


@pytest.mark.parametrize(
    ("counts", "verdict", "why"),
    [
        (
            {"right": 15, "wrong": 15},
            USABLE,
            "15 of 30 dev sentences differ from the reference by a word or less",
        ),
        ({"one word": 15, "wrong": 15}, USABLE, "15 of 30 dev sentences differ"),
        (
            {"right": 14, "half": 16},
            DRAFT,
            "to be read and corrected; 14 of 30 dev sentences differ",
        ),
        (
            {"half": 15, "wrong": 15},
            DRAFT,
            "15 of 30 have at least half of their words right",
        ),
        (
            {"half": 14, "wrong": 16},
            NOT_YET,
            "only 14 of 30 have at least half of their words right",
        ),
        (
            {"right": 27, "repeated": 3},
            NOT_YET,
            "3 of 30 translations repeat themselves",
        ),
        ({"right": 28, "repeated": 2}, USABLE, "28 of 30"),
        (
            {"right": 27, "empty": 2, "cut": 1},
            NOT_YET,
            "2 of 30 translations are empty, 1 of 30 translations find no end",
        ),
        (
            {"right": 27, "short": 3},
            NOT_YET,
            "3 of 30 translations have less than half of the reference's words",
        ),
        ({"right": 19}, NOT_JUDGED, "dev has 19 sentences, too few to judge"),
    ],
)
def test_the_rules(counts: dict[str, int], verdict: str, why: str) -> None:
    found = verdict_on(counts)
    assert found.verdict == verdict
    assert why in found.says[0]


def test_copying_from_the_training_text_is_the_yardstick_where_little_is_right() -> (
    None
):
    mixed = {"half": 20, "wrong": 10}
    assert verdict_on(mixed).verdict == DRAFT
    found = verdict_on(mixed, copies=REFERENCE)
    assert (found.verdict, found.says[0]) == (
        NOT_YET,
        "copying the translation of the nearest training sentence does better",
    )
    assert "gives BLEU 100.0" in found.says[1]
    assert verdict_on({"right": 20, "wrong": 10}, copies=REFERENCE).verdict == USABLE


def test_what_is_said_beside_the_verdict() -> None:
    found = verdict_on({"half": 20, "wrong": 20}, improves=True)
    assert found.says[0].endswith("; the curve still rises: train it for longer")
    assert found.summary()[-1] == "what would help: more text"
    assert found.lines()[0].startswith("verdict: draft: to be read and corrected")
    assert [row["source"] for row in found.examples] == [
        "half",
        "half",
        "half",
        "wrong",
        "wrong",
    ]
    assert found.figures["half"] == 20
    assert found.low_confidence == pytest.approx(-0.2)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("我喜欢猫。", True),
        ("我喜欢狗。", True),
        ("你喜欢狗。", False),
        ("我喜 欢猫。", True),
    ],
)
def test_without_spaces_characters_count(text: str, near: bool) -> None:
    found = outcomes([Prediction(text, None, 1, [], [])], ["我喜欢猫。"], "zh")
    assert found.near == near


def test_a_short_reference_may_have_a_short_translation() -> None:
    one: Sequence[Prediction] = [Prediction("Yes", None, 1, [], [])]
    assert outcomes(one, ["Yes of course"], "en").short == 0
    assert outcomes(one, ["Yes of course today"], "en").short == 1


def test_copies_are_scored_in_the_form_of_the_references(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    decomposed: Callable[[int], str],
) -> None:
    task = TrainableTranslation.load(tiny_folder, PLAIN)
    dev = task.read([write_pairs(90)])
    scores = [
        judge_translator(task, task.read([train]), dev).figures["copy_bleu"]
        for train in (write_pairs(90), decomposed(90))
    ]
    assert scores[0] == scores[1] > 50
