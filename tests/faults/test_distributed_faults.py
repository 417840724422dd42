"""T1, T3, T6, T7, T9 and K8 with several processes on one machine (gloo): torchrun's, or forks in
their place.
"""

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from weft.training.distributed import joined_world

from .conftest import SETTINGS, Run, outcome, verdict

Write = Callable[[int], str]
SCRIPT = Path(__file__).with_name("one_of_many.py")
LIMIT = 420.0  # seconds within which every process must have left


@pytest.fixture
def ranks(
    write_pairs: Write, tiny_settings: tuple[str, ...]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Train with so many processes; the settings are those of `tiny_run`, so that its end is
    theirs.
    """
    text = write_pairs(210)

    def run(
        count: int, out: Path, *settings: str, **asked: Any
    ) -> subprocess.CompletedProcess[str]:
        request = {
            "out": str(out),
            "train": text,
            "settings": [*tiny_settings, *SETTINGS, *settings],
            **asked,
        }
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            str(count),
            "--standalone",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [*torchrun, str(SCRIPT), json.dumps(request)]
        pipes = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "env": environment,
        }
        with subprocess.Popen(command, start_new_session=True, **pipes) as process:
            try:
                said, cried = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, said, cried)

    return run


Ranks = Callable[..., subprocess.CompletedProcess[str]]
LONG = pytest.mark.long


def gradients(
    tiny_run: Run, count: int, folder: Path, *settings: str
) -> dict[str, torch.Tensor]:
    file = folder / f"gradients-{count}-{len(list(folder.iterdir()))}"
    asked = {"gradients": str(file), "processes": count}
    ended = tiny_run(
        folder / f"out-{file.name}", "training.max_steps=1", *settings, **asked
    )
    assert ended.code == 0, ended.said[-3000:]
    return load_file(file)


def test_T3_the_gradient_of_several_processes_is_that_of_one(
    tmp_path: Path, tiny_run: Run
) -> None:
    """Micro-batches of different numbers of tokens, dropout on: relative 1e-6 in float32, shared or
    sharded.
    """
    settings = ("training.grad_accum_steps=4", "batches.tokens_per_batch=150")
    alone = gradients(tiny_run, 1, tmp_path, *settings)
    for parallel in ("ddp", "fsdp"):
        ours = gradients(
            tiny_run, 2, tmp_path, *settings, f"training.parallel={parallel}"
        )
        assert distance(ours, alone) < 1e-6


@pytest.mark.parametrize(
    "count", [pytest.param(2, marks=LONG), 3, pytest.param(4, marks=LONG)]
)
def test_T3_uneven_shares_too(tmp_path: Path, tiny_run: Run, count: int) -> None:
    """Five micro-batches for two, three and four processes."""
    settings = ("training.grad_accum_steps=5", "batches.tokens_per_batch=150")
    alone = gradients(tiny_run, 1, tmp_path, *settings)
    assert distance(gradients(tiny_run, count, tmp_path, *settings), alone) < 1e-6


def distance(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    """The length of the difference of all gradients, as a share of their length."""
    assert ours.keys() == theirs.keys()
    a, b = (
        torch.cat([g[name].double().flatten() for name in sorted(g)])
        for g in (ours, theirs)
    )
    return float((a - b).norm() / b.norm())


@LONG
def test_T1_a_loss_that_is_not_finite_in_one_process_stops_all(
    tmp_path: Path, ranks: Ranks
) -> None:
    """Together, before any changes its weights, and the checkpoint stays good."""
    out = tmp_path / "out"
    ended = ranks(2, out, spoil=[1, 5])
    assert ended.returncode != 0
    for rank in (0, 1):
        assert f"rank {rank}: weft: step 5" in ended.stderr
    assert verdict(out)["exit_code"] == 4
    kept = load_file(out / "run" / "checkpoints" / "step-3" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in kept.values())


@LONG
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
@pytest.mark.parametrize("victim", [0, 1])
def test_T6_one_process_killed_the_others_leave_and_the_same_command_goes_on(
    tmp_path: Path, ranks: Ranks, parallel: str, victim: int
) -> None:
    """To the same weights, bit for bit, as with nobody killed."""
    out, whole, setting = (
        tmp_path / "out",
        tmp_path / "whole",
        f"training.parallel={parallel}",
    )
    started = time.monotonic()
    ended = ranks(2, out, setting, kill=[victim, 5])
    assert ended.returncode != 0
    assert "Signal 9 (SIGKILL)" in ended.stderr
    assert time.monotonic() - started < LIMIT
    assert not (out / "manifest.json").exists()
    assert ranks(2, out, setting).returncode == 0
    assert ranks(2, whole, setting).returncode == 0
    assert outcome(out)["model.safetensors"] == outcome(whole)["model.safetensors"]
    assert outcome(out)["run/metrics.jsonl"] == outcome(whole)["run/metrics.jsonl"]


@LONG
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_T9_torchrun_terminated_saves_and_the_same_command_goes_on(
    tmp_path: Path, ranks: Ranks, parallel: str
) -> None:
    out, whole, setting = (
        tmp_path / "out",
        tmp_path / "whole",
        f"training.parallel={parallel}",
    )
    assert ranks(2, out, setting, terminate=4).returncode != 0
    assert (
        verdict(out)["outcome"],
        verdict(out)["exit_code"],
        verdict(out)["saved_step"],
    ) == (
        "interrupted",
        75,
        4,
    )
    assert ranks(2, out, setting).returncode == 0
    assert ranks(2, whole, setting).returncode == 0
    assert outcome(out)["model.safetensors"] == outcome(whole)["model.safetensors"]
    assert outcome(out)["run/metrics.jsonl"] == outcome(whole)["run/metrics.jsonl"]


def test_T6_nobody_waits_for_ever_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What joins gradients must be gone before the process group is: else the two may wait for each
    other.
    """
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }.items():
        monkeypatch.setenv(name, value)
    model, left = torch.nn.Linear(2, 2), []
    destroy = torch.distributed.destroy_process_group

    def watched() -> None:
        left.extend(ref() for ref in held)
        destroy()

    monkeypatch.setattr(torch.distributed, "destroy_process_group", watched)
    with joined_world() as world:
        # so that gradients are joined; the group has one process all the same
        world.size = 2
        loss = world.joined(model, lambda x: model(x).sum())
        loss(torch.ones(1, 2)).backward()
        held = [weakref.ref(loss.reducer), weakref.ref(loss.logger)]
        assert all(ref() is not None for ref in held)
    assert left == [None, None]
    assert not torch.distributed.is_initialized()


@LONG
@pytest.mark.parametrize("count", [2, 3, 4])
def test_T7_seven_rows_are_each_used_once_an_epoch(
    tmp_path: Path, ranks: Ranks, write_pairs: Write, count: int
) -> None:
    """Whatever the number of processes; nobody waits for a batch that will not come."""
    rows = tmp_path / "rows"
    rows.mkdir()
    settings = (
        "batches.tokens_per_batch=20",
        "training.grad_accum_steps=4",
        "training.max_steps=7",
    )
    ended = ranks(
        count, tmp_path / "out", *settings, train=write_pairs(7), rows=str(rows)
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    taken = [
        json.loads(line)
        for path in rows.iterdir()
        for line in path.read_text().split("\n")[:-1]
    ]
    assert len(taken) == 28
    assert len({tuple(place) for *place, _ in taken}) == 28
    last = max(epoch for epoch, *_ in taken)
    assert last >= 3
    for epoch in range(last):
        assert Counter(
            row for e, _, some in taken if e == epoch for row in some
        ) == Counter(range(7))


@LONG
@pytest.mark.parametrize(("parallel", "steps"), [("ddp", 2), ("fsdp", 2), ("fsdp", 4)])
def test_T7_micro_batches_that_cannot_be_shared_are_refused(
    tmp_path: Path, ranks: Ranks, parallel: str, steps: int
) -> None:
    """Fewer than processes; with sharded parameters also as many for some as for others not."""
    settings = (f"training.grad_accum_steps={steps}", f"training.parallel={parallel}")
    ended = ranks(3, tmp_path / "out", *settings)
    assert ended.returncode != 0
    assert (
        f"training.grad_accum_steps = {steps}: 3 processes ({parallel}) share the micro-batches"
        in ended.stderr
    )
    assert not (tmp_path / "out").exists()


@LONG
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_K8_going_on_with_another_number_of_processes(
    tmp_path: Path, ranks: Ranks, tiny_run: Run, parallel: str, before: int, after: int
) -> None:
    """Nothing of the state is dropped: losses as if never stopped, in the same order, to float32's
    rounding.
    """
    out, whole = tmp_path / "out", tmp_path / "whole"
    settings = (f"training.parallel={parallel}", "training.schedule=constant")
    assert tiny_run(whole, *settings).code == 0
    assert ranks(before, out, *settings, "training.max_steps=5").returncode == 0
    ended = ranks(after, out, *settings)
    assert ended.returncode == 0, ended.stderr[-3000:]
    ours, alone = logged(out), logged(whole)
    assert (
        [step for step, _ in ours] == [step for step, _ in alone] == list(range(1, 9))
    )
    assert [loss for _, loss in ours] == pytest.approx(
        [loss for _, loss in alone], rel=1e-5
    )


def logged(out: Path) -> list[tuple[int, float]]:
    lines = [
        json.loads(line)
        for line in (out / "run" / "metrics.jsonl").read_text().split("\n")[:-1]
    ]
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


@LONG
def test_K8_another_batch_size_or_precision_is_refused(
    tmp_path: Path, ranks: Ranks
) -> None:
    out = tmp_path / "out"
    assert ranks(2, out, "training.max_steps=3").returncode == 0
    for setting, shown in (
        ("batches.tokens_per_batch=300", "batches.tokens_per_batch was 400, is 300"),
        ("training.precision=bfloat16", "training.precision was float32, is bfloat16"),
    ):
        ended = ranks(2, out, setting)
        assert ended.returncode != 0
        assert shown in ended.stderr


@LONG
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_K8_the_average_of_several_processes_is_that_of_one(
    tmp_path: Path, tiny_run: Run, parallel: str
) -> None:
    """What is published: whole and alike, whether each process keeps all of it or a part, also
    after a stop.
    """
    settings = (f"training.parallel={parallel}", "training.ema_decay=0.8")
    settings = (*settings, "training.optimizer=sgd", "training.learning_rate=1.0")
    whole, out = tmp_path / "whole", tmp_path / "out"
    for count, folder, last in ((1, whole, 6), (2, out, 3), (2, out, 6)):
        steps = (f"training.max_steps={last}", "training.eval_every=3")
        ended = tiny_run(folder, *settings, *steps, processes=count)
        assert ended.code == 0, ended.said[-3000:]
    ours, alone = (
        load_file(folder / "run/checkpoints/step-6/average.safetensors")
        for folder in (out, whole)
    )
    assert distance(ours, alone) < 1e-5
    weights = load_file(out / "run/checkpoints/step-6/model.safetensors")
    assert distance(weights, ours) > 1e-3
