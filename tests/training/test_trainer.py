"""The order of events: the same however it is cut into micro-batches, stopped and resumed; and its
failures.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch import Tensor, nn

from pushed import of_which
from weft.config import Seq2SeqSection, TrainingSection
from weft.errors import DivergedError, FolderError, Interrupted, OutOfMemoryError
from weft.folder.snapshots import snapshots_in
from weft.model.transformer import Seq2SeqTransformer
from weft.training import loss_scale
from weft.training.checkpoint import Checkpoints, State
from weft.training.log import Log
from weft.training.loss import CrossEntropy, LossSums
from weft.training.mixtures import Stage
from weft.training.optimizer import build_optimizer
from weft.training.scores import is_better
from weft.training.snapshots import Snapshots
from weft.training.trainer import Plan, Trainer

VOCAB, ROWS, ROWS_IN_BATCH = 13, 20, 4
BATCHES_IN_EPOCH = ROWS // ROWS_IN_BATCH
TIMING = (
    "seconds",
    "tokens_per_second",
    "peak_share",
    "data_wait_share",
    "seconds_left",
    "evaluation_seconds",
)
SHAPE = Seq2SeqSection(
    d_model=8,
    d_ff=12,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.2,
)


@dataclass(frozen=True)
class Batch:
    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def num_src_tokens(self) -> int:
        return int((self.src != 0).sum())

    @property
    def num_tgt_tokens(self) -> int:
        return int((self.tgt_out != 0).sum())

    def describe(self) -> str:
        return f"{len(self.src)} pairs"


def make_rows() -> list[Tensor]:
    """Targets of very uneven lengths, from 1 to 11 tokens."""
    generator = torch.Generator().manual_seed(8)
    return [
        torch.randint(4, VOCAB, (1 + 3 * (i % 4) + i % 3,), generator=generator)
        for i in range(ROWS)
    ]


class Batches:
    """The rows in an order that depends on the epoch; `asked` records what was taken."""

    def __init__(self, rows_in_batch: int = ROWS_IN_BATCH) -> None:
        self.rows, self.rows_in_batch = make_rows(), rows_in_batch
        self.asked: list[tuple[int, int]] = []

    def num_batches(self, epoch: int) -> int:
        return len(self.rows) // self.rows_in_batch

    def batch(self, epoch: int, position: int) -> Batch:
        self.asked.append((epoch, position))
        order = torch.randperm(
            len(self.rows), generator=torch.Generator().manual_seed(epoch)
        ).tolist()
        start = position * self.rows_in_batch
        rows = [self.rows[i] for i in order[start : start + self.rows_in_batch]]
        tgt_out = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        src = nn.utils.rnn.pad_sequence([row.flip(0) for row in rows], batch_first=True)
        begin = torch.full((len(rows), 1), 2)
        return Batch(src, torch.cat([begin, tgt_out[:, :-1]], dim=1), tgt_out)


def build_model(dropout: float = SHAPE.dropout) -> Seq2SeqTransformer:
    torch.manual_seed(11)
    return Seq2SeqTransformer(
        SHAPE.model_copy(update={"dropout": dropout}), VOCAB, VOCAB, joint=True
    )


def settings(**values: Any) -> TrainingSection:
    return TrainingSection.model_validate(
        {"learning_rate": 0.01, "warmup_steps": 3, **values}
    )


Scores = Callable[[int], Mapping[str, float]]


def build_trainer(
    folder: Path,
    plan: Plan,
    evaluate: Scores | None = None,
    batches: Batches | None = None,
    model: Seq2SeqTransformer | None = None,
    float16: bool = False,
    stages: Sequence[Stage[Batch]] = (),
    **values: Any,
) -> "Trainer[Batch]":
    """A whole little run in `folder`, built from nothing as a new process would build it."""
    model = model or build_model()
    section = settings(**values)
    loss = CrossEntropy(0.1)

    def compute_loss(batch: Batch) -> LossSums:
        with torch.autocast("cpu", torch.float16, enabled=float16):
            return loss(
                model.states(batch.src, batch.tgt_in), model.output, batch.tgt_out
            )

    def rate(step: int, last: int) -> float:
        return section.learning_rate * min(1.0, step / section.warmup_steps)

    return Trainer(
        model=model,
        batches=batches or Batches(),
        compute_loss=compute_loss,
        optimizer=build_optimizer(model, section),
        settings=section,
        plan=plan,
        rate=rate,
        checkpoints=Checkpoints(folder / "checkpoints", keep=9),
        log=Log(folder / "metrics.jsonl", every=1, quiet=True),
        evaluate=evaluate,
        scales_loss=float16,
        snapshots=Snapshots(folder / "snapshots") if section.keeps_doublings else None,
        stages=stages,
    )


def weights(trainer: "Trainer[Batch]") -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in trainer.model.named_parameters()}


def assert_same_state(a: State, b: State) -> None:
    for ours, theirs in ((a.model, b.model), (a.optimizer, b.optimizer)):
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    # how long a run was to be is its own story
    own = {"seconds": None, "lengths": None}
    facts = [{**vars(s.progress), **own} for s in (a, b)]
    assert facts[0] == facts[1]


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_bytes().decode().split("\n")[:-1]
    return [
        {k: v for k, v in json.loads(line).items() if k not in TIMING} for line in lines
    ]


def raise_at(step: int, error: BaseException) -> Scores:
    """A dev evaluation at which the process dies; the scores rise until then."""

    def evaluate(now: int) -> Mapping[str, float]:
        if now == step:
            raise error
        return {"dev_bleu": float(now)}

    return evaluate


# A moving average


def test_the_average_is_what_is_scored_and_kept_beside_the_weights(
    tmp_path: Path,
) -> None:
    seen: list[Tensor] = []

    def evaluate(step: int) -> Mapping[str, float]:
        seen.append(run.model.projection.bias.detach().clone())
        return {"dev_bleu": float(step)}

    run = build_trainer(tmp_path / "a", Plan(6, 3, 3), evaluate, ema_decay=0.8)
    run.run()
    plain = build_trainer(tmp_path / "b", Plan(6, 3, 3))
    plain.run()
    kept = run.checkpoints.load_latest()
    assert kept is not None
    assert kept.average["projection.bias"].equal(seen[1])
    assert kept.weights_to_use is kept.average
    assert not kept.average["projection.bias"].equal(kept.model["projection.bias"])
    # the weights themselves know nothing of it
    for name, value in plain.state().model.items():
        assert kept.model[name].equal(value)
    assert plain.state().weights_to_use.keys() == kept.average.keys()
    assert plain.state().average == {}


def test_a_run_with_an_average_goes_on_bit_for_bit(tmp_path: Path) -> None:
    straight = build_trainer(tmp_path / "a", Plan(7, 9, 2), ema_decay=0.9)
    straight.run()
    build_trainer(tmp_path / "b", Plan(4, 9, 2), ema_decay=0.9).run()
    resumed = build_trainer(tmp_path / "b", Plan(7, 9, 2), ema_decay=0.9)
    resumed.run()
    assert_same_state(resumed.state(), straight.state())
    assert [
        n
        for n, t in straight.state().average.items()
        if not t.equal(resumed.state().average[n])
    ] == []


def test_a_checkpoint_without_the_average_is_refused(tmp_path: Path) -> None:
    build_trainer(tmp_path, Plan(2, 9, 2)).run()
    with pytest.raises(
        FolderError, match="averaged weights of a checkpoint are missing"
    ):
        build_trainer(tmp_path, Plan(4, 9, 2), ema_decay=0.9).run()


# What a run keeps to look back at


def kept(folder: Path) -> dict[int, dict[str, NDArray[Any]]]:
    found = snapshots_in(folder / "snapshots")
    return {one.step: load_file(one.weights) for one in found}


def test_snapshots_change_nothing_and_hold_the_weights_in_half_precision(
    tmp_path: Path,
) -> None:
    plain = build_trainer(tmp_path / "a", Plan(4, 9, 4))
    plain.run()
    run = build_trainer(tmp_path / "b", Plan(4, 9, 4), keep_checkpoints="doublings")
    begun_with = weights(run)
    run.run()
    assert_same_state(run.state(), plain.state())
    assert not (tmp_path / "a" / "snapshots").exists()
    found = kept(tmp_path / "b")
    assert [*found] == [0, 1, 2, 4]
    for step, wanted in ((0, begun_with), (4, weights(run))):
        for name, tensor in wanted.items():
            assert np.array_equal(found[step][name], tensor.half().numpy())


def test_a_snapshot_is_of_the_average_where_that_is_scored(tmp_path: Path) -> None:
    run = build_trainer(
        tmp_path, Plan(4, 9, 4), ema_decay=0.8, keep_checkpoints="doublings"
    )
    run.run()
    found = kept(tmp_path)
    assert [*found] == [0, 1, 2, 4]
    for name, tensor in run.state().average.items():
        assert np.array_equal(found[4][name], tensor.half().numpy())


def test_a_resumed_run_takes_its_snapshots_anew(tmp_path: Path) -> None:
    straight = build_trainer(
        tmp_path / "a", Plan(9, 9, 3), keep_checkpoints="doublings"
    )
    straight.run()
    with pytest.raises(ValueError, match="killed"):
        build_trainer(
            tmp_path / "b",
            Plan(9, 5, 3),
            raise_at(5, ValueError("killed")),
            keep_checkpoints="doublings",
        ).run()
    spoilt = tmp_path / "b" / "snapshots" / "step-4.safetensors"
    spoilt.write_bytes(b"of a way that was not taken")
    resumed = build_trainer(tmp_path / "b", Plan(3, 9, 3), keep_checkpoints="doublings")
    resumed.run()
    assert not spoilt.exists()
    build_trainer(tmp_path / "b", Plan(9, 9, 3), keep_checkpoints="doublings").run()
    ours, theirs = kept(tmp_path / "a"), kept(tmp_path / "b")
    assert [*ours] == [*theirs] == [0, 1, 2, 4, 8]
    for step, arrays in ours.items():
        for name, array in arrays.items():
            assert np.array_equal(array, theirs[step][name])


def test_the_first_snapshot_and_the_newest_stay(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    for step in range(601):
        if snapshots.is_due(step):
            snapshots.save(step, {"w": torch.full((2,), float(step))})
    found = snapshots_in(tmp_path)
    assert [one.step for one in found] == [0, 8, 16, 32, 64, 128, 256, 512]
    assert load_file(found[-1].weights)["w"].tolist() == [512.0, 512.0]


# How an update is put together


@pytest.mark.parametrize(
    ("rows_in_batch", "accumulated"), [(1, 12), (2, 6), (4, 3), (6, 2)]
)
def test_micro_batches_equal_one_batch(
    tmp_path: Path, rows_in_batch: int, accumulated: int
) -> None:
    """T3: twelve uneven rows give the same gradients however they are cut; at a rate of 1 the
    weights show it.
    """
    values = {"optimizer": "sgd", "learning_rate": 3.0, "grad_clip_norm": None}
    one = build_trainer(
        tmp_path / "one",
        Plan(1, 9, 9),
        batches=Batches(12),
        model=build_model(0.0),
        **values,
    )
    before = weights(one)
    one.run()
    cut = {
        "batches": Batches(rows_in_batch),
        "grad_accum_steps": accumulated,
        "model": build_model(0.0),
    }
    some = build_trainer(tmp_path / "some", Plan(1, 9, 9), **cut, **values)
    some.run()
    for name, value in weights(one).items():
        torch.testing.assert_close(weights(some)[name], value, rtol=0, atol=2e-6)
        assert float((value - before[name]).abs().max()) > 2e-4 or "key.bias" in name, (
            name
        )
    ours, theirs = metrics(tmp_path / "one")[0], metrics(tmp_path / "some")[0]
    assert ours["loss"] == pytest.approx(theirs["loss"], abs=2e-6)
    assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], abs=2e-4)


def test_in_float16_the_loss_is_scaled_and_no_update_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What overflows is made again with half the scale: every step is an update, close to
    float32's.
    """
    plan, values = (
        Plan(4, 9, 2),
        {"optimizer": "sgd", "learning_rate": 1.0, "grad_clip_norm": 0.5},
    )
    exact = build_trainer(tmp_path / "float32", plan, **values)
    exact.run()
    usual = build_trainer(tmp_path / "usual", plan, float16=True, **values)
    usual.run()
    assert usual.progress.loss_scale == loss_scale.LARGEST_SCALE
    monkeypatch.setattr(loss_scale, "LARGEST_SCALE", 2.0**40)
    high = build_trainer(tmp_path / "high", plan, float16=True, **values)
    high.run()
    assert 1 < high.progress.loss_scale < 2.0**36
    for other in (usual, high):
        assert other.progress.step == 4
        for name, value in weights(exact).items():
            torch.testing.assert_close(weights(other)[name], value, rtol=0, atol=2e-3)
    norms = [
        [line["grad_norm"] for line in metrics(tmp_path / name)]
        for name in ("float32", "usual", "high")
    ]
    assert norms[1] == pytest.approx(norms[0], rel=0.02)
    assert norms[2] == pytest.approx(norms[0], rel=0.02)
    monkeypatch.undo()
    resumed = build_trainer(tmp_path / "high", Plan(5, 9, 2), float16=True, **values)
    resumed.run()
    assert resumed.progress.loss_scale == high.progress.loss_scale


def test_the_scale_of_a_float16_loss_grows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_scale, "GROW_AFTER", 3)
    run = build_trainer(tmp_path, Plan(7, 9, 9), float16=True)
    run.progress.loss_scale = 64.0
    run.run()
    assert (run.progress.loss_scale, run.progress.scale_set) == (256.0, 6)


def test_what_overflows_at_every_scale_has_diverged(tmp_path: Path) -> None:
    run = build_trainer(tmp_path, Plan(7, 9, 9), float16=True)
    hook = run.model.projection.weight.register_hook(
        lambda gradient: gradient * torch.inf
    )
    with pytest.raises(DivergedError, match=r"step 1 .*gradient norm (inf|nan)"):
        run.run()
    hook.remove()
    assert run.progress.loss_scale == 1.0


def test_every_batch_is_taken_once_an_epoch_and_in_order(tmp_path: Path) -> None:
    batches = Batches()
    build_trainer(tmp_path, Plan(4, 99, 99), batches=batches, grad_accum_steps=3).run()
    assert batches.asked == [
        (n // BATCHES_IN_EPOCH, n % BATCHES_IN_EPOCH) for n in range(12)
    ]


def test_the_rate_of_each_step_is_set_before_it(tmp_path: Path) -> None:
    build_trainer(tmp_path, Plan(5, 99, 99)).run()
    rates = [line["learning_rate"] for line in metrics(tmp_path)]
    assert rates == pytest.approx([0.01 / 3, 0.02 / 3, 0.01, 0.01, 0.01])


def test_long_gradients_are_cut(tmp_path: Path) -> None:
    trainer = build_trainer(
        tmp_path,
        Plan(1, 9, 9),
        optimizer="sgd",
        learning_rate=3.0,
        warmup_steps=3,
        grad_clip_norm=1e-3,
    )
    before = weights(trainer)
    trainer.run()
    moved = (
        sum(
            float((value - before[name]).square().sum())
            for name, value in weights(trainer).items()
        )
        ** 0.5
    )
    assert moved == pytest.approx(1e-3, rel=1e-3)  # a rate of 1 at the first step
    assert metrics(tmp_path)[0]["grad_norm"] > 1e-3


def logged(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "metrics.jsonl").read_bytes().decode().split("\n")[:-1]
    ]


def test_waiting_for_batches_is_a_part_of_the_step(tmp_path: Path) -> None:
    class Slow(Batches):
        def batch(self, epoch: int, position: int) -> Batch:
            time.sleep(0.05)
            return super().batch(epoch, position)

    build_trainer(tmp_path, Plan(2, 99, 99), batches=Slow()).run()
    (first, second) = logged(tmp_path)
    for line, seconds in (
        (first, first["seconds"]),
        (second, second["seconds"] - first["seconds"]),
    ):
        assert 0.05 / seconds * 0.8 < line["data_wait_share"] < 1


def test_the_share_of_the_peak_is_that_of_the_whole_step(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(1, 99, 99), grad_accum_steps=3)
    trainer.seconds_at_peak = lambda batch: 1e-4
    trainer.run()
    (line,) = logged(tmp_path)
    assert line["peak_share"] == pytest.approx(3e-4 / line["seconds"], rel=0.5)
    build_trainer(tmp_path / "unknown", Plan(1, 99, 99)).run()
    assert "peak_share" not in logged(tmp_path / "unknown")[0]


def test_evaluations_are_timed(tmp_path: Path) -> None:
    def evaluate(step: int) -> Mapping[str, float]:
        time.sleep(0.5)
        return {"dev_bleu": 1.0}

    build_trainer(tmp_path, Plan(3, 2, 99), evaluate).run()
    one, two, scored, three, _ = logged(tmp_path)
    assert scored["evaluation_seconds"] >= 0.5
    # one step of two, and nothing known of evaluations yet
    assert two["seconds_left"] <= two["seconds"] + 0.1
    assert 0.5 <= three["seconds_left"] < scored["evaluation_seconds"] + 0.1
    assert one["seconds"] <= two["seconds"]


def test_tokens_are_counted_without_padding(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(BATCHES_IN_EPOCH, 99, 99))
    trainer.run()
    assert trainer.progress.tokens == 2 * sum(map(len, make_rows()))


# Going on where it stopped


@pytest.mark.parametrize("optimizer", of_which(["adam", "sgd"], "adam"))
@pytest.mark.parametrize(
    "stops", [(3,), (BATCHES_IN_EPOCH,), (4, 8), (1, 2, 3)], ids=str
)
def test_resumed_equals_uninterrupted(
    tmp_path: Path, optimizer: str, stops: tuple[int, ...]
) -> None:
    """K2: mid-epoch, at an epoch's edge, resumed again and again; nothing differs but the clock."""
    values = {"optimizer": optimizer, "momentum": 0.9}
    whole = build_trainer(tmp_path / "whole", Plan(11, 99, 3), **values)
    whole.run()
    for stop in (*stops, 11):
        # a new process draws other numbers until its state is put back
        torch.manual_seed(stop)
        part = build_trainer(tmp_path / "part", Plan(stop, 99, 3), **values)
        assert part.run() == "done"
    assert_same_state(part.state(), whole.state())
    assert metrics(tmp_path / "part") == metrics(tmp_path / "whole")
    assert [line["step"] for line in metrics(tmp_path / "part")] == list(range(1, 12))


def in_stages() -> list[Stage[Batch]]:
    """Three mixtures; in a run of 11 steps they end after 4, 8 and 11."""
    ends = (0.4, 0.75, 1.0)
    return [Stage(until, Batches(), f"{until}") for until in ends]  # type: ignore[arg-type]


@pytest.mark.parametrize("stop", [3, 4, 5, 8])
def test_resumed_across_the_border_of_a_mixture(tmp_path: Path, stop: int) -> None:
    """Killed in the step behind that of the last checkpoint, before a border, at it and behind
    it.
    """
    every = in_stages()
    plan = Plan(11, 1, 1)
    scores = raise_at(99, Interrupted("never"))
    whole = build_trainer(tmp_path / "whole", plan, scores, stages=every)
    whole.run()
    part = build_trainer(
        tmp_path / "part", plan, raise_at(stop, Interrupted("now")), stages=in_stages()
    )
    with pytest.raises(Interrupted):
        part.run()
    again = build_trainer(tmp_path / "part", plan, scores, stages=in_stages())
    again.run()
    assert_same_state(again.state(), whole.state())
    assert metrics(tmp_path / "part") == metrics(tmp_path / "whole")
    # each mixture begins an epoch of its own, and no epoch is read twice
    asked = [stage.batches.asked for stage in every]  # type: ignore[attr-defined]
    assert asked == [
        [(0, 0), (0, 1), (0, 2), (0, 3)],
        [(1, 0), (1, 1), (1, 2), (1, 3)],
        [(2, 0), (2, 1), (2, 2)],
    ]


def test_a_longer_run_goes_back_to_the_mixture_of_its_share(tmp_path: Path) -> None:
    first = build_trainer(tmp_path, Plan(11, 99, 3), stages=in_stages())
    first.run()
    assert first.progress.mixture == 2
    longer = in_stages()
    again = build_trainer(tmp_path, Plan(40, 99, 3), stages=longer)
    again.run()
    taken = [len(stage.batches.asked) for stage in longer]  # type: ignore[attr-defined]
    assert taken == [16 - 11, 30 - 16, 40 - 30]


@pytest.mark.parametrize("stops", [(3,), (2, 5, 6), (4,)], ids=str)
def test_a_resumed_run_logs_the_losses_of_an_uninterrupted_one(
    tmp_path: Path, stops: tuple[int, ...]
) -> None:
    """Stopped between two lines of the log, or at one: a mean is that of all its steps, also those
    before it.
    """

    def build(name: str, save_every: int) -> Trainer[Batch]:
        made = build_trainer(tmp_path / name, Plan(11, 99, save_every))
        made.log.every = 4
        return made

    build("whole", 99).run()
    for stop in stops:
        part = build("part", 1)
        part.checkpoints.save = raise_after(stop, part.checkpoints.save)  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            part.run()
    build("part", 1).run()
    assert metrics(tmp_path / "part") == metrics(tmp_path / "whole")
    assert [line["step"] for line in metrics(tmp_path / "part")] == [4, 8, 11]


def raise_after(step: int, save: Callable[[State], Path]) -> Callable[[State], Path]:
    """Save, and end as a kill would once that step is on the disk."""

    def dying(state: State) -> Path:
        path = save(state)
        if state.progress.step == step:
            raise KeyboardInterrupt
        return path

    return dying


def test_resumed_mid_accumulation_order(tmp_path: Path) -> None:
    """Three micro-batches a step over epochs of five: a step straddles the edge."""
    whole = build_trainer(tmp_path / "whole", Plan(5, 99, 99), grad_accum_steps=3)
    whole.run()
    build_trainer(tmp_path / "part", Plan(2, 99, 99), grad_accum_steps=3).run()
    part = build_trainer(tmp_path / "part", Plan(5, 99, 99), grad_accum_steps=3)
    part.run()
    assert_same_state(part.state(), whole.state())


def scores_of(values: Mapping[int, float]) -> Scores:
    return lambda step: {"dev_bleu": values[step], "dev_loss": 1.0}


def test_resumed_while_patience_runs_out(tmp_path: Path) -> None:
    """Best at step 4; of the two evaluations that are waited for, one lies before the stop."""
    scores = scores_of({2: 1.0, 4: 5.0, 6: 3.0, 8: 5.0, 10: 9.0})
    whole = build_trainer(tmp_path / "whole", Plan(12, 2, 99), scores, patience=2)
    assert whole.run() == "stopped early"
    assert whole.progress.step == 8  # an equal score is no improvement
    assert whole.progress.best_step == 4
    dying = raise_at(8, KeyboardInterrupt())
    part = build_trainer(
        tmp_path / "part",
        Plan(12, 2, 6),
        lambda step: dying(step) and scores(step),
        patience=2,
    )
    with pytest.raises(KeyboardInterrupt):
        part.run()
    part = build_trainer(tmp_path / "part", Plan(12, 2, 6), scores, patience=2)
    assert part.run() == "stopped early"
    assert_same_state(part.state(), whole.state())
    assert metrics(tmp_path / "part") == metrics(tmp_path / "whole")
    assert part.progress.best_step == 4
    assert (tmp_path / "part" / "checkpoints" / "step-4").is_dir()


def test_out_of_patience_stays_so(tmp_path: Path) -> None:
    """Killed after the last checkpoint: the next start takes no further step."""
    scores = scores_of({2: 1.0, 4: 0.5})
    build_trainer(tmp_path, Plan(12, 2, 99), scores, patience=1).run()
    again = build_trainer(tmp_path, Plan(12, 2, 99), scores, patience=1)
    assert again.run() == "stopped early"
    assert again.progress.step == 4


def test_killed_before_the_first_checkpoint_logs_no_step_twice(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_trainer(tmp_path, Plan(6, 4, 99), raise_at(4, KeyboardInterrupt())).run()
    assert not (tmp_path / "checkpoints").exists()
    build_trainer(tmp_path, Plan(6, 4, 99)).run()
    assert [line["step"] for line in metrics(tmp_path)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("part", ["model", "optimizer", "progress"])
def test_every_part_of_the_state_is_needed(tmp_path: Path, part: str) -> None:
    """With one part taken from the start instead, the run ends elsewhere or is refused."""
    fresh = build_trainer(tmp_path / "fresh", Plan(1, 99, 99))
    start = deepcopy(fresh.state())
    whole = build_trainer(tmp_path / "whole", Plan(8, 99, 4))
    whole.run()
    middle = Checkpoints(tmp_path / "whole" / "checkpoints", 9)
    parts = vars(_load(middle, 4)) | {part: getattr(start, part)}
    other = build_trainer(tmp_path / "other", Plan(8, 99, 99))
    other.checkpoints.save(State(**parts))
    if part == "model":
        other.run()
        assert any(
            not torch.equal(value, weights(whole)[name])
            for name, value in weights(other).items()
        )
    else:  # they would not fit together
        with pytest.raises(FolderError, match="optimizer state"):
            other.run()


def _load(checkpoints: Checkpoints, step: int) -> State:
    from weft.training.checkpoint import load_state

    return load_state(checkpoints.folder / f"step-{step}")


def test_a_checkpoint_of_another_shape_is_refused(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(2, 99, 99))
    trainer.run()
    state = trainer.state()
    lacking = {
        name: value
        for name, value in state.model.items()
        if not name.startswith("encoder")
    }
    narrow = {name: value[..., :1].contiguous() for name, value in state.model.items()}
    for model in (lacking, narrow):
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        Checkpoints(folder / "checkpoints", 9).save(
            State(model, state.optimizer, state.progress)
        )
        with pytest.raises(FolderError, match="not this run's"):
            build_trainer(folder, Plan(2, 99, 99)).run()


# What goes wrong


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_before_the_weights_change(
    tmp_path: Path, value: float
) -> None:
    """T1: at the third step; the checkpoint before it stays good."""
    trainer = build_trainer(tmp_path, Plan(6, 99, 2))
    good, losses = trainer.compute_loss, []
    seen: dict[str, Tensor] = {}

    def compute_loss(batch: Batch) -> LossSums:
        sums = good(batch)
        losses.append(sums)
        if len(losses) < 3:
            return sums
        seen.update(weights(trainer))
        return LossSums(sums.loss_sum * value, sums.nll_sum, sums.num_tokens)

    trainer.compute_loss = compute_loss
    with pytest.raises(DivergedError, match=r"step 3 \(epoch 0, batch 2\)") as caught:
        trainer.run()
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)
    assert len(losses) == 3
    assert all(
        torch.equal(seen[name], value) for name, value in weights(trainer).items()
    )
    kept = Checkpoints(tmp_path / "checkpoints", 9).load_latest()
    assert kept is not None
    assert kept.progress.step == 2
    assert all(tensor.isfinite().all() for tensor in kept.model.values())


def test_a_gradient_that_is_no_number_stops_as_well(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(6, 99, 2))
    next(trainer.model.parameters()).register_hook(lambda grad: grad * float("nan"))
    before = weights(trainer)
    with pytest.raises(DivergedError, match="gradient norm nan"):
        trainer.run()
    assert all(
        torch.equal(before[name], value) for name, value in weights(trainer).items()
    )


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_names_the_batch(tmp_path: Path, error: Exception) -> None:
    """T4: with what to do, exit code 6, and the checkpoint before it intact."""
    trainer = build_trainer(tmp_path, Plan(6, 99, 1))
    good = trainer.compute_loss

    def compute_loss(batch: Batch) -> LossSums:
        if trainer.progress.step == 1:
            raise error
        return good(batch)

    trainer.compute_loss = compute_loss
    with pytest.raises(
        OutOfMemoryError, match=r"at step 2 in a batch of 4 pairs; lower batches"
    ) as caught:
        trainer.run()
    assert caught.value.exit_code == 6
    kept = Checkpoints(tmp_path / "checkpoints", 9).load_latest()
    assert kept is not None
    assert kept.progress.step == 1


def test_another_runtime_error_is_not_taken_for_it(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(6, 99, 1))

    def compute_loss(batch: Batch) -> LossSums:
        raise RuntimeError("a bug")

    trainer.compute_loss = compute_loss
    with pytest.raises(RuntimeError, match="a bug"):
        trainer.run()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_finishes_the_step_and_saves(
    tmp_path: Path, number: signal.Signals
) -> None:
    """T8, T9: then the same run goes on to the same end."""
    whole = build_trainer(tmp_path / "whole", Plan(6, 99, 99))
    whole.run()
    part = build_trainer(tmp_path / "part", Plan(6, 99, 99))
    good, handlers = (
        part.compute_loss,
        [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
    )

    def compute_loss(batch: Batch) -> LossSums:
        if part.progress.step == 2:
            os.kill(os.getpid(), number)
        return good(batch)

    part.compute_loss = compute_loss
    with pytest.raises(Interrupted, match="after step 3, which is saved") as caught:
        part.run()
    assert caught.value.exit_code == 75
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert (tmp_path / "part" / "checkpoints" / "step-3").is_dir()
    rest = build_trainer(tmp_path / "part", Plan(6, 99, 99))
    assert rest.run() == "done"
    assert_same_state(rest.state(), whole.state())


def test_the_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(6, 99, 2))
    good = trainer.compute_loss

    def compute_loss(batch: Batch) -> LossSums:
        if trainer.progress.step == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return good(batch)

    trainer.compute_loss = compute_loss
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    kept = Checkpoints(tmp_path / "checkpoints", 9).load_latest()
    assert kept is not None
    assert kept.progress.step == 2


def test_a_signal_in_the_last_step_changes_nothing(tmp_path: Path) -> None:
    trainer = build_trainer(tmp_path, Plan(2, 2, 2))
    good = trainer.compute_loss
    trainer.compute_loss = lambda batch: (
        os.kill(os.getpid(), signal.SIGINT) or good(batch)
    )
    trainer.progress.step = 1
    assert trainer.run() == "done"


def test_a_signal_in_an_evaluation_puts_it_off(tmp_path: Path) -> None:
    """Even in that of the last step; the next start does it before anything else."""
    asked: list[int] = []

    def evaluate(step: int) -> Mapping[str, float]:
        asked.append(step)
        if len(asked) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return {"a": 1.0}

    with pytest.raises(Interrupted):
        build_trainer(tmp_path, Plan(2, 2, 2), evaluate).run()
    again = build_trainer(tmp_path, Plan(2, 2, 2), evaluate)
    assert again.run() == "done"
    assert (asked, again.progress.best_step) == ([2, 2], 2)


# What is evaluated and saved when


def test_evaluations_and_checkpoints_fall_where_planned(tmp_path: Path) -> None:
    asked: list[int] = []

    def evaluate(step: int) -> Mapping[str, float]:
        asked.append(step)
        return {"dev_bleu": -float(step)}  # the first stays the best

    trainer = build_trainer(tmp_path, Plan(8, 3, 4), evaluate)
    trainer.run()
    assert asked == [3, 6, 8]
    assert {p.name for p in (tmp_path / "checkpoints").glob("step-*")} == {
        "step-3",
        "step-4",
        "step-8",
    }
    assert trainer.progress.best_step == 3
    assert (tmp_path / "checkpoints" / "step-3").is_dir()
    assert trainer.progress.best_scores == {"dev_bleu": -3.0}


def test_between_equal_scores_the_lower_loss_is_better(tmp_path: Path) -> None:
    losses = {1: 5.0, 2: 4.0, 3: 4.5, 4: 4.0, 5: 9.0}

    def evaluate(step: int) -> Mapping[str, float]:
        return {"dev_bleu": 5.0 * (step == 5), "dev_loss": losses[step]}

    bests = []
    for last in losses:
        trainer = build_trainer(tmp_path, Plan(last, 1, 9), evaluate)
        trainer.run()
        bests.append(trainer.progress.best_step)
    assert bests == [1, 2, 2, 2, 5]


def test_evaluation_is_without_dropout_and_training_with_it(tmp_path: Path) -> None:
    modes: list[bool] = []

    def evaluate(step: int) -> Mapping[str, float]:
        modes.append(trainer.model.training)
        return {"dev_bleu": 1.0}

    trainer = build_trainer(tmp_path, Plan(2, 1, 9), evaluate)
    trainer.run()
    assert modes == [False, False]
    assert trainer.model.training


def test_a_bleu_of_chance_does_not_make_a_step_the_best(tmp_path: Path) -> None:
    """Below 5 it counts as nothing and the loss decides; from there on BLEU does."""
    bleu, loss = {2: 4.9, 4: 0.0, 6: 5.5, 8: 4.7}, {2: 4.3, 4: 3.9, 6: 4.0, 8: 3.0}
    bests = []

    def evaluate(step: int) -> Mapping[str, float]:
        bests.append(trainer.progress.best_step)
        return {"dev_bleu": bleu[step], "dev_loss": loss[step]}

    trainer = build_trainer(tmp_path, Plan(8, 2, 9), evaluate)
    trainer.run()
    assert [*bests, trainer.progress.best_step] == [0, 2, 4, 6, 6]


def test_scores_of_an_earlier_version_are_compared_by_those_that_both_have() -> None:
    """A run that goes on may have evaluations whose first score is another one."""
    noise = {"dev_accuracy": 0.05, "dev_loss": 17.5, "dev_macro_f1": 0.01}
    now = {"dev_micro_f1": 0.0, "dev_loss": 4.5, "dev_accuracy": 0.0}
    assert is_better(now, noise)
    assert not is_better({**now, "dev_loss": 18.0}, noise)
    assert is_better(now, {})
    assert is_better(now, {"dev_bleu": 90.0})
    assert not is_better(now, now)
