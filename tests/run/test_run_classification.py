"""Training a classifier as a whole, with tiny models: from table to answers, how it goes on, what
it refuses.
"""

import csv
import importlib.metadata
import io
import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import weft
from pushed import of_which
from weft.config import ClassificationRecipe
from weft.data.labelled import LabelledText, from_rows, label_counts, read_labelled
from weft.data.texts import Sources
from weft.data.tokenizer import BOS_ID
from weft.errors import DataError, Interrupted, OtherVersion, UsageError
from weft.folder.model_folder import RunFolder
from weft.kernels.machine import Machine
from weft.predict.classifier import Classifier
from weft.recipes.file import build_recipe
from weft.run.record import Verdict
from weft.tasks import trainable_classification
from weft.tasks.trainable_classification import TrainableClassification, class_weights
from weft.training.trainer import Trainer

Row = tuple[str, str]
Train = Callable[..., Verdict]
Write = Callable[..., str]

PLAIN = Machine("cpu", "float32", 1, "")
NOUNS = ("cat", "dog", "bird", "fish", "horse", "mouse")
VERBS = ("looks", "sounds", "feels", "seems", "stays", "was")
MOODS = {
    "sad": "low",
    "glum": "low",
    "merry": "high",
    "gay": "high",
    "calm": "even",
    "still": "even",
}
TINY = (
    "task=classification",
    "tokenizer.kind=word",
    "batches.tokens_per_batch=160",
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.ngram_buckets=997",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)
SHAPES = {
    "encoder": (),
    "first": ("model.pooling=first",),
    "tokens": ("model.num_encoder_layers=0",),
    "n-grams": ("model.num_encoder_layers=0", "model.ngrams=3"),
    "n-grams beside an encoder": ("model.ngrams=2",),
    "weighted": (
        "model.num_encoder_layers=0",
        "model.ngrams=2",
        "model.ngram_weights=log-count-ratio",
    ),
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes longer than the tests: times of products to choose the threads by."""
    monkeypatch.setattr("weft.kernels.torch_machine._useful_threads", lambda device: 1)


def made_rows(count: int = 216) -> list[Row]:
    """Different short texts, the last word of which decides the label; in an order of their own."""
    rows = [(f"{a} {b} {c}", MOODS[c]) for a, b, c in product(NOUNS, VERBS, MOODS)]
    random.Random(1).shuffle(rows)
    return rows[:count]


def table(
    rows: Iterable[tuple[str, Any]],
    suffix: str,
    columns: Sequence[str] = ("text", "label"),
) -> str:
    if suffix == ".jsonl":
        return "".join(
            json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows
        )
    if suffix == ".tsv":
        return "".join("\t".join(row) + "\n" for row in [tuple(columns), *rows])
    csv.writer(out := io.StringIO(), lineterminator="\n").writerows([columns, *rows])
    return out.getvalue()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def call(
        rows: Iterable[tuple[str, Any]],
        name: str = "train.csv",
        **columns: Sequence[str],
    ) -> str:
        path = tmp_path / name
        path.write_bytes(table(rows, path.suffix, **columns).encode())
        return str(path)

    return call


@pytest.fixture
def train(tmp_path: Path, write: Write) -> Train:
    """Train for 12 steps on 60 rows into `out`, unless told otherwise."""

    def call(
        *settings: str,
        out: Path = tmp_path / "out",
        text: str | None = None,
        **request: Any,
    ) -> Verdict:
        text = text or write(made_rows(60))
        every = (
            "training.max_steps=12",
            "training.save_every=99",
            "training.eval_every=99",
        )
        return weft.train(
            out=out,
            train=text,
            settings=(*TINY, *every, *settings),
            quiet=True,
            **request,
        )

    return call


def noisy(rows: list[Row]) -> list[Row]:
    """Every fifth label is another one, so that no model is right in all."""
    labels = sorted(set(MOODS.values()))
    wrong = {label: labels[i - 1] for i, label in enumerate(labels)}
    return [
        (text, wrong[label] if i % 5 == 0 else label)
        for i, (text, label) in enumerate(rows)
    ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned, beside its train.csv, dev.csv and test.csv. Tests must not change
    it.
    """
    folder, rows = tmp_path_factory.mktemp("trained"), made_rows()
    parts = {
        "train": rows[:150],
        "dev": noisy(rows[150:190]),
        "test": noisy(rows[190:]),
    }
    for name, part in parts.items():
        (folder / f"{name}.csv").write_bytes(table(part, ".csv").encode())
    train, dev, test = (str(folder / f"{name}.csv") for name in parts)
    settings = (*TINY, "training.max_steps=60", "training.eval_every=12")
    weft.train(
        out=folder / "model",
        train=train,
        dev=dev,
        test=test,
        settings=settings,
        quiet=True,
    )
    return folder / "model"


def load(folder: Path) -> TrainableClassification:
    return TrainableClassification.load(folder, PLAIN)


def read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes())


def verdict_of(folder: Path) -> dict[str, Any]:
    return read_json(RunFolder(folder).verdict)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def mean_loss(model: Classifier, text: LabelledText) -> float:
    """By the probabilities that the model gives to the true labels."""
    answers = model.classify(text.texts)
    true = torch.tensor(
        [
            answer.probabilities[one]
            for answer, (one,) in zip(answers, text.labels, strict=True)
        ]
    )
    return float(-true.log().mean())


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_without_dropout_r_drop_changes_nothing(
    train: Train, tmp_path: Path, pooling: str
) -> None:
    for name, weight in (("plain", 0.0), ("twice", 5.0)):
        settings = (
            "training.max_steps=3",
            f"model.pooling={pooling}",
            f"training.r_drop={weight}",
        )
        train(
            *settings,
            "model.dropout=0.0",
            "training.optimizer=sgd",
            out=tmp_path / name,
        )
    plain, both = (
        load_file(tmp_path / name / "model.safetensors") for name in ("plain", "twice")
    )
    torch.testing.assert_close(both, plain, rtol=0, atol=2e-5)


def test_with_dropout_an_interrupted_run_ends_with_the_same_weights(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropout = (
        "tokenizer.kind=bpe",
        "model.dropout=0.3",
        "model.head_dropout=0.3",
        "training.r_drop=1.0",
    )
    train(*dropout, out=tmp_path / "whole")
    step = Trainer._take_step

    def interrupted(self: Any) -> None:
        if self.progress.step == 6:
            os.kill(os.getpid(), signal.SIGINT)
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_take_step", interrupted)
        with pytest.raises(Interrupted):
            train(*dropout)
    train(*dropout)
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")


# What a run leaves behind


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_from_every_kind_of_table_comes_the_same_classifier(
    train: Train, tmp_path: Path, write: Write, suffix: str
) -> None:
    verdict = train(text=write(made_rows(60), f"rows{suffix}"))
    assert (
        verdict.outcome,
        verdict.step,
        verdict.best_step,
        verdict.dev,
        verdict.test,
    ) == ("done", 12, 0, {}, {})
    assert any("60 rows are too few to hold some out" in note for note in verdict.notes)
    model = weft.load(tmp_path / "out")
    assert isinstance(model, Classifier)
    (answer,) = model.classify("cat looks sad")
    assert isinstance(answer, weft.Classification)
    assert list(answer.probabilities) == ["even", "high", "low"]
    train(out=tmp_path / "csv")
    assert weights(tmp_path / "out") == weights(tmp_path / "csv")


def test_columns_by_any_name(train: Train, tmp_path: Path, write: Write) -> None:
    rows = [(mood, text) for text, mood in made_rows(60)]
    text = write(rows, "q.tsv", columns=("coarse", "question"))
    train("data.text_column=question", "data.label_column=coarse", text=text)
    train(out=tmp_path / "plain")
    assert weights(tmp_path / "out") == weights(tmp_path / "plain")
    assert load(tmp_path / "out").read([text]).texts == [text for _, text in rows]
    with pytest.raises(
        DataError,
        match=r"no column 'text' and no column 'label'; columns: coarse, question",
    ) as caught:
        train(out=tmp_path / "third", text=text)
    assert "--set data.text_column=... --set data.label_column=..." in str(caught.value)
    assert not (tmp_path / "third").exists()


def test_dev_and_test_are_held_out_of_enough(
    train: Train, tmp_path: Path, write: Write
) -> None:
    verdict = train("training.eval_every=6", text=write(made_rows()))
    assert (
        "held out of the text by data.seed = 1: 20 rows for dev and 20 rows for test"
        in verdict.notes
    )
    assert list(verdict.dev) == ["dev_accuracy", "dev_loss", "dev_macro_f1"]
    keys = {
        "accuracy",
        "macro_f1",
        "micro_f1",
        "per_class",
        "confusion",
        "calibration_error",
        "num_texts",
        "num_absent",
        "notes",
        "data_signature",
        "contaminated",
        "computed",
    }
    written = verdict_of(tmp_path / "out")
    assert set(written["test"]) == keys
    assert written["test"]["num_texts"] == 20
    assert written["test_summary"].startswith("accuracy ")
    assert written["test_summary"].endswith(
        f"  20 texts  {written['test']['data_signature']}"
    )
    files = RunFolder(tmp_path / "out")
    assert [
        line["step"] for line in lines_of(files.metrics) if "dev_accuracy" in line
    ] == [6, 12]
    samples = lines_of(files.samples)
    assert [line["step"] for line in samples] == [6] * 4 + [12] * 4
    assert set(samples[0]) == {"step", "text", "label", "predicted", "probability"}
    assert samples[0]["label"] == [MOODS[samples[0]["text"].split(" ")[-1]]]


def test_samples_are_the_models_answers(trained: Path) -> None:
    verdict = verdict_of(trained)
    shown = [
        line
        for line in lines_of(RunFolder(trained).samples)
        if line["step"] == verdict["best_step"]
    ]
    dev = read_labelled(str(trained.parent / "dev.csv"))
    for line, text, labels, answer in zip(
        shown,
        dev.texts[:4],
        dev.labels[:4],
        load(trained).predictor().classify(dev.texts)[:4],
        strict=True,
    ):
        assert (line["text"], tuple(line["label"])) == (text, labels)
        assert line["predicted"] == answer.labels
        assert line["probability"] == pytest.approx(answer.probability, rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_learns_is_saved_and_loaded(
    train: Train, tmp_path: Path, write: Write, shape: str
) -> None:
    """The word that decides is in every text: any of them must tell it, once it is loaded again."""
    settings = ("training.max_steps=60", *SHAPES[shape])
    verdict = train(*settings, text=write(made_rows()))
    assert verdict.test["accuracy"] >= 0.9
    answers = (
        load(tmp_path / "out")
        .predictor()
        .classify(["mouse was merry", "fish feels glum", "dog stays calm"])
    )
    assert [answer.label for answer in answers] == ["high", "low", "even"]
    portrait = (tmp_path / "out" / "README.md").read_text("utf-8").split("\n")[2]
    told = {
        "encoder": "A Transformer encoder of 1 layer (width 16)",
        "first": "A Transformer encoder of 1 layer (width 16)",
        "tokens": "The mean of tokens (width 16)",
        "n-grams": "The mean of n-grams of up to 3 tokens (width 16)",
        "n-grams beside an encoder": (
            "A Transformer encoder of 1 layer (width 16) and the mean of n-grams of up to 2 tokens"
        ),
        "weighted": "The weighted mean of n-grams of up to 2 tokens (width 16)",
    }
    assert portrait == f"{told[shape]}, trained with Weft {weft.__version__}."


@pytest.mark.parametrize("shape", ["encoder", "first"])
def test_the_first_state_is_that_of_a_token_before_the_text(
    train: Train,
    tmp_path: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
) -> None:
    """In training, in the loss on dev, and in use; where the mean is taken, there is no such
    token.
    """
    compute_loss, first_ids = TrainableClassification.compute_loss, set()

    def watched(self: TrainableClassification, batch: Any) -> Any:
        first_ids.update(
            (id == BOS_ID, self.model.training) for id in batch.ids[:, 0].tolist()
        )
        return compute_loss(self, batch)

    monkeypatch.setattr(TrainableClassification, "compute_loss", watched)
    dev = write(made_rows()[100:130], "dev.csv")
    verdict = train(*SHAPES[shape], dev=dev)
    assert first_ids == {(shape == "first", True), (shape == "first", False)}
    task = load(tmp_path / "out")
    text = task.read([dev])
    assert verdict.dev["dev_loss"] == pytest.approx(
        mean_loss(task.predictor(), text), rel=1e-4
    )


def test_a_row_without_text_is_left_out_and_counted(train: Train, write: Write) -> None:
    verdict = train(
        "training.max_steps=1",
        text=write([*made_rows(60), ("  ", "low"), ("", "high")]),
    )
    assert "left out: 2 rows (empty text)" in verdict.notes


def test_half_of_a_character_is_no_obstacle(
    train: Train, tmp_path: Path, write: Write
) -> None:
    """JSON can spell it; UTF-8, in which everything is written down, cannot."""
    rows = [(f"\ud83d {text}", label) for text, label in made_rows(80)]
    path = write(rows, "rows.jsonl")
    verdict = train(
        "training.eval_every=12", text=path, dev=path, test=path, allow_bad_data=True
    )
    assert verdict.outcome == "done"
    assert lines_of(RunFolder(tmp_path / "out").samples)[0]["text"].startswith(
        "\ufffd "
    )
    assert verdict.judgement["examples"][0]["text"].startswith("\ufffd ")


# Which step is the best


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ({4: (0.5, 1.0), 8: (0.7, 3.0), 12: (0.6, 0.1)}, 8),
        ({4: (0.7, 1.0), 8: (0.7, 0.5), 12: (0.7, 0.6)}, 8),
        ({4: (0.7, 1.0), 8: (0.6, 0.2), 12: (0.7, 1.0)}, 4),
    ],
    ids=["accuracy", "loss between equals", "the first of equals"],
)
def test_dev_accuracy_chooses_the_step(
    train: Train,
    tmp_path: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    scores: dict[int, tuple[float, float]],
    best: int,
) -> None:
    call = trainable_classification.DevEvaluation.__call__

    def scripted(self: Any, step: int) -> dict[str, float]:
        real = dict(call(self, step))
        return {**real, "dev_accuracy": scores[step][0], "dev_loss": scores[step][1]}

    monkeypatch.setattr(trainable_classification.DevEvaluation, "__call__", scripted)
    every = (
        "training.eval_every=4",
        "training.save_every=4",
        "training.keep_checkpoints=3",
    )
    verdict = train(*every, text=write(made_rows()))
    assert verdict.best_step == best
    assert verdict.dev["dev_accuracy"] == scores[best][0]
    checkpoints = RunFolder(tmp_path / "out").checkpoints
    same = [
        weights(checkpoints / f"step-{step}") == weights(tmp_path / "out")
        for step in scores
    ]
    assert same == [step == best for step in scores]


def test_what_was_logged_of_dev_is_what_evaluation_finds(trained: Path) -> None:
    task, verdict = load(trained), verdict_of(trained)
    text = task.read([str(trained.parent / "dev.csv")])
    scores = task.evaluate(text)
    assert 0.5 < scores.accuracy < 1.0
    assert scores.accuracy == verdict["dev"]["dev_accuracy"]
    assert scores.macro_f1 == verdict["dev"]["dev_macro_f1"]
    assert verdict["dev"]["dev_loss"] == pytest.approx(
        mean_loss(task.predictor(), text), rel=1e-4
    )


def test_what_the_test_scored_is_what_evaluation_finds(trained: Path) -> None:
    task = load(trained)
    text = task.read([str(trained.parent / "test.csv")])
    scores = task.scored(text, task.evaluate(text), None)
    assert json.loads(json.dumps(scores.to_json())) == verdict_of(trained)["test"]
    assert scores.lines()[0] in (trained / "README.md").read_text("utf-8")


def test_evaluation_counts_the_answers_of_classify(trained: Path) -> None:
    task = load(trained)
    text = task.read([str(trained.parent / "test.csv")])
    scores, answers = task.evaluate(text), task.predictor().classify(text.texts)
    pairs = Counter(
        (true, answer.label)
        for (true,), answer in zip(text.labels, answers, strict=True)
    )
    labels = task.config.labels
    assert scores.confusion == [
        [pairs[true, given] for given in labels] for true in labels
    ]
    assert scores.accuracy == sum(
        n for (true, given), n in pairs.items() if true == given
    ) / len(text)
    assert len(pairs) > 3


# How a run goes on


def at_step(
    monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], object]
) -> None:
    """Let something happen before the given step."""
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        if self.progress.step + 1 == step:
            act()
        take_step(self)

    monkeypatch.setattr(Trainer, "_take_step", taking)


@pytest.mark.parametrize(
    "kind",
    of_which(["encoder", "n-grams", "windows", "several labels"], "n-grams", "windows"),
)
def test_interrupted_and_started_again_the_weights_are_the_same(
    train: Train,
    tmp_path: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Bit for bit, with dropout, and with dev evaluations between."""
    settings = {
        "n-grams": SHAPES["n-grams beside an encoder"],
        "windows": ("data.max_len=2", "data.too_long=windows"),
        "several labels": ("data.label_separator=;",),
    }.get(kind, ())
    every = (
        "training.save_every=4",
        "training.eval_every=5",
        "model.dropout=0.2",
        "model.head_dropout=0.2",
        *settings,
    )
    text = write(made_rows())
    train(*every, text=text, out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        at_step(patch, 7, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(Interrupted):
            train(*every, text=text)
    assert (
        verdict_of(tmp_path / "out")["outcome"],
        verdict_of(tmp_path / "out")["step"],
    ) == ("interrupted", 7)
    assert train(*every, text=text).step == 12
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")
    ours, whole = (RunFolder(tmp_path / name) for name in ("out", "whole"))
    assert ours.samples.read_bytes() == whole.samples.read_bytes()
    assert verdict_of(tmp_path / "out")["dev"] == verdict_of(tmp_path / "whole")["dev"]
    assert [
        line["step"] for line in lines_of(ours.metrics) if "dev_accuracy" in line
    ] == [5, 10, 12]


def test_a_changed_label_or_weight_is_another_run(train: Train, write: Write) -> None:
    rows = made_rows(60)
    text = write(rows)
    train(text=text)
    with pytest.raises(
        UsageError, match=r"training\.class_weights was none, is balanced"
    ):
        train("training.class_weights=balanced", text=text)
    (first, label), *others = rows
    write([(first, "low" if label != "low" else "high"), *others])
    with pytest.raises(
        UsageError, match=r"the train text was 60 rows \(sha256 .{8}\), is 60 rows"
    ):
        train(text=text)


# Starting from an own model


def test_from_a_model_of_the_same_labels_keeps_it(
    train: Train, tmp_path: Path, trained: Path, write: Write
) -> None:
    settings = ("training.max_steps=1", "training.warmup_steps=0")
    verdict = weft.train(
        out=tmp_path / "out",
        train=write(made_rows(80)[20:]),
        start_from=trained,
        settings=(
            "task=classification",
            "training.precision=float32",
            "training.threads=1",
            *settings,
        ),
        quiet=True,
    )
    assert any(f"starts from {trained}" in note for note in verdict.notes)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (
        trained / "tokenizer.json"
    ).read_bytes()
    ours, theirs = (
        load_file(folder / "model.safetensors")
        for folder in (tmp_path / "out", trained)
    )
    assert ours.keys() == theirs.keys()
    moved = max(float((ours[name] - theirs[name]).abs().max()) for name in ours)
    assert 0 < moved < 0.01  # one step away, not drawn anew


@pytest.mark.parametrize(
    ("rows", "difference"),
    [
        (
            [(text, label.upper()) for text, label in made_rows(60)],
            "has no 'even', 'high', 'low'; write 'EVEN' as 'even', 'HIGH' as 'high', 'LOW' as 'low', or leave",
        ),
        (
            [*made_rows(60), ("bird seems odd", "odd")],
            "the text has 'odd' as well; leave --from out to train a new",
        ),
        (
            [row for row in made_rows(60) if row[1] != "low"],
            "the text has no 'low'; add rows with what is missing, or leave --from out",
        ),
    ],
    ids=["others", "more", "fewer"],
)
def test_from_a_model_of_other_labels_is_refused(
    train: Train,
    tmp_path: Path,
    trained: Path,
    write: Write,
    rows: list[Row],
    difference: str,
) -> None:
    with pytest.raises(
        UsageError, match=f"--from {trained}: a model's labels are fixed, and the text "
    ) as caught:
        train(text=write(rows), start_from=trained)
    assert difference in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_from_a_model_of_another_task_is_refused(
    train: Train, tmp_path: Path, tiny_folder: Path
) -> None:
    with pytest.raises(
        UsageError,
        match="holds a model for translation, the recipe is for classification",
    ):
        train(start_from=tiny_folder)
    assert not (tmp_path / "out").exists()


# Weights of the labels


def recipe_with(weights: Any) -> ClassificationRecipe:
    recipe = build_recipe(
        {"task": "classification", "training": {"class_weights": weights}}
    )
    assert isinstance(recipe, ClassificationRecipe)
    return recipe


COUNTED = from_rows(
    [(f"text {i}", ["abc"[(i > 5) + (i > 8)]]) for i in range(10)], "made"
)


def test_weights_by_hand() -> None:
    """6 rows of a, 3 of b, 1 of c: inverse to the square root of that, and 1 on average over the
    rows.
    """
    assert label_counts(COUNTED) == {"a": 6, "b": 3, "c": 1}
    assert class_weights(recipe_with("none"), COUNTED) is None
    balanced = class_weights(recipe_with("balanced"), COUNTED)
    torch.testing.assert_close(
        balanced, torch.tensor([6, 3, 1]) ** -0.5 * 10 / (6**0.5 + 3**0.5 + 1)
    )
    given = class_weights(recipe_with({"c": 1.0, "a": 2.0, "b": 1.0}), COUNTED)
    torch.testing.assert_close(given, torch.tensor([2.0, 1.0, 1.0]) / 1.6)


@pytest.mark.parametrize("asked", ["balanced", {"x": 3.0, "y": 0.5, "z": 1.0}])
def test_weights_of_several_labels_are_1_on_average_over_the_labels_given(
    asked: Any,
) -> None:
    rows = [
        ("t1", ["x", "y"]),
        ("t2", ["x"]),
        ("t3", []),
        ("t4", ["z", "x"]),
        ("t5", ["y", "x"]),
    ]
    text = from_rows(rows, "made", multi_label=True)
    found = class_weights(recipe_with(asked), text)
    counts = torch.tensor([4.0, 2.0, 1.0])
    assert float((found * counts).sum() / counts.sum()) == pytest.approx(1.0)
    ratio = counts**-0.5 if asked == "balanced" else torch.tensor([3.0, 0.5, 1.0])
    torch.testing.assert_close(found / found[0], ratio / ratio[0])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("{low=2.0, high=1.0}", "training.class_weights: the text has 'even' as well"),
        (
            "{low=2.0, high=1.0, evne=1.0}",
            "the text has 'even' as well and has no 'evne'",
        ),
        ("{low=2.0, high=1.0, even=1.0, odd=3.0}", "the text has no 'odd'"),
    ],
)
def test_weights_of_other_labels_are_refused_before_anything_is_written(
    train: Train, tmp_path: Path, table: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        train(f"training.class_weights={table}")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_weights_reach_the_loss_and_are_no_part_of_the_model(
    train: Train, tmp_path: Path, write: Write
) -> None:
    """Of labels without a trace in the text, 5 of 6 common, the rare one gets 1 / 6, then 1 / (1 +
    sqrt(5)).
    """
    rows = [
        (text, "rare" if i % 6 == 0 else "common")
        for i, (text, _) in enumerate(made_rows(120))
    ]
    text, answers = write(rows), {}
    for name in ("none", "balanced"):
        train(
            f"training.class_weights={name}",
            "training.max_steps=60",
            "model.num_encoder_layers=0",
            text=text,
            out=tmp_path / name,
        )
        task = load(tmp_path / name)
        assert task.loss.weights is None
        found = task.predictor().classify([text for text, _ in rows])
        answers[name] = sum(answer.probabilities["rare"] for answer in found) / len(
            found
        )
    assert answers["none"] < 0.24
    assert 0.26 < answers["balanced"] < 0.38


# Optimizers


def test_muon_without_a_matrix_for_it_is_refused_before_anything_is_read(
    train: Train, tmp_path: Path
) -> None:
    bag = ("training.optimizer=muon", "model.num_encoder_layers=0")
    with pytest.raises(UsageError) as caught:
        train(*bag, text=str(tmp_path / "nowhere.csv"))
    assert "model.num_encoder_layers = 0" in str(caught.value)
    assert "use 'adamw', or at least one layer" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_muon_trains_an_encoder_beside_a_bag(train: Train, tmp_path: Path) -> None:
    verdict = train(
        "training.optimizer=muon",
        "model.num_encoder_layers=1",
        "model.ngrams=2",
        "training.max_steps=4",
    )
    assert (verdict.outcome, verdict.step) == ("done", 4)


# Versions of what cuts words


def test_another_version_of_what_cuts_words_is_said_once_at_loading(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "nltk", reason="nltk is not installed (pip install '.[classic]')"
    )
    with monkeypatch.context() as patched:
        patched.setattr("weft.data.normalize.metadata.version", lambda package: "1.2.3")
        train("tokenizer.words=nltk", "training.max_steps=2")
        load(tmp_path / "out")  # the same version: silence, or the test would fail
    with pytest.warns(OtherVersion) as said:
        load(tmp_path / "out")
    (message,) = [str(warning.message) for warning in said]
    installed = importlib.metadata.version("nltk")
    assert (
        f"trained with nltk NLTKWordTokenizer 1.2.3, and {installed} is installed"
        in message
    )
    assert "\n" not in message
    command = [sys.executable, "-m", "weft", "classify", str(tmp_path / "out"), "a cat"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    assert done.stderr.decode().startswith(f"weft: {message}\n")
    assert done.stderr.decode().count("installed") == 1


# Several labels


def several_rows(count: int) -> list[tuple[str, list[str]]]:
    """Texts of three words out of nine; three of the words stand for a label each, in alphabetical
    order.
    """
    draw = random.Random(2)
    words = ["sad", "merry", "odd", *NOUNS]
    picks = [draw.sample(words, 3) for _ in range(count)]
    return [
        (" ".join(pick), sorted({"sad", "merry", "odd"} & set(pick))) for pick in picks
    ]


def test_several_labels_end_to_end(train: Train, tmp_path: Path, write: Write) -> None:
    rows = several_rows(260)
    assert {len(labels) for _, labels in rows} == {0, 1, 2, 3}
    settings = ("data.label_separator=;", "training.max_steps=120", *SHAPES["tokens"])
    text = write([(text, ";".join(labels)) for text, labels in rows])
    verdict = train(*settings, "training.learning_rate=0.03", text=text)
    assert verdict.test["accuracy"] >= 0.9
    assert verdict.test["confusion"] == []
    task = load(tmp_path / "out")
    assert (task.config.multi_label, task.config.labels) == (
        True,
        ["merry", "odd", "sad"],
    )
    assert task.loss_of_guessing == pytest.approx(3 * math.log(2))
    both, none = task.predictor().classify(["odd fish merry", "cat dog horse"])
    assert (both.label, both.labels) == ("merry, odd", ["merry", "odd"])
    assert (none.label, none.labels, none.probability) == ("", [], 0.0)
    assert task.evaluate(task.read([text])).accuracy >= 0.9


def test_a_run_from_a_model_reads_the_columns_of_that_model(
    train: Train, tmp_path: Path, write: Write
) -> None:
    rows = made_rows(60)
    columns = ("Message", "Department")
    settings = ("data.text_column=Message", "data.label_column=Department")
    first = write(rows, "jan.csv", columns=columns)
    train(*settings, text=first, out=tmp_path / "jan")
    later = write(made_rows(70), "feb.csv", columns=columns)
    train(text=later, start_from=tmp_path / "jan", out=tmp_path / "feb")
    config = load(tmp_path / "feb").config
    assert (config.text_column, config.label_column) == columns
    # a table that has the usual columns alone is read by them
    train(start_from=tmp_path / "jan", out=tmp_path / "mar")
    assert load(tmp_path / "mar").config.text_column == "text"
    other = write(rows, "apr.csv", columns=("a", "b"))
    with pytest.raises(
        DataError, match="no column 'Message' and no column 'Department'"
    ):
        train(text=other, start_from=tmp_path / "jan", out=tmp_path / "apr")


def test_a_run_from_a_model_of_several_labels_has_several(
    train: Train, tmp_path: Path, write: Write
) -> None:
    rows = [(text, ";".join(labels)) for text, labels in several_rows(60)]
    train("data.label_separator=;", text=write(rows), out=tmp_path / "a")
    train(text=write(rows), start_from=tmp_path / "a", out=tmp_path / "b")
    assert load(tmp_path / "b").config.label_separator == ";"


def rare_rows(count: int, first: int = 0) -> list[tuple[str, str]]:
    """Texts with one label, at times two, of twenty, each named by a word of its own."""
    draw = random.Random(3)
    picks = [draw.sample(range(20), draw.choice([1, 1, 2])) for _ in range(count)]
    return [
        (
            " ".join([f"n{n}", *(f"w{i}" for i in pick)]),
            ";".join(f"l{i:02}" for i in pick),
        )
        for n, pick in enumerate(picks, first)
    ]


def test_a_new_model_of_several_labels_gives_each_as_often_as_it_occurs(
    train: Train, tmp_path: Path, write: Write
) -> None:
    """With biases of 0 it would give each text half of all labels, by chance."""
    rows = rare_rows(200)
    settings = ("data.label_separator=;", *SHAPES["n-grams"], "training.eval_every=1")
    dev = write(rare_rows(60, first=200), "dev.csv")
    verdict = train(*settings, "training.max_steps=3", text=write(rows), dev=dev)
    task = load(tmp_path / "out")
    (answer,) = task.predictor().classify(["cat"])
    counts = Counter(label for _, labels in rows for label in labels.split(";"))
    for label, probability in answer.probabilities.items():
        assert probability == pytest.approx(counts[label] / len(rows), abs=0.04)
    far_below = 0.4 * task.loss_of_guessing
    lines = lines_of(RunFolder(tmp_path / "out").metrics)
    losses = [line["dev_loss"] for line in lines if "dev_loss" in line]
    assert max(losses) < far_below
    # no label is given yet: the loss decides, and the line says why
    assert verdict.dev["dev_micro_f1"] == 0.0
    assert verdict.dev["dev_loss"] == min(losses)
    assert (
        "60 of 60 rows are given no label though they have one: none has a probability of one half"
        in verdict.judgement["says"]
    )


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ({4: (0.1, 17.5, 0.05), 8: (0.3, 4.5, 0.0), 12: (0.2, 4.4, 0.0)}, 8),
        ({4: (0.0, 17.5, 0.05), 8: (0.0, 4.4, 0.0), 12: (0.0, 4.5, 0.0)}, 8),
    ],
    ids=["micro-F1", "loss between equals"],
)
def test_dev_micro_f1_chooses_the_step_of_several_labels(
    train: Train,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    scores: dict[int, tuple[float, float, float]],
    best: int,
) -> None:
    call = trainable_classification.DevEvaluation.__call__
    names = ("dev_micro_f1", "dev_loss", "dev_accuracy")

    def scripted(self: Any, step: int) -> dict[str, float]:
        real = dict(call(self, step))
        return {**real, **dict(zip(names, scores[step], strict=True))}

    monkeypatch.setattr(trainable_classification.DevEvaluation, "__call__", scripted)
    rows = [(text, ";".join(labels)) for text, labels in several_rows(260)]
    settings = ("data.label_separator=;", "training.eval_every=4")
    verdict = train(*settings, text=write(rows))
    assert verdict.best_step == best
    assert list(verdict.dev) == [*names, "dev_macro_f1"]


def test_several_labels_as_json_lists_are_the_same_run(
    train: Train, tmp_path: Path, write: Write
) -> None:
    rows = several_rows(70)
    train("data.label_separator=;", text=write(rows, "rows.jsonl"))
    train(
        "data.label_separator=;",
        text=write([(a, ";".join(b)) for a, b in rows]),
        out=tmp_path / "csv",
    )
    assert weights(tmp_path / "out") == weights(tmp_path / "csv")


@pytest.mark.long
def test_built_in_rows_are_the_sentences_of_three_languages() -> None:
    """With a separator, which files would need, they may have several labels."""
    recipe = build_recipe(
        {
            "task": "classification",
            "data": {"builtin": "everyday", "label_separator": ";"},
        }
    )
    assert isinstance(recipe, ClassificationRecipe)
    texts = TrainableClassification.gather(recipe, Sources())
    assert texts.dev is not None
    assert label_counts(texts.dev) == {"de": 500, "en": 500, "zh": 500}
    assert texts.train.multi_label
    assert texts.dev.multi_label


# Long texts


def far_rows(count: int = 240) -> list[Row]:
    """Nine words, the last of which decides the label."""
    draw = random.Random(3)
    rows = []
    for _ in range(count):
        mood = draw.choice(list(MOODS))
        rows.append((" ".join([*draw.choices(NOUNS + VERBS, k=8), mood]), MOODS[mood]))
    return rows


@pytest.mark.parametrize("too_long", ["cut", "windows"])
def test_a_long_text_is_cut_or_read_in_windows(
    train: Train, tmp_path: Path, write: Write, too_long: str
) -> None:
    """What decides stands beyond the first window: cut off, nothing can be learned; in windows, all
    of it.
    """
    settings = ("data.max_len=4", f"data.too_long={too_long}", "training.max_steps=120")
    verdict = train(*settings, text=write(far_rows()))
    how = "cut there" if too_long == "cut" else "read in windows"
    assert f"200 texts longer than 4 tokens, {how}" in verdict.notes
    task = load(tmp_path / "out")
    (answer,) = task.predictor().classify(
        "cat was dog feels bird looks fish seems merry"
    )
    assert (answer.truncated, answer.windows) == (
        (True, 1) if too_long == "cut" else (False, 3)
    )
    cut = [note for note in verdict.test["notes"] if "cut" in note]
    if too_long == "cut":
        assert verdict.test["accuracy"] < 0.7
        assert cut == ["20 texts cut at 4 tokens"]
    else:
        assert verdict.test["accuracy"] >= 0.9
        assert cut == []
        assert answer.label == "high"


def test_texts_that_fit_are_not_spoken_of(train: Train, write: Write) -> None:
    verdict = train("data.max_len=3", "training.max_steps=1", text=write(made_rows()))
    assert not any("longer than" in note for note in verdict.notes)
    assert not any("cut" in note for note in verdict.test["notes"])


@pytest.mark.parametrize(
    ("shape", "limit"),
    [("encoder", 5), ("first", 4), ("n-grams", 7), ("n-grams beside an encoder", 5)],
)
def test_only_an_encoders_positions_limit_a_text(
    train: Train, tmp_path: Path, write: Write, shape: str, limit: int
) -> None:
    settings = (
        "data.max_len=7",
        "model.max_len=5",
        "training.max_steps=2",
        *SHAPES[shape],
    )
    verdict = train(*settings, text=write(far_rows(60)))
    assert f"60 texts longer than {limit} tokens, cut there" in verdict.notes
    assert load(tmp_path / "out").config.max_len == limit


# What is wrong with the text


@pytest.mark.parametrize("part", ["dev", "test"])
def test_a_label_that_training_has_not_is_named(
    train: Train, tmp_path: Path, write: Write, part: str
) -> None:
    wrong = write([*made_rows(30), ("cat looks odd", "odd")], f"{part}.csv")
    with pytest.raises(DataError) as caught:
        train(**{part: wrong})
    assert str(caught.value).startswith(
        f"{wrong}:32: the label 'odd' (1 row of {part}) is not among those of training"
    )
    assert not (tmp_path / "out").exists()


def test_evaluation_refuses_a_label_that_the_model_does_not_know(
    trained: Path, write: Write
) -> None:
    task = load(trained)
    wrong = write(
        [("cat looks sad", "low"), ("cat looks odd", "Low"), ("cat", "Low")], "new.csv"
    )
    with pytest.raises(DataError) as caught:
        task.evaluate(task.read([wrong]))
    assert str(caught.value).startswith(
        f"{wrong}:3: the label 'Low' (2 rows of the text)"
    )
    assert "did you mean 'low'?" in str(caught.value)


def test_a_single_label_cannot_be_trained_on(
    train: Train, tmp_path: Path, write: Write
) -> None:
    with pytest.raises(DataError, match="every row has the label 'low'"):
        train(text=write([(text, "low") for text, _ in made_rows(60)]))
    assert not (tmp_path / "out").exists()


def test_test_rows_that_train_as_well_are_said(
    train: Train, tmp_path: Path, write: Write
) -> None:
    rows = made_rows(90)
    text, twice = (
        write(rows[:60]),
        [(text.upper() + "!", label) for text, label in rows[:7]],
    )
    verdict = train(
        "training.max_steps=1", text=text, test=write([*twice, *rows[60:]], "test.csv")
    )
    (note,) = [note for note in verdict.notes if "contaminated" in note]
    assert note.startswith(
        "contaminated: 7 of 37 rows (18.9 %) are in the training text as well"
    )
    assert "test.csv:2)" in note
    new = write(rows[60:], "new.csv")
    verdict = train("training.max_steps=1", text=text, test=new, out=tmp_path / "clean")
    assert not any("contaminated" in note for note in verdict.notes)


def test_doubtful_labels_are_said(train: Train, tmp_path: Path, write: Write) -> None:
    rows = made_rows(60)
    verdict = train(
        "training.max_steps=1", text=write([*rows, ("fish was glad", "High")])
    )
    assert any(
        "'high' (" in note and "'High' (1 row)" in note for note in verdict.notes
    )
    dev = write(
        [(f"{text} now", label) for text, label in rows if label != "low"], "dev.csv"
    )
    verdict = train(
        "training.max_steps=1", text=write(rows), dev=dev, out=tmp_path / "second"
    )
    assert any("no row of dev has the label 'low'" in note for note in verdict.notes)
