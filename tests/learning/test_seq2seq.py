"""The model must learn: copy, reverse and sort sequences never seen, by the loss and schedule of
real runs.
"""

import time
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from weft.config import Seq2SeqSection, TrainingSection
from weft.decoding.reference import greedy_search
from weft.engine.torch_steps import TorchCache, numpy_step
from weft.model.transformer import Seq2SeqTransformer
from weft.training.loss import CrossEntropy
from weft.training.optimizer import build_optimizer, set_learning_rate
from weft.training.schedule import learning_rate

PAD, BOS, EOS, FIRST = 0, 2, 3, 4
SYMBOLS, SHORTEST, LONGEST, SHORT = 20, 5, 15, 8
BATCH, TEST = 64, 500
SHAPE = Seq2SeqSection(
    d_model=64,
    d_ff=128,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
    max_len=LONGEST + 2,
)

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


def in_order(row: Tensor) -> Tensor:
    return row.sort().values


def draw(count: int, longest: int, generator: torch.Generator) -> list[Tensor]:
    lengths = torch.randint(
        SHORTEST, longest + 1, (count,), generator=generator
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


def learn(
    task: Task, steps: int, longest: int
) -> tuple[Seq2SeqTransformer, set[tuple[int, ...]]]:
    """A model trained from new sequences at each step, and the sequences that it has seen."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    settings = TrainingSection(
        max_steps=steps, warmup_steps=100, learning_rate=0.003, label_smoothing=0.1
    )
    model = Seq2SeqTransformer(
        SHAPE, FIRST + SYMBOLS, FIRST + SYMBOLS, joint=True, pad_id=PAD
    )
    optimizer, loss = (
        build_optimizer(model, settings),
        CrossEntropy(settings.label_smoothing, PAD),
    )
    seen: set[tuple[int, ...]] = set()
    for step in range(1, steps + 1):
        set_learning_rate(
            optimizer, learning_rate(settings, SHAPE.d_model, step, steps)
        )
        rows = draw(BATCH, longest, generator)
        seen.update(tuple(row.tolist()) for row in rows)
        targets = [task(row) for row in rows]
        states = model.states(padded(rows, [], [EOS]), padded(targets, [BOS], []))
        sums = loss(states, model.output, padded(targets, [], [EOS]))
        optimizer.zero_grad()
        (sums.loss_sum / sums.num_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval(), seen


@torch.inference_mode()
def share_right(model: Seq2SeqTransformer, task: Task, rows: list[Tensor]) -> float:
    """How many of the rows greedy search gets right to the last symbol."""

    def step(ids: Tensor, cache: object) -> tuple[Tensor, object]:
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


def score(task: Task, steps: int, longest: int = LONGEST) -> float:
    """The share right of sequences that training never met."""
    started = time.process_time()
    model, seen = learn(task, steps, longest)
    rows = draw(TEST, longest, torch.Generator().manual_seed(3))
    unseen = [row for row in rows if tuple(row.tolist()) not in seen]
    assert len(unseen) > 0.98 * TEST
    share = share_right(model, task, unseen)
    seconds = time.process_time() - started
    print(
        f"{task.__name__}: {100 * share:.1f} % after {steps} steps, {seconds:.0f} seconds of computing"
    )
    return share


@pytest.mark.long
def test_copy_of_short_sequences() -> None:
    assert score(copied, 200, SHORT) >= 0.99


@pytest.mark.long
def test_copy() -> None:
    assert score(copied, 400) >= 0.99


@pytest.mark.long
def test_reverse() -> None:
    assert score(reverse, 700) >= 0.99


@pytest.mark.long
def test_sort() -> None:
    assert score(in_order, 800) >= 0.99
