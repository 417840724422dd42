"""Classifiers must learn what their shape can see, and cannot learn what it hides: order, near and
far.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import weft
from pushed import of_which
from weft.kernels.machine import Machine
from weft.tasks.trainable_classification import TrainableClassification

PLAIN = Machine("cpu", "float32", 1, "")
FILLERS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
]
TRAIN, TEST = 1500, 400
TINY = (
    "task=classification",
    "tokenizer.kind=word",
    "data.test_size=0",
    "batches.batch_size=64",
    "model.d_model=32",
    "model.d_ff=64",
    "model.num_heads=4",
    "model.dropout=0.0",
    "model.ngram_buckets=5003",
    "training.learning_rate=0.005",
    "training.warmup_steps=20",
    "training.label_smoothing=0.0",
    "training.precision=float32",
    "training.threads=1",
)
SHAPES = {
    "encoder": ("model.num_encoder_layers=1",),
    "word pairs": ("model.num_encoder_layers=0", "model.ngrams=2"),
    "words": ("model.num_encoder_layers=0",),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing from a second core, which other work may want."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def ordered(near: bool, count: int, seed: int) -> list[tuple[str, str]]:
    """Texts with "red" and "blue" among other words, side by side or never so: which of the two
    comes first?

    Neither stands at an end, which a pair of words would show as well.
    """
    draw, rows = random.Random(seed), []
    for _ in range(count):
        words = draw.choices(FILLERS, k=draw.randint(4, 10))
        first, second = draw.sample(["red", "blue"], 2)
        at = draw.randrange(1, len(words) - 1)
        behind = at if near else draw.randrange(at + 1, len(words))
        rows.append(
            (
                " ".join(
                    [*words[:at], first, *words[at:behind], second, *words[behind:]]
                ),
                first,
            )
        )
    return rows


def write(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text(
        "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows), "utf-8"
    )
    return str(path)


def share_right(tmp_path: Path, shape: str, near: bool, steps: int) -> float:
    """Of texts that training never met."""
    started = time.process_time()
    rows = ordered(near, TRAIN, 4)
    seen = {text for text, _ in rows}
    new = [row for row in ordered(near, TEST, 5) if row[0] not in seen]
    assert len(new) > 0.9 * TEST
    settings = (
        *TINY,
        f"training.max_steps={steps}",
        f"training.eval_every={steps}",
        *SHAPES[shape],
    )
    train, test = write(tmp_path / "train.csv", rows), write(tmp_path / "test.csv", new)
    verdict = weft.train(
        out=tmp_path / "model", train=train, test=test, settings=settings, quiet=True
    )
    seconds = time.process_time() - started
    share = verdict.test["accuracy"]
    print(
        f"{shape}, {'near' if near else 'far'}: {100 * share:.1f} % after {steps} steps, {seconds:.1f} seconds"
    )
    return float(share)


@pytest.mark.parametrize(("shape", "steps"), [("encoder", 250), ("word pairs", 150)])
def test_the_order_of_neighbours_is_learned(
    tmp_path: Path, shape: str, steps: int
) -> None:
    assert share_right(tmp_path, shape, near=True, steps=steps) >= 0.95


@pytest.mark.long
def test_an_order_far_apart_is_learned_by_the_encoder(tmp_path: Path) -> None:
    assert share_right(tmp_path, "encoder", near=False, steps=400) >= 0.95


@pytest.mark.parametrize(
    ("shape", "near"),
    of_which(
        [("words", True), ("words", False), ("word pairs", False)],
        *(("words", True), ("word pairs", False)),
    ),
)
def test_what_a_shape_cannot_see_it_does_not_learn(
    tmp_path: Path, shape: str, near: bool
) -> None:
    """A bag of words knows no order; one of pairs none of words that are apart."""
    assert share_right(tmp_path, shape, near=near, steps=150) < 0.65


@pytest.mark.long
def test_the_built_in_languages_are_told_apart(tmp_path: Path) -> None:
    """By sentences of which no word pair occurs in training, in seconds."""
    started = time.process_time()
    verdict = weft.train(
        out=tmp_path / "model",
        recipe="classify-fast",
        settings=(
            "data.builtin=everyday",
            "model.ngram_buckets=5003",
            "training.max_steps=60",
            "training.eval_every=60",
            "training.warmup_steps=5",
            "training.precision=float32",
            "training.threads=1",
        ),
        quiet=True,
    )
    print(
        f"languages: {verdict.test_summary}, {time.process_time() - started:.1f} seconds"
    )
    assert verdict.test["accuracy"] > 0.95
    model = TrainableClassification.load(tmp_path / "model", PLAIN).predictor()
    found = model.classify(
        ["Where is the station?", "Wo ist der Bahnhof?", "车站在哪里?"]
    )
    assert [answer.label for answer in found] == ["en", "de", "zh"]
