"""The table of a sweep: its arithmetic by hand, in each form; what stands below it."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from weft.config import ClassificationRecipe, TranslationRecipe
from weft.errors import UsageError
from weft.evaluation.seeds import Component, of_seeds, p_of
from weft.sweep.form import Form
from weft.sweep.forms import formed
from weft.sweep.run import Outcome, Run
from weft.sweep.table import table_of

Pair = tuple[Run, Outcome]
MACHINE = {"device": "cpu", "precision": "float32", "kernels": "native", "threads": 1}


def done(text: str, row: str, seed: int, bleu: float, **more: Any) -> Pair:
    facts: dict[str, Any] = {
        "scores": {"dev": {"bleu": bleu, "loss": 2.5}},
        "steps": 1000,
        "seconds": 90.0,
        "parameters": 12_345,
        "computed": MACHINE,
    }
    return made(text, row, seed), Outcome("done", **{**facts, **more})


def made(text: str, row: str, seed: int, recipe: Any = None) -> Run:
    folder = Path("out") / text / row / f"seed-{seed}"
    return Run(text, row, seed, folder, (), recipe or TranslationRecipe())


def two_rows() -> list[Pair]:
    """Means 21 and 24, deviations 1 and the square root of 2."""
    return [
        done("t", "base", 1, 20.0),
        done("t", "base", 2, 21.0, steps=2000),
        done("t", "base", 3, 22.0, seconds=180.0, steps=3000),
        done("t", "wide_2%", 1, 23.0, parameters=20_000),
        done("t", "wide_2%", 2, 25.0, parameters=20_000),
    ]


P = p_of(3, [of_seeds([20, 21, 22]), of_seeds([23, 25])])


def test_the_arithmetic() -> None:
    base, wide = table_of(two_rows(), "dev").lines
    assert (base.mean, base.deviation) == (21, 1)
    assert (base.difference, base.p) == (None, None)
    assert (base.minutes, base.steps, base.parameters) == (2, 2000, 12_345)
    assert (wide.mean, wide.difference) == (24, 3)
    assert wide.deviation == pytest.approx(2**0.5)
    assert wide.p == pytest.approx(P)
    assert 0.05 < P < 0.2


def test_as_text() -> None:
    assert formed(table_of(two_rows(), "dev"), Form.TEXT).split("\n") == [
        "row       BLEU on dev  difference      p  minutes  steps  parameters  seeds",
        "base     21.00 ± 1.00                         2.0  2,000      12,345      3",
        f"wide_2%  24.00 ± 1.41       +3.00  {P:.3f}      1.5  1,000      20,000      2",
        "mean ± standard deviation over seeds; difference: to the first row; p: over seeds",
        "",
    ]


def test_as_csv() -> None:
    written = formed(table_of(two_rows(), "dev"), Form.CSV)
    head, base, wide = csv.reader(io.StringIO(written))
    assert dict(zip(head, base, strict=True)) == {
        "text": "t",
        "row": "base",
        "on": "dev",
        "score": "bleu",
        "seeds": "3",
        "runs": "3",
        "mean": "21",
        "deviation": "1",
        "difference": "",
        "p": "",
        "minutes": "2",
        "steps": "2000",
        "parameters": "12345",
    }
    row = dict(zip(head, wide, strict=True))
    assert (row["deviation"], row["p"]) == ("1.41421", f"{P:.6g}")


def test_as_markdown() -> None:
    assert formed(table_of(two_rows(), "dev"), Form.MARKDOWN).split("\n")[:4] == [
        "| row | BLEU on dev | difference | p | minutes | steps | parameters | seeds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| base | 21.00 ± 1.00 |  |  | 2.0 | 2,000 | 12,345 | 3 |",
        f"| wide_2% | 24.00 ± 1.41 | +3.00 | {P:.3f} | 1.5 | 1,000 | 20,000 | 2 |",
    ]


def test_as_latex() -> None:
    assert formed(table_of(two_rows(), "dev"), Form.LATEX).split("\n") == [
        r"\begin{tabular}{lrrrrrrr}",
        r"\hline",
        r"row & BLEU on dev & difference & p & minutes & steps & parameters & seeds \\",
        r"\hline",
        r"base & 21.00 $\pm$ 1.00 &  &  & 2.0 & 2,000 & 12,345 & 3 \\",
        rf"wide\_2\% & 24.00 $\pm$ 1.41 & $+$3.00 & {P:.3f} & 1.5 & 1,000 & 20,000 & 2 \\",
        r"\hline",
        r"\end{tabular}",
        "% mean ± standard deviation over seeds; difference: to the first row; p: over seeds",
        "",
    ]


def test_each_text_has_a_first_row_of_its_own() -> None:
    outcomes = [
        done("s", "a", 1, 10.0),
        done("s", "b", 1, 12.0),
        done("t", "a", 1, 30.0),
        done("t", "b", 1, 29.5),
    ]
    table = table_of(outcomes, "dev")
    assert [line.difference for line in table.lines] == [None, 2, None, -0.5]
    shown = " ".join(formed(table, Form.TEXT).split("\n")[4].split())
    assert shown == "t b 29.50 -0.50 1.5 1,000 12,345 1"
    assert "a single seed tells neither deviation nor p" in table.notes[-1]


def test_a_failed_run_is_named_and_is_in_no_mean() -> None:
    failed = Outcome("failed", "the loss is nan", 4)
    outcomes = [
        done("t", "base", 1, 20.0),
        (made("t", "base", 2), failed),
        (made("t", "wide", 1), failed),
        (made("t", "wide", 2), Outcome("new")),
    ]
    table = table_of(outcomes, "dev")
    base, wide = table.lines
    assert (base.mean, base.deviation) == (20, None)
    assert (wide.mean, wide.difference) == (None, None)
    assert table.notes[:3] == (
        "failed: t/base/seed-2: the loss is nan",
        "failed: t/wide/seed-1: the loss is nan",
        "1 of 4 runs are not finished",
    )
    shown = formed(table, Form.TEXT).split("\n")
    assert shown[1].split()[-3:] == ["1", "of", "2"]
    assert shown[2].split() == ["wide", "–", "–", "–", "–", "0", "of", "2"]


def test_the_rows_of_the_text_are_a_part_of_the_variance() -> None:
    asked: list[tuple[list[str], list[str]]] = []

    def of_rows(first: Any, second: Any) -> Component:
        asked.append(([run.name for run in first], [run.name for run in second]))
        return Component(2.0, 99)

    table = table_of(two_rows(), "dev", of_rows=of_rows)
    _, wide = table.lines
    parts = [of_seeds([20, 21, 22]), of_seeds([23, 25]), Component(2.0, 99)]
    assert wide.p == pytest.approx(p_of(3, parts))
    assert [[len(one) for one in pair] for pair in asked] == [[3, 2]]
    assert "p: over seeds and the rows of dev" in formed(table, Form.TEXT)


def test_scores_that_are_better_when_lower_and_scores_that_are_not_there() -> None:
    table = table_of(two_rows(), "dev", "loss")
    assert [line.mean for line in table.lines] == [2.5, 2.5]
    assert table.lines[1].p == 1
    assert "lower is better" in formed(table, Form.TEXT)
    with pytest.raises(UsageError, match="--score f1: the runs' scores on dev are"):
        table_of(two_rows(), "dev", "f1")
    lacking = table_of(two_rows(), "test")
    assert lacking.lines[0].mean is None
    assert "no run has scores on test" in lacking.notes[0]


def test_the_usual_score_is_that_of_the_task() -> None:
    run = made("t", "a", 1, ClassificationRecipe())
    outcome = Outcome("done", scores={"dev": {"accuracy": 0.9}}, parameters=1, steps=1)
    (line,) = table_of([(run, outcome)], "dev").lines
    assert (line.score, line.mean) == ("accuracy", 0.9)


def test_runs_that_computed_otherwise_are_told() -> None:
    outcomes = two_rows()
    outcomes[1] = done(
        "t", "base", 2, 21.0, computed={**MACHINE, "precision": "bfloat16"}
    )
    (note,) = table_of(outcomes, "dev").notes
    assert "precision bfloat16, kernels native, threads 1: t/base/seed-2" in note


def test_scores_on_different_texts_are_not_compared() -> None:
    outcomes = two_rows()
    outcomes[-1] = done("t", "wide_2%", 2, 25.0, scored_on={"dev": "another"})
    table = table_of(outcomes, "dev")
    assert (table.lines[1].mean, table.lines[1].difference) == (24, None)
    assert table.notes[0].startswith("t: not all runs have the same dev text")
