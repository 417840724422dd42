"""Recurrent models must learn: copy and reverse sequences never seen, by the loss and schedule of
real runs.
"""

import time
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from weft.config import RecurrentSection, TrainingSection
from weft.decoding.reference import greedy_search
from weft.engine.torch_steps import TorchCache, numpy_step
from weft.model.recurrent import RecurrentCache, Seq2SeqRecurrent
from weft.training.loss import CrossEntropy
from weft.training.optimizer import build_optimizer, set_learning_rate
from weft.training.schedule import learning_rate

PAD, BOS, EOS, FIRST = 0, 2, 3, 4
SYMBOLS, SHORTEST, LONGEST = 12, 3, 8
BATCH, TEST, WIDTH = 64, 300, 64

Task = Callable[[Tensor], Tensor]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing from a second core, which other work may want."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def copied(row: Tensor) -> Tensor:
    return row


def reverse(row: Tensor) -> Tensor:
    return row.flip(0)


def draw(count: int, generator: torch.Generator) -> list[Tensor]:
    lengths = torch.randint(
        SHORTEST, LONGEST + 1, (count,), generator=generator
    ).tolist()
    return [
        torch.randint(FIRST, FIRST + SYMBOLS, (n,), generator=generator)
        for n in lengths
    ]


def padded(rows: list[Tensor], first: list[int], last: list[int]) -> Tensor:
    framed = [
        torch.cat([torch.tensor(first), row, torch.tensor(last)]).long() for row in rows
    ]
    return torch.nn.utils.rnn.pad_sequence(framed, batch_first=True, padding_value=PAD)


def build(cell: str, attention: str) -> Seq2SeqRecurrent:
    torch.manual_seed(1)
    shape = RecurrentSection(
        kind="recurrent",
        cell=cell,
        attention=attention,
        d_model=WIDTH,
        d_hidden=WIDTH,
        dropout=0.0,
    )
    return Seq2SeqRecurrent(
        shape, FIRST + SYMBOLS, FIRST + SYMBOLS, joint=True, pad_id=PAD
    )


def learn(model: Seq2SeqRecurrent, task: Task, steps: int) -> set[tuple[int, ...]]:
    """Train on new sequences at each step; the sequences that the model has seen."""
    generator = torch.Generator().manual_seed(2)
    settings = TrainingSection(
        max_steps=steps, warmup_steps=20, learning_rate=0.005, label_smoothing=0.0
    )
    optimizer, loss = (
        build_optimizer(model, settings),
        CrossEntropy(settings.label_smoothing, PAD),
    )
    seen: set[tuple[int, ...]] = set()
    for step in range(1, steps + 1):
        set_learning_rate(optimizer, learning_rate(settings, WIDTH, step, steps))
        rows = draw(BATCH, generator)
        seen.update(tuple(row.tolist()) for row in rows)
        targets = [task(row) for row in rows]
        states = model.states(padded(rows, [], [EOS]), padded(targets, [BOS], []))
        sums = loss(states, model.output, padded(targets, [], [EOS]))
        optimizer.zero_grad()
        (sums.loss_sum / sums.num_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return seen


@torch.inference_mode()
def share_right(model: Seq2SeqRecurrent, task: Task, rows: list[Tensor]) -> float:
    """How many of the rows greedy search gets right to the last symbol."""

    def step(ids: Tensor, cache: RecurrentCache) -> tuple[Tensor, RecurrentCache]:
        states, cache = model.decode(ids[:, None], cache)
        return model.output(states[:, -1]), cache

    found = greedy_search(
        numpy_step(step),
        TorchCache(model.prefill(padded(rows, [], [EOS])), "cpu"),
        bos_id=BOS,
        eos_id=EOS,
        max_lens=[LONGEST + 1] * len(rows),
        banned_ids=(PAD, BOS),
    )
    right = sum(
        list(h.ids) == task(row).tolist() for h, row in zip(found, rows, strict=True)
    )
    return right / len(rows)


@pytest.mark.parametrize(
    ("task", "cell", "attention"),
    [
        pytest.param(copied, "lstm", "dot", marks=pytest.mark.long),
        pytest.param(reverse, "gru", "additive", marks=pytest.mark.long),
    ],
)
def test_learns(task: Task, cell: str, attention: str) -> None:
    """The share right of sequences that training never met."""
    started = time.process_time()
    model = build(cell, attention)
    steps = 250
    seen = learn(model, task, steps)
    rows = draw(TEST, torch.Generator().manual_seed(3))
    unseen = [row for row in rows if tuple(row.tolist()) not in seen]
    assert len(unseen) > 0.5 * TEST
    share = share_right(model.eval(), task, unseen)
    seconds = time.process_time() - started
    print(
        f"{task.__name__}: {100 * share:.1f} % after {steps} steps, {seconds:.1f} seconds of computing"
    )
    assert share >= 0.9
