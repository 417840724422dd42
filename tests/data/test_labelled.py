"""Labelled text: labels as they were meant, held-out rows that training has not, and what looks
wrong.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data.check.finding import Finding
from weft.data.check.rows import check_against, look_over_labelled, refuse_untrainable
from weft.data.corpus import fold
from weft.data.labelled import (
    LabelledText,
    fingerprint_labelled,
    from_rows,
    label_counts,
    read_labelled,
    split_labelled,
)
from weft.errors import DataError, UsageError


@pytest.fixture
def corpora() -> Path:
    folder = Path(
        os.environ.get("WEFT_DATA")
        or Path(__file__).resolve().parents[2].parent / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not at {folder}; set WEFT_DATA")
    return folder


def write(path: Path, content: str) -> str:
    path.write_bytes(content.encode())
    return str(path)


def made(counts: dict[str, int]) -> LabelledText:
    """So many different texts of each label, the labels mixed."""
    rows = [
        (f"{label} text number {i}", [label])
        for label, count in counts.items()
        for i in range(count)
    ]
    return from_rows(sorted(rows, key=lambda row: row[0][::-1]), "made")


def refusal(data: str, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        read_labelled([data], **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def found(text: LabelledText, code: str) -> Finding:
    findings = [finding for finding in look_over_labelled(text) if finding.code == code]
    assert len(findings) == 1, look_over_labelled(text)
    assert "\n" not in findings[0].message
    assert findings[0].remedy
    return findings[0]


def codes(text: LabelledText) -> set[str]:
    return {finding.code for finding in look_over_labelled(text)}


class TestReading:
    def test_texts_are_single_lines_and_labels_have_single_spaces(
        self, tmp_path: Path
    ) -> None:
        content = 'text,label\n"  one \r\n\n two\rthree\t four ", very  good \n  ,bad\n5,"so\nso"\n'
        text = read_labelled(write(tmp_path / "t.csv", content))
        assert text.texts == ["one two three\t four", "5"]
        assert text.labels == [("very good",), ("so so",)]
        assert [text.where(i) for i in range(len(text))] == [
            f"{tmp_path / 't.csv'}:2",
            f"{tmp_path / 't.csv'}:6",
        ]
        assert text.dropped == {"empty text": 1}
        assert not text.multi_label

    def test_json_numbers_and_truth_values_become_their_json_text(
        self, tmp_path: Path
    ) -> None:
        labels = ["1", "1.5", "true", "-2", '"x"']
        content = "".join(
            f'{{"text": "a {label.strip(chr(34))}", "label": {label}}}\n'
            for label in labels
        )
        text = read_labelled(write(tmp_path / "t.jsonl", content))
        assert text.labels == [("1",), ("1.5",), ("true",), ("-2",), ("x",)]
        number = read_labelled(
            write(
                tmp_path / "n.jsonl",
                '{"text": 42, "label": 1}\n{"text": NaN, "label": 1}\n',
            )
        )
        assert (number.texts, number.dropped) == (["42"], {"empty text": 1})

    def test_several_files_are_joined_and_every_row_knows_its_place(
        self, tmp_path: Path
    ) -> None:
        one = write(tmp_path / "one.csv", "text,label\na,x\n,y\nb,y\n")
        two = write(tmp_path / "two.tsv", "label\ttext\nz\tc\n\n")
        text = read_labelled([one, Path(two)])
        assert list(zip(text.texts, text.labels, strict=True)) == [
            ("a", ("x",)),
            ("b", ("y",)),
            ("c", ("z",)),
        ]
        assert [text.where(i) for i in range(3)] == [f"{one}:2", f"{one}:4", f"{two}:2"]
        assert text.dropped == {"empty text": 1, "empty line": 1}
        assert text.select([2, 0]).texts == ["c", "a"]
        assert text.select([2, 0]).where(0) == f"{two}:2"

    def test_columns_are_chosen_by_name(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", "coarse,fine,question\nNUM,dist,How far?\n")
        assert read_labelled(path, "question", "fine").labels == [("dist",)]
        assert "data.text_column=..." in refusal(path)
        with pytest.raises(UsageError, match="name two columns"):
            read_labelled(path, "fine", "fine")
        with pytest.raises(UsageError, match="no data given"):
            read_labelled([])

    def test_rows_with_several_labels(self, tmp_path: Path) -> None:
        content = "text,label\na,x|y\nb, y | x|y| \nc,\nd,nan\ne,z\n"
        text = read_labelled(write(tmp_path / "t.csv", content), label_separator="|")
        assert text.labels == [("x", "y"), ("x", "y"), (), (), ("z",)]
        assert text.multi_label
        assert text.select([0]).multi_label
        values = [["y", 3, "y"], [], None, "x|y", False]
        objects = "".join(
            json.dumps({"text": f"t{i}", "label": value}) + "\n"
            for i, value in enumerate(values)
        )
        text = read_labelled(write(tmp_path / "t.jsonl", objects), label_separator="|")
        assert text.labels == [("3", "y"), (), (), ("x", "y"), ("false",)]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (
                '["x"]',
                't.jsonl:1: a list of labels; for rows of several labels add --set "data.label_separator=;"',
            ),
            ('["a;b"]', 'add --set "data.label_separator=|" (a list needs no sign'),
            ('{"a": 1}', "t.jsonl:1: an object where text or a number should be"),
            ('"\\ud83d"', "t.jsonl:1: the label '\\ud83d' holds half of a character"),
        ],
    )
    def test_what_is_no_label_is_refused(
        self, tmp_path: Path, value: str, expected: str
    ) -> None:
        assert expected in refusal(
            write(tmp_path / "t.jsonl", f'{{"text": "a", "label": {value}}}\n')
        )

    def test_a_text_must_be_text(self, tmp_path: Path) -> None:
        assert "t.jsonl:1: a list where text" in refusal(
            write(tmp_path / "t.jsonl", '{"text": [], "label": 1}')
        )
        assert "no row with text (empty text: 2)" in refusal(
            write(tmp_path / "t.csv", "text,label\n,a\n,b\n")
        )

    def test_rows_that_come_from_no_file(self) -> None:
        text = from_rows([("a\nb", ["x"]), (" ", ["y"]), ("c", [" z "])], "made")
        assert (text.texts, text.labels, text.lines) == (
            ["a b", "c"],
            [("x",), ("z",)],
            [1, 3],
        )
        several = from_rows([("a", ["y", "x"]), ("b", [])], "made", multi_label=True)
        assert (several.labels, several.multi_label) == ([("x", "y"), ()], True)
        with pytest.raises(DataError, match="made:1: 2 labels"):
            from_rows([("a", ["y", "x"])], "made")
        with pytest.raises(DataError, match=r"made:2: no label \(1 row has none"):
            from_rows([("a", ["x"]), ("b", [])], "made")

    def test_public_corpora_are_read_whole(self, corpora: Path) -> None:
        sst2 = read_labelled([corpora / "sst2" / "dev.tsv"])
        assert label_counts(sst2) == {"0": 428, "1": 444}
        trec = read_labelled([corpora / "trec" / "train.tsv"], label_column="coarse")
        assert (len(trec), len(label_counts(trec))) == (5452, 6)
        news = read_labelled(
            [corpora / "ag_news_small" / "dev.tsv"], text_column="description"
        )
        assert label_counts(news) == {"1": 200, "2": 200, "3": 200, "4": 200}


class TestFingerprint:
    def test_it_depends_on_texts_labels_and_order_alone(self) -> None:
        rows = [("a", ["x"]), ("b", ["y"])]
        same = fingerprint_labelled(from_rows(rows, "one"))
        assert same == fingerprint_labelled(
            from_rows([(" a ", ["x"]), ("", ["y"]), ("b", ["y "])], "two")
        )
        others = [
            rows[::-1],
            [("a", ["x"]), ("b", ["x"])],
            [("a", ["x"]), ("c", ["y"])],
            [("a", ["x"])],
        ]
        assert (
            len(
                {
                    same,
                    *(
                        fingerprint_labelled(from_rows(other, "one"))
                        for other in others
                    ),
                }
            )
            == 5
        )
        assert same != fingerprint_labelled(from_rows(rows, "one", multi_label=True))


class TestSplit:
    def test_below_200_rows_nothing_is_held_out(self) -> None:
        text = made({"a": 100, "b": 99})
        assert split_labelled(text, None, None, 1) == (text, None, None)
        train, dev, test = split_labelled(made({"a": 100, "b": 100}), None, None, 1)
        assert [len(part) if part else 0 for part in (train, dev, test)] == [
            160,
            20,
            20,
        ]

    def test_sizes_are_those_asked_for(self) -> None:
        train, dev, test = split_labelled(made({"a": 307, "b": 101}), 53, 0, 1)
        assert (len(train), dev and len(dev), test) == (355, 53, None)
        with pytest.raises(UsageError, match="leave none of 211 rows"):
            split_labelled(made({"a": 111, "b": 100}), 111, 100, 1)

    def test_labels_have_in_each_part_about_the_share_that_they_have_in_the_whole(
        self,
    ) -> None:
        counts = {"a": 500, "b": 250, "c": 125, "d": 25, "e": 3}
        parts = split_labelled(made(counts), 100, 100, 1)
        for part in parts[1:]:
            assert part
            shares = label_counts(part)
            assert all(
                abs(shares.get(label, 0) - 100 * count / 903) <= 1
                for label, count in counts.items()
            )
        whole = Counter(dict.fromkeys(counts, 0))
        for part in parts:
            assert part
            whole.update(label_counts(part))
        assert whole == counts

    def test_the_same_rows_are_held_out_whatever_their_order_and_others_by_another_seed(
        self,
    ) -> None:
        text = made({"a": 300, "b": 200})
        turned = text.select(reversed(range(len(text))))
        first, again, other = (
            split_labelled(t, 40, 40, seed)
            for t, seed in ((text, 1), (turned, 1), (text, 2))
        )
        for part in (1, 2):
            held, same, another = (
                set(split[part].texts) for split in (first, again, other) if split[part]
            )  # type: ignore[union-attr]
            assert held == same
            assert len(held & another) < 20

    def test_a_label_of_few_rows_is_never_missing_from_training(self) -> None:
        text = made({"a": 200, "b": 1, "c": 2, "d": 1, "e": 1})
        for seed in range(20):
            train, dev, test = split_labelled(text, 100, 100, seed)
            assert label_counts(train).keys() == {"a", "b", "c", "d", "e"}
            for part in (dev, test):
                assert part
                assert (
                    check_against(sorted(label_counts(train)), part, "dev") is not None
                )

    def test_texts_with_different_labels_train(self) -> None:
        rows = [(f"text {i}", ["ab"[i % 2]]) for i in range(400)]
        twice = [(f"Text {i}!", ["c"]) for i in range(0, 400, 2)]
        train, dev, test = split_labelled(from_rows(rows + twice, "made"), 60, 60, 1)
        assert dev
        assert test
        held = {*dev.texts, *test.texts}
        assert held
        assert all(int(text.split()[1]) % 2 for text in held)
        assert label_counts(train)["c"] == 200

    @settings(max_examples=15, deadline=None)
    @given(
        rows=st.lists(
            st.tuples(
                st.integers(0, 150), st.sets(st.sampled_from("abcd"), max_size=3)
            ),
            min_size=200,
            max_size=260,
        ),
        multi=st.booleans(),
        seed=st.integers(0, 3),
    )
    def test_no_text_stands_on_both_sides_and_no_label_is_new(
        self, rows: Sequence[tuple[int, set[str]]], multi: bool, seed: int
    ) -> None:
        chosen = [
            (
                f"Number {n}" if n % 3 else f"number, {n}",
                sorted(of) if multi else [min(of, default="e")],
            )
            for n, of in rows
        ]
        text = from_rows(chosen, "made", multi)
        parts = [part for part in split_labelled(text, 30, 20, seed) if part]
        assert sorted(place for part in parts for place in part.lines) == text.lines
        assert [
            len(part) <= size for part, size in zip(parts[1:], (30, 20), strict=False)
        ] == [True] * (len(parts) - 1)
        folded = [set(map(fold, part.texts)) for part in parts]
        assert all(not a & b for i, a in enumerate(folded) for b in folded[i + 1 :])
        known = label_counts(parts[0]).keys()
        assert all(label_counts(part).keys() <= known for part in parts[1:])


class TestLook:
    def test_sound_text_is_silent(self) -> None:
        assert look_over_labelled(made({"a": 150, "b": 140})) == []

    def test_labels_that_differ_in_case_are_named_with_their_counts(self) -> None:
        text = from_rows(
            [*((f"p{i}", ["pos"]) for i in range(200)), *((f"n{i}", ["neg"]) for i in range(200)),
             *((f"q{i}", ["Pos"]) for i in range(7)), *((f"r{i}", ["ｐｏｓ"]) for i in range(5))], "made",
        )  # fmt: skip
        finding = found(text, "label-variants")
        assert finding.severity == "warning"
        assert finding.message.startswith("made:401: ")
        assert (
            "'pos' (200 rows) and 'Pos' (7 rows) and 'ｐｏｓ' (5 rows)"
            in finding.message
        )
        assert finding.count == 12

    def test_rare_labels(self) -> None:
        text = made({"a": 150, "b": 140, "c": 4, "d": 1})
        assert (
            "2 labels have fewer than 5 rows: 'd', 'c'"
            in found(text, "rare-labels").message
        )
        assert "rare-labels" not in codes(made({"a": 150, "b": 140, "c": 5}))

    def test_labels_that_are_written_otherwise_are_to_be_written_alike_before_all_else(
        self,
    ) -> None:
        text = made({"Billing": 2, "billing": 150, "return": 100, "retturn": 1})
        as_one = "first unify labels that mean the same: 'Billing' as 'billing', 'retturn' as 'return'"
        assert found(text, "rare-labels").remedy == as_one
        assert found(text, "imbalance").remedy == f"{as_one}; then check again"
        others = found(
            made({"Billing": 2, "billing": 150, "return": 100, "spam": 3}),
            "rare-labels",
        ).remedy
        assert others.startswith(
            "first unify labels that mean the same: 'Billing' as 'billing'; add more rows "
        )
        assert "of the others" in others

    def test_the_same_text_with_different_labels(self) -> None:
        rows = [(f"text {i}", ["ab"[i % 2]]) for i in range(300)]
        text = from_rows(
            [
                *rows,
                ("TEXT 7.", ["a"]),
                ("text 7", ["b"]),
                ("text 8", ["a"]),
                ("text 9", ["a"]),
            ],
            "made",
        )
        finding = found(text, "contradictions")
        assert finding.severity == "warning"
        assert finding.message.startswith(
            "made:301: the same text as made:8, labelled 'a' instead of 'b' (2 such"
        )
        assert finding.count == 2

    def test_imbalance_is_a_note(self) -> None:
        finding = found(made({"a": 300, "b": 29}), "imbalance")
        assert finding.severity == "note"
        assert "'a' has 300 rows, 'b' 29 rows" in finding.message
        assert "training.class_weights=balanced" in finding.remedy
        assert "imbalance" not in codes(made({"a": 300, "b": 30}))

    def test_weights_are_not_advised_where_a_text_may_have_several_labels(self) -> None:
        rows = [
            (f"text number {i}", ["a", "b"] if i < 9 else ["a"]) for i in range(300)
        ]
        finding = found(from_rows(rows, "made.csv", multi_label=True), "imbalance")
        assert finding.remedy == "judge by macro-F1 rather than accuracy"

    def test_small_text_and_what_reading_dropped(self, tmp_path: Path) -> None:
        text = read_labelled(
            write(tmp_path / "t.tsv", 'text\tlabel\n"a ""b"""\tx\n"b" c\ty\n\ty\n')
        )
        assert "2 rows are too few" in found(text, "too-small").message
        assert "1 row dropped: empty text" in found(text, "dropped-rows").message
        assert found(text, "dropped-rows").severity == "warning"
        assert "quotes stay part of the text" in found(text, "as-read").message
        assert "too-small" not in codes(made({"a": 100, "b": 100}))

    @pytest.mark.parametrize(
        "of", ["{}", "T-{}", "#{}.", "2026-01-{}", "1 {} 000", "a{}f9c"]
    )
    def test_numbers_and_ids_in_place_of_texts_are_named(self, of: str) -> None:
        rows = [(of.format(i), ["ab"[i % 2]]) for i in range(95)]
        words = [(f"some text {i}", ["a"]) for i in range(10)]
        finding = found(from_rows([*rows, *words], "made"), "numbers-as-texts")
        assert finding.severity == "warning"
        assert finding.message.startswith(
            "made:1: 95 of 105 texts are only numbers or ids, such as "
        )
        assert "data.text_column" in finding.remedy
        assert "numbers-as-texts" not in codes(
            from_rows([*rows, *words, ("more", ["a"])], "made")
        )

    @pytest.mark.parametrize(
        "of", ["order {}", "我买了{}个苹果", "word", "ticket №{} is open"]
    )
    def test_texts_with_numbers_are_texts(self, of: str) -> None:
        rows = [(of.format(i), ["ab"[i % 2]]) for i in range(100)]
        assert "numbers-as-texts" not in codes(from_rows(rows, "made"))

    def test_the_gravest_comes_first(self) -> None:
        severities = [
            f.severity for f in look_over_labelled(from_rows([("a", ["x"])], "made"))
        ]
        assert severities[0] == "fatal"
        order = ["fatal", "warning", "note"]
        assert all(order.index(a) <= order.index(b) for a, b in pairwise(severities))

    def test_one_label_alone_is_refused(self) -> None:
        text = made({"a": 250})
        assert found(text, "one-label").severity == "fatal"
        with pytest.raises(
            DataError,
            match="every row has the label 'a': there is nothing to distinguish",
        ):
            refuse_untrainable(text)
        refuse_untrainable(made({"a": 1, "b": 1}))
        refuse_untrainable(
            from_rows([("a", ["x"]), ("b", [])], "made", multi_label=True)
        )
        for labels, message in (((), "no label"), (("x", "y"), "the label 'x', 'y'")):
            with pytest.raises(DataError, match=f"every row has {message}"):
                refuse_untrainable(
                    from_rows([("a", labels), ("b", labels)], "made", multi_label=True)
                )


class TestAgainstTraining:
    def test_a_label_that_training_has_not_is_named_with_its_place(self) -> None:
        part = from_rows([("a", ["neg"]), ("b", ["Pos"]), ("c", ["Pos"])], "dev.csv")
        with pytest.raises(DataError) as caught:
            check_against(["neg", "pos"], part, "dev")
        assert str(caught.value) == (
            "dev.csv:2: the label 'Pos' (2 rows of dev) is not among those of training: 'neg', 'pos'; "
            "did you mean 'pos'?"
        )
        with pytest.raises(
            DataError,
            match=r"the label 'Pos' .* 'l4' and 45 more; add rows with it to the training text",
        ):
            check_against([f"l{i}" for i in range(50)], part.select([1]), "dev")

    def test_a_label_that_the_part_has_not_is_a_note(self) -> None:
        part = from_rows([("a", ["neg"])], "dev.csv")
        assert check_against(["neg"], part, "dev") == []
        (note,) = check_against(["neg", "pos", "neutral"], part, "dev")
        assert note.startswith("dev.csv: no row of dev has the label 'pos', 'neutral'")
