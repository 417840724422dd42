"""The table of `weft inspect` in a terminal: what it says, and that it fits.

Widths are measured by `rich`, whose table of letters is its own.
"""

import re
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

import weft
from weft.console.tables import columns_of, fitted
from weft.inspection.look import inspect_text
from weft.inspection.several import Several, compare_models, inspect_sentences
from weft.inspection.summary import FLAT, MOST_ROWS, WHAT_IS_BROKEN, summary, summary_of
from weft.tasks.opening import load_task

# the token that stands there is not always the most probable one
HEAD = ["token", "p", "best other", "p", "written by", "all of source"]
WIDE = "Donaudampfschifffahrtsgesellschaftskapitän"
LETTERS = ["喝" * 40, WIDE * 2, "é" * 70, "กำ" * 30, "한국어" * 20, "a\u200bb" * 40]


def choice(piece: str, token: int, probability: float) -> dict[str, Any]:
    return {"piece": piece, "id": token, "probability": probability}


def translation(
    source: list[str], target: list[str], cross: Any = None, shares: Any = None
) -> dict[str, Any]:
    """Data of a translation, as far as the table reads them."""
    size = (2, 2, len(target), len(source))
    maps = np.full(size, 1 / len(source)) if cross is None else cross
    data = {
        "task": "translation",
        "text": " ".join(source),
        "translation": " ".join(target),
        "source": {"pieces": source},
        "target": {
            "pieces": target,
            "ids": list(range(10, 10 + len(target))),
            "probabilities": [0.5] * len(target),
            "alternatives": [
                [choice(piece, 10 + t, 0.5), choice("other", 99, 0.25)]
                for t, piece in enumerate(target)
            ],
        },
        "attention": {"cross": maps},
    }
    return data if shares is None else {**data, "shares": shares}


def test_the_sign_for_a_broken_letter_is_explained_where_it_stands() -> None:
    data = translation(["a", "<eos>"], ["x", "<eos>"])
    assert WHAT_IS_BROKEN not in summary_of(data)
    assert cell_len(WHAT_IS_BROKEN) <= 60
    broken = summary_of({**data, "translation": "x\ufffd"})
    assert broken == [broken[0], "x\ufffd", *summary_of(data)[2:], WHAT_IS_BROKEN]


def row_of(lines: list[str], first: str) -> list[str]:
    """The cells of the row that begins with a token, or label."""
    (row,) = [line for line in lines[3:] if line.split()[:1] == [first]]
    return row.split()


def one_head_on(place: int, queries: int, keys: int) -> Any:
    """Maps of which one head looks at one place, and all others at everything alike."""
    maps = np.full((2, 2, queries, keys), 1 / keys)
    maps[1, 0] = np.eye(keys)[place]
    return maps


def test_the_demo_says_which_word_wrote_each_character() -> None:
    model = weft.load(weft.DEMO)
    inspection = model.inspect("My sister is drinking tea in the kitchen.")
    lines = inspection.lines()
    assert lines[:2] == [inspection.text, inspection.translation]
    wrote = {"厨": "kitchen", "房": "kitchen", "喝": "drinking", "茶": "tea"}
    for token, word in wrote.items():
        cells = row_of(lines, token)
        assert cells[4] == word
        place = inspection.target.pieces.index(token)
        share = inspection.shares.source[place] / inspection.shares.logit[place]
        assert cells[5] == f"{share:.0%}"
        assert float(cells[1]) == pytest.approx(
            inspection.target.probabilities[place], abs=6e-4
        )
    assert max(map(cell_len, lines)) <= 60


def test_any_letters_fit_into_60_columns() -> None:
    for letters in LETTERS:
        lines = summary_of(translation([letters, "<eos>"], [letters, letters]))
        assert max(map(cell_len, lines)) <= 60
        assert any("…" in line for line in lines)
        assert 1 <= columns_of(fitted(letters, 7)) <= 7
    for letters in ("喝茶", "é", "tea", "한"):
        assert columns_of(letters) == cell_len(letters)
        assert fitted(letters, 4) == letters


def test_numbers_stand_under_each_other_whatever_the_letters() -> None:
    lines = summary_of(translation(["tea", "<eos>"], ["喝", "a", "eeee"]))
    rows = [line for line in lines if " 0.500 " in line]
    ends = [cell_len(row[: row.index(" 0.500")]) for row in rows]
    assert (len(rows), len(set(ends))) == (3, 1)


def test_even_looks_are_said_to_be_flat() -> None:
    lines = summary_of(translation(["▁tea", "<eos>"], ["x", "<eos>"]))
    assert row_of(lines, "x")[4] == FLAT
    assert any(line.startswith(f"{FLAT}: ") for line in lines)


def test_without_shares_the_word_that_was_looked_at_is_named() -> None:
    """Pieces of a word count together, and signs are words of their own."""
    pieces = ["▁drink", "ing", "▁tea", ".", "<eos>"]
    alive = one_head_on(1, 2, 5)
    lines = summary_of(translation(pieces, ["x", "y"], alive))
    assert row_of(lines, "x")[4] == "drinking"
    assert not any("source" in line for line in lines)
    lines = summary_of(translation(pieces, ["x", "y"], one_head_on(3, 2, 5)))
    assert row_of(lines, "x")[4] == "."
    lines = summary_of(translation(pieces, ["x", "y"], one_head_on(4, 2, 5)))
    assert row_of(lines, "x")[4] == "end"


def test_shares_are_believed_before_weights() -> None:
    carried = np.zeros((2, 2, 2, 3))
    carried[0, 1, 0, 2] = 3.0
    carried[0, 1, 1, 0] = 0.1  # too little
    shares = {
        "written": {"cross": carried},
        "logit": np.array([4.0, 5.0]),
        "source": np.array([3.0, -0.01]),
    }
    data = translation(["tea", "for", "two"], ["x", "y"], one_head_on(0, 2, 3), shares)
    lines = summary_of(data)
    assert re.split("  +", lines[3]) == HEAD
    assert row_of(lines, "x")[4:] == ["two", "75%"]
    assert row_of(lines, "y")[4:] == ["-", "0%"]


def test_signs_in_the_shares_are_explained_where_they_stand() -> None:
    carried = np.zeros((2, 2, 3, 2))
    carried[0, 0, :, 0] = [3.0, 0.0, 3.0]
    shares = {
        "written": {"cross": carried},
        "logit": np.array([4.0, 4.0, -1.0]),
        "source": np.array([3.0, -0.4, 0.5]),
    }
    data = translation(["tea", "two"], ["x", "y", "z"], shares=shares)
    data["attention"]["cross"][1, 0, :] = [1, 0]  # not flat
    lines = summary_of(data)
    assert row_of(lines, "y")[4:] == ["-", "-10%"]
    assert row_of(lines, "z")[4:] == ["tea", "-"]
    told = ("below 0%: ", "- under written by: ", "- under all of source: ")
    assert all(any(line.startswith(each) for line in lines) for each in told)
    assert max(map(cell_len, lines)) <= 60
    carried[0, 0, 1, 0] = 2.0
    shares |= {"logit": np.full(3, 4.0), "source": np.full(3, 3.0)}
    lines = summary_of(data)
    assert not any(line.startswith(told) for line in lines)
    assert any(line.startswith("all of source: ") for line in lines)


def test_what_is_hardly_probable_and_what_has_no_letters_is_said() -> None:
    data = translation(["tea", "<eos>"], ["▁", "\n", "<eos>"])
    data["target"]["probabilities"][0] = 0.0001
    lines = summary_of(data)
    assert row_of(lines, "␣")[1] == "<.001"
    assert row_of(lines, "↵")
    assert row_of(lines, "end")


def test_a_long_text_is_cut_and_said_to_be() -> None:
    target = [f"t{place}" for place in range(MOST_ROWS + 7)]
    lines = summary_of(translation(["tea", "<eos>"], target))
    assert "… and 7 more tokens" in lines
    assert not any(line.startswith(f"t{MOST_ROWS} ") for line in lines)


def test_a_language_model_names_what_it_looked_at_before_the_token() -> None:
    """The row of the token before it, and the start under its own name."""
    maps = np.zeros((1, 2, 4, 4))
    maps[0, :] = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]  # flat
    maps[0, 1, 2] = [0, 1, 0, 0]  # when c was foretold, a had been looked at
    data = {
        "task": "language-modelling",
        "text": "the text",
        "tokens": {
            "pieces": ["<eos>", "a", "b", "c"],
            "ids": [3, 7, 8, 9],
            "probabilities": [0.25, 0.5, 0.75],
            "alternatives": [[choice("z", 50, 0.25)]] * 3,
        },
        "next": [choice("d", 60, 0.625)],
        "attention": {"decoder": maps},
    }
    lines = ["", *summary_of(data)]
    assert re.split("  +", lines[3]) == [*HEAD[:4], "looked at"]
    assert row_of(lines, "a") == ["a", "0.250", "z", "0.250", "start"]
    assert row_of(lines, "b")[4] == FLAT
    assert row_of(lines, "c")[4] == "a"
    assert row_of(lines, "d") == ["d", "0.625"]


def test_a_classifier_names_labels_and_what_each_token_adds() -> None:
    data = {
        "task": "classification",
        "text": "so witty",
        "tokens": {"pieces": ["▁so", "▁witty"]},
        "labels": [
            {"label": name, "probability": 0.5 / 2**place}
            for place, name in enumerate(["good", "bad", "c", "d", "e", "f"])
        ],
        "contributions": [
            {"label": "good", "left_out": [-0.0, 1.25]},
            {"label": "bad", "left_out": [-0.001, -2.5]},
        ],
        "attention": {"encoder": np.zeros((0, 1, 0, 0))},
    }
    lines = ["", *summary_of(data)]
    assert row_of(lines, "so") == ["so", "0.00", "0.00"]
    assert row_of(lines, "witty") == ["witty", "+1.25", "-2.50"]
    assert row_of(lines, "good") == ["good", "0.500"]
    assert "… and 1 more labels" in lines


def test_several_texts_stand_below_each_other() -> None:
    texts = ["My sister is drinking tea.", "My mother is reading a book at home."]
    task = load_task(weft.DEMO)
    lines = summary(inspect_sentences(task, texts))
    assert [line for line in lines if line in texts] == texts
    assert [line.split()[4] for line in lines if line.startswith("茶")] == ["tea"]
    assert [line.split()[4] for line in lines if line.startswith("书")] == ["book"]
    assert max(map(cell_len, lines)) <= 60


def test_two_models_stand_below_their_names() -> None:
    task = load_task(weft.DEMO)
    found = compare_models([task, task], ["runs/a", "runs/b"], "My sister is here.")
    lines = summary(found)
    heads = [line for line in lines if line.startswith("— ")]
    assert heads == ["— runs/a", "— runs/b"]
    assert sum(line.startswith("token ") for line in lines) == 2


def test_a_model_while_it_learned_has_a_line_for_each_step() -> None:
    found = inspect_text(load_task(weft.DEMO), "My sister is drinking tea.")
    own = ["", f"我{'喝' * 60}", found.to_data()["translation"]]
    several = Several(
        "checkpoints", ["1", "225", "1,450"], [found] * 3, {"own": own}, whole=2
    )
    lines = summary(several)
    assert lines[0] == found.text
    assert "    1  (nothing)" in lines
    assert f"1,450  {own[2]}" in lines
    assert max(map(cell_len, lines)) <= 60
