"""Row D4 of the fault table: labels that would spoil training are refused or warned of, with their
place.
"""

import json
import shutil
from pathlib import Path

import pytest

import weft
from weft.data.check.rows import check_against, look_over_labelled, refuse_untrainable
from weft.data.labelled import LabelledText, label_counts, read_labelled
from weft.errors import DataError, FolderError
from weft.folder import durable
from weft.kernels.machine import Machine
from weft.tasks.trainable_classification import TrainableClassification


def write(path: Path, *labels: str) -> str:
    rows = "".join(f"text number {i},{label}\n" for i, label in enumerate(labels))
    path.write_bytes(f"text,label\n{rows}".encode())
    return str(path)


def reason(error: pytest.ExceptionInfo[DataError]) -> str:
    assert error.value.exit_code == 3
    assert "\n" not in str(error.value)
    return str(error.value)


def warnings(text: LabelledText) -> dict[str, str]:
    return {
        f.code: f.message for f in look_over_labelled(text) if f.severity == "warning"
    }


def test_D4_case_variants_are_warned_of_with_both_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", *["pos", "neg"] * 150, *["Pos"] * 6)
    text = read_labelled(path)
    assert label_counts(text) == {"Pos": 6, "neg": 150, "pos": 150}
    message = warnings(text)["label-variants"]
    assert message.startswith(f"{path}:302: ")
    assert "'pos' (150 rows) and 'Pos' (6 rows)" in message
    assert (
        warnings(read_labelled(write(tmp_path / "sound.csv", *["pos", "neg"] * 150)))
        == {}
    )


def test_D4_a_class_missing_in_validation_is_said(tmp_path: Path) -> None:
    train = read_labelled(
        write(tmp_path / "train.csv", *["pos", "neg", "neutral"] * 80)
    )
    dev = read_labelled(write(tmp_path / "dev.csv", *["pos", "neg"] * 9))
    (note,) = check_against(sorted(label_counts(train)), dev, "dev")
    assert "no row of dev has the label 'neutral'" in note


@pytest.mark.parametrize("name", ["dev", "test"])
def test_D4_a_label_unseen_in_training_is_named_with_its_place(
    tmp_path: Path, name: str
) -> None:
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
def test_D4_rows_without_a_label_are_refused_with_their_number_and_the_first(
    tmp_path: Path, label: str
) -> None:
    path = write(tmp_path / "t.csv", "pos", label, "neg", label, label)
    with pytest.raises(DataError) as caught:
        read_labelled([path])
    assert reason(caught).startswith(f"{path}:3: no label (3 rows have none")


@pytest.mark.parametrize("label", ["null", "NaN", '""', '" nan "'])
def test_D4_json_rows_without_a_label_are_refused(tmp_path: Path, label: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        f'{{"text": "a", "label": "x"}}\n{{"text": "b", "label": {label}}}\n', "utf-8"
    )
    with pytest.raises(DataError) as caught:
        read_labelled([path])
    assert reason(caught).startswith(f"{path}:2: no label (1 row has none")


def test_D4_words_that_only_look_like_nothing_are_labels(tmp_path: Path) -> None:
    text = read_labelled(write(tmp_path / "t.csv", "none", "NA", "0", "nan-bread"))
    assert [label for (label,) in text.labels] == ["none", "NA", "0", "nan-bread"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of labels that do not come in their order, in which each text says its label."""
    path = tmp_path_factory.mktemp("labels") / "t.csv"
    order = ["zebra", "10", "9", "Ape", "ape", "éland"] * 20
    rows = "".join(
        f"it is {label} number {i},{label}\n" for i, label in enumerate(order)
    )
    path.write_text(f"text,label\n{rows}", "utf-8")
    settings = (
        *(
            "task=classification",
            "tokenizer.kind=word",
            "model.d_model=16",
            "model.num_heads=2",
            "model.d_ff=16",
        ),
        *(
            "model.num_encoder_layers=0",
            "training.learning_rate=0.05",
            "training.max_steps=100",
        ),
        *(
            "training.warmup_steps=5",
            "training.precision=float32",
            "training.threads=1",
        ),
    )
    weft.train(
        out=path.parent / "model", train=str(path), settings=settings, quiet=True
    )
    return path.parent / "model"


def answers(folder: Path, texts: list[str]) -> list[str]:
    task = TrainableClassification.load(folder, Machine("cpu", "float32", 1, ""))
    return [answer.label for answer in task.predictor().classify(texts)]


def test_D4_the_label_map_is_saved_with_the_model(model: Path, tmp_path: Path) -> None:
    """Moved away from its run and its text, the model still knows which row of its output is which
    label.
    """
    labels = ["10", "9", "Ape", "ape", "zebra", "éland"]
    assert json.loads((model / "config.json").read_bytes())["labels"] == labels
    moved = shutil.copytree(
        model, tmp_path / "moved", ignore=shutil.ignore_patterns("run")
    )
    texts = [f"it is {label}" for label in labels]
    assert answers(moved, texts) == answers(model, texts) == labels


@pytest.mark.parametrize("order", [["zebra", "9"], ["9", "zebra", "ape"], ["éland"]])
def test_D4_the_label_map_does_not_follow_the_text_that_is_scored(
    model: Path, tmp_path: Path, order: list[str]
) -> None:
    """Fewer labels, and in another order: numbers given anew by what occurs would be others."""
    path = tmp_path / "new.csv"
    path.write_text(
        "text,label\n" + "".join(f"it is {label},{label}\n" for label in order * 3),
        "utf-8",
    )
    task = TrainableClassification.load(model, Machine("cpu", "float32", 1, ""))
    scores = task.evaluate(task.read([str(path)]))
    assert scores.accuracy == 1.0
    assert {
        score.label: score.support for score in scores.per_class if score.support
    } == dict.fromkeys(order, 3)


@pytest.mark.parametrize("change", ["swapped", "fewer", "twice"])
def test_D4_a_changed_label_map_is_refused(
    model: Path, tmp_path: Path, change: str
) -> None:
    folder = shutil.copytree(model, tmp_path / "m")
    config = json.loads((folder / "config.json").read_bytes())
    first, second, *others = config["labels"]
    changed = {
        "swapped": [second, first, *others],
        "fewer": [second, *others],
        "twice": [first, first, *others],
    }
    (folder / "config.json").write_text(
        json.dumps(config | {"labels": changed[change]}), "utf-8"
    )
    with pytest.raises(FolderError) as caught:
        weft.load(folder)
    assert caught.value.exit_code == 5
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [("fewer", r"projection\.\w+ is F32"), ("twice", "a label occurs twice")],
)
def test_D4_a_label_map_that_does_not_fit_is_refused_whatever_the_manifest_says(
    model: Path, tmp_path: Path, change: str, message: str
) -> None:
    """Written with a manifest of its own, so that no checksum tells."""
    folder = shutil.copytree(model, tmp_path / "m")
    config = json.loads((folder / "config.json").read_bytes())
    first, second, *others = config["labels"]
    changed = {"fewer": [second, *others], "twice": [first, first, *others]}
    (folder / "config.json").write_text(
        json.dumps(config | {"labels": changed[change]}), "utf-8"
    )
    durable.write_manifest(
        folder,
        ["model.safetensors", "config.json", "tokenizer.json", "words.safetensors"],
        {},
    )
    with pytest.raises(FolderError, match=message):
        weft.load(folder)
