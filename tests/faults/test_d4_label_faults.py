"""Row D4 of the fault table: labels that would spoil training are refused or warned of, with their place."""

from pathlib import Path

import pytest

from weft.data.labelled import (
    LabelledText,
    check_against,
    label_counts,
    look_over_labelled,
    read_labelled,
    refuse_untrainable,
)
from weft.errors import DataError


def write(path: Path, *labels: str) -> str:
    rows = "".join(f"text number {i},{label}\n" for i, label in enumerate(labels))
    path.write_bytes(f"text,label\n{rows}".encode())
    return str(path)


def reason(error: pytest.ExceptionInfo[DataError]) -> str:
    assert error.value.exit_code == 3
    assert "\n" not in str(error.value)
    return str(error.value)


def warnings(text: LabelledText) -> dict[str, str]:
    return {f.code: f.message for f in look_over_labelled(text) if f.severity == "warning"}


def test_D4_case_variants_are_warned_of_with_both_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", *["pos", "neg"] * 150, *["Pos"] * 6)
    text = read_labelled(path)
    assert label_counts(text) == {"Pos": 6, "neg": 150, "pos": 150}
    message = warnings(text)["label-variants"]
    assert message.startswith(f"{path}:302: ")
    assert "'pos' (150 rows) and 'Pos' (6 rows)" in message
    assert warnings(read_labelled(write(tmp_path / "sound.csv", *["pos", "neg"] * 150))) == {}


def test_D4_a_class_missing_in_validation_is_said(tmp_path: Path) -> None:
    train = read_labelled(write(tmp_path / "train.csv", *["pos", "neg", "neutral"] * 80))
    dev = read_labelled(write(tmp_path / "dev.csv", *["pos", "neg"] * 9))
    (note,) = check_against(sorted(label_counts(train)), dev, "dev")
    assert "no row of dev has the label 'neutral'" in note


@pytest.mark.parametrize("name", ["dev", "test"])
def test_D4_a_label_unseen_in_training_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    train = read_labelled(write(tmp_path / "train.csv", *["pos", "neg"] * 120))
    path = write(tmp_path / f"{name}.csv", "pos", "neg", "mixed", "neg", "mixed")
    with pytest.raises(DataError) as caught:
        check_against(sorted(label_counts(train)), read_labelled(path), name)
    assert reason(caught).startswith(
        f"{path}:4: the label 'mixed' (2 rows of {name}) is not among those of training"
    )
    assert "'neg', 'pos'" in reason(caught)


def test_D4_one_class_alone_is_refused(tmp_path: Path) -> None:
    text = read_labelled(write(tmp_path / "t.csv", *["pos"] * 300))
    assert any(finding.severity == "fatal" for finding in look_over_labelled(text))
    with pytest.raises(DataError) as caught:
        refuse_untrainable(text)
    assert "every row has the label 'pos'" in reason(caught)


@pytest.mark.parametrize("label", ["", "  ", "nan", "NaN", "null", '""'])
def test_D4_rows_without_a_label_are_refused_with_their_number_and_the_first(tmp_path: Path, label: str) -> None:
    path = write(tmp_path / "t.csv", "pos", label, "neg", label, label)
    with pytest.raises(DataError) as caught:
        read_labelled([path])
    assert reason(caught).startswith(f"{path}:3: no label (3 rows have none")


@pytest.mark.parametrize("label", ["null", "NaN", '""', '" nan "'])
def test_D4_json_rows_without_a_label_are_refused(tmp_path: Path, label: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"text": "a", "label": "x"}}\n{{"text": "b", "label": {label}}}\n', "utf-8")
    with pytest.raises(DataError) as caught:
        read_labelled([path])
    assert reason(caught).startswith(f"{path}:2: no label (1 row has none")


def test_D4_words_that_only_look_like_nothing_are_labels(tmp_path: Path) -> None:
    text = read_labelled(write(tmp_path / "t.csv", "none", "NA", "0", "nan-bread"))
    assert [label for (label,) in text.labels] == ["none", "NA", "0", "nan-bread"]
