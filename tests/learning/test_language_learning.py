"""A language model must learn: patterns by heart, and sentences better than pairs of characters
foretell them.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import weft
from weft.data import builtin
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.kernels.machine import Machine
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling

RULER = (
    # what comes next is told by all that stands before, not by a few characters
    "abacabadabacabaeabacabadabacaba"
)
SETTINGS = (
    "task=language-modelling",
    "tokenizer.kind=character",
    "model.d_model=48",
    "model.d_ff=96",
    "model.num_heads=4",
    "model.num_decoder_layers=2",
    "model.dropout=0.0",
    "training.label_smoothing=0.0",
    "training.learning_rate=0.005",
    "training.warmup_steps=20",
    "training.precision=float32",
    "training.threads=1",
    "training.num_samples=0",
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing from a second core, which other work may want."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def learn(
    out: Path, *settings: str, text: str | None = None
) -> TrainableLanguageModelling:
    started = time.process_time()
    request = {}
    if text is not None:
        (out.parent / "train.txt").write_bytes(text.encode())
        request = {"train": str(out.parent / "train.txt")}
    weft.train(out=out, settings=(*SETTINGS, *settings), quiet=True, **request)
    print(f"{time.process_time() - started:.1f} seconds of computing")
    return TrainableLanguageModelling.load(out, Machine("cpu", "float32", 1, ""))


def test_documents_that_are_all_alike_are_learned_by_heart_from_begin_to_end(
    tmp_path: Path,
) -> None:
    shape = (
        "batches.packing=packed",
        "batches.window_len=32",
        "batches.batch_size=16",
        "training.max_steps=120",
    )
    task = learn(
        tmp_path / "out",
        *shape,
        "data.documents=line",
        "data.dev_share=0.0",
        text=f"{RULER}\n" * 64,
    )
    (tmp_path / "one.txt").write_bytes(RULER.encode())
    scores = task.evaluate(task.read([str(tmp_path / "one.txt")]))
    print(scores.summary())
    assert scores.loss < 0.02
    model = task.predictor()
    assert (found := model.generate(temperature=0, max_new_tokens=99)).finish == "end"
    assert found.text == RULER
    assert model.generate(RULER[:11], temperature=0).text == RULER[11:]


@pytest.mark.long
def test_a_pattern_without_end_goes_on_beyond_the_window(tmp_path: Path) -> None:
    """What follows a, b and c is told only by what stands before them."""
    pattern, window_len = "abcacbd", 16
    shape = (
        "batches.packing=stream",
        f"batches.window_len={window_len}",
        "batches.batch_size=16",
    )
    steps = ("training.max_steps=300", "data.documents=file", "data.dev_share=0.0")
    task = learn(tmp_path / "out", *shape, *steps, text=pattern * 300)
    (score,) = task.predictor().score(pattern * 20)
    # At the head of a window a single character is seen, and there is something to guess.
    seen = [
        x for place, x in enumerate(score.token_log_probs) if place % window_len >= 1
    ]
    loss = -sum(seen) / len(seen)
    print(f"{loss:.4f} nats a token")
    assert loss < 0.03
    found = task.predictor().generate(
        pattern, temperature=0, max_new_tokens=20 * len(pattern)
    )
    assert found.text == pattern * 20


@pytest.mark.long
def test_the_built_in_sentences_are_foretold_better_than_by_pairs_of_characters(
    tmp_path: Path,
) -> None:
    splits = builtin.pairs("everyday", "en", "de")
    baseline = bigram_bits_per_byte(
        [src for src, _ in splits.train], [src for src, _ in splits.test]
    )
    shape = (
        "model.d_model=64",
        "model.num_decoder_layers=1",
        "batches.packing=packed",
        "batches.window_len=64",
    )
    steps = (
        "batches.batch_size=8",
        "training.max_steps=800",
        "training.eval_every=400",
    )
    rates = (
        "training.learning_rate=0.006",
        "training.betas=[0.9,0.99]",
        "model.d_ff=128",
    )
    learn(
        tmp_path / "out",
        "data.builtin=everyday",
        "data.lang=en",
        *shape,
        *steps,
        *rates,
    )
    test = durable.read_json(RunFolder(tmp_path / "out").verdict)["test"]
    print(
        f"{test['bits_per_byte']:.3f} bits per byte, pairs of characters {baseline:.3f}"
    )
    assert test["num_bytes"] == sum(len(src.encode()) for src, _ in splits.test)
    assert 1 < test["bits_per_byte"] < baseline - 0.4


def bigram_bits_per_byte(train: list[str], test: list[str]) -> float:
    """Of each character and the end, told by the one before or the begin: by counts in training,
    plus one.
    """
    pairs = Counter(pair for text in train for pair in framed_pairs(text))
    firsts = Counter(a for text in train for a, _ in framed_pairs(text))
    size = len({b for _, b in pairs})
    bits = sum(
        -math.log2((pairs[pair] + 1) / (firsts[pair[0]] + size))
        for text in test
        for pair in framed_pairs(text)
    )
    return bits / sum(len(text.encode()) for text in test)


def framed_pairs(text: str) -> Iterator[tuple[str, str]]:
    framed = f"\x02{text}\x03"
    return pairwise(framed)
