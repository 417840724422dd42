"""Time a training step in simple and fast forms: `python benchmarks/training_step.py [--rounds N]`.

Small and base size (3+3 layers of width 256, 6+6 of 512), random ids of caption-like lengths, 4,096
tokens a step, 8,000 vocabulary entries, bfloat16 where the machine favours it. The forms take
turns; the table shows medians of source and target tokens a second.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.config import Seq2SeqSection, TrainingSection
from weft.kernels import operations, torch_machine
from weft.kernels.machine import Machine
from weft.kernels.torch_machine import choose_machine
from weft.model import attention
from weft.model.transformer import Seq2SeqTransformer
from weft.training.loss import CrossEntropy, LossSums, smoothed_cross_entropy
from weft.training.optimizer import build_optimizer

VOCAB_SIZE, LABEL_SMOOTHING = 8000, 0.1
SIZES = {
    "small": Seq2SeqSection(),
    "base": Seq2SeqSection(
        d_model=512, d_ff=2048, num_encoder_layers=6, num_decoder_layers=6
    ),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    machine = choose_machine()
    torch_machine.prepare(machine)
    print(machine.describe())
    print(
        "| size | fused attention, plain loss | products, plain loss | products, loss in chunks | native kernels |"
    )
    print("|---|---|---|---|---|")
    for name, shape in SIZES.items():
        runs = [
            [tokens_per_second(shape, machine, *form) for form in FORMS]
            for _ in range(rounds)
        ]
        medians = [statistics.median(column) for column in zip(*runs, strict=True)]
        print(
            f"| {name} | " + " | ".join(f"{value:,.0f}" for value in medians) + " |",
            flush=True,
        )


def tokens_per_second(
    shape: Seq2SeqSection,
    machine: Machine,
    attend: Callable,
    loss: Callable,
    native: bool,
    steps: int = 8,
) -> float:
    """Speed of whole steps, forward to optimizer, after two to warm up."""
    torch.manual_seed(1)
    model = Seq2SeqTransformer(shape, VOCAB_SIZE, VOCAB_SIZE, joint=True)
    optimizer = build_optimizer(model, TrainingSection())
    tokens, started = 0, 0.0
    form = mock.patch.object(attention, "attention", attend)
    with form, operations.using(native):
        for step in range(steps + 2):
            if step == 2:
                tokens, started = 0, time.perf_counter()
            length = 12 + step % 7
            src, tgt = (
                torch.randint(4, VOCAB_SIZE, (2048 // length, length)) for _ in range(2)
            )
            with torch_machine.autocast(machine):
                sums = loss(model.states(src, tgt), model.output, tgt, model.projection)
            (sums.loss_sum / sums.num_tokens).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            tokens += src.numel() + tgt.numel()
    return tokens / (time.perf_counter() - started)


def fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """torch's fused kernel in the place of our products."""
    return F.scaled_dot_product_attention(query, key, value, mask, dropout), query


def plain_loss(
    states: Tensor, output: Callable[[Tensor], Tensor], tgt_out: Tensor, _: nn.Linear
) -> LossSums:
    """The reference form of the loss."""
    loss, nll = smoothed_cross_entropy(
        output(states).flatten(0, -2), tgt_out.flatten(), LABEL_SMOOTHING
    )
    return LossSums(loss, nll.detach(), tgt_out.numel())


CHUNKED = CrossEntropy(LABEL_SMOOTHING)
FORMS = [
    (fused, plain_loss, False),
    (attention.attention, plain_loss, False),
    (attention.attention, CHUNKED, False),
    (attention.attention, CHUNKED, True),
]

if __name__ == "__main__":
    main()
