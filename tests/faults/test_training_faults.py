"""T1 to T9: what happens within a training, from a number that is not finite to a signal."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from weft.config import CausalSection, ClassifierSection, Seq2SeqSection
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.transformer import Seq2SeqTransformer
from weft.training.loss import ClassLoss, CrossEntropy

from .conftest import Run, Undisturbed, differences, verdict

Write = Callable[[int], str]


def checkpoints_of(out: Path) -> list[str]:
    return sorted(p.name for p in (out / "run" / "checkpoints").glob("step-*"))


# T1: not finite


@pytest.mark.parametrize("fault", ["NaN in a weight", "infinite gradient"])
def test_T1_a_number_that_is_not_finite_stops_before_the_weights_change(
    tmp_path: Path, tiny_run: Run, fault: str
) -> None:
    """In the second of two micro-batches of step 5: exit code 4, the batches on record, the
    checkpoint good.
    """
    out = tmp_path / "out"
    ended = tiny_run(out, **{"break": fault})
    assert (ended.code, ended.said.count("\n")) == (4, 1), ended.said
    assert re.search(
        r"step 5 \(epoch \d+, batch \d+\): loss .*, gradient norm (nan|inf)", ended.said
    )
    assert checkpoints_of(out) == ["step-3"]
    kept = load_file(out / "run" / "checkpoints" / "step-3" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in kept.values())
    failure = json.loads((out / "run" / "checkpoints" / "failure.json").read_bytes())
    assert failure["step"] == 5
    assert len(failure["batches"]) == 2
    assert (
        verdict(out)["outcome"],
        verdict(out)["exit_code"],
        verdict(out)["step"],
    ) == ("failed", 4, 4)
    assert not (out / "manifest.json").exists()


def test_T1_the_cause_gone_the_run_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    assert tiny_run(out, **{"break": "infinite gradient"}).code == 4
    assert tiny_run(out).code == 0
    (out / "run" / "checkpoints" / "failure.json").unlink()
    assert differences(out, undisturbed.out) == []


def test_T1_unless_somebody_looks_the_weights_are_lost(
    tmp_path: Path, tiny_run: Run
) -> None:
    """What the tests above stand on."""
    out = tmp_path / "out"
    tiny_run(
        out, "training.eval_every=8", **{"break": "infinite gradient, nobody looks"}
    )
    weights = [
        load_file(p / "model.safetensors")
        for p in (out / "run" / "checkpoints").glob("step-*")
    ]
    assert not all(
        tensor.isfinite().all() for tensors in weights for tensor in tensors.values()
    )


SHAPE = {"d_model": 12, "d_ff": 20, "num_heads": 2, "dropout": 0.0}


def losses(fused: bool) -> dict[str, tuple[nn.Module, Callable[[], Tensor]]]:
    """A model of each task with a function that gives its loss; `fused` as in evaluation, without
    gradients.
    """
    torch.manual_seed(3)
    src = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
    tgt_in, tgt_out = (
        torch.tensor([[2, 6, 5], [2, 8, 0]]),
        torch.tensor([[6, 5, 3], [8, 3, 0]]),
    )
    loss = CrossEntropy()
    translate = Seq2SeqTransformer(
        Seq2SeqSection(**SHAPE, num_encoder_layers=2, num_decoder_layers=2),
        11,
        11,
        joint=True,
    )
    model = CausalTransformer(CausalSection(**SHAPE, num_decoder_layers=2), 11, 0)
    classify = TransformerClassifier(
        ClassifierSection(**SHAPE, num_encoder_layers=2), 11, 3, 0
    )
    made: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        "translation": (
            translate,
            lambda: (
                loss(translate.states(src, tgt_in), translate.output, tgt_out).loss_sum
            ),
        ),
        "language": (
            model,
            lambda: loss(model.states(tgt_in), model.output, tgt_out).loss_sum,
        ),
        "classes": (
            classify,
            lambda: (
                ClassLoss()(
                    classify.states(src), classify.output, torch.tensor([1, 2])
                ).loss_sum
            ),
        ),
    }
    for network, _ in made.values():
        network.train(not fused).requires_grad_(not fused)
    return made


@pytest.mark.parametrize("fused", [False, True], ids=["training", "evaluation"])
@pytest.mark.parametrize("task", ["translation", "language", "classes"])
def test_T1_a_NaN_in_any_activation_reaches_the_loss(task: str, fused: bool) -> None:
    """No attention kernel, norm or mask hides it, of whichever layer one number of a real token is
    NaN.
    """
    model, loss = losses(fused)[task]
    assert loss().isfinite()
    layers = {
        n: m
        for n, m in model.named_modules()
        if isinstance(m, nn.Linear | nn.LayerNorm | nn.Embedding)
    }
    assert len(layers) > 8
    hidden = []
    for name, layer in layers.items():

        def spoil(module: nn.Module, given: object, made: Tensor) -> Tensor:
            spoiled = made.clone()
            spoiled.view(-1)[0] = float("nan")
            return spoiled

        handle = layer.register_forward_hook(spoil)
        if not loss().isnan():
            hidden.append(name)
        handle.remove()
    assert hidden == []


# T2, T3


def test_T2_a_batch_without_a_target_adds_nothing() -> None:
    """0 tokens: 0 loss and 0 gradient, never 0/0. There is no float16, so no loss scale that could
    overflow.
    """
    states = torch.randn(2, 3, 4, requires_grad=True)
    output = nn.Linear(4, 7)
    sums = CrossEntropy(0.1)(states, output, torch.zeros(2, 3, dtype=torch.int64))
    (sums.loss_sum / max(sums.num_tokens, 1)).backward()
    assert (float(sums.loss_sum.detach()), sums.num_tokens) == (0.0, 0)
    assert states.grad is not None
    assert not states.grad.any()


def test_T3_however_an_update_is_cut_the_gradient_is_the_same() -> None:
    """1 x 12 = 2 x 6 = 3 x 4 = 12 x 1 pairs of very uneven lengths, in float64 to 1e-12."""
    torch.manual_seed(5)
    model = Seq2SeqTransformer(
        Seq2SeqSection(**SHAPE, num_encoder_layers=1, num_decoder_layers=1),
        11,
        11,
        joint=True,
    ).double()
    rows = [torch.randint(4, 11, (1 + 5 * (i % 3) + i % 2,)) for i in range(12)]
    tokens = sum(len(row) for row in rows)

    def gradient(size: int) -> Tensor:
        model.zero_grad()
        for start in range(0, len(rows), size):
            part = nn.utils.rnn.pad_sequence(
                rows[start : start + size], batch_first=True
            )
            begin = torch.full((len(part), 1), 2)
            states = model.states(part, torch.cat([begin, part[:, :-1]], 1))
            (CrossEntropy(0.1)(states, model.output, part).loss_sum / tokens).backward()
        return torch.cat(
            [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        )

    whole = gradient(12)
    for size in (1, 4, 6):
        # the loss is summed in float32
        assert float((gradient(size) - whole).norm() / whole.norm()) < 1e-6


# T4: out of memory


@pytest.mark.parametrize(
    ("place", "said", "kept"),
    [
        (
            "the loss",
            r"out of memory at step 5 in a batch of \d+ pairs, source length \d+",
            ["step-3"],
        ),
        pytest.param(
            "the optimizer",
            "out of memory at step 5 in the optimizer's step",
            ["step-3"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "evaluation",
            "out of memory at step 6 in the evaluation on dev",
            ["step-3"],
            marks=pytest.mark.long,
        ),
        ("encoding", "out of memory while encoding the text", []),
    ],
)
def test_T4_out_of_memory_is_one_line_and_exit_code_6(
    tmp_path: Path,
    tiny_run: Run,
    undisturbed: Undisturbed,
    place: str,
    said: str,
    kept: list[str],
) -> None:
    """The allocator's own error, of a request that is too large; the last checkpoint is good."""
    out = tmp_path / "out"
    ended = tiny_run(out, **{"break": f"no memory for {place}"})
    assert (ended.code, ended.said.count("\n")) == (6, 1), ended.said
    assert re.search(said, ended.said)
    assert "lower batches.tokens_per_batch" in ended.said or place == "encoding"
    assert checkpoints_of(out) == kept
    assert (verdict(out)["outcome"], verdict(out)["exit_code"]) == ("failed", 6)
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


# T5: data workers


def test_T5_batches_are_made_by_the_training_process_alone(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """No worker can be killed, hang, or fill /dev/shm, because there is none: a batch is read from
    the store.
    """
    out = tmp_path / "out"
    number = undisturbed.numbers("^between")[8]
    ended = tiny_run(out, list_at=number)
    assert ended.code == 0, ended.said
    facts = json.loads(ended.said)
    assert facts["children"] == []
    assert facts["shared_memory"] == []


def test_T5_encoded_text_that_is_damaged_is_made_anew(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    assert (
        tiny_run(
            out, signal_at={undisturbed.numbers("^between")[4]: int(signal.SIGINT)}
        ).code
        == 75
    )
    damaged = next((out / "run" / "stores").rglob("tgt_ids.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-2])
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


# T8, T9: signals


PUSHED_MOMENTS = ("evaluate", "half run/checkpoints")
MOMENTS = (*PUSHED_MOMENTS, "os.rename run/checkpoints/latest")


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("between", signal.SIGINT),
        ("between", signal.SIGTERM),
        *((moment, signal.SIGINT) for moment in PUSHED_MOMENTS),
        pytest.param(MOMENTS[-1], signal.SIGINT, marks=pytest.mark.long),
        *(
            pytest.param(moment, signal.SIGTERM, marks=pytest.mark.long)
            for moment in MOMENTS
        ),
    ],
)
def test_T8_T9_one_signal_saves_and_names_the_command(
    tmp_path: Path,
    tiny_run: Run,
    undisturbed: Undisturbed,
    moment: str,
    number: signal.Signals,
) -> None:
    """In a step, in an evaluation (which is put off), in a save: exit code 75, and the same end
    afterwards.
    """
    out = tmp_path / "out"
    at = undisturbed.numbers(f"^{moment}")[1]
    ended = tiny_run(out, signal_at={at: int(number)})
    assert (ended.code, ended.said.count("\n")) == (75, 1), ended.said
    assert re.search(
        r"interrupted after step \d, which is saved; the same call continues it",
        ended.said,
    )
    assert (verdict(out)["outcome"], verdict(out)["exit_code"]) == ("interrupted", 75)
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def test_T8_an_evaluation_that_takes_long_is_left_at_once(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """So that the grace before a SIGKILL is enough; it is done at the next start, before the next
    step.
    """
    out = tmp_path / "out"
    at = undisturbed.numbers("^evaluate")[0]
    started = time.monotonic()
    ended = tiny_run(
        out,
        signal_at={at: int(signal.SIGTERM)},
        **{"break": "an evaluation of an hour"},
    )
    assert ended.code == 75, ended.said
    assert time.monotonic() - started < 30
    progress = json.loads(
        (out / "run" / "checkpoints" / "step-5" / "progress.json").read_bytes()
    )
    assert progress["evaluation_due"] is True
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


@pytest.mark.parametrize(
    "moment",
    [pytest.param("between", marks=pytest.mark.long), "half run/checkpoints"],
)
def test_T8_two_signals_leave_at_once(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, moment: str
) -> None:
    """Exit code 130; the checkpoint before is good, and the run ends the same."""
    out = tmp_path / "out"
    at = undisturbed.numbers(f"^{moment}")[-1]
    ended = tiny_run(out, signal_at={at: int(signal.SIGINT)}, twice=True)
    assert ended.code == 130, ended.said
    assert verdict(out)["exit_code"] == 130
    assert checkpoints_of(out)
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def test_T9_too_short_a_grace_loses_a_step_and_nothing_else(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """SIGTERM within step 7, SIGKILL before the save that it asked for is whole."""
    out, at = tmp_path / "out", undisturbed.numbers("^between")[12]
    events = str(tmp_path / "events")
    tiny_run(out, signal_at={at: int(signal.SIGTERM)}, events=events)
    done = Path(events).read_text().split("\n")
    shutil.rmtree(out)
    kill = next(
        n for n, event in enumerate(done) if n > at and event.startswith("half")
    )
    ended = tiny_run(out, signal_at={at: int(signal.SIGTERM)}, kill_at=kill)
    assert ended.code == -signal.SIGKILL
    assert checkpoints_of(out) == ["step-6"] or "step-7" not in checkpoints_of(out)
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def test_T9_SIGTERM_before_and_after_the_steps(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """While tokenizers are learned, while the model is published: exit code 75 as well."""
    for name, pattern in (
        ("before", "^os.rename run/tokenizers"),
        ("after", "^os.rename config.json"),
    ):
        out = tmp_path / name
        (at,) = undisturbed.numbers(pattern)
        ended = tiny_run(out, signal_at={at: int(signal.SIGTERM)})
        assert (ended.code, verdict(out)["outcome"]) == (75, "interrupted"), ended.said
        assert "stopped by SIGTERM; the same call continues it" in ended.said
        assert tiny_run(out).code == 0
        assert differences(out, undisturbed.out) == []


@pytest.mark.long
def test_T8_the_command_line_says_how_to_go_on(
    tmp_path: Path, write_pairs: Write, tiny_settings: tuple[str, ...]
) -> None:
    """A whole process, as a person has it."""
    text, out = write_pairs(210), tmp_path / "out"
    flags = [
        part
        for s in (*tiny_settings, "training.max_steps=100000")
        for part in ("--set", s)
    ]
    command = [
        sys.executable,
        "-m",
        "weft",
        "train",
        "--train",
        text,
        "--out",
        str(out),
        *flags,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not (out / "run" / "checkpoints").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    last = said.rstrip("\n").split("\n")[-1]
    assert process.returncode == 75
    assert "Traceback" not in said
    assert "which is saved; the same command continues it: weft train --train" in last
    assert f"--out {out}" in last
    assert (verdict(out)["outcome"], verdict(out)["exit_code"]) == ("interrupted", 75)
