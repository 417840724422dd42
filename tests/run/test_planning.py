"""What a run is planned by: a batch of average size for its time, a largest one for its memory."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from weft.data.batches import Batch, Batches
from weft.data.store import Positions
from weft.run import planning, preparing
from weft.run.planning import Workload
from weft.tasks.trainable_translation import TrainableTranslation
from weft.training.distributed import World
from weft.training.loss import LossSums


@pytest.fixture
def begin(
    tmp_path: Path, write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...]
) -> Callable[..., None]:
    """Train a tiny model for a step, by batches of eight pairs."""

    def call(*settings: str) -> None:
        own = (
            *tiny_settings,
            "batches.tokens_per_batch=none",
            "batches.batch_size=8",
            "training.max_steps=1",
            *settings,
        )
        weft.train(
            train=write_pairs(60), out=tmp_path / "out", settings=own, quiet=True
        )

    return call


class Sizes:
    """Batches of which only the sizes are known."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = np.array(sizes)

    def num_batches(self, epoch: int) -> int:
        return len(self._sizes)

    def sizes(self, epoch: int) -> Positions:
        return self._sizes

    def batch(self, epoch: int, position: int) -> Any:
        raise AssertionError


def test_a_batch_is_chosen_by_its_size_wherever_it_stands() -> None:
    assert planning.average_place(Sizes(4090, 4080, 96, 3000, 4070)) == 3
    # a single long row does not make the average batch a large one
    assert planning.average_place(Sizes(*[4000] * 50, 50_000)) == 0
    assert planning.largest_place(Sizes(4090, 4080, 96, 3000, 4070)) == 0
    assert planning.largest_place(Sizes(400, 50_000, 400)) == 1
    assert planning.average_place(Sizes(7)) == planning.largest_place(Sizes(7)) == 0


def test_neither_trial_takes_a_small_batch_that_stands_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, begin: Callable[..., None]
) -> None:
    make_plan = Batches._make_plan
    fitted: list[int] = []
    timed: list[int] = []
    compute_loss = TrainableTranslation.compute_loss

    def small_in_the_middle(batches: Batches, epoch: int) -> list[Positions]:
        plan = make_plan(batches, epoch)
        small = plan.pop()[:1]
        plan.insert((len(plan) + 1) // 2, small)
        return plan

    def parts_to_fit(model: Any, loss: Any, batch: Batch, free: float) -> int:
        fitted.append(len(batch.rows))
        return 1

    def recorded(task: Any, batch: Batch) -> LossSums:
        timed.append(len(batch.rows))
        return compute_loss(task, batch)

    monkeypatch.setattr(Batches, "_make_plan", small_in_the_middle)
    monkeypatch.setattr(preparing, "parts_to_fit", parts_to_fit)
    monkeypatch.setattr(TrainableTranslation, "compute_loss", recorded)
    begin()
    assert fitted == [8]
    assert timed[:2] == [8, 8]


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "muon"])
def test_the_update_of_the_weights_counts_and_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, begin: Callable[..., None], optimizer: str
) -> None:
    step_seconds = planning._step_seconds
    build = planning.build_optimizer
    seen: list[tuple[float, bool, bool]] = []

    def slow(model: Any, settings: Any) -> Any:
        built = build(model, settings)
        step = built.step

        def later() -> None:
            before = [p.detach().clone() for p in model.parameters()]
            time.sleep(0.3)
            step()
            now = model.parameters()
            has_moved = any(
                not torch.equal(a, b) for a, b in zip(before, now, strict=True)
            )
            moved.append(has_moved)

        built.step = later
        return built

    moved: list[bool] = []

    def watched(work: Workload, world: World) -> float:
        model = work.task.model
        before = [p.detach().clone() for p in model.parameters()]
        seconds = step_seconds(work, world)
        is_same = all(
            torch.equal(p.view(torch.int32), b.view(torch.int32)) and p.grad is None
            for p, b in zip(model.parameters(), before, strict=True)
        )
        seen.append((seconds, is_same, all(moved)))
        return seconds

    monkeypatch.setattr(planning, "build_optimizer", slow)
    monkeypatch.setattr(planning, "_step_seconds", watched)
    begin(f"training.optimizer={optimizer}")
    ((seconds, is_same, has_moved),) = seen
    assert seconds > 0.3
    assert has_moved
    assert is_same


def test_an_update_that_does_not_fit_into_memory_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    model = torch.nn.Linear(2, 2)
    before = model.weight.detach().clone()
    settings = planning.TrainingSection()
    monkeypatch.setattr(planning, "clip_gradients", fail)
    assert planning._update_seconds(model, settings) == 0
    assert torch.equal(model.weight, before)
