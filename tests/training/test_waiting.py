"""Training does not wait for its batches: they are made in less than a hundredth of a step."""

import json
from pathlib import Path

import pytest

import weft
from weft.folder.model_folder import RunFolder

SETTINGS = (
    "training.max_steps=100",
    "training.precision=float32",
    "training.eval_every=100",
    "data.builtin=everyday",
)
OF_TASK = {
    "translation": (
        "data.src_lang=en",
        "data.tgt_lang=de",
        "model.d_model=128",
        "decoding.beam_size=1",
    ),
    "language-modelling": (
        "model.d_model=128",
        "model.d_ff=512",
        "batches.packing=packed",
    ),
    "classification": ("model.d_model=128", "model.d_ff=512"),
}


@pytest.mark.long
@pytest.mark.parametrize("task", OF_TASK)
def test_less_than_a_hundredth_of_a_step_is_waiting(tmp_path: Path, task: str) -> None:
    weft.train(
        out=tmp_path / "out",
        settings=(f"task={task}", *SETTINGS, *OF_TASK[task]),
        quiet=True,
    )
    lines = [
        json.loads(line)
        for line in RunFolder(tmp_path / "out").metrics.read_bytes().split(b"\n")[:-1]
    ]
    shares = [line["data_wait_share"] for line in lines if "loss" in line]
    assert len(shares) == 2
    assert max(shares) < 0.01
