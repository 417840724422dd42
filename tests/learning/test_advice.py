"""Advice is tried: a fault is planted, what is advised is followed, and what is measured gets better."""

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import weft
from weft.data.check.rows import look_over_labelled
from weft.data.labelled import read_labelled

Row = tuple[str, str]

PLAIN_RUN = ("training.precision=float32", "training.kernels=torch", "training.threads=1")
CLASSIFIER = (
    "task=classification",
    "tokenizer.kind=word",
    "batches.batch_size=32",
    "model.d_model=16",
    "model.num_encoder_layers=0",
    "training.max_steps=150",
    "training.eval_every=150",
    "training.learning_rate=0.01",
    "training.warmup_steps=10",
    "data.dev_size=0",
    "data.test_size=0",
    *PLAIN_RUN,
)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Products this small gain nothing from a second core; and no disk need be made to write."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tickets(counts: Mapping[str, int], seed: int) -> list[Row]:
    """Texts of eight words: one or two of their topic's twelve, which also stand in other texts, among others.

    A label's topic is its name in small letters: a variant of a label has texts like the label's own.
    """
    draw, rows = random.Random(seed), []
    topics = sorted({label.lower() for label in counts})
    for label, count in counts.items():
        for _ in range(count):
            words = [f"word{draw.randrange(80)}" for _ in range(8)]
            for place in draw.sample(range(8), draw.choice([1, 2])):
                words[place] = f"{label.lower()}{draw.randrange(12)}"
            words[draw.randrange(8)] = f"{draw.choice(topics)}{draw.randrange(12)}"
            rows.append((" ".join(words), label))
    draw.shuffle(rows)
    return rows


def write_rows(path: Path, rows: Sequence[Row]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("text", "label"), *rows])
    return str(path)


def classify(folder: Path, train: str, test: str, *settings: str) -> dict[str, Any]:
    """The scores on `test` of a classifier trained on `train`."""
    found = weft.train(
        out=folder, train=train, test=test, settings=(*CLASSIFIER, *settings), quiet=True, allow_bad_data=True
    )
    return dict(found.test)


def mean_recall(scores: Mapping[str, Any], labels: Sequence[str]) -> float:
    return sum(one["recall"] for one in scores["per_class"] if one["label"] in labels) / len(labels)


def codes_of(path: str) -> dict[str, str]:
    """What the doctor says of rows: each finding's name and remedy."""
    return {finding.code: finding.remedy for finding in look_over_labelled(read_labelled([path], "text", "label"))}


OFTEN = {"billing": 400, "technical": 400, "outage": 90, "returns": 20}
VARIANTS = {"Billing": 8, "Outage": 2, "Technical": 5}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_class_weights_help_rare_labels(tmp_path: Path, smoothing: float) -> None:
    """Seven labels, of which three are slips of the pen with hardly any rows; measured on the four real ones."""
    often, evenly = list(OFTEN), {"billing": 120, "technical": 120, "outage": 60, "returns": 60}
    train = write_rows(tmp_path / "train.csv", tickets({**OFTEN, **VARIANTS}, 1))
    test = write_rows(tmp_path / "test.csv", tickets(evenly, 2))
    assert "training.class_weights=balanced" in codes_of(train)["imbalance"]
    smooth = f"training.label_smoothing={smoothing}"
    without = classify(tmp_path / "without", train, test, smooth)
    weighed = classify(tmp_path / "weighed", train, test, smooth, "training.class_weights=balanced")
    assert weighed["accuracy"] > without["accuracy"] > 0.5
    assert mean_recall(weighed, often) > mean_recall(without, often) + 0.02
